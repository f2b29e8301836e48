"""Plug-in regression and its bootstrap: exact where there is no noise to speak of, and repaired where there is too much."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from privurn.errors import ModelError
from privurn.inference.sums.comparators import bootstrap_regression, noisy_moments, plug_in_regression, repaired
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.entropy import SeededEntropy, SystemEntropy

FALSE_ALARM = 1e-6
BOUNDS = {"column_0": (-4, 8), "column_1": (-6, 6), "column_2": (-20, 10)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    x = rng.normal([1.0, -1.0], [1.0, 0.7], size=(400, 2))
    y = 0.5 - x[:, 0] + 2.0 * x[:, 1] + rng.normal(size=400)
    return np.column_stack([x, y])


def released(data, *, squares="plain", epsilon=600.0, epsilon_n=60.0, seed=1, neighbouring="add-remove", **budget):
    spent = Budget(epsilon=epsilon, epsilon_n=epsilon_n, neighbouring=neighbouring, **budget)
    mechanism = RegressionStatistic.calibrated(
        response="column_2", covariates=("column_0", "column_1"), bounds=BOUNDS, budget=spent, squares=squares
    )
    return mechanism.draw(data, entropy=SeededEntropy(seed))


def noiseless(data, *, squares):
    """Statistics of a mechanism whose noise is a lattice step or so: no privacy, and nothing to blur the arithmetic."""
    mechanism = released(data, squares=squares).mechanism
    silent = replace(mechanism, noise=replace(mechanism.noise, scale=mechanism.noise.step))
    return silent.draw(data, entropy=SeededEntropy(1))


@pytest.mark.parametrize("squares", ["plain", "complement"])
def test_without_noise_it_is_least_squares(data, squares):
    statistics = noiseless(data, squares=squares)
    found = plug_in_regression(statistics)
    design = np.column_stack([np.ones(len(data)), data[:, :2]])
    expected, left, *_ = np.linalg.lstsq(design, data[:, 2], rcond=None)
    variance = left[0] / (len(data) - 3)
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    assert np.allclose(found.coefficients, expected, rtol=0, atol=1e-5)  # columns are rounded to 2^-20 of their range
    assert found.residual_variance == pytest.approx(variance, rel=1e-5)
    assert np.allclose(np.sqrt(np.diag(found.covariance)), spread, rtol=1e-5)
    assert found.ridge == 0.0
    assert found.n == len(data)
    assert np.allclose(found.interval().mean(axis=1), found.coefficients)


@pytest.mark.parametrize("squares", ["plain", "complement"])
def test_without_noise_the_bootstrap_is_the_sampling_law(data, squares):
    found = bootstrap_regression(noiseless(data, squares=squares), replicates=4000, seed=3)
    classical = np.diag(found.estimate.covariance)
    ratio = found.variance / classical
    assert np.all(ratio > stats.chi2.ppf(FALSE_ALARM, 3999) / 3999)
    assert np.all(ratio < stats.chi2.isf(FALSE_ALARM, 3999) / 3999)
    assert found.residual_variances.mean() == pytest.approx(found.estimate.residual_variance, rel=0.05)


def test_the_bootstrap_sees_the_noise_and_the_plug_in_does_not(data):
    statistics = released(data, epsilon=6.0, epsilon_n=1.0)
    naive, found = plug_in_regression(statistics), bootstrap_regression(statistics, replicates=500, seed=1)
    widths = np.diff(found.interval(), axis=1) / np.diff(naive.interval(), axis=1)
    assert np.all(widths > 2.0)


def test_too_much_noise_is_repaired(data):
    for seed in range(20):
        statistics = released(data, epsilon=0.02, epsilon_n=0.01, seed=seed)
        moments = noisy_moments(statistics)
        smallest = np.linalg.eigvalsh(moments)[0]
        fixed, ridge = repaired(moments[None])
        if smallest < 0:
            assert ridge[0] == pytest.approx(-2 * smallest)
            assert np.linalg.eigvalsh(fixed[0])[0] == pytest.approx(-smallest)
        found = bootstrap_regression(statistics, replicates=50, seed=seed)
        assert np.all(np.isfinite(found.replicates))
        assert found.estimate.residual_variance >= 0.0
    assert np.all(np.isfinite(np.linalg.inv(repaired(np.zeros((1, 3, 3)))[0])))  # nothing at all


def test_public_n_is_used(data):
    statistics = released(data, epsilon_n=None, neighbouring="replace-one")
    assert plug_in_regression(statistics).n == len(data)


def test_what_cannot_be_done_is_said(data):
    with pytest.raises(ModelError, match="none was published"):
        plug_in_regression(released(data, epsilon_n=None))
    budget = Budget(epsilon=1.0, noise="discrete-laplace", neighbouring="add-remove")
    other = BernoulliStatistic.calibrated(column="column_0", budget=budget).draw(data, entropy=SystemEntropy())
    with pytest.raises(ModelError, match="bernoulli"):
        plug_in_regression(other)
    with pytest.raises(ModelError, match="two replicates"):
        bootstrap_regression(released(data), replicates=1)
