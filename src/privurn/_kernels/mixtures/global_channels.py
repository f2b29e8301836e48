"""Channels with one output for all records: what changes in its log density when one record is replaced.

The output W has one number w[j] for each coordinate of a sum over the records, `total`, and log q(W | total) is a sum over
coordinates. A record y makes `width` contributions to the sum; contribution e of every record lies in block e of the
coordinates, and the blocks do not overlap. Replacing a record so changes at most two coordinates of each block, whatever n is.
The sums are whole numbers, exact however often they are updated.

A statistic says where a record counts and how much; a noise says what a coordinate's change is worth.
"""

import math
from typing import NamedTuple

import numpy as np

from privurn._kernels.dispatch import generic, implement, inner


@generic(on=1)
def width(statistic):
    """Contributions of each record."""


@generic(on=1)
def position(statistic, y, e):
    """Coordinate that contribution e of the record y adds to."""


@generic(on=1)
def amount(statistic, y, e):
    """What contribution e of the record y adds there: a whole number."""


@generic(on=1)
def log_change(noise, w, before, after):
    """Log density of w given `after` in this coordinate of the sum, less that given `before`."""


@inner
def log_ratio(statistic, noise, w, total, old, new):
    """Log of q(W | the record `old` replaced by `new`) / q(W | total)."""
    change = 0.0
    for e in range(width(statistic)):
        here, there = position(statistic, old, e), position(statistic, new, e)
        less, more = amount(statistic, old, e), amount(statistic, new, e)
        if here != there:
            change += log_change(noise, w[here], total[here], total[here] - less)
            change += log_change(noise, w[there], total[there], total[there] + more)
        elif less != more:
            change += log_change(noise, w[here], total[here], total[here] + more - less)
    return change


@inner
def update_total(total, statistic, old, new):
    """Replace the record `old` by `new` in the sum."""
    for e in range(width(statistic)):
        total[position(statistic, old, e)] -= amount(statistic, old, e)
        total[position(statistic, new, e)] += amount(statistic, new, e)


@inner
def total_of(statistic, y, dimension):
    """The sum over all records."""
    total = np.zeros(dimension, np.int64)
    for i in range(y.shape[0]):
        for e in range(width(statistic)):
            total[position(statistic, y[i], e)] += amount(statistic, y[i], e)
    return total


class Bins(NamedTuple):
    """Counts of equal bins of clamped numbers."""

    lower: float
    upper: float
    bins: int


@implement(width, Bins)
def _(statistic):
    return 1


@implement(position, Bins)
def _(statistic, y, e):
    share = (min(max(y, statistic.lower), statistic.upper) - statistic.lower) / (statistic.upper - statistic.lower)
    return min(int(share * statistic.bins), statistic.bins - 1)


@implement(amount, Bins)
def _(statistic, y, e):
    return 1


class Moments(NamedTuple):
    """Sums of the powers 1, ..., degree of clamped numbers mapped to [0, 1], in steps of 1/unit."""

    lower: float
    upper: float
    degree: int
    unit: int


@implement(width, Moments)
def _(statistic):
    return statistic.degree


@implement(position, Moments)
def _(statistic, y, e):
    return e


@implement(amount, Moments)
def _(statistic, y, e):
    share = (min(max(y, statistic.lower), statistic.upper) - statistic.lower) / (statistic.upper - statistic.lower)
    return int(np.rint(min(share ** (e + 1.0), 1.0) * statistic.unit))


class Marginals(NamedTuple):
    """Tables of counts of rows of codes: a row y counts in cell starts[e] + sum_j radix[e, j] y[j] of table e."""

    starts: np.ndarray
    radix: np.ndarray


@implement(width, Marginals)
def _(statistic):
    return statistic.starts.shape[0]


@implement(position, Marginals)
def _(statistic, y, e):
    cell = statistic.starts[e]
    for j in range(statistic.radix.shape[1]):
        cell += statistic.radix[e, j] * y[j]
    return cell


@implement(amount, Marginals)
def _(statistic, y, e):
    return 1


class Codes(NamedTuple):
    """Any statistic of one column of codes, listed: contribution e of code v is amounts[v, e] at positions[v, e]."""

    positions: np.ndarray
    amounts: np.ndarray


@implement(width, Codes)
def _(statistic):
    return statistic.positions.shape[1]


@implement(position, Codes)
def _(statistic, y, e):
    return statistic.positions[y[0], e]


@implement(amount, Codes)
def _(statistic, y, e):
    return statistic.amounts[y[0], e]


class LaplaceNoise(NamedTuple):
    """Whole-number noise with P(k) proportional to e^(-|k|/scale)."""

    scale: float


@implement(log_change, LaplaceNoise)
def _(noise, w, before, after):
    return (abs(w - before) - abs(w - after)) / noise.scale


class GaussianNoise(NamedTuple):
    """Whole-number noise with P(k) proportional to e^(-k^2/(2 scale^2))."""

    scale: float


@implement(log_change, GaussianNoise)
def _(noise, w, before, after):
    return (after - before) * ((w - before) + (w - after)) / (2.0 * noise.scale * noise.scale)


class SmoothedDraws(NamedTuple):
    """w draws of a bin with count c, each with probability share c + floor (a frequency mixed with the uniform law)."""

    share: float
    floor: float


@implement(log_change, SmoothedDraws)
def _(noise, w, before, after):
    if w == 0:
        return 0.0
    return w * math.log((noise.share * after + noise.floor) / (noise.share * before + noise.floor))
