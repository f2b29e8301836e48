"""A release drawn block by block has the law of records drawn one after the other, order included."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from urn_laws import count_vectors, dirichlet_multinomial_law

from privurn.counts import CountTable
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.privacy.entropy import Entropy, SeededEntropy
from privurn.tables.blocks import Blocks
from privurn.tables.here import Here
from privurn.tables.part_file import arranged, arrangement, key_stream

F = Fraction


class Replayed(Entropy):
    """Integers that are given, in place of random ones."""

    private = False
    description = "replayed"

    def __init__(self, integers):
        self.left = list(integers)

    def words(self, size):
        raise AssertionError("only slots of the urn are drawn")

    def below_ramp(self, first, *, step, size):
        taken, self.left = self.left[:size], self.left[size:]
        assert all(0 <= each < first + step * i for i, each in enumerate(taken))
        return np.array(taken, np.int64)


class TiedError(Exception):
    """Words that would be drawn again."""


def orders(places, counts):
    """Every outcome of putting a block into order, equally likely: one for each sequence of distinct words."""
    size = int(counts.sum())
    for words in product(range(size), repeat=size):
        given = iter([np.array(words, np.uint64) << np.uint64(32)])  # above the bits that places take

        def once(_, given=given):
            try:
                return next(given)
            except StopIteration:
                raise TiedError from None

        try:
            yield tuple(arranged(places, counts, once).tolist())
        except TiedError:
            continue


def in_order(places, counts):
    """The planted bug: a block that is expanded and not put into random order."""
    yield tuple(np.repeat(places, counts).tolist())


class Forgetful(DirichletMultinomial):
    """The planted bug: an urn that forgets what it has drawn before a block."""

    def draw_blocks(self, counts, *, size, entropy):
        for first in range(0, self.records, size):
            block = replace(self, records=min(size, self.records - first))
            yield CountTable(*np.unique(block._unshuffled(counts, entropy=entropy), return_counts=True))


def law_of_blocks(urn, counts, *, size, ordered=orders):
    """Law of the published sequence, by every sequence of integers that the urn can be given."""
    table = CountTable.from_cells(np.arange(len(counts)), np.array(counts))
    slots, q = urn.slots(table), urn.denominator
    forgets = isinstance(urn, Forgetful)
    bounds = [slots.total + q * (i % size if forgets else i) for i in range(urn.records)]
    tally = Counter()
    for integers in product(*map(range, bounds)):
        blocks = list(urn.draw_blocks(table, size=size, entropy=Replayed(integers)))
        for sequence in product(*(list(ordered(each.values, each.counts)) for each in blocks)):
            tally[sum(sequence, ())] += 1
    total = sum(tally.values())
    return {key: F(n, total) for key, n in tally.items()}


@pytest.mark.parametrize(("alpha", "size"), [(F(1), 1), (F(1), 2), (F(1), 3), (F(1, 2), 2)])
def test_blocks_one_after_the_other_are_the_urns_records_one_after_the_other(alpha, size):
    for counts in count_vectors(2, 2):
        urn = DirichletMultinomial(n=2, cells=2, alpha=alpha, records=3)
        assert law_of_blocks(urn, counts, size=size) == dirichlet_multinomial_law(counts, alphas=(alpha,) * 2, m=3)


def test_blocks_of_an_urn_with_a_prior_for_each_cell_and_a_secret_size():
    alphas = (F(1, 2), F(1), F(2))
    urn = DirichletMultinomial(n=None, cells=3, alpha=alphas, records=3)
    assert law_of_blocks(urn, (0, 1, 0), size=2) == dirichlet_multinomial_law((0, 1, 0), alphas=alphas, m=3)


def test_planted_bugs_in_block_drawing_are_seen():
    counts, sizes = (2, 0), {"n": 2, "cells": 2, "alpha": F(1), "records": 3}
    expected = dirichlet_multinomial_law(counts, alphas=(F(1),) * 2, m=3)
    assert law_of_blocks(DirichletMultinomial(**sizes), counts, size=2) == expected
    assert law_of_blocks(Forgetful(**sizes), counts, size=2) != expected
    assert law_of_blocks(DirichletMultinomial(**sizes), counts, size=2, ordered=in_order) != expected


def test_every_order_is_equally_likely_and_ties_are_drawn_again():
    seen = Counter(orders(np.arange(4), np.ones(4, np.int64)))
    assert len(seen) == 24
    assert set(seen.values()) == {1}
    for groups in (None, np.zeros(3, np.int64)):
        words = iter([np.array(each, np.uint64) << np.uint64(32) for each in ([3, 3, 1], [9, 2, 5])])
        assert arrangement(3, lambda size, words=words: next(words), groups).tolist() == [1, 2, 0]
    assert arrangement(1, lambda size: np.array([7], np.uint64)).tolist() == [0]
    assert arrangement(0, lambda size: np.empty(0, np.uint64)).tolist() == []


def test_a_block_of_full_size_is_put_into_an_order_of_all_its_places():
    order = arrangement(2**21, key_stream(b"a"))
    assert np.array_equal(np.sort(order), np.arange(2**21))
    assert abs(np.corrcoef(order, np.arange(2**21))[0, 1]) < 0.01  # fourteen standard deviations


@pytest.mark.parametrize("cells", [3, 10**9])
def test_counts_of_records_are_the_same_whichever_way_they_are_counted(cells):
    drawn = SeededEntropy(1).integers(cells, size=50)
    table = CountTable.of(drawn)
    assert dict(zip(table.values.tolist(), table.counts.tolist(), strict=True)) == Counter(drawn.tolist())


def test_memory_is_that_of_a_block_and_not_of_the_records():
    table = CountTable(np.arange(100), np.full(100, 7))
    urn = DirichletMultinomial(n=700, cells=100, alpha=F(3), records=2**20)
    next(urn.draw_blocks(table, size=2**14, entropy=SeededEntropy(1)))  # what is compiled or imported is not counted
    tracemalloc.start()
    try:
        total = sum(each.n for each in urn.draw_blocks(table, size=2**14, entropy=SeededEntropy(1)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 2**20
    assert peak < 8 * 2**20 / 4  # a quarter of what one integer for each record would take


def test_an_urn_of_other_size_is_refused_before_the_first_block():
    table = CountTable(np.array([0]), np.array([3]))
    urn = DirichletMultinomial(n=2, cells=2, alpha=F(1), records=3)
    with pytest.raises(Exception, match="another number of records"):
        next(urn.draw_blocks(table, size=2, entropy=SeededEntropy(1)))


def test_a_key_gives_the_same_order_again_and_another_key_another():
    places, counts = np.arange(50), np.full(50, 3)
    first, again, other = (arranged(places, counts, key_stream(key)).tolist() for key in (b"a", b"a", b"b"))
    assert first == again != other
    assert np.bincount(first).tolist() == counts.tolist()
    words = key_stream(b"a")
    assert words(4).tolist() != words(4).tolist()


def test_blocks_are_the_records_that_were_counted():
    import pyarrow as pa

    drawn = [CountTable(np.array([1, 5]), np.array([2, 1])), CountTable(np.array([0, 1]), np.array([1, 1]))]
    decoded = lambda cells: (pa.table({"x": cells}), {})  # noqa: E731
    blocks = Blocks.drawn(drawn, decode=decoded, words=SeededEntropy(1).words, tasks=Here())
    assert blocks.num_rows == 5
    records = blocks.to_arrow()["x"].to_pylist()
    assert sorted(records[:3]) == [1, 1, 5]
    assert sorted(records[3:]) == [0, 1]
