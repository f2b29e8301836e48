"""Moves of a chain: records one at a time, jumps in their number, and parameters with the standardised records held fixed.

theta     parameters; n records are in use of those that `records` has room for
total     sum of the records' statistics, kept with them
"""

import math

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.arrays import update_copied, update_filled
from privurn._kernels.sums.noise import accepted, log_size
from privurn._kernels.sums.protocol import (
    log_ancillary,
    log_exchanged,
    log_noise,
    log_prior,
    update_free,
    update_from_free,
    update_record,
    update_restored,
    update_standard,
    update_statistic,
    update_total,
)


@register_jitable
def grown(records, needed):
    """The same records with room for more; at least twice the room, so that growing is rare."""
    if needed <= records.shape[0]:
        return records
    larger = np.zeros((max(needed, 2 * records.shape[0]), records.shape[1]))
    for i in range(records.shape[0]):
        update_copied(larger[i], records[i])
    return larger


@register_jitable
def update_sum(model, records, n, total):
    """The sum afresh: differences added up over a sweep must not drift."""
    one = np.empty(len(total))
    update_filled(total, 0.0)
    for i in range(n):
        update_statistic(model, records[i], one)
        for j in range(len(total)):
            total[j] += one[j]


@register_jitable
def update_records(model, noise, theta, records, n, total, rng):
    """Propose each record anew from its law given the parameters; returns how many were accepted."""
    width, entries = model.columns, len(noise.values)
    row = np.empty(width)
    old, new, candidate = np.empty(entries), np.empty(entries), np.empty(entries)
    level = log_noise(noise, total)
    moved = 0
    for i in range(n):
        update_record(model, theta, rng, row)
        update_statistic(model, records[i], old)
        update_statistic(model, row, new)
        proposed = log_exchanged(noise, total, old, new, candidate)
        if accepted(rng, proposed - level):
            moved += 1
            level = proposed
            for j in range(entries):
                total[j] = candidate[j]
            for j in range(width):
                records[i, j] = row[j]
    return moved


@register_jitable
def jumped(model, noise, size, theta, records, n, total, block, rng):
    """One jump: k records more or fewer, k uniform on 1..block. Returns the records (perhaps moved) and their number.

    From n = 1 the jump is always up, elsewhere up or down with probability 1/2 each; a jump to below 1 is refused. New records
    come from their law given the parameters, so that only prior, noise and the jump's own probabilities are left.
    """
    k = 1 + int(block * rng.random())  # rng.integers is dear to compile
    up = True if n == 1 else rng.random() < 0.5
    if not up and k >= n:
        return records, n
    other = n + k if up else n - k
    log_ratio = log_size(size, other) - log_size(size, n)
    if log_ratio == -math.inf:
        return records, n
    if n == 1:
        log_ratio += math.log(0.5)
    elif other == 1:
        log_ratio += math.log(2.0)
    candidate, one = total.copy(), np.empty(len(total))
    sign = 1.0 if up else -1.0
    records = grown(records, other)
    for i in range(n, other):
        update_record(model, theta, rng, records[i])
    for i in range(min(n, other), max(n, other)):
        update_statistic(model, records[i], one)
        for j in range(len(total)):
            candidate[j] += sign * one[j]
    log_ratio += log_noise(noise, candidate) - log_noise(noise, total)
    if accepted(rng, log_ratio):
        update_copied(total, candidate)
        return records, other
    return records, n


@register_jitable
def update_new_standard(model, theta, first, last, rng, row, standard):
    """Standardised records from `first` to before `last`, from their law."""
    for i in range(first, last):
        update_record(model, theta, rng, row)
        update_standard(model, theta, row, rng, standard[i])


@register_jitable
def wandered(model, noise, size, theta, records, n, total, factor, scale, tuning, rng):
    """Random-walk steps of the parameters, and of log n where `tuning.joint`, with the standardised records held fixed.

    Free coordinates and log(n + r), r uniform, step by scale * factor * normal; target: prior, noise, and the density of
    the standardised records where that depends on the parameters. Records that a longer n needs come from their own law.
    Returns records, n and the number of accepted steps.
    """
    size_free = len(theta)
    standard = np.zeros((records.shape[0], tuning.width))
    for i in range(n):
        update_standard(model, theta, records[i], rng, standard[i])
    free, step = np.empty(size_free + 1), np.empty(size_free + 1)
    new_free, new_theta, new_total = np.empty(size_free + 1), theta.copy(), total.copy()
    row = np.empty(records.shape[1])
    update_free(model, theta, free)
    free[size_free] = 0.0  # log n, measured from where it is
    prior = log_prior(model, theta)
    moved = 0
    if not math.isfinite(prior):  # a place where the model does not offer this move
        return records, n, moved
    level = prior + log_noise(noise, total)
    for _ in range(tuning.steps):
        for j in range(size_free + 1):
            step[j] = rng.standard_normal()
        for j in range(size_free + 1):
            shift = 0.0
            for k in range(j + 1):
                shift += factor[j, k] * step[k]
            new_free[j] = free[j] + scale * shift
        other, log_ratio = n, 0.0
        if tuning.joint:
            before = n + rng.random()
            shift = new_free[size_free] - free[size_free]
            if abs(shift) > 2.0:  # symmetric; a wild step must not ask for millions of records
                continue
            after = before * math.exp(shift)
            other = math.floor(after)
            log_ratio = log_size(size, other) - log_size(size, n) + shift if other >= 1 else -math.inf
            if log_ratio == -math.inf:
                continue
        update_from_free(model, new_free[:size_free], new_theta)
        prior = log_prior(model, new_theta)
        if not math.isfinite(prior):
            continue
        if other > n:
            records = grown(records, other)
            standard = grown(standard, other)
            update_new_standard(model, new_theta, n, other, rng, row, standard)
        update_total(model, new_theta, standard, other, new_total)
        proposed = prior + log_noise(noise, new_total)
        both = min(n, other)
        log_ratio += log_ancillary(model, new_theta, standard, both) - log_ancillary(model, theta, standard, both)
        if accepted(rng, log_ratio + proposed - level):
            moved += 1
            level = proposed
            n = other
            update_copied(theta, new_theta)
            update_copied(total, new_total)
            for j in range(size_free):
                free[j] = new_free[j]
    if moved > 0:
        for i in range(n):
            update_restored(model, theta, standard[i], records[i])
    return records, n, moved
