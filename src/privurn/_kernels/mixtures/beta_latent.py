"""Exact draws of a value y given its Beta atom and what a channel says of it, for channels that fall on both sides of z.

The kernel proposes and the channel decides: from a law of values that has the atom, that takes (U - L) / (2 scale) + 1 tries on
average behind Laplace noise, whatever the atom. Where many have failed, or the noise is so narrow that many would, steps of
half a scale are laid around z, each with the most that channel and density of the kernel have in it: a step is drawn in
proportion, y evenly within it, and both decide; what is beyond the steps is proposed by the kernel. That leaves y where the
kernel hardly puts any around z, or has no bound: then the interval is cut into cells, one is drawn in proportion to its mass
times the most that the channel says in it, a value from the kernel within it, and again the channel decides. Failed tries say
nothing about the value that is accepted, so that all together are exact too.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.channels import clamp, log_density
from privurn._kernels.mixtures.choice import chosen
from privurn._kernels.mixtures.incomplete_beta import SMALLEST, beta_at, beta_below
from privurn._kernels.mixtures.kernels import update_value

TRIES = 100

NARROW = 0.01
"""Scale of noise below which the kernel is not tried first."""

NEAR, FAR, FALL = 8.0, 24.0, 24.0
"""Steps reach so many scales to either side of z: the near end where the channel has fallen to e^-FALL there."""

FAR_CELLS = 512
"""On either side of the steps."""

LARGEST = 1.0 - 2.0**-53


@inner
def update_tails(edges, a, b, log_ab, lower, upper):
    """Probabilities below and above all edges, each to its own precision."""
    for j in range(edges.shape[0]):
        lower[j] = beta_below(edges[j], a, b, log_ab)
        upper[j] = beta_below(1.0 - edges[j], b, a, log_ab)


@inner
def around(channel, z):
    """Where the channel says most, where its steps begin and end, and how many there are."""
    nearest = clamp(z, max(channel.lower, 0.0), min(channel.upper, 1.0))
    reach, top = NEAR * channel[0], log_density(channel, z, nearest)
    if max(log_density(channel, z, nearest - reach), log_density(channel, z, nearest + reach)) > top - FALL:
        reach = FAR * channel[0]
    return nearest, max(nearest - reach, 0.0), min(nearest + reach, 1.0), int(4.0 * reach / channel[0])


@inner
def log_law(y, a, b):
    """Log density of the kernel, but for its constant, at y moved to where values may be."""
    return (a - 1.0) * math.log(max(y, SMALLEST)) + (b - 1.0) * math.log1p(-min(y, LARGEST))


@inner
def value_in_steps(channel, kernel, z, y, i, atoms, h, rng):
    """Draw y[i] by steps around z; returns False, and draws nothing, where too much may lie beyond them or at an end."""
    a, b, log_ab = atoms[h, 0], atoms[h, 1], atoms[h, 2]
    nearest, low, high, size = around(channel, z)
    if (low == 0.0 and a < 1.0) or (high == 1.0 and b < 1.0):
        return False
    top, beyond, total = log_density(channel, z, nearest), -math.inf, 0.0
    if low > 0.0:
        beyond = log_density(channel, z, low) - top
    if high < 1.0:
        beyond = max(beyond, log_density(channel, z, high) - top)
    width, logs, masses = (high - low) / size, np.empty(size), np.empty(size)
    mode = (a - 1.0) / (a + b - 2.0) if a > 1.0 and b > 1.0 else -1.0  # else the law is largest at an end of each step
    left, before = low, log_law(low, a, b)
    for j in range(size):
        right = low + (j + 1) * width
        after = log_law(right, a, b)
        logs[j] = log_density(channel, z, clamp(z, left, right)) - top - log_ab
        logs[j] += log_law(mode, a, b) if left < mode < right else max(before, after)
        masses[j] = width * math.exp(logs[j])
        total += masses[j]
        left, before = right, after
    outside = math.exp(beyond)
    if not outside < total < math.inf:
        return False
    while True:
        if rng.random() * (outside + total) < outside:
            update_value(kernel, y, i, atoms, h, rng)
            rate = log_density(channel, z, y[i]) - top - beyond if not low <= y[i] <= high else -math.inf
        else:
            j = chosen(masses, 0, size, total, rng)
            y[i] = clamp(low + (j + rng.random()) * width, SMALLEST, LARGEST)
            rate = log_density(channel, z, y[i]) - top + log_law(y[i], a, b) - log_ab - logs[j]
        if rng.random() < math.exp(rate):
            return True


@inner
def cell_edges(channel, z):
    """Ends of cells: of half a scale around z, wider ones beyond."""
    _, low, high, near = around(channel, z)
    first, last = (FAR_CELLS if low > 0.0 else 0), (FAR_CELLS if high < 1.0 else 0)
    edges = np.empty(first + near + last + 1)
    for j in range(first):
        edges[j] = low * j / first
    for j in range(near):
        edges[first + j] = low + (high - low) * j / near
    for j in range(last):
        edges[first + near + j] = high + (1.0 - high) * j / last
    edges[edges.shape[0] - 1] = 1.0
    return edges


@inner
def value_in_cells(channel, z, a, b, log_ab, rng):
    """One value by cells."""
    edges = cell_edges(channel, z)
    cells = edges.shape[0] - 1
    lower, upper = np.empty(cells + 1), np.empty(cells + 1)
    logs, masses = np.empty(cells), np.empty(cells)
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
    for _ in range(TRIES if channel[0] >= NARROW else 0):
        update_value(kernel, y, i, atoms, h, rng)
        if rng.random() < math.exp(log_density(channel, z, y[i]) - top):
            return
    if not value_in_steps(channel, kernel, z, y, i, atoms, h, rng):
        y[i] = value_in_cells(channel, z, atoms[h, 0], atoms[h, 1], atoms[h, 2], rng)
