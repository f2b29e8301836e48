"""What a release is measured by, for each kind of domain, and the curves that a picture of it shows.

A yardstick holds the confidential counts. A release is how often each cell was drawn, one number for each cell of the domain.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import ColumnDomain, JointDomain
from privurn.errors import DomainError
from privurn.reports.comparison import distances, joint
from privurn.reports.comparison.samples import Sample, cell_values, grouped, is_numeric

MOST_BINS = 20
"""Total variation of numbers is taken on this many equal runs of cells, or on the cells where there are no more."""

CURVE_POINTS = 201
MOST_BARS = 40
FEW_NUMBERS = 12
"""Up to this many cells numbers are drawn as bars."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of merit: 0 is perfect. `unit` is "value" (the column's own), "share" (between 0 and 1) or "number"."""

    name: str
    title: str
    unit: str = "share"


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Where a column's curve is drawn: numbers on a line, or labelled bars."""

    column: str
    at: tuple[float, ...]
    labels: tuple[str, ...] | None = None


class Yardstick(ABC):
    """Measures releases against the confidential counts; the first metric decides which release is best."""

    metrics: tuple[Metric, ...]
    axes: tuple[Axis, ...]

    @abstractmethod
    def measure(self, release: NDArray[Any]) -> NDArray[np.float64]:
        """One number for each metric; NaN where a release has nothing to measure."""

    @abstractmethod
    def curves(self, release: NDArray[Any]) -> list[NDArray[np.float64]]:
        """One curve for each axis: a density, or shares."""


class NumberYardstick(Yardstick):
    """One column of numbers. Missing and "other" records count in the total variation only."""

    metrics = (
        Metric(name="wasserstein", title="W1", unit="value"),
        Metric(name="kolmogorov", title="max ECDF"),
        Metric(name="density", title="L2 of densities", unit="number"),
        Metric(name="total_variation", title="TV in bins"),
        Metric(name="mean", title="mean", unit="value"),
        Metric(name="standard_deviation", title="sd", unit="value"),
        Metric(name="quantile_10", title="10%", unit="value"),
        Metric(name="median", title="median", unit="value"),
        Metric(name="quantile_90", title="90%", unit="value"),
    )

    def __init__(self, counts: CountTable, *, name: str, domain: ColumnDomain) -> None:
        self.values = cell_values(domain)
        proper = self.values[: domain.n_values]
        self.shares = counts.dense(domain.size) / counts.n
        if not self.shares[: domain.n_values].any():
            raise DomainError("no record of the column is a number.", hint="Is it the right column?")
        self.sample = Sample.from_weights(self.values, counts.dense(domain.size))
        gap = float(np.diff(proper).min()) if len(proper) > 1 else 1.0
        self.bandwidth = distances.bandwidth(self.sample, least=gap)
        runs = min(MOST_BINS, domain.n_values)
        self.bins = np.arange(domain.size)
        self.bins[: domain.n_values] = np.arange(domain.n_values) * runs // domain.n_values
        self.bins[domain.n_values :] += runs - domain.n_values
        self.few = domain.n_values <= FEW_NUMBERS
        if self.few:
            labels = (*(f"{value:,.6g}" for value in proper), *_edge_labels(domain))
            self.axes = (Axis(column=name, at=tuple(map(float, range(domain.size))), labels=labels),)
        else:
            self.axes = (Axis(column=name, at=tuple(np.linspace(proper[0], proper[-1], CURVE_POINTS).tolist())),)
        self.expected = self._summary(self.sample)

    def _summary(self, sample: Sample) -> NDArray[np.float64]:
        moments = [distances.mean(sample), distances.standard_deviation(sample)]
        return np.append(moments, distances.quantiles(sample, probabilities=[0.1, 0.5, 0.9]))

    def measure(self, release: NDArray[Any]) -> NDArray[np.float64]:
        """Distances, then absolute errors of the summaries."""
        apart = 0.5 * np.abs(grouped(self.bins, release / release.sum() - self.shares)).sum()
        if not release[~np.isnan(self.values)].any():
            return np.array([np.nan, np.nan, np.nan, apart] + [np.nan] * 5)
        sample = Sample.from_weights(self.values, release)
        found = [
            distances.wasserstein(self.sample, sample),
            distances.kolmogorov(self.sample, sample),
            distances.density_distance(self.sample, sample, bandwidth=self.bandwidth),
            apart,
        ]
        return np.append(found, np.abs(self._summary(sample) - self.expected))

    def curves(self, release: NDArray[Any]) -> list[NDArray[np.float64]]:
        """The density of the release with the bandwidth of the data; shares where there are few cells."""
        if self.few:
            return [release / release.sum()]
        if not release[~np.isnan(self.values)].any():
            return [np.zeros(CURVE_POINTS)]
        runs, places = self._kernel
        shares = grouped(places, release[: len(places)])
        return [(shares[:, None] * runs).sum(axis=0) / shares.sum()]

    @cached_property
    def _kernel(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Densities of at most 2,000 runs of neighbouring cells at the curve's points, and each cell's run."""
        proper = self.values[~np.isnan(self.values)]
        runs = min(2000, len(proper))
        places = np.arange(len(proper)) * runs // len(proper)
        middles = grouped(places, proper) / np.bincount(places)
        apart = np.subtract.outer(middles, np.array(self.axes[0].at)) / self.bandwidth
        return np.exp(-0.5 * apart * apart) / (self.bandwidth * np.sqrt(2.0 * np.pi)), places


class CategoryYardstick(Yardstick):
    """One column of categories: only how often each occurs can be compared."""

    metrics = (
        Metric(name="total_variation", title="TV"),
        Metric(name="largest_error", title="largest error of a share"),
    )

    def __init__(self, counts: CountTable, *, name: str, domain: ColumnDomain) -> None:
        self.shares = counts.dense(domain.size) / counts.n
        self.shown = np.sort(np.argsort(-self.shares, kind="stable")[:MOST_BARS])
        labels = tuple(_labels(domain)[i] for i in self.shown)
        self.axes = (Axis(column=name, at=tuple(map(float, range(len(labels)))), labels=labels),)

    def measure(self, release: NDArray[Any]) -> NDArray[np.float64]:
        """Total variation and the largest error of a share."""
        apart = np.abs(release / release.sum() - self.shares)
        return np.array([0.5 * apart.sum(), apart.max()])

    def curves(self, release: NDArray[Any]) -> list[NDArray[np.float64]]:
        """Shares of the most frequent categories of the data."""
        return [release[self.shown] / release.sum()]


class JointYardstick(Yardstick):
    """Several columns taken jointly."""

    metrics: tuple[Metric, ...] = (
        Metric(name="sliced_wasserstein", title="sliced W1", unit="number"),
        Metric(name="pairwise_total_variation", title="TV of pairs, mean"),
        Metric(name="largest_pairwise_total_variation", title="TV of pairs, largest"),
        Metric(name="correlation", title="correlation, largest error"),
    )

    def __init__(self, counts: CountTable, *, domain: JointDomain) -> None:
        self.counts, self.domain = counts, domain
        self.correlations = joint.correlations(counts, domain=domain)
        if not self.correlations:
            self.metrics = self.metrics[:3]
        self.columns = {
            name: column_yardstick(joint.marginal(counts, domain=domain, column=name), name=name, domain=column)
            for name, column in domain.columns.items()
        }
        self.axes = tuple(axis for each in self.columns.values() for axis in each.axes)

    def measure(self, release: NDArray[Any]) -> NDArray[np.float64]:
        """Sliced W1, total variation of pairs of columns, and the largest error of a correlation."""
        table = _whole(release)
        pairs = list(joint.pairwise_total_variation(self.counts, table, domain=self.domain).values())
        found = [joint.sliced_wasserstein(self.counts, table, domain=self.domain), float(np.mean(pairs)), max(pairs)]
        if self.correlations:
            got = joint.correlations(table, domain=self.domain)
            errors = [abs(got[pair] - wanted) for pair, wanted in self.correlations.items()]
            found.append(max((each for each in errors if not math.isnan(each)), default=math.nan))
        return np.array(found)

    def curves(self, release: NDArray[Any]) -> list[NDArray[np.float64]]:
        """The curve of each column alone."""
        cells = np.flatnonzero(release)
        own = joint.column_cells(cells, domain=self.domain)
        found = []
        for name, each in self.columns.items():
            found += each.curves(grouped(own[name], release[cells], size=self.domain.columns[name].size))
        return found


def _whole(release: NDArray[Any]) -> CountTable:
    """A release as a table of whole counts; shares are counted in parts of 2^-50."""
    cells = np.flatnonzero(release)
    weights = release[cells]
    if not np.issubdtype(weights.dtype, np.integer):
        weights = np.rint(weights * (2.0**50 / weights.sum())).astype(np.int64)
    return CountTable.from_cells(cells, weights)


def column_yardstick(counts: CountTable, *, name: str, domain: ColumnDomain) -> Yardstick:
    """The yardstick of one column."""
    kind = NumberYardstick if is_numeric(domain) else CategoryYardstick
    return kind(counts, name=name, domain=domain)


def yardstick(counts: CountTable, *, domain: JointDomain) -> Yardstick:
    """The yardstick of a domain: a single column is measured as such."""
    if len(domain.columns) == 1:
        name, column = next(iter(domain.columns.items()))
        return column_yardstick(counts, name=name, domain=column)
    return JointYardstick(counts, domain=domain)


def _labels(domain: ColumnDomain) -> list[str]:
    return [*(str(value) for value in getattr(domain, "values", ())), *_edge_labels(domain)]


def _edge_labels(domain: ColumnDomain) -> list[str]:
    return ["other"] * (domain.other_cell is not None) + ["null"] * (domain.null_cell is not None)
