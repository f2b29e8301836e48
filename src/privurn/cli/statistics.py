"""`privurn statistics`: from a file to noisy statistics with a certificate, in one JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_text, stages
from privurn.cli.making import (
    Contributions,
    DataFile,
    EngineName,
    LedgerPath,
    Master,
    NoLedger,
    Remote,
    TestSeed,
    data_for,
    guarantee_words,
    payment,
    print_opening,
    seeded,
    warn,
)
from privurn.cli.parsing import parse_domain, parse_neighbouring
from privurn.cli.release import BinEdges, CategoryLists, Grids, IgnoreCase, Json
from privurn.errors import DomainError, FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from privurn.certificates.statistics import ReleasedStatistics
    from privurn.mechanisms.sums.calibrating import Budget
    from privurn.mechanisms.sums.statistic import StatisticMechanism

EXAMPLES = """Examples:

privurn statistics people.csv --model regression --y pay --x age --x years --bounds pay=0:200000 --bounds age=0:120
--bounds years=0:60 --epsilon 1 --epsilon-n 0.1 --neighbouring add-remove -o stats.json

privurn statistics people.csv --model logistic --y ill --x age --bounds age=0:120 --epsilon 1 -o stats.json

privurn statistics people.csv --model table --categories smoker=yes,no --categories ill=yes,no --epsilon 1 -o stats.json

privurn statistics days.csv --model dirichlet --part sleep --part work --part rest --floor 0.001 --epsilon 1 -o stats.json

privurn statistics people.csv --model normal --y height --bounds 0:250 --epsilon 1 -o stats.json"""

MODELS = ("regression", "dirichlet", "table", "bernoulli", "poisson", "normal", "logistic")


def statistics(
    file: DataFile,
    model: Annotated[str, typer.Option(help="regression, logistic, dirichlet, table, bernoulli, poisson or normal.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss of the sums.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="New JSON file for statistics and certificate.")
    ],
    epsilon_n: Annotated[
        float | None,
        typer.Option("--epsilon-n", help="With add-remove: privacy loss of n. Left out: nothing about it is published."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="For discrete-gaussian noise; 0 for the others.")] = 0.0,
    y: Annotated[
        str | None, typer.Option("--y", help="Response (logistic: 0 or 1), or the column of bernoulli, poisson and normal.")
    ] = None,
    x: Annotated[list[str] | None, typer.Option("--x", help="Covariate; may be given several times.")] = None,
    part: Annotated[list[str] | None, typer.Option("--part", help="Part of a composition; two or more times.")] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="COLUMN=LOW:HIGH", help="Public bounds of a column; LOW:HIGH alone for all columns."),
    ] = None,
    floor: Annotated[float | None, typer.Option(help="Dirichlet: public smallest share, for example 0.001.")] = None,
    categories: CategoryLists = None,
    grid: Grids = None,
    bins: BinEdges = None,
    squares: Annotated[
        str | None,
        typer.Option(
            help="Regression, logistic, normal: plain, or complement (less noise; needs epsilon-n of epsilon/10 or more).",
            show_default="plain",
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="laplace, discrete-laplace (whole numbers; tables' default) or discrete-gaussian (with --delta)."),
    ] = None,
    neighbouring: Annotated[
        str, typer.Option("--neighbouring", help="replace-one (n is public and published) or add-remove (n is secret).")
    ] = "replace-one",
    missing: Annotated[
        str | None,
        typer.Option(
            help="Missing numbers: error (declared absent) or unreadable (the middle of the bounds, or 0).",
            show_default="error",
        ),
    ] = None,
    nulls: Annotated[
        str | None,
        typer.Option(help="Tables: missing values are an error (declared absent) or a cell.", show_default="error"),
    ] = None,
    outside: Annotated[
        str | None,
        typer.Option(
            help="Tables: values outside the domain: clamp (numbers' default), error (categories' default: declared absent), "
            "other or null.",
        ),
    ] = None,
    ignore_case: IgnoreCase = False,
    contributions: Contributions = 1,
    ledger: LedgerPath = None,
    no_ledger: NoLedger = False,
    engine: EngineName = "duckdb",
    master: Master = None,
    remote: Remote = None,
    seed: TestSeed = None,
    json: Json = False,
) -> None:
    """Publish noisy sums that a model can be inferred from, with a certificate."""
    from privurn.mechanisms.sums.calibrating import Budget
    from privurn.output_files import check_new_file
    from privurn.releases.statistics import release_statistics

    check_new_file(output)
    data = data_for(file, engine, master, remote)
    if model not in MODELS:
        raise FormatError(f"the model {model!r} is not known.", hint=", ".join(MODELS))
    whole = model in ("table", "bernoulli", "poisson")
    budget = Budget(
        epsilon=epsilon,
        delta=delta,
        epsilon_n=epsilon_n,
        neighbouring=parse_neighbouring(neighbouring),
        contributions=contributions,
        noise=noise or ("discrete-laplace" if whole else "laplace"),  # type: ignore[arg-type]
    )
    named = {
        "y": y,
        "x": x,
        "part": part,
        "bounds": bounds,
        "floor": floor,
        "categories": categories,
        "grid": grid,
        "bins": bins,
        "squares": squares,
        "missing": missing,
        "nulls": nulls,
        "outside": outside,
        "ignore_case": ignore_case,
    }
    _check_options(model, {name for name, value in named.items() if value})
    mechanism = _mechanism(
        model,
        budget,
        y=y,
        x=x or [],
        parts=part or [],
        bounds=bounds or [],
        floor=floor,
        table={"categories": categories, "grids": grid, "bins": bins, "outside": outside, "ignore_case": ignore_case},
        squares=squares or "plain",
        missing=missing or "error",
        nulls=nulls or "error",
    )
    account = payment(ledger, no_ledger)
    with stages(quiet=json) as progress:
        progress("Adding up")
        made = release_statistics(data, mechanism=mechanism, budget=budget, ledger=account, entropy=seeded(seed)).save(output)
    _report(made, output, json=json)


NEEDED = {
    "regression": {"y", "bounds"},
    "dirichlet": {"part", "floor"},
    "table": set(),
    "bernoulli": {"y"},
    "poisson": {"y", "bounds"},
    "normal": {"y", "bounds"},
    "logistic": {"y", "x", "bounds"},
}
ALLOWED = {
    "regression": {"y", "x", "bounds", "squares", "missing"},
    "dirichlet": {"part", "floor", "missing"},
    "table": {"categories", "grid", "bins", "nulls", "outside", "ignore_case"},
    "bernoulli": {"y", "missing"},
    "poisson": {"y", "bounds", "missing"},
    "normal": {"y", "bounds", "squares", "missing"},
    "logistic": {"y", "x", "bounds", "squares", "missing"},
}
WHAT_TO_TYPE = {
    "y": "--y COLUMN",
    "x": "--x COLUMN, once for each of the covariates",
    "bounds": "--bounds COLUMN=LOW:HIGH, public numbers chosen without looking at the data",
    "part": "--part sleep --part work --part rest",
    "floor": "--floor 0.001, a public number chosen without looking at the data",
}


def _check_options(model: str, given: set[str]) -> None:
    """Each model has options of its own."""
    absent = sorted(NEEDED[model] - given)
    if absent:
        raise FormatError(f"the model {model} needs --{absent[0]}.", hint=WHAT_TO_TYPE[absent[0]])
    extra = sorted(given - ALLOWED[model])
    if extra:
        users = [other for other in MODELS if extra[0] in ALLOWED[other]]
        raise FormatError(
            f"the model {model} has no --{_flag(extra[0])}: that is for {', '.join(users)}.",
            hint=f"It has --{', --'.join(map(_flag, sorted(ALLOWED[model])))}",
        )


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _mechanism(
    model: str,
    budget: Budget,
    *,
    y: str | None,
    x: list[str],
    parts: list[str],
    bounds: list[str],
    floor: float | None,
    table: dict[str, Any],
    squares: str,
    missing: str,
    nulls: str,
) -> StatisticMechanism:
    from privurn.mechanisms import registry

    kind: Any = {each.model: each for each in registry.statistics().values()}[model]
    make: Callable[..., StatisticMechanism] = kind.calibrated
    policy: dict[str, Any] = {"budget": budget, "missing": missing}
    if model == "dirichlet":
        return make(parts=parts, floor=floor or 0.0, **policy)
    if model == "table":
        domain = parse_domain(**table, nulls=nulls)
        if not isinstance(domain, dict):
            raise FormatError("a table needs a name before each domain.", hint="For example --categories sex=f,m")
        return make(domain=domain, budget=budget)
    column = y or ""
    if model == "bernoulli":
        return make(column=column, **policy)
    if model == "poisson":
        return make(column=column, upper=_largest_count(bounds, column), **policy)
    named = parse_bounds(bounds)
    if model == "normal":
        return make(response=column, bounds=named, squares=squares, **policy)
    return make(
        response=column,
        covariates=tuple(x),
        bounds=named,
        squares=squares,
        **policy,
    )


def parse_bounds(texts: list[str]) -> dict[str, tuple[str, str]] | tuple[str, str]:
    """COLUMN=LOW:HIGH for each column, or one LOW:HIGH for all."""
    found: dict[str, tuple[str, str]] = {}
    for text in texts:
        name, separator, rest = text.rpartition("=")
        low, colon, high = rest.partition(":")
        if not colon or not low or not high or (separator and (not name or name in found)):
            raise FormatError(f"the bounds {text!r} are not understood.", hint="Give COLUMN=LOW:HIGH, for example age=0:120")
        if not separator:
            if len(texts) > 1:
                raise FormatError("several bounds need a column before each.", hint="--bounds age=0:120 --bounds pay=0:200000")
            return low, high
        found[name] = (low, high)
    return found


def _largest_count(bounds: list[str], column: str) -> int:
    from privurn.cli.parsing import whole_number

    named = parse_bounds(bounds)
    if isinstance(named, dict):
        if set(named) != {column}:
            raise DomainError(f"there are no public bounds for {column!r}.", hint=f"--bounds {column}=0:20")
        named = named[column]
    if whole_number(named[0]) != 0:
        raise DomainError("counts start at 0.", hint=f"--bounds {column}=0:20")
    return whole_number(named[1])


def _report(made: ReleasedStatistics, output: Path, *, json: bool) -> None:
    from privurn.privacy.profile import LARGEST_EPSILON

    certificate, public = made.certificate, made.statistics
    if json:
        print_json({"path": str(output), "remarks": list(made.remarks), **made.to_json()})
        return
    target, achieved = certificate["target"], certificate["achieved"]
    print_opening(certificate, f"Released {len(public.values):,} noisy sums for the model {public.model}.")
    print_text(f"{guarantee_words(certificate)}, neighbours: {public.neighbouring};")
    print_text(
        f"           recomputed from the parameters: epsilon = {achieved['epsilon']:.6g} at delta = {target['delta']:g}."
    )
    if public.neighbouring == "add-remove" and 2.0 * target["epsilon"] <= LARGEST_EPSILON and target["delta"] == 0.0:
        print_text(f"           For one record replaced by another it is {2.0 * target['epsilon']:g}: one removed, one added.")
    print_text(f"Noise:     {public.noise.kind} of scale {public.noise.scale:g} on each sum.")
    if public.n is not None:
        print_text(f"Records:   n = {public.n:,}, public.")
    elif public.noisy_n is not None and public.size_noise is not None:
        print_text(f"Records:   noisy n = {public.noisy_n:,.6g}, noise of scale {public.size_noise.scale:g}; n is secret.")
    else:
        told = "but for what the counts add up to" if public.model == "table" else "and nothing about it was published"
        print_text(f"Records:   n is secret, {told}.")
    for remark in [*remarks(made), *made.remarks]:
        note(f"note: {remark}")
    warn(certificate)
    print_text(f"Statistics and certificate: {output}   (check them: privurn verify {output})")


def remarks(made: ReleasedStatistics) -> list[str]:
    """What the published numbers say about their own use. Nothing confidential is looked at."""
    public, mechanism = made.statistics, made.statistics.mechanism
    n = public.noisy_n if public.n is None else float(public.n)
    found = []
    if n is not None and n < len(mechanism.columns) + 1:
        found.append("the published number of records is smaller than the model needs; inference will lean on its prior.")
    if n is not None and n >= 1.0 and (flat := mechanism.hidden_by_noise(public.values, n)):
        listed = ", ".join(repr(name) for name in flat)
        found.append(f"the noise may hide all variation of {listed}; narrower bounds or more budget would help.")
    return found
