"""Figures that the project promises: they must come out to the digits shown."""

from fractions import Fraction

import pytest

from privurn.privacy.calibration import alpha_star, largest_records, round_up_to_rational, smallest_alpha
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile


@pytest.mark.parametrize(
    ("n", "delta", "records"),
    [
        (10**4, 1e-2, 101),
        (10**4, 1e-3, 10),
        (10**4, 1e-4, 1),
        (4 * 10**4, 1e-2, 404),
        (4 * 10**4, 1e-3, 40),
        (4 * 10**4, 1e-4, 4),
        (10**6, 1e-2, 10101),
        (10**6, 1e-4, 100),
        (10**6, 1e-6, 1),
        (12 * 10**6, 1e-2, 121212),
        (12 * 10**6, 1e-5, 120),
        (12 * 10**6, 1e-6, 12),
        (11_918_162, 1e-5, 119),
    ],
)
def test_largest_number_of_records_of_a_dirichlet_process(n, delta, records):
    profile = DirichletProcessProfile(n=n, records=1, strength=1.0)
    assert largest_records(profile, epsilon=2.0, delta=delta) == records


ALPHA_STAR = {
    0.1: ["1202", "1892", "2637", "4222"],
    0.5: ["70.1", "99.8", "131.1", "196.5"],
    1.0: ["21.0", "28.9", "37.1", "54.0"],
    2.0: ["6.81", "9.04", "11.35", "16.1"],
    4.0: ["2.59", "3.35", "4.12", "5.70"],
}


@pytest.mark.parametrize("epsilon", ALPHA_STAR)
def test_alpha_star(epsilon):
    for delta, shown in zip((1e-4, 1e-5, 1e-6, 1e-8), ALPHA_STAR[epsilon], strict=True):
        decimals = len(shown.partition(".")[2])
        assert f"{alpha_star(epsilon=epsilon, delta=delta):.{decimals}f}" == shown


@pytest.mark.parametrize(
    ("n", "cells", "records", "pure"),
    [(10**4, 10, (19, 1842, 14696), (1, 8, 34)), (10**6, 100, (1885, 183097, 1.44e6), (1, 8, 34))],
)
def test_largest_number_of_records_on_a_public_domain(n, cells, records, pure):
    for alpha, most, most_pure in zip((1, 5, 20), records, pure, strict=True):
        profile = DirichletMultinomialProfile(n=n, cells=cells, alpha=alpha, records=1)
        got = largest_records(profile, epsilon=1.0, delta=1e-6)
        assert got == most or (most == 1.44e6 and round(got, -4) == 1_440_000)
        assert largest_records(profile, epsilon=1.0, delta=0.0) == most_pure


@pytest.mark.parametrize(("n", "shown"), [(10**6, ("63.5", "16.4", "3.28")), (10**4, ("50.3", "15.0", "3.21"))])
def test_smallest_alpha(n, shown):
    for epsilon, text in zip((0.5, 1.0, 2.0), shown, strict=True):
        decimals = len(text.partition(".")[2])
        assert f"{smallest_alpha(n=n, cells=100, records=n, epsilon=epsilon, delta=1e-6):.{decimals}f}" == text


def test_calibrations_end_on_the_private_side():
    for epsilon, delta in [(0.3, 1e-7), (1.0, 1e-5), (2.5, 1e-9)]:
        alpha = smallest_alpha(n=5000, cells=40, records=5000, epsilon=epsilon, delta=delta)
        at = DirichletMultinomialProfile(n=5000, cells=40, alpha=alpha, records=5000)
        short = DirichletMultinomialProfile(n=5000, cells=40, alpha=alpha * (1 - 1e-9), records=5000)
        assert at.delta(epsilon) <= delta < short.delta(epsilon)
        most = largest_records(at, epsilon=epsilon, delta=delta)
        more = DirichletMultinomialProfile(n=5000, cells=40, alpha=alpha, records=most + 1)
        assert most >= 5000
        assert more.delta(epsilon) > delta
        assert at.epsilon(delta) <= epsilon * (1 + 1e-12)
        assert at.delta(at.epsilon(delta)) <= delta
        assert float(round_up_to_rational(alpha)) >= alpha


def test_almost_no_prior_is_needed_where_the_guarantee_is_loose():
    """delta above what one record can cost: the smallest alpha is next to nothing, and the urn still works in integers."""
    alpha = smallest_alpha(n=12_000_000, cells=10**6, records=1, epsilon=1.0, delta=1e-4)
    assert alpha < 1e-3
    assert Fraction(1, 1000) <= round_up_to_rational(alpha) <= Fraction(1001, 1_000_000)
