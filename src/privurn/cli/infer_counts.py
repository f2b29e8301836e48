"""What `privurn infer` says about counts of cells: releases of records, of probabilities, of noisy counts."""

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from privurn.cli.console import note, print_json, print_table, print_words
from privurn.cli.infer_answers import (
    MOST_ROWS,
    Asked,
    cells_of,
    common_json,
    diagnostics_of,
    ends,
    interval,
    print_files,
    print_left_out,
    print_length,
    short,
    unbiased_of,
    warn,
    write_files,
    write_folder,
)
from privurn.cli.infer_models import count_model
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.counts.results import CountPosterior
    from privurn.inference.draws import Summary

WHAT = "counts of cells"
OPTIONS = ("prior", "prior_n", "sample", "within", "naive", "exact", "check")
PICTURES = ("density", "cdf", "intervals", "n", "traces")


def model_of(given: Any, asked: Asked) -> Any:
    """The model, and everything else checked that the chains need not be run for."""
    check_pictures(given, asked)
    if asked.typed["exact"] or asked.typed["model"] == "tree":
        return tree_model(asked)
    return count_model(asked.typed["prior"], asked.typed["prior_n"], asked.typed["within"])


def tree_model(asked: Asked) -> Any:
    """A Polya tree, by independent draws or by the chain."""
    from privurn.inference.counts.places import ASSUMED
    from privurn.inference.trees.model import PolyaTree

    if asked.typed["prior"] or asked.typed["prior_n"]:
        raise FormatError("a Polya tree has no other prior.", hint="Leave --prior and --prior-n out")
    if asked.typed["within"] not in ASSUMED:
        raise FormatError("where in its bin a record lies is not known.", hint="--within uniform, whole or midpoint")
    return PolyaTree(exact=asked.typed["exact"], within=asked.typed["within"])


def check_pictures(given: Any, asked: Asked) -> None:
    """Pictures and the file of records."""
    if "n" in asked.pictures(PICTURES) and given.n is not None:
        raise FormatError("the number of records is public: it has no posterior.", hint="Leave --plot n=... out")
    asked.synthetic()


def finish(given: Any, found: "CountPosterior", asked: Asked) -> None:
    """Warn, write, show."""
    summaries = found.summary()
    warn(found)
    for name, count in found.undefined.items():
        drawn = found.draws.n_chains * found.draws.n_draws
        note(f"note: {name} is undefined in {count:,} of {drawn:,} draws, which hold no record of it; they are left out.")
    naive = asked.typed["naive"]
    beside = {each.name: each for each in found.naive().summary(level=asked.level)} if naive else {}
    drawn_pictures = [(found.plot(kind=kind, naive=naive), target) for kind, target in asked.pictures(PICTURES).items()]  # type: ignore[arg-type]
    records = partial(found.synthetic, records=asked.records, seed=asked.typed["seed"])
    written = write_files(found, asked, figures=drawn_pictures, synthetic=records)
    written |= write_folder(found, asked, made_from=", ".join(each.mechanism.name for each in found.observed))
    if asked.json:
        print_json(_as_json(found, summaries, beside) | {"files": written, **asked.extra})
        return
    _print(found, summaries, beside, asked.level)
    print_files(written)


def _as_json(found: "CountPosterior", summaries: "tuple[Summary, ...]", beside: "Mapping[str, Summary]") -> dict[str, Any]:
    released = found.face_value
    rows = []
    for each in summaries:
        value = released.get(each.name, math.nan)
        row = {**each.to_json(), "released": value if math.isfinite(value) else None}
        rows.append(row | ({"naive": beside[each.name].to_json()} if each.name in beside else {}))
    how = {key: value for key, value in found.draws.attributes.items() if value is None or isinstance(value, (str, int, float))}
    return {"model": "counts", **common_json(found, rows), "how": how}


def _print(found: "CountPosterior", summaries: "tuple[Summary, ...]", beside: "Mapping[str, Summary]", level: float) -> None:
    stated = found.draws.attributes
    released = found.face_value
    title = f"Posterior of the {found.of}: {stated['mechanisms']}; prior: {stated['prior']}; {stated['how']}"
    estimated = any(each.unbiased is not None for each in summaries)
    columns = ["", "mean", "sd", f"{level:.0%} interval", *(["unbiased (+- its error)"] if estimated else []), "released"]
    placed = any(each.lowest is not None for each in summaries)
    columns += [f"{level:.0%} wherever in their bins"] if placed else []
    columns += [f"naive {level:.0%} interval (not valid)"] if beside else []
    columns += ["effective draws", "R-hat"] if found.draws.markov else ["draws"]
    rows = []
    for each in summaries[:MOST_ROWS]:
        row = [*cells_of(each), *([unbiased_of(each)] if estimated else []), short(released.get(each.name, math.nan))]
        row += [ends(each)] if placed else []
        if beside:
            row.append(interval(beside[each.name]) if each.name in beside else "-")
        rows.append(row + diagnostics_of(each)[: 2 if found.draws.markov else 1])
    print_table(title, columns, rows)
    print_left_out(summaries)
    if found.draws.markov:
        print_length(found, "")
    if "prior_of_n" in stated:
        print_words(f"n is secret, and {stated['prior_of_n']} a priori; with --prior-n you can say what you know.")
