"""Logarithms of the one-dimensional laws that count posteriors are made of, and draws of the noise.

x, s    Gamma(x + s)/Gamma(x) is a rising factorial, for whole or broken s
kind    GEOMETRIC: P(z) proportional to e^(-|z|/scale); GAUSSIAN: to e^(-z^2/(2 scale^2)); z in lattice steps
"""

import math

from privurn._kernels._compile import compiled

GEOMETRIC, GAUSSIAN = 0, 1

FAR = 10.0
"""From here on five terms of Stirling's series leave less than 1e-13."""


@compiled
def stirling_tail(x):
    """What Stirling's formula leaves: log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2, for x at least FAR."""
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


@compiled
def log_rising(x, s):
    """Logarithm of Gamma(x + s)/Gamma(x), x >= 0 and x + s >= 0, without the cancellation of two large ones.

    0/0 is 1 (s = 0), and a zero in the denominator alone makes it -infinity: an urn never draws from a cell without mass.
    """
    if s == 0.0:
        return 0.0
    if x <= 0.0:
        return -math.inf
    y = x + s
    quotient, below = 1.0, 1.0  # Gamma(y)/Gamma(x) is that of arguments beyond FAR times quotient/below
    while x < FAR:
        quotient *= x
        x += 1.0
        s -= 1.0
    while y < FAR:
        below *= y
        y += 1.0
        s += 1.0
    main = (x - 0.5) * math.log1p(s / x) + s * (math.log(y) - 1.0) + stirling_tail(y) - stirling_tail(x)
    return main if quotient == below else main + math.log(quotient / below)


@compiled
def noise_log(kind, scale, z):
    """Logarithm of P(z), up to a constant."""
    return -0.5 * (z / scale) ** 2 if kind == GAUSSIAN else -abs(z) / scale


@compiled
def poisson_log(n, mean):
    """Logarithm of the Poisson probability of n, without subtracting large numbers from each other."""
    if n < FAR:
        return n * math.log(mean) - mean - math.lgamma(n + 1.0)
    ratio = math.log(mean / n) if 2.0 * mean < n else math.log1p((mean - n) / n)
    return n * ratio + (n - mean) - 0.5 * math.log(2.0 * math.pi * n) - stirling_tail(float(n))


@compiled
def two_sided_geometric(scale, rng):
    """A whole number with P(z) proportional to e^(-|z|/scale): the difference of two rounded exponentials."""
    return math.floor(rng.standard_exponential() * scale) - math.floor(rng.standard_exponential() * scale)


@compiled
def noise_draw(kind, scale, rng):
    """A draw of the noise; Gaussian by rejection from the geometric law (Canonne, Kamath and Steinke 2020)."""
    if kind == GEOMETRIC:
        return two_sided_geometric(scale, rng)
    wide = math.floor(scale) + 1.0
    while True:
        z = two_sided_geometric(wide, rng)
        excess = abs(z) - scale * scale / wide
        if rng.standard_exponential() >= 0.5 * (excess / scale) ** 2:
            return z
