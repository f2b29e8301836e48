"""Gaussian noise on every record: (epsilon, delta)-DP and rho-zCDP. Proof: docs/proofs/channels.md, section 3."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError, NotCertifiable
from privurn.mechanisms.local.channel import check_bounds, check_target, clamped
from privurn.mechanisms.local.lattice import LatticeChannel, WholeNumberChannel
from privurn.mechanisms.local.recipe import NumberRecipe
from privurn.mechanisms.recipe import option
from privurn.privacy.additive_noise import LARGEST_SCALE, NoiseKind
from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.laws.noise import DiscreteGaussianProfile, GaussianProfile, check_positive
from privurn.privacy.profile import Guarantee, smallest_admissible

Calibration = Literal["analytic", "zcdp", "classical"]

STANDARD_DEVIATIONS = 10.0
"""`density_error` is stated for released numbers within so many standard deviations of the record."""


@dataclass(frozen=True, kw_only=True)
class _GaussianNoise(LatticeChannel):
    """What both Gaussian channels share: the profile of the discrete Gaussian, and its calibrations."""

    noise: ClassVar[NoiseKind] = "gaussian"

    @property
    def profile(self) -> DiscreteGaussianProfile:
        """That of the discrete Gaussian on an integer that moves by at most `steps`: its sum, or above 20,000 steps a bound."""
        return DiscreteGaussianProfile(scale=self.lattice_scale, sensitivity=self.steps)

    @classmethod
    def calibrate(
        cls, *, bounds: tuple[float, float], epsilon: float, delta: float, calibration: Calibration = "analytic"
    ) -> Self:
        """Noise for (epsilon, delta).

        "analytic": the least whose own profile meets it (Balle and Wang 2018, on the lattice), or on a coarse lattice, where
        delta need not fall in the scale, one that does, next to one that does not. "zcdp": the least rho-zCDP noise
        that meets it by the conversion that holds for every rho-zCDP mechanism. "classical": (upper - lower)
        sqrt(2 log(1.25/delta))/epsilon, to reproduce published results; it is proved for epsilon <= 1, and `check_certifiable`
        refuses it above.
        """
        epsilon, delta = check_target(epsilon, delta)
        lower, upper = check_bounds(bounds)
        if delta == 0.0:
            raise ModelError("Gaussian noise is never pure epsilon-DP.", hint="Give delta, for example delta=1e-6")
        if calibration == "zcdp":
            return cls.from_rho(bounds=(lower, upper), rho=largest_rho(epsilon=epsilon, delta=delta))
        width = upper - lower
        if calibration == "classical":
            return cls(bounds=(lower, upper), scale=width * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon)
        if calibration != "analytic":
            raise ModelError(f"the calibration {calibration!r} is not known.", hint="analytic, zcdp or classical")
        steps = cls(bounds=(lower, upper), scale=width).steps
        start = smallest_admissible(lambda s: 1.0 if s == 0.0 else GaussianProfile(scale=s).delta(epsilon), delta, start=1.0)

        def delta_at(scale: float) -> float:
            return 1.0 if scale == 0.0 else DiscreteGaussianProfile(scale=scale, sensitivity=steps).delta(epsilon)

        with np.errstate(over="ignore"):  # terms of the sum that are cut off at 0
            least = smallest_admissible(delta_at, delta, start=start * steps, limit=LARGEST_SCALE)
            made = cls(bounds=(lower, upper), scale=least * (width / steps))
            while made.profile.delta(epsilon) > delta:  # a hair short by rounding
                made = cls(bounds=(lower, upper), scale=made.scale * (1.0 + 1e-14))
        return made

    @classmethod
    def from_rho(cls, *, bounds: tuple[float, float], rho: float) -> Self:
        """Least noise for rho-zCDP: variance (upper - lower)^2/(2 rho), rounded up where floats need it."""
        check_positive("rho", rho)
        lower, upper = check_bounds(bounds)
        made = cls(bounds=(lower, upper), scale=(upper - lower) / math.sqrt(2.0 * rho))
        while made.profile.zcdp > rho:  # its own value is rounded up by parts in 1e13
            made = cls(bounds=(lower, upper), scale=made.scale * (1.0 + 1e-13))
        return made


def largest_rho(*, epsilon: float, delta: float) -> float:
    """Largest rho for which every rho-zCDP mechanism is (epsilon, delta)-DP by the conversion in privacy/conversions.py."""

    def delta_at(inverse: float) -> float:
        return 1.0 if inverse == 0.0 else ZeroConcentratedProfile(rho=1.0 / inverse).delta(epsilon)

    return 1.0 / smallest_admissible(delta_at, delta, start=1.0)


def check_certifiable(*, calibration: Calibration, epsilon: float) -> None:
    """The classical formula is proved for epsilon <= 1 only."""
    if calibration == "classical" and epsilon > 1.0:
        raise NotCertifiable(
            "the classical Gaussian calibration holds for epsilon up to 1 only.",
            hint="Use calibration='analytic'; GaussianChannel.calibrate gives the classical noise for simulations",
        )


@dataclass(frozen=True, kw_only=True)
class GaussianChannel(_GaussianNoise):
    """z = clamp(y) + N(0, scale^2), on a lattice of `steps` steps between the bounds.

    `log_density` is the continuous law. Within ten standard deviations it differs from the exact log mass per step by at
    most `density_error`.

    >>> channel = GaussianChannel.from_rho(bounds=(4.49, 7.6), rho=17.8)
    >>> round(channel.scale, 4), round(channel.rho, 6)
    (0.5212, 17.8)
    """

    name: ClassVar[str] = "gaussian"

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """The continuous law."""
        distance = (np.asarray(released, np.float64) - clamped(data, self.bounds)) / self.scale
        return -0.5 * distance * distance - math.log(self.scale) - 0.5 * math.log(2.0 * math.pi)

    @property
    def density_error(self) -> float:
        """Half a step at ten standard deviations; the normaliser's share is below 1e-8 from one step on."""
        half = 0.5 / self.lattice_scale
        return half * (STANDARD_DEVIATIONS + 0.5 * half) + 2.0 * math.exp(-2.0 * (math.pi * self.lattice_scale) ** 2)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianChannel(WholeNumberChannel, _GaussianNoise):
    """z = clamp(y) + X for whole numbers y, P(X = k) proportional to e^(-k^2/(2 scale^2)).

    >>> round(DiscreteGaussianChannel.from_rho(bounds=(0, 4), rho=0.5).scale, 9)
    4.0
    """

    name: ClassVar[str] = "discrete-gaussian"


@dataclass(frozen=True, kw_only=True, repr=False)
class Gaussian(NumberRecipe):
    """Gaussian noise on each number; the guarantee needs a delta."""

    alias: ClassVar[str] = "gaussian"
    pure: ClassVar[bool] = False

    calibration: Calibration = option("analytic (default), zcdp or classical (up to epsilon 1).", default="analytic")

    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> "GaussianChannel | DiscreteGaussianChannel":
        """The noise that the calibration gives."""
        made: GaussianChannel = self._noise(GaussianChannel, bounds, single)
        return made

    def _noise(self, kind: Any, bounds: tuple[float, float], single: Guarantee) -> Any:
        check_certifiable(calibration=self.calibration, epsilon=single.epsilon)
        return kind.calibrate(bounds=bounds, epsilon=single.epsilon, delta=single.delta, calibration=self.calibration)


@dataclass(frozen=True, kw_only=True, repr=False)
class DiscreteGaussian(Gaussian):
    """Discrete Gaussian noise on each whole number."""

    alias: ClassVar[str] = "discrete-gaussian"

    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> "DiscreteGaussianChannel":
        """The noise that the calibration gives."""
        made: DiscreteGaussianChannel = self._noise(DiscreteGaussianChannel, bounds, single)
        return made
