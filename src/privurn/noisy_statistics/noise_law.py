"""Noise on a lattice: the law that a number gets added, how it is drawn, and its log density for inference."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.entropy import Entropy
from privurn.privacy.noise_accounting import check_positive

NoiseKind = Literal["laplace", "gaussian"]

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
        x = np.asarray(residuals, np.float64) / self.scale
        if self.kind == "gaussian":
            return np.asarray(-0.5 * x * x - _log_gaussian_normaliser(self.units))
        rate = self.step / self.scale
        return np.asarray(-np.abs(x) + math.log(math.tanh(0.5 * rate)))

    def draw_units(self, size: int, *, entropy: Entropy) -> list[int]:
        """Noise in lattice steps: OpenDP's exact samplers for private entropy, a seeded twin in floating point otherwise."""
        if entropy.private:
            return [int(each) for each in _measurement(self.kind, self.units)([0] * size)]
        words = entropy.words(4)
        rng = np.random.Generator(np.random.PCG64([int(word) for word in words]))
        return [int(each) for each in self.simulate_units(size, rng=rng)]

    def simulate_units(self, size: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """The same law in floating point, for simulation and never for a release."""
        if self.kind == "gaussian":
            if self.units > 100.0:  # rounding a normal variable is off by less than one part in 10,000 in any probability
                return np.rint(rng.normal(0.0, self.units, size)).astype(np.int64)
            reach = math.ceil(12.0 * self.units) + 2
            support = np.arange(-reach, reach + 1)
            ends = np.cumsum(np.exp(-0.5 * (support / self.units) ** 2))
            return np.asarray(support[np.searchsorted(ends, rng.random(size) * ends[-1])], np.int64)
        if self.units > 2.0**20:  # the geometric law of a success rate below 1e-6 is an exponential one, rounded
            whole = np.floor(rng.exponential(self.units, (2, size)))
            return np.asarray(whole[0] - whole[1], np.int64)
        success = -math.expm1(-1.0 / self.units)
        return np.asarray(rng.geometric(success, size) - rng.geometric(success, size), np.int64)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "scale": self.scale, "step": self.step}

    @classmethod
    def from_json(cls, data: Any) -> "NoiseLaw":
        """Inverse of `to_json`."""
        return cls(kind=data["kind"], scale=float(data["scale"]), step=float(data["step"]))


@lru_cache(maxsize=16)
def _measurement(kind: NoiseKind, units: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        return (integers, dp.l2_distance(T="f64")) >> dp.m.then_gaussian(scale=units)
    return (integers, dp.l1_distance(T="i64")) >> dp.m.then_laplace(scale=units)


@lru_cache(maxsize=256)
def _log_gaussian_normaliser(units: float) -> float:
    """Log of the sum of e^(-k^2/(2 units^2)) over the integers; an integral from units = 3 on, up to 1e-70."""
    if units >= 3.0:
        return math.log(units * math.sqrt(2.0 * math.pi))
    return math.log(1.0 + 2.0 * math.fsum(math.exp(-0.5 * (k / units) ** 2) for k in range(1, 130)))
