"""Monte Carlo expectation and maximisation: sweeps at fixed parameters, then a step uphill or to the complete-data maximum.

L         likelihood of what was released; g density of the noise; u standardised records, T their sum restored at theta
point     coordinates v of the parameters: free coordinates are centre + factor v
slope     of log L along v_j: E[(r(v + h e_j) - r(v - h e_j)) / 2h | released], r(w) = g(T_w(u)) q_w(u) / (g(T_v(u)) q_v(u)).
          L(w) / L(v) = E[r(w)] whatever w is and however rough T is, so the only error is that of a central difference of L.
          Its spread is that of the noise's score: with u fixed instead of x, little information is missing
lean      slope of log n on v in the posterior. A secret n would bring the missing information back, so n leans with v: with
          k uniform on (0, 1), n + k goes to (n + k) e^(lean h), which multiplies r by that factor and by what is known of the
          new n over what is known of the old. Exact but for n so small that a step leaves 1, ..., n: there lean is 0
summary   sufficient statistic of the complete data (number of records first), averaged with gain g: old + g (new - old)
"""

import math

import numpy as np
from numba.extending import register_jitable

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied
from privurn._kernels.sums.chain import swept, update_kept
from privurn._kernels.sums.noise import log_size
from privurn._kernels.sums.protocol import (
    log_ancillary,
    log_noise,
    log_prior,
    update_from_free,
    update_maximum,
    update_standard,
    update_summary,
    update_total,
)
from privurn._kernels.sums.sweeps import grown, update_new_standard

STEP = 0.1
"""Half the width of the central difference, in posterior deviations."""

SETTLING, POWER = 100.0, 0.6
"""While warming the gain is first / (1 + sweeps / SETTLING)^POWER: slowly enough to arrive, fast enough to settle."""


@register_jitable
def _update_placed(model, centre, factor, point, theta):
    """Parameters at a point."""
    free = np.empty(len(centre))
    for i in range(len(centre)):
        value = centre[i]
        for j in range(len(point)):
            value += factor[i, j] * point[j]
        free[i] = value
    update_from_free(model, free, theta)


@register_jitable
def update_slopes(model, noise, size, theta, standard, n, total, centre, factor, lean, point, weight, rng, slopes):
    """Slopes of log L + weight * log prior from one draw of n and the standardised records; `point` is where theta is.

    Returns the standardised records, perhaps moved to more room.
    """
    other, moved, row = theta.copy(), np.empty(len(total)), np.empty(model.columns)
    level, known = log_noise(noise, total), log_size(size, n)
    for j in range(len(point)):
        here = point[j]
        slopes[j] = 0.0
        for side in range(2):
            sign = 1.0 - 2.0 * side
            point[j] = here + sign * STEP
            _update_placed(model, centre, factor, point, other)
            prior = log_prior(model, other)
            count, change = n, 0.0
            if lean[j] != 0.0:
                shift = sign * STEP * lean[j]
                count = math.floor((n + rng.random()) * math.exp(shift))
                change = shift + log_size(size, count) - known if count >= 1 else -math.inf
            if math.isfinite(prior) and change > -math.inf:  # elsewhere nothing is defined: nothing pulls that way
                standard = grown(standard, count)
                update_new_standard(model, other, n, count, rng, row, standard)
                update_total(model, other, standard, count, moved)
                both = min(n, count)
                change += log_ancillary(model, other, standard, both) - log_ancillary(model, theta, standard, both)
                change += log_noise(noise, moved) - level
                slopes[j] += sign * (math.exp(min(change, 50.0)) + weight * prior) / (2.0 * STEP)
        point[j] = here
    return standard


@compiled
def update_climbing_chain(
    model,
    noise,
    size,
    tuning,
    centre,
    factor,
    lean,
    climb,
    theta,
    point,
    average,
    records,
    count,
    numbers,
    rng,
    sweeps,
    thin,
    warming,
    kept,
    kept_n,
    rates,
    kept_point,
    kept_slopes,
):
    """Sweeps of records and jumps, each followed by a step uphill.

    `climb` = (first gain, later gain, weight of the prior, furthest point). A path that wanders is drawn to where the
    likelihood is flatter, in proportion to its gain, so after warming it goes on from its own average with the later gain, a
    small one. `numbers` = (whether it has, sweeps, log largest jump); `average` is that since the last power of two of sweeps.
    A first gain of 0 stays where it is and only measures slopes. Returns the records, perhaps moved to more room.
    """
    first_gain, later_gain, weight, furthest = climb
    total = np.zeros(len(noise.values))
    slopes = np.zeros(len(point))
    standard = np.zeros((records.shape[0], tuning.width))
    n = count[0]
    for sweep in range(sweeps):
        if first_gain > 0.0 and not warming and numbers[0] == 0.0:
            numbers[0] = 1.0
            update_copied(point, average)
            _update_placed(model, centre, factor, point, theta)
        records, n, share, hops = swept(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
        standard = grown(standard, n)
        for i in range(n):
            update_standard(model, theta, records[i], rng, standard[i])
        standard = update_slopes(
            model, noise, size, theta, standard, n, total, centre, factor, lean, point, weight, rng, slopes
        )
        numbers[1] += 1.0
        if first_gain > 0.0:
            gain = first_gain / (1.0 + numbers[1] / SETTLING) ** POWER if warming else later_gain
            length = 0.0
            for j in range(len(point)):
                length += slopes[j] * slopes[j]
            gain /= max(1.0, gain * math.sqrt(length))  # no step is longer than one posterior deviation
            for j in range(len(point)):
                point[j] = min(furthest, max(-furthest, point[j] + gain * slopes[j]))
            _update_placed(model, centre, factor, point, theta)
            since = numbers[1] - 2.0 ** (math.frexp(numbers[1])[1] - 1) + 1.0
            for j in range(len(point)):
                average[j] += (point[j] - average[j]) / since
        at = update_kept(sweep, thin, theta, n, share, hops, kept, kept_n, rates)
        if at >= 0:
            update_copied(kept_point[at], point)
            update_copied(kept_slopes[at], slopes)
    count[0] = n
    return records


@compiled
def update_maximising_chain(
    model,
    noise,
    size,
    tuning,
    theta,
    records,
    count,
    numbers,
    summary,
    rng,
    sweeps,
    thin,
    warming,
    gain,
    kept,
    kept_n,
    rates,
):
    """Sweeps of records and jumps, each followed by the complete-data maximum at the averaged summary. Returns the records."""
    total = np.zeros(len(noise.values))
    fresh = np.empty(len(summary))
    n = count[0]
    for sweep in range(sweeps):
        records, n, share, hops = swept(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
        update_summary(model, records, n, fresh)
        numbers[1] += 1.0
        share_of_new = 1.0 if numbers[1] == 1.0 else gain
        for j in range(len(summary)):
            summary[j] += share_of_new * (fresh[j] - summary[j])
        update_maximum(model, summary, theta)
        update_kept(sweep, thin, theta, n, share, hops, kept, kept_n, rates)
    count[0] = n
    return records
