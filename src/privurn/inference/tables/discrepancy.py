"""How far a table may be from the model fitted to its pairs: n0, learnt from triples that the fit has not seen.

The table's law is taken for the model m plus a discrepancy with the covariance of n0 records drawn from m. n0 is learnt from
measured triples, given their pairs: each triple's cells are grouped to few a column (sums of noisy counts have known noise),
its interaction is what the pairs do not predict, and the likelihood is the product over triples. Interactions of different
triples are uncorrelated where columns are independent, and nearly so elsewhere.

Real tables are further from a model in smooth directions, which regressions look at, than in all the others: coarser groups
give a smaller n0. So it is learnt with two and with three groups a column, and the smaller one is taken. Some triples are
further away than others, which one n0 for all does not see: it is never taken to be larger than 100.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]

GROUPS = (2, 3)
"""Cells of a column after grouping, for each time that n0 is learnt."""

MOST_TRIPLES = 40
FEWEST_TRIPLES = 4
"""Where an analysis has fewer, triples with other columns help."""

DROP = 1.35
"""Of the log likelihood, from its maximum to the lower end."""

MOST = 100.0
"""The largest n0 that is used, whatever the triples say: a model is not trusted further."""

GRID = 40


@dataclass(frozen=True)
class Discrepancy:
    """n0 that intervals use, the most likely one, and how many triples it was learnt from (0: assumed)."""

    size: float
    most_likely: float
    triples: int


def learn_discrepancy(table: MeasuredTable, mixture: MixtureOfProducts, places: Sequence[int]) -> Discrepancy:
    """n0 for an analysis of these columns; `mixture` must have been fitted to pairs only."""
    chosen = _triples(table, places)
    if not chosen:
        return Discrepancy(min(MOST, table.n), min(MOST, table.n), 0)
    sizes = np.geomspace(2.0, max(4.0, table.n), GRID)
    lower, best = [], []
    for groups in GROUPS:
        parts = [_Grouped.of(table, mixture, each, groups) for each in chosen]
        curve = np.array([sum(part.log_likelihood(size) for part in parts) for size in sizes])
        lower.append(_lower_end(sizes, curve))
        best.append(float(sizes[int(curve.argmax())]))
    return Discrepancy(min(*lower, MOST, table.n), min(*best, table.n), len(chosen))


def _lower_end(sizes: Floats, curve: Floats) -> float:
    """From the maximum down to where the curve has fallen enough, on a straight line between points."""
    top = int(curve.argmax())
    wanted = curve[top] - DROP
    for i in range(top, 0, -1):
        if curve[i - 1] <= wanted:
            share = (curve[i] - wanted) / (curve[i] - curve[i - 1])
            return float(sizes[i] * (sizes[i - 1] / sizes[i]) ** share)
    return float(sizes[0])


def _triples(table: MeasuredTable, places: Sequence[int]) -> list[Columns]:
    """Those within the columns used, then those with two of them, as far as needed."""
    measured = [each for each in table.layout.sets if len(each) == 3]
    pairs = set(table.layout.sets)
    whole = [each for each in measured if all(pair in pairs for pair in combinations(each, 2))]
    used = set(places)
    within: list[Columns] = [each for each in whole if set(each) <= used]
    if len(within) < FEWEST_TRIPLES:
        near = sorted((each for each in whole if not set(each) <= used), key=lambda each: -len(used & set(each)))
        within += near[: FEWEST_TRIPLES - len(within)]
    if len(within) > MOST_TRIPLES:
        within = [within[int(i)] for i in np.linspace(0, len(within) - 1, MOST_TRIPLES)]
    return within


@dataclass(frozen=True, eq=False)
class _Grouped:
    """One triple on grouped cells: its pairs' residuals and its own, the covariance of both under one record, the noise."""

    residual: Floats
    covariance: Floats
    noise: Floats
    pairs: int

    @classmethod
    def of(cls, table: MeasuredTable, mixture: MixtureOfProducts, places: Columns, count: int) -> "_Grouped":
        groups = [_groups(mixture.weights @ mixture.column(j), count) for j in places]
        law = _grouped(mixture.marginal(places), groups)
        cells = np.indices(law.shape).reshape(3, -1)
        indicators, residuals, noises = [], [], []
        for axes in (*combinations(range(3), 2), (0, 1, 2)):
            own = tuple(places[axis] for axis in axes)
            y = _grouped(table.marginals[own], [groups[axis] for axis in axes]) / table.n
            m = law.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
            widths = [np.bincount(groups[axis]) for axis in axes]
            merged = widths[0]
            for width in widths[1:]:
                merged = np.multiply.outer(merged, width)
            index = np.ravel_multi_index([cells[axis] for axis in axes], m.shape)
            indicators.append(np.eye(m.size)[index])
            residuals.append((y - m).ravel())
            noises.append((merged * (table.deviations[own] / table.n) ** 2).ravel())
        features = np.concatenate(indicators, axis=1)
        mass = law.ravel()
        centred = features - mass @ features
        covariance = centred.T @ (mass[:, None] * centred)
        return cls(np.concatenate(residuals), covariance, np.concatenate(noises), features.shape[1] - law.size)

    def log_likelihood(self, size: float) -> float:
        """Of the triple's residuals given those of its pairs."""
        rounding = 1e-12 * float(np.diag(self.covariance).max())  # cells of a set sum to one: without noise it is singular
        both = (self.covariance + rounding * np.eye(len(self.noise))) / size + np.diag(self.noise)
        pairs = slice(self.pairs)
        return _normal_log_density(self.residual, both) - _normal_log_density(self.residual[pairs], both[pairs, pairs])


def _normal_log_density(x: Floats, covariance: Floats) -> float:
    factor = cho_factor(covariance, lower=True)
    return float(-0.5 * x @ cho_solve(factor, x) - np.log(np.diag(factor[0])).sum())


def _groups(shares: Floats, count: int) -> NDArray[np.int64]:
    """Neighbouring cells put together such that groups have about equal shares."""
    middle = np.cumsum(shares) - 0.5 * shares
    raw = np.minimum((middle * count).astype(np.int64), count - 1)
    return np.unique(raw, return_inverse=True)[1]


def _grouped(array: Floats, groups: Sequence[NDArray[np.int64]]) -> Floats:
    for axis, group in enumerate(groups):
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        array = np.add.reduceat(array, starts, axis=axis)
    return array
