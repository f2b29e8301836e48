"""A change of n that the parameters make up for: the sum that was released with noise stays where it is.

With accurate sums and an inaccurate n, n and the parameters lie on a curve: k records more must be balanced by parameters that
give every record less. Proposals that miss the curve by more than the noise are refused, so random steps have to be tiny.
Here n steps, records that are dropped or drawn at the old parameters change the sum, and Newton's method finds the parameters
at which the standardised records have the old sum again. Nothing but u is drawn: a map, whose inverse is the same move back.

T_n       sum over the first n standardised records, without rounding, as a function of the free coordinates f; D_n its slopes
f to f'   T_n'(f') = T_n(f), so |df' / df| = |D_n(f)| / |D_n'(f')|
ratio     of p(n) prior(f) q_f(u) g(total), u all records that either n needs, times |df' / df|, times that of log n's step.
          The shorter of the two sides draws the records it lacks at its own f, so that q is over the same records in both.
A map has an inverse only if Newton's method also finds the way back: where it ends elsewhere the move is refused.
"""

import math

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.arrays import update_copied, update_filled
from privurn._kernels.sums.noise import accepted, log_size
from privurn._kernels.sums.protocol import (
    log_ancillary,
    log_noise,
    log_prior,
    update_free,
    update_from_free,
    update_linearised,
    update_restored,
    update_standard,
    update_total,
)
from privurn._kernels.sums.sweeps import grown, update_new_standard
from privurn._kernels.sums.triangles import update_solution

ROUNDS, FARTHEST, CLOSE, BACK = 12, 2.0, 1e-8, 1e-6
"""Newton's steps at most; the longest that is followed, the length at which it has arrived; how well it must come back."""

SCALES = 2.0
"""Steps of log n have deviation 2.4 e^-r times the posterior's, r uniform on (0, SCALES): some length always suits."""


@register_jitable
def balanced(model, standard, n, wanted, free, theta):
    """Move `free` and `theta` to where the first n standardised records have the sum `wanted`.

    Returns log |D_n| there; nan where it is not found.
    """
    size = len(theta)
    total, slopes = np.empty(size), np.empty((size, size))
    for _ in range(ROUNDS):
        update_linearised(model, theta, standard, n, total, slopes)
        for j in range(size):
            total[j] -= wanted[j]
        level = update_solution(slopes, size, total)
        longest = 0.0
        for j in range(size):
            if not abs(total[j]) <= FARTHEST:
                return math.nan
            longest = max(longest, abs(total[j]))
            free[j] -= total[j]
        update_from_free(model, free[:size], theta)
        if longest < CLOSE:
            return level
    return math.nan


@register_jitable
def update_balanced(model, noise, size, theta, records, n, total, spread, tuning, rng):
    """Balanced steps of n, `spread` the posterior deviation of log n. Returns records, n and how many steps were accepted."""
    width = len(theta)
    standard = np.zeros((records.shape[0], tuning.width))
    for i in range(n):
        update_standard(model, theta, records[i], rng, standard[i])
    free, new_free, back_free = np.empty(width + 1), np.empty(width + 1), np.empty(width + 1)
    new_theta, back_theta, new_total = theta.copy(), theta.copy(), total.copy()
    here, slopes, row = np.empty(width), np.empty((width, width)), np.empty(records.shape[1])
    update_free(model, theta, free)
    update_linearised(model, theta, standard, n, here, slopes)
    update_filled(new_free, 0.0)  # only the determinant is wanted
    level = update_solution(slopes, width, new_free)
    moved = 0
    for _ in range(tuning.balances):
        shift = 2.4 * spread * math.exp(-SCALES * rng.random()) * rng.standard_normal()
        if abs(shift) > 2.0:
            continue
        other = math.floor((n + rng.random()) * math.exp(shift))
        log_ratio = log_size(size, other) - log_size(size, n) + shift if other >= 1 else -math.inf
        if log_ratio == -math.inf:
            continue
        standard = grown(standard, other)
        update_new_standard(model, theta, n, other, rng, row, standard)
        update_copied(new_free, free)
        update_copied(new_theta, theta)
        new_level = balanced(model, standard, other, here, new_free, new_theta)
        prior = log_prior(model, new_theta) if math.isfinite(new_level) else math.nan
        if not math.isfinite(prior):
            continue
        update_total(model, new_theta, standard, other, new_total)
        most = max(n, other)
        log_ratio += log_ancillary(model, new_theta, standard, most) - log_ancillary(model, theta, standard, most)
        log_ratio += prior - log_prior(model, theta) + level - new_level + log_noise(noise, new_total) - log_noise(noise, total)
        if not accepted(rng, log_ratio):
            continue
        update_copied(back_free, new_free)
        update_copied(back_theta, new_theta)
        balanced(model, standard, n, here, back_free, back_theta)
        same = True
        for j in range(width):
            same = same and abs(back_free[j] - free[j]) < BACK
        if same:
            moved += 1
            n = other
            level = new_level
            update_copied(free, new_free)
            update_copied(theta, new_theta)
            update_copied(total, new_total)
    if moved > 0:
        records = grown(records, n)
        for i in range(n):
            update_restored(model, theta, standard[i], records[i])
    return records, n, moved
