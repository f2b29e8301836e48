"""A proportion and a rate; a normal mean is `RegressionModel` without covariates."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import NoisyStatistics

Floats = NDArray[np.float64]


def pair_of(prior: Any, *, usual: tuple[float, float], law: str) -> tuple[float, float]:
    """The two numbers of a prior, checked."""
    if prior is None:
        return usual
    if not isinstance(prior, tuple) or len(prior) != 2 or not all(isinstance(each, (int, float)) for each in prior):
        raise ModelError(f"the prior is the pair of numbers of its law, {law}.", hint=f"prior={usual}")
    return float(prior[0]), float(prior[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class _SumModel:
    """One column, one sum, one parameter."""

    n_entries: int = 1
    n_parameters: int = 1
    standard_width: int = 1
    summary_size: int = 2
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    coords: ClassVar[Mapping[str, Any]] = {}
    whole_numbers: ClassVar[slice] = slice(None)
    """Columns of records that are whole numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BernoulliModel(_SumModel):
    """x is 1 with probability p and 0 otherwise; p ~ Beta(first, second)."""

    first: float = 1.0
    second: float = 1.0
    name: str = "bernoulli"
    prior_numbers: ClassVar[Mapping[str, str]] = {"ones": "first", "zeros": "second"}
    """Numbers of the prior as they are asked for, and the fields that hold them."""

    def __post_init__(self) -> None:
        if not (self.first > 0.0 and self.second > 0.0):
            raise ModelError("both parameters of the Beta prior must be positive.")

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, prior: tuple[float, float] | None = None) -> "BernoulliModel":
        """The model that a noisy number of ones belongs to; `prior`: the numbers of a Beta law, (1, 1) where left out."""
        first, second = pair_of(prior, usual=(1.0, 1.0), law="Beta")
        return cls(first=first, second=second)

    @cached_property
    def record(self) -> Any:
        """The prior, for the kernels."""
        from privurn._kernels.sums.sums import Bernoulli

        return Bernoulli(1, float(self.first), float(self.second))

    def start(self, rng: np.random.Generator) -> Floats:
        """A draw from the prior."""
        return np.clip(rng.beta(self.first, self.second, 1), 1e-12, 1.0 - 1e-12)

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """The probability."""
        return {"probability": theta[:, 0]}

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        return np.array([values["probability"]], np.float64)

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Zeros and ones."""
        return np.asarray(rng.random((n, 1)) < theta[0], np.float64)

    def statistic(self, records: Floats) -> Floats:
        """The number of ones."""
        return np.array([records.sum()])


@dataclass(frozen=True, kw_only=True, eq=False)
class PoissonModel(_SumModel):
    """x ~ Poisson(rate), rate ~ Gamma(shape, rate inverse_scale), seen through the sum of min(x, upper)."""

    upper: int
    shape: float = 1.0
    inverse_scale: float = 0.1
    name: str = "poisson"
    prior_numbers: ClassVar[Mapping[str, str]] = {"shape": "shape", "rate": "inverse_scale"}
    """As in `BernoulliModel`."""

    def __post_init__(self) -> None:
        if not (self.upper >= 1 and self.shape > 0.0 and self.inverse_scale > 0.0):
            raise ModelError("a Poisson model needs an upper bound of at least 1 and a positive shape and inverse scale.")

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, prior: tuple[float, float] | None = None) -> "PoissonModel":
        """The model that a noisy sum of counts belongs to; `prior`: shape and rate, (1, 0.1) where left out."""
        shape, inverse_scale = pair_of(prior, usual=(1.0, 0.1), law="Gamma")
        return cls(upper=statistics.of_model("poisson").upper, shape=shape, inverse_scale=inverse_scale)

    @cached_property
    def record(self) -> Any:
        """The prior and the bound, for the kernels."""
        from privurn._kernels.sums.sums import Poisson

        return Poisson(1, float(self.shape), float(self.inverse_scale), float(self.upper))

    def start(self, rng: np.random.Generator) -> Floats:
        """A draw from the prior."""
        return np.maximum(rng.gamma(self.shape, 1.0 / self.inverse_scale, 1), 1e-12)

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """The rate."""
        return {"rate": theta[:, 0]}

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        return np.array([values["rate"]], np.float64)

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Counts."""
        return rng.poisson(theta[0], (n, 1)).astype(np.float64)

    def statistic(self, records: Floats) -> Floats:
        """Sum of the clamped counts."""
        return np.array([np.minimum(records, self.upper).sum()])
