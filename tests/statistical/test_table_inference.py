"""Tables from prior to posterior: the whole sampler against the joint law, with bugs planted that must be found."""

from dataclasses import dataclass, replace
from time import process_time

import numpy as np
import pytest
from sampler_checks import random_rank, rank_p_value, same_law_p_value, sequential
from scipy import stats

from privurn._kernels.counts.count_lines import SEEN_GAUSSIAN, SEEN_GEOMETRIC, SIZE_POISSON
from privurn.domain import Categories, JointDomain
from privurn.inference.counts.asked import functionals_of
from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.inference.counts.sampling import CountSampler
from privurn.inference.infer import infer
from privurn.inference.run import Run
from privurn.inference.size import SizePrior
from privurn.inference.sums.fit import NotMixed
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.privacy.entropy import SeededEntropy, SystemEntropy

FALSE_ALARM = 1e-6
DOMAIN = JointDomain({"a": Categories(["u", "v"], outside="other")})
PRIOR = np.array([0.6, 1.0, 2.0])

CASES = {
    "public": {"n": 12},
    "secret": {"size_prior": SizePrior(upper=25)},
    "poisson": {"size_prior": SizePrior(kind="poisson", mean=9.0)},
    "gaussian": {"size_prior": SizePrior(lower=3, upper=25), "kind": "gaussian"},
}


@dataclass
class Chain:
    """The chain behind `infer` on a table of noisy counts, its public data within reach of a planted bug."""

    observed: Observed
    size_prior: SizePrior

    def __post_init__(self):
        observed = self.observed
        self.engine = LatentCounts(cells=3, n=observed.n, prior=PRIOR, terms=(observed.term,), size_prior=self.size_prior)
        self.sampler = CountSampler(engine=self.engine, reduction=reduce(functionals_of(observed, "cells"), domain=DOMAIN))

    def plant(self, changed):
        self.engine.__dict__["model"] = changed(self.engine.model)

    def shares(self, state, rng, *, sweeps):
        """Of the population, after so many sweeps."""
        kept, _ = self.sampler.advance(state, rng, sweeps=sweeps, thin=sweeps, warming=False)
        return np.column_stack([kept[f"population:{name}"] for name in self.sampler.reduction.names])


def drawn_size(prior, rng):
    if prior.kind == "poisson":
        return int(rng.poisson(prior.mean))
    return int(rng.integers(prior.lower, prior.upper + 1))


def joint_draw(case, rng):
    """Parameters, table and release from the model."""
    n = case["n"] if "n" in case else drawn_size(case["size_prior"], rng)
    counts = rng.multinomial(n, rng.dirichlet(PRIOR))
    noise = NoiseLaw(kind=case.get("kind", "laplace"), scale=3.0)
    public = noisy_counts(counts + noise.simulate_units(3, rng=rng), kind=noise.kind, scale=3.0, n=case.get("n"))
    return counts.astype(np.int64), Chain(public, case.get("size_prior", SizePrior()))


def noisy_counts(values, *, scale, kind="laplace", n=None):
    """What a release of noisy counts says."""
    mechanism = PerturbedHistogram(n=n, cells=3, records=3, noise=f"discrete-{kind}", scale=scale, publish="counts")
    return Observed(mechanism=mechanism, domain=DOMAIN, counts=np.asarray(values, float))


def pictures(counts, chain, shares):
    """Numbers that a wrong sampler would change: of the table, of the release, and of both together."""
    noisy, n = chain.observed.counts, counts.sum()
    return [n, counts[0], counts[2], shares[0], counts[0] - noisy[0], n - noisy.sum()]


def same_law(case, size, rng, *, planted=None, sweeps=3):
    """P values: (table, release) from the joint law, and after some sweeps at the same release, from separate replicates."""
    before, after = [], []
    for _ in range(size):
        counts, chain = joint_draw(case, rng)
        before.append(pictures(counts, chain, rng.dirichlet(PRIOR + counts)))
        counts, chain = joint_draw(case, rng)
        if planted is not None:
            chain.plant(planted)
        state = {"counts": counts}
        [shares] = chain.shares(state, rng, sweeps=sweeps)
        after.append(pictures(state["counts"], chain, shares))
    return [same_law_p_value(a, b) for a, b in zip(np.transpose(before), np.transpose(after), strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_sampler_keeps_the_joint_law(name):
    rng = np.random.default_rng(11)
    assert sequential(lambda size: same_law(CASES[name], size, rng), size=1000)


def ranks(case, size, rng, *, planted=None):
    """P values: ranks of the true counts and n among thinned draws of a run that starts where it likes."""
    found = []
    for _ in range(size):
        counts, chain = joint_draw(case, rng)
        if planted is not None:
            chain.plant(planted)
        state = chain.engine.start(rng)
        chain.engine.sweep(state, rng, times=100)
        kept, _ = chain.engine.draw(state, rng, draws=19, thin=80)
        drawn = np.column_stack([kept, kept.sum(axis=1)])
        found.append([random_rank(*each, rng) for each in zip([*counts, counts.sum()], drawn.T, strict=True)])
    return [rank_p_value(each, n_ranks=20) for each in np.transpose(found)]


@pytest.mark.parametrize("name", [pytest.param(each, marks=[] if each == "public" else pytest.mark.long) for each in CASES])
def test_ranks_of_the_truth_are_uniform(name):
    rng = np.random.default_rng(13)
    assert sequential(lambda size: ranks(CASES[name], size, rng), size=500)


def setting(kind, column, value):
    """The public data with one number of a release changed."""

    def changed(model):
        settings = model.settings.copy()
        settings[settings[:, 0] == kind, column] = value
        return model._replace(settings=settings)

    return changed


def without(kind):
    """The public data with a row left out."""

    def changed(model):
        kept = model.settings[:, 0] != kind
        return model._replace(settings=model.settings[kept].copy(), factors=model.factors[kept].copy())

    return changed


def another_prior(model):
    return model._replace(prior=np.array([2.0, 1.0, 0.6]))


PLANTED = {
    "noise taken too small": ("secret", setting(SEEN_GEOMETRIC, 1, 1.8)),
    "prior of n forgotten": ("poisson", without(SIZE_POISSON)),
    "another prior of the cells": ("public", another_prior),
    "Laplace for Gaussian noise": ("gaussian", setting(SEEN_GAUSSIAN, 0, SEEN_GEOMETRIC)),
}


LONG = {"noise taken too small", "Laplace for Gaussian noise"}
"""Left to the full run: tests/exact finds the same bugs on tiny tables."""


@pytest.mark.parametrize("bug", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in PLANTED])
def test_planted_bugs_are_found(bug):
    name, planted = PLANTED[bug]
    rng = np.random.default_rng(12)
    assert not sequential(lambda size: same_law(CASES[name], size, rng, planted=planted, sweeps=10), size=1000)


@pytest.mark.long
def test_ranks_find_another_prior():
    name, planted = PLANTED["another prior of the cells"]
    rng = np.random.default_rng(14)
    assert not sequential(lambda size: ranks(CASES[name], size, rng, planted=planted), size=500)


def test_start_does_not_matter():
    """Chains from separate starts come to the same law: the public function's draws on one release."""
    _, chain = joint_draw(CASES["secret"], np.random.default_rng(3))
    model = CountModel(prior=PRIOR, size=chain.size_prior)
    found, other = (infer(chain.observed, model, ask="cells", run=Run(seed=seed, draws=2000)) for seed in (5, 6))
    assert found.problems() == ()
    for one, two in zip(found.summary(), other.summary(), strict=True):
        z = (one.mean - two.mean) / np.hypot(one.standard_error, two.standard_error)
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 8), one.name


def test_without_noise_it_is_the_dirichlet_posterior():
    """Noise of a hundredth of a record: the counts are known, and p has a known law."""
    counts = np.array([300.0, 40.0, 2.0])
    found = infer(noisy_counts(counts, scale=0.01), CountModel(prior=PRIOR), ask="cells", run=Run(seed=1, draws=1000))
    assert np.all(found.draws["n"] == 342)
    exact = stats.dirichlet(PRIOR + counts)
    rows = [row for row in found.summary() if row.name != "n"]
    for each, mean, variance in zip(rows, exact.mean(), exact.var(), strict=True):
        assert abs(each.mean - mean) < stats.norm.isf(FALSE_ALARM / 6) * each.standard_error
        # kurtosis of these shares is below that of twice a normal
        spread = stats.norm.isf(FALSE_ALARM / 6) * 2.0 / np.sqrt(4000)
        assert abs(each.deviation**2 / variance - 1.0) < spread * 1.5


def test_length_is_chosen_and_failure_is_loud():
    _, chain = joint_draw(CASES["secret"], np.random.default_rng(3))
    found = infer(chain.observed, run=Run(seed=2))
    assert found.draws.attributes["length"] == "chosen"
    assert found.problems() == ()
    with pytest.warns(NotMixed, match="NOT mixed after 20 draws"):
        infer(chain.observed, run=Run(draws=20, seed=1))


def test_cost_does_not_depend_on_n():
    """The best of five runs each, side by side; a loop over records would be a million times slower."""
    times = {}
    for n in (10**3, 10**9):
        engine = Chain(noisy_counts(np.array([n / 2, n / 3, n / 6]).round(), scale=2.0), SizePrior()).engine
        rng = np.random.default_rng(1)
        state = engine.start(rng)
        engine.sweep(state, rng, times=50)
        best = np.inf
        for _ in range(5):
            start = process_time()
            engine.sweep(state, rng, times=300)
            best = min(best, process_time() - start)
        times[n] = best
    assert times[10**9] < 3 * times[10**3]


def fits(noise, drawn):
    """P value of a chi-square test against the lattice law."""
    reach = int(6 * noise.units) + 1
    points = np.arange(-reach, reach + 1)
    expected = np.exp(noise.log_density(points * noise.step)) * len(drawn)
    common = expected >= 20
    observed = np.array([np.sum(drawn == point) for point in points[common]])
    rest = len(drawn) - observed.sum()
    return stats.chisquare([*observed, rest], [*expected[common], len(drawn) - expected[common].sum()]).pvalue


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(4)])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_has_the_stated_law(kind, entropy):
    noise = NoiseLaw(kind=kind, scale=0.5, step=0.25)
    drawn = np.array(noise.draw_units(40_000, entropy=entropy))
    assert fits(noise, drawn) > FALSE_ALARM
    assert fits(replace(noise, scale=0.55), drawn) < FALSE_ALARM  # a tenth more noise would be noticed


def test_fine_noise_in_floating_point():
    """The seeded twin on a fine lattice rounds a continuous law: Kolmogorov and Smirnov cannot tell."""
    rng = np.random.default_rng(8)
    for kind, against in (("laplace", stats.laplace), ("gaussian", stats.norm)):
        noise = NoiseLaw(kind=kind, scale=9.0, step=2.0**-40)
        drawn = noise.simulate_units(50_000, rng=rng) * noise.step
        assert stats.kstest(drawn, against(scale=9.0).cdf).pvalue > FALSE_ALARM
        assert stats.kstest(drawn, against(scale=9.5).cdf).pvalue < FALSE_ALARM
