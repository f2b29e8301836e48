"""Log density of latent counts along lines of whole numbers through the current state.

k         cells                     C, `counts`   confidential counts, (k,)
gamma     analyst's prior, (k,)     S             records released in each cell
D, `noisy`    latent noisy counts in lattice steps, (release, k)
B, `kept`     of the records of a cell, those drawn from the noisy histogram rather than from the uniform, (release, k)
T, b, `sums`  sum of the positive parts of D, and sum of B, (release, 2)

settings, factors   releases without latent numbers: row r of `settings` is (URN, sum alpha, sum S), (MIXED, offset, 0),
                    (SEEN_GEOMETRIC or SEEN_GAUSSIAN, scale, steps); `factors`[r] holds alpha and S, nothing and S, or
                    the noisy counts and nothing. The prior of n, where it is secret, is a row without
                    factors: (SIZE_POISSON, mean, 0)
hidden              releases with latent noisy counts: rows (kind of noise, scale, steps, smoothing, renewed)

Arrays travel as plain arguments: taking them out of a record costs two atomic operations each time.
"""

import math
from typing import NamedTuple

from privurn._kernels import dispatch
from privurn._kernels._compile import compiled
from privurn._kernels.counts.discrete_laws import GAUSSIAN, GEOMETRIC, log_rising, noise_log, poisson_log

URN, MIXED, SEEN_GEOMETRIC, SEEN_GAUSSIAN, SIZE_POISSON = 0, 1, 2, 3, 4


class Transfer(NamedTuple):
    """Cell i has x of the `total` records of cells i and j; `carried`: D moves with C, so that the noise stays."""

    i: int
    j: int
    total: int
    carried: bool


class Growth(NamedTuple):
    """Cell i has x records, the others `others`, so that n moves; G = `prior_total`."""

    i: int
    others: int
    carried: bool
    prior_total: float


class NoisyCell(NamedTuple):
    """The latent noisy count of cell i in release h is x."""

    h: int
    i: int


@compiled
def released_log(i, c, settings, factors):
    """Log likelihood of c records in cell i under all releases without latent numbers; what depends on n is left out."""
    value = 0.0
    for r in range(settings.shape[0]):
        kind = settings[r, 0]
        if kind == URN:
            value += log_rising(factors[r, 0, i] + c, factors[r, 1, i])
        elif kind == MIXED:
            if factors[r, 1, i] > 0.0:
                value += factors[r, 1, i] * math.log(settings[r, 1] + c)
        elif kind <= SEEN_GAUSSIAN:
            law = GEOMETRIC if kind == SEEN_GEOMETRIC else GAUSSIAN
            value += noise_log(law, settings[r, 1], factors[r, 0, i] - settings[r, 2] * c)
    return value


@compiled
def cell_log(i, c, prior, settings, factors):
    """The prior of cell i on top: Gamma(gamma + c)/c!."""
    before = 0.0 if prior[i] == 1.0 else log_rising(c + 1.0, prior[i] - 1.0)
    return before + released_log(i, c, settings, factors)


@compiled
def size_log(n, prior_total, settings):
    """What depends on n alone: Dirichlet-multinomial constants of the prior and of every urn, a prior of n."""
    value = -log_rising(n + 1.0, prior_total - 1.0)
    for r in range(settings.shape[0]):
        kind = settings[r, 0]
        if kind == URN:
            value -= log_rising(settings[r, 1] + n, settings[r, 2])
        elif kind == SIZE_POISSON:
            value += poisson_log(n, settings[r, 1])
    return value


@compiled
def hidden_noise_log(i, c, hidden, noisy):
    """Log probability of the latent noise of cell i, were its count c."""
    value = 0.0
    for h in range(noisy.shape[0]):
        value += noise_log(hidden[h, 0], hidden[h, 1], noisy[h, i] - hidden[h, 2] * c)
    return value


@compiled
def share_log(noisy, kept):
    """B log D, with 0 log 0 = 0."""
    if kept == 0:
        return 0.0
    return kept * math.log(noisy) if noisy > 0 else -math.inf


@compiled
def one_share_log(h, i, x, noisy, kept, sums):
    """Log likelihood of the records kept in release h, were the noisy count of cell i x."""
    rest = sums[h, 0] - max(noisy[h, i], 0)
    total = rest + max(x, 0)
    if total == 0:
        return -sums[h, 1] * math.log(noisy.shape[1])
    if rest == 0 and sums[h, 1] > kept[h, i]:  # another cell has records but no mass
        return -math.inf
    return share_log(x, kept[h, i]) - sums[h, 1] * math.log(total)


@compiled
def two_shares_log(h, i, j, shift, noisy, kept, sums):
    """The same as `shift` lattice steps go from cell j to cell i."""
    rest = sums[h, 0] - max(noisy[h, i], 0) - max(noisy[h, j], 0)
    x = noisy[h, i] + shift
    y = noisy[h, j] - shift
    total = rest + max(x, 0) + max(y, 0)
    if total == 0:
        return -sums[h, 1] * math.log(noisy.shape[1])
    if rest == 0 and sums[h, 1] > kept[h, i] + kept[h, j]:
        return -math.inf
    return share_log(x, kept[h, i]) + share_log(y, kept[h, j]) - sums[h, 1] * math.log(total)


@dispatch.generic(on=1)
def line_log(line, x, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Log density, up to a constant, at the whole number x of a line."""


@dispatch.implement(line_log, Transfer)
def _transfer_log(line, x, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Log density along a `Transfer`."""
    i, j, y = line.i, line.j, line.total - x
    value = cell_log(i, x, prior, settings, factors) + cell_log(j, y, prior, settings, factors)
    if not line.carried:
        return value + hidden_noise_log(i, x, hidden, noisy) + hidden_noise_log(j, y, hidden, noisy)
    for h in range(noisy.shape[0]):
        value += two_shares_log(h, i, j, int(hidden[h, 2]) * (x - counts[i]), noisy, kept, sums)
    return value


@dispatch.implement(line_log, Growth)
def _growth_log(line, x, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Log density along a `Growth`."""
    i = line.i
    value = cell_log(i, x, prior, settings, factors) + size_log(line.others + x, line.prior_total, settings)
    if not line.carried:
        return value + hidden_noise_log(i, x, hidden, noisy)
    for h in range(noisy.shape[0]):
        value += one_share_log(h, i, noisy[h, i] + int(hidden[h, 2]) * (x - counts[i]), noisy, kept, sums)
    return value


@dispatch.implement(line_log, NoisyCell)
def _noisy_cell_log(line, x, prior, settings, factors, hidden, counts, noisy, kept, sums):
    """Log density along a `NoisyCell`."""
    h, i = line.h, line.i
    noise = x - hidden[h, 2] * counts[i]
    return noise_log(hidden[h, 0], hidden[h, 1], noise) + one_share_log(h, i, x, noisy, kept, sums)
