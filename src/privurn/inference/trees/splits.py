"""The binary splits of a tree, depth by depth, and the Polya tree's prior on them.

At a node v with two children and C_v records the left child gets C_left ~ Binomial(C_v, theta_v), theta_v ~ Beta(a_v r_v,
a_v (1 - r_v)): r_v is the base measure's share of the left child. The concentration a_v is one of CONCENTRATIONS, the last of
which means theta_v = r_v exactly; its weights belong to the depth and are learnt, Dirichlet(`Splits.hyper`) a priori. Where no
base measure is given, `base` learns one.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError

CONCENTRATIONS = (0.02, 0.1, 0.5, 2.0, 8.0, 32.0, 128.0, 1000.0, float("inf"))
"""From "all on one side" to "exactly the base measure's share"."""

HYPER = (1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 0.4, 0.2, 0.1)
"""Dirichlet parameters of their weights: few splits under much noise shall not be taken to be even."""

ONE_SIDED, EVEN, ENOUGH, LEAST_EVEN = 2, 4, 16, 0.25
"""The first concentrations put nearly all records on one side, those from the fourth on split about as the base measure does,
and 16 splits can teach how many do either: of fewer, their parameters are as much smaller, those of even splits down to a
quarter. Noise would else be taken to show that a thin tail is none, or that halves which it hides are equal."""

FIRST, FEW = (0.02, 0.02, 5.0, 1.0, 0.25, 0.1, 0.05, 0.02, 0.01), 4
"""Parameters of depths with so few splits where noise hides even the halves of all records: uneven, by any factor. Were even
halves expected there, a column with nothing in its upper half would get many records of noise."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of a tree under a base measure: positive numbers of the cells by number, or None for the uniform.

    `hidden`: whether noise is large beside all records, so that the first splits can be anything.

    >>> splits = Splits(CellTree((3,)))
    >>> splits.shares[0], splits.two[1].tolist()
    (array([0.66666667]), [True, False])
    """

    tree: CellTree
    base: NDArray[np.float64] | None = None
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.base is not None and (
            self.base.shape != (self.tree.cells,) or not np.all(np.isfinite(self.base)) or not np.all(self.base > 0.0)
        ):
            raise ModelError("a base measure has one positive number for each cell.", hint="Left out, it is learnt")

    @property
    def depth(self) -> int:
        """Depth of the cells."""
        return self.tree.depth

    @cached_property
    def children(self) -> tuple[NDArray[np.int64], ...]:
        """For each depth but the last the first child of every node, as a number among the nodes one depth further down."""
        starts = self.tree.starts
        return tuple(np.searchsorted(below, above) for above, below in pairwise(starts))

    @cached_property
    def two(self) -> tuple[NDArray[np.bool_], ...]:
        """Whether a node has two children; a node of one cell has one, itself."""
        return tuple(np.diff(np.append(first, self.tree.nodes(depth + 1))) == 2 for depth, first in enumerate(self.children))

    @cached_property
    def hyper(self) -> NDArray[np.float64]:
        """Dirichlet parameters of the concentrations' weights, (depth, concentration).

        >>> Splits(CellTree((4,))).hyper[:, :3].tolist()
        [[0.0625, 0.0625, 1.0], [0.125, 0.125, 1.0]]
        >>> Splits(CellTree((4,))).hyper[0, 3:].round(3).tolist()
        [2.0, 0.5, 0.25, 0.1, 0.05, 0.025]
        """
        found = np.tile(HYPER, (self.depth, 1))
        for depth, two in enumerate(self.two):
            part = min(1.0, max(1, int(two.sum())) / ENOUGH)
            found[depth, :ONE_SIDED] *= part
            found[depth, EVEN:] *= max(part, LEAST_EVEN)
            if self.hidden and int(two.sum()) <= FEW:
                found[depth] = FIRST
        return found

    @cached_property
    def masses(self) -> tuple[NDArray[np.float64], ...]:
        """The base measure of the nodes of every depth; 1 in all."""
        base = np.full(self.tree.cells, 1.0 / self.tree.cells) if self.base is None else self.base / self.base.sum()
        return tuple(np.add.reduceat(base[self.tree.order], starts) for starts in self.tree.starts)

    @cached_property
    def shares(self) -> tuple[NDArray[np.float64], ...]:
        """The base measure's share r_v of the first child; 1 where there is only one."""
        found = []
        for depth, first in enumerate(self.children):
            left, whole = self.masses[depth + 1][first], self.masses[depth]
            right = np.where(
                self.two[depth], self.masses[depth + 1][np.minimum(first + 1, self.tree.nodes(depth + 1) - 1)], 0.0
            )
            found.append(np.where(self.two[depth], left / (left + right), 1.0) if len(whole) else left)
        return tuple(found)

    def spread(self, values: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
        """Numbers of a depth's nodes shared out to the cells (by number) as the base measure says."""
        sizes = np.diff(np.append(self.tree.starts[depth], self.tree.cells))
        placed = np.repeat(values / self.masses[depth], sizes) * self.masses[-1]
        out = np.empty(self.tree.cells)
        out[self.tree.order] = placed
        return out
