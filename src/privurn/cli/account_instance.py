"""`privurn account instance`: what a release costs for the data at hand. Confidential."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_text
from privurn.cli.options import Json
from privurn.cli.parsing import records_number, whole_number
from privurn.errors import DomainError, FormatError

if TYPE_CHECKING:
    from privurn.privacy.confidential import ConfidentialNumber
    from privurn.privacy.instance.cost import InstanceReport

EXAMPLES = """Examples:

privurn account instance --counts counts.csv --records 100 --strength 1 --epsilon 1 --json

privurn account instance --counts counts.csv --records 100 --strength 1 --discount 0.5 --epsilon 1

privurn account instance --counts counts.csv --records 1000 --alpha 20 --cells 200 --epsilon 1

privurn account instance --counts counts.csv --records unlimited --alpha 20 --delta 1e-6"""

COLUMNS = ("value", "count")
LARGEST_COUNT = 2**53
WARNING = (
    "confidential: these figures were computed from the data at hand. Do not publish them, and do not choose parameters by "
    "them: either voids the guarantee."
)


def instance(
    counts: Annotated[Path, typer.Option("--counts", metavar="FILE", help="CSV file with the columns value and count.")],
    records: Annotated[str, typer.Option("--records", help="Number of released records; unlimited with --alpha.")],
    strength: Annotated[float | None, typer.Option("--strength", help="Strength of an open-domain urn.")] = None,
    discount: Annotated[float | None, typer.Option("--discount", help="Discount of the Pitman-Yor urn, in [0, 1).")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Prior records in each cell of a public domain.")] = None,
    cells: Annotated[
        str | None, typer.Option("--cells", help="Cells of the public domain. Default: the rows of the file.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Give it to get delta.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Give it to get the two-sided epsilon.")] = None,
    json: Json = False,
) -> None:
    """Instance-level figures of an urn for a table of counts: exact, both directions. Confidential.

    delta is tight and two-sided; delta_forward is the papers' one-sided figure, for comparison. With --alpha the urn has a
    public domain, in which rows with count 0 are empty cells.
    """
    if (epsilon is None) == (delta is None):
        raise FormatError("give --epsilon to get delta, or --delta to get epsilon.")
    if alpha is None:
        model, given, table = _open_domain(counts, records, strength, discount, cells)
    else:
        model, given, table = _public_domain(counts, records, strength, discount, cells, alpha)
    found: dict[str, Any]
    if epsilon is not None:
        report = _report(table, given, epsilon)
        found = {key: value for key, value in report.to_confidential().items() if key != "confidential"}
    else:
        from privurn.privacy.certificate import finite_or_none

        found = {"epsilon": finite_or_none(float(_solved(table, given, float(delta or 0.0)))), "delta": delta}
    data = {"confidential": True, "model": model, "neighbouring": "replace-one", "n": sum(table), **given, **found}
    note(WARNING)
    if json:
        print_json(data)
        return
    for key, value in data.items():
        if value is not None or key == "epsilon":
            print_text(f"{key:20} {'infinite' if value is None else value}")


def read_counts(path: Path, *, empty: bool) -> list[int]:
    """Counts from a CSV file with the columns value and count; `empty` allows counts of 0. Messages quote no field."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows = [row for row in reader if row]
    except OSError:
        raise FormatError(f"the file {str(path)!r} cannot be read.", hint="--counts FILE, a CSV file") from None
    except (UnicodeDecodeError, csv.Error):
        raise FormatError("the file of counts is not valid UTF-8 CSV.", hint="First line: value,count") from None
    if sorted(name for name in header if name in COLUMNS) != sorted(COLUMNS):
        raise FormatError("the file of counts needs one column 'value' and one 'count'.", hint="First line: value,count")
    if not rows:
        raise DomainError("the table of counts is empty.", hint="One row for each distinct value")
    if any(len(row) != len(header) for row in rows):
        raise FormatError("a row of the file of counts has more or fewer fields than the first line.")
    where = header.index("value")
    if len({row[where] for row in rows}) < len(rows):
        raise DomainError("a value stands in more than one row of the file of counts.", hint="One row for each distinct value")
    texts = [row[header.index("count")].strip() for row in rows]
    if not all(text.isascii() and text.isdigit() and len(text) <= 16 and int(text) <= LARGEST_COUNT for text in texts):
        raise DomainError("a count is not a whole number, or is negative or too large.", hint="How many records hold the value")
    found = [int(text) for text in texts]
    if sum(found) == 0:
        raise DomainError("the table of counts holds no records.")
    if not empty and 0 in found:
        raise DomainError("a count of 0 needs a public domain.", hint="Add --alpha, or leave that row out")
    return found


def _open_domain(
    counts: Path, records: str, strength: float | None, discount: float | None, cells: str | None
) -> tuple[str, dict[str, Any], list[int]]:
    if strength is None or cells is not None:
        raise FormatError("give --strength for an open-domain urn, or --alpha for a public domain.", hint="--strength 1")
    m = records_number(records)
    if isinstance(m, str):
        raise FormatError("this urn cannot release an unlimited number of records.", hint="Give --records as a whole number")
    given = {"records": m, "strength": strength, "discount": discount or 0.0}
    from privurn.mechanisms.pitman_yor import OpenUrn, PitmanYorUrn

    return (PitmanYorUrn if discount else OpenUrn).alias, given, read_counts(counts, empty=False)


def _public_domain(
    counts: Path, records: str, strength: float | None, discount: float | None, cells: str | None, alpha: float
) -> tuple[str, dict[str, Any], list[int]]:
    if discount is not None:
        raise FormatError("--discount and --alpha belong to different urns.", hint="Give one of them")
    table = read_counts(counts, empty=True)
    size = len(table) if cells is None else whole_number(cells)
    if size < len(table):
        raise DomainError("the file of counts has more rows than the domain has cells.", hint="--cells, or leave it out")
    if strength is not None and abs(strength - size * alpha) > 1e-9 * size * alpha:
        raise FormatError("on a public domain the strength is cells times alpha.", hint="Leave --strength out")
    from privurn.mechanisms.dirichlet_multinomial import Urn

    return Urn.alias, {"records": records_number(records), "cells": size, "alpha": alpha}, table


def _report(table: list[int], given: dict[str, Any], epsilon: float) -> "InstanceReport":
    from privurn.privacy.instance.cost import instance_delta, instance_delta_public_domain

    if "alpha" in given:
        return instance_delta_public_domain(table, epsilon=epsilon, **given)
    return instance_delta(table, epsilon=epsilon, **given)


def _solved(table: list[int], given: dict[str, Any], delta: float) -> "ConfidentialNumber":
    from privurn.privacy.instance.cost import instance_epsilon, instance_epsilon_public_domain

    if "alpha" in given:
        return instance_epsilon_public_domain(table, delta=delta, **given)
    return instance_epsilon(table, delta=delta, **given)
