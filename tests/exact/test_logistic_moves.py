"""Logistic regression's parts and moves against closed forms: priors, truncated laws, a reversible move of coefficients."""

import inspect

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from privurn._kernels.sums import chain, logistic, protocol
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.observed import Observed

PRIOR = LogisticPrior(
    coefficient_mean=np.array([0.3, -0.2, 0.5]),
    coefficient_variance=np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.7]]),
    covariate_mean=np.array([0.4, -0.1]),
    covariate_mean_variance=np.array([[1.5, 0.2], [0.2, 0.8]]),
    wishart_degrees=3.5,
    wishart_scale=np.array([[0.6, 0.1], [0.1, 0.4]]),
)
MODEL = LogisticModel(lower=(-2.0, -1.0), upper=(1.0, 2.0), prior=PRIOR, resolution=20, complement=True)


def test_parts_of_the_model_agree():
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = MODEL.start(rng)
        records = MODEL.simulate(theta, n=70, rng=rng)
        total, one = np.zeros(MODEL.n_entries), np.zeros(MODEL.n_entries)
        standard, back = np.zeros((70, MODEL.standard_width)), np.zeros_like(records)
        for i, row in enumerate(records):
            protocol.update_statistic(MODEL.record, row, one)
            total += one
            protocol.update_standard(MODEL.record, theta, row, rng, standard[i])
            protocol.update_restored(MODEL.record, theta, standard[i], back[i])
        np.testing.assert_allclose(total, MODEL.statistic(records), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(back, records, rtol=1e-9, atol=1e-9)
        for n in (1, 63, 64, 70):
            protocol.update_total(MODEL.record, theta, standard, n, one)
            np.testing.assert_allclose(one, MODEL.statistic(back[:n]), rtol=1e-12, atol=1e-12)
        named = MODEL.variables(theta[None])
        np.testing.assert_allclose(MODEL.flat({name: each[0] for name, each in named.items()}), theta, rtol=1e-9)
        free, again = np.zeros(len(theta)), np.zeros(len(theta))
        protocol.update_free(MODEL.record, theta, free)
        protocol.update_from_free(MODEL.record, free, again)
        np.testing.assert_allclose(again, theta, rtol=1e-12)


def named_of(free):
    theta = np.zeros(MODEL.n_parameters)
    protocol.update_from_free(MODEL.record, free, theta)
    return {name: each[0] for name, each in MODEL.variables(theta[None]).items()}


def test_log_prior_is_the_stated_law_with_its_jacobian():
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(4):
        theta, free = MODEL.start(rng), np.zeros(MODEL.n_parameters)
        protocol.update_free(MODEL.record, theta, free)

        def flattened(at):
            named = named_of(at)
            return np.concatenate([named["beta"], named["mu"], named["Phi"][np.triu_indices(2)]])

        size, h = len(free), 1e-5
        columns = [(flattened(free + h * e) - flattened(free - h * e)) / (2 * h) for e in np.eye(size)]
        named = named_of(free)
        law = (
            stats.multivariate_normal.logpdf(named["beta"], PRIOR.coefficient_mean, PRIOR.coefficient_variance)
            + stats.multivariate_normal.logpdf(named["mu"], PRIOR.covariate_mean, PRIOR.covariate_mean_variance)
            + stats.wishart.logpdf(named["Phi"], 3.5, PRIOR.wishart_scale)
        )
        gaps.append(protocol.log_prior(MODEL.record, theta) - law - np.linalg.slogdet(np.array(columns))[1])
    np.testing.assert_allclose(gaps, gaps[0], rtol=0, atol=1e-6)


def test_draws_from_the_prior_have_its_moments():
    rng = np.random.default_rng(3)
    drawn = MODEL.variables(np.array([MODEL.start(rng) for _ in range(4000)]))
    for found, mean, covariance in (
        (drawn["beta"], PRIOR.coefficient_mean, PRIOR.coefficient_variance),
        (drawn["mu"], PRIOR.covariate_mean, PRIOR.covariate_mean_variance),
    ):
        assert np.all(np.abs(found.mean(axis=0) - mean) < 6 * np.sqrt(np.diag(covariance) / 4000))
        np.testing.assert_allclose(np.cov(found.T), covariance, rtol=0, atol=0.3)
    np.testing.assert_allclose(drawn["Phi"].mean(axis=0), 3.5 * PRIOR.wishart_scale, rtol=0, atol=0.2)


def test_prior_from_bounds_does_not_depend_on_units():
    """Log odds at the same place of the bounds have the same law on every scale."""
    unit, other = LogisticPrior.from_bounds((-1.0,), (1.0,)), LogisticPrior.from_bounds((20.0,), (60.0,))
    for z in (-1.0, 0.0, 0.7):
        line, moved = np.array([1.0, z]), np.array([1.0, 40.0 + 20.0 * z])
        assert np.isclose(line @ unit.coefficient_variance @ line, moved @ other.coefficient_variance @ moved)
        assert np.isclose(line @ unit.coefficient_variance @ line, 25.0 * (1 + z * z))


@pytest.mark.parametrize("line", [-700.0, -40.0, -3.0, 0.0, 0.5, 20.0, 700.0])
def test_what_is_left_of_a_response_has_the_truncated_logistic_law(line):
    """P(e > found | e > line) is the uniform number it was made of, in both tails."""
    for r in (1e-12, 0.01, 0.3, 0.9, 0.999, 1.0):
        found = logistic._above(line, r)
        assert found >= line
        share = np.exp(stats.logistic.logsf(found) - stats.logistic.logsf(line))
        np.testing.assert_allclose(share, r, rtol=1e-9)


class Aimed:
    """A generator whose normal numbers are given, and whose uniform number is asked for the level of acceptance."""

    def __init__(self, normals):
        self.normals, self.level = list(normals), None

    def standard_normal(self):
        return self.normals.pop(0)

    def random(self):
        return self

    def __lt__(self, level):
        self.level = level
        return False


def newton(beta, x, y):
    """Log density of beta given records, where a Newton step leads and with which precision; by numpy alone."""
    share = expit(x @ beta)
    precision = np.linalg.inv(PRIOR.coefficient_variance)
    level = stats.bernoulli.logpmf(y, share).sum()
    level += stats.multivariate_normal.logpdf(beta, PRIOR.coefficient_mean, PRIOR.coefficient_variance)
    curve = precision + (x.T * (share * (1 - share))) @ x
    slope = x.T @ (y - share) - precision @ (beta - PRIOR.coefficient_mean)
    return level, beta + np.linalg.solve(curve, slope), curve


def gaps(n, function=logistic.update_coefficients):
    """Sent from one place to another and back: log acceptance less the log ratio of flows, computed without its code."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(5):
        theta = MODEL.start(rng)
        records = MODEL.simulate(theta, n=n, rng=rng)
        x, y = np.column_stack([np.ones(n), records[:, :-1]]), records[:, -1]
        level, middle, curve = newton(theta[:3], x, y)
        there = stats.multivariate_normal.rvs(middle, np.linalg.inv(curve), random_state=rng)
        other_level, back, other_curve = newton(there, x, y)
        expected = (
            other_level
            - level
            + stats.multivariate_normal.logpdf(theta[:3], back, np.linalg.inv(other_curve))
            - stats.multivariate_normal.logpdf(there, middle, np.linalg.inv(curve))
        )
        for start, end, centre, matrix, ratio in (
            (theta[:3], there, middle, curve, expected),
            (there, theta[:3], back, other_curve, -expected),
        ):
            aimed = Aimed(np.linalg.cholesky(matrix).T @ (end - centre))
            function(MODEL.record, np.concatenate([start, theta[3:]]), records, n, aimed)
            found.append(abs(np.log(aimed.level) - ratio))
    return found


@pytest.mark.parametrize("n", [0, 1, 5, 1203])
def test_the_move_of_coefficients_is_reversible(n):
    assert max(gaps(n)) < 1e-6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_log_proposal(other_curve, q, beta, back)", "_log_proposal(curve, q, beta, middle)"),
        ("- _log_proposal(curve, q, other, middle)", ""),
        ("proposed - level", "level - proposed"),
    ],
)
def test_wrong_moves_of_coefficients_are_seen(old, new):
    source = inspect.getsource(logistic.update_coefficients)
    assert source.count(old) == 1
    namespace = dict(vars(logistic))
    exec(source.replace(old, new).replace("@register_jitable", ""), namespace)
    assert max(gaps(5, namespace["update_coefficients"])) > 1e-2


def test_compiled_code_does_what_the_source_says(filthy_memory):
    scales = np.full(MODEL.n_entries, 0.8)
    values = np.linspace(-1, 2, MODEL.n_entries)
    sampler = LatentChain(model=MODEL, observed=Observed(values=values, scales=scales, noisy_n=6.0, noisy_n_scale=1.0))
    results = []
    for interpreted in (False, True):
        rng = np.random.default_rng(4)
        state = sampler.start(rng)
        kernel = chain.update_interwoven_chain
        if interpreted:
            with pytest.MonkeyPatch.context() as patch, filthy_memory():
                patch.setattr(chain, "update_interwoven_chain", kernel.py_func)
                found = sampler.advance(state, rng, sweeps=3, thin=1, warming=False)
        else:
            found = sampler.advance(state, rng, sweeps=3, thin=1, warming=False)
        results.append(found[0] | {"records": state["records"][: state["count"][0]]})
    for name, compiled in results[0].items():
        np.testing.assert_allclose(compiled, results[1][name], rtol=1e-9, err_msg=name)
