"""Laplace noise on the Haar wavelet coefficients of every record. Proof: docs/proofs/channels.md, section 4.

psi_jk(u) = 2^(j/2) psi(2^j u - k), psi = 1 on the first half of [0, 1), -1 on the second; j = 0..J, k = 0..2^j - 1. On every
level one coefficient of a record is 2^(j/2) or -2^(j/2) and the others are 0, so a record enters through its dyadic interval of
length 2^-(J+1) alone.
"""

import math
from dataclasses import MISSING, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.local.channel import LocalChannel, check_bounds, check_target, clamped, finite_numbers, whole_number
from privurn.mechanisms.local.recipe import NumberRecipe
from privurn.mechanisms.local.vector_noise import VectorLaplaceProfile
from privurn.mechanisms.recipe import option
from privurn.privacy.additive_noise import check_scale, noisy_integers, simulated_noise
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import ratio_up
from privurn.privacy.profile import ROUND_UP, Guarantee

WaveletCalibration = Literal["tight", "butucea2020"]

RESOLUTION = 2**20
"""Lattice steps in one unit of a coefficient."""

MOST_LEVELS = 12
"""8191 published numbers a record."""


@dataclass(frozen=True, kw_only=True)
class HaarWaveletChannel(LocalChannel):
    """z_jk = psi_jk(u) + Laplace(0, scale), u the clamped record mapped from `bounds` to [0, 1]; `levels` is J.

    The coefficients are rounded to a lattice of `resolution` steps a unit before whole-number noise is added; amplitudes,
    sensitivity and `log_density` are those of the rounded coefficients. Released columns are ordered by level, then place.

    >>> channel = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=4, epsilon=10)
    >>> channel.outputs, round(channel.sensitivity, 5), round(channel.scale * 10, 5)
    (31, 22.48528, 22.48528)
    """

    bounds: tuple[float, float]
    levels: int
    scale: float
    resolution: int = RESOLUTION
    name: ClassVar[str] = "haar-wavelet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        levels = whole_number("levels", self.levels, least=0, most=MOST_LEVELS, hint="For example levels=4")
        object.__setattr__(self, "levels", levels)
        resolution = whole_number("resolution", self.resolution, least=1, most=2**40, hint="The default is 2**20")
        object.__setattr__(self, "resolution", resolution)
        object.__setattr__(self, "scale", float(self.scale))
        check_scale(self.scale * self.resolution)

    @property
    def outputs(self) -> int:
        """Published numbers for each record, 2^(J+1) - 1."""
        return (1 << (self.levels + 1)) - 1

    @property
    def cells(self) -> int:
        """Dyadic intervals that the channel tells apart, 2^(J+1)."""
        return 1 << (self.levels + 1)

    @cached_property
    def lattice_amplitudes(self) -> tuple[int, ...]:
        """2^(j/2) in lattice steps, rounded, for j = 0..J."""
        return tuple(round(2.0 ** (0.5 * j) * self.resolution) for j in range(self.levels + 1))

    @property
    def amplitudes(self) -> NDArray[np.float64]:
        """Size of the one coefficient that is not 0, for each level."""
        return np.array(self.lattice_amplitudes, np.float64) / self.resolution

    @property
    def sensitivity(self) -> float:
        """Largest L1 distance between two records' coefficients: 2 (2^((J+1)/2) - 1)/(sqrt 2 - 1) up to the lattice."""
        return 2.0 * sum(self.lattice_amplitudes) / self.resolution

    @property
    def profile(self) -> VectorLaplaceProfile:
        """Pure from sensitivity/scale on, exactly; below that a bound.

        Records that first part on level l move one coefficient there by twice its amplitude, and two on every finer level.
        """
        squares = [a * a for a in self.lattice_amplitudes]
        worst = max(4 * square + 2 * sum(squares[level + 1 :]) for level, square in enumerate(squares))
        scale = self.scale * self.resolution
        return VectorLaplaceProfile(
            epsilon0=ratio_up(float(2 * sum(self.lattice_amplitudes)), scale), zcdp=0.5 * worst / (scale * scale) * ROUND_UP
        )

    @classmethod
    def calibrate(
        cls, *, bounds: tuple[float, float], levels: int, epsilon: float, calibration: WaveletCalibration = "tight"
    ) -> Self:
        """Noise for epsilon-DP: "tight" is the least; "butucea2020" is the published 12 sqrt 2/(sqrt 2 - 1) 2^(J/2)/epsilon."""
        epsilon, _ = check_target(epsilon)
        if calibration not in ("tight", "butucea2020"):
            raise ModelError(f"the calibration {calibration!r} is not known.", hint="tight or butucea2020")
        made = cls(bounds=bounds, levels=levels, scale=1.0)
        if calibration == "butucea2020":
            return cls(bounds=bounds, levels=levels, scale=12.0 / epsilon * 2.0 ** (0.5 * levels) / (1.0 - math.sqrt(0.5)))
        made = cls(bounds=bounds, levels=levels, scale=made.sensitivity / epsilon)
        while made.profile.pure_epsilon > epsilon:  # a hair short by rounding
            made = cls(bounds=bounds, levels=levels, scale=math.nextafter(made.scale, math.inf))
        return made

    def columns(self, column: str) -> list[str]:
        """One for each coefficient: name_level_place."""
        return [f"{column}_{j}_{k}" for j in range(self.levels + 1) for k in range(2**j)]

    def cell(self, data: ArrayLike) -> NDArray[np.int64]:
        """Number of each record's dyadic interval; the upper bound belongs to the last one."""
        lower, upper = self.bounds
        share = (clamped(data, self.bounds) - lower) / (upper - lower)
        return np.clip(np.floor(share * self.cells), 0, self.cells - 1).astype(np.int64)

    def lattice(self, data: ArrayLike) -> NDArray[np.int64]:
        """Coefficients of each record in lattice steps, in the last axis."""
        cell = self.cell(data)
        out = np.zeros((*cell.shape, self.outputs), np.int64)
        for j, amplitude in enumerate(self.lattice_amplitudes):
            half = cell >> (self.levels - j)  # 2 k, or 2 k + 1 in the second half
            sign = np.where(half % 2 == 0, amplitude, -amplitude)
            np.put_along_axis(out, (2**j - 1 + half // 2)[..., None], sign[..., None], axis=-1)
        return out

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[np.float64]:
        """Noise by OpenDP, whatever `entropy` is; one row of coefficients for each record."""
        noisy = noisy_integers(self.lattice(data), noise="laplace", scale=self.scale * self.resolution)
        return noisy / self.resolution

    def possible(self, released: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whole numbers of lattice steps."""
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.rint(released * self.resolution) / self.resolution == released
        return np.asarray(np.isfinite(released) & whole)

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Floating-point twin."""
        exact = self.lattice(data)
        added = simulated_noise(exact.shape, noise="laplace", scale=self.scale * self.resolution, rng=rng)
        return (exact + added) / self.resolution

    def cell_log_densities(self, released: ArrayLike) -> NDArray[np.float64]:
        """Log of q(z | y) for y in each dyadic interval; the intervals take the place of the coefficients in the last axis."""
        z = np.asarray(released, np.float64)
        logs: NDArray[np.float64] = (-np.abs(z).sum(axis=-1) / self.scale - self.outputs * math.log(2.0 * self.scale))[
            ..., None
        ]
        for j, amplitude in enumerate(self.amplitudes):
            level = z[..., 2**j - 1 : 2 ** (j + 1) - 1]
            halves = np.stack([np.abs(level) - np.abs(level - amplitude), np.abs(level) - np.abs(level + amplitude)], axis=-1)
            logs = (logs[..., None] + halves / self.scale).reshape(*z.shape[:-1], 2 ** (j + 1))
        return logs

    def compiled(self, released: ArrayLike, *, clamped: bool = True) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        """From the middle of the likeliest interval of each record."""
        from privurn._kernels.mixtures.channels import Wavelet

        z, (lower, upper) = finite_numbers(released, axes=2), self.bounds
        if z.shape[1] != self.outputs:
            raise DomainError(f"the channel releases {self.outputs} numbers for each record, not {z.shape[1]}.")
        cells = np.stack([self.cell_log_densities(row).argmax(axis=-1) for row in z])
        start = lower + (upper - lower) * (cells + 0.5) / self.cells
        return Wavelet(self.scale, self.amplitudes, lower, upper), z, start

    @property
    def remarks(self) -> tuple[str, ...]:
        """Scale and coefficients."""
        return (f"Laplace noise of scale {self.scale:.4g} on {self.outputs} wavelet coefficients of each record.",)

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """The continuous law around the rounded coefficients; `density_error` bounds the difference from the lattice's."""
        distance = np.abs(np.asarray(released, np.float64) - self.lattice(data) / self.resolution).sum(axis=-1)
        logs: NDArray[np.float64] = -distance / self.scale - self.outputs * math.log(2.0 * self.scale)
        return logs

    @property
    def density_error(self) -> float:
        """The normalisers' share alone, x^2/3 each for x = step/(2 scale): the coefficients lie on the lattice."""
        return self.outputs / (12.0 * (self.scale * self.resolution) ** 2)

    def parameters(self) -> dict[str, Any]:
        """Bounds, levels, scale and lattice."""
        lower, upper = self.bounds
        return {
            "lower": lower,
            "upper": upper,
            "levels": self.levels,
            "scale": self.scale,
            "resolution": self.resolution,
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return cls(
            bounds=(data["lower"], data["upper"]),
            levels=int(data["levels"]),
            scale=data["scale"],
            resolution=int(data["resolution"]),
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class HaarWavelet(NumberRecipe):
    """Laplace noise on the wavelet coefficients of each number; the bounds are mapped to [0, 1]."""

    alias: ClassVar[str] = "haar-wavelet"

    levels: int = option("Finest level J, for 2^(J+1) - 1 numbers a record.", default=MISSING)
    calibration: WaveletCalibration = option("tight (default) or butucea2020, the published noise.", default="tight")

    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> HaarWaveletChannel:
        """The noise that the calibration gives."""
        return HaarWaveletChannel.calibrate(
            bounds=bounds, levels=self.levels, epsilon=single.epsilon, calibration=self.calibration
        )
