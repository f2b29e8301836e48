"""Divergences in which one of the two values is fresh (never seen in the common records): D_on and D_no.

The proof is on docs/proofs/tight-divergence.md. Symbols:

    sigma    discount, 0 < sigma < 1
    nu, tau  mass of "new" and total mass of the urn that the K chain lives in
    K        distinct new values among the released records, W = K sigma / new_mass
    S        released copies of the old value, of mass `mass` in the common urn

K after M + 1 steps follows from K after M steps by two positive terms, so nothing cancels; probabilities below
NEGLIGIBLE_STATE are dropped, and the chain ends when the weight of what is left is below NEGLIGIBLE_WEIGHT. Both are
invisible beside phi, which the global profile never falls below.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.old_values import log_gamma_step

NEGLIGIBLE_STATE = 1e-60
NEGLIGIBLE_WEIGHT = 1e-40
DIRECT_PRODUCT = 20_000


@compiled
def release_probability(total, sigma, m):
    """Phi = 1 - (T + sigma)_m / (T + 1)_m: the chance that a fresh record's value is among m released records."""
    if sigma == 0.0:
        return m / (total + m)
    log_none = 0.0
    if m <= DIRECT_PRODUCT:
        for i in range(int(m)):
            log_none += math.log1p(-(1.0 - sigma) / (total + 1.0 + i))
    else:
        log_none = log_gamma_step(total + sigma, 1.0 - sigma) - log_gamma_step(total + sigma + m, 1.0 - sigma)
    return -math.expm1(log_none)


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
        weights[i + 1] = weights[i] * ((m - i) / (i + 1.0) * (a + i) / (b + m - i - 1.0))
    for i in range(mode, 0, -1):
        weights[i - 1] = weights[i] * (i / (m - i + 1.0) * (b + m - i) / (a + i - 1.0))
    return weights / weights.sum()


@compiled
def extend_chain(now, after, lo, hi, nu, tau, sigma, steps):
    """One step of the K chain after `steps` steps: probabilities of lo..hi in `now` -> lo..hi+1 in `after`."""
    scale = 1.0 / (tau + steps)
    after[lo] = now[lo] * (tau + steps - nu - lo * sigma) * scale
    for k in range(lo + 1, hi + 1):
        stay = (tau + steps - nu - k * sigma) * scale
        grow = (nu + (k - 1) * sigma) * scale
        after[k] = now[k] * stay + now[k - 1] * grow
    after[hi + 1] = now[hi] * (nu + hi * sigma) * scale


@compiled
def one_fresh_divergence(mass, new_mass, total, sigma, m, epsilon, old_first):
    """D_on (`old_first`: x holds one more copy of the old value, y a fresh one) or D_no without its phi and (1 - phi).

    `mass` is that of the old value, `new_mass` theta' = theta + j_c sigma, `total` T = theta + n - 1.
    """
    E = math.exp(epsilon)
    if old_first:
        weights = beta_binomial_weights(m, mass + 1.0, total - mass)
        nu = new_mass
        tau = total - mass
    else:
        weights = beta_binomial_weights(m, mass, total + sigma - mass)
        nu = new_mass + sigma
        tau = total + sigma - mass
    now = np.zeros(m + 2)
    after = np.zeros(m + 2)
    now[0] = 1.0
    lo = 0
    hi = 0
    divergence = 0.0
    unseen = np.cumsum(weights)
    for steps in range(m + 1):
        s = m - steps
        weight = weights[s]
        old = 1.0 + s / mass
        if weight > 0.0:
            inner = 0.0
            if old_first:
                for k in range(lo, hi + 1):
                    gain = old - E * (1.0 + k * sigma / new_mass)
                    if gain <= 0.0:
                        break
                    inner += now[k] * gain / old
            else:
                for k in range(hi, lo - 1, -1):
                    new = 1.0 + k * sigma / new_mass
                    gain = new - E * old
                    if gain <= 0.0:
                        break
                    inner += now[k] * gain / new
            divergence += weight * inner
        if steps == m or unseen[s - 1] < NEGLIGIBLE_WEIGHT:
            break
        extend_chain(now, after, lo, hi, nu, tau, sigma, steps)
        now, after = after, now
        hi += 1
        while hi > lo and now[hi] < NEGLIGIBLE_STATE:
            hi -= 1
        while lo < hi and now[lo] < NEGLIGIBLE_STATE:
            lo += 1
    return divergence
