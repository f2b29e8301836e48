"""Gaussian kernel behind Gaussian noise, with its prior on the variance of what is released.

    y ~ N(mu, t2 - c^2),  z = y + N(0, c^2) ~ N(mu, t2),  mu | t2 ~ N(mean, t2 / precision),  t2 ~ inverse gamma(shape, scale)
    given t2 >= c^2.

The normal inverse-gamma law of (mu, t2) cut to t2 >= c^2 stays conjugate: the evidence of n values is the uncut one times
P(a_n, b_n / c^2) / P(a, b / c^2), P the regularised lower incomplete gamma function (the law of 1 / t2 at 1 / c^2).
This is another prior than the normal inverse-gamma law of (mu, t2 - c^2). Values must not be clamped.

An atom is (mu, s, log(s sqrt(2 pi))), s^2 = t2 - c^2, as of the Gaussian kernel. Statistics and `seen` are n, sum(. - mean),
sum((. - mean)^2).
"""

import math
from typing import NamedTuple

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.channels import Gaussian
from privurn._kernels.mixtures.collapsed import log_evidence, update_atom_from_seen, update_seen
from privurn._kernels.mixtures.gaussian import GaussianKernel, paired, posterior_of, walked
from privurn._kernels.mixtures.incomplete_gamma import gamma_below, log_gamma_below
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
from privurn._kernels.mixtures.latent import log_marginal, update_latent
from privurn._kernels.mixtures.normal import HALF_LOG_2PI

LEAST_VARIANCE = 1e-12
"""Share of the noise's variance below which the kernel's own is not told from 0."""


class TotalGaussianKernel(NamedTuple):
    """N(mu, t2 - noise^2) with its base measure; `noise` is the channel's deviation."""

    mean: float
    precision: float
    shape: float
    scale: float
    noise: float


@inner
def _update_cut(atoms, h, mean, precision, shape, scale, noise, rng):
    total = 1.0 / gamma_below(shape, scale, 1.0 / (noise * noise), rng)
    atoms[h, 0] = mean + math.sqrt(total / precision) * rng.standard_normal()
    _set_deviation(atoms, h, total - noise * noise, noise)


@inner
def _set_deviation(atoms, h, variance, noise):
    atoms[h, 1] = math.sqrt(max(variance, LEAST_VARIANCE * noise * noise))
    atoms[h, 2] = math.log(atoms[h, 1]) + HALF_LOG_2PI


# The law of a value given its atom is the Gaussian kernel's: the base measure alone is another
for _same in (update_derived, update_value, log_kernel, update_statistics):
    implement(_same, TotalGaussianKernel)(_same.table[GaussianKernel,])


@implement(update_from_base, TotalGaussianKernel)
def _(kernel, atoms, h, rng):
    _update_cut(atoms, h, kernel.mean, kernel.precision, kernel.shape, kernel.scale, kernel.noise, rng)


@inner
def _log_target(kernel, n, squares, apart, log_variance):
    """Log density of log(t2 - noise^2) given mu and the latent values; apart = mu - mean, squares = sum((y - mu)^2)."""
    variance = math.exp(log_variance)
    total = variance + kernel.noise * kernel.noise
    prior = -(kernel.shape + 1.5) * math.log(total) - (kernel.scale + 0.5 * kernel.precision * apart * apart) / total
    return prior - 0.5 * n * log_variance - 0.5 * squares / variance + log_variance


@implement(update_atom, TotalGaussianKernel)
def _(kernel, atoms, h, statistics, step, rng):
    """The mean given the variance is normal; the variance given the mean by a slice on its logarithm (Neal 2003)."""
    n, sums, squares = statistics[h, 0], statistics[h, 1], statistics[h, 2]
    variance = atoms[h, 1] * atoms[h, 1]
    total = variance + kernel.noise * kernel.noise
    weight = n / variance + kernel.precision / total
    apart = sums / variance / weight + rng.standard_normal() / math.sqrt(weight)
    around = max(squares - 2.0 * apart * sums + n * apart * apart, 0.0)
    x = math.log(variance)
    height = _log_target(kernel, n, around, apart, x) - rng.standard_exponential()
    low = x - rng.random()
    high = low + 1.0
    while _log_target(kernel, n, around, apart, low) > height:
        low -= 1.0
    while _log_target(kernel, n, around, apart, high) > height:
        high += 1.0
    while True:
        trial = low + (high - low) * rng.random()
        if _log_target(kernel, n, around, apart, trial) > height:
            break
        if trial < x:
            low = trial
        else:
            high = trial
    atoms[h, 0] = kernel.mean + apart
    _set_deviation(atoms, h, math.exp(trial), kernel.noise)
    return 1.0


@inner
def _log_base(kernel, atoms, h):
    """Log density of (mu, log s), up to a constant."""
    return _log_target(kernel, 0.0, 0.0, atoms[h, 0] - kernel.mean, 2.0 * math.log(atoms[h, 1]))


@implement(log_step, TotalGaussianKernel)
def _(kernel, atoms, h, size, rng):
    before = _log_base(kernel, atoms, h)
    walked(atoms, h, kernel.noise, size, rng)
    return _log_base(kernel, atoms, h) - before


@implement(log_pair_step, TotalGaussianKernel)
def _(kernel, atoms, h, g, share, size, rng):
    before = _log_base(kernel, atoms, h) + _log_base(kernel, atoms, g)
    share, jacobian = paired(atoms, h, g, share, size, rng)
    return share, jacobian + _log_base(kernel, atoms, h) + _log_base(kernel, atoms, g) - before


@implement(update_latent, Gaussian, TotalGaussianKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    m, s, c = atoms[h, 0], atoms[h, 1], channel.deviation
    v = s * s + c * c
    y[i] = m + s * s * (z - m) / v + s * c / math.sqrt(v) * rng.standard_normal()
    return 1.0


@implement(log_marginal, Gaussian, TotalGaussianKernel)
def _(channel, kernel, z, atoms, h):
    v = atoms[h, 1] * atoms[h, 1] + channel.deviation * channel.deviation
    return -HALF_LOG_2PI - 0.5 * math.log(v) - 0.5 * (z - atoms[h, 0]) ** 2 / v


@implement(update_seen, Gaussian, TotalGaussianKernel)
def _(channel, kernel, seen, h, z, sign):
    x = z - kernel.mean
    seen[h, 0] += sign
    seen[h, 1] += sign * x
    seen[h, 2] += sign * x * x


@implement(log_evidence, Gaussian, TotalGaussianKernel)
def _(channel, kernel, seen, h):
    n = seen[h, 0]
    if n < 0.5:
        return 0.0
    _, precision, shape, scale = posterior_of(kernel, seen, h)
    floor = kernel.noise * kernel.noise
    cut = log_gamma_below(shape, scale / floor) - log_gamma_below(kernel.shape, kernel.scale / floor)
    uncut = math.lgamma(shape) - math.lgamma(kernel.shape) + kernel.shape * math.log(kernel.scale) - shape * math.log(scale)
    return uncut + 0.5 * math.log(kernel.precision / precision) - n * HALF_LOG_2PI + cut


@implement(update_atom_from_seen, Gaussian, TotalGaussianKernel)
def _(channel, kernel, atoms, h, seen, row, rng):
    mean, precision, shape, scale = posterior_of(kernel, seen, row)
    _update_cut(atoms, h, mean, precision, shape, scale, kernel.noise, rng)
