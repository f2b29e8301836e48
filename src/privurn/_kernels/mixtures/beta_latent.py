"""Exact draws of a value y given its Beta atom and what a channel says of it, for channels that fall on both sides of z.

The kernel proposes and the channel decides: from a law of values that has the atom, that takes (U - L) / (2 scale) + 1 tries on
average behind Laplace noise, whatever the atom. Where many have failed, y lies where the atom hardly puts any: then the
interval is cut into cells in which the channel varies by a factor of about e, a cell is drawn in proportion to its mass times
the most that the channel says in it, a value from the kernel within it, and again the channel decides. Failed tries say nothing
about the value that is accepted, so that both together are exact too.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.channels import clamp, log_density
from privurn._kernels.mixtures.choice import chosen
from privurn._kernels.mixtures.incomplete_beta import SMALLEST, beta_at, beta_below
from privurn._kernels.mixtures.kernels import update_value

TRIES = 100

MOST_CELLS = 4096

LARGEST = 1.0 - 2.0**-53


@inner
def update_tails(edges, a, b, log_ab, lower, upper):
    """Probabilities below and above all edges, each to its own precision."""
    for j in range(edges.shape[0]):
        lower[j] = beta_below(edges[j], a, b, log_ab)
        upper[j] = beta_below(1.0 - edges[j], b, a, log_ab)


@inner
def value_in_cells(channel, z, a, b, log_ab, rng):
    """One value by cells."""
    nearest = clamp(z, 0.0, 1.0)
    top = log_density(channel, z, nearest)
    change = top - min(log_density(channel, z, 0.0), log_density(channel, z, 1.0))
    cells = 8 + int(min(2.0 * change, MOST_CELLS))
    edges, lower, upper = np.empty(cells + 1), np.empty(cells + 1), np.empty(cells + 1)
    logs, masses = np.empty(cells), np.empty(cells)
    for j in range(cells + 1):
        edges[j] = j / cells
    update_tails(edges, a, b, log_ab, lower, upper)
    best = -math.inf
    for j in range(cells):
        masses[j] = lower[j + 1] - lower[j] if lower[j + 1] < 0.5 else upper[j] - upper[j + 1]
        logs[j] = log_density(channel, z, clamp(z, edges[j], edges[j + 1]))
        if masses[j] > 0.0:
            best = max(best, logs[j] + math.log(masses[j]))
    total = 0.0
    for j in range(cells):
        masses[j] = math.exp(logs[j] + math.log(masses[j]) - best) if masses[j] > 0.0 else 0.0
        total += masses[j]
    while True:
        j = chosen(masses, 0, cells, total, rng)
        u = rng.random()
        if lower[j + 1] < 0.5:
            y = beta_at(lower[j] + u * (lower[j + 1] - lower[j]), edges[j], edges[j + 1], a, b, log_ab)
        else:
            y = 1.0 - beta_at(upper[j + 1] + u * (upper[j] - upper[j + 1]), 1.0 - edges[j + 1], 1.0 - edges[j], b, a, log_ab)
        if rng.random() < math.exp(log_density(channel, z, y) - logs[j]):
            return clamp(y, SMALLEST, LARGEST)


@inner
def update_beta_latent(channel, kernel, z, y, i, atoms, h, rng):
    """Draw y[i]."""
    top = log_density(channel, z, clamp(z, 0.0, 1.0))
    for _ in range(TRIES):
        update_value(kernel, y, i, atoms, h, rng)
        if rng.random() < math.exp(log_density(channel, z, y[i]) - top):
            return
    y[i] = value_in_cells(channel, z, atoms[h, 0], atoms[h, 1], atoms[h, 2], rng)
