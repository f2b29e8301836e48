"""What channels publish at sizes that cannot be enumerated, and whose random numbers they use."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import privurn
from privurn.mechanisms.local import (
    DiscreteGaussianChannel,
    DiscreteLaplaceChannel,
    GaussianChannel,
    HaarWaveletChannel,
    HistogramStatistic,
    LaplaceChannel,
    MomentsStatistic,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local import lattice as lattice_module
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.privacy.additive_noise import log_mass
from privurn.privacy.entropy import SeededEntropy, SystemEntropy
from privurn.releases.privatise import privatise

FALSE_ALARM = 1e-6
SIZE = 20_000
PARTS = 12

ADDITIVE = [
    LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=2),
    GaussianChannel.calibrate(bounds=(-10, 10), epsilon=2, delta=1e-5),
    LaplaceChannel(bounds=(0, 1), scale=0.3, steps=8),
    GaussianChannel(bounds=(0, 1), scale=0.3, steps=8),
    DiscreteLaplaceChannel(bounds=(0, 7), scale=2.5),
    DiscreteGaussianChannel(bounds=(0, 7), scale=4.0),
]


def rejected(observed, expected) -> bool:
    """Chi-square test of counts in fixed parts against their expectations."""
    return bool(((observed - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, len(observed) - 1))


def noise_parts(channel):
    """Edges in lattice steps that cut the noise's exact law into about equal parts, and the parts' probabilities."""
    reach = math.ceil(45 * max(1.0, channel.lattice_scale))
    coarse = max(1, reach // 200_000)  # a fine lattice is cut at every so many points; the parts are summed exactly below
    support = np.arange(-reach, reach + 1, coarse)
    density = np.exp(channel.log_mass(channel.bounds[0] + channel.step * support, channel.bounds[0])) * coarse
    edges = support[np.searchsorted(np.cumsum(density), np.arange(1, PARTS) / PARTS)]
    edges = np.unique(edges)
    if coarse == 1:
        shares = np.add.reduceat(density, np.searchsorted(support, edges))
        return edges, np.array([1.0 - shares.sum(), *shares])
    above = [_tail(channel, edge) for edge in edges]
    return edges, -np.diff([1.0, *above, 0.0])


def _tail(channel, edge):
    """P(noise >= edge), in closed form for Laplace, by the normal law for Gauss (agrees to 1e-9 on a lattice so fine)."""
    if channel.noise == "laplace":
        r = math.exp(-1 / channel.lattice_scale)
        return r**edge / (1 + r) if edge > 0 else 1 - r ** (1 - edge) / (1 + r)
    return 0.5 * math.erfc((edge - 0.5) / channel.lattice_scale / math.sqrt(2))


def noise_counts(channel, released, data, edges):
    steps = np.rint((released - channel.bounds[0]) / channel.step).astype(np.int64) - channel.lattice(data)
    return np.bincount(np.searchsorted(edges, steps, side="right"), minlength=len(edges) + 1)


@pytest.mark.parametrize("source", ["release", "simulation twin"])
@pytest.mark.parametrize("channel", ADDITIVE, ids=lambda c: f"{c.name} {c.steps}")
def test_the_noise_has_its_law(channel, source):
    data = np.random.default_rng(0).uniform(channel.bounds[0] - 1, channel.bounds[1] + 1, SIZE)

    def released(scale):
        made = type(channel)(bounds=channel.bounds, scale=scale, steps=channel.steps)
        if source == "release":
            return made.privatise(data, entropy=SystemEntropy())
        return made.simulate(data, rng=np.random.default_rng(3))

    edges, shares = noise_parts(channel)
    assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    assert not rejected(noise_counts(channel, released(channel.scale), data, edges), SIZE * shares), (
        f"fails with probability {FALSE_ALARM} when right"
    )
    assert rejected(noise_counts(channel, released(1.15 * channel.scale), data, edges), SIZE * shares)


@pytest.mark.parametrize("source", ["release", "simulation twin"])
def test_randomised_response_keeps_as_often_as_it_says(source):
    data = np.arange(SIZE) % 4

    def table(odds):
        channel = RandomisedResponseChannel(categories=4, odds=odds)
        entropy, rng = SystemEntropy(), np.random.default_rng(1)
        drawn = channel.privatise(data, entropy=entropy) if source == "release" else channel.simulate(data, rng=rng)
        return np.bincount(4 * data + drawn, minlength=16)

    channel = RandomisedResponseChannel(categories=4, odds=Fraction(5, 2))
    pairs = np.array(list(itertools.product(range(4), repeat=2)))
    expected = SIZE / 4 * np.exp(channel.log_density(pairs[:, 1], pairs[:, 0]))
    assert not rejected(table(Fraction(5, 2)), expected), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(table(Fraction(25, 8)), expected)


@pytest.mark.parametrize("source", ["release", "simulation twin"])
def test_wavelet_noise_is_laplace_in_every_coefficient(source):
    channel = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=6)
    data = np.random.default_rng(5).uniform(-0.1, 1.1, 3000)

    def shares(scale):
        made = HaarWaveletChannel(bounds=(0, 1), levels=2, scale=scale)
        entropy, rng = SystemEntropy(), np.random.default_rng(1)
        z = made.privatise(data, entropy=entropy) if source == "release" else made.simulate(data, rng=rng)
        assert z.shape == (3000, 7)
        left = (z - channel.lattice(data) / channel.resolution).ravel() / channel.scale
        uniform = np.where(left < 0, 0.5 * np.exp(np.minimum(left, 0)), 1 - 0.5 * np.exp(-np.maximum(left, 0)))
        return np.bincount((uniform * PARTS).astype(int), minlength=PARTS)

    expected = np.full(PARTS, 3000 * 7 / PARTS)
    assert not rejected(shares(channel.scale), expected), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(shares(1.15 * channel.scale), expected)


def test_global_channels_scatter_around_their_sums():
    data = np.random.default_rng(8).beta(2, 5, 400)
    histogram = NoisyStatisticChannel(statistic=HistogramStatistic(bounds=(0, 1), bins=5000), n=400, noise="laplace", scale=3.0)
    left = histogram.privatise(data, entropy=SystemEntropy()) - histogram.total(data)
    assert left.dtype == np.int64
    support, edges = np.arange(-200, 201), np.array([-6, -4, -2, -1, 0, 1, 2, 3, 5, 7])
    parts = np.searchsorted(edges, support, side="right")
    expected = 5000 * np.bincount(parts, np.exp(log_mass(support.astype(float), noise="laplace", scale=3.0)))
    observed = np.bincount(np.searchsorted(edges, left, side="right"), minlength=11)
    assert not rejected(observed, expected), f"fails with probability {FALSE_ALARM} when right"
    assert rejected(np.bincount(np.searchsorted(edges, np.rint(1.3 * left), side="right"), minlength=11), expected)
    moments = NoisyStatisticChannel(statistic=MomentsStatistic(bounds=(0, 1), degree=2), n=400, noise="gaussian", scale=0.01)
    published = moments.privatise(data, entropy=SystemEntropy())
    np.testing.assert_allclose(published, [data.sum(), (data**2).sum()], atol=0.06 + 400 * 2**-21)
    assert not np.array_equal(published, moments.total(data) / 2**20)
    smooth = SmoothedHistogramChannel(bounds=(0, 1), bins=5, n=400, draws=SIZE, weight=Fraction(1, 5))
    expected = SIZE * (0.8 * smooth.total(data) / 400 + 0.04)
    drawn = smooth.privatise(data, entropy=SystemEntropy())
    assert not rejected(np.bincount(drawn, minlength=5), expected), f"fails with probability {FALSE_ALARM} when right"
    other = SmoothedHistogramChannel(bounds=(0, 1), bins=5, n=400, draws=SIZE, weight=Fraction(3, 10))
    assert rejected(np.bincount(other.simulate(data, rng=np.random.default_rng(0)), minlength=5), expected)


def test_shuffled_records_come_in_random_order():
    """Distinct records through a nearly noiseless channel: the place of the first record is uniform."""
    channel = LaplaceChannel.calibrate(bounds=(0, 5), epsilon=10_000)
    data = np.arange(6.0)
    kept = LocalRelease(n=6, channel=channel, order="kept").draw(data, entropy=SystemEntropy())
    np.testing.assert_allclose(kept, data, atol=0.1)
    entropy = SeededEntropy(11)
    shuffled = LocalRelease(n=6, channel=channel)
    places = [int(np.argmin(shuffled.draw(data, entropy=entropy))) for _ in range(1200)]
    assert not rejected(np.bincount(places, minlength=6), np.full(6, 200.0)), f"fails with probability {FALSE_ALARM} when right"


# ---- whose random numbers --------------------------------------------------------------------------------------------

RELEASES = [
    {"channel": privurn.Laplace(), "domain": privurn.Bounds(0, 1)},
    {"channel": privurn.Gaussian(), "domain": privurn.Bounds(0, 1), "delta": 1e-5},
    {"channel": privurn.HaarWavelet(levels=1), "domain": privurn.Bounds(0, 1)},
    {"channel": privurn.DiscreteLaplace(), "domain": privurn.Bounds(0, 1)},
    {"channel": privurn.DiscreteGaussian(), "domain": privurn.Bounds(0, 1), "delta": 1e-5},
]
DATA = np.random.default_rng(2).integers(0, 2, 50).astype(float)


def forbidden(*_, **__):
    raise AssertionError("a generator that must not be used on the release path")


@pytest.mark.parametrize("extra", RELEASES, ids=lambda extra: extra["channel"].alias)
def test_the_noise_of_a_release_is_opendps(extra, monkeypatch):
    import opendp.mod

    assert len(privatise(DATA, epsilon=1, **extra).data) == 50
    monkeypatch.setattr(opendp.mod.Measurement, "__call__", forbidden)
    monkeypatch.setattr(opendp.mod.Measurement, "invoke", forbidden)
    with pytest.raises(AssertionError, match="must not be used"):
        privatise(DATA, epsilon=1, **extra)


@pytest.mark.parametrize(
    "extra",
    [*RELEASES, {"channel": privurn.RandomisedResponse(), "domain": privurn.Categories([0, 1], outside="other")}],
    ids=lambda extra: extra["channel"].alias,
)
def test_no_release_asks_numpy_for_randomness(extra, monkeypatch):
    names = ("default_rng", "Generator", "PCG64", "RandomState", "SeedSequence", "normal", "laplace", "random", "geometric")
    for name in names:
        monkeypatch.setattr(np.random, name, forbidden)
    assert len(privatise(DATA, epsilon=1, **extra).data) == 50
    with pytest.raises(AssertionError):  # the seeded twin is the one that would
        privatise(DATA, epsilon=1, entropy=SeededEntropy(1), **extra)


def test_a_noise_taken_from_numpy_would_be_seen(monkeypatch):
    """The planted bug: a channel that adds NumPy's noise passes when OpenDP is forbidden, and fails when NumPy is."""
    import opendp.mod

    def numpys(exact, *, noise, scale):
        return exact + np.random.default_rng().laplace(scale=scale, size=exact.shape).round().astype(np.int64)

    monkeypatch.setattr(lattice_module, "noisy_integers", numpys)
    monkeypatch.setattr(opendp.mod.Measurement, "__call__", forbidden)
    assert len(privatise(DATA, domain=privurn.Bounds(0, 1), epsilon=1).data) == 50
    monkeypatch.setattr(np.random, "default_rng", forbidden)
    with pytest.raises(AssertionError):
        privatise(DATA, domain=privurn.Bounds(0, 1), epsilon=1)


def test_a_seed_does_not_fix_the_noise_but_marks_the_release():
    made = [privatise(DATA, domain=privurn.Bounds(0, 1), epsilon=1, order="kept", entropy=SeededEntropy(4)) for _ in range(2)]
    assert not np.array_equal(made[0].data, made[1].data)
    assert all(each.certificate["private"] is False for each in made)
    answers = [
        privatise(
            DATA,
            privurn.RandomisedResponse(),
            domain=privurn.Categories([0, 1], outside="other"),
            epsilon=1,
            entropy=SeededEntropy(4),
        ).data
        for _ in range(2)
    ]
    assert np.array_equal(*answers)  # exact integers do follow it
