"""CountTable: distinct values and how often each occurs, the sufficient statistic of every urn and histogram."""

from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError

MOST_RECORDS = 2**63 - 1
"""Of a table: a database counts rows in 64 bits as well."""

MOST_PUBLISHED = 2 * 10**12
"""Released records: as many as a million parts hold."""


def exact_sum(numbers: NDArray[np.int64]) -> int:
    """Sum of whole numbers that are not negative, as a Python integer: 32 bits of each at a time, so nothing can wrap.

    >>> exact_sum(np.full(4, 2**62)) == 2**64
    True
    """
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


@dataclass(frozen=True, eq=False)
class CountTable:
    """Confidential counts. `values` are distinct and sorted: cell numbers of a public domain, or open labels (text, None).

    `rows`, where given, is what the table that was counted says of itself: each of its records is here once, or nothing is.

    Its size is that of the distinct values, whatever the number of records. What it prints shows nothing of them.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    rows: InitVar[int | None] = None

    def __post_init__(self, rows: int | None) -> None:
        if len(self.values) != len(self.counts) or not _distinct(self.values):
            raise DomainError("a count table needs one positive count for each distinct value.")
        if self.counts.dtype != np.int64 or self.counts.min(initial=1) < 1:
            raise DomainError("a count table needs positive whole counts.")
        if self.n > MOST_RECORDS:
            raise DomainError("there are more records than 64 bits can count.")
        if rows is not None and rows != self.n:
            raise other_size()

    @classmethod
    def from_cells(cls, cells: NDArray[np.int64], counts: NDArray[np.int64], *, rows: int | None = None) -> "CountTable":
        """Table of cell numbers in any order; empty cells are left out."""
        order = np.argsort(cells, kind="stable")
        kept = order[counts[order] != 0]
        return cls(np.ascontiguousarray(cells[kept], np.int64), np.ascontiguousarray(counts[kept], np.int64), rows=rows)

    @classmethod
    def of(cls, cells: NDArray[np.int64]) -> "CountTable":
        """Table of the cells of records. An array of all cells where that is no longer than the records, as it is faster.

        >>> CountTable.of(np.array([4, 1, 4])).counts.tolist()
        [1, 2]
        """
        if cells.max(initial=-1) < len(cells):
            tally = np.bincount(cells).astype(np.int64)
            return cls(np.flatnonzero(tally), tally[tally > 0])
        return cls(*np.unique(cells, return_counts=True))

    def plus(self, other: "CountTable") -> "CountTable":
        """Both tables of cell numbers taken together.

        >>> one, other = CountTable(np.array([1, 4]), np.array([2, 1])), CountTable(np.array([0, 4]), np.array([1, 5]))
        >>> one.plus(other).dense(5).tolist()
        [1, 2, 0, 0, 6]
        """
        values, place = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return CountTable(values, counts)

    @property
    def n(self) -> int:
        """Number of records."""
        return exact_sum(self.counts)

    def dense(self, size: int) -> NDArray[np.int64]:
        """Counts of all cells 0..size-1."""
        out = np.zeros(size, np.int64)
        out[self.values] = self.counts
        return out

    def __repr__(self) -> str:
        return "CountTable(confidential)"


def other_size() -> DomainError:
    """Records were counted twice, or not at all; without numbers, because these would tell of them."""
    return DomainError(
        "what was counted is not every record of the table once.", hint="Was the table changed while it was read? Try again"
    )


def _distinct(values: NDArray[Any]) -> bool:
    if values.dtype == object:
        return len(set(values.tolist())) == len(values)
    return bool(np.all(values[1:] > values[:-1]))
