"""Records counted by sets of columns, set by set within a block of records: both fit into the processor's caches."""

from privurn._kernels._compile import compiled

BLOCK = 4096
"""Records at a time."""


@compiled
def update_marginals(codes, columns, strides, starts, counts):
    """Add every record to its cell of every marginal.

    `codes[j, i]`: cell of record i in column j. Marginal s is of the columns `columns[s]`, of which those at -1 do not count;
    its cells begin at `starts[s]` and are numbered by `strides[s]`.
    """
    rows = codes.shape[1]
    for first in range(0, rows, BLOCK):
        last = min(first + BLOCK, rows)
        for s in range(columns.shape[0]):
            a, b, c = columns[s, 0], columns[s, 1], columns[s, 2]
            start = starts[s]
            if c >= 0:
                over, across = strides[s, 0], strides[s, 1]
                for i in range(first, last):
                    counts[start + over * codes[a, i] + across * codes[b, i] + codes[c, i]] += 1
            elif b >= 0:
                over = strides[s, 0]
                for i in range(first, last):
                    counts[start + over * codes[a, i] + codes[b, i]] += 1
            else:
                for i in range(first, last):
                    counts[start + codes[a, i]] += 1
