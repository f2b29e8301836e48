"""Beta kernel with independent gamma laws on its two parameters: no conjugacy, Langevin steps on (log a, log b).

An atom is (a, b, log B(a, b)). Statistics are n, sum(log y), sum(log(1 - y)). On the log scale the target is

    n log Gamma(a + b)/(Gamma(a) Gamma(b)) + a sum(log y) + b sum(log(1 - y)) + shape (log a + log b) - rate (a + b),

where one log a + log b of the prior's part is the Jacobian. Values are kept within [1e-300, 1 - 2^-53]: a beta draw that
rounds to 0 or 1 would have an infinite logarithm.
"""

import math
from typing import NamedTuple

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.gaussian import paired
from privurn._kernels.mixtures.kernels import (
    log_kernel,
    log_pair_step,
    log_step,
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

ALONG = 0.3
"""Share of steps of an atom that leave a b as it is."""

FAR = 5.0
"""Usual size of a share that is drawn anew, on the logit scale."""

NEAR = 0.3
"""Share of steps of pairs that are small."""

NEAR_END = 1e-7
"""Means nearer to an end, and sums a + b beyond, take part in no step of pairs: too few digits would come back."""


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
def log_base(kernel, a, b):
    """Log density of (log a, log b) under the base measure, up to a constant."""
    return kernel.shape * (math.log(a) + math.log(b)) - kernel.rate * (a + b)


@inner
def log_target(kernel, a, b, n, logs, others):
    """Log density of (log a, log b), up to a constant."""
    return log_base(kernel, a, b) - n * log_beta(a, b) + a * logs + b * others


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


@implement(log_step, BetaKernel)
def _(kernel, atoms, h, size, rng):
    """A symmetric walk of (log a, log b): along their difference, which moves the mean, or in any direction."""
    a, b = atoms[h, 0], atoms[h, 1]
    first = size * rng.standard_normal()
    other = -first if rng.random() < ALONG else size * rng.standard_normal()
    if max(abs(math.log(a) + first), abs(math.log(b) + other)) > LARGEST_LOG:
        return -math.inf
    atoms[h, 0], atoms[h, 1] = a * math.exp(first), b * math.exp(other)
    atoms[h, 2] = log_beta(atoms[h, 0], atoms[h, 1])
    return log_base(kernel, atoms[h, 0], atoms[h, 1]) - log_base(kernel, a, b)


@inner
def log_moments(kernel, mean, s):
    """Log density of (mean, log deviation) under the base measure, where s = a + b; -inf where either is hardly a float.

    The derivative of (mean, log deviation) by (log a, log b) has the determinant  -mean (1 - mean) s / (1 + s) / 2.
    """
    if not (NEAR_END < mean < 1.0 - NEAR_END and NEAR_END < s < 1.0 / NEAR_END):
        return -math.inf
    return log_base(kernel, mean * s, (1.0 - mean) * s) - math.log(mean * (1.0 - mean) * s / (1.0 + s))


@inner
def to_moments(kernel, atoms, h):
    """Put mean and deviation in the place of a and b; returns their log density."""
    s = atoms[h, 0] + atoms[h, 1]
    mean, rest = atoms[h, 0] / s, atoms[h, 1] / s
    atoms[h, 0], atoms[h, 1] = mean, math.sqrt(mean * rest / (1.0 + s))
    return log_moments(kernel, mean, s)


@inner
def from_moments(kernel, atoms, h):
    """Put a and b in the place of mean and deviation; returns that log density, and leaves what no Beta law has."""
    mean = atoms[h, 0]
    s = mean * (1.0 - mean) / (atoms[h, 1] * atoms[h, 1]) - 1.0
    density = log_moments(kernel, mean, s)
    if density > -math.inf:
        atoms[h, 0], atoms[h, 1] = mean * s, (1.0 - mean) * s
        atoms[h, 2] = log_beta(atoms[h, 0], atoms[h, 1])
    return density


@inner
def reweighted(atoms, h, g, share, rng):
    """Another share p of the first of two, both laws shifted and scaled alike so that mean and variance stay.

    An atom that hardly weighs anything may take half of another at once, wherever it lies. logit p is drawn anew, with a
    density proportional to e^(-|logit p| / FAR), which the ratio has too. With q = 1 - p the variance of both together is
    p s_h^2 + q s_g^2 + p q (mu_h - mu_g)^2;  returns the new p and the log ratio of the Jacobian of (mu_h, mu_g,
    log s_h, log s_g), which is proportional to s_g where mean, variance, s_h / s_g and (mu_h - mu_g) / s_g are given.
    """
    p, q = share, 1.0 - share
    far = FAR * rng.standard_exponential()
    odds = math.exp(far if rng.random() < 0.5 else -far)
    new, rest = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    if not (1e-12 < new < 1.0 - 1e-12):
        return share, -math.inf
    first, second, apart = atoms[h, 1] * atoms[h, 1], atoms[g, 1] * atoms[g, 1], atoms[h, 0] - atoms[g, 0]
    mean = p * atoms[h, 0] + q * atoms[g, 0]
    before, after = p * first + q * second + p * q * apart * apart, new * first + rest * second + new * rest * apart * apart
    scale = math.sqrt(before / after)
    atoms[h, 0], atoms[g, 0] = mean + rest * apart * scale, mean - new * apart * scale
    atoms[h, 1], atoms[g, 1] = atoms[h, 1] * scale, atoms[g, 1] * scale
    return new, math.log(scale) + (far - abs(math.log(p / q))) / FAR


@implement(log_pair_step, BetaKernel)
def _(kernel, atoms, h, g, share, size, rng):
    before = to_moments(kernel, atoms, h) + to_moments(kernel, atoms, g)
    if before == -math.inf:
        return share, before
    if rng.random() < NEAR:
        share, jacobian = paired(atoms, h, g, share, size, rng)
    else:
        share, jacobian = reweighted(atoms, h, g, share, rng)
    if jacobian == -math.inf:
        return share, jacobian
    return share, jacobian + from_moments(kernel, atoms, h) + from_moments(kernel, atoms, g) - before
