"""Log densities of what was released: the noisy sum, and the noisy number of records with its prior.

kind      LAPLACE: exp(-|difference| / scale); GAUSSIAN: exp(-difference^2 / (2 scale^2)); ABSENT: nothing was released
Normalising constants do not depend on the latent records, so the same kernels serve noise on a lattice.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.sums.protocol import provide

ABSENT, LAPLACE, GAUSSIAN = 0, 1, 2
FLAT, POISSON = 0, 1


class Noise(NamedTuple):
    """The noisy sum: values and the reciprocals of the scales, entry by entry."""

    values: np.ndarray
    rates: np.ndarray
    kind: int


class Size(NamedTuple):
    """What is known of the number of records: the noisy number, and the prior on lower, ..., upper."""

    noisy: float
    rate: float
    kind: int
    prior: int
    mean: float
    lower: int
    upper: int


@register_jitable(forceinline=True)
def entry_log(noise, j, value):
    """Log density of entry j of the released sum where without noise it is `value`."""
    z = (noise.values[j] - value) * noise.rates[j]
    return -abs(z) if noise.kind == LAPLACE else -0.5 * z * z


def log_noise(noise, total):
    """Log density of the released sum where the sum without noise is `total`."""
    found = 0.0
    for j in range(len(noise.values)):
        found += entry_log(noise, j, total[j])
    return found


def log_exchanged(noise, total, old, new, candidate):
    """The same where `new` stands for `old`, in one loop: it is run for every record."""
    found = 0.0
    for j in range(len(noise.values)):
        candidate[j] = total[j] + (new[j] - old[j])
        found += entry_log(noise, j, candidate[j])
    return found


provide(Noise, log_noise=log_noise, log_exchanged=log_exchanged)


@register_jitable
def log_size(size, n):
    """Log of prior times density of the noisy number of records."""
    if n < size.lower or n > size.upper:
        return -math.inf
    found = 0.0
    if size.kind == LAPLACE:
        found = -abs(size.noisy - n) * size.rate
    elif size.kind == GAUSSIAN:
        found = -0.5 * ((size.noisy - n) * size.rate) ** 2
    if size.prior == POISSON:
        found += n * math.log(size.mean) - math.lgamma(n + 1.0)
    return found


@register_jitable(forceinline=True)
def accepted(rng, log_ratio):
    """Whether Metropolis and Hastings accept. 1 + x <= e^x settles most cases without an exponential."""
    u = rng.random()
    return u < 1.0 + log_ratio or u < math.exp(log_ratio)
