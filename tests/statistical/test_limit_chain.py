"""The chain of the Gaussian limit has the law it claims, and that law is close to the one with every record drawn.

The first by a grid: for a normal mean the limit's posterior is an integral over two sums, for each of two parameters. The
second against the interwoven chain at n = 1,000.
"""

import warnings

import numpy as np
import pytest

import privurn
from privurn.inference.draws import NotMixed, effective_draws
from privurn.inference.run import Run, Schedule, run_chains
from privurn.inference.sums.fit import fit
from privurn.inference.sums.limit_chain import LIMIT_FROM, LimitChain, chosen_moves
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.mean_models import BernoulliModel
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
from privurn.privacy.entropy import SeededEntropy

BOUNDS = (-2.0,), (2.0,)
NORMAL = RegressionModel(lower=BOUNDS[0], upper=BOUNDS[1], prior=RegressionPrior.from_bounds(*BOUNDS))
SEEN = Observed(values=np.array([14.0, 9.0]), scales=np.array([1.0, 1.0]), n=60)


def grid_moments(chain):
    """Mean and deviation of (mean, log deviation) of the limit's posterior, by sums over a grid of parameters and sums."""
    steps = np.linspace(-5.5, 5.5, 56)
    first, second = np.meshgrid(steps, steps, indexing="ij")
    standard = np.stack([first.ravel(), second.ravel()])
    bell = np.exp(-0.5 * np.sum(standard**2, axis=0))
    points, weights = [], []
    for mean in np.linspace(-0.3, 1.5, 37):
        for log_deviation in np.linspace(-1.6, 1.2, 37):
            place = chain.place(np.array([mean, log_deviation]))
            sums = place.mean[:, None] + np.linalg.cholesky(place.covariance + 1e-12 * np.eye(2)) @ standard
            noise = np.exp(-np.sum(np.abs(SEEN.values[:, None] - sums) / SEEN.scales[:, None], axis=0))
            points.append((mean, log_deviation))
            weights.append(np.exp(place.level) * np.sum(bell * noise))
    points, weights = np.array(points), np.array(weights) / np.sum(weights)
    middle = weights @ points
    return middle, np.sqrt(weights @ (points - middle) ** 2)


def standing_apart(chain, middle, deviation):
    """By how many Monte Carlo errors the draws' mean and mean square differ from what they should be, at most."""
    draws = run_chains(chain, schedule=Schedule(chains=2, warm_up=100, draws=300, seed=4), threads=1)
    values = np.stack([draws["mean"], -0.5 * np.log(draws["tau"])])
    apart = []
    for value, centre, spread in zip(values, middle, deviation, strict=True):
        units = (value - centre) / spread
        for each, expected in ((units, 0.0), (units**2, 1.0)):
            apart.append(abs(each.mean() - expected) * np.sqrt(effective_draws(each, of="mean")) / each.std())
    return max(apart)


class Narrow(RegressionModel):
    """The sums have a ninth of their variance."""

    def sum_law(self, theta):
        mean, covariance = super().sum_law(theta)
        return mean, covariance / 9.0


def test_the_chain_has_the_law_of_the_limit_and_wrong_ones_are_seen():
    chain = LimitChain(model=NORMAL, observed=SEEN)
    expected = grid_moments(chain)
    assert standing_apart(chain, *expected) < 4.5
    narrow = Narrow(lower=BOUNDS[0], upper=BOUNDS[1], prior=NORMAL.prior)
    assert standing_apart(LimitChain(model=narrow, observed=SEEN), *expected) > 6.0
    wide = Observed(values=SEEN.values, scales=3.0 * SEEN.scales, n=SEEN.n)
    assert standing_apart(LimitChain(model=NORMAL, observed=wide), *expected) > 6.0


def test_a_run_in_pieces_is_the_same_run():
    chain = LimitChain(model=NORMAL, observed=SEEN)
    found = []
    for pieces in ((6,), (2, 4)):
        rng = np.random.default_rng(2)
        state = chain.start(np.random.default_rng(1))
        chain.advance(state, rng, sweeps=5, thin=1, warming=True)
        kept = [chain.advance(state, rng, sweeps=each, thin=1, warming=False)[0]["mean"] for each in pieces]
        found.append(np.concatenate(kept))
    np.testing.assert_array_equal(*found)


def test_which_moves_are_usual():
    def of(n, **how):
        return Observed(values=SEEN.values, scales=SEEN.scales, n=n, **how)

    assert chosen_moves(NORMAL, of(LIMIT_FROM)) == "limit"
    assert chosen_moves(NORMAL, of(LIMIT_FROM - 1)) == "interwoven"
    assert chosen_moves(NORMAL, of(None, noisy_n=LIMIT_FROM + 0.5)) == "limit"
    assert chosen_moves(BernoulliModel(), of(10**6)) == "interwoven"
    with pytest.raises(privurn.errors.ModelError, match="no Gaussian limit"):
        LimitChain(model=BernoulliModel(), observed=Observed(values=np.array([3.0]), scales=np.array([1.0]), n=9))


def test_survey_size_through_the_public_call():
    """A million records: the default says that it is approximate, and finds the truth; so it does with a secret n."""
    rng = np.random.default_rng(8)
    age = rng.normal(45.0, 12.0, 10**6)
    table = np.column_stack([age, 10.0 + 0.5 * age + rng.normal(0.0, 8.0, 10**6)])
    columns = {"response": "column_1", "covariates": ["column_0"], "bounds": (0, 100)}
    for budget in (Budget(epsilon=1), Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")):
        mechanism = RegressionStatistic.calibrated(**columns, budget=budget)
        made = privurn.release_statistics(table, mechanism=mechanism, budget=budget, entropy=SeededEntropy(3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotMixed)  # a short run
            found = privurn.infer(made, run=Run(chains=2, warm_up=60, draws=60, seed=1, threads=1))
        slope = next(each for each in found.summary() if each.name == "beta[column_0]")
        assert abs(slope.mean - 0.5) < 6.0 * slope.deviation < 0.02
        assert found.approximation.startswith("approximate")
        assert "approximate" in found.draws.attributes["sampler"]


TWO = (-3.0, -5.0), (3.5, 5.0)
LINEAR = RegressionModel(lower=TWO[0], upper=TWO[1], prior=RegressionPrior.from_bounds(*TWO))
LOGISTIC = LogisticModel(lower=TWO[0][:1], upper=TWO[1][:1], prior=LogisticPrior.from_bounds(TWO[0][:1], TWO[1][:1]))


@pytest.mark.long
@pytest.mark.parametrize("secret", [False, True], ids=["public", "secret"])
@pytest.mark.parametrize("model", [LINEAR, LOGISTIC], ids=["linear", "logistic"])
def test_agreement_with_every_record_drawn(model, secret):
    """n = 1,000: quantiles of one are where they are among the draws of the other; with wrong noise they are not."""
    rng = np.random.default_rng(5)
    deviation = {"tau": 1.5} if model is LINEAR else {}
    theta = model.pack(beta=[0.3, -1.0], mu=[0.5], Phi=np.array([[1.2]]), **deviation)
    scales = np.full(model.n_entries, 6.0)
    values = model.statistic(model.simulate(theta, n=1000, rng=rng)) + 6.0 * rng.laplace(size=len(scales))
    size = {"noisy_n": 1004.0, "noisy_n_scale": 5.0} if secret else {"n": 1000}
    observed = Observed(values=values, scales=scales, **size)
    plain = fit(model, observed=observed, moves="interwoven", run=Run(seed=1, draws=4000)).draws
    limit = fit(model, observed=observed, moves="limit", run=Run(seed=1, draws=2000)).draws
    assert _apart(plain, limit) < 0.06  # five Monte Carlo errors: some 3,000 effective draws
    wrong = Observed(values=values, scales=4.0 * scales, **size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)  # this one need not have
        assert _apart(plain, fit(model, observed=wrong, moves="limit", run=Run(seed=1, draws=500)).draws) > 0.12


def _apart(one, other):
    """Largest difference between a quantile's level among the draws of one and its rank among those of the other."""
    levels, found = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), [0.0]
    for (name, first), (_, second) in zip(one.numbers(), other.numbers(), strict=True):
        if name != "n":  # whole numbers have ties
            cuts = np.quantile(first, levels)
            found.append(np.abs([np.mean(second < cut) for cut in cuts] - levels).max())
    return max(found)
