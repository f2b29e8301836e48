"""Channels by enumeration: the law of every output given every record, its divergences, and what is claimed of them."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privurn.errors import CertificateError, DomainError, ModelError
from privurn.mechanisms.local import (
    DiscreteGaussianChannel,
    DiscreteLaplaceChannel,
    GaussianChannel,
    HaarWaveletChannel,
    HistogramStatistic,
    LaplaceChannel,
    MarginalsStatistic,
    MomentsStatistic,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.gaussian import largest_rho
from privurn.mechanisms.registry import local_channels, rebuild
from privurn.privacy.additive_noise import log_mass, measurement
from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.laws.noise import LaplaceProfile

EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


# ---- additive noise on a lattice -------------------------------------------------------------------------------------

LATTICE = [
    LaplaceChannel(bounds=(-1.0, 2.0), scale=1.7, steps=6),
    LaplaceChannel(bounds=(0.0, 1.0), scale=0.11, steps=3),
    GaussianChannel(bounds=(-1.0, 2.0), scale=2.0, steps=6),
    GaussianChannel(bounds=(0.0, 1.0), scale=0.3, steps=4),
    DiscreteLaplaceChannel(bounds=(-2, 3), scale=2.5),
    DiscreteGaussianChannel(bounds=(-2, 3), scale=4.0),
]


def lattice_law(channel, record, law=None):
    """Probabilities of the released lattice points, far into both tails."""
    reach = channel.steps + math.ceil(40 * max(1.0, channel.lattice_scale))
    released = channel.bounds[0] + channel.step * np.arange(-reach, reach + channel.steps + 1)
    return np.exp((law or channel).log_mass(released, record))


@pytest.mark.parametrize("channel", LATTICE, ids=lambda c: f"{c.name} {c.steps}")
def test_additive_noise_has_its_profile(channel):
    """Over all pairs of lattice records the divergence is at most the profile; the two bounds attain it."""
    records = np.linspace(*channel.bounds, channel.steps + 1)
    laws = [lattice_law(channel, record) for record in records]
    for law in laws:
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert channel.profile.tight
    for epsilon in EPSILONS:
        found = {(a, b): hockey_stick(laws[a], laws[b], epsilon) for a, b in itertools.permutations(range(len(laws)), 2)}
        claimed = channel.profile.delta(epsilon)
        assert max(found.values()) <= claimed * (1 + 1e-11) + 1e-15
        assert found[0, channel.steps] == pytest.approx(claimed, rel=1e-9, abs=1e-15)
        assert found[channel.steps, 0] == pytest.approx(claimed, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("channel", LATTICE, ids=lambda c: f"{c.name} {c.steps}")
def test_half_the_noise_would_be_seen(channel):
    """The planted bug: noise of half the scale exceeds the profile of the stated one."""
    bug = replace(channel, scale=0.5 * channel.scale)
    low, high = (lattice_law(channel, bound, law=bug) for bound in channel.bounds)
    assert any(hockey_stick(low, high, epsilon) > 1.05 * channel.profile.delta(epsilon) for epsilon in (*EPSILONS, 8.0, 10.0))


@pytest.mark.parametrize("channel", LATTICE, ids=lambda c: f"{c.name} {c.steps}")
def test_zcdp_of_additive_noise(channel):
    """Renyi divergences between the bounds stay below rho times the order; for Gaussian noise they approach it."""
    low, high = (lattice_law(channel, bound) for bound in channel.bounds)
    kept = (low > 0) & (high > 0)
    ratios = []
    for order in (1.01, 2.0, 5.0):
        logs = order * np.log(low[kept]) + (1 - order) * np.log(high[kept])
        ratios.append(np.logaddexp.reduce(logs) / (order - 1) / (order * channel.rho))
    assert max(ratios) <= 1 + 1e-9
    if channel.noise == "gaussian":
        assert max(ratios) > 1 - 1e-6


def test_records_between_lattice_points_are_no_worse():
    """Rounding maps every record, however strange, to one of steps + 1 numbers."""
    channel = LaplaceChannel(bounds=(-1.0, 2.0), scale=1.7, steps=6)
    strange = [math.nan, -math.inf, math.inf, -1e300, 1e300, -1.0, 2.0, 0.26, np.nextafter(2.0, 3.0)]
    assert channel.lattice(strange).tolist() == [0, 0, 6, 0, 6, 0, 6, 3, 6]
    random = np.random.default_rng(0).uniform(-2, 3, 2000)
    numbers = channel.lattice(random)
    assert set(numbers.tolist()) == set(range(7))
    inside = (random > -1) & (random < 2)
    assert np.abs(channel.bounds[0] + channel.step * numbers - random)[inside].max() <= 0.5 * channel.step * (1 + 1e-12)


@pytest.mark.parametrize(
    "channel",
    [
        *(LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=epsilon) for epsilon in (1e-4, 2.0, 1e4)),
        *(GaussianChannel.calibrate(bounds=(-10, 10), epsilon=epsilon, delta=1e-6) for epsilon in (1e-4, 2.0, 1e4)),
        *LATTICE[:4],
    ],
    ids=lambda c: f"{c.name} {c.scale:.3g} {c.steps}",
)
def test_the_density_is_within_its_stated_error_of_the_law(channel):
    rng = np.random.default_rng(1)
    data = rng.uniform(channel.bounds[0] - 1, channel.bounds[1] + 1, 20_000)
    inside = np.clip(data, *channel.bounds)
    released = channel.simulate(inside, rng=rng)
    near = np.abs(released - inside) < 10 * channel.scale
    difference = np.abs(channel.log_density(released, data) - channel.log_mass(released, data) + math.log(channel.step))[near]
    assert difference.max() <= channel.density_error + 1e-9  # rounding of the logs themselves
    assert difference.max() >= 0.2 * channel.density_error or channel.noise == "gaussian"  # the bound says something
    if channel.steps > 1000:
        assert channel.density_error < 0.01


def test_opendp_says_the_same_of_its_noise():
    """OpenDP's own privacy maps at the distance of one replaced record."""
    laplace = LaplaceChannel.calibrate(bounds=(0, 7), epsilon=1.3)
    stated = measurement("laplace", laplace.lattice_scale).map(laplace.steps)
    assert stated == pytest.approx(laplace.profile.pure_epsilon, rel=1e-12)
    gaussian = GaussianChannel.calibrate(bounds=(0, 7), epsilon=1.3, delta=1e-5)
    stated = measurement("gaussian", gaussian.lattice_scale).map(float(gaussian.steps))
    assert stated == pytest.approx(gaussian.rho, rel=1e-9)


def test_fine_lattices_have_the_continuous_profiles():
    """With 2^20 steps the exact profile is that of Laplace's law to six digits; so is the analytic Gaussian calibration."""
    channel = LaplaceChannel.calibrate(bounds=(0, 1), epsilon=2)
    continuous = LaplaceProfile(scale=0.5)
    for epsilon in (0.0, 0.5, 1.5):
        assert channel.profile.delta(epsilon) == pytest.approx(continuous.delta(epsilon), rel=1e-5)
    scale = GaussianChannel.calibrate(bounds=(0, 1), epsilon=1, delta=1e-5).scale
    mu = mpmath.mpf(1) / scale
    exact = mpmath.ncdf(mu / 2 - 1 / mu) - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)
    assert float(exact) == pytest.approx(1e-5, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    lower=st.floats(-1e6, 1e6),
    width=st.floats(1e-1, 1e6),
    epsilon=st.floats(1e-4, 1e4),
    delta=st.sampled_from([1e-12, 1e-6, 0.1]),
)
def test_calibrations_end_on_the_private_side(lower, width, epsilon, delta):
    bounds = (lower, lower + width)
    for channel in (
        LaplaceChannel.calibrate(bounds=bounds, epsilon=epsilon),
        HaarWaveletChannel.calibrate(bounds=bounds, levels=3, epsilon=epsilon),
        RandomisedResponseChannel.calibrate(categories=5, epsilon=epsilon),
        DiscreteLaplaceChannel.calibrate(bounds=(0, 1 + int(width)), epsilon=epsilon),
    ):
        assert channel.profile.pure_epsilon <= epsilon
        assert channel.profile.pure_epsilon >= min(epsilon, 40.0) * (1 - 1e-4)
        assert local_channels()[channel.name].from_parameters(json.loads(json.dumps(channel.parameters()))) == channel
    for calibration in ("analytic", "zcdp"):
        made = GaussianChannel.calibrate(bounds=bounds, epsilon=epsilon, delta=delta, calibration=calibration)
        assert made.profile.delta(epsilon) <= delta
        assert GaussianChannel.from_parameters(json.loads(json.dumps(made.parameters()))) == made
    assert made.rho <= largest_rho(epsilon=epsilon, delta=delta)
    assert ZeroConcentratedProfile(rho=made.rho).delta(epsilon) <= delta * (1 + 1e-9)


def test_the_analytic_calibration_is_the_least():
    made = GaussianChannel.calibrate(bounds=(0, 5), epsilon=1.5, delta=1e-6)
    assert replace(made, scale=made.scale * 0.9999).profile.delta(1.5) > 1e-6
    assert GaussianChannel.calibrate(bounds=(0, 5), epsilon=1.5, delta=1e-6, calibration="zcdp").scale > made.scale


def test_the_classical_calibration_fails_above_one():
    """Why it is not certified: at epsilon = 50 its noise does not give the delta it was made for."""
    made = GaussianChannel.calibrate(bounds=(0, 1), epsilon=50, delta=0.01, calibration="classical")
    assert made.profile.delta(50.0) > 5 * 0.01
    fine = GaussianChannel.calibrate(bounds=(0, 1), epsilon=1, delta=0.01, calibration="classical")
    assert fine.profile.delta(1.0) <= 0.01


@settings(max_examples=50, deadline=None)
@given(epsilon=st.floats(1e-4, 1e4), data=st.lists(st.floats(-30, 30), min_size=2, max_size=2), place=st.floats(-3, 3))
def test_no_two_records_are_further_apart_than_epsilon(epsilon, data, place):
    """The density that samplers use: log-likelihood ratios of clamped records never exceed epsilon."""
    laplace = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=epsilon)
    wavelet = HaarWaveletChannel.calibrate(bounds=(-10, 10), levels=2, epsilon=epsilon)
    categories = RandomisedResponseChannel.calibrate(categories=4, epsilon=epsilon)
    for channel, z in ((laplace, 10 * place), (wavelet, np.linspace(place, -place, 7)), (categories, 2)):
        first, second = channel.log_density(z, data[0]), channel.log_density(z, data[1])
        assert abs(first - second) <= epsilon * (1 + 1e-9) + 1e-9


# ---- Haar wavelets ---------------------------------------------------------------------------------------------------


def haar(u, j, k):
    """2^(j/2) psi(2^j u - k), straight from the definition."""
    x = 2**j * float(u) - k
    return 2 ** (j / 2) * ((0 <= x < 0.5) - (0.5 <= x < 1))


@pytest.mark.parametrize("levels", range(7))
def test_wavelet_coefficients_and_their_exact_sensitivity(levels):
    channel = HaarWaveletChannel(bounds=(0, 1), levels=levels, scale=1.0)
    middles = (np.arange(channel.cells) + 0.5) / channel.cells
    table = channel.lattice(middles) / channel.resolution
    expected = [[haar(u, j, k) for j in range(levels + 1) for k in range(2**j)] for u in middles]
    np.testing.assert_allclose(table, expected, atol=0.5 / channel.resolution)
    distances = np.abs(table[:, None, :] - table[None, :, :]).sum(axis=2)
    formula = 2 * (2 ** ((levels + 1) / 2) - 1) / (math.sqrt(2) - 1)
    assert distances.max() == channel.sensitivity
    assert channel.sensitivity == pytest.approx(formula, abs=(levels + 1) / channel.resolution)
    squares = ((table[:, None, :] - table[None, :, :]) ** 2).sum(axis=2).max()
    assert channel.rho == pytest.approx(squares / 2, rel=1e-9)  # scale 1; smaller than half the square of the L1 sensitivity
    published = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=levels, epsilon=1, calibration="butucea2020")
    assert published.scale == pytest.approx(12 * math.sqrt(2) / (math.sqrt(2) - 1) * 2 ** (levels / 2))
    assert published.scale > 6 * formula


@pytest.mark.parametrize(("levels", "resolution", "scale"), [(0, 1, 1.5), (1, 2, 0.9), (1, 1, 2.0)])
def test_wavelet_noise_stays_below_its_profile(levels, resolution, scale):
    """All noisy coefficient vectors in a box, all pairs of dyadic intervals; the largest loss is exactly the pure epsilon."""
    channel = HaarWaveletChannel(bounds=(0, 1), levels=levels, scale=scale, resolution=resolution)
    reach = {0: 80, 1: 22}[levels]
    axis = np.arange(-reach, reach + 1)
    grid = np.stack(np.meshgrid(*[axis] * channel.outputs, indexing="ij"), axis=-1).reshape(-1, channel.outputs)

    def law(cell, scale):
        exact = channel.lattice((cell + 0.5) / channel.cells)
        return np.exp(log_mass((grid - exact).astype(float), noise="laplace", scale=scale * resolution).sum(axis=1))

    laws = [law(cell, scale) for cell in range(channel.cells)]
    losses = [np.log(p / q).max() for p, q in itertools.permutations(laws, 2)]
    assert max(losses) == pytest.approx(channel.profile.pure_epsilon, rel=1e-12)
    for epsilon in EPSILONS:
        found = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(laws, 2))
        assert found <= channel.profile.delta(epsilon)
        assert found > 0.2 * channel.profile.delta(epsilon) or epsilon > 0.5 * channel.profile.pure_epsilon
    halved = [law(cell, 0.5 * scale) for cell in range(channel.cells)]  # the planted bug
    largest = max(np.log(p / q).max() for p, q in itertools.permutations(halved, 2))
    assert largest > 1.9 * channel.profile.pure_epsilon


def test_one_level_less_is_not_enough():
    """The planted bug: calibrated for the sensitivity of the coarser levels only."""
    right = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=3, epsilon=2)
    coarse = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=2)
    assert right.profile.pure_epsilon <= 2.0
    assert replace(right, scale=coarse.scale).profile.pure_epsilon > 2.5


def test_wavelet_densities_of_all_intervals():
    channel = HaarWaveletChannel(bounds=(-2, 6), levels=3, scale=0.8)
    released = channel.simulate(np.array([-2.0, 0.3, 6.0, 99.0, math.nan]), rng=np.random.default_rng(0))
    middles = -2 + 8 * (np.arange(16) + 0.5) / 16
    one_by_one = np.stack([channel.log_density(released, middle) for middle in middles], axis=1)
    np.testing.assert_allclose(channel.cell_log_densities(released), one_by_one, rtol=1e-12)
    assert channel.cell([-2.0, 6.0, 99.0, math.nan, -1.51, -1.49]).tolist() == [0, 15, 15, 0, 0, 1]
    assert channel.columns("x")[:4] == ["x_0_0", "x_1_0", "x_1_1", "x_2_0"]
    z = released[0]
    law = sum(log_mass(np.rint(z * channel.resolution) - channel.lattice(0.3), noise="laplace", scale=0.8 * 2**20))
    assert channel.log_density(z, 0.3) == pytest.approx(
        law + 15 * math.log(channel.resolution), abs=channel.density_error + 1e-8
    )


# ---- randomised response ---------------------------------------------------------------------------------------------


class EveryInteger(SeededEntropy):
    """Hands out every integer below the bound once: frequencies are probabilities."""

    def integers(self, bound, *, size):
        assert size == bound
        return np.arange(bound)


@pytest.mark.parametrize(("categories", "odds"), [(2, Fraction(3)), (3, Fraction(7, 2)), (5, Fraction(9, 8))])
def test_randomised_response_has_exactly_its_law(categories, odds):
    channel = RandomisedResponseChannel(categories=categories, odds=odds)
    whole = odds.numerator + (categories - 1) * odds.denominator
    laws = []
    for code in range(categories):
        drawn = channel.privatise(np.full(whole, code), entropy=EveryInteger(0))
        law = [Fraction(int(count), whole) for count in np.bincount(drawn, minlength=categories)]
        assert law[code] == odds * law[code - 1]
        assert len({p for other, p in enumerate(law) if other != code}) == 1
        np.testing.assert_allclose(
            np.exp(channel.log_density(np.arange(categories), code)), [float(p) for p in law], rtol=1e-12
        )
        laws.append(np.array([float(p) for p in law]))
    for epsilon in EPSILONS:
        found = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(laws, 2))
        assert found == pytest.approx(channel.profile.delta(epsilon), rel=1e-10, abs=1e-15)
    bug = RandomisedResponseChannel(categories=categories, odds=odds * odds)  # half the epsilon is claimed
    p, q = (np.exp(bug.log_density(np.arange(categories), code)) for code in (0, 1))
    assert hockey_stick(p, q, 0.0) > 1.05 * channel.profile.delta(0.0)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, math.log(2), 1.0, 5.0, 19.999, 20.001, 40.0, 600.0, 1e4])
def test_odds_are_just_below_the_exponential(epsilon):
    channel = RandomisedResponseChannel.calibrate(categories=7, epsilon=epsilon)
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.mpf(channel.odds.numerator) / channel.odds.denominator)
        assert exact <= mpmath.mpf(channel.epsilon0) <= mpmath.mpf(epsilon)
        assert exact >= mpmath.mpf(min(epsilon, 40.8)) * (1 - mpmath.mpf("1e-4"))


def test_what_randomised_response_never_releases():
    channel = RandomisedResponseChannel(categories=3, odds=Fraction(3))
    assert np.isneginf(channel.log_density([-1, 3, 0.5, math.nan], 1)).all()
    assert channel.codes([-4, math.nan, 1, 99]).tolist() == [0, 0, 1, 2]


# ---- noisy sums and smoothed histograms ------------------------------------------------------------------------------

GLOBAL = [
    SmoothedHistogramChannel(bounds=(0, 1), bins=4, n=5, draws=6, weight=Fraction(1, 3)),
    NoisyStatisticChannel(statistic=HistogramStatistic(bounds=(0, 1), bins=4), n=5, noise="laplace", scale=1.5),
    NoisyStatisticChannel(statistic=HistogramStatistic(bounds=(0, 1), bins=4), n=5, noise="gaussian", scale=1.5),
    NoisyStatisticChannel(statistic=MomentsStatistic(bounds=(0, 1), degree=3), n=5, noise="laplace", scale=0.7),
    NoisyStatisticChannel(statistic=MomentsStatistic(bounds=(0, 1), degree=2), n=5, noise="gaussian", scale=0.7),
]
MARGINALS = NoisyStatisticChannel(
    statistic=MarginalsStatistic(sizes=(2, 3, 2), marginals=((0,), (1, 2), (2,))), n=5, noise="gaussian", scale=2.0
)


@pytest.mark.parametrize("channel", [*GLOBAL, MARGINALS], ids=lambda c: f"{c.name} {getattr(c, 'noise', '')}")
def test_replacing_one_record_is_cheap_and_right(channel):
    """The O(1) ratio equals the difference of two whole densities, for every record and many replacements."""
    rng = np.random.default_rng(4)
    columns = channel is MARGINALS
    data = rng.integers(0, 3, (5, 3)).astype(float) if columns else rng.uniform(-0.1, 1.1, 5)
    released = channel.simulate(data, rng=rng)
    summary, total = channel.summary(released), channel.total(data)
    whole = channel.log_density(released, data)
    assert math.isfinite(whole)
    changes = set()
    for i in range(5):
        for _ in range(6):
            other = data.copy()
            other[i] = rng.integers(0, 3, 3) if columns else rng.uniform(-0.1, 1.1)
            expected = channel.log_density(released, other) - whole
            assert channel.log_ratio(summary, total, old=data[i], new=other[i]) == pytest.approx(expected, abs=1e-9)
            at, changed = channel.replaced(total, data[i], other[i])
            np.testing.assert_array_equal(channel.total(other)[at], changed)
            untouched = np.setdiff1d(np.arange(channel.dimension), at)
            np.testing.assert_array_equal(channel.total(other)[untouched], total[untouched])
            changes.add(len(at))
    assert max(changes) <= 2 * channel.entries(data)[0].shape[1]
    with pytest.raises(ModelError, match="another number of records"):
        channel.simulate(data[:4], rng=rng)
    with pytest.raises(ModelError, match="the release must hold"):
        channel.summary(np.zeros(channel.dimension + 9))


@pytest.mark.parametrize(
    "statistic",
    [
        HistogramStatistic(bounds=(0, 1), bins=3),
        MomentsStatistic(bounds=(0, 1), degree=3, unit=16),
        MarginalsStatistic(sizes=(2, 3), marginals=((0,), (1,), (0, 1))),
    ],
    ids=lambda s: s.kind,
)
def test_sensitivities_of_sums_are_attained(statistic):
    """Over all pairs of records on a fine grid."""
    if statistic.kind == "marginals":
        records = np.array(list(itertools.product(range(2), range(3))), float)
    else:
        records = np.linspace(0, 1, 65)
    vectors = np.zeros((len(records), statistic.dimension), np.int64)
    positions, amounts = statistic.entries(records)
    np.put_along_axis(vectors, positions, amounts, axis=1)
    moved = np.abs(vectors[:, None, :] - vectors[None, :, :])
    assert moved.sum(axis=2).max() == statistic.l1
    assert (moved**2).sum(axis=2).max() == statistic.l2_squared


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noisy_moments_stay_below_their_profile(kind):
    """Two noisy sums on a coarse lattice: all records, all outputs in a box."""
    statistic = MomentsStatistic(bounds=(0, 1), degree=2, unit=4)
    channel = NoisyStatisticChannel(statistic=statistic, n=1, noise=kind, scale=0.8)
    axis = np.arange(-90, 95)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def law(record, scale):
        exact = channel.total(np.array([record]))
        return np.exp(log_mass((grid - exact).astype(float), noise=kind, scale=scale * 4).sum(axis=1))

    laws = [law(record, 0.8) for record in np.linspace(0, 1, 9)]
    direct = np.exp([channel.log_density(point / 4, np.array([0.5])) for point in grid[::997]])
    np.testing.assert_allclose(direct, law(0.5, 0.8)[::997], rtol=1e-9)
    for epsilon in EPSILONS:
        found = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(laws, 2))
        assert found <= channel.profile.delta(epsilon)
    if kind == "laplace":
        assert max(np.log(p / q).max() for p, q in itertools.permutations(laws, 2)) == pytest.approx(
            channel.profile.pure_epsilon, rel=1e-9
        )
    halved = [law(record, 0.4) for record in (0.0, 1.0)]
    assert any(hockey_stick(*halved, epsilon) > 1.02 * channel.profile.delta(epsilon) for epsilon in EPSILONS)


def test_calibrated_sums_meet_their_target():
    for statistic in (
        HistogramStatistic(bounds=(0, 1), bins=9),
        MomentsStatistic(bounds=(0, 1), degree=4),
        MarginalsStatistic(sizes=(2, 3), marginals=((0,), (1,))),
    ):
        pure = NoisyStatisticChannel.calibrate(statistic=statistic, n=50, noise="laplace", epsilon=0.7)
        assert 0.7 * (1 - 1e-9) <= pure.profile.pure_epsilon <= 0.7
        for kind in ("laplace", "gaussian"):
            made = NoisyStatisticChannel.calibrate(statistic=statistic, n=50, noise=kind, epsilon=0.7, delta=1e-5)
            assert made.profile.delta(0.7) <= 1e-5
            assert replace(made, scale=made.scale * 0.999).profile.delta(0.7) > 1e-5
    with pytest.raises(ModelError, match="never pure"):
        NoisyStatisticChannel.calibrate(statistic=statistic, n=50, noise="gaussian", epsilon=1)


def test_the_smoothed_histogram_has_its_law():
    """Sum over all outputs is 1, and losses over all neighbouring tables of three records stay below the pure epsilon."""
    channel = SmoothedHistogramChannel(bounds=(0, 1), bins=3, n=3, draws=2, weight=Fraction(1, 4))
    middles = (np.arange(3) + 0.5) / 3
    outputs = list(itertools.product(range(3), repeat=2))

    def law(records):
        return np.exp([channel.log_density(np.array(output), middles[list(records)]) for output in outputs])

    largest = 0.0
    for records in itertools.product(range(3), repeat=3):
        assert law(records).sum() == pytest.approx(1.0, abs=1e-12)
        for other in range(3):
            largest = max(largest, np.log(law(records) / law((other, *records[1:]))).max())
    assert largest == pytest.approx(channel.profile.pure_epsilon, rel=1e-9)
    assert largest == pytest.approx(2 * math.log((3 / 4) * 3 / ((1 / 4) * 3) + 1), rel=1e-9)  # "+ 1", not "- 1"


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (0,), "ab", (1e15, 1e15 + 1), (0, 1e-300), None]
)
def test_impossible_bounds(bounds):
    with pytest.raises(DomainError, match="bounds"):
        LaplaceChannel.calibrate(bounds=bounds, epsilon=1)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e5, "2"])
def test_impossible_epsilons(epsilon):
    for make in (
        lambda: LaplaceChannel.calibrate(bounds=(0, 1), epsilon=epsilon),
        lambda: GaussianChannel.calibrate(bounds=(0, 1), epsilon=epsilon, delta=0.1),
        lambda: HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=epsilon),
        lambda: RandomisedResponseChannel.calibrate(categories=2, epsilon=epsilon),
    ):
        with pytest.raises(ModelError, match="epsilon must be positive"):
            make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GaussianChannel.calibrate(bounds=(0, 1), epsilon=1, delta=0.0), "never pure"),
        (lambda: GaussianChannel.calibrate(bounds=(0, 1), epsilon=1, delta=1.0), "delta must lie"),
        (lambda: GaussianChannel.calibrate(bounds=(0, 1), epsilon=1, delta=0.1, calibration="magic"), "not known"),
        (lambda: HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=1, calibration="magic"), "not known"),
        (lambda: HaarWaveletChannel(bounds=(0, 1), levels=13, scale=1), "levels must"),
        (lambda: HaarWaveletChannel(bounds=(0, 1), levels=2.5, scale=1), "levels must"),
        (lambda: HaarWaveletChannel(bounds=(0, 1), levels=math.inf, scale=1), "levels must"),
        (lambda: HaarWaveletChannel(bounds=(0, 1), levels="2", scale=1), "levels must"),
        (lambda: HaarWaveletChannel(bounds=(0, 1), levels=2, scale=0), "positive scale"),
        (lambda: LaplaceChannel(bounds=(0, 1), scale=-1), "positive scale"),
        (lambda: LaplaceChannel(bounds=(0, 1), scale=1, steps=0), "steps must"),
        (lambda: DiscreteLaplaceChannel(bounds=(0, 3), scale=1, steps=4), "step 1"),
        (lambda: DiscreteLaplaceChannel(bounds=(0.5, 3), scale=1), "must be whole"),
        (lambda: RandomisedResponseChannel(categories=1, odds=Fraction(2)), "categories must"),
        (lambda: RandomisedResponseChannel(categories=3, odds=Fraction(1)), "above 1"),
        (lambda: RandomisedResponseChannel.calibrate(categories=3, epsilon=1e-10), "too small"),
        (lambda: MarginalsStatistic(sizes=(2, 2), marginals=((0, 2),)), "not there"),
        (lambda: MarginalsStatistic(sizes=(2, 2), marginals=((0, 0),)), "each once"),
        (lambda: MomentsStatistic(bounds=(0, 1), degree=0), "degree must"),
        (lambda: HistogramStatistic(bounds=(0, 1), bins=1), "bins must"),
        (
            lambda: NoisyStatisticChannel(statistic=HistogramStatistic(bounds=(0, 1), bins=2), n=0, noise="laplace", scale=1),
            "n must",
        ),
    ],
)
def test_impossible_parameters(make, words):
    with pytest.raises((ModelError, DomainError), match=words):
        make()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("laplace", {"lower": 0, "upper": 1, "scale": 1, "steps": 4, "step": 0.2}),
        ("laplace", {"lower": 0, "upper": 1}),
        ("randomised-response", {"categories": 3, "odds": "1/0"}),
        ("unheard", {}),
    ],
)
def test_channels_are_not_rebuilt_from_nonsense(name, parameters):
    with pytest.raises(CertificateError):
        rebuild(f"local-{name}", {"n": 3, "order": "shuffled", "channel": parameters})
