"""Memory that shows wherever interpreted code reads a number before it has written one."""

import numpy as np

clean_empty = np.empty


def filthy_empty(*args, **kwargs):
    """As numpy.empty, full of numbers that nothing survives."""
    found = clean_empty(*args, **kwargs)
    if found.dtype.kind in "fi":
        found[...] = np.nan if found.dtype.kind == "f" else -(2**40) - 1
    return found
