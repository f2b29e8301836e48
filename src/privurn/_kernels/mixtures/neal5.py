"""Private Neal 5: clusters proposed from the urn, latent values from the kernel, judged by the channel (pseudo-marginal).

State of record i: its cluster c[i] and m auxiliary values y[i m ...], drawn from the kernel at its cluster's atom. The mean of
q(z_i | y) over them is an unbiased estimate of the marginal density of z_i; its logarithm is kept in `level`.

A move of record i proposes a cluster by the urn without i (a new one with an atom from the base measure) and m values from
its kernel, and accepts with probability min(1, new estimate / old estimate). This keeps the law in which i has weight
urn x prod_j f(y_ij | atom) x estimate, whose marginal in (c, atoms) is the posterior. The atoms then are drawn given all y.
Where the channel is epsilon-differentially private, no estimate is below exp(-epsilon) times another: nor is the acceptance.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied, update_entry
from privurn._kernels.dispatch import inlined, inner
from privurn._kernels.mixtures.channels import log_density
from privurn._kernels.mixtures.choice import chosen_by_score
from privurn._kernels.mixtures.clusters import cluster_sizes, update_atoms, update_labels
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import update_from_base, update_value
from privurn._kernels.mixtures.mixings import new_strength, new_weight, offset


@inlined
def log_mean_density(channel, z, y, first, m):
    """Logarithm of the mean of q(z | y[first]), ..., q(z | y[first + m - 1])."""
    if m == 1:
        return log_density(channel, z, y[first])
    top = -math.inf
    for j in range(first, first + m):
        top = max(top, log_density(channel, z, y[j]))
    total = 0.0
    for j in range(first, first + m):
        total += math.exp(log_density(channel, z, y[j]) - top)
    return top + math.log(total / m)


@inlined
def cluster_of_urn(shift, fresh, c, sizes, i, k, used, rng):
    """Cluster that the urn without record i proposes for it, or -1 for a new one.

    Weights are sizes + shift for the k others and `fresh` for a new one. A uniform point on [0, n - 1 + ...) falls on a
    record, whose cluster it is, or beyond. Where shift is negative, the fraction that is left decides whether the point
    counts; if not, it is a point of the new cluster (whose weight holds what the others have lost), or is drawn again.
    """
    n, old = c.shape[0], c[i]
    lost = k * shift
    while True:
        x = rng.random() * (n - 1 + (lost + fresh if lost + fresh > 0.0 else fresh))
        if x < n - 1:
            j = int(x)
            h = c[j] if j < i else c[j + 1]
            if shift >= 0.0:
                return h
            size = sizes[h] - 1 if h == old else sizes[h]
            if (x - j) * size >= -shift:
                return h
            if lost + fresh > 0.0:
                return -1
        elif shift <= 0.0 or x >= n - 1 + lost:
            return -1
        else:  # one of the k others, all alike
            which = int((x - (n - 1)) / shift)
            for h in range(used):
                if sizes[h] > (1 if h == old else 0):
                    last = h
                    if which == 0:
                        break
                    which -= 1
            return last


@inner
def update_clusters(channel, kernel, mixing, s, z, c, y, trial, level, atoms, sizes, free, where, rng):
    """Move records from where[0] on, until all are done or the rows of atoms run out; returns the sum of acceptance rates.

    where = (next record, clusters, rows of atoms in use, of which free). Arrays keep their size here, so that the loop holds
    no reference counts.
    """
    n, m, room = c.shape[0], trial.shape[0], atoms.shape[0]
    i, k, used, n_free = where[0], where[1], where[2], where[3]
    shift = offset(mixing, s)
    total = 0.0
    while i < n and used < room:
        old = c[i]  # written out, as in `global_neal5.proposed` and `moved`: calls would cost a fifth of the sweep
        alone = sizes[old] == 1
        others = k - 1 if alone else k
        new = cluster_of_urn(shift, new_weight(mixing, s, others), c, sizes, i, others, used, rng)
        opens = new < 0
        if opens:
            new = free[n_free - 1] if n_free > 0 else used
            update_from_base(kernel, atoms, new, rng)
        for j in range(m):
            update_value(kernel, trial, j, atoms, new, rng)
        estimate = log_mean_density(channel, z[i], trial, 0, m)
        rate = math.exp(min(estimate - level[i], 0.0))
        total += rate
        if rng.random() < rate:
            for j in range(m):
                update_entry(y, i * m + j, trial, j)
            level[i] = estimate
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
    return total


@inner
def update_kept_values(channel, z, y, m, kept, rng):
    """One value for each record: of its m auxiliary ones, in proportion to q(z | y), which gives it the posterior law."""
    masses = np.empty(m)
    for i in range(z.shape[0]):
        j = 0
        if m > 1:
            for a in range(m):
                masses[a] = log_density(channel, z[i], y[i * m + a])
            j = chosen_by_score(masses, m, rng)
        update_entry(kept, i, y, i * m + j)


@inner
def enlarged(rows, room):
    """Rows copied to the top of an array with more of them."""
    larger = np.empty((room, rows.shape[1]))
    for h in range(rows.shape[0]):
        update_copied(larger[h], rows[h])
    return larger


@inner
def enlarged_counts(numbers, room):
    """Numbers, and zeros behind them."""
    larger = np.zeros(room, np.int64)
    update_copied(larger, numbers)
    return larger


@inner
def with_room(atoms, sizes, free, used):
    """Longer arrays for clusters that are opened beside the rows in use."""
    room = 2 * used + 16
    return enlarged(atoms, room), enlarged_counts(sizes, room), enlarged_counts(free, room)


@compiled
def run_neal5(channel, kernel, mixing, z, c, y, m, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng):
    """Sweeps that change c, y, strength and tuning in place, fill `keep` (see kept.py) and return the atoms."""
    latent = keep[5]
    others = (*keep[:5], latent[:0], *keep[6:])
    n = c.shape[0]
    level = np.empty(n)
    for i in range(n):
        level[i] = log_mean_density(channel, z[i], y, i * m, m)
    sizes = cluster_sizes(c, atoms.shape[0])
    trial = np.empty_like(y[:m])
    where = np.empty(4, np.int64)
    accepted, moves = 0.0, 0.0
    for sweep in range(sweeps):
        k = atoms.shape[0]
        where[0], where[1], where[2], where[3] = 0, k, k, 0
        free = np.empty(0, np.int64)
        while where[0] < n:
            atoms, sizes, free = with_room(atoms, sizes, free, where[2])
            accepted += update_clusters(
                channel, kernel, mixing, strength[0], z, c, y, trial, level, atoms, sizes, free, where, rng
            )
        atoms, sizes = update_labels(c, atoms, where[2])
        moves += update_atoms(kernel, atoms, c, y, m, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            t, rates = sweep // thin, (accepted / (n * thin), moves / thin)
            update_kept(others, t, kernel, mixing, strength[0], c, y, atoms, sizes, rates[0], rates[1], rng)
            if latent.shape[0] > 0:  # one of m for each record
                update_kept_values(channel, z, y, m, latent[t], rng)
            accepted, moves = 0.0, 0.0
    return atoms
