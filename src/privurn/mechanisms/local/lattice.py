"""Additive noise on a public lattice: what the Laplace and Gaussian channels share.

A floating-point Laplace or Gaussian draw has a law that depends on the rounding of its input, which voids the proof. So the
clamped record is rounded to the nearest of `steps` + 1 points from the lower to the upper bound, whole-number noise is
added to its number by OpenDP, and the result is written as a number again. Rounding looks at one record only and maps into
0..steps, so a replaced record moves the number by at most `steps`, exactly: docs/proofs/channels.md.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.local.channel import LocalChannel, check_bounds, clamped, finite_numbers, whole_number
from privurn.privacy.additive_noise import NoiseKind, check_scale, log_mass, noisy_integers, simulated_noise
from privurn.privacy.entropy import Entropy

STEPS = 2**20
"""Default number of lattice steps between the bounds."""

LARGEST_WHOLE = 2**53
"""Whole numbers beyond this are not exact as floats."""

LARGEST_TABLE = 2**24
"""Entries of a table that stands for noise on whole numbers."""

LAST_DIGITS = 2.0**-50
"""Relative error of a product and a sum of floats, with room to spare."""


@dataclass(frozen=True, kw_only=True)
class LatticeChannel(LocalChannel):
    """z = y + X on the lattice lower + step * (integers), step = (upper - lower)/steps; X has the given `scale`."""

    bounds: tuple[float, float]
    scale: float
    """Of the noise, in units of the data: Laplace's scale, Gauss's standard deviation."""
    steps: int = STEPS
    noise: ClassVar[NoiseKind]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        steps = whole_number("steps", self.steps, least=1, most=2 * LARGEST_WHOLE, hint="The default is 2**20")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", float(self.scale))
        check_scale(self.lattice_scale)

    @property
    def step(self) -> float:
        """Distance of neighbouring lattice points."""
        return (self.bounds[1] - self.bounds[0]) / self.steps

    @property
    def lattice_scale(self) -> float:
        """The noise's scale in steps: what OpenDP is given and the profile is computed from."""
        return self.scale / self.step

    @property
    def continuous_noise(self) -> NoiseKind | None:
        """The lattice is fine."""
        return self.noise

    @property
    def remarks(self) -> tuple[str, ...]:
        """Scale and lattice."""
        width = (self.bounds[1] - self.bounds[0]) / self.scale
        return (
            f"the noise has the scale {self.scale:.4g}, the range of the data is {width:.3g} times that; records are "
            f"rounded to multiples of {self.step:.3g} above the lower bound.",
        )

    def compiled(self, released: ArrayLike, *, clamped: bool = True) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        """The continuous law, or that on whole numbers; from the clamped outputs."""
        from privurn._kernels.mixtures import channels as records

        names = {"laplace": (records.Laplace, records.RoundedLaplace), "gaussian": (records.Gaussian, records.RoundedGaussian)}
        z, ends = finite_numbers(released, axes=1), self.bounds if clamped else (-math.inf, math.inf)
        return names[self.noise][self.whole](self.scale, *map(float, ends)), z, np.clip(z, *self.bounds)

    @property
    def published_lattice(self) -> tuple[float, float]:
        """From the lower bound on."""
        return self.bounds[0], self.step

    def lattice(self, data: ArrayLike) -> NDArray[np.int64]:
        """Number of the lattice point that each record is rounded to, 0..steps, whatever the record holds."""
        share = (clamped(data, self.bounds) - self.bounds[0]) / (self.bounds[1] - self.bounds[0])
        numbers = np.rint(share * self.steps).astype(np.int64)
        return np.clip(numbers, 0, self.steps)  # in integers: an odd number of steps beyond 2**53 is no float

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[Any]:
        """Noise by OpenDP, whatever `entropy` is."""
        return self._values(noisy_integers(self.lattice(data), noise=self.noise, scale=self.lattice_scale))

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[Any]:
        """Floating-point twin."""
        exact = self.lattice(data)
        return self._values(exact + simulated_noise(exact.shape, noise=self.noise, scale=self.lattice_scale, rng=rng))

    def _values(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self.bounds[0] + self.step * numbers

    def possible(self, released: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Points of the lattice; far from the bounds floats tell them apart no better than to a few last digits."""
        with np.errstate(over="ignore", invalid="ignore"):
            nearest = np.asarray(self._values(np.rint((released - self.bounds[0]) / self.step)), np.float64)
            size = np.maximum(np.abs(released), np.abs(self.bounds[0]))
            return np.isfinite(released) & (np.abs(nearest - released) <= LAST_DIGITS * size)

    def log_mass(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """Log probability of the released lattice point given the rounded record: the exact law of `privatise`."""
        numbers = np.rint((np.asarray(released, np.float64) - self.bounds[0]) / self.step)
        return log_mass(numbers - self.lattice(data), noise=self.noise, scale=self.lattice_scale)

    @property
    @abstractmethod
    def density_error(self) -> float:
        """How far `log_density` may be from the exact log mass per step; see the class."""

    def parameters(self) -> dict[str, Any]:
        """Bounds, scale and lattice; `step` is there for readers and follows from the rest."""
        lower, upper = self.bounds
        return {"lower": lower, "upper": upper, "scale": self.scale, "steps": self.steps, "step": self.step}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        made = cls(bounds=(data["lower"], data["upper"]), scale=data["scale"], steps=int(data["steps"]))
        if data["step"] != made.step:
            raise ModelError("the lattice step is not the one that bounds and steps give.")
        return made


@dataclass(frozen=True, kw_only=True)
class WholeNumberChannel(LatticeChannel):
    """The same for whole numbers: the lattice is the integers, nothing is rounded, and the density is the exact mass."""

    steps: int = 0
    whole: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = ()
    """None: nothing is rounded."""
    density_error: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        lower, upper = check_bounds(self.bounds)
        if lower != int(lower) or upper != int(upper) or max(-lower, upper) > LARGEST_WHOLE:
            raise DomainError("bounds of whole numbers must be whole.", hint="For example bounds=(0, 100)")
        if self.steps not in (0, int(upper) - int(lower)):
            raise ModelError("the lattice of whole numbers has the step 1.", hint="Leave steps out")
        object.__setattr__(self, "steps", int(upper) - int(lower))
        super().__post_init__()

    def lattice(self, data: ArrayLike) -> NDArray[np.int64]:
        """Distance of each whole number from the lower bound."""
        return np.rint(clamped(data, self.bounds)).astype(np.int64) - int(self.bounds[0])

    def _values(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return int(self.bounds[0]) + numbers

    @property
    def continuous_noise(self) -> None:
        """It is on whole numbers."""
        return

    def log_table(self, released: NDArray[np.int64], *, categories: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Over the outputs that occur."""
        seen, code = np.unique(released, return_inverse=True)
        if categories * len(seen) > LARGEST_TABLE:
            raise ModelError("too many categories for the values that were released.", hint="GaussianKernel, for wide ranges")
        return self.log_density(seen[None, :], np.arange(categories)[:, None]), code.astype(np.int64)

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """Log probability; exact."""
        return self.log_mass(released, data)
