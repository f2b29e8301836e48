"""Noise on a lattice: the law that a number gets added, how it is drawn, and its log density for inference."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.additive_noise import NoiseKind, log_mass, noisy_integers, simulated_noise
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import check_positive

LARGEST_UNITS = 2.0**56
"""Largest scale in lattice steps. Noise is drawn as 64-bit integers: it would leave them with probability below e^-127."""

SMALLEST_UNITS = 2.0**-10
"""Smallest scale in lattice steps; below it the noise is 0 but for one draw in e^1000."""


@dataclass(frozen=True, kw_only=True)
class NoiseLaw:
    """Independent noise X on the multiples k `step` of a power of two.

    kind="laplace": P(X = k step) proportional to e^(-|k| step/scale), the two-sided geometric law; with step = 1 the "discrete
    Laplace" law, and as step/scale -> 0 the Laplace law.
    kind="gaussian": P(X = k step) proportional to e^(-(k step)^2/(2 scale^2)), the discrete Gaussian.

    So the log density of a noisy value v given an exact value t on the lattice is, up to a constant, -|v - t|/scale or
    -(v - t)^2/(2 scale^2) whatever the step is: inference may use the continuous law without error.

    >>> NoiseLaw(kind="laplace", scale=2.0, step=1.0).deviation > 2.0
    True
    """

    kind: NoiseKind
    scale: float
    step: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise ModelError(f"the noise {self.kind!r} is not known.", hint="laplace or gaussian")
        check_positive("scale", self.scale)
        check_positive("step", self.step)
        object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, "step", float(self.step))
        if math.frexp(self.step)[0] != 0.5:
            raise ModelError("the step of the noise must be a power of two.", hint="For example step=1")
        if not SMALLEST_UNITS <= self.scale / self.step <= LARGEST_UNITS:
            raise ModelError(
                "the noise is too large or too small for its lattice.", hint="Choose another epsilon or resolution"
            )

    @property
    def units(self) -> float:
        """Scale in lattice steps; exact, since the step is a power of two."""
        return self.scale / self.step

    @property
    def deviation(self) -> float:
        """Standard deviation (of the Gaussian: its scale, which bounds it and is reached from two steps on)."""
        if self.kind == "gaussian":
            return self.scale
        rate = self.step / self.scale
        return float(math.sqrt(0.5) / math.sinh(0.5 * rate)) * self.step if rate < 1400.0 else 0.0

    def log_density(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probability of each residual, noisy less exact, as one of the lattice's points."""
        steps = np.asarray(residuals, np.float64) / self.step  # exact: a power of two
        return np.asarray(log_mass(steps, noise=self.kind, scale=self.units))

    def draw_units(self, size: int, *, entropy: Entropy) -> list[int]:
        """Noise in lattice steps: OpenDP's exact samplers for private entropy, a seeded twin in floating point otherwise.

        OpenDP adds it to zeros and not to the sums: some million records take these out of 64 bits, where OpenDP would cut
        them off, and a way that depended on their size would depend on the data.
        """
        if entropy.private:
            added = noisy_integers(np.zeros(size, np.int64), noise=self.kind, scale=self.units)
            return [int(each) for each in added]
        words = entropy.words(4)
        rng = np.random.Generator(np.random.PCG64([int(word) for word in words]))
        return [int(each) for each in self.simulate_units(size, rng=rng)]

    def simulate_units(self, size: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """The same law in floating point, for simulation and never for a release."""
        return simulated_noise((size,), noise=self.kind, scale=self.units, rng=rng)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "scale": self.scale, "step": self.step}

    @classmethod
    def from_json(cls, data: Any) -> "NoiseLaw":
        """Inverse of `to_json`."""
        return cls(kind=data["kind"], scale=float(data["scale"]), step=float(data["step"]))
