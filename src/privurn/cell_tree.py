"""A binary tree over the ordered cells of a public domain: what noisy trees measure and what Polya trees split.

Cells stand in tree order, so every node is a run of neighbouring places, and every depth is a partition of all cells: a node of
one cell stays as it is further down. Of one column the tree order is the cells' own; of two it follows boxes that are halved
along one column and the other in turn, so a node is a box.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError


@dataclass(frozen=True)
class CellTree:
    """The tree over all cells of a domain with these sizes of its ordered columns (one or two).

    A cell's number counts the first column fastest, as in a joint domain.

    >>> tree = CellTree((5,))
    >>> [starts.tolist() for starts in tree.starts]
    [[0], [0, 3], [0, 2, 3, 4], [0, 1, 2, 3, 4]]
    >>> tree.sums(np.array([1, 2, 3, 4, 5]), 1).tolist()
    [6, 9]
    >>> CellTree((2, 2)).order.tolist()
    [0, 2, 1, 3]
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= 2 or min(self.shape) < 1:
            raise ModelError("a tree stands over the cells of one ordered column, or of two.")

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    @property
    def depth(self) -> int:
        """Depth of the leaves; the root has depth 0."""
        return len(self.starts) - 1

    @property
    def order(self) -> NDArray[np.int64]:
        """The cell at each place of the tree order."""
        return self._built[0]

    @property
    def starts(self) -> tuple[NDArray[np.int64], ...]:
        """For each depth the first places of its nodes."""
        return self._built[1]

    def nodes(self, depth: int) -> int:
        """How many nodes a depth has."""
        return len(self.starts[depth])

    def sums(self, counts: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
        """Counts of the nodes of a depth, from the counts of all cells by number."""
        return np.add.reduceat(counts[self.order], self.starts[depth])

    def children(self, above: int, depth: int) -> NDArray[np.int64]:
        """How many nodes of a depth each node of a depth above it has.

        >>> CellTree((5,)).children(1, 3).tolist()
        [3, 2]
        """
        first = np.searchsorted(self.starts[depth], self.starts[above])
        return np.diff(np.append(first, self.nodes(depth)))

    @cached_property
    def _built(self) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
        """All boxes of a depth are halved at once; a box is its low corner and its sizes."""
        low = np.zeros((1, len(self.shape)), np.int64)
        size = np.array([self.shape], np.int64)
        starts = [np.zeros(1, np.int64)]
        while (size > 1).any():
            low, size = _halved(low, size, axis=(len(starts) - 1) % len(self.shape))
            starts.append(np.concatenate([[0], np.cumsum(size.prod(axis=1))[:-1]]))
        strides = np.cumprod([1, *self.shape[:-1]])
        return low @ strides, tuple(starts)


def _halved(low: NDArray[np.int64], size: NDArray[np.int64], *, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both halves of each box along the axis whose turn it is, or along another where it has one cell only there."""
    boxes = np.arange(len(size))
    along = np.where(size[:, axis] > 1, axis, np.argmax(size, axis=1))
    left = size.copy()
    left[boxes, along] = (size[boxes, along] + 1) // 2
    right = size.copy()
    right[boxes, along] -= left[boxes, along]
    shifted = low.copy()
    shifted[boxes, along] += left[boxes, along]
    kept = np.stack([np.ones(len(size), bool), right.all(axis=1)], axis=1).ravel()
    return np.stack([low, shifted], axis=1).reshape(-1, low.shape[1])[kept], np.stack([left, right], axis=1).reshape(
        -1, low.shape[1]
    )[kept]
