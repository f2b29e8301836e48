"""Counts of a table by sets of up to three columns, from the cells of its records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError

LARGEST_SET = 3
"""Columns of a marginal."""

Columns = tuple[int, ...]
"""Places of the columns of a marginal, ascending."""


@dataclass(frozen=True)
class MarginalLayout:
    """Which marginals of a table with columns of the given `sizes`; cells of a marginal: the last column's run fastest.

    >>> layout = MarginalLayout((2, 3), ((0,), (0, 1)))
    >>> layout.shapes, layout.total
    (((2,), (2, 3)), 8)
    """

    sizes: tuple[int, ...]
    sets: tuple[Columns, ...]

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each marginal."""
        return tuple(tuple(self.sizes[j] for j in each) for each in self.sets)

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

    def split(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """A number for each cell, as an array for each marginal."""
        parts = np.split(numbers, self.starts[1:])
        return tuple(part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """How many records there are in each cell of each marginal, one marginal after the other: confidential."""

    layout: MarginalLayout
    counts: NDArray[np.int64]
    n: int

    def __repr__(self) -> str:
        return "MarginalCounts(confidential)"


def count_marginals(batches: Iterable[NDArray[np.uint16]], layout: MarginalLayout) -> MarginalCounts:
    """All marginals in one pass; a batch has a row for each column and a cell for each record."""
    from privurn._kernels.tables.counting import update_marginals

    columns = np.full((len(layout.sets), LARGEST_SET), -1, np.int64)
    strides = np.zeros((len(layout.sets), LARGEST_SET), np.int64)
    for s, (places, shape) in enumerate(zip(layout.sets, layout.shapes, strict=True)):
        columns[s, : len(places)] = places
        strides[s, : len(places)] = _strides(shape)
    counts, n = np.zeros(layout.total, np.int64), 0
    bounds = np.array(layout.sizes)
    for batch in batches:
        if batch.shape[1] and (batch.max(axis=1) >= bounds).any():
            raise DomainError("a record lies in a cell that its column does not have.")
        update_marginals(np.ascontiguousarray(batch, np.uint16), columns, strides, layout.starts, counts)
        n += batch.shape[1]
    return MarginalCounts(layout, counts, n)


def _strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]
