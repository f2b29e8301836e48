"""The exponential mechanism: ranges by brute force, its law in fractions over all neighbours, its sampler branch by branch."""

import itertools
import json
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from privurn.counts import CountTable
from privurn.errors import CalibrationError, ModelError
from privurn.mechanisms import exponential_losses, exponential_sampling, exponential_simulation
from privurn.mechanisms.choice import choose as choose_mechanism
from privurn.mechanisms.exponential import (
    MOST_CANDIDATES,
    SLACK,
    Exponential,
    ExponentialHistogram,
    affordable,
    calibrate_exponential,
    most_records,
)
from privurn.mechanisms.exponential_losses import CONTEXT, LOSSES
from privurn.mechanisms.exponential_sampling import candidate, choose
from privurn.mechanisms.recipe import Public
from privurn.mechanisms.registry import rebuild
from privurn.privacy.entropy import Entropy, SeededEntropy, SystemEntropy
from privurn.privacy.profile import Guarantee

FALSE_ALARM = 1e-6
GAPS = (Fraction(1, 2), Fraction(3), Fraction(5, 4))
ALL = tuple(LOSSES)


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(60):
        yield


def histograms(total, cells):
    """All count vectors with this sum, the first cell varying slowest."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in histograms(total - first, cells - 1):
            yield (first, *rest)


def neighbours(n, cells):
    """Ordered pairs of tables that differ by one replaced record."""
    for x in histograms(n, cells):
        for a, b in itertools.permutations(range(cells), 2):
            if x[a] > 0:
                y = list(x)
                y[a] -= 1
                y[b] += 1
                yield x, tuple(y)


def loss_of(name, x, s, gaps):
    """The losses as the documentation defines them, in sixty digits."""
    n, m = sum(x), sum(s)
    p, q = [mpf(each) / n for each in x], [mpf(each) / m for each in s]
    if name == "w1":
        totals = zip(itertools.accumulate(p), itertools.accumulate(q), gaps, strict=False)
        return mp.fsum(mpf(gap.numerator) / gap.denominator * abs(a - b) for a, b, gap in totals)
    if name == "l1":
        return mp.fsum(abs(a - b) for a, b in zip(p, q, strict=True))
    if name.startswith("l2"):
        value = mp.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True))
    else:
        value = mp.fsum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(p, q, strict=True)) / 2
    return value if name.endswith("squared") else mp.sqrt(value)


def gaps_of(name, cells):
    return GAPS[: cells - 1] if name == "w1" else (Fraction(1),) * (cells - 1)


def mechanism_for(name, *, n, cells, records, epsilon=1.0):
    gaps = gaps_of(name, cells) if name == "w1" else None
    return ExponentialHistogram(n=n, cells=cells, records=records, epsilon=epsilon, loss=name, gaps=gaps)


def claimed(name, n, cells):
    """(range, sensitivity) as docs/proofs/exponential.md states them."""
    other = 1 if cells > 2 else mp.sqrt(n) - mp.sqrt(n - 1)
    total = sum(gaps_of(name, cells))
    return {
        "l1": (mpf(4) / n, mpf(2) / n),
        "l2": (mp.sqrt(8) / n, mp.sqrt(2) / n),
        "l2-squared": (mpf(4) / n, mpf(4) / n - mpf(2) / n**2),
        "hellinger": (2 * mp.sqrt((1 + other**2) / (2 * mpf(n))), mp.sqrt((1 + other**2) / (2 * mpf(n)))),
        "hellinger-squared": ((1 + other) / mp.sqrt(n), 1 / mp.sqrt(n)),
        "w1": (2 * mpf(total.numerator) / total.denominator / n, mpf(total.numerator) / total.denominator / n),
    }[name]


SIZES = [(n, z, m) for z in (2, 3) for n in (1, 2, 3, 4) for m in (1, 2, 3, 4)] + [(2, 4, 2), (3, 4, 2), (2, 4, 3)]


@pytest.mark.parametrize("name", ALL)
def test_ranges_and_sensitivities_equal_brute_force(name):
    for n, cells, m in SIZES:
        gaps = gaps_of(name, cells)
        table = {(x, s): loss_of(name, x, s, gaps) for x in histograms(n, cells) for s in histograms(m, cells)}
        spread = largest = mpf(0)
        for x, y in neighbours(n, cells):
            moved = [table[x, s] - table[y, s] for s in histograms(m, cells)]
            spread = max(spread, max(moved) - min(moved))
            largest = max(largest, *map(abs, moved))
        want_spread, want_largest = claimed(name, n, cells)
        assert spread <= want_spread + mpf("1e-50")
        assert largest <= want_largest + mpf("1e-50")
        if name != "hellinger" or m % n == 0:  # else no candidate equals the data, and both are upper bounds
            assert abs(spread - want_spread) < mpf("1e-50")
            assert abs(largest - want_largest) < mpf("1e-50")
        # the code's own number: epsilon over the rate of one unit of loss
        mechanism = mechanism_for(name, n=n, cells=cells, records=m)
        common = 4 if name == "w1" and cells == 4 else 2 if name == "w1" else 1
        unit = {"l1": m * n, "w1": m * n * common, "l2": m * n, "l2-squared": (m * n) ** 2}.get(name, 1)
        assert abs((1 - mpf("1e-20")) / (mpf(str(mechanism.rate)) * unit) - want_spread) < mpf("1e-45")


def law_of(mechanism, x):
    """Exact output law, from the very weights that a draw is made with."""
    cells, m = mechanism.cells, mechanism.records
    if LOSSES[mechanism.loss].route == "candidates":
        weights = [Fraction(each) for each in mechanism.candidate_weights(list(x))]
        assert len(weights) == len(list(histograms(m, cells)))
        return {tuple(candidate(i, cells=cells, records=m)): each / sum(weights) for i, each in enumerate(weights)}
    sequential = mechanism.sequential_weights(list(x))
    law = {}
    for s in histograms(m, cells):
        probability, left = Fraction(1), m
        for cell in range(cells - 1):
            weights = [Fraction(each) for each in sequential.weights(cell, left=left)]
            assert len(weights) == left + 1
            probability *= weights[s[cell]] / sum(weights)
            left -= s[cell]
        law[s] = probability
    return law


def as_mpf(value):
    return mpf(value.numerator) / value.denominator


LAWS = [(1, 2, 1), (2, 2, 3), (3, 2, 2), (2, 3, 2), (3, 3, 3), (1, 4, 2), (2, 4, 4)]


@pytest.mark.parametrize("name", ALL)
def test_sampled_law_is_the_enumerated_one(name):
    for n, cells, m in LAWS:
        for epsilon in (0.3, 5.0):
            mechanism = mechanism_for(name, n=n, cells=cells, records=m, epsilon=epsilon)
            spread, _ = claimed(name, n, cells)
            for x in histograms(n, cells):
                weights = {
                    s: mp.exp(-mpf(epsilon) * loss_of(name, x, s, gaps_of(name, cells)) / spread) for s in histograms(m, cells)
                }
                total = mp.fsum(weights.values())
                law = law_of(mechanism, x)
                assert sum(law.values()) == 1
                for s, weight in weights.items():
                    assert abs(as_mpf(law[s]) * total / weight - 1) < mpf("1e-18")


def excess(mechanism, epsilons):
    """How far the laws of all neighbours, both orders, exceed the profile; and the longest interval of log ratios."""
    laws = {x: law_of(mechanism, x) for x in histograms(mechanism.n, mechanism.cells)}
    worst, longest = mpf(-1), mpf(0)
    for x, y in neighbours(mechanism.n, mechanism.cells):
        logs = [mp.log(as_mpf(laws[x][s] / laws[y][s])) for s in laws[x]]
        longest = max(longest, max(logs) - min(logs))
        for epsilon in epsilons:
            ratio = mp.exp(mpf(epsilon))
            stick = mp.fsum(max(mpf(0), as_mpf(laws[x][s]) - ratio * as_mpf(laws[y][s])) for s in laws[x])
            rounding = mpf("1e-16") if epsilon < 0 else 0  # 1 - e^epsilon is given as the nearest float
            worst = max(worst, stick - rounding - mpf(mechanism.profile.delta(epsilon)))
    return worst, longest


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_profile_holds_over_all_neighbours(name, epsilon):
    grid = (-2.0, -0.1, 0.0, 0.1, 0.25 * epsilon, 0.7 * epsilon, epsilon, 2.0 * epsilon)
    for n, cells, m in [(2, 2, 3), (3, 3, 2), (3, 3, 3), (1, 4, 2)]:
        mechanism = mechanism_for(name, n=n, cells=cells, records=m, epsilon=epsilon)
        worst, longest = excess(mechanism, grid)
        assert worst <= 0
        assert mechanism.profile.delta(epsilon) == 0.0  # so the line above says: pure, exactly
        assert longest <= mpf(epsilon)
        if name != "hellinger" or m % n == 0:
            assert longest > mpf(epsilon) - mpf("1.1e-20")  # nothing but the slack is given away


@pytest.mark.parametrize("name", ALL)
def test_a_sensitivity_too_small_by_two_is_caught(name, monkeypatch):
    loss = LOSSES[name]
    wrong = replace(loss, spread=lambda n, m, z, gaps: loss.spread(n, m, z, gaps) / 2)
    monkeypatch.setitem(exponential_losses.LOSSES, name, wrong)
    n, cells, m = (1, 2, 1) if name == "hellinger" else (2, 3, 2)
    worst, longest = excess(mechanism_for(name, n=n, cells=cells, records=m), (0.0, 0.5, 1.0))
    assert worst > 1e-3
    assert longest > 1.9


def test_pure_even_where_weights_differ_by_thousands_of_digits():
    for name in ("l1", "l2-squared", "w1", "l2"):
        mechanism = mechanism_for(name, n=20_000, cells=3, records=2, epsilon=2.0)
        x, y = (1, 19_999, 0), (0, 19_999, 1)
        first, second = law_of(mechanism, x), law_of(mechanism, y)
        logs = [mp.log(as_mpf(first[s] / second[s])) for s in first]
        assert max(map(abs, logs)) <= 2
        assert max(logs) - min(logs) <= 2
        assert min(map(as_mpf, first.values())) < mpf("1e-3000")


@pytest.mark.parametrize("name", [each for each in ALL if LOSSES[each].route != "candidates"])
def test_rounding_is_far_below_the_slack(name, monkeypatch):
    mechanism = mechanism_for(name, n=10**6, cells=4, records=12, epsilon=3.0)
    x = [700_000, 299_999, 0, 1]
    rate = mechanism.rate
    coarse = mechanism.sequential_weights(x)
    fine_context = CONTEXT.copy()
    fine_context.prec = 90
    for module in (exponential_losses, exponential_sampling):
        monkeypatch.setattr(module, "CONTEXT", fine_context)
    monkeypatch.setattr(ExponentialHistogram, "rate", rate)
    fine = mechanism.sequential_weights(x)
    bound = Decimal(4 * (10 * 3 * 10**6 + 12 * 12 + 20)) * Decimal("1e-49")  # B of the proof
    assert 8 * 4 * bound < SLACK
    differs = False
    for cell in range(3):
        for left in (0, 1, 5, 12):
            for rough, close in zip(coarse.weights(cell, left=left), fine.weights(cell, left=left), strict=True):
                with localcontext(Context(prec=90, Emin=CONTEXT.Emin, Emax=CONTEXT.Emax)):
                    error = abs(rough / close - 1)
                assert error <= bound
                differs |= error > 0
    assert differs  # the two precisions were really used


class Scripted(Entropy):
    """Integers from a script; asks for more by raising."""

    private = False
    description = "scripted"

    def __init__(self, script):
        self.script = list(script)

    def words(self, size):
        raise AssertionError("choose draws by below")

    def below(self, bound):
        if not self.script:
            raise Asked(bound)
        return self.script.pop(0)


class Asked(Exception):
    def __init__(self, bound):
        super().__init__()
        self.bound = bound


def branches(weights):
    """Exact law of `choose` by following every interval of every integer it asks for, up to starting anew."""

    def outcome(script):
        try:
            return ("chosen", choose(weights, entropy=Scripted(script)))
        except Asked as asked:
            return ("asked", asked.bound)

    first = outcome([])[1]
    law = {}

    def follow(script, probability, bound):
        start = 0
        while start < bound:
            here = outcome([*script, start])
            low, high = start, bound  # the interval of equal outcomes ends somewhere in (low, high]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if outcome([*script, middle]) == here else (low, middle)
            share = probability * Fraction(high - start, bound)
            if here[0] == "chosen":
                law[here[1]] = law.get(here[1], 0) + share
            elif here[1] != first:
                follow([*script, start], share, here[1])
            start = high

    follow([], Fraction(1), first)
    return {i: each / sum(law.values()) for i, each in law.items()}


@pytest.mark.parametrize(
    "weights",
    [
        ["1"],
        ["0.25", "3", "0.5"],
        ["1e-60", "1", "7.123456789012345678901234567890123456789e-61"],
        ["2", "3e-199", "5e-200", "1e-213", "1"],
        ["1", "4e-300", "1e-301", "9.99e-850"],
        ["9.9999999999999999999999999999999999999999999999999e-1000", "1e-1190", "1e-1250", "3e-1199"],
    ],
)
def test_choose_has_exactly_the_law_of_its_weights(weights):
    values = [Decimal(each) for each in weights]
    total = sum(Fraction(each) for each in values)
    assert branches(values) == {i: Fraction(each) / total for i, each in enumerate(values)}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(-500, 500)), min_size=1, max_size=5))
def test_choose_has_exactly_the_law_of_any_weights(pairs):
    values = [Decimal(mantissa).scaleb(exponent) for mantissa, exponent in pairs]
    total = sum(Fraction(each) for each in values)
    assert branches(values) == {i: Fraction(each) / total for i, each in enumerate(values)}


@pytest.mark.parametrize("name", ["l1", "l2-squared", "w1"])
@pytest.mark.parametrize("how", ["exact", "float"])
def test_tables_equal_plain_sums_at_larger_sizes(name, how):
    """Weight of all ways to go on, for all kinks: the fast sums against the definition, cell by cell."""
    for x in [(0, 0, 50), (50, 0, 0), (7, 13, 30), (1, 48, 1), (0, 25, 25), (24, 2, 24)]:
        mechanism = ExponentialHistogram(n=50, cells=3, records=23, epsilon=30.0, loss=name)
        spread = mpf(4) / 50  # for w1 too: 2 (1 + 1)/n
        first = [mpf(0)] * 24
        for s in histograms(23, 3):
            first[s[0]] += mp.exp(-30 * loss_of(name, x, s, (Fraction(1), Fraction(1))) / spread)
        if how == "exact":
            got = [mpf(str(each)) for each in mechanism.sequential_weights(list(x)).weights(0, left=23)]
        else:
            got = [mp.exp(each) for each in first_cell_logs(mechanism, x)]
        scale = mp.fsum(first) / mp.fsum(got)
        tolerance = mpf("1e-18") if how == "exact" else mpf("1e-11")
        assert all(abs(scale * mine / true - 1) < tolerance for mine, true in zip(got, first, strict=True))


def first_cell_logs(mechanism, x):
    """What the simulation's first choice is made from."""
    seen = []

    class Stop(Exception):
        pass

    def spy(logs, rng, size):
        seen.extend(logs.tolist())
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential_simulation, "_pick", spy)
        counts = CountTable.from_cells(np.arange(len(x)), np.array(x))
        with pytest.raises(Stop):
            mechanism.simulate(counts, rng=np.random.default_rng(1))
    return seen


def test_candidates_are_numbered_in_order():
    for cells, m in [(2, 5), (3, 4), (5, 3)]:
        assert [tuple(candidate(i, cells=cells, records=m)) for i in range(len(list(histograms(m, cells))))] == list(
            histograms(m, cells)
        )


def rejected(observed, law):
    """Pearson's test of independent histograms against a law; classes of small expectation are pooled."""
    from scipy.stats import chi2

    size = sum(observed.values())
    large = [s for s in law if size * law[s] >= 10]
    seen = np.array([observed.get(s, 0) for s in large], float)
    expected = np.array([size * float(law[s]) for s in large])
    seen, expected = np.append(seen, size - seen.sum()), np.append(expected, size - expected.sum())
    kept = expected > 1e-9
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    return statistic > chi2.isf(FALSE_ALARM, kept.sum() - 1)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("how", ["draw", "simulate"])
def test_draws_follow_the_law_and_a_twin_does_not(name, how):
    mechanism = mechanism_for(name, n=5, cells=3, records=3, epsilon=3.0)
    x = (3, 0, 2)
    counts = CountTable.from_cells(np.arange(3), np.array(x))
    observed: dict[tuple[int, ...], int] = {}
    if how == "draw":
        entropy = SeededEntropy(20240611)
        made = (np.bincount(mechanism.draw(counts, entropy=entropy).cells, minlength=3) for _ in range(1500))
    else:
        made = mechanism.simulate_many(counts, rng=np.random.default_rng(20240611), runs=6000)
    for each in made:
        key = tuple(each.tolist())
        observed[key] = observed.get(key, 0) + 1
    assert not rejected(observed, law_of(mechanism, x)), f"{name} {how} at a false-alarm rate of {FALSE_ALARM}"
    assert rejected(observed, law_of(replace(mechanism, epsilon=6.0), x))


def test_records_come_in_random_order():
    mechanism = ExponentialHistogram(n=2, cells=2, records=2, epsilon=1.0)
    counts = CountTable.from_cells(np.arange(2), np.array([1, 1]))
    seen = {tuple(mechanism.draw(counts, entropy=SystemEntropy()).cells.tolist()) for _ in range(400)}
    assert {(0, 1), (1, 0)} <= seen  # missed with probability below 1e-30


@pytest.mark.parametrize("name", ALL)
def test_parameters_round_trip_and_calibration_is_pure(name):
    gaps = GAPS if name == "w1" else None
    made = calibrate_exponential(n=500, cells=4, guarantee=Guarantee(epsilon=0.7, delta=0.0), loss=name, records=9, gaps=gaps)
    assert made.epsilon == 0.7
    assert made.profile.delta(0.7) == 0.0
    assert rebuild("exponential", json.loads(json.dumps(made.parameters()))) == made
    loose = calibrate_exponential(n=500, cells=4, guarantee=Guarantee(epsilon=0.7, delta=1e-3), loss=name, records=9)
    assert loose.epsilon > 0.74
    assert 0.99e-3 < loose.profile.delta(0.7) <= 1e-3
    shared = calibrate_exponential(n=500, cells=4, guarantee=Guarantee(epsilon=0.7, delta=0.0, contributions=3), records=9)
    assert shared.epsilon == 0.7 / 3


def refusal(*, n, cells, **asked):
    public = Public(n=n, cells=cells, guarantee=Guarantee(epsilon=1.0, delta=0.0))
    with pytest.raises(CalibrationError) as caught:
        choose_mechanism(Exponential(**asked), public)
    return str(caught.value)


def test_refuses_what_cannot_be_drawn_exactly():
    with pytest.raises(CalibrationError, match="too many for an exact draw"):
        ExponentialHistogram(n=1000, cells=10, records=100, epsilon=1.0, loss="l2")
    most = most_records(loss="l2", cells=10)
    refused = refusal(n=1000, cells=10, records=100, loss="l2")
    assert f"at most {most:,} records" in refused
    assert "'l2-squared'" in refused
    ExponentialHistogram(n=1000, cells=10, records=most, epsilon=1.0, loss="l2")
    assert not affordable(loss="l2", cells=10, records=most + 1)
    assert affordable(loss="hellinger", cells=2, records=MOST_CANDIDATES - 1)
    assert not affordable(loss="hellinger", cells=2, records=MOST_CANDIDATES)
    refused = refusal(n=10**6, cells=50, records=10_000, loss="l2-squared")
    assert "the loss 'l1' with these 10,000 records: mechanism=Exponential(records=10000)" in refused
    assert "What can be had" in refusal(n=10**6, cells=10**7, records=1, loss="l1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cells": 1},
        {"n": 0},
        {"n": 10**11 + 1},
        {"records": 0},
        {"epsilon": 0.0},
        {"epsilon": 1e-12},
        {"loss": "l3"},
        {"gaps": (Fraction(1), Fraction(1))},
        {"loss": "w1", "gaps": (Fraction(1),)},
        {"loss": "w1", "gaps": (Fraction(1), Fraction(0))},
    ],
)
def test_bad_parameters(wrong):
    good = {"n": 10, "cells": 3, "records": 4, "epsilon": 1.0}
    ExponentialHistogram(**good)
    with pytest.raises(ModelError):
        ExponentialHistogram(**{**good, **wrong})


def test_needs_a_public_number_of_records():
    with pytest.raises(ModelError, match="public number"):
        calibrate_exponential(n=10, cells=3, guarantee=Guarantee(epsilon=1, delta=0, neighbouring="add-remove"))
    counts = CountTable.from_cells(np.arange(2), np.array([4, 4]))
    with pytest.raises(ModelError, match="another number"):
        ExponentialHistogram(n=9, cells=2, records=3, epsilon=1.0).draw(counts, entropy=SystemEntropy())
