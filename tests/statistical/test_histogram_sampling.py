"""Noise and sampling of the histogram releases at sizes that cannot be enumerated, and whose random numbers they use."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import privurn
from privurn.counts import CountTable
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.entropy import SeededEntropy, SystemEntropy

FALSE_ALARM = 1e-6
CELLS = 20_000
EMPTY_BUT_ONE = CountTable(np.array([7]), np.array([50]))
DATA = np.random.default_rng(2).integers(0, 6, 900)


def noise_law(noise, scale, steps, support):
    if noise == "discrete-gaussian":
        weights = np.exp(-0.5 * (support / scale) ** 2)
        return weights / np.exp(-0.5 * (np.arange(-400, 401) / scale) ** 2).sum()
    r = math.exp(-1 / (scale * steps))
    return (1 - r) / (1 + r) * r ** np.abs(support)


def rejected(observed, expected) -> bool:
    """Chi-square test of counts in fixed bins against their expectations."""
    return bool(((observed - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, len(observed) - 1))


def binned(values, edges):
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)


@pytest.mark.parametrize(
    ("noise", "scale", "steps"), [("discrete-laplace", 2.5, 1), ("laplace", 1.5, 1024), ("discrete-gaussian", 4.0, 1)]
)
def test_the_noise_has_its_law(noise, scale, steps):
    """All cells but one are empty: their noisy counts are the noise, exact twin or OpenDP's."""
    support = np.arange(-60 * steps, 60 * steps + 1)
    edges = (np.array([-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6]) * steps) + (1 if steps == 1 else 0)
    mechanism = PerturbedHistogram(n=50, cells=CELLS, records=CELLS, noise=noise, scale=scale, publish="counts")
    expected = np.zeros(len(edges) + 1)
    np.add.at(expected, np.searchsorted(edges, support, side="right"), noise_law(noise, scale, steps, support))
    expected *= CELLS - 1
    empty = np.arange(CELLS) != 7
    noisy = mechanism.noisy_counts(EMPTY_BUT_ONE)
    assert not rejected(binned(noisy[empty], edges), expected), f"fails with probability {FALSE_ALARM} when right"
    assert abs(noisy[7] / steps - 50) < 60 * scale
    twin = mechanism.simulate(EMPTY_BUT_ONE, rng=np.random.default_rng(6)) * steps
    assert not rejected(binned(twin[empty], edges), expected)
    wrong = PerturbedHistogram(n=50, cells=CELLS, records=CELLS, noise=noise, scale=scale * 1.15, publish="counts")
    assert rejected(binned(wrong.noisy_counts(EMPTY_BUT_ONE)[empty], edges), expected)
    assert np.std(noisy[empty] / steps) == pytest.approx(mechanism.noise_deviation, rel=0.1)


COUNTS = CountTable(np.array([0, 2, 3]), np.array([600, 300, 100]))


def released(mechanism, entropy=None):
    entropy = entropy or SystemEntropy()
    return np.bincount(mechanism.draw(COUNTS, entropy=entropy).cells, minlength=5)


@pytest.mark.parametrize("source", ["exact", "simulation twin"])
def test_smoothed_records_follow_the_mixture(source):
    def sample(weight):
        made = SmoothedHistogram(n=1000, cells=5, records=50_000, weight=weight)
        return released(made) if source == "exact" else made.simulate(COUNTS, rng=np.random.default_rng(1))

    expected = 50_000 * (0.8 * np.array([0.6, 0.0, 0.3, 0.1, 0.0]) + 0.2 / 5)
    assert not rejected(sample(Fraction(1, 5)), expected), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(sample(Fraction(27, 100)), expected)


@pytest.mark.parametrize("source", ["exact", "simulation twin"])
def test_perturbed_records_follow_the_clipped_counts(source, monkeypatch):
    """With OpenDP's noise taken away the records are a plain sample of the (smoothed) counts."""
    monkeypatch.setattr("privurn.privacy.additive_noise.measurement", lambda *_: lambda exact: exact)
    monkeypatch.setattr("privurn.mechanisms.perturbed_histogram.simulated_noise", lambda *_, **__: 0)

    def sample(smoothing):
        made = PerturbedHistogram(n=1000, cells=5, records=50_000, noise="laplace", scale=1.0, smoothing=Fraction(smoothing))
        return released(made) if source == "exact" else made.simulate(COUNTS, rng=np.random.default_rng(1))

    expected = 50_000 * (0.9 * np.array([0.6, 0.0, 0.3, 0.1, 0.0]) + 0.1 / 5)
    assert not rejected(sample(Fraction(1, 10)), expected), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(sample(Fraction(15, 100)), expected)
    assert released(PerturbedHistogram(n=1000, cells=5, records=9, noise="laplace", scale=1.0))[[1, 4]].sum() == 0


def test_posterior_samples_scatter_as_the_dirichlet_posterior():
    """Variance of a cell's probability over draws: p (1 - p)/(A + 1) and a hair more for the million urn draws."""
    made = PosteriorSample(n=1000, cells=5, alpha=Fraction(10), records=10**5, draws=300)
    drawn = made.draw(COUNTS, entropy=SystemEntropy())
    table = drawn.columns()
    assert table["draw"].tolist() == np.repeat(np.arange(1, 301), 5).tolist()
    first = table["probability"][drawn.cells == 0]
    p = 610 / 1050
    expected = p * (1 - p) / 1051 * (1 + 1051 / 10**5)
    statistic = ((first - p) ** 2).sum() / expected
    assert chi2.isf(1 - FALSE_ALARM, 300) < statistic < chi2.isf(FALSE_ALARM, 300)
    assert not chi2.isf(1 - FALSE_ALARM, 300) < 3 * statistic < chi2.isf(FALSE_ALARM, 300)  # a third of the prior and data
    np.testing.assert_allclose(table["probability"].reshape(300, 5).sum(axis=1), 1.0)
    twin = made.simulate(COUNTS, rng=np.random.default_rng(3))
    assert abs(twin[0] - p) < 6 * math.sqrt(expected / 300)


# ---- whose random numbers --------------------------------------------------------------------------------------------

RELEASES = [
    {"mechanism": privurn.NoisyCounts(noise="laplace")},
    {"mechanism": privurn.NoisyCounts(noise="discrete-laplace")},
    {"mechanism": privurn.NoisyCounts(noise="discrete-gaussian")},
    {"mechanism": privurn.NoisyCounts(noise="discrete-laplace", publish="counts")},
]


def release(**extra):
    return privurn.release(DATA, domain=privurn.Grid(0, 5, 1), epsilon=1, delta=1e-6, **extra)


def forbidden(*_, **__):
    raise AssertionError("a generator that must not be used on the release path")


@pytest.mark.parametrize("extra", RELEASES, ids=lambda extra: repr(extra["mechanism"]))
def test_the_noise_of_a_release_is_opendps(extra, monkeypatch):
    import opendp.mod

    assert len(release(**extra).data)
    monkeypatch.setattr(opendp.mod.Measurement, "__call__", forbidden)
    monkeypatch.setattr(opendp.mod.Measurement, "invoke", forbidden)
    with pytest.raises(AssertionError, match="must not be used"):
        release(**extra)


@pytest.mark.parametrize(
    "extra",
    [*RELEASES, {"mechanism": privurn.Smoothed()}, {"mechanism": privurn.PosteriorDraws()}],
    ids=lambda e: repr(e["mechanism"]),
)
def test_no_release_asks_numpy_for_randomness(extra, monkeypatch):
    names = ("default_rng", "Generator", "PCG64", "RandomState", "SeedSequence", "normal", "laplace", "random", "geometric")
    for name in names:
        monkeypatch.setattr(np.random, name, forbidden)
    with pytest.raises(AssertionError):
        np.random.default_rng()
    assert len(release(**extra).data)
    with pytest.raises(AssertionError):  # the seeded twin is the one that would
        release(**extra, entropy=SeededEntropy(1))


def test_a_noise_taken_from_numpy_would_be_seen(monkeypatch):
    """The planted bug: a mechanism that adds NumPy's noise passes when OpenDP is forbidden, and fails when NumPy is."""
    import opendp.mod

    def numpys(self, counts):
        noise = np.random.default_rng().laplace(scale=self.scale, size=self.cells).round().astype(np.int64)
        return counts.dense(self.cells) + noise

    monkeypatch.setattr(PerturbedHistogram, "noisy_counts", numpys)
    monkeypatch.setattr(opendp.mod.Measurement, "__call__", forbidden)
    assert len(release(**RELEASES[1]).data)
    monkeypatch.setattr(np.random, "default_rng", forbidden)
    with pytest.raises(AssertionError):
        release(**RELEASES[1])


def test_a_seed_does_not_fix_the_noise():
    """OpenDP's noise comes from the operating system whatever the seed; the certificate says seeded all the same."""
    arguments = {"mechanism": privurn.NoisyCounts(publish="counts"), "entropy": SeededEntropy(5)}
    big = [privurn.release(DATA, domain=privurn.Grid(0, 5, 1), epsilon=1e-4, **arguments) for _ in range(2)]
    assert not np.array_equal(big[0].data, big[1].data)
    assert big[0].certificate["private"] is False


# ---- within bins -----------------------------------------------------------------------------------------------------


def test_numbers_within_a_bin_are_uniform():
    values = np.concatenate([np.full(3000, 1.0), np.full(500, 50.0)])
    arguments = {"domain": privurn.Bins([0, 10, 100]), "mechanism": privurn.NoisyCounts(records=40_000), "epsilon": 5}
    uniform = privurn.Bins([0, 10, 100], within="uniform")
    spread = np.sort(privurn.release(values, **{**arguments, "domain": uniform}).data)
    assert spread.min() > 0.0
    assert spread.max() < 100.0
    low, high = spread[spread < 10], spread[spread >= 10]
    assert 0.8 < len(low) / 40_000 < 0.9
    for inside, left, width in ((low, 0.0, 10.0), (high, 10.0, 90.0)):
        parts = np.bincount(((inside - left) / width * 16).astype(int), minlength=16)
        assert not rejected(parts, np.full(16, len(inside) / 16)), f"fails with probability {FALSE_ALARM} when right"
        assert rejected(parts * np.linspace(1.5, 0.5, 16), np.full(16, len(inside) / 16))
    midpoints = privurn.release(values, **arguments).data
    assert set(midpoints.tolist()) == {5, 55}
