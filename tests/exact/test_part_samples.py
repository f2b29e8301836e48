"""How records fall into parts: the samples are exact, and all orders of the records equally likely; every way is enumerated."""

from collections import Counter
from fractions import Fraction
from functools import reduce
from itertools import permutations, product
from math import comb, prod

import numpy as np
import pytest
from every_way import EveryWay
from test_block_drawing import Replayed, orders
from urn_laws import count_vectors, dirichlet_multinomial_law

from privurn.counts import CountTable
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.tables import blocks, part_sample
from privurn.tables.blocks import Lot
from privurn.tables.part_file import key_stream
from privurn.tables.part_sample import below, block_of, halved_records, halves, picked, sample

F = Fraction


class Ways(EveryWay):
    """Coins and numbers of samples."""

    def halves(self, counts, words):
        """Coins for all records; all heads or all tails would begin again with what there was, and are left out."""
        ways = [each for each in product(*(range(count + 1) for count in counts)) if 0 < sum(each) < counts.sum()]
        chances = [prod(map(comb, counts.tolist(), each)) for each in ways]
        return np.array(self.choose([(F(chance, sum(chances)), each) for chance, each in zip(chances, ways, strict=True)]))

    def below(self, bounds, words):
        """All integers."""
        return np.array([self.choose([(F(1, bound), each) for each in range(bound)]) for bound in bounds.tolist()], np.int64)


def hypergeometric(counts, size):
    ways = [each for each in product(*(range(count + 1) for count in counts)) if sum(each) == size]
    return {each: F(prod(map(comb, counts, each)), comb(sum(counts), size)) for each in ways}


@pytest.mark.parametrize(("counts", "size"), [((2, 2), 2), ((3, 1, 2), 3), ((4, 2), 2), ((1, 3, 1), 4), ((5,), 2)])
def test_a_sample_is_one_without_replacement(monkeypatch, counts, size):
    ways = Ways()
    monkeypatch.setattr(part_sample, "FEW", 1)
    monkeypatch.setattr(part_sample, "MANY", 0)
    monkeypatch.setattr(part_sample, "halves", ways.halves)
    monkeypatch.setattr(part_sample, "below", ways.below)
    found = ways.law(lambda: tuple(sample(np.array(counts), [size], None).tolist()))
    assert found == hypergeometric(counts, size)


def test_groups_are_sampled_by_themselves(monkeypatch):
    ways = Ways()
    monkeypatch.setattr(part_sample, "FEW", 1)
    monkeypatch.setattr(part_sample, "MANY", 0)
    monkeypatch.setattr(part_sample, "below", ways.below)
    found = ways.law(lambda: tuple(sample(np.array([2, 1, 0, 3, 1]), [1, 3], None, [0, 2]).tolist()))
    laws = hypergeometric((2, 1), 1), hypergeometric((0, 3, 1), 3)
    assert found == {one + other: p * q for one, p in laws[0].items() for other, q in laws[1].items()}


def test_records_picked_one_by_one_are_equally_likely(monkeypatch):
    """Those that are picked again in vain at most three times, which is as likely for all pairs."""
    found, integers = Counter(), product(range(4), repeat=5)
    for each in integers:
        left = list(each)

        def given(bounds, words, left=left):
            return np.array([left.pop(0) for _ in bounds], np.int64)

        monkeypatch.setattr(part_sample, "below", given)
        try:
            found[tuple(picked(np.ones(4, np.int64), np.array([2]), None, [0]).tolist())] += 1
        except IndexError:
            continue
    assert len(found) == 6
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("counts", [(1, 2), (3,), (0, 2, 1)])
def test_heads_are_binomial(counts):
    """Of each word as many leading bits count as there are records; others are any."""
    found, held = Counter(), [each for each in counts if each]
    for bits in product(*(range(2**each) for each in held)):
        words = np.array([(bit << (64 - each)) | 12345 for bit, each in zip(bits, held, strict=True)], np.uint64)
        found[tuple(halves(np.array(counts), lambda size, words=words: words).tolist())] += F(1, 2 ** sum(counts))
    assert found == {
        each: F(prod(map(comb, counts, each)), 2 ** sum(counts)) for each in product(*(range(count + 1) for count in counts))
    }


def test_heads_of_many_records_are_those_of_all_their_bits(monkeypatch):
    """Whatever is drawn at a time, over kinds of less than a word and of many."""
    monkeypatch.setattr(part_sample, "WORDS_AT_ONCE", 3)
    rng, counts = np.random.default_rng(1), np.array([0, 64, 1, 0, 200, 63, 65, 128, 0])
    drawn = []

    def words(size):
        drawn.append(rng.integers(2**64, size=size, dtype=np.uint64))
        return drawn[-1]

    found = halves(counts, words)
    left, expected = list(np.concatenate(drawn)), []
    for count in counts.tolist():
        own = "".join(f"{int(left.pop(0)):064b}" for _ in range(-(-count // 64)))
        last = len(own) - 64
        expected.append((own[: max(last, 0)] + own[max(last, 0) : max(last, 0) + count - max(last, 0)]).count("1"))
    assert found.tolist() == expected
    assert not left


def test_integers_are_uniform_and_others_are_drawn_again():
    words = iter([np.array([2**64 - 1, 10, 5], np.uint64), np.array([2**64 - 2], np.uint64), np.array([8], np.uint64)])
    assert below(np.array([3, 3, 2]), lambda size: next(words)).tolist() == [1, 2, 0]  # 2^63 - 2 is a multiple of 3
    assert below(np.array([1, 2**62]), lambda size: np.array([9, 2**64 - 1], np.uint64)).tolist() == [0, 2**62 - 1]


def first_ones(held, size, words):
    """The planted bug: the first so many in the order of their cells."""
    places, counts = held
    own = np.diff(np.minimum(np.cumsum(counts), size), prepend=0)
    return (places[own > 0], own[own > 0]), (places[counts > own], (counts - own)[counts > own])


def law_of_parts(monkeypatch, urn, counts, size, halve=halved_records):
    """Of the published sequence, by every sequence of integers, every sample and every order within the parts."""
    ways, known, found = Ways(), {}, Counter()
    halved = part_sample.halved

    def once(held, halve, key, first, last, size):
        if (first, last) not in known:
            known[first, last] = halved(held, halve, key, first, last, size)
        return known[first, last]

    with monkeypatch.context() as patched:
        for name, value in {"halves": ways.halves, "below": ways.below, "halved": once, "FEW": 1, "MANY": 0}.items():
            patched.setattr(part_sample, name, value)
        table = CountTable.from_cells(np.arange(len(counts)), np.array(counts))
        bounds = [urn.slots(table).total + urn.denominator * i for i in range(urn.records)]
        for integers in product(*map(range, bounds)):
            first, *others = urn.draw_blocks(table, size=2, entropy=Replayed(integers))
            drawn = reduce(CountTable.plus, others, first)
            lot = Lot((drawn.values, drawn.counts), drawn.n, b"", halve=halve, size=size)

            def sequence(lot=lot):
                known.clear()
                parts = [block_of(lot.held, lot.halve, lot.key, 0, lot.blocks, size, i) for i in range(lot.blocks)]
                ordered = [list(orders(*each)) for each in parts]
                return sum((ways.choose([(F(1, len(every)), each) for each in every]) for every in ordered), ())

            for key, chance in ways.law(sequence).items():
                found[key] += chance / prod(bounds)
    return found


@pytest.mark.parametrize(("alpha", "size"), [(F(1), 2), (F(1, 2), 2), (F(1), 1)])
def test_parts_of_what_an_urn_drew_are_its_records_one_after_the_other(monkeypatch, alpha, size):
    urn = DirichletMultinomial(n=2, cells=2, alpha=alpha, records=3)
    for counts in count_vectors(2, 2):
        expected = dirichlet_multinomial_law(counts, alphas=(alpha,) * 2, m=3)
        assert law_of_parts(monkeypatch, urn, counts, size) == expected
        assert law_of_parts(monkeypatch, urn, counts, size, first_ones) != expected


def test_a_part_is_the_same_whoever_finds_it(monkeypatch):
    """The driver divides down to groups, executors from there; or all of it is divided at once."""
    counts = np.array([500, 0, 3, 1_000_000, 77])
    lot = Lot((np.arange(5), counts), int(counts.sum()), b"key", size=60_000)
    whole = [block_of(lot.held, lot.halve, lot.key, 0, lot.blocks, lot.size, number) for number in range(lot.blocks)]
    for group in (1, 2, 8, 99):
        monkeypatch.setattr(blocks, "GROUP", group)
        found = [block_of(*each.given()[0], number) for each in lot.groups() for number in each.numbers]
        assert all(
            np.array_equal(a, b) for one, other in zip(found, whole, strict=True) for a, b in zip(one, other, strict=True)
        )
    assert [int(own.sum()) for _, own in whole] == [lot.rows(number) for number in range(lot.blocks)]
    total = np.zeros(5, np.int64)
    for places, own in whole:
        total[places] += own
    assert total.tolist() == counts.tolist()


def test_counts_beyond_32_bits_are_divided_exactly():
    """Ten thousand million records, none of which is written: blocks of more than 2^32, from words that are quickly made."""
    counts = np.array([10**10 - 2**32 - 5, 5, 2**32])
    rng = np.random.PCG64(1)
    own, rest = halved_records((np.arange(3), counts), 2**32 + 1, rng.random_raw)
    assert (int(own[1].sum()), int(rest[1].sum())) == (2**32 + 1, 10**10 - 2**32 - 1)
    total = np.zeros(3, np.int64)
    for places, part in (own, rest):
        total[places] += part
    assert total.tolist() == counts.tolist()
    share = own[1][own[0] == 2][0] / 2**32
    assert abs(share - (2**32 + 1) / 10**10) < 1e-4  # thirteen standard deviations
    with pytest.raises(ValueError, match="not so many"):
        sample(counts, [10**10 + 1], key_stream(b""))


def test_all_orders_of_distinct_records_are_possible():
    lot = Lot((np.arange(4), np.ones(4, np.int64)), 4, b"", size=2)
    seen = set()
    for key in range(400):
        found = [block_of(lot.held, lot.halve, key.to_bytes(4, "big"), 0, 2, 2, number)[0].tolist() for number in range(2)]
        seen.add(tuple(map(tuple, found)))
    assert seen == {(each, tuple(sorted({0, 1, 2, 3} - set(each)))) for each in permutations(range(4), 2) if each[0] < each[1]}
