"""Records from a mixture of products: systematic sampling class by class, so that marginals lie as near as the fit does.

Every class gets a number of records within one of its expectation, and so does every cell of every column within a class. How
the columns are paired within a class is random: there they are independent.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.tables.mixture import MixtureOfProducts

Zeros = Sequence[tuple[tuple[int, int], ...]]
"""Columns' places, each with a cell of it, that no record has together."""

MOST_REDRAWS = 1_000


def systematic_counts(expected: NDArray[np.float64], *, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers within one of their expectations, which are right on average, with a sum within one of theirs.

    >>> systematic_counts(np.array([0.5, 0.5, 2.0]), rng=np.random.default_rng(0)).sum()
    np.int64(3)
    """
    order = rng.permutation(len(expected))
    ends = np.concatenate([[0.0], np.cumsum(expected[order])])
    whole = np.rint(ends[-1])
    if abs(ends[-1] - whole) < 1e-6 * max(1.0, whole):  # rounding must not make or lose a record
        ends = np.minimum(ends, whole)
        ends[-1] = whole
    counts = np.empty(len(expected), np.int64)
    counts[order] = np.diff(np.floor(ends + rng.random()).astype(np.int64))
    return counts


def synthetic_cells(
    mixture: MixtureOfProducts, records: int, *, seed: int, number: int = 0, zeros: Zeros = ()
) -> NDArray[np.uint16]:
    """So many records in random order, a row for each column and the cell of each record in it; the `number`-th of a seed.

    Records in cells that are structurally empty are drawn again, independently of each other.
    """
    if records < 1:
        raise ModelError("a synthetic table needs at least one record.", hint="For example records=1000")
    rng = np.random.default_rng([seed, 3, number])
    per_class = systematic_counts(mixture.weights * records, rng=rng)
    ends = np.concatenate([[0], np.cumsum(per_class)])
    found = np.empty((len(mixture.sizes), records), np.uint16)
    for k, size in enumerate(per_class):
        if size == 0:
            continue
        for j in range(len(mixture.sizes)):
            counts = systematic_counts(mixture.column(j)[k] * size, rng=rng)
            found[j, ends[k] : ends[k + 1]] = rng.permutation(np.repeat(np.arange(len(counts), dtype=np.uint16), counts))
    order = rng.permutation(records)
    for column in found:  # one at a time: a second table of millions of records would not fit beside the first
        column[:] = column[order]
    _leave_empty(found, mixture, zeros, rng=rng)
    return found


def _leave_empty(cells: NDArray[np.uint16], mixture: MixtureOfProducts, zeros: Zeros, *, rng: np.random.Generator) -> None:
    """Draw records again, in place, until none is in a structurally empty cell."""
    for _ in range(MOST_REDRAWS):
        wrong = np.zeros(cells.shape[1], bool)
        for each in zeros:
            wrong |= np.logical_and.reduce([cells[j] == cell for j, cell in each])
        again = np.flatnonzero(wrong)
        if len(again) == 0:
            return
        classes = rng.choice(len(mixture.weights), len(again), p=mixture.weights)
        for j, size in enumerate(mixture.sizes):
            ends = np.cumsum(mixture.column(j), axis=1)[classes]
            cells[j, again] = np.minimum((ends < rng.random(len(again))[:, None]).sum(axis=1), size - 1)
    raise ModelError("the structural zeros leave next to no room for records.", hint="Check which values are named together")
