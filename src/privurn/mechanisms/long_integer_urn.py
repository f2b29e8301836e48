"""The urns of _kernels/urn.py in integers of any length: the same slots in the same order, so the same law.

For an alpha, strength or discount of so many digits that the slots do not fit in 63 bits. Some microseconds a record,
where the kernels need a fraction of one. tests/exact/test_long_integer_urn.py compares the two on every sequence of integers.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.integer_urn import Slots
from privurn.privacy.entropy import Entropy


def draw_cells(slots: Slots, *, records: int, entropy: Entropy) -> NDArray[np.int64]:
    """Cells in order of drawing: `update_cells` for one integer after the other."""
    out = np.empty(records, np.int64)
    start, ends = slots.total, slots.ends.tolist()
    for i, u in enumerate(entropy.below_long_ramp(start, step=slots.per_ball, size=records)):
        if u < slots.uniform:
            out[i] = u // slots.per_cell
        elif u < start:
            out[i] = slots.cells[bisect_right(ends, u - slots.uniform)]
        else:
            out[i] = out[(u - start) // slots.per_ball]
    return out


def draw_tables(
    p: int, q: int, r: int, ends: NDArray[np.int64], *, records: int, entropy: Entropy
) -> tuple[NDArray[np.int64], int]:
    """Tables in order of drawing, and how many are new: `update_tables` for one integer after the other."""
    out, opened = np.empty(records, np.int64), np.empty(records, np.bool_)
    balls, k, n_new = ends.tolist(), len(ends), 0
    n = balls[-1]
    for i, u in enumerate(entropy.below_long_ramp(p + q * n, step=q, size=records)):
        v = u - p
        table, opens = -1, False
        if v >= 0:
            ball, slot = divmod(v, q)
            if ball < n:
                table = bisect_right(balls, ball)
                opens = ball == (balls[table - 1] if table > 0 else 0)
            else:
                table, opens = int(out[ball - n]), bool(opened[ball - n])
            if opens and slot < r:
                table = -1
        opened[i] = table < 0
        if table < 0:
            table = k + n_new
            n_new += 1
        out[i] = table
    return out, n_new
