"""One exact step on a line of whole numbers: a fresh draw where the line is short, else slice sampling.

Slice sampling (Neal 2003) with stepping out and shrinkage keeps every law, log-concave or not, for every width. The points
at which stepping out stops lie on one grid, shared by both directions: from every point of the final interval the same
interval is reached with the same probability, also when the number of steps is limited, provided the limit is
divided at random between the directions. The cost does not depend on the length of the line.

`density`: what line_log takes after the point, see count_lines.py.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.counts.count_lines import line_log
from privurn._kernels.whole_numbers import whole_below

MOST_STEPS = 64

BOTTOM, TOP = -(2**60), 2**60


@compiled
def fresh_point(line, lo, hi, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Independent draw from the law on lo, ..., hi, all of it evaluated."""
    size = hi - lo + 1
    weights = np.empty(size)
    most = -math.inf
    for x in range(size):
        weights[x] = line_log(line, lo + x, prior, settings, factors, hidden, counts, noisy, kept, sums)
        most = max(most, weights[x])
    total = 0.0
    for x in range(size):
        weights[x] = math.exp(weights[x] - most)
        total += weights[x]
    left = rng.random() * total
    for x in range(size - 1):
        left -= weights[x]
        if left < 0.0:
            return lo + x
    last = size - 1
    while weights[last] == 0.0:  # rounding must not reach a point without mass
        last -= 1
    return lo + last


@compiled
def slice_point(line, x, lo, hi, width, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """From x to a point of lo, ..., hi by stepping out in blocks of `width` and shrinking."""
    level = line_log(line, x, prior, settings, factors, hidden, counts, noisy, kept, sums) - rng.standard_exponential()
    left = x - whole_below(width, rng)
    right = left + width  # first point of the next block
    backwards = whole_below(MOST_STEPS, rng)
    forwards = MOST_STEPS - 1 - backwards
    while backwards > 0 and left >= lo:
        if line_log(line, left, prior, settings, factors, hidden, counts, noisy, kept, sums) < level:
            break
        left -= width
        backwards -= 1
    while forwards > 0 and right <= hi:
        if line_log(line, right, prior, settings, factors, hidden, counts, noisy, kept, sums) < level:
            break
        right += width
        forwards -= 1
    left = max(left, lo)
    right = min(right - 1, hi)
    while True:
        y = left + whole_below(right - left + 1, rng)
        if y == x or line_log(line, y, prior, settings, factors, hidden, counts, noisy, kept, sums) >= level:
            return y
        if y < x:
            left = y + 1
        else:
            right = y - 1


@compiled
def next_point(line, x, lo, hi, width, window, rng, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """A step from x that leaves the law of the line as it is."""
    if hi <= lo:
        return x
    if hi - lo < window:
        return fresh_point(line, lo, hi, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
    return slice_point(line, x, lo, hi, width, rng, prior, settings, factors, hidden, counts, noisy, kept, sums)
