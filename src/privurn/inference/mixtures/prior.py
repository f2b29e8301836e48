"""The prior of a mixture: atoms of the base measure, mixing measures, and densities of such measures."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.inference.mixtures.mixings import GammaPrior

Floats = NDArray[np.float64]

PRIOR_ATOMS = 20_000
MOST_ATOMS = 10_000
"""Atoms of a measure drawn from the prior."""

STICKS, LEAST_STICK = 200, 1e-4
"""Atoms of a measure that only intervals are taken of, at most, and their least weight."""


def grid_points(grid: ArrayLike, *, least: int = 1) -> Floats:
    """Points at which a density is asked for, checked."""
    try:
        points = np.asarray(grid, np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 1 or points.size < least or not np.isfinite(points).all():
        raise ModelError(f"a grid is a list of finite numbers, at least {least}.", hint="np.linspace(lower, upper, 200)")
    return points


def base_atoms(kernel: Any, atoms: int, *, seed: int = 0) -> Floats:
    """Parameters of so many draws from the base measure."""
    from privurn._kernels.dispatch import entry
    from privurn._kernels.mixtures.clusters import first_atoms

    columns, record = kernel.columns(), kernel.record()
    nobody = np.empty((0, columns), np.int64) if columns else np.empty(0)
    # Clusters without members: what a sampler starts from, with nothing to move it away from the base measure
    run = entry(first_atoms, record)
    sizes = 1, atoms, kernel.width, kernel.n_statistics
    drawn = run(record, np.empty(0, np.int64), nobody, *sizes, np.zeros(2), np.random.default_rng(seed))
    return np.asarray(drawn[:, : len(kernel.parameter_names)])


def prior_measures(model: Any, *, draws: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Mixing measures from the prior: weights (draws, atoms), parameters (draws, atoms, parameter).

    Sticks, and the rest as kept draws of the posterior have it (_kernels/mixtures/measures.py).
    """
    from privurn._kernels.dispatch import entry
    from privurn._kernels.mixtures.measures import update_measures

    rng, kernel, mixing = np.random.default_rng([seed, 1]), model.kernel.record(), model.mixing.record()
    strength = model.mixing.strength
    if isinstance(strength, GammaPrior):
        strengths = np.maximum(rng.gamma(strength.shape, size=draws) / strength.rate, 1e-300)
    else:
        strengths = np.full(draws, float(strength))
    weights = np.zeros((draws, MOST_ATOMS))
    parameters = np.zeros((draws, MOST_ATOMS, len(model.kernel.parameter_names)))
    nobody, cut = (np.empty((0, model.kernel.width)), np.empty(0, np.int64)), np.empty((draws, 3))
    entry(update_measures, kernel, mixing)(kernel, mixing, strengths, *nobody, weights, parameters, cut, rng)
    used = int(cut[:, 0].max())
    return weights[:, :used].copy(), parameters[:, :used].copy()


def rough_measures(model: Any, *, draws: int) -> tuple[Floats, Floats]:
    """As `prior_measures`, with so few atoms that intervals under the prior cost next to nothing."""
    rng, mixing = np.random.default_rng(0), model.mixing
    strength = getattr(mixing, "strength", mixing.first_strength)
    known = strength if not isinstance(strength, GammaPrior) else rng.gamma(strength.shape, size=(draws, 1)) / strength.rate
    if mixing.most_clusters < STICKS:
        k = int(mixing.most_clusters)
        weights = rng.dirichlet(np.full(k, mixing.first_strength / k), size=draws)
    else:
        discount = getattr(mixing, "discount", 0.0)
        broken = rng.beta(1.0 - discount, np.maximum(known + discount * np.arange(1, STICKS + 1), 1e-9), size=(draws, STICKS))
        weights = broken * np.cumprod(np.column_stack([np.ones(draws), 1.0 - broken[:, :-1]]), axis=1)
    weights = -np.sort(-np.where(weights < LEAST_STICK, 0.0, weights), axis=1)
    weights = weights[:, : max(1, int((weights > 0.0).sum(axis=1).max()))]
    atoms = base_atoms(model.kernel, PRIOR_ATOMS)[rng.integers(PRIOR_ATOMS, size=weights.shape)]
    return weights / weights.sum(axis=1, keepdims=True), atoms


def measure_densities(kernel: Any, weights: Floats, atoms: Floats, points: Floats) -> Floats:
    """Density of each mixing measure at each point: (measures, points)."""
    from privurn._kernels.dispatch import entry
    from privurn._kernels.mixtures.measures import update_densities

    out, record = np.empty((len(weights), len(points))), kernel.record()
    weights, atoms = np.ascontiguousarray(weights), np.ascontiguousarray(atoms)
    entry(update_densities, record)(out, record, weights, atoms, kernel.width, points)
    return out
