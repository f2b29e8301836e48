"""Whole tables drawn block by block have the law of those drawn at once, order included: every way to draw is enumerated."""

from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial, prod

import numpy as np
import pytest
from every_way import EveryWay

from privurn.domain import Grid, TableDomain
from privurn.inference.tables import in_blocks, sampling
from privurn.inference.tables.fine import Ranges, put_values
from privurn.inference.tables.in_blocks import table_lot, values_of
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.mechanisms.fine_columns import FineColumn
from privurn.tables import blocks, part_file, part_sample
from privurn.tables.part_sample import halved_table


class Choices(EveryWay):
    """Orders and numbers, as NumPy's generators and keys give them."""

    def permutation(self, of):
        """All orders, as NumPy's generators have it."""
        items = np.arange(of) if isinstance(of, int) else of
        orders = list(permutations(range(len(items))))
        return items[list(self.choose([(Fraction(1, len(orders)), each) for each in orders]))]

    def random(self, size):
        """Only the order of numbers matters where they are asked for."""
        return self.permutation(size) / size

    def words(self, size):
        """Likewise, with room for the bits that are left out."""
        return (self.permutation(size) + 1).astype(np.uint64) << np.uint64(20)

    def integers(self, bound):
        """All below."""
        return self.choose([(Fraction(1, bound), each) for each in range(bound)])

    def sample(self, counts, sizes, words, starts=(0,)):
        """All samples of so many of each group; that those of `part_sample` are such: test_part_samples.py."""
        return np.concatenate([self.one(*each) for each in zip(np.split(counts, starts[1:]), sizes, strict=True)])

    def one(self, counts, size):
        """Of one group."""
        ways = [each for each in product(*(range(count + 1) for count in counts)) if sum(each) == size]
        chances = [Fraction(prod(map(comb, counts.tolist(), each)), comb(int(counts.sum()), int(size))) for each in ways]
        return np.array(self.choose(list(zip(chances, ways, strict=True))))


def whole(expected, *, rng):
    """Counts that need no rounding."""
    assert np.array_equal(expected, np.rint(expected))
    return expected.astype(np.int64)


RANGES = Ranges(FineColumn(place=1, values=4, special=0, ranges_depth=1, depths=(2,)), np.array([0.5, 0.5, 1.0, 0.0]))
TABLES = {
    "two classes": (
        MixtureOfProducts((2, 2), np.array([0.5, 0.5]), np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 1.0, 0.0]])),
        *(4, 2, {}),
    ),
    "uneven classes": (
        MixtureOfProducts((2, 2), np.array([2 / 3, 1 / 3]), np.array([[0.5, 0.5, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]])),
        *(3, 2, {}),
    ),
    "a fine column": (
        MixtureOfProducts((2, 2), np.array([1.0]), np.array([[1 / 3, 2 / 3, 2 / 3, 1 / 3]])),
        *(3, 2, {1: RANGES}),
    ),
}
"""A mixture, how many records are made from it, and how many a block has; and fine columns."""


@pytest.mark.parametrize("name", TABLES)
def test_tables_in_blocks_have_the_law_of_tables_at_once(monkeypatch, name):
    mixture, records, size, ranges = TABLES[name]
    choices = Choices()
    monkeypatch.setattr(np.random, "default_rng", lambda seed: choices)
    monkeypatch.setattr(blocks, "SIZE", size)
    monkeypatch.setattr(part_file, "key_stream", lambda key: choices.words)
    monkeypatch.setattr(sampling, "systematic_counts", whole)
    monkeypatch.setattr(in_blocks, "systematic_counts", whole)
    monkeypatch.setattr(Ranges, "counts", lambda self, sizes, *, rng: whole(self.shares * np.repeat(sizes, 2), rng=rng))
    monkeypatch.setattr(part_sample, "sample", choices.sample)
    rows, widths = values_of(TableDomain({"a": Grid(0, 1, 1), "b": Grid(0, 3 if ranges else 1, 1)}), 1)

    def at_once():
        cells = sampling.synthetic_cells(mixture, records, seed=1)
        put_values(cells, ranges, rng=choices)
        return tuple(map(tuple, cells.T.tolist()))

    def in_parts():
        options = {"seed": 1, "number": 0, "zeros": (), "copy": None, "widths": widths, "key": b""}
        lot = table_lot(mixture, records, ranges=ranges, **options)
        held = halved_table(lot.held, size, None)  # once, so that every way is taken once
        found = [each for own in held for each in lot.expand(rows, own, lot.more, b"").to_pylist()]
        return tuple((each["a"], each["b"]) for each in found)

    expected, found = choices.law(at_once), choices.law(in_parts)
    assert sum(expected.values()) == 1
    assert found == expected
    assert len(expected) >= factorial(records) / 2  # orders are told apart
