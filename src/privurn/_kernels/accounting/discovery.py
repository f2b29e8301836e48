"""Law of the number K of distinct new values among the next records of an urn.

Symbols:

    sigma    discount, 0 <= sigma < 1
    nu, tau  mass of "new" and total mass of the urn
    L        records on new values among M: beta-binomial(M, nu, tau - nu)
    K        distinct ones among them

Given L = l, K is the number of blocks of a fresh urn of strength nu after l records (the chain with tau = nu), so the chain
needs to run over l only, not over all M records: with nu much smaller than tau that is far fewer steps. Probabilities below
beta_binomial.DROPPED are left out; all terms are positive.
"""

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.beta_binomial import beta_binomial_window, trimmed


@compiled
def update_chain(now, after, levels, lo, hi, nu, tau, steps):
    """One record more: probabilities of lo..hi in `now` -> lo..hi+1 in `after`; levels[k] = k sigma.

    The loop runs over views that start at 0, so that the compiler can use vector instructions.
    """
    scale = 1.0 / (tau + steps)
    rest = tau + steps - nu
    after[lo] = now[lo] * (rest - levels[lo]) * scale
    same = now[lo + 1 : hi + 1]
    one_less = now[lo:hi]
    level = levels[lo + 1 : hi + 1]
    level_before = levels[lo:hi]
    out = after[lo + 1 : hi + 1]
    for i in range(out.shape[0]):
        out[i] = (same[i] * (rest - level[i]) + one_less[i] * (nu + level_before[i])) * scale
    after[hi + 1] = now[hi] * (nu + levels[hi]) * scale


@compiled
def run_chain(nu, tau, sigma, M, room):
    """(lo, hi, now): the chain after M steps from K = 0, in an array with `room` states to spare."""
    now = np.zeros(M + 2 + room)
    after = np.zeros(M + 2 + room)
    levels = np.arange(M + 2) * sigma
    now[0] = 1.0
    lo = 0
    hi = 0
    for steps in range(M):
        update_chain(now, after, levels, lo, hi, nu, tau, steps)
        now, after = after, now
        lo, hi = trimmed(now, lo, hi + 1)
    return lo, hi, now


@compiled
def distinct_law(nu, tau, sigma, M, room):
    """(lo, hi, law): law[k] = P(K = k) after M records for lo <= k <= hi, in an array with `room` states to spare."""
    if M == 0 or nu > 0.4 * tau or tau - nu < 1.0:
        return run_chain(nu, tau, sigma, M, room)
    start, weights = beta_binomial_window(M, nu, tau - nu)
    last = start + weights.shape[0] - 1
    now = np.zeros(last + 2)
    after = np.zeros(last + 2)
    levels = np.arange(last + 2) * sigma
    law = np.zeros(last + 2 + room)
    now[0] = 1.0
    lo = 0
    hi = 0
    least = last
    for steps in range(last + 1):
        if steps >= start:
            weight = weights[steps - start]
            least = min(least, lo)
            for k in range(lo, hi + 1):
                law[k] += weight * now[k]
        if steps == last:
            break
        update_chain(now, after, levels, lo, hi, nu, nu, steps)
        now, after = after, now
        lo, hi = trimmed(now, lo, hi + 1)
    least, most = trimmed(law, least, last)
    law[:least] = 0.0
    law[most + 1 :] = 0.0
    return least, most, law
