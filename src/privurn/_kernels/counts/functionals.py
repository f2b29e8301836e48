"""Functionals of a random distribution on groups of cells, drawn and evaluated in one pass: no weights are stored.

A distribution is given by unnormalised masses x_g of the groups g. Every functional is a function of the sums

    s_r = sum_g weights[g, r] x_g

or, for quantiles, of the masses in the order of a column's values. Gamma variables of the same rate that fall into one group
add up to a gamma variable, so a Dirichlet law on cells is one on groups.

    x_g       mass of group g              s_r       weighted sum r
    f         functional                   a         column whose quantiles are asked for
    low, high where the values of a group begin and end (the same where all of them are one number)
"""

from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled

RATIO = 0
VARIANCE = 1
DEVIATION = 2
QUANTILE = 3
LOG_ODDS = 4


class Plan(NamedTuple):
    """What is computed of each draw.

    RATIO: offset + s[first]/s[below]; VARIANCE: s[second]/s[below] - (s[first]/s[below])^2; DEVIATION: its root; QUANTILE: of
    column `first` at `level`; LOG_ODDS: log of s[first] s[first + 1]/(s[first + 2] s[first + 3]). Rows of `order`,
    `low` and `high` list the groups that hold a number of that column, `numbers`
    of them, by increasing value.
    """

    weights: Any
    kind: Any
    first: Any
    second: Any
    below: Any
    offset: Any
    level: Any
    order: Any
    numbers: Any
    low: Any
    high: Any


@compiled
def update_row(row, masses, sums, plan):
    """Functionals of one distribution from its masses and its weighted sums; NaN where nothing is left to speak about."""
    for f in range(len(row)):
        kind = plan.kind[f]
        if kind == QUANTILE:
            row[f] = quantile(masses, plan, plan.first[f], plan.level[f])
            continue
        if kind == LOG_ODDS:
            row[f] = log_odds(sums, plan.first[f])
            continue
        total = sums[plan.below[f]]
        if not total > 0.0:
            row[f] = np.nan
        elif kind == RATIO:
            row[f] = plan.offset[f] + sums[plan.first[f]] / total
        else:
            mean = sums[plan.first[f]] / total
            variance = max(sums[plan.second[f]] / total - mean * mean, 0.0)
            row[f] = variance if kind == VARIANCE else np.sqrt(variance)


@compiled
def log_odds(sums, a):
    """The log odds ratio of four sums in a row; NaN where one is 0."""
    if not min(sums[a], sums[a + 1], sums[a + 2], sums[a + 3]) > 0.0:
        return np.nan
    return np.log(sums[a]) + np.log(sums[a + 1]) - np.log(sums[a + 2]) - np.log(sums[a + 3])


@compiled
def quantile(masses, plan, a, level):
    """Smallest number with at least `level` of the mass at or below it; within a group the mass is spread evenly."""
    numbers = plan.numbers[a]
    total = 0.0
    for i in range(numbers):
        total += masses[plan.order[a, i]]
    if not total > 0.0:
        return np.nan
    target, below, last, i = level * total, 0.0, 0, 0
    while i < numbers:
        start, mass = i, 0.0
        while i < numbers and plan.low[a, i] == plan.low[a, start]:  # groups that other columns tell apart
            mass += masses[plan.order[a, i]]
            i += 1
        if mass > 0.0:
            last = start
            if below + mass >= target:
                share = (target - below) / mass
                return plan.low[a, start] + share * (plan.high[a, start] - plan.low[a, start])
        below += mass
    return plan.high[a, last]  # rounding alone leads here


@compiled
def update_sums(sums, masses, weights):
    """Weighted sums of given masses."""
    sums[:] = 0.0
    for g in range(len(masses)):
        for r in range(len(sums)):
            sums[r] += weights[g, r] * masses[g]


@compiled
def update_gammas(masses, sums, rng, shapes, weights):
    """Gamma variables and their weighted sums. Where all are too small for a float, all mass is in one group."""
    sums[:] = 0.0
    total = 0.0
    for g in range(len(masses)):
        x = rng.standard_gamma(shapes[g]) if shapes[g] > 0.0 else 0.0
        masses[g] = x
        total += x
        for r in range(len(sums)):
            sums[r] += weights[g, r] * x
    if total > 0.0:
        return total
    chosen, rest = 0, rng.random() * shapes.sum()
    while chosen < len(shapes) - 1 and rest >= shapes[chosen]:
        rest -= shapes[chosen]
        chosen += 1
    masses[chosen] = 1.0
    for r in range(len(sums)):
        sums[r] = weights[chosen, r]
    return 1.0


@compiled
def update_dirichlet(out, rng, shapes, plan):
    """One row of functionals for each draw from Dirichlet(shapes)."""
    masses, sums = np.empty(len(shapes)), np.empty(plan.weights.shape[1])
    for d in range(len(out)):
        update_gammas(masses, sums, rng, shapes, plan.weights)
        update_row(out[d], masses, sums, plan)


@compiled
def update_composed(population, sample, rng, shapes, prior, n, plan):
    """Rows for each draw q ~ Dirichlet(shapes), C ~ Multinomial(n, q), p ~ Dirichlet(prior + C): of p, and of C/n."""
    masses, sums = np.empty(len(shapes)), np.empty(plan.weights.shape[1])
    given = np.empty(len(shapes))
    for d in range(len(population)):
        rest = update_gammas(masses, sums, rng, shapes, plan.weights)
        left = n
        for g in range(len(shapes)):
            share = min(1.0, masses[g] / rest) if rest > 0.0 else 1.0
            drawn = left if g == len(shapes) - 1 else rng.binomial(left, share) if left > 0 and share > 0.0 else 0
            rest -= masses[g]
            left -= drawn
            masses[g] = drawn
            given[g] = prior[g] + drawn
        update_sums(sums, masses, plan.weights)
        update_row(sample[d], masses, sums, plan)
        update_gammas(masses, sums, rng, given, plan.weights)
        update_row(population[d], masses, sums, plan)


@compiled
def update_given_counts(population, sample, rng, counts, groups, prior, plan):
    """One row for p ~ Dirichlet(prior + counts), and one for the counts themselves. `prior` is by group, `counts` by cell."""
    masses, sums = np.zeros(len(prior)), np.empty(plan.weights.shape[1])
    for i in range(len(counts)):
        masses[groups[i]] += counts[i]
    update_sums(sums, masses, plan.weights)
    update_row(sample, masses, sums, plan)
    shapes = prior + masses
    update_gammas(masses, sums, rng, shapes, plan.weights)
    update_row(population, masses, sums, plan)
