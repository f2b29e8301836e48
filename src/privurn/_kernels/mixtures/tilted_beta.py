"""Beta law against an exponential on either side of a point: the integrals that Laplace noise asks for.

    below(x) = integral over y < x of e^(-rate (x - y)) f(y; a, b),      above(x) = integral over y > x of e^(-rate (y - x)) f

With r = rate x,  below(x) = e^-r sum_k r^k / k! d_k,  where  d_k = E (y / x)^k 1(y < x)  falls with k and, by parts,

    d_k = ((a + b + k) x d_(k+1) + g) / (a + k),      g = x^a (1 - x)^b / B(a, b).

Nothing is subtracted on the way down, whatever a and b are, and the sum is cut where a Poisson(r) variable is larger with a
probability below 1e-15: so is its relative error, since d_k falls. The first d is an incomplete beta function. By symmetry
above(x) is the same at 1 - x with a and b exchanged, and g is the same.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.beta import log_beta
from privurn._kernels.mixtures.incomplete_beta import fraction, is_low, log_edge

TOGETHER = 64
"""Points that are worked out side by side: what depends on atom and k alone is worked out once for them."""


@inner
def terms(r):
    """Terms of a sum over Poisson(r) weights."""
    return int(r + 8.0 * math.sqrt(r) + 11.0)


@inner
def first_term(x, other, edge, a, b, k, ratio):
    """d_k at x = 1 - other, edge being g and ratio log(B(a + k, b) / B(a, b))."""
    if is_low(x, a + k, b):
        return edge * fraction(x, a + k, b) / (a + k)
    return max(math.exp(ratio - k * math.log(x)) - edge * fraction(other, b, a + k) / b, 0.0)


@inner
def update_side(x, other, edge, size, a, b, log_ab, rate, d, sums):
    """Fill sums with below(x) at the first `size` points x; `other` is 1 - x, and d room for as many numbers."""
    largest = 0.0
    for p in range(size):
        largest = max(largest, x[p])
    most = terms(rate * largest) if rate > 0.0 else 0
    ratio = log_beta(a + most, b) - log_ab
    for p in range(size):
        d[p] = first_term(x[p], other[p], edge[p], a, b, most, ratio)
        sums[p] = d[p]
    for k in range(most - 1, -1, -1):
        more, share, weight = (a + b + k) / (a + k), 1.0 / (a + k), rate / (k + 1.0)
        for p in range(size):
            d[p] = more * x[p] * d[p] + share * edge[p]
            sums[p] = d[p] + weight * x[p] * sums[p]
    for p in range(size):
        sums[p] *= math.exp(-rate * x[p])


@inner
def update_tilted(x, size, a, b, log_ab, rate, room):
    """Fill room[0] with below and room[1] with above at the first `size` points x, all within [0, 1].

    `room` is that of `tilted_room`, whose last row is free for the points.
    """
    other, edge = room[2], room[3]
    for p in range(size):
        other[p] = 1.0 - x[p]
        edge[p] = math.exp(log_edge(x[p], a, b, log_ab))
    update_side(x, other, edge, size, a, b, log_ab, rate, room[4], room[0])
    update_side(other, x, edge, size, b, a, log_ab, rate, room[4], room[1])


@inner
def tilted_room():
    """Six rows of TOGETHER places."""
    return np.empty((6, TOGETHER))
