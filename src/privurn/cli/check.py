"""`privurn check`: how a table fits its domain, before a release. Confidential and free."""

from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli.console import note, print_json, print_table, print_text, print_words, stages
from privurn.cli.domain_options import DomainOptions
from privurn.cli.options import Contributions, DataFile, Delta, Json, grouped
from privurn.cli.plan import print_options

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


@grouped
def check(
    file: DataFile,
    *,
    epsilon: Annotated[float, typer.Option("--epsilon", help="To plan for: privacy loss of one replaced record.")] = 1.0,
    delta: Delta = 0.0,
    domain: DomainOptions,
    contributions: Contributions = 1,
    json: Json = False,
) -> None:
    """Show how a table fits a domain: what is missing, unlisted or clamped, and what could be released. Confidential.

    Nothing is released and no budget is spent; what is printed is for the custodian only.
    """
    from privurn.releases.check import check as make_check

    declared = domain.named(domain.declared())
    with stages(quiet=json) as progress:
        progress("counting")
        found = make_check(file, domain=declared, epsilon=epsilon, delta=delta, contributions=contributions)
    note(WARNING)
    if json:
        print_json(found.to_confidential())
        return
    _report(found)


def _report(found: "Check") -> None:
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
        print_words(f"Below and above the domain are clamped to its ends in {', '.join(clamped)}.")
    if found.cells is not None:
        print_text(f"Joint cells: {found.cells:,}, of which {found.filled:,} hold a record.")
    for reason in found.refused:
        print_text(f"A release would be refused for {reason}.")
    for remark in found.remarks:
        print_text(f"Note: {remark}")
    beside = found.side_by_side is not None
    cells = found.side_by_side if beside else found.cells
    print_options(found.options, n=found.n, cells=cells, guarantee=found.guarantee, beside=beside)
    for remark in found.plan_remarks:
        print_words(remark)
