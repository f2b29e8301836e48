"""What it costs to name the labels whose noisy counts reach a threshold, and then to run an urn on them.

Every label that occurs gets discrete Laplace noise on its count, P(X = j) proportional to e^(-|j|/scale), and is named when the
sum is at least T = `threshold`. Symbols: r = e^(-1/scale), E = e^epsilon, and the chance to name a label that one record holds,

    q = P(1 + X >= T) = r^(T-1)/(1 + r).

Proofs: docs/proofs/label-discovery.md; enumeration: tests/exact/test_label_discovery.py.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from privurn.errors import CalibrationError, ModelError
from privurn.exact_numbers import float_up
from privurn.privacy.additive_noise import LARGEST_SCALE
from privurn.privacy.laws.noise import SymmetricProfile, check_positive, loss_above, ratio_up
from privurn.privacy.profile import (
    ROUND_UP,
    SMALLEST_DELTA,
    Guarantee,
    Neighbouring,
    PointProfile,
    PrivacyProfile,
    check_delta,
    check_epsilon,
    group_growth,
    sum_up,
)

LEAST_THRESHOLD = 2
"""With it a label that one record holds is named in less than half of the cases; below it the formulas are no longer tight."""

LARGEST_THRESHOLD = 2**62
"""A count and its noise stay within 64 bits below it."""


@dataclass(frozen=True, kw_only=True)
class LabelDiscoveryProfile(SymmetricProfile):
    """The names of all labels whose noisy counts are at least `threshold`, with or without these counts.

    Replace-one: delta(epsilon) is q from epsilon = 2/scale on, and below it the largest of (1 - r^2 E)_+/(1 + r)^2,
    q + (1 - q - r E)_+/(1 + r) and [(1 - (1 - q) r E)_+ + (r - (1 - q) E)_+]/(1 + r). Add-remove: q from 1/scale on, and below
    it the larger of q and (1 - r E)/(1 + r). Neighbours attain all of these.
    """

    scale: float
    threshold: int

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        whole = isinstance(self.threshold, int) and not isinstance(self.threshold, bool)
        if not whole or not LEAST_THRESHOLD <= self.threshold <= LARGEST_THRESHOLD:
            raise ModelError(
                f"the threshold must be a whole number from {LEAST_THRESHOLD} to {LARGEST_THRESHOLD}.",
                hint="For example threshold=40",
            )

    @property
    def _ratio(self) -> float:
        return math.exp(-1.0 / self.scale)

    @property
    def floor(self) -> float:
        """Q."""
        return self.named(1)

    def named(self, held: int) -> float:
        """Chance to name a label that so many records hold, rounded up."""
        short = self.threshold - held
        exponent = (short if short >= 0 else 1 - short) / self.scale
        tail = math.exp(-exponent) / (1.0 + self._ratio)  # P(X >= short), or P(X < short) where short is negative
        margin = 2.0**-51 * (exponent + 4.0)
        return max(SMALLEST_DELTA, tail * (1.0 + margin)) if short >= 0 else math.nextafter(1.0 - tail * (1.0 - margin), 1.0)

    @property
    def _moved(self) -> float:
        """Counts that one record moves."""
        return 2.0 if self.neighbouring == "replace-one" else 1.0

    def group_point(self, contributions: int) -> tuple[float, float]:
        """Epsilon = 2k/scale (add-remove: k/scale) and the smallest delta there, for k = `contributions` records of one person.

        Either one label that all k records hold is the worst, or k labels that one record holds each.
        """
        epsilon = ratio_up(self._moved * contributions, self.scale)
        if contributions == 1:
            return epsilon, self.floor
        apart = -math.expm1(contributions * math.log1p(-self.floor)) * (1.0 + 2.0**-50)
        return epsilon, min(1.0, max(self.named(contributions), apart))

    def guarantee(self, contributions: int = 1) -> Guarantee:
        """`group_point` in words."""
        epsilon, delta = self.group_point(contributions)
        return Guarantee(epsilon=epsilon, delta=delta, neighbouring=self.neighbouring, contributions=contributions)

    def _divergence(self, epsilon: float) -> float:
        q, r, moved = self.floor, self._ratio, self._moved
        if epsilon >= ratio_up(moved, self.scale):
            return q
        both = -math.expm1(-loss_above(moved, self.scale, epsilon)) / (1.0 + r)
        both /= 1.0 + r if moved == 2.0 else 1.0
        if moved == 1.0 or epsilon >= ratio_up(1.0, self.scale):
            return max(q, both)
        one = -math.expm1(-loss_above(1.0, self.scale, epsilon))  # 1 - r E
        lost = (one + r * q) / (1.0 + r)  # the second term where it is more than q
        ratio = math.exp(epsilon)
        gained = (one + q * r * ratio + max(0.0, q * ratio - math.expm1(epsilon) + math.expm1(-1.0 / self.scale))) / (1.0 + r)
        return max(q, both, lost, gained)


@dataclass(frozen=True, kw_only=True)
class DiscoveredUrnProfile(PrivacyProfile):
    """Labels named, then an urn on them that keeps to `urn`, a guarantee for one record that was fixed beforehand.

    The urn's prior is chosen after the names are known, so only sums of epsilons and deltas are claimed. For the records of one
    person together the names have their own exact guarantee, and the urn has what group privacy gives.
    """

    discovery: LabelDiscoveryProfile
    urn: Guarantee
    contributions: int = 1

    @property
    def neighbouring(self) -> Neighbouring:  # type: ignore[override]
        """That of the names."""
        return self.discovery.neighbouring

    @property
    def point(self) -> PointProfile:
        """All that is claimed."""
        k = self.contributions
        epsilon, delta = self.discovery.group_point(k)
        grown = 1.0 if k == 1 or self.urn.delta == 0.0 else group_growth(self.urn.epsilon, k) * ROUND_UP
        second = self.urn.delta * grown
        return PointProfile(
            epsilon0=sum_up(((epsilon, 1), (self.urn.epsilon, k))),
            delta0=1.0 if math.isinf(second) else min(1.0, float_up(Fraction(delta) + Fraction(second))),
            neighbouring=self.neighbouring,
        )

    @property
    def floor(self) -> float:
        """The deltas together."""
        return self.point.floor

    def delta(self, epsilon: float) -> float:
        """See the class."""
        return self.point.delta(epsilon)

    def group(self, contributions: int) -> PrivacyProfile:
        """The names by their own law, the urn by group privacy."""
        return replace(self, contributions=self.contributions * contributions)


def least_discovery(*, epsilon: float, delta: float, contributions: int = 1) -> LabelDiscoveryProfile:
    """Least noise and then lowest threshold for (epsilon, delta), for that many records of one person, n public.

    The scale is 2k/epsilon: by letting delta pay for less noise it would fall by a share of about delta.

    >>> least_discovery(epsilon=1, delta=1e-6).threshold
    28
    """
    check_epsilon(epsilon)
    check_delta(delta)
    scale = ratio_up(2.0 * contributions, epsilon)
    if delta == 0.0 or scale > LARGEST_SCALE:
        raise CalibrationError("no noise of 64-bit integers lets labels be named at this epsilon and delta.")

    def admissible(threshold: int) -> bool:
        return LabelDiscoveryProfile(scale=scale, threshold=threshold).group_point(contributions)[1] <= delta

    low, high = LEAST_THRESHOLD - 1, LEAST_THRESHOLD
    while not admissible(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if admissible(middle) else (middle, high)
    return LabelDiscoveryProfile(scale=scale, threshold=high)
