"""Noise profiles against enumeration in 50-digit or rational arithmetic, and against dp-accounting's own formulas."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from privurn.errors import ModelError
from privurn.privacy.conversions import RenyiProfile, ZeroConcentratedProfile
from privurn.privacy.laws import histogram as histogram_accounting
from privurn.privacy.laws import noise as noise_accounting
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.laws.noise import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    ExponentialMechanismProfile,
    GaussianProfile,
    LaplaceProfile,
    RandomisedResponseProfile,
    zcdp_bound,
)
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile

mp.dps = 50
CLOSE = 5e-12


def hockey_stick(first, second, epsilon):
    """sum of (P - E Q)_+ over outcomes, both orders, in mpmath."""
    ratio = mpmath.exp(mpf(epsilon))
    outcomes = set(first) | set(second)
    one = sum(max(mpf(0), first.get(o, 0) - ratio * second.get(o, 0)) for o in outcomes)
    other = sum(max(mpf(0), second.get(o, 0) - ratio * first.get(o, 0)) for o in outcomes)
    return max(one, other)


def assert_tight(profile, epsilon, truth, *, close=CLOSE):
    """Never below the truth, and above it by a rounding error only."""
    value = mpf(profile.delta(epsilon))
    assert value >= truth * (1 - mpf("1e-14")) - mpf("1e-45")  # fifty digits leave that much of an exact zero
    assert value <= truth * (1 + mpf(close)) + mpf("2e-300")


EPSILONS = (-3.0, -1.0, -0.1, 0.0, 1e-6, 0.1, 0.3, 0.5, 0.9, 1.0, 1.7, 2.5, 4.0)


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.0, 1.0), (0.3, 1.0), (2.0, 3.0), (50.0, 1.0)])
def test_laplace_against_integration(scale, sensitivity):
    profile = LaplaceProfile(scale=scale, sensitivity=sensitivity)
    shift = mpf(sensitivity) / mpf(scale)

    def survival(x):  # P(X > x) of the standard law
        return mpmath.exp(-x) / 2 if x >= 0 else 1 - mpmath.exp(x) / 2

    for epsilon in (*EPSILONS, sensitivity / scale):
        e = mpf(epsilon)
        # log ratio of N(shift) to N(0) at x is clip(2x - shift, -shift, shift): the best event is a half-line
        if e >= shift:
            truth = mpf(0)
        elif e < -shift:
            truth = 1 - mpmath.exp(e)
        else:
            cut = (e + shift) / 2
            truth = survival(cut - shift) - mpmath.exp(e) * survival(cut)
        value = mpf(profile.delta(epsilon))
        assert truth * (1 - mpf("1e-14")) <= value <= truth * (1 + CLOSE) + mpf("1e-15")
    assert profile.delta(profile.pure_epsilon) == 0.0


def test_laplace_and_gaussian_against_dp_accounting():
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss, LaplacePrivacyLoss

    for scale in (0.5, 1.0, 7.0):
        for epsilon in (-2.0, -0.3, 0.0, 0.1, 0.7, 1.5):
            ours = LaplaceProfile(scale=scale).delta(epsilon)
            assert ours == pytest.approx(LaplacePrivacyLoss(scale).get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-14)
            ours = GaussianProfile(scale=scale).delta(epsilon)
            assert ours == pytest.approx(GaussianPrivacyLoss(scale).get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5])
def test_discrete_laplace_by_enumeration(scale, sensitivity):
    r = mpmath.exp(-1 / mpf(scale))
    weight = (1 - r) / (1 + r)
    reach = math.ceil(125 * scale)  # less than 1e-50 lies outside
    law = {k: weight * r ** abs(k) for k in range(-reach, reach + 1)}
    moved = {k + sensitivity: p for k, p in law.items()}
    profile = DiscreteLaplaceProfile(scale=scale, sensitivity=sensitivity)
    for epsilon in EPSILONS:
        if abs(epsilon) >= profile.pure_epsilon:
            assert profile.delta(epsilon) == pytest.approx(max(0.0, -math.expm1(epsilon)), rel=1e-12)
        else:
            assert_tight(profile, epsilon, hockey_stick(law, moved, epsilon))


def test_discrete_laplace_with_many_steps():
    """A scale and sensitivity of a million: close to the continuous law, from terms that do not cancel."""
    profile = DiscreteLaplaceProfile(scale=1e6, sensitivity=10**6)
    for epsilon in (0.0, 0.25, 0.9, 0.999):
        assert profile.delta(epsilon) == pytest.approx(-math.expm1((epsilon - 1.0) / 2.0), rel=2e-3)
    step, r = mpf(1) / 10**6, mpmath.exp(mpf(-1) / 10**6)
    last = math.ceil((10**6 - 0.999999 * 10**6) / 2) - 1
    truth = (1 - r ** (last + 1) + r - mpmath.exp(mpf(0.999999)) * mpmath.exp(-step * (10**6 - last))) / (1 + r)
    assert profile.delta(0.999999) == pytest.approx(float(truth), rel=1e-8)


def exact_gaussian(mu, epsilon):
    mu, e = mpf(mu), mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


@pytest.mark.parametrize("mu", [1e-5, 1e-3, 0.05, 0.4, 0.51, 1.0, 3.0, 12.0, 70.0])
def test_gaussian_in_fifty_digits(mu):
    profile = GaussianProfile(scale=1.0, sensitivity=mu)
    with mp.workdps(90):
        for x in (0.0, 0.01, 0.5, 1.0, 2.0, 5.0, 12.0, 30.0):
            for sign in (1.0, -1.0):
                epsilon = sign * x * mu
                if epsilon < 700.0:
                    assert_tight(profile, epsilon, exact_gaussian(mu, epsilon))


def test_gaussian_too_small_for_a_float_is_not_zero():
    assert 0.0 < GaussianProfile(scale=10.0).delta(5.0) < 1e-290
    assert GaussianProfile(scale=1.0).epsilon(0.0) == math.inf


def discrete_gaussian_delta(scale, shift, epsilon, reach):
    variance = 2 * mpf(scale) ** 2
    weights = {k: mpmath.exp(-(mpf(k) ** 2) / variance) for k in range(-reach, reach + shift + 1)}
    total = mpmath.jtheta(3, 0, mpmath.exp(-1 / variance))
    ratio = mpmath.exp(mpf(epsilon))
    gain = (weights[k] - ratio * weights[k + shift] for k in range(-reach, reach + 1))
    return sum(g for g in gain if g > 0) / total


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (1.0, 1), (1.0, 3), (2.9, 2), (3.1, 1), (20.0, 1), (20.0, 30)])
def test_discrete_gaussian_by_enumeration(scale, shift):
    profile = DiscreteGaussianProfile(scale=scale, sensitivity=shift)
    for epsilon in (0.0, 1e-4, 0.05, 0.125, 0.5, 1.0, 2.0, 4.5):
        truth = discrete_gaussian_delta(scale, shift, epsilon, math.ceil(25 * scale) + shift + 5)
        assert_tight(profile, epsilon, truth)
        assert_tight(profile, -epsilon, 1 - mpmath.exp(-mpf(epsilon)) * (1 - truth))


def test_discrete_gaussian_of_large_scale_is_bounded_closely(monkeypatch):
    exact = DiscreteGaussianProfile(scale=300.0, sensitivity=40)
    values = {epsilon: exact.delta(epsilon) for epsilon in (0.0, 0.05, 0.3, 0.6)}
    assert exact.tight
    monkeypatch.setattr(noise_accounting, "LARGEST_EXACT_SCALE", 10.0)
    assert not exact.tight
    for epsilon, value in values.items():
        assert value <= exact.delta(epsilon) <= value * 1.02


@pytest.mark.parametrize("categories", [2, 3, 5])
@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
def test_randomised_response_by_enumeration(categories, epsilon0):
    profile = RandomisedResponseProfile(categories=categories, epsilon0=epsilon0)
    total = mpmath.exp(mpf(epsilon0)) + categories - 1
    laws = [
        {o: (mpmath.exp(mpf(epsilon0)) if o == x else mpf(1)) / total for o in range(categories)} for x in range(categories)
    ]
    for epsilon in EPSILONS:
        truth = max(hockey_stick(a, b, epsilon) for a, b in itertools.permutations(laws, 2))
        assert_tight(profile, epsilon, truth)


def choice_law(scores, epsilon0):
    weights = [mpmath.exp(mpf(epsilon0) * u / 2) for u in scores]
    return {o: w / sum(weights) for o, w in enumerate(weights)}


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 4.0])
def test_exponential_mechanism_bounds_every_score(epsilon0):
    """No score breaks the bounded-range profile, and two outcomes with the right scores reach it."""
    profile = ExponentialMechanismProfile(epsilon0=epsilon0)
    general = ExponentialMechanismProfile(epsilon0=epsilon0, bounded_range=False)
    rng = np.random.default_rng(5)
    worst = dict.fromkeys((-0.2, 0.0, 0.1, 0.25), mpf(0))
    for _ in range(60):
        scores = rng.normal(size=rng.integers(2, 5)) * 4.0
        change = rng.choice([-1.0, 0.0, 1.0], size=scores.size)
        for epsilon in worst:
            value = hockey_stick(choice_law(scores, epsilon0), choice_law(scores + change, epsilon0), epsilon)
            worst[epsilon] = max(worst[epsilon], value)
    for epsilon, value in worst.items():
        assert value <= profile.delta(epsilon) <= general.delta(epsilon)
    for epsilon in (-0.2, 0.0, 0.1, 0.25):
        top = (mpf(epsilon0) + mpf(epsilon)) / 2
        p = (mpmath.exp(mpf(epsilon0)) - mpmath.exp(top)) / mpmath.expm1(mpf(epsilon0))
        # odds p : 1 - p become p e^-top : (1 - p) e^(e0 - top), a change of scores by (-1, 1)
        before = {0: p, 1: 1 - p}
        odds = mpmath.log(p / (1 - p)) / mpf(epsilon0)
        after = choice_law([odds - 1, 1 - odds], epsilon0)
        assert abs(choice_law([odds, -odds], epsilon0)[0] - p) < mpf("1e-40")
        assert_tight(profile, epsilon, hockey_stick(before, after, epsilon))


def test_randomised_response_is_not_of_bounded_range():
    """The planted twin: a pure mechanism breaks the bounded-range profile, and attains the general one."""
    response = RandomisedResponseProfile(categories=2, epsilon0=1.0)
    assert response.delta(0.2) > 1.5 * ExponentialMechanismProfile(epsilon0=1.0).delta(0.2)
    assert response.delta(0.2) == pytest.approx(ExponentialMechanismProfile(epsilon0=1.0, bounded_range=False).delta(0.2))


def tables(n, bins):
    if bins == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in tables(n - first, bins - 1):
            yield (first, *rest)


def smoothed_delta(n, bins, records, weight, epsilon):
    """Largest divergence over all tables and all moves of one record, all sequences of draws."""
    ratio = Fraction(math.exp(epsilon))  # the profile is compared at this exact E
    best = max(Fraction(0), 1 - ratio)  # a table is its own neighbour
    for table in tables(n, bins):
        p = [(1 - weight) * Fraction(c, n) + weight / bins for c in table]
        for j, k in itertools.permutations(range(bins), 2):
            if table[j] == 0:
                continue
            q = list(p)
            q[j] -= (1 - weight) / n
            q[k] += (1 - weight) / n
            total = Fraction(0)
            for draws in itertools.product(range(bins), repeat=records):
                total += max(Fraction(0), math.prod(p[d] for d in draws) - ratio * math.prod(q[d] for d in draws))
            best = max(best, total)
    return best


@pytest.mark.parametrize("bins", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "records"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 3)])
@pytest.mark.parametrize("weight", [Fraction(1, 4), Fraction(9, 10)])
def test_smoothed_histogram_by_enumeration(n, bins, records, weight):
    profile = SmoothedHistogramProfile(n=n, bins=bins, records=records, weight=float(weight))
    assert profile.tight
    for epsilon in (-0.4, 0.0, 0.2, 0.8, 2.0):
        truth = float(smoothed_delta(n, bins, records, weight, epsilon))
        value = profile.delta(epsilon)
        assert truth - 1e-15 <= value <= truth * (1 + CLOSE) + 1e-12
        if epsilon >= profile.pure_epsilon:
            assert value == 0.0


def test_two_bins_may_be_worst_inside():
    """With heavy smoothing and three draws the even split is worse than either end, so the ends alone would not do."""
    divergence = histogram_accounting._binomial_divergence
    ends = max(divergence(3, 0.45 + 0.001 * i, 0.45 + 0.001 * (99 - i), 0.001, 0.0) for i in (0, 99))
    profile = SmoothedHistogramProfile(n=100, bins=2, records=3, weight=0.9)
    assert profile.delta(0.0) > 1.009 * ends


@pytest.mark.parametrize(("m", "a", "c"), [(300, 0.02, 0.004), (2000, 0.3, 0.001), (40, 0.45, 0.09)])
def test_difference_law_in_fifty_digits(m, a, c):
    law = histogram_accounting._difference_law(m, a, c)
    p, q, r = mpf(a) + mpf(c), mpf(a), 1 - 2 * mpf(a) - mpf(c)
    for w in {0, 1, 2, m // 20, m // 10, m // 4}:
        exact = sum(
            mpmath.binomial(m, w + j) * mpmath.binomial(m - w - j, j) * p ** (w + j) * q**j * r ** (m - w - 2 * j)
            for j in range((m - w) // 2 + 1)
        )
        assert abs(mpf(float(law[w])) / exact - 1) < 1e-11


def test_difference_law_cut_far_out_agrees_with_the_whole(monkeypatch):
    """m = 40,000 is cut at a few thousand; starting from m itself gives the same numbers."""
    cut = histogram_accounting._difference_law(40_000, 0.01, 1e-4)
    assert cut.size < 3000
    monkeypatch.setattr(histogram_accounting.math, "ceil", lambda x: 10**9)
    histogram_accounting._difference_law.cache_clear()
    whole = histogram_accounting._difference_law(40_000, 0.01, 1e-4)
    histogram_accounting._difference_law.cache_clear()
    assert whole.size == 40_001
    np.testing.assert_allclose(cut[:600], whole[:600], rtol=1e-12)


@pytest.mark.parametrize(("n", "records", "weight"), [(300, 40, 0.2), (500, 300, 0.5), (400, 3, 0.9)])
def test_two_bins_bound_is_close_to_the_maximum(n, records, weight):
    profile = SmoothedHistogramProfile(n=n, bins=2, records=records, weight=weight)
    c = (1.0 - weight) / n
    for epsilon in (0.0, 0.05, 0.3):
        splits = (
            histogram_accounting._binomial_divergence(records, weight / 2 + c * i, weight / 2 + c * (n - 1 - i), c, epsilon)
            for i in range(n)
        )
        truth = max(splits)
        assert not profile.tight
        if epsilon < profile.pure_epsilon:
            assert truth <= profile.delta(epsilon) <= 1.02 * truth


def renyi_divergence(first, second, order):
    return mpmath.log(sum(p**order * second[o] ** (1 - order) for o, p in first.items())) / (order - 1)


def test_zcdp_parameters_bound_the_renyi_divergences():
    law = {k: mpmath.exp(-(mpf(k) ** 2) / 8) for k in range(-60, 61)}
    total = sum(law.values())
    law = {k: p / total for k, p in law.items()}
    moved = {k: mpmath.exp(-(mpf(k - 1) ** 2) / 8) / total for k in law}
    response = {0: mpf(3) / 4, 1: mpf(1) / 4}
    swapped = {0: mpf(1) / 4, 1: mpf(3) / 4}
    rho = zcdp_bound(RandomisedResponseProfile(categories=2, epsilon0=math.log(3.0)))
    for order in (mpf("1.01"), mpf(2), mpf(7), mpf(40)):
        assert renyi_divergence(law, moved, order) <= order * mpf(zcdp_bound(DiscreteGaussianProfile(scale=2.0)))
        assert renyi_divergence(response, swapped, order) <= order * mpf(rho)
        for t in (0.2, 0.5, 0.8):  # two outcomes with ratios t and t - 1: bounded range 1
            p = (mpmath.e - mpmath.exp(mpf(t))) / (mpmath.e - 1)
            q = {0: p * mpmath.exp(-mpf(t)), 1: (1 - p) * mpmath.exp(1 - mpf(t))}
            limit = order * mpf(zcdp_bound(ExponentialMechanismProfile(epsilon0=1.0)))
            assert renyi_divergence({0: p, 1: 1 - p}, q, order) <= limit
    # twin: a quarter less would be wrong for each of them
    assert renyi_divergence(law, moved, mpf(2)) > 2 * 0.75 * zcdp_bound(DiscreteGaussianProfile(scale=2.0))
    assert zcdp_bound(GaussianProfile(scale=2.0, sensitivity=3.0)) == pytest.approx(9 / 8)
    assert zcdp_bound(LaplaceProfile(scale=2.0)) == pytest.approx(1 / 8)
    assert zcdp_bound(DirichletProcessProfile(n=10, records=1, strength=1.0)) == math.inf
    pure = DirichletMultinomialProfile(n=10, cells=3, alpha=4.0, records=2)
    assert zcdp_bound(pure) == pytest.approx(math.log(1.5) ** 2 / 2)


def test_zero_concentrated_takes_the_best_order():
    for rho in (0.001, 0.1, 1.0, 20.0):
        profile = ZeroConcentratedProfile(rho=rho)
        for epsilon in (0.0, 0.1, 1.0, 5.0, 60.0):
            orders = 1.0 + np.logspace(-6, 6, 4001)
            logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
            best = min(1.0, math.exp(min(0.0, logs.min())), math.sqrt(rho / 2))
            assert best * (1 - 1e-3) <= profile.delta(epsilon) <= best * (1 + 1e-9) + 1e-300
            gaussian = GaussianProfile(scale=1 / math.sqrt(2 * rho))
            assert profile.delta(epsilon) >= gaussian.delta(epsilon) * (1 - 1e-12)
    assert ZeroConcentratedProfile(rho=0.1).epsilon(1e-6) < 0.1 + 2 * math.sqrt(0.1 * math.log(1e6))


def test_renyi_conversion_agrees_with_dp_accounting():
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    orders = (1.5, 2.0, 4.0, 8.0, 32.0, 64.0)
    profile = RenyiProfile(orders=tuple((a, 0.02 * a) for a in orders))
    for delta in (1e-3, 1e-6, 1e-9):
        theirs, _ = compute_epsilon(orders, [0.02 * a for a in orders], delta)
        assert profile.epsilon(delta) == pytest.approx(theirs, rel=1e-9)
    assert profile.divergence(3.0) == 0.08
    assert profile.divergence(65.0) == math.inf


PROFILES = [
    LaplaceProfile(scale=2.0),
    DiscreteLaplaceProfile(scale=3.0, sensitivity=5),
    GaussianProfile(scale=1.5),
    DiscreteGaussianProfile(scale=2.0, sensitivity=3),
    RandomisedResponseProfile(categories=4, epsilon0=2.0),
    ExponentialMechanismProfile(epsilon0=1.5),
    ExponentialMechanismProfile(epsilon0=1.5, bounded_range=False),
    SmoothedHistogramProfile(n=20, bins=5, records=6, weight=0.3),
    SmoothedHistogramProfile(n=20, bins=2, records=6, weight=0.3),
    ZeroConcentratedProfile(rho=0.3),
    RenyiProfile(orders=((1.5, 0.2), (2.0, 0.3), (8.0, 1.5), (40.0, 9.0))),
]


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
@settings(deadline=None, max_examples=40)
@given(epsilon=st.floats(-4.0, 6.0), step=st.floats(1e-3, 2.0))
def test_every_profile_is_one(profile, epsilon, step):
    """Non-increasing, at least 1 - E, obeys the mirror identity; epsilon(delta) ends on the private side."""
    here, further = profile.delta(epsilon), profile.delta(epsilon + step)
    assert 0.0 <= further <= here * (1 + 3e-12) <= 1.0 + 3e-12
    assert here >= -math.expm1(epsilon)
    mirror = 1.0 - math.exp(-epsilon) * (1.0 - profile.delta(epsilon))
    assert profile.delta(-epsilon) == pytest.approx(mirror, rel=1e-9, abs=1e-9)
    if 0.0 < further < 1.0:
        assert profile.delta(profile.epsilon(further)) <= further
    if profile.tight:  # a true profile is convex in E; a best-of-bounds need not be
        left, right = math.exp(epsilon), math.exp(epsilon + step)
        middle = profile.delta(math.log(0.5 * (left + right)))
        assert middle <= 0.5 * (here + further) * (1 + 1e-11) + 1e-300


@pytest.mark.parametrize(
    "build",
    [
        lambda: LaplaceProfile(scale=0.0),
        lambda: GaussianProfile(scale=1.0, sensitivity=-1.0),
        lambda: DiscreteLaplaceProfile(scale=1.0, sensitivity=0),
        lambda: DiscreteGaussianProfile(scale=math.inf),
        lambda: RandomisedResponseProfile(categories=1, epsilon0=1.0),
        lambda: ExponentialMechanismProfile(epsilon0=0.0),
        lambda: SmoothedHistogramProfile(n=5, bins=3, records=1, weight=0.0),
        lambda: SmoothedHistogramProfile(n=5, bins=3, records=1, weight=0.5, neighbouring="add-remove"),
        lambda: ZeroConcentratedProfile(rho=0.0),
        lambda: RenyiProfile(orders=()),
        lambda: RenyiProfile(orders=((1.0, 0.1),)),
    ],
)
def test_impossible_parameters_are_refused(build):
    with pytest.raises(ModelError):
        build()


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_bound_for_fine_lattices_holds_its_largest_term(ratio, epsilon):
    """What is added to the integral is no less than the largest term of the sum, also where the noise is small."""
    scale = 20_001.0
    shift = round(ratio * scale)
    k = np.arange(-12 * scale, 14 * scale)
    loss = shift * (shift + 2.0 * k) / (2.0 * scale * scale)
    with np.errstate(over="ignore"):
        terms = (
            np.exp(-0.5 * (k / scale) ** 2) * np.maximum(0.0, -np.expm1(epsilon - loss)) / (scale * math.sqrt(2.0 * math.pi))
        )
    bound = DiscreteGaussianProfile(scale=scale, sensitivity=shift).delta(epsilon)
    added = bound - GaussianProfile(scale=scale, sensitivity=float(shift)).delta(epsilon)
    assert bound >= math.fsum(terms)
    assert added >= terms.max() * (1.0 - 1e-9) - 1e-14
    assert added <= 2.0 * terms.max() + 1e-14
