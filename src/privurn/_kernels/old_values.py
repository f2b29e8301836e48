"""Tight divergence between two urns that differ in one record, when both values are old: D_oo.

The proof is on docs/proofs/tight-divergence.md. Symbols:

    a, b     masses of the two values l and t in the urn of the n - 1 common records
    rest     mass of everything else in that urn
    m        number of released records
    E        e^epsilon
    c, rho   a (E - 1) and E a/b
    N        released records that fall on l or t; X of them fall on l
    h(s, N)  1 + s/a - E (1 + (N - s)/b) = (s - c - rho (N - s))/a: sign decides whether the attacker says "l"
    G(N)     E[(h(X, N))_+] (a+b)/(a+b+N) with X ~ beta-binomial(N, a, b): non-decreasing in N

and D_oo = E[G(N)] for N ~ beta-binomial(m, a + b + 1, rest). Every sum has positive terms only. (h(X_N, N)/(a+b+N))_N
is a martingale, so G grows only on paths that cross zero: one lattice point for each N, which makes the cost O(range of N).
"""

import math

from privurn._kernels._compile import compiled

NEGLIGIBLE = 1e-22
ATTACKERS_SHARE = 2.0**-50
"""c and rho are lowered by this, more than their rounding: near the pure epsilon s - c is all that counts."""
SMALLEST_DELTA = 1e-300
"""Returned in place of a positive divergence too small for a float: never claim an exact zero that is not one."""


@compiled
def stirling_correction(x):
    """lnGamma(x) - [(x - 1/2) ln x - x + ln(2 pi)/2], for x >= 16."""
    y = 1.0 / (x * x)
    series = 1.0 / 1680.0 - y * (1.0 / 1188.0 - y * (691.0 / 360360.0))
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * series))) / x


@compiled
def log_gamma_step(x, d):
    """lnGamma(x + d) - lnGamma(x) for x, d > 0 without cancelling the leading terms."""
    shift = 0.0
    while x < 16.0:
        shift -= math.log1p(d / x)
        x += 1.0
    smooth = (x - 0.5) * math.log1p(d / x) + d * (math.log(x + d) - 1.0)
    return shift + smooth + stirling_correction(x + d) - stirling_correction(x)


@compiled
def log_all_on_first(a, b, count):
    """Log probability that `count` beta-binomial(a, b) draws all fall on the first value.

    It is lnGamma(a + d) + lnGamma(a + e) - lnGamma(a) - lnGamma(a + d + e), d and e the smaller and larger of b and count; the
    leading terms are put together so that nothing much larger than d cancels.
    """
    d, e = min(b, count), max(b, count)
    shift = 0.0
    while a < 16.0:
        shift += math.log1p(d / (a + e)) - math.log1p(d / a)
        a += 1.0
    smooth = (a - 0.5) * math.log1p(d / a) - (a + e - 0.5) * math.log1p(d / (a + e)) - d * math.log1p(e / (a + d))
    corrections = stirling_correction(a + d) - stirling_correction(a) + stirling_correction(a + e)
    return shift + smooth + corrections - stirling_correction(a + d + e)


@compiled
def advantage(s, N, c, rho):
    """A h(s, N)."""
    return (s - c) - rho * (N - s)


@compiled
def crossing(N, c, rho):
    """Largest s with h(s, N) <= 0, at least -1: the attacker says "l" above it."""
    return max(math.floor((c + rho * N) / (1.0 + rho)), -1.0)


@compiled
def positive_part_at(N, s, a, b, c, rho):
    """G(N) and P(X = s) by a direct sum outwards from the mode of beta-binomial(N, a, b)."""
    if a + b > 2.0 and a > 1.0:
        mode = min(N, math.floor((N + 1.0) * (a - 1.0) / (a + b - 2.0)))
        if b <= 1.0:
            mode = N
    else:
        mode = 0.0
    total = 0.0
    positive = 0.0
    at_s = 0.0
    weight = 1.0
    i = mode
    while True:  # upwards, the mode included
        total += weight
        gain = advantage(i, N, c, rho)
        if gain > 0.0:
            positive += weight * gain
        if i == s:
            at_s = weight
        if i >= N:
            break
        ratio = (N - i) / (i + 1.0) * (a + i) / (b + (N - i - 1.0))
        weight *= ratio
        i += 1.0
        left = N - i + 1.0
        if ratio < 1.0 and i > s and weight * left < NEGLIGIBLE * total and weight * left * i < NEGLIGIBLE * positive:
            break
        if weight == 0.0:
            break
    weight = 1.0
    i = mode
    while i > 0.0:  # downwards
        ratio = i / (N - i + 1.0) * (b + (N - i)) / (a + (i - 1.0))
        weight *= ratio
        i -= 1.0
        total += weight
        gain = advantage(i, N, c, rho)
        if gain > 0.0:
            positive += weight * gain
        if i == s:
            at_s = weight
        if ratio < 1.0 and (i < s or s < 0.0) and weight * i < NEGLIGIBLE * total:
            break
        if weight == 0.0:
            break
    return positive / total * ((a + b) / a) / (a + b + N), at_s / total


@compiled
def old_old_divergence(a, b, rest, m, epsilon):
    """D_oo(a, b): supremum over events of Q_x(B) - E Q_y(B), for `rest` >= 0 and finite m."""
    c = a * math.expm1(epsilon)
    c -= abs(c) * ATTACKERS_SHARE
    rho = math.exp(epsilon) * (a / b) * (1.0 - ATTACKERS_SHARE)
    if m <= c:
        return 0.0  # the likelihood ratio 1 + S/a never exceeds E
    if rest <= 0.0:
        value, _ = positive_part_at(m, -1.0, a, b, c, rho)
        return max(value, SMALLEST_DELTA)

    # Weights of N, unnormalised, from the mode down to where they no longer matter.
    A = a + b + 1.0
    mode = m if rest <= 1.0 else min(m, math.floor((m + 1.0) * (A - 1.0) / (A + rest - 2.0)))
    total = 0.0
    weight = 1.0
    lo = mode
    while lo > 0.0:
        ratio = lo / (m - lo + 1.0) * (rest + (m - lo)) / (A + (lo - 1.0))
        weight *= ratio
        lo -= 1.0
        total += weight
        if ratio < 1.0 and weight * lo < NEGLIGIBLE * total:
            break

    # The crossing point and G there. Before N = first no path can have crossed.
    first = max(0.0, math.floor(c))
    log_scale = 0.0
    N = lo
    if first >= N:
        while first > N:  # only the normalising sum needs these
            if mode - 1.0 < N:
                total += weight
            weight *= (m - N) / (N + 1.0) * (A + N) / (rest + (m - N - 1.0))
            N += 1.0
            if weight < SMALLEST_DELTA:
                return SMALLEST_DELTA
        s = max(0.0, crossing(N + 1.0, c, rho))
        if epsilon >= 0.0:
            s = N
            G = 0.0
            log_scale = log_all_on_first(a, b, N)
            p = 1.0
        else:
            G, p = positive_part_at(N, s, a, b, c, rho)
    else:
        s = max(0.0, crossing(N + 1.0, c, rho))
        G, p = positive_part_at(N, s, a, b, c, rho)

    unit = (a + b) / a
    positive = 0.0
    while True:
        if mode <= N:
            total += weight
        positive += weight * G
        if m <= N:
            break
        # G(N + 1) from the one lattice point whose two children lie on either side of zero
        up = advantage(s + 1.0, N + 1.0, c, rho)
        stay = advantage(s, N + 1.0, c, rho)
        if up > 0.0 and stay < 0.0:
            step = p * unit / ((a + b + N) * (a + b + N + 1.0))
            if advantage(s, N, c, rho) >= 0.0:
                G -= step * (b + (N - s)) * stay
            else:
                G += step * (a + s) * up
        ratio = (m - N) / (N + 1.0) * (A + N) / (rest + (m - N - 1.0))
        weight *= ratio
        following = max(0.0, crossing(N + 2.0, c, rho))
        if following > s:
            p *= (N + 1.0) / (s + 1.0) * (a + s) / (a + b + N)
            s += 1.0
        else:
            p *= (N + 1.0) / (N + 1.0 - s) * (b + (N - s)) / (a + b + N)
        N += 1.0
        left = m - N + 1.0
        if mode < N and ratio < 1.0 and weight * left < NEGLIGIBLE * total:
            # G <= 1 in true units, so what is left adds at most weight * left * e^-log_scale
            if weight * left * math.exp(min(700.0, -log_scale)) < 1e-17 * positive or weight == 0.0:
                break
        if p > 1e200 or G > 1e200:
            p *= 1e-200
            G *= 1e-200
            positive *= 1e-200
            log_scale += 200.0 * math.log(10.0)
    value = positive / total * math.exp(log_scale)
    return min(1.0, max(value, SMALLEST_DELTA))
