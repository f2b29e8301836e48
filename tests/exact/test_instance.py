"""Instance-level figures against brute force: every neighbour, every release, in rational arithmetic."""

import json
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.thesis import proposition_4_2, theorem_4_1
from urn_laws import dirichlet_multinomial_law, hockey_stick
from urn_laws import pitman_yor_law as sequence_law

from privurn.counts import CountTable
from privurn.errors import ModelError, NotCertifiable
from privurn.privacy.confidential import Confidential
from privurn.privacy.instance import papers
from privurn.privacy.instance.cost import (
    instance_delta,
    instance_delta_public_domain,
    instance_epsilon,
    instance_epsilon_public_domain,
)
from privurn.privacy.instance.multiplicities import Multiplicities
from privurn.privacy.laws.urn import DirichletMultinomialProfile, PitmanYorProfile

EXACT = 1e-12
DISCOUNTS = [Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]
ALPHAS = [Fraction(1, 3), Fraction(1), Fraction(5, 2)]
EPSILONS = [0.05, 0.4, 1.1, 2.3]

Table = tuple[int, ...]


def partitions(n: int, largest: int | None = None) -> list[Table]:
    largest = n if largest is None else largest
    if n == 0:
        return [()]
    return [(first, *rest) for first in range(min(n, largest), 0, -1) for rest in partitions(n - first, first)]


@cache
def pitman_yor_law(table: Table, m: int, discount: Fraction, strength: Fraction) -> dict[tuple[Table, Table], Fraction]:
    """Law of (released copies of each old value, copies of each new value in order of appearance).

    A count of 0 in `table` is a label that this urn does not know: it is never released.
    """
    law = {((0,) * len(table), ()): Fraction(1)}
    n, old = sum(table), sum(1 for count in table if count)
    for step in range(m):
        after: Counter[tuple[Table, Table]] = Counter()
        for (copies, new), probability in law.items():
            share = probability / (strength + n + step)
            for i, count in enumerate(table):
                if count:
                    grown = (*copies[:i], copies[i] + 1, *copies[i + 1 :])
                    after[grown, new] += share * (count + copies[i] - discount)
            for i, size in enumerate(new):
                after[copies, (*new[:i], size + 1, *new[i + 1 :])] += share * (size - discount)
            after[copies, (*new, 1)] += share * (strength + discount * (old + len(new)))
        law = dict(after)
    return law


@cache
def cell_law(table: Table, m: int, alpha: Fraction) -> dict[tuple[Table, Table], Fraction]:
    """Law of the released counts of a public domain's cells."""
    law = {((0,) * len(table), ()): Fraction(1)}
    total = sum(table) + alpha * len(table)
    for step in range(m):
        after: Counter[tuple[Table, Table]] = Counter()
        for (copies, _), probability in law.items():
            for i, count in enumerate(table):
                grown = (*copies[:i], copies[i] + 1, *copies[i + 1 :])
                after[grown, ()] += probability * (count + copies[i] + alpha) / (total + step)
        law = dict(after)
    return law


def neighbours(table: Table, *, fresh: bool) -> list[tuple[Table, Table]]:
    """(x, y) on the same labels, for every replaced record up to symmetry; `fresh` adds a label that x does not know."""
    labelled = (*table, 0) if fresh else table
    found = {}
    for i, j in product(range(len(labelled)), repeat=2):
        if i != j and labelled[i] > 0:
            other = list(labelled)
            other[i] -= 1
            other[j] += 1
            found[labelled[i], labelled[j]] = (labelled, tuple(other))
    return list(found.values())


def exceedance(p: dict, q: dict, E: Fraction) -> Fraction:
    """P(the likelihood ratio exceeds E)."""
    return sum((weight for state, weight in p.items() if weight > E * q.get(state, 0)), Fraction(0))


def brute_force(pairs: list[tuple[dict, dict]], E: Fraction) -> tuple[float, float, float]:
    """(delta#, tight forward, tight two-sided)."""
    sharp = max((exceedance(p, q, E) for p, q in pairs), default=Fraction(0))
    forward = max((hockey_stick(p, q, E) for p, q in pairs), default=Fraction(0))
    backward = max((hockey_stick(q, p, E) for p, q in pairs), default=Fraction(0))
    return float(sharp), float(forward), float(max(forward, backward))


def close(found: float, expected: float) -> bool:
    """Equal to 1e-12 relatively, and rounded up rather than down."""
    return found == pytest.approx(expected, rel=5 * EXACT, abs=1e-250) and found >= expected * (1.0 - 1e-15)


def check_pitman_yor(table: Table, m: int, discount: Fraction, strength: Fraction, epsilon: float) -> None:
    E = Fraction(math.exp(epsilon))
    pairs = [
        (pitman_yor_law(x, m, discount, strength), pitman_yor_law(y, m, discount, strength))
        for x, y in neighbours(table, fresh=True)
    ]
    sharp, forward, delta = brute_force(pairs, E)
    report = instance_delta(np.array(table), epsilon=epsilon, records=m, strength=float(strength), discount=float(discount))
    assert close(report.delta_forward, sharp), (report.delta_forward, sharp)
    assert close(report.delta_forward_tight, forward), (report.delta_forward_tight, forward)
    assert close(report.delta, delta), (report.delta, delta)


def check_public_domain(table: Table, m: int, alpha: Fraction, epsilon: float) -> None:
    E = Fraction(math.exp(epsilon))
    pairs = [(cell_law(x, m, alpha), cell_law(y, m, alpha)) for x, y in neighbours(table, fresh=False)]
    sharp, forward, delta = brute_force(pairs, E)
    occupied = np.array([count for count in table if count])
    report = instance_delta_public_domain(occupied, cells=len(table), epsilon=epsilon, records=m, alpha=float(alpha))
    assert close(report.delta_forward, sharp), (report.delta_forward, sharp)
    assert close(report.delta_forward_tight, forward), (report.delta_forward_tight, forward)
    assert close(report.delta, delta), (report.delta, delta)


def strengths(discount: Fraction) -> list[Fraction]:
    return [Fraction(1, 2), Fraction(3)] + ([-discount / 2, -discount * Fraction(9, 10)] if discount else [])


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_table_under_a_non_atomic_base(n, discount):
    for table, strength, m in product(partitions(n), strengths(discount), (1, 2, 3, 4)):
        for epsilon in EPSILONS if n < 6 else EPSILONS[1:3]:
            check_pitman_yor(table, m, discount, strength, epsilon)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_table_on_a_public_domain(n, alpha):
    for partition, empty, m in product(partitions(n), (0, 1, 2), (1, 2, 3, 4)):
        for epsilon in EPSILONS if n < 6 else EPSILONS[1:3]:
            check_public_domain(partition + (0,) * empty, m, alpha, epsilon)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [EPSILONS[0], EPSILONS[-1], 0.8, 4.0])
def test_six_records_at_more_epsilons(epsilon):
    for table, m in product(partitions(6), (1, 2, 3, 4)):
        for discount in DISCOUNTS:
            for strength in strengths(discount):
                check_pitman_yor(table, m, discount, strength, epsilon)
        for alpha, empty in product(ALPHAS, (0, 1, 2)):
            check_public_domain(table + (0,) * empty, m, alpha, epsilon)


def test_counts_carry_all_that_a_released_sequence_tells():
    """The laws of counts above give the same divergences as the laws of sequences, written from the urn's definition."""
    E, m = Fraction(3, 2), 3
    for discount, (x, y) in product(DISCOUNTS, neighbours((2, 1), fresh=True)):
        p, q = (sequence_law(dict(enumerate(each)), strength=Fraction(1, 3), discount=discount, m=m) for each in (x, y))
        short = [pitman_yor_law(each, m, discount, Fraction(1, 3)) for each in (x, y)]
        assert hockey_stick(p, q, E) == hockey_stick(*short, E)
        assert exceedance(p, q, E) == exceedance(*short, E)
    for x, y in neighbours((2, 1, 0), fresh=False):
        p, q = (dirichlet_multinomial_law(each, alphas=(ALPHAS[0],) * 3, m=m) for each in (x, y))
        assert hockey_stick(p, q, E) == hockey_stick(cell_law(x, m, ALPHAS[0]), cell_law(y, m, ALPHAS[0]), E)


@pytest.mark.parametrize("wrong", ["mass off by one", "one record more", "strength", "one direction only", "discount"])
def test_the_brute_force_tells_wrong_formulas_apart(wrong):
    table, discount, strength, epsilon, m = (5, 5), Fraction(1, 2), Fraction(1), 1.1, 3
    pairs = [
        (pitman_yor_law(x, m, discount, strength), pitman_yor_law(y, m, discount, strength))
        for x, y in neighbours(table, fresh=True)
    ]
    _, _, delta = brute_force(pairs, Fraction(math.exp(epsilon)))
    right = {"counts": [5, 5], "epsilon": epsilon, "records": m, "strength": 1.0, "discount": 0.5}
    assert close(instance_delta(**right).delta, delta)
    changed = {
        "mass off by one": {"counts": [6, 6], "strength": -0.49},
        "one record more": {"records": m + 1},
        "strength": {"strength": 1.0 + 1e-9},
        "discount": {"discount": 0.5 + 1e-9},
    }.get(wrong, {})
    report = instance_delta(**{**right, **changed})
    assert not close(report.delta if changed else report.delta_forward_tight, delta)


# The thesis's conditions, with the interval of theorem 4.1 read the right way round.


def thesis_bad(copies: Table, new: Table, table: Table, theta: Fraction, sigma: Fraction, E: Fraction) -> tuple[bool, bool]:
    ratios = [1 + Fraction(s) / (count - 1 - sigma) for s, count in zip(copies, table, strict=True)]
    new_mass = theta + len(table) * sigma
    box = all(s <= (E - 1) * (count - 1 - sigma) for s, count in zip(copies, table, strict=True))
    first = all((s - sigma) / new_mass * max(1 / r for r in ratios) <= E for s in new)
    second = all((s - sigma) / new_mass * min(1 / r for r in ratios) >= 1 / E for s in new)
    third = all(1 / E <= (1 + len(new) * sigma / new_mass) / r <= E for r in ratios)
    return not (first and second and third and box), not box


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("table", [(2, 2), (4, 2), (3,), (2, 2, 2), (3, 3)])
def test_the_thesis_theorem_and_proposition(table, discount):
    seen = set()
    for strength, m, epsilon in product([Fraction(1, 10), Fraction(3, 2), Fraction(7)], (1, 3, 5), (0.15, 0.5, 1.1, 2.3)):
        E = Fraction(math.exp(epsilon))
        theorem = proposition = Fraction(0)
        for (copies, new), weight in pitman_yor_law(table, m, discount, strength).items():
            bad, outside = thesis_bad(copies, new, table, strength, discount, E)
            theorem += weight * bad
            proposition += weight * outside
        arguments = {"epsilon": epsilon, "records": m, "strength": float(strength), "discount": float(discount)}
        thesis_theorem = theorem_4_1(Multiplicities.of(table), **arguments)
        thesis_proposition = proposition_4_2(Multiplicities.of(table), **arguments)
        assert thesis_theorem is not None
        assert thesis_proposition is not None
        assert close(thesis_theorem, float(theorem)), (arguments, thesis_theorem, float(theorem))
        assert close(thesis_proposition, float(proposition)), (arguments, thesis_proposition)
        report = instance_delta(list(table), **arguments)
        assert report.delta_forward <= thesis_theorem * (1 + EXACT) + 1e-290
        seen.add(0.0 < theorem < 1.0)
    assert True in seen


def test_the_thesis_figures_exclude_singletons():
    setting = {"epsilon": 1.0, "records": 3, "strength": 1.0, "discount": 0.0}
    assert theorem_4_1(Multiplicities.of([3, 1]), **setting) is None
    assert proposition_4_2(Multiplicities.of([3, 1]), **setting) is None


# Identities and properties.


def test_at_discount_zero_theorem_1_is_corollary_1():
    counts, theta, m = [2, 3, 3, 9, 40], 2.5, 30
    n = sum(counts)
    for epsilon in EPSILONS:
        with mpmath.workdps(40):
            tails = []
            for count in counts:
                k = int(mpmath.floor((mpmath.exp(epsilon) - 1) * (count - 1))) + 1
                tails.append(
                    sum(
                        mpmath.binomial(m, s) * mpmath.rf(count, s) * mpmath.rf(theta + n - count, m - s)
                        for s in range(k, m + 1)
                    )
                    / mpmath.rf(theta + n, m)
                )
            expected = float(max(tails))
        report = instance_delta(counts, epsilon=epsilon, records=m, strength=theta)
        assert close(report.delta_forward, expected)


def test_the_dirichlet_process_costs_its_floor_both_ways():
    for counts in ([50, 70], [1, 5], [2] * 40):
        n = sum(counts)
        report = instance_delta(counts, epsilon=0.7, records=9, strength=2.0)
        assert report.delta == pytest.approx(9 / (2.0 + n + 8), rel=EXACT)


def test_deep_tails_against_many_digits():
    n, theta, m, epsilon = 39374, 11.6257, 5000, 4.2
    with mpmath.workdps(50):
        total = mpmath.mpf(theta) + n - 1
        k = int(mpmath.floor(mpmath.exp(epsilon) - 1)) + 1
        tail = mpmath.mpf(0)
        tight = mpmath.mpf(0)
        for s in range(k, k + 400):
            weight = mpmath.binomial(m, s) * mpmath.beta(2 + s, total - 1 + m - s) / mpmath.beta(2, total - 1)
            tail += weight
            tight += weight * (1 - mpmath.exp(epsilon) / (1 + s))
    report = instance_delta([2, *[n // 94] * 93, n - 2 - 93 * (n // 94)], epsilon=epsilon, records=m, strength=theta)
    assert report.delta_forward == pytest.approx(float(tail), rel=1e-10)
    assert report.delta_forward_tight == pytest.approx(float(tight), rel=1e-10)
    assert 1e-63 < report.delta_forward < 1e-59
    assert report.delta == pytest.approx(0.1127, abs=1e-4)


def test_large_pairs_against_many_digits():
    """The one-pass sum over (S_l, S_t) deep in the tail, where most of its terms start below the smallest float."""
    alpha, m, epsilon, cells = 2.0, 250, 1.5, 3
    counts = [12, 300, 688]
    table = Multiplicities.of(counts, cells=cells)
    found = papers.theorem_1_public_domain(table, epsilon=epsilon, records=m, alpha=alpha)
    best = mpmath.mpf(0)
    with mpmath.workdps(40):
        E = mpmath.exp(epsilon)
        for i, j in product(range(3), repeat=2):
            if i == j:
                continue
            a, b = alpha + counts[i] - 1, alpha + counts[j]
            total = alpha * cells + sum(counts) - 1
            rest = total - a - b
            value = mpmath.mpf(0)
            for s in range(m + 1):
                limit = (1 + s / a) / E - 1
                if limit <= 0:
                    continue
                top = min(m - s, int(mpmath.ceil(b * limit)) - 1)
                first = mpmath.binomial(m, s) * mpmath.beta(a + 1 + s, b + rest + m - s) / mpmath.beta(a + 1, b + rest)
                M = m - s
                term = mpmath.rf(rest, M) / mpmath.rf(b + rest, M)
                inner = term
                for c in range(top):
                    term *= mpmath.mpf(M - c) / (c + 1) * (b + c) / (rest + M - c - 1)
                    inner += term
                value += first * inner
            best = max(best, value)
    assert found == pytest.approx(float(best), rel=1e-10)
    assert found < 1e-4


def test_unlimited_records_bound_every_number_of_them():
    arguments = {"cells": 6, "epsilon": 0.9, "alpha": 1.5}
    unlimited = instance_delta_public_domain([9, 4, 4], records="unlimited", **arguments)
    previous = 0.0
    for m in (10, 100, 1000, 100_000):
        report = instance_delta_public_domain([9, 4, 4], records=m, **arguments)
        assert previous <= report.delta <= unlimited.delta * (1 + 1e-9)
        previous = report.delta
    assert previous == pytest.approx(unlimited.delta, rel=1e-3)
    limit = instance_delta_public_domain([9, 4, 4], records=100_000, **arguments).delta_forward
    assert limit == pytest.approx(unlimited.delta_forward, rel=2e-3)


tables = st.lists(st.integers(1, 30), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(1, 40), st.floats(0.05, 4.0), st.sampled_from([0.0, 0.3, 0.7]), st.floats(0.1, 20.0))
def test_never_above_the_global_profile(counts, m, epsilon, discount, strength):
    report = instance_delta(counts, epsilon=epsilon, records=m, strength=strength, discount=discount)
    assert report.delta_forward_tight <= report.delta <= 1.0
    assert report.delta_forward_tight <= report.delta_forward
    assert report.floor <= report.delta
    if discount > 0.0:
        everywhere = PitmanYorProfile(n=sum(counts), records=m, strength=strength, discount=discount)
        assert report.delta <= everywhere.delta(epsilon) * (1 + EXACT)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(0, 3), st.integers(1, 40), st.floats(0.05, 4.0), st.floats(0.2, 20.0))
def test_never_above_the_global_profile_of_a_public_domain(counts, empty, m, epsilon, alpha):
    cells = len(counts) + empty
    report = instance_delta_public_domain(counts, cells=cells, epsilon=epsilon, records=m, alpha=alpha)
    everywhere = DirichletMultinomialProfile(n=sum(counts), cells=cells, alpha=alpha, records=m)
    assert report.delta <= everywhere.delta(epsilon) * (1 + EXACT) + 1e-290
    assert report.delta_forward_tight <= report.delta_forward


@settings(max_examples=30, deadline=None)
@given(tables, st.integers(0, 2), st.integers(1, 60), st.floats(0.3, 5.0))
def test_pure_epsilon_is_where_delta_vanishes(counts, empty, m, alpha):
    cells = len(counts) + empty
    pure = float(instance_epsilon_public_domain(counts, delta=0.0, cells=cells, records=m, alpha=alpha))
    if cells == 1:
        assert pure == 0.0
        return
    arguments = {"cells": cells, "records": m, "alpha": alpha}
    assert instance_delta_public_domain(counts, epsilon=pure * (1 + 1e-12), **arguments).delta == 0.0
    assert instance_delta_public_domain(counts, epsilon=pure * (1 - 1e-9), **arguments).delta > 0.0


def test_the_pure_condition_by_enumeration():
    """Largest likelihood ratio in either direction; the quoted condition with n_i in place of n_i - 1 is too weak."""
    alpha, m = Fraction(1, 2), 3
    for table in [(3, 2), (4, 1, 1), (2, 2, 0), (5, 3, 0, 0)]:
        ratios = []
        for x, y in neighbours(table, fresh=False):
            p, q = cell_law(x, m, alpha), cell_law(y, m, alpha)
            ratios += [max(p[state] / q[state], q[state] / p[state]) for state in p]
        counts = [count for count in table if count]
        found = float(instance_epsilon_public_domain(counts, delta=0.0, cells=len(table), records=m, alpha=0.5))
        assert found == pytest.approx(math.log(max(ratios)), rel=1e-12)
        if 0 not in table:
            assert found > math.log1p(m / (0.5 + min(table)))


@pytest.mark.parametrize("discount", [0.0, 0.4])
def test_epsilon_for_a_delta(discount):
    counts = [2, 3, 8, 20, 1, 1]
    floor = instance_delta(counts, epsilon=1.0, records=6, strength=1.0, discount=discount).floor
    target = floor * 1.05
    epsilon = float(instance_epsilon(counts, delta=target, records=6, strength=1.0, discount=discount))
    if discount:
        assert epsilon > 0.0
        assert instance_delta(counts, epsilon=epsilon, records=6, strength=1.0, discount=discount).delta <= target
        assert instance_delta(counts, epsilon=epsilon * 0.999, records=6, strength=1.0, discount=discount).delta > target
    else:
        assert epsilon == 0.0
    assert float(instance_epsilon(counts, delta=floor * 0.9, records=6, strength=1.0, discount=discount)) == math.inf


def test_epsilon_for_a_delta_on_a_public_domain():
    arguments = {"cells": 5, "records": 12, "alpha": 1.0}
    for delta in (1e-6, 1e-3, 0.1):
        epsilon = float(instance_epsilon_public_domain([7, 2, 2], delta=delta, **arguments))
        assert instance_delta_public_domain([7, 2, 2], epsilon=epsilon, **arguments).delta <= delta
        assert instance_delta_public_domain([7, 2, 2], epsilon=epsilon * 0.999, **arguments).delta > delta
    pure = float(instance_epsilon_public_domain([7, 2, 2], delta=0.0, **arguments))
    assert pure == pytest.approx(math.log1p(12 / 1.0), rel=1e-12)


def test_a_one_sided_figure_can_hide_the_cost():
    """Nobody is alone in x, so the papers' figure is tiny; a neighbour's lone record is released one time in ten."""
    report = instance_delta([400, 300, 300], epsilon=1.0, records=100, strength=1.0)
    assert report.delta_forward < 1e-40
    assert report.delta == pytest.approx(100 / 1100, rel=1e-6)


def test_figures_are_confidential_by_type():
    report = instance_delta([5, 3], epsilon=1.0, records=4, strength=1.0)
    number = instance_epsilon([5, 3], delta=0.9, records=4, strength=1.0)
    for each in (report, number):
        assert isinstance(each, Confidential)
        assert each.confidential
        assert "confidential" in repr(each)
        assert not any(character.isdigit() for character in repr(each))
        with pytest.raises(NotCertifiable):
            each.to_public()
        with pytest.raises(TypeError):
            json.dumps(each)
        assert each.to_confidential()["confidential"] is True


def test_a_count_table_will_do_as_well_as_an_array():
    table = CountTable(np.array(["a", "b"]), np.array([5, 3]))
    a = instance_delta(table, epsilon=1.0, records=4, strength=1.0, discount=0.2)
    b = instance_delta([3, 0, 5], epsilon=1.0, records=4, strength=1.0, discount=0.2)
    assert a == b


@pytest.mark.parametrize(
    "arguments",
    [
        {"counts": [0, 0]},
        {"counts": [1.5, 2.0]},
        {"counts": [-1, 3]},
        {"counts": [[1, 2]]},
        {"counts": [3], "records": 0},
        {"counts": [3], "strength": -0.1},
        {"counts": [3], "discount": 1.0},
        {"counts": [3], "epsilon": 0.0},
    ],
)
def test_impossible_arguments(arguments):
    with pytest.raises(ModelError):
        instance_delta(**{"epsilon": 1.0, "records": 3, "strength": 1.0, **arguments})


def test_impossible_domains():
    for wrong in ({"cells": 1}, {"cells": 0}, {"alpha": 0.0}):
        with pytest.raises(ModelError):
            instance_delta_public_domain([3, 4], **{"cells": 3, "epsilon": 1.0, "records": 3, "alpha": 1.0, **wrong})
