"""Kernels on finitely many values. y holds rows of category numbers, one for each column.

`CategoricalKernel` is the latent-class model of tables: within a cluster the columns are independent, each with probabilities
~ Dirichlet(prior). Columns lie one after the other: column j has the entries starts[j]..starts[j + 1]-1 of an atom. An atom
is the probabilities, then their logarithms; statistics are counts.

`ComponentsKernel` mixes components that are known: an atom is the number of one, drawn from `base`, and log_f[atom, y] its law.
"""

import math
from typing import NamedTuple

import numpy as np

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.channels import Table
from privurn._kernels.mixtures.choice import chosen
from privurn._kernels.mixtures.kernels import (
    log_kernel,
    update_atom,
    update_derived,
    update_from_base,
    update_statistics,
    update_value,
)
from privurn._kernels.mixtures.latent import log_marginal, update_latent

SMALLEST = 1e-300


class CategoricalKernel(NamedTuple):
    """Independent categorical columns with Dirichlet probabilities."""

    starts: np.ndarray
    prior: np.ndarray


@inner
def _update_dirichlet(kernel, atoms, h, statistics, row, rng):
    """Probabilities of every column from Dirichlet(prior + statistics[row])."""
    size = kernel.prior.shape[0]
    for j in range(kernel.starts.shape[0] - 1):
        total = 0.0
        for e in range(kernel.starts[j], kernel.starts[j + 1]):
            atoms[h, e] = max(rng.standard_gamma(kernel.prior[e] + statistics[row, e]), SMALLEST)
            total += atoms[h, e]
        for e in range(kernel.starts[j], kernel.starts[j + 1]):
            atoms[h, e] = max(atoms[h, e] / total, SMALLEST)
            atoms[h, size + e] = math.log(atoms[h, e])


@implement(update_from_base, CategoricalKernel)
def _(kernel, atoms, h, rng):
    _update_dirichlet(kernel, atoms, h, np.zeros((1, kernel.prior.shape[0])), 0, rng)


@implement(update_derived, CategoricalKernel)
def _(kernel, atoms, h):
    size = kernel.prior.shape[0]
    for e in range(size):
        atoms[h, size + e] = math.log(max(atoms[h, e], SMALLEST))


@implement(update_value, CategoricalKernel)
def _(kernel, y, i, atoms, h, rng):
    for j in range(kernel.starts.shape[0] - 1):
        y[i, j] = chosen(atoms[h], kernel.starts[j], kernel.starts[j + 1], 1.0, rng) - kernel.starts[j]


@implement(log_kernel, CategoricalKernel)
def _(kernel, y, atoms, h):
    total = 0.0
    for j in range(kernel.starts.shape[0] - 1):
        total += atoms[h, kernel.prior.shape[0] + kernel.starts[j] + y[j]]
    return total


@implement(update_statistics, CategoricalKernel)
def _(kernel, statistics, h, y):
    for j in range(kernel.starts.shape[0] - 1):
        statistics[h, kernel.starts[j] + y[j]] += 1.0


@implement(update_atom, CategoricalKernel)
def _(kernel, atoms, h, statistics, step, rng):
    _update_dirichlet(kernel, atoms, h, statistics, h, rng)
    return 1.0


@implement(update_latent, Table, CategoricalKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    """Exact: finitely many values in every column."""
    for j in range(kernel.starts.shape[0] - 1):
        first, end = kernel.starts[j], kernel.starts[j + 1]
        mass = np.empty(end - first)
        total = 0.0
        for v in range(end - first):
            mass[v] = atoms[h, first + v] * math.exp(channel.log_q[j, v, z[j]])
            total += mass[v]
        y[i, j] = chosen(mass, 0, end - first, total, rng)
    return 1.0


@implement(log_marginal, Table, CategoricalKernel)
def _(channel, kernel, z, atoms, h):
    logs = 0.0
    for j in range(kernel.starts.shape[0] - 1):
        first, end = kernel.starts[j], kernel.starts[j + 1]
        total = 0.0
        for v in range(end - first):
            total += atoms[h, first + v] * math.exp(channel.log_q[j, v, z[j]])
        logs += math.log(total)
    return logs


class ComponentsKernel(NamedTuple):
    """Known components over one column of categories: prior probability of each, and log_f[component, value]."""

    base: np.ndarray
    log_f: np.ndarray


@implement(update_from_base, ComponentsKernel)
def _(kernel, atoms, h, rng):
    atoms[h, 0] = chosen(kernel.base, 0, kernel.base.shape[0], 1.0, rng)


@implement(update_value, ComponentsKernel)
def _(kernel, y, i, atoms, h, rng):
    law = np.exp(kernel.log_f[int(atoms[h, 0])])
    y[i, 0] = chosen(law, 0, law.shape[0], 1.0, rng)


@implement(log_kernel, ComponentsKernel)
def _(kernel, y, atoms, h):
    return kernel.log_f[int(atoms[h, 0]), y[0]]


@implement(update_statistics, ComponentsKernel)
def _(kernel, statistics, h, y):
    statistics[h, y[0]] += 1.0


@implement(update_atom, ComponentsKernel)
def _(kernel, atoms, h, statistics, step, rng):
    logs = np.log(kernel.base)
    for a in range(logs.shape[0]):
        for v in range(statistics.shape[1]):
            if statistics[h, v] > 0.0:
                logs[a] += statistics[h, v] * kernel.log_f[a, v]
    mass = np.exp(logs - logs.max())
    atoms[h, 0] = chosen(mass, 0, mass.shape[0], mass.sum(), rng)
    return 1.0


@implement(update_latent, Table, ComponentsKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    mass = np.exp(kernel.log_f[int(atoms[h, 0])] + channel.log_q[0, :, z[0]])
    y[i, 0] = chosen(mass, 0, mass.shape[0], mass.sum(), rng)
    return 1.0


@implement(log_marginal, Table, ComponentsKernel)
def _(channel, kernel, z, atoms, h):
    return math.log(np.exp(kernel.log_f[int(atoms[h, 0])] + channel.log_q[0, :, z[0]]).sum())
