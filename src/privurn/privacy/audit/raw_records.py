"""Records as they come, before they are cells: far out of range, not a number, infinite, text among numbers, missing.

Whatever a record holds, reading must turn two tables that differ in one record into counts that differ in one record. Tables
are small here; what is read from them decides which pairs are drawn on.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, Categories, ColumnDomain, Dates, Grid, JointDomain
from privurn.privacy.audit.attack import RAISED, Pair
from privurn.tables import count_cells, open_table

COMMON = 2
"""Records that both tables hold; more only add to the same cell."""

HOSTILE_NUMBERS: dict[str, float] = {
    "a number far above the bounds": 1e300,
    "a number far below the bounds": -1e300,
    "an infinite number": np.inf,
    "a negative infinite number": -np.inf,
}
NO_NUMBERS: dict[str, Any] = {"not a number": np.nan, "text among numbers": "no number"}
BEYOND_FLOATS: dict[str, Any] = {"a number beyond the floats as text": "1e999"}
FAR_DATES: dict[str, Any] = {"a date long ago": "0001-01-01", "a date far ahead": "9999-12-31 23:59:59"}
STRANGE_LABELS: dict[str, Any] = {"a label that is not listed": "no such label", "the text nan": "NaN"}
MISSING: dict[str, Any] = {"a missing value": None, "an empty text": ""}

Reader = Callable[[NDArray[Any], JointDomain], CountTable]


def read_counts(table: NDArray[Any], domain: JointDomain) -> CountTable:
    """The release's own way from records to cells."""
    with open_table(table) as source:
        return count_cells(source, domain, secret_size=True)


def raw_pairs(domain: JointDomain, *, n: int, moved: int, add_remove: bool, read: Reader = read_counts) -> list[Pair]:
    """Pairs that tell what reading does wrong: all whose counts are not neighbours, or else one that goes through reading.

    Where counts differ in `moved` records, the pair is one of those that are made from cells anyway.
    """
    found: list[Pair] = []
    for name, first, second in _raw_tables(domain, moved=moved, add_remove=add_remove):
        sides = [
            _counted(table, domain, n=n - (add_remove and i) * moved, read=read) for i, table in enumerate((first, second))
        ]
        wrong = not _neighbours(*sides, moved=moved, add_remove=add_remove)
        if wrong or (not found and not _same(*sides)):
            found.append(Pair(f"raw records: {name}", sides[0], sides[1], _differing(*sides)))
    apart = [pair for pair in found if not _neighbours(pair.first, pair.second, moved=moved, add_remove=add_remove)]
    return apart or found[:1]


def _raw_tables(domain: JointDomain, *, moved: int, add_remove: bool) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Tables of `COMMON` plain records and `moved` records that hold something hostile; in the other table they are plain."""
    plain = {name: column_ends(each) for name, each in domain.columns.items()}
    for column, each in domain.columns.items():
        for name, value in hostile_values(each).items():
            kind: Any = np.float64 if isinstance(value, float) and not isinstance(each, Categories) else object
            kinds = [(other, kind if other == column else object) for other in domain.columns]
            low = {other: ends[0] for other, ends in plain.items()}
            hostile, high = low | {column: value}, low | {column: plain[column][1]}
            tables = []
            for extra in (hostile, None if add_remove else high):
                rows = [low] * COMMON + ([] if extra is None else [extra] * moved)
                tables.append(np.array([tuple(row[other] for other in domain.columns) for row in rows], dtype=kinds))
            yield f"{name} in {column!r}", tables[0], tables[1]


def column_ends(domain: ColumnDomain) -> tuple[Any, Any]:
    """Two plain values, as far apart as they can be."""
    if isinstance(domain, Grid):
        return float(domain.bounds[0]), float(domain.bounds[1])
    if isinstance(domain, Bins):
        return float(domain.edges[0]), float(domain.edges[-1])
    if isinstance(domain, Dates):
        return domain.label(0), domain.label(domain.n_values - 1)
    if isinstance(domain, Categories):
        return domain.values[0], domain.values[-1]
    raise AssertionError


def hostile_values(domain: ColumnDomain) -> dict[str, Any]:
    """What a column may hold that its domain does not list; not what the domain declares not to be there."""
    missing = {} if domain.null_cell is None else MISSING
    if isinstance(domain, Categories):
        listed = str(domain.values[0])
        strange = {} if domain.outside_cell is None else STRANGE_LABELS
        return {"a label with spaces": f" {listed} ", **strange, **missing}
    if isinstance(domain, Dates):
        far = {} if domain.outside == "error" else FAR_DATES
        text = {} if domain.unreadable_cell is None else {"text among dates": "no date"}
        return {**far, **text, **missing}
    numbers = {} if domain.outside == "error" else {**HOSTILE_NUMBERS, **BEYOND_FLOATS}
    cells = {"not a number": domain.null_cell, "text among numbers": domain.unreadable_cell}
    return {**numbers, **{name: NO_NUMBERS[name] for name, cell in cells.items() if cell is not None}, **missing}


def _counted(table: NDArray[Any], domain: JointDomain, *, n: int, read: Reader) -> CountTable | str:
    """Counts of a table, filled up to n records with copies of the first; an exception is an output like any other."""
    try:
        counts, rest = read(table, domain), n - len(table)
        dense = dict(zip(counts.values.tolist(), counts.counts.tolist(), strict=True))
        dense[0] = dense.get(0, 0) + rest  # the plain records hold the first value of every column
        return CountTable.from_cells(np.array(list(dense), np.int64), np.array(list(dense.values()), np.int64))
    except Exception as error:
        return f"{RAISED} {type(error).__name__}"


def _difference(first: CountTable, second: CountTable) -> dict[int, int]:
    cells = {*first.values.tolist(), *second.values.tolist()}
    one, two = (dict(zip(each.values.tolist(), each.counts.tolist(), strict=True)) for each in (first, second))
    return {cell: one.get(cell, 0) - two.get(cell, 0) for cell in sorted(cells) if one.get(cell, 0) != two.get(cell, 0)}


def _same(first: CountTable | str, second: CountTable | str) -> bool:
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return not _difference(first, second)


def _neighbours(first: CountTable | str, second: CountTable | str, *, moved: int, add_remove: bool) -> bool:
    """Whether the counts are those of tables that differ in `moved` records; both refused is no difference."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    changes = list(_difference(first, second).values())
    gained = sum(change for change in changes if change > 0)
    lost = -sum(change for change in changes if change < 0)
    return gained <= moved and (lost == 0 if add_remove else lost == gained)


def _differing(first: CountTable | str, second: CountTable | str) -> tuple[int, ...]:
    if isinstance(first, str) or isinstance(second, str):
        return ()
    changed = _difference(first, second)
    return tuple(sorted(changed, key=lambda cell: -abs(changed[cell]))[:2])
