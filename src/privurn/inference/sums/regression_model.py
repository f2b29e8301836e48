"""Linear regression with normal covariates, and a normal mean, which is a regression without covariates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import NoisyStatistics

Floats = NDArray[np.float64]

RESIDUAL_RATE, SLOPE_PRECISION, COVARIATE_PRECISION = 0.025, 0.01, 20.0
"""On the scale where bounds are -1 and 1: nine tenths of the prior have a residual deviation of 0.08 to 2.5, and the deviation
of a single covariate from 0.11 to 3.6."""


@dataclass(frozen=True, kw_only=True)
class RegressionPrior:
    """Numbers stand for all coefficients or covariates alike (a matrix: that multiple of the identity).

    beta | tau ~ N(coefficient_mean, (tau coefficient_precision)^-1)
    tau ~ Gamma(precision_shape / 2, rate precision_rate / 2), tau the reciprocal of the residual variance
    mu ~ N(covariate_mean, covariate_mean_variance)
    Phi ~ Wishart(wishart_degrees, wishart_scale), with mean degrees * scale; degrees left out: 2, or p where that is more
    """

    coefficient_mean: float | Floats = 0.0
    coefficient_precision: float | Floats = 1.0
    precision_shape: float = 2.0
    precision_rate: float = 2.0
    covariate_mean: float | Floats = 0.0
    covariate_mean_variance: float | Floats = 1.0
    wishart_degrees: float | None = None
    wishart_scale: float | Floats = 1.0

    @classmethod
    def from_bounds(cls, lower: tuple[float, ...], upper: tuple[float, ...]) -> "RegressionPrior":
        """A weak prior that follows the public bounds of the covariates and, last, the response, so that units do not matter.

        On columns mapped to [-1, 1], with d covariates: tau ~ Gamma(1/2, rate 0.0125), coefficients given tau N(0, 100/tau),
        covariate means N(0, 1), covariate precision Wishart(d, 20/d); then carried over to the scale of the data.

        >>> RegressionPrior.from_bounds((0.0, 0.0), (120.0, 100_000.0)).covariate_mean
        array([60.])
        """
        low, high = np.array(lower, np.float64), np.array(upper, np.float64)
        centre, half = (low + high) / 2.0, (high - low) / 2.0
        turn = np.diag(np.append(1.0, 1.0 / half[:-1]))  # coefficients of mapped covariates to those of the data
        turn[0, 1:] = -centre[:-1] / half[:-1]
        back = np.linalg.inv(turn)
        covariates = len(half) - 1
        return cls(
            coefficient_mean=np.append(centre[-1], np.zeros(covariates)),
            coefficient_precision=SLOPE_PRECISION * (back.T @ back),
            precision_shape=1.0,
            precision_rate=RESIDUAL_RATE * half[-1] ** 2,
            covariate_mean=centre[:-1],
            covariate_mean_variance=np.diag(half[:-1] ** 2),
            wishart_degrees=float(max(covariates, 1)),
            wishart_scale=np.diag(COVARIATE_PRECISION / max(covariates, 1) / half[:-1] ** 2),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel:
    """y | x ~ N((1, x) beta, 1 / tau), x ~ N(mu, Phi^-1), seen through sums of clamped columns and their products.

    `lower` and `upper` bound the covariates and, last, the response. A column is mapped to [-1, 1], clamped there and rounded
    to multiples of 2^-resolution (None: not rounded); `complement` subtracts 1 from each square. Latent values are not clamped:
    clamping is part of the statistic.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    prior: RegressionPrior = field(default_factory=RegressionPrior)
    names: tuple[str, ...] = ()
    resolution: int | None = None
    complement: bool = False
    name: str = "regression"

    def __post_init__(self) -> None:
        if len(self.lower) != len(self.upper) or not self.lower or not all(np.less(self.lower, self.upper)):
            raise ModelError("each column needs a lower bound below its upper bound.")
        if self.names and len(self.names) != len(self.lower):
            raise ModelError("each column needs a name, the response last.")
        _ = self.record  # the prior is checked where it is laid out

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, prior: RegressionPrior | None = None) -> "RegressionModel":
        """The model that released moments belong to; the prior follows the bounds where none is given."""
        mechanism = statistics.of_model("regression", "normal")
        if prior is not None and not isinstance(prior, RegressionPrior):
            raise ModelError("the prior of this model is a RegressionPrior.", hint="Leave it out: it follows the public bounds")
        return cls(
            lower=mechanism.lower,
            upper=mechanism.upper,
            prior=prior or RegressionPrior.from_bounds(mechanism.lower, mechanism.upper),
            names=mechanism.columns,
            resolution=mechanism.resolution,
            complement=mechanism.squares == "complement",
            name=mechanism.model,
        )

    @property
    def p(self) -> int:
        """Covariates."""
        return len(self.lower) - 1

    @property
    def n_entries(self) -> int:
        """Sums of columns and of products."""
        return (self.p + 1) * (self.p + 4) // 2

    @property
    def n_parameters(self) -> int:
        """beta, deviation, mu and the lower triangle."""
        return 2 * self.p + 2 + self.p * (self.p + 1) // 2

    @property
    def standard_width(self) -> int:
        """As wide as a record."""
        return self.p + 1

    @property
    def summary_size(self) -> int:
        """n, then the sums."""
        return 1 + self.n_entries

    @property
    def coords(self) -> Mapping[str, Any]:
        """Names of covariates."""
        columns = self.names or (*(f"x{j + 1}" for j in range(self.p)), "y")
        return {"coefficient": ["intercept", *columns[:-1]], "covariate": list(columns[:-1]), "other": list(columns[:-1])}

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Axes of the variables."""
        if self.p == 0:
            return {}
        return {"beta": ("coefficient",), "mu": ("covariate",), "Phi": ("covariate", "other")}

    @cached_property
    def record(self) -> Any:
        """Bounds and prior, laid out for the kernels."""
        from privurn._kernels.sums.regression import Regression

        prior, p = self.prior, self.p
        low, high = np.array(self.lower, np.float64), np.array(self.upper, np.float64)
        degrees = float(max(p, 2) if prior.wishart_degrees is None else prior.wishart_degrees)
        if not (prior.precision_shape > 0.0 and prior.precision_rate > 0.0 and degrees > p - 1.0):
            raise ModelError("the prior needs a positive shape and rate, and more Wishart degrees than covariates less one.")
        inverse = np.linalg.inv(_matrix(prior.wishart_scale, p, "wishart_scale"))
        return Regression(
            p + 1,
            (low + high) / 2.0,
            2.0 / (high - low),
            0.0 if self.resolution is None else 1.5 * 2.0 ** (52 - self.resolution),
            float(self.complement),
            _vector(prior.coefficient_mean, p + 1, "coefficient_mean"),
            _matrix(prior.coefficient_precision, p + 1, "coefficient_precision"),
            float(prior.precision_shape),
            float(prior.precision_rate),
            _vector(prior.covariate_mean, p, "covariate_mean"),
            np.linalg.inv(_matrix(prior.covariate_mean_variance, p, "covariate_mean_variance")),
            degrees,
            inverse,
            np.linalg.cholesky(inverse),
        )

    def pack(self, *, beta: Any, tau: float, mu: Any = (), Phi: Any = None) -> Floats:
        """Flat parameters."""
        theta = np.concatenate([np.ravel(beta), [tau**-0.5], np.ravel(mu), np.zeros(self.p * (self.p + 1) // 2)])
        if self.p:
            theta[2 * self.p + 2 :] = np.linalg.cholesky(np.linalg.inv(np.asarray(Phi)))[np.tril_indices(self.p)]
        return theta.astype(np.float64)

    def start(self, rng: np.random.Generator) -> Floats:
        """A draw from the prior."""
        k, p = self.record, self.p
        tau = rng.standard_gamma(k.a / 2.0) / (k.b / 2.0)
        beta = k.m + np.linalg.solve(np.linalg.cholesky(k.V).T, rng.standard_normal(p + 1)) / np.sqrt(tau)
        if p == 0:
            return self.pack(beta=beta, tau=tau)
        mu = k.location + np.linalg.solve(np.linalg.cholesky(k.S).T, rng.standard_normal(p))
        factor = np.tril(rng.standard_normal((p, p)), -1)
        factor[np.diag_indices(p)] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (k.d - np.arange(p))))
        spread = np.linalg.inv(k.K).T @ factor  # Bartlett: Phi = spread spread'
        return self.pack(beta=beta, tau=tau, mu=mu, Phi=spread @ spread.T)

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """beta, tau, mu and Phi; without covariates, mean and tau."""
        p = self.p
        tau = theta[:, p + 1] ** -2.0
        if p == 0:
            return {"mean": theta[:, 0], "tau": tau}
        factor = np.zeros((len(theta), p, p))
        rows, columns = np.tril_indices(p)
        factor[:, rows, columns] = theta[:, 2 * p + 2 :]
        inverse = np.linalg.inv(factor)
        return {
            "beta": theta[:, : p + 1],
            "tau": tau,
            "mu": theta[:, p + 2 : 2 * p + 2],
            "Phi": np.swapaxes(inverse, 1, 2) @ inverse,
        }

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        if self.p == 0:
            return self.pack(beta=values["mean"], tau=float(values["tau"]))
        return self.pack(**{name: values[name] for name in ("beta", "tau", "mu", "Phi")})

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Records (covariates, response)."""
        p = self.p
        factor = np.zeros((p, p))
        factor[np.tril_indices(p)] = theta[2 * p + 2 :]
        x = theta[p + 2 : 2 * p + 2] + rng.standard_normal((n, p)) @ factor.T
        y = theta[0] + x @ theta[1 : p + 1] + theta[p + 1] * rng.standard_normal(n)
        return np.column_stack([x, y])

    def statistic(self, records: Floats) -> Floats:
        """Sum of the records' statistics without noise."""
        k = self.record
        z = np.clip((records - k.centre) * k.scale, -1.0, 1.0)
        z = np.column_stack([np.ones(len(z)), (z + k.rounder) - k.rounder])
        first, second = np.triu_indices(self.p + 2)
        products = z.T @ z - len(z) * np.diag([0.0] + [k.offset] * (self.p + 1))
        return np.asarray(products[first, second][1:])

    def sum_law(self, theta: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of what one record adds to the sums, for their Gaussian limit."""
        from privurn.inference.sums.clamped_moments import regression_law

        return regression_law(self, theta)

    def sum_nodes(self, theta: Floats) -> tuple[Floats, Floats]:
        """Statistics of a few records that stand for all, and their weights."""
        from privurn.inference.sums.clamped_moments import regression_nodes

        return regression_nodes(self, theta)


def _vector(value: float | Floats, size: int, name: str) -> Floats:
    found = np.full(size, float(value)) if np.ndim(value) == 0 else np.array(value, np.float64)
    if found.shape != (size,) or not np.all(np.isfinite(found)):
        raise ModelError(f"{name} must be a finite number, or {size} of them.")
    return found


def _matrix(value: float | Floats, size: int, name: str) -> Floats:
    found = float(value) * np.eye(size) if np.ndim(value) == 0 else np.array(value, np.float64)
    fine = found.shape == (size, size) and bool(np.all(np.isfinite(found))) and np.allclose(found, found.T)
    if not fine or (size and np.linalg.eigvalsh(found)[0] <= 0.0):
        raise ModelError(f"{name} must be a positive number or a positive definite matrix of size {size}.")
    return found
