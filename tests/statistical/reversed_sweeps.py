"""Sweeps of mixture samplers that run backwards in time, put together from the very steps that run them forwards.

A sweep K is a composition of steps, each of which is reversible for the posterior; the same steps in the opposite order are its
time reversal K*. What is no single reversible step is taken apart:

records    a scan over records 0, ..., n - 1 becomes one over n - 1, ..., 0. The model is exchangeable, so the compiled scan is
           given state and releases in the opposite order.
slices     the measure is drawn given the clusters in both directions. Given it, a record draws its cluster, then its value:
           backwards its value comes first. (With values summed out, cluster and value are one exact draw, in both directions.)
cut atoms  mean given variance, then variance given mean: backwards the other way round.

Steps that only draw what later steps do not look at (`emitted`: values of Neal 2, atoms and values of Neal 3) come last in
both directions. `forwards` is the sampler's sweep from the same list of steps: it must equal the sampler's own, bit by bit.
"""

import math

import numpy as np

from privurn._kernels.mixtures import (
    clusters,
    global_channels,
    global_neal5,
    global_slices,
    latent,
    mixings,
    neal2,
    neal3,
    neal5,
    neal8,
    slices,
    split_merge,
)
from privurn._kernels.mixtures.total_gaussian import TotalGaussianKernel
from privurn.inference.mixtures.samplers import parts


def flipped(values, m=1):
    """Entries of the records, m for each, in the opposite order of records."""
    return np.ascontiguousarray(values.reshape(-1, m, *values.shape[1:])[::-1]).reshape(values.shape)


def turn(state, m):
    """Put the records of a state in the opposite order, clusters numbered anew."""
    state["allocations"], state["latent"] = flipped(state["allocations"]), flipped(state["latent"], m)
    state["atoms"], _ = clusters.update_labels(state["allocations"], state["atoms"], len(state["atoms"]))


def scan(step):
    """A step that goes through the records one after the other."""

    def either_way(sampler, state, rng, *, back):
        z = sampler.observed.z
        if back:
            turn(state, sampler.auxiliary)
            z = z if is_global(sampler) else flipped(z)
        step(sampler, state, z, rng)
        if back:
            turn(state, sampler.auxiliary)

    return either_way


def is_global(sampler):
    """Whether there is one output for all records."""
    return sampler.name.startswith("global")


def with_rooms(state, step):
    """Call step(atoms, sizes, free, where) until it has gone through all records, as the samplers' sweeps do."""
    c, atoms = state["allocations"], state["atoms"]
    where, free = np.array([0, len(atoms), len(atoms), 0]), np.empty(0, np.int64)
    sizes = clusters.cluster_sizes(c, len(atoms))
    while where[0] < len(c):
        atoms, sizes, free = neal5.with_room(atoms, sizes, free, where[2])
        step(atoms, sizes, free, where)
    state["atoms"], _ = clusters.update_labels(c, atoms, where[2])


@scan
def neal5_records(sampler, state, z, rng):
    c, y, _, s, _ = parts(state)
    m = sampler.auxiliary
    level = np.array([neal5.log_mean_density(sampler.records[0], z[i], y, i * m, m) for i in range(len(c))])
    given = (*sampler.records, s[0], z, c, y, np.empty_like(y[:m]), level)
    with_rooms(state, lambda *rooms: neal5.update_clusters(*given, *rooms, rng))


@scan
def global_neal5_records(sampler, state, z, rng):
    c, y, _, s, _ = parts(state)
    (statistic, noise), kernel, mixing = sampler.records
    total = global_channels.total_of(statistic, y, len(z))
    given = (statistic, noise, kernel, mixing, s[0], z, c, y, total)
    with_rooms(state, lambda *rooms: global_neal5.update_clusters(*given, *rooms, rng))


@scan
def global_neal5_clusters(sampler, state, z, rng):
    _, kernel, mixing = sampler.records
    given = (kernel, mixing, state["strength"][0], state["allocations"], state["latent"])
    with_rooms(state, lambda *rooms: global_neal5.update_clusters_given_values(*given, *rooms, rng))


@scan
def neal2_records(sampler, state, z, rng):
    given = (*sampler.records, state["strength"][0], z, state["allocations"])

    def step(atoms, sizes, free, where):
        neal2.update_neal2(*given, atoms, sizes, free, np.empty(len(atoms) + 1), where, rng)

    with_rooms(state, step)


@scan
def neal8_records(sampler, state, z, rng):
    """Clusters with the values summed out, then the values: one step, whichever way time goes."""
    c, y, atoms, s, _ = parts(state)
    fresh = np.empty((sampler.auxiliary_atoms, atoms.shape[1]))

    def step(atoms, sizes, free, where):
        scores = np.empty(len(atoms) + len(fresh))
        neal8.update_choices(*sampler.records, s[0], z, c, atoms, sizes, free, fresh, scores, where, rng)

    with_rooms(state, step)
    for i in range(len(c)):
        latent.update_latent(*sampler.records[:2], z[i], y, i, state["atoms"], c[i], rng)


@scan
def neal3_records(sampler, state, z, rng):
    channel, kernel, mixing = sampler.records
    c, _, atoms, s, _ = parts(state)
    k = len(atoms)
    room = k + len(c) + 2  # enough for every record alone
    seen, evidence = np.zeros((room, neal2.N_SEEN)), np.zeros(room)
    seen[:k] = neal2.seen_of(channel, kernel, z, c, k)
    sizes, where = neal5.enlarged_counts(clusters.cluster_sizes(c, k), room), np.array([0, k, k])
    for h in range(k):
        evidence[h] = neal3.log_evidence(channel, kernel, seen, h)
    neal3.update_neal3(channel, kernel, mixing, s[0], z, c, seen, sizes, evidence, np.empty(room), where, rng)
    state["atoms"], _ = clusters.update_labels(c, neal5.enlarged(atoms, max(where[2], k)), where[2])


def splits(sampler, state, rng, *, back):
    """Each proposal is reversible, and they are alike."""
    for _ in range(sampler.split_merge):
        c, _, atoms, s, _ = parts(state)
        given = (*sampler.records, s[0], sampler.observed.z, c, atoms, sampler.scans, rng)
        _, state["atoms"] = split_merge.split_or_merge(*given)
    if sampler.split_merge:
        state["atoms"], _ = clusters.update_labels(state["allocations"], state["atoms"], len(state["atoms"]))


def slice_records(sampler, state, rng, *, back):
    c, y, atoms, s, _ = parts(state)
    cuts, sizes = np.empty(len(c)), clusters.cluster_sizes(c, len(atoms))
    heavy, atoms = slices.cut_measure(*sampler.records[1:], s[0], c, atoms, sizes, cuts, rng)
    given_measure(sampler, sampler.observed.z, c, y, heavy, atoms, cuts, rng, back=back)
    state["atoms"], _ = clusters.update_labels(c, atoms, len(atoms))


def given_measure(sampler, z, c, y, heavy, atoms, cuts, rng, *, back):
    """Clusters and values of all records, given the measure and the slices; changes c and y."""
    channel, kernel, _ = sampler.records
    everywhere, marginal = is_global(sampler), getattr(sampler, "marginal", False)
    weighing = slices.GivenReleased() if marginal else slices.GivenLatent()
    total = global_channels.total_of(channel[0], y, len(z)) if everywhere else None

    def records(z, c, y, cuts):
        if everywhere:
            global_slices.update_records(*channel, kernel, z, c, y, total, heavy, atoms, cuts, rng)
        else:
            slices.update_records(weighing, channel, kernel, z, c, y, heavy, atoms, cuts, rng)

    if not back or marginal:
        records(z, c, y, cuts)
        return
    turned = flipped(y)
    nothing_above = np.full(len(c), math.inf)  # every record keeps its cluster, so that only values move
    records(z if everywhere else flipped(z), flipped(c), turned, nothing_above)
    y[:] = flipped(turned)
    scores = np.empty(len(atoms))
    for i in range(len(c)):
        seen = (channel[1], kernel, z) if everywhere else (channel, kernel, z[i])
        c[i] = slices.cluster_above(weighing, *seen, y[i], c[i], heavy, atoms, cuts[i], scores, rng)


def atoms_given_values(sampler, state, rng, *, back):
    c, y, atoms, _, tuning = parts(state)
    kernel, m, width = sampler.records[1], sampler.auxiliary, sampler.model.kernel.n_statistics
    if back and isinstance(kernel, TotalGaussianKernel):
        before = Pinned(kernel, atoms, clusters_sums(kernel, c, y, m, len(atoms)), rng)
        clusters.update_atoms(kernel, atoms, c, y, m, width, tuning, False, before)
        rest = atoms[:, 1:].copy()
        clusters.update_atoms(kernel, atoms, c, y, m, width, tuning, False, rng)
        atoms[:, 1:] = rest
    else:
        clusters.update_atoms(kernel, atoms, c, y, m, width, tuning, False, rng)


def clusters_sums(kernel, c, y, m, k):
    """Size and sum of y - mean for each cluster."""
    of = np.repeat(c, m)
    return np.bincount(of, minlength=k), np.bincount(of, weights=y - kernel.mean, minlength=k)


class Pinned:
    """Random numbers whose normal ones lead to the means that the atoms have: only variances move. In plain Python only."""

    def __init__(self, kernel, atoms, sums, rng):
        n, total = sums
        variance = atoms[:, 1] ** 2
        weight = n / variance + kernel.precision / (variance + kernel.noise**2)
        self.normals = iter((atoms[:, 0] - kernel.mean - total / variance / weight) * np.sqrt(weight))
        self.random, self.standard_exponential = rng.random, rng.standard_exponential

    def standard_normal(self):
        return next(self.normals)


def atoms_given_released(sampler, state, rng, *, back):
    channel, kernel, _ = sampler.records
    atoms = state["atoms"]
    seen = neal2.seen_of(channel, kernel, sampler.observed.z, state["allocations"], len(atoms))
    for h in range(len(atoms)):
        neal2.update_atom_from_seen(channel, kernel, atoms, h, seen, h, rng)


def values(sampler, state, rng, *, back):
    c, y, atoms, _, _ = parts(state)
    for i in range(len(c)):
        latent.update_latent(*sampler.records[:2], sampler.observed.z[i], y, i, atoms, c[i], rng)


def strength(sampler, state, rng, *, back):
    s, k, n = state["strength"], len(state["atoms"]), len(state["allocations"])
    s[0] = mixings.new_strength(sampler.records[2], s[0], k, n, rng)


MOVES = {
    "neal5": (neal5_records, atoms_given_values, strength),
    "slice": (slice_records, atoms_given_values, strength),
    "neal8": (neal8_records, atoms_given_values, strength),
    "neal2": (neal2_records, atoms_given_released, strength),
    "neal3": (neal3_records, splits, strength),
    "global-neal5": (global_neal5_records, global_neal5_clusters, atoms_given_values, strength),
    "global-slice": (slice_records, atoms_given_values, strength),
}
EMITTED = {"neal2": (values,), "neal3": (atoms_given_released, values)}


def forwards(sampler, state, rng):
    """One sweep by its steps; changes the state."""
    for step in (*MOVES[sampler.name], *EMITTED.get(sampler.name, ())):
        step(sampler, state, rng, back=False)


def backwards(sampler, state, rng):
    """One sweep of the time reversal; changes the state."""
    for step in reversed(MOVES[sampler.name]):
        step(sampler, state, rng, back=True)
    for step in EMITTED.get(sampler.name, ()):
        step(sampler, state, rng, back=True)
