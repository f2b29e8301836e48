"""Masses of equal cells between the public bounds, of every drawn density: what figures of the population are worked out from.

A cell has its density at the middle times its width. Densities of some kernels have no bound at the ends of their support:
near these a cell has the mass that its atoms give it. What lies beyond the bounds is told likewise.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.inference.mixtures.fitted import FittedMixture
from privurn.inference.mixtures.kernels import Kernel
from privurn.inference.mixtures.prior import measure_densities

Floats = NDArray[np.float64]

CELLS = 256
"""Where only densities tell what lies beyond the bounds."""

NEAR, LIGHTEST = 8.0, 1e-9
"""Cells from an end of the support, and the weight of atoms that are left out there."""


def masses_within_bounds(posterior: FittedMixture, grid: Floats) -> Floats:
    """Masses of the cells around a grid's points in every draw, scaled to 1; where all lies beyond the bounds they are even."""
    masses = posterior.densities(grid) * (grid[1] - grid[0])
    if "atoms" in posterior.draws:
        _count_ends(masses, posterior, grid)
    total = masses.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, masses / np.maximum(total, 1e-300), 1.0 / len(grid))


def mass_beyond(kernel: Kernel, weights: Floats, atoms: Floats, bounds: tuple[float, float]) -> Floats:
    """What each measure has beyond the bounds: nothing of kernels whose support lies within them, where nothing was clamped."""
    (lower, upper), (low, high) = bounds, kernel.support()
    if lower <= low and high <= upper:
        return np.zeros(len(weights))
    held = weights > 0.0  # other places have no atom
    below, up_to = kernel.below(atoms[held], lower), kernel.below(atoms[held], upper)
    if below is not None and up_to is not None:
        return np.asarray(np.bincount(np.nonzero(held)[0], weights[held] * (below + 1.0 - up_to), len(weights)), np.float64)
    step = (upper - lower) / CELLS
    heights = measure_densities(kernel, weights, atoms, np.asarray(lower + step * (np.arange(CELLS) + 0.5), np.float64))
    inside = np.where(np.isfinite(heights), heights, 0.0).sum(axis=1) * step
    return np.asarray(np.maximum(0.0, 1.0 - inside), np.float64)


def _count_ends(masses: Floats, posterior: FittedMixture, grid: Floats) -> None:
    """Cells near the ends of the support, for kernels that know the mass of their atoms up to a point."""
    kernel, step = posterior.model.kernel, grid[1] - grid[0]
    weights, atoms = posterior.draws.flat("weights"), posterior.draws.flat("atoms")
    held = weights > LIGHTEST
    draw, kept, share = np.nonzero(held)[0], atoms[held], weights[held]
    if kernel.below(kept[:1], 0.0) is None:
        return
    near = np.flatnonzero(np.min([np.abs(grid - end) for end in kernel.support()], axis=0) < NEAR * step)
    edges = np.unique(np.concatenate([near, near + 1]))
    below = {i: np.bincount(draw, share * kernel.below(kept, grid[0] + (i - 0.5) * step), len(weights)) for i in edges.tolist()}
    for i in near.tolist():
        masses[:, i] = below[i + 1] - below[i]
