"""Logistic regression with normal covariates; covariates and their prior are those of linear regression."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.sums.regression_model import COVARIATE_PRECISION, RegressionModel, RegressionPrior

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import NoisyStatistics

Floats = NDArray[np.float64]

COEFFICIENT_VARIANCE = 25.0
"""On the scale where bounds are -1 and 1: nineteen twentieths of the prior have log odds that change by less than 20 from one
bound to the other."""


@dataclass(frozen=True, kw_only=True)
class LogisticPrior:
    """Numbers stand for all coefficients or covariates alike (a matrix: that multiple of the identity).

    beta ~ N(coefficient_mean, coefficient_variance)
    mu ~ N(covariate_mean, covariate_mean_variance)
    Phi ~ Wishart(wishart_degrees, wishart_scale), with mean degrees * scale; degrees left out: 2, or p where that is more
    """

    coefficient_mean: float | Floats = 0.0
    coefficient_variance: float | Floats = 1.0
    covariate_mean: float | Floats = 0.0
    covariate_mean_variance: float | Floats = 1.0
    wishart_degrees: float | None = None
    wishart_scale: float | Floats = 1.0

    @classmethod
    def from_bounds(cls, lower: tuple[float, ...], upper: tuple[float, ...]) -> "LogisticPrior":
        """A weak prior that follows the covariates' public bounds, so that units do not matter.

        On p covariates mapped to [-1, 1]: coefficients N(0, 25), means N(0, 1), precision Wishart(p, 20/p).

        >>> LogisticPrior.from_bounds((0.0,), (120.0,)).covariate_mean
        array([60.])
        """
        low, high = np.array(lower), np.array(upper)
        centre, half, p = (low + high) / 2.0, (high - low) / 2.0, len(low)
        turn = np.diag(np.append(1.0, 1.0 / half))  # coefficients of mapped covariates to those of the data
        turn[0, 1:] = -centre / half
        return cls(
            coefficient_variance=COEFFICIENT_VARIANCE * (turn @ turn.T),
            covariate_mean=centre,
            covariate_mean_variance=np.diag(half**2),
            wishart_degrees=float(p),
            wishart_scale=np.diag(COVARIATE_PRECISION / p / half**2),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticModel:
    """y is 1 with probability 1 / (1 + exp(-(1, x) beta)) and 0 otherwise, x ~ N(mu, Phi^-1), seen through noisy sums.

    `lower` and `upper` bound the covariates. Mapping, clamping, rounding and `complement` are those of `RegressionModel`; the
    sums are in `LogisticStatistic`. `names` are those of the covariates, then of the response.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    prior: LogisticPrior = field(default_factory=LogisticPrior)
    names: tuple[str, ...] = ()
    resolution: int | None = None
    complement: bool = False
    name: str = "logistic"
    summary_size: int = 0
    whole_numbers: ClassVar[slice] = slice(-1, None)
    """The response."""

    def __post_init__(self) -> None:
        if not self.lower:
            raise ModelError("a logistic regression has covariates.", hint="Use BernoulliModel for a proportion")
        _ = self.linear.record  # bounds and prior are checked there

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, prior: LogisticPrior | None = None) -> "LogisticModel":
        """The model that released sums belong to; the prior follows the bounds where none is given."""
        mechanism = statistics.of_model("logistic")
        if prior is not None and not isinstance(prior, LogisticPrior):
            raise ModelError("the prior of this model is a LogisticPrior.", hint="Leave it out: it follows the public bounds")
        return cls(
            lower=mechanism.lower,
            upper=mechanism.upper,
            prior=prior or LogisticPrior.from_bounds(mechanism.lower, mechanism.upper),
            names=mechanism.columns,
            resolution=mechanism.resolution,
            complement=mechanism.squares == "complement",
        )

    @cached_property
    def linear(self) -> RegressionModel:
        """The linear regression with the same covariates: at tau = 1 its coefficients have the same prior."""
        prior = self.prior
        variance = prior.coefficient_variance
        try:
            precision = 1.0 / float(variance) if np.ndim(variance) == 0 else np.linalg.inv(np.asarray(variance))
        except (ZeroDivisionError, np.linalg.LinAlgError):
            raise ModelError("coefficient_variance must be a positive number or a positive definite matrix.") from None
        return RegressionModel(
            lower=(*self.lower, 0.0),
            upper=(*self.upper, 1.0),
            prior=RegressionPrior(
                coefficient_mean=prior.coefficient_mean,
                coefficient_precision=precision,
                covariate_mean=prior.covariate_mean,
                covariate_mean_variance=prior.covariate_mean_variance,
                wishart_degrees=prior.wishart_degrees,
                wishart_scale=prior.wishart_scale,
            ),
            names=self.names,
            resolution=self.resolution,
            complement=self.complement,
        )

    @property
    def p(self) -> int:
        """Covariates."""
        return len(self.lower)

    @property
    def n_entries(self) -> int:
        """The response, covariates in either class, products of covariates."""
        return 1 + 2 * self.p + self.p * (self.p + 1) // 2

    @property
    def n_parameters(self) -> int:
        """beta, mu and the lower triangle."""
        return self.linear.n_parameters - 1

    @property
    def standard_width(self) -> int:
        """As wide as a record."""
        return self.p + 1

    @property
    def coords(self) -> Mapping[str, Any]:
        """Names of covariates."""
        return self.linear.coords

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Axes of the variables."""
        return self.linear.dims

    @cached_property
    def record(self) -> Any:
        """Bounds and prior, laid out for the kernels."""
        from privurn._kernels.sums.logistic import Logistic

        return Logistic(*self.linear.record)

    def pack(self, *, beta: Any, mu: Any, Phi: Any) -> Floats:
        """Flat parameters."""
        return self._narrow(self.linear.pack(beta=beta, tau=1.0, mu=mu, Phi=Phi))

    def _narrow(self, wide: Floats) -> Floats:
        """Parameters of the linear regression without its deviation."""
        return np.delete(wide, self.p + 1)

    def _wide(self, theta: Floats) -> Floats:
        """With the deviation 1 put in, along the last axis."""
        return np.insert(theta, self.p + 1, 1.0, axis=-1)

    def start(self, rng: np.random.Generator) -> Floats:
        """A draw from the prior."""
        wide = self.linear.start(rng)
        return self._narrow(np.append(self._unscaled(wide), wide[self.p + 1 :]))

    def _unscaled(self, wide: Floats) -> Floats:
        """A linear regression's coefficients are N(m, (tau V)^-1); ours do not depend on tau."""
        q = self.p + 1
        mean = self.linear.record.m
        return np.asarray(mean + (wide[:q] - mean) / wide[q])

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """beta, mu and Phi."""
        found = self.linear.variables(self._wide(theta))
        del found["tau"]
        return found

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        return self.pack(**{name: values[name] for name in ("beta", "mu", "Phi")})

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Records (covariates, response)."""
        from scipy.special import expit

        records = self.linear.simulate(self._wide(theta), n=n, rng=rng)
        x = records[:, :-1]
        records[:, -1] = rng.random(n) < expit(theta[0] + x @ theta[1 : self.p + 1])
        return records

    def statistic(self, records: Floats) -> Floats:
        """Sum of the records' statistics without noise."""
        k = self.record
        y = records[:, -1]
        z = np.clip((records[:, :-1] - k.centre[:-1]) * k.scale[:-1], -1.0, 1.0)
        z = (z + k.rounder) - k.rounder
        products = z.T @ z - len(z) * k.offset * np.eye(self.p)
        return np.concatenate([[np.sum(2.0 * y - 1.0)], y @ z, (1.0 - y) @ z, products[np.triu_indices(self.p)]])

    def sum_law(self, theta: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of what one record adds to the sums, for their Gaussian limit."""
        from privurn.inference.sums.clamped_moments import logistic_law

        return logistic_law(self, theta)

    def sum_nodes(self, theta: Floats) -> tuple[Floats, Floats]:
        """Statistics of a few records that stand for all, and their weights."""
        from privurn.inference.sums.clamped_moments import logistic_nodes

        return logistic_nodes(self, theta)
