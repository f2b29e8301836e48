"""Trade-off curves against Neyman-Pearson tests worked out exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from privurn.errors import ModelError
from privurn.privacy.composition import compose
from privurn.privacy.laws.noise import DiscreteGaussianProfile, GaussianProfile, LaplaceProfile, RandomisedResponseProfile
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import Guarantee
from privurn.privacy.trade_off import power_bound, trade_off

RATES = np.concatenate(([0.0, 1e-9, 1e-4], np.linspace(0.01, 1.0, 34)))


def neyman_pearson(null, alternative, rate):
    """Smallest false-negative rate of a randomised test between two finite laws, in fractions."""
    left, power = Fraction(rate), Fraction(0)
    outcomes = sorted(null, key=lambda o: -alternative[o] / null[o])
    for o in outcomes:
        taken = min(left, null[o])
        power += alternative[o] * taken / null[o]
        left -= taken
        if left == 0:
            break
    return 1 - power


def response_law(answer, categories, odds):
    total = odds + categories - 1
    return {o: Fraction(odds if o == answer else 1, total) for o in range(categories)}


@pytest.mark.parametrize("categories", [2, 3, 6])
def test_randomised_response(categories):
    profile = RandomisedResponseProfile(categories=categories, epsilon0=math.log(5.0))
    truth = [float(neyman_pearson(response_law(0, categories, 5), response_law(1, categories, 5), r)) for r in RATES]
    np.testing.assert_allclose(trade_off(profile, false_positive=RATES), truth, atol=1e-10)


def test_pure_privacy_in_closed_form():
    profile = RandomisedResponseProfile(categories=2, epsilon0=1.0)
    truth = np.maximum.reduce([np.zeros_like(RATES), 1 - math.e * RATES, (1 - RATES) / math.e])
    np.testing.assert_allclose(trade_off(profile, false_positive=RATES), truth, atol=1e-11)


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 3.0, 9.0])
def test_gaussian_in_closed_form(mu):
    curve = trade_off(GaussianProfile(scale=1.0, sensitivity=mu), false_positive=RATES)
    with np.errstate(all="ignore"):
        truth = ndtr(-ndtri(RATES) - mu)
    np.testing.assert_allclose(curve, truth, atol=2e-10)
    assert np.all(curve <= truth + 1e-15)


def test_laplace_in_closed_form():
    """Dong, Roth, Su: 1 - e^s a below e^-s/2, e^-s/(4a) up to 1/2, e^-s (1 - a) above."""
    s = 0.8
    truth = np.where(math.exp(-s) / 2 > RATES, 1 - math.exp(s) * RATES, math.exp(-s) / (4 * np.maximum(RATES, 1e-12)))
    truth = np.where(RATES > 0.5, math.exp(-s) * (1 - RATES), truth)
    np.testing.assert_allclose(trade_off(LaplaceProfile(scale=1 / s), false_positive=RATES), truth, atol=1e-10)


def test_dirichlet_process_keeps_only_its_floor():
    urn = DirichletProcessProfile(n=100, records=7, strength=1.0)
    expected = np.maximum(0.0, 1.0 - urn.floor - RATES)
    np.testing.assert_allclose(trade_off(urn, false_positive=RATES), expected, atol=1e-14)


def urn_law(counts, records):
    law = {}
    for draws in itertools.product(range(len(counts)), repeat=records):
        masses, probability = [1 + c for c in counts], Fraction(1)
        for d in draws:
            probability *= Fraction(masses[d], sum(masses))
            masses[d] += 1
        law[draws] = probability
    return law


def test_tiny_urn_against_every_pair_of_neighbours():
    """The curve lies below the best test of every pair, and touches that of the worst one."""
    urn = DirichletMultinomialProfile(n=2, cells=3, alpha=1.0, records=3)
    curve = trade_off(urn, false_positive=RATES)
    tables = [t for t in itertools.product(range(3), repeat=3) if sum(t) == 2]
    best = np.ones_like(RATES)
    for x, y in itertools.permutations(tables, 2):
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2:
            laws = urn_law(x, 3), urn_law(y, 3)
            best = np.minimum(best, [float(neyman_pearson(*laws, r)) for r in RATES])
    assert np.all(curve <= best + 1e-14)
    np.testing.assert_allclose(curve, best, atol=1e-8)


PROFILES = [
    GaussianProfile(scale=1.3),
    DiscreteGaussianProfile(scale=1.5, sensitivity=2),
    PitmanYorProfile(n=40, records=5, strength=1.0, discount=0.3),
    DirichletMultinomialProfile(n=40, cells=5, alpha=4.0, records="unlimited"),
    compose([LaplaceProfile(scale=4.0), RandomisedResponseProfile(categories=3, epsilon0=0.3)]),
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
@settings(deadline=None, max_examples=25)
@given(first=st.floats(0.0, 1.0), second=st.floats(0.0, 1.0))
def test_every_curve_is_a_trade_off(profile, first, second):
    """Convex, falling, below 1 - a, symmetric; and any (epsilon, delta) of the profile gives a lower line."""
    low, middle, high = trade_off(profile, false_positive=[min(first, second), 0.5 * (first + second), max(first, second)])
    assert low >= high - 1e-12
    assert middle <= 0.5 * (low + high) + 1e-9
    assert high <= 1.0 - max(first, second) + 1e-12
    for epsilon in (0.0, 0.4, 1.1):
        assert middle >= 1.0 - profile.delta(epsilon) - math.exp(epsilon) * 0.5 * (first + second) - 1e-9
    # the curve is its own inverse, where it is positive
    if middle > 1e-3:
        (back,) = trade_off(profile, false_positive=[middle])
        assert back == pytest.approx(0.5 * (first + second), abs=1e-6)


def test_power_of_a_guarantee_and_of_a_profile():
    promise = Guarantee(epsilon=1.0, delta=1e-3)
    levels = np.array([0.0, 0.05, 0.5, 1.0])
    bound = power_bound(promise, level=levels)
    np.testing.assert_allclose(bound, np.minimum(1.0, math.e * levels + 1e-3), rtol=1e-14)
    noise = GaussianProfile(scale=1.0)
    tight = power_bound(noise, level=levels)
    np.testing.assert_allclose(tight[1:3], ndtr(ndtri(levels[1:3]) + 1.0), atol=1e-9)
    delta = noise.delta(1.0)
    loose = power_bound(Guarantee(epsilon=1.0, delta=delta), level=levels)
    assert np.all(tight <= loose + 1e-12)
    assert power_bound(noise, level=0.05).shape == ()


def test_shapes_and_refusals():
    profile = GaussianProfile(scale=1.0)
    assert trade_off(profile, false_positive=[[0.1, 0.2], [0.3, 0.4]]).shape == (2, 2)
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ModelError):
            trade_off(profile, false_positive=rate)
        with pytest.raises(ModelError):
            power_bound(Guarantee(epsilon=1.0, delta=0.0), level=rate)
