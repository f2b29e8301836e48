"""Nodes and weights that integrate smooth functions against a Beta law, whatever its parameters: composite Gauss-Legendre.

In x = logit y the law has the density  y^a (1 - y)^b / B(a, b),  whose logarithm is concave, so that where it has fallen far
below its peak is found from outside by Newton's method without ever stepping too far. Between, x = pi sinh t: tails that fall
like e^(a x), however slowly, have a width of about 1 there.

The error is below 1e-10 of the integral for functions no narrower than Gaussian noise of a deviation of 1/50
(tests/exact/test_beta_pairs.py); weights are positive.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(32)

FALL = 36.0
"""Log density below that of the peak beyond which nothing counts, but for what the function itself may vary by."""

PER_LENGTH, PER_WIDTH, PER_PEAK = 0.3, 0.15, 0.35
"""Panels for each unit of t, for each width of the function in it, and for each deviation of a peak: the most of them."""

NEWTON = 12
"""Steps; the interval is too wide after fewer, never too narrow."""


@inner
def log_logistic(x):
    """log(1 / (1 + e^-x))."""
    return x - math.log1p(math.exp(x)) if x < 0.0 else -math.log1p(math.exp(-x))


@inner
def left_end(a, b, fall):
    """The x below the peak from which on, down, the log density is less than its peak's by `fall` and more."""
    peak = a * log_logistic(math.log(a / b)) + b * log_logistic(math.log(b / a))
    x = (peak - fall) / a  # the log density is below a x
    for _ in range(NEWTON):
        gap = peak - fall - a * log_logistic(x) - b * log_logistic(-x)
        slope = a * math.exp(log_logistic(-x)) - b * math.exp(log_logistic(x))
        if not gap > 1e-3 * fall:
            break
        x += gap / slope
    return x


@inner
def beta_nodes(a, b, log_ab, low, high, width, change):
    """Values y within [low, high] and the mass of each, for functions as wide as `width` whose logarithm varies by `change`."""
    fall = FALL + change
    first, last = math.asinh(left_end(a, b, fall) / math.pi), -math.asinh(left_end(b, a, fall) / math.pi)
    if low > 0.0:
        first = max(first, math.asinh(math.log(low / (1.0 - low)) / math.pi))
    if high < 1.0:
        last = min(last, math.asinh(math.log(high / (1.0 - high)) / math.pi))
    length = max(last - first, 0.0)
    panels = 1 + int(max(PER_PEAK * math.sqrt(fall), length * max(PER_LENGTH, PER_WIDTH / width)))
    y, masses = np.empty(panels * POINTS.shape[0]), np.empty(panels * POINTS.shape[0])
    half = 0.5 * length / panels
    for panel in range(panels):
        for p in range(POINTS.shape[0]):
            t = first + half * (2.0 * panel + 1.0 + POINTS[p])
            x = math.pi * math.sinh(t)
            slope = math.pi * math.cosh(t)
            at = panel * POINTS.shape[0] + p
            y[at] = math.exp(log_logistic(x))
            masses[at] = half * WEIGHTS[p] * slope * math.exp(a * log_logistic(x) + b * log_logistic(-x) - log_ab)
    return y, masses
