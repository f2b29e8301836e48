"""A privacy profile: the smallest delta for every epsilon.

A mechanism Q is (epsilon, delta)-differentially private when Q_x(B) <= e^epsilon Q_y(B) + delta for all neighbours x, y and
all events B. Its profile is the function epsilon -> smallest such delta. Everything else (an epsilon for a delta, a
certificate, a plan) is read off the profile.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from privurn.errors import ModelError
from privurn.exact_numbers import float_up

Neighbouring = Literal["replace-one", "add-remove"]
"""Neighbours: one record replaced by another, the number of records public; or one record more or less, that number secret."""

ROUND_UP = 1.0 + 2e-13
"""Covers the rounding of a short sum of positive terms; long sums add a margin for each step."""

RELATIVE_TOLERANCE = 1e-13
SMALLEST_DELTA = 1e-290
"""A positive delta below this is lost in the range of a float."""

LARGEST_EPSILON = 600.0
"""Above this e^epsilon leaves the range of a float; a larger epsilon is no guarantee worth the name."""

SMALLEST_EPSILON = 1e-100
"""Below this its reciprocal, and squares of it, leave that range too."""


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float, or say why it cannot be one."""
    value = _number(epsilon)
    if not 0.0 < value <= LARGEST_EPSILON:
        raise ModelError(f"epsilon must be positive and at most {LARGEST_EPSILON:g}.", hint="For example epsilon=1.0")
    if value < SMALLEST_EPSILON:
        raise ModelError(f"epsilon must be at least {SMALLEST_EPSILON:g}.", hint="For example epsilon=1.0")
    return value


def check_delta(delta: float) -> float:
    """Return delta as a float in [0, 1), or say why it cannot be one."""
    value = _number(delta)
    if not 0.0 <= value < 1.0:
        raise ModelError("delta must lie in [0, 1).", hint="For example delta=1e-6; delta=0 asks for pure epsilon-DP")
    if 0.0 < value < SMALLEST_DELTA:
        raise ModelError(f"a positive delta must be at least {SMALLEST_DELTA:g}.", hint="delta=0 asks for pure epsilon-DP")
    return value


def _number(value: object) -> float:
    """NaN for what is no number, which lies within no limits."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A pair (epsilon, delta) under a neighbouring relation, for one record unless `contributions` says more."""

    epsilon: float
    delta: float
    neighbouring: Neighbouring = "replace-one"
    contributions: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        if (
            isinstance(self.contributions, bool)
            or not isinstance(self.contributions, int)
            or not 1 <= self.contributions <= 10**6
        ):
            raise ModelError(
                "contributions must be a whole number from 1 to 1,000,000.", hint="The most rows one person may own"
            )
        if self.neighbouring not in ("replace-one", "add-remove"):
            raise ModelError("the neighbouring relation is not known.", hint="replace-one or add-remove")

    def per_record(self) -> "Guarantee":
        """The guarantee each single record needs so that `contributions` records together get this one.

        Group privacy: (e, d) for one record gives (k e, d (1 + e^e + ... + e^((k-1) e))) for k of them.
        """
        k = self.contributions
        if k == 1:
            return self
        epsilon = self.epsilon / k
        if sum_up(((epsilon, k),)) > self.epsilon:  # the share was rounded up
            epsilon = math.nextafter(epsilon, 0.0)
        share = self.delta / group_growth(epsilon, k) / ROUND_UP**2
        return Guarantee(epsilon=epsilon, delta=share, neighbouring=self.neighbouring)


class PrivacyProfile(ABC):
    """epsilon -> delta, for a fixed mechanism and neighbouring relation."""

    neighbouring: Neighbouring = "replace-one"

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Smallest delta at this epsilon, rounded up; any real epsilon (composition needs the negative ones)."""

    @property
    def floor(self) -> float:
        """Limit of delta for large epsilon: what no epsilon buys off. 0 where pure epsilon-DP or any delta can be had."""
        return 0.0

    @property
    def pure_epsilon(self) -> float:
        """Smallest epsilon with delta = 0, infinite where there is none."""
        return math.inf

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 whose delta is at most this one, ending on the private side; infinite if none."""
        check_delta(delta)
        if delta == 0.0:
            return self.pure_epsilon
        if delta < self.floor:
            return math.inf
        return smallest_admissible(self.delta, delta, start=1.0, limit=min(self.pure_epsilon, LARGEST_EPSILON))

    def group(self, contributions: int) -> "PrivacyProfile":
        """The profile for so many records of one person together; by group privacy, unless more is known."""
        return self if contributions == 1 else GroupProfile(single=self, contributions=contributions)


@dataclass(frozen=True, kw_only=True)
class PointProfile(PrivacyProfile):
    """All that is known of a mechanism is that it is (epsilon0, delta0)-DP.

    The largest profile that allows: with probability delta0 everything is revealed, otherwise randomised response. For
    epsilon >= epsilon0 it is delta0, below it delta0 + (1 - delta0) (e^epsilon0 - e^epsilon)/(1 + e^epsilon0), and never
    less than 1 - e^epsilon.
    """

    epsilon0: float
    delta0: float
    neighbouring: Neighbouring = "replace-one"

    @property
    def floor(self) -> float:
        """delta0: nothing says that a larger epsilon buys more."""
        return self.delta0

    @property
    def pure_epsilon(self) -> float:
        """epsilon0 where delta0 is 0."""
        return self.epsilon0 if self.delta0 == 0.0 else math.inf

    def delta(self, epsilon: float) -> float:
        """See the class."""
        if epsilon >= self.epsilon0:
            return self.delta0
        gap = -math.expm1(epsilon - self.epsilon0) / (1.0 + math.exp(-self.epsilon0))
        between = self.delta0 + (1.0 - self.delta0) * gap
        return min(1.0, max(between, self.delta0 - (1.0 - self.delta0) * math.expm1(min(0.0, epsilon))) * ROUND_UP)


@dataclass(frozen=True, kw_only=True)
class GroupProfile(PrivacyProfile):
    """What `contributions` records together get from a mechanism whose profile holds for one: group privacy.

    delta_k(epsilon) = delta(epsilon/k) (1 + e^(epsilon/k) + ... + e^((k-1) epsilon/k)).
    """

    single: PrivacyProfile
    contributions: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbouring", self.single.neighbouring)

    @property
    def floor(self) -> float:
        """At least this is left at any epsilon; with a floor for one record the bound for k even grows again."""
        return 0.0 if self.single.floor == 0.0 else min(self.single.floor * self.contributions, 1.0)

    @property
    def pure_epsilon(self) -> float:
        """K times that of one record, rounded up."""
        return sum_up(((self.single.pure_epsilon, self.contributions),))

    def delta(self, epsilon: float) -> float:
        """See the class; an exact zero is claimed from the pure epsilon on and nowhere below it."""
        if epsilon >= self.pure_epsilon:
            return 0.0
        share = epsilon / self.contributions
        single = max(SMALLEST_DELTA, self.single.delta(share))
        return min(1.0, single * group_growth(share, self.contributions) * ROUND_UP)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon by the group bound; with a floor delta need not fall in epsilon, so the bound is scanned first."""
        if self.single.floor == 0.0:
            return super().epsilon(delta)
        check_delta(delta)
        steps = (i * LARGEST_EPSILON / 4000.0 for i in range(1, 4001))
        return next((e for e in steps if self.delta(e) <= delta), math.inf)


@lru_cache(maxsize=4096)
def sum_up(terms: tuple[tuple[float, int], ...]) -> float:
    """Smallest float that is at least the sum of k x over the pairs (x, k).

    >>> sum_up(((0.5, 2),)), sum_up(((0.1, 3),))
    (1.0, 0.30000000000000004)
    """
    if any(math.isinf(x) for x, _ in terms):
        return math.inf
    return float_up(sum((Fraction(x) * k for x, k in terms), Fraction(0)))


def group_growth(epsilon: float, k: int) -> float:
    """1 + e^epsilon + ... + e^((k-1) epsilon)."""
    if k * abs(epsilon) >= LARGEST_EPSILON:
        return math.inf
    return float(k) if epsilon == 0.0 else math.expm1(k * epsilon) / math.expm1(epsilon) * (1.0 + 1e-14)


def smallest_admissible(
    delta_at: Callable[[float], float],
    target: float,
    *,
    start: float,
    limit: float = math.inf,
    tolerance: float = RELATIVE_TOLERANCE,
) -> float:
    """Smallest x >= 0 (to a relative `tolerance`) with delta_at(x) <= target, for a non-increasing delta_at.

    The returned value itself is admissible: a solver that stops short would promise more than it proves. Infinite when
    `limit` is reached first. Secant steps on log delta inside a bracket, with a bisection whenever one gains too little.
    """

    def excess(x: float) -> float:  # > 0: not admissible
        value = delta_at(x)
        return -math.inf if value <= 0.0 else math.log(value / target)

    if delta_at(0.0) <= target:
        return 0.0
    low, above = 0.0, math.inf
    high = min(start, limit)
    below = excess(high)
    while below > 0.0:
        if high >= limit:
            return math.inf
        low, above, high = high, below, min(2.0 * high, limit)
        below = excess(high)
    while low == 0.0 and high > 1e-290:  # come down in scale first: the answer may be tiny
        value = excess(high / 16.0)
        if value <= 0.0:
            high, below = high / 16.0, value
        else:
            low, above = high / 16.0, value
    bisect = False
    while high - low > tolerance * high:
        width = high - low
        middle = math.sqrt(low * high) if high > 2.0 * low else 0.5 * (low + high)
        if not bisect and math.isfinite(above) and math.isfinite(below):
            margin = 0.25 * tolerance * high
            middle = min(max(low + width * above / (above - below), low + margin), high - margin)
        if not low < middle < high:
            break
        value = excess(middle)
        if value <= 0.0:
            high, below = middle, value
        else:
            low, above = middle, value
        bisect = high - low > 0.5 * width
    return high
