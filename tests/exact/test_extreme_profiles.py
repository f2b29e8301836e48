"""Profiles where floats are at their worst, against 60 digits: near pure privacy, in the tails, at huge and tiny parameters."""

import itertools
import math
import random
import warnings

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from privurn.errors import ModelError
from privurn.mechanisms.local import DiscreteLaplaceChannel, LaplaceChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponsesProfile
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.conversions import RenyiProfile, ZeroConcentratedProfile
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.laws.label_discovery import DiscoveredUrnProfile, LabelDiscoveryProfile
from privurn.privacy.laws.noise import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    ExponentialMechanismProfile,
    GaussianProfile,
    LaplaceProfile,
    RandomisedResponseProfile,
)
from privurn.privacy.laws.noisy_counts import NoisyCountsProfile
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import GroupProfile, Guarantee, PointProfile

TIGHT = mpf("1e-12")


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def assert_above(value, truth, *, close=TIGHT):
    """At least the truth, and by no more than a share `close` above it."""
    assert mpf(value) >= truth
    if close is not None:
        assert mpf(value) <= truth * (1 + close) + mpf("2e-300")


def below_pure(pure, rng):
    """Epsilons from 0 to the last float before the pure epsilon."""
    shares = (0.0, 1e-12, rng.random(), *(1.0 - 10.0**-k * rng.random() for k in (1, 3, 6, 9, 12, 15)))
    return [e for e in {*(pure * share for share in shares), math.nextafter(pure, 0.0)} if e < pure]


def discrete_laplace(scale, steps, epsilon):
    step, epsilon = 1 / mpf(scale), mpf(epsilon)
    r, gap = mpmath.exp(-step), steps * step - epsilon
    last = max(0, int(mpmath.ceil(gap / (2 * step))) - 1)
    return (1 - mpmath.exp(-step * (last + 1)) + r - mpmath.exp(epsilon - step * (steps - last))) / (1 + r)


def test_discrete_laplace_loses_nothing_near_its_pure_epsilon():
    rng = random.Random(1)
    for steps in (1, 2, 7, 1024, 2**20, 2**20 + 1, 2**53, 2**53 + 1, 2**54 - 1):
        for _ in range(8):
            scale = steps / 10 ** rng.uniform(-6, 2.7)
            profile = DiscreteLaplaceProfile(scale=scale, sensitivity=steps)
            for epsilon in below_pure(profile.pure_epsilon, rng):
                with mp.workdps(80):
                    truth = discrete_laplace(scale, steps, epsilon)
                if profile.delta(epsilon) < 1.0:
                    assert_above(profile.delta(epsilon), truth)


@pytest.mark.parametrize(("bounds", "delta"), [((0, 1), 1e-9), ((0, 2**53), 1e-13)])
def test_whole_numbers_with_bounds_of_any_width(bounds, delta):
    channel = DiscreteLaplaceChannel.calibrate(bounds=bounds, epsilon=1.0)
    epsilon = channel.profile.epsilon(delta)
    truth = discrete_laplace(channel.lattice_scale, channel.steps, epsilon)
    assert_above(channel.profile.delta(epsilon), truth)
    assert truth <= delta


def test_laplace_and_counts_lose_nothing_near_their_pure_epsilon():
    rng = random.Random(2)
    for _ in range(40):
        scale = 10 ** rng.uniform(-2.5, 9)
        laplace = LaplaceProfile(scale=scale)
        for epsilon in below_pure(laplace.pure_epsilon, rng):
            truth = -mpmath.expm1((mpf(epsilon) - 1 / mpf(scale)) / 2)
            if laplace.delta(epsilon) < 1.0:
                assert_above(laplace.delta(epsilon), truth)
        counts = NoisyCountsProfile(cells=3, noise="discrete-laplace", scale=scale)
        for epsilon in below_pure(counts.pure_epsilon, rng):
            truth = -mpmath.expm1(mpf(epsilon) - 2 / mpf(scale)) / (1 + mpmath.exp(-1 / mpf(scale))) ** 2
            if counts.delta(epsilon) < 1.0:
                assert_above(counts.delta(epsilon), truth)


def test_gaussian_tails():
    rng = random.Random(3)
    for _ in range(300):
        mu = 10 ** rng.uniform(-9, 2)
        start = rng.uniform(-3, 37)
        epsilon = (start + mu / 2) * mu
        if not 0 < epsilon < 700:
            continue
        with mp.workdps(130):
            x, h = mpf(epsilon) / mpf(mu), mpf(mu) / 2
            first, second = (mpmath.erfc(t / mpmath.sqrt(2)) / 2 for t in (x - h, x + h))
            truth = first - mpmath.exp(mpf(epsilon)) * second
        assert_above(GaussianProfile(scale=1.0, sensitivity=mu).delta(epsilon), truth, close=mpf("1e-11"))


def test_discrete_gaussian_tails():
    rng = random.Random(4)
    for _ in range(60):
        scale, shift = 10 ** rng.uniform(-1, 1.3), rng.choice([1, 2, 5])
        epsilon = shift / scale * (rng.uniform(0, 36) + shift / (2 * scale))
        variance = mpf(scale) ** 2
        start = math.floor(epsilon * scale * scale / shift - shift / 2)
        truth, k = mpf(0), start
        while k < start + 12 * scale + 12:
            gain = -mpmath.expm1(mpf(epsilon) - shift * (shift + 2 * mpf(k)) / (2 * variance))
            truth += mpmath.exp(-(mpf(k) ** 2) / (2 * variance)) * max(mpf(0), gain)
            k += 1
        truth /= mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * variance)))
        assert_above(DiscreteGaussianProfile(scale=scale, sensitivity=shift).delta(epsilon), truth, close=mpf("1e-10"))


def beta_binomial(m, a, b, s):
    return mpmath.binomial(m, s) * mpmath.rf(a, s) * mpmath.rf(b, m - s) / mpmath.rf(a + b, m)


def urn_divergence(a, b, rest, m, epsilon):
    """D_oo as a double sum."""
    a, b, rest, ratio = mpf(a), mpf(b), mpf(rest), mpmath.exp(mpf(epsilon))
    total = mpf(0)
    for s in range(m + 1):
        for t in [m - s] if rest == 0 else range(m - s + 1):
            gain = 1 - ratio * (1 + t / b) / (1 + s / a)
            if gain > 0:
                given = mpf(1) if rest == 0 else beta_binomial(m - s, b, rest, t)
                total += beta_binomial(m, a + 1, b + rest, s) * given * gain
    return total


def test_urns_near_pure_privacy_and_with_huge_priors():
    """Anywhere at least the truth; within 1e-12 up to a tenth below the pure epsilon, however large or small the prior is."""
    rng = random.Random(5)
    for n, cells, m in itertools.product((1, 3, 10**6, 10**12), (2, 3, 10**9), (1, 2, 9)):
        if cells == 2 and n > 3:
            continue
        for alpha in (10 ** rng.uniform(-6, -1), 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(4, 9)):
            profile = DirichletMultinomialProfile(n=n, cells=cells, alpha=alpha, records=m)
            prior = mpf(alpha)
            for epsilon in below_pure(profile.pure_epsilon, rng):
                if cells == 2:
                    truth = max(urn_divergence(prior + k, prior + n - 1 - k, 0, m, epsilon) for k in range(n))
                else:
                    truth = urn_divergence(prior, prior, (cells - 2) * prior + n - 1, m, epsilon)
                far = epsilon < 0.9 * profile.pure_epsilon
                assert_above(profile.delta(epsilon), truth, close=TIGHT if far else None)


def posterior_divergence(alpha, epsilon):
    """Ibar_q(a+1, a) - E Ibar_q(a, a+1) by a series of positive terms, q = E/(1 + E)."""
    a, ratio = mpf(alpha), mpmath.exp(mpf(epsilon))
    x = 1 / (1 + ratio)

    def lower(p, q):
        term, total, k = mpf(1), mpf(0), 0
        while term > total * mpf("1e-50") or (p + q + k) / (p + 1 + k) * x >= 1:
            total += term
            term *= (p + q + k) / (p + 1 + k) * x
            k += 1
        log_beta = mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q)
        return mpmath.exp(p * mpmath.log(x) + q * mpmath.log(1 - x) - log_beta) / p * total

    return lower(a, a + 1) - ratio * lower(a + 1, a)


@pytest.mark.parametrize("alpha", [1e-3, 0.46, 3.87, 9.0, 40.0, 900.0])
def test_unlimited_records_at_any_epsilon(alpha):
    """At epsilon 19 and a prior of 3.87 an argument rounded to 1 once claimed 0 in place of 7e-32."""
    profile = DirichletMultinomialProfile(n=10, cells=3, alpha=alpha, records="unlimited")
    for epsilon in (0.0, 1e-6, 0.1 / math.sqrt(alpha), 1.0, 2.5, 19.2, 36.5, 53.7, 300.0):
        truth = posterior_divergence(alpha, epsilon)
        if truth > mpf("1e-280"):
            assert_above(profile.delta(epsilon), truth, close=mpf("1e-9"))
    assert profile.delta(1e5) <= profile.delta(599.0)
    assert profile.delta(-1e5) == 1.0


def gamma_divergences(alpha, epsilon):
    """E[(G/a - E)_+] and E[(1 - E G/a)_+]: the second by a series of positive terms, both from one incomplete gamma."""
    a, ratio = mpf(alpha), mpmath.exp(mpf(epsilon))

    def density(x):
        return mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))

    x, term, removed, k = a / ratio, mpf(1), mpf(0), 0
    while k < 10 or term * (a + k) > mpf("1e-45") * removed * (a + k - x):
        removed += term * (k + 1) / (a + k + 1)
        k += 1
        term *= x / (a + k)
    with mp.workdps(120):
        upper = mpmath.gammainc(a, a * ratio, mpmath.inf) / mpmath.gamma(a)
        added = density(a * ratio) - (ratio - 1) * upper
    return added, density(x) * removed


def test_unlimited_records_with_n_secret():
    rng = random.Random(6)
    for _ in range(60):
        alpha = 10 ** rng.uniform(-2, 3)
        epsilon = rng.uniform(0, 36) / math.sqrt(alpha) * rng.choice([1.0, 1.0, 1e-3])
        if epsilon > 60:
            continue
        truth = max(gamma_divergences(alpha, epsilon))
        profile = AddRemoveDirichletMultinomialProfile(cells=3, alpha=alpha, records="unlimited")
        if truth > mpf("1e-290"):
            assert_above(profile.delta(epsilon), truth, close=mpf("5e-12"))


def test_smoothed_draws_near_pure_privacy():
    rng = random.Random(7)
    for n, bins, m, weight in itertools.product((1, 5, 10**6), (3, 10**6), (1, 2, 6), (1e-6, 0.5, 0.999)):
        profile = SmoothedHistogramProfile(n=n, bins=bins, records=m, weight=weight)
        a, c = mpf(weight) / bins, (1 - mpf(weight)) / n
        law = {0: mpf(1)}
        for _ in range(m):
            spread = [(w + step, p * q) for w, p in law.items() for step, q in ((1, a + c), (0, 1 - 2 * a - c), (-1, a))]
            law = {w: mpmath.fsum(p for v, p in spread if v == w) for w, _ in spread}
        for epsilon in below_pure(profile.pure_epsilon, rng):
            gain = (p * -mpmath.expm1(mpf(epsilon) - w * mpmath.log1p(c / a)) for w, p in law.items())
            truth = mpmath.fsum(g for g in gain if g > 0)
            assert_above(profile.delta(epsilon), truth, close=mpf("2e-11") if epsilon < 0.9 * profile.pure_epsilon else None)


def test_several_responses_near_pure_privacy():
    rng = random.Random(8)
    for _ in range(30):
        epsilons = [rng.uniform(0.1, 2.0) for _ in range(3)]
        columns = tuple(RandomisedResponseProfile(categories=2, epsilon0=e) for e in epsilons)
        profile = RandomisedResponsesProfile(columns=columns)
        for epsilon in below_pure(math.nextafter(math.fsum(epsilons), 0.0), rng):
            truth = mpf(0)
            for signs in itertools.product((1, -1), repeat=3):
                chance = mpmath.fprod(1 / (1 + mpmath.exp(-s * mpf(e))) for s, e in zip(signs, epsilons, strict=True))
                loss = mpmath.fsum(s * mpf(e) for s, e in zip(signs, epsilons, strict=True))
                truth += max(mpf(0), chance * -mpmath.expm1(mpf(epsilon) - loss))
            assert_above(profile.delta(epsilon), truth, close=None)


SIZES = (1e-300, 1e-12, 1.0, 1e9, 1e300)
PRIORS = (1e-300, 1e-12, 1.0, 1e9, 1e100)
FEW = (1, 2, 3)
NOISES = ("laplace", "discrete-laplace", "discrete-gaussian")
SCALED = (LaplaceProfile, GaussianProfile, DiscreteLaplaceProfile, DiscreteGaussianProfile)
EXTREME = [
    *(DirichletMultinomialProfile(n=n, cells=c, alpha=a, records=m) for n in FEW for c in FEW for a in PRIORS for m in (1, 9)),
    *(AddRemoveDirichletMultinomialProfile(cells=c, alpha=a, records=m) for c in FEW for a in PRIORS for m in (1, 9)),
    *(DirichletMultinomialProfile(n=10**12, cells=3, alpha=a, records="unlimited") for a in PRIORS),
    *(AddRemoveDirichletMultinomialProfile(cells=3, alpha=a, records="unlimited") for a in PRIORS),
    *(PitmanYorProfile(n=n, records=9, strength=1.0, discount=d) for n in (1, 2, 3, 10**12) for d in (1e-9, 0.5, 0.999999)),
    *(DirichletProcessProfile(n=n, records=9, strength=1e-9) for n in (1, 2, 10**12)),
    *(SmoothedHistogramProfile(n=n, bins=b, records=9, weight=w) for n in (1, 10**12) for b in (1, 3) for w in (1e-12, 0.5, 1)),
    *(NoisyCountsProfile(cells=3, noise=k, scale=a) for k in NOISES for a in SIZES),
    *(kind(scale=a) for kind in SCALED for a in SIZES),
    *(ExponentialMechanismProfile(epsilon0=a, bounded_range=b) for a in SIZES for b in (False, True)),
    *(RandomisedResponseProfile(categories=3, epsilon0=a) for a in SIZES),
    *(ZeroConcentratedProfile(rho=a) for a in SIZES),
    *(RenyiProfile(orders=((2.0, a),)) for a in SIZES),
    *(PointProfile(epsilon0=a, delta0=d) for a in SIZES for d in (0.0, 1e-300, 1.0)),
    *(GroupProfile(single=PointProfile(epsilon0=a, delta0=0.0), contributions=7) for a in SIZES),
]


@pytest.mark.parametrize("kind", sorted({type(profile).__name__ for profile in EXTREME}))
def test_every_profile_answers_at_the_ends_of_the_floats(kind):
    """A number from 0 to 1 that does not grow, and 0 from the pure epsilon on and nowhere below it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for profile in (each for each in EXTREME if type(each).__name__ == kind):
            deltas = []
            for epsilon in (-1e5, -700.0, -1.0, 0.0, 1e-300, 1e-12, 1.0, 36.0, 40.0, 599.0, 700.0, 1e5):
                deltas.append(profile.delta(epsilon))
                assert 0.0 <= deltas[-1] <= 1.0
                assert (deltas[-1] == 0.0) == (epsilon >= max(0.0, profile.pure_epsilon))
            assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(deltas)) or isinstance(profile, GroupProfile)


@pytest.mark.parametrize("steps", [2**53 + 1, 2**54 - 1])
def test_an_odd_number_of_steps_that_is_no_float(steps):
    """A record at the upper bound is no more than `steps` steps from one at the lower bound."""
    channel = LaplaceChannel(bounds=(0.0, 1.0), scale=0.25, steps=steps)
    ends = channel.lattice(np.array([0.0, 1.0, math.inf, math.nan, -math.inf]))
    assert ends.tolist() in ([0, top, top, 0, 0] for top in (steps - 1, steps))
    assert channel.profile.sensitivity == steps


@pytest.mark.parametrize("epsilon_n", [1e-20, 1e-200, 5e-324])
def test_a_tiny_share_for_n_is_refused_in_words(epsilon_n):
    """There is no lattice for so much noise; a share whose square is lost in the sum must not be divided by."""
    for noise, delta in (("discrete-gaussian", 1e-6), ("laplace", 0.0)):
        budget = Budget(epsilon=1.0, delta=delta, epsilon_n=epsilon_n, noise=noise, neighbouring="add-remove")
        with pytest.raises(ModelError, match="too large"):
            BernoulliStatistic.calibrated(budget=budget, column="x")


def test_a_small_share_for_n_gets_the_noise_it_pays_for():
    made = BernoulliStatistic.calibrated(
        budget=Budget(epsilon=1, delta=1e-6, epsilon_n=1e-9, noise="discrete-gaussian", neighbouring="add-remove"), column="x"
    )
    assert made.size_noise.scale == pytest.approx(1e9 * made.noise.scale, rel=1e-6)
    assert made.profile.delta(1.0 + 1e-9) <= 1e-6


@pytest.mark.parametrize("alpha", [1e-12, 1.476e-6, 0.01, 3.0])
def test_unlimited_records_of_a_secret_number_with_tiny_priors(alpha):
    """E[(G/a - E)_+] and E[(1 - E G/a)_+] for a gamma variable G, with enough digits that no difference matters."""
    for epsilon in (0.05, 0.6, 9.9, 30.0, 500.0):
        with mpmath.workdps(320):
            a, ratio = mpmath.mpf(alpha), mpmath.exp(mpmath.mpf(epsilon))
            removed = mpmath.gammainc(a, 0, a / ratio, regularized=True) - ratio * mpmath.gammainc(
                a + 1, 0, a / ratio, regularized=True
            )
            added = mpmath.mpf(0)
            if a * ratio < 30:
                added = mpmath.gammainc(a + 1, a * ratio, regularized=True) - ratio * mpmath.gammainc(
                    a, a * ratio, regularized=True
                )
            truth = max(removed, added)
            claimed = AddRemoveDirichletMultinomialProfile(cells=3, alpha=alpha, records="unlimited").delta(epsilon)
            assert claimed >= truth
            assert claimed <= truth * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -280


def test_a_finite_number_of_records_inherits_the_limit():
    """One record more than none, alpha 1e-11 in each of ten cells: a release in its cell tells nearly all."""
    profile = AddRemoveDirichletMultinomialProfile(cells=10, alpha=1.07e-11, records=426_807)
    assert profile.delta(33.6) >= 0.8118


def test_pure_epsilons_of_urns_are_never_below_the_truth():
    for alpha, records in [(1216, 658), *((a, m) for a in (1, 3, 7.7, 1e5) for m in range(1, 400, 7))]:
        pure = DirichletMultinomialProfile(n=10, cells=3, alpha=alpha, records=records).pure_epsilon
        with mpmath.workdps(40):
            assert mpmath.mpf(pure) >= mpmath.log1p(mpmath.mpf(records) / mpmath.mpf(alpha))


def test_names_for_many_records_of_one_person_after_a_pure_urn():
    discovery = LabelDiscoveryProfile(scale=20.0, threshold=100)
    profile = DiscoveredUrnProfile(discovery=discovery, urn=Guarantee(epsilon=1.0, delta=0.0), contributions=1000)
    epsilon, delta = discovery.group_point(1000)
    assert profile.delta(epsilon + 1001.0) == pytest.approx(delta)
    assert profile.delta(0.05) >= delta
