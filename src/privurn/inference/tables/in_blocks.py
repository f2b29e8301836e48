"""Synthetic tables too large for one computer: known by the counts of their blocks, class by class and column by column.

Records come in random order, so that a block of them is a sample without replacement: of each class, and within a class of each
column's cells by itself, because there columns are paired at random. Within the block they are paired and put into order where
it is written (`tables.part_file.side_by_side`). So the whole has the law of `synthetic_cells`, order included.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain
from privurn.inference.tables.fine import Ranges
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.sampling import Zeros, column_counts, redraw, synthetic_cells, systematic_counts
from privurn.mechanisms.published import copy_column
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import blocks
from privurn.tables.blocks import Words, sampled
from privurn.tables.output import decode_side_by_side
from privurn.tables.part_file import side_by_side

Whole = NDArray[np.int64]

TRIED = 10_000
"""Records that are made to see whether structural zeros leave room for any."""


@dataclass(frozen=True, eq=False)
class TableBlock:
    """A block of a synthetic table; `held` are the arguments of `side_by_side`."""

    held: tuple[Any, ...]
    expand: ClassVar[Callable[..., Any]] = staticmethod(side_by_side)

    @property
    def size(self) -> int:
        """Records."""
        return int(self.held[0].sum())


def can_be_blocks(domain: TableDomain, ranges: Mapping[int, Ranges]) -> bool:
    """Whether records are known by such counts.

    Spread out in their bins they are not; and how many records each range of a fine column has is not known beforehand where
    some are drawn again because of structural zeros.
    """
    return not domain.spread and not (domain.zero_cells and ranges)


def table_blocks(
    mixture: MixtureOfProducts,
    records: int,
    *,
    seed: int,
    number: int,
    zeros: Zeros,
    ranges: Mapping[int, Ranges],
    copy: int | None,
    words: Words,
) -> Iterator[TableBlock]:
    """The `number`-th table of a seed, of so many records; `copy` is its place among copies, `words` are for blocks' keys."""
    if zeros:
        synthetic_cells(mixture, min(records, TRIED), seed=seed, number=number, zeros=zeros)
    again = redraw(mixture, zeros) if zeros else None
    rng = np.random.default_rng([seed, 3, number])
    classes = systematic_counts(mixture.weights * records, rng=rng)
    columns = [np.zeros((len(classes), size), np.int64) for size in mixture.sizes]
    for k, j, counts in column_counts(mixture, classes, rng=rng):
        columns[j][k] = counts
    whole = np.random.default_rng([seed, 8, number])
    fine = {j: each.counts(columns[j].sum(axis=0), rng=whole) for j, each in ranges.items()}
    while (left := int(classes.sum())) > 0:
        own = classes if left <= blocks.SIZE else sampled(classes, blocks.SIZE, rng=rng)
        taken = [_sampled(each, own, rng=rng) for each in columns]
        values = {j: _within_ranges(fine[j], each, taken[j].sum(axis=0), rng=rng) for j, each in ranges.items()}
        classes = classes - own
        columns = [each - part for each, part in zip(columns, taken, strict=True)]
        fine = {j: each - values[j] for j, each in fine.items()}
        held = own[own > 0], [_listed(each) for each in taken], {j: _listed(each) for j, each in values.items()}
        yield TableBlock((*held, again, copy, words(4).tobytes()))


def _sampled(counts: Whole, sizes: Whole, *, rng: np.random.Generator) -> Whole:
    """So many of each row, taken at random from the counts in it."""
    found = np.zeros_like(counts)
    for k in np.flatnonzero(sizes):
        found[k] = sampled(counts[k], int(sizes[k]), rng=rng)
    return found


def _within_ranges(counts: Whole, ranges: Ranges, sizes: Whole, *, rng: np.random.Generator) -> Whole:
    """So many of each range, taken at random from the counts of its cells."""
    parts = zip(np.split(counts, ranges.starts[1:]), sizes.tolist(), strict=True)
    return np.concatenate([sampled(part, size, rng=rng) for part, size in parts])


def _listed(counts: Whole) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Cells that have records, row by row, and how many; small, because there is one of these for each block and column."""
    places = np.nonzero(counts)
    return places[-1].astype(np.uint16), counts[places].astype(np.int32)


def values_of(domain: TableDomain, copies: int) -> Any:
    """Arrow table with what each cell of each column stands for; shorter columns repeat their last."""
    longest = np.arange(max(*domain.sizes, copies))
    cells = [np.minimum(longest, size - 1) for size in domain.sizes]
    found = decode_side_by_side(cells, domain.columns, entropy=SeededEntropy(0))
    return found if copies == 1 else found.add_column(0, copy_column(domain.columns), [longest + 1])
