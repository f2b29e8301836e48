"""Joint laws behind the thesis's conditions: all old counts in a box, and the extremes of the new values' counts.

Symbols:

    S_i      released copies of old value i, of mass g_i; L released records fall on new values, of mass theta'
    rho      m / (m + total): S_i and L are independent negative binomials (g_i, rho), (theta', rho) given their sum m
    blocks   the counts of the distinct new values: a Pitman-Yor(sigma, theta') partition of L

Every sum has positive terms only: what falls outside a box is carried along, never obtained as one minus the inside.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled

NEGLIGIBLE_TERM = 1e-25
UNDERFLOW = 1e-300


@compiled
def negative_binomial(g, rho, limit):
    """(first, weights): probabilities of first, first + 1, ... <= limit, down to the smallest floats in the upper tail."""
    mode = 0.0 if g <= 1.0 else math.floor((g - 1.0) * rho / (1.0 - rho))
    lo = mode
    weight = 1.0
    total = 1.0
    while lo > 0.0:
        ratio = lo / (rho * (g + lo - 1.0))
        weight *= ratio
        lo -= 1.0
        total += weight
        if weight * (lo + 1.0) < NEGLIGIBLE_TERM * total and ratio < 1.0:
            break
    hi = mode
    weight = 1.0
    while True:
        ratio = rho * (g + hi) / (hi + 1.0)
        weight *= ratio
        hi += 1.0
        total += weight
        # the ratios of what follows stay below max(ratio, rho) < 1: a geometric tail
        worst = max(ratio, rho)
        if worst < 1.0 and weight < NEGLIGIBLE_TERM * (1.0 - worst) * total:
            break
    while hi < limit and weight > UNDERFLOW * total:
        weight *= rho * (g + hi) / (hi + 1.0)
        hi += 1.0
    last = min(hi, limit)
    weights = np.zeros(max(0, int(last - lo) + 1))
    weight = 1.0 / total
    s = mode
    while s >= lo:
        if s <= last:
            weights[int(s - lo)] = weight
        weight *= s / (rho * (g + s - 1.0)) if s > 0.0 else 0.0
        s -= 1.0
    weight = 1.0 / total
    s = mode
    while s < last:
        weight *= rho * (g + s) / (s + 1.0)
        s += 1.0
        weights[int(s - lo)] = weight
    return lo, weights


@compiled
def update_convolved(out, span, old, old_span, first, weights, lo, hi):
    """Out += old * (the part of `weights` at lo..hi); spans are [first, last] of what is not negligible."""
    m = out.shape[0] - 1
    lo = max(lo, first)
    hi = min(hi, first + weights.shape[0] - 1.0)
    if hi < lo or old_span[1] < old_span[0]:
        return
    for s in range(int(lo), int(hi) + 1):
        weight = weights[int(s - first)]
        last = min(old_span[1], m - s)
        for r in range(old_span[0], last + 1):
            out[r + s] += old[r] * weight
    span[0] = min(span[0], old_span[0] + int(lo))
    span[1] = max(span[1], min(m, old_span[1] + int(hi)))


@compiled
def update_trimmed(values, span, keep):
    """Zero and leave out what is below `keep` times the largest."""
    top = 0.0
    for r in range(span[0], span[1] + 1):
        top = max(top, values[r])
    while span[0] <= span[1] and values[span[0]] <= keep * top:
        values[span[0]] = 0.0
        span[0] += 1
    while span[0] <= span[1] and values[span[1]] <= keep * top:
        values[span[1]] = 0.0
        span[1] -= 1


@compiled
def box_law(masses, lows, highs, outer_highs, new_mass, total, m, keep):
    """Three arrays over L = 0..m: P(all lows <= S_i <= highs, L), P(all S_i <= outer_highs but not that, L), P(neither, L).

    Partial sums below `keep` of the largest are dropped.
    """
    rho = m / (m + total)
    now = np.zeros((3, m + 1))
    after = np.zeros((3, m + 1))
    spans = np.zeros((3, 2), np.int64)
    spans[1, 0] = spans[2, 0] = m + 1
    spans[1, 1] = spans[2, 1] = -1
    later = np.zeros((3, 2), np.int64)
    now[0, 0] = 1.0
    for i in range(masses.shape[0]):
        first, weights = negative_binomial(masses[i], rho, float(m))
        for state in range(3):
            after[state, :] = 0.0
            later[state, 0] = m + 1
            later[state, 1] = -1
        high = min(highs[i], outer_highs[i])
        update_convolved(after[0], later[0], now[0], spans[0], first, weights, lows[i], high)
        update_convolved(after[1], later[1], now[0], spans[0], first, weights, 0.0, min(lows[i] - 1.0, outer_highs[i]))
        update_convolved(after[1], later[1], now[0], spans[0], first, weights, max(high + 1.0, lows[i]), outer_highs[i])
        update_convolved(after[1], later[1], now[1], spans[1], first, weights, 0.0, outer_highs[i])
        update_convolved(after[2], later[2], now[0], spans[0], first, weights, outer_highs[i] + 1.0, float(m))
        update_convolved(after[2], later[2], now[1], spans[1], first, weights, outer_highs[i] + 1.0, float(m))
        update_convolved(after[2], later[2], now[2], spans[2], first, weights, 0.0, float(m))
        for state in range(3):
            update_trimmed(after[state], later[state], keep)
            spans[state] = later[state]
        now, after = after, now
    first, weights = negative_binomial(new_mass, rho, float(m))
    offset, everything = negative_binomial(total, rho, float(m))
    at_m = everything[int(m - offset)]
    out = np.zeros((3, m + 1))
    for state in range(3):
        for i in range(weights.shape[0]):
            L = int(first) + i
            out[state, L] = now[state, m - L] * weights[i] / at_m
    return out[0], out[1], out[2]


@compiled
def block_extremes(most, theta, sigma, x_class, y_class, n_x, n_y):
    """law[x_class[K, largest], y_class[smallest], L]: law of number, largest and smallest block of a partition of L.

    For each smallest size c, blocks are put in by size: `table[L, k]` sums over partitions of L into k blocks of sizes
    c..d with at least one of size c; those with a block of size d itself are what size d adds. Tilted by rho^L against
    overflow. L = 0 has no blocks: number, largest and smallest are all 0.
    """
    law = np.zeros((n_x, n_y, most + 1))
    law[x_class[0, 0], y_class[0], 0] = 1.0
    if most == 0:
        return law
    rho = most / (theta + most)
    # denominator[L] = (theta)_L rho^L / L!
    denominator = np.ones(most + 1)
    for L in range(most):
        denominator[L + 1] = denominator[L] * (theta + L) * rho / (L + 1.0)
    weight = np.zeros(most + 1)  # (1 - sigma)_(s-1) rho^s / s!
    weight[1] = rho
    for s in range(1, most):
        weight[s + 1] = weight[s] * (s - sigma) * rho / (s + 1.0)
    for c in range(1, most + 1):
        k_most = most // c
        table = np.zeros((most + 1, k_most + 1))
        term = 1.0
        for g in range(1, k_most + 1):  # g blocks of size c
            term *= weight[c] * (theta + (g - 1) * sigma) / g
            table[g * c, g] = term
            law[x_class[g, c], y_class[c], g * c] += term / denominator[g * c]
        for d in range(c + 1, most):
            for L in range(most, c + d - 1, -1):  # from above, so that table[L - g d] is still without size d
                for k in range(2, L // c + 1):
                    added = 0.0
                    factor = 1.0
                    for g in range(1, min(k - 1, (L - c) // d) + 1):
                        factor *= weight[d] * (theta + (k - g) * sigma) / g
                        added += factor * table[L - g * d, k - g]
                    table[L, k] += added
                    law[x_class[k, d], y_class[c], L] += added / denominator[L]
    return law
