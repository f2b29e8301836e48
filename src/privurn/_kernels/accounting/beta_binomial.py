"""Beta-binomial probabilities from the mode outwards: products of ratios, normalised by their own sum.

No logarithm of a gamma function is involved, so nothing of the size of m cancels.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.old_values import NEGLIGIBLE

DROPPED = 1e-45
UNDERFLOW = 1e-300


@compiled
def trimmed(now, lo, hi):
    """Range of states without the negligible ends."""
    while hi > lo and now[hi] < DROPPED:
        hi -= 1
    while lo < hi and now[lo] < DROPPED:
        lo += 1
    return lo, hi


@compiled
def beta_binomial_weights(m, a, b):
    """Probabilities of 0..m under the beta-binomial(m, a, b) law, from the mode outwards."""
    weights = np.zeros(m + 1)
    if a <= 1.0:
        mode = 0 if b > 1.0 or a < b else m
    elif b <= 1.0:
        mode = m
    else:
        mode = min(m, int((m + 1.0) * (a - 1.0) / (a + b - 2.0)))
    weights[mode] = 1.0
    for i in range(mode, m):
        weights[i + 1] = weights[i] * ((m - i) / (i + 1.0) * (a + i) / (b + (m - i - 1.0)))
    for i in range(mode, 0, -1):
        weights[i - 1] = weights[i] * (i / (m - i + 1.0) * (b + (m - i)) / (a + (i - 1.0)))
    return weights / weights.sum()


@compiled
def beta_binomial_window(m, A, B):
    """(start, weights): beta-binomial(m, A, B) probabilities, the ends below DROPPED left out."""
    if B < 1.0:
        weights = beta_binomial_weights(m, A, B)
        lo, hi = trimmed(weights, 0, m)
        return lo, weights[lo : hi + 1]
    mode = 0 if A <= 1.0 or A + B <= 2.0 else int(min(m, (m + 1.0) * (A - 1.0) / (A + B - 2.0)))
    lo = mode
    weight = 1.0
    while lo > 0 and weight > DROPPED:
        weight *= lo / (m - lo + 1.0) * (B + (m - lo)) / (A + (lo - 1.0))
        lo -= 1
    hi = mode
    weight = 1.0
    while hi < m and weight > DROPPED:
        weight *= (m - hi) / (hi + 1.0) * (A + hi) / (B + (m - hi - 1.0))
        hi += 1
    weights = np.empty(hi - lo + 1)
    weights[mode - lo] = 1.0
    for i in range(mode, hi):
        weights[i + 1 - lo] = weights[i - lo] * ((m - i) / (i + 1.0) * (A + i) / (B + (m - i - 1.0)))
    for i in range(mode, lo, -1):
        weights[i - 1 - lo] = weights[i - lo] * (i / (m - i + 1.0) * (B + (m - i)) / (A + (i - 1.0)))
    return lo, weights / weights.sum()


@compiled
def tail_weights(m, A, B, first):
    """P(S = s) for s = start, start + 1, ... under beta-binomial(m, A, B) with A > 1, where start >= first.

    Returns (start, weights). Weights that cannot matter are left out: below `start` they total less than NEGLIGIBLE,
    above the end less than 1e-17 of those kept. Empty when all of them underflow.
    """
    mode = m if B <= 1.0 else min(m, math.floor((m + 1.0) * (A - 1.0) / (A + B - 2.0)))
    total = 0.0
    weight = 1.0
    s = mode
    below = np.zeros(256)
    n_below = 0
    while s > 0.0:  # below the mode
        ratio = s / (m - s + 1.0) * (B + (m - s)) / (A + (s - 1.0))
        weight *= ratio
        s -= 1.0
        total += weight
        if s >= first:
            if n_below == below.shape[0]:
                wider = np.zeros(2 * n_below)
                for i in range(n_below):  # numba takes seconds to compile the assignment of a slice
                    wider[i] = below[i]
                below = wider
            below[n_below] = weight
            n_below += 1
        if ratio < 1.0 and weight * s < NEGLIGIBLE * total:
            break
    above = np.zeros(256)
    n_above = 0
    kept = 0.0
    weight = 1.0
    s = mode
    while True:  # the mode and above
        total += weight
        if s >= first:
            if n_above == above.shape[0]:
                wider = np.zeros(2 * n_above)
                for i in range(n_above):
                    wider[i] = above[i]
                above = wider
            above[n_above] = weight
            n_above += 1
            kept += weight
        if s >= m:
            break
        ratio = (m - s) / (s + 1.0) * (A + s) / (B + (m - s - 1.0))
        weight *= ratio
        s += 1.0
        if weight < UNDERFLOW:
            break
        left = (m - s + 1.0) * weight
        if ratio < 1.0 and s > first and left < 1e-17 * kept and left < NEGLIGIBLE * total:
            break
    weights = np.empty(n_below + n_above)
    for i in range(n_below):
        weights[i] = below[n_below - 1 - i] / total
    for i in range(n_above):
        weights[n_below + i] = above[i] / total
    start = mode - n_below if mode >= first else first
    return start, weights
