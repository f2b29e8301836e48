"""What is kept of a sweep, the same for all samplers.

keep = (n_clusters, strengths, weights, parameters, labels, latent, acceptance, atom_acceptance, cut), kept draws on the first
axis; an array without rows is not filled. Mixing measures differ in size: atoms of all draws lie one after the other in weights
(T draws,) and parameters (T draws, p), at most T of each. A row of `cut` is where a draw's atoms end, and the masses that
`update_measure` returns.
"""

from privurn._kernels.arrays import update_copied, update_entry
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.measures import update_measure


@inner
def update_kept(keep, t, kernel, mixing, s, c, y, atoms, sizes, accepted, moved, rng):
    """Write draw t: numbers, the mixing measure (drawn given the clusters), labels and latent values."""
    n_clusters, strengths, weights, parameters, labels, latent, acceptance, atom_acceptance, cut = keep
    if n_clusters.shape[0] > 0:
        n_clusters[t] = atoms.shape[0]
        strengths[t] = s
        acceptance[t] = accepted
        atom_acceptance[t] = moved
    if weights.shape[0] > 0:
        first = int(cut[t - 1, 0]) if t > 0 else 0
        end = first + weights.shape[0] // cut.shape[0]
        used, beyond, lumped = update_measure(kernel, mixing, s, atoms, sizes, weights[first:end], parameters[first:end], rng)
        cut[t, 0], cut[t, 1], cut[t, 2] = first + used, beyond, lumped
    if labels.shape[0] > 0:
        update_copied(labels[t], c)
    if latent.shape[0] > 0:
        for i in range(y.shape[0]):
            update_entry(latent[t], i, y, i)
