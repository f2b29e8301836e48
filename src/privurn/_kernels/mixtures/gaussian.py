"""Gaussian kernel with normal inverse-gamma base: mu | s2 ~ N(mean, s2 / precision), s2 ~ inverse gamma(shape, scale).

An atom is (mu, s, log(s sqrt(2 pi))). Statistics are n, sum(y - mean), sum((y - mean)^2): sums about the base's mean lose
no digits to a common offset of data and base.
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
