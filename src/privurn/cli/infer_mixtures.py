"""What `privurn infer` says about privatised records: the density and the clusters of the confidential population."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from privurn.cli.console import print_json, print_table, print_text, print_words
from privurn.cli.infer_answers import (
    MOST_ROWS,
    Asked,
    cells_of,
    common_json,
    diagnostics_of,
    print_files,
    print_length,
    short,
    warn,
    write_files,
    write_folder,
)
from privurn.cli.infer_models import mixing_law
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.mixtures.posterior import MixturePosterior
    from privurn.inference.mixtures.reading import Mixture, Privatised

WHAT = "privatised records"
OPTIONS = (
    "kernel",
    "mixing",
    "strength",
    "discount",
    "components",
    "sampler",
    "moves",
    "unclamped",
    "clusters",
    "deconvolution",
    "records",
    "check",
)
PICTURES = ("density", "intervals", "clusters", "together", "traces")
MOST_LABELS = 200_000_000
"""Cluster labels that are kept at most: records times draws."""

MOST_CLUSTERED = 5_000


def model_of(given: "Privatised", asked: Asked) -> "Mixture":
    """The model, and everything else checked that the chains need not be run for."""
    from privurn.inference.mixtures.reading import Mixture, default_model
    from privurn.inference.mixtures.samplers import Keep

    typed, pictures = asked.typed, asked.pictures(_kinds(given))
    asked.synthetic()
    labels = typed["clusters"] or "together" in pictures
    mixture = Mixture(
        kernel=typed["kernel"],
        mixing=mixing_law(typed["mixing"], typed["strength"], typed["discount"], typed["components"]),
        clamped=not typed["unclamped"],
        sampler=typed["sampler"],
        moves=typed["moves"] or "auto",
        keep=Keep(allocations=labels),
    )
    made = default_model(given.channel, kernel=mixture.kernel, mixing=mixture.mixing, clamped=mixture.clamped)
    _check(given, made, asked, labels=labels, pictures=pictures)
    if given.channel.one_output and mixture.sampler not in ("auto", "neal5", "slice"):
        raise FormatError(f"the sampler {mixture.sampler!r} is for releases record by record.", hint="--sampler auto")
    return mixture


def _kinds(given: "Privatised") -> tuple[str, ...]:
    """Of pictures, the usual one first: categories have no density."""
    return (*PICTURES[1:], PICTURES[0]) if given.labels else PICTURES


def _check(given: "Privatised", model: Any, asked: Asked, *, labels: bool, pictures: Any) -> None:
    from privurn.inference.mixtures.results import MOST_CELLS

    if labels:
        if given.channel.one_output:
            raise FormatError("one output for all records does not say who is with whom.", hint="Leave --clusters out")
        if given.n > MOST_CLUSTERED:
            raise FormatError(
                f"clusterings are searched for up to {MOST_CLUSTERED:,} records.", hint="In Python: co_clustering(rows=...)"
            )
        if given.n * (asked.draws or 1) * asked.typed["chains"] > MOST_LABELS:
            raise FormatError("so many draws of so many labels do not fit.", hint="Fewer --draws, with --thin")
    if "density" in pictures and model.kernel.categorical:
        raise FormatError("categories have no density to draw.", hint="--plot intervals=FILE")
    if model.kernel.categorical and math.prod(getattr(model.kernel, "categories", ())) > MOST_CELLS:
        raise FormatError(
            f"there are more than {MOST_CELLS:,} joint categories to compare with the prior.",
            hint="In Python: infer, and population() for each column",
        )
    if asked.typed["deconvolution"] and not getattr(given.channel, "continuous_noise", None):
        raise FormatError("deconvolution needs the Laplace or the Gaussian channel.", hint="Leave --deconvolution out")


def finish(given: "Privatised", found: "MixturePosterior", asked: Asked) -> None:
    """Warn, write, show."""
    from privurn.inference.mixtures.deconvolution import deconvolve
    from privurn.inference.mixtures.results import default_grid

    learned = found.informativeness()
    warn(found)
    extra: dict[str, Any] = {"learned": learned, "clusters": None, "deconvolution": None}
    if asked.typed["clusters"]:
        extra["clusters"] = found.point_clustering()
    if asked.typed["deconvolution"]:
        channel: Any = given.channel
        extra["deconvolution"] = deconvolve(given.released, channel=channel, grid=default_grid(found))
    beside: dict[str, Any] = (
        {} if extra["deconvolution"] is None else {"others": {"deconvolution": extra["deconvolution"].positive()}}
    )
    figures = [(found.plot(kind=kind, **beside), path) for kind, path in asked.pictures(_kinds(given)).items()]
    records = partial(found.synthetic, records=asked.records, seed=asked.typed["seed"])
    written = write_files(found, asked, figures=figures, synthetic=records)
    written |= write_folder(found, asked, made_from=given.mechanism or given.channel.name)
    if asked.json:
        print_json(_as_json(given, found, extra) | {"files": written, **asked.extra})
        return
    _print(given, found, asked, extra)
    print_files(written)


def _as_json(given: "Privatised", found: "MixturePosterior", extra: Any) -> dict[str, Any]:
    from privurn.inference.mixtures.results import default_grid

    learned, stated = extra["learned"], found.draws.attributes
    told: dict[str, Any] = {
        "model": "mixture",
        "channel": {"name": given.channel.name, **given.channel.parameters()},
        "records": given.n,
        "kernel": repr(found.model.kernel),
        "mixing": repr(found.model.mixing),
        "chosen_because": stated.get("chosen_because"),
        **common_json(found, [each.to_json() for each in found.summary()]),
        "acceptance": float(found.draws.sample_stats["acceptance"].mean()),
        "mass_not_kept": stated["mass_not_kept"],
        "unmixed_besides": found.unmixed_besides(),
        "informativeness": {"distance": learned.distance, "spread": learned.spread, "informative": learned.informative},
    }
    if not found.model.kernel.categorical:
        curve = found.density(default_grid(found), level=found.level)
        told["density"] = {name: getattr(curve, name).tolist() for name in ("grid", "mean", "lower", "upper")}
    if extra["clusters"] is not None:
        told["clusters"] = {"labels": extra["clusters"].labels.tolist(), "expected_loss": extra["clusters"].expected_loss}
    if extra["deconvolution"] is not None:
        estimate = extra["deconvolution"]
        told["deconvolution"] = {"density": estimate.density.tolist(), "bandwidth": estimate.bandwidth}
    return told


def _behind(given: "Privatised") -> str:
    """What stands between the records and what was published."""
    return f"the {given.mechanism} mechanism" if given.mechanism else f"the {given.channel.name} channel"


def _print(given: "Privatised", found: "MixturePosterior", asked: Asked, extra: Any) -> None:
    """A table, and a few lines."""
    from privurn.inference.mixtures.results import bounds_of

    draws, summaries = found.draws, found.summary()
    stated = draws.attributes
    rows = [cells_of(each) + diagnostics_of(each) for each in summaries[:MOST_ROWS]]
    title = f"Mixture of {given.n:,} records behind {_behind(given)}: {stated['kernel']} kernel"
    columns = ["", "mean", "sd", f"{asked.level:.0%} interval", "effective draws", "R-hat"]
    print_table(f"{title}, {stated['mixing']}", columns, rows)
    if len(summaries) > MOST_ROWS:
        print_text(f"and {len(summaries) - MOST_ROWS:,} more (--json, -o FILE.nc)")
    print_length(found, f"{float(draws.sample_stats['acceptance'].mean()):.0%}")
    if besides := found.unmixed_besides():
        print_words(f"No run waits for these, and they have not mixed: {', '.join(besides)}.")
    if not found.model.kernel.categorical:
        lower, upper = bounds_of(found)
        print_words(f"Within bounds: of the population between {short(lower)} and {short(upper)}, whose share is scaled to 1.")
    atoms, beyond = draws["weights"].shape[-1], stated["mass_not_kept"]
    print_words(f"Mixing measures: up to {atoms:,} atoms a draw; at most {beyond:.1e} of the mass was not drawn atom by atom.")
    learned = extra["learned"]
    print_words(f"Against the prior: Hellinger distance {learned.distance:.2f}; drawn densities {learned.spread:.0%} as wide.")
    if extra["clusters"] is not None:
        import numpy as np

        clusters = extra["clusters"]
        sizes = ", ".join(f"{size:,}" for size in sorted(np.bincount(clusters.labels).tolist(), reverse=True))
        words = f"{clusters.n_clusters} cluster{'s' if clusters.n_clusters > 1 else ''}"
        print_words(f"Point clustering (variation of information): {words} of {sizes} records")
    if extra["deconvolution"] is not None:
        print_text(f"Deconvolution estimate: bandwidth {extra['deconvolution'].bandwidth:.4g} (--plot, --json)")
