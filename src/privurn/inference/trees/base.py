"""The base measure of a tree, learnt where none is given: within ranges records lie as the ranges around them say.

Where noise hides how a range's records split, they are put where the base measure says. Evenly is wrong at the foot of a slope
or the edge of a gap, and the ranges beside it tell, by rising curves (`curves`). So ranges of one depth keep their even base,
and only the cells within them have another. How much of the curves is believed is learnt above it, where the answer was
measured: round numbers and scattered values do not follow their neighbours. All of it is learnt from what was published, as the
concentrations' weights are.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.inference.trees.curves import heights
from privurn.inference.trees.gaussian import Fit, gaussian_fit
from privurn.inference.trees.splits import Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements

Floats = NDArray[np.float64]

CLEAR = 4.0
"""Deviations of its estimate that a range of a depth must hold on average; the curve goes through the last such depth."""

HIDDEN = 0.05
"""Deviation of the estimate of a half, over all records, beyond which noise hides it."""

FEWEST = 8
"""Of fewer ranges neighbours are too far apart to tell anything."""

UNSURE = 0.5
"""Deviation of what wide boxes of two columns tell of narrow ones, in parts of the curves."""

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

    That is where nothing but cells was measured, where they are clear themselves, where noise hides all ranges but a few, and
    where neighbours do not tell how ranges split.

    >>> from privurn.cell_tree import CellTree
    >>> noisy = np.array([0, 100, 300, 600, 400, 100, 0, 0]), np.zeros(32, np.int64)
    >>> seen = TreeMeasurements(CellTree((32,)), (3, 5), noisy, (("laplace", 1.0), ("laplace", 500.0)), total=1500)
    >>> found = learnt_base(seen).reshape(8, 4)
    >>> bool(np.allclose(found.sum(axis=1), 1 / 8)), bool(found[5, 0] > 2 * found[5, 3])
    (True, True)
    """
    tree = measured.tree
    if measured.depths == (tree.depth,):
        return None
    fit = gaussian_fit(measured, Splits(tree))
    depth = _last_clear(measured, fit)
    if depth is None or depth == tree.depth:
        return None
    # a deviation more for each: what noise hides stays flat
    counts = np.maximum(fit[depth].mean, 0.0) + np.sqrt(fit[depth].variance)
    told = min(max(_told(measured, fit, counts, depth), 0.0), 1.0)
    if told == 0.0:
        return None
    return _in_steps(Splits(tree, 1.0 - told + told * heights(tree, counts, depth)), depth)


def _last_clear(measured: TreeMeasurements, fit: tuple[Fit, ...]) -> int | None:
    """The last measured depth whose ranges the noise leaves clear; of two columns any depth, as narrow boxes tell more."""
    tree = measured.tree
    looked_at = measured.depths if len(tree.shape) == 1 else range(measured.depths[-1] + 1)
    clear = [
        depth
        for depth in looked_at
        if tree.nodes(depth) >= FEWEST and fit[0].mean[0] >= CLEAR * tree.nodes(depth) * np.sqrt(fit[depth].variance.mean())
    ]
    return clear[-1] if clear else None


def _told(measured: TreeMeasurements, fit: tuple[Fit, ...], counts: Floats, depth: int) -> float:
    """How much of such curves to believe: what those through the ranges above have to be multiplied by to give these.

    Least squares of the shares of their splits, each weighted by its records; of two columns of a split of either. There are
    many boxes of two columns, so that how they split themselves tells too, whatever the noise on a single one: the factor from
    the curves to their halves and quarters, by inverse variances. In a block with sharp edges wide boxes follow neighbours and
    narrow ones do not.
    """
    tree, below = measured.tree, counts
    even = Splits(tree)
    for_it, against = 0.0, 0.0
    for parent in range(depth - 1, depth - 1 - len(tree.shape), -1):
        first = even.children[parent]
        above = np.add.reduceat(below, first)
        guessed = Splits(tree, heights(tree, above, parent)).shares[parent] - even.shares[parent]
        seen = below[first] / above - even.shares[parent]
        for_it, against = for_it + float(above @ (guessed * seen)), against + float(above @ guessed**2)
        below = above
    told = for_it / against if against > 0.0 else 0.0
    if len(tree.shape) == 1:
        return told
    told, curved = min(max(told, 0.0), 1.0), Splits(tree, heights(tree, counts, depth))
    for_it, against = told / UNSURE**2, 1.0 / UNSURE**2
    for parent in range(depth, min(depth + 2, measured.depths[-1])):
        two = even.two[parent]
        left = even.children[parent][two]
        mean, variance = fit[parent + 1].mean, 0.5 * fit[parent + 1].variance[left]  # of a half, given both together
        whole = mean[left] + mean[left + 1]
        guessed = np.maximum(whole, 0.0) * (curved.shares[parent] - even.shares[parent])[two]
        seen = mean[left] - even.shares[parent][two] * whole
        for_it, against = for_it + float(np.sum(guessed * seen / variance)), against + float(np.sum(guessed**2 / variance))
    return for_it / against


def _in_steps(splits: Splits, depth: int) -> Floats:
    """The base measure of these splits by number, with shares in steps from a depth on."""
    mass = splits.masses[depth]
    for each in range(depth, splits.depth):
        two, first = splits.two[each], splits.children[each]
        share = np.where(two, np.clip(np.rint(STEPS * splits.shares[each]), 1, STEPS - 1) / STEPS, 1.0)
        below = np.empty(splits.tree.nodes(each + 1))
        below[first] = mass * share
        below[first[two] + 1] = (mass * (1.0 - share))[two]
        mass = below
    found = np.empty(len(mass))
    found[splits.tree.order] = mass
    return found
