"""The count-table chain by enumeration: its target is the model's posterior, and every move keeps it."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from privurn._kernels.sums.count_tables import (
    cell_log,
    gamma_ratio_log,
    size_log,
    stride_drawn,
    update_window_logs,
)
from privurn.domain import Categories, JointDomain
from privurn.errors import ModelError
from privurn.inference.sums.size import SizePrior
from privurn.inference.sums.table_inference import TableSampler, infer_table, log_odds_ratio
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import NormalStatistic
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.sums.table_statistic import TableStatistic

MOST = 5


def sampler(*, cells, n=None, noisy_n=None, kind="laplace", prior=None, size_prior=None, size_scale=1.3):
    """A tiny table with one column of `cells` cells."""
    names = [f"v{i}" for i in range(cells - 1)]
    mechanism = TableStatistic(
        neighbouring="add-remove" if n is None else "replace-one",
        noise=NoiseLaw(kind=kind, scale=1.7),
        size_noise=None if noisy_n is None else NoiseLaw(kind=kind, scale=size_scale),
        domain=JointDomain({"a": Categories(names, outside="other")}),
    )
    noisy = np.array([2.0, -1.0, 3.0][:cells])
    public = NoisyStatistics(mechanism=mechanism, values=noisy, n=n, noisy_n=noisy_n)
    gamma = np.array([0.5, 1.0, 2.5][:cells]) if prior is None else np.asarray(prior, float)
    return TableSampler(statistics=public, prior=gamma, size_prior=size_prior or SizePrior(upper=MOST))


CASES = [
    {"cells": 2},
    {"cells": 2, "kind": "gaussian"},
    {"cells": 2, "noisy_n": 3.0},
    {"cells": 2, "noisy_n": -4.0, "kind": "gaussian"},
    {"cells": 3, "n": 4},
    {"cells": 3, "noisy_n": 2.0, "prior": [1.0, 1.0, 1.0]},
    {"cells": 2, "size_prior": SizePrior(kind="poisson", mean=2.2, lower=1, upper=MOST)},
    {"cells": 3, "size_prior": SizePrior(lower=2, upper=4), "prior": [0.3, 0.3, 0.4]},
]


def states(chain):
    """All tables that the prior of n allows."""
    low, high = int(chain.table.lower), int(chain.table.upper)
    every = product(range(high + 1), repeat=len(chain.prior))
    return [np.array(each) for each in every if low <= sum(each) <= high]


def log_posterior(chain, x):
    """From the model, term by term: prior of n, Dirichlet-multinomial, noise of the counts and of n."""
    gamma, n, public = chain.prior, x.sum(), chain.statistics
    value = math.lgamma(gamma.sum()) + gammaln(n + 1) - gammaln(gamma.sum() + n)
    value += (gammaln(gamma + x) - gammaln(gamma) - gammaln(x + 1)).sum()
    value += public.log_density(x) + float(public.log_density_of_size(np.array([n]))[0])
    return value + (0.0 if public.n is not None else float(chain.size_prior.log_mass(np.array([n]))[0]))


def posterior(chain):
    logs = np.array([log_posterior(chain, x) for x in states(chain)])
    masses = np.exp(logs - logs.max())
    return masses / masses.sum()


@pytest.mark.parametrize("case", CASES)
def test_target_is_the_posterior(case):
    chain = sampler(**case)
    found = []
    for x in states(chain):
        value = sum(cell_log(chain.table, i, float(c)) for i, c in enumerate(x))
        found.append(value + size_log(chain.table, float(x.sum())) - log_posterior(chain, x))
    assert np.ptp(found) < 1e-11


def transition(chain, cells, steps, *, window, largest, before=None):
    """Matrix of one step along a line, all strides and places of the window weighted as the kernel draws them."""
    every = states(chain)
    place = {tuple(x): i for i, x in enumerate(every)}
    matrix = np.zeros((len(every), len(every)))
    for i, x in enumerate(every):
        for stride in range(1, largest + 1):
            weight = math.log1p(1 / stride) / math.log(largest + 1)
            for start in range(window) if before is None else [before]:
                logs = np.empty(window)
                update_window_logs(logs, chain.table, x, int(x.sum()), np.array(cells), np.array(steps), stride, start)
                masses = np.exp(logs - logs.max())
                masses /= masses.sum()
                for j, mass in enumerate(masses):
                    if mass > 0:
                        y = x.copy()
                        y[cells] += (j - start) * stride * np.array(steps)
                        matrix[i, place[tuple(y)]] += weight * mass / (window if before is None else 1)
    return matrix


def directions(chain):
    k = len(chain.prior)
    pairs = [([i, j], [1, -1]) for i in range(k) for j in range(k) if i != j]
    if chain.statistics.n is not None:
        return pairs
    together = [(list(range(k)), [2, 1, 1][:k])]
    return pairs + [([i], [1]) for i in range(k)] + together


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("window", [2, 3, 8])
def test_every_move_keeps_the_posterior(case, window):
    chain = sampler(**case)
    pi = posterior(chain)
    for cells, steps in directions(chain):
        matrix = transition(chain, cells, steps, window=window, largest=3)
        assert np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert np.allclose(pi @ matrix, pi, rtol=0, atol=1e-13)
        flow = pi[:, None] * matrix
        assert np.allclose(flow, flow.T, rtol=0, atol=1e-13)  # each move is reversible


def test_a_window_that_always_starts_at_the_state_would_not_do():
    """The planted bug: without the random place of the window the posterior is lost."""
    chain = sampler(cells=2)
    pi = posterior(chain)
    matrix = transition(chain, [0], [1], window=3, largest=1, before=0)
    assert np.abs(pi @ matrix - pi).max() > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_all_tables_can_be_reached(case):
    chain = sampler(**case)
    matrix = sum(transition(chain, cells, steps, window=2, largest=1) for cells, steps in directions(chain))
    assert np.all(np.linalg.matrix_power(matrix, 4 * MOST) > 0)


def test_strides_have_the_stated_law():
    """P(s) = log(1 + 1/s)/log(largest + 1): the kernel's inverse of its distribution function, at the ends of each cell."""

    class Fixed:
        def __init__(self, value):
            self.value = value

        def random(self):
            return self.value

    for largest in (1, 2, 7, 100):
        ends = np.log(np.arange(1, largest + 2)) / math.log(largest + 1)
        for s in range(1, largest + 1):
            for inside in (ends[s - 1] + 1e-9, ends[s] - 1e-9):
                assert stride_drawn.py_func(largest, Fixed(inside)) == s


def test_ratios_of_gammas():
    rng = np.random.default_rng(1)
    for a, b in rng.gamma(0.7, 20.0, size=(300, 2)) + 0.01:
        assert math.isclose(gamma_ratio_log(a, b), math.lgamma(a) - math.lgamma(b), rel_tol=1e-11, abs_tol=1e-10)
    for n in (10**6, 10**12):  # whole differences: a product of whole numbers
        exact = math.log(Fraction(n) * (n + 1) * (n + 2))
        assert math.isclose(gamma_ratio_log(n + 3.0, float(n)), exact, rel_tol=1e-13)
        assert math.isclose(gamma_ratio_log(float(n), n + 3.0), -exact, rel_tol=1e-13)


def test_pieces_of_a_run_are_the_run():
    """Cut anywhere, the chain is bit by bit the same."""
    chain = sampler(cells=3, noisy_n=4.0, size_prior=SizePrior())
    found = []
    for pieces in ([12], [4, 8], [2] * 6):
        rng = np.random.default_rng(7)
        state = chain.start(rng)
        kept = [chain.advance(state, rng, sweeps=each, thin=2, warming=False)[0] for each in pieces]
        found.append({name: np.concatenate([each[name] for each in kept]) for name in kept[0]})
    for name, values in found[0].items():
        assert len(values) == 6
        assert all(np.array_equal(values, other[name]) for other in found[1:])


def test_starts_are_possible():
    for case in CASES:
        chain = sampler(**case)
        for seed in range(20):
            counts = chain.start(np.random.default_rng(seed))["counts"]
            assert counts.min() >= 0
            assert chain.table.lower <= counts.sum() <= chain.table.upper


def test_odds_ratio_of_the_four_proper_cells():
    domain = JointDomain({"a": Categories(["u", "v"]), "b": Categories([0, 1], outside="null")})
    mechanism = TableStatistic(neighbouring="add-remove", noise=NoiseLaw(kind="laplace", scale=1.0), domain=domain)
    share = {name: i + 1.0 for i, name in enumerate(mechanism.names)}
    p = np.array(list(share.values()))
    expected = share["a=u, b=0"] * share["a=v, b=1"] / (share["a=v, b=0"] * share["a=u, b=1"])
    assert math.isclose(float(log_odds_ratio(p, mechanism)), math.log(expected), rel_tol=1e-14)
    assert (
        log_odds_ratio(p[:3], TableStatistic(**{**vars(mechanism), "domain": JointDomain({"a": Categories(["u", "v"])})}))
        is None
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(ModelError, match="one positive number for each cell"):
        sampler(cells=2, prior=[1.0, 0.0])
    with pytest.raises(ModelError, match="one positive number for each cell"):
        sampler(cells=2, prior=[1.0])
    normal = NormalStatistic.calibrated(response="y", bounds=(0, 1), budget=Budget(epsilon=1, neighbouring="add-remove"))
    with pytest.raises(ModelError, match="'normal', not a table"):
        infer_table(NoisyStatistics(mechanism=normal, values=np.zeros(2)))
