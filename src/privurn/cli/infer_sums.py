"""What `privurn infer` says about noisy sums: parameters of the model that they belong to, and n."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from privurn.cli.console import print_json, print_table, print_text, sweeps_bar
from privurn.cli.infer_answers import (
    MOST_ROWS,
    Asked,
    cells_of,
    common_json,
    diagnostics_of,
    interval,
    print_files,
    print_left_out,
    print_length,
    short,
    warn,
    write_files,
    write_folder,
)
from privurn.cli.infer_models import sum_model
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.draws import Draws, Summary
    from privurn.inference.sums.fit import SumPosterior
    from privurn.inference.sums.mcem import Maximum
    from privurn.mechanisms.sums.statistic import NoisyStatistics

WHAT = "noisy sums"
OPTIONS = ("prior", "prior_n", "moves", "mle", "naive", "bootstrap", "check")
PICTURES = ("traces", "n", "intervals")
BOOTSTRAPS = 2000
FEWEST_DRAWS = 10

Beside = Mapping[str, "tuple[Summary, ...]"]


def model_of(given: "NoisyStatistics", asked: Asked) -> Any:
    """The model, and everything else checked that the chains need not be run for."""
    from privurn.inference.sums.fit import MODELS

    pictures = asked.pictures(PICTURES)
    asked.synthetic()
    if asked.draws is not None and asked.draws < FEWEST_DRAWS:
        raise FormatError(f"chains need at least {FEWEST_DRAWS} draws.", hint="--draws auto")
    if "n" in pictures and given.n is not None:
        raise FormatError("the number of records is public: it has no posterior.", hint="Leave --plot n=... out")
    if asked.typed["bootstrap"] and given.nearest(MODELS) != "regression":
        raise FormatError("the bootstrap is for regression.", hint="Leave --bootstrap out")
    made = sum_model(given, asked.typed["prior"], asked.typed["prior_n"], asked.typed["moves"] or "auto")
    _beside(given, asked)  # what cannot be said is refused before the chains are run
    return made


def _beside(given: "NoisyStatistics", asked: Asked) -> Beside:
    from privurn.inference.sums import report

    found = {"naive": report.plug_in(given, level=asked.level)} if asked.typed["naive"] else {}
    if asked.typed["bootstrap"]:
        found["bootstrap"] = report.bootstrap(given, replicates=BOOTSTRAPS, seed=asked.typed["seed"], level=asked.level)
    return found


def finish(given: "NoisyStatistics", found: "SumPosterior", asked: Asked) -> None:
    """Warn, write, show."""
    from privurn.inference.sums.mcem import maximise

    summaries, beside = found.summary(), _beside(given, asked)
    highest = None
    if asked.typed["mle"]:
        with sweeps_bar("Monte Carlo EM", quiet=asked.json) as progress:
            how = {"chains": asked.typed["chains"], "seed": asked.typed["seed"], "progress": progress}
            highest = maximise(found.model, observed=found.observed, **how)
    warn(found)
    if highest is not None:
        warn(highest)
    pictures = [(found.plot(kind=kind, beside=beside), target) for kind, target in asked.pictures(PICTURES).items()]  # type: ignore[arg-type]
    written = write_files(found, asked, figures=pictures, synthetic=partial(found.synthetic, seed=asked.typed["seed"]))
    written |= write_folder(found, asked, made_from=given.mechanism.name)
    if asked.json:
        print_json(_as_json(given, found, summaries, beside, highest) | {"files": written, **asked.extra})
        return
    _print(given, found, summaries, beside, highest, asked.level)
    print_files(written)


def _acceptance(draws: "Draws") -> dict[str, float]:
    """Share of proposals of each move that were accepted."""
    rates = {name: float(values.mean()) for name, values in draws.sample_stats.items() if name.startswith("acceptance_")}
    return {name.removeprefix("acceptance_"): rate for name, rate in rates.items()}


def _highest(maximum: "Maximum") -> dict[str, tuple[float, float]]:
    """Estimate and Monte Carlo error by the names that summaries use."""
    return {row.name: (row.mean, row.standard_error) for row in maximum.summary()}


def _as_json(
    given: "NoisyStatistics", found: "SumPosterior", summaries: "Sequence[Summary]", beside: Beside, maximum: "Maximum | None"
) -> dict[str, Any]:
    named = {key: {each.name: each for each in rows} for key, rows in beside.items()}
    rows = []
    for each in summaries:
        extra = {key: known[each.name].to_json() for key, known in named.items() if each.name in known}
        rows.append({**each.to_json(), **extra})
    told: dict[str, Any] = {
        "model": given.model,
        "neighbouring": given.neighbouring,
        "n": {"public": given.n, "noisy": given.noisy_n},
        **common_json(found, rows),
        **({"approximation": found.approximation} if found.approximation else {}),
        "acceptance": _acceptance(found.draws),
    }
    if maximum is not None:
        highest = {name: {"estimate": _finite(a), "error": _finite(b)} for name, (a, b) in _highest(maximum).items()}
        told["maximum"] = {"converged": not maximum.problems, "problems": list(maximum.problems), "variables": highest}
        told["warnings"] += [str(each) for each in maximum.cautions()]
    return told


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print(
    given: "NoisyStatistics",
    found: "SumPosterior",
    summaries: "Sequence[Summary]",
    beside: Beside,
    maximum: "Maximum | None",
    level: float,
) -> None:
    size = f"n = {given.n:,} public" if given.n is not None else "n secret"
    if given.noisy_n is not None:
        size += f", noisy n {given.noisy_n:,.5g}"
    columns = ["", "mean", "sd", f"{level:.0%} interval"]
    columns += [f"{key} {level:.0%} interval (ignores noise)" if key == "naive" else key for key in beside]
    columns += ["maximum likelihood"] if maximum is not None else []
    columns += ["effective draws", "R-hat"]
    others = [{each.name: each for each in rows} for rows in beside.values()]
    highest = None if maximum is None else _highest(maximum)
    rows = []
    for each in summaries[:MOST_ROWS]:
        row = cells_of(each)
        row += [_point_or_interval(named[each.name]) if each.name in named else "-" for named in others]
        if highest is not None:
            row.append("{} (+- {})".format(*map(short, highest[each.name])) if each.name in highest else "-")
        rows.append(row + diagnostics_of(each))
    print_table(f"Posterior from noisy statistics: {given.model}, {given.neighbouring}, {size}", columns, rows)
    print_left_out(summaries)
    print_length(found, ", ".join(f"{name} {rate:.0%}" for name, rate in _acceptance(found.draws).items()))
    if found.approximation:
        print_text(found.approximation)


def _point_or_interval(each: "Summary") -> str:
    """Some comparators know no more than one number."""
    return short(each.mean) if each.lower == each.upper else interval(each)
