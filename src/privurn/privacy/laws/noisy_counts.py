"""Profile of a histogram whose counts are published with independent noise.

A replaced record lowers one count by one and raises another by one, so the release moves in two coordinates at once and the
privacy losses of two one-coordinate releases add. All noise here is symmetric, so both coordinates have the same loss
law and both orders of a pair of neighbours the same divergence. A record added or removed moves one coordinate. Proofs:
docs/proofs/histograms.md; enumeration: tests/exact/test_histogram_mechanisms.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from privurn.errors import ModelError
from privurn.privacy.laws.noise import (
    LARGEST_EXACT_SCALE,
    LEAST_SCALE,
    LOSS_MARGIN,
    SMALLEST_DELTA,
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    SymmetricProfile,
    check_positive,
    check_whole,
    density_up,
    loss_above,
    ratio_up,
)
from privurn.privacy.profile import ROUND_UP

Noise = Literal["laplace", "discrete-laplace", "discrete-gaussian"]

STEPS: Mapping[Noise, int] = {"laplace": 1024, "discrete-laplace": 1, "discrete-gaussian": 1}
"""Lattice points between two whole counts. "laplace" is two-sided geometric noise on multiples of 1/1024: exact in integers,
where a floating-point Laplace draw is not."""


@dataclass(frozen=True, kw_only=True)
class NoisyCountsProfile(SymmetricProfile):
    """`cells` counts, each with independent noise of the given `scale` (standard deviation for discrete-gaussian).

    Replace-one, two cells or more: delta(epsilon) = E (1 - e^(epsilon - L))_+, L the sum of two independent losses.

    laplace, discrete-laplace: with D lattice steps to a count, t = scale D, r = e^(-1/t) and w = (1 - r)/(1 + r), L is
    2 (D - K)/t with P(K = 0) = 1/(1 + r)^2 and P(K) = w r^K (2/(1 + r) + (K - 1) w) for 0 < K < D, which are all the
    positive values of L. Pure epsilon-DP holds from 2/scale on.

    discrete-gaussian: L = (1 + J)/scale^2 with P(J) proportional to e^(-J^2/(4 scale^2)) T(J), T(J) the sum of
    e^(-(k - J/2)^2/scale^2) over the integers k, one number for even J and another for odd J.

    Add-remove: the same noise on one integer. One cell under replace-one: the count is the public n, and delta = 0.
    """

    cells: int
    noise: Noise
    scale: float

    def __post_init__(self) -> None:
        if self.noise not in STEPS:
            raise ModelError(f"the noise {self.noise!r} is not known.", hint=", ".join(STEPS))
        check_positive("scale", self.scale)
        check_whole("cells", self.cells)

    @property
    def moved(self) -> int:
        """Counts that a neighbour changes, by one each."""
        if self.neighbouring == "add-remove":
            return 1
        return 2 if self.cells > 1 else 0

    @property
    def tight(self) -> bool:
        """Neighbours attain it, but for discrete Gaussian noise of a very large scale."""
        return self.noise != "discrete-gaussian" or self.scale <= LARGEST_EXACT_SCALE

    @property
    def pure_epsilon(self) -> float:
        """1/scale for each count that moves; infinite for Gaussian noise."""
        if self.moved == 0:
            return 0.0
        return math.inf if self.noise == "discrete-gaussian" else ratio_up(float(self.moved), self.scale)

    @property
    def zcdp(self) -> float:
        """1/(2 scale^2) for each count that moves: Gaussian noise by its moments, the others because e0-DP is e0^2/2-zCDP."""
        return 0.5 * self.moved / (self.scale * self.scale) * ROUND_UP

    def _divergence(self, epsilon: float) -> float:
        steps = STEPS[self.noise]
        if self.moved == 1:
            if self.noise == "discrete-gaussian":
                return DiscreteGaussianProfile(scale=self.scale)._divergence(epsilon)
            return DiscreteLaplaceProfile(scale=self.scale * steps, sensitivity=steps)._divergence(epsilon)
        if self.noise == "discrete-gaussian":
            return _two_gaussians(self.scale, epsilon)
        return _two_geometrics(self.scale, steps, epsilon)


def _two_geometrics(scale: float, steps: int, epsilon: float) -> float:
    """Divergence of two coordinates moved by `steps` under two-sided geometric noise, 0 <= epsilon < 2/scale."""
    rate = 1.0 / (scale * steps)
    r = math.exp(-rate)
    w = -math.expm1(-rate) / (1.0 + r)
    gap = loss_above(2.0, scale, epsilon)
    last = min(steps - 1, max(0, math.ceil(0.5 * gap * scale * steps) - 1))
    k = np.arange(last + 1, dtype=np.float64)
    probabilities = w * np.exp(-rate * k) * (2.0 / (1.0 + r) + (k - 1.0) * w)
    probabilities[0] = 1.0 / (1.0 + r) ** 2
    return float(probabilities @ np.maximum(0.0, -np.expm1(2.0 * rate * k - gap)))


@lru_cache(maxsize=256)
def _shifted_sums(scale: float) -> tuple[float, float, float]:
    """Sums over the integers of e^(-k^2/(2 s^2)), e^(-k^2/s^2), e^(-(k - 1/2)^2/s^2); from s = 3 on integrals, up to 1e-38."""
    if scale >= 3.0:
        half = scale * math.sqrt(math.pi)
        return half * math.sqrt(2.0), half, half
    reach = range(1, 130)
    whole = 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (k / scale) ** 2) for k in reach)
    even = 1.0 + 2.0 * math.fsum(math.exp(-((k / scale) ** 2)) for k in reach)
    odd = 2.0 * math.fsum(math.exp(-(((k - 0.5) / scale) ** 2)) for k in reach)
    return whole, even, odd


def _two_gaussians(scale: float, epsilon: float) -> float:
    """Divergence of two coordinates moved by one under discrete Gaussian noise, term by term with the tail bounded."""
    wide = math.sqrt(2.0) * scale
    if scale < LEAST_SCALE:
        return 1.0
    if scale > LARGEST_EXACT_SCALE:  # the sum of two such noises is one of scale sqrt 2 times that, up to 1e-38
        return DiscreteGaussianProfile(scale=math.nextafter(wide, 0.0), sensitivity=2)._divergence(epsilon)
    variance = scale * scale
    start = math.floor(max(epsilon * variance - 1.0, -40.0 * wide))  # less than 1e-300 lies below -40 standard deviations
    centre = max(0, start)
    x = centre / wide
    stop = centre + math.ceil(wide * (math.sqrt(x * x + 100.0) - x)) + 2
    j = np.arange(start, stop, dtype=np.float64)
    whole, even, odd = _shifted_sums(scale)
    relative = np.exp(-(j - centre) * (j + centre) / (4.0 * variance)) * np.where(j % 2.0 == 0.0, even, odd)
    with np.errstate(over="ignore"):  # a loss far below epsilon: infinite, and then cut at 0
        terms = relative * np.maximum(0.0, -np.expm1(epsilon * LOSS_MARGIN - (1.0 + j) / variance))
    tail = even * math.exp(-(stop - centre) * (stop + centre) / (4.0 * variance)) / -math.expm1(-0.5 * stop / variance)
    return float(terms.sum() + tail) * density_up(x) / (whole * whole) + SMALLEST_DELTA
