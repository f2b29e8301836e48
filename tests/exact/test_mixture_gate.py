"""Mixtures behind every channel, at the defaults of the public call, against weighted draws from the prior.

Three records. From the prior are drawn a clustering, atoms, values and the mixing measure given the clusters, and weighted by
the probability of what was released given the values; no code is shared with the package but that of the mechanism's own
coefficients. Compared are the number of clusters and the figure that the call reports first.
"""

from fractions import Fraction

import numpy as np
import pytest
from inference_references import Weighted
from scipy import stats
from test_inference_gate import assert_agreement, quiet

import privurn
from privurn import Run
from privurn.inference import mixtures as mix
from privurn.mechanisms.local import (
    DiscreteGaussianChannel,
    DiscreteLaplaceChannel,
    GaussianChannel,
    HaarWaveletChannel,
    LaplaceChannel,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.statistics import HistogramStatistic
from privurn.mechanisms.registry import channels

N, STRENGTH, STICKS, SIZE = 3, 1.0, 50, 60_000
"""Sticks of the measure beyond the clusters: what is left of it is 2^-50 on average."""

BOUNDS = (-3.0, 4.0)
KERNEL = mix.GaussianKernel(mean=0.5, precision=0.5, shape=4.0, scale=3.0)
CODES = mix.CategoricalKernel(categories=(3, 2), concentration=0.7)
RELEASED = np.array([-2.0, 1.0, 3.0])


def clusters(rng):
    """Clusters of three records one after the other (draw, record), and the weights of three clusters and of all sticks."""
    c = np.zeros((SIZE, N), np.int64)
    for i in range(1, N):
        mate = rng.integers(0, i, SIZE)
        c[:, i] = np.where(rng.random(SIZE) < STRENGTH / (i + STRENGTH), c[:, :i].max(axis=1) + 1, c[np.arange(SIZE), mate])
    sizes = (c[:, :, None] == np.arange(N)).sum(axis=1)
    masses = np.column_stack(
        [np.where(sizes > 0, rng.standard_gamma(np.maximum(sizes, 1)), 0.0), rng.gamma(STRENGTH, size=SIZE)]
    )
    masses /= masses.sum(axis=1, keepdims=True)
    shares = rng.beta(1.0, STRENGTH, (SIZE, STICKS))
    left = np.cumprod(np.column_stack([np.ones(SIZE), 1.0 - shares]), axis=1)
    return c, np.column_stack([masses[:, :N], masses[:, N:] * shares * left[:, :-1]])


def numbers(log_density, rng):
    """Gaussian clusters: the number of them and the mean within the bounds, weighted."""
    c, weights = clusters(rng)
    deviation = np.sqrt(3.0 / rng.standard_gamma(4.0, weights.shape))
    mean = 0.5 + deviation / np.sqrt(0.5) * rng.standard_normal(weights.shape)
    row = np.arange(SIZE)[:, None]
    y = mean[row, c] + deviation[row, c] * rng.standard_normal(c.shape)
    ends = [(bound - mean) / deviation for bound in BOUNDS]
    inside = np.diff(stats.norm.cdf(ends), axis=0)[0]
    within = mean * inside - deviation * np.diff(stats.norm.pdf(ends), axis=0)[0]
    found = {"clusters": c.max(axis=1) + 1, "figure": (weights * within).sum(axis=1) / (weights * inside).sum(axis=1)}
    return Weighted(log_density(np.clip(y, *BOUNDS)), found)


def codes(log_density, rng):
    """Two columns of categories: the number of clusters and the share of the first category of the first, weighted."""
    c, weights = clusters(rng)
    drawn, atoms = [], []
    for categories in (3, 2):
        p = rng.standard_gamma(0.7, (*weights.shape, categories))
        p /= p.sum(axis=2, keepdims=True)
        own = np.cumsum(p[np.arange(SIZE)[:, None], c], axis=2)
        drawn.append((rng.random(c.shape)[..., None] > own[..., :-1]).sum(axis=2))
        atoms.append(p)
    share = (weights * atoms[0][..., 0]).sum(axis=1) / weights.sum(axis=1)
    return Weighted(log_density(np.stack(drawn, axis=2)), {"clusters": c.max(axis=1) + 1, "figure": share})


def kept(same, odds, categories):
    return np.where(same, np.log(odds / (odds + categories - 1)), -np.log(odds + categories - 1))


def bins(y):
    """Of seven, one wide each."""
    return np.minimum((y - BOUNDS[0]).astype(np.int64), 6)


PAIR = np.array([[0, 1], [2, 1], [0, 0]])
ODDS = (Fraction(6), Fraction(3))
HAAR = HaarWaveletChannel(bounds=BOUNDS, levels=2, scale=3.0)
COEFFICIENTS = HAAR.lattice(np.array([-2.0, 1.0, 3.0])) / HAAR.resolution
SUMS = NoisyStatisticChannel(statistic=HistogramStatistic(bounds=BOUNDS, bins=7), n=N, noise="laplace", scale=1.0)
SMOOTHED = SmoothedHistogramChannel.calibrate(bounds=BOUNDS, bins=7, n=N, draws=4, epsilon=3)
DRAWN = np.array([1, 4, 6, 6])


def smoothed(y):
    counts = (bins(y)[:, :, None] == np.arange(7)).sum(axis=1)
    weight = float(SMOOTHED.weight)
    return np.log((1.0 - weight) * counts[:, DRAWN] / N + weight / 7).sum(axis=1)


ROWS = {
    "laplace": (LaplaceChannel(bounds=BOUNDS, scale=1.0), RELEASED, lambda y: -np.abs(RELEASED - y).sum(axis=1)),
    "gaussian": (GaussianChannel(bounds=BOUNDS, scale=1.0), RELEASED, lambda y: -0.5 * ((RELEASED - y) ** 2).sum(axis=1)),
    "discrete-laplace": (
        DiscreteLaplaceChannel(bounds=(-3, 4), scale=1.5),
        RELEASED.astype(np.int64),
        lambda y: -np.abs(RELEASED - np.rint(y)).sum(axis=1) / 1.5,
    ),
    "discrete-gaussian": (
        DiscreteGaussianChannel(bounds=(-3, 4), scale=1.5),
        RELEASED.astype(np.int64),
        lambda y: -0.5 * ((RELEASED - np.rint(y)) ** 2).sum(axis=1) / 1.5**2,
    ),
    "haar-wavelet": (
        HAAR,
        COEFFICIENTS,
        lambda y: -np.abs(COEFFICIENTS - HAAR.lattice(y) / HAAR.resolution).sum(axis=(1, 2)) / 3.0,
    ),
    "randomised-responses": (
        tuple(RandomisedResponseChannel(categories=k, odds=odds) for k, odds in zip((3, 2), ODDS, strict=True)),
        PAIR,
        lambda y: sum(kept(y[..., j] == PAIR[:, j], float(ODDS[j]), k).sum(axis=1) for j, k in enumerate((3, 2))),
    ),
    "noisy-statistic": (
        SUMS,
        np.array([0.0, 1.0, -1.0, 1.0, 0.0, 0.0, 1.0]),
        lambda y: -np.abs(ROWS["noisy-statistic"][1] - (bins(y)[:, :, None] == np.arange(7)).sum(axis=1)).sum(axis=1),
    ),
    "smoothed-histogram": (SMOOTHED, DRAWN, smoothed),
}
"""Channel, what it released, and the log density of that given clamped values (draw, record)."""

MORE = ("gaussian", "discrete-laplace", "discrete-gaussian", "smoothed-histogram")
"""Rows like others, whose code takes a while to compile."""


def points(reference, name, levels):
    order = np.argsort(reference.numbers[name])
    below = np.cumsum(reference.weights[order])
    return reference.numbers[name][order][np.searchsorted(below, levels)]


def reference_of(row, log_density):
    found = (codes if row == "randomised-responses" else numbers)(log_density, np.random.default_rng(3))
    assert 1.0 / (found.weights**2).sum() > 1000.0  # draws that count
    return found


def drawn(row):
    """Number of clusters and the first figure, by the public call."""
    channel, released, _ = ROWS[row]
    kernel = CODES if row == "randomised-responses" else KERNEL
    model = mix.GlobalMixtureModel if getattr(channel, "one_output", False) else mix.MixtureModel
    found = quiet(privurn.infer, released, model(channel=channel, kernel=kernel), run=Run(seed=1)).draws
    return found["n_clusters"], found["share"][..., 0] if row == "randomised-responses" else found["mean"]


def agree(found, reference):
    at = {"clusters": (1, 2), "figure": points(reference, "figure", (0.1, 0.3, 0.5, 0.7, 0.9))}
    exact, errors = reference.cdf(at)
    for name, values in zip(("clusters", "figure"), found, strict=True):
        assert_agreement(values, at[name], exact[name], errors[name])


@pytest.mark.parametrize("row", [pytest.param(row, marks=[pytest.mark.long] * (row in MORE)) for row in ROWS])
def test_a_mixture_at_its_defaults(row):
    agree(drawn(row), reference_of(row, ROWS[row][2]))


def test_noise_of_another_scale_is_seen():
    with pytest.raises(AssertionError) as raised:
        agree(drawn("laplace"), reference_of("laplace", lambda y: 0.5 * ROWS["laplace"][2](y)))
    assert raised.traceback[-1].name == "assert_agreement"


def test_every_channel_has_a_row():
    assert {*ROWS, "randomised-response"} == set(channels())  # that one is enumerated in test_inference_gate.py
