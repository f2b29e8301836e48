"""Add/remove adjacency by enumeration: docs/proofs/add-remove.md is checked here, statement by statement.

Tables of up to six records, and every number of records through the one-dimensional formula.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privurn._kernels.add_remove import gamma_lower, gamma_upper, largest_by_threshold, tail_value, walk_down, walk_up
from privurn.errors import CalibrationError, ModelError
from privurn.privacy import add_remove
from privurn.privacy.add_remove import (
    AddRemoveDirichletMultinomialProfile,
    alpha_star_add_remove,
    delta_unlimited_add_remove,
    largest_records_add_remove,
    smallest_alpha_add_remove,
)

ALPHAS = [Fraction(1, 3), Fraction(1), Fraction(5, 2)]
RATIOS = [Fraction(1), Fraction(21, 20), Fraction(3, 2), Fraction(12, 5)]
"""e^epsilon"""


def profile_of(cells, alpha, records, **other):
    return AddRemoveDirichletMultinomialProfile(cells=cells, alpha=float(alpha), records=records, **other)


# ---- the laws in rational arithmetic -----------------------------------------------------------------------------------


@cache
def rising(a, k):
    return math.prod((a + i for i in range(k)), start=Fraction(1))


@cache
def tables(size, cells):
    """All vectors of counts of `size` records in `cells` cells."""
    if cells == 1:
        return [(size,)]
    return [(first, *rest) for first in range(size + 1) for rest in tables(size - first, cells - 1)]


def release_law(masses, m):
    """Probability of every vector of released counts: Dirichlet-multinomial."""
    total = rising(sum(masses), m)
    law = []
    for counts in tables(m, len(masses)):
        ways = math.factorial(m)
        for count in counts:
            ways //= math.factorial(count)
        law.append(ways * math.prod(rising(mass, count) for mass, count in zip(masses, counts, strict=True)) / total)
    return law


def hockey_stick(first, second, E):
    return sum(max(Fraction(0), p - E * q) for p, q in zip(first, second, strict=True))


@cache
def beta_binomial(m, a, b):
    return [math.comb(m, s) * rising(a, s) * rising(b, m - s) / rising(a + b, m) for s in range(m + 1)]


def likelihood_ratios(m, a, total):
    return [(1 + s / a) * total / (total + m) for s in range(m + 1)]


def added(m, a, total, E):
    law = beta_binomial(m, a, total - a)
    return sum(p * max(Fraction(0), ratio - E) for p, ratio in zip(law, likelihood_ratios(m, a, total), strict=True))


def removed(m, a, total, E):
    law = beta_binomial(m, a, total - a)
    return sum(p * max(Fraction(0), 1 - E * ratio) for p, ratio in zip(law, likelihood_ratios(m, a, total), strict=True))


def turning_total(m, a, s, e):
    """From this total on the gain at threshold s falls; None where it never does."""
    margin = a + s - e * a
    return e * a * (m + 1) / margin if margin > 0 else None


def supremum(m, a, smallest_total, E):
    """Scan every total up to the last turning point of any threshold: beyond it everything falls."""
    turns = [turning_total(m, a, s, e) for s in range(1, m + 1) for e in (E, 1 / E)]
    last = max((turn for turn in turns if turn is not None), default=smallest_total)
    steps = max(0, math.ceil(last - smallest_total)) + 2
    assert steps < 1000
    return max(max(added(m, a, smallest_total + k, E), removed(m, a, smallest_total + k, E)) for k in range(steps))


# ---- enumeration -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_all_neighbours_of_all_small_tables(cells, alpha):
    for m, size in product(range(1, 5), range(6)):
        claims = [profile_of(cells, alpha, m).delta(math.log(E)) for E in RATIOS]
        for common in tables(size, cells):
            masses = [alpha + count for count in common]
            without = release_law(masses, m)
            for cell in range(cells):
                with_it = release_law([mass + (i == cell) for i, mass in enumerate(masses)], m)
                for E, claim in zip(RATIOS, claims, strict=True):
                    forward, backward = hockey_stick(with_it, without, E), hockey_stick(without, with_it, E)
                    if cells > 1:  # the release matters through one count only
                        assert forward == added(m, masses[cell], sum(masses), E)
                        assert backward == removed(m, masses[cell], sum(masses), E)
                    assert max(forward, backward) <= claim


@pytest.mark.parametrize("m", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("cells", [2, 3, 4])
def test_profile_is_the_supremum_over_all_sizes(cells, alpha, m):
    for E in RATIOS:
        exact = supremum(m, alpha, cells * alpha, E)
        claim = profile_of(cells, alpha, m).delta(math.log(E))
        assert claim == pytest.approx(float(exact), rel=2e-12, abs=1e-12)
        assert Fraction(claim) >= exact * (1 - Fraction(1, 10**15))  # log and exp of E are rounded too


def test_prior_that_differs_between_cells():
    priors = ALPHAS
    for m, E in product(range(1, 5), RATIOS):
        claim = profile_of(3, min(priors), m, prior_total=float(sum(priors))).delta(math.log(E))
        worst = Fraction(0)
        for size in range(6):
            for common in tables(size, 3):
                masses = [prior + count for prior, count in zip(priors, common, strict=True)]
                for mass in masses:
                    worst = max(worst, added(m, mass, sum(masses), E), removed(m, mass, sum(masses), E))
        assert worst <= claim
        assert claim == pytest.approx(float(supremum(m, min(priors), sum(priors), E)), rel=2e-12, abs=1e-12)


def test_the_largest_divergence_need_not_be_at_the_smallest_table():
    """Twin of the supremum: a profile that took n = 0 only would be too small, and so would twice the alpha."""
    values = [removed(5, Fraction(2), Fraction(4) + k, Fraction(11, 10)) for k in range(4)]
    assert values == [Fraction(3, 28), Fraction(7, 60), Fraction(7, 60), Fraction(6, 55)]
    claim = profile_of(2, 2, 5).delta(math.log(1.1))
    assert claim == pytest.approx(7 / 60, rel=1e-11)
    assert profile_of(2, 4, 5).delta(math.log(1.1)) < values[0]


def test_negative_epsilon_is_the_same_pair_read_backwards():
    for m, E in product((1, 3), (Fraction(21, 20), Fraction(3, 2))):
        claim = profile_of(3, Fraction(1), m).delta(-math.log(E))
        values = [
            max(added(m, Fraction(1), Fraction(3) + k, 1 / E), removed(m, Fraction(1), Fraction(3) + k, 1 / E))
            for k in range(200)
        ]
        assert claim == pytest.approx(float(max(values)), rel=1e-11)


# ---- the statements of the proof ---------------------------------------------------------------------------------------

small_mass = st.fractions(min_value=Fraction(1, 10), max_value=6, max_denominator=10)
small_m = st.integers(1, 9)
ratio = st.fractions(min_value=1, max_value=3, max_denominator=20)


@given(small_m, small_mass, small_mass, small_mass, ratio)
@settings(max_examples=80, deadline=None)
def test_falls_when_the_cell_holds_more_of_the_same_total(m, a, more, rest, E):
    total = a + more + rest
    assert added(m, a + more, total, E) <= added(m, a, total, E)
    assert removed(m, a + more, total, E) <= removed(m, a, total, E)


@given(small_m, small_mass, small_mass, st.fractions(min_value=1, max_value=4, max_denominator=7), ratio)
@settings(max_examples=80, deadline=None)
def test_falls_when_all_masses_grow_together(m, a, rest, factor, E):
    assert added(m, factor * a, factor * (a + rest), E) <= added(m, a, a + rest, E)
    assert removed(m, factor * a, factor * (a + rest), E) <= removed(m, a, a + rest, E)


@given(small_m, small_mass, small_mass, ratio)
@settings(max_examples=80, deadline=None)
def test_grows_with_the_number_of_released_records(m, a, rest, E):
    assert added(m, a, a + rest, E) <= added(m + 1, a, a + rest, E)
    assert removed(m, a, a + rest, E) <= removed(m + 1, a, a + rest, E)


@given(small_m, small_mass, small_mass, st.fractions(min_value=Fraction(1, 3), max_value=3, max_denominator=20))
@settings(max_examples=80, deadline=None)
def test_one_step_of_the_total_has_a_closed_form(m, a, b, e):
    def gain(s, total):
        law = beta_binomial(m, a, total - a)
        return sum(law[j] * (likelihood_ratios(m, a, total)[j] - e) for j in range(s, m + 1))

    total = a + b
    for s in range(1, m + 1):
        step = (
            Fraction(s * (b + m - s) * beta_binomial(m, a, b)[s], 1)
            / (b * (total + m))
            * (e - (a + s) * total / (a * (total + m + 1)))
        )
        assert gain(s, total + 1) - gain(s, total) == step
        turn = turning_total(m, a, s, e)
        assert (step >= 0) == (turn is None or total <= turn)


@given(st.integers(1, 400), st.floats(0.1, 30), st.floats(1.01, 300), st.floats(0.0, 2.0), st.booleans())
@settings(max_examples=150, deadline=None)
def test_closed_bounds_lie_above(m, a, rest, epsilon, adding):
    e, g = (f(epsilon if adding else -epsilon) for f in (math.exp, math.expm1))
    total = a + rest
    value = tail_value(a, total, float(m), e, g)[0]
    at_limit, by_size = add_remove._limit_bound(a, total, e, g), add_remove._negative_binomial_bound(a, total, float(m), e, g)
    limit = delta_unlimited_add_remove(a, epsilon=epsilon)[0 if adding else 1] / (1.0 if adding else math.exp(epsilon))
    assert value <= min(at_limit, by_size)
    assert max(at_limit, by_size) <= limit * (1 + 1e-9) + 2e-11 * (1 + a)
    assert at_limit <= add_remove._limit_bound(a, total + 1.0, e, g) * (1 + 1e-9) + 1e-11
    assert add_remove._negative_binomial_bound(a, total + 1.0, float(m), e, g) <= by_size * (1 + 1e-9) + 1e-11


def test_pure_epsilon_is_where_delta_ends():
    for cells, alpha, m in [(2, 1 / 3, 1), (3, 2.5, 4), (10, 7.0, 300)]:
        profile = profile_of(cells, alpha, m)
        assert profile.pure_epsilon == pytest.approx(math.log1p(m / alpha), rel=1e-14)
        assert profile.delta(profile.pure_epsilon) == 0.0
        assert profile.delta(profile.pure_epsilon - 1e-6) > 0.0
        assert profile.epsilon(0.0) == profile.pure_epsilon
    # no table attains it: the largest ratio (1 + m/alpha) T/(T + m) only tends to 1 + m/alpha
    ratios = [max(likelihood_ratios(4, Fraction(1), Fraction(2) + k)) for k in range(50)]
    assert ratios == sorted(ratios)
    assert ratios[-1] < 5


# ---- the two algorithms, the walk and 50 digits ------------------------------------------------------------------------


@given(st.integers(129, 400), st.floats(0.2, 20), st.integers(2, 400), st.floats(0.0, 2.0), st.booleans())
@example(355, 3.938, 90, 1.191, True)  # the maximum lies beyond the total of the prior, where the walk starts
@example(352, 19.027, 11, 0.731, True)
@settings(max_examples=60, deadline=None)
def test_walk_agrees_with_one_total_for_each_threshold(m, a, cells, epsilon, adding):
    signed = epsilon if adding else -epsilon
    slow = largest_by_threshold(a, cells * a, float(m), math.exp(signed), math.expm1(signed))
    if slow > 1e-250:
        assert add_remove._largest_over_totals(a, cells * a, m, signed) == pytest.approx(slow, rel=1e-11)


@pytest.mark.parametrize("e", [0.4, 0.97, 1.0, 1.3, 4.0])
def test_walks_arrive_where_a_fresh_sum_does(e):
    a, m = 2.5, 5000.0
    value, p, s = tail_value(a, 300.0, m, e, e - 1.0)
    for walk, end in [(walk_up, 800.0), (walk_down, 40.0)]:
        best, at, weight, last = walk(a, 300.0, m, e, e - 1.0, s, p, 1.0, int(abs(end - 300.0)))
        there, p_there, s_there = tail_value(a, end, m, e, e - 1.0)
        assert at == s_there
        assert last * value == pytest.approx(there, rel=1e-9)
        assert weight / last == pytest.approx(p_there, rel=1e-9)
        assert best >= max(1.0, last)


def reference_start(a, total, m, e):
    """V, P(S = s) and s from log-gamma functions and a direct sum, 50 digits."""
    b = total - a
    s = int(mpmath.floor(a * (e - 1) + a * e * m / total)) + 1
    log = mpmath.loggamma
    p = mpmath.exp(
        log(m + 1) - log(s + 1) - log(m - s + 1) + log(a + s) - log(a) + log(b + m - s) - log(b) + log(total) - log(total + m)
    )
    value, weight, slope, j = mpmath.mpf(0), p, total / (total + m) / a, s
    if e >= 1:
        while j <= m and (j == s or weight * m * slope * (a + m) > value * mpmath.mpf(10) ** -25):
            value += weight * (slope * (a + j) - e)
            weight *= (m - j) * (a + j) / ((j + 1) * (b + m - j - 1))
            j += 1
    else:
        while j > 0 and (j == s or weight * m > value * mpmath.mpf(10) ** -25):
            weight *= j * (b + m - j) / ((m - j + 1) * (a + j - 1))
            j -= 1
            value += weight * (e - slope * (a + j))
    return value, p, s


def reference_supremum(a, smallest_total, m, e, low, high):
    """Largest V on the totals between low and high: direct at the top, then one exact step after the other."""
    total = smallest_total + mpmath.ceil(max(0, high - smallest_total))
    value, p, s = reference_start(a, total, m, e)
    best = value
    while total - 1 >= max(low, smallest_total):
        total -= 1
        b = total - a
        p *= b * (total + m) / ((b + m - s) * total)
        value += s * (b + m - s) / (b * (total + m)) * p * ((a + s) * total / (a * (total + m + 1)) - e)
        while (a + s) * total <= e * a * (total + m):
            value -= p * ((a + s) * total / (a * (total + m)) - e)
            p *= (m - s) * (a + s) / ((s + 1) * (b + m - s - 1))
            s += 1
        best = max(best, value)
    assert abs(reference_start(a, total, m, e)[0] / value - 1) < mpmath.mpf(10) ** -20
    return best


@pytest.mark.parametrize(
    ("m", "a", "cells", "epsilon", "sign"),
    [
        (10**5, 16.5, 100, 1.0, 1),
        (10**5, 2.0, 3, 0.1, -1),
        (10**6, 16.5, 100, 1.0, -1),
        (10**6, 24.0, 3, 1.0, -1),
        (10**6, 0.3, 2, 2.0, -1),
        (10**7, 24.0, 100, 1.0, -1),
    ],
)
def test_fifty_digits_at_large_sizes(m, a, cells, epsilon, sign):
    with mpmath.workdps(50):
        e = mpmath.exp(mpmath.mpf(sign) * epsilon)
        likely = float(e * a + mpmath.sqrt(e * a * (e * a + m)))
        first, last = likely / 2.5, max(2.5 * likely, cells * a + 50)
        exact = reference_supremum(mpmath.mpf(a), mpmath.mpf(cells * a), m, e, first, last)
        value = add_remove._largest_over_totals(a, cells * a, m, sign * epsilon)
        assert abs(value / exact - 1) < 5e-13
        if sign < 0:  # the direction that decides for these
            claim = profile_of(cells, a, m).delta(epsilon)
            assert 0 <= claim / (exact / e) - 1 < 1e-10


@pytest.mark.parametrize(
    ("alpha", "epsilon"),
    [(0.3, 1.0), (0.05, 1.5), (1.0, 1.0), (2.5, 0.5), (24.14, 1.0), (1362.0, 0.1), (3.56, 4.0), (1e6, 0.01), (20.0, 0.0)],
)
def test_unlimited_records_against_fifty_digits(alpha, epsilon):
    with mpmath.workdps(50):
        a, E = mpmath.mpf(alpha), mpmath.exp(mpmath.mpf(epsilon))
        upper = mpmath.gammainc(a + 1, a * E, regularized=True) - E * mpmath.gammainc(a, a * E, regularized=True)
        lower = mpmath.gammainc(a, 0, a / E, regularized=True) - E * mpmath.gammainc(a + 1, 0, a / E, regularized=True)
        values = delta_unlimited_add_remove(alpha, epsilon=epsilon)
        assert abs(values[0] / upper - 1) < 1e-12
        assert abs(values[1] / lower - 1) < 1e-12
        claim = profile_of(7, alpha, "unlimited").delta(epsilon)
        assert claim >= max(upper, lower)
        assert claim < max(upper, lower) * (1 + mpmath.mpf(10) ** -11)


def test_finite_sizes_rise_to_the_limit():
    limit = profile_of(3, 5.0, "unlimited").delta(0.5)
    values = [profile_of(3, 5.0, 10**k).delta(0.5) for k in range(1, 14)]
    assert values == sorted(values)
    assert values[-1] <= limit
    assert values[-1] == pytest.approx(limit, rel=1e-5)
    # the bounds that stand for the maximum at huge sizes are close and on the private side
    assert add_remove._bound_over_totals(5.0, 15.0, 1e6, 1.5, 0.5) >= add_remove._largest_over_totals(
        5.0, 15.0, 10**6, math.log(1.5)
    )


def test_gamma_kernels_meet_at_epsilon_zero():
    for alpha in (1.0, 7.3, 500.0):
        assert gamma_upper(alpha, 0.0) == pytest.approx(gamma_lower(alpha, 0.0), rel=1e-13)


# ---- profile and calibrations ------------------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.floats(0.2, 40), st.integers(2, 50), st.floats(0.01, 2.0), st.floats(1.0, 1.5))
@settings(max_examples=60, deadline=None)
def test_profile_is_monotone(m, alpha, cells, epsilon, factor):
    profile = profile_of(cells, alpha, m)
    here = profile.delta(epsilon)
    assert 0.0 <= here <= 1.0
    assert profile.delta(epsilon * factor) <= here * (1 + 1e-15)  # epsilons one float apart may round to deltas one float apart
    assert replace(profile, alpha=alpha * factor).delta(epsilon) <= here * (1 + 1e-10)
    assert replace(profile, records=m + 1 + m // 3).delta(epsilon) >= here * (1 - 1e-10)
    if here > 1e-280:
        assert profile.delta(profile.epsilon(here)) <= here


@pytest.mark.parametrize(("cells", "alpha"), [(2, 3.0), (10, 5.0), (100, 20.0), (5, 23.0)])
def test_largest_records_is_the_last_that_fits(cells, alpha):
    m = largest_records_add_remove(cells=cells, alpha=alpha, epsilon=1.0, delta=1e-6)
    assert profile_of(cells, alpha, m).delta(1.0) <= 1e-6 < profile_of(cells, alpha, m + 1).delta(1.0)


def test_largest_records_at_the_ends():
    assert largest_records_add_remove(cells=1, alpha=1.0, epsilon=0.1, delta=0.0) == "unlimited"
    assert largest_records_add_remove(cells=3, alpha=24.2, epsilon=1.0, delta=1e-6) == "unlimited"
    assert largest_records_add_remove(cells=3, alpha=0.1, epsilon=0.1, delta=1e-9) == 0
    pure = largest_records_add_remove(cells=3, alpha=20.0, epsilon=1.0, delta=0.0)
    assert pure == 34


@pytest.mark.parametrize(("cells", "records"), [(2, 3), (100, 100), (10, 20_000), (2, "unlimited")])
def test_smallest_alpha_is_the_first_that_fits(cells, records):
    alpha = smallest_alpha_add_remove(cells=cells, records=records, epsilon=1.0, delta=1e-6)
    assert profile_of(cells, alpha, records).delta(1.0) <= 1e-6
    assert profile_of(cells, alpha * (1 - 1e-9), records).delta(1.0) > 1e-6


def test_smallest_alpha_at_the_ends():
    assert smallest_alpha_add_remove(cells=1, records=5, epsilon=1.0, delta=0.0) == 0.0
    assert smallest_alpha_add_remove(cells=4, records=5, epsilon=1.0, delta=0.0) == pytest.approx(5 / math.expm1(1.0))
    with pytest.raises(CalibrationError):
        smallest_alpha_add_remove(cells=2, records="unlimited", epsilon=1.0, delta=0.0)
    star = alpha_star_add_remove(epsilon=1.0, delta=1e-6)
    for cells, records in combinations([2, 3, 10, 1000, 10**6], 2):
        assert smallest_alpha_add_remove(cells=cells, records=records, epsilon=1.0, delta=1e-6) <= star


@pytest.mark.parametrize(
    "wrong",
    [
        {"cells": 0},
        {"alpha": 0.0},
        {"alpha": math.inf},
        {"records": 0},
        {"prior_total": 1.0},
    ],
)
def test_impossible_parameters(wrong):
    with pytest.raises(ModelError):
        AddRemoveDirichletMultinomialProfile(**{"cells": 3, "alpha": 1.0, "records": 5, **wrong})


def test_relation_is_named():
    assert profile_of(2, 1, 1).neighbouring == "add-remove"
    assert profile_of(1, 1, 50).delta(0.3) == 0.0
