"""Many independent releases at once, for audits: the release kernels in a loop.

Each row of `words` holds what one release takes from its source of randomness, in the same order: m words for the draws,
then m for the shuffle where m > 1. A row with a word that a single release would redraw is left out, which keeps the law:
given that no word is redrawn, every integer is uniform. Rows of `out` are filled from the top; the number filled is returned.
"""

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.urns.integers import update_below, update_shuffled
from privurn._kernels.urns.urn import update_cells, update_tables


@compiled
def update_cell_releases(words, first, q, uniform_slots, cell_slots, ends, guide, shift, cells, out):
    """Releases of the public-domain urn."""
    m = out.shape[1]
    draws = np.empty(m, np.int64)
    picks = np.empty(m, np.int64)
    rejected = np.empty(m, np.int64)
    filled = 0
    for i in range(words.shape[0]):
        if update_below(words[i, :m], first, q, draws, rejected) > 0:
            continue
        if m > 1 and update_below(words[i, m:], 1, 1, picks, rejected) > 0:
            continue
        update_cells(draws, q, uniform_slots, cell_slots, ends, guide, shift, cells, out[filled])
        if m > 1:
            update_shuffled(out[filled], picks)
        filled += 1
    return filled


@compiled
def update_table_releases(words, first, p, q, r, ends, guide, shift, out):
    """Releases of the open-domain urn with fresh labels: old tables 0..k-1, new ones k, k+1, ... by first appearance."""
    m = out.shape[1]
    k = ends.shape[0]
    draws = np.empty(m, np.int64)
    picks = np.empty(m, np.int64)
    rejected = np.empty(m, np.int64)
    opened = np.empty(m, np.bool_)
    names = np.empty(m, np.int64)
    filled = 0
    for i in range(words.shape[0]):
        if update_below(words[i, :m], first, q, draws, rejected) > 0:
            continue
        if m > 1 and update_below(words[i, m:], 1, 1, picks, rejected) > 0:
            continue
        row = out[filled]
        n_new = update_tables(draws, p, q, r, ends, guide, shift, row, opened)
        if m > 1:
            update_shuffled(row, picks)
        names[:n_new] = -1
        n_named = 0
        for j in range(m):
            if row[j] >= k:
                table = row[j] - k
                if names[table] < 0:
                    names[table] = n_named
                    n_named += 1
                row[j] = k + names[table]
        filled += 1
    return filled
