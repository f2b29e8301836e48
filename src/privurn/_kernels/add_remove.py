"""Divergences between urns on a public domain when one record is added or removed.

The proof is on docs/proofs/add-remove.md. Symbols:

    a        mass of the cell that gains the record, before it does
    T        total mass before, b = T - a
    m        number of released records, S of them in the cell: S ~ beta-binomial(m, a, b) without the extra record
    L(j)     (1 + j/a) T/(T + m): likelihood ratio of "with" to "without" at S = j, increasing in j
    e        the ratio at which the attacker changes her mind: e^epsilon (adding), e^-epsilon (removing)
    g        e - 1, given beside it: L(j) - e = (j/a - g - e m/T) T/(T + m), in which no 1 cancels however large a is
    s        smallest j with L(j) > e
    V        E[(L - e)_+] for g >= 0 and E[(e - L)_+] for g < 0, as a function of T

Every V is a sum of positive terms over one side of s. From one T to the next V changes by a single closed term, because
sum over j >= s of (j - E S) P(S = j) is s (b + m - s) P(S = s)/T.
"""

import math

from privurn._kernels._compile import compiled
from privurn._kernels.old_values import log_gamma_step, stirling_correction

NEGLIGIBLE = 1e-18
CHECK_EVERY = 32


@compiled
def excess(j, a, total, m, e, g):
    """L(j) - e."""
    return ((j / a - g) - e * (m / total)) * (total / (total + m))


@compiled
def threshold(a, total, m, e, g):
    """Smallest j >= 0 with L(j) > e; m + 1 where there is none."""
    s = math.floor(a * g + a * e * (m / total)) + 1.0
    return min(max(s, 0.0), m + 1.0)


@compiled
def tail_value(a, total, m, e, g):
    """V, P(S = s)/V and s at one total mass; the weights of S are built from its mode outwards."""
    b = total - a
    s = threshold(a, total, m, e, g)
    upper = g >= 0.0
    if (upper and s > m) or (not upper and s <= 0.0):
        return 0.0, 0.0, s
    if a > 1.0:
        mode = m if b <= 1.0 else min(m, math.floor((m + 1.0) * (a - 1.0) / (a + b - 2.0)))
    else:
        mode = 0.0 if b >= 1.0 or a < b else m
    all_of_it = 0.0
    positive = 0.0
    at_s = 0.0
    slope = total / (total + m) / a
    weight = 1.0
    i = mode
    steps = 0
    while True:  # upwards, the mode included
        all_of_it += weight
        gain = excess(i, a, total, m, e, g)
        if i >= s:
            if i == s:
                at_s = weight
            if upper:
                positive += weight * max(gain, 0.0)
        elif not upper:
            positive -= weight * min(gain, 0.0)
        if i >= m:
            break
        weight *= (m - i) * (a + i) / ((i + 1.0) * (b + (m - i - 1.0)))
        i += 1.0
        steps += 1
        if steps % CHECK_EVERY == 0 and b > 1.0 and i > s:
            # the weights fall at least geometrically from here on
            rate = max(1.0, (a + i) / (i + 1.0)) * ((m - i) / (m - i - 1.0 + b))
            if rate < 1.0:
                left = weight / (1.0 - rate)
                if left < NEGLIGIBLE * all_of_it:
                    if not upper or left * (max(gain, 0.0) + slope * (1.0 + 1.0 / (1.0 - rate))) < NEGLIGIBLE * positive:
                        break
        if weight == 0.0:
            break
    weight = 1.0
    i = mode
    steps = 0
    while i > 0.0:  # downwards
        weight *= i * (b + (m - i)) / ((m - i + 1.0) * (a + (i - 1.0)))
        i -= 1.0
        steps += 1
        all_of_it += weight
        gain = excess(i, a, total, m, e, g)
        if i >= s:
            if i == s:
                at_s = weight
            if upper:
                positive += weight * max(gain, 0.0)
        elif not upper:
            positive -= weight * min(gain, 0.0)
        if steps % CHECK_EVERY == 0 and a > 1.0 and i < s:  # for a <= 1 the weights may rise again towards 0
            left = weight * i
            if left < NEGLIGIBLE * all_of_it and (upper or left * e < NEGLIGIBLE * positive):
                break
        if weight == 0.0:
            break
    if not positive > 0.0:
        return 0.0, 0.0, s
    return positive / all_of_it, at_s / positive, s


@compiled
def walk_up(a, total, m, e, g, s, p, value, steps):
    """Largest V on total, total + 1, ..., total + steps, and the state (s, p, V) at its end, p = P(S = s).

    p and V may come in any common unit.
    """
    b = total - a
    best = value
    for _ in range(steps):
        # V at fixed s, then the weight of s, from b to b + 1
        scale = p * (b + (m - s)) / (b * (total + m))
        value -= s * scale * excess(s, a, total, m + 1.0, e, g)
        p = scale * total
        b += 1.0
        total += 1.0
        while s > 0.0:
            gain = excess(s - 1.0, a, total, m, e, g)
            if gain <= 0.0:
                break
            p *= s * (b + (m - s)) / ((m - s + 1.0) * (a + (s - 1.0)))
            s -= 1.0
            value += p * gain
        best = max(best, value)
        if s <= 0.0:
            break
    return best, s, p, value


@compiled
def walk_down(a, total, m, e, g, s, p, value, steps):
    """The same on total, total - 1, ..., total - steps."""
    b = total - a
    best = value
    for _ in range(steps):
        b -= 1.0
        total -= 1.0
        scale = p / total
        value += s * scale * excess(s, a, total, m + 1.0, e, g)
        p = scale * b * (total + m) / (b + (m - s))
        while s <= m:
            gain = excess(s, a, total, m, e, g)
            if gain > 0.0:
                break
            value -= p * gain
            p *= (m - s) * (a + s) / ((s + 1.0) * (b + (m - s - 1.0)))
            s += 1.0
        best = max(best, value)
        if s > m:
            break
    return best, s, p, value


@compiled
def largest_by_threshold(a, smallest_total, m, e, g):
    """Largest V over totals smallest_total, + 1, ...: each s with its own best total. Quadratic, for small m."""
    best = 0.0
    for i in range(1, int(m) + 1):
        margin = i - a * g
        if margin <= 0.0:
            continue
        turn = e * a * (m + 1.0) / margin
        ahead = max(0.0, math.floor(turn - smallest_total) + 1.0)
        # rounding may put the turn on the wrong side of a whole step: look at both neighbours
        for k in range(3):
            step = ahead - 1.0 + k
            if step >= 0.0:
                best = max(best, tail_value(a, smallest_total + step, m, e, g)[0])
    return best


@compiled
def second_order(x):
    """e^x - 1 - x without cancellation."""
    if abs(x) > 0.1:
        return math.expm1(x) - x
    term = 0.5 * x * x
    series = term
    for k in range(3, 16):
        term *= x / k
        series += term
    return series


@compiled
def log_gamma_density(a, epsilon):
    """Log of x^a e^-x / Gamma(a + 1) at x = a e^epsilon."""
    if a < 16.0:
        return a * (math.log(a) + epsilon) - a * math.exp(epsilon) - math.lgamma(a + 1.0)
    return -a * second_order(epsilon) - 0.5 * math.log(2.0 * math.pi * a) - stirling_correction(a)


@compiled
def gamma_upper(a, epsilon):
    """E[(G/a - E)_+] for G ~ Gamma(a), E = e^epsilon >= 1 and a E >= 1: by the continued fraction of Gamma(a, a E).

    With K1 = x + 1 - a + (a - 1)/K2 and x = a E it is x^a e^-x / Gamma(a + 1) (1 + (a - 1)/K2)/K1: nothing cancels.
    """
    margin = a * math.expm1(epsilon)  # x - a
    k2 = margin + 3.0
    c = k2
    d = 0.0
    i = 1.0
    while i < 1e9:
        numerator = (i + 1.0) * (a - i - 1.0)
        level = margin + 3.0 + 2.0 * i
        d = 1.0 / (level + numerator * d)
        c = level + numerator / c
        k2 *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
        i += 1.0
    over = 1.0 + (a - 1.0) / k2
    return math.exp(log_gamma_density(a, epsilon)) * over / (margin + over)


@compiled
def gamma_lower(a, epsilon):
    """E[(1 - E G/a)_+] for G ~ Gamma(a), E = e^epsilon >= 1: a series of positive terms."""
    x = a * math.exp(-epsilon)
    term = 1.0
    total = 0.0
    k = 0.0
    while True:
        total += term * (k + 1.0) / (a + k + 1.0)
        k += 1.0
        term *= x / (a + k)
        if term * (a + k) < 1e-18 * total * (a + k - x):
            break
    return math.exp(log_gamma_density(a, -epsilon)) * total


@compiled
def log_beta_term(a, total, e):
    """Log of q^a (1 - q)^b / (a B(a, b)) at q = e a/T, b = T - a."""
    q = e * a / total
    b = total - a
    return a * math.log(q) + b * math.log1p(-q) + log_gamma_step(b, a) - math.lgamma(a + 1.0)


@compiled
def log_negative_binomial_term(a, r, s):
    """Log of s P(S = s)/a for S ~ negative binomial with shape a and mean a r."""
    return log_gamma_step(s, a) - math.lgamma(a + 1.0) - s * math.log1p(1.0 / r) - a * math.log1p(r)
