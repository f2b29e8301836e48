"""Tests of samplers that are exact in law: they fail a right sampler with probability at most ALPHA, whatever its mixing.

`sequential` is algorithm 3 of Gandy and Scott (2020), "Unit testing for MCMC and other Monte Carlo methods": a first sample
that looks fine ends the test, one that looks doubtful is followed by larger ones, and the error rate holds over all of them.

Two ways to make the numbers it judges:

`rank_p_value`   ranks of a true parameter among draws from its posterior are uniform (simulation-based calibration): for
                 independent draws, or for chains that are reversible and started at a random place of their path.
`same_law_p_value`  (parameter, data) from the joint law, and the same after some sweeps of a chain at those data, have one
                 law (Geweke 2004); the two samples must come from separate replicates. Holds for every sampler that keeps the
                 posterior, reversible or not.
"""

import numpy as np
from scipy import stats

ALPHA = 1e-5
STEPS = 7


def sequential(p_values, *, size, alpha=ALPHA, growth=4):
    """True where the sampler passes. `p_values(size)` simulates afresh and returns one p value for each statistic."""
    beta = alpha / STEPS
    gamma = beta ** (1.0 / STEPS)
    for step in range(STEPS):
        found = np.atleast_1d(p_values(size))
        smallest = min(1.0, float(np.min(found)) * len(found))
        if smallest <= beta:
            return False
        if smallest > gamma + beta:
            return True
        beta /= gamma
        size = growth * size if step == 0 else size
    return True


def rank_p_value(ranks, *, n_ranks):
    """Chi-square test that ranks 0, ..., n_ranks - 1 are equally likely, in at most 20 groups of equal size."""
    groups = max(g for g in range(1, 21) if n_ranks % g == 0)
    counts = np.bincount(np.asarray(ranks) * groups // n_ranks, minlength=groups)
    return float(stats.chisquare(counts).pvalue)


def random_rank(truth, draws, rng):
    """Rank of the truth among the draws, ties broken at random."""
    below, equal = int(np.sum(draws < truth)), int(np.sum(draws == truth))
    return below + int(rng.integers(equal + 1))


def same_law_p_value(first, second):
    """Two-sample test: Kolmogorov and Smirnov's for numbers, chi-square for few distinct values."""
    first, second = np.asarray(first), np.asarray(second)
    values = np.unique(np.concatenate([first, second]))
    if len(values) == 1:
        return 1.0
    if len(values) > 30:
        return float(stats.ks_2samp(first, second, method="asymp").pvalue)
    table = np.array([[np.sum(each == value) for value in values] for each in (first, second)])
    common = table.sum(axis=0) >= 10  # rare values together
    grouped = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    grouped = grouped[:, grouped.sum(axis=0) > 0]
    return 1.0 if grouped.shape[1] < 2 else float(stats.chi2_contingency(grouped).pvalue)
