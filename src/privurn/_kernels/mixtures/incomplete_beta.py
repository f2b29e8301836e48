"""Regularised incomplete beta function, and draws of a beta law cut to an interval, for parameters of any size.

symbol      meaning
I_x(a, b)   probability that a Beta(a, b) variable is at most x;  I_x(a, b) = 1 - I_{1-x}(b, a)
"""

import math

from privurn._kernels.dispatch import inner

MOST_TERMS = 100_000

SMALLEST = 1e-300
"""Values are kept this far from 0, and 2^-53 from 1."""


@inner
def fraction(x, a, b):
    """The integral of y^(a-1) (1-y)^(b-1) up to x over x^a (1-x)^b / a; quick where x is below about the mean (Lentz)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, MOST_TERMS):
        step = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        c, d = 1.0 + step / c, 1.0 / (1.0 + step * d)
        value *= c * d
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        c, d = 1.0 + step / c, 1.0 / (1.0 + step * d)
        change = c * d
        value *= change
        if abs(change - 1.0) < 4e-16:
            break
    return value


@inner
def is_low(x, a, b):
    """Whether the fraction converges quickly at x; else it does for the other tail."""
    return x * (a + b + 2.0) < a + 1.0


@inner
def log_edge(x, a, b, log_beta):
    """Logarithm of x^a (1-x)^b / B(a, b), which is what the function changes by at a step of a or b."""
    return a * math.log(x) + b * math.log1p(-x) - log_beta if 0.0 < x < 1.0 else -math.inf


@inner
def beta_below(x, a, b, log_beta):
    """I_x(a, b), to full relative precision where it is small; log_beta is log B(a, b)."""
    edge = math.exp(log_edge(x, a, b, log_beta))
    if is_low(x, a, b):
        return edge * fraction(x, a, b) / a
    return 1.0 - edge * fraction(1.0 - x, b, a) / b


@inner
def beta_at(level, low, high, a, b, log_beta):
    """Where I_x(a, b) = level between low and high, by bisection on the scale of log x."""
    low = max(low, SMALLEST)
    while high - low > 4e-16 * high:
        middle = math.sqrt(low * high) if high > 2.0 * low else 0.5 * (low + high)
        if not low < middle < high:
            break
        if beta_below(middle, a, b, log_beta) < level:
            low = middle
        else:
            high = middle
    return high
