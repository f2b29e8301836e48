"""Neal's algorithm 2 behind the channel: clusters have atoms; a new cluster is weighed by its evidence, then gets its atom.

For pairs that stay conjugate (`collapsed.collapsed_pairs`). Record i chooses an old cluster with weight (size + offset)
g(z_i | atom), or a new one with new_weight times the evidence of z_i alone, whose atom is drawn given z_i (Neal 2000). Then all
atoms are drawn given the released values of their clusters. The confidential values appear nowhere.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.choice import chosen_by_score
from privurn._kernels.mixtures.clusters import cluster_sizes, update_labels
from privurn._kernels.mixtures.collapsed import log_evidence, update_atom_from_seen, update_seen
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.latent import log_marginal, update_latent
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset
from privurn._kernels.mixtures.neal5 import with_room

N_SEEN = 3


@inner
def update_neal2(channel, kernel, mixing, s, z, c, atoms, sizes, free, scores, where, rng):
    """Choose clusters from record where[0] on, until all are done or the rows of atoms run out; where as in neal8.py."""
    n, room = c.shape[0], atoms.shape[0]
    i, k, used, n_free = where[0], where[1], where[2], where[3]
    shift = offset(mixing, s)
    alone_seen = np.zeros((1, N_SEEN))
    while i < n and used < room:
        old = c[i]
        sizes[old] -= 1
        if sizes[old] == 0:
            free[n_free] = old
            n_free += 1
            k -= 1
        for h in range(used):
            scores[h] = -math.inf
            if sizes[h] > 0:
                scores[h] = math.log(sizes[h] + shift) + log_marginal(channel, kernel, z[i], atoms, h)
        alone_seen[:] = 0.0
        update_seen(channel, kernel, alone_seen, 0, z[i], 1.0)
        opening = new_weight(mixing, s, k)
        scores[used] = -math.inf
        if opening > 0.0:
            scores[used] = math.log(opening) + log_evidence(channel, kernel, alone_seen, 0)
        new = chosen_by_score(scores, used + 1, rng)
        if new == used:
            if n_free > 0:
                n_free -= 1
                new = free[n_free]
            else:
                used += 1
            k += 1
            update_atom_from_seen(channel, kernel, atoms, new, alone_seen, 0, rng)
        c[i] = new
        sizes[new] += 1
        i += 1
    where[0], where[1], where[2], where[3] = i, k, used, n_free


@inner
def seen_of(channel, kernel, z, c, k):
    """What each cluster has seen, summed afresh: nothing depends on how a run is cut into pieces."""
    seen = np.zeros((k, N_SEEN))
    for i in range(c.shape[0]):
        update_seen(channel, kernel, seen, c[i], z[i], 1.0)
    return seen


@compiled
def run_neal2(channel, kernel, mixing, z, c, y, atoms, strength, sweeps, thin, keep, rng):
    """Sweeps that change c, y and strength in place, fill `keep` (see kept.py) and return the atoms."""
    n = c.shape[0]
    sizes = cluster_sizes(c, atoms.shape[0])
    where = np.empty(4, np.int64)
    for sweep in range(sweeps):
        k = atoms.shape[0]
        free = np.empty(0, np.int64)
        where[0], where[1], where[2], where[3] = 0, k, k, 0
        while where[0] < n:
            atoms, sizes, free = with_room(atoms, sizes, free, where[2])
            scores = np.empty(atoms.shape[0] + 1)
            update_neal2(channel, kernel, mixing, strength[0], z, c, atoms, sizes, free, scores, where, rng)
        atoms, sizes = update_labels(c, atoms, where[2])
        seen = seen_of(channel, kernel, z, c, atoms.shape[0])
        for h in range(atoms.shape[0]):
            update_atom_from_seen(channel, kernel, atoms, h, seen, h, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            if keep[5].shape[0] > 0:
                for i in range(n):
                    update_latent(channel, kernel, z[i], y, i, atoms, c[i], rng)
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, 1.0, 1.0, rng)
    return atoms
