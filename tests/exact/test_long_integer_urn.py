"""Urns whose integers are longer than 63 bits: the same slots, the same law, and no refusal.

The oracle is a twin in Python integers and fractions, written from the urn's definition.
"""

import math
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urn_laws import dirichlet_multinomial_law, pitman_yor_law

from privurn._kernels.urns.urn import update_cells, update_tables
from privurn.audits import mechanism_sampler
from privurn.counts import CountTable
from privurn.errors import DomainError, ModelError
from privurn.mechanisms import long_integer_urn
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import LONGEST_DENOMINATOR, DirichletMultinomial
from privurn.mechanisms.histogram_sampling import sample_cells
from privurn.mechanisms.integer_urn import guided
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.privacy.entropy import Entropy, SeededEntropy, SystemEntropy

F = Fraction
CELLS = 5
LONG = F("1.23456789012345678901234567891")
alphas = st.builds(
    lambda digits, power: F(digits, 10 ** len(str(digits))) * F(10) ** power, st.integers(1, 10**30 - 1), st.integers(-11, 15)
)


def counts(least=0):
    """Counts of the cells, one of them up to 2^62 and all together below 2^63."""
    others = st.one_of(st.integers(least, 2**60 - 1), st.integers(least, 10))
    held = st.tuples(st.one_of(st.integers(1, 2**62), st.integers(1, 10)), *[others] * (CELLS - 1))
    return held.flatmap(st.permutations)


class Scripted(Entropy):
    """Hands out the given integers, whatever the bounds."""

    private = False
    description = "scripted"

    def __init__(self, *given):
        self.given, self.bounds = list(given), []

    def words(self, size):
        raise AssertionError("whole words are not scripted")

    def below(self, bound):
        self.bounds.append(bound)
        assert 0 <= self.given[0] < bound
        return self.given.pop(0)

    def below_long_ramp(self, first, *, step, size):
        return (self.below(first + step * i) for i in range(size))

    def below_ramp(self, first, *, step, size):
        return np.array(list(self.below_long_ramp(first, step=step, size=size)), np.int64)


def table(dense):
    return CountTable.from_cells(np.arange(len(dense)), np.array(dense, np.int64))


def paths(first, step, m):
    return product(*(range(first + step * i) for i in range(m)))


# The two ways to draw are one


@pytest.mark.parametrize("alpha", [F(1, 2), F(5, 3), (F(1, 2), F(1), F(7, 3))], ids=str)
def test_long_draws_of_cells_are_the_kernel_s_on_every_sequence(alpha):
    for dense in [(2, 0, 1), (0, 3, 0), (0, 0, 0)]:
        urn = DirichletMultinomial(n=None, cells=3, alpha=alpha, records=2)
        slots, law, total = urn.slots(table(dense)), {}, 0
        for draws in paths(slots.total, slots.per_ball, 2):
            out = np.empty(2, np.int64)
            update_cells(np.array(draws), slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells, out)
            drawn = long_integer_urn.draw_cells(slots, records=2, entropy=Scripted(*draws))
            assert drawn.tolist() == out.tolist()
            law[tuple(out.tolist())] = law.get(tuple(out.tolist()), 0) + 1
            total += 1
        each = alpha if isinstance(alpha, tuple) else (alpha,) * 3
        assert {key: F(n, total) for key, n in law.items()} == dirichlet_multinomial_law(dense, alphas=each, m=2)


@pytest.mark.parametrize(
    ("strength", "discount"), [(F(3, 2), F(0)), (F(1), F(1, 2)), (F(-1, 4), F(1, 2)), (F(1, 3), F(2, 3))], ids=str
)
def test_long_draws_of_tables_are_the_kernel_s_on_every_sequence(strength, discount):
    for dense in [(2, 1), (3,), (1, 1)]:
        urn = PitmanYor(n=sum(dense), records=3, strength=strength, discount=discount)
        (p, q, r), ends = urn.slots(), np.cumsum(dense)
        law, total = {}, 0
        for draws in paths(p + q * urn.n, q, 3):
            out, opened = np.empty(3, np.int64), np.empty(3, np.bool_)
            n_new = update_tables(np.array(draws), p, q, r, *guided(ends), out, opened)
            drawn, new = long_integer_urn.draw_tables(p, q, r, ends, records=3, entropy=Scripted(*draws))
            assert (drawn.tolist(), new) == (out.tolist(), n_new)
            law[tuple(out.tolist())] = law.get(tuple(out.tolist()), 0) + 1
            total += 1
        wanted = {}
        for drawn, share in pitman_yor_law(dict(enumerate(dense)), strength=strength, discount=discount, m=3).items():
            key = tuple(len(dense) + value[1] if isinstance(value, tuple) else value for value in drawn)
            wanted[key] = wanted.get(key, 0) + share
        assert {key: F(n, total) for key, n in law.items()} == wanted


# Slots and bounds against a twin in Python integers


def exact_slots(dense, each):
    """Slots of every cell, prior and records together, with the least common denominator."""
    q = math.lcm(*(alpha.denominator for alpha in each))
    return q, [int(alpha * q) + q * held for alpha, held in zip(each, dense, strict=True)]


def masses(slots, cells):
    """Slots of every cell as the mechanism has them."""
    ends = [0, *slots.ends.tolist()]
    own = [slots.per_cell if slots.uniform else 0] * cells
    for cell, low, high in zip(slots.cells.tolist(), ends[:-1], ends[1:], strict=True):
        own[cell] += high - low
    return own


@settings(max_examples=150)
@given(
    dense=counts(),
    alpha=st.one_of(alphas, st.lists(alphas, min_size=CELLS, max_size=CELLS).map(tuple)),
    records=st.integers(1, 10**8),
    secret=st.booleans(),
    sample=st.booleans(),
)
@example([92_233, 0, 907_767, 0, 0], F("1.24636052993387"), 10_000, False, False)
@example([2**62, 2**61, 1, 0, 0], F(1), 10_000, True, False)
def test_slots_are_those_of_the_exact_twin(dense, alpha, records, secret, sample):
    kind = PosteriorSample if sample else DirichletMultinomial
    made = kind(n=None if secret else sum(dense), cells=CELLS, alpha=alpha, records=records)
    slots = (made.urn if sample else made).slots(table(dense))
    q, wanted = exact_slots(dense, alpha if isinstance(alpha, tuple) else (alpha,) * CELLS)
    assert (slots.per_ball, slots.total, masses(slots, CELLS)) == (q, sum(wanted), wanted)
    assert slots.long == (sum(wanted) + q * records >= 2**63)


@settings(max_examples=60)
@given(dense=counts(), alpha=st.one_of(alphas, st.lists(alphas, min_size=CELLS, max_size=CELLS).map(tuple)))
def test_every_slot_belongs_to_its_cell(dense, alpha):
    """One draw for each end of each cell's slots: the cells come out as the exact masses say."""
    urn = DirichletMultinomial(n=None, cells=CELLS, alpha=alpha, records=1)
    slots = urn.slots(table(dense))
    if slots.uniform:  # prior first, then the records of the occupied cells
        prior = [(slots.per_cell * i, slots.per_cell * (i + 1) - 1, i) for i in range(CELLS)]
        held = [(slots.uniform + low, slots.uniform + high - 1, cell) for low, high, cell in _blocks(slots)]
    else:
        prior, held = [], [(low, high - 1, cell) for low, high, cell in _blocks(slots)]
    for first, last, cell in prior + held:
        for u in {first, last}:
            assert urn.draw(table(dense), entropy=Scripted(u)).cells.tolist() == [cell]


def _blocks(slots):
    ends = [0, *slots.ends.tolist()]
    return list(zip(ends[:-1], ends[1:], slots.cells.tolist(), strict=True))


@settings(max_examples=100)
@given(
    dense=counts(1),
    strength=alphas,
    discount=st.one_of(st.just(F(0)), st.builds(lambda d: F(d, 10**30), st.integers(10**27, 999 * 10**27))),
    records=st.integers(1, 4),
)
def test_open_urns_draw_below_the_exact_bounds(dense, strength, discount, records):
    n = sum(dense)
    urn = PitmanYor(n=n, records=records, strength=strength, discount=discount)
    q = math.lcm(strength.denominator, discount.denominator)
    bounds = [int(q * (strength + n + i)) for i in range(records)]
    entropy = Scripted(*(bound - 1 for bound in bounds))  # the last slot of the last ball: always a copy of it
    tables, n_new = urn.tables(table(dense), entropy=entropy)
    assert (entropy.bounds, n_new, set(tables.tolist())) == (bounds, 0, {CELLS - 1})
    low = Scripted(*[0] * records)  # the first slot of "new", or of the first ball's where the strength is 0
    assert urn.tables(table(dense), entropy=low)[1] == records
    assert urn.long(n) == (q * (strength + n + records) >= 2**63)


@settings(max_examples=100)
@given(weights=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=6).filter(any), smoothing=alphas.map(lambda a: a % 1))
def test_histograms_are_sampled_with_exact_totals(weights, smoothing):
    """Weights as large as noisy counts can be, and a smoothing of thirty digits."""
    ends, size = list(accumulate(weights)), len(weights)
    for cell, weight in enumerate(weights):
        for place in {ends[cell] - weight, ends[cell] - 1} if weight else ():
            drawn = Scripted(place, smoothing.numerator) if smoothing else Scripted(place)
            sizes = {"values": np.arange(size), "cells": size, "smoothing": smoothing, "size": 1}
            assert sample_cells(np.array(weights), **sizes, entropy=drawn).tolist() == [cell]
            assert drawn.bounds[:2] == ([ends[-1], smoothing.denominator] if smoothing else [ends[-1]])
            if smoothing:
                other = Scripted(place, smoothing.numerator - 1, size - 1)
                assert sample_cells(np.array(weights), **sizes, entropy=other).tolist() == [size - 1]


# Uniform integers of any length


class Words(Entropy):
    """Hands out the given 63-bit words."""

    private = False
    description = "words"

    def __init__(self, *given):
        self.given = list(given)

    def words(self, size):
        taken, self.given = self.given[:size], self.given[size:]
        return np.array(taken, np.int64)


def test_long_integers_are_words_modulo_the_bound_and_the_last_incomplete_block_is_redrawn():
    bound = 2**70 + 1
    assert next(Words(1, 2, 3).below_long_ramp(bound, step=0, size=1)) == ((1 << 126) + (2 << 63) + 3) % bound
    top = 2**63 - 1  # the largest number of three words lies beyond the largest multiple of the bound
    assert 2**189 % bound > 0
    assert next(Words(top, top, top, 0, 0, 5).below_long_ramp(bound, step=0, size=1)) == 5
    assert list(Words(0, 0, 7, 0, 0, 8).below_long_ramp(bound, step=3, size=2)) == [7, 8]


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(3)], ids=["system", "seeded"])
def test_long_integers_fill_their_range(entropy):
    bound, size = 3 * 2**80, 6000
    thirds = np.bincount([3 * each // bound for each in entropy.below_long_ramp(bound, step=0, size=size)], minlength=3)
    assert len(thirds) == 3
    assert np.abs(thirds - size / 3).max() < 7 * math.sqrt(size * 2 / 9), "below 1e-10 when uniform"


# What is refused is refused from public quantities


def test_capacity_is_never_a_matter_of_the_secret_number_of_records():
    """From one record to 2^62 the same urn draws; only the number of digits it works with changes."""
    urn = DirichletMultinomial(n=None, cells=CELLS, alpha=F("1.23456789"), records=4)
    lengths = set()
    for size in (1, 10**9, 2**40, 2**62):
        dense = [size, 0, 0, 0, 0]
        lengths.add(urn.slots(table(dense)).long)
        assert len(urn.draw(table(dense), entropy=SeededEntropy(1)).cells) == 4
    assert lengths == {False, True}


def test_fractions_without_a_short_common_denominator_are_refused_at_once():
    unlike = tuple(F(1, 10**120 + 2 * i + 1) * 10**119 for i in range(40))
    with pytest.raises(ModelError, match="common denominator"):
        DirichletMultinomial(n=10, cells=40, alpha=unlike, records=5)
    same = tuple(F(10**399 + i, 10**400) for i in range(40))
    assert DirichletMultinomial(n=10, cells=40, alpha=same, records=5).denominator.bit_length() <= LONGEST_DENOMINATOR


@pytest.mark.parametrize("alpha", [F(1, 10**13), F(10**15 + 1), (F(1),) * 4 + (F(1, 10**30),)], ids=str)
@pytest.mark.parametrize("n", [10, None])
def test_alphas_beyond_all_use_are_refused(alpha, n):
    with pytest.raises(ModelError, match="between"):
        DirichletMultinomial(n=n, cells=CELLS, alpha=alpha, records=5)


def test_base_weights_must_have_a_sum_that_fits():
    assert FiniteBase(cells=2, weights=(2**62, 2**61)).sample(3, entropy=SeededEntropy(1)).max() <= 1
    for weights in ((2**62, 2**62), (10**30, 1)):
        with pytest.raises(ModelError, match="2\\^63"):
            FiniteBase(cells=2, weights=weights)


def test_a_table_adds_up_exactly_or_is_refused():
    assert table([2**62, 2**62 - 1]).n == 2**63 - 1
    with pytest.raises(DomainError, match="64 bits"):
        table([2**62, 2**62])


# The audit draws from long urns as well


@pytest.mark.parametrize(
    "urn",
    [
        DirichletMultinomial(n=4, cells=3, alpha=LONG, records=2),
        PitmanYor(n=4, records=2, strength=LONG, discount=F(1, 2)),
    ],
    ids=["cells", "tables"],
)
def test_an_audit_of_a_long_urn_sees_its_own_draws(urn):
    counts = table([3, 1, 0])
    size = 50
    together = mechanism_sampler(urn, entropy=SeededEntropy(5))(counts, size=size)
    entropy = SeededEntropy(5)
    for row in together:
        cells = urn.draw(counts, entropy=entropy).cells
        assert [max(value, -1) for value in row] == [value if value < 2 or urn.name != "pitman-yor" else -1 for value in cells]


@pytest.mark.parametrize("publish", ["counts", "records"])
def test_fine_noise_on_an_enormous_count_stays_at_the_end_of_64_bits(publish):
    """2^62 records in steps of 1/1024 would wrap to nothing: cut off, they stay the largest count there is."""
    sizes = {"n": 2**62 + 5, "cells": 3, "records": 3, "noise": "laplace", "scale": 2.0, "publish": publish}
    drawn = PerturbedHistogram(**sizes).draw(table([2**62, 0, 5]), entropy=SeededEntropy(1))
    if publish == "records":
        assert drawn.cells.tolist() == [0, 0, 0]
    else:
        assert drawn.weights[0] == pytest.approx(2.0**53, rel=1e-9)
