"""Inner loops of the posteriors of open-domain urns.

a, b    shapes of the named labels and of all other values together
c, r    confidential records of a named label, and of all other values
rho     odds q/(1 - q) of negative-binomial counts; n their required sum
sigma   discount
"""

import math

import numpy as np

from privurn._kernels._compile import compiled

SMALL_MEAN = 30.0


@compiled
def positive_negative_binomial(a, rho, rng):
    """A negative-binomial count of shape a and odds rho, given that it is not 0."""
    if a * rho > SMALL_MEAN:
        while True:
            c = rng.poisson(rho * rng.standard_gamma(a))
            if c > 0:
                return c
    q = rho / (1.0 + rho)
    probability = a * q / np.expm1(a * np.log1p(rho))
    left = rng.random() - probability
    c = 1
    while left >= 0.0 and probability > 1e-300:
        probability *= q * (a + c) / (c + 1.0)
        c += 1
        left -= probability
    return c


@compiled
def log_weight(c, a, log_q):
    """Logarithm of Gamma(c + a)/c! q^c."""
    return math.lgamma(c + a) - math.lgamma(c + 1.0) + c * log_q


@compiled
def largest_log_weight(lowest, a, rho):
    """Largest log weight over c >= lowest: at the mode, whose rounding is not trusted."""
    log_q = -math.log1p(1.0 / rho)
    mode = max(lowest, int(max(0.0, (a - 1.0) * rho)))
    best = log_weight(mode, a, log_q)
    for c in range(max(lowest, mode - 1), mode + 2):
        best = max(best, log_weight(c, a, log_q))
    return best


@compiled
def update_held_counts(counts, others, shapes, b, n, rho, closer, rng):
    """Rows of counts c >= 1 and others r >= 0 with sum n, probability proportional to prod Gamma(a + c)/c! Gamma(b + r)/r!.

    Independent negative-binomial counts have this law given their sum. All but one are drawn; the one that is left, `closer`
    (k for the others), must bring the sum to n, and is accepted in proportion to its probability of doing so. Returns the
    number of trials.
    """
    k = shapes.shape[0]
    log_q = -math.log1p(1.0 / rho)
    lowest = 1 if closer < k else 0
    shape = shapes[closer] if closer < k else b
    bound = largest_log_weight(lowest, shape, rho)
    trials = 0
    for row in range(counts.shape[0]):
        while True:
            trials += 1
            left = n
            for j in range(k):
                if j != closer:
                    counts[row, j] = positive_negative_binomial(shapes[j], rho, rng)
                    left -= counts[row, j]
                    if left < lowest:
                        break
            if closer < k and left >= lowest:
                others[row] = rng.poisson(rho * rng.standard_gamma(b))
                left -= others[row]
            if left >= lowest and np.log(rng.random()) < log_weight(left, shape, log_q) - bound:
                break
        if closer < k:
            counts[row, closer] = left
        else:
            others[row] = left
    return trials


@compiled
def seat(i, strength, discount, tables, opened, n_tables, rng):
    """Table of record i in a Chinese restaurant whose first i records sit at `tables`; n_tables where it opens one."""
    v = rng.random() * (strength + i) - strength
    if v >= 0.0:
        ball = min(i - 1, int(v))
        if not (opened[ball] and v - ball < discount):
            return tables[ball]
    return n_tables


@compiled
def update_blocks(sizes, strength, discount, records, rng):
    """Sizes of the blocks of `records` records in a Chinese restaurant, in order of appearance. Returns how many."""
    tables = np.empty(records, np.int64)
    opened = np.empty(records, np.bool_)
    n_tables = 0
    for i in range(records):
        table = seat(i, strength, discount, tables, opened, n_tables, rng)
        opened[i] = table == n_tables
        if opened[i]:
            sizes[n_tables] = 0
            n_tables += 1
        sizes[table] += 1
        tables[i] = table
    return n_tables


@compiled
def distinct_further(held, first_strength, further, second_strength, discount, rng):
    """Distinct values among `further` records that continue a restaurant of `held` records with another strength."""
    total = held + further
    tables = np.empty(total, np.int64)
    opened = np.empty(total, np.bool_)
    touched = np.zeros(total, np.bool_)
    n_tables = 0
    n_distinct = 0
    for i in range(total):
        strength = first_strength if i < held else second_strength
        table = seat(i, strength, discount, tables, opened, n_tables, rng)
        opened[i] = table == n_tables
        if opened[i]:
            n_tables += 1
        tables[i] = table
        if i >= held and not touched[table]:
            touched[table] = True
            n_distinct += 1
    return n_distinct


@compiled
def update_distinct(out, held, first_strength, further, second_strength, discount, rng):
    """`distinct_further` for each draw."""
    for i in range(out.shape[0]):
        out[i] = distinct_further(held[i], first_strength, further[i], second_strength[i], discount, rng)
