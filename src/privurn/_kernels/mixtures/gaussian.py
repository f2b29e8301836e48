"""Gaussian kernel with normal inverse-gamma base: mu | s2 ~ N(mean, s2 / precision), s2 ~ inverse gamma(shape, scale).

An atom is (mu, s, log(s sqrt(2 pi))). Statistics are n, sum(y - mean), sum((y - mean)^2): sums about the base's mean lose
no digits to a common offset of data and base.
"""

import math
from typing import NamedTuple

from privurn._kernels.dispatch import implement, inner
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


class GaussianKernel(NamedTuple):
    """N(mu, s2) with its base measure."""

    mean: float
    precision: float
    shape: float
    scale: float


@inner
def _update_normal_inverse_gamma(atoms, h, mean, precision, shape, scale, rng):
    variance = scale / max(rng.standard_gamma(shape), 1e-300)
    deviation = math.sqrt(variance)
    atoms[h, 0] = mean + deviation * rng.standard_normal() / math.sqrt(precision)
    atoms[h, 1] = deviation
    atoms[h, 2] = math.log(deviation) + HALF_LOG_2PI


@implement(update_derived, GaussianKernel)
def _(kernel, atoms, h):
    atoms[h, 2] = math.log(atoms[h, 1]) + HALF_LOG_2PI


@implement(update_from_base, GaussianKernel)
def _(kernel, atoms, h, rng):
    _update_normal_inverse_gamma(atoms, h, kernel.mean, kernel.precision, kernel.shape, kernel.scale, rng)


@implement(update_value, GaussianKernel)
def _(kernel, y, i, atoms, h, rng):
    y[i] = atoms[h, 0] + atoms[h, 1] * rng.standard_normal()


@implement(log_kernel, GaussianKernel)
def _(kernel, y, atoms, h):
    x = (y - atoms[h, 0]) / atoms[h, 1]
    return -atoms[h, 2] - 0.5 * x * x


@implement(update_statistics, GaussianKernel)
def _(kernel, statistics, h, y):
    x = y - kernel.mean
    statistics[h, 0] += 1.0
    statistics[h, 1] += x
    statistics[h, 2] += x * x


@inner
def posterior_of(kernel, statistics, h):
    """Mean, precision, shape and scale of the base measure given statistics[h]."""
    n, total, squares = statistics[h, 0], statistics[h, 1], statistics[h, 2]
    precision = kernel.precision + n
    scale = kernel.scale + 0.5 * max(squares - total * total / precision, 0.0)
    return kernel.mean + total / precision, precision, kernel.shape + 0.5 * n, scale


@implement(update_atom, GaussianKernel)
def _(kernel, atoms, h, statistics, step, rng):
    mean, precision, shape, scale = posterior_of(kernel, statistics, h)
    _update_normal_inverse_gamma(atoms, h, mean, precision, shape, scale, rng)
    return 1.0


@inner
def walked(atoms, h, unit, size, rng):
    """Step of mu and log s: mu in units of `unit`, which does not depend on the atom, so that the walk is symmetric."""
    atoms[h, 0] += size * unit * rng.standard_normal()
    change = size * rng.standard_normal()
    atoms[h, 1] = min(max(atoms[h, 1] * math.exp(change), 1e-150 * unit), 1e150 * unit)
    atoms[h, 2] = math.log(atoms[h, 1]) + HALF_LOG_2PI


@inner
def _log_base(kernel, atoms, h):
    """Log density of (mu, log s)."""
    apart, variance = atoms[h, 0] - kernel.mean, atoms[h, 1] * atoms[h, 1]
    return -(kernel.shape + 0.5) * math.log(variance) - (kernel.scale + 0.5 * kernel.precision * apart * apart) / variance


@implement(log_step, GaussianKernel)
def _(kernel, atoms, h, size, rng):
    before = _log_base(kernel, atoms, h)
    walked(atoms, h, math.sqrt(kernel.scale / kernel.shape), size, rng)
    return _log_base(kernel, atoms, h) - before


@inner
def paired(atoms, h, g, share, size, rng):
    """Step of two atoms and the share p of the first, mean M and variance V of their mixture as they are.

    With q = 1 - p,  mu_h = M + sqrt(V q / p) u,  mu_g = M - sqrt(V p / q) u,  s_h^2 = V (1 - u^2) t / p  and
    s_g^2 = V (1 - u^2) (1 - t) / q: a symmetric walk of logit p, artanh u and logit t (Richardson and Green 1997 split
    components so). Returns the new p, and the log ratio of the Jacobian of (mu_h, mu_g, log s_h, log s_g), which is
    proportional to 1 / sqrt(p q) at fixed V.
    """
    p, q = share, 1.0 - share
    within_h, within_g = p * atoms[h, 1] * atoms[h, 1], q * atoms[g, 1] * atoms[g, 1]
    apart = atoms[h, 0] - atoms[g, 0]
    mean, variance = p * atoms[h, 0] + q * atoms[g, 0], within_h + within_g + p * q * apart * apart
    odds = p / q * math.exp(size * rng.standard_normal())
    parts = within_h / within_g * math.exp(size * rng.standard_normal())
    u = math.tanh(math.asinh(apart * math.sqrt(p * q / (within_h + within_g))) + size * rng.standard_normal())
    new, rest = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    within = variance * (1.0 - u * u)
    if not (1e-12 < new < 1.0 - 1e-12 and within > 1e-12 * variance and 1e-12 < parts < 1e12):
        return share, -math.inf
    atoms[h, 0] = mean + math.sqrt(variance * rest / new) * u
    atoms[g, 0] = mean - math.sqrt(variance * new / rest) * u
    atoms[h, 1] = math.sqrt(within * parts / (1.0 + parts) / new)
    atoms[g, 1] = math.sqrt(within / (1.0 + parts) / rest)
    atoms[h, 2], atoms[g, 2] = math.log(atoms[h, 1]) + HALF_LOG_2PI, math.log(atoms[g, 1]) + HALF_LOG_2PI
    return new, -0.5 * math.log(new * rest / (p * q))


@implement(log_pair_step, GaussianKernel)
def _(kernel, atoms, h, g, share, size, rng):
    before = _log_base(kernel, atoms, h) + _log_base(kernel, atoms, g)
    share, jacobian = paired(atoms, h, g, share, size, rng)
    return share, jacobian + _log_base(kernel, atoms, h) + _log_base(kernel, atoms, g) - before
