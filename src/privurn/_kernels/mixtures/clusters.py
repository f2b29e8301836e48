"""What all samplers share: clusters numbered by first appearance, their atoms and weights drawn anew.

symbol  meaning
c       cluster of each record;  k clusters, numbered 0..k-1 in order of appearance between two sweeps
y       latent values, m for each record: those of record i are y[i m], ..., y[i m + m - 1]
s       strength of the mixing

Numbering after every sweep makes a chain independent of where a run is cut into pieces.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.kernels import update_atom, update_from_base, update_statistics
from privurn._kernels.mixtures.mixings import new_weight, offset

GOAL = 0.574
"""Acceptance rate of Langevin steps that is best in high dimensions, and good in two."""


@inner
def update_labels(c, atoms, used):
    """Number clusters by first appearance; returns their atoms in that order, and their sizes."""
    label = np.full(used, -1, np.int64)
    order = np.empty(used, np.int64)
    sizes = np.zeros(used, np.int64)
    k = 0
    for i in range(c.shape[0]):
        h = c[i]
        if label[h] < 0:
            label[h] = k
            order[k] = h
            k += 1
        c[i] = label[h]
        sizes[c[i]] += 1
    packed = np.empty((k, atoms.shape[1]))
    for h in range(k):
        update_copied(packed[h], atoms[order[h]])
    return packed, sizes[:k].copy()


@inner
def cluster_sizes(c, k):
    """How many records each of the k clusters has."""
    sizes = np.zeros(k, np.int64)
    for i in range(c.shape[0]):
        sizes[c[i]] += 1
    return sizes


@inner
def update_atoms(kernel, atoms, c, y, m, n_statistics, tuning, warming, rng):
    """Draw every atom given the latent values of its cluster; in warm-up the step is adapted. Returns the acceptance rate."""
    k = atoms.shape[0]
    statistics = np.zeros((k, n_statistics))
    for i in range(c.shape[0]):
        for j in range(i * m, i * m + m):
            update_statistics(kernel, statistics, c[i], y[j])
    total = 0.0
    for h in range(k):
        total += update_atom(kernel, atoms, h, statistics, math.exp(tuning[0]), rng)
    if warming:  # Robbins and Monro
        tuning[1] += 1.0
        tuning[0] = min(max(tuning[0] + (total / k - GOAL) * tuning[1] ** -0.6, -10.0), 2.0)
    return total / k


@inner
def update_weights(weights, mixing, s, sizes, rng):
    """Draw the weights of the clusters given their sizes, into the first places; returns what is left for new atoms."""
    k = sizes.shape[0]
    total = 0.0
    for h in range(k):
        weights[h] = rng.standard_gamma(sizes[h] + offset(mixing, s))
        total += weights[h]
    fresh = new_weight(mixing, s, k)
    rest = rng.standard_gamma(fresh) if fresh > 0.0 else 0.0
    total += rest
    for h in range(k):
        weights[h] /= total
    return rest / total


@compiled
def first_atoms(kernel, c, y, m, k, width, n_statistics, tuning, rng):
    """Atoms of k clusters before the first sweep: from the base measure, then moved towards the values of their members."""
    atoms = np.empty((k, width))
    for h in range(k):
        update_from_base(kernel, atoms, h, rng)
    update_atoms(kernel, atoms, c, y, m, n_statistics, tuning, False, rng)
    return atoms
