"""Profile of the smoothed histogram: independent draws from a mixture of the histogram and the uniform.

Symbols: s `weight` of the uniform, c = (1 - s)/n the mass of one record, a and b the masses of the two bins between which a
neighbour moves it, in the mixture of the n - 1 records that the neighbours share. Enumeration:
tests/exact/test_noise_profiles.py.
"""

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.laws.divergences import rounded_up
from privurn.privacy.laws.noise import SMALLEST_DELTA, SymmetricProfile, check_whole
from privurn.privacy.profile import ROUND_UP

EXHAUSTIVE = 200
"""Up to this many confidential records the search over their splits between two bins always comes to its end."""

MOST_BLOCKS = 2 * EXHAUSTIVE

LOSS_UP = 1.0 + 2.0**-49
"""Losses are raised by this, which covers the rounding of their logarithm and its argument."""


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogramProfile(SymmetricProfile):
    """`records` independent draws from (1 - s) histogram + s uniform over `bins` bins, s = `weight`, after n records.

    Merging bins is post-processing, so the divergence between neighbours falls in a and in b, and with three bins or more it
    is largest at a = b = s/bins. There the log ratio is W log(1 + c/a), W the difference of the two bins' counts: a sum of
    draws from {1, 0, -1} with probabilities a + c, 1 - 2a - c, a. Hence delta(epsilon) = E (1 - e^epsilon (1 + c/a)^-W)_+ ;
    pure epsilon-DP holds from m log(1 + (1 - s) bins/(n s)) on.

    Two bins leave no mass elsewhere: the divergence is that of binomial(m, a + c) from binomial(m, a), and the profile is its
    maximum over the splits of the common records, exact up to EXHAUSTIVE of them and an upper bound from branch and bound
    above (`tight` is False). One bin tells nothing.
    """

    n: int
    bins: int
    records: int
    weight: float

    def __post_init__(self) -> None:
        if self.neighbouring != "replace-one":
            raise ModelError("the smoothed histogram is accounted for under replace-one only.", hint="Its n is public")
        check_whole("n", self.n)
        check_whole("bins", self.bins)
        check_whole("records", self.records)
        if not 0.0 < self.weight <= 1.0:
            raise ModelError("weight must lie in (0, 1].", hint="The share of the uniform, for example weight=0.1")

    @property
    def tight(self) -> bool:
        """False only for two bins and many records."""
        return self.bins != 2 or self.n <= EXHAUSTIVE

    @property
    def pure_epsilon(self) -> float:
        """Reached when all m draws fall on one bin: m log(1 + (1 - s) bins/(n s))."""
        if self.bins == 1 or self.weight == 1.0:
            return 0.0
        return self.records * self._step * ROUND_UP

    @property
    def _step(self) -> float:
        return math.log1p((1.0 - self.weight) * self.bins / (self.n * self.weight))

    def _divergence(self, epsilon: float) -> float:
        if self.bins == 2:
            return _two_bin_divergence(self.n, self.records, self.weight, epsilon)
        law = _difference_law(self.records, self.weight / self.bins, (1.0 - self.weight) / self.n)
        first = math.floor(epsilon / self._step)
        losses = self._step * np.arange(first, law.size)
        gains = -np.expm1(np.minimum(0.0, epsilon - losses * LOSS_UP))
        return rounded_up(float(law[first:] @ gains), steps=law.size) + SMALLEST_DELTA


@lru_cache(maxsize=64)
def _difference_law(m: int, a: float, c: float) -> NDArray[np.float64]:
    """P(W = w) for w = 0, 1, ...: W a sum of m draws of 1, 0, -1 with probabilities p = a + c, r and q = a.

    The coefficients g of (p z + r + q/z)^m obey p (m - w + 1) g(w-1) = r w g(w) + q (m + w + 1) g(w+1), which gives the ratios
    g(w)/g(w-1) from the top down with positive terms only, and g(-w) = (q/p)^w g(w). The top is m, or so far out that less
    than 1e-300 lies above; there the ratio starts from its slowly varying limit, whose error dies out on the way down.
    """
    p, q = a + c, a
    r = max(0.0, 1.0 - p - q)
    top = min(m, math.ceil(m * c + 45.0 * math.sqrt(m * (p + q)) + 250.0))
    ratio = 0.0
    if top < m:
        linear = r * (top + 1.0)
        product = 4.0 * p * q * (m - top) * (m + top + 2.0)
        ratio = 2.0 * p * (m - top) / (linear + math.sqrt(linear * linear + product))
    ratios = np.empty(top)
    for w in range(top, 0, -1):
        ratio = p * (m - w + 1.0) / (r * w + q * (m + w + 1.0) * ratio)
        ratios[w - 1] = ratio
    mode = int(np.count_nonzero(ratios > 1.0))
    weights = np.empty(top + 1)
    weights[mode:] = np.cumprod(np.concatenate(([1.0], ratios[mode:])))
    weights[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    below = weights[1:] * np.exp(-math.log1p(c / a) * np.arange(1.0, top + 1.0))
    law: NDArray[np.float64] = weights / (weights.sum() + below.sum())
    return law


def _binomial_divergence(m: int, a: float, b: float, c: float, epsilon: float) -> float:
    """Divergence of m draws with odds a + c : b from m draws with odds a : b + c, from the mode outwards.

    By Bennett's inequality less than 1e-300 lies beyond 45 standard deviations and 250 of the mean.
    """
    share = (a + c) / (a + b + c)
    spread = 45.0 * math.sqrt(m * share * b / (a + b + c)) + 250.0
    low, high = max(0, math.floor(m * share - spread)), min(m, math.ceil(m * share + spread))
    counts = np.arange(low, high + 1.0)
    ratios = (m - counts[:-1]) / (counts[:-1] + 1.0) * ((a + c) / b)
    mode = int(np.count_nonzero(ratios > 1.0))
    up = np.cumprod(np.concatenate(([1.0], ratios[mode:])))
    down = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    probabilities = np.concatenate((down, up))
    losses = counts * math.log1p(c / a) * LOSS_UP - (m - counts) * math.log1p(c / b) / LOSS_UP
    positive = probabilities @ -np.expm1(np.minimum(0.0, epsilon - losses))
    return rounded_up(float(positive / probabilities.sum()), steps=probabilities.size) + SMALLEST_DELTA


@lru_cache(maxsize=8192)
def _two_bin_divergence(n: int, m: int, weight: float, epsilon: float) -> float:
    """Largest divergence over the splits i : n - 1 - i of the common records, by branch and bound; i -> n-1-i swaps the order.

    For lo <= i <= hi it is at most that with a taken at lo and b at hi and the rest c (hi - lo) in a third bin, and that
    grows when the third bin's draws are spent on the two instead. What the queue still holds after MOST_BLOCKS steps is
    returned as it stands: an upper bound.
    """
    c = (1.0 - weight) / n

    def bound(lo: int, hi: int) -> float:
        return _binomial_divergence(m, 0.5 * weight + c * lo, 0.5 * weight + c * (n - 1 - hi), c, epsilon)

    best = max(bound(0, 0), bound(n - 1, n - 1))
    queue = [(-bound(0, n - 1), 0, n - 1)]
    for _ in range(MOST_BLOCKS):
        top, lo, hi = queue[0]
        if -top <= best:
            return best
        heapq.heappop(queue)
        if lo == hi:
            best = max(best, -top)
        else:
            middle = (lo + hi) // 2
            heapq.heappush(queue, (-bound(lo, middle), lo, middle))
            heapq.heappush(queue, (-bound(middle + 1, hi), middle + 1, hi))
        if not queue:
            return best
    return max(best, -queue[0][0])
