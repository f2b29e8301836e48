"""Divergences in which one of the two values is fresh (never seen in the common records): D_on, D_no and phi.

The proof is on docs/proofs/tight-divergence.md. Symbols:

    sigma    discount, 0 < sigma < 1
    nu, tau  mass of "new" and total mass of the urn that the K chain lives in
    K        distinct new values among the released records, W = K sigma / new_mass
    S        released copies of the old value, of mass `mass` in the common urn
    E        e^epsilon

Beside each divergence stands the probability that the likelihood ratio exceeds E, which is what the papers bound.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.beta_binomial import beta_binomial_window, trimmed
from privurn._kernels.accounting.discovery import distinct_law, update_chain
from privurn._kernels.accounting.old_values import log_gamma_step

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
