"""Profiles of the ordinary mechanisms: additive noise, randomised response, exponential mechanism.

They share one type with the urns, so that a plan may mix them. Every profile is a supremum over both orders of each pair of
neighbours. Since H_{1/E}(P || Q) = 1 - 1/E + H_E(Q || P)/E for any pair, such a supremum obeys

    delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon),

so only epsilon >= 0 has to be worked out. Enumeration: tests/exact/test_noise_profiles.py.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np

from privurn.errors import ModelError
from privurn.privacy.profile import ROUND_UP, Neighbouring, PrivacyProfile

SMALLEST_DELTA = 1e-300
"""Stands for a positive delta that a float cannot hold: an exact zero is never claimed where there is none."""

LOSS_MARGIN = 1.0 - 2.0**-51
"""An epsilon is lowered by this before losses are compared with it: more than the rounding of a loss that it could tell."""

LEAST_SCALE = 1e-100
"""Below this the square of a discrete Gaussian's scale leaves the floats, and there is no noise to speak of: delta is 1."""

LARGEST_EXACT_SCALE = 20_000.0
"""Above this the discrete Gaussian's sum is replaced by an integral plus a bound on the largest term: never smaller."""


def mirrored(delta: float, *, epsilon: float) -> float:
    """delta(-epsilon) from delta(epsilon), for epsilon >= 0 and a profile over both orders of its neighbours."""
    return min(1.0, (-math.expm1(-epsilon) + math.exp(-epsilon) * delta) * ROUND_UP)


def check_positive(name: str, value: float) -> None:
    """Insist on a positive finite number."""
    if not (value > 0.0 and math.isfinite(value)):
        raise ModelError(f"{name} must be positive and finite.", hint=f"For example {name}=1")


def check_whole(name: str, value: float) -> None:
    """Insist on a positive whole number."""
    if int(value) != value or value < 1:
        raise ModelError(f"{name} must be a positive whole number.", hint=f"For example {name}=2")


@lru_cache(maxsize=4096)
def ratio_up(numerator: float, denominator: float) -> float:
    """Smallest float that is at least the quotient."""
    quotient = numerator / denominator
    if math.isinf(quotient):
        return quotient
    while Fraction(quotient) * Fraction(denominator) < Fraction(numerator):  # twice for whole numbers beyond 2**53
        quotient = math.nextafter(quotient, math.inf)
    return quotient


@lru_cache(maxsize=4096)
def _quotient_excess(numerator: float, denominator: float) -> float:
    """Upper bound of numerator/denominator less its rounded-up float: at most 0, and to full precision."""
    quotient = ratio_up(numerator, denominator)
    remainder = Fraction(0) if math.isinf(quotient) else Fraction(numerator) / Fraction(denominator) - Fraction(quotient)
    return math.nextafter(float(remainder), math.inf) if remainder else 0.0


def loss_above(numerator: float, denominator: float, epsilon: float) -> float:
    """numerator/denominator - epsilon, for 0 <= epsilon below the quotient: at least the truth, and close however small.

    The difference of two floats is exact within a factor of two, and off by half a last digit elsewhere; what rounding had
    added to the quotient is then taken off again.
    """
    gap = (ratio_up(numerator, denominator) - epsilon) + _quotient_excess(numerator, denominator)
    return max(math.ulp(0.0), gap * (1.0 + 2.0**-50))


@dataclass(frozen=True, kw_only=True)
class SymmetricProfile(PrivacyProfile):
    """A profile given by its divergence at epsilon >= 0; negative epsilon follows from the identity above.

    `neighbouring` is the relation under which the sensitivity (or epsilon0, rho, ...) was stated.
    """

    neighbouring: Neighbouring = "replace-one"

    @property
    def tight(self) -> bool:
        """Whether some pair of neighbours attains delta at every epsilon, as against a proved upper bound."""
        return True

    @abstractmethod
    def _divergence(self, epsilon: float) -> float:
        """Largest divergence at 0 <= epsilon < pure_epsilon, before rounding up."""

    def delta(self, epsilon: float) -> float:
        """Smallest delta, rounded up."""
        if epsilon < 0.0:
            return mirrored(self.delta(-epsilon), epsilon=-epsilon)
        if epsilon >= self.pure_epsilon:
            return 0.0
        return min(1.0, max(SMALLEST_DELTA, self._divergence(float(epsilon)) * ROUND_UP))


@dataclass(frozen=True, kw_only=True)
class AdditiveNoiseProfile(SymmetricProfile):
    """Noise of a `scale` on what a neighbour moves by at most `sensitivity`."""

    scale: float
    sensitivity: float = 1.0
    whole: ClassVar[bool] = False
    """Whether it is on whole numbers."""

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        if self.whole:
            check_whole("sensitivity", self.sensitivity)
        else:
            check_positive("sensitivity", self.sensitivity)


@dataclass(frozen=True, kw_only=True)
class LaplaceProfile(AdditiveNoiseProfile):
    """Laplace(scale) noise added to one number that a neighbour changes by at most `sensitivity`.

    With e0 = sensitivity/scale: delta(epsilon) = 1 - e^((epsilon - e0)/2) for 0 <= epsilon <= e0, and 0 from e0 on. Numbers
    released together are composed: a histogram in which a neighbour moves one record is two of these.
    """

    @property
    def pure_epsilon(self) -> float:
        """sensitivity/scale."""
        return ratio_up(self.sensitivity, self.scale)

    def _divergence(self, epsilon: float) -> float:
        return -math.expm1(-0.5 * loss_above(self.sensitivity, self.scale, epsilon))


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceProfile(LaplaceProfile):
    """Two-sided geometric noise, P(k) proportional to e^(-|k|/scale), added to one integer that changes by at most D.

    With r = e^(-1/scale), D = `sensitivity`, g = D/scale - epsilon and J the largest j with g > 2j/scale: an attacker says
    "below" up to J, and delta = (1 - e^-g + (1 - r^J) (r - e^-g r^-J)) / (1 + r), where every factor is positive. Pure
    epsilon-DP from D/scale on. Proof: docs/proofs/channels.md, section 2.
    """

    sensitivity: int = 1
    whole: ClassVar[bool] = True

    def _divergence(self, epsilon: float) -> float:
        step = 1.0 / self.scale
        r = math.exp(-step)
        gap = loss_above(self.sensitivity, self.scale, epsilon)
        last = math.ceil(0.5 * min(gap * self.scale, self.sensitivity)) - 1
        inner = math.expm1(-last * step) * r * math.expm1((last + 1) * step - gap) if last > 0 else 0.0
        return (-math.expm1(-gap) + max(0.0, inner)) / (1.0 + r)


def density_up(x: float) -> float:
    """e^(-x^2/2), raised by more than what the rounding of a quotient x does to it."""
    return math.exp(-0.5 * x * x) * (1.0 + 2.0**-51 * x * x)


@cache
def _legendre() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.legendre.leggauss(12)
    return nodes.tolist(), weights.tolist()


def gaussian_divergence(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) without cancellation (Balle and Wang 2018).

    With x = epsilon/mu, h = mu/2 and M the Mills ratio it equals phi(x - h) (M(x - h) - M(x + h)), because
    phi(x - h) = e^epsilon phi(x + h). For small h the difference is the integral of -M'(t) = 1 - t M(t) > 0.
    """
    from scipy.special import erfcx, ndtr

    x, h = epsilon / mu, 0.5 * mu
    start = x - h
    half_density = 0.5 * math.exp(-0.5 * start * start)
    if start < -5.0:  # the second term is below 1e-5 of the first
        return float(ndtr(-start)) - half_density * float(erfcx((x + h) / math.sqrt(2.0)))
    half_density *= 1.0 + 2.0**-51 * abs(start) * (x + h)  # a last digit of mu moves the exponent by that much of itself
    if h > 0.25:
        return half_density * float(erfcx(start / math.sqrt(2.0)) - erfcx((x + h) / math.sqrt(2.0)))
    slope = 0.0
    for node, weight in zip(*_legendre(), strict=True):
        t = x + h * node
        slope += weight * (1.0 - t * math.sqrt(0.5 * math.pi) * float(erfcx(t / math.sqrt(2.0))))
    return half_density * math.sqrt(2.0 / math.pi) * h * slope


@dataclass(frozen=True, kw_only=True)
class GaussianProfile(AdditiveNoiseProfile):
    """Gaussian noise of standard deviation `scale` on a number or vector that moves by at most `sensitivity` (Euclidean).

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), mu = sensitivity/scale.
    """

    @property
    def zcdp(self) -> float:
        """mu^2 / 2."""
        return 0.5 * (self.sensitivity / self.scale) ** 2 * ROUND_UP

    def _divergence(self, epsilon: float) -> float:
        return gaussian_divergence(self.sensitivity / self.scale, epsilon)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianProfile(GaussianProfile):
    """Integer noise, P(k) proportional to e^(-k^2/(2 scale^2)), added to one integer that changes by at most `sensitivity`.

    delta(epsilon) = sum over j of P(j) (1 - e^(epsilon - D (D + 2j)/(2 scale^2)))_+, D = sensitivity, summed term by term
    with the tail bounded by a geometric series. Above LARGEST_EXACT_SCALE the log-concave summand is bounded by its integral
    (the Gaussian profile) plus a bound on its largest term, and `tight` is False. delta need not fall in the scale.
    """

    sensitivity: int = 1
    whole: ClassVar[bool] = True

    @property
    def tight(self) -> bool:
        """The sum is exact up to LARGEST_EXACT_SCALE."""
        return self.scale <= LARGEST_EXACT_SCALE

    def _divergence(self, epsilon: float) -> float:
        scale, shift = self.scale, self.sensitivity
        if scale < LEAST_SCALE:
            return 1.0
        variance = scale * scale
        crossing = epsilon * variance / shift - 0.5 * shift  # the summand is positive above it
        if not self.tight:
            slope = shift / variance
            peak = 0.5 * (crossing + math.hypot(crossing, 2.0 * scale))
            linear = math.exp(-0.5 * (peak / scale) ** 2) * slope * (peak - crossing)  # 1 - e^-x <= x, and its maximum
            largest = min(linear, math.exp(-0.5 * (max(0.0, crossing) / scale) ** 2))  # 1 - e^-x <= 1
            return gaussian_divergence(shift / scale, epsilon) + largest / (scale * math.sqrt(2.0 * math.pi))
        start = math.floor(max(crossing, -40.0 * scale))  # less than 1e-300 lies below -40 standard deviations
        centre = max(0, start)
        x = centre / scale
        stop = centre + math.ceil(scale * (math.sqrt(x * x + 100.0) - x)) + 2
        j = np.arange(start, stop, dtype=np.float64)
        relative = np.exp(-(j - centre) * (j + centre) / (2.0 * variance))
        with np.errstate(over="ignore"):  # a loss far below epsilon: infinite, and then cut at 0
            terms = relative * np.maximum(0.0, -np.expm1(epsilon * LOSS_MARGIN - shift * (shift + 2.0 * j) / (2.0 * variance)))
        tail = math.exp(-(stop - centre) * (stop + centre) / (2.0 * variance)) / -math.expm1(-stop / variance)
        return float(terms.sum() + tail) * density_up(x) / _normaliser(scale) + SMALLEST_DELTA


@lru_cache(maxsize=256)
def _normaliser(scale: float) -> float:
    """Sum of e^(-k^2/(2 scale^2)) over the integers; by Poisson summation scale sqrt(2 pi) up to 1e-70 from scale 3 on."""
    if scale >= 3.0:
        return scale * math.sqrt(2.0 * math.pi)
    return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (k / scale) ** 2) for k in range(1, 130))


@dataclass(frozen=True, kw_only=True)
class RandomisedResponseProfile(SymmetricProfile):
    """One of `categories` answers is kept with probability p = e^e0/(e^e0 + k - 1), else another is drawn uniformly.

    delta(epsilon) = p (1 - e^(epsilon - e0)) for 0 <= epsilon <= e0 = `epsilon0`, and 0 from e0 on.
    """

    categories: int
    epsilon0: float

    def __post_init__(self) -> None:
        check_positive("epsilon0", self.epsilon0)
        check_whole("categories", self.categories)
        if self.categories < 2:
            raise ModelError("randomised response needs at least two categories.", hint="For example categories=2")

    @property
    def pure_epsilon(self) -> float:
        """epsilon0."""
        return float(self.epsilon0)

    def _divergence(self, epsilon: float) -> float:
        kept = 1.0 / (1.0 + (self.categories - 1) * math.exp(-self.epsilon0))
        return -kept * math.expm1(epsilon - self.epsilon0)


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanismProfile(SymmetricProfile):
    """A choice with probability proportional to e^(e0 u/(2 D)), u a score that a neighbour changes by at most D.

    Its log-likelihood ratios lie in an interval of length e0 = `epsilon0` (bounded range); so do those with weights
    e^(e0 u/D) when a neighbour moves all scores the same way. Over all such mechanisms the largest divergence is
    (1 - e^((epsilon - e0)/2))^2 / (1 - e^-e0) for 0 <= epsilon <= e0 (Dong, Durfee, Rogers 2020), reached by a two-outcome
    one with the ratio (e0 + epsilon)/2. With `bounded_range=False` only e0-DP is used (report noisy max with Laplace noise,
    any pure mechanism): (1 - e^(epsilon - e0)) / (1 + e^-e0).

    Both are suprema over mechanisms; a given score, or a given number of candidates, may do better.
    """

    epsilon0: float
    bounded_range: bool = True

    def __post_init__(self) -> None:
        check_positive("epsilon0", self.epsilon0)

    @property
    def pure_epsilon(self) -> float:
        """epsilon0."""
        return float(self.epsilon0)

    @property
    def zcdp(self) -> float:
        """e0^2/8 with bounded range: the cumulant K(a) of the ratio has K(0) = K(1) = 0 and K'' <= e0^2/4; else e0^2/2."""
        return self.epsilon0**2 * (0.125 if self.bounded_range else 0.5) * ROUND_UP

    def _divergence(self, epsilon: float) -> float:
        if self.bounded_range:
            return math.expm1(0.5 * (epsilon - self.epsilon0)) ** 2 / -math.expm1(-self.epsilon0)
        return -math.expm1(epsilon - self.epsilon0) / (1.0 + math.exp(-self.epsilon0))


def zcdp_bound(profile: PrivacyProfile) -> float:
    """Smallest known rho for which the mechanism is rho-zCDP: its own, or pure_epsilon^2/2; infinite where none is known.

    >>> zcdp_bound(RandomisedResponseProfile(categories=3, epsilon0=1.0))
    0.5
    """
    own = float(getattr(profile, "zcdp", math.inf))
    pure = profile.pure_epsilon
    return min(own, 0.5 * pure * pure)
