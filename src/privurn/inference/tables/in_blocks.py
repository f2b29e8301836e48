"""Synthetic tables too large for one computer: known by the counts of their classes, and there of the cells of each column.

Records come in random order, so that a block of them is a sample without replacement: of each class, and within a class of each
column's cells by itself, because there columns are paired at random (`tables.part_sample.halved_table`). Within the block they
are paired and put into order where it is written (`tables.part_file.side_by_side`). So the whole has the law of
`synthetic_cells`, order included. How many records each range of a fine column has is not known beforehand where some are drawn
again because of structural zeros: such tables are made at once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain
from privurn.inference.tables.fine import Ranges
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.sampling import Zeros, column_counts, redraw, synthetic_cells, systematic_counts
from privurn.mechanisms.published import copy_column
from privurn.tables.blocks import Lot
from privurn.tables.output import decode_cells
from privurn.tables.part_file import side_by_side
from privurn.tables.part_sample import halved_table

Widths = Mapping[int, NDArray[np.float64]]

TRIED = 10_000
"""Records that are made to see whether structural zeros leave room for any."""


def table_lot(
    mixture: MixtureOfProducts,
    records: int,
    *,
    seed: int,
    number: int,
    zeros: Zeros,
    ranges: Mapping[int, Ranges],
    copy: int | None,
    key: bytes,
    widths: Widths,
) -> Lot:
    """The `number`-th table of a seed, of so many records; `copy` is its place among copies, `widths` are those of bins."""
    if zeros:
        synthetic_cells(mixture, min(records, TRIED), seed=seed, number=number, zeros=zeros)
    rng = np.random.default_rng([seed, 3, number])
    classes = systematic_counts(mixture.weights * records, rng=rng)
    columns = [np.zeros((len(classes), size), np.int64) for size in mixture.sizes]
    for k, j, counts in column_counts(mixture, classes, rng=rng):
        columns[j][k] = counts
    whole = np.random.default_rng([seed, 8, number])
    fine = {j: (each.counts(columns[j].sum(axis=0), rng=whole), each.starts) for j, each in ranges.items()}
    more = redraw(mixture, zeros) if zeros else None, copy, widths
    return Lot((classes, columns, fine), records, key, halve=halved_table, expand=side_by_side, more=more)


def values_of(domain: TableDomain, copies: int) -> tuple[Any, Widths]:
    """Arrow table with what each cell of each column stands for, and widths of bins that records are spread out in."""
    longest = max(*domain.sizes, copies)
    found, widths = decode_cells(domain.columns, longest)
    if copies == 1:
        return found, widths
    numbered = found.add_column(0, copy_column(domain.columns), [np.arange(1, longest + 1)])
    return numbered, {j + 1: each for j, each in widths.items()}
