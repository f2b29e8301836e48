"""What the commands of `privurn infer` on noisy statistics share: reading what was typed, and showing what was found."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from privurn.cli.console import note, print_json, print_table, print_text
from privurn.cli.inferring import (
    cells_of,
    check_common,
    diagnostics_of,
    interval,
    named_pictures,
    print_files,
    short,
    write_files,
)
from privurn.cli.parsing import whole_number
from privurn.errors import FormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.inference.draws import Draws, Summary
    from privurn.inference.sums.logistic_model import LogisticPrior
    from privurn.inference.sums.mcem import Maximum
    from privurn.inference.sums.regression_model import RegressionPrior
    from privurn.inference.sums.size import SizePrior
    from privurn.mechanisms.sums.statistic import NoisyStatistics

COMMANDS = {
    "regression": "regression",
    "logistic": "logistic",
    "dirichlet": "dirichlet",
    "table": "table",
    "bernoulli": "mean",
    "poisson": "mean",
    "normal": "mean",
}
"""Which command belongs to which model."""

PRIORS = {
    "dirichlet": {"shape": 1.0, "rate": 0.1},
    "table": {"cell": 1.0},
    "bernoulli": {"ones": 1.0, "zeros": 1.0},
    "poisson": {"shape": 1.0, "rate": 0.1},
}
"""Numbers of the priors of each model, with what they are where left out."""

PICTURES = ("traces", "n", "intervals")
P = TypeVar("P", "RegressionPrior", "LogisticPrior")
MOST_ROWS = 60
"""Of a printed table; all are in the JSON and the netCDF file."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What all the commands share, checked before any work is done."""

    draws: int | None
    chains: int
    warm_up: int
    seed: int | None
    moves: str
    level: float
    pictures: Mapping[str, str]
    output: Path | None
    synthetic: Path | None
    json: bool


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What there is to show and to write."""

    statistics: "NoisyStatistics"
    draws: "Draws"
    names: Sequence[str]
    problems: Sequence[str]
    beside: Mapping[str, "tuple[Summary, ...]"]
    maximum: "Maximum | None"
    write_synthetic: Callable[[Path], int]


def checked(
    *,
    draws: str,
    chains: int,
    warm_up: str,
    seed: int | None,
    moves: str = "interwoven",
    level: float,
    plot: list[str] | None,
    output: Path | None,
    synthetic: Path | None,
    json: bool,
) -> Asked:
    """All that can be checked without the statistics."""
    from privurn.output_files import check_new_file

    check_common(level, output)
    if moves not in ("interwoven", "centred"):
        raise FormatError(f"the moves {moves!r} are not known.", hint="--moves interwoven or --moves centred")
    length = None if draws == "auto" else whole_number(draws)
    warm = whole_number(warm_up)
    if (length is not None and length < 10) or warm < 0:
        raise FormatError("chains need at least 10 draws, and no negative warm-up.", hint="--draws auto")
    pictures = named_pictures(plot, PICTURES, example="--plot n=n.png")
    if synthetic is not None:
        if synthetic.suffix != ".csv":
            raise FormatError("synthetic records are written as CSV.", hint="Name a file that ends in .csv")
        check_new_file(synthetic)
    return Asked(
        draws=length,
        chains=chains,
        warm_up=warm,
        seed=seed,
        moves=moves,
        level=level,
        pictures=pictures,
        output=output,
        synthetic=synthetic,
        json=json,
    )


def read(file: Path, command: str) -> "NoisyStatistics":
    """The statistics of a file that is as it was released, and belongs to the command."""
    from privurn.certificates.statistics import read_statistics

    released = read_statistics(file)
    if released.certificate["private"] is not True:
        note("warning: these statistics were made with seeded noise: they are not private.")
    statistics = released.statistics
    if COMMANDS[statistics.model] != command:
        raise FormatError(
            f"{str(file)!r} holds statistics for the model {statistics.model}.",
            hint=f"privurn infer {COMMANDS[statistics.model]} {file}",
        )
    return statistics


def numbers_of_prior(given: list[str] | None, known: Mapping[str, float], model: str) -> dict[str, float]:
    """Positive numbers by name."""
    found = dict(known)
    for each in given or []:
        name, _, text = each.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise FormatError(
                f"the prior of the model {model} has no number {name!r}.",
                hint=" ".join(f"--prior {key}={value:g}" for key, value in known.items()),
            )
        found[name] = _number(each, text)
        if found[name] <= 0.0:
            raise FormatError(f"the prior {each!r} must be positive.", hint=f"For example --prior {name}=1")
    return found


def _number(each: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"the prior {each!r} is not understood.", hint="--prior NAME=NUMBER")
    return value


def prior_of_regression(statistics: "NoisyStatistics", given: list[str] | None) -> "RegressionPrior":
    """The one that follows the bounds, or the unit one, with single numbers changed."""
    from privurn.inference.sums.regression_model import RegressionModel

    return _changed(RegressionModel.from_statistics(statistics).prior, given)


def prior_of_logistic(statistics: "NoisyStatistics", given: list[str] | None) -> "LogisticPrior":
    """The same for logistic regression."""
    from privurn.inference.sums.logistic_model import LogisticModel

    return _changed(LogisticModel.from_statistics(statistics).prior, given)


def _changed(prior: P, given: list[str] | None) -> P:
    """The prior, or that of its kind with ones everywhere, with single numbers changed by name."""
    words = list(given or [])
    if "unit" in words:
        words.remove("unit")
        prior = type(prior)()
    known = [each.name for each in fields(prior)]
    for each in words:
        name, _, text = each.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise FormatError(f"the prior has no number {name!r}.", hint=f"unit, or one of: {', '.join(known)}")
        prior = replace(prior, **{name: _number(each, text)})
    return prior


def prior_of_size(text: str | None, statistics: "NoisyStatistics") -> "SizePrior | None":
    """A prior of n, where one was typed and n is secret."""
    from privurn.inference.sums.size import SizePrior

    if text is None:
        return None
    if statistics.n is not None:
        raise FormatError("the number of records is public: it has no prior.", hint="Leave --prior-n out")
    first, colon, second = text.partition(":")
    if first == "poisson" and colon:
        return SizePrior(kind="poisson", mean=_number(text, second))
    if not colon:
        raise FormatError(f"the prior {text!r} of n is not understood.", hint="--prior-n 500:2000 or --prior-n poisson:1000")
    return SizePrior(lower=whole_number(first), upper=whole_number(second))


def finish(answer: Answer, asked: Asked) -> None:
    """Warn, write, show."""
    names = [name for name in answer.names if name != "n" or answer.statistics.n is None]
    summaries = answer.draws.summary(names, level=asked.level)
    if answer.problems:
        note(f"WARNING: the chains have NOT mixed; do not trust these figures ({len(answer.problems)} of {len(summaries)}):")
        for problem in answer.problems[:5]:
            note(f"  {problem}")
    if answer.maximum is not None and answer.maximum.problems:
        note("WARNING: the maximum of the likelihood is NOT to be trusted:")
        for problem in answer.maximum.problems[:5]:
            note(f"  {problem}")
    figures = [(_picture(kind, answer, summaries), target) for kind, target in asked.pictures.items()]
    written = write_files(
        answer.draws.save,
        asked.output,
        figures=figures,
        synthetic=asked.synthetic,
        write_synthetic=answer.write_synthetic,
    )
    if asked.json:
        print_json(_as_json(answer, summaries, written))
        return
    _print(answer, summaries, asked)
    print_files(written)


def _picture(kind: str, answer: Answer, summaries: "Sequence[Summary]") -> "Figure":
    from privurn.drawing import interval_picture, trace_picture, whole_number_picture

    if kind == "traces":
        return trace_picture(answer.draws.numbers(answer.names))
    if kind == "n":
        if answer.statistics.n is not None:
            raise FormatError("the number of records is public: it has no posterior.", hint="Leave --plot n=... out")
        noisy = answer.statistics.noisy_n
        return whole_number_picture(answer.draws["n"], name="n", marks={} if noisy is None else {"noisy n": noisy})
    leading = summaries[0].name.partition("[")[0]
    shown = [each for each in summaries if each.name.partition("[")[0] == leading or each.name == "log_odds_ratio"][:6]
    named = {each.name for each in shown}
    groups = {"posterior": shown}
    groups |= {key: [each for each in rows if each.name in named] for key, rows in answer.beside.items()}
    return interval_picture(groups, title="Posterior and comparators" if answer.beside else "Posterior")


def _acceptance(draws: "Draws") -> dict[str, float]:
    """Share of proposals of each move that were accepted."""
    rates = {name: float(np.mean(values)) for name, values in draws.sample_stats.items() if name.startswith("acceptance_")}
    return {name.removeprefix("acceptance_"): rate for name, rate in rates.items()}


def _highest(maximum: "Maximum") -> dict[str, tuple[float, float]]:
    """Estimate and Monte Carlo error by the names that summaries use."""
    return {row.name: (row.mean, row.standard_error) for row in maximum.summary()}


def _as_json(answer: Answer, summaries: "Sequence[Summary]", written: Mapping[str, str]) -> dict[str, Any]:
    statistics, draws = answer.statistics, answer.draws
    beside = {key: {each.name: each for each in rows} for key, rows in answer.beside.items()}
    rows = []
    for each in summaries:
        extra = {key.replace("-", "_"): named[each.name].to_json() for key, named in beside.items() if each.name in named}
        rows.append({**each.to_json(), **extra})
    told: dict[str, Any] = {
        "model": statistics.model,
        "neighbouring": statistics.neighbouring,
        "n": {"public": statistics.n, "noisy": statistics.noisy_n},
        "variables": rows,
        "acceptance": _acceptance(draws),
        "chains": draws.n_chains,
        "draws": draws.n_draws,
        "length": draws.attributes["length"],
        "warm_up": draws.attributes["warm_up"],
        "forgotten": draws.attributes["forgotten"],
        "seed": draws.attributes["seed"],
        "sampler": draws.attributes["sampler"],
        "mixed": not answer.problems,
        "problems": list(answer.problems),
    }
    if answer.maximum is not None:
        found = {name: {"estimate": _finite(a), "error": _finite(b)} for name, (a, b) in _highest(answer.maximum).items()}
        told["maximum"] = {"converged": not answer.maximum.problems, "variables": found}
    return {**told, "files": dict(written)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print(answer: Answer, summaries: "Sequence[Summary]", asked: Asked) -> None:
    statistics, draws = answer.statistics, answer.draws
    size = f"n = {statistics.n:,} public" if statistics.n is not None else "n secret"
    if statistics.noisy_n is not None:
        size += f", noisy n {statistics.noisy_n:,.5g}"
    columns = ["", "mean", "sd", f"{asked.level:.0%} interval"]
    columns += [f"{key} {asked.level:.0%} interval (ignores noise)" if key == "plug-in" else key for key in answer.beside]
    columns += ["maximum likelihood"] if answer.maximum is not None else []
    columns += ["effective draws", "R-hat"]
    beside = [{each.name: each for each in rows} for rows in answer.beside.values()]
    highest = None if answer.maximum is None else _highest(answer.maximum)
    rows = []
    for each in summaries[:MOST_ROWS]:
        row = cells_of(each)
        row += [_point_or_interval(named[each.name]) if each.name in named else "-" for named in beside]
        if highest is not None:
            row.append("{} (+- {})".format(*map(short, highest[each.name])) if each.name in highest else "-")
        rows.append(row + diagnostics_of(each))
    print_table(f"Posterior from noisy statistics: {statistics.model}, {statistics.neighbouring}, {size}", columns, rows)
    if len(summaries) > MOST_ROWS:
        print_text(f"and {len(summaries) - MOST_ROWS:,} more (--json, -o FILE.nc)")
    length = "until they had mixed" if draws.attributes["length"] == "chosen" and not answer.problems else "as asked"
    length = "the longest tried" if draws.attributes["length"] == "chosen" and answer.problems else length
    accepted = ", ".join(f"{name} {rate:.0%}" for name, rate in _acceptance(draws).items())
    print_text(
        f"{draws.attributes['sampler']}: {draws.n_chains} chains of {draws.n_draws:,} draws ({length}) after "
        f"{draws.attributes['warm_up'] + draws.attributes['forgotten']:,} sweeps"
        + (f"; accepted: {accepted}" if accepted else "")
    )


def _point_or_interval(each: "Summary") -> str:
    """Some comparators know no more than one number."""
    return short(each.mean) if each.lower == each.upper else interval(each)
