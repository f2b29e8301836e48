"""Changes of n that the parameters make up for: the joint law is kept, twins with one thing wrong are seen, chains mix.

As in test_noisy_regression (Geweke's test, false alarms at 1e-5), with this move alone.
"""

import inspect

import numba
import numpy as np
import pytest
from sampler_checks import same_law_p_value, sequential

from privurn._kernels.sums import balance, protocol, triangles
from privurn._kernels.sums.chain import Tuning
from privurn.inference.draws import effective_draws
from privurn.inference.run import Schedule, run_chains
from privurn.inference.size import SizePrior
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.observed import Observed

PARTS = DirichletModel(parts=("a", "b", "c"), floor=0.0005, shape=3.0, rate=3.0, resolution=12)
SIZES = SizePrior(lower=1, upper=50)
SCALE = 0.8
TUNING = Tuning(0, 0, True, 1, PARTS.standard_width, 20)


def compiled(old="", new=""):
    """The move as machine code, with one thing changed in its source."""
    source = inspect.getsource(balance.update_balanced).replace("@register_jitable", "")
    assert not old or source.count(old) == 1
    namespace = dict(vars(balance))
    exec(source.replace(old, new) if old else source, namespace)
    return numba.njit(error_model="numpy")(namespace["update_balanced"])


def drawn(rng):
    """Parameters, records and release from the model."""
    theta = PARTS.start(rng)
    n = int(rng.integers(SIZES.lower, SIZES.upper, endpoint=True))
    records = PARTS.simulate(theta, n=n, rng=rng)
    values = PARTS.statistic(records) + SCALE * rng.laplace(size=3)
    size = {"noisy_n": n + 9.0 * rng.laplace(), "noisy_n_scale": 9.0, "size_prior": SIZES}
    return theta, records, Observed(values=values, scales=np.full(3, SCALE), **size)


def seen(theta, records, observed):
    gaps = np.abs(observed.values - PARTS.statistic(records))
    return [*theta, len(records), *gaps[:2], records[0, 1], records.mean(), theta.sum() * observed.noisy_n, theta[1] / theta[0]]


def p_values(move, seed):
    rng = np.random.default_rng(seed)

    def found(replicates):
        before, later = [], []
        for _ in range(replicates):
            before.append(seen(*drawn(rng)))
            theta, records, observed = drawn(rng)
            total, n = PARTS.statistic(records), len(records)
            head = (PARTS.record, observed.noise_record(), observed.size_record())
            records, n, _ = move(*head, theta, records, n, total, 0.5, TUNING, rng)
            later.append(seen(theta, records[:n], observed))
        return [same_law_p_value(a, b) for a, b in zip(np.transpose(before), np.transpose(later), strict=True)]

    return found


@pytest.mark.long
def test_the_joint_law_is_kept():
    assert sequential(p_values(compiled(), 1), size=3000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" + level - new_level", ""),
        ("prior - log_prior(model, theta)", "0.0"),
    ],
    ids=["volume", "prior"],
)
def test_what_is_wrong_is_seen(old, new):
    assert not sequential(p_values(compiled(old, new), 2), size=3000)


def test_slopes_of_the_sum_and_elimination():
    rng = np.random.default_rng(3)
    model = DirichletModel(parts=("a", "b", "c"), floor=0.05)
    theta = np.array([1.5, 0.7, 3.0])
    standard = np.zeros((40, 6))
    for row, u in zip(model.simulate(theta, n=40, rng=rng), standard, strict=True):
        protocol.update_standard(model.record, theta, row, rng, u)

    def total(free):
        found = np.empty(3)
        protocol.update_total(model.record, np.exp(free), standard, 40, found)
        return found

    here, slopes = np.empty(3), np.empty((3, 3))
    protocol.update_linearised(model.record, theta, standard, 40, here, slopes)
    np.testing.assert_allclose(here, total(np.log(theta)), rtol=1e-12)
    steps = 1e-6 * np.eye(3)
    numeric = np.transpose([(total(np.log(theta) + h) - total(np.log(theta) - h)) / 2e-6 for h in steps])
    np.testing.assert_allclose(slopes, numeric, rtol=1e-6, atol=1e-6)
    for size in (1, 2, 5):
        matrix, wanted = rng.standard_normal((size, size)), rng.standard_normal(size)
        solution = wanted.copy()
        level = triangles.update_solution(matrix.copy(), size, solution)
        np.testing.assert_allclose(matrix @ solution, wanted, atol=1e-10)
        assert level == pytest.approx(np.linalg.slogdet(matrix)[1])
    assert triangles.update_solution(np.ones((2, 2)), 2, np.ones(2)) == -np.inf


@pytest.mark.long
def test_accurate_sums_with_an_inaccurate_n_mix():
    """The noise is a tenth of what sums vary by from table to table, that of n ten times what the sums leave open."""
    rng = np.random.default_rng(4)
    model = DirichletModel(parts=("a", "b", "c"), floor=0.001)
    records = model.simulate(np.array([6.0, 2.0, 8.0]), n=800, rng=rng)
    values = model.statistic(records) + rng.laplace(size=3)
    observed = Observed(values=values, scales=np.ones(3), noisy_n=830.0, noisy_n_scale=30.0)
    found = {}
    for balances in (0, 2):
        sampler = LatentChain(model=model, observed=observed, balances=balances)
        draws = run_chains(sampler, schedule=Schedule(chains=4, warm_up=1000, draws=1000, seed=5))
        found[balances] = effective_draws(np.asarray(draws["n"], float)), draws.problems()
    assert found[2][0] > 5.0 * found[0][0]
    assert not found[2][1]
