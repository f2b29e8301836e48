"""What the commands of `privurn infer` on noisy statistics share: reading what was typed, and showing what was found."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.cli.console import note, print_json, print_table, print_text
from privurn.cli.parsing import whole_number
from privurn.errors import CertificateError, FormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.draws import Draws, Summary
    from privurn.noisy_statistics.mcem import Maximum
    from privurn.noisy_statistics.regression_model import RegressionPrior
    from privurn.noisy_statistics.size import SizePrior
    from privurn.noisy_statistics.statistic import NoisyStatistics

COMMANDS = {
    "regression": "regression",
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
    draws: str,
    chains: int,
    warm_up: str,
    seed: int | None,
    moves: str,
    level: float,
    plot: list[str] | None,
    output: Path | None,
    synthetic: Path | None,
    json: bool,
) -> Asked:
    """All that can be checked without the statistics."""
    from privurn.draws import check_netcdf_name
    from privurn.figures import check_suffix
    from privurn.noisy_statistics.file import check_new_file

    if not 0.0 < level < 1.0:
        raise FormatError("the level of an interval must be between 0 and 1.", hint="For example --level 0.95")
    if moves not in ("interwoven", "centred"):
        raise FormatError(f"the moves {moves!r} are not known.", hint="--moves interwoven or --moves centred")
    length = None if draws == "auto" else whole_number(draws)
    warm = whole_number(warm_up)
    if (length is not None and length < 10) or warm < 0:
        raise FormatError("chains need at least 10 draws, and no negative warm-up.", hint="--draws auto")
    pictures = {}
    for each in plot or []:
        kind, equals, target = each.partition("=")
        kind, target = (kind, target) if equals else ("traces", each)
        if kind not in PICTURES:
            raise FormatError(f"the picture {kind!r} is not known.", hint=f"{', '.join(PICTURES)}; for example --plot n=n.png")
        check_suffix(target)
        if not Path(target).absolute().parent.is_dir():
            raise FormatError(f"there is no folder for the picture {target!r}.", hint="Make it first")
        pictures[kind] = target
    if output is not None:
        check_netcdf_name(output)
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
    from privurn.noisy_statistics.file import read_statistics, verify_statistics

    released = read_statistics(file)
    if released.certificate["private"] is True:
        verdict = verify_statistics(file)
        if not verdict.valid:
            raise CertificateError(
                f"the statistics {str(file)!r} cannot be used: {verdict.reasons[0]}.", hint="Ask for the file again"
            )
    else:
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
    from privurn.noisy_statistics.regression_model import RegressionPrior
    from privurn.noisy_statistics.report import prior_from_bounds

    words = list(given or [])
    prior = prior_from_bounds(statistics)
    if "unit" in words:
        words.remove("unit")
        prior = RegressionPrior()
    known = [each.name for each in fields(RegressionPrior)]
    for each in words:
        name, _, text = each.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise FormatError(f"the prior has no number {name!r}.", hint=f"unit, or one of: {', '.join(known)}")
        prior = replace(prior, **{name: _number(each, text)})
    return prior


def prior_of_size(text: str | None, statistics: "NoisyStatistics") -> "SizePrior | None":
    """A prior of n, where one was typed and n is secret."""
    from privurn.noisy_statistics.size import SizePrior

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
    written = _write(answer, asked, figures)
    if asked.json:
        print_json(_as_json(answer, summaries, written))
        return
    _print(answer, summaries, asked)
    for what, path in written.items():
        print_text(f"{what.capitalize()}: {path}")


def _picture(kind: str, answer: Answer, summaries: "Sequence[Summary]") -> "Figure":
    from privurn.figures.chains import interval_picture, trace_picture, whole_number_picture

    if kind == "traces":
        return trace_picture(answer.draws, answer.names)
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


def _write(answer: Answer, asked: Asked, figures: "Iterable[tuple[Figure, str]]") -> dict[str, str]:
    from privurn.figures import save

    written = {}
    if asked.output is not None:
        written["draws"] = str(answer.draws.save(asked.output))
    if asked.synthetic is not None:
        answer.write_synthetic(asked.synthetic)
        written["synthetic"] = str(asked.synthetic)
    pictures = [str(save(figure, target)) for figure, target in figures]
    return written | ({"pictures": ", ".join(pictures)} if pictures else {})


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
    from rich.markup import escape  # beta[age] is no style

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
        row = [escape(each.name), _short(each.mean), _short(each.deviation), _interval(each)]
        row += [_interval(named[each.name]) if each.name in named else "-" for named in beside]
        if highest is not None:
            row.append("{} (+- {})".format(*map(_short, highest[each.name])) if each.name in highest else "-")
        row += [f"{each.effective_draws:,.0f}", "-" if each.r_hat is None else f"{each.r_hat:.3f}"]
        rows.append(row)
    print_table(f"Posterior from noisy statistics: {statistics.model}, {statistics.neighbouring}, {size}", columns, rows)
    if len(summaries) > MOST_ROWS:
        print_text(f"and {len(summaries) - MOST_ROWS:,} more (--json, -o FILE.nc)")
    length = "until they had mixed" if draws.attributes["length"] == "chosen" and not answer.problems else "as asked"
    length = "the longest tried" if draws.attributes["length"] == "chosen" and answer.problems else length
    accepted = ", ".join(f"{name} {rate:.0%}" for name, rate in _acceptance(draws).items())
    print_text(
        f"{draws.attributes['sampler']}: {draws.n_chains} chains of {draws.n_draws:,} draws ({length}) after "
        f"{draws.attributes['warm_up']:,} sweeps" + (f"; accepted: {accepted}" if accepted else "")
    )


def _interval(each: "Summary") -> str:
    return _short(each.mean) if each.lower == each.upper else f"{_short(each.lower)} to {_short(each.upper)}"


def _short(value: float) -> str:
    """Five digits, without an exponent where it can be helped."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000.0 else f"{value:.5g}"
