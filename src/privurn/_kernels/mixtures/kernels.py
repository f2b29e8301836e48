"""Laws of a confidential value within a cluster: what a loop may ask of a kernel's record.

An atom is one row of `atoms`; a kernel may keep derived numbers at its end. y is an array with one entry (a number, or a row
of category numbers) for each record. What a cluster's members say about its atom is one row of `statistics`, a sum over them.
"""

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
