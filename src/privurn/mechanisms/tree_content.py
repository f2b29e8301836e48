"""Whether a published table can be the noisy counts of a tree, as its certificate states them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.published import Content, joint_domain
from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.laws.noisy_tree import KINDS
from privurn.tables.released import CellReader, numbers, whole_numbers

if TYPE_CHECKING:
    from privurn.mechanisms.noisy_tree import DrawnTree

BY_CHANCE = 1e-12
"""A depth that is said to have independent noise, and sums up wherever it might, does so with at most that probability."""


class TreeContent(Content):
    """All measured nodes in their order: the first cell of each, its depth and number, and a whole number.

    Numbers of tied depths sum to those above; of others they may, but not all of many.
    """

    wrong = "is not the table of the tree's nodes and their numbers"

    def __init__(self, domain: Mapping[str, Any], wanted: "DrawnTree") -> None:
        """`wanted`: the table as it is written, whatever its numbers are."""
        self.readers = [CellReader(each) for each in joint_domain(domain).whole_bins().columns.values()]
        self.row, self.tree, self.wanted = 0, wanted.tree, wanted
        self.counts = np.zeros(len(wanted.cells), np.int64)

    def holds(self, batch: Any) -> bool:
        """The nodes are the next ones, and the numbers whole."""
        here = slice(self.row, self.row + batch.num_rows)
        self.row += batch.num_rows
        cell = self.wanted.cells[here]
        if len(cell) < batch.num_rows:
            return False
        for i, reader in enumerate(self.readers):
            cell, own = np.divmod(cell, reader.domain.size)
            if not np.array_equal(reader.cells(batch.column(i)), own):
                return False
        depth, node = (numbers(batch.column(len(self.readers) + i)) for i in range(2))
        counts = whole_numbers(batch.column(len(self.readers) + 2))
        if depth is None or node is None or counts is None:
            return False
        if not (np.array_equal(depth, self.wanted.depth[here]) and np.array_equal(node, self.wanted.node[here])):
            return False
        self.counts[here] = counts
        return self.row < len(self.wanted.cells) or self._sums_up()

    def _sums_up(self) -> bool:
        """Whether numbers of tied depths do, and those of no other depth all do where they would not by chance."""
        tree, depths, kind = self.tree.tree, self.tree.depths, KINDS[self.tree.noise]
        ends = np.cumsum([tree.nodes(depth) for depth in depths])
        levels = dict(zip(depths, np.split(self.counts, ends), strict=False))
        if self.tree.n is not None and not len(self.tree.special_cells):
            levels[0] = np.array([self.tree.n])
        for place, (depth, scale) in enumerate(zip(depths, self.tree.scales, strict=True)):
            above = depths[place - 1] if place else 0
            if above == depth or above not in levels:
                continue
            sizes = tree.children(above, depth)
            same = equal_sums(levels[depth], sizes, levels[above])
            free = place > 0 and above not in self.tree.tied  # what is tied itself may be quieter than its scale says
            loudest = max(scale, self.tree.scales[place - 1]) if free else scale
            chance = len(sizes) * math.log(largest_probability(kind, loudest))
            if not same if depth in self.tree.tied else same and chance < math.log(BY_CHANCE):
                return False
        return True


def equal_sums(parts: NDArray[np.int64], sizes: NDArray[np.int64], wholes: NDArray[np.int64]) -> bool:
    """Whether so many parts each sum to the wholes, where they do not outgrow 64 bits.

    >>> equal_sums(np.array([2**62, 2**62, 2**62, 2**62, 5]), np.array([4, 1]), np.array([0, 5]))
    False
    """
    first = np.cumsum(sizes) - sizes
    about = np.add.reduceat(parts.astype(np.float64), first) - wholes
    return np.array_equal(np.add.reduceat(parts, first), wholes) and bool((np.abs(about) < 2.0**62).all())


def largest_probability(kind: NoiseKind, scale: float) -> float:
    """A bound of that of any number that this noise may be, alone or with other, independent noise.

    >>> round(largest_probability("laplace", 10.0), 4), round(largest_probability("gaussian", 10.0), 4)
    (0.05, 0.0399)
    """
    return math.tanh(0.5 / scale) if kind == "laplace" else min(1.0, 1.0 / (scale * math.sqrt(2.0 * math.pi)))
