"""From a budget to noise: how much each part gets, ending on the private side."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar, get_args

from privurn.errors import ModelError
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.privacy.calibration import round_up_to_rational
from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.profile import LARGEST_EPSILON, Guarantee, Neighbouring, check_delta, check_epsilon

NoiseName = Literal["laplace", "discrete-laplace", "discrete-gaussian"]

FINE_STEP = 2.0**-10
"""Lattice of "laplace" noise on whole numbers."""

M = TypeVar("M", bound=StatisticMechanism)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What may be spent: `epsilon` on everything, of which `epsilon_n` on n where that is secret and shall be published.

    The whole release is (epsilon, delta)-DP under `neighbouring`, for the `contributions` records of one person.
    Laplace noise (delta = 0): n has `epsilon_n`, and the sums have `sums`, which is what is left of epsilon. Gaussian noise
    (delta > 0): the largest rho whose zCDP bound gives epsilon, of which the parts get shares proportional to their squares.
    """

    epsilon: float
    delta: float = 0.0
    epsilon_n: float | None = None
    neighbouring: Neighbouring = "replace-one"
    contributions: int = 1
    noise: NoiseName = "laplace"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.noise not in get_args(NoiseName):
            raise ModelError(f"the noise {self.noise!r} is not known.", hint="laplace, discrete-laplace or discrete-gaussian")
        if self.gaussian != (self.delta > 0.0):
            raise ModelError(
                "Gaussian noise needs a positive delta, and Laplace noise none.",
                hint="noise='discrete-gaussian' with delta=1e-6, or noise='laplace' with delta=0",
            )
        if self.epsilon_n is not None and not 0.0 < self.epsilon_n <= LARGEST_EPSILON:
            raise ModelError(
                f"epsilon_n must be positive and at most {LARGEST_EPSILON:g}.",
                hint="Leave it out to publish nothing about n; where n may be public, use neighbouring='replace-one'",
            )
        if self.sums <= 0.0:
            raise ModelError("epsilon_n is a part of epsilon, and leaves the sums nothing.", hint="Ask for a smaller epsilon_n")
        if self.epsilon_n is not None and self.neighbouring == "replace-one":
            raise ModelError(
                "under replace-one neighbours the number of records is public: it has no epsilon_n.",
                hint="Leave epsilon_n out, or use neighbouring='add-remove'",
            )
        _ = self.guarantee

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.noise == "discrete-gaussian"

    @property
    def sums(self) -> float:
        """What n leaves of epsilon: a difference of decimals as they were written."""
        spent = 0 if self.epsilon_n is None else Fraction(repr(float(self.epsilon_n)))
        return float(Fraction(repr(float(self.epsilon))) - spent)

    @property
    def guarantee(self) -> Guarantee:
        """Of the whole release."""
        return Guarantee(
            epsilon=self.epsilon, delta=self.delta, neighbouring=self.neighbouring, contributions=self.contributions
        )


def with_noise(kind: type[M], budget: Budget, **own: Any) -> Callable[[NoiseLaw, NoiseLaw | None], M]:
    """The mechanism with fields of its `own`, for the budget's neighbours, as a function of its noise and that of n."""
    shared = {"neighbouring": budget.neighbouring, "contributions": budget.contributions}
    return lambda noise, size_noise: kind(noise=noise, size_noise=size_noise, **shared, **own)  # type: ignore[arg-type]


def with_least_noise(make: Callable[[NoiseLaw, NoiseLaw | None], M], *, budget: Budget, step: float) -> M:
    """The mechanism that `make` gives for the least noise on the lattice of `step` that the budget allows."""
    kind: Literal["laplace", "gaussian"] = "gaussian" if budget.gaussian else "laplace"
    unit = make(NoiseLaw(kind=kind, scale=step, step=step), None)
    k = budget.contributions
    size_scale = None
    if budget.gaussian:
        rho = _largest_rho(budget.guarantee)
        both = math.hypot(budget.sums, budget.epsilon_n or 0.0)
        if budget.epsilon_n is not None:  # no squares of the epsilons, which may leave the floats
            size_scale = k / math.sqrt(2.0 * rho) * (both / budget.epsilon_n)
        scale = k * step * math.sqrt(unit.l2_squared_units / (2.0 * rho)) * (both / budget.sums)
    else:
        scale = k * step * unit.l1_units / budget.sums
        size_scale = None if budget.epsilon_n is None else k / budget.epsilon_n
    size = None if size_scale is None else NoiseLaw(kind=kind, scale=_rounded(size_scale))
    return on_the_private_side(make(NoiseLaw(kind=kind, scale=_rounded(scale), step=step), size), make=make, budget=budget)


def on_the_private_side(mechanism: M, *, make: Callable[[NoiseLaw, NoiseLaw | None], M], budget: Budget) -> M:
    """The mechanism with its noise raised by as many last digits as rounding has cost."""
    promise = budget.guarantee
    scale, ulp = mechanism.noise.scale, 2.0**-52
    while mechanism.profile.delta(promise.epsilon) > promise.delta:
        scale, ulp = scale * (1.0 + ulp), 2.0 * ulp
        mechanism = make(replace(mechanism.noise, scale=scale), mechanism.size_noise)
    return mechanism


def _rounded(scale: float) -> float:
    if math.isinf(scale):
        raise ModelError("the noise is too large for its lattice.", hint="Choose a larger epsilon, or leave epsilon_n out")
    return float(round_up_to_rational(scale, digits=7))


def _largest_rho(guarantee: Guarantee) -> float:
    """Largest rho at which every rho-zCDP mechanism meets the guarantee, to one part in 10^12, from below."""

    def admissible(rho: float) -> bool:
        return ZeroConcentratedProfile(rho=rho).delta(guarantee.epsilon) <= guarantee.delta

    low, high = 1e-300, guarantee.epsilon  # rho >= epsilon has a mean loss above epsilon
    while high / low > 1.0 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if admissible(middle) else (low, middle)
    return low
