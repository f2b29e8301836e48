"""`privurn plan`: what can be released, before any data are touched."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import print_json, print_table, print_text, print_words
from privurn.cli.domain_options import DomainOptions
from privurn.cli.options import Contributions, Delta, Epsilon, Json, NeighbouringOption, grouped
from privurn.cli.parsing import parse_neighbouring, whole_number
from privurn.cli.profile import Plot
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.mechanisms.forecast import Expected
    from privurn.mechanisms.recipe import Option
    from privurn.privacy.profile import Guarantee

EXAMPLES = """Examples:

privurn plan --n 50000 --grid 0:200000:500 --epsilon 1 --delta 1e-6

privurn plan --n 1e7 --cells 100 --epsilon 0.5 --delta 1e-8 --json

privurn plan --n 50000 --cells 401 --epsilon 1 --delta 1e-6 --plot plan.png

privurn plan --n 20000 --open-labels --epsilon 1 --delta 1e-6

privurn plan --neighbouring add-remove --records 50000 --grid 0:200000:500 --epsilon 1 --delta 1e-6

privurn plan --n 50000 --domain columns.yaml --epsilon 1 --delta 1e-6"""


@grouped
def plan(
    epsilon: Epsilon,
    *,
    n: Annotated[
        str | None, typer.Option("--n", help="Number of confidential records (public); left out where it is secret.")
    ] = None,
    neighbouring: NeighbouringOption = "replace-one",
    records: Annotated[
        str | None,
        typer.Option("--records", help="With add-remove: how many records to release, a public guess of the secret n."),
    ] = None,
    delta: Delta = 0.0,
    domain: DomainOptions,
    cells: Annotated[str | None, typer.Option(help="Number of cells of the public domain, in place of a domain.")] = None,
    contributions: Contributions = 1,
    strength: Annotated[float, typer.Option(help="Strength of the open-domain urns in the table.")] = 1.0,
    discount: Annotated[float, typer.Option(help="Discount of the Pitman-Yor urn in the table.")] = 0.5,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Show what can be released for n, a domain, epsilon and delta, and what errors to expect. Uses public quantities only.

    With --neighbouring add-remove n is secret: --records takes its place, and every row is what a release of so many would be.
    """
    from privurn.domain import ColumnDomain, Domain, JointDomain, TableDomain, several_columns
    from privurn.privacy.profile import Guarantee
    from privurn.releases.plan import options
    from privurn.releases.plan import remarks as planned_remarks

    size: int | None
    joint: Any = None
    if cells is not None and domain.given:
        raise FormatError("the number of cells is given twice.", hint="--cells, or a domain, not both")
    if cells is not None:
        size = whole_number(cells)
    else:
        declared = domain.declared()
        joint = JointDomain({"": declared}) if isinstance(declared, ColumnDomain) else declared
        joint = several_columns(joint) if isinstance(joint, dict) else joint
        size = joint.size if isinstance(joint, (Domain, TableDomain)) else None
    if size is not None and size < 1:
        raise FormatError("a domain has at least one cell.", hint="For example --cells 100")
    relation = parse_neighbouring(neighbouring)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, contributions=contributions, neighbouring=relation)
    n_records, asked = (None if each is None else whole_number(each) for each in (n, records))
    public = joint if isinstance(joint, (JointDomain, TableDomain)) else None
    beside = isinstance(joint, TableDomain)
    planned: dict[str, Any] = {"n": n_records, "records": asked, "cells": size, "guarantee": guarantee, "domain": public}
    found = options(**planned, strength=strength, discount=discount)
    remarks = planned_remarks(**planned, found=found)
    about = n_records or asked or 0
    if plot is not None:
        from privurn.drawing import save
        from privurn.releases.pictures import plan_picture

        if size is None or beside:
            what = "columns side by side" if beside else "open labels"
            raise FormatError(f"a plan of {what} has no picture.", hint="Give --cells or a smaller public domain with --plot")
        save(plan_picture(n=about, cells=size, guarantee=guarantee), plot)
    if json:
        data: dict[str, Any] = {"n": n_records, **({} if asked is None else {"records": asked}), "cells": size}
        data |= {"epsilon": epsilon, "delta": delta, "contributions": contributions}
        print_json(
            {
                **data,
                "neighbouring": guarantee.neighbouring,
                "options": [each.to_json() for each in found],
                "remarks": list(remarks),
                **({} if plot is None else {"plot": str(plot)}),
            }
        )
        return
    print_options(found, n=about, cells=size, guarantee=guarantee, beside=beside)
    for remark in remarks:
        print_words(remark)
    if plot is not None:
        print_text(f"Picture: {plot}")


def print_options(
    found: "Sequence[Option]", *, n: int, cells: int | None, guarantee: "Guarantee", beside: bool = False
) -> None:
    """The table of a plan; `n` is a guess where it is secret, `beside` where cells are of columns side by side."""
    ordered = any(option.expected is not None and option.expected.wasserstein is not None for option in found)
    rows = [
        (
            option.mechanism,
            option.records if isinstance(option.records, str) else f"{option.records:,}",
            "-" if option.alpha is None else f"{option.alpha:.5g}",
            "-" if option.prior_weight is None else f"{option.prior_weight:.1%}",
            "-" if option.effective_sample_size is None else f"{option.effective_sample_size:,.0f}",
            *_errors(option.expected, ordered=ordered),
            option.remark,
        )
        for option in found
    ]
    domain = "open labels" if cells is None else f"{cells:,} cells{' side by side' if beside else ''}"
    secret = guarantee.neighbouring == "add-remove"
    size = f"about {n:,} records (n is secret: add-remove)" if secret else f"n = {n:,}"
    title = f"{size}, {domain}, epsilon = {guarantee.epsilon:g}, delta = {guarantee.delta:g}"
    distance = "W1" if ordered else "total variation"
    errors = (distance, "mean", "1% share")
    print_table(title, ("mechanism", "records", "alpha", "shrinkage", "effective sample", *errors, "remark"), rows)
    if any(option.expected is not None for option in found):
        of = "W1 in % of the range, of a mean in % of it" if ordered else "total variation in % of the records"
        guess = f" Were n far from {n:,}, they would be others." if secret else ""
        print_words(f"Expected errors of the published records, under a prior: {of}, of a share of 1% in % of it.{guess}")


def _errors(expected: "Expected | None", *, ordered: bool) -> tuple[str, str, str]:
    """Expected errors in per cent."""
    if expected is None:
        return "-", "-", "-"
    figures = (expected.wasserstein if ordered else expected.total_variation, expected.mean_error, expected.share_error)
    first, second, third = ("-" if each is None else f"{float(f'{100.0 * each:.2g}'):g}%" for each in figures)
    return first, second, third
