"""Probability, under x, that a release is more than E times likelier under x than under a neighbour y.

This is what the papers bound (probabilistic differential privacy, one direction); the tight divergences are in
old_values and new_values. Symbols:

    a, b     masses of l and t in the urn of the common records, `rest` the mass of everything else in it
    S_l, S_t released copies; under x, S_l ~ beta-binomial(m, a + 1, b + rest) and S_t | S_l = s ~ beta-binomial(m - s, b, rest)
    K        distinct new values among the released, sigma the discount, new_mass = theta'
    E        e^epsilon

As s grows the number of draws left for t falls and the bound on S_t rises, so P(S_t <= bound | s) only ever gains terms:
one pass over s gives the probability as a sum of positive terms, however deep in the tail.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.discovery import beta_binomial_window, distinct_law, trimmed, update_chain
from privurn._kernels.old_values import NEGLIGIBLE, log_all_on_first

UNDERFLOW = 1e-300
BIG = 1e150
LOG_BIG = math.log(BIG)


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
        ratio = s / (m - s + 1.0) * (B + m - s) / (A + s - 1.0)
        weight *= ratio
        s -= 1.0
        total += weight
        if s >= first:
            if n_below == below.shape[0]:
                wider = np.zeros(2 * n_below)
                wider[:n_below] = below
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
                wider[:n_above] = above
                above = wider
            above[n_above] = weight
            n_above += 1
            kept += weight
        if s >= m:
            break
        ratio = (m - s) / (s + 1.0) * (A + s) / (B + m - s - 1.0)
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
                    p *= (M - c) / M * (b + rest + M - 1.0) / (rest + M - 1.0 - c)
                    F += p * (b + c) / (b + rest + M - 1.0)
            M -= 1.0
        limit = 1.0 + s / a
        if not limit > E:
            continue
        while not complete and c < M and E * (1.0 + (c + 1.0) / b) < limit:
            p *= (M - c) / (c + 1.0) * (b + c) / (rest + M - c - 1.0)
            c += 1.0
            F += p
            if F > BIG:
                F /= BIG
                p /= BIG
                found /= BIG
                log_scale += LOG_BIG
        found += weights[i] * F
    return found * math.exp(log_scale)


@compiled
def one_fresh_sums(start, weights, m, mass, new_mass, nu, tau, sigma, E, old_first):
    """(exceedance, divergence) of old = 1 + S/mass against new = 1 + W, W = K sigma / new_mass, or of new against old.

    With (p, q) = (old, new) when `old_first`, else (new, old): P(p > E q) and the mean of (1 - E q/p)_+. `weights` is the
    law of S at start, start + 1, ...; K given S = s is the chain (nu, tau) after m - s steps.
    """
    found = 0.0
    divergence = 0.0
    n_weights = weights.shape[0]
    if n_weights == 0:
        return found, divergence
    last_steps = int(m - start)
    first_steps = last_steps - (n_weights - 1)
    lo, hi, now = distinct_law(nu, tau, sigma, first_steps, n_weights)
    after = np.zeros(now.shape[0])
    levels = np.arange(now.shape[0]) * sigma
    for steps in range(first_steps, last_steps + 1):
        s = m - steps
        old = 1.0 + s / mass
        above = 0.0
        gain = 0.0
        if old_first:
            for k in range(lo, hi + 1):
                excess = old - E * (1.0 + k * sigma / new_mass)
                if not excess > 0.0:
                    break
                above += now[k]
                gain += now[k] * excess / old
        else:
            for k in range(hi, lo - 1, -1):
                new = 1.0 + k * sigma / new_mass
                excess = new - E * old
                if not excess > 0.0:
                    break
                above += now[k]
                gain += now[k] * excess / new
        found += weights[int(s - start)] * above
        divergence += weights[int(s - start)] * gain
        if steps == last_steps:
            break
        update_chain(now, after, levels, lo, hi, nu, tau, steps)
        now, after = after, now
        lo, hi = trimmed(now, lo, hi + 1)
    return found, divergence


@compiled
def old_to_new_sums(start, weights, m, mass, new_mass, total, sigma, E):
    """(exceedance, D_on), with `weights` the law of S_l under x, beta-binomial(m, mass + 1, T - mass)."""
    return one_fresh_sums(start, weights, m, mass, new_mass, new_mass, total - mass, sigma, E, True)


@compiled
def new_to_old_sums(m, mass, new_mass, total, sigma, E):
    """(exceedance, D_no) given that the fresh record of x is not released: S_t ~ beta-binomial(m, mass, T + sigma - mass)."""
    start, weights = beta_binomial_window(int(m), mass, total + sigma - mass)
    return one_fresh_sums(float(start), weights, m, mass, new_mass, new_mass + sigma, total + sigma - mass, sigma, E, False)
