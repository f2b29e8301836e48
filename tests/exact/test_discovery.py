"""Laws of the number of distinct values and discovery probabilities, against rational and many-digit arithmetic."""

import math
import time
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.discovery import (
    discovery_from_release,
    discovery_given_new_values,
    discovery_probability,
    distinct_values_law,
    empirical_bayes,
    expected_new_values,
    new_values_law,
)
from papers.new_values import log_rising_ratio
from urn_laws import pitman_yor_law

from privurn._kernels.accounting.discovery import distinct_law, run_chain
from privurn.errors import ModelError, NotCertifiable

DISCOUNTS = [Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]
EXACT = 1e-12


def strengths(discount):
    return [Fraction(1, 2), Fraction(7)] + ([-discount / 2] if discount else [])


def chain(start, n, steps, strength, discount):
    """Law of the number of distinct values after `steps` more records, in fractions, from `start` values in n records."""
    law = {start: Fraction(1)}
    for i in range(n, n + steps):
        after = {}
        for k, p in law.items():
            new = (strength + discount * k) / (strength + i)
            after[k] = after.get(k, 0) + p * (1 - new)
            after[k + 1] = after.get(k + 1, 0) + p * new
        law = after
    return law


def agrees(law, expected):
    return all(law.probability(k) == pytest.approx(float(p), rel=EXACT, abs=1e-40) for k, p in expected.items())


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_laws_in_fractions(discount):
    for strength, n in product(strengths(discount), (1, 2, 7, 20)):
        arguments = {"strength": float(strength), "discount": float(discount)}
        assert agrees(distinct_values_law(n, **arguments), chain(1, 1, n - 1, strength, discount))
        for distinct, m in product({1, (n + 1) // 2, n}, (0, 1, 5, 17)):
            law = new_values_law(m, n=n, distinct=distinct, **arguments)
            expected = {k - distinct: p for k, p in chain(distinct, n, m, strength, discount).items()}
            assert agrees(law, expected)
            mean = float(sum(k * p for k, p in expected.items()))
            assert law.mean == pytest.approx(mean, rel=EXACT, abs=1e-15)
            assert expected_new_values(m, n=n, distinct=distinct, **arguments) == pytest.approx(mean, rel=EXACT, abs=1e-15)


@pytest.mark.parametrize("table", [{"a": 1}, {"a": 3, "b": 1}, {"a": 1, "b": 1, "c": 2}])
def test_the_law_depends_on_the_table_through_its_number_of_values_only(table):
    for discount, m in product(DISCOUNTS, (1, 3)):
        strength = Fraction(3, 2)
        released = pitman_yor_law(table, strength=strength, discount=discount, m=m)
        law = new_values_law(m, n=sum(table.values()), distinct=len(table), strength=float(strength), discount=float(discount))
        for k in range(m + 1):
            direct = sum(p for drawn, p in released.items() if len({v for v in drawn if isinstance(v, tuple)}) == k)
            assert law.probability(k) == pytest.approx(float(direct), rel=EXACT, abs=1e-40)


def test_against_the_alternating_sum_with_many_digits():
    """The thesis's formula (35) with 120 digits; in double precision it has long lost all of them here."""
    n, m, j, sigma, theta = 80, 60, 25, 0.5, 1.25
    law = new_values_law(m, n=n, distinct=j, strength=theta, discount=sigma)
    with mpmath.workdps(120):
        sigma, theta = mpmath.mpf(sigma), mpmath.mpf(theta)
        for k in (0, 1, 10, 30, 60):
            terms = [(-1) ** i * mpmath.binomial(k, i) * mpmath.rf(-sigma * i + n - j * sigma, m) for i in range(k + 1)]
            coefficient = mpmath.fsum(terms) / mpmath.factorial(k)
            product_ = mpmath.fprod(theta + (j + i) * sigma for i in range(k))
            value = product_ / sigma**k * coefficient / mpmath.rf(theta + n, m)
            assert law.probability(k) == pytest.approx(float(value), rel=1e-11, abs=1e-44)


@pytest.mark.parametrize(
    ("nu", "tau", "sigma", "steps"), [(3.5, 40.0, 0.5, 300), (0.4, 9.0, 0.2, 50), (30.0, 900.0, 0.8, 2000)]
)
def test_the_short_chain_over_new_records_equals_the_long_one_over_all(nu, tau, sigma, steps):
    lo, hi, short = distinct_law(nu, tau, sigma, steps, 0)
    first, last, long = run_chain(nu, tau, sigma, steps, 0)
    k = np.arange(max(lo, first), min(hi, last) + 1)
    kept = long[k] > 1e-30
    assert kept.sum() > 10
    np.testing.assert_allclose(short[k][kept], long[k][kept], rtol=1e-11)
    assert short[lo : hi + 1].sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400), st.integers(0, 400), st.floats(0.0, 0.95), st.floats(0.01, 50.0), st.data())
def test_laws_are_laws(n, m, discount, strength, data):
    distinct = data.draw(st.integers(1, n))
    law = new_values_law(m, n=n, distinct=distinct, strength=strength, discount=discount)
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.counts[0] >= 0
    assert law.counts[-1] <= m
    expected = expected_new_values(m, n=n, distinct=distinct, strength=strength, discount=discount)
    assert law.mean == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert law.quantile(0.0) <= law.quantile(0.5) <= law.quantile(1.0)


@pytest.mark.parametrize(("discount", "distinct"), [(0.0, 60), (0.25, 200), (0.5, 600), (0.8, 20_000), (0.5, 100_000)])
def test_a_hundred_thousand_records(discount, distinct):
    n = m = 100_000
    arguments = {"n": n, "distinct": distinct, "strength": 5.0, "discount": discount}
    law = new_values_law(m, **arguments)
    seconds = []
    for _ in range(3):
        begin = time.process_time()  # not the clock: other programs must not matter
        new_values_law(m, **arguments)
        seconds.append(time.process_time() - begin)
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-11)
    assert law.mean == pytest.approx(expected_new_values(m, **arguments), rel=1e-11)
    assert min(seconds) < 0.5


def test_the_law_of_distinct_values_at_a_hundred_thousand():
    law = distinct_values_law(100_000, strength=3.0, discount=0.5)
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-11)
    assert law.mean == pytest.approx(1 + expected_new_values(99_999, n=1, distinct=1, strength=3.0, discount=0.5), rel=1e-11)


@pytest.mark.parametrize("x", [0.3, 5.0, 1e5, 1e7])
@pytest.mark.parametrize("m", [0, 1, 100, 5000, 10**6])
@pytest.mark.parametrize("sigma", [1e-6, 0.5, 0.99])
def test_log_rising_ratio_against_many_digits(x, m, sigma):
    with mpmath.workdps(50):
        base, step = mpmath.mpf(x), mpmath.mpf(sigma)
        expected = mpmath.loggamma(base + step + m) - mpmath.loggamma(base + step)
        expected -= mpmath.loggamma(base + m) - mpmath.loggamma(base)
    assert log_rising_ratio(x, sigma, float(m)) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_discovery_from_the_release_alone(discount):
    """The mean of the true discovery probability over everything the release leaves open."""
    for strength, n, m in product(strengths(discount), (1, 4, 9), (1, 3, 6)):
        for k in range(1, m + 1):
            total = chain(k, m, n, strength, discount)
            mean = sum(p * (strength + discount * values) for values, p in total.items()) / (strength + n + m)
            found = discovery_from_release(k, n=n, records=m, strength=float(strength), discount=float(discount))
            assert found == pytest.approx(float(mean), rel=EXACT)


def test_the_release_and_the_data_are_exchangeable():
    """Averaged over the release, the estimate from the release alone is the mean over the data of the true probability."""
    strength, discount, n, m = Fraction(3, 2), Fraction(1, 2), 5, 4
    joint = chain(1, 1, n + m - 1, strength, discount)
    truth = float(sum(p * (strength + discount * k) for k, p in joint.items()) / (strength + n + m))
    law = distinct_values_law(m, strength=1.5, discount=0.5)
    mean = sum(
        law.probability(k) * discovery_from_release(k, n=n, records=m, strength=1.5, discount=0.5) for k in range(1, m + 1)
    )
    assert mean == pytest.approx(truth, rel=EXACT)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_thesis_estimate_in_fractions(discount):
    for strength, n, m in product(strengths(discount), (1, 2, 8), (1, 5)):
        prior = chain(1, 1, n - 1, strength, discount)
        for k in range(m + 1):
            weights = {j: p * chain(j, n, m, strength, discount).get(j + k, 0) for j, p in prior.items()}
            if not sum(weights.values()):
                continue
            mean = sum(j * w for j, w in weights.items()) / sum(weights.values())
            expected = (strength + discount * (k + mean)) / (strength + n + m)
            found = discovery_given_new_values(k, n=n, records=m, strength=float(strength), discount=float(discount))
            assert found == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("new", [0, 5, 40, 150])
def test_the_thesis_estimate_by_brute_force_chains(new):
    n, m, strength, discount = 300, 200, 2.0, 0.6
    prior = distinct_values_law(n, strength=strength, discount=discount)
    arguments = {"n": n, "strength": strength, "discount": discount}
    weights = np.array([new_values_law(m, distinct=int(j), **arguments).probability(new) for j in prior.counts])
    weights *= prior.probabilities
    mean = float((weights * prior.counts).sum() / weights.sum())
    expected = (strength + discount * (new + mean)) / (strength + n + m)
    assert discovery_given_new_values(new, records=m, **arguments) == pytest.approx(expected, rel=1e-10)


def test_discovery_after_everything_is_seen():
    assert discovery_probability(n=7, distinct=3, strength=1.0, discount=0.5) == pytest.approx(2.5 / 8)


def likelihood(counts, theta, sigma):
    n, k = sum(counts), len(counts)
    value = sum(math.log(theta + i * sigma) for i in range(1, k)) - sum(math.log(theta + i) for i in range(1, n))
    return value + sum(math.log(i - sigma) for count in counts for i in range(1, count))


@pytest.mark.parametrize("counts", [[10, 5, 3, 1, 1], [4, 4, 4], [30] + [1] * 12, [7, 2, 2, 1, 1, 1, 1]])
def test_empirical_bayes_is_the_largest_likelihood(counts):
    at_zero = empirical_bayes(counts)
    both = empirical_bayes(counts, discount=None)
    assert at_zero.discount == 0.0
    for found in (at_zero, both):
        assert found.log_likelihood == pytest.approx(likelihood(counts, found.strength, found.discount), rel=1e-9)
    grid = [(theta, sigma) for theta in np.geomspace(1e-3, 1e4, 200) for sigma in np.linspace(0, 0.98, 50)]
    assert at_zero.log_likelihood >= max(likelihood(counts, theta, 0.0) for theta, sigma in grid if sigma == 0) - 1e-9
    assert both.log_likelihood >= max(likelihood(counts, theta, sigma) for theta, sigma in grid) - 1e-9
    assert both.log_likelihood >= at_zero.log_likelihood


def test_the_thesis_value_for_the_school_scores():
    """95 values among 39,374 records: only their numbers matter at discount 0; with a power in place of the rising
    factorial, as printed, the maximum would be near 0.0024."""
    found = empirical_bayes([414] * 94 + [39_374 - 94 * 414])
    assert found.strength == pytest.approx(11.6257, abs=5e-5)


def test_estimates_are_confidential_and_say_when_they_are_at_an_end():
    inside = empirical_bayes([10, 5, 3, 1, 1])
    assert not inside.at_boundary
    assert empirical_bayes([9]).at_boundary
    assert empirical_bayes([1, 1, 1, 1]).at_boundary
    assert repr(inside) == "HyperparameterEstimate(confidential)"
    with pytest.raises(NotCertifiable):
        inside.to_public()


@pytest.mark.parametrize(
    "call",
    [
        lambda: distinct_values_law(0, strength=1.0),
        lambda: distinct_values_law(3, strength=-0.5, discount=0.3),
        lambda: new_values_law(3, n=4, distinct=5, strength=1.0),
        lambda: new_values_law(-1, n=4, distinct=2, strength=1.0),
        lambda: discovery_given_new_values(9, n=4, records=5, strength=1.0, discount=0.2),
        lambda: discovery_from_release(7, n=4, records=5, strength=1.0),
        lambda: empirical_bayes([3, 4], discount=1.0),
    ],
)
def test_impossible_arguments(call):
    with pytest.raises(ModelError):
        call()
