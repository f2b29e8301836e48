"""Counts of a table by sets of up to three columns, from the cells of its records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.mechanisms.fine_columns import FineColumn

LARGEST_SET = 3
"""Columns of a marginal."""

Columns = tuple[int, ...]
"""Places of the columns of a marginal, ascending."""


@dataclass(frozen=True)
class MarginalLayout:
    """Which marginals of a table with columns of the given `sizes`; cells of a marginal: the last column's run fastest.

    `fine` columns have the `sizes` of their ranges in the `sets`; behind those stand their other depths, column by column, each
    a marginal of its own: that of a column whose cells are the nodes.

    >>> layout = MarginalLayout((2, 3), ((0,), (0, 1)))
    >>> layout.shapes, layout.total
    (((2,), (2, 3)), 8)
    """

    sizes: tuple[int, ...]
    sets: tuple[Columns, ...]
    fine: tuple[FineColumn, ...] = ()

    @cached_property
    def levels(self) -> tuple[tuple[FineColumn, int], ...]:
        """Fine columns with each of the further depths at which they are counted."""
        return tuple((column, depth) for column in self.fine for depth in column.depths)

    @cached_property
    def every_size(self) -> tuple[int, ...]:
        """Of all columns, and of those that stand for the levels."""
        return (*self.sizes, *(column.size_at(depth) for column, depth in self.levels))

    @cached_property
    def every_set(self) -> tuple[Columns, ...]:
        """The sets, and the single columns that stand for the levels."""
        return (*self.sets, *((j,) for j in range(len(self.sizes), len(self.every_size))))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each marginal."""
        return tuple(tuple(self.every_size[j] for j in each) for each in self.every_set)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """How many each marginal has."""
        return np.array([prod(shape) for shape in self.shapes], np.int64)

    @property
    def total(self) -> int:
        """Cells of all marginals."""
        return int(self.cells.sum())

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each marginal begins among all cells."""
        return np.concatenate([[0], np.cumsum(self.cells)[:-1]]).astype(np.int64)

    @cached_property
    def stated_sizes(self) -> tuple[int, ...]:
        """Cells of each column as its domain states them."""
        fine = {column.place: column.cells for column in self.fine}
        return tuple(fine.get(j, size) for j, size in enumerate(self.sizes))

    def split(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """A number for each cell, as an array for each marginal."""
        parts = np.split(numbers, self.starts[1:])
        return tuple(part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))

    def ranges(self, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Cells of all columns, with the ranges in place of the values of fine ones."""
        found = codes.copy() if self.fine else codes
        for column in self.fine:
            found[column.place] = column.number(column.ranges_depth)[codes[column.place]]
        return found

    def every_code(self, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Cells of all columns, and of those that stand for the levels."""
        levels = [column.number(depth)[codes[column.place]] for column, depth in self.levels]
        return np.vstack([self.ranges(codes), *levels]) if levels else codes


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """How many records there are in each cell of each marginal, one marginal after the other: confidential."""

    layout: MarginalLayout
    counts: NDArray[np.int64]
    n: int

    def __repr__(self) -> str:
        return "MarginalCounts(confidential)"

    @classmethod
    def from_sets(cls, layout: MarginalLayout, counts: NDArray[np.int64], n: int) -> "MarginalCounts":
        """From counts of the sets, behind which stand those of all cells of each fine column."""
        ends = (
            np.cumsum([0, *(column.cells for column in layout.fine)])
            + len(counts)
            - sum(column.cells for column in layout.fine)
        )
        alone = {column: counts[a:b] for column, a, b in zip(layout.fine, ends[:-1], ends[1:], strict=True)}
        levels = [np.add.reduceat(alone[column], column.starts(depth)) for column, depth in layout.levels]
        return cls(layout, np.concatenate([counts[: ends[0]], *levels]), n)


def count_marginals(batches: Iterable[NDArray[np.uint16]], layout: MarginalLayout) -> MarginalCounts:
    """All marginals in one pass; a batch has a row for each column and a cell for each record."""
    from privurn._kernels.tables.counting import update_marginals

    columns = np.full((len(layout.every_set), LARGEST_SET), -1, np.int64)
    strides = np.zeros((len(layout.every_set), LARGEST_SET), np.int64)
    for s, (places, shape) in enumerate(zip(layout.every_set, layout.shapes, strict=True)):
        columns[s, : len(places)] = places
        strides[s, : len(places)] = _strides(shape)
    counts, n = np.zeros(layout.total, np.int64), 0
    bounds = np.array(layout.stated_sizes)
    for batch in batches:
        if batch.shape[1] and (batch.max(axis=1) >= bounds).any():
            raise DomainError("a record lies in a cell that its column does not have.")
        update_marginals(np.ascontiguousarray(layout.every_code(batch), np.uint16), columns, strides, layout.starts, counts)
        n += batch.shape[1]
    return MarginalCounts(layout, counts, n)


def _strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]
