"""`privurn compare`: which mechanism comes closest to a column at a given guarantee. Confidential."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli import compare_tables
from privurn.cli.compare_mechanisms import mechanisms_by_name
from privurn.cli.console import note, print_json, print_table, print_text, print_words
from privurn.cli.domain_options import DomainOptions
from privurn.cli.options import DataFile, Delta, EngineName, Epsilon, Json, Master, Remote, grouped, read_by
from privurn.cli.parsing import parse_model, whole_number
from privurn.errors import FormatError
from privurn.extras import need

if TYPE_CHECKING:
    from privurn.reports.comparison.results import Comparison, Result

EXAMPLES = """Examples:

privurn compare pay.csv --column pay --grid 0:200000:1000 --epsilon 1 --delta 1e-6

privurn compare pay.csv --column pay --grid 0:200000:1000 --epsilon 1 --delta 1e-6 --runs 400 --plot pay --json

privurn compare shares.csv --column share --grid 0:1:0.01 --epsilon 4 --model beta --asymptotic

privurn compare visits.parquet --column region --categories north,south,east,west --epsilon 0.5

privurn compare people.csv --grid age=0:99:1 --categories sex=f,m --epsilon 2 --delta 1e-8

privurn compare survey.parquet --domain columns.yaml --epsilon 1 --delta 1e-6"""

WARNING = (
    "confidential: these figures were computed from the data at hand. Do not publish them. Choosing a mechanism by them is a "
    "look at the data that no guarantee covers: choose on an older or a made-up table where you can."
)


@grouped
def compare(
    file: DataFile,
    epsilon: Epsilon,
    *,
    delta: Delta = 0.0,
    domain: DomainOptions,
    mechanism: Annotated[
        list[str] | None, typer.Option("--mechanism", metavar="NAME", help="Compare only these; may be given several times.")
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", help="How many records each releases. Default: what each chooses by itself.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Adds the pseudo-posterior: beta, bernoulli, or a YAML/JSON file with kind and bounds.")
    ] = None,
    asymptotic: Annotated[
        bool,
        typer.Option("--asymptotic", help="With --model: show pseudo-posteriors that are not differentially private as well."),
    ] = False,
    runs: Annotated[
        str | None,
        typer.Option("--runs", help="Simulated releases of each mechanism.", show_default="100; of whole tables 5"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the simulation; the same seed gives the same numbers.")] = 0,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Default: as many as there are cores, where the work is long.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="PREFIX", help="Draw PREFIX-confidential-errors.png and -density.png."),
    ] = None,
    engine: EngineName = "duckdb",
    master: Master = None,
    remote: Remote = None,
    json: Json = False,
) -> None:
    """Simulate every mechanism that meets the guarantee, many times, and measure it against the data. Confidential.

    Nothing is released and no budget is spent; the table, the words and the pictures are for the custodian only. Whole tables
    (too many columns to be taken jointly, or --mechanism noisy-marginals) are compared by all marginals of up to three columns
    and by what regressions make of them, between columns that are shuffled and a resample of the data.
    """
    from privurn.reports.comparison.comparison import TABLE_RUNS, Runs, whole_table
    from privurn.reports.comparison.comparison import compare as make_comparison
    from privurn.reports.comparison.table_comparison import TableComparison

    declared = domain.declared()
    data = read_by(engine, master, remote, file)
    if plot is not None:
        need("plots", what="pictures")
    number = None if runs is None else whole_number(runs)
    asked = mechanisms_by_name(mechanism, model=None if model is None else parse_model(model), asymptotic=asymptotic)
    table = whole_table(declared, asked)
    if table is not None:
        if data is not file:
            raise FormatError("whole tables are compared on this computer.", hint="Leave --engine out, or compare a sample")
        for name, typed in {"plot": plot, "model": model, "records": records}.items():
            if typed is not None:
                raise FormatError(f"the option --{name} is not for whole tables.", hint="Leave it out")
    if plot is not None and not Path(plot).absolute().parent.is_dir():
        raise FormatError(f"there is no folder for the pictures {plot!r}.", hint="Make it first, or give another --plot PREFIX")
    usual = TABLE_RUNS if table is not None else Runs.number
    with _progress(quiet=json) as progress:
        found = make_comparison(
            data,
            domain=domain.named(declared) if table is None else table,
            epsilon=epsilon,
            delta=delta,
            mechanisms=asked,
            records=None if records is None else whole_number(records),
            runs=Runs(usual if number is None else number, seed=seed, processes=processes),
            progress=progress,
        )
    if isinstance(found, TableComparison):
        note(WARNING)
        print_json(found.to_confidential()) if json else compare_tables.report(found)
        return
    pictures = [] if plot is None else _draw(found, plot)
    note(WARNING)
    if json:
        print_json({**found.to_confidential(), **({"pictures": pictures} if pictures else {})})
        return
    _report(found)
    for path in pictures:
        print_text(f"Picture (confidential): {path}")


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar that fills with the simulated releases; silent for machines."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Simulated releases", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _draw(found: "Comparison", prefix: str) -> list[str]:
    """The errors, and the curves of each column."""
    from privurn.drawing import save
    from privurn.reports.comparison.pictures import density_overlays, error_boxes

    paths = [str(save(error_boxes(found), f"{prefix}-confidential-errors.png"))]
    for axis in found.axes:
        own = f"-{axis.column}" if len(found.axes) > 1 else ""
        paths.append(str(save(density_overlays(found, column=axis.column), f"{prefix}-confidential-density{own}.png")))
    return paths


def _report(found: "Comparison") -> None:
    from privurn.reports.comparison.candidates import NO_CERTIFICATE

    guarantee = found.guarantee
    title = (
        f"CONFIDENTIAL: {found.n:,} records, {found.cells:,} cells, epsilon = {guarantee.epsilon:g}, "
        f"delta = {guarantee.delta:g}; errors: median of {found.runs:,} runs ± half the interquartile range"
    )
    rows = [_row(each) for each in found.results]
    rows += [_row(each, name=f"{each.name}\n({NO_CERTIFICATE})") for each in found.uncertified]
    rows.append(_row(found.plain, name=f"{found.plain.name}\n(not private)"))
    print_table(title, ("mechanism", "releases", *(metric.title for metric in found.metrics)), rows)
    for sentence in found.words:
        print_words(sentence)


def _row(result: "Result", *, name: str | None = None) -> tuple[str, ...]:
    figures = [f"{_short(a)}\n{_short(b, sign='±')}" for a, b in zip(result.medians, result.spreads, strict=True)]
    return (name or result.name, result.output, *figures)


def _short(value: float, *, sign: str = "") -> str:
    """Three digits, without an exponent where it can be helped."""
    if math.isnan(value):
        return "-"
    return f"{sign}{value:,.0f}" if abs(value) >= 100.0 else f"{sign}{value:.3g}"
