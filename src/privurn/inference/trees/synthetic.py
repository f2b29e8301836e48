"""Records made from a posterior: balanced rounding of expected counts, and records in random order.

Everything here is post-processing of published measurements: its seed is public, and says nothing about the noise.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CLOSE = 1e-6
"""Expected counts may miss a whole sum by rounding errors of this size."""


def balanced_counts(
    tree: CellTree, expected: Floats, *, rng: np.random.Generator, special: Floats | None = None
) -> tuple[Whole, Whole]:
    """Whole counts of cells and special cells with these expectations: unbiased in every cell, within one at every node.

    Pivotal sampling (Deville and Tillé 1998) along the tree: every node keeps at most one cell whose last record is undecided;
    two such cells under one parent fight it out, and the winner or the loser stays undecided. So the count of every node of
    the tree is its expectation rounded up or down. A flat law does not beat against the grid, as with systematic rounding.

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
    placed = expected[tree.order]
    counts = np.floor(placed).astype(np.int64)
    undecided, fraction = np.arange(tree.cells), placed - counts
    for depth in range(tree.depth - 1, -1, -1):
        first = np.searchsorted(tree.starts[depth + 1], tree.starts[depth])
        two = np.diff(np.append(first, tree.nodes(depth + 1))) == 2
        kept, left_over = undecided[first], fraction[first]
        one, other = first[two], first[two] + 1
        kept[two], left_over[two] = _pivotal(
            counts, undecided[one], fraction[one], undecided[other], fraction[other], rng.random(len(one))
        )
        undecided, fraction = kept, left_over
    by_number = np.empty(tree.cells, np.int64)
    whole = np.append(by_number, np.floor(beside).astype(np.int64))
    whole[: tree.cells][tree.order] = counts
    last, rest = np.array([tree.order[undecided[0]]]), fraction[:1]
    for i, part in enumerate(beside - np.floor(beside)):
        last, rest = _pivotal(whole, last, rest, np.array([tree.cells + i]), np.array([part]), rng.random(1))
    whole[last] += np.rint(rest).astype(np.int64)
    return whole[: tree.cells], whole[tree.cells :]


def _pivotal(counts: Whole, one: Whole, p: Floats, other: Whole, q: Floats, uniform: Floats) -> tuple[Whole, Floats]:
    """Decide one of two undecided cells, for many pairs at once; returns the cell that stays undecided, and its fraction."""
    total = p + q
    over = total >= 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        stays = np.where(over, (1.0 - q) / (2.0 - total), p / total)  # the chance that `one` gets more than its fraction
    up = uniform < np.where(np.isnan(stays), 0.5, stays)
    counts[np.where(up, one, other)[over]] += 1
    # under one in all, the loser gets nothing and the winner stays; else the winner has its record and the loser stays
    return np.where(up ^ over, one, other), np.where(over, total - 1.0, total)


def records_in_random_order(counts: Whole, *, rng: np.random.Generator) -> Whole:
    """The cell number of every record, in random order.

    >>> sorted(records_in_random_order(np.array([2, 0, 1]), rng=np.random.default_rng(1)).tolist())
    [0, 0, 2]
    """
    records = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(records)
    return records
