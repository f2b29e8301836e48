"""The base measure of one column's tree, learnt where none is given: within ranges records lie as the ranges around them say.

Where noise hides how a range's records split, they are put where the base measure says. Evenly is wrong at the foot of a slope
or the edge of a gap, and the ranges beside it tell: through the cumulative counts at the ends of the ranges of one depth goes a
rising curve, a cubic in each range (Fritsch and Carlson 1980, with slopes as in Fritsch and Butland 1984). So ranges of that
depth keep their even base, and only the cells within them have another. How much of the curve is believed is learnt one depth
above, where the answer was measured: round numbers and scattered values do not follow their neighbours. All of it is learnt
from what was published, as the concentrations' weights are.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.inference.trees.gaussian import gaussian_fit
from privurn.inference.trees.splits import Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements

Floats = NDArray[np.float64]

CLEAR = 4.0
"""Deviations of its estimate that a range of a depth must hold on average; the curve goes through the last such depth."""

HIDDEN = 0.05
"""Deviation of the estimate of a half, over all records, beyond which noise hides it."""

FEWEST = 8
"""Of fewer ranges neighbours are too far apart to tell anything."""

STEPS = 64
"""Shares of splits are multiples of 1/64, so that many splits have the same and their laws are computed once."""


def splits_of(measured: TreeMeasurements, base: Floats | None = None) -> Splits:
    """The tree's splits under the base measure that is given, or else the learnt one."""
    return prior_splits(measured, learnt_base(measured) if base is None else base)


def prior_splits(measured: TreeMeasurements, base: Floats | None = None) -> Splits:
    """The same with the uniform base where none is given: what is believed before the measurements are seen."""
    return Splits(measured.tree, base, hidden=_hides_halves(measured))


def _hides_halves(measured: TreeMeasurements) -> bool:
    """Whether the noise of the halves is a large part of all records; where n is public a matter of the layout alone."""
    if measured.depths[-1] == 0:
        return False
    fit = gaussian_fit(measured.versions[len(measured.versions) // 2], Splits(measured.tree))
    records = measured.total if measured.total is not None else float(fit[0].mean[0])
    return bool(np.sqrt(fit[1].variance.mean()) > HIDDEN * records)


def learnt_base(measured: TreeMeasurements) -> Floats | None:
    """Positive numbers of the cells; None, the uniform, where ranges tell nothing about cells.

    That is where there are two columns, where nothing but cells was measured, where they are clear themselves, where noise
    hides all ranges but a few, and where neighbours do not tell how ranges split.

    >>> from privurn.cell_tree import CellTree
    >>> noisy = np.array([0, 100, 300, 600, 400, 100, 0, 0]), np.zeros(32, np.int64)
    >>> seen = TreeMeasurements(CellTree((32,)), (3, 5), noisy, (("laplace", 1.0), ("laplace", 500.0)), total=1500)
    >>> found = learnt_base(seen).reshape(8, 4)
    >>> bool(np.allclose(found.sum(axis=1), 1 / 8)), bool(found[5, 0] > 2 * found[5, 3])
    (True, True)
    """
    tree = measured.tree
    if len(tree.shape) > 1 or measured.depths == (tree.depth,):
        return None
    fit = gaussian_fit(measured, Splits(tree))
    clear = [
        depth
        for depth in measured.depths
        if tree.nodes(depth) >= FEWEST and fit[0].mean[0] >= CLEAR * tree.nodes(depth) * np.sqrt(fit[depth].variance.mean())
    ]
    if not clear or clear[-1] == tree.depth:
        return None
    depth = clear[-1]
    # a deviation more for each: what noise hides stays flat
    counts = np.maximum(fit[depth].mean, 0.0) + np.sqrt(fit[depth].variance)
    told = _told(tree, counts, depth)
    if told == 0.0:
        return None
    return _in_steps(Splits(tree, 1.0 - told + told * _curve(counts, _sizes(tree, depth))), depth)


def _told(tree: CellTree, counts: Floats, depth: int) -> float:
    """How much of such a curve to believe, 0 to 1: what one through the ranges above has to be multiplied by to give these.

    Least squares of the shares of their splits, each weighted by its records.
    """
    even = Splits(tree)
    first = even.children[depth - 1]
    above = np.add.reduceat(counts, first)
    guessed = Splits(tree, _curve(above, _sizes(tree, depth - 1))).shares[depth - 1] - even.shares[depth - 1]
    seen = counts[first] / above - even.shares[depth - 1]
    against = float(above @ guessed**2)
    return min(max(float(above @ (guessed * seen)) / against, 0.0), 1.0) if against > 0.0 else 0.0


def _sizes(tree: CellTree, depth: int) -> NDArray[np.int64]:
    return np.diff(np.append(tree.starts[depth], tree.cells))


def _curve(counts: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Heights of the cells, on average 1 in each range, under a rising curve through the ranges' cumulative counts.

    Between two ranges the curve is as steep as the harmonic mean of their heights: near nothing beside an empty one, and never
    so steep that a cubic would fall. At both ends the outermost range goes on from its neighbour.
    """
    heights = counts / sizes
    between = 2.0 / (1.0 / heights[:-1] + 1.0 / heights[1:])
    ends = np.maximum(1.5 * heights[[0, -1]] - 0.5 * heights[[1, -2]], 0.0)
    first = np.repeat(np.append(ends[0], between) / heights, sizes)
    last = np.repeat(np.append(between, ends[1]) / heights, sizes)
    widths = np.repeat(1.0 / sizes, sizes)
    low = (np.arange(len(widths)) - np.repeat(np.cumsum(sizes) - sizes, sizes)) * widths

    def risen(t: Floats) -> Floats:
        return first * t * (1.0 - t) ** 2 - last * t**2 * (1.0 - t) + t**2 * (3.0 - 2.0 * t)

    return np.maximum((risen(low + widths) - risen(low)) / widths, 1e-9)


def _in_steps(splits: Splits, depth: int) -> Floats:
    """The base measure of these splits with shares in steps, from a depth on."""
    mass = splits.masses[depth]
    for each in range(depth, splits.depth):
        two, first = splits.two[each], splits.children[each]
        share = np.where(two, np.clip(np.rint(STEPS * splits.shares[each]), 1, STEPS - 1) / STEPS, 1.0)
        below = np.empty(splits.tree.nodes(each + 1))
        below[first] = mass * share
        below[first[two] + 1] = (mass * (1.0 - share))[two]
        mass = below
    return mass
