"""Laws of a confidential value within a cluster: what a loop may ask of a kernel's record.

An atom is one row of `atoms`; a kernel may keep derived numbers at its end. y is an array with one entry (a number, or a row
of category numbers) for each record. What a cluster's members say about its atom is one row of `statistics`, a sum over them.
"""

import math

from privurn._kernels.dispatch import generic


@generic(on=1)
def update_from_base(kernel, atoms, h, rng):
    """Draw atoms[h] from the base measure."""


@generic(on=1, often=True)
def update_value(kernel, y, i, atoms, h, rng):
    """Draw y[i] from the kernel at atoms[h]."""


@generic(on=1, often=True)
def log_kernel(kernel, y, atoms, h):
    """Logarithm of f(y | atoms[h]) for one entry y of the array."""


@generic(on=1, default=True)
def update_derived(kernel, atoms, h):
    """Fill in the derived numbers of atoms[h] from its parameters; nothing to do for most kernels."""


@generic(on=1, often=True)
def update_statistics(kernel, statistics, h, y):
    """Add one entry y to statistics[h]."""


@generic(on=1)
def update_atom(kernel, atoms, h, statistics, step, rng):
    """Draw atoms[h] given statistics[h], by Gibbs or by a Metropolis step of size `step`; returns its acceptance rate."""


@generic(on=1, default=True)
def log_step(kernel, atoms, h, size, rng):
    """Propose another atom in the place of atoms[h]; returns the log ratio, new over old, of base density and proposal.

    `size` is that of the step, in deviations of the base measure, for kernels that walk; the answer for all others is a draw
    from the base measure, whose ratio is 1.
    """
    update_from_base(kernel, atoms, h, rng)
    return 0.0


@generic(on=1, default=True)
def log_pair_step(kernel, atoms, h, g, share, size, rng):
    """Move atoms[h] and atoms[g], which have the shares `share` and 1 - share of their mass, and this share.

    Mean and variance of the two together are kept: much noise hides all else. Returns the new share, and log(base density x
    proposal), new over old, where that of the share is meant on its logit scale. Kernels without such a step have ratio 0.
    """
    return share, -math.inf
