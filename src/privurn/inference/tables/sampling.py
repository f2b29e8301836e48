"""Records from a mixture of products: systematic sampling class by class, so that marginals lie as near as the fit does.

Every class gets a number of records within one of its expectation, and so does every cell of every column within a class. How
the columns are paired within a class is random: there they are independent.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.tables.part_file import leave_empty

Zeros = Sequence[tuple[tuple[int, int], ...]]
"""Columns' places, each with a cell of it, that no record has together."""


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
    floors = np.minimum(np.floor(ends + rng.random()), np.ceil(ends[-1]))  # of 10^12 records the sum itself is rounded up
    counts[order] = np.diff(floors.astype(np.int64))
    return counts


def column_counts(
    mixture: MixtureOfProducts, per_class: NDArray[np.int64], *, rng: np.random.Generator
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Of each class with so many records and each column: how many of them are in each of its cells."""
    for k in np.flatnonzero(per_class).tolist():
        for j in range(len(mixture.sizes)):
            yield k, j, systematic_counts(mixture.column(j)[k] * per_class[k], rng=rng)


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
    for k, j, counts in column_counts(mixture, per_class, rng=rng):
        found[j, ends[k] : ends[k + 1]] = rng.permutation(np.repeat(np.arange(len(counts), dtype=np.uint16), counts))
    order = rng.permutation(records)
    for column in found:  # one at a time: a second table of millions of records would not fit beside the first
        column[:] = column[order]
    if zeros and not leave_empty(found, *redraw(mixture, zeros), rng.random):
        raise ModelError(
            "the structural zeros leave next to no room for records.", hint="Check which values are named together"
        )
    return found


def redraw(mixture: MixtureOfProducts, zeros: Zeros) -> tuple[Any, Any, Any]:
    """What `leave_empty` draws records again by."""
    ends = [np.cumsum(mixture.column(j), axis=1) for j in range(len(mixture.sizes))]
    return zeros, np.cumsum(mixture.weights), ends
