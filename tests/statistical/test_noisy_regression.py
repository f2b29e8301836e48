"""Chains given noisy sums keep the joint law of parameters, records and release; twins with one thing wrong do not.

Geweke's test: (parameters, n, records, release) from the model, and the same after some sweeps at that release, have one law.
False alarms at 1e-5 a test (sampler_checks). Steps are not adapted here, so that the transition is one and the same.
"""

import math
from collections import namedtuple

import numpy as np
import pytest
from numba.extending import register_jitable
from sampler_checks import same_law_p_value, sequential

from privurn._kernels.sums import regression
from privurn._kernels.sums.protocol import provide, provided
from privurn.inference.size import SizePrior
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.mean_models import PoissonModel
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel

SIZES = SizePrior(lower=1, upper=9)
SCALE = 0.8


def drawn(model, rng, *, secret):
    """Parameters, records and release from the model."""
    theta = model.start(rng)
    n = int(rng.integers(SIZES.lower, SIZES.upper, endpoint=True))
    records = model.simulate(theta, n=n, rng=rng)
    values = model.statistic(records) + SCALE * rng.laplace(size=model.n_entries)
    size = {"noisy_n": n + 1.5 * rng.laplace(), "noisy_n_scale": 1.5, "size_prior": SIZES} if secret else {"n": n}
    return theta, records, Observed(values=values, scales=np.full(model.n_entries, SCALE), **size)


def seen(model, theta, records, observed):
    """Numbers whose law is looked at: parameters, n, and how records and parameters fit the release."""
    total = model.statistic(records)
    gaps = np.abs(observed.values - total) / SCALE
    return [*theta, len(records), gaps.sum(), *gaps[:2], records[-1, -1], theta[0] * observed.values[0], total[-1] - theta[-1]]


def after(model, theta, records, observed, rng, *, sampled, moves, sweeps):
    sampler = LatentChain(model=sampled, observed=observed, moves=moves)
    state = sampler.start(rng)
    room = np.zeros((len(records) + 1, records.shape[1]))  # little room: growing is part of what is tested
    room[: len(records)] = records
    state |= {"theta": theta.copy(), "records": room, "count": np.array([len(records)])}
    state["factor"] = 0.5 * np.eye(len(theta) + 1)
    state["numbers"] = np.array([0.0, 0.0, 1.2])
    sampler.advance(state, rng, sweeps=sweeps, thin=1, warming=False)
    return state["theta"], state["records"][: state["count"][0]]


def keeps_the_joint_law(model, *, secret, sampled=None, moves="interwoven", sweeps=4, size=500, seed=1):
    rng = np.random.default_rng(seed)

    def p_values(replicates):
        before, later = [], []
        for _ in range(replicates):
            before.append(seen(model, *drawn(model, rng, secret=secret)))
            theta, records, observed = drawn(model, rng, secret=secret)
            moved = after(model, theta, records, observed, rng, sampled=sampled or model, moves=moves, sweeps=sweeps)
            later.append(seen(model, *moved, observed))
        return [same_law_p_value(a, b) for a, b in zip(np.transpose(before), np.transpose(later), strict=True)]

    return sequential(p_values, size=size)


REGRESSION = RegressionModel(lower=(-2.0, -1.0, -3.0), upper=(1.0, 2.0, 3.0), resolution=20, complement=True)
NORMAL = RegressionModel(lower=(-1.5,), upper=(1.5,), name="normal")
COMPOSITIONS = DirichletModel(parts=("a", "b", "c"), floor=0.05, shape=2.0, rate=1.0)


@pytest.mark.parametrize("secret", [pytest.param(True, marks=pytest.mark.long), False], ids=["secret n", "public n"])
def test_regression(secret):
    assert keeps_the_joint_law(REGRESSION, secret=secret)


@pytest.mark.long
@pytest.mark.parametrize("moves", ["centred", "interwoven"])
@pytest.mark.parametrize("secret", [True, False], ids=["secret n", "public n"])
@pytest.mark.parametrize("model", [REGRESSION, NORMAL, COMPOSITIONS, PoissonModel(upper=12)], ids=lambda each: each.name)
def test_every_model_with_every_move(model, secret, moves):
    assert keeps_the_joint_law(model, secret=secret, moves=moves, size=4000, seed=3)


RIGHT_PRIOR, RIGHT_STATISTIC, RIGHT_TOTAL = (
    register_jitable(provided(regression.Regression)[name]) for name in ("log_prior", "update_statistic", "update_total")
)
Flawed = namedtuple("Flawed", (*regression.Regression._fields, "flaw"))  # a model of another package: compiled afresh


def flawed_prior(model, theta):
    """Flaw 1: the Jacobian of the logarithm of the deviation is forgotten."""
    return RIGHT_PRIOR(model, theta) + (2.0 * math.log(theta[model.columns]) if model.flaw == 1 else 0.0)


def flawed_statistic(model, row, out):
    """Flaw 2: values are clamped at half the public bounds."""
    RIGHT_STATISTIC(model, row, out)
    if model.flaw == 2:
        out[0] = min(0.5, max(-0.5, out[0]))
        out[1] = out[0] * out[0]


def flawed_total(model, theta, standard, n, out):
    """Flaw 3: one standardised record is left out."""
    RIGHT_TOTAL(model, theta, standard, n - 1 if model.flaw == 3 else n, out)


@pytest.fixture(scope="module")
def flawed():
    own = {"log_prior": flawed_prior, "update_statistic": flawed_statistic, "update_total": flawed_total}
    provide(Flawed, **provided(regression.Regression) | own)

    def make(flaw):
        model = RegressionModel(lower=NORMAL.lower, upper=NORMAL.upper, name="normal")
        model.__dict__["record"] = Flawed(*NORMAL.record, flaw)
        return model

    return make


@pytest.mark.long
def test_what_is_wrong_is_seen(flawed):
    """The same code with nothing wrong passes; each of three flaws is caught."""
    assert keeps_the_joint_law(NORMAL, secret=True, sampled=flawed(0))
    for flaw in (1, 2, 3):
        assert not keeps_the_joint_law(NORMAL, secret=True, sampled=flawed(flaw), sweeps=8, size=2000), f"flaw {flaw}"
