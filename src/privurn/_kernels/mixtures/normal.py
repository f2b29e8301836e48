"""Standard normal probabilities in logs and exact draws from a normal law cut to an interval.

symbol  meaning
a, b    ends of the interval, in deviations from the mean; may be infinite
Phi     distribution function of N(0, 1)
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner

ROOT_HALF = math.sqrt(0.5)
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@inner
def log_sum(x, y):
    """log(e^x + e^y."""
    if x < y:
        x, y = y, x
    if y == -math.inf:
        return x
    return x + math.log1p(math.exp(y - x))


@inner
def phi(x):
    """Phi(x)."""
    return 0.5 * math.erfc(-ROOT_HALF * x)


def _taylor(x):
    """Coefficients of Phi about x: derivatives are those of the density, Hermite polynomials times it."""
    terms, density = [1.0, x], math.exp(-0.5 * x * x - HALF_LOG_2PI)
    for k in range(2, TERMS):
        terms.append(x * terms[-1] - (k - 1) * terms[-2])
    signed = [(-1.0) ** k * density * terms[k] / math.factorial(k + 1) for k in range(TERMS - 1)]
    return [0.5 * math.erfc(-ROOT_HALF * x), *signed]


EDGE, PER_UNIT, TERMS = 9, 32, 8
TABLE = np.array([_taylor(i / PER_UNIT - EDGE) for i in range(2 * EDGE * PER_UNIT + 1)])
"""Phi about evenly spaced places, so that none is farther than 1/64: relative errors are below 1e-11."""


@inner
def quick_phi(x):
    """Phi(x) by its series about a place nearby, which is much quicker than erfc."""
    if not abs(x) < EDGE:
        return 1.0 if x > 0.0 else phi(x)
    i = int((x + EDGE) * PER_UNIT + 0.5)
    d = x - (i / PER_UNIT - EDGE)
    near = (TABLE[i, 0] + d * TABLE[i, 1]) + d * d * (TABLE[i, 2] + d * TABLE[i, 3])
    return near + d * d * (d * d) * ((TABLE[i, 4] + d * TABLE[i, 5]) + d * d * (TABLE[i, 6] + d * TABLE[i, 7]))


@inner
def log_phi(x):
    """Logarithm of Phi(x), to full relative precision in the lower tail."""
    if x > -30.0:
        return math.log(phi(x))
    if x == -math.inf:
        return -math.inf
    t = 1.0 / (x * x)  # asymptotic series; the first term left out is below 1e-15
    return -0.5 * x * x - HALF_LOG_2PI - math.log(-x) + math.log1p(-t * (1.0 - t * (3.0 - t * (15.0 - 105.0 * t))))


@inner
def log_interval(a, b):
    """log(Phi(b) - Phi(a)) for a <= b, without cancellation on either tail."""
    if a > 0.0:
        a, b = -b, -a
    if a >= b:
        return -math.inf
    upper, lower = log_phi(b), log_phi(a)
    if b <= 0.0:
        gap = lower - upper
        if gap > -1e-8:  # too narrow for the difference: density times width
            return -0.125 * (a + b) ** 2 - HALF_LOG_2PI + math.log(b - a)
        return upper + math.log(-math.expm1(gap))
    return math.log1p(-math.exp(lower) - 0.5 * math.erfc(ROOT_HALF * b))


@inner
def tail_normal(a, b, rng):
    """Draw of N(0, 1) given a < x < b, where a >= 0 (Robert 1995)."""
    if 0.5 * (b - a) * (b + a) < 2.0:
        while True:
            x = a + (b - a) * rng.random()
            if rng.random() < math.exp(0.5 * (a - x) * (a + x)):
                return x
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    while True:
        x = a + rng.standard_exponential() / rate
        if x < b and rng.random() < math.exp(-0.5 * (x - rate) * (x - rate)):
            return x


@inner
def truncated_normal(a, b, rng):
    """Draw of N(0, 1) given a < x < b; takes a few tries on average, whatever the interval."""
    if a >= 0.0:
        return tail_normal(a, b, rng)
    if b <= 0.0:
        return -tail_normal(-b, -a, rng)
    if b - a > 2.5:
        while True:
            x = rng.standard_normal()
            if a < x < b:
                return x
    while True:
        x = a + (b - a) * rng.random()
        if rng.random() < math.exp(-0.5 * x * x):
            return x
