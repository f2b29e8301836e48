"""The deconvolution estimator: exact limits, a known mixture, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from privurn.errors import DomainError, ModelError
from privurn.inference.mixtures.deconvolution import MU2, deconvolve, plug_in_bandwidth
from privurn.mechanisms.local import GaussianChannel, LaplaceChannel, RandomisedResponseChannel

BOUNDS = (-10, 10)
GRID = np.linspace(-10, 10, 401)


def kernel(x):
    """The kernel itself, by quadrature of its characteristic function."""
    return quad(lambda t: (1 - t * t) ** 3 * math.cos(t * x), 0, 1)[0] / math.pi


def true_density(x):
    return sum(np.exp(-0.5 * (x - m) ** 2) for m in (-5, 0, 5)) / (3 * math.sqrt(2 * math.pi))


def mixture(n, rng):
    return rng.choice([-5.0, 0.0, 5.0], n) + rng.standard_normal(n)


@pytest.mark.parametrize("kind", [LaplaceChannel, GaussianChannel])
def test_without_noise_it_is_the_ordinary_estimator(kind):
    rng = np.random.default_rng(0)
    records = rng.normal(size=40)
    points = np.linspace(-3, 3, 13)
    direct = [np.mean([kernel((x - y) / 0.3) for y in records]) / 0.3 for x in points]
    found = deconvolve(records, channel=kind(bounds=BOUNDS, scale=1e-4), grid=points, bandwidth=0.3)
    np.testing.assert_allclose(found.density, direct, atol=1e-5)
    curvature = (1 - (1 - 0.01**2) ** 3) * 2 / 0.01**2  # of the characteristic function at 0: the kernel's second moment
    assert curvature == pytest.approx(MU2, rel=1e-3)


@pytest.mark.parametrize(("kind", "scale"), [(LaplaceChannel, 0.6), (GaussianChannel, 0.5)])
def test_it_is_the_formula(kind, scale):
    """The inversion integral by quadrature, record by record."""
    rng = np.random.default_rng(1)
    channel = kind(bounds=BOUNDS, scale=scale)
    records = channel.simulate(rng.normal(size=25), rng=rng)
    h = 0.45

    def divided(t):
        return 1 + (scale * t) ** 2 if kind is LaplaceChannel else math.exp(0.5 * (scale * t) ** 2)

    def one(x):
        inside = lambda s: (1 - s * s) ** 3 * divided(s / h) * np.mean(np.cos(s / h * (x - records)))  # noqa: E731
        return quad(inside, 0, 1, limit=200)[0] / (math.pi * h)

    points = np.linspace(-4, 4, 9)
    found = deconvolve(records, channel=channel, grid=points, bandwidth=h)
    np.testing.assert_allclose(found.density, [one(x) for x in points], atol=2e-4)


@pytest.mark.parametrize(
    "channel",
    [LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=50), GaussianChannel(bounds=BOUNDS, scale=0.6)],
    ids=["laplace", "gaussian"],
)
def test_a_known_mixture_is_found_and_better_with_more_records(channel):
    def error(n, seed):
        rng = np.random.default_rng(seed)
        found = deconvolve(channel.simulate(mixture(n, rng), rng=rng), channel=channel, grid=GRID)
        assert np.trapezoid(found.density, GRID) == pytest.approx(1.0, abs=0.02)  # tails of the kernel beyond the grid
        positive = found.positive()
        assert positive.min() >= 0.0
        assert np.trapezoid(positive, GRID) == pytest.approx(1.0, abs=1e-12)
        return float(np.trapezoid((found.density - true_density(GRID)) ** 2, GRID))

    small, large = (np.mean([error(n, seed) for seed in range(5)]) for n in (300, 20_000))
    assert large < 0.25 * small
    flat = float(np.trapezoid((1 / 20 - true_density(GRID)) ** 2, GRID))
    assert large < 0.03 * flat


@pytest.mark.parametrize("scale", [0.05, 0.5, 2.0])
def test_the_whole_estimate_integrates_to_one(scale):
    rng = np.random.default_rng(2)
    channel = LaplaceChannel(bounds=BOUNDS, scale=scale)
    wide = np.linspace(-400, 400, 20_001)
    found = deconvolve(channel.simulate(mixture(2000, rng), rng=rng), channel=channel, grid=wide)
    assert np.trapezoid(found.density, wide) == pytest.approx(1.0, abs=1e-3)


def test_the_bandwidth_follows_noise_and_size():
    rng = np.random.default_rng(3)
    data = mixture(5000, rng)

    def width(scale, n=5000):
        channel = LaplaceChannel(bounds=BOUNDS, scale=scale)
        return plug_in_bandwidth(channel.simulate(data[:n], rng=np.random.default_rng(4)), channel=channel)

    assert width(0.1) < width(1.0) < width(5.0)
    assert width(0.5, 5000) < width(0.5, 200)
    assert plug_in_bandwidth(7.0 * data, channel=LaplaceChannel(bounds=BOUNDS, scale=0.7)) == pytest.approx(
        7.0 * plug_in_bandwidth(data, channel=LaplaceChannel(bounds=BOUNDS, scale=0.1)), rel=1e-6
    )


def test_the_chosen_bandwidth_is_near_the_best():
    """Integrated squared error within a factor of two of the best bandwidth on a grid, averaged over five data sets."""
    channel = LaplaceChannel(bounds=BOUNDS, scale=0.4)
    chosen, best = 0.0, np.zeros(15)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noisy = channel.simulate(mixture(2000, rng), rng=rng)

        def error(h, noisy=noisy):
            found = deconvolve(noisy, channel=channel, grid=GRID, bandwidth=h)
            return np.trapezoid((found.density - true_density(GRID)) ** 2, GRID)

        chosen += error(None)
        best += np.array([error(h) for h in np.geomspace(0.1, 2.0, 15)])
    assert chosen < 2.0 * best.min()


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("n", [2, 50])
def test_strange_sizes_and_noises_stay_finite(epsilon, n):
    rng = np.random.default_rng(5)
    for channel in (
        LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=epsilon),
        GaussianChannel.calibrate(bounds=BOUNDS, epsilon=epsilon, delta=1e-6),
    ):
        noisy = channel.simulate(mixture(n, rng), rng=rng)
        assert np.isfinite(deconvolve(noisy, channel=channel, grid=GRID).density).all()


def test_refusals():
    channel = LaplaceChannel(bounds=BOUNDS, scale=1.0)
    with pytest.raises(ModelError, match="Laplace or the Gaussian"):
        deconvolve([1.0, 2.0], channel=RandomisedResponseChannel.calibrate(categories=2, epsilon=1), grid=GRID)
    with pytest.raises(DomainError, match="all released records are equal"):
        deconvolve([1.0], channel=channel, grid=GRID)
    for bad in ([], [math.nan], [[1.0]]):
        with pytest.raises(DomainError, match="list of finite numbers"):
            deconvolve(bad, channel=channel, grid=GRID)
        with pytest.raises(DomainError, match="list of finite numbers"):
            deconvolve([1.0, 2.0], channel=channel, grid=bad)
    with pytest.raises(ModelError, match="bandwidth must be positive"):
        deconvolve([1.0, 2.0], channel=channel, grid=GRID, bandwidth=0.0)
    with pytest.raises(ModelError, match="too small"):
        deconvolve([1.0, 2.0], channel=GaussianChannel(bounds=BOUNDS, scale=5.0), grid=GRID, bandwidth=0.01)
