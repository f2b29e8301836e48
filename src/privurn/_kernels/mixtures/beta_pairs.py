"""Beta kernel behind noise on clamped values: its marginal law, and exact draws of the latent value.

symbol  meaning
a, b    parameters of the kernel
L, U    bounds within [0, 1]; z is moved into them for Laplace noise, which changes q(z | .) by a factor only
"""

import math

import numpy as np

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.beta import BetaKernel
from privurn._kernels.mixtures.beta_latent import update_beta_latent
from privurn._kernels.mixtures.beta_nodes import beta_law
from privurn._kernels.mixtures.beta_series import ORDER, reach, series_at, update_series
from privurn._kernels.mixtures.channels import Gaussian, Laplace, clamp
from privurn._kernels.mixtures.incomplete_beta import beta_below
from privurn._kernels.mixtures.latent import log_marginal, update_latent, update_marginals
from privurn._kernels.mixtures.noise_series import update_behind_noise
from privurn._kernels.mixtures.tilted_beta import TOGETHER, tilted_room, update_tilted


@implement(update_latent, Laplace, BetaKernel)
@implement(update_latent, Gaussian, BetaKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    update_beta_latent(channel, kernel, z, y, i, atoms, h, rng)
    return 1.0


@inner
def beyond_bounds(low, high, rate, a, b, log_ab, room):
    """What values outside the bounds, moved to them, have more of e^(-rate (y - L)), and of e^(-rate (U - y)) above.

    Never negative; what is subtracted is a part of what the bounds themselves have.
    """
    more, less = 0.0, 0.0
    if low > 0.0:
        room[5, 0] = low
        update_tilted(room[5], 1, a, b, log_ab, rate, room)
        more = max(beta_below(low, a, b, log_ab) - room[0, 0], 0.0)
    if high < 1.0:
        room[5, 0] = high
        update_tilted(room[5], 1, a, b, log_ab, rate, room)
        less = max(beta_below(1.0 - high, b, a, log_ab) - room[1, 0], 0.0)
    return more, less


@implement(update_marginals, Laplace, BetaKernel)
def _(channel, kernel, z, atoms, h, masses, row):
    """Values on either side of z, as if nothing were clamped, and what those outside the bounds have more.

    Both sides are worked out at some of the z, and at those that follow closely by a series; z need not be in order.
    """
    a, b, log_ab = atoms[h, 0], atoms[h, 1], atoms[h, 2]
    low, high, rate = max(channel.lower, 0.0), min(channel.upper, 1.0), 1.0 / channel.scale
    room, terms, firsts = tilted_room(), np.empty(ORDER), np.empty(TOGETHER + 1, np.int64)
    x, more_less = room[5], beyond_bounds(low, high, rate, a, b, log_ab, room)
    at = 0
    while at < z.shape[0]:
        size = 0
        while size < TOGETHER and at < z.shape[0]:
            firsts[size], x[size] = at, clamp(z[at], low, high)
            far = reach(x[size], a, b, rate)
            at += 1
            while at < z.shape[0] and abs(clamp(z[at], low, high) - x[size]) <= far:
                at += 1
            size += 1
        firsts[size] = at
        update_tilted(x, size, a, b, log_ab, rate, room)
        for p in range(size):
            masses[row, firsts[p]] = room[0, p] + room[1, p]
            if firsts[p + 1] > firsts[p] + 1:
                update_series(terms, x[p], room[3, p], room[0, p], room[1, p], a, b, rate)
                for i in range(firsts[p] + 1, firsts[p + 1]):
                    masses[row, i] = series_at(terms, clamp(z[i], low, high) - x[p])
    if more_less[0] > 0.0 or more_less[1] > 0.0:
        for i in range(z.shape[0]):
            seen = clamp(z[i], low, high)
            masses[row, i] += more_less[0] * math.exp(-rate * (seen - low)) + more_less[1] * math.exp(-rate * (high - seen))


@implement(update_marginals, Gaussian, BetaKernel)
def _(channel, kernel, z, atoms, h, masses, row):
    """Panels within the bounds, and what lies outside them at the bounds."""
    a, b, log_ab, c = atoms[h, 0], atoms[h, 1], atoms[h, 2], channel.deviation
    low, high, half = max(channel.lower, 0.0), min(channel.upper, 1.0), 0.5 / (c * c)
    law = beta_law(a, b, log_ab, low, high, c)
    update_behind_noise(law, z, low, high, c, masses[row])
    below = beta_below(low, a, b, log_ab) if low > 0.0 else 0.0
    above = beta_below(1.0 - high, b, a, log_ab) if high < 1.0 else 0.0
    if below > 0.0 or above > 0.0:
        for i in range(z.shape[0]):
            nearest = (z[i] - clamp(z[i], low, high)) ** 2  # a factor of z alone
            masses[row, i] += below * math.exp(half * (nearest - (z[i] - low) ** 2))
            masses[row, i] += above * math.exp(half * (nearest - (z[i] - high) ** 2))


@implement(log_marginal, Laplace, BetaKernel)
@implement(log_marginal, Gaussian, BetaKernel)
def _(channel, kernel, z, atoms, h):
    masses = np.empty((1, 1))
    update_marginals(channel, kernel, np.full(1, z), atoms, h, masses, 0)
    return math.log(masses[0, 0]) if masses[0, 0] > 0.0 else -math.inf
