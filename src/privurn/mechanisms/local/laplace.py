"""Laplace noise on every record: pure epsilon-DP, and epsilon^2/2-zCDP. Proof: docs/proofs/channels.md, section 2."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.mechanisms.local.channel import check_bounds, check_target, clamped
from privurn.mechanisms.local.lattice import LatticeChannel, WholeNumberChannel
from privurn.mechanisms.local.recipe import NumberRecipe
from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.laws.noise import DiscreteLaplaceProfile
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True)
class _LaplaceNoise(LatticeChannel):
    """What both Laplace channels share: the profile of two-sided geometric noise, and its calibration."""

    noise: ClassVar[NoiseKind] = "laplace"

    @property
    def profile(self) -> DiscreteLaplaceProfile:
        """Exact: two-sided geometric noise on an integer that moves by at most `steps`."""
        return DiscreteLaplaceProfile(scale=self.lattice_scale, sensitivity=self.steps)

    @classmethod
    def calibrate(cls, *, bounds: tuple[float, float], epsilon: float) -> Self:
        """Least noise for epsilon-DP: scale = (upper - lower)/epsilon, rounded up where floats need it."""
        epsilon, _ = check_target(epsilon)
        lower, upper = check_bounds(bounds)
        made = cls(bounds=(lower, upper), scale=(upper - lower) / epsilon)
        while made.profile.pure_epsilon > epsilon:  # a hair short by rounding
            made = cls(bounds=(lower, upper), scale=made.scale * (1.0 + 2e-16) + math.ulp(0.0))
        return made


@dataclass(frozen=True, kw_only=True)
class LaplaceChannel(_LaplaceNoise):
    """z = clamp(y) + Laplace(0, scale), on a lattice of `steps` steps between the bounds.

    `log_density` is the continuous law, -|z - clamp(y)|/scale - log(2 scale). It differs from the exact log mass per step by
    at most `density_error`, because rounding moves a record by half a step at most.

    >>> channel = LaplaceChannel.calibrate(bounds=(0, 10), epsilon=2)
    >>> channel.scale, channel.profile.pure_epsilon, channel.rho
    (5.0, 2.0, 2.0)
    """

    name: ClassVar[str] = "laplace"

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """The continuous law."""
        distance = np.abs(np.asarray(released, np.float64) - clamped(data, self.bounds))
        return -distance / self.scale - math.log(2.0 * self.scale)

    @property
    def density_error(self) -> float:
        """Half a step over the scale, and the normaliser: |log(x/tanh x)| <= x^2/3 for x = step/(2 scale)."""
        x = 0.5 / self.lattice_scale
        return x + x * x / 3.0


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceChannel(WholeNumberChannel, _LaplaceNoise):
    """z = clamp(y) + X for whole numbers y, P(X = k) proportional to e^(-|k|/scale).

    >>> DiscreteLaplaceChannel.calibrate(bounds=(0, 4), epsilon=1).scale
    4.0
    """

    name: ClassVar[str] = "discrete-laplace"


@dataclass(frozen=True, kw_only=True, repr=False)
class Laplace(NumberRecipe):
    """Laplace noise on each number."""

    alias: ClassVar[str] = "laplace"

    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> LaplaceChannel:
        """The least noise."""
        return LaplaceChannel.calibrate(bounds=bounds, epsilon=single.epsilon)


@dataclass(frozen=True, kw_only=True, repr=False)
class DiscreteLaplace(NumberRecipe):
    """Two-sided geometric noise on each whole number."""

    alias: ClassVar[str] = "discrete-laplace"

    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> DiscreteLaplaceChannel:
        """The least noise."""
        return DiscreteLaplaceChannel.calibrate(bounds=bounds, epsilon=single.epsilon)
