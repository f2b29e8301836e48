"""Whether the outermost cells of a column hold so much that values beyond them were probably clamped."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from privurn.domain import ColumnDomain
from privurn.inference.counts.released import Observed
from privurn.tables.cells import cell_values, is_numeric

TIMES = 4.0
"""The outermost cell stands out where it holds so many times what its neighbour does..."""

ERRORS = 6.0
"""... by so many standard errors, since the noise of a single cell may have Laplace tails."""

FEWEST = 4
"""Values that a column must have for its ends to stand out."""


def clamped_shares(observed: Sequence[Observed]) -> Mapping[str, float]:
    """By end of a column, the share of the records in its outermost cell, where values were clamped and it stands out.

    From unbiased estimates. A lower end at 0 is left out: there zeros are.
    """
    domain = observed[0].domain
    found: dict[str, float] = {}
    if domain is None:
        return found
    stride = 1
    for name, column in domain.columns.items():
        own = np.arange(domain.size) // stride % column.size
        stride *= column.size
        for end, edge, neighbour in _ends(column):
            weights = np.array([own == edge, (own == edge) - TIMES * (own == neighbour), np.ones(len(own))], np.float64)
            share = _standing_out(observed[0], weights)
            if share is not None:
                found[f"{name!r} at its {end} bound"] = share
    return found


def _ends(column: ColumnDomain) -> list[tuple[str, int, int]]:
    """Which end, its cell and the cell beside it."""
    if not is_numeric(column) or getattr(column, "outside", None) != "clamp" or column.n_values < FEWEST:
        return []
    last = column.n_values - 1
    upper = [("upper", last, last - 1)]
    edges = getattr(column, "edges", None)
    lowest = float(edges[0]) if edges is not None else float(cell_values(column)[0])
    return upper if lowest == 0.0 else [("lower", 0, 1), *upper]


def _standing_out(one: Observed, weights: NDArray[np.float64]) -> float | None:
    sums = one.term.unbiased_sums(weights, n=one.n)
    if sums is None or not np.isfinite(sums[0]).all() or not sums[0][2] > 0.0:
        return None
    (edge, apart, total), variances = sums
    return float(edge / total) if apart > ERRORS * np.sqrt(max(variances[1], 0.0)) else None
