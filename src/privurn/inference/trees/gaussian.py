"""Least squares on a tree: what the measurements alone say about each node's count, and what those elsewhere say.

Two passes of inverse-variance weighting (Hay et al. 2010 for any tree): up, a node's own measurement and the sum of its
children; down, its parent less its sibling. No prior, no clipping: unbiased, and the windows of the lattices come from it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.inference.trees.splits import Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements, noise_variance

Floats = NDArray[np.float64]
Estimate = tuple[Floats, Floats]
"""Means and variances; an infinite variance says nothing."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Of one depth's nodes: the estimate from all measurements, and that from those outside the subtree."""

    mean: Floats
    variance: Floats
    outside_mean: Floats
    outside_variance: Floats


def gaussian_fit(measured: TreeMeasurements, splits: Splits) -> tuple[Fit, ...]:
    """Estimates of all nodes, from the root to the deepest measured depth."""
    last = measured.depths[-1]
    up = subtree_estimates(measured, splits)
    outside = _root(measured)
    found = []
    for depth in range(last + 1):
        whole = combined(up[depth], outside)
        found.append(Fit(*whole, *outside))
        if depth < last:
            mean, variance = combined(outside, _own(measured, depth))
            first, second, two = splits.children[depth], _second(splits, depth), splits.two[depth]
            means, variances = up[depth + 1]
            below = np.empty(len(means)), np.empty(len(means))
            for child, sibling in ((first, second), (second[two], first[two])):
                chosen = two if child is first else two[two]
                at = slice(None) if child is first else two
                below[0][child] = mean[at] - np.where(chosen, means[sibling], 0.0)
                below[1][child] = variance[at] + np.where(chosen, variances[sibling], 0.0)
            outside = below
    return tuple(found)


def subtree_estimates(measured: TreeMeasurements, splits: Splits) -> list[Estimate]:
    """What the measurements at and below each node say about its count, depth by depth; all of the tree's depths."""
    up: list[Estimate] = [_own(measured, splits.depth)]
    for depth in range(splits.depth - 1, -1, -1):
        means, variances = up[0]
        first, second = splits.children[depth], _second(splits, depth)
        summed = means[first] + np.where(splits.two[depth], means[second], 0.0)
        spread = variances[first] + np.where(splits.two[depth], variances[second], 0.0)
        up.insert(0, combined(_own(measured, depth), (summed, spread)))
    return up


def combined(one: Estimate, other: Estimate) -> Estimate:
    """Both estimates together, by inverse variances; one without variance is the truth."""
    mean, variance = one
    share = np.where(np.isinf(variance), 0.0, np.where(np.isinf(other[1]), 1.0, 0.0))
    finite = np.isfinite(variance) & np.isfinite(other[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(finite, np.where(variance == 0.0, 1.0, other[1] / (variance + other[1])), share)
        smaller = np.where(finite, share * variance, np.minimum(variance, other[1]))
    return share * mean + (1.0 - share) * other[0], smaller


def _own(measured: TreeMeasurements, depth: int) -> Estimate:
    nodes = measured.tree.nodes(depth)
    return measured.estimates(depth) or (np.zeros(nodes), np.full(nodes, np.inf))


def _root(measured: TreeMeasurements) -> Estimate:
    """What is known of the tree's total from elsewhere: n, less the special cells."""
    if measured.total is None:
        return np.zeros(1), np.full(1, np.inf)
    variance = 0.0 if measured.special_noise is None else len(measured.special) * noise_variance(measured.special_noise)
    return np.array([float(measured.total - sum(measured.special))]), np.array([variance])


def _second(splits: Splits, depth: int) -> NDArray[np.int64]:
    """The second child, or where there is none the first."""
    return splits.children[depth] + splits.two[depth]
