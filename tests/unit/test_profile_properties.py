"""What must hold for any parameters: monotone profiles, honest inverses, group privacy."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privurn.errors import CalibrationError, ModelError
from privurn.privacy.calibration import alpha_star, smallest_alpha
from privurn.privacy.laws.urn import UNLIMITED, DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import GroupProfile, Guarantee, PointProfile

alphas = st.floats(0.05, 200.0)
epsilons = st.floats(0.01, 5.0)
ns = st.integers(3, 10_000)
records = st.integers(1, 3_000)
UP = 1 + 1e-9
"""Two exactly equal divergences may be rounded up by different margins."""


def dm(n, cells, alpha, m):
    return DirichletMultinomialProfile(n=n, cells=cells, alpha=alpha, records=m)


@settings(deadline=None, max_examples=150)
@given(n=ns, cells=st.integers(2, 500), alpha=alphas, m=records, epsilon=epsilons)
def test_public_domain_profile_is_monotone(n, cells, alpha, m, epsilon):
    here = dm(n, cells, alpha, m).delta(epsilon)
    assert 0.0 <= here <= 1.0
    assert dm(n, cells, alpha, m).delta(epsilon * 1.1) <= here * UP
    assert dm(n, cells, alpha, m + 1).delta(epsilon) >= here / UP
    assert dm(n, cells, alpha * 1.05, m).delta(epsilon) <= here * UP
    assert dm(n, cells, alpha, UNLIMITED).delta(epsilon) >= here / UP
    if cells >= 3:  # more common records only dilute
        assert dm(n + 1, cells, alpha, m).delta(epsilon) <= here * UP


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(3, 500),
    m=st.integers(1, 200),
    discount=st.floats(0.05, 0.95),
    strength=st.floats(-0.04, 20.0),
    epsilon=epsilons,
)
def test_open_domain_profile_is_monotone(n, m, discount, strength, epsilon):
    def at(n, m, epsilon):
        return PitmanYorProfile(n=n, records=m, strength=strength, discount=discount).delta(epsilon)

    here = at(n, m, epsilon)
    assert at(n, m, epsilon * 1.1) <= here * UP
    assert at(n, m + 1, epsilon) >= here / UP
    assert at(n + 1, m, epsilon) <= here * UP
    assert here <= m / (strength + n + m - 1) * UP, "above the total-variation bound"
    assert here >= PitmanYorProfile(n=n, records=m, strength=strength, discount=discount).floor / UP


@settings(deadline=None, max_examples=60)
@given(n=ns, m=records, strength=st.floats(0.01, 100), epsilon=epsilons)
def test_dirichlet_process_is_the_limit_of_small_discounts(n, m, strength, epsilon):
    exact = DirichletProcessProfile(n=n, records=m, strength=strength)
    assert exact.delta(epsilon) == pytest.approx(m / (strength + n + m - 1))
    assume(m <= 200)
    near = PitmanYorProfile(n=n, records=m, strength=strength, discount=1e-9)
    assert near.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-6)


@settings(deadline=None, max_examples=80)
@given(n=ns, cells=st.integers(2, 50), alpha=alphas, m=records, log_delta=st.floats(-12, -0.5))
def test_epsilon_is_the_private_inverse_of_delta(n, cells, alpha, m, log_delta):
    profile, delta = dm(n, cells, alpha, m), 10**log_delta
    epsilon = profile.epsilon(delta)
    assert profile.delta(epsilon) <= delta
    if epsilon > 1e-6:
        assert profile.delta(epsilon * (1 - 1e-6)) > delta


@settings(deadline=None, max_examples=40)
@given(n=ns, cells=st.integers(2, 200), m=records, epsilon=epsilons, log_delta=st.floats(-10, -2))
def test_smallest_alpha_is_private_and_smallest(n, cells, m, epsilon, log_delta):
    delta = 10**log_delta
    alpha = smallest_alpha(n=n, cells=cells, records=m, epsilon=epsilon, delta=delta)
    if alpha < 1e-6:  # the guarantee is met with next to no prior: nothing is smallest there
        return
    assert dm(n, cells, alpha, m).delta(epsilon) <= delta
    assert dm(n, cells, alpha * (1 - 1e-6), m).delta(epsilon) > delta
    assert alpha <= alpha_star(epsilon=epsilon, delta=delta) * UP


@given(epsilon=st.floats(0.01, 20), delta=st.just(0.0) | st.floats(1e-280, 0.5), k=st.integers(2, 10))
def test_group_privacy_round_trip(epsilon, delta, k):
    """Meeting the per-record guarantee is enough for the group's."""
    wanted = Guarantee(epsilon=epsilon, delta=delta, contributions=k)
    single = wanted.per_record()
    group = GroupProfile(single=PointProfile(epsilon0=single.epsilon, delta0=single.delta), contributions=k)
    assert group.delta(epsilon) <= delta or delta == 0.0
    if delta == 0.0:
        assert group.pure_epsilon == pytest.approx(epsilon)


def test_group_privacy_covers_the_enumerated_two_record_change():
    """Two records replaced: the group bound holds against the exact divergence of the urn."""
    from fractions import Fraction

    from privurn.privacy.laws.urn import DirichletMultinomialProfile as Profile

    def law(counts, m=2):
        out = {}

        def go(drawn, now, p):
            if len(drawn) == m:
                out[drawn] = out.get(drawn, 0) + p
                return
            for cell in range(3):
                after = list(now)
                after[cell] += 1
                go((*drawn, cell), tuple(after), p * Fraction(now[cell] + 1, sum(now) + 3))

        go((), counts, Fraction(1))
        return out

    pairs = [((2, 0, 3), (0, 2, 3)), ((2, 0, 3), (0, 0, 5)), ((5, 0, 0), (3, 1, 1)), ((3, 1, 1), (5, 0, 0))]
    group = GroupProfile(single=Profile(n=5, cells=3, alpha=1.0, records=2), contributions=2)
    for epsilon in (0.2, 0.6, 1.0):
        ratio = Fraction(math.exp(epsilon))
        for x, y in pairs:
            first, second = law(x), law(y)
            divergence = sum((max(Fraction(0), p - ratio * second[key]) for key, p in first.items()), Fraction(0))
            assert divergence <= group.delta(epsilon)


def test_point_profile_is_what_randomised_response_does():
    profile = PointProfile(epsilon0=1.0, delta0=0.0)
    p = math.e / (1 + math.e)
    for epsilon in (-0.5, 0.0, 0.4, 0.99):
        truth = max(0.0, p - math.exp(epsilon) * (1 - p)) + max(0.0, (1 - p) - math.exp(epsilon) * p)
        assert profile.delta(epsilon) >= truth
        assert profile.delta(epsilon) == pytest.approx(truth, rel=1e-9)
    assert profile.delta(1.0) == 0.0


@pytest.mark.parametrize(
    "build",
    [
        lambda: Guarantee(epsilon=0.0, delta=0.1),
        lambda: Guarantee(epsilon=-1.0, delta=0.1),
        lambda: Guarantee(epsilon=math.inf, delta=0.1),
        lambda: Guarantee(epsilon=math.nan, delta=0.1),
        lambda: Guarantee(epsilon=1.0, delta=1.0),
        lambda: Guarantee(epsilon=1.0, delta=1e-300),
        lambda: Guarantee(epsilon=1.0, delta=-1e-9),
        lambda: Guarantee(epsilon=1.0, delta=0.0, contributions=0),
        lambda: dm(0, 3, 1.0, 1),
        lambda: dm(5, 0, 1.0, 1),
        lambda: dm(5, 3, 0.0, 1),
        lambda: dm(5, 3, 1.0, 0),
        lambda: DirichletProcessProfile(n=5, records=1, strength=0.0),
        lambda: PitmanYorProfile(n=5, records=1, strength=-0.5, discount=0.5),
        lambda: PitmanYorProfile(n=5, records=1, strength=1.0, discount=1.0),
    ],
)
def test_impossible_parameters_are_refused(build):
    with pytest.raises(ModelError):
        build()


def test_unlimited_records_have_no_pure_guarantee():
    with pytest.raises(CalibrationError, match="delta = 0"):
        smallest_alpha(n=10, cells=3, records=UNLIMITED, epsilon=1.0, delta=0.0)
