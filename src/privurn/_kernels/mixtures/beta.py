"""Beta kernel with independent gamma laws on its two parameters: no conjugacy, Langevin steps on (log a, log b).

An atom is (a, b, log B(a, b)). Statistics are n, sum(log y), sum(log(1 - y)). On the log scale the target is

    n log Gamma(a + b)/(Gamma(a) Gamma(b)) + a sum(log y) + b sum(log(1 - y)) + shape (log a + log b) - rate (a + b),

where one log a + log b of the prior's part is the Jacobian. Values are kept within [1e-300, 1 - 2^-53]: a beta draw that
rounds to 0 or 1 would have an infinite logarithm.
"""

import math
from typing import NamedTuple

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.kernels import (
    log_kernel,
    update_atom,
    update_derived,
    update_from_base,
    update_statistics,
    update_value,
)
from privurn._kernels.mixtures.normal import HALF_LOG_2PI

STEPS = 5
"""Langevin steps of each atom in a sweep."""

LARGEST_LOG = 50.0
"""Proposals beyond e^50 or below e^-50 are refused: the prior has no mass there in double precision."""


class BetaKernel(NamedTuple):
    """Beta(a, b), a and b ~ Gamma(shape, rate)."""

    shape: float
    rate: float


@inner
def digamma(x):
    """Derivative of log Gamma, for x > 0: recurrence to x >= 10, then the asymptotic series, to 1e-14."""
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    t = 1.0 / (x * x)
    series = t * (
        1.0 / 12.0 - t * (1.0 / 120.0 - t * (1.0 / 252.0 - t * (1.0 / 240.0 - t * (1.0 / 132.0 - t * 691.0 / 32760.0))))
    )
    return total + math.log(x) - 0.5 / x - series


@inner
def log_gamma(x):
    """Logarithm of Gamma(x), x > 0: recurrence to x >= 10, then Stirling's series, to 1e-14; numba's is not CPython's."""
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    t = 1.0 / (x * x)
    series = (1.0 / 12.0 - t * (1.0 / 360.0 - t * (1.0 / 1260.0 - t * (1.0 / 1680.0 - t / 1188.0)))) / x
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2PI + series - math.log(product)


@inner
def log_beta(a, b):
    """Logarithm of the beta function."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


@inner
def log_target(kernel, a, b, n, logs, others):
    """Log density of (log a, log b), up to a constant."""
    prior = kernel.shape * (math.log(a) + math.log(b)) - kernel.rate * (a + b)
    return prior - n * log_beta(a, b) + a * logs + b * others


@inner
def gradient(kernel, a, b, n, total):
    """Derivative of the target by log a, where total = sum(log y); that by log b follows by symmetry."""
    return kernel.shape + a * (n * (digamma(a + b) - digamma(a)) + total - kernel.rate)


@implement(update_derived, BetaKernel)
def _(kernel, atoms, h):
    atoms[h, 2] = log_beta(atoms[h, 0], atoms[h, 1])


@implement(update_from_base, BetaKernel)
def _(kernel, atoms, h, rng):
    atoms[h, 0] = max(rng.standard_gamma(kernel.shape) / kernel.rate, 1e-20)
    atoms[h, 1] = max(rng.standard_gamma(kernel.shape) / kernel.rate, 1e-20)
    atoms[h, 2] = log_beta(atoms[h, 0], atoms[h, 1])


@implement(update_value, BetaKernel)
def _(kernel, y, i, atoms, h, rng):
    first = rng.standard_gamma(atoms[h, 0])
    total = first + rng.standard_gamma(atoms[h, 1])
    share = first / total if total > 0.0 else 0.0
    y[i] = min(max(share, 1e-300), 1.0 - 2.0**-53)


@implement(log_kernel, BetaKernel)
def _(kernel, y, atoms, h):
    if y <= 0.0 or y >= 1.0:
        return -math.inf
    return (atoms[h, 0] - 1.0) * math.log(y) + (atoms[h, 1] - 1.0) * math.log1p(-y) - atoms[h, 2]


@implement(update_statistics, BetaKernel)
def _(kernel, statistics, h, y):
    statistics[h, 0] += 1.0
    statistics[h, 1] += math.log(y)
    statistics[h, 2] += math.log1p(-y)


@implement(update_atom, BetaKernel)
def _(kernel, atoms, h, statistics, step, rng):
    n, logs, others = statistics[h, 0], statistics[h, 1], statistics[h, 2]
    size = step / math.sqrt(1.0 + n)  # fixed while atoms move: the kernel stays reversible
    drift = 0.5 * size * size
    a, b = atoms[h, 0], atoms[h, 1]
    here = log_target(kernel, a, b, n, logs, others)
    slope_a, slope_b = gradient(kernel, a, b, n, logs), gradient(kernel, b, a, n, others)
    total = 0.0
    for _ in range(STEPS):
        step_a = drift * slope_a + size * rng.standard_normal()
        step_b = drift * slope_b + size * rng.standard_normal()
        log_a, log_b = math.log(a) + step_a, math.log(b) + step_b
        rate = 0.0
        if max(abs(log_a), abs(log_b)) < LARGEST_LOG:
            a_new, b_new = math.exp(log_a), math.exp(log_b)
            there = log_target(kernel, a_new, b_new, n, logs, others)
            new_a, new_b = gradient(kernel, a_new, b_new, n, logs), gradient(kernel, b_new, a_new, n, others)
            forth = (step_a - drift * slope_a) ** 2 + (step_b - drift * slope_b) ** 2
            back = (step_a + drift * new_a) ** 2 + (step_b + drift * new_b) ** 2
            rate = math.exp(min(there - here + (forth - back) / (2.0 * size * size), 0.0))
            if rng.random() < rate:
                a, b, here, slope_a, slope_b = a_new, b_new, there, new_a, new_b
        total += rate
    atoms[h, 0], atoms[h, 1], atoms[h, 2] = a, b, log_beta(a, b)
    return total / STEPS
