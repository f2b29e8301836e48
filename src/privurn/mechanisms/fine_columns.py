"""Columns of many values in an order: counted with other columns by public ranges of their values, and alone by a noisy tree.

The ranges are the nodes of one depth of the tree over the values. Alone, the column is counted at further depths, down to every
value. What stands in no order (null, other) is a cell of its own at every depth. Which columns, and which depths:
marginals_layout.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.mechanisms.plain_data import rebuilt, stated

MOST_VALUES = 2**16 - 10
"""Of a column of a table, whose cells are numbered in 16 bits; special cells and two marks have room beside them."""


@dataclass(frozen=True, kw_only=True)
class FineColumn:
    """The column at `place` with so many `values` in order and `special` cells behind them.

    With other columns it is counted by the nodes of `ranges_depth` and the special cells; alone also at `depths`.

    >>> column = FineColumn(place=0, values=100, special=1, ranges_depth=1, depths=(2, 7))
    >>> column.size, column.cells, column.number(1)[[0, 49, 50, 99, 100]].tolist()
    (3, 101, [0, 0, 1, 1, 2])
    """

    place: int
    values: int
    special: int
    ranges_depth: int
    depths: tuple[int, ...]

    def __post_init__(self) -> None:
        depths = (self.ranges_depth, *self.depths)
        if self.place < 0 or self.special < 0 or not 2 <= self.values <= MOST_VALUES:
            raise ModelError(f"a fine column has 2 to {MOST_VALUES:,} values.")
        if len(set(depths)) < len(depths) or min(depths) < 1 or max(depths) != self.tree.depth:
            raise ModelError("a fine column is counted at different depths of its tree, the last of which has every value.")

    @cached_property
    def tree(self) -> CellTree:
        """Over the values."""
        return CellTree((self.values,))

    @property
    def cells(self) -> int:
        """Of the column as its domain states it."""
        return self.values + self.special

    @property
    def size(self) -> int:
        """Cells of the column where it is counted with others."""
        return self.size_at(self.ranges_depth)

    def size_at(self, depth: int) -> int:
        """Cells of the column where it is counted at a depth."""
        return self.tree.nodes(depth) + self.special

    def starts(self, depth: int) -> NDArray[np.int64]:
        """The first of the column's cells in each of those of a depth."""
        return np.append(self.tree.starts[depth], self.values + np.arange(self.special))

    def number(self, depth: int) -> NDArray[np.uint16]:
        """The cell at a depth of each of the column's cells."""
        sizes = np.diff(np.append(self.starts(depth), self.cells))
        return np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return stated(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "FineColumn":
        """Inverse of `to_json`."""
        return rebuilt(cls, data)
