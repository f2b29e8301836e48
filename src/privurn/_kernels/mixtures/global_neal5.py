"""Neal 5 from one output for all records: a record's cluster and value are proposed together and judged by the channel.

State: clusters c, one value y[i] for each record, and the channel's sum `total` of them. A move of record i proposes a cluster
by the urn without i (a new one with an atom from the base measure) and a value y' from its kernel, and accepts with
probability min(1, q(W | y_i replaced by y') / q(W | y)): the proposal is the prior's conditional law of (c_i, y_i), so only
the channel is left in the ratio. Where the channel is epsilon-differentially private with respect to replacing one record, no
acceptance probability is below exp(-epsilon); but little noise refuses most values, and clusters with them. So every record
then is proposed another cluster by the urn with the value that it has, accepted with probability min(1, f(y_i | its atom) /
f(y_i | the old one)) (Neal 2000, algorithm 5), which the channel has no part in. The atoms are then drawn given y.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_entry
from privurn._kernels.dispatch import inlined, inner
from privurn._kernels.mixtures.clusters import cluster_sizes, update_atoms, update_labels
from privurn._kernels.mixtures.global_channels import log_ratio, total_of, update_total
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import log_kernel, update_from_base, update_value
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset
from privurn._kernels.mixtures.neal5 import cluster_of_urn, with_room


@inlined
def proposed(kernel, mixing, s, shift, c, i, atoms, sizes, free, k, used, n_free, rng):
    """Cluster that the urn proposes for record i, and whether it is new: its atom then is drawn into the next free row."""
    others = k - 1 if sizes[c[i]] == 1 else k
    new = cluster_of_urn(shift, new_weight(mixing, s, others), c, sizes, i, others, used, rng)
    if new >= 0:
        return new, False
    new = free[n_free - 1] if n_free > 0 else used
    update_from_base(kernel, atoms, new, rng)
    return new, True


@inlined
def moved(c, i, new, opens, sizes, free, k, used, n_free):
    """Put record i into the cluster that was proposed; returns clusters, rows of atoms in use, and how many are free."""
    old = c[i]
    if opens:
        if n_free > 0:
            n_free -= 1
        else:
            used += 1
        sizes[new] = 0
        k += 1
    if new != old:
        c[i] = new
        sizes[new] += 1
        sizes[old] -= 1
        if sizes[old] == 0:
            free[n_free] = old
            n_free += 1
            k -= 1
    return k, used, n_free


@inner
def update_clusters(statistic, noise, kernel, mixing, s, w, c, y, total, atoms, sizes, free, where, rng):
    """Move records from where[0] on, until all are done or the rows of atoms run out; returns the sum of acceptance rates.

    where = (next record, clusters, rows of atoms in use, of which free).
    """
    n, room = c.shape[0], atoms.shape[0]
    i, k, used, n_free = where[0], where[1], where[2], where[3]
    shift = offset(mixing, s)
    trial = np.empty_like(y[:1])
    rates = 0.0
    while i < n and used < room:
        new, opens = proposed(kernel, mixing, s, shift, c, i, atoms, sizes, free, k, used, n_free, rng)
        update_value(kernel, trial, 0, atoms, new, rng)
        rate = math.exp(min(log_ratio(statistic, noise, w, total, y[i], trial[0]), 0.0))
        rates += rate
        if rng.random() < rate:
            update_total(total, statistic, y[i], trial[0])
            update_entry(y, i, trial, 0)
            k, used, n_free = moved(c, i, new, opens, sizes, free, k, used, n_free)
        i += 1
    where[0], where[1], where[2], where[3] = i, k, used, n_free
    return rates


@inner
def update_clusters_given_values(kernel, mixing, s, c, y, atoms, sizes, free, where, rng):
    """Move records from where[0] on to other clusters with their values, until all are done or the rows of atoms run out."""
    n, room = c.shape[0], atoms.shape[0]
    i, k, used, n_free = where[0], where[1], where[2], where[3]
    shift = offset(mixing, s)
    while i < n and used < room:
        new, opens = proposed(kernel, mixing, s, shift, c, i, atoms, sizes, free, k, used, n_free, rng)
        if new != c[i]:
            ratio = log_kernel(kernel, y[i], atoms, new) - log_kernel(kernel, y[i], atoms, c[i])
            if rng.random() < math.exp(min(ratio, 0.0)):
                k, used, n_free = moved(c, i, new, opens, sizes, free, k, used, n_free)
        i += 1
    where[0], where[1], where[2], where[3] = i, k, used, n_free


@compiled
def run_global_neal5(
    statistic, noise, kernel, mixing, w, c, y, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng
):
    """Sweeps that change c, y, strength and tuning in place and return the atoms; `keep` as in kept.py."""
    n = c.shape[0]
    total = total_of(statistic, y, w.shape[0])
    sizes = cluster_sizes(c, atoms.shape[0])
    where = np.empty(4, np.int64)
    accepted, moves = 0.0, 0.0
    for sweep in range(sweeps):
        for with_values in (True, False):
            k = atoms.shape[0]
            where[0], where[1], where[2], where[3] = 0, k, k, 0
            free = np.empty(0, np.int64)
            while where[0] < n:
                atoms, sizes, free = with_room(atoms, sizes, free, where[2])
                if with_values:
                    accepted += update_clusters(
                        statistic, noise, kernel, mixing, strength[0], w, c, y, total, atoms, sizes, free, where, rng
                    )
                else:
                    update_clusters_given_values(kernel, mixing, strength[0], c, y, atoms, sizes, free, where, rng)
            atoms, sizes = update_labels(c, atoms, where[2])
        moves += update_atoms(kernel, atoms, c, y, 1, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            rates = accepted / (n * thin), moves / thin
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, rates[0], rates[1], rng)
            accepted, moves = 0.0, 0.0
    return atoms
