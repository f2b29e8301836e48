"""Compositions: parts that add up to 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.sums.mean_models import pair_of

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import NoisyStatistics

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class DirichletModel:
    """x ~ Dirichlet(alpha), alpha_j ~ Gamma(shape, rate), seen through sums of log max(x_j, floor).

    Logarithms are rounded to multiples of 2^-resolution (None: not rounded). A latent record is kept as log x.
    """

    parts: tuple[str, ...]
    floor: float
    shape: float = 1.0
    rate: float = 0.1
    resolution: int | None = None
    name: str = "dirichlet"
    prior_numbers: ClassVar[Mapping[str, str]] = {"shape": "shape", "rate": "rate"}
    """As in `BernoulliModel`."""
    keeps_logarithms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not 0.0 < self.floor < 1.0 or not (self.shape > 0.0 and self.rate > 0.0):
            raise ModelError("a Dirichlet model needs two parts, a floor between 0 and 1, and a positive prior shape and rate.")

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, prior: tuple[float, float] | None = None) -> "DirichletModel":
        """The model that released log sums belong to; `prior`: shape and rate of each alpha, (1, 0.1) where left out."""
        mechanism = statistics.of_model("dirichlet")
        shape, rate = pair_of(prior, usual=(1.0, 0.1), law="Gamma")
        resolution = round(-math.log2(mechanism.noise.step))
        return cls(parts=mechanism.parts, floor=mechanism.floor, shape=shape, rate=rate, resolution=resolution)

    @property
    def n_entries(self) -> int:
        """One for each part."""
        return len(self.parts)

    @property
    def n_parameters(self) -> int:
        """One for each part."""
        return len(self.parts)

    @property
    def standard_width(self) -> int:
        """Two numbers for each part."""
        return 2 * len(self.parts)

    @property
    def summary_size(self) -> int:
        """n, then the sums of logarithms."""
        return 1 + len(self.parts)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Axis of alpha."""
        return {"alpha": ("part",)}

    @property
    def coords(self) -> Mapping[str, Any]:
        """Names of the parts."""
        return {"part": list(self.parts)}

    @cached_property
    def record(self) -> Any:
        """Bound and prior, laid out for the kernels."""
        from privurn._kernels.sums.dirichlet import Dirichlet

        rounder = 0.0 if self.resolution is None else 1.5 * 2.0 ** (52 - self.resolution)
        return Dirichlet(len(self.parts), math.log(self.floor), rounder, float(self.shape), float(self.rate))

    def start(self, rng: np.random.Generator) -> Floats:
        """A draw from the prior."""
        return np.maximum(rng.gamma(self.shape, 1.0 / self.rate, len(self.parts)), 1e-3)

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """The one variable, alpha."""
        return {"alpha": theta}

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        return np.asarray(values["alpha"], np.float64)

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Logarithms of compositions."""
        shape = (n, len(theta))
        logs = np.log(rng.standard_gamma(theta + 1.0, shape)) - rng.standard_exponential(shape) / theta
        logs -= logs.max(axis=1, keepdims=True)
        return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))

    def statistic(self, records: Floats) -> Floats:
        """Sum of the records' statistics without noise."""
        k = self.record
        return np.asarray(((np.maximum(records, k.floor) + k.rounder) - k.rounder).sum(axis=0))
