"""Peers that publish noisy counts of ordered cells: flat, hierarchical (HB), and on a partition learnt in private (DAWA).

All return numbers that may be negative. Noise is discrete Laplace or discrete Gaussian, whichever has the smaller deviation at
the guarantee. Written from the papers, for comparison; none of it is a release.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from privurn.privacy.additive_noise import NoiseKind, noise_deviation, simulated_noise
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise
from privurn.privacy.noisy_tree_calibration import smallest_tree_scales
from privurn.privacy.profile import Guarantee

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

PARTITION_SHARE = 0.25
"""Of DAWA's budget for the partition, as in its paper."""


@cache
def least_noise(levels: int, guarantee: Guarantee) -> tuple[NoiseKind, float]:
    """Kind and scale of the noise with which all counts of so many levels can be told."""
    kinds: tuple[TreeNoise, ...] = ("discrete-laplace", "discrete-gaussian")
    made: list[tuple[NoiseKind, float]] = []
    for noise in kinds[: 1 if guarantee.delta == 0.0 else 2]:
        scales, _ = smallest_tree_scales(noise=noise, precisions=(1.0 / levels,) * levels, guarantee=guarantee)
        made.append((KINDS[noise], scales[0]))
    return min(made, key=lambda each: noise_deviation(noise=each[0], scale=each[1]))


def flat_counts(counts: Whole, guarantee: Guarantee, rng: np.random.Generator) -> Floats:
    """Noise on every cell."""
    kind, scale = least_noise(1, guarantee)
    return (counts + simulated_noise(counts.shape, noise=kind, scale=scale, rng=rng)).astype(np.float64)


def branching(cells: int) -> tuple[int, int]:
    """Branching and height with the least mean variance of ranges (Qardaji, Yang and Li 2013, equation 3)."""
    found = []
    for b in range(2, cells + 1):
        height = int(np.ceil(np.log(cells) / np.log(b) - 1e-9))
        found.append(((b - 1) * height**3 - 2.0 * (b + 1) * height**2 / 3.0, b, height))
        if height == 1:
            break
    return min(found)[1:]


def hierarchical_counts(counts: Whole, guarantee: Guarantee, rng: np.random.Generator, *, total: int | None = None) -> Floats:
    """HB: every level of a tree with equal shares, made consistent by least squares (Hay et al. 2010); `total` where known."""
    b, height = branching(len(counts)) if len(counts) > 1 else (2, 1)
    padded = np.zeros(b**height)
    padded[: len(counts)] = counts
    levels = [padded.reshape(b**level, -1).sum(axis=1) for level in range(1, height + 1)]
    kind, scale = least_noise(height, guarantee)
    noisy = [each + simulated_noise(each.shape, noise=kind, scale=scale, rng=rng) for each in levels]
    own = noise_deviation(noise=kind, scale=scale) ** 2
    up, variance = [noisy[-1]], own
    for each in reversed(noisy[:-1]):
        below, spread = up[0].reshape(-1, b).sum(axis=1), b * variance
        share = spread / (own + spread)
        up.insert(0, share * each + (1.0 - share) * below)
        variance = own * share
    down = np.array([up[0].sum() if total is None else float(total)])
    for each in up:
        groups = each.reshape(-1, b)
        down = (groups + (down - groups.sum(axis=1))[:, None] / b).ravel()
    return np.asarray(down[: len(counts)], np.float64)


def partition(counts: Whole, epsilon: float, rng: np.random.Generator, *, noise_below: float, moved: int) -> Whole:
    """First cells of the buckets of a private partition into lengths that are powers of two (Li, Hay and Miklau 2014).

    A bucket costs the L1 deviation of its counts from their mean, with noise, and what noise on its sum will cost. Only the
    partition of least cost is told. Its buckets are disjoint, so that a record moves `moved` of them; a deviation moves by less
    than 2, and the same shift of the noise of the buckets that are chosen undoes it, whatever happens to all others.
    """
    cells = len(counts)
    scale = 4.0 * moved / epsilon
    lengths = [1 << i for i in range(cells.bit_length()) if 1 << i <= cells]
    costs = []
    for length in lengths:
        windows = sliding_window_view(counts, length)
        dev = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
        if length > 1:
            dev = np.maximum(dev + rng.laplace(0.0, scale, len(dev)), 0.0)
        costs.append(dev + noise_below)
    best, chosen = np.full(cells + 1, np.inf), np.zeros(cells + 1, np.int64)
    best[0] = 0.0
    for end in range(1, cells + 1):
        for length, cost in zip(lengths, costs, strict=True):
            if length > end:
                break
            whole = best[end - length] + cost[end - length]
            if whole < best[end]:
                best[end], chosen[end] = whole, length
    starts, at = [], cells
    while at > 0:
        at -= int(chosen[at])
        starts.append(at)
    return np.array(starts[::-1], np.int64)


def partitioned_counts(
    counts: Whole, guarantee: Guarantee, rng: np.random.Generator, *, total: int | None = None
) -> tuple[Floats, Floats]:
    """DAWA at delta = 0: buckets' noisy sums, spread evenly over their cells; with flat noise, and with a hierarchy of sums."""
    moved = 1 if guarantee.neighbouring == "add-remove" else 2
    rest = replace(guarantee, epsilon=(1.0 - PARTITION_SHARE) * guarantee.epsilon)
    first = PARTITION_SHARE * guarantee.epsilon
    starts = partition(counts, first, rng, noise_below=moved / rest.epsilon, moved=moved)
    sums, sizes = np.add.reduceat(counts, starts), np.diff(np.append(starts, len(counts)))
    flat = flat_counts(sums, rest, rng)
    tree = hierarchical_counts(sums, rest, rng, total=total)
    return np.repeat(flat / sizes, sizes), np.repeat(tree / sizes, sizes)
