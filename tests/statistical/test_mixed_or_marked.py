"""A normal mean from noisy sums of 100 records: every seed finds the posterior that quadrature finds, or says that it has not.

Of such runs a few in a hundred used to start where every record is clamped; one chain came back late, and the mean was wrong by
many of its errors while R-hat was fine.
"""

import math

import numpy as np
import pytest
from scipy import stats

from privurn.inference.run import Run
from privurn.inference.sums import latent_chain
from privurn.inference.sums.fit import fit
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior

N, SCALE, SUMS = 100, 2.25, (12.4, 6.0)
MODEL = RegressionModel(lower=(-1.0,), upper=(1.0,), prior=RegressionPrior.from_bounds((-1.0,), (1.0,)), name="normal")
SEEN = Observed(values=np.array(SUMS), scales=np.full(2, SCALE), n=N)
ERRORS = 6.0
"""Standard errors: of 400 normal errors one is larger with probability 1e-6. Seeds are fixed besides."""


@pytest.fixture(scope="module")
def exact():
    """Mean and deviation of the posterior of the mean: no record reaches a bound, so the sums have normal and chi-square laws.

    The prior: tau ~ Gamma(1/2, rate 0.0125), mean given tau N(0, 100/tau); both on a grid, the latter on the scale of log s.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    squares = stats.chi2.ppf((np.arange(120) + 0.5) / 120, N - 1)
    means, deviations = np.linspace(-0.3, 0.6, 151), np.exp(np.linspace(math.log(0.02), math.log(1.2), 90))
    logs = np.empty((len(means), len(deviations)))
    for j, s in enumerate(deviations):
        middle = means[:, None] + s / math.sqrt(N) * nodes
        second = N * middle[:, :, None] ** 2 + s * s * squares
        level = np.exp(-np.abs(SUMS[0] - N * middle) / SCALE) * np.exp(-np.abs(SUMS[1] - second) / SCALE).mean(axis=2)
        prior = -2.0 * math.log(s) - 0.0125 / s**2 - 0.005 * (means / s) ** 2
        logs[:, j] = np.log(level @ weights) + prior
    mass = np.exp(logs - logs.max()).sum(axis=1)
    mass /= mass.sum()
    mean = float(mass @ means)
    return mean, math.sqrt(float(mass @ means**2) - mean**2)


def wrong(seed, exact):
    """Whether a run is off without saying so."""
    found = fit(MODEL, observed=SEEN, run=Run(seed=seed))
    row = found.draws.summary(["mean"])[0]
    near = abs(row.mean - exact[0]) < ERRORS * row.standard_error and 0.85 < row.deviation / exact[1] < 1.15
    return found.mixed and not near


@pytest.mark.filterwarnings("ignore::privurn.inference.run.NotMixed")
def test_some_of_four_hundred_seeds(exact):
    assert exact == (pytest.approx(0.1297, abs=2e-4), pytest.approx(0.0364, abs=2e-4))
    assert not [seed for seed in range(0, 400, 20) if wrong(seed, exact)]


@pytest.mark.filterwarnings("ignore::privurn.inference.run.NotMixed")
def test_a_chain_that_starts_far_away_is_forgotten_or_marked(exact, monkeypatch):
    """Started at a plain draw of the prior, these seeds have a chain where all records are clamped, for 2,000 sweeps or more.

    Were what is judged kept, means of 3.8 and 0.26 with deviations of 63 and 2.2 would come out as mixed.
    """
    monkeypatch.setattr(latent_chain, "CANDIDATES", 1)
    assert not [seed for seed in (75, 88) if wrong(seed, exact)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::privurn.inference.run.NotMixed")
@pytest.mark.parametrize("block", range(8))
def test_four_hundred_seeds(exact, block):
    assert not [seed for seed in range(50 * block, 50 * block + 50) if wrong(seed, exact)]


def test_chains_start_near_the_data():
    """The best of a few draws from the prior: sums of records simulated there are nearer than those of a first draw."""
    sampler = LatentChain(model=MODEL, observed=SEEN)

    def away(theta, rng):
        return float(np.abs(MODEL.statistic(MODEL.simulate(theta, n=N, rng=rng)) - SUMS).sum())

    chosen = [away(sampler.start(np.random.default_rng(seed))["theta"], np.random.default_rng(1)) for seed in range(20)]
    first = [away(MODEL.start(np.random.default_rng(seed)), np.random.default_rng(1)) for seed in range(20)]
    assert np.median(chosen) < 0.5 * np.median(first)
    assert max(chosen) < np.quantile(first, 0.9)
    assert len({round(each, 6) for each in chosen}) > 10  # apart from each other all the same
