"""Moves of the chain on a tree's counts that change few nodes. Symbols: counts.py; a_index: index of each node's concentration.

A record that is taken away at random and put back by the urn, left with probability (a r + l)/(a + c) at every split, keeps the
prior: the ratio of such a move is that of the likelihoods alone. The same holds for a record that leaves the tree or enters
it, when the tree's number of records is flat a priori.
"""

import math

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.trees.counts import common_ancestor, measured_log, noise_log, side_rise, whole_rise
from privurn._kernels.whole_numbers import whole_below


@inner
def cell_of_record(counts, which, tree):
    """The node of the cell that holds the `which`-th record."""
    v = 0
    while tree.child[v] >= 0:
        v = tree.child[v]
        if tree.two[tree.parent[v]] and which >= counts[v]:
            which -= counts[v]
            v += 1
    return v


@inner
def urn_cell(counts, a_index, tree, rng):
    """The node of a cell that the next record falls into, given the counts and the concentrations."""
    v = 0
    while tree.child[v] >= 0:
        first = tree.child[v]
        if tree.two[v]:
            a, r = tree.concentrations[a_index[v]], tree.share[v]
            left = r if a == math.inf else (a * r + counts[first]) / (a + counts[v])
            first += rng.random() >= left
        v = first
    return v


@inner
def update_path(counts, v, d, tree):
    """Add d records to a cell and all nodes above it; returns the change of the log likelihood."""
    change = 0.0
    while v >= 0:
        change += measured_log(v, counts[v] + d, tree) - measured_log(v, counts[v], tree)
        counts[v] += d
        v = tree.parent[v]
    return change


@inner
def update_record(counts, a_index, tree, rng):
    """Take a random record and put it back by the urn. Returns 1 where that is accepted."""
    if counts[0] == 0:
        return 0
    source = cell_of_record(counts, whole_below(counts[0], rng), tree)
    change = update_path(counts, source, -1, tree)
    target = urn_cell(counts, a_index, tree, rng)
    change += update_path(counts, target, 1, tree)
    if change >= 0.0 or rng.random() < math.exp(change):
        return 1
    update_path(counts, target, -1, tree)
    update_path(counts, source, 1, tree)
    return 0


@inner
def special_change(special, s, d, tree):
    """Change of the log likelihood where special cell s gets d more records."""
    noisy, scale = tree.special[s], tree.special_scale
    return noise_log(tree.special_kind, scale, noisy - special[s] - d) - noise_log(tree.special_kind, scale, noisy - special[s])


@inner
def update_total(counts, special, a_index, tree, rng):
    """One record enters the tree or leaves it: from nowhere where n is secret, else from or to a special cell."""
    enters = rng.random() < 0.5
    d = 1 if enters else -1
    change = 0.0
    s = -1
    if tree.total >= 0:
        if special.shape[0] == 0:
            return 0
        s = whole_below(special.shape[0], rng)
        if special[s] - d < 0:
            return 0
        change += special_change(special, s, -d, tree)
    if counts[0] + d < 0 or counts[0] + d > tree.most:
        return 0
    v = urn_cell(counts, a_index, tree, rng) if enters else cell_of_record(counts, whole_below(counts[0], rng), tree)
    change += update_path(counts, v, d, tree)
    if change >= 0.0 or rng.random() < math.exp(change):
        if s >= 0:
            special[s] -= d
        return 1
    update_path(counts, v, -d, tree)
    return 0


@inner
def update_special(special, tree, rng):
    """Step of each special cell by itself where n is secret, and between two of them where it is public."""
    for s in range(special.shape[0]):
        d = 1 + int(rng.standard_exponential() * tree.special_scale)
        d = d if rng.random() < 0.5 else -d
        other = whole_below(special.shape[0], rng) if tree.total >= 0 else -1
        if special[s] + d < 0 or (tree.total < 0 and special[s] + d > tree.most) or other == s:
            continue
        change = special_change(special, s, d, tree)
        if other >= 0:
            if special[other] - d < 0:
                continue
            change += special_change(special, other, -d, tree)
        if change >= 0.0 or rng.random() < math.exp(change):
            special[s] += d
            if other >= 0:
                special[other] -= d


@compiled
def shift_log(counts, a_index, u, v, d, tree):
    """Log of the posterior ratio when d records go from cell u to cell v, both as nodes of the deepest depth."""
    top = common_ancestor(u, v, tree)
    change = math.lgamma(counts[u] + 1.0) - math.lgamma(counts[u] - d + 1.0)
    change += math.lgamma(counts[v] + 1.0) - math.lgamma(counts[v] + d + 1.0)
    for side in range(2):
        node, moved = (u, -d) if side == 0 else (v, d)
        while node != top:
            change += measured_log(node, counts[node] + moved, tree) - measured_log(node, counts[node], tree)
            above = tree.parent[node]
            if tree.two[above]:
                a, r = tree.concentrations[a_index[above]], tree.share[above]
                change += side_rise(a, r if node == tree.child[above] else 1.0 - r, counts[node], moved)
                if above != top:
                    change -= whole_rise(a, counts[above], moved)
            node = above
    return change


@inner
def update_shift(counts, a_index, u, v, d, tree, rng):
    """Records, d of them, go from cell u to cell v, or stay. The pair and d are chosen without looking at the counts."""
    if u == v or counts[u] < d:
        return 0
    if d == 0:
        return 1
    change = shift_log(counts, a_index, u, v, d, tree)
    if change < 0.0 and rng.random() >= math.exp(change):
        return 0
    top = common_ancestor(u, v, tree)
    while u != top:
        counts[u] -= d
        counts[v] += d
        u, v = tree.parent[u], tree.parent[v]
    return 1


@inner
def update_swap(counts, a_index, u, v, tree, rng):
    """Two cells exchange their records, or keep them: its own way back, whatever the counts are."""
    if counts[u] >= counts[v]:
        return update_shift(counts, a_index, u, v, counts[u] - counts[v], tree, rng)
    return update_shift(counts, a_index, v, u, counts[v] - counts[u], tree, rng)
