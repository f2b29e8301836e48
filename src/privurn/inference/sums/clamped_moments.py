"""Mean and covariance of what one record adds to the released sums, at given parameters: what their Gaussian limit needs.

u         a record's columns mapped to [-1, 1] and not clamped: normal, mean `middle`, factor `factor`; z = u clamped
means     closed forms for one column; for two, one integral over v, u_j = middle_j + deviation_j v, of closed forms given v,
          by Gauss and Legendre between the places where either is clamped
y         a logistic variable is a normal one of deviation 2 K, K with Kolmogorov's law, so P(y = 1 | normal line) is a
          mixture of normal distribution functions
spread    covariances by NODES fixed points of the standard normal law: within 5% of the deviations' product or 3e-4, which
          is what matters where nearly every record is clamped (one record's sums have a variance of at most 1)

Rounding of z to multiples of 2^-resolution is left out: it is unbiased to far less than the sampling error of any sum.
"""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

if TYPE_CHECKING:
    from privurn.inference.sums.logistic_model import LogisticModel
    from privurn.inference.sums.regression_model import RegressionModel

Floats = NDArray[np.float64]

NODES = 1024
REACH, LEGENDRE, MIXED = 7.0, 24, 28
TINY = 1e-12


def normal_columns(model: "RegressionModel | LogisticModel", theta: Floats, *, response: bool) -> tuple[Floats, Floats]:
    """Mean and factor of the mapped columns; the response last, where it is a normal one."""
    p, k = model.p, model.record
    first = 2 * p + (2 if response else 1)
    factor = np.zeros((p + response, p + response))
    factor[_lower(p)] = theta[first:]
    middle = theta[first - p : first].copy()
    if response:
        factor[p, :p], factor[p, p] = theta[1 : p + 1] @ factor[:p, :p], theta[p + 1]
        middle = np.append(middle, theta[0] + theta[1 : p + 1] @ middle)
    size = len(middle)
    return (middle - k.centre[:size]) * k.scale[:size], factor * k.scale[:size, None]


def regression_law(model: "RegressionModel", theta: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of a record's statistic, linear regression."""
    middle, factor = normal_columns(model, theta, response=True)
    mean = np.append(*_column_moments(middle, factor, model.record.offset))
    return mean, weighted_covariance(*regression_nodes(model, theta))


def logistic_law(model: "LogisticModel", theta: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of a record's statistic, logistic regression."""
    middle, factor = normal_columns(model, theta, response=False)
    firsts, seconds = _column_moments(middle, factor, model.record.offset)
    share, ones = _response_moments(model, theta, middle, factor)
    mean = np.concatenate([[2.0 * share - 1.0], ones, firsts - ones, seconds])
    return mean, weighted_covariance(*logistic_nodes(model, theta))


def regression_nodes(model: "RegressionModel", theta: Floats) -> tuple[Floats, Floats]:
    """Statistics of records that stand for all, and their weights."""
    middle, factor = normal_columns(model, theta, response=True)
    z = np.clip(middle + _points(len(middle)) @ factor.T, -1.0, 1.0)
    first, second = _upper(len(middle))
    return np.hstack([z, z[:, first] * z[:, second]]), np.full(len(z), 1.0 / len(z))


def logistic_nodes(model: "LogisticModel", theta: Floats) -> tuple[Floats, Floats]:
    """The same; every record once with y = 1 and once with y = 0."""
    middle, factor = normal_columns(model, theta, response=False)
    p, k = model.p, model.record
    u = middle + _points(p) @ factor.T
    share = expit(theta[0] + (u / k.scale[:p] + k.centre[:p]) @ theta[1 : p + 1])
    z, none = np.clip(u, -1.0, 1.0), np.zeros_like(u)
    first, second = _upper(p)
    sign, products = np.ones((len(z), 1)), z[:, first] * z[:, second]
    rows = np.vstack([np.hstack([sign, z, none, products]), np.hstack([-sign, none, z, products])])
    return rows, np.append(share, 1.0 - share) / len(z)


def weighted_covariance(rows: Floats, weights: Floats) -> Floats:
    """Covariance of weighted rows."""
    away = rows - weights @ rows
    return np.asarray((away * weights[:, None]).T @ away)


def normal_distance(rows: Floats, weights: Floats, n: float) -> float:
    """Largest Berry-Esseen bound (constant 0.4748) on how far the law of one sum over n records is from its normal limit."""
    away = np.abs(rows - weights @ rows)
    spread = np.sqrt(weights @ away**2)
    ratio = (weights @ away**3)[spread > TINY] / spread[spread > TINY] ** 3
    return float(min(1.0, 0.4748 * ratio.max(initial=0.0) / np.sqrt(n)))


def clamped_mean(middle: Floats, deviation: Floats) -> Floats:
    """E of a normal number clamped to [-1, 1]."""
    low, high = (-1.0 - middle) / deviation, (1.0 - middle) / deviation
    inside = ndtr(high) - ndtr(low)
    return np.asarray(ndtr(-high) - ndtr(low) + middle * inside + deviation * (_bell(low) - _bell(high)))


def clamped_square(middle: Floats, deviation: Floats) -> Floats:
    """E of its square."""
    low, high = (-1.0 - middle) / deviation, (1.0 - middle) / deviation
    inside = ndtr(high) - ndtr(low)
    edges = low * _bell(low) - high * _bell(high)
    found = ndtr(-high) + ndtr(low) + middle**2 * inside + 2.0 * middle * deviation * (_bell(low) - _bell(high))
    return np.asarray(found + deviation**2 * (inside + edges))


def _bell(v: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * np.minimum(np.abs(v), 40.0) ** 2) / np.sqrt(2.0 * np.pi))


def _column_moments(middle: Floats, factor: Floats, offset: float) -> tuple[Floats, Floats]:
    """E z_j, and E z_j z_k for j <= k row by row, squares less `offset`."""
    variance = factor @ factor.T
    deviation = np.maximum(np.sqrt(np.diag(variance)), TINY)
    first, second = _upper(len(middle))
    seconds = np.empty(len(first))
    seconds[first == second] = clamped_square(middle, deviation) - offset
    j, k = first[first != second], second[first != second]
    slope = variance[j, k] / deviation[j]
    rest = np.sqrt(np.maximum(deviation[k] ** 2 - slope**2, TINY**2))
    steep = np.where(np.abs(slope) < TINY, TINY, slope)
    breaks = [(end - middle[j]) / deviation[j] for end in (-1.0, 1.0)] + [(end - middle[k]) / steep for end in (-1.0, 1.0)]
    v, weights = _pieces(np.stack(breaks, axis=-1))
    z = np.clip(middle[j, None] + deviation[j, None] * v, -1.0, 1.0)
    other = clamped_mean(middle[k, None] + slope[:, None] * v, rest[:, None])
    seconds[first != second] = np.sum(weights * z * other, axis=-1)
    return clamped_mean(middle, deviation), seconds


def _response_moments(model: "LogisticModel", theta: Floats, middle: Floats, factor: Floats) -> tuple[float, Floats]:
    """P(y = 1), and E z_j y."""
    p, k = model.p, model.record
    slopes = theta[1 : p + 1] / k.scale[:p]
    line = float(theta[0] + theta[1 : p + 1] @ k.centre[:p] + slopes @ middle)
    towards = factor @ (factor.T @ slopes)
    variance = float(slopes @ towards)
    scales, shares = _logistic_as_normals()
    deviation = np.maximum(np.sqrt(np.sum(factor**2, axis=1)), TINY)
    slope = towards / deviation
    rest = np.maximum(variance - slope**2, 0.0)
    steep = np.where(np.abs(slope) < TINY, TINY, slope)
    v, weights = _pieces(np.stack([(-1.0 - middle) / deviation, (1.0 - middle) / deviation, -line / steep], axis=-1))
    z = np.clip(middle[:, None] + deviation[:, None] * v, -1.0, 1.0)
    at = (line + slope[:, None] * v)[..., None] / np.sqrt(scales**2 + rest[:, None, None])
    found = np.sum(weights * z * (ndtr(at) @ shares), axis=-1)
    return float(ndtr(line / np.sqrt(scales**2 + variance)) @ shares), np.asarray(found)


def _pieces(breaks: Floats) -> tuple[Floats, Floats]:
    """Places v and weights, those of the normal law included, between breaks along the last axis."""
    ends = np.sort(np.clip(breaks, -REACH, REACH), axis=-1)
    edge = np.full((*ends.shape[:-1], 1), REACH)
    ends = np.concatenate([-edge, ends, edge], axis=-1)
    half = np.diff(ends)[..., None] / 2.0
    places, weights = _legendre()
    v = ends[..., :-1, None] + half * (1.0 + places)
    flat = (*ends.shape[:-1], half.shape[-2] * LEGENDRE)
    return v.reshape(flat), (half * weights * _bell(v)).reshape(flat)


@cache
def _lower(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.tril_indices(size)


@cache
def _upper(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(size)


@cache
def _legendre() -> tuple[Floats, Floats]:
    places, weights = np.polynomial.legendre.leggauss(LEGENDRE)
    return places, weights


@cache
def _logistic_as_normals() -> tuple[Floats, Floats]:
    """Deviations 2 K and their shares."""
    from scipy.stats import kstwobign

    places, weights = np.polynomial.legendre.leggauss(MIXED)
    k = 0.2 + 1.6 * (1.0 + places)
    shares = weights * kstwobign.pdf(k)
    return 2.0 * k, shares / shares.sum()


@cache
def _points(size: int) -> Floats:
    """Points of the standard normal law with its mean and covariance; with each the opposite one."""
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    half = ndtri(Sobol(size, seed=1).random(NODES // 2)) if size else np.zeros((NODES // 2, 0))
    points = np.vstack([half, -half])
    return np.asarray(points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / NODES)).T)
