"""The integer samplers: their law, by running the kernel on every possible sequence of random integers."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numba
import numpy as np
import pytest
from urn_laws import count_vectors, dirichlet_multinomial_law, pitman_yor_law

from privurn._kernels.urns.integers import WORD, update_below, update_shuffled
from privurn._kernels.urns.urn import find, guide_table, update_cells, update_tables
from privurn.counts import CountTable
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.integer_urn import guided
from privurn.mechanisms.pitman_yor import PitmanYor

F = Fraction


@numba.njit
def advance(draws, first, step):
    """Next tuple of integers in lexicographic order; False after the last."""
    for i in range(draws.shape[0] - 1, -1, -1):
        draws[i] += 1
        if draws[i] < first + step * i:
            return True
        draws[i] = 0
    return False


@numba.njit
def tally_cells(first, q, uniform, per_cell, ends, guide, shift, cells, m, size):
    tally = np.zeros(size**m, np.int64)
    draws, out = np.zeros(m, np.int64), np.zeros(m, np.int64)
    while True:
        update_cells(draws, q, uniform, per_cell, ends, guide, shift, cells, out)
        code = 0
        for value in out:
            code = code * size + value
        tally[code] += 1
        if not advance(draws, first, q):
            return tally


@numba.njit
def tally_tables(first, p, q, r, ends, guide, shift, m, size):
    tally = np.zeros(size**m, np.int64)
    draws, out, opened = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.bool_)
    while True:
        update_tables(draws, p, q, r, ends, guide, shift, out, opened)
        code = 0
        for value in out:
            code = code * size + value
        tally[code] += 1
        if not advance(draws, first, q):
            return tally


def law_of(tally, size, m):
    total = int(tally.sum())
    return {key: F(int(n), total) for key, n in zip(product(range(size), repeat=m), tally, strict=True) if n}


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("alpha", [F(1), F(1, 2), F(5, 3)])
def test_public_domain_urn_has_exactly_the_urns_law(m, alpha):
    cells = 3
    for n in range(1, 6 if m < 3 else 5):
        for counts in count_vectors(n, cells):
            table = CountTable.from_cells(np.arange(cells), np.array(counts))
            slots = DirichletMultinomial(n=n, cells=cells, alpha=alpha, records=m).slots(table)
            tally = tally_cells(
                slots.total, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells, m, cells
            )
            assert law_of(tally, cells, m) == dirichlet_multinomial_law(counts, alphas=(alpha,) * cells, m=m)


def test_public_domain_urn_with_a_prior_for_each_cell():
    alphas = (F(1, 2), F(1), F(7, 3))
    for counts in count_vectors(3, 3):
        table = CountTable.from_cells(np.arange(3), np.array(counts))
        slots = DirichletMultinomial(n=3, cells=3, alpha=alphas, records=2).slots(table)
        tally = tally_cells(slots.total, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells, 2, 3)
        assert law_of(tally, 3, 2) == dirichlet_multinomial_law(counts, alphas=alphas, m=2)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(
    ("discount", "strength"),
    [(F(0), F(1)), (F(0), F(3, 2)), (F(1, 2), F(1)), (F(1, 2), F(-1, 4)), (F(2, 3), F(0)), (F(1, 3), F(2))],
)
def test_open_domain_urn_has_exactly_the_urns_law(m, discount, strength):
    for n in range(1, 6 if m < 3 else 5):
        for counts in count_vectors(n, 3):
            held = np.array([count for count in counts if count])
            k = len(held)
            p, q, r = PitmanYor(n=n, records=m, strength=strength, discount=discount).slots()
            tally = tally_tables(p + q * n, p, q, r, *guided(np.cumsum(held)), m, k + m)
            expected = {
                tuple(k + value[1] if isinstance(value, tuple) else value for value in drawn): probability
                for drawn, probability in pitman_yor_law(
                    dict(enumerate(held.tolist())), strength=strength, discount=discount, m=m
                ).items()
            }
            got = law_of(tally, k + m, m)
            assert got == renumbered(expected, k)


def renumbered(law, k):
    """Brute force numbers new values by how many exist already; the kernel by order of opening: the same thing."""
    out: dict = {}
    for drawn, probability in law.items():
        names: dict = {}
        key = tuple(value if value < k else names.setdefault(value, k + len(names)) for value in drawn)
        out[key] = out.get(key, 0) + probability
    return out


def test_a_planted_bug_in_the_urn_is_seen():
    """Forgetting that an opener's first slots belong to "new" changes the law: the comparison above can fail."""
    tally = tally_tables(3 * 2 + 2, 2, 2, 0, *guided(np.array([2, 3])), 1, 3)
    assert law_of(tally, 3, 1) != renumbered_law_of_half_discount()


def renumbered_law_of_half_discount():
    law = pitman_yor_law({0: 2, 1: 1}, strength=F(1), discount=F(1, 2), m=1)
    return {tuple(2 if isinstance(v, tuple) else v for v in key): p for key, p in law.items()}


def test_guided_lookup_equals_binary_search():
    rng = np.random.default_rng(5)
    for k in (1, 2, 7, 1000):
        ends = np.cumsum(rng.integers(1, 10 ** rng.integers(1, 7), k))
        shift = guided(ends)[2]
        guide = guide_table(ends, shift)
        values = np.unique(np.concatenate([[0, ends[-1] - 1], ends[:-1], ends[:-1] - 1, rng.integers(0, ends[-1], 500)]))
        found = [find(value, ends, guide, shift) for value in values]
        assert found == np.searchsorted(ends, values, side="right").tolist()


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**40 + 7, 2**62 + 1, WORD])
def test_words_are_kept_exactly_below_the_largest_multiple_of_the_bound(bound):
    kept = (WORD + 1) // bound * bound
    words = np.array([w for w in (0, bound - 1, kept - 1, kept, WORD) if w <= WORD], np.int64)
    out, rejected = np.full(len(words), -1), np.empty(len(words), np.int64)
    n_rejected = update_below(words, bound, 0, out, rejected)
    expected = [int(w) >= kept for w in words]
    assert [i in rejected[:n_rejected] for i in range(len(words))] == expected
    assert all(out[i] == int(words[i]) % bound for i in range(len(words)) if not expected[i])


def test_every_shuffle_is_equally_likely():
    seen = Counter()
    for picks in product(range(1), range(2), range(3), range(4)):
        values = np.arange(4)
        update_shuffled(values, np.array(picks))
        seen[tuple(values.tolist())] += 1
    assert len(seen) == 24
    assert set(seen.values()) == {1}
