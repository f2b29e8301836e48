"""The confidential value between kernel and channel: drawn given both, or summed out.

`update_latent` has an answer for every pair, an independence Metropolis step; some pairs implement it exactly. `log_marginal`
exists only for those pairs, in closed form or to at least nine digits: `marginal_pairs` says which.
"""

import math

import numpy as np

from privurn._kernels.arrays import update_entry
from privurn._kernels.dispatch import generic
from privurn._kernels.mixtures.channels import log_density
from privurn._kernels.mixtures.kernels import update_value


@generic(on=2, default=True, often=True)
def update_latent(channel, kernel, z, y, i, atoms, h, rng):
    """Move y[i] towards its law proportional to q(z | y) f(y | atoms[h]); returns the acceptance rate.

    The proposal is the kernel itself, so the ratio is q(z | new) / q(z | old): at least exp(-epsilon) where the channel is
    epsilon-differentially private.
    """
    before = log_density(channel, z, y[i])
    trial = np.empty_like(y[:1])
    update_value(kernel, trial, 0, atoms, h, rng)
    rate = math.exp(min(log_density(channel, z, trial[0]) - before, 0.0))
    if rng.random() < rate:
        update_entry(y, i, trial, 0)
    return rate


@generic(on=2)
def log_marginal(channel, kernel, z, atoms, h):
    """Logarithm of the integral of q(z | y) f(y | atoms[h]) over y, up to a term in z alone (the same for all atoms)."""


@generic(on=2, default=True)
def update_marginals(channel, kernel, z, atoms, h, masses, row):
    """Fill masses[row] with e^log_marginal of every z at atoms[h]; pairs may have a faster way."""
    for i in range(z.shape[0]):
        masses[row, i] = math.exp(log_marginal(channel, kernel, z[i], atoms, h))


def marginal_pairs():
    """Types of channel and kernel whose marginal law is known."""
    return set(log_marginal.table)
