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

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.beta_binomial import beta_binomial_window, trimmed
from privurn._kernels.accounting.old_values import log_gamma_step


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


@compiled
def blocks_by_size(nu, sigma, k, start, length):
    """P(K = k | L = l) for l = start, ..., start + length - 1 in a fresh urn of strength nu."""
    last = start + length - 1
    column = np.zeros(length)
    now = np.zeros(last + 2)
    after = np.zeros(last + 2)
    levels = np.arange(last + 2) * sigma
    now[0] = 1.0
    lo = 0
    hi = 0
    for steps in range(last + 1):
        if steps >= start and lo <= k <= hi:
            column[steps - start] = now[k]
        if steps == last:
            break
        update_chain(now, after, levels, lo, hi, nu, nu, steps)
        now, after = after, now
        lo, hi = trimmed(now, lo, hi + 1)
    return column


@compiled
def log_posterior_of_old(n, m, k, first, last, theta, sigma, reference):
    """Log of P(K_m = k | K_n = j) for j = first..last, up to one constant.

    P(K_m = k | K_n = j) is a sum over l = L of beta-binomial weights times P(K = k | L = l) at strength theta_j = theta +
    j sigma. Seen from one `reference` strength r, the same sum has weights beta-binomial(m, r, n - j sigma) and the factor
    prod_{i<k} (theta_j + i sigma)/(r + i sigma) * (r + n - j sigma)_m / (theta + n)_m outside: one chain serves every j.
    """
    out = np.empty(last - first + 1)
    low, _ = beta_binomial_window(m, reference, n - first * sigma)
    high_start, high = beta_binomial_window(m, reference, max(n - last * sigma, 1e-9))
    last_size = high_start + high.shape[0] - 1
    column = blocks_by_size(reference, sigma, k, low, last_size - low + 1)
    base = reference + n - first * sigma
    for j in range(first, last + 1):
        start, weights = beta_binomial_window(m, reference, max(n - j * sigma, 1e-9))
        total = 0.0
        for i in range(weights.shape[0]):
            if low <= start + i <= last_size:
                total += weights[i] * column[start + i - low]
        if total <= 0.0:
            out[j - first] = -math.inf
            continue
        value = math.log(total)
        if k > 0:  # prod (theta_j / sigma + i), up to what does not depend on j
            value += log_gamma_step(theta / sigma + j, k)
        shift = (j - first) * sigma
        if shift > 0.0:  # (base - shift)_m against (base)_m
            value += log_gamma_step(base - shift, shift) - log_gamma_step(base - shift + m, shift)
        out[j - first] = value
    return out


@compiled
def log_rising_ratio(x, sigma, m):
    """Logarithm of (x + sigma)_m / (x)_m, for x > 0, by a sum with small steps and by Euler-Maclaurin beyond."""
    direct = int(min(m, 4096.0))
    total = 0.0
    for i in range(direct):
        total += math.log1p(sigma / (x + i))
    if direct == m or sigma == 0.0:
        return total
    # sum over i in [direct, m) of f(i), f(i) = log1p(sigma/(x + i)): integral + ends/2 + (f'(b) - f'(a))/12 - f'''/720
    a = x + direct
    b = x + m
    integral = (b * math.log1p(sigma / b) - a * math.log1p(sigma / a)) + sigma * math.log((b + sigma) / (a + sigma))
    ends = 0.5 * (math.log1p(sigma / a) - math.log1p(sigma / b))
    first = (1.0 / (b + sigma) - 1.0 / b) - (1.0 / (a + sigma) - 1.0 / a)
    third = 2.0 * ((b + sigma) ** -3 - b**-3) - 2.0 * ((a + sigma) ** -3 - a**-3)
    fifth = 24.0 * ((b + sigma) ** -5 - b**-5) - 24.0 * ((a + sigma) ** -5 - a**-5)
    return total + integral + ends + first / 12.0 - third / 720.0 + fifth / 30240.0
