"""Every entry of the registry passes the contract of tests/mechanism_contract.py."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from urn_laws import dirichlet_multinomial_law, pitman_yor_law

import privurn
from mechanism_contract import MechanismContract, replaced_records
from privurn.domain import Bounds, Categories, Grid, OpenLabels
from privurn.inference.counts.released import observe
from privurn.inference.mixtures.reading import read_privatised
from privurn.inference.sums.reading import released_sums
from privurn.inference.tables.reading import read_table
from privurn.inference.verified import verified
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.local.gaussian import DiscreteGaussianChannel, GaussianChannel
from privurn.mechanisms.local.haar_wavelet import HaarWaveletChannel
from privurn.mechanisms.local.laplace import DiscreteLaplaceChannel, LaplaceChannel
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponsesChannel
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.models import Bernoulli
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.mechanisms.registry import REGISTRY, channel_recipes, recipes
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.privacy.additive_noise import log_mass
from privurn.privacy.profile import Guarantee

F = Fraction
RNG = np.random.default_rng(7)
LABELS = RNG.choice(["a", "b", "c"], 60, p=[0.6, 0.3, 0.1])
ZEROS_AND_ONES = RNG.integers(0, 2, 60).astype(float)
NUMBERS = RNG.uniform(0.0, 4.0, size=60)
OUTPUTS = np.arange(-40, 45)
"""Of a whole number with noise. Leaving out the others makes the enumerated truth smaller, by next to nothing."""


def noise_law(exact, *, noise, scale):
    """Law of whole numbers with independent noise, listed."""
    laws = [np.exp(log_mass(OUTPUTS - x, noise=noise, scale=scale)).tolist() for x in exact]
    numbers = product(OUTPUTS.tolist(), repeat=len(laws))
    return dict(zip(numbers, map(math.prod, product(*laws)), strict=True))


def counted(records, cells):
    return tuple(Counter(records)[cell] for cell in range(cells))


def table_of(records):
    held = Counter(records)
    return privurn.CountTable.from_cells(np.array(sorted(held)), np.array([held[cell] for cell in sorted(held)]))


# -- mechanisms on counts


class CountContract(MechanismContract):
    """On a public domain of three categories."""

    data, domain, options = LABELS, Categories(["a", "b", "c"], outside="other"), {}

    def release(self, *, ledger=None):
        return privurn.release(
            self.data,
            domain=self.domain,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=recipes()[self.name](**self.options),
            ledger=ledger,
        )

    def laws(self, mechanism):
        for pair in replaced_records(mechanism.n, range(mechanism.cells)):
            yield tuple(self.law(mechanism, records) for records in pair)

    def likelihood(self, path):
        observed = observe(path)
        return observed.mechanism.likelihood(Numbers(observed.counts))


class TestDirichletMultinomial(CountContract):
    name = "dirichlet-multinomial"

    def tiny(self):
        return DirichletMultinomial(n=3, cells=2, alpha=F(1), records=2)

    def law(self, mechanism, records):
        alphas = (mechanism.alpha,) * mechanism.cells
        return dirichlet_multinomial_law(counted(records, mechanism.cells), alphas=alphas, m=mechanism.records)


class TestPosteriorSample(TestDirichletMultinomial):
    name = "posterior-sample"

    def tiny(self):
        return PosteriorSample(n=3, cells=2, alpha=F(1), records=3)

    def law(self, mechanism, records):
        shares = defaultdict(F)
        for sequence, probability in super().law(mechanism, records).items():
            shares[counted(sequence, mechanism.cells)] += probability
        return shares


class OpenUrnContract(CountContract):
    delta = 0.1
    discount = F(0)

    def tiny(self):
        return PitmanYor(n=3, records=2, strength=F(1), discount=self.discount)

    def laws(self, mechanism):
        for pair in replaced_records(mechanism.n, range(4)):
            options = {"strength": mechanism.strength, "discount": mechanism.discount, "m": mechanism.records}
            yield tuple(pitman_yor_law(Counter(records), **options) for records in pair)


class TestDirichletProcess(OpenUrnContract):
    name = "dirichlet-process"


class TestPitmanYor(OpenUrnContract):
    name, discount, options = "pitman-yor", F(1, 2), {"discount": 0.5}
    no_likelihood = "no likelihood"


class TestLabelDiscovery(CountContract):
    """Both steps, the urn planned anew for every number of labels that are named."""

    name, domain = "label-discovery", OpenLabels()
    closest = 0.25  # epsilons and deltas of the two steps are added

    def release(self, *, ledger=None):
        many = np.repeat(LABELS, 20)  # no label is missed: 100 standard deviations of the noise
        return privurn.release(many, domain=self.domain, epsilon=self.epsilon, delta=self.delta, ledger=ledger)

    def tiny(self):
        share = Guarantee(epsilon=1.0, delta=0.1)
        made = DiscoveredUrn(
            n=3,
            records=1,
            discovery=LabelDiscovery(scale=1.0, threshold=3),
            urn=DirichletMultinomial(n=3, cells=2, alpha=F(1), records=1),
            urn_guarantee=share,
        )
        return replace(made, urn=made._urn_for(1))

    def laws(self, mechanism):
        for pair in replaced_records(3, range(3)):
            yield tuple(self.law(mechanism, Counter(records)) for records in pair)

    def law(self, mechanism, held):
        mass = np.exp(log_mass(OUTPUTS, noise="laplace", scale=mechanism.discovery.scale))
        named = {label: float(mass[OUTPUTS + count >= mechanism.discovery.threshold].sum()) for label, count in held.items()}
        found = defaultdict(float)
        for chosen in product((True, False), repeat=len(held)):
            chance = math.prod(named[label] if kept else 1.0 - named[label] for label, kept in zip(held, chosen, strict=True))
            kept = sorted(label for label, each in zip(held, chosen, strict=True) if each)
            counts = (*(held[label] for label in kept), sum(held.values()) - sum(held[label] for label in kept))
            urn = mechanism._urn_for(len(kept))
            for (cell,), share in dirichlet_multinomial_law(counts, alphas=(urn.alpha,) * urn.cells, m=1).items():
                found[tuple(kept), (*kept, "other")[cell]] += chance * float(share)
        return found


class TestNoisyTree(CountContract):
    name, data, domain = "noisy-tree", NUMBERS, Grid(0, 4, 1)

    def tiny(self):
        return PerturbedTree(n=2, shape=(2,), depths=(1,), scales=(1.5,), noise="discrete-laplace")

    def law(self, mechanism, records):
        return noise_law(counted(records, 2), noise="laplace", scale=mechanism.scales[0])


class TestNoisyMarginals(TestNoisyTree):
    name = "noisy-marginals"
    data = pd.DataFrame({"u": LABELS, "v": ZEROS_AND_ONES})
    domain = MappingProxyType({"u": Categories(["a", "b", "c"], outside="other"), "v": Categories([0, 1], outside="other")})

    def tiny(self):
        return NoisyMarginals(n=2, sizes=(2,), sets=((0,),), scales=(1.5,), noise="discrete-laplace")

    def likelihood(self, path):
        return read_table(verified(path))


class TestPerturbedHistogram(CountContract):
    name = "perturbed-histogram"

    def tiny(self):
        return PerturbedHistogram(n=2, cells=2, records=2, noise="discrete-laplace", scale=1.5, publish="counts")

    def law(self, mechanism, records):
        return noise_law(counted(records, 2), noise="laplace", scale=mechanism.scale)


class TestSmoothedHistogram(CountContract):
    name = "smoothed-histogram"

    def tiny(self):
        return SmoothedHistogram(n=3, cells=3, records=2, weight=F(1, 4))

    def law(self, mechanism, records):
        counts, weight = counted(records, 3), mechanism.weight
        shares = [(1 - weight) * count / mechanism.n + weight / 3 for count in counts]
        return {drawn: math.prod(shares[cell] for cell in drawn) for drawn in product(range(3), repeat=2)}


class TestExponential(CountContract):
    name, closest = "exponential", 0.5  # bounded range is a bound
    no_likelihood = "no likelihood"

    def tiny(self):
        return ExponentialHistogram(n=3, cells=2, records=2, epsilon=1.0, loss="l2")

    def law(self, mechanism, records):
        weights = mechanism.candidate_weights(list(counted(records, 2)))
        return {i: float(weight / sum(weights)) for i, weight in enumerate(weights)}


class TestPseudoPosterior(CountContract):
    """The law of the parameters, which is what is paid for."""

    name, closest = "pseudo-posterior", 0.1  # bounded range is a bound, and no record reaches its ends
    data, domain = ZEROS_AND_ONES, Grid(0, 1, 1)
    options = MappingProxyType({"model": Bernoulli()})
    no_likelihood = "no likelihood"

    def tiny(self):
        return PseudoPosterior(n=3, domain=Grid(0, 1, 1), model=Bernoulli(), threshold=0.25, records=2)

    def law(self, mechanism, records):
        return dict(enumerate(mechanism.law(table_of(records)).tolist()))


# -- channels


class ChannelContract(MechanismContract):
    """One record: the others have randomness of their own."""

    delta, data, domain, options = 0.0, NUMBERS, Bounds(0, 4), {}
    records = (0.0, 1.0, 2.0, 4.0, 9.0, math.nan)

    def release(self, *, ledger=None):
        channel = channel_recipes()[self.alias](**self.options)
        guarantee = {"epsilon": self.epsilon, "delta": self.delta}
        return privurn.privatise(self.data, channel, domain=self.domain, ledger=ledger, **guarantee)

    @property
    def alias(self):
        return self.name.removeprefix("local-")

    def tiny(self):
        return LocalRelease(n=1, channel=self.channel)

    def laws(self, mechanism):
        for pair in replaced_records(1, self.records):
            yield tuple(self.law(mechanism.channel, record) for (record,) in pair)

    def law(self, channel, record):
        return noise_law(channel.lattice([record]).tolist(), noise=channel.noise, scale=channel.lattice_scale)

    def likelihood(self, path):
        return read_privatised(path).channel

    @pytest.mark.long  # made-up columns are read in DuckDB
    def test_an_audit_can_run_it(self):
        super().test_an_audit_can_run_it()


class TestLocalLaplace(ChannelContract):
    name = "local-laplace"
    channel = LaplaceChannel(bounds=(0.0, 4.0), scale=3.0, steps=4)


class TestLocalDiscreteLaplace(ChannelContract):
    name = "local-discrete-laplace"
    channel = DiscreteLaplaceChannel(bounds=(0, 4), scale=2.0)


class TestLocalGaussian(ChannelContract):
    name, delta = "local-gaussian", 1e-3
    channel = GaussianChannel(bounds=(0.0, 4.0), scale=3.0, steps=4)


class TestLocalDiscreteGaussian(ChannelContract):
    name, delta = "local-discrete-gaussian", 1e-3
    channel = DiscreteGaussianChannel(bounds=(0, 4), scale=5.0)


class TestLocalHaarWavelet(ChannelContract):
    name, options = "local-haar-wavelet", {"levels": 1}
    closest = 0.85  # a bound below its pure epsilon
    channel = HaarWaveletChannel(bounds=(0.0, 4.0), levels=0, scale=2.5, resolution=1)

    def law(self, channel, record):
        return noise_law(channel.lattice([record])[0].tolist(), noise="laplace", scale=channel.scale * channel.resolution)


class TestLocalRandomisedResponse(ChannelContract):
    name, data, domain = "local-randomised-response", LABELS, Categories(["a", "b", "c"], outside="other")
    channel = RandomisedResponseChannel(categories=3, odds=F(2))
    records = (0, 1, 2)

    def law(self, channel, record):
        codes = np.arange(math.prod(channel.sizes))
        return dict(zip(codes.tolist(), np.exp(channel.log_density(codes, record)).tolist(), strict=True))


class TestLocalRandomisedResponses(TestLocalRandomisedResponse):
    name = "local-randomised-responses"
    data = np.array(list(zip(LABELS.tolist(), LABELS[::-1].tolist(), strict=True)), dtype=[("u", "U1"), ("v", "U1")])
    alias, domain = "randomised-response", MappingProxyType({key: Categories(["a", "b", "c"], outside="other") for key in "uv"})
    channel = RandomisedResponsesChannel(responses=(RandomisedResponseChannel(categories=2, odds=F(2)),) * 2)
    records = (0, 1, 2, 3)


# -- noisy sums


class StatisticContract(MechanismContract):
    """Laplace noise is pure: the whole truth is the largest likelihood ratio, which is listed over records on a lattice."""

    delta, closest = 0.0, 0.99
    values = (-1e9, 0.0, 1.0, 2.0, 3.0, 4.0, math.nan)
    columns = 1

    def made(self, neighbouring="replace-one"):
        budget = Budget(epsilon=self.epsilon, neighbouring=neighbouring)
        return self.calibrated(budget=budget), budget

    def release(self, *, ledger=None):
        mechanism, budget = self.made()
        return privurn.release_statistics(self.table(), mechanism=mechanism, budget=budget, ledger=ledger)

    def table(self):
        numbers = np.random.default_rng(1).integers(0, 5, size=(40, self.columns)).astype(float)
        return np.array([tuple(row) for row in numbers], dtype=[(f"x{i}", float) for i in range(self.columns)])

    def tiny(self):
        return self.made()[0]

    def units(self, mechanism):
        records = np.array(list(product(self.values, repeat=self.columns)))
        return mechanism.record_units(records).astype(float)

    @pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
    def test_the_claim_is_no_less_than_the_truth(self, neighbouring):
        mechanism, _ = self.made(neighbouring)
        units = self.units(mechanism)
        others = units if neighbouring == "replace-one" else np.zeros((1, units.shape[1]))
        moved = max(float(np.abs(units - other).sum(axis=1).max()) for other in others)
        truth = moved * mechanism.noise.step / mechanism.noise.scale
        claim = mechanism.profile.pure_epsilon
        assert self.closest * claim <= truth <= claim * (1.0 + 1e-12)

    @pytest.mark.long  # made-up tables are read in DuckDB
    def test_an_audit_can_run_it(self):
        super().test_an_audit_can_run_it()

    def likelihood(self, path):
        found = released_sums(path)
        density = found.log_density(np.zeros(len(found.values)))
        assert math.isfinite(density)
        return density


class TestNoisyBernoulli(StatisticContract):
    name = "noisy-bernoulli-statistics"

    def calibrated(self, *, budget):
        return BernoulliStatistic.calibrated(column="x0", budget=budget)


class TestNoisyPoisson(StatisticContract):
    name = "noisy-poisson-statistics"

    def calibrated(self, *, budget):
        return PoissonStatistic.calibrated(column="x0", upper=4, budget=budget)


class TestNoisyNormal(StatisticContract):
    name = "noisy-normal-statistics"

    def calibrated(self, *, budget):
        return NormalStatistic.calibrated(response="x0", bounds=(0, 4), budget=budget)


class TestNoisyRegression(StatisticContract):
    name, columns, closest = "noisy-regression-statistics", 2, 0.98  # the worst pair is not on the lattice

    def calibrated(self, *, budget):
        return RegressionStatistic.calibrated(response="x1", covariates=("x0",), bounds=(0, 4), budget=budget)


class TestNoisyLogistic(StatisticContract):
    name, columns = "noisy-logistic-statistics", 2

    def calibrated(self, *, budget):
        return LogisticStatistic.calibrated(response="x1", covariates=("x0",), bounds=(0, 4), budget=budget)


class TestNoisyDirichlet(StatisticContract):
    name, columns = "noisy-dirichlet-statistics", 2
    values = (0.0, 0.25, 0.5, 1.0, math.nan)

    def table(self):
        shares = np.random.default_rng(1).uniform(0.1, 0.9, size=40)
        return np.array([(each, 1.0 - each) for each in shares], dtype=[("x0", float), ("x1", float)])

    def calibrated(self, *, budget):
        return DirichletStatistic.calibrated(parts=("x0", "x1"), floor=0.01, budget=budget)


def contracts(kind):
    return {each for below in kind.__subclasses__() for each in (below, *contracts(below))}


def test_every_registered_name_has_a_contract():
    named = {each.name for each in contracts(MechanismContract) if each.__name__.startswith("Test")}
    assert named == set(REGISTRY)
