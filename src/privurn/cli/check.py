"""`privurn check`: how a table fits its domain, before a release. Confidential and free."""

from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli.console import note, print_json, print_table, print_text, stages
from privurn.cli.making import DataFile
from privurn.cli.parsing import named_column, parse_domain
from privurn.cli.plan import print_options
from privurn.cli.release import (
    BinEdges,
    CategoryLists,
    Columns,
    DateSteps,
    Delta,
    DomainFile,
    Grids,
    IgnoreCase,
    Json,
    Nulls,
    OpenLabelsFlag,
    Outside,
)

if TYPE_CHECKING:
    from privurn.releases.check import Check

EXAMPLES = """Examples:

privurn check pay.csv --column pay --grid 0:200000:500

privurn check people.csv --grid age=0:99:1 --categories sex=f,m --epsilon 2 --delta 1e-8

privurn check survey.parquet --domain columns.yaml --json"""

WARNING = (
    "confidential: these figures were computed from the data at hand. Do not publish them. A domain that is changed because "
    "of them is a look at the data that no guarantee covers: use them to find mistakes."
)


def check(
    file: DataFile,
    epsilon: Annotated[float, typer.Option("--epsilon", help="To plan for: privacy loss of one replaced record.")] = 1.0,
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
    contributions: Annotated[int, typer.Option(help="Most records that one person may own.")] = 1,
    json: Json = False,
) -> None:
    """Show how a table fits a domain: what is missing, unlisted or clamped, and what could be released. Confidential.

    Nothing is released and no budget is spent; what is printed is for the custodian only.
    """
    from privurn.releases.check import check as make_check

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
        ignore_case=ignore_case,
    )
    with stages(quiet=json) as progress:
        progress("counting")
        found = make_check(
            file, domain=named_column(declared, column), epsilon=epsilon, delta=delta, contributions=contributions
        )
    note(WARNING)
    if json:
        print_json(found.to_confidential())
        return
    _report(found)


def _report(found: "Check") -> None:
    from privurn.cli.flags import translated

    rows = [
        (
            each.name,
            f"{each.missing:.1%}",
            f"{each.unlisted:.1%}",
            f"{each.below:.1%}",
            f"{each.above:.1%}",
            f"{each.distinct:,}",
            "-" if each.cells is None else f"{each.cells:,}",
        )
        for each in found.columns
    ]
    title = f"CONFIDENTIAL: {found.n:,} records"
    print_table(title, ("column", "missing", "no match", "below", "above", "distinct", "cells"), rows)
    clamped = [each.name for each in found.columns if each.clamped and each.below + each.above > 0.0]
    if clamped:
        print_text(f"Below and above the domain are clamped to its ends in {', '.join(clamped)}.")
    if found.cells is not None:
        print_text(f"Joint cells: {found.cells:,}, of which {found.filled:,} hold a record.")
    for reason in found.refused:
        print_text(f"A release would be refused for {reason}.")
    for remark in found.remarks:
        print_text(f"Note: {remark}")
    if found.options:
        print_options(found.options, n=found.n, cells=found.cells, guarantee=found.guarantee)
    else:
        print_text(translated("Too many cells to be released jointly. For whole tables: mechanism=Marginals()", set()))
