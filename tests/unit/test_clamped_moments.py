"""Mean and covariance of a record's clamped statistic, against sums over a fine grid of the records' own law."""

import numpy as np
import pytest
from scipy.special import expit

from privurn.inference.sums import clamped_moments
from privurn.inference.sums.logistic_model import LogisticModel
from privurn.inference.sums.regression_model import RegressionModel

PLACES = np.linspace(-7.5, 7.5, 801)
WEIGHTS = np.exp(-0.5 * PLACES**2) / np.exp(-0.5 * PLACES**2).sum()


def exact(model, theta):
    """Mean and covariance of the statistic of a record with one covariate: every pair of standard normal numbers."""
    logistic = model.name == "logistic"
    v, e = (each.ravel() for each in np.meshgrid(PLACES, np.array([0.0]) if logistic else PLACES, indexing="ij"))
    weights = WEIGHTS if logistic else np.outer(WEIGHTS, WEIGHTS).ravel()
    k = model.record
    if logistic:
        b0, b1, mu, a = theta
        x = mu + a * v
        share = expit(b0 + b1 * x)
        z = np.clip((x - k.centre[0]) * k.scale[0], -1, 1)
        rows = [np.stack([0 * z + 2 * y - 1, y * z, (1 - y) * z, z * z - k.offset], axis=1) for y in (1, 0)]
        rows, weights = np.vstack(rows), np.append(weights * share, weights * (1 - share))
    else:
        b0, b1, s, mu, a = theta
        x = mu + a * v
        z = np.clip((np.stack([x, b0 + b1 * x + s * e], axis=1) - k.centre) * k.scale, -1, 1)
        rows = np.column_stack([z, z[:, 0] ** 2 - k.offset, z[:, 0] * z[:, 1], z[:, 1] ** 2 - k.offset])
    mean = weights @ rows
    return mean, (rows * weights[:, None]).T @ rows - np.outer(mean, mean)


REGRESSION = RegressionModel(lower=(-2.0, -3.0), upper=(2.5, 4.0), complement=True)
LOGISTIC = LogisticModel(lower=(-2.0,), upper=(2.5,))
CASES = [
    (REGRESSION, [0.3, -1.0, 0.8, 0.5, 1.0]),
    (REGRESSION, [0.3, 2.5, 0.02, 0.5, 1.6]),  # nearly a line, half of it clamped
    (REGRESSION, [1.0, 0.1, 3.0, 4.0, 0.5]),  # nearly every covariate clamped
    (REGRESSION, [0.0, 0.0, 0.2, 0.0, 0.2]),  # nothing clamped
    (LOGISTIC, [0.3, -1.0, 0.5, 1.0]),
    (LOGISTIC, [2.0, 9.0, -0.5, 1.6]),  # steep
    (LOGISTIC, [-4.0, 0.2, 3.0, 0.4]),
]


@pytest.mark.parametrize(("model", "theta"), CASES)
def test_one_covariate_against_a_grid(model, theta):
    theta = np.array(theta)
    mean, covariance = model.sum_law(theta)
    expected, spread = exact(model, theta)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=2e-5)  # the grid's own error at a kink
    scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    assert np.abs(covariance - spread)[scale > 1e-8].max() <= 0.03 * scale.max()
    assert np.all(np.abs(covariance - spread) <= 0.05 * scale + 3e-4)  # the second where nearly all is clamped


def test_several_covariates_are_those_of_each_pair():
    """A pair of columns has the moments that it has alone, and a rotated factor of the same covariance changes nothing."""
    model = RegressionModel(lower=(-2.0, -1.0, -3.0), upper=(2.0, 2.5, 3.0))
    precision = np.array([[1.0, 0.4], [0.4, 1.3]])
    theta = model.pack(beta=[0.3, -1.0, 1.0], tau=1.5, mu=[-0.5, 0.7], Phi=precision)
    mean, covariance = model.sum_law(theta)
    turned = RegressionModel(lower=(-1.0, -2.0, -3.0), upper=(2.5, 2.0, 3.0))
    other = turned.pack(beta=[0.3, 1.0, -1.0], tau=1.5, mu=[0.7, -0.5], Phi=precision[::-1, ::-1])
    found, spread = turned.sum_law(other)
    order = np.array([1, 0, 2, 6, 4, 7, 3, 5, 8])
    np.testing.assert_allclose(found, mean[order], rtol=0, atol=1e-7)
    scale = np.sqrt(np.diag(covariance)[order])
    np.testing.assert_allclose(spread, covariance[np.ix_(order, order)], rtol=0, atol=0.05 * scale.max() ** 2)
    alone = RegressionModel(lower=(-2.0, -1.0), upper=(2.0, 2.5))
    variance = np.linalg.inv(precision)
    slope = variance[0, 1] / variance[0, 0]
    pair = [0.7 + 0.5 * slope, slope, np.sqrt(variance[1, 1] - slope * variance[0, 1]), -0.5, np.sqrt(variance[0, 0])]
    expected = exact(alone, np.array(pair))[0]
    np.testing.assert_allclose(mean[[0, 1, 3, 4, 6]], expected, rtol=0, atol=2e-5)


def test_a_normal_mean():
    model = RegressionModel(lower=(-1.0,), upper=(2.0,))
    theta = np.array([0.8, 0.9])
    mean, covariance = model.sum_law(theta)
    z = np.clip((0.8 + 0.9 * PLACES - 0.5) / 1.5, -1, 1)
    np.testing.assert_allclose(mean, [WEIGHTS @ z, WEIGHTS @ z**2], rtol=0, atol=2e-5)
    assert covariance[0, 0] == pytest.approx(WEIGHTS @ z**2 - (WEIGHTS @ z) ** 2, rel=0.02)


def test_distance_from_normal():
    """A yes or no of share p: E|x - p|^3 / sd^3 = (p^2 + q^2) / sqrt(pq)."""
    rows, weights = np.array([[0.0], [1.0]]), np.array([0.9, 0.1])
    expected = 0.4748 * (0.81 + 0.01) / 0.3 / 100.0
    assert clamped_moments.normal_distance(rows, weights, 10_000) == pytest.approx(expected, rel=1e-12)
    assert clamped_moments.normal_distance(rows, weights, 1) == 1.0
    assert clamped_moments.normal_distance(np.zeros((2, 1)), weights, 5) == 0.0
