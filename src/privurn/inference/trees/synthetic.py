"""Records made from a posterior: balanced rounding of expected counts, and records in random order.

Everything here is post-processing of published measurements: its seed is public, and says nothing about the noise.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CLOSE = 1e-6
"""Expected counts may miss a whole sum by rounding errors of this size."""

WHOLE, RELATIVE = 1e-9, 1e-14
"""A cumulative count that is as near to a whole number is one; or, of very many records, as near as floats tell them apart."""


def balanced_counts(
    tree: CellTree, expected: Floats, *, rng: np.random.Generator, special: Floats | None = None
) -> tuple[Whole, Whole]:
    """Whole counts of cells and special cells with these expectations: unbiased in every cell, within one at every node.

    The cumulative count at the end of every node, in the tree's order, is its expectation rounded up or down, and so is the
    count of the node. From the root down the ends of the halves are rounded at random, given those of the whole: of two ends
    the one with the larger fraction is rounded up wherever the other is. Nothing else ties ranges together, so that a flat law
    does not beat against the grid, as with systematic rounding.

    >>> tree = CellTree((4,))
    >>> counts, _ = balanced_counts(tree, np.array([0.5, 0.5, 1.5, 0.5]), rng=np.random.default_rng(1))
    >>> int(counts[:2].sum()), int(counts[2:].sum()), int(counts.sum())
    (1, 2, 3)
    """
    beside = np.zeros(0) if special is None else special
    total = float(expected.sum() + beside.sum())
    if expected.shape != (tree.cells,) or not np.all(np.isfinite(expected)) or np.any(expected < 0.0) or np.any(beside < 0.0):
        raise ModelError("expected counts are numbers, 0 or more, one for each cell.")
    if abs(total - round(total)) > CLOSE * max(1.0, total):
        raise ModelError("expected counts must sum to a whole number of records.", hint="expected * records / expected.sum()")
    ends = _Ends.of(np.append(expected[tree.order], beside), total=round(total))
    for cell in range(len(beside)):  # special cells lie behind the tree, and are taken off one by one from the last
        ends.round_between(*(np.array([at]) for at in (0, tree.cells + len(beside) - 1 - cell, ends.last - cell)), rng=rng)
    for above, below in pairwise(tree.starts):
        middles = np.setdiff1d(below, above, assume_unique=True)
        at = np.searchsorted(above, middles)
        ends.round_between(above[at - 1], middles, np.append(above, tree.cells)[at], rng=rng)
    counts = np.diff(ends.down + ends.up)
    by_number = np.empty(tree.cells, np.int64)
    by_number[tree.order] = counts[: tree.cells]
    return by_number, counts[tree.cells :]


@dataclass(frozen=True, eq=False)
class _Ends:
    """Cumulative counts before every cell and after the last: rounded down, what that leaves, and 1 where rounded up."""

    down: Whole
    fraction: Floats
    up: Whole

    @classmethod
    def of(cls, expected: Floats, *, total: int) -> "_Ends":
        """None is rounded up yet; the last is the total."""
        summed = np.append(0.0, np.cumsum(expected))
        summed *= total / max(summed[-1], np.finfo(np.float64).tiny)
        near = np.rint(summed)
        summed = np.where(np.abs(summed - near) < np.maximum(WHOLE, RELATIVE * summed), near, summed)
        down = np.floor(summed)
        return cls(down.astype(np.int64), summed - down, np.zeros(len(summed), np.int64))

    @property
    def last(self) -> int:
        """The place of the total."""
        return len(self.down) - 1

    def round_between(self, left: Whole, middle: Whole, right: Whole, *, rng: np.random.Generator) -> None:
        """Round the middles given their neighbours: each is up as often as its fraction says, and never against them."""
        swapped = self.fraction[left] > self.fraction[right]
        low, high = np.where(swapped, right, left), np.where(swapped, left, right)
        p, q, wanted = self.fraction[low], self.fraction[high], self.fraction[middle]
        above, below = wanted >= q, wanted < p
        # given that the higher is down, that the lower is up, and that they differ
        part, whole = wanted - np.where(above, q, np.where(below, 0.0, p)), np.where(above, 1.0 - q, np.where(below, p, q - p))
        drawn = rng.random(len(middle)) * whole < part
        self.up[middle] = np.where(
            above,
            drawn | (self.up[high] == 1),
            np.where(below, drawn & (self.up[low] == 1), np.where(self.up[low] == self.up[high], self.up[low] == 1, drawn)),
        )


def records_in_random_order(counts: Whole, *, rng: np.random.Generator) -> Whole:
    """The cell number of every record, in random order.

    >>> sorted(records_in_random_order(np.array([2, 0, 1]), rng=np.random.default_rng(1)).tolist())
    [0, 0, 2]
    """
    records = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(records)
    return records
