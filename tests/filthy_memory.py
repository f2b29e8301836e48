"""Memory that shows wherever interpreted code reads a number before it has written one."""

import numpy as np

clean_empty = np.empty


def filthy_empty(*args, **kwargs):
    """As numpy.empty, full of numbers that nothing survives."""
    found = clean_empty(*args, **kwargs)
    if found.dtype.kind == "f":
        found[...] = np.nan
    elif found.dtype.kind == "i":
        found[...] = max(-(2**40) - 1, np.iinfo(found.dtype).min)
    return found
