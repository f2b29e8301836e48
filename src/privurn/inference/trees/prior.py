"""Draws from the Polya tree itself, before anything was released."""

import numpy as np
from numpy.typing import NDArray

from privurn.inference.trees.splits import CONCENTRATIONS, Splits

Floats = NDArray[np.float64]


def prior_masses(splits: Splits, *, special: int, draws: int, rng: np.random.Generator) -> Floats:
    """Masses of the cells by number and then of the special cells, (cell, draw): concentrations by their weights, then splits.

    All ways to divide the records between the tree and the special cells are equally likely.
    """
    masses = np.ones((1, draws))
    for depth in range(splits.depth):
        first, two, shares = splits.children[depth], splits.two[depth], splits.shares[depth]
        weights = np.cumsum(rng.dirichlet(splits.hyper[depth], size=draws), axis=1)
        chosen = (rng.random((int(two.sum()), draws, 1)) > weights[:, :-1]).sum(axis=2)
        a, r = np.array(CONCENTRATIONS)[chosen], shares[two, None]
        finite = np.where(np.isinf(a), 1.0, a)
        theta = np.where(np.isinf(a), r, rng.beta(np.maximum(finite * r, 1e-9), np.maximum(finite * (1.0 - r), 1e-9)))
        below = np.empty((splits.tree.nodes(depth + 1), draws))
        below[first[~two]] = masses[~two]
        below[first[two]], below[first[two] + 1] = masses[two] * theta, masses[two] * (1.0 - theta)
        masses = below
    cells = np.empty_like(masses)
    cells[splits.tree.order] = masses
    if not special:
        return cells
    beside = rng.dirichlet(np.ones(special + 1), size=draws).T
    return np.vstack([cells * beside[0], beside[1:]])
