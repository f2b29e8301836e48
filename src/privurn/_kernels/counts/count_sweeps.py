"""Sweeps over the posterior of latent counts: O(cells) each, whatever n is. Symbols: count_lines.py.

Every cell meets a random partner and the hub, a cell that is large as far as the public data say, so that neither many
cells nor one that holds nearly everything slows mixing down.
"""

from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.counts.count_moves import (
    Limits,
    update_cell,
    update_kept,
    update_noisy_cell,
    update_pair,
    update_renewed,
    update_size,
)
from privurn._kernels.whole_numbers import whole_below

RESIZES = 2
"""Joint changes of all counts in each sweep where n is secret."""


class Model(NamedTuple):
    """Public data: arrays as in count_lines.py; what the records are `worth` in each cell, the `hub`, and limits."""

    prior: Any
    settings: Any
    factors: Any
    hidden: Any
    released: Any
    worth: Any
    hub: int
    limits: Limits


@compiled
def update_order(order, rng):
    """A uniform order of the cells, whatever was there before."""
    for i in range(order.shape[0]):
        j = whole_below(i + 1, rng)
        order[i] = order[j]
        order[j] = i


@compiled
def update_transfers(order, hub, carried, limits, worth, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Every cell meets a random partner, and then the hub."""
    update_order(order, rng)
    pairs = counts.shape[0] // 2
    for p in range(pairs + counts.shape[0]):
        i = order[2 * p] if p < pairs else p - pairs
        j = order[2 * p + 1] if p < pairs else hub
        if i != j:
            update_pair(i, j, carried, limits, worth, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)


@compiled
def update_counts(counts, noisy, kept, draws, model, thin, rng):
    """Do `thin` sweeps before each row of `draws`, which gets the counts.

    Returns the mean acceptance of (renewed noise, changes of size).
    """
    prior, settings, factors, hidden, released, worth, hub, limits = model
    k, releases = counts.shape[0], noisy.shape[0]
    sums = np.zeros((releases, 2), np.int64)
    for h in range(releases):
        for i in range(k):
            sums[h, 0] += max(noisy[h, i], 0)
            sums[h, 1] += kept[h, i]
    n = counts.sum()
    prior_total = prior.sum()  # of the prior in use, which may be drawn anew between calls
    order = np.zeros(k, np.int64)
    proposed = np.zeros(k, np.int64)
    proposed_noisy = np.zeros((releases, k), np.int64)
    renewals, renewed, resized = 0, 0.0, 0.0
    sweeps = thin * draws.shape[0]
    for sweep in range(1, sweeps + 1):
        for h in range(releases):
            if hidden[h, 3] > 0.0:
                update_kept(kept, sums, h, released, hidden, noisy, rng)
            if hidden[h, 4] > 0.0:
                renewed += update_renewed(noisy, sums, h, proposed_noisy, hidden, counts, kept, rng)
                renewals += 1
            for i in range(k):
                update_noisy_cell(h, i, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
        for still in range(2 if releases > 0 else 1):  # first with the noise held fixed, then with the noisy counts
            update_transfers(
                order, hub, still == 0, limits, worth, rng, prior, settings, factors, hidden, counts, noisy, kept, sums
            )
            if limits.largest_n >= 0:
                for i in range(k):
                    n = update_cell(
                        i,
                        n,
                        still == 0,
                        limits,
                        prior_total,
                        worth,
                        rng,
                        prior,
                        settings,
                        factors,
                        hidden,
                        counts,
                        noisy,
                        kept,
                        sums,
                    )
        if limits.largest_n >= 0:
            for _ in range(RESIZES):
                n, accepted = update_size(
                    n,
                    proposed,
                    proposed_noisy,
                    limits,
                    prior_total,
                    rng,
                    prior,
                    settings,
                    factors,
                    hidden,
                    counts,
                    noisy,
                    kept,
                    sums,
                )
                resized += accepted
        if sweep % thin == 0:
            for i in range(len(counts)):
                draws[sweep // thin - 1, i] = counts[i]
    return renewed / max(renewals, 1), resized / max(RESIZES * sweeps, 1)
