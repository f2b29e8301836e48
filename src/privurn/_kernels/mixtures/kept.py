"""What is kept of a sweep, the same for all samplers.

keep = (n_clusters, strengths, weights, parameters, labels, latent, acceptance, atom_acceptance), kept draws on the first axis;
an array without rows is not filled.
"""

from privurn._kernels.mixtures.clusters import update_measure
from privurn._kernels.mixtures.dispatch import inner


@inner
def update_kept(keep, t, kernel, mixing, s, c, y, atoms, sizes, accepted, moved, rng):
    """Write draw t: numbers, the mixing measure (drawn given the clusters), labels and latent values."""
    n_clusters, strengths, weights, parameters, labels, latent, acceptance, atom_acceptance = keep
    if n_clusters.shape[0] > 0:
        n_clusters[t] = atoms.shape[0]
        strengths[t] = s
        acceptance[t] = accepted
        atom_acceptance[t] = moved
    if weights.shape[0] > 0:
        update_measure(kernel, mixing, s, atoms, sizes, weights[t], parameters[t], rng)
    if labels.shape[0] > 0:
        labels[t] = c
    if latent.shape[0] > 0:
        latent[t] = y
