"""Neal's algorithm 3 behind the channel: only the clustering is kept, atoms and confidential values are summed out.

For pairs that stay conjugate (`collapsed.collapsed_pairs`). Record i joins a cluster with weight (size + offset) times the
predictive density of z_i given the cluster's released values, or opens one (Neal 2000). Optional moves split and merge whole
clusters (split_merge.py). Atoms are drawn only for what is kept.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.choice import chosen_by_score
from privurn._kernels.mixtures.clusters import cluster_sizes, update_labels
from privurn._kernels.mixtures.collapsed import log_evidence, update_atom_from_seen, update_seen
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.latent import update_latent
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset
from privurn._kernels.mixtures.neal2 import N_SEEN, seen_of
from privurn._kernels.mixtures.neal5 import enlarged, enlarged_counts
from privurn._kernels.mixtures.split_merge import split_or_merge


@inner
def update_neal3(channel, kernel, mixing, s, z, c, seen, sizes, evidence, scores, where, rng):
    """Choose clusters from record where[0] on, until all are done or the rows run out; where = (next, clusters, rows)."""
    n, room = c.shape[0], seen.shape[0] - 1  # the last row is for trials
    i, k, used = where[0], where[1], where[2]
    shift = offset(mixing, s)
    trial = np.zeros((1, N_SEEN))
    while i < n and used < room:
        old = c[i]
        sizes[old] -= 1
        if sizes[old] == 0:
            k -= 1
            seen[old] = 0.0
            evidence[old] = 0.0
        else:
            update_seen(channel, kernel, seen, old, z[i], -1.0)
            evidence[old] = log_evidence(channel, kernel, seen, old)
        empty = -1
        for h in range(used + 1):
            scores[h] = -math.inf
            weight = 0.0
            if h < used and sizes[h] > 0:
                weight = sizes[h] + shift
            elif empty < 0:  # the first empty row stands for a new cluster
                empty = h
                weight = new_weight(mixing, s, k)
            if weight > 0.0:
                trial[0] = seen[h]
                update_seen(channel, kernel, trial, 0, z[i], 1.0)
                scores[h] = math.log(weight) + log_evidence(channel, kernel, trial, 0) - evidence[h]
        new = chosen_by_score(scores, used + 1, rng)
        if sizes[new] == 0:
            k += 1
            used = max(used, new + 1)
        update_seen(channel, kernel, seen, new, z[i], 1.0)
        evidence[new] = log_evidence(channel, kernel, seen, new)
        sizes[new] += 1
        c[i] = new
        i += 1
    where[0], where[1], where[2] = i, k, used


@compiled
def run_neal3(channel, kernel, mixing, z, c, y, atoms, strength, n_split_merge, n_scans, sweeps, thin, keep, rng):
    """Sweeps that change c, y and strength in place, fill `keep` (see kept.py; acceptance is that of splits and merges).

    Returns atoms drawn given the last clustering.
    """
    n = c.shape[0]
    where = np.empty(3, np.int64)
    accepted = 0.0
    for sweep in range(sweeps):
        k = atoms.shape[0]
        seen = seen_of(channel, kernel, z, c, k)
        sizes = cluster_sizes(c, k)
        where[0], where[1], where[2] = 0, k, k
        while where[0] < n:
            room = 2 * where[2] + 16
            longer = np.zeros((room, N_SEEN))
            longer[: seen.shape[0]] = seen
            seen, sizes = longer, enlarged_counts(sizes, room)
            evidence = np.zeros(room)
            for h in range(where[2]):
                evidence[h] = log_evidence(channel, kernel, seen, h)
            update_neal3(channel, kernel, mixing, strength[0], z, c, seen, sizes, evidence, np.empty(room), where, rng)
        atoms, sizes = update_labels(c, enlarged(atoms, max(where[2], atoms.shape[0])), where[2])
        for _ in range(n_split_merge):
            rate, atoms = split_or_merge(channel, kernel, mixing, strength[0], z, c, atoms, n_scans, rng)
            accepted += rate
        if n_split_merge > 0:
            atoms, sizes = update_labels(c, atoms, atoms.shape[0])
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            seen = seen_of(channel, kernel, z, c, atoms.shape[0])
            for h in range(atoms.shape[0]):
                update_atom_from_seen(channel, kernel, atoms, h, seen, h, rng)
            if keep[5].shape[0] > 0:
                for i in range(n):
                    update_latent(channel, kernel, z[i], y, i, atoms, c[i], rng)
            rate = accepted / (thin * n_split_merge) if n_split_merge > 0 else 1.0
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, rate, 1.0, rng)
            accepted = 0.0
    return atoms
