"""Neal's algorithm 8 on the kernel behind the channel: the confidential values are summed out while clusters are chosen.

For pairs of channel and kernel whose marginal density g(z | atom) has a closed form (`latent.marginal_pairs`). Record i chooses
among the clusters of the others, each with weight (size + offset) g(z_i | atom), and m atoms from the base measure, each with
weight new_weight / m times its g; its own atom is one of the m where it is alone (Neal 2000, algorithm 8). Then each
confidential value is drawn from its exact law given z_i and its atom, and the atoms given these values: the values are drawn
afresh in every sweep, so that nothing of them is carried over.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.choice import chosen_by_score
from privurn._kernels.mixtures.clusters import cluster_sizes, update_atoms, update_labels
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import update_from_base
from privurn._kernels.mixtures.latent import log_marginal, update_latent
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset
from privurn._kernels.mixtures.neal5 import with_room


@inner
def update_choices(channel, kernel, mixing, s, z, c, atoms, sizes, free, fresh, scores, where, rng):
    """Choose clusters from record where[0] on, until all are done or the rows of atoms run out.

    where = (next record, clusters, rows of atoms in use, of which free); fresh has a row for each auxiliary atom.
    """
    n, room, m = c.shape[0], atoms.shape[0], fresh.shape[0]
    i, k, used, n_free = where[0], where[1], where[2], where[3]
    shift = offset(mixing, s)
    while i < n and used < room:
        old = c[i]
        alone = sizes[old] == 1
        others = k - 1 if alone else k
        sizes[old] -= 1
        for h in range(used):
            scores[h] = -math.inf
            if sizes[h] > 0:
                scores[h] = math.log(sizes[h] + shift) + log_marginal(channel, kernel, z[i], atoms, h)
        for j in range(m):
            if alone and j == 0:
                fresh[0] = atoms[old]
            else:
                update_from_base(kernel, fresh, j, rng)
        opening = new_weight(mixing, s, others) / m
        for j in range(m):
            scores[used + j] = -math.inf
            if opening > 0.0:
                scores[used + j] = math.log(opening) + log_marginal(channel, kernel, z[i], fresh, j)
        new = chosen_by_score(scores, used + m, rng)
        if new >= used:
            atom = fresh[new - used]
            if alone:
                new = old
            elif n_free > 0:
                n_free -= 1
                new = free[n_free]
                k += 1
            else:
                new = used
                used += 1
                k += 1
            atoms[new] = atom
        elif alone:
            free[n_free] = old
            n_free += 1
            k -= 1
        c[i] = new
        sizes[new] += 1
        i += 1
    where[0], where[1], where[2], where[3] = i, k, used, n_free


@compiled
def run_neal8(channel, kernel, mixing, z, c, y, m, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng):
    """Sweeps that change c, y, strength and tuning in place, fill `keep` (see kept.py) and return the atoms."""
    n = c.shape[0]
    sizes = cluster_sizes(c, atoms.shape[0])
    fresh = np.empty((m, atoms.shape[1]))
    where = np.empty(4, np.int64)
    moved = 0.0
    for sweep in range(sweeps):
        k = atoms.shape[0]
        free = np.empty(0, np.int64)
        where[0], where[1], where[2], where[3] = 0, k, k, 0
        while where[0] < n:
            atoms, sizes, free = with_room(atoms, sizes, free, where[2])
            scores = np.empty(atoms.shape[0] + m)
            update_choices(channel, kernel, mixing, strength[0], z, c, atoms, sizes, free, fresh, scores, where, rng)
        atoms, sizes = update_labels(c, atoms, where[2])
        for i in range(n):
            update_latent(channel, kernel, z[i], y, i, atoms, c[i], rng)
        moved += update_atoms(kernel, atoms, c, y, 1, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, 1.0, moved / thin, rng)
            moved = 0.0
    return atoms
