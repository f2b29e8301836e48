"""What is observed of a confidential value: one record for each kind of channel, and its log density.

`log_density(channel, z, y)` is log q(z | y) up to a term that does not depend on y: all that samplers need. z and y are what
their arrays hold for one record: a number, or a row of numbers. Values are clamped to [lower, upper] first; infinite bounds
say that they are not.
"""

import math
from typing import NamedTuple

import numpy as np

from privurn._kernels.dispatch import generic, implement, inner


@generic(on=1, often=True)
def log_density(channel, z, y):
    """Logarithm of q(z | y), up to a term in z alone."""


@inner
def clamp(y, lower, upper):
    """The nearest value within the bounds."""
    return min(max(y, lower), upper)


class Laplace(NamedTuple):
    """z = clamp(y) + Laplace(0, scale)."""

    scale: float
    lower: float
    upper: float


@implement(log_density, Laplace)
def _laplace(channel, z, y):
    return -abs(z - clamp(y, channel.lower, channel.upper)) / channel.scale


class Gaussian(NamedTuple):
    """z = clamp(y) + N(0, deviation^2)."""

    deviation: float
    lower: float
    upper: float


@implement(log_density, Gaussian)
def _gaussian(channel, z, y):
    x = (z - clamp(y, channel.lower, channel.upper)) / channel.deviation
    return -0.5 * x * x


class RoundedLaplace(NamedTuple):
    """z = round(clamp(y)) + discrete Laplace noise, P(noise = k) proportional to exp(-|k| / scale)."""

    scale: float
    lower: float
    upper: float


@implement(log_density, RoundedLaplace)
def _rounded_laplace(channel, z, y):
    return -abs(z - math.floor(clamp(y, channel.lower, channel.upper) + 0.5)) / channel.scale


class RoundedGaussian(NamedTuple):
    """z = round(clamp(y)) + discrete Gaussian noise, P(noise = k) proportional to exp(-k^2 / (2 deviation^2))."""

    deviation: float
    lower: float
    upper: float


@implement(log_density, RoundedGaussian)
def _rounded_gaussian(channel, z, y):
    x = (z - math.floor(clamp(y, channel.lower, channel.upper) + 0.5)) / channel.deviation
    return -0.5 * x * x


class Wavelet(NamedTuple):
    """z_jk = psi_jk(x) + Laplace(0, scale) for j = 0, 1, ..., k < 2^j, in row entry 2^j - 1 + k.

    x is clamp(y), moved from [lower, upper] to [0, 1]; psi_jk(x) = amplitudes[j] psi(2^j x - k), psi = 1 on [0, 1/2), -1 on
    [1/2, 1]. All but one k of each level are 0 at x, and those terms depend on z alone: the density costs one step for each
    level, not one for each entry.
    """

    scale: float
    amplitudes: np.ndarray
    lower: float
    upper: float


@implement(log_density, Wavelet)
def _wavelet(channel, z, y):
    x = (clamp(y, channel.lower, channel.upper) - channel.lower) / (channel.upper - channel.lower)
    total = 0.0
    cells = 1
    for j in range(channel.amplitudes.shape[0]):
        place = x * cells
        k = min(int(place), cells - 1)
        value = channel.amplitudes[j] if place - k < 0.5 else -channel.amplitudes[j]
        seen = z[cells - 1 + k]
        total += abs(seen) - abs(seen - value)
        cells *= 2
    return total / channel.scale


class Table(NamedTuple):
    """Finitely many values: log_q[column, y, z], the columns independent; y and z are rows of category numbers.

    Randomised response is one; so is any mechanism on a finite domain.
    """

    log_q: np.ndarray


@implement(log_density, Table)
def _table(channel, z, y):
    total = 0.0
    for column in range(channel.log_q.shape[0]):
        total += channel.log_q[column, y[column], z[column]]
    return total
