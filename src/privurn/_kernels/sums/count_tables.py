"""The posterior of a table's counts given noisy ones: exact draws on random windows of lines through the counts.

x       counts of the k cells                n    their sum
gamma   Dirichlet prior of the cells         G    sum of gamma
D       noisy counts; N the noisy n          b    scale of noise
h(n)    prior of n times n!/Gamma(G + n) times the density of N
target  h(n) prod_i Gamma(gamma_i + x_i)/x_i! noise(D_i - x_i)

A line is x + j v for a direction v of whole numbers. A window is WINDOW points of it, a random number of them before the
present one; drawing from the target cut to the window leaves the target as it is, since from each of its points the same window
comes with the same probability. Directions: one cell, one cell against another, all cells in fixed proportions. They are
multiplied by a random stride, so that short and long moves are tried. Cost does not depend on n, nor on the noise.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled

WINDOW = 32

ABSENT, LAPLACE, GAUSSIAN = 0, 1, 2

FAR = 12.0
"""From here on four terms of Stirling's series leave less than 1e-13."""


class Table(NamedTuple):
    """What is public. lower = upper: n is known. `cell_stride`, `size_stride`: largest strides."""

    noisy: Any
    kind: int
    scale: float
    prior: Any
    prior_total: float
    noisy_size: float
    size_kind: int
    size_scale: float
    poisson_mean: float
    lower: int
    upper: int
    proportions: Any
    hub: int
    cell_stride: int
    size_stride: int


@compiled
def noise_log(kind, scale, residual):
    """Log density of noise, up to a constant; 0 where nothing was published."""
    if kind == LAPLACE:
        return -abs(residual) / scale
    if kind == GAUSSIAN:
        return -0.5 * (residual / scale) ** 2
    return 0.0


@compiled
def series(x):
    """What Stirling's formula leaves of log Gamma(x), for x at least FAR."""
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x


@compiled
def gamma_ratio_log(a, b):
    """The log of Gamma(a)/Gamma(b), for positive a and b, without subtracting large numbers from each other."""
    product = 1.0
    while a < FAR:
        product /= a
        a += 1.0
    while b < FAR:
        product *= b
        b += 1.0
    difference = a - b
    main = (b - 0.5) * math.log1p(difference / b) + difference * (math.log(a) - 1.0) + series(a) - series(b)
    return main + math.log(product)


@compiled
def cell_log(table, i, x):
    """Log of Gamma(gamma + x)/x! times the noise of cell i."""
    gamma = table.prior[i]
    value = noise_log(table.kind, table.scale, table.noisy[i] - x)
    return value if gamma == 1.0 else value + gamma_ratio_log(gamma + x, x + 1.0)


@compiled
def size_log(table, n):
    """Log h(n), up to a constant."""
    value = noise_log(table.size_kind, table.size_scale, table.noisy_size - n)
    if table.prior_total != 1.0:
        value -= gamma_ratio_log(table.prior_total + n, n + 1.0)
    if table.poisson_mean > 0.0:
        value += n * math.log(table.poisson_mean) - math.lgamma(n + 1.0)
    return value


@compiled
def update_window_logs(logs, table, counts, n, cells, steps, stride, before):
    """Log target at x + (j - before) stride v, j = 0, 1, ...; v is `steps` on `cells`, and 0 elsewhere."""
    growth = 0
    for c in range(cells.shape[0]):
        growth += steps[c]
    for j in range(logs.shape[0]):
        move = (j - before) * stride
        size = n + move * growth
        logs[j] = -math.inf
        if growth != 0 and (size < table.lower or size > table.upper):
            continue
        value = size_log(table, float(size)) if growth != 0 else 0.0
        possible = True
        for c in range(cells.shape[0]):
            x = counts[cells[c]] + move * steps[c]
            if x < 0:
                possible = False
                break
            value += cell_log(table, cells[c], float(x))
        if possible:
            logs[j] = value


@compiled
def chosen(logs, rng):
    """A point with probability proportional to the exponential of its log; `logs` is overwritten."""
    most = logs.max()
    total = 0.0
    for j in range(logs.shape[0]):
        logs[j] = math.exp(logs[j] - most)
        total += logs[j]
    left = rng.random() * total
    last = 0
    for j in range(logs.shape[0]):
        if logs[j] > 0.0:
            last = j
            left -= logs[j]
            if left < 0.0:
                break
    return last


@compiled
def stride_drawn(largest, rng):
    """A whole number in 1, ..., largest with probability proportional to log(1 + 1/s): long and short ones alike."""
    return min(largest, int(math.exp(rng.random() * math.log(largest + 1.0))))


@compiled
def update_along(counts, table, n, cells, steps, largest, logs, rng):
    """One step along a line; returns the new n."""
    stride = stride_drawn(largest, rng)
    before = rng.integers(0, logs.shape[0])
    update_window_logs(logs, table, counts, n, cells, steps, stride, before)
    move = (chosen(logs, rng) - before) * stride
    for c in range(cells.shape[0]):
        counts[cells[c]] += move * steps[c]
        n += move * steps[c]
    return n


@compiled
def update_table(counts, table, kept_counts, kept_shares, thin, rng):
    """Sweeps over the table, every thin-th kept with a draw of the cells' probabilities given the counts."""
    k = counts.shape[0]
    logs = np.empty(WINDOW)
    one, plus = np.zeros(1, np.int64), np.ones(1, np.int64)
    two, exchange = np.zeros(2, np.int64), np.array([1, -1])
    every = np.arange(k)
    order = np.empty(k, np.int64)
    known = table.lower == table.upper
    n = counts.sum()
    for draw in range(kept_counts.shape[0]):
        for _ in range(thin):
            if not known:
                for i in range(k):
                    one[0] = i
                    n = update_along(counts, table, n, one, plus, table.cell_stride, logs, rng)
                for v in range(table.proportions.shape[0]):
                    n = update_along(counts, table, n, every, table.proportions[v], table.size_stride, logs, rng)
            for i in range(k):  # a uniform order of the cells, whatever was there before
                j = rng.integers(0, i + 1)
                order[i] = order[j]
                order[j] = i
            for i in range(0, k - 1, 2):
                two[0], two[1] = order[i], order[i + 1]
                n = update_along(counts, table, n, two, exchange, table.cell_stride, logs, rng)
            for i in range(k):
                if i != table.hub:
                    two[0], two[1] = i, table.hub
                    n = update_along(counts, table, n, two, exchange, table.cell_stride, logs, rng)
        total = 0.0
        for i in range(k):
            kept_counts[draw, i] = counts[i]
            kept_shares[draw, i] = rng.standard_gamma(table.prior[i] + counts[i])
            total += kept_shares[draw, i]
        for i in range(k):
            kept_shares[draw, i] /= total
