"""Split and merge whole clusters (Jain and Neal 2004) behind the channel, for pairs that stay conjugate.

Two records are drawn. Where they share a cluster, a split is proposed: the other members go to either side at random, then
`n_scans` restricted Gibbs scans, then a last scan whose probability q is written down. Where they do not, their merger is
proposed, and q is the probability that the last scan would have led to what is there. With k clusters before the split,

    prior ratio of a split   new_weight(k) G(n1) G(n2) / G(n1 + n2),   G(n) = Gamma(n + offset) / Gamma(1 + offset),

and the split is accepted with min(1, prior ratio x evidence ratio / q), the merger with the inverse of what its split has.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.collapsed import log_evidence, update_seen
from privurn._kernels.mixtures.mixings import new_weight, offset

N_SEEN = 3


@inner
def restricted_scan(channel, kernel, shift, z, members, side, seen, sizes, forced, rng):
    """One Gibbs scan of the members over the two sides, or (forced has entries) the path to them; returns its log probability.

    The first two members are the drawn records, which stay on sides 0 and 1.
    """
    total = 0.0
    trial = np.zeros((1, N_SEEN))
    for j in range(2, members.shape[0]):
        x = z[members[j]]
        update_seen(channel, kernel, seen, side[j], x, -1.0)
        sizes[side[j]] -= 1
        first, second = 0.0, 0.0
        for a in range(2):
            trial[0] = seen[a]
            update_seen(channel, kernel, trial, 0, x, 1.0)
            score = (
                math.log(sizes[a] + shift) + log_evidence(channel, kernel, trial, 0) - log_evidence(channel, kernel, seen, a)
            )
            if a == 0:
                first = score
            else:
                second = score
        top = max(first, second)
        mass = math.exp(first - top) + math.exp(second - top)
        share = math.exp(first - top) / mass
        if forced.shape[0] > 0:
            side[j] = forced[j]
        else:
            side[j] = 0 if rng.random() < share else 1
        total += (first if side[j] == 0 else second) - top - math.log(mass)
        update_seen(channel, kernel, seen, side[j], x, 1.0)
        sizes[side[j]] += 1
    return total


@inner
def log_rising(n, shift):
    """Log of Gamma(n + shift) / Gamma(1 + shift)."""
    return math.lgamma(n + shift) - math.lgamma(1.0 + shift)


@inner
def split_or_merge(channel, kernel, mixing, s, z, c, atoms, n_scans, rng):
    """One proposal; changes c. Returns the acceptance rate and atoms with a row for each cluster, none of them empty."""
    n, k = c.shape[0], atoms.shape[0]
    if n < 2:
        return 0.0, atoms
    i = int(rng.random() * n)
    j = int(rng.random() * (n - 1))
    j += j >= i
    first, second = c[i], c[j]
    apart = first != second
    count = 0
    for r in range(n):
        count += c[r] == first or c[r] == second
    members = np.empty(count, np.int64)
    members[0], members[1] = i, j
    place = 2
    for r in range(n):
        if (c[r] == first or c[r] == second) and r not in (i, j):
            members[place] = r
            place += 1
    side = np.empty(count, np.int64)
    side[0], side[1] = 0, 1
    for a in range(2, count):
        side[a] = int(rng.random() * 2.0)
    seen = np.zeros((2, N_SEEN))
    whole = np.zeros((1, N_SEEN))
    sizes = np.zeros(2, np.int64)
    for a in range(count):
        update_seen(channel, kernel, seen, side[a], z[members[a]], 1.0)
        update_seen(channel, kernel, whole, 0, z[members[a]], 1.0)
        sizes[side[a]] += 1
    shift = offset(mixing, s)
    free = np.empty(0, np.int64)
    for _ in range(n_scans):
        restricted_scan(channel, kernel, shift, z, members, side, seen, sizes, free, rng)
    if apart:
        forced = np.empty(count, np.int64)
        for a in range(count):
            forced[a] = 0 if c[members[a]] == first else 1
        log_q = restricted_scan(channel, kernel, shift, z, members, side, seen, sizes, forced, rng)
    else:
        log_q = restricted_scan(channel, kernel, shift, z, members, side, seen, sizes, free, rng)
    before = k - 1 if apart else k
    opening = new_weight(mixing, s, before)
    if opening <= 0.0:  # a finite mixture that is full
        return 0.0, atoms
    prior = math.log(opening) + log_rising(sizes[0], shift) + log_rising(sizes[1], shift) - log_rising(count, shift)
    gain = log_evidence(channel, kernel, seen, 0) + log_evidence(channel, kernel, seen, 1)
    log_ratio = prior + gain - log_evidence(channel, kernel, whole, 0) - log_q
    if apart:
        log_ratio = -log_ratio
    rate = math.exp(min(log_ratio, 0.0))
    if rng.random() >= rate:
        return rate, atoms
    if apart:  # the last cluster takes the number that becomes free
        for r in range(n):
            if c[r] == second:
                c[r] = first
        last = k - 1
        if second != last:
            for r in range(n):
                if c[r] == last:
                    c[r] = second
        return rate, atoms[:last].copy()
    for a in range(count):
        if side[a] == 1:
            c[members[a]] = k
    larger = np.empty((k + 1, atoms.shape[1]))
    larger[:k] = atoms
    larger[k] = atoms[first]
    return rate, larger
