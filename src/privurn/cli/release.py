"""`privurn release`: from a file to a certified synthetic data set."""

from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli import making
from privurn.cli.console import custodian_notes, print_text, stages
from privurn.cli.mechanism_options import asked_mechanism
from privurn.cli.parsing import named_column, parse_domain, parse_neighbouring

if TYPE_CHECKING:
    from privurn.certificates.release import Release

EXAMPLES = """Examples:

privurn release pay.csv --column pay --grid 0:200000:500 --epsilon 1 --delta 1e-6 -o out

privurn release visits.parquet --column region --categories north,south,east,west --epsilon 0.5 --ledger visits.ledger -o out

privurn release people.csv --grid age=0:99:1 --categories sex=f,m --epsilon 2 --delta 1e-8 -o out

privurn release shops.csv --column town --open-labels --epsilon 1 --delta 1e-6 -o out

privurn release survey.parquet --domain columns.yaml --mechanism noisy-marginals --epsilon 1 --delta 1e-6 -o out

privurn release pay.csv --column pay --grid 0:200000:5000 --mechanism perturbed-histogram --publish counts --epsilon 1 -o out"""

Columns = Annotated[list[str] | None, typer.Option("--column", help="The confidential column.", show_default=False)]
Grids = Annotated[
    list[str] | None,
    typer.Option("--grid", metavar="LO:HI:STEP", help="Numbers on a public grid; COLUMN=LO:HI:STEP for several."),
]
BinEdges = Annotated[list[str] | None, typer.Option("--bins", metavar="EDGES", help="Numbers in bins: edges, comma-separated.")]
DateSteps = Annotated[
    list[str] | None,
    typer.Option(
        "--dates",
        metavar="START,END,STEP",
        help="Dates or times in steps such as day, 2 weeks, month, hour; COLUMN=... for several.",
    ),
]
CategoryLists = Annotated[
    list[str] | None,
    typer.Option("--categories", metavar="LIST", help="Explicit values, comma-separated; COLUMN=LIST for several."),
]
OpenLabelsFlag = Annotated[bool, typer.Option("--open-labels", help="Labels nobody listed: naming them is paid for.")]
DomainFile = Annotated[str | None, typer.Option("--domain", metavar="FILE", help="Domain from a YAML or JSON file.")]
Outside = Annotated[
    str | None,
    typer.Option(
        help="Values outside the domain: clamp (numbers' default), error (categories' default: declared absent), other or null "
        "(a cell of their own, or that of missing values)."
    ),
]
Nulls = Annotated[str, typer.Option(help="Missing values, NaN too: error (declared absent) or cell (a cell of their own).")]
IgnoreCase = Annotated[bool, typer.Option("--ignore-case", help="Categories: capitals A-Z and small letters are the same.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy loss of one replaced record.")]
Delta = Annotated[float, typer.Option("--delta", help="Allowed failure probability; 0 asks for pure epsilon-DP.")]
NeighbouringOption = Annotated[
    str,
    typer.Option(
        "--neighbouring", help="replace-one (n is public) or add-remove (n is secret; public domains, give --records)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


def release(
    context: typer.Context,
    file: making.DataFile,
    epsilon: Epsilon,
    output: making.Folder,
    delta: Delta = 0.0,
    column: Columns = None,
    grid: Grids = None,
    bins: BinEdges = None,
    dates: DateSteps = None,
    categories: CategoryLists = None,
    open_labels: OpenLabelsFlag = False,
    domain: DomainFile = None,
    outside: Outside = None,
    nulls: Nulls = "error",
    ignore_case: IgnoreCase = False,
    mechanism: Annotated[
        str, typer.Option(help="auto, or one of those below, each with options of its own.", show_default=True)
    ] = "auto",
    within: Annotated[
        str, typer.Option(help="Records in bins become the bin's midpoint, uniform in it, or the bin itself: interval.")
    ] = "midpoint",
    contributions: making.Contributions = 1,
    neighbouring: NeighbouringOption = "replace-one",
    ledger: making.LedgerPath = None,
    no_ledger: making.NoLedger = False,
    file_format: making.FileFormat = "csv",
    engine: making.EngineName = "duckdb",
    master: making.Master = None,
    remote: making.Remote = None,
    seed: making.TestSeed = None,
    json: Json = False,
) -> None:
    """Release synthetic records of a column (or a few taken jointly) with a certificate."""
    from privurn.releases.release import release as make_release

    making.check_output(output, file_format)
    data = making.data_for(file, engine, master, remote)
    declared = parse_domain(
        columns=column,
        grids=grid,
        bins=bins,
        dates=dates,
        categories=categories,
        open_labels=open_labels,
        domain_file=domain,
        outside=outside,
        nulls=nulls,
        within=within,
        ignore_case=ignore_case,
    )
    asked = asked_mechanism(context, mechanism, domain=declared)
    with custodian_notes(), stages(quiet=json) as progress:
        made = make_release(
            data,
            asked,
            domain=named_column(declared, column),
            epsilon=epsilon,
            delta=delta,
            contributions=contributions,
            neighbouring=parse_neighbouring(neighbouring),
            ledger=making.payment(ledger, no_ledger),
            entropy=making.seeded(seed),
            progress=progress,
        ).save(output, file_format=file_format)  # type: ignore[arg-type]
    making.show_folder(made, output, json=json, words=lambda: _report(made))


def _report(made: "Release") -> None:
    from privurn.cli.flags import translated
    from privurn.domain import domain_from_json
    from privurn.mechanisms.registry import rebuild

    certificate = made.certificate
    target, achieved = certificate["target"], certificate["achieved"]
    name = certificate["mechanism"]["name"]
    mechanism = rebuild(name, certificate["mechanism"]["parameters"])
    rows = certificate["output"]["rows"]
    opening = f"Released {rows:,} {mechanism.rows_are} with the {name} mechanism"
    if certificate["synthetic"] is not None:
        opening += f", and {certificate['synthetic']['rows']:,} synthetic records made from them"
    making.print_opening(certificate, f"{opening}.")
    print_text(f"{making.guarantee_words(certificate)};")
    print_text(
        f"           recomputed from the parameters: delta = {achieved['delta']:.3g} at epsilon = {target['epsilon']:g}."
    )
    if certificate["domain"]["kind"] in ("joint", "table"):
        print_text(f"Domain:    {domain_from_json(certificate['domain']).describe()}.")
    for remark in made.remarks:
        print_text(f"Note: {translated(remark, {'records'})}")
