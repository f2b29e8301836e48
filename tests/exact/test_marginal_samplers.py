"""Samplers behind the channel against all partitions of four records, whose posterior is EPPF times evidence.

The evidence is checked by quadrature, the partitions' posterior is enumerated, and a chain's partitions are compared with
it by a chi-square test on draws that are far apart, at ALPHA. Twins with a wrong prior ratio, a forgotten cut or a forgotten
proposal probability are caught by the same test.
"""

import math

import numpy as np
import pytest
from mixture_states import partitions
from scipy import integrate, stats

from privurn._kernels.mixtures.channels import Gaussian
from privurn._kernels.mixtures.incomplete_gamma import gamma_below, log_gamma_below
from privurn._kernels.mixtures.mixings import DirichletProcess, FiniteDirichlet, PitmanYorProcess
from privurn._kernels.mixtures.neal2 import run_neal2
from privurn._kernels.mixtures.neal3 import run_neal3
from privurn._kernels.mixtures.neal8 import run_neal8
from privurn._kernels.mixtures.total_gaussian import TotalGaussianKernel

ALPHA = 1e-6
Z = np.array([-1.5, -1.2, 1.7, 0.4])
NOISE = 0.8
CHANNEL = Gaussian(NOISE, -math.inf, math.inf)
KERNEL = TotalGaussianKernel(0.2, 0.3, 3.0, 3.0, NOISE)
MIXINGS = {
    "dirichlet-process": (DirichletProcess(0.0, 0.0), 1.3, lambda k: 1.3, 0.0),
    "pitman-yor": (PitmanYorProcess(0.3), 0.7, lambda k: 0.7 + 0.3 * k, -0.3),
    "finite": (FiniteDirichlet(3), 2.0, lambda k: 2.0 * (3 - k) / 3, 2.0 / 3),
}
THIN = 25


def evidence(values, *, floor=NOISE**2):
    """Quadrature over the variance t2; given it, the values are jointly normal. floor=0 forgets the cut."""
    n, prior = len(values), stats.invgamma(KERNEL.shape, scale=KERNEL.scale)

    def integrand(t2):
        covariance = t2 * (np.eye(n) + np.ones((n, n)) / KERNEL.precision)
        return stats.multivariate_normal(np.full(n, KERNEL.mean), covariance).pdf(values) * prior.pdf(t2)

    return integrate.quad(integrand, floor, np.inf, epsabs=0, epsrel=1e-9, limit=200)[0] / prior.sf(floor)


def posterior(mixing, *, floor=NOISE**2):
    _, _, opening, shift = MIXINGS[mixing]
    weights = {}
    blocks = {}
    for partition in partitions(len(Z)):
        k = max(partition) + 1
        weight = math.prod(opening(j) for j in range(1, k))
        for h in range(k):
            members = tuple(i for i in range(len(Z)) if partition[i] == h)
            weight *= math.prod(j + shift for j in range(1, len(members)))
            if members not in blocks:
                blocks[members] = evidence(Z[list(members)], floor=floor)
            weight *= blocks[members]
        weights[partition] = weight
    total = sum(weights.values())
    return {partition: weight / total for partition, weight in weights.items()}


def run(sampler, mixing, *, draws=2500, seed=5):
    """Labels of draws THIN sweeps apart."""
    record, strength, _, _ = MIXINGS[mixing]
    c, y, s, tuning = np.zeros(4, np.int64), np.zeros(4), np.array([strength]), np.zeros(2)
    atoms = np.array([[0.0, 1.0, 0.5 * math.log(2 * math.pi)]])
    labels = np.empty((draws, 4), np.int64)
    none = np.empty(0)
    keep = (
        np.empty(draws, np.int64),
        np.empty(draws),
        none,
        none[:, None],
        labels,
        none[:, None],
        *np.empty((2, draws)),
        np.empty((0, 3)),
    )
    first, rng, sweeps = (CHANNEL, KERNEL, record, Z, c, y), np.random.default_rng(seed), draws * THIN
    if sampler == "neal2":
        run_neal2(*first, atoms, s, sweeps, THIN, keep, rng)
    elif sampler == "neal8":
        run_neal8(*first, 2, atoms, s, tuning, 3, sweeps, THIN, False, keep, rng)
    else:
        run_neal3(*first, atoms, s, 3 if sampler == "split-merge" else 0, 2, sweeps, THIN, keep, rng)
    return [tuple(each) for each in labels.tolist()]


def p_value(labels, expected):
    found = np.array([labels.count(partition) for partition in expected], float)
    wanted = np.array(list(expected.values())) * len(labels)
    likely = wanted >= 5
    found, wanted = (np.append(each[likely], each[~likely].sum()) for each in (found, wanted))
    return 0.0 if np.any(found[wanted == 0] > 0) else stats.chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue


@pytest.mark.parametrize(  # a combination costs its compilation: all of them in the long run
    "mixing", ["dirichlet-process", *(pytest.param(each, marks=pytest.mark.long) for each in ("pitman-yor", "finite"))]
)
@pytest.mark.parametrize("sampler", ["neal2", "neal3", "split-merge", "neal8"])
def test_partitions_have_their_posterior(sampler, mixing):
    assert p_value(run(sampler, mixing), posterior(mixing)) > ALPHA


def test_the_evidence_is_the_quadrature():
    from numba import njit

    from privurn._kernels.mixtures.collapsed import log_evidence

    @njit
    def compiled(channel, kernel, seen):
        return log_evidence(channel, kernel, seen, 0)

    for values in (Z[:1], Z[:3], Z, 10 * Z):
        x = values - KERNEL.mean
        seen = np.array([[len(x), x.sum(), (x**2).sum()]])
        assert compiled(CHANNEL, KERNEL, seen) == pytest.approx(math.log(evidence(values)), abs=1e-8)


def test_wrong_posteriors_are_told_apart():
    labels = run("neal3", "dirichlet-process", draws=6000)
    assert p_value(labels, posterior("dirichlet-process", floor=0.0)) < ALPHA  # the cut forgotten
    assert p_value(labels, posterior("pitman-yor")) < ALPHA  # another prior


def test_a_forgotten_proposal_probability_is_caught():
    """The same move in plain Python, without q: far from the posterior."""
    from privurn._kernels.mixtures import split_merge

    expected = posterior("dirichlet-process")
    record, strength, _, _ = MIXINGS["dirichlet-process"]

    def chain(*, forget):
        original = split_merge.restricted_scan.py_func

        def scan(*arguments):
            found = original(*arguments)
            return 0.0 if forget else found

        step = split_merge.split_or_merge.py_func
        scope = dict(step.__globals__)
        scope["restricted_scan"] = scan
        move = type(step)(step.__code__, scope)
        rng, c, atoms, labels = np.random.default_rng(3), np.zeros(4, np.int64), np.zeros((1, 3)), []
        for t in range(6000):
            _, atoms = move(CHANNEL, KERNEL, record, strength, Z, c, atoms, 1, rng)
            if t % 4 == 0:
                labels.append(tuple(np.unique(c, return_index=True)[1].argsort().argsort()[c].tolist()))
        return [relabel(each) for each in labels]

    assert p_value(chain(forget=False), expected) > ALPHA
    assert p_value(chain(forget=True), expected) < ALPHA


def relabel(labels):
    seen = {}
    return tuple(seen.setdefault(each, len(seen)) for each in labels)


def test_incomplete_gamma_in_logs():
    import mpmath

    with mpmath.workdps(40):
        for a in (0.3, 1.0, 3.0, 10.5, 100.0):
            for x in (1e-8, 0.1, 1.0, 3.0, 9.0, 10.0, 12.0, 50.0, 99.0, 130.0, 1e4):
                exact = float(mpmath.log(mpmath.gammainc(a, 0, x, regularized=True)))
                assert log_gamma_below(a, x) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(
    ("a", "bound"), [(3, 1), (3, 0.01), (50, 20), (50, 48), (1, 0.5), (0.5, 0.1), (0.5, 3), (5000, 4900), (1, 9)]
)
def test_cut_gamma_draws(a, bound):
    from numba import njit
    from scipy.special import gammainc

    @njit
    def many(a, bound, size, rng):
        out = np.empty(size)
        for i in range(size):
            out[i] = gamma_below(a, 2.0, bound / 2.0, rng)
        return out

    draws = 2.0 * many(float(a), float(bound), 20_000, np.random.default_rng(1))
    assert draws.max() <= bound
    assert stats.kstest(draws, lambda x: gammainc(a, x) / gammainc(a, bound)).pvalue > ALPHA
    assert stats.kstest(draws, lambda x: gammainc(a * 1.2, x) / gammainc(a * 1.2, bound)).pvalue < ALPHA
