"""What records would be worth, before there are any: expected errors under a prior, by simulation from public quantities alone.

Tables are drawn from a prior, a mechanism is applied to each by its twin for simulation, and the errors are averaged. Seeds are
fixed, so that the same public quantities give the same figures. The rule: docs/explanation/expected-errors.md.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CONCENTRATIONS = (0.02, 0.1, 0.5, 2.0, 8.0, 32.0, 128.0, 1000.0, float("inf"))
"""Of the Dirichlet law of unordered cells, in each of them, one after the other: from few cells that hold all to even ones."""

MOST_CELLS = 2**17
"""Domains with more cells have no forecast: every run draws a number for each of them."""

SEED = 20_140
STARTS, SHARE = 256, 0.01
"""Most ranges of a table whose shares are looked at, and about how large those are."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected errors of published records, beside the confidential ones; None where there is no such figure.

    `wasserstein`      of ordered cells: W1 over the range; of two columns, the mean of theirs
    `total_variation`  of cells in no order: half the sum of the distances of their shares
    `mean_error`       of the mean, over the mean; both counted from the low end of the range
    `share_error`      of a share of 1%, over that share
    """

    wasserstein: float | None = None
    total_variation: float | None = None
    mean_error: float | None = None
    share_error: float | None = None

    @property
    def distance(self) -> float:
        """What mechanisms are compared by."""
        found = self.total_variation if self.wasserstein is None else self.wasserstein
        return float("inf") if found is None else found


@dataclass(frozen=True)
class OrderedCells:
    """Where ordered values stand in a domain: how many each column has, and special cells after them (null, other)."""

    shape: tuple[int, ...]
    special: tuple[int, ...]

    def margins(self, weights: Floats) -> list[Floats]:
        """Shares of each column's ordered values, among the records that have a value in every column."""
        sizes = [size + beside for size, beside in zip(self.shape, self.special, strict=True)]
        inside = weights.reshape(sizes[::-1])[tuple(slice(size) for size in self.shape[::-1])]
        axes = range(len(sizes))[::-1]  # the first column runs fastest
        found = [inside.sum(axis=tuple(each for each in axes if each != axis)) for axis in axes]
        return [each / max(each.sum(), 1e-300) for each in found]

    def placed(self, values: Whole) -> Whole:
        """Numbers of the ordered cells, among those of the whole domain."""
        sizes = [size + beside for size, beside in zip(self.shape, self.special, strict=True)]
        out = np.zeros(sizes[::-1], values.dtype)
        out[tuple(slice(size) for size in self.shape[::-1])] = values.reshape(self.shape[::-1])
        return out.ravel()


def unordered_tables(*, n: int, cells: int) -> list[Whole]:
    """Counts of n records whose shares are symmetric Dirichlet, with one concentration after the other."""
    rounds = 4 if cells <= 4096 else 1
    found = []
    for run in range(rounds * len(CONCENTRATIONS)):
        rng = np.random.default_rng([SEED, run])
        found.append(rng.multinomial(n, _dirichlet(cells, CONCENTRATIONS[run % len(CONCENTRATIONS)], rng)))
    return found


def _dirichlet(cells: int, concentration: float, rng: np.random.Generator) -> Floats:
    if concentration == float("inf"):
        return np.full(cells, 1.0 / cells)
    # the same law on a scale of logarithms: a small concentration would give zeros
    logs = np.log(rng.standard_gamma(concentration + 1.0, cells)) + np.log1p(-rng.random(cells)) / concentration
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum(), np.float64)


def expected_errors(
    release: Callable[[CountTable, np.random.Generator], NDArray[np.generic]],
    tables: Iterable[Whole],
    *,
    order: OrderedCells | None = None,
) -> Expected:
    """Averages over tables of counts of the errors of a simulated release of each; `release` gives weights of the cells."""
    distances, means, shares = [], [], []
    for run, counts in enumerate(tables):
        rng = np.random.default_rng([SEED + 1, run])
        released = np.asarray(release(CountTable(np.flatnonzero(counts), counts[counts > 0]), rng), np.float64)
        truth, told = counts / counts.sum(), released / released.sum()
        filled = counts >= (1 if order is None else 0)  # sets of cells in no order are made of those that hold records
        shares.append(_range_errors(truth[filled], told[filled]))
        if order is None:
            distances.append(0.5 * float(np.abs(told - truth).sum()))
            continue
        pairs = [(np.cumsum(a)[:-1], np.cumsum(b)[:-1]) for a, b in zip(order.margins(truth), order.margins(told), strict=True)]
        pairs = [each for each in pairs if len(each[0])]
        distances.append(float(np.mean([np.abs(b - a).mean() for a, b in pairs])))
        means.append(
            (float(np.mean([abs((b - a).mean()) for a, b in pairs])), float(np.mean([1.0 - a.mean() for a, _ in pairs])))
        )
    share = _ratio(shares)
    distance = float(np.mean(distances))
    if order is None:
        return Expected(total_variation=distance, share_error=share)
    return Expected(wasserstein=distance, mean_error=_ratio(means), share_error=share)


def _range_errors(truth: Floats, told: Floats) -> tuple[float, float]:
    """Errors of the shares of ranges of cells that hold about 1% of the records, and as often 1%; sums over the ranges.

    A range begins anywhere and ends where its share is next to 1%; beyond the last cell it goes on with the first. The error is
    hardly another between a fifth of that share and five times it, so that all those are taken.
    """
    ends, told_ends = (np.concatenate([[0.0], np.cumsum(np.tile(each, 2))]) for each in (truth, told))
    first = np.unique(np.linspace(0, len(truth) - 1, STARTS).astype(np.int64))
    last = np.minimum(np.searchsorted(ends, ends[first] + SHARE * (1.0 - 1e-9)), len(ends) - 1)
    shorter = ends[last] + ends[last - 1] > 2.0 * (ends[first] + SHARE)
    last = np.where(shorter & (last - 1 > first), last - 1, last)
    share = ends[last] - ends[first]
    kept = (share >= SHARE / 5.0) & (share <= 5.0 * SHARE)
    return float(np.abs(told_ends[last] - told_ends[first] - share)[kept].sum()), SHARE * float(kept.sum())


def _ratio(pairs: list[tuple[float, float]]) -> float | None:
    """Of sums: an error over what it is an error of."""
    above, below = (float(sum(each)) for each in zip(*pairs, strict=True))
    return above / below if below > 0.0 else None
