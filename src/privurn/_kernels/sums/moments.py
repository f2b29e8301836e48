"""Sums of columns and of their products, lane by lane, so that loops are vectors and the order of summation is always the same.

q         columns; packed sums: one for each column, then products (j, k), j <= k, row by row
summary   number of records, then the packed sums
"""

from numba.extending import register_jitable

BLOCK = 64
"""Records that are summed side by side."""


@register_jitable
def update_moments(columns, q, sums):
    """Add a block of columns (zeros where it is not full) to lane-wise sums."""
    at = q
    for j in range(q):
        for i in range(BLOCK):
            sums[j, i] += columns[j, i]
        for k in range(j, q):
            for i in range(BLOCK):
                sums[at, i] += columns[j, i] * columns[k, i]
            at += 1


@register_jitable
def update_lane_sums(sums, out):
    """Add up the lanes."""
    for j in range(len(out)):
        value = 0.0
        for i in range(BLOCK):
            value += sums[j, i]
        out[j] = value


@register_jitable
def moment(summary, q, j, k):
    """Entry (j, k) of the moment matrix of (1, columns)."""
    if j > k:
        j, k = k, j
    if j == 0:
        return summary[k]
    return summary[1 + q + (j - 1) * q - (j - 1) * (j - 2) // 2 + (k - j)]
