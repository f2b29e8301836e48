"""What `privurn infer mixture` found, as files, as JSON and as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privurn.cli.console import print_table, print_text
from privurn.cli.inferring import cells_of, diagnostics_of, short, write_files

if TYPE_CHECKING:
    from privurn.inference.draws import Draws
    from privurn.inference.mixtures.clustering import PointClustering
    from privurn.inference.mixtures.deconvolution import Deconvolution
    from privurn.inference.mixtures.posterior import MixturePosterior
    from privurn.inference.mixtures.reading import Privatised
    from privurn.inference.mixtures.results import Informativeness

MOST_ROWS = 40
"""Of the printed table; all are in the JSON."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was typed, checked before any work is done."""

    draws: int
    warm_up: int
    chains: int
    thin: int
    seed: int | None
    level: float
    clusters: bool
    pictures: Mapping[str, str]
    output: Path | None
    synthetic: tuple[int, Path] | None
    deconvolution: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What there is to show and to write."""

    given: "Privatised"
    found: "MixturePosterior"
    figures: "Draws"
    learned: "Informativeness"
    problems: tuple[str, ...]
    clusters: "PointClustering | None"
    deconvolution: "Deconvolution | None"


def extra_of(given: "Privatised", found: "MixturePosterior", asked: Asked) -> dict[str, Any]:
    """Point clustering and comparator, where they were asked for."""
    from privurn.inference.mixtures.deconvolution import deconvolve
    from privurn.inference.mixtures.results import default_grid, point_clustering

    made: dict[str, Any] = {"clusters": None, "deconvolution": None}
    if asked.clusters:
        made["clusters"] = point_clustering(found)
    if asked.deconvolution:
        channel: Any = given.channel
        made["deconvolution"] = deconvolve(given.released, channel=channel, grid=default_grid(found))
    return made


def write_answer(answer: Answer, asked: Asked) -> dict[str, str]:
    """Everything is computed in full before the first file is touched."""
    from privurn.inference.mixtures.results import plot
    from privurn.output_files import write_file
    from privurn.tables import write

    others = None if answer.deconvolution is None else {"deconvolution": answer.deconvolution.positive()}
    figures = [
        (plot(answer.found, kind=kind, level=asked.level, others=others), target)  # type: ignore[arg-type]
        for kind, target in asked.pictures.items()
    ]
    n, target = (0, None) if asked.synthetic is None else asked.synthetic
    table = None if target is None else _synthetic(answer, n, asked.seed)
    return write_files(
        answer.found.draws.save,
        asked.output,
        figures=figures,
        synthetic=target,
        write_synthetic=lambda path: write_file(path, lambda partial: write(table, partial)),
    )


def _synthetic(answer: Answer, n: int, seed: int | None) -> Any:
    """Records as the confidential table would hold them."""
    import numpy as np

    from privurn.inference.mixtures.results import predict
    from privurn.tables import decode
    from privurn.tables.columns import numbers_table

    given = answer.given
    records = predict(answer.found, n, seed=seed)
    if given.domain is not None:
        sizes = [each.size for each in given.domain.columns.values()]
        return decode(np.ravel_multi_index(tuple(records.T), sizes, order="F"), given.domain)
    return numbers_table(records.reshape(n), [given.column])


def _acceptance(answer: Answer) -> float:
    return float(answer.found.draws.sample_stats["acceptance"].mean())


def as_json(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Plain data."""
    from privurn.inference.mixtures.results import default_grid

    given, found, learned = answer.given, answer.found, answer.learned
    stated = found.draws.attributes
    told: dict[str, Any] = {
        "channel": {"name": given.channel.name, **given.channel.parameters()},
        "records": given.n,
        "kernel": repr(found.model.kernel),
        "mixing": repr(found.model.mixing),
        "sampler": stated["sampler"],
        "chosen_because": stated.get("chosen_because"),
        "chains": found.draws.n_chains,
        "draws": found.draws.n_draws,
        "seed": stated["seed"],
        "acceptance": _acceptance(answer),
        "mass_not_kept": stated["mass_not_kept"],
        "variables": [each.to_json() for each in answer.figures.summary(level=asked.level)],
        "informativeness": {"distance": learned.distance, "spread": learned.spread, "informative": learned.informative},
        "problems": list(answer.problems),
    }
    if not found.model.kernel.categorical:
        curve = found.density(default_grid(found), level=asked.level)
        told["density"] = {name: getattr(curve, name).tolist() for name in ("grid", "mean", "lower", "upper")}
    if answer.clusters is not None:
        told["clusters"] = {"labels": answer.clusters.labels.tolist(), "expected_loss": answer.clusters.expected_loss}
    if answer.deconvolution is not None:
        estimate = answer.deconvolution
        told["deconvolution"] = {"density": estimate.density.tolist(), "bandwidth": estimate.bandwidth}
    return told


def print_answer(answer: Answer, asked: Asked) -> None:
    """A table, and a few lines."""
    from privurn.inference.mixtures.results import bounds_of

    given, draws = answer.given, answer.found.draws
    stated, summaries = draws.attributes, answer.figures.summary(level=asked.level)
    rows = [cells_of(each) + diagnostics_of(each) for each in summaries[:MOST_ROWS]]
    title = f"Mixture of {given.n:,} records behind the {given.channel.name} channel: {stated['kernel']} kernel"
    columns = ["", "mean", "sd", f"{asked.level:.0%} interval", "effective draws", "R-hat"]
    print_table(f"{title}, {stated['mixing']}", columns, rows)
    if len(summaries) > MOST_ROWS:
        print_text(f"and {len(summaries) - MOST_ROWS:,} more (--json)")
    print_text(
        f"{stated['sampler']}: {draws.n_chains} chains of {draws.n_draws:,} draws after {stated['warm_up']:,} sweeps; "
        f"accepted: {_acceptance(answer):.0%}"
    )
    if "mean" in answer.figures:
        lower, upper = bounds_of(answer.found)
        print_text(f"Within bounds: of the population between {short(lower)} and {short(upper)}, whose share is scaled to 1.")
    atoms, beyond = draws["weights"].shape[-1], stated["mass_not_kept"]
    print_text(f"Mixing measures: up to {atoms:,} atoms a draw; at most {beyond:.1e} of the mass was not drawn atom by atom.")
    learned = answer.learned
    print_text(f"Against the prior: Hellinger distance {learned.distance:.2f}; drawn densities {learned.spread:.0%} as wide.")
    if answer.clusters is not None:
        import numpy as np

        sizes = ", ".join(f"{size:,}" for size in sorted(np.bincount(answer.clusters.labels).tolist(), reverse=True))
        words = f"{answer.clusters.n_clusters} cluster{'s' if answer.clusters.n_clusters > 1 else ''}"
        print_text(f"Point clustering (variation of information): {words} of {sizes} records")
    if answer.deconvolution is not None:
        print_text(f"Deconvolution estimate: bandwidth {answer.deconvolution.bandwidth:.4g} (--plot, --json)")
