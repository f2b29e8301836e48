"""Logarithm of the regularised lower incomplete gamma function P(a, x), and gamma draws cut from above.

symbol  meaning
P(a, x) probability that a Gamma(a, 1) variable is at most x
"""

import math

from privurn._kernels.dispatch import inner

MOST_TERMS = 100_000


@inner
def log_gamma_below(a, x):
    """Log of P(a, x) for a > 0, x >= 0, also where it is far below what a float can hold."""
    if x <= 0.0:
        return -math.inf
    front = a * math.log(x) - x - math.lgamma(a)
    if x < a + 1.0:  # series: x^a e^-x / Gamma(a) * sum_j x^j / (a (a+1) ... (a+j))
        term = 1.0 / a
        total = term
        for j in range(1, MOST_TERMS):
            term *= x / (a + j)
            total += term
            if term < total * 1e-16:
                break
        return front + math.log(total)
    # continued fraction of the upper function (Lentz), which is at most about 1/2 here
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    fraction = d
    for j in range(1, MOST_TERMS):
        step = -j * (j - a)
        b += 2.0
        d = step * d + b
        d = 1.0 / (d if abs(d) > 1e-300 else 1e-300)
        c = b + step / c
        c = c if abs(c) > 1e-300 else 1e-300
        change = d * c
        fraction *= change
        if abs(change - 1.0) < 1e-15:
            break
    return math.log1p(-math.exp(front) * fraction)


@inner
def gamma_below(a, rate, bound, rng):
    """Draw of Gamma(a, rate) given that it is at most `bound`; a few tries on average, whatever the numbers.

    Rejection from the whole law where much of it lies below the bound. Else, for a >= 1, log x lies below its tangent at the
    bound, which gives a truncated exponential envelope. For a < 1 the power x^(a-1) is the envelope.
    """
    if a < rate * bound + 0.5 * math.sqrt(a):
        while True:
            x = rng.standard_gamma(a) / rate
            if x <= bound:
                return x
    if a < 1.0:
        while True:
            x = bound * rng.random() ** (1.0 / a)
            if rng.random() < math.exp(-rate * x):
                return x
    slope = ((a - 1.0) / bound - rate) * bound  # of the log density at the bound, in units of the bound
    while True:
        u = rng.random()  # 1 - x/bound is exponential, falling or rising, cut at 1
        down = -math.log1p(u * math.expm1(-slope)) / slope if abs(slope) > 1e-8 else u
        if down < 1.0 and rng.random() < math.exp((a - 1.0) * (math.log1p(-down) + down)):
            return bound * (1.0 - down)
