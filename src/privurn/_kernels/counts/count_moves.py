"""Moves of the posterior of latent counts; each keeps it, so every order of them does. Symbols: count_lines.py.

Transfers between two cells keep n. Where noisy counts are latent, C given D is narrow though C is wide: most transfers
carry D along (the noise is held fixed) and single steps of D given C renew the noise.

Where n is secret, cells also grow and shrink alone, and all together by `update_size`: with r in (0, 1), either add to
each cell a negative binomial number with shape gamma_i + C_i and success r, or keep each record with probability r. For
w(c) = Gamma(gamma + c)/c! the two undo each other: w(c) up(c, c') = r^gamma w(c') down(c', c).
"""

import math
from typing import NamedTuple

from privurn._kernels._compile import compiled
from privurn._kernels.counts.count_lines import Growth, NoisyCell, Transfer, released_log, share_log, size_log
from privurn._kernels.counts.discrete_laws import noise_draw
from privurn._kernels.counts.integer_slice import BOTTOM, TOP, next_point, slice_point

LARGEST_RESIZE, RESIZE_RANGE = math.log(3.0), math.log(3000.0)
"""Of log(-log r): sizes change by a factor of twenty or by a thousandth, rather by much."""

WIDE = 3.0
"""Blocks of the slice sampler, in standard deviations: too wide costs a few halvings, too narrow costs steps."""


class Limits(NamedTuple):
    """Numbers that moves need: where fresh draws end, how far noise reaches (in records), bounds of n (or -1), worth."""

    window: int
    reach_seen: float
    reach_hidden: float
    smallest_n: int
    largest_n: int
    worth_total: float


@compiled
def update_moved(noisy, sums, hidden, i, moved):
    """Carry the latent noisy counts of cell i along with its count."""
    for h in range(noisy.shape[0]):
        before = noisy[h, i]
        after = before + int(hidden[h, 2]) * moved
        sums[h, 0] += max(after, 0) - max(before, 0)
        noisy[h, i] = after


@compiled
def update_pair(i, j, carried, limits, worth, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """New split of the records of cells i and j.

    The width is about WIDE deviations of the split, from public numbers and what the move holds fixed.
    """
    x = counts[i]
    total = x + counts[j]
    if total == 0:
        return
    a, b = worth[i], worth[j]
    reach = limits.reach_seen if carried else min(limits.reach_seen, limits.reach_hidden)
    deviation = total * math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    width = 1 + int(min(WIDE * min(deviation, reach), float(total)))
    line = Transfer(i, j, total, carried)
    y = next_point(line, x, 0, total, width, limits.window, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
    if carried:
        update_moved(noisy, sums, hidden, i, y - x)
        update_moved(noisy, sums, hidden, j, x - y)
    counts[i] = y
    counts[j] = total - y


@compiled
def update_cell(i, n, carried, limits, prior_total, worth, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """New count of cell i where n is secret, G = `prior_total`; returns the new n."""
    x = counts[i]
    others = n - x
    least, most = max(0, limits.smallest_n - others), limits.largest_n - others
    reach = limits.reach_seen if carried else min(limits.reach_seen, limits.reach_hidden)
    deviation = 2.0 + others * math.sqrt(worth[i]) / (limits.worth_total - worth[i] + 1.0)
    width = 1 + int(min(WIDE * min(deviation, reach), float(most)))
    line = Growth(i, others, carried, prior_total)
    y = next_point(line, x, least, most, width, limits.window, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
    if carried:
        update_moved(noisy, sums, hidden, i, y - x)
    counts[i] = y
    return others + y


@compiled
def update_noisy_cell(h, i, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """New latent noisy count given the counts and the records."""
    x = noisy[h, i]
    width = 1 + int(WIDE * hidden[h, 1])
    line = NoisyCell(h, i)  # as long as can be: a fresh draw, as in `next_point`, has nothing to do here
    y = slice_point(line, x, BOTTOM, TOP, width, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
    sums[h, 0] += max(y, 0) - max(x, 0)
    noisy[h, i] = y


@compiled
def update_kept(kept, sums, h, released, hidden, noisy, rng):
    """Which records come from the noisy histogram: binomial in each cell."""
    s = hidden[h, 3]
    k = noisy.shape[1]
    total = sums[h, 0]
    sums[h, 1] = 0
    for i in range(k):
        if released[h, i] > 0:
            share = (1.0 - s) * (max(noisy[h, i], 0) / total if total > 0 else 1.0 / k)
            kept[h, i] = rng.binomial(released[h, i], share / (share + s / k))
            sums[h, 1] += kept[h, i]


@compiled
def shares_log(h, noisy, kept, sums):
    """Log likelihood of all records kept in release h, given its noisy counts; and the total of these."""
    total = 0
    value = 0.0
    for i in range(noisy.shape[1]):
        total += max(noisy[h, i], 0)
        value += share_log(noisy[h, i], kept[h, i])
    if total == 0:
        return -sums[h, 1] * math.log(noisy.shape[1]), total
    return value - sums[h, 1] * math.log(total), total


@compiled
def update_renewed(noisy, sums, h, proposed, hidden, counts, kept, rng):
    """Propose all the noise of release h afresh: the only way between "all noisy counts are 0 or less" and the rest."""
    before, _ = shares_log(h, noisy, kept, sums)
    for i in range(counts.shape[0]):
        proposed[h, i] = int(hidden[h, 2]) * counts[i] + int(noise_draw(hidden[h, 0], hidden[h, 1], rng))
    after, total = shares_log(h, proposed, kept, sums)
    if rng.standard_exponential() < before - after:
        return 0.0
    for i in range(counts.shape[0]):
        noisy[h, i] = proposed[h, i]
    sums[h, 0] = total
    return 1.0


@compiled
def update_resized(proposed, counts, prior, largest_n, log_r, growing, rng):
    """Larger or smaller counts in all cells; returns their sum, or -1 where that is too large."""
    r = math.exp(log_r)
    size = 0
    for i in range(counts.shape[0]):
        c = counts[i]
        proposed[i] = 0
        if growing:
            mean = rng.standard_gamma(prior[i] + c) * (1.0 - r) / r
            if mean > 2.0 * largest_n + 1000.0:  # above the bound but for a chance below 1e-100
                return -1
            proposed[i] = c + rng.poisson(mean)
        elif c > 0:
            proposed[i] = rng.binomial(c, r)
        size += proposed[i]
    return size if size <= largest_n else -1


@compiled
def update_size(
    n, proposed, proposed_noisy, limits, prior_total, rng, prior, settings, factors, hidden, counts, noisy, kept, sums
):
    """Grow or shrink all cells together, the noise held fixed; returns the new n and 1 where it was accepted."""
    log_r = -math.exp(LARGEST_RESIZE - RESIZE_RANGE * rng.random() ** 2)
    growing = rng.random() < 0.5
    size = update_resized(proposed, counts, prior, limits.largest_n, log_r, growing, rng)
    if size < limits.smallest_n or size < 0:
        return n, 0.0
    change = size_log(size, prior_total, settings) - size_log(n, prior_total, settings)
    change += -prior_total * log_r if growing else prior_total * log_r
    for i in range(counts.shape[0]):
        if proposed[i] != counts[i]:
            change += released_log(i, proposed[i], settings, factors) - released_log(i, counts[i], settings, factors)
    for h in range(noisy.shape[0]):
        for i in range(counts.shape[0]):
            proposed_noisy[h, i] = noisy[h, i] + int(hidden[h, 2]) * (proposed[i] - counts[i])
        change += shares_log(h, proposed_noisy, kept, sums)[0] - shares_log(h, noisy, kept, sums)[0]
    if rng.standard_exponential() < -change:
        return n, 0.0
    for i in range(counts.shape[0]):
        counts[i] = proposed[i]
    for h in range(noisy.shape[0]):
        sums[h, 0] = shares_log(h, proposed_noisy, kept, sums)[1]
        for i in range(counts.shape[0]):
            noisy[h, i] = proposed_noisy[h, i]
    return size, 1.0
