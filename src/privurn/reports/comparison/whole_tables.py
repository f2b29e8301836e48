"""How near one whole table is to another: low-order marginals, a test that tries to tell them apart, and what a fit learns.

Tables are cells of records, a row for each column. Two floors say what figures mean: columns that are shuffled independently of
each other keep nothing but single columns, and a resample of the data is as near as another sample of the same size would be.
Figures are computed from confidential records: they are for the custodian alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.marginal_counts import Columns, MarginalLayout, count_marginals
from privurn.mechanisms.marginals_layout import every_set

Codes = NDArray[np.uint16]
Floats = NDArray[np.float64]

MOST_FITTED = 20_000
"""Records of each table that a regression looks at."""

RIDGE = 1.0
"""Prior precision of the coefficients of a regression on indicators, so that empty cells do no harm."""

STEPS = 25


@dataclass(frozen=True, kw_only=True)
class Apart:
    """Total variation between marginals of so many columns: the mean over all sets, and the largest."""

    order: int
    mean: float
    worst: float
    worst_set: Columns


def marginal_distances(data: Codes, made: Codes, sizes: Sequence[int]) -> tuple[Apart, ...]:
    """Of one, two and three columns; of three, the sets that a release would measure."""
    return tuple(
        Apart(order=order, mean=float(own.mean()), worst=float(own.max()), worst_set=sets[int(own.argmax())])
        for order, (sets, own) in _per_order(data, made, sizes).items()
    )


def _per_order(data: Codes, made: Codes, sizes: Sequence[int]) -> dict[int, tuple[list[Columns], Floats]]:
    layout = MarginalLayout(tuple(sizes), every_set(sizes, order=3))
    if not layout.sets:
        return {}
    first, second = (count_marginals([np.ascontiguousarray(each)], layout) for each in (data, made))
    off = np.abs(first.counts / max(1, first.n) - second.counts / max(1, second.n))
    per_set = 0.5 * np.add.reduceat(off, layout.starts)
    orders = np.array([len(each) for each in layout.sets])
    return {
        int(order): ([each for each in layout.sets if len(each) == order], per_set[orders == order])
        for order in np.unique(orders)
    }


def worst_pairs(data: Codes, made: Codes, sizes: Sequence[int], *, most: int) -> list[tuple[Columns, float]]:
    """The pairs of columns that are furthest apart, with their total variation."""
    sets, own = _per_order(data, made, sizes).get(2, ([], np.zeros(0)))
    return [(sets[int(i)], float(own[i])) for i in np.argsort(-own, kind="stable")[:most]]


def shuffled(codes: Codes, *, rng: np.random.Generator) -> Codes:
    """Every column in a random order of its own."""
    return np.array([rng.permutation(column) for column in codes])


def resampled(codes: Codes, *, rng: np.random.Generator) -> Codes:
    """As many records, drawn with replacement."""
    n = codes.shape[1]
    return np.ascontiguousarray(codes[:, rng.integers(0, n, n)])


def propensity_ratio(data: Codes, made: Codes, sizes: Sequence[int], *, rng: np.random.Generator) -> float:
    """Mean squared error of a logistic regression's guess where a record comes from, in what chance alone would give.

    The regression sees indicators of all cells of all columns, and for every pair of columns whether both are in their upper
    half. About 1 where the tables cannot be told apart so.
    """
    size = min(MOST_FITTED, data.shape[1], made.shape[1])
    both = np.concatenate([_some(data, size, rng=rng), _some(made, size, rng=rng)], axis=1)
    design = np.concatenate([_indicators(both, sizes), _upper_pairs(both)], axis=1)
    source = np.repeat([0.0, 1.0], size)
    guess = _logistic(design, source)
    told = 1.0 / (1.0 + np.exp(-(design @ guess)))
    free = int((design.std(axis=0) > 0.0).sum())
    return float(np.mean((told - 0.5) ** 2) / (max(1, free) / (8.0 * 2.0 * size)))


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What a classifier learns from a table: its accuracy on held-out records, and how far its coefficients are off."""

    accuracy: float
    coefficients_off: float
    """Mean absolute difference from the coefficients that the data give, in their standard errors."""


def classified(
    data: Codes, held_out: Codes, made: Codes, sizes: Sequence[int], *, response: int, rng: np.random.Generator
) -> Learnt:
    """Logistic regression of the most frequent value of a column on indicators of all others, trained on `made`."""
    value = int(np.bincount(data[response]).argmax())
    others = [j for j in range(len(sizes)) if j != response]
    widths = [sizes[j] for j in others]

    def parts(codes: Codes) -> tuple[Floats, Floats]:
        own = _some(codes, min(MOST_FITTED, codes.shape[1]), rng=rng)
        return _indicators(own[others], widths), (own[response] == value).astype(np.float64)

    design, wanted = parts(data)
    truth = _logistic(design, wanted)
    law = 1.0 / (1.0 + np.exp(-(design @ truth)))
    information = (design * (law * (1.0 - law))[:, None]).T @ design + RIDGE * np.eye(design.shape[1])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    found = _logistic(*parts(made))
    test, right = parts(held_out)
    accuracy = float(np.mean((test @ found > 0.0) == (right > 0.5)))
    return Learnt(accuracy=accuracy, coefficients_off=float(np.mean(np.abs(found - truth) / errors)))


def _some(codes: Codes, size: int, *, rng: np.random.Generator) -> Codes:
    return codes[:, rng.choice(codes.shape[1], size, replace=False)]


def _indicators(codes: Codes, sizes: Sequence[int]) -> Floats:
    """A constant, and an indicator of every value of every column but its first."""
    widths = [size - 1 for size in sizes]
    starts = np.concatenate([[1], 1 + np.cumsum(widths)]).astype(np.int64)
    found = np.zeros((codes.shape[1], int(starts[-1])))
    found[:, 0] = 1.0
    for column, (start, _) in zip(codes, pairwise(starts), strict=True):
        rows = np.flatnonzero(column > 0)
        found[rows, start + column[rows].astype(np.int64) - 1] = 1.0
    return found


def _upper_pairs(codes: Codes) -> Floats:
    """For every pair of columns whether a record is above the median of both."""
    upper = [column > np.median(column) for column in codes]
    found = [first & second for i, first in enumerate(upper) for second in upper[:i]]
    return np.array(found, np.float64).reshape(len(found), codes.shape[1]).T


def _logistic(design: Floats, wanted: Floats) -> Floats:
    """Coefficients by Newton's method under a normal prior."""
    b = np.zeros(design.shape[1])
    prior = RIDGE * np.eye(len(b))
    for _ in range(STEPS):
        law = 1.0 / (1.0 + np.exp(-np.clip(design @ b, -30.0, 30.0)))
        slope = (design * (law * (1.0 - law))[:, None]).T @ design + prior
        step = np.linalg.solve(slope, design.T @ (wanted - law) - RIDGE * b)
        b = b + step
        if np.abs(step).max() < 1e-8:
            break
    return b
