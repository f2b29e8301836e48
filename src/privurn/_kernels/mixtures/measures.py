"""Draws of the mixing measure, kept so that everything said of them is right: all clusters, then the rest.

The measure given the clusters is  sum_h w_h delta(theta_h) + r P'  (mixings.py). Kept are

1. every cluster with its weight;
2. sticks of the rest, each with an atom from the base measure H, until at most REST is left;
3. what is left, l P'', as few atoms from H whose weights have the sum l and the sum of squares l^2 t, where t is the
   probability that two draws from P'' are the same atom: 1/(s + 1) for a Dirichlet process of strength s.

Given the clusters and sticks, and for any functions f and g of an atom, E P''(f) = H(f) and Cov(P''(f), P''(g)) =
t Cov_H(f, g), and step 3 has both: means and covariances of all linear functionals (masses, means, densities) are exact
wherever the sticks end. Step 2 alone decides how fine the rest is beyond its second moments.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied, update_filled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.choice import chosen, heaviest_first
from privurn._kernels.mixtures.clusters import update_weights
from privurn._kernels.mixtures.kernels import log_kernel, update_derived, update_from_base
from privurn._kernels.mixtures.mixings import new_weight, offset, stick

REST = 1e-4
"""Sticks end where at most this is left."""

MOST_STICKS = 512
"""Or after so many: the rest of a Pitman-Yor process of large discount shrinks too slowly."""


@inner
def tie(mixing, s, k):
    """Probability that two draws from what is left beside k atoms are the same atom: the second joins the first in the urn."""
    joins = 1.0 + offset(mixing, s)
    return joins / (joins + max(new_weight(mixing, s, k + 1), 0.0))


@inner
def least_atoms(probability):
    """Fewest weights with sum 1 whose sum of squares can be `probability`."""
    return int(min(math.ceil(1.0 / probability - 1e-9), 1e9))


@inner
def update_tied(weights, first, size, total, probability):
    """Weights first..first+size-1 with sum `total` and sum of squares total^2 * probability, all equal but the last.

    Equal ones where that is not possible: `size` below 1 / probability, so that their squares are too large.
    """
    above = max(size * probability - 1.0, 0.0) if size > 1 else 0.0
    equal = (1.0 + math.sqrt(above / (size - 1.0))) / size if size > 1 else 1.0
    for t in range(first, first + size):
        weights[t] = total * equal
    weights[first + size - 1] = total * max(1.0 - (size - 1) * equal, 0.0)


@inner
def update_parameters(parameters, t, atoms, h):
    """Keep the parameters of atoms[h] in row t, without its derived numbers."""
    for e in range(parameters.shape[1]):
        parameters[t, e] = atoms[h, e]


@inner
def update_kept_atom(kernel, parameters, t, atom, rng):
    """Draw an atom from the base measure and keep its parameters."""
    update_from_base(kernel, atom, 0, rng)
    update_parameters(parameters, t, atom, 0)


@inner
def update_heaviest(kernel, heavy, rest, atoms, weights, parameters, rng):
    """Fewer places than clusters: all but one for the heaviest, and all else on one atom, drawn in proportion."""
    k, places = heavy.shape[0], weights.shape[0]
    order = heaviest_first(heavy)
    left = rest
    for t in range(k):
        if t < places - 1:
            weights[t] = heavy[order[t]]
            update_parameters(parameters, t, atoms, order[t])
        else:
            left += heavy[order[t]]
    t = places - 1
    weights[t] = left
    if rng.random() * left < rest:
        update_kept_atom(kernel, parameters, t, np.empty((1, atoms.shape[1])), rng)
    else:
        h = chosen(heavy[order], t, k, left - rest, rng)
        update_parameters(parameters, t, atoms, order[h])
    return places, left, left


@inner
def update_measure(kernel, mixing, s, atoms, sizes, weights, parameters, rng):
    """Draw the mixing measure given the clusters into the first places of weights (T,) and parameters (T, p).

    Returns the places in use, the mass beyond clusters and sticks, and what of it lies on fewer atoms than step 3 asks for
    because T is too small: means are right then, deviations too large.
    """
    k, places = sizes.shape[0], weights.shape[0]
    heavy = np.empty(k)
    rest = update_weights(heavy, mixing, s, sizes, rng) if k > 0 else 1.0
    if k + (1 if rest > 0.0 else 0) > places:
        return update_heaviest(kernel, heavy, rest, atoms, weights, parameters, rng)
    for h in range(k):
        weights[h] = heavy[h]
        update_parameters(parameters, h, atoms, h)
    atom = np.empty((1, atoms.shape[1]))
    used = k
    most = min(k + MOST_STICKS, places)
    while rest > REST and used < most and used + 1 + least_atoms(tie(mixing, s, used + 1)) <= places:
        share = stick(mixing, s, k, used - k + 1, rng)
        weights[used] = rest * share
        update_kept_atom(kernel, parameters, used, atom, rng)
        rest *= 1.0 - share
        used += 1
        if share == 1.0:
            break
    if rest <= 0.0:
        return used, 0.0, 0.0
    probability = tie(mixing, s, used)
    wanted = least_atoms(probability)
    size = min(wanted, places - used)
    update_tied(weights, used, size, rest, probability)
    for t in range(used, used + size):
        update_kept_atom(kernel, parameters, t, atom, rng)
    return used + size, rest, rest if size < wanted else 0.0


@compiled
def update_measures(kernel, mixing, strengths, atoms, sizes, weights, parameters, cut, rng):
    """Draw mixing measures given the same clusters, one for each strength; without clusters they are the prior's.

    Rows of weights (draws, T) and parameters (draws, T, p) are filled from the left, rows of cut are what `update_measure`
    returns.
    """
    for t in range(strengths.shape[0]):
        used, beyond, lumped = update_measure(kernel, mixing, strengths[t], atoms, sizes, weights[t], parameters[t], rng)
        cut[t, 0], cut[t, 1], cut[t, 2] = used, beyond, lumped


@compiled
def update_densities(densities, kernel, weights, parameters, width, grid):
    """Density of each kept measure at each entry of the grid: densities (draws, grid); an atom has `width` numbers."""
    atom = np.zeros((1, width))
    for t in range(weights.shape[0]):
        update_filled(densities[t], 0.0)
        for h in range(weights.shape[1]):
            if weights[t, h] > 0.0:
                update_copied(atom[0], parameters[t, h])
                update_derived(kernel, atom, 0)
                for g in range(grid.shape[0]):
                    densities[t, g] += weights[t, h] * math.exp(log_kernel(kernel, grid[g], atom, 0))
