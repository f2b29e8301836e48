"""Expected counts of records for use at face value: nearest to the confidential ones, as the posterior sees it.

The Wasserstein distance of two tables on a line is the sum over the cells of how far their cumulative shares are apart. So what
is least to be expected is attained by the posterior median of every cumulative share, and medians of rising curves rise. Means
are further away where cells are few: each of thousands of empty ones has a small positive mean, and together they make a tail.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.inference.size import SizePrior
from privurn.inference.trees.approximation import Propagation, TreePosterior
from privurn.inference.trees.base import splits_of
from privurn.inference.trees.independent import drawn_nodes
from privurn.inference.trees.synthetic import balanced_counts
from privurn.mechanisms.recipe import check_records
from privurn.mechanisms.tree_measurements import TreeMeasurements

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

DEPTH = 8
"""Of the ranges whose cumulative shares are medians; the cells of a range share its records by their means."""

ROUNDS = 3
"""Of learning how records split. Draws for intervals have one: more hardly change them, and they would hold less often."""

DRAWS = 200
"""That the medians are taken of: they raise the squared error by less than a hundredth."""


def face_value_counts(
    measured: TreeMeasurements,
    *,
    records: int | None,
    rng: np.random.Generator,
    base: Floats | None = None,
    size: SizePrior | None = None,
    ordered: bool = True,
    detail: float = 1.0,
    in_parts: bool = False,
) -> Whole:
    """How many of so many records each cell of the domain gets; of as many as were measured, where that is left out.

    `in_parts`: they need not be in memory.

    All else as in `nearest_counts`.
    """
    found = nearest_counts(measured, rng=rng, base=base, size=size, ordered=ordered, detail=detail)
    weight = float(found.counts.sum() + found.special.sum())
    wanted = round(weight) if records is None else records
    check_records(wanted, in_parts=in_parts)
    if weight <= 0.0 or wanted < 1:
        raise ModelError("the measurements tell of no record at all.")
    scale = wanted / weight
    counts, special = balanced_counts(measured.tree, found.counts * scale, rng=rng, special=found.special * scale)
    return np.asarray(measured.in_domain(counts, special), np.int64)


def nearest_counts(
    measured: TreeMeasurements,
    *,
    rng: np.random.Generator,
    base: Floats | None = None,
    size: SizePrior | None = None,
    ordered: bool = True,
    detail: float = 1.0,
) -> TreePosterior:
    """Posterior with the counts of least expected distance; with means where cells are in no one order, as of two columns.

    `base` and `size`: as in `IndependentDraws`. Less `detail` is faster and less precise.

    >>> from privurn.cell_tree import CellTree
    >>> noisy = np.array([3, -2, 41, 0, 1, -1, 0, 2])
    >>> seen = TreeMeasurements(CellTree((8,)), (3,), (noisy,), (("laplace", 1.0),), total=45)
    >>> found = nearest_counts(seen, rng=np.random.default_rng(1)).counts
    >>> float(round(found.sum(), 6)), bool(39 < found[2] < 43), bool(found[3:].sum() < 3)
    (45.0, True, True)
    """
    work = Propagation(measured, splits_of(measured, base), size=size, detail=detail)
    weights = work.fitted(rounds=ROUNDS)
    work.go_down(weights)
    found = work.found(weights)
    if ordered and len(measured.tree.shape) == 1:
        depth = min(work.last, DEPTH)
        work.tabulate(weights, each=True, last=depth)
        _, nodes, _ = drawn_nodes(work, weights, depth, draws=DRAWS, rng=rng)
        _move_to_medians(found.counts, measured.tree.starts[depth], nodes)
    return found


def nearest_of_draws(drawn: Floats) -> Floats:
    """The same of draws of the counts of cells in order, (draw, cell), however they were made.

    >>> nearest_of_draws(np.array([[8.0, 2.0], [9.0, 1.0], [1.0, 9.0]])).round(9).tolist()
    [8.0, 2.0]
    """
    tree, counts = CellTree((drawn.shape[1],)), np.asarray(drawn.mean(axis=0), np.float64)
    starts = tree.starts[min(tree.depth, DEPTH)]
    _move_to_medians(counts, starts, np.add.reduceat(drawn, starts, axis=1).T)
    return counts


def _move_to_medians(counts: Floats, starts: NDArray[np.int64], nodes: Floats) -> None:
    """Scale the counts of every range so that cumulative shares are as far from their means as medians of drawn ones are.

    `nodes`: the ranges' counts, a draw in each column. Taking from the draws only how far medians are from means leaves less of
    their chance in the result.
    """
    total, means = counts.sum(), np.add.reduceat(counts, starts)
    curves = np.cumsum(nodes, axis=0)[:, nodes.sum(axis=0) > 0.0]
    if total > 0.0 and curves.shape[1] > 0:
        shares = curves / curves[-1]
        moved = np.cumsum(means) / total + np.median(shares, axis=1) - shares.mean(axis=1)
        wanted = np.diff(np.maximum.accumulate(np.clip(moved, 0.0, 1.0)), prepend=0.0)
        factor = np.divide(wanted, means, out=np.zeros(len(means)), where=means > 0.0)
        counts *= np.repeat(factor, np.diff(np.append(starts, len(counts))))
        counts *= total / counts.sum()
