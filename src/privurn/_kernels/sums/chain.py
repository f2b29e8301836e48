"""Whole chains: sweeps, what they adapt while warming up, and what they keep.

Symbols as in `sweeps`; `numbers` = (log step size, sweeps adapted so far, log largest jump); `mean`, `covariance` and `factor`
belong to the free parameters with log n behind them.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from privurn._kernels._compile import compiled
from privurn._kernels.arrays import update_copied
from privurn._kernels.sums.protocol import update_balanced, update_free, update_parameters
from privurn._kernels.sums.sweeps import jumped, update_records, update_sum, wandered
from privurn._kernels.sums.triangles import length, update_cholesky

STEP_ACCEPTANCE = 0.25
JUMP_ACCEPTANCE = 0.4
REFRESH = 20
"""Sweeps of the warm-up between two factorisations of the adapted covariance."""


class Tuning(NamedTuple):
    """Moves of a sweep, and what they need.

    joint     whether steps move log n too; block the largest jump, or 0 to adapt it; width of a standardised record
    """

    jumps: int
    steps: int
    joint: bool
    block: int
    width: int
    balances: int = 0


@register_jitable
def _update_moments(point, numbers, mean, covariance, factor):
    """Running mean and covariance that forget the way in, and the factor of the covariance now and then."""
    numbers[1] += 1.0
    gain = 1.0 / (1.0 + numbers[1]) ** 0.7
    size = len(mean)
    for j in range(size):
        point[j] -= mean[j]
    for j in range(size):
        mean[j] += gain * point[j]
        for k in range(size):
            covariance[j, k] += gain * (point[j] * point[k] - covariance[j, k])
    if numbers[1] % REFRESH == 0.0 and numbers[1] >= 2 * REFRESH:
        trial = covariance.copy()
        for j in range(size):
            trial[j, j] = trial[j, j] * (1.0 + 1e-6) + 1e-12
        if update_cholesky(trial, size):
            for j in range(size):
                update_copied(factor[j], trial[j])


@register_jitable
def update_jumps(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng):
    """All jumps of a sweep; returns records, n and how many were accepted.

    The largest jump must not follow n: k records more from n and k fewer from n + k have to be as likely. While warming it is
    adapted, and shrinks where the jumps are dearer than the sweep; then it stays.
    """
    moved = 0
    for _ in range(tuning.jumps):
        before = n
        block = tuning.block if tuning.block > 0 else int(math.exp(numbers[2]))
        records, n = jumped(model, noise, size, theta, records, n, total, block, rng)
        moved += n != before
        if warming and tuning.block == 0:
            gain = 1.0 / (1.0 + numbers[1]) ** 0.6
            longer = n != before and block <= 1 + 2 * n // tuning.jumps
            numbers[2] = min(20.0, max(0.0, numbers[2] + gain * ((1.0 if longer else 0.0) - JUMP_ACCEPTANCE)))
    return records, n, moved


@register_jitable
def swept(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng):
    """Records one by one, then jumps, at fixed parameters. Returns records, n, and the shares that were accepted of each."""
    update_sum(model, records, n, total)
    share = update_records(model, noise, theta, records, n, total, rng) / max(1, n)
    records, n, hops = update_jumps(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
    return records, n, share, hops / max(1, tuning.jumps)


@register_jitable
def update_kept(sweep, thin, theta, n, share, hops, kept, kept_n, rates):
    """Write the state down after every thin-th sweep, if anything is kept; returns its row, or -1."""
    if len(kept) == 0 or (sweep + 1) % thin != 0:
        return -1
    at = sweep // thin
    update_copied(kept[at], theta)
    kept_n[at] = n
    rates[at, 0] = share
    rates[at, 1] = hops
    return at


@compiled
def update_centred_chain(
    model, noise, size, tuning, theta, records, count, numbers, rng, sweeps, thin, warming, kept, kept_n, rates
):
    """Parameters given records, records one by one, jumps. Returns the records, which may have been moved to more room."""
    total = np.zeros(len(noise.values))
    n = count[0]
    for sweep in range(sweeps):
        update_parameters(model, theta, records, n, rng)
        numbers[1] += warming
        records, n, share, hops = swept(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
        update_kept(sweep, thin, theta, n, share, hops, kept, kept_n, rates)
    count[0] = n
    return records


@compiled
def update_interwoven_chain(
    model,
    noise,
    size,
    tuning,
    theta,
    records,
    count,
    numbers,
    mean,
    covariance,
    factor,
    rng,
    sweeps,
    thin,
    warming,
    kept,
    kept_n,
    rates,
):
    """As the centred chain, and parameters with the standardised records held fixed."""
    total = np.zeros(len(noise.values))
    point = np.empty(len(mean))
    n = count[0]
    for sweep in range(sweeps):
        update_parameters(model, theta, records, n, rng)
        records, n, share, hops = swept(model, noise, size, theta, records, n, total, tuning, numbers, warming, rng)
        records, n, walked = wandered(model, noise, size, theta, records, n, total, factor, math.exp(numbers[0]), tuning, rng)
        evened = 0
        if tuning.balances > 0:
            spread = length(factor[len(theta)])
            records, n, evened = update_balanced(model, noise, size, theta, records, n, total, spread, tuning, rng)
        if warming:
            gain = 1.0 / (1.0 + numbers[1]) ** 0.6
            numbers[0] += gain * (walked - STEP_ACCEPTANCE * tuning.steps)
            update_free(model, theta, point)
            point[len(theta)] = math.log(n + rng.random())
            _update_moments(point, numbers, mean, covariance, factor)
        at = update_kept(sweep, thin, theta, n, share, hops, kept, kept_n, rates)
        if at >= 0:
            rates[at, 2] = walked / max(1, tuning.steps)
            if tuning.balances > 0:
                rates[at, 3] = evened / tuning.balances
    count[0] = n
    return records
