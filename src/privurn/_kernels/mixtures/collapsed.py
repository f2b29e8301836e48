"""Pairs of channel and kernel that stay conjugate behind the channel: atoms and confidential values both summed out.

What the released values z of a cluster say is one row of `seen`, a sum over them; `log_evidence` is the log density of all of
them together. `collapsed_pairs` says which pairs have it.
"""

from privurn._kernels.dispatch import generic


@generic(on=2)
def update_seen(channel, kernel, seen, h, z, sign):
    """Add (sign 1) or remove (sign -1) one released value."""


@generic(on=2)
def log_evidence(channel, kernel, seen, h):
    """Log of the integral of prod g(z | atom) over the base measure, for the values in seen[h]."""


@generic(on=2)
def update_atom_from_seen(channel, kernel, atoms, h, seen, row, rng):
    """Draw atoms[h] given the released values in seen[row]."""


def collapsed_pairs():
    """Types of channel and kernel for which all of this exists."""
    return set(log_evidence.table)
