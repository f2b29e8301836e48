"""Slice sampler from one output for all records.

The mixing measure is drawn and cut at slices as in slices.py. Then, one record after the other (they depend on each other
through W), its cluster is drawn given its value, and its value moves by a Metropolis step: y' from the kernel at its cluster's
atom, accepted with probability min(1, q(W | y_i replaced by y') / q(W | y)), which is at least exp(-epsilon) where the channel
is epsilon-differentially private with respect to replacing one record.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_entry
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.clusters import cluster_sizes, update_atoms, update_labels
from privurn._kernels.mixtures.global_channels import log_ratio, total_of, update_total
from privurn._kernels.mixtures.kept import update_kept
from privurn._kernels.mixtures.kernels import update_value
from privurn._kernels.mixtures.mixings import new_strength
from privurn._kernels.mixtures.slices import GivenLatent, cluster_above, cut_measure


@inner
def update_records(statistic, noise, kernel, w, c, y, total, weights, atoms, slices, rng):
    """Draw the cluster and move the value of every record; returns the acceptance rate of the latter."""
    scores = np.empty(atoms.shape[0])
    trial = np.empty_like(y[:1])
    rates = 0.0
    for i in range(c.shape[0]):
        c[i] = cluster_above(GivenLatent(1), noise, kernel, w, y[i], c[i], weights, atoms, slices[i], scores, rng)
        update_value(kernel, trial, 0, atoms, c[i], rng)
        rate = math.exp(min(log_ratio(statistic, noise, w, total, y[i], trial[0]), 0.0))
        rates += rate
        if rng.random() < rate:
            update_total(total, statistic, y[i], trial[0])
            update_entry(y, i, trial, 0)
    return rates / c.shape[0]


@compiled
def run_global_slices(
    statistic, noise, kernel, mixing, w, c, y, atoms, strength, tuning, n_statistics, sweeps, thin, warming, keep, rng
):
    """Sweeps that change c, y, strength and tuning in place and return the atoms; none where a sweep needs too many."""
    n = c.shape[0]
    total = total_of(statistic, y, w.shape[0])
    slices = np.empty(n)
    sizes = cluster_sizes(c, atoms.shape[0])
    accepted, moved = 0.0, 0.0
    for sweep in range(sweeps):
        heavy, atoms = cut_measure(kernel, mixing, strength[0], c, atoms, sizes, slices, rng)
        if heavy.shape[0] == 0:
            return atoms
        accepted += update_records(statistic, noise, kernel, w, c, y, total, heavy, atoms, slices, rng)
        atoms, sizes = update_labels(c, atoms, atoms.shape[0])
        moved += update_atoms(kernel, atoms, c, y, 1, n_statistics, tuning, warming, rng)
        strength[0] = new_strength(mixing, strength[0], atoms.shape[0], n, rng)
        if (sweep + 1) % thin == 0:
            rates = accepted / thin, moved / thin
            update_kept(keep, sweep // thin, kernel, mixing, strength[0], c, y, atoms, sizes, rates[0], rates[1], rng)
            accepted, moved = 0.0, 0.0
    return atoms
