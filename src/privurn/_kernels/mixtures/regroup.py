"""Weights and atoms of clusters move together, with the clusters and the values of most records summed out.

Given weights and atoms the records are independent, each with density  sum_h w_h g(z | atom_h),  g that of released values
(`latent.log_marginal`). Chains that carry clusters or values move weights and atoms by no more than n known clusters and
values allow, which is little where the noise hides them; this move is free of both. One move:

1. anchors: a few records, drawn without looking at anything. Their clusters are the set L. They keep their clusters, so that no
   cluster of L can become empty; records of other clusters keep theirs too. All other records, those of S, are free to be in
   any cluster of L;
2. weights of the clusters of L within L, given the clusters: v ~ Dirichlet(sizes + offset);
3. many small steps of v and of the atoms that keep the law in which clusters and values of S are summed out,

       prod_L v_h^(anchors_h + offset - 1) base(atom_h)  x  prod_anchors g(z | own atom)  x  prod_S sum_L v_h g(z | atom_h),

   but with every z moved to the centre of its cell, so that a step costs as many terms as there are cells, whatever n is. Steps
   are drawn at random and each is reversible, so all of them together are, for that law;
4. all of them are accepted or refused as one, by the right law over the law of cells, new over old (Liu 2001, section 9.4.3):
   the posterior is kept exactly, however wide the cells are;
5. clusters of S in proportion to v_h g(z_i | atom_h), then values of all records of L, each from its exact law.

The law in 3 is that of sizes and weights together: the urn's law of sizes times Dirichlet(v; sizes + offset) is proportional to
prod v_h^(sizes_h + offset - 1), for every mixing of mixings.py; the sum over the clusters of S has no condition, since anchors
hold every cluster of L. The move is reversible: clusters are forgotten before weights and atoms move, and drawn anew after.
"""

import math

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.choice import chosen
from privurn._kernels.mixtures.clusters import update_labels
from privurn._kernels.mixtures.kernels import log_pair_step, log_step, update_value
from privurn._kernels.mixtures.latent import update_latent, update_marginals

SMALLEST = 1e-300
"""Densities below are taken for this, so that logarithms are finite."""

MOST_ANCHORS = 0.25
"""Of the records; how many is drawn on a log scale, so that small clusters are among L at times and large ones move freely."""

LARGEST_STEP = 2.0
"""In deviations of the base measure, or on the logit scale of weights; the smallest is 1 / sqrt(n)."""


@inner
def update_anchors(c, k, order, labels, members, rng):
    """Draw anchors into the first places of `order` and number their clusters; returns how many anchors and clusters."""
    n = c.shape[0]
    size = min(int(math.exp(rng.random() * math.log(1.0 + max(MOST_ANCHORS * n, 4.0)))), n)
    for i in range(n):
        order[i] = i
    for h in range(k):
        labels[h] = -1
    used = 0
    for a in range(size):
        b = a + int(rng.random() * (n - a))
        order[a], order[b] = order[b], order[a]
        h = c[order[a]]
        if labels[h] < 0:
            labels[h] = used
            members[used] = h
            used += 1
    return size, used


@inner
def total_density(shares, masses, used, cell):
    """Density of one cell, clusters summed out."""
    total = 0.0
    for j in range(used):
        total += shares[j] * masses[j, cell]
    return max(total, SMALLEST)


@inner
def two_of(used, rng):
    """Two clusters of L, one after the other."""
    j = int(rng.random() * used)
    other = int(rng.random() * (used - 1))
    return j, other + 1 if other >= j else other


@inner
def moved_share(shares, n_held, masses, counts, density, used, shift, size, rng):
    """Move mass between two clusters; returns the change of the log likelihood of cells, 0 where it is refused."""
    j, other = two_of(used, rng)
    both = shares[j] + shares[other]
    odds = shares[j] / shares[other] * math.exp(size * rng.standard_normal())
    new, rest = both * odds / (1.0 + odds), both / (1.0 + odds)
    if not (SMALLEST < new < both and SMALLEST < rest < both):
        return 0.0
    ratio = 0.0
    for b in range(counts.shape[0]):
        after = density[b] + (new - shares[j]) * (masses[j, b] - masses[other, b])
        ratio += counts[b] * math.log(max(after, SMALLEST) / density[b])
    prior = (n_held[j] + shift) * math.log(new / shares[j]) + (n_held[other] + shift) * math.log(rest / shares[other])
    if not rng.random() < math.exp(min(ratio + prior, 0.0)):
        return 0.0
    shares[j], shares[other] = new, rest
    for b in range(counts.shape[0]):
        density[b] = total_density(shares, masses, used, b)
    return ratio


@inner
def moved_pair(channel, kernel, centres, rows, shares, n_held, anchors, masses, counts, density, used, shift, size, rng):
    """Move two atoms and their shares, mean and variance of both together as they are; rows `used` and after are trials."""
    j, other = two_of(used, rng)
    for e in range(rows.shape[1]):
        rows[used, e], rows[used + 1, e] = rows[j, e], rows[other, e]
    both = shares[j] + shares[other]
    share, prior = log_pair_step(kernel, rows, used, used + 1, shares[j] / both, size, rng)
    new, rest = both * share, both * (1.0 - share)
    if prior == -math.inf or not min(new, rest) > SMALLEST:
        return 0.0
    prior += (n_held[j] + shift) * math.log(new / shares[j]) + (n_held[other] + shift) * math.log(rest / shares[other])
    update_marginals(channel, kernel, centres, rows, used, masses, used)
    update_marginals(channel, kernel, centres, rows, used + 1, masses, used + 1)
    ratio = 0.0
    for b in range(counts.shape[0]):
        after = density[b] + new * masses[used, b] - shares[j] * masses[j, b]
        after += rest * masses[used + 1, b] - shares[other] * masses[other, b]
        ratio += counts[b] * math.log(max(after, SMALLEST) / density[b])
        if anchors[j, b] > 0.0:
            ratio += anchors[j, b] * math.log(max(masses[used, b], SMALLEST) / max(masses[j, b], SMALLEST))
        if anchors[other, b] > 0.0:
            ratio += anchors[other, b] * math.log(max(masses[used + 1, b], SMALLEST) / max(masses[other, b], SMALLEST))
    if not rng.random() < math.exp(min(ratio + prior, 0.0)):
        return 0.0
    shares[j], shares[other] = new, rest
    for e in range(rows.shape[1]):
        rows[j, e], rows[other, e] = rows[used, e], rows[used + 1, e]
    for b in range(counts.shape[0]):
        masses[j, b], masses[other, b] = masses[used, b], masses[used + 1, b]
        density[b] = total_density(shares, masses, used, b)
    return ratio


@inner
def moved_atom(channel, kernel, centres, rows, shares, anchors, masses, counts, density, used, size, rng):
    """Move one atom, row `used` of rows and masses being the trial; returns the change of the log likelihood of cells."""
    j = int(rng.random() * used)
    for e in range(rows.shape[1]):
        rows[used, e] = rows[j, e]
    prior = log_step(kernel, rows, used, size, rng)
    update_marginals(channel, kernel, centres, rows, used, masses, used)
    ratio = 0.0
    for b in range(counts.shape[0]):
        after = density[b] + shares[j] * (masses[used, b] - masses[j, b])
        ratio += counts[b] * math.log(max(after, SMALLEST) / density[b])
        if anchors[j, b] > 0.0:
            ratio += anchors[j, b] * math.log(max(masses[used, b], SMALLEST) / max(masses[j, b], SMALLEST))
    if not rng.random() < math.exp(min(ratio + prior, 0.0)):
        return 0.0
    for e in range(rows.shape[1]):
        rows[j, e] = rows[used, e]
    for b in range(counts.shape[0]):
        masses[j, b] = masses[used, b]
        density[b] = total_density(shares, masses, used, b)
    return ratio


@inner
def log_likelihood(shares, masses, used, c, at, labels, held):
    """Of the records of L: anchors given their clusters, the others with theirs summed out; masses are of released values."""
    total = 0.0
    for i in range(c.shape[0]):
        j = labels[c[i]]
        if j >= 0:
            total += math.log(max(masses[j, at[i]], SMALLEST) if held[i] else total_density(shares, masses, used, at[i]))
    return total


@inner
def update_choices(shares, masses, used, c, at, labels, held, members, rng):
    """Clusters of the records of S given shares and atoms."""
    weights = np.empty(used)
    for i in range(c.shape[0]):
        if labels[c[i]] >= 0 and not held[i]:
            total = 0.0
            for j in range(used):
                weights[j] = shares[j] * masses[j, at[i]]
                total += weights[j]
            if total > 0.0:
                c[i] = members[chosen(weights, 0, used, total, rng)]


@inner
def update_values(channel, kernel, z, c, y, m, atoms, labels, rng):
    """Values of the records of L given their atoms: one of m from its exact law, the others from the kernel."""
    for i in range(c.shape[0]):
        if labels[c[i]] >= 0:
            seen = i * m + (int(rng.random() * m) if m > 1 else 0)
            for a in range(i * m, i * m + m):
                if a != seen:
                    update_value(kernel, y, a, atoms, c[i], rng)
            update_latent(channel, kernel, z[i], y, seen, atoms, c[i], rng)


@compiled
def regroup(channel, kernel, shift, z, c, y, m, atoms, points, at, centres, cells, steps, rng):
    """One move, which changes c and y in place; returns the atoms and the probability with which it was accepted.

    `shift` is the offset of the mixing. points[at[i]] is what z[i] says, and centres[cells[i]] where it is moved to for the
    `steps` steps for each cluster of L.
    """
    n, k, n_cells = c.shape[0], atoms.shape[0], centres.shape[0]
    order, labels, members = np.empty(n, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    n_anchors, used = update_anchors(c, k, order, labels, members, rng)
    held = np.zeros(n, np.bool_)
    for a in range(n_anchors):
        held[order[a]] = True
    counts, anchors, n_held, shares = np.zeros(n_cells), np.zeros((used, n_cells)), np.zeros(used), np.zeros(used)
    for i in range(n):
        j = labels[c[i]]
        if j >= 0:
            shares[j] += 1.0
            if held[i]:
                anchors[j, cells[i]] += 1.0
                n_held[j] += 1.0
            else:
                counts[cells[i]] += 1.0
    rows, masses, density = np.empty((used + 2, atoms.shape[1])), np.empty((used + 2, n_cells)), np.empty(n_cells)
    old, new, before = np.empty((used, points.shape[0])), np.empty((used, points.shape[0])), np.empty(used)
    total = 0.0
    for j in range(used):
        shares[j] = max(rng.standard_gamma(shares[j] + shift), SMALLEST)
        total += shares[j]
    for j in range(used):
        shares[j] = max(shares[j] / total, SMALLEST)
        before[j] = shares[j]
        for e in range(atoms.shape[1]):
            rows[j, e] = atoms[members[j], e]
        update_marginals(channel, kernel, centres, rows, j, masses, j)
        update_marginals(channel, kernel, points, rows, j, old, j)
    for b in range(n_cells):
        density[b] = total_density(shares, masses, used, b)
    change = 0.0
    for _ in range(steps * used):
        size = LARGEST_STEP * math.exp(-rng.random() * math.log(LARGEST_STEP * math.sqrt(n)))
        kind = rng.random() if used > 1 else 1.0
        if kind < 0.3:
            change += moved_share(shares, n_held, masses, counts, density, used, shift, size, rng)
        elif kind < 0.6:
            change += moved_pair(
                channel, kernel, centres, rows, shares, n_held, anchors, masses, counts, density, used, shift, size, rng
            )
        else:
            change += moved_atom(channel, kernel, centres, rows, shares, anchors, masses, counts, density, used, size, rng)
    for j in range(used):
        update_marginals(channel, kernel, points, rows, j, new, j)
    right = log_likelihood(shares, new, used, c, at, labels, held) - log_likelihood(before, old, used, c, at, labels, held)
    rate = math.exp(min(right - change, 0.0))
    if rng.random() < rate:
        for j in range(used):
            for e in range(atoms.shape[1]):
                atoms[members[j], e] = rows[j, e]
        update_choices(shares, new, used, c, at, labels, held, members, rng)
    else:
        update_choices(before, old, used, c, at, labels, held, members, rng)
    update_values(channel, kernel, z, c, y, m, atoms, labels, rng)
    atoms, _ = update_labels(c, atoms, k)
    return atoms, rate
