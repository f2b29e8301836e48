"""Composition against exact joint laws: never below the truth, and close above it."""

import itertools
import math
import time
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import privurn
from privurn.errors import ModelError, PrivacyError
from privurn.privacy.calibration import smallest_alpha
from privurn.privacy.composition import ComposedProfile, basic_composition, compose, privacy_loss_distribution
from privurn.privacy.conversions import RenyiProfile, ZeroConcentratedProfile
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.laws.loss_law import largest_loss, loss_law
from privurn.privacy.laws.noise import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    ExponentialMechanismProfile,
    GaussianProfile,
    LaplaceProfile,
    RandomisedResponseProfile,
)
from privurn.privacy.laws.posterior_sample import draws_profile
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import GroupProfile, Guarantee, PointProfile

URN = DirichletMultinomialProfile(n=2, cells=3, alpha=1.0, records=2)
RESPONSE = RandomisedResponseProfile(categories=3, epsilon0=1.0)
COUNT = DiscreteLaplaceProfile(scale=2.0, sensitivity=2)

PROFILES = [
    URN,
    RESPONSE,
    COUNT,
    DirichletMultinomialProfile(n=1000, cells=20, alpha=15.0, records=500),
    DirichletMultinomialProfile(n=50, cells=2, alpha=3.0, records=10),
    DirichletMultinomialProfile(n=50, cells=4, alpha=30.0, records="unlimited"),
    DirichletProcessProfile(n=1000, records=5, strength=1.0),
    PitmanYorProfile(n=300, records=8, strength=1.0, discount=0.4),
    AddRemoveDirichletMultinomialProfile(cells=4, alpha=10.0, records=20),
    LaplaceProfile(scale=3.0),
    GaussianProfile(scale=4.0),
    DiscreteGaussianProfile(scale=5.0, sensitivity=2),
    ExponentialMechanismProfile(epsilon0=0.4),
    ExponentialMechanismProfile(epsilon0=0.4, bounded_range=False),
    SmoothedHistogramProfile(n=50, bins=4, records=10, weight=0.4),
    SmoothedHistogramProfile(n=50, bins=2, records=10, weight=0.4),
    ZeroConcentratedProfile(rho=0.02),
    RenyiProfile(orders=((1.5, 0.02), (4.0, 0.06), (16.0, 0.4), (64.0, 2.0))),
    PointProfile(epsilon0=0.5, delta0=1e-3),
    GroupProfile(single=GaussianProfile(scale=20.0), contributions=3),
]

ADDED = (ZeroConcentratedProfile, RenyiProfile)


def urn_law(counts, records, alpha):
    """Law of the sequences released from the urn, in fractions."""
    law = {}
    for draws in itertools.product(range(len(counts)), repeat=records):
        masses = [alpha + c for c in counts]
        probability = Fraction(1)
        for d in draws:
            probability *= masses[d] / sum(masses)
            masses[d] += 1
        law[draws] = probability
    return law


def response_law(answer, epsilon0, categories):
    total = mpmath.exp(mpf(epsilon0)) + categories - 1
    return {o: (mpmath.exp(mpf(epsilon0)) if o == answer else mpf(1)) / total for o in range(categories)}


def count_law(shift, scale, reach=250):
    r = mpmath.exp(-1 / mpf(scale))
    return {k: (1 - r) / (1 + r) * r ** abs(k - shift) for k in range(-reach, reach + 1)}


def loss_pairs(first, second):
    """Outcomes grouped by likelihood ratio: a sufficient statistic that keeps products small."""
    grouped = {}
    for o, p in first.items():
        q = second[o]
        key = (
            mpmath.nstr(mpf(p.numerator) / p.denominator / q * q.denominator, 30)
            if isinstance(p, Fraction)
            else mpmath.nstr(p / q, 30)
        )
        old = grouped.get(key, (mpf(0), mpf(0)))
        as_mpf = [mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else v for v in (p, q)]
        grouped[key] = (old[0] + as_mpf[0], old[1] + as_mpf[1])
    return list(grouped.values())


def joint_delta(parts, epsilon):
    """Hockey stick of a product of pairs, by enumeration of all combinations of likelihood ratios."""
    ratio = mpmath.exp(mpf(epsilon))
    total = mpf(0)
    for combination in itertools.product(*parts):
        gain = mpmath.fprod(p for p, _ in combination) - ratio * mpmath.fprod(q for _, q in combination)
        if gain > 0:
            total += gain
    return total


def largest_joint_delta(table_pairs, epsilon):
    return max(joint_delta(parts, epsilon) for parts in table_pairs)


def urn_pairs(n=2, cells=3, records=2):
    """All neighbouring tables of the tiny urn, both orders."""
    tables = [t for t in itertools.product(range(n + 1), repeat=cells) if sum(t) == n]
    pairs = []
    for x, y in itertools.permutations(tables, 2):
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2:
            pairs.append(loss_pairs(urn_law(x, records, Fraction(1)), urn_law(y, records, Fraction(1))))
    return pairs


EPSILONS = (-0.5, 0.0, 0.2, 0.7, 1.3, 2.0, 2.3)


@pytest.mark.parametrize("k", [2, 3])
def test_tiny_urn_composed_by_enumeration(k):
    """m = 2, n = 2, three cells, all neighbours, all pairs of releases, in rational arithmetic."""
    pairs = urn_pairs()
    composed = compose([URN], counts=[k])
    for epsilon in EPSILONS:
        truth = float(largest_joint_delta([[pair] * k for pair in pairs], epsilon))
        assert truth <= composed.delta(epsilon) <= truth + 2e-5
    assert composed.pure_epsilon == pytest.approx(k * math.log(3.0))
    assert composed.delta(composed.pure_epsilon) == 0.0


def test_mixed_plan_by_enumeration():
    """Urn, randomised response and a noisy count in one plan: each neighbour may change all three."""
    responses = [loss_pairs(response_law(a, 1.0, 3), response_law(b, 1.0, 3)) for a, b in itertools.permutations(range(3), 2)]
    counts = [loss_pairs(count_law(0, 2.0), count_law(shift, 2.0)) for shift in (-2, 2)]
    plan = compose([URN, RESPONSE, COUNT])
    for epsilon in EPSILONS:
        truth = float(max(joint_delta([u, responses[0], counts[0]], epsilon) for u in urn_pairs()))
        assert truth <= plan.delta(epsilon) <= truth + 1e-4


@pytest.mark.parametrize("k", [2, 5, 7])
def test_randomised_response_composed_by_enumeration(k):
    """dp-accounting 0.6.0 forgets the count of this event; laws of the loss do not."""
    pair = loss_pairs(response_law(0, 1.0, 3), response_law(1, 1.0, 3))
    composed = compose([RESPONSE], counts=[k])
    for epsilon in (-1.0, 0.0, 0.5, 1.5, k - 0.5):
        truth = float(joint_delta([pair] * k, epsilon))
        # epsilon0 lies on the lattice, so nothing is lost but rounding
        assert truth * (1 - 1e-13) <= composed.delta(epsilon) <= truth * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("k", [1, 2, 7, 1000])
def test_gaussian_composed_in_closed_form(k):
    scale = 2.0 * math.sqrt(k)
    composed = compose([GaussianProfile(scale=scale)], counts=[k])
    alone = GaussianProfile(scale=scale / math.sqrt(k))
    for epsilon in (-0.3, 0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0):
        truth = alone.delta(epsilon) / (1 + 1e-11)
        assert truth <= composed.delta(epsilon) <= truth * 1.002 + 1e-9
    for delta in (1e-3, 1e-6, 1e-8):
        assert alone.epsilon(delta) * (1 - 1e-9) <= composed.epsilon(delta) <= alone.epsilon(delta) * 1.001
    for delta in (1e-12, 1e-15):  # below what transforms resolve: the Chernoff bound
        assert alone.epsilon(delta) * (1 - 1e-9) <= composed.epsilon(delta) <= alone.epsilon(delta) * 1.06


def test_transforms_alone_would_fall_below_the_truth():
    """The twin: the convolution without its error bound is below the truth at many epsilons, and ours at none."""
    ours = compose([GaussianProfile(scale=60.0)], counts=[5000])
    truth = GaussianProfile(scale=60.0 / math.sqrt(5000.0))
    epsilons = np.linspace(0.0, 14.0, 141)
    exact = np.array([truth.delta(e) for e in epsilons]) / (1 + 1e-11)
    bare, error = ours._convolved
    shortfall = exact - np.array([bare.get_delta_for_epsilon(float(e)) for e in epsilons])
    assert np.count_nonzero(shortfall > 0) > 10
    assert shortfall.max() < error
    assert np.all(np.array([ours.delta(e) for e in epsilons]) >= exact)


@pytest.mark.parametrize("k", [1, 3, 1000, 10**6])
def test_dirichlet_process_composed_in_closed_form(k):
    urn = DirichletProcessProfile(n=10**6, records=3, strength=1.0)
    composed = compose([urn], counts=[k])
    expected = -math.expm1(k * math.log1p(-urn.floor))
    for epsilon in (0.0, 0.4, 3.0):
        assert expected <= composed.delta(epsilon) <= expected * (1 + 1e-11)
    assert composed.delta(-0.5) == pytest.approx(1 - math.exp(-0.5) * (1 - expected))
    assert composed.epsilon(0.9 * expected) == math.inf
    assert composed.epsilon(1.001 * expected) == 0.0


def test_floor_and_noise_together():
    urn = DirichletProcessProfile(n=1000, records=5, strength=1.0)
    noise = GaussianProfile(scale=2.0)
    plan = compose([urn, noise], counts=[4, 1])
    lost = 1.0 - (1.0 - urn.floor) ** 4
    for epsilon in (0.0, 0.5, 2.0):
        truth = lost + (1.0 - lost) * noise.delta(epsilon)
        assert truth * (1 - 1e-12) <= plan.delta(epsilon) <= truth + 2e-5
    assert plan.floor == pytest.approx(lost, rel=1e-12)
    assert plan.delta(200.0) == pytest.approx(lost, rel=1e-9)


def test_a_hopeless_plan_says_so():
    plan = compose([DirichletProcessProfile(n=10, records=10, strength=1.0), GaussianProfile(scale=3.0)], counts=[5000, 2])
    assert plan.floor == 1.0
    assert plan.delta(5.0) == 1.0
    assert plan.epsilon(0.5) == math.inf


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
@pytest.mark.parametrize("k", [2, 5])
def test_k_fold_equals_k_compositions(profile, k):
    """Every profile: compose(p, k) against k - 1 pairwise compositions of dp-accounting's objects."""
    composed = compose([profile], counts=[k])
    spelled_out = compose([profile] * k)
    nested = compose([compose([profile], counts=[k - 1]), profile])
    distribution = privacy_loss_distribution(profile, points=2000)
    pairwise = distribution
    for _ in range(k - 1):
        pairwise = pairwise.compose(distribution)
    for epsilon in (0.0, 0.1, 0.6, 1.5):
        value = composed.delta(epsilon)
        assert spelled_out.delta(epsilon) == pytest.approx(value, rel=1e-9)
        assert nested.delta(epsilon) == pytest.approx(value, rel=1e-9)
        if not isinstance(profile, ADDED):
            assert value == pytest.approx(pairwise.get_delta_for_epsilon(epsilon), rel=2e-3, abs=2e-5)
    if isinstance(profile, ADDED):  # parameters add instead, which is better where delta is small
        assert 0.5 * pairwise.get_epsilon_for_delta(1e-6) < composed.epsilon(1e-6) < pairwise.get_epsilon_for_delta(1e-6)
    assert composed.neighbouring == profile.neighbouring


MEMBERS = {
    PROFILES[-4]: GaussianProfile(scale=5.0),
    PROFILES[-3]: GaussianProfile(scale=6.2),
    PROFILES[-1]: GaussianProfile(scale=20 / 3),
}
"""A mechanism that each best-of-bounds, which is not convex and so no profile itself, speaks about."""


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
def test_lattice_law_dominates_its_profile(profile):
    """Between, on and beyond the lattice points; on both signs; at a coarse and a fine lattice."""
    largest = largest_loss(profile) or 1.0
    truth = MEMBERS.get(profile, profile)
    for points in (7, 400):
        law = loss_law(profile, interval=largest / points, points=points)
        losses = law.interval * law.steps
        for epsilon in np.linspace(-1.3 * largest, 1.3 * largest, 63):
            gain = np.maximum(0.0, -np.expm1(epsilon - losses))
            assert law.infinity + law.probabilities @ gain >= truth.delta(epsilon) * (1 - 3e-12)
        assert law.infinity + law.probabilities.sum() >= 1.0 - 1e-15
        if truth is profile:
            assert law.infinity + law.probabilities.sum() == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.sampled_from([p for p in PROFILES if p.neighbouring == "replace-one"]), min_size=2, max_size=3),
    st.floats(0.0, 3.0),
)
def test_plans_cost_at_least_their_parts_and_at_most_the_sum(parts, epsilon):
    plan = compose(parts)
    value = plan.delta(epsilon)
    assert all(value >= part.delta(epsilon) * (1 - 1e-9) for part in parts if part.delta(epsilon) < 1.0 and _is_tight(part))
    assert value == pytest.approx(compose(parts[::-1]).delta(epsilon), rel=1e-6, abs=1e-12)
    shares = sum(part.delta(epsilon / len(parts)) for part in parts)  # basic composition
    assert value <= shares * 1.01 + 1e-4


def _is_tight(profile):
    return getattr(profile, "tight", not isinstance(profile, GroupProfile))


def test_thousand_releases_are_quick():
    urn = DirichletMultinomialProfile(n=1_000_000, cells=100, alpha=2000.0, records=100_000)
    urn.delta(0.1)  # compiled
    for profile in (urn, LaplaceProfile(scale=40.0), SmoothedHistogramProfile(n=10_000, bins=10, records=10, weight=0.3)):
        start = time.process_time()  # not the clock: other programs must not matter
        plan = compose([profile], counts=[1000])
        epsilon = plan.epsilon(1e-6)
        assert time.process_time() - start < 5.0
        assert 0.0 < epsilon < 1000 * profile.epsilon(1e-9)


def test_a_composition_is_never_free_below_its_pure_epsilon():
    """Losses that the lattice leaves out are added to delta, also where every part is pure."""
    sample = draws_profile(DirichletMultinomialProfile(n=60, cells=3, alpha=1000.0, records=10**6), draws=2)
    assert sample.pure_epsilon == pytest.approx(13.8, abs=0.1)
    alpha = smallest_alpha(n=1000, cells=10, records=1000, epsilon=1.0, delta=1e-6)
    urn = DirichletMultinomialProfile(n=1000, cells=10, alpha=alpha, records=1000)
    parts = [LaplaceProfile(scale=0.01), COUNT, RESPONSE, GroupProfile(single=RESPONSE, contributions=2)]
    for plan in (sample, *(compose([part], counts=[k]) for part in (urn, *parts) for k in (2, 3, 40))):
        shares = [0.0, 0.07, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0 - 1e-15]
        assert all(plan.delta(share * plan.pure_epsilon) > 0.0 for share in shares)
        assert plan.delta(plan.pure_epsilon) == 0.0
        assert plan.floor == 0.0
    # both releases at their largest loss: a lower bound of the truth
    for epsilon in (1.0, 3.0, 5.0):
        assert compose([urn], counts=[2]).delta(epsilon) >= urn.delta(0.5 * epsilon) ** 2


def test_two_pure_halves_make_a_pure_whole():
    """Pure epsilons add exactly: 0.5 and 0.5 are 1, and three tenths are the next float above the true sum."""
    assert compose([LaplaceProfile(scale=2.0)], counts=[2]).delta(1.0) == 0.0
    tenth = RandomisedResponseProfile(categories=2, epsilon0=0.1)
    assert compose([tenth], counts=[3]).pure_epsilon == math.fsum([0.1] * 3) == 0.30000000000000004
    for k in (3, 7, 49):
        assert GroupProfile(single=tenth, contributions=k).pure_epsilon >= float(k * Fraction(0.1))
        share = Guarantee(epsilon=1.0, delta=0.0, contributions=k).per_record().epsilon
        assert k * Fraction(share) <= 1
        response = RandomisedResponseProfile(categories=2, epsilon0=share)
        assert GroupProfile(single=response, contributions=k).delta(1.0) == 0.0
        assert GroupProfile(single=response, contributions=k).delta(1.0 - 1e-15) > 0.0


@pytest.mark.parametrize(
    "profile",
    [
        GroupProfile(single=PointProfile(epsilon0=1.0, delta0=0.5), contributions=5),
        GroupProfile(single=DirichletProcessProfile(n=10, records=100, strength=1.0), contributions=3),
        GroupProfile(single=LaplaceProfile(scale=1e-3), contributions=4),
        LaplaceProfile(scale=1 / 700),
        DiscreteLaplaceProfile(scale=1 / 700),
        RandomisedResponseProfile(categories=2, epsilon0=5000.0),
        PointProfile(epsilon0=5000.0, delta0=0.0),
        GaussianProfile(scale=1e-3),
    ],
    ids=repr,
)
def test_hopeless_parts_are_composed_without_an_error(profile):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plan in (compose([profile], counts=[2]), compose([profile, RESPONSE])):
            assert plan.delta(1.0) == 1.0
            assert plan.delta(0.0) == 1.0


def test_a_posterior_sample_is_not_certified_as_pure():
    frame = pl.DataFrame({"c": ["a"] * 20 + ["b"] * 20 + ["c"] * 20})
    asked = {
        "domain": privurn.Categories(["a", "b", "c"], outside="other"),
        "mechanism": privurn.PosteriorDraws(alpha=1000, draws=2),
    }
    with pytest.raises(PrivacyError):
        privurn.release(frame, epsilon=1, delta=0, **asked)
    assert privurn.release(frame, epsilon=1, delta=1e-6, **asked).certificate["achieved"]["delta"] > 0.0


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError, match="neighbouring"):
        compose([URN, AddRemoveDirichletMultinomialProfile(cells=4, alpha=10.0, records=20)])
    together = compose(
        [
            LaplaceProfile(scale=5.0, neighbouring="add-remove"),
            AddRemoveDirichletMultinomialProfile(cells=4, alpha=10.0, records=20),
        ]
    )
    assert together.neighbouring == "add-remove"


@pytest.mark.parametrize("counts", [[0], [1, 2], [-1]])
def test_counts_must_fit(counts):
    with pytest.raises(ModelError):
        compose([URN], counts=counts)
    with pytest.raises(ModelError):
        compose([])


def test_concentrated_parameters_add():
    plan = compose([ZeroConcentratedProfile(rho=0.1), ZeroConcentratedProfile(rho=0.2)], counts=[2, 1])
    assert plan.profiles == (ZeroConcentratedProfile(rho=0.4),)
    assert plan.zcdp == pytest.approx(0.4)
    assert plan.epsilon(1e-6) == ZeroConcentratedProfile(rho=0.4).epsilon(1e-6)
    renyi = compose([RenyiProfile(orders=((2.0, 0.1), (8.0, 0.3))), RenyiProfile(orders=((4.0, 0.2),))], counts=[1, 2])
    assert renyi.profiles[0].divergence(2.0) == pytest.approx(0.5)
    assert renyi.profiles[0].divergence(4.0) == pytest.approx(0.7)
    assert renyi.profiles[0].divergence(8.0) == math.inf
    mixed = compose([GaussianProfile(scale=2.0), RESPONSE], counts=[3, 2])
    assert mixed.zcdp == pytest.approx(3 / 8 + 2 / 2)
    assert compose([mixed, RESPONSE]) == compose([GaussianProfile(scale=2.0), RESPONSE], counts=[3, 3])
    assert isinstance(mixed, ComposedProfile)


def test_basic_composition_adds_up():
    total = basic_composition([Guarantee(epsilon=0.1, delta=1e-7)] * 10)
    assert Fraction(total.epsilon) >= 10 * Fraction(0.1)
    assert total.epsilon == pytest.approx(1.0)
    assert total.delta == pytest.approx(1e-6)
    with pytest.raises(PrivacyError):
        basic_composition([Guarantee(epsilon=1, delta=0), Guarantee(epsilon=1, delta=0, neighbouring="add-remove")])
    with pytest.raises(PrivacyError):
        basic_composition([Guarantee(epsilon=1, delta=0), Guarantee(epsilon=1, delta=0, contributions=2)])
    with pytest.raises(ModelError):
        basic_composition([Guarantee(epsilon=1, delta=0.5)] * 2)
    with pytest.raises(ModelError):
        basic_composition([])
