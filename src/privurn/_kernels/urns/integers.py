"""Exact uniform integers from uniform 63-bit words, and exact shuffles. Integers only: no rounding anywhere."""

from privurn._kernels._compile import compiled

WORD = 2**63 - 1
"""Words are uniform on 0..WORD."""


@compiled
def update_below(words, first, step, out, rejected):
    """out[i] uniform on [0, first + step i) from words[i]; positions whose word must be redrawn go to `rejected`.

    A word w is kept when it lies below the largest multiple of the bound; then w mod bound is exactly uniform.
    Returns the number of rejected positions.
    """
    n_rejected = 0
    for i in range(words.shape[0]):
        bound = first + step * i
        rest = words[i] % bound
        if words[i] - rest > WORD - bound + 1:
            rejected[n_rejected] = i
            n_rejected += 1
        else:
            out[i] = rest
    return n_rejected


@compiled
def update_shuffled(values, picks):
    """Fisher-Yates in place: picks[i] uniform on [0, i + 1)."""
    for i in range(values.shape[0] - 1, 0, -1):
        j = picks[i]
        held = values[i]
        values[i] = values[j]
        values[j] = held
