"""One door for additive noise: whatever adds noise to numbers for a release gets it from OpenDP through one function."""

import ast
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.mod
import pytest

import privurn
from privurn.errors import DomainError
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.label_discovery import LabelDiscovery
from privurn.mechanisms.local import (
    HaarWaveletChannel,
    HistogramStatistic,
    MarginalsStatistic,
    MomentsStatistic,
    NoisyStatisticChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.marginal_counts import MarginalCounts
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.registry import STATISTICS, channels, rebuild
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.statistic import opened
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.privacy import additive_noise
from privurn.privacy.entropy import SystemEntropy
from privurn.releases.privatise import privatise
from privurn.releases.statistics import release_statistics
from sources import FILES, nodes, place

DATA = np.random.default_rng(2).integers(0, 3, 40).astype(float)
PAIRS = np.column_stack([DATA, DATA[::-1]])
FIRST = 5000
"""What the door of these tests adds to the first number; one more to each further one."""


def forbidden(*_, **__):
    raise AssertionError("a generator that must not be used on the release path")


@pytest.fixture
def door(monkeypatch):
    """Every call of the one function, as (noise, scale, numbers); all other sources of noise are shut."""
    privatise(DATA, domain=privurn.Bounds(0, 2), epsilon=1)  # Numba and Arrow look at NumPy's generators when they are loaded
    calls = []

    def measurement(noise, scale):
        def add(exact):
            calls.append((noise, scale, len(exact)))
            return [each + FIRST + i for i, each in enumerate(exact)]

        return add

    monkeypatch.setattr(additive_noise, "measurement", measurement)
    for name in ("__call__", "invoke"):
        monkeypatch.setattr(opendp.mod.Measurement, name, forbidden)
    for name in ("default_rng", "Generator", "PCG64", "RandomState", "normal", "laplace", "random", "geometric"):
        monkeypatch.setattr(np.random, name, forbidden)
    return calls


@dataclass
class Told:
    """What a release published and what it was made of, in lattice steps, and the calls that it should have made."""

    published: Any
    exact: Any
    calls: list[tuple[str, float, int]]


def local(asked, **extra):
    def run():
        out = privatise(DATA, asked, domain=privurn.Bounds(0, 2), epsilon=1, order="kept", **extra)
        channel, published = rebuild(**out.certificate["mechanism"]).channel, np.asarray(out.data, float)
        exact = channel.lattice(DATA)
        if isinstance(channel, HaarWaveletChannel):
            steps = channel.resolution
            return Told(published * steps, exact, [("laplace", channel.scale * steps, exact.size)])
        steps = (published.ravel() - channel.bounds[0]) / channel.step
        return Told(steps, exact, [(channel.noise, channel.lattice_scale, exact.size)])

    return pytest.param(run, id=asked.alias)


def summed(statistic, noise, data=DATA):
    def run():
        channel = NoisyStatisticChannel(statistic=statistic, n=len(data), noise=noise, scale=2.0)
        published = channel.privatise(data, entropy=SystemEntropy()) * statistic.unit
        return Told(published, channel.total(data), [(noise, 2.0 * statistic.unit, channel.dimension)])

    return pytest.param(run, id=f"noisy-statistic {statistic.kind} {noise}")


def counts(noise, steps):
    def run():
        asked = privurn.NoisyCounts(publish="counts", noise=noise)
        delta = 1e-6 if noise == "discrete-gaussian" else 0.0
        out = privurn.release(DATA, asked, domain=privurn.Grid(0, 2, 1), epsilon=1, delta=delta)
        scale = out.certificate["mechanism"]["parameters"]["scale"]
        exact = np.bincount(DATA.astype(int)) * steps
        kind = "gaussian" if noise == "discrete-gaussian" else "laplace"
        return Told(np.asarray(out.data)[:, -1].astype(float) * steps, exact, [(kind, scale * steps, 3)])

    return pytest.param(run, id=f"perturbed-histogram {noise}")


def statistic(made, noise, **own):
    gaussian = noise == "discrete-gaussian"

    def run():
        budget = Budget(epsilon=1.5, epsilon_n=0.5, noise=noise, delta=1e-6 if gaussian else 0.0, neighbouring="add-remove")
        mechanism = made.calibrated(budget=budget, **own)
        public = released_sums(release_statistics(PAIRS, mechanism=mechanism, budget=budget))
        with opened(PAIRS) as source:
            sums, n = mechanism.sum_units(source)
        law, size = mechanism.noise, mechanism.size_noise
        told = [*(public.values / law.step), public.noisy_n / size.step]
        calls = [(law.kind, law.units, len(sums)), (size.kind, size.units, 1)]
        # the second call begins anew at FIRST, so n is told as if it were the next number
        return Told([*told[:-1], told[-1] + len(sums)], [*sums, n * round(1 / size.step)], calls)

    return pytest.param(run, id=f"noisy-{made.model}-statistics {noise}")


def both(made, **own):
    return [statistic(made, noise, **own) for noise in ("laplace", "discrete-gaussian")]


CASES = [
    local(privurn.Laplace()),
    local(privurn.Gaussian(), delta=1e-5),
    local(privurn.HaarWavelet(levels=1)),
    local(privurn.DiscreteLaplace()),
    local(privurn.DiscreteGaussian(), delta=1e-5),
    *(summed(HistogramStatistic(bounds=(0, 2), bins=3), noise) for noise in ("laplace", "gaussian")),
    *(summed(MomentsStatistic(bounds=(0, 2), degree=2), noise) for noise in ("laplace", "gaussian")),
    *(summed(MarginalsStatistic(sizes=(3, 3), marginals=((0,), (0, 1))), noise, PAIRS) for noise in ("laplace", "gaussian")),
    counts("laplace", 1024),
    counts("discrete-laplace", 1),
    counts("discrete-gaussian", 1),
    *both(RegressionStatistic, response="column_1", covariates=["column_0"], bounds=(0, 2)),
    *both(LogisticStatistic, response="column_1", covariates=["column_0"], bounds=(0, 2)),
    *both(NormalStatistic, response="column_1", bounds=(0, 2)),
    *both(DirichletStatistic, parts=("column_0", "column_1"), floor=0.01),
    *both(BernoulliStatistic, column="column_0"),
    *both(PoissonStatistic, column="column_0", upper=2),
]
WITHOUT_NOISE = {"randomised-response", "randomised-responses", "smoothed-histogram"}


def faults(run, calls):
    """What a release does otherwise than ask the one door once and publish what it gets."""
    calls.clear()
    told = run()
    added = np.ravel(np.asarray(told.published, float) - np.asarray(told.exact, float))
    wrong = np.abs(added - FIRST - np.arange(len(added))) > 1e-3
    return (["the door was asked for something else"] if calls != told.calls else []) + ["other noise"] * bool(wrong.any())


@pytest.mark.parametrize("run", CASES)
def test_every_release_gets_its_noise_through_one_door(run, door):
    """Its kind and scale are the accounted ones, each number gets it once, and nothing else is added."""
    assert faults(run, door) == []


def test_every_kind_of_additive_noise_is_among_the_cases():
    named = {str(case.id).split()[0] for case in CASES}
    assert named == (set(channels()) | set(STATISTICS) | {"perturbed-histogram"}) - WITHOUT_NOISE


def test_channels_without_additive_noise_do_not_use_the_door(door):
    assert (
        len(
            privatise(DATA, privurn.RandomisedResponse(), domain=privurn.Categories([0, 1, 2], outside="other"), epsilon=1).data
        )
        == 40
    )
    smooth = SmoothedHistogramChannel(bounds=(0, 2), bins=3, n=40, draws=9, weight=Fraction(1, 5))
    assert len(smooth.privatise(DATA, entropy=SystemEntropy())) == 9
    assert door == []


BUGS = {
    "privurn.mechanisms.local.lattice": "laplace",
    "privurn.mechanisms.local.haar_wavelet": "haar-wavelet",
    "privurn.mechanisms.local.noisy_statistic": "noisy-statistic histogram laplace",
    "privurn.mechanisms.perturbed_histogram": "perturbed-histogram discrete-laplace",
    "privurn.mechanisms.sums.noise_law": "noisy-poisson-statistics laplace",
}


@pytest.mark.parametrize("module", BUGS)
def test_noise_from_elsewhere_would_be_seen(module, door, monkeypatch):
    """The planted bug: a module that draws noise of the right law by itself, from words of the operating system."""

    def own(exact, *, noise, scale):
        words = SystemEntropy().words(exact.size).reshape(exact.shape)
        return exact + np.rint(scale * np.log1p(words / 2.0**63) * np.where(words % 2, 1, -1)).astype(np.int64)

    [run] = next(case.values for case in CASES if case.id == BUGS[module])
    assert faults(run, door) == []
    monkeypatch.setattr(f"{module}.noisy_integers", own)
    assert faults(run, door) == ["the door was asked for something else", "other noise"]


def test_nobody_else_knows_opendp():
    knowing, adding = set(), set()
    for path in FILES:
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if any(name.startswith("opendp") for name in [*names, module]):
                knowing.add(place(path))
            if "noisy_integers" in names:
                adding.add("privurn." + place(path).removesuffix(".py").replace("/", "."))
    assert knowing == {"privacy/additive_noise.py"}
    others = {f"privurn.mechanisms.{name}" for name in ("label_discovery", "noisy_tree", "marginals")}
    others |= {"privurn.privacy.tied_noise"}
    assert adding == set(BUGS) | others  # each has its planted bug


def test_marginals_get_their_noise_through_the_door(door, monkeypatch):
    """Counts plus what the door adds, marginal by marginal of one scale."""
    made = NoisyMarginals(n=3, sizes=(2, 2), sets=((0,), (0, 1)), scales=(1.5, 2.5), noise="discrete-laplace")
    counts = MarginalCounts(made.layout, np.array([2, 1, 1, 1, 0, 1]), 3)
    drawn = made.draw(counts, entropy=SystemEntropy()).weights
    assert door == [("laplace", 1.5, 2), ("laplace", 2.5, 4)]
    monkeypatch.setattr("privurn.mechanisms.marginals.noisy_integers", lambda exact, **_: exact)
    assert not np.array_equal(made.draw(counts, entropy=SystemEntropy()).weights, drawn)
    assert len(door) == 2


def test_label_discovery_gets_its_noise_through_the_door(door, monkeypatch):
    """Counts plus what the door adds, against the threshold: a noisy count of exactly the threshold is named."""
    table = privurn.counts.CountTable(np.array(["a", "b", "c"]), np.array([10, 8, 8]))
    steps = LabelDiscovery(scale=1.5, threshold=FIRST + 10)
    assert steps.discover(table).tolist() == [True, False, True]  # 10 + 0, 8 + 1, 8 + 2 beyond FIRST
    assert door == [("laplace", 1.5, 3)]
    monkeypatch.setattr("privurn.mechanisms.label_discovery.noisy_integers", lambda exact, **_: exact)
    assert steps.discover(table).tolist() == [False, False, False]
    assert door == [("laplace", 1.5, 3)]


@pytest.mark.parametrize(("noise", "kind"), [("discrete-laplace", "laplace"), ("discrete-gaussian", "gaussian")])
def test_a_noisy_tree_gets_its_noise_through_the_door(noise, kind, door, monkeypatch):
    """Depth by depth and then the special cells, each with the noise that it is accounted with."""
    table = privurn.counts.CountTable(np.array([0, 1, 3, 4]), np.array([5, 1, 2, 7]))
    made = PerturbedTree(n=15, shape=(4,), special=(2,), depths=(1, 2), scales=(2.5, 1.5), special_scale=0.5, noise=noise)
    found = made.draw(table, entropy=SystemEntropy()).columns()["count"] - np.array([6, 2, 5, 1, 0, 2, 7, 0])
    assert (found - FIRST).tolist() == [0, 1, 0, 1, 2, 3, 0, 1]
    assert door == [(kind, 2.5, 2), (kind, 1.5, 4), (kind, 0.5, 2)]
    monkeypatch.setattr("privurn.mechanisms.noisy_tree.noisy_integers", lambda exact, **_: exact)
    assert made.draw(table, entropy=SystemEntropy()).columns()["count"].tolist() == [6, 2, 5, 1, 0, 2, 7, 0]
    assert len(door) == 3


def test_numbers_at_the_ends_of_64_bits_stay_there():
    """What would leave 64 bits becomes their end: a function of the noisy number."""
    ends = np.array([2**63 - 1, -(2**63)] * 200, np.int64)
    for noise in ("laplace", "gaussian"):
        noisy = additive_noise.noisy_integers(ends, noise=noise, scale=50.0)
        near = np.where(ends > 0, ends - noisy, noisy - ends)
        assert near.min() == 0  # half of the noise points outwards
        assert 0 < near.max() < 5000
    assert additive_noise.noisy_integers(np.zeros((0, 3), np.int64), noise="laplace", scale=1.0).shape == (0, 3)


def test_every_number_of_a_long_list_gets_noise_of_its_own(monkeypatch):
    """Blocks are handed over in threads: none is left out, moved or given twice, and no thread repeats another's noise."""
    exact = np.arange(1_000, dtype=np.int64).reshape(50, 20)
    monkeypatch.setattr(additive_noise, "AT_ONCE", 90)
    monkeypatch.setattr(additive_noise, "usable_cores", lambda: 3)
    noise = additive_noise.noisy_integers(exact, noise="gaussian", scale=1e6) - exact
    blocks = [tuple(noise.ravel()[first : first + 90]) for first in range(0, 1_000, 90)]
    assert len({block[:10] for block in blocks}) == len(blocks) == 12  # equal by chance: below 1e-50
    seen = []

    def one_more(noise, scale):
        return lambda numbers: seen.append(len(numbers)) or [number + 1 for number in numbers]

    monkeypatch.setattr(additive_noise, "measurement", one_more)
    assert np.array_equal(additive_noise.noisy_integers(exact, noise="gaussian", scale=2.0), exact + 1)
    assert sorted(seen) == [10, *[90] * 11]


def test_sums_beyond_64_bits_are_added_exactly():
    """Sixteen million records at the bounds: the sums are 2^64 steps, and nothing is cut off."""
    noise = NoiseLaw(kind="laplace", scale=4.0, step=4.0**-20)
    mechanism = NormalStatistic(neighbouring="add-remove", noise=noise, response="y", lower=(0.0,), upper=(1.0,))
    n = 2**24
    public = mechanism.add_noise([n * 4**20] * 2, n, entropy=SystemEntropy())
    np.testing.assert_allclose(public.values, n, atol=4.0 * 60)


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.3), ("laplace", 7.5), ("gaussian", 0.4), ("gaussian", 55.0)])
def test_the_law_of_a_statistic_is_the_law_of_its_integers(kind, scale):
    """One log mass for channels and statistics: it adds up to 1, whatever the step."""
    k = np.arange(-800, 801)
    whole = additive_noise.log_mass(k.astype(float), noise=kind, scale=scale)
    assert np.exp(whole).sum() == pytest.approx(1.0, abs=1e-12)
    for step in (2.0**-20, 1.0, 8.0):
        law = NoiseLaw(kind=kind, scale=scale * step, step=step)
        assert np.array_equal(law.log_density(k * step), whole)


# ---- bounds near the end of the floats -------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0, 1e308), (-8e307, 8e307), (-1e308, -1e307), (0, 1.1e280)])
@pytest.mark.parametrize("channel", [privurn.Laplace(), privurn.Gaussian(), privurn.HaarWavelet(levels=1)])
def test_bounds_that_noise_would_take_out_of_the_floats_are_refused(channel, bounds):
    extra = {} if channel.pure else {"delta": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DomainError, match=r"between -1e\+280 and 1e\+280") as refused:
            privatise(DATA, channel, domain=privurn.Bounds(*bounds), epsilon=1, **extra)
    assert "public number" in str(refused.value)


@pytest.mark.parametrize("channel", [privurn.Laplace(), privurn.Gaussian()])
def test_the_largest_bounds_work_silently(channel):
    data = np.array([-1e308, 0.0, 1e308, np.inf, -np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epsilon in (1e-6, 1.0):
            extra = {} if channel.pure else {"delta": 1e-6}
            out = privatise(data, channel, domain=privurn.Bounds(-1e280, 1e280), epsilon=epsilon, **extra)
            assert np.all(np.isfinite(np.asarray(out.data, float)))


@pytest.mark.parametrize("bounds", [(0, 1e308), (-8e307, 8e307), (-1e300, 1e300)])
def test_statistics_with_large_bounds_are_refused_or_silent(bounds):
    budget = Budget(epsilon=1.5, epsilon_n=0.5, neighbouring="add-remove")
    data = np.array([[-1e308, 1.0], [1e308, 0.0], [np.inf, -np.inf]])
    own = {"bounds": bounds, "response": "column_1", "covariates": ["column_0"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if bounds[1] > 1e300:
            with pytest.raises(DomainError, match="bound"):
                RegressionStatistic.calibrated(budget=budget, **own)
            return
        made = RegressionStatistic.calibrated(budget=budget, **own)
        assert np.all(np.isfinite(released_sums(release_statistics(data, mechanism=made, budget=budget)).values))
