"""Divergences at the size of real data against 50-digit arithmetic."""

import pytest
from mpmath import beta, binomial, exp, log, loggamma, mp, mpf, quad, sqrt

from privurn._kernels.accounting.new_values import release_probability
from privurn._kernels.accounting.old_values import log_gamma_step, old_old_divergence
from privurn.privacy.laws.divergences import delta_unlimited, old_old

mp.dps = 50


def beta_binomial(m, a, b, s):
    return binomial(m, s) * beta(a + s, b + m - s) / beta(a, b)


def reference(a, b, rest, m, epsilon):
    """E[(1 - E (1 + T/b)/(1 + S/a))_+] as a double sum, S and T given S beta-binomial."""
    a, b, rest, ratio = mpf(a), mpf(b), mpf(rest), exp(mpf(epsilon))
    total = mpf(0)
    s = 0
    p_s = beta_binomial(m, a + 1, b + rest, 0)
    while s <= m:
        p_t, t, inner = beta_binomial(m - s, b, rest, 0), 0, mpf(0)
        while t <= m - s:
            gain = 1 - ratio * (1 + t / b) / (1 + s / a)
            if gain <= 0:
                break
            inner += p_t * gain
            p_t *= mpf(m - s - t) / (t + 1) * (b + t) / (rest + m - s - t - 1) if t < m - s else 0
            t += 1
        total += p_s * inner
        if s > 20 and p_s < mpf(10) ** -40 and p_s < total * mpf(10) ** -14:
            break
        p_s *= mpf(m - s) / (s + 1) * (a + 1 + s) / (b + rest + m - s - 1) if s < m else 0
        s += 1
    return total


@pytest.mark.parametrize(
    ("a", "b", "rest", "m", "epsilon"),
    [
        (1.0, 1.0, 1e7, 10**6, 0.5),
        (2.5, 2.5, 1e7, 10**6, 0.5),
        (5.0, 2.0, 1e7, 10**6, 0.3),
        (0.5, 0.5, 1e7, 10**5, 0.1),
        (20.0, 20.0, 1e7, 10**6, 0.2),
        (3.0, 3.0, 1e7, 1000, 0.1),
        (1.0, 1.0, 1e7, 10**6, -0.5),
        (16.4, 16.4, 1e5, 10**5, 1.0),
    ],
)
def test_both_old_at_the_size_of_real_data(a, b, rest, m, epsilon):
    exact = reference(a, b, rest, m, epsilon)
    assert float(abs(old_old_divergence(a, b, rest, float(m), epsilon) / exact - 1)) < 1e-11
    claimed = old_old(a, b, rest, m, epsilon)
    assert mpf(claimed) >= exact
    assert float(claimed / exact - 1) < 1e-10


@pytest.mark.parametrize(
    ("a", "b", "epsilon"), [(1, 1, 4.0), (20, 20, 2.0), (1000, 7000, 0.01), (100, 100, 1.0), (4222, 4222, 0.1)]
)
def test_unlimited_records(a, b, epsilon):
    a_, b_, ratio = mpf(a), mpf(b), exp(mpf(epsilon))
    q = ratio * a_ / (b_ + ratio * a_)
    log_beta = loggamma(a_) + loggamma(b_) - loggamma(a_ + b_)

    def gain(p):
        return exp((a_ - 1) * log(p) + (b_ - 1) * log(1 - p) - log_beta) * (a_ + b_) * (p / a_ - ratio * (1 - p) / b_)

    width = sqrt(a_ * b_ / ((a_ + b_) ** 2 * (a_ + b_ + 1)))
    exact = quad(gain, [q, *(q + k * width for k in (1, 2, 4, 8, 16, 32) if q + k * width < 1), mpf(1)])
    claimed = delta_unlimited(a, b, epsilon)
    assert mpf(claimed) >= exact
    assert float(claimed / exact - 1) < 1e-10


@pytest.mark.parametrize("m", [1, 1000, 20_000, 20_001, 10**6])
@pytest.mark.parametrize("sigma", [0.0, 0.2, 0.9])
def test_chance_that_a_fresh_record_is_released(m, sigma):
    total = mpf(10) ** 7
    exact = -mp.expm1(
        loggamma(total + mpf(sigma) + m) - loggamma(total + mpf(sigma)) - loggamma(total + 1 + m) + loggamma(total + 1)
    )
    assert float(abs(mpf(release_probability(1e7, sigma, float(m))) / exact - 1)) < 1e-11


@pytest.mark.parametrize(("x", "d"), [(0.3, 0.4), (2.0, 50.0), (1e7, 0.5), (1e7, 20.0), (40.0, 1e6)])
def test_log_gamma_step(x, d):
    exact = loggamma(mpf(x) + mpf(d)) - loggamma(mpf(x))
    assert abs(float(log_gamma_step(x, d) - exact)) < 1e-12 * max(1.0, d)
