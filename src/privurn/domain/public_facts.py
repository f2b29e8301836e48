"""What is publicly known of a table beyond its columns: cells that no record can be in, and marginals from public sources."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from privurn.domain.categories import Categories, label_text, plain_value
from privurn.domain.column import ColumnDomain
from privurn.domain.dates import Dates
from privurn.domain.numeric import Bins, Grid
from privurn.errors import DomainError
from privurn.exact_numbers import exact

Place = tuple[int, int]
"""A column's place among all, and a cell of it."""

ZEROS = "For example zeros=[{'sex': 'm', 'pregnant': 'yes'}]"
KNOWN = "For example known={'sex': [0.51, 0.49]}, a share for each cell; two columns ('sex', 'region') have a list of lists"
SUM = 1e-6
"""By how much known shares may miss 1."""


def stated_zeros(zeros: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """As plain data."""
    for each in zeros:
        if not isinstance(each, Mapping) or not 2 <= len(each) <= 3:
            raise DomainError("a structural zero names one value of each of two or three columns.", hint=ZEROS)
    return tuple({name: plain_value(value) for name, value in each.items()} for each in zeros)


def zero_cells(zeros: Sequence[Mapping[str, Any]], columns: Mapping[str, ColumnDomain]) -> tuple[tuple[Place, ...], ...]:
    """The pairs and triples of cells that no record can be in together, columns in order."""
    names = list(columns)
    return tuple(
        tuple(sorted((_place(name, names), _cell(columns[name], value, name)) for name, value in each.items()))
        for each in zeros
    )


def known_shares(known: Mapping[Any, Any], columns: Mapping[str, ColumnDomain]) -> dict[tuple[int, ...], list[Any]]:
    """Shares by places of one or two columns, which ascend: a list, or a list of lists."""
    names, found = list(columns), {}
    for key, shares in known.items():
        asked = (key,) if isinstance(key, str) else tuple(key)
        places = [_place(name, names) for name in asked]
        if not 1 <= len(places) <= 2 or len(set(places)) != len(places):
            raise DomainError("a known marginal is of one column or two.", hint=KNOWN)
        if tuple(sorted(places)) in found:
            raise DomainError(
                f"the marginal of {', '.join(asked)} is known twice.", hint="State it in one order of its columns"
            )
        try:
            rows = [list(map(float, row)) for row in (shares if len(places) == 2 else [shares])]
        except (TypeError, ValueError):
            raise DomainError(f"the known marginal of {', '.join(asked)} is not made of numbers.", hint=KNOWN) from None
        shape = [columns[name].size for name in asked]
        numbers = [number for row in rows for number in row]
        fits = [len(row) for row in rows] == [shape[-1]] * (shape[0] if len(shape) == 2 else 1)
        if not fits or any(not 0.0 <= number <= 1.0 for number in numbers) or abs(math.fsum(numbers) - 1.0) > SUM:
            cells = " x ".join(map(str, shape))
            raise DomainError(f"the known marginal of {', '.join(asked)} needs {cells} shares that sum to 1.", hint=KNOWN)
        turned = [list(column) for column in zip(*rows, strict=True)] if len(places) == 2 and places[0] > places[1] else rows
        found[tuple(sorted(places))] = turned if len(places) == 2 else rows[0]
    return found


def _place(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise DomainError(f"public knowledge names {name!r}, which is no column of the table.")
    return names.index(name)


def _cell(column: ColumnDomain, value: Any, name: str) -> int:
    """The cell that a value lies in; None and "other" name the special cells where the column has them."""
    found: int | None = None
    if value is None:
        found = column.null_cell
    elif isinstance(column, Categories):
        labels = [column.compared(label_text(each)) for each in column.values]
        text = column.compared(label_text(value))
        found = labels.index(text) if text in labels else column.other_cell if text == "other" else None
    elif value == "other":
        found = column.other_cell
    elif isinstance(column, Dates):
        found = column.cell_of(value)
    elif isinstance(column, Grid):
        steps = (exact(value, name=f"a structural zero of {name!r}") - column.bounds[0]) / column.spacing
        found = int(steps) if steps.denominator == 1 and 0 <= steps < column.n_values else None
    elif isinstance(column, Bins):
        edges, number = [Fraction(each) for each in column.edges], exact(value, name=f"a structural zero of {name!r}")
        inside = edges[0] <= number <= edges[-1]  # the last bin is closed
        found = min(bisect_right(edges, number), column.n_values) - 1 if inside else None
    if found is None:
        raise DomainError(f"column {name!r} has no such value as its structural zero names.", hint=ZEROS)
    return found
