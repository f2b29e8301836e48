"""The law of the privacy loss behind a profile, rounded up to a lattice.

Every profile is a supremum over both orders of its neighbours, hence convex in E = e^epsilon, and symmetric: it is the
divergence of one dominating pair (P, Q). The law of log P/Q is brought to a lattice by connecting the dots (Doroshenko et al.
2022): between lattice points the profile is replaced by its chords in E, which lie above it. Only epsilon >= 0 is asked;
the other half is the mirror image. Enumeration: tests/exact/test_composition.py.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.profile import LARGEST_EPSILON, PrivacyProfile

POINTS = 1000
"""Lattice steps from 0 to the largest loss that matters; the composed epsilon is then too large by about 1e-5 of itself."""

NEGLIGIBLE_TAIL = 1e-20
"""Losses beyond a delta this far above the floor count as infinite: their delta is added to every composed one."""

FLAT = 1e-9
"""Where the profile falls by less than this share it is taken constant, without asking it again."""


class LossLaw(NamedTuple):
    """Law of log P/Q on the lattice: `probabilities` at `interval` times the integers `steps`, the rest infinite."""

    interval: float
    steps: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    infinity: float


def largest_loss(profile: PrivacyProfile, *, tail: float = NEGLIGIBLE_TAIL) -> float:
    """An epsilon, at most a tenth too large, above which delta exceeds the floor by less than `tail`, or the pure epsilon."""
    limit = min(profile.pure_epsilon, LARGEST_EPSILON)
    target = profile.floor * (1.0 + FLAT) + tail
    if limit == 0.0 or profile.delta(0.0) <= target:
        return 0.0
    high = min(1.0, limit)
    low = high / 2.0
    if profile.delta(high) > target:
        seen = {}
        while high < limit and profile.delta(high) > target:
            seen[profile.delta(high)] = high
            low, high = high, min(2.0 * high, limit)
        if high == limit and math.isinf(profile.pure_epsilon) and profile.delta(high) > target:
            seen[profile.delta(high)] = high
            return seen[min(seen)]  # a bound that stays above its own floor: stop where it is lowest
    else:
        while low > 1e-12 and profile.delta(low) <= target:
            low, high = low / 2.0, low
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if profile.delta(middle) > target else (low, middle)
    return high


def _lattice_deltas(profile: PrivacyProfile, interval: float, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Upper bounds of delta at interval * steps, non-increasing, halving until two neighbours agree."""

    def at(i: int) -> float:
        epsilon = interval * int(steps[i])
        return 0.0 if epsilon >= profile.pure_epsilon else profile.delta(epsilon)

    last = steps.size - 1
    deltas = np.empty(last + 1)
    deltas[0], deltas[last] = at(0), at(last)
    pending = [(0, last)]
    while pending:
        lo, hi = pending.pop()
        if hi - lo < 2:
            continue
        if deltas[lo] - deltas[hi] <= FLAT * deltas[hi]:
            deltas[lo + 1 : hi] = deltas[lo]
            continue
        middle = (lo + hi) // 2
        deltas[middle] = at(middle)
        pending += [(lo, middle), (middle, hi)]
    lowest: NDArray[np.float64] = np.minimum.accumulate(deltas)
    return lowest


def _lower_envelope(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Corners of the largest convex function below the points: still no smaller than a convex function below them all."""
    hull: list[int] = []
    for i in range(x.size):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


def loss_law(profile: PrivacyProfile, *, interval: float, points: int = POINTS, tail: float = NEGLIGIBLE_TAIL) -> LossLaw:
    """Lattice law whose divergences are nowhere below the profile.

    With slopes s_j of the chords in E = e^epsilon, the loss epsilon_j has probability E_j (s_(j-1) - s_j), and its mirror
    image -epsilon_j that divided by E_j; loss 0 takes what is left.
    """
    largest = largest_loss(profile, tail=tail)
    last = math.ceil(largest / interval * (1.0 - 1e-12))
    if last == 0:
        infinity = min(1.0, profile.delta(0.0))
        return LossLaw(interval, np.zeros(1, np.int64), np.array([1.0 - infinity]), infinity)
    while interval * last < largest:  # the pure epsilon itself must be reached
        last += 1
    stride = max(1, last // (4 * points))
    steps = np.unique(np.append(np.arange(0, last, stride), last))
    deltas = _lattice_deltas(profile, interval, steps)
    corners = _lower_envelope(np.exp(interval * steps), deltas)
    losses, deltas, steps = interval * steps[corners], deltas[corners], steps[corners]
    gaps = np.diff(losses)
    falls = -np.diff(deltas)
    # E_j s_(j-1) and E_j s_j, free of large powers
    reaching = falls / -np.expm1(-gaps)
    leaving = np.append(falls[1:] / np.expm1(gaps[1:]), 0.0)
    rounding = 4.0 * 2.0**-52 * (steps.size + 8)
    above = np.maximum(0.0, reaching - leaving) * (1.0 + rounding)
    below = above * np.exp(-losses[1:])
    infinity = float(deltas[-1])
    centre = max(0.0, 1.0 - infinity - float(above.sum() + below.sum())) + rounding
    return LossLaw(
        interval,
        np.concatenate((-steps[:0:-1], [0], steps[1:])),
        np.concatenate((below[::-1], [centre], above)),
        infinity,
    )


def privacy_loss_distribution(profile: PrivacyProfile, *, interval: float | None = None, points: int = POINTS) -> Any:
    """dp-accounting's PrivacyLossDistribution of a profile, pessimistic, for use beside its own ones.

    `interval` is the lattice step, by default a `points`-th of the largest loss that matters. One distribution stands for both
    orders of the neighbours.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    step = interval or (largest_loss(profile) or 1.0) / points
    law = loss_law(profile, interval=step, points=points)
    masses = dict(zip(law.steps.tolist(), law.probabilities.tolist(), strict=True))
    return PrivacyLossDistribution(pld_pmf.create_pmf(masses, step, law.infinity, True))
