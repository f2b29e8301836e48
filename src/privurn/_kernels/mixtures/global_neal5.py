"""Neal 5 from one output for all records: a record's cluster and value are proposed together and judged by the channel.

State: clusters c, one value y[i] for each record, and the channel's sum `total` of them. A move of record i proposes a cluster
by the urn without i (a new one with an atom from the base measure) and a value y' from its kernel, and accepts with
probability min(1, q(W | y_i replaced by y') / q(W | y)): the proposal is the prior's conditional law of (c_i, y_i), so only
the channel is left in the ratio. The atoms are then drawn given y. Where the channel is epsilon-differentially private with
respect to replacing one record, no acceptance probability is below exp(-epsilon).
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.mixtures.clusters import update_atoms, update_labels
from privurn._kernels.mixtures.dispatch import inner
from privurn._kernels.mixtures.global_channels import log_ratio, total_of, update_total
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import update_from_base, update_value
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset
from privurn._kernels.mixtures.neal5 import cluster_of_urn, enlarged, enlarged_counts


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
        old = c[i]
        alone = sizes[old] == 1
        others = k - 1 if alone else k
        new = cluster_of_urn(shift, new_weight(mixing, s, others), c, sizes, i, others, used, rng)
        opens = new < 0
        if opens:
            new = free[n_free - 1] if n_free > 0 else used
            update_from_base(kernel, atoms, new, rng)
        update_value(kernel, trial, 0, atoms, new, rng)
        rate = math.exp(min(log_ratio(statistic, noise, w, total, y[i], trial[0]), 0.0))
        rates += rate
        if rng.random() < rate:
            update_total(total, statistic, y[i], trial[0])
            y[i] = trial[0]
            if opens:
                if n_free > 0:
                    n_free -= 1
                else:
                    used += 1
                sizes[new] = 0
            if new != old:
                c[i] = new
                sizes[new] += 1
                sizes[old] -= 1
                if alone:
                    free[n_free] = old
                    n_free += 1
                k = others + 1 if opens else others
        i += 1
    where[0], where[1], where[2], where[3] = i, k, used, n_free
    return rates


@compiled
def run_global_neal5(
    statistic, noise, kernel, mixing, w, c, y, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng
):
    """Sweeps that change c, y, strength and tuning in place and return the atoms; `keep` as in kept.py."""
    n = c.shape[0]
    total = total_of(statistic, y, w.shape[0])
    sizes = np.zeros(atoms.shape[0], np.int64)
    for i in range(n):
        sizes[c[i]] += 1
    where = np.empty(4, np.int64)
    accepted, moved = 0.0, 0.0
    for sweep in range(sweeps):
        k = atoms.shape[0]
        where[:] = 0, k, k, 0
        free = np.empty(0, np.int64)
        while where[0] < n:
            room = 2 * where[2] + 16
            atoms, sizes, free = enlarged(atoms, room), enlarged_counts(sizes, room), enlarged_counts(free, room)
            accepted += update_clusters(
                statistic, noise, kernel, mixing, strength[0], w, c, y, total, atoms, sizes, free, where, rng
            )
        atoms, sizes = update_labels(c, atoms, where[2])
        moved += update_atoms(kernel, atoms, c, y, 1, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            rates = accepted / (n * thin), moved / thin
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, rates[0], rates[1], rng)
            accepted, moved = 0.0, 0.0
    return atoms
