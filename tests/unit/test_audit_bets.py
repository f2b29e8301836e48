"""The audit's bets: exactly fair against true claims, whatever the law; what they prove; what they could have seen."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from privurn.privacy.audit.bets import (
    PairCounts,
    largest_refuted,
    log_wealth,
    log_wealth_of_shares,
    pair_stakes,
    share_stakes,
)
from privurn.privacy.audit.bits import lowest_bit
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.power import SURE, Power, least_leak_in_pairs, least_leak_in_shares
from privurn.privacy.audit.support import SupportAttack


def pair_laws(trials):
    """Every outcome of so many pairs of outputs, with a function that gives its probability."""
    for hits, others in product(range(trials + 1), repeat=2):
        for both in range(max(0, hits + others - trials), min(hits, others) + 1):
            ways = math.comb(hits, both) * math.comb(trials - hits, others - both) / math.comb(trials, others)
            counts = PairCounts(both, hits - both, others - both, trials - hits - others + both)
            yield counts, hits, others, ways


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("tuned", [None, 0.0, 1.0])
def test_expected_wealth_is_at_most_one_and_rejections_are_rare_for_every_true_claim(epsilon, delta, tuned):
    trials, failure = 8, 0.05
    stakes = pair_stakes(tuned, delta)
    outcomes = [(*law, log_wealth(law[0], epsilon=epsilon, delta=delta, stakes=stakes)) for law in pair_laws(trials)]
    for q in np.linspace(0.0, 1.0, 21):
        p = min(1.0, math.exp(epsilon) * q + delta)
        first, second = binom.pmf(np.arange(trials + 1), trials, p), binom.pmf(np.arange(trials + 1), trials, q)
        chances = np.array([first[hits] * second[others] * ways for _, hits, others, ways, _ in outcomes])
        wealth = np.exp([log for *_, log in outcomes])
        assert chances.sum() == pytest.approx(1.0)
        assert chances @ wealth <= 1.0 + 1e-12
        assert chances[wealth >= 1.0 / failure].sum() <= failure


def test_a_false_claim_makes_the_gambler_rich():
    """No looser than needed: a wealth that only had to be fair could stay 1."""
    stakes = pair_stakes(1.0, 0.0)
    seen = log_wealth(PairCounts(0, 40, 0, 39_960), epsilon=1.0, delta=0.0, stakes=stakes)
    assert seen == pytest.approx(40 * math.log1p(math.exp(-1.0)) - math.log(len(stakes)), abs=0.1)
    dense = log_wealth(PairCounts(0, 9_000, 1_000, 0), epsilon=1.0, delta=0.0, stakes=stakes)
    assert dense > 800.0


@settings(max_examples=80, deadline=None)
@given(
    counts=st.tuples(*[st.integers(0, 60)] * 4),
    epsilons=st.tuples(st.floats(0, 6), st.floats(0, 6)),
    deltas=st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)),
)
def test_wealth_falls_in_epsilon_and_in_delta(counts, epsilons, deltas):
    stakes = pair_stakes(1.0, 0.01)
    low = log_wealth(PairCounts(*counts), epsilon=min(epsilons), delta=min(deltas), stakes=stakes)
    high = log_wealth(PairCounts(*counts), epsilon=max(epsilons), delta=max(deltas), stakes=stakes)
    assert high <= low + 1e-9
    shares = np.array(counts) / 60.0
    grid = share_stakes(0.05)
    bounds = [log_wealth_of_shares(shares, bound=each, stakes=grid) for each in sorted(deltas)]
    assert bounds[1] <= bounds[0] + 1e-9


@pytest.mark.parametrize("together", [False, True])
def test_shares_are_bet_on_fairly_even_if_all_marks_are_disclosed_together(together):
    """A mechanism that discloses all marks or none has the same expected share, and no independence at all."""
    marks, runs, bound, failure = 3, 4, 0.2, 0.02
    law = np.zeros(marks + 1)
    if together:
        law[[0, marks]] = 1.0 - bound, bound
    else:
        law = binom.pmf(np.arange(marks + 1), marks, bound)
    expected = rejected = 0.0
    for hits in product(range(marks + 1), repeat=runs):
        chance = math.prod(law[each] for each in hits)
        wealth = math.exp(log_wealth_of_shares(np.array(hits) / marks, bound=bound, stakes=share_stakes(bound)))
        expected += chance * wealth
        rejected += chance * (wealth >= 1.0 / failure)
    assert 0.99 < expected <= 1.0 + 1e-12
    assert rejected <= failure


def test_the_bound_is_where_the_wealth_crosses():
    assert largest_refuted(lambda x: 3.0 - x, needed=1.0, most=10.0) == pytest.approx(2.0)
    assert largest_refuted(lambda x: 3.0 - x, needed=4.0, most=10.0) is None
    assert largest_refuted(lambda x: 3.0 - x, needed=1.0, most=0.5) == 0.5


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-3), (4.0, 1e-6)])
def test_what_could_have_been_seen_is_seen_that_often(epsilon, delta):
    trials, needed = 20_000, 9.0
    leak = least_leak_in_pairs(trials, epsilon=epsilon, delta=delta, needed=needed)
    stakes = pair_stakes(epsilon, delta)

    def refuted(hits):
        return log_wealth(PairCounts(0, hits, 0, trials - hits), epsilon=epsilon, delta=delta, stakes=stakes) >= needed

    least = next(hits for hits in range(trials) if refuted(hits))
    assert binom.sf(least - 1, trials, leak) == pytest.approx(SURE)
    assert least_leak_in_pairs(100, epsilon=9.0, delta=0.0, needed=needed) is None


def test_what_lone_labels_could_have_shown_is_shown_that_often():
    runs, marks, bound, needed = 300, 1_000, 0.0012, 9.0
    leak = least_leak_in_shares(runs, marks, bound=bound, needed=needed)
    assert 0.0012 < leak < 0.0021
    rng = np.random.default_rng(3)
    stakes = share_stakes(bound)
    shares = rng.binomial(marks, leak, (400, runs)) / marks
    assert np.mean([log_wealth_of_shares(each, bound=bound, stakes=stakes) >= needed for each in shares]) > 0.99
    half = rng.binomial(marks, 0.5 * (bound + leak), (400, runs)) / marks
    assert np.mean([log_wealth_of_shares(each, bound=bound, stakes=stakes) >= needed for each in half]) < 0.9


def test_one_mark_that_is_seen_once_refutes_a_claim_of_nothing():
    attack = SupportAttack("marks", "published", lambda runs: np.eye(1, runs)[0], 1, 1_000, (Claim(3.0, 0.0),))
    [finding] = attack.findings(failure=1e-4)
    assert finding.convicted
    assert (finding.hits, finding.trials, finding.epsilon_lower) == ((1, 0), 1_000, math.inf)
    [power] = attack.power(failure=1e-4)
    assert power.leak == pytest.approx(1.0 - 1e-3 ** (1 / 1_000), rel=1e-6)
    assert finding.to_json()["epsilon_lower"] is None


def test_power_is_said_in_words():
    assert "0.003" in Power("marks", "all", 10, 0.003).sentence()
    assert "nothing can be seen" in Power("marks", "all", 10, None).sentence()


def test_the_lowest_bit_divides():
    values = np.array([1.0, -1.5, 2.0**-60, 3 * 2.0**20, 0.1])
    for value, bit in zip(values, lowest_bit(values), strict=True):
        assert (value / 2.0**bit) % 2 == 1
