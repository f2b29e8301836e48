"""The exact integer urns: uniform integers in, released values out. The integers' law is the only randomness.

Proof: docs/proofs/integer-urn.md; enumeration: tests/exact/test_urn_law.py.

Symbols: q slots a ball; p = q theta and r = q sigma slots for new values (Pitman-Yor); draws[i] is uniform on
[0, start + q i) where start is the urn's first number of slots. A released record is a ball of its own from then on, so
reinforcement is "copy an earlier draw" and needs no update of counts.
"""

import numpy as np

from privurn._kernels._compile import compiled


@compiled
def guide_table(ends, shift):
    """For each block of 2**shift integers, the first position whose end lies beyond the block's start."""
    n_blocks = (ends[-1] >> shift) + 1
    guide = np.empty(n_blocks, np.int64)
    position = 0
    for block in range(n_blocks):
        while position < ends.shape[0] - 1 and ends[position] <= (block << shift):
            position += 1
        guide[block] = position
    return guide


@compiled
def find(value, ends, guide, shift):
    """First position with ends[position] > value; expected O(1) with at least as many blocks as positions."""
    position = guide[value >> shift]
    while ends[position] <= value:
        position += 1
    return position


@compiled
def update_cells(draws, q, uniform_slots, cell_slots, ends, guide, shift, cells, out):
    """Public-domain urn (Dirichlet-multinomial).

    The slots are, in order: `uniform_slots` shared evenly by all cells (`cell_slots` each), the slots of the listed
    `cells` (cumulative `ends`), and q for each earlier draw.
    """
    start = uniform_slots + ends[-1]
    for i in range(draws.shape[0]):
        u = draws[i]
        if u < uniform_slots:
            out[i] = u // cell_slots
        elif u < start:
            out[i] = cells[find(u - uniform_slots, ends, guide, shift)]
        else:
            out[i] = out[(u - start) // q]


@compiled
def update_tables(draws, p, q, r, ends, guide, shift, out, opened):
    """Pitman-Yor urn: out[i] is a table, old ones 0..k-1, new ones k, k+1, ... in order of appearance.

    `ends` are cumulative counts of the confidential values (balls, not slots); draws[i] is uniform on
    [0, p + q (n + i)). The first r slots of the ball that opened a table belong to "new". For p < 0 the first -p of
    those slots of ball 0 are left out by the shift below, which is right because p > -r. Returns the number of new tables.
    """
    n = ends[-1]
    k = ends.shape[0]
    n_new = 0
    for i in range(draws.shape[0]):
        v = draws[i] - p
        table = -1
        if v >= 0:
            ball = v // q
            slot = v - ball * q
            if ball < n:
                table = find(ball, ends, guide, shift)
                opens = ball == (ends[table - 1] if table > 0 else 0)
            else:
                table = out[ball - n]
                opens = opened[ball - n]
            if opens and slot < r:
                table = -1
        opened[i] = table < 0
        if table < 0:
            table = k + n_new
            n_new += 1
        out[i] = table
    return n_new


@compiled
def update_new_tables(uniforms, strength, discount, out, opened):
    """Floating-point twin for simulation: tables of a Chinese restaurant with uniforms[i] on [0, 1). Returns how many."""
    n_tables = 0
    for i in range(uniforms.shape[0]):
        v = uniforms[i] * (strength + i) - strength
        table = -1
        if v >= 0.0:
            ball = min(i - 1, int(v))
            if not (opened[ball] and v - ball < discount):
                table = out[ball]
        opened[i] = table < 0
        if table < 0:
            table = n_tables
            n_tables += 1
        out[i] = table
    return n_tables
