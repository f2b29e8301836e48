"""Floating-point twin of the exponential mechanism's draw, for comparisons: logarithms of weights, never for a release."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.exponential_losses import Loss, kink
from privurn.mechanisms.exponential_sampling import candidate

Floats = NDArray[np.float64]


def simulated_counts(
    loss: Loss,
    counts: NDArray[np.int64],
    *,
    gaps: Sequence[int],
    n: int,
    m: int,
    rate: float,
    rng: np.random.Generator,
    runs: int,
) -> NDArray[np.int64]:
    """`runs` histograms of m records, one a row."""
    z, s = len(counts), np.arange(m + 1)
    if loss.route == "candidates":
        logs = -rate * np.sqrt(_candidate_terms(loss.float_term(counts[:, None], n, m, s)))
        chosen = _pick(logs, rng, runs)
        return np.array([candidate(int(i), cells=z, records=m) for i in chosen])
    if loss.route == "totals":
        terms = loss.float_term(np.cumsum(counts)[:-1, None], n, m, s) * np.asarray(gaps, np.float64)[:, None]
        after = _suffix_sums(-rate * terms)
    else:
        own = -rate * loss.float_term(counts[:, None], n, m, s)
        kinks = [kink(int(x), n=n, m=m) for x in counts] if loss.linear else None
        after = _convolutions(own, kinks=kinks, log_ratio=-rate * n)
    out = np.zeros((runs, z), np.int64)
    for run in out:
        left = m
        for cell in range(z - 1):
            logs = after[cell][m - left :] if loss.route == "totals" else own[cell, : left + 1] + after[cell][left::-1]
            run[cell] = _pick(logs, rng, 1)[0]
            left -= run[cell]
        run[-1] = left
    return out


def _pick(logs: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    ends = np.cumsum(np.exp(logs - logs.max()))
    chosen: NDArray[np.int64] = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    return np.minimum(chosen, len(ends) - 1)


def _suffix_sums(logs: Floats) -> Floats:
    """Row j: log weight of the running total t after cell j times that of all ways to go on."""
    after = np.zeros(logs.shape[1])
    table = np.empty_like(logs)
    for j in range(len(logs) - 1, -1, -1):
        table[j] = logs[j] + after
        after = np.logaddexp.accumulate(table[j][::-1])[::-1]
    return table


def _convolutions(logs: Floats, *, kinks: Sequence[int] | None, log_ratio: float) -> Floats:
    """Row i: log weight of all ways to place r records in the cells after i."""
    z, size = logs.shape
    table = np.empty((z - 1, size))
    table[-1] = logs[-1]
    for i in range(z - 2, 0, -1):
        if kinks is not None:
            table[i - 1] = _geometric(logs[i], table[i], kink=kinks[i], log_ratio=log_ratio)
            continue
        for left in range(size):
            terms = logs[i, : left + 1] + table[i, left::-1]
            top = terms.max()
            table[i - 1, left] = top + math.log(np.exp(terms - top).sum())
    return table


def _geometric(own: Floats, rest: Floats, *, kink: int, log_ratio: float) -> Floats:
    """`geometrically_convolved` in logarithms."""
    size, width = len(rest), kink + 1
    slope = log_ratio * np.arange(size)
    blocks = np.full((-(-size // width), width), -np.inf)
    blocks.ravel()[:size] = rest + slope
    begun = np.logaddexp.accumulate(blocks, axis=1).ravel()[:size]
    ending = np.logaddexp.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()[:size]
    out: Floats = own[kink] + begun
    out[:width] += slope[width - 1 :: -1]
    if width < size:
        first = np.arange(1, size - kink)
        window = np.where(first % width == 0, ending[first], np.logaddexp(ending[first], begun[width:]))
        beyond = np.logaddexp.accumulate(rest - slope)[first - 1]
        out[width:] = np.logaddexp(own[kink] - slope[first] + window, own[width] + slope[first - 1] + beyond)
    return out


def _candidate_terms(terms: Floats) -> Floats:
    """Sums of terms of all histograms in the order of `candidate`."""
    left, done = np.array([terms.shape[1] - 1]), np.zeros(1)
    for row in terms[:-1]:
        parent = np.repeat(np.arange(len(left)), left + 1)
        s = np.arange(len(parent)) - np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        left, done = left[parent] - s, done[parent] + row[s]
    sums: Floats = done + terms[-1][left]
    return sums
