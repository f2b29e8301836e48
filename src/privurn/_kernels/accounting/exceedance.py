"""Probability, under x, that a release is more than E times likelier under x than under a neighbour y.

This is what the papers bound (probabilistic differential privacy, one direction); the tight divergences are in
old_values and new_values. Symbols:

    a, b     masses of l and t in the urn of the common records, `rest` the mass of everything else in it
    S_l, S_t released copies; under x, S_l ~ beta-binomial(m, a + 1, b + rest) and S_t | S_l = s ~ beta-binomial(m - s, b, rest)
    E        e^epsilon

As s grows the number of draws left for t falls and the bound on S_t rises, so P(S_t <= bound | s) only ever gains terms:
one pass over s gives the probability as a sum of positive terms, however deep in the tail.
"""

import math

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.old_values import log_all_on_first

BIG = 1e150
LOG_BIG = math.log(BIG)


@compiled
def both_old_exceedance(start, weights, m, a, b, rest, E):
    """P_x(1 + S_l/a > E (1 + S_t/b)), from the law `weights` of S_l at start, start + 1, ..."""
    if weights.shape[0] == 0:
        return 0.0
    if rest <= 0.0:  # every record falls on l or t
        found = 0.0
        for i in range(weights.shape[0]):
            s = start + i
            if 1.0 + s / a > E * (1.0 + (m - s) / b):
                found += weights[i]
        return found
    s = start
    M = m - s
    log_scale = log_all_on_first(rest, b, M)  # P(S_t = 0 | M draws) is the unit to begin with
    if log_scale > -LOG_BIG:
        p = math.exp(log_scale)
        log_scale = 0.0
    else:
        p = 1.0
    F = p
    c = 0.0
    found = 0.0
    complete = M <= 0.0
    for i in range(weights.shape[0]):
        if i > 0:
            s += 1.0
            if not complete:  # one draw fewer for t
                if c >= M:
                    complete = True
                else:
                    p *= (M - c) / M * (b + rest + (M - 1.0)) / (rest + (M - 1.0 - c))
                    F += p * (b + c) / (b + rest + (M - 1.0))
            M -= 1.0
        limit = 1.0 + s / a
        if not limit > E:
            continue
        while not complete and c < M and E * (1.0 + (c + 1.0) / b) < limit:
            p *= (M - c) / (c + 1.0) * (b + c) / (rest + (M - c - 1.0))
            c += 1.0
            F += p
            if F > BIG:
                F /= BIG
                p /= BIG
                found /= BIG
                log_scale += LOG_BIG
        found += weights[i] * F
    return found * math.exp(log_scale)
