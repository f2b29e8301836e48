"""From concentrated and Renyi differential privacy to a profile.

A mechanism is (a, t)-RDP when the Renyi divergence of order a > 1 between neighbours, in either order, is at most t; it is
rho-zCDP when that holds with t = rho a for every a > 1. One order gives (Canonne, Kamath, Steinke 2020, proposition 12)

    delta(epsilon) <= e^((a - 1)(t - epsilon)) (1 - 1/a)^a / (a - 1),

because (1 - e^(epsilon - x))_+ <= e^((a - 1)(x - epsilon)) (1 - 1/a)^a / (a - 1) for every x, with equality at one.
These profiles are bounds for every mechanism with the stated property, so they are not tight for any particular one. Under
composition t adds order by order, and rho adds; `compose` does that before it goes to loss distributions.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from privurn.errors import ModelError
from privurn.privacy.laws.noise import SymmetricProfile, check_positive
from privurn.privacy.profile import ROUND_UP


def log_delta_at_order(order: float, *, divergence: float, epsilon: float) -> float:
    """Log of the bound above; any order gives a valid one."""
    return (order - 1.0) * (divergence - epsilon) + order * math.log1p(-1.0 / order) - math.log(order - 1.0)


@dataclass(frozen=True, kw_only=True)
class ZeroConcentratedProfile(SymmetricProfile):
    """Any rho-zCDP mechanism: the bound above at its best order, and never above Pinsker's sqrt(rho/2)."""

    rho: float
    tight: ClassVar[bool] = False
    """A bound for the whole class."""

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    @property
    def zcdp(self) -> float:
        """The parameter itself."""
        return float(self.rho)

    def best_order(self, epsilon: float) -> float:
        """Where the logarithm of the bound, convex in the order, has slope (2a - 1) rho - epsilon + log(1 - 1/a) = 0."""
        low, high = 1.0, (epsilon + 1.0) / (2.0 * self.rho) + 2.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if (2.0 * middle - 1.0) * self.rho - epsilon + math.log1p(-1.0 / middle) < 0.0:
                low = middle
            else:
                high = middle
        return high

    def _divergence(self, epsilon: float) -> float:
        order = self.best_order(epsilon)
        value = math.exp(min(0.0, log_delta_at_order(order, divergence=self.rho * order, epsilon=epsilon)))
        return min(value, math.sqrt(0.5 * self.rho))


@dataclass(frozen=True, kw_only=True)
class RenyiProfile(SymmetricProfile):
    """Any mechanism whose Renyi divergence of each listed order is at most the number beside it: the best of the bounds above.

    `orders` are pairs (order, divergence), order > 1.
    """

    orders: tuple[tuple[float, float], ...]
    tight: ClassVar[bool] = False
    """A bound for the whole class."""

    def __post_init__(self) -> None:
        if not self.orders:
            raise ModelError("a Renyi profile needs at least one order.", hint="For example orders=((2.0, 0.1), (8.0, 0.5))")
        for order, divergence in self.orders:
            if not (order > 1.0 and math.isfinite(order) and divergence >= 0.0):
                raise ModelError("each order must be above 1 and each divergence at least 0.", hint="For example (2.0, 0.1)")

    def divergence(self, order: float) -> float:
        """Bound at any order: that of the next listed one, since the divergence grows with the order; infinite above."""
        return min((t for listed, t in self.orders if listed >= order), default=math.inf)

    def _divergence(self, epsilon: float) -> float:
        logs = (log_delta_at_order(a, divergence=t, epsilon=epsilon) for a, t in self.orders)
        return math.exp(min(0.0, *logs))


def renyi_sum(profiles: Iterable[RenyiProfile], *, counts: Iterable[int]) -> RenyiProfile:
    """Composition of Renyi profiles: divergences add at every order that one of them lists."""
    listed = list(zip(profiles, counts, strict=True))
    orders = sorted({order for profile, _ in listed for order, _ in profile.orders})
    totals = [(a, math.fsum(k * profile.divergence(a) for profile, k in listed) * ROUND_UP) for a in orders]
    finite = tuple((a, total) for a, total in totals if math.isfinite(total))
    return RenyiProfile(orders=finite, neighbouring=listed[0][0].neighbouring)
