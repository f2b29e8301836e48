"""Weights and atoms of the mixing measure move together, with the clusters and the values of most records summed out.

Given the measure  sum_h w_h delta(atom_h)  the records are independent, each with density  sum_h w_h g(z | atom_h),  g that of
released values (`latent.log_marginal`). Chains that carry clusters or values move weights and atoms by no more than n known
clusters and values allow, which is little where the noise hides them; this move is free of both. One move:

1. the measure given the clusters (mixings.py), and of it the first K atoms in size-biased order: each time an atom is picked in
   proportion to its weight. Atoms without records are among them, so that clusters open and close. K is drawn without looking
   at anything but the strength. S are the records of those atoms, free to be at any of them; all others keep their clusters;
2. many small steps of w and of the atoms, the sum of the K weights as it is, that keep the law in which clusters and values of
   S are summed out,

       prod_{j<=K} w_j^offset base(atom_j)  x  prod_{j<K} 1 / r_j  x  prod_S sum_{j<=K} w_j g(z | atom_j),

   r_j being all mass after the first j atoms; but with the z of a cell replaced by two nodes that have its first moments, so
   that a step costs as many terms as there are nodes, whatever n is. Steps are drawn at random and each is reversible, so all
   of them together are, for that law;
3. all of them are accepted or refused as one, by the right law over the law of nodes, new over old (Liu 2001, section 9.4.3):
   the posterior is kept exactly, however wide the cells are;
4. clusters of S in proportion to w_j g(z_i | atom_j), then values of the records of S, each from its exact law.

The first two factors in 2 are the prior in size-biased order: the share of what is left that atom j takes is Beta(1 + offset,
new_weight(j)) for every mixing of mixings.py (Pitman 1996), and new_weight(j) is  strength - j offset  for all of them. The
order depends on the weights alone, so that clusters given weights are as before. The move is reversible: clusters are forgotten
before weights and atoms move, and drawn anew after.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.clusters import cluster_sizes, update_labels
from privurn._kernels.mixtures.kernels import log_pair_step, log_step, update_from_base, update_value
from privurn._kernels.mixtures.latent import update_latent, update_marginals

SMALLEST = 1e-300
"""Densities and weights below are taken for this, so that logarithms are finite."""

MOST_ATOMS = 24
"""K is between 2 and this at strengths up to 1, drawn on a log scale: a few heavy atoms often, many light ones at times."""

MOST_STRENGTH = 64.0
"""Mass lies on more atoms the larger the strength is: up to here there may be sqrt(strength) times as many."""

LARGEST_STEP = 2.0
"""In units of the kernel, or on the logit scale of weights."""

ATOM, WEIGHT = 0.4, 0.3
"""Shares of steps of one atom, and of the weights of two; all others are of both."""


@inner
def update_first(sizes, s, shift, shares, rests, members, labels, rng):
    """Draw the weights given the clusters, and of all atoms the first in size-biased order, as many as `shares` has places.

    members[j] is the cluster of the j-th, -1 for an atom without records, labels[h] the place of cluster h, -1 for none, and
    rests[j] all mass after the j-th. Returns how many there are: a finite mixture may have fewer.
    """
    k = sizes.shape[0]
    heavy = np.empty(k)
    left = 0.0
    for h in range(k):
        heavy[h] = max(rng.standard_gamma(sizes[h] + shift), SMALLEST)
        left += heavy[h]
        labels[h] = -1
    fresh = s - shift * k
    rest = rng.standard_gamma(fresh) if fresh > 1e-9 * s else 0.0
    used, clusters = 0, 0
    while used < shares.shape[0] and (clusters < k or rest > SMALLEST):
        point = rng.random() * (left + rest) - rest
        if clusters == k or point < 0.0:
            fresh -= shift
            x = rng.standard_gamma(1.0 + shift)
            share = x / (x + rng.standard_gamma(fresh)) if fresh > 1e-9 * s else 1.0
            shares[used], members[used] = max(rest * share, SMALLEST), -1
            rest -= rest * share
        else:
            h = -1
            for each in range(k):  # in turn, those that were picked have none left
                if heavy[each] > 0.0:
                    h = each
                    if point < heavy[each]:
                        break
                    point -= heavy[each]
            shares[used], members[used], labels[h] = heavy[h], h, used
            heavy[h] = 0.0
            clusters += 1
            left = 0.0
            for each in range(k):
                left += heavy[each]
        used += 1
    after = left + rest
    for j in range(used - 1, -1, -1):
        rests[j] = after
        after += shares[j]
    for j in range(used):
        shares[j] /= after
        rests[j] /= after
    return used


@inner
def update_density(density, shares, masses, used):
    """Densities of all nodes, clusters summed out; atom after atom, since that is how masses lie in memory."""
    for b in range(density.shape[0]):
        density[b] = 0.0
    for j in range(used):
        for b in range(density.shape[0]):
            density[b] += shares[j] * masses[j, b]
    for b in range(density.shape[0]):
        density[b] = max(density[b], SMALLEST)


@inner
def two_of(used, rng):
    """Two places, the first ones more often: heavy atoms come first. The same one twice where there is one only."""
    u, v = rng.random(), rng.random()
    j, other = int(u * u * used), int(v * v * (used - 1))
    return j, min(other + 1 if other >= j else other, used - 1)


@inner
def step_size(n, share, noise, rng):
    """On a log scale; the smallest is about the deviation that n records leave, an atom having that share of them."""
    finest = math.sqrt((1.0 + noise * noise / share) / (1.0 + n * share))
    return LARGEST_STEP * min(finest / LARGEST_STEP, 0.5) ** rng.random()


@inner
def log_prior(shares, rests, shift, j, other, new, rest):
    """Log ratio, new over old, of the prior of the weights on the logit scale, two of them being moved."""
    first, last = min(j, other), max(j, other)
    change = (rest if other == last else new) - shares[last]
    ratio = (1.0 + shift) * math.log(new / shares[j]) + (1.0 + shift) * math.log(rest / shares[other])
    for t in range(first, last):
        ratio -= math.log(max(rests[t] + change, SMALLEST) / max(rests[t], SMALLEST))
    return ratio


@inner
def moved(channel, kernel, nodes, rows, shares, rests, masses, counts, density, used, shift, n, noise, rng):
    """One step: of one atom, of the weights of two, or of both atoms and weights with mean and variance of the two kept.

    Rows `used` and after are trials. Returns the change of the log likelihood of nodes, 0 where it is refused.
    """
    j, other = two_of(used, rng)
    kind = rng.random() if other != j else 0.0
    both = shares[j] + shares[other]
    new, rest, prior = shares[j], shares[other], 0.0
    at, at_other = j, other  # where the masses after the step are
    for e in range(rows.shape[1]):
        rows[used, e], rows[used + 1, e] = rows[j, e], rows[other, e]
    if kind < ATOM:
        prior = log_step(kernel, rows, used, step_size(n, new, noise, rng), rng)
        at = used
    else:
        size, share = step_size(n, both, noise, rng), new / both
        if kind < ATOM + WEIGHT:
            odds = new / rest * math.exp(size * rng.standard_normal())
            share = odds / (1.0 + odds)
        else:
            share, prior = log_pair_step(kernel, rows, used, used + 1, share, size, rng)
            at, at_other = used, used + 1
        new, rest = both * share, both * (1.0 - share)
        if prior == -math.inf or not (SMALLEST < new < both and SMALLEST < rest < both):
            return 0.0
        prior += log_prior(shares, rests, shift, j, other, new, rest)
    for row in range(used, max(at, at_other) + 1):
        update_marginals(channel, kernel, nodes, rows, row, masses, row)
    ratio = 0.0
    for b in range(counts.shape[0]):
        after = density[b] + new * masses[at, b] - shares[j] * masses[j, b]
        if other != j:
            after += rest * masses[at_other, b] - shares[other] * masses[other, b]
        ratio += counts[b] * math.log(max(after, SMALLEST) / density[b])
    if not rng.random() < math.exp(min(ratio + prior, 0.0)):
        return 0.0
    shares[j], shares[other] = new, rest
    for t in range(max(j, other) - 1, min(j, other) - 1, -1):
        rests[t] = rests[t + 1] + shares[t + 1]
    for e in range(rows.shape[1]):
        rows[j, e] = rows[at, e]
        rows[other, e] = rows[at_other, e]
    for b in range(counts.shape[0]):
        masses[j, b] = masses[at, b]
        masses[other, b] = masses[at_other, b]
    update_density(density, shares, masses, used)
    return ratio


@inner
def update_all(channel, kernel, points, rows, used, masses):
    """Densities of the first `used` atoms at all points."""
    for j in range(used):
        update_marginals(channel, kernel, points, rows, j, masses, j)


@inner
def log_likelihood(shares, masses, used, counts):
    """Of the records of S, so many at each released value, clusters summed out."""
    density, total = np.empty(counts.shape[0]), 0.0
    update_density(density, shares, masses, used)
    for p in range(counts.shape[0]):
        if counts[p] > 0.0:
            total += counts[p] * math.log(density[p])
    return total


@inner
def update_choices(shares, masses, used, c, at, inside, rng):
    """Atoms of the records of S, numbered 0, 1, ..., given shares and atoms."""
    for i in range(c.shape[0]):
        if inside[i]:
            total = 0.0
            for j in range(used):
                total += shares[j] * masses[j, at[i]]
            point, j = rng.random() * total, 0
            while j < used - 1 and point >= shares[j] * masses[j, at[i]]:
                point -= shares[j] * masses[j, at[i]]
                j += 1
            if total > 0.0:
                c[i] = j


@inner
def update_values(channel, kernel, z, c, y, m, atoms, inside, rng):
    """Values of the records of S given their atoms: one of m from its exact law, the others from the kernel."""
    for i in range(c.shape[0]):
        if inside[i]:
            seen = i * m + (int(rng.random() * m) if m > 1 else 0)
            for a in range(i * m, i * m + m):
                if a != seen:
                    update_value(kernel, y, a, atoms, c[i], rng)
            update_latent(channel, kernel, z[i], y, seen, atoms, c[i], rng)


@compiled
def regroup(channel, kernel, s, shift, z, c, y, m, atoms, points, at, nodes, cells, portions, noise, steps, rng):
    """One move, which changes c and y in place; returns the atoms and the probability with which it was accepted.

    `s` and `shift` are the strength and the offset of the mixing. points[at[i]] is what z[i] says. For the `steps` steps for
    each atom it is spread over the nodes of cell cells[i], which lie side by side, in these portions. `noise` is the scale of
    the noise in units of the kernel's, which says how small steps should be.
    """
    n, k = c.shape[0], atoms.shape[0]
    largest = MOST_ATOMS * math.sqrt(min(max(s, 1.0), MOST_STRENGTH))
    most = int(2.0 * math.exp(rng.random() * math.log((largest + 1.0) / 2.0)))
    shares, rests = np.empty(most), np.empty(most)
    members, labels = np.empty(most, np.int64), np.empty(k, np.int64)
    used = update_first(cluster_sizes(c, k), s, shift, shares, rests, members, labels, rng)
    rows, masses, density = np.empty((used + 2, atoms.shape[1])), np.empty((used + 2, nodes.shape[0])), np.empty(nodes.shape[0])
    old, new, before = np.empty((used, points.shape[0])), np.empty((used, points.shape[0])), np.empty(used)
    width = portions.shape[1]
    counts, seen, inside = np.zeros(nodes.shape[0]), np.zeros(points.shape[0]), np.empty(n, np.bool_)
    for i in range(n):
        inside[i] = labels[c[i]] >= 0
        if inside[i]:
            seen[at[i]] += 1.0
            for e in range(width):
                counts[cells[i] * width + e] += portions[cells[i], e]
    everything = np.empty((used + k, atoms.shape[1]))  # atoms of the K places, then those of the clusters
    for j in range(used):
        before[j] = shares[j]
        if members[j] < 0:
            update_from_base(kernel, rows, j, rng)
        for e in range(atoms.shape[1]):
            if members[j] >= 0:
                rows[j, e] = atoms[members[j], e]
            everything[j, e] = rows[j, e]
    for h in range(k):
        for e in range(atoms.shape[1]):
            everything[used + h, e] = atoms[h, e]
    update_all(channel, kernel, nodes, rows, used, masses)
    update_all(channel, kernel, points, rows, used, old)
    update_density(density, shares, masses, used)
    change = 0.0
    for _ in range(steps * used):
        change += moved(channel, kernel, nodes, rows, shares, rests, masses, counts, density, used, shift, n, noise, rng)
    update_all(channel, kernel, points, rows, used, new)
    right = log_likelihood(shares, new, used, seen) - log_likelihood(before, old, used, seen)
    rate = math.exp(min(right - change, 0.0))
    accepted = rng.random() < rate
    for j in range(used):
        if not accepted:
            shares[j] = before[j]
        for e in range(atoms.shape[1]):
            if accepted:
                everything[j, e] = rows[j, e]
    for i in range(n):
        c[i] = labels[c[i]] if inside[i] else used + c[i]
    update_choices(shares, new if accepted else old, used, c, at, inside, rng)
    update_values(channel, kernel, z, c, y, m, everything, inside, rng)
    atoms, _ = update_labels(c, everything, used + k)
    return atoms, rate
