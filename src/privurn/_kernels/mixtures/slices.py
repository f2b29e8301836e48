"""Private slice sampler: the mixing measure is drawn, cut at slices, and all records move independently of each other.

One sweep, each step a draw from its full conditional (or a move that keeps it):

1. the measure given the clusters: (w, r) ~ Dirichlet(n_h + offset, ..., new_weight(k)), see mixings.py. Clusters carry no
   order, so the moves that exchange labels in stick-breaking samplers (Papaspiliopoulos and Roberts 2008) have nothing to do;
2. slices u_i ~ uniform(0, w of i's cluster), and sticks of the rest r with atoms from the base measure until what is left is
   below every slice: no atom beyond can be chosen (Walker 2007; Kalli, Griffin and Walker 2011);
3. the cluster of each record among the atoms with w_h > u_i, in proportion to f(y_i | atom), or to the marginal density of
   z_i where that is known (`Weighing`), and the latent value y_i given the atom and z_i;
4. the atoms given y, and the strength given the number of clusters.
"""

import math
from typing import NamedTuple

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied
from privurn._kernels.dispatch import generic, implement, inlined, inner
from privurn._kernels.mixtures.choice import chosen, heaviest_first
from privurn._kernels.mixtures.clusters import cluster_sizes, update_atoms, update_labels, update_weights
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import log_kernel, update_from_base
from privurn._kernels.mixtures.latent import log_marginal, update_latent
from privurn._kernels.mixtures.mixings import new_strength, stick
from privurn._kernels.mixtures.neal5 import enlarged

MOST_ATOMS = 1_000_000
"""Sticks of one sweep beyond this: the rest of a Pitman-Yor process shrinks too slowly for slices."""


class GivenLatent(NamedTuple):
    """Clusters are weighed by f(y_i | atom)."""

    on: int = 1


class GivenReleased(NamedTuple):
    """Clusters are weighed by the marginal density of z_i, y_i summed out: dearer, and mixes far better under much noise."""

    on: int = 1


@generic(on=1, often=True)
def log_weight(weighing, channel, kernel, z, y, atoms, h):
    """What a record says about its cluster."""


@implement(log_weight, GivenLatent)
def _(weighing, channel, kernel, z, y, atoms, h):
    return log_kernel(kernel, y, atoms, h)


@implement(log_weight, GivenReleased)
def _(weighing, channel, kernel, z, y, atoms, h):
    return log_marginal(channel, kernel, z, atoms, h)


@inner
def cut_measure(kernel, mixing, s, c, atoms, sizes, slices, rng):
    """Draw slices and the atoms above the lowest of them, heaviest first: weights and atoms (none where there are too many).

    Changes c to the new numbering.
    """
    k = atoms.shape[0]
    weights = np.empty(2 * k + 32)
    atoms = enlarged(atoms, 2 * k + 32)
    rest = update_weights(weights, mixing, s, sizes, rng)
    lowest = math.inf
    for i in range(c.shape[0]):
        slices[i] = rng.random() * weights[c[i]]
        lowest = min(lowest, slices[i])
    used = k
    while rest > lowest:
        if used == MOST_ATOMS:
            return weights[:0], atoms[:0]
        if used == weights.shape[0]:
            atoms = enlarged(atoms, 2 * used)
            longer = np.empty(2 * used)
            update_copied(longer, weights)
            weights = longer
        share = stick(mixing, s, k, used - k + 1, rng)
        weights[used] = rest * share
        rest -= weights[used]
        update_from_base(kernel, atoms, used, rng)
        used += 1
        if share == 1.0:
            break
    order = heaviest_first(weights[:used])
    rank, heavy, sorted_atoms = np.empty(used, np.int64), np.empty(used), np.empty((used, atoms.shape[1]))
    for t in range(used):
        rank[order[t]] = t
        heavy[t] = weights[order[t]]
        update_copied(sorted_atoms[t], atoms[order[t]])
    for i in range(c.shape[0]):
        c[i] = rank[c[i]]
    return heavy, sorted_atoms


@inlined
def cluster_above(weighing, channel, kernel, z, y, old, weights, atoms, slice_, scores, rng):
    """Cluster of one record among the atoms heavier than its slice; it keeps its old one where that is the only one."""
    n_above = 0
    top = -math.inf
    while n_above < weights.shape[0] and weights[n_above] > slice_:
        score = log_weight(weighing, channel, kernel, z, y, atoms, n_above)
        scores[n_above] = score
        top = max(top, score)
        n_above += 1
    if n_above < 2:
        return old
    mass = 0.0
    for h in range(n_above):
        scores[h] = math.exp(scores[h] - top)
        mass += scores[h]
    return chosen(scores, 0, n_above, mass, rng)


@inner
def update_records(weighing, channel, kernel, z, c, y, weights, atoms, slices, rng):
    """Draw the cluster and the latent value of every record; returns the acceptance rate of the latter."""
    scores = np.empty(atoms.shape[0])
    total = 0.0
    for i in range(c.shape[0]):
        c[i] = cluster_above(weighing, channel, kernel, z[i], y[i], c[i], weights, atoms, slices[i], scores, rng)
        total += update_latent(channel, kernel, z[i], y, i, atoms, c[i], rng)
    return total / c.shape[0]


@compiled
def run_slices(
    weighing, channel, kernel, mixing, z, c, y, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng
):
    """Sweeps that change c, y, strength and tuning in place and return the atoms; none where a sweep needs too many.

    `keep` is filled as kept.py says.
    """
    n = c.shape[0]
    slices = np.empty(n)
    sizes = cluster_sizes(c, atoms.shape[0])
    accepted, moved = 0.0, 0.0
    for sweep in range(sweeps):
        heavy, atoms = cut_measure(kernel, mixing, strength[0], c, atoms, sizes, slices, rng)
        if heavy.shape[0] == 0:
            return atoms
        accepted += update_records(weighing, channel, kernel, z, c, y, heavy, atoms, slices, rng)
        atoms, sizes = update_labels(c, atoms, atoms.shape[0])
        moved += update_atoms(kernel, atoms, c, y, 1, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            rates = accepted / thin, moved / thin
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, rates[0], rates[1], rng)
            accepted, moved = 0.0, 0.0
    return atoms
