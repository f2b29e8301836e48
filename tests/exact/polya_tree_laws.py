"""The posterior of a noisy tree on tiny domains, all states listed: brute force that shares nothing with the kernels."""

import itertools
import math

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.splits import CONCENTRATIONS
from privurn.privacy.additive_noise import log_mass


def tables(cells, n):
    """All counts with sum n."""
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in tables(cells - 1, n - first):
            yield (first, *rest)


def split_law(left, count, a, r):
    """Beta-binomial, or binomial where a is infinite."""
    choose = gammaln(count + 1) - gammaln(left + 1) - gammaln(count - left + 1)
    if math.isinf(a):
        return choose + left * math.log(r) + (count - left) * math.log(1 - r)
    return choose + betaln(a * r + left, a * (1 - r) + count - left) - betaln(a * r, a * (1 - r))


def node_counts(tree, counts):
    return [tree.sums(np.asarray(counts, np.int64), depth) for depth in range(tree.depth + 1)]


def split_nodes(splits):
    """(depth, node) of every node with two children."""
    return [(depth, u) for depth in range(splits.depth) for u in np.flatnonzero(splits.two[depth])]


def prior_log(splits, counts, indices):
    """Log probability of the counts given their total and the index of each split's concentration."""
    sums = node_counts(splits.tree, counts)
    total = 0.0
    for (depth, u), index in zip(split_nodes(splits), indices, strict=True):
        left = sums[depth + 1][splits.children[depth][u]]
        total += split_law(left, sums[depth][u], CONCENTRATIONS[index], splits.shares[depth][u])
    return total


def noise_log(measured, counts, special=()):
    sums = node_counts(measured.tree, counts)
    total = 0.0
    for depth, noisy, (kind, scale) in zip(measured.depths, measured.noisy, measured.noise, strict=True):
        total += float(log_mass((noisy - sums[depth]).astype(float), noise=kind, scale=scale).sum())
    if len(special):
        kind, scale = measured.special_noise
        total += float(log_mass(np.array(measured.special, float) - np.array(special), noise=kind, scale=scale).sum())
    return total


def log_dirichlet(parameters, rng):
    """Logarithms of a Dirichlet draw; small parameters make numbers that no float holds."""
    logs = np.log(rng.standard_gamma(parameters + 1.0)) + np.log1p(-rng.random(len(parameters))) / parameters
    return logs - logsumexp(logs)


def indices_log(splits, indices):
    """Log probability of the concentrations' indices, their weights integrated out at every depth."""
    size, total = len(CONCENTRATIONS), 0.0
    for depth in range(splits.depth):
        used = [i for (d, _), i in zip(split_nodes(splits), indices, strict=True) if d == depth]
        counted = np.bincount(used, minlength=size) if used else np.zeros(size)
        hyper = splits.hyper[depth]
        total += gammaln(sum(hyper)) - gammaln(sum(hyper) + len(used)) + np.sum(gammaln(hyper + counted) - gammaln(hyper))
    return total


class Enumerated:
    """All (counts of cells and special cells, indices) with their posterior probabilities; n at most `largest` where secret."""

    def __init__(self, measured, base=None, largest=None):
        self.measured, self.splits = measured, prior_splits(measured, base)
        cells, special = measured.tree.cells, len(measured.special)
        if measured.total is not None:
            self.tables = list(tables(cells + special, measured.total))
        else:
            inside = [table for n in range(largest + 1) for table in tables(cells, n)]
            beside = list(itertools.product(range(largest + 1), repeat=special))
            self.tables = [(*one, *other) for one in inside for other in beside]
        n_splits = len(split_nodes(self.splits))
        self.indices = list(itertools.product(range(len(CONCENTRATIONS)), repeat=n_splits))
        given = np.array([indices_log(self.splits, each) for each in self.indices])
        logs = np.array(
            [
                [prior_log(self.splits, table[:cells], each) for each in self.indices]
                + given
                + noise_log(measured, table[:cells], table[cells:])
                for table in self.tables
            ]
        )
        weights = np.exp(logs - logs.max())
        self.joint = weights / weights.sum()
        self.probabilities = self.joint.sum(axis=1)

    def means(self):
        return np.array(self.tables).T @ self.probabilities

    def deviations(self):
        return np.sqrt(np.maximum((np.array(self.tables) ** 2).T @ self.probabilities - self.means() ** 2, 0.0))

    def draw(self, size, rng):
        """Exact independent draws: the table's number and the indices."""
        flat = rng.choice(self.joint.size, size=size, p=self.joint.ravel())
        which, index = np.unravel_index(flat, self.joint.shape)
        return which, [self.indices[i] for i in index]

    def state(self, which, indices, rng):
        """The chain's state."""
        cells, splits = self.measured.tree.cells, self.splits
        table = self.tables[which]
        offset = np.concatenate([[0], np.cumsum([splits.tree.nodes(d) for d in range(splits.depth + 1)])])
        concentrations = np.zeros(offset[splits.depth], np.int64)
        found = splits.hyper.copy()
        for (depth, u), index in zip(split_nodes(splits), indices, strict=True):
            concentrations[offset[depth] + u] = index
            found[depth, index] += 1
        return {
            "counts": np.concatenate(node_counts(splits.tree, table[:cells])).astype(np.int64),
            "special": np.array(table[cells:], np.int64),
            "concentrations": concentrations,
            "log_weights": np.array([log_dirichlet(row, rng) for row in found]),
        }
