"""Sweeps of the chain on a tree's counts, concentrations and weights; and the population's probabilities. Symbols: counts.py.

Every choice of what to try is made without looking at the state: pairs of cells and numbers of records come from laws that
are symmetric in the pair, so nothing but the posterior's ratio is needed.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.trees.counts import order_log
from privurn._kernels.trees.moves import update_record, update_shift, update_special, update_swap, update_total
from privurn._kernels.trees.redraws import update_redraw
from privurn._kernels.whole_numbers import whole_below


class Plan(NamedTuple):
    """What a sweep tries: numbers of `records` and `shifts`, nodes to `redraw`.

    `steps`: how many records a shift of each cell is about. `ends`: cumulative chances of cells in shifts between any two.
    """

    records: int
    shifts: int
    redraw: Any
    steps: Any
    ends: Any


@inner
def update_concentrations(a_index, counts, log_weights, tree, rng):
    """A concentration for every split, given its counts."""
    size = tree.concentrations.shape[0]
    logs = np.empty(size)
    for v in range(tree.cells):
        if not tree.two[v]:
            continue
        left, count = counts[tree.child[v]], counts[v]
        top = -math.inf
        for j in range(size):
            logs[j] = log_weights[tree.depth[v], j]
            if count > 0:
                logs[j] += order_log(left, count, tree.concentrations[j], tree.share[v])
            top = max(top, logs[j])
        total = 0.0
        for j in range(size):
            logs[j] = math.exp(logs[j] - top)
            total += logs[j]
        rest = rng.random() * total
        chosen = 0
        while chosen < size - 1 and rest >= logs[chosen]:
            rest -= logs[chosen]
            chosen += 1
        a_index[v] = chosen


@inner
def update_weights(log_weights, a_index, tree, rng):
    """Weights of the concentrations at every depth, given those of its splits: Dirichlet."""
    found = np.empty(log_weights.shape)
    for depth in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            found[depth, j] = tree.hyper[depth, j]
    for v in range(tree.cells):
        if tree.two[v]:
            found[tree.depth[v], a_index[v]] += 1.0
    for depth in range(log_weights.shape[0]):
        top, total = -math.inf, 0.0
        for j in range(log_weights.shape[1]):
            # Gamma(a) is Gamma(a + 1) U^(1/a): its logarithm, which a small a does not bring below the least float
            one_more = math.log(rng.standard_gamma(found[depth, j] + 1.0))
            log_weights[depth, j] = one_more + math.log1p(-rng.random()) / found[depth, j]
            top = max(top, log_weights[depth, j])
        for j in range(log_weights.shape[1]):
            total += math.exp(log_weights[depth, j] - top)
        for j in range(log_weights.shape[1]):
            log_weights[depth, j] -= top + math.log(total)


@inner
def any_cell(ends, rng):
    """A cell by its cumulative chance: the first that ends beyond a point. np.searchsorted would be dear to compile."""
    point = rng.random() * ends[-1]
    low, high = 0, ends.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def update_shifts(counts, a_index, tree, plan, rng):
    """Shifts and swaps between cells of the same parent, of neighbouring subtrees, and anywhere; returns the share accepted."""
    cells = plan.steps.shape[0]
    accepted = 0
    for turn in range(plan.shifts):
        if turn % 2 == 0:
            i, j = any_cell(plan.ends, rng), any_cell(plan.ends, rng)
        else:  # two cells below the same node of a random depth
            i = whole_below(cells, rng)
            v = tree.cells + i
            for _ in range(1 + whole_below(tree.depth[tree.cells], rng)):
                v = tree.parent[v]
            low, high = v, v
            while tree.child[low] >= 0:
                low, high = tree.child[low], tree.child[high] + tree.two[high]
            j = low - tree.cells + whole_below(high - low + 1, rng)
        if turn % 4 >= 2:
            accepted += update_swap(counts, a_index, tree.cells + i, tree.cells + j, tree, rng)
            continue
        step = min(plan.steps[i], plan.steps[j])
        d = 1 + int(rng.standard_exponential() * step)
        accepted += update_shift(counts, a_index, tree.cells + i, tree.cells + j, d, tree, rng)
    return accepted / max(plan.shifts, 1)


@compiled
def update_tree(counts, special, a_index, log_weights, tree, plan, sweeps, rng):
    """Sweeps; returns the mean acceptance of (records, shifts, redraws)."""
    moved, shifted, redrawn = 0.0, 0.0, 0.0
    secret = tree.total < 0 or special.shape[0] > 0
    for _ in range(sweeps):
        taken = 0
        for turn in range(plan.records):
            if secret and turn % 4 == 0:
                update_total(counts, special, a_index, tree, rng)
            taken += update_record(counts, a_index, tree, rng)
        update_special(special, tree, rng)
        shifted += update_shifts(counts, a_index, tree, plan, rng)
        fresh = 0
        for i in range(plan.redraw.shape[0]):
            fresh += update_redraw(counts, plan.redraw[i], a_index, tree, rng)
        update_concentrations(a_index, counts, log_weights, tree, rng)
        update_weights(log_weights, a_index, tree, rng)
        moved += taken / max(plan.records, 1)
        redrawn += fresh / max(plan.redraw.shape[0], 1)
    return moved / sweeps, shifted / sweeps, redrawn / sweeps


@compiled
def update_population(masses, counts, special, a_index, tree, rng):
    """Probabilities of the cells, in tree order, and then of the special ones, given counts and concentrations."""
    found = np.empty(counts.shape[0])
    whole = rng.standard_gamma(1.0 + counts[0])
    total = whole
    cells = counts.shape[0] - tree.cells
    for s in range(special.shape[0]):
        masses[cells + s] = rng.standard_gamma(1.0 + special[s])
        total += masses[cells + s]
    for s in range(special.shape[0]):
        masses[cells + s] /= total
    found[0] = whole / total
    for v in range(tree.cells):
        first = tree.child[v]
        if not tree.two[v]:
            found[first] = found[v]
            continue
        a, r = tree.concentrations[a_index[v]], tree.share[v]
        theta = r
        if a < math.inf:
            x = rng.standard_gamma(a * r + counts[first])
            y = rng.standard_gamma(a * (1.0 - r) + counts[first + 1])
            theta = x / (x + y) if x + y > 0.0 else (1.0 if rng.random() < r else 0.0)
        found[first] = theta * found[v]
        found[first + 1] = (1.0 - theta) * found[v]
    for i in range(cells):
        masses[i] = found[tree.cells + i]
