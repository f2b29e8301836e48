"""Redraw a split and every split below it. Symbols: counts.py.

The left child's count is drawn on a window that depends on the measurements, on the parent's count and on the concentration
only, then the splits below it in the same way. Both directions' probabilities enter the ratio, each with the normaliser of
its own window: below the first split the parents' counts differ, and so do the windows.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.trees.counts import measured_log, split_log

HALF = 24
"""Points of a window on each side of its centre."""

MOST_BELOW = 64
"""Nodes of a subtree that is redrawn as a whole."""


@compiled
def window(count, first, tree):
    """The first and the last possible count of the left child: around what its measurements and its sibling's say."""
    second = first + 1
    spread = tree.variance[first] + tree.variance[second]
    gap = count - tree.mean[first] - tree.mean[second]
    centre = tree.mean[first] + (gap * tree.variance[first] / spread if spread < math.inf else 0.5 * gap)
    middle = int(min(max(centre, 0.0), count))
    return max(middle - HALF, 0), min(middle + HALF, count)


@compiled
def estimate_log(v, count, tree):
    """Roughly log P(what was measured in a subtree | its count); exact for a cell's own measurement at the deepest depth."""
    if tree.child[v] < 0:
        return measured_log(v, count, tree)
    if tree.variance[v] == math.inf:
        return 0.0
    return -0.5 * (count - tree.mean[v]) ** 2 / tree.variance[v]


@compiled
def update_window(logs, v, count, a_index, tree):
    """Log probabilities of the left child's count on its window, normalised; returns the window."""
    first = tree.child[v]
    lo, hi = window(count, first, tree)
    a, r = tree.concentrations[a_index[v]], tree.share[v]
    top = -math.inf
    prior = split_log(lo, count, a, r)
    for x in range(lo, hi + 1):
        logs[x - lo] = prior + estimate_log(first, x, tree) + estimate_log(first + 1, count - x, tree)
        top = max(top, logs[x - lo])
        if x < hi:
            odds = r / (1.0 - r) if a == math.inf else (a * r + x) / (a * (1.0 - r) + count - x - 1.0)
            prior += math.log(odds * (count - x) / (x + 1.0))
    total = 0.0
    for x in range(lo, hi + 1):
        total += math.exp(logs[x - lo] - top)
    shift = top + math.log(total)
    for x in range(lo, hi + 1):
        logs[x - lo] -= shift
    return lo, hi


@compiled
def drawn(logs, size, rng):
    """An index from normalised log probabilities."""
    rest = rng.random()
    for x in range(size):
        rest -= math.exp(logs[x])
        if rest < 0.0:
            return x
    return size - 1


@compiled
def update_redraw(counts, v, a_index, tree, rng):
    """Redraw the split of node v and all below it, or leave them. Returns 1 where the new ones are accepted."""
    nodes, fresh = np.empty(MOST_BELOW, np.int64), np.empty(MOST_BELOW, np.int64)
    logs = np.empty(2 * HALF + 1)
    nodes[0], fresh[0] = v, counts[v]
    size, at = 1, 0
    change = 0.0  # log of posterior ratio times reverse over forward probability
    while at < size:
        node, new = nodes[at], fresh[at]
        at += 1
        first, old = tree.child[node], counts[node]
        if first < 0:
            continue
        if size + 2 > MOST_BELOW:
            return 0
        if not tree.two[node]:
            nodes[size], fresh[size] = first, new
            change += measured_log(first, new, tree) - measured_log(first, old, tree)
            size += 1
            continue
        lo, hi = update_window(logs, node, old, a_index, tree)
        left = counts[first]
        if left < lo or left > hi:
            return 0  # the way back does not exist
        change += logs[left - lo]
        if new != old:
            lo, hi = update_window(logs, node, new, a_index, tree)
        drawn_left = lo + drawn(logs, hi - lo + 1, rng)
        change -= logs[drawn_left - lo]
        a, r = tree.concentrations[a_index[node]], tree.share[node]
        change += split_log(drawn_left, new, a, r) - split_log(left, old, a, r)
        for side in range(2):
            nodes[size + side] = first + side
            fresh[size + side] = drawn_left if side == 0 else new - drawn_left
            change += measured_log(first + side, fresh[size + side], tree) - measured_log(
                first + side, counts[first + side], tree
            )
        size += 2
    if change < 0.0 and rng.random() >= math.exp(change):
        return 0
    for i in range(size):
        counts[nodes[i]] = fresh[i]
    return 1
