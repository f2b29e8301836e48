"""Several columns at once: how well a release keeps pairs, correlations and the joint shape, from counts of joint cells.

A joint cell is a mixed-radix number, one digit for each column (see `JointDomain`). Costs follow the distinct cells that occur.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, ColumnDomain, JointDomain
from privurn.errors import DomainError, ModelError
from privurn.reports.comparison.samples import cell_values, grouped, is_numeric

ROOT_HALF = math.sqrt(0.5)


def column_cells(cells: NDArray[np.int64], *, domain: JointDomain) -> dict[str, NDArray[np.int64]]:
    """The cell of each column that joint cells stand for."""
    found, rest = {}, cells
    for name, column in domain.columns.items():
        rest, found[name] = np.divmod(rest, column.size)
    return found


def marginal(counts: CountTable, *, domain: JointDomain, column: str) -> CountTable:
    """Counts of one column's cells."""
    cells, place = np.unique(column_cells(counts.values, domain=domain)[column], return_inverse=True)
    summed = np.zeros(len(cells), np.int64)
    np.add.at(summed, place, counts.counts)
    return CountTable.from_cells(cells, summed)


def pairwise_total_variation(a: CountTable, b: CountTable, *, domain: JointDomain) -> dict[tuple[str, str], float]:
    """Total variation between the joint distributions of every two columns."""
    cells, signed = _signed(a, b)
    own = column_cells(cells, domain=domain)
    sizes = {name: column.size for name, column in domain.columns.items()}
    found = {}
    for first, second in combinations(domain.columns, 2):
        place = np.unique(own[first] + sizes[first] * own[second], return_inverse=True)[1]
        found[first, second] = 0.5 * float(np.abs(grouped(place, signed)).sum())
    return found


def correlations(counts: CountTable, *, domain: JointDomain) -> dict[tuple[str, str], float]:
    """Pearson's correlation of every two columns of numbers, over the records in which both are numbers.

    NaN where one of them does not vary.
    """
    cells = column_cells(counts.values, domain=domain)
    numbers = {name: cell_values(column)[cells[name]] for name, column in domain.columns.items() if is_numeric(column)}
    return {
        (first, second): _correlation(numbers[first], numbers[second], counts.counts)
        for first, second in combinations(numbers, 2)
    }


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    both = ~(np.isnan(x) | np.isnan(y))
    if not both.any() or np.ptp(x[both]) == 0.0 or np.ptp(y[both]) == 0.0:  # not by the sd, which rounding keeps from 0
        return float("nan")
    x, y, share = x[both], y[both], weights[both] / weights[both].sum()
    x, y = x - np.sum(share * x), y - np.sum(share * y)
    spread = float(np.sqrt(np.sum(share * x * x) * np.sum(share * y * y)))
    return float(np.sum(share * x * y)) / spread


def sliced_wasserstein(a: CountTable, b: CountTable, *, domain: JointDomain, projections: int = 64, seed: int = 0) -> float:
    """Mean of W1 over random directions, the same for the same seed.

    Each record is a point: a number is scaled by its column's public bounds to [0, 1], a category is a coordinate of its own
    with value 1/sqrt(2), so that two different ones are at distance 1. A missing or "other" number lies in the middle and has
    such a coordinate too.
    """
    if projections < 1:
        raise ModelError("at least one projection is needed.")
    cells, signed = _signed(a, b)
    own = column_cells(cells, domain=domain)
    axes = {name: _axes(column) for name, column in domain.columns.items()}
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(projections):
        direction = rng.standard_normal(sum(axes.values()))
        direction /= np.linalg.norm(direction)
        at, start = np.zeros(len(cells)), 0
        for name, column in domain.columns.items():
            at += _projected(column, direction[start : start + axes[name]])[own[name]]
            start += axes[name]
        order = np.argsort(at)
        total += float(np.sum(np.abs(np.cumsum(signed[order])[:-1]) * np.diff(at[order])))
    return total / projections


def _axes(column: ColumnDomain) -> int:
    return 1 + column.size - column.n_values if is_numeric(column) else column.size


def _projected(column: ColumnDomain, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where each cell of a column lies along its part of a direction."""
    if not is_numeric(column):
        return direction * ROOT_HALF
    values = cell_values(column)
    ends = values[0], values[column.n_values - 1]
    if isinstance(column, Bins):
        ends = float(column.edges[0]), float(column.edges[-1])
    scaled = (values - ends[0]) / ((ends[1] - ends[0]) or 1.0)
    scaled[column.n_values :] = 0.5
    along: NDArray[np.float64] = scaled * direction[0]
    along[column.n_values :] += direction[1:] * ROOT_HALF
    return along


def _signed(a: CountTable, b: CountTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cells of both tables and the differences of their probabilities."""
    if a.n == 0 or b.n == 0:
        raise DomainError("a distance needs at least one record on each side.")
    cells = np.concatenate([a.values, b.values]).astype(np.int64)
    distinct, place = np.unique(cells, return_inverse=True)
    return distinct, grouped(place, np.concatenate([a.counts / a.n, -b.counts / b.n]))
