"""What people do instead: regression from noisy moments as if they were exact, and a parametric bootstrap around that.

Neither is privurn's answer; they are here to be compared with it. Both plug in numbers that carry noise, and repair the moment
matrix where noise has made it impossible.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.sums.statistic import NoisyStatistics


@dataclass(frozen=True, kw_only=True, eq=False)
class PlugInRegression:
    """Least squares from noisy moments taken for exact; coefficients (intercept first) on the scale of the data.

    `ridge` is what was added to the diagonal of the noisy moment matrix: 0, or twice its most negative eigenvalue. `n` is the
    public or noisy number of records plus that ridge, the first entry of the repaired matrix.
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    residual_variance: float
    n: float
    ridge: float

    def interval(self, *, level: float = 0.95) -> NDArray[np.float64]:
        """Normal intervals, one row for each coefficient; they ignore the noise."""
        from scipy.special import ndtri

        half = ndtri(0.5 + 0.5 * _checked_level(level)) * np.sqrt(np.diag(self.covariance))
        return np.column_stack([self.coefficients - half, self.coefficients + half])


@dataclass(frozen=True, kw_only=True, eq=False)
class BootstrapRegression:
    """The plug-in estimate, and its replicates under data simulated from it and privatised again."""

    estimate: PlugInRegression
    replicates: NDArray[np.float64]
    residual_variances: NDArray[np.float64]

    @property
    def variance(self) -> NDArray[np.float64]:
        """Of each coefficient over the replicates."""
        return np.asarray(np.var(self.replicates, axis=0, ddof=1), np.float64)

    def interval(self, *, level: float = 0.95) -> NDArray[np.float64]:
        """Quantiles of the replicates, one row for each coefficient."""
        tail = 0.5 - 0.5 * _checked_level(level)
        return np.asarray(np.quantile(self.replicates, [tail, 1.0 - tail], axis=0).T, np.float64)


def plug_in_regression(statistics: Any) -> PlugInRegression:
    """Treat noisy moments as exact.

    The matrix of moments of (1, x, y) gets r = max(0, -2 lambda) added to its diagonal, lambda its smallest eigenvalue
    (Barrientos et al. 2024), so that it is positive definite; where n is not published at all there is no such estimate.
    """
    statistics = released_sums(statistics)
    mechanism = statistics.of_model("regression", "normal")
    moments, ridge = repaired(noisy_moments(statistics)[None])
    slopes, variances = least_squares(moments)
    half_y = (mechanism.upper[-1] - mechanism.lower[-1]) / 2.0
    inverse = np.linalg.inv(moments[0, :-1, :-1])
    to_data = _to_data(mechanism)
    return PlugInRegression(
        names=("intercept", *mechanism.covariates),
        coefficients=_on_data_scale(slopes, mechanism)[0],
        covariance=variances[0] * half_y**2 * (to_data @ inverse @ to_data.T),
        residual_variance=float(variances[0]) * half_y**2,
        n=float(moments[0, 0, 0]),
        ridge=float(ridge[0]),
    )


def bootstrap_regression(statistics: Any, *, replicates: int = 2000, seed: int | None = None) -> BootstrapRegression:
    """Parametric bootstrap of Ferrando, Wang and Sheldon (2022) with the repair of Barrientos et al. (2024).

    Each replicate draws new responses from the plug-in estimate given the repaired moments of the covariates, adds the
    mechanism's noise to all moments (and to n) again, and repairs and estimates again.
    """
    statistics = released_sums(statistics)
    mechanism = statistics.of_model("regression", "normal")
    if replicates < 2:
        raise ModelError("a bootstrap needs at least two replicates.")
    rng = np.random.default_rng(seed)
    moments, _ = repaired(noisy_moments(statistics)[None])
    slopes, variances = least_squares(moments)
    design, slope, variance = moments[0, :-1, :-1], slopes[0], max(float(variances[0]), 0.0)
    columns = len(design)
    degrees = max(float(design[0, 0]) - columns, 1.0)
    root = np.linalg.cholesky(design)
    standard = rng.normal(size=(replicates, columns))
    cross = np.sqrt(variance) * standard @ root.T  # X'e, normal with covariance variance X'X
    squares = variance * ((standard**2).sum(axis=1) + rng.chisquare(degrees, replicates))  # e'e
    simulated = np.empty((replicates, columns + 1, columns + 1))
    simulated[:, :-1, :-1] = design
    simulated[:, :-1, -1] = simulated[:, -1, :-1] = design @ slope + cross
    simulated[:, -1, -1] = slope @ design @ slope + 2.0 * cross @ slope + squares
    noisy, _ = repaired(simulated + _matrix_noise(statistics, replicates, rng))
    again, residual = least_squares(noisy)
    half_y = (mechanism.upper[-1] - mechanism.lower[-1]) / 2.0
    return BootstrapRegression(
        estimate=plug_in_regression(statistics),
        replicates=_on_data_scale(again, mechanism),
        residual_variances=residual * half_y**2,
    )


def noisy_moments(statistics: NoisyStatistics) -> NDArray[np.float64]:
    """The symmetric matrix of noisy moments of (1, z), with the public or noisy n as its first entry."""
    mechanism = statistics.of_model("regression", "normal")
    n = statistics.noisy_n if statistics.n is None else float(statistics.n)
    if n is None:
        raise ModelError("plug-in estimates need a number of records, and none was published.", hint="Use privurn infer")
    size = len(mechanism.columns) + 1
    moments = np.zeros((size, size))
    first, second = mechanism.pairs
    moments[first, second] = moments[second, first] = statistics.values + n * mechanism.offsets
    moments[0, 0] = n
    return moments


def repaired(moments: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrices (first axis) with max(0, -2 smallest eigenvalue) added to the diagonal, and how much that was."""
    smallest = np.linalg.eigvalsh(moments)[:, 0]
    singular = 1e-9 * np.maximum(np.abs(moments).max(axis=(1, 2)), 1.0)  # a zero eigenvalue would not be inverted either
    ridge = np.maximum(0.0, -2.0 * smallest) + np.where(np.abs(smallest) < singular, singular, 0.0)
    return np.asarray(moments + ridge[:, None, None] * np.eye(moments.shape[-1]), np.float64), np.asarray(ridge, np.float64)


def least_squares(moments: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and residual variances on the scale of z, from moment matrices of (1, x, y)."""
    design, cross = moments[:, :-1, :-1], moments[:, :-1, -1]
    slopes = np.linalg.solve(design, cross[..., None])[..., 0]
    left = moments[:, -1, -1] - (cross * slopes).sum(axis=1)
    degrees = np.maximum(moments[:, 0, 0] - design.shape[-1], 1.0)
    return np.asarray(slopes, np.float64), np.asarray(np.maximum(left, 0.0) / degrees, np.float64)


def _to_data(mechanism: Any) -> NDArray[np.float64]:
    """Matrix that turns coefficients for z into those for x, both for a response in units of its half-range."""
    lower, upper = np.array(mechanism.lower[:-1]), np.array(mechanism.upper[:-1])
    centre, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    turn = np.diag(np.append(1.0, 1.0 / half))
    turn[0, 1:] = -centre / half
    return turn


def _on_data_scale(slopes: NDArray[np.float64], mechanism: Any) -> NDArray[np.float64]:
    half = (mechanism.upper[-1] - mechanism.lower[-1]) / 2.0
    moved: NDArray[np.float64] = half * slopes @ _to_data(mechanism).T
    moved[:, 0] += (mechanism.upper[-1] + mechanism.lower[-1]) / 2.0
    return moved


def _matrix_noise(statistics: NoisyStatistics, replicates: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Fresh symmetric noise as the mechanism adds it to moments and n; squares that are complements carry n's noise too."""
    mechanism = statistics.of_model("regression", "normal")
    size = len(mechanism.columns) + 1
    first, second = mechanism.pairs
    noise = np.zeros((replicates, size, size))
    if statistics.size_noise is not None:
        noise[:, 0, 0] = statistics.size_noise.simulate_units(replicates, rng=rng) * statistics.size_noise.step
    entries = statistics.noise.simulate_units(replicates * len(first), rng=rng) * statistics.noise.step
    drawn = entries.reshape(replicates, -1) + noise[:, :1, 0] * mechanism.offsets
    noise[:, first, second] = noise[:, second, first] = drawn
    return noise


def _checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ModelError("the level of an interval must be between 0 and 1.", hint="For example level=0.95")
    return level
