"""Sums behind the laws of new values; symbols as in privurn._kernels.accounting.discovery."""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.accounting.beta_binomial import beta_binomial_window, trimmed
from privurn._kernels.accounting.discovery import update_chain
from privurn._kernels.accounting.old_values import log_gamma_step


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
