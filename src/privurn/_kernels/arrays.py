"""Copying and filling arrays in compiled code, as plain loops.

`target[:] = source` says the same, but numba then compiles the checks of NumPy's broadcasting and the words of their errors
into every kernel: seconds of compiling each.
"""

from numba.extending import register_jitable


@register_jitable
def update_copied(target, source):
    """Copy `source` into the first places of `target`."""
    for j in range(len(source)):
        target[j] = source[j]


@register_jitable
def update_entry(target, i, source, j):
    """Copy entry j of `source` to entry i of `target`: a number, or a row of numbers."""
    if target.ndim == 1:
        target[i] = source[j]
    else:
        for e in range(target.shape[1]):
            target[i, e] = source[j, e]


@register_jitable
def update_filled(target, value):
    """Put `value` everywhere."""
    for j in range(len(target)):
        target[j] = value
