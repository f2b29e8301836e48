"""Chains for logistic regression keep the joint law of parameters, records and release; twins with one thing wrong do not.

The test, its level and its way to grow are those of test_noisy_regression.
"""

import math
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
from numba.extending import register_jitable
from test_noisy_regression import keeps_the_joint_law

from privurn._kernels.sums import logistic
from privurn._kernels.sums.protocol import provide, provided
from privurn.inference.run import Schedule, run_chains
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.observed import Observed

TWO = LogisticModel(
    lower=(-2.0, -1.0), upper=(1.0, 2.0), prior=LogisticPrior(coefficient_variance=4.0), resolution=20, complement=True
)
ONE = LogisticModel(lower=(-1.5,), upper=(1.5,), prior=LogisticPrior(coefficient_variance=9.0))


@pytest.mark.parametrize("secret", [pytest.param(True, marks=pytest.mark.long), False], ids=["secret n", "public n"])
def test_joint_law(secret):
    assert keeps_the_joint_law(TWO, secret=secret)


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [{"prior": LogisticPrior(coefficient_variance=16.0)}, {"complement": False}, {"upper": (1.0, 5.0)}],
    ids=lambda each: next(iter(each)),
)
def test_a_chain_for_another_model_is_seen(wrong):
    """Four times the prior variance, squares without their complement, one bound moved: compiled code that is already there."""
    assert not keeps_the_joint_law(TWO, secret=True, sampled=replace(TWO, **wrong), sweeps=8, size=1000)


@pytest.mark.long
@pytest.mark.parametrize("moves", ["centred", "interwoven"])
@pytest.mark.parametrize("secret", [True, False], ids=["secret n", "public n"])
@pytest.mark.parametrize("model", [ONE, TWO], ids=["one covariate", "two covariates"])
def test_every_move(model, secret, moves):
    assert keeps_the_joint_law(model, secret=secret, moves=moves, size=4000, seed=3)


RIGHT = {
    name: register_jitable(provided(logistic.Logistic)[name]) for name in ("update_parameters", "update_standard", "log_prior")
}
RIGHT_TOTAL = register_jitable(provided(logistic.Logistic)["update_total"])
RIGHT_PARAMETERS, RIGHT_STANDARD, RIGHT_PRIOR = RIGHT.values()
RIGHT_SLOPE = logistic._slope
Flawed = namedtuple("Flawed", (*logistic.Logistic._fields, "flaw"))  # a model of another package: compiled afresh


def flawed_parameters(model, theta, records, n, rng):
    """Flaw 1: a Newton step with noise that is taken without weighing the way back."""
    if model.flaw == 1:
        q = model.columns
        slope, curve, beta = np.empty(q), np.empty((q, q)), theta[:q].copy()
        RIGHT_SLOPE(model, beta, records, n, slope, curve)
        logistic._update_newton(curve, q, slope, beta, theta[:q])
        for j in range(q):
            beta[j] = rng.standard_normal()
        logistic.update_backward(curve, q, beta)
        for j in range(q):
            theta[j] += beta[j]
    RIGHT_PARAMETERS(model, theta, records, n, rng)


def flawed_standard(model, theta, row, rng, u):
    """Flaw 2: what is left of the response is drawn as if nothing were known of it, and only its side put right."""
    RIGHT_STANDARD(model, theta, row, rng, u)
    if model.flaw == 2:
        line = theta[0]
        for j in range(model.columns - 1):
            line += theta[1 + j] * row[j]
        gap = abs(math.log(1.0 / (1.0 - rng.random()) - 1.0))
        u[model.columns - 1] = line - gap if row[model.columns - 1] == 1.0 else line + gap


def flawed_prior(model, theta):
    """Flaw 3: the Jacobian of the covariate's log deviation is forgotten."""
    return RIGHT_PRIOR(model, theta) - (math.log(theta[2 * model.columns - 1]) if model.flaw == 3 else 0.0)


def flawed_total(model, theta, standard, n, out):
    """Flaw 4: the classes are swapped."""
    RIGHT_TOTAL(model, theta, standard, n, out)
    if model.flaw == 4:
        out[1], out[2] = out[2], out[1]


@pytest.fixture(scope="module")
def flawed():
    own = {
        "update_parameters": flawed_parameters,
        "update_standard": flawed_standard,
        "log_prior": flawed_prior,
        "update_total": flawed_total,
    }
    provide(Flawed, **provided(logistic.Logistic) | own)

    def make(flaw):
        model = LogisticModel(lower=ONE.lower, upper=ONE.upper, prior=ONE.prior)
        model.__dict__["record"] = Flawed(*ONE.record, flaw)
        return model

    return make


@pytest.mark.long
def test_what_is_wrong_is_seen(flawed):
    """The same code with nothing wrong passes; each of four flaws is caught."""
    assert keeps_the_joint_law(ONE, secret=True, sampled=flawed(0))
    for flaw in (1, 2, 3, 4):
        assert not keeps_the_joint_law(ONE, secret=True, sampled=flawed(flaw), sweeps=8, size=2000), f"flaw {flaw}"


@pytest.mark.long
def test_interwoven_moves_mix_ten_times_faster():
    """1,000 records, noise for epsilon = 0.1: effective draws of beta a sweep, the least of the coefficients."""
    model = LogisticModel(lower=(-5.0, -5.0), upper=(5.0, 5.0), resolution=20)
    rng = np.random.default_rng(1)
    truth = model.pack(beta=[0.0, -1.0, 1.0], mu=[-1.0, 1.0], Phi=np.eye(2))
    values = model.statistic(model.simulate(truth, n=1000, rng=rng)) + 60.0 * rng.laplace(size=8)
    released = Observed(values=values, scales=np.full(8, 60.0), noisy_n=1000 + 10 * rng.laplace(), noisy_n_scale=10.0)
    rates, means = {}, {}
    for moves, draws in (("centred", 20_000), ("interwoven", 4_000)):
        schedule = Schedule(chains=4, warm_up=2000, draws=draws, seed=1)
        found = run_chains(LatentChain(model=model, observed=released, moves=moves), schedule=schedule)
        rows = found.summary(["beta"])
        rates[moves] = min(row.effective_draws for row in rows) / (4 * draws)
        means[moves] = [(row.mean, row.deviation, row.standard_error) for row in rows]
    assert rates["interwoven"] > 10 * rates["centred"]
    for (a, _, first), (b, _, second) in zip(*means.values(), strict=True):
        assert abs(a - b) < 5 * math.hypot(first, second)
