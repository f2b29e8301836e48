"""How many records a flat prior is worth, drawn given the counts.

symbol  meaning
C, k    counts of the cells, number of cells;  n = sum C
a       prior records in each cell;  log(k a) is uniform on [0, log k]: from one record in all to one in each cell
"""

import math

from privurn._kernels._compile import compiled


@compiled
def log_shared_prior(counts, total):
    """Log probability of the counts given k a = total, up to a constant: Dirichlet-multinomial, the same a in each cell."""
    k = counts.shape[0]
    a = total / k
    n = 0
    found = 0.0
    base = math.lgamma(a)
    for i in range(k):
        if counts[i] > 0:
            n += counts[i]
            found += math.lgamma(a + counts[i]) - base
    return found + math.lgamma(total) - math.lgamma(total + n)


@compiled
def new_total(counts, total, rng):
    """Prior records in all, given the counts: a slice on their logarithm, shrunk from the whole interval (Neal 2003)."""
    k = counts.shape[0]
    if k == 1:
        return 1.0
    x = math.log(total)
    height = log_shared_prior(counts, total) - rng.standard_exponential()
    low, high = 0.0, math.log(k)
    while True:
        trial = low + (high - low) * rng.random()
        if log_shared_prior(counts, math.exp(trial)) >= height:
            return math.exp(trial)
        if trial < x:
            low = trial
        else:
            high = trial
