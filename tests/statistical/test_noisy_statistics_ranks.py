"""Whole runs given noisy sums are calibrated: from the prior to data, release and posterior, ranks of the truth are uniform.

Unlike the joint tests of single sweeps, a run here starts where it likes, adapts while it warms up, and is thinned until draws
are as good as independent. False alarms at 1e-5 (sampler_checks). A chain that takes the noise for
a tenth of what it is is seen. And with an accurate noisy n, the posterior of a secret n is that of a public one.
"""

from dataclasses import replace

import numpy as np
import pytest
from sampler_checks import random_rank, rank_p_value, same_law_p_value, sequential
from test_logistic_chain import ONE as LOGISTIC
from test_noisy_regression import COMPOSITIONS, NORMAL, REGRESSION, drawn

from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.mean_models import BernoulliModel, PoissonModel

DRAWS, THIN, WARM_UP = 19, 40, 300
MODELS = [REGRESSION, NORMAL, COMPOSITIONS, LOGISTIC, BernoulliModel(first=2.0, second=3.0), PoissonModel(upper=12)]


def posterior_draws(model, observed, rng, *, draws=DRAWS):
    """Parameters and n of one chain."""
    sampler = LatentChain(model=model, observed=observed)
    state = sampler.start(rng)
    sampler.advance(state, rng, sweeps=WARM_UP, thin=1, warming=True)
    found = []
    for _ in range(draws):
        sampler.advance(state, rng, sweeps=THIN, thin=THIN, warming=False)
        found.append([*state["theta"], state["count"][0]])
    return np.array(found)


def is_calibrated(model, *, secret, factor=1.0, size=400, seed=1):
    rng = np.random.default_rng(seed)

    def p_values(replicates):
        ranks = []
        for _ in range(replicates):
            theta, records, observed = drawn(model, rng, secret=secret)
            believed = replace(observed, scales=factor * observed.scales)
            draws = posterior_draws(model, believed, rng)
            truth = [*theta, len(records)]
            ranks.append([random_rank(each, column, rng) for each, column in zip(truth, draws.T, strict=True)])
        return [rank_p_value(each, n_ranks=DRAWS + 1) for each in np.transpose(ranks)]

    return sequential(p_values, size=size)


@pytest.mark.long
@pytest.mark.parametrize("secret", [True, False], ids=["secret n", "public n"])
def test_ranks_of_a_normal_mean(secret):
    assert is_calibrated(NORMAL, secret=secret)


@pytest.mark.long
@pytest.mark.parametrize("secret", [True, False], ids=["secret n", "public n"])
@pytest.mark.parametrize("model", MODELS, ids=lambda each: each.name)
def test_ranks_of_every_model(model, secret):
    assert is_calibrated(model, secret=secret, size=1000, seed=2)


@pytest.mark.long
def test_a_wrong_scale_is_seen():
    assert not is_calibrated(NORMAL, secret=True, factor=0.1)


def test_an_accurate_n_is_a_public_n():
    rng, model = np.random.default_rng(3), NORMAL
    _, records, public = drawn(model, rng, secret=False)
    n = len(records)
    secret = replace(public, n=None, noisy_n=n + 1e-4, noisy_n_scale=0.002)
    one, other = (posterior_draws(model, each, rng, draws=400) for each in (public, secret))
    assert (other[:, -1] == n).all()
    assert min(same_law_p_value(a, b) for a, b in zip(one.T[:-1], other.T[:-1], strict=True)) > 1e-5
