"""Simulated releases, one record at a time as the papers' algorithm says, and what their conditions look at.

Floating-point uniforms from a numpy Generator: for estimates, never for a release. Symbols as in the urn: theta, sigma; a
record is a ball that owns the unit interval of its number, the first sigma of which belong to "new" if it opened its value.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled

EITHER_OLD = 0
RELEASED = 1
FRESH = 2


@compiled
def next_value(rng, ends, n, drawn, values, opened, n_values, theta, sigma):
    """Value of the next record after n confidential and `drawn` released ones; n_values when it is new."""
    v = rng.random() * (theta + n + drawn) - theta
    if v < 0.0:
        return n_values
    ball = min(int(v), n + drawn - 1)
    if ball < n:
        value = np.searchsorted(ends, ball, side="right")
        opens = ball == (ends[value - 1] if value > 0 else 0)
    else:
        value = values[ball - n]
        opens = opened[ball - n]
    if opens and v - ball < sigma:
        return n_values
    return value


@compiled
def update_replicates(rng, counts, theta, sigma, m, watched, copies, new, extremes):
    """Releases of the Pitman-Yor urn: `copies` of the watched values, number of `new` values, and four extremes.

    extremes: smallest and largest 1 + S_i/(n_i - 1 - sigma) over the values with n_i >= 2, smallest and largest number of
    copies of a new value (0 when there is none). Rows are releases.
    """
    ends = np.cumsum(counts)
    n = ends[-1]
    k = counts.shape[0]
    seen = np.zeros(k + m, np.int64)
    values = np.empty(m, np.int64)
    opened = np.empty(m, np.bool_)
    for row in range(new.shape[0]):
        n_values = k
        for i in range(m):
            value = next_value(rng, ends, n, i, values, opened, n_values, theta, sigma)
            opened[i] = value == n_values
            n_values += opened[i]
            values[i] = value
            seen[value] += 1
        for w in range(watched.shape[0]):
            copies[row, w] = seen[watched[w]]
        new[row] = n_values - k
        low = math.inf
        high = 0.0
        for i in range(k):
            if counts[i] >= 2:
                ratio = 1.0 + seen[i] / (counts[i] - 1.0 - sigma)
                low = min(low, ratio)
                high = max(high, ratio)
        least = 0
        most = 0
        for i in range(k, n_values):
            least = seen[i] if least == 0 else min(least, seen[i])
            most = max(most, seen[i])
        extremes[row, 0] = low
        extremes[row, 1] = high
        extremes[row, 2] = least
        extremes[row, 3] = most
        for i in range(m):
            seen[values[i]] = 0


@compiled
def update_cell_replicates(rng, counts, cells, alpha, m, watched, copies):
    """Releases of the public-domain urn; counts belong to the first cells, the others are empty."""
    ends = np.cumsum(counts)
    n = ends[-1]
    seen = np.zeros(cells, np.int64)
    values = np.empty(m, np.int64)
    prior = alpha * cells
    for row in range(copies.shape[0]):
        for i in range(m):
            v = rng.random() * (prior + n + i)
            if v < prior:
                value = min(int(v / alpha), cells - 1)
            else:
                ball = min(int(v - prior), n + i - 1)
                value = np.searchsorted(ends, ball, side="right") if ball < n else values[ball - n]
            values[i] = value
            seen[value] += 1
        for w in range(watched.shape[0]):
            copies[row, w] = seen[watched[w]]
        for i in range(m):
            seen[values[i]] = 0


@compiled
def pick_other(rng, values, avoided):
    """Value of a uniformly chosen record among those whose value is not `avoided`; -1 when there is none."""
    others = 0
    for i in range(values.shape[0]):
        others += values[i] != avoided
    if others == 0:
        return -1
    pick = int(rng.random() * others)
    for i in range(values.shape[0]):
        if values[i] != avoided:
            if pick == 0:
                return values[i]
            pick -= 1
    return -1


@compiled
def log_factor(value, common, copies, sigma, new_mass, n_new):
    """Log density of the release after one more record of this value, against the common records; base density 1."""
    if value >= 0 and common[value] > 0:
        return math.log1p(copies[value] / (common[value] - sigma))
    if value < 0 or copies[value] == 0:
        return math.log1p(n_new * sigma / new_mass)
    return math.log((copies[value] - sigma) / new_mass)


@compiled
def update_density_ratios(rng, n, m, theta, sigma, log_ratio, kind, singular):
    """Thesis algorithm 2 for one simulated data set: rows are releases, columns neighbours that replace the last record."""
    ends = np.empty(0, np.int64)
    data = np.empty(n, np.int64)
    first = np.empty(n, np.bool_)
    data[0] = 0
    first[0] = True
    k = 1
    for i in range(1, n):
        data[i] = next_value(rng, ends, 0, i, data, first, k, theta, sigma)
        first[i] = data[i] == k
        k += first[i]
    common = np.zeros(k + m, np.int64)
    for i in range(n - 1):
        common[data[i]] += 1
    replaced = data[n - 1]
    lone = common[replaced] == 0
    new_mass = theta + (k - lone) * sigma
    values = np.empty(n + m, np.int64)
    opened = np.empty(n + m, np.bool_)
    values[:n] = data
    opened[:n] = first
    copies = np.zeros(k + m, np.int64)
    for row in range(log_ratio.shape[0]):
        copies[:] = 0
        n_values = k
        for i in range(n, n + m):
            values[i] = next_value(rng, ends, 0, i, values, opened, n_values, theta, sigma)
            opened[i] = values[i] == n_values
            n_values += opened[i]
            copies[values[i]] += 1
        n_new = n_values - k + (lone and copies[replaced] > 0)
        own = log_factor(replaced, common, copies, sigma, new_mass, n_new)
        for column in range(log_ratio.shape[1]):
            what = min(int(3.0 * rng.random()), 2)
            other = -1
            if what == EITHER_OLD:
                other = pick_other(rng, data, replaced)
            elif what == RELEASED:
                other = pick_other(rng, values[n:], replaced)
            if other < 0:
                what = FRESH
            log_ratio[row, column] = own - log_factor(other, common, copies, sigma, new_mass, n_new)
            kind[row, column] = what
            unknown_other = other >= 0 and common[other] == 0 and copies[other] > 0
            singular[row, column] = (lone and copies[replaced] > 0) or unknown_other
