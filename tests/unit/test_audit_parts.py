"""The audit's parts: outputs as rows, statistics of one output alone, events, neighbours, claims."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privurn.audits import Claim, audit_callable
from privurn.errors import FormatError, ModelError
from privurn.privacy.audit.attack import Pair, audit, each_call
from privurn.privacy.audit.bets import PairCounts, log_wealth, pair_stakes
from privurn.privacy.audit.bits import bit_statistics
from privurn.privacy.audit.events import Classes, Event, best_events
from privurn.privacy.audit.neighbours import neighbouring_tables
from privurn.privacy.audit.statistics import Statistic, learned_statistics, standard_statistics, to_batch

ENTRIES = st.one_of(st.integers(-3, 3), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["a", "b", None]))
OUTPUTS = st.one_of(ENTRIES, st.lists(ENTRIES, max_size=4), st.tuples(ENTRIES, ENTRIES), st.sets(st.integers(0, 3)))


@settings(max_examples=150, deadline=None)
@given(outputs=st.lists(OUTPUTS, min_size=2, max_size=6), learn=st.lists(OUTPUTS, min_size=4, max_size=4))
def test_every_statistic_is_a_function_of_one_output_alone(outputs, learn):
    """Else counts would not be binomial: the company an output keeps must not change what is seen of it."""
    looks = [
        *standard_statistics((0, 2)),
        *standard_statistics(("a",)),
        *learned_statistics(to_batch(learn[:2]), to_batch(learn[2:])),
        *bit_statistics([to_batch([0.5])], (0, 2)),
    ]
    for look in looks:
        together = look.values(to_batch(outputs))
        alone = np.concatenate([look.values(to_batch([output])) for output in outputs])
        assert np.isfinite(together).all()
        np.testing.assert_array_equal(together, alone, err_msg=look.name)


def test_statistics_see_what_their_names_say():
    batch = to_batch([[2, 0, 0], [1, 5], []])
    values = {look.name: look.values(batch).tolist() for look in standard_statistics((0, 2))}
    assert values["copies of 0"] == [2, 0, 0]
    assert values["copies of 2"] == [1, 0, 0]
    assert values["difference of the two values' copies"] == [1, 0, 0]
    assert values["number of entries"] == [3, 2, 0]
    assert values["sum of entries"] == [2, 6, 0]
    assert values["first entry"][:2] == [2, 1]
    assert values["last entry"][:2] == [0, 5]
    assert values["largest entry"][:2] == [2, 5]
    assert values["smallest entry"][:2] == [0, 1]
    assert values["entry at place 0"][:2] == [2, 1]


def test_codes_tell_order_and_multisets_apart():
    looks = {look.name: look for look in standard_statistics()}
    batch = to_batch(np.array([[1, 2, 2], [2, 1, 2], [1, 1, 2], [1, 2, 2]]))
    whole, bag = looks["whole output"].values(batch), looks["output in any order"].values(batch)
    assert whole[0] == whole[3]
    assert len(set(whole)) == 3
    assert bag[0] == bag[1] == bag[3] != bag[2]


def test_outputs_of_many_kinds_become_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2]})
    batch = to_batch([frame, {"a": 1}, "text", 3.5, np.array([True, False]), b"x"])
    assert batch.lengths.tolist() == [2, 1, 1, 1, 2, 1]
    assert to_batch([{"a": 1, "b": 2}]).rows.tolist() == to_batch([{"b": 2, "a": 1}]).rows.tolist()
    with pytest.raises(FormatError):
        to_batch([[[1, 2], [3]]])


def test_thresholds_and_sets_contain_what_they_describe():
    look = Statistic("size", lambda batch: batch.lengths.astype(float))
    values = np.array([0.0, 1.0, 2.0, 3.0])
    assert Event(look, "at least", 2.0).contains(values).tolist() == [False, False, True, True]
    assert Event(look, "at most", 2.0).contains(values).tolist() == [True, True, True, False]
    classes = Classes.learn(np.array([1.0, 3.0]), ordered=True)
    chosen = Event(look, "one of", classes=classes, members=(1,))
    assert chosen.contains(values).tolist() == [False, False, False, True]
    assert chosen.description == "size one of 3"


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=2000), ordered=st.booleans())
def test_classes_cover_every_value_once(values, ordered):
    classes = Classes.learn(np.array(values), ordered=ordered)
    tally = classes.tally(np.array([*values, 100.0]))
    assert tally.sum() == len(values) + 1
    assert len(tally) == classes.size


def test_the_best_event_is_the_one_that_separates():
    rng = np.random.default_rng(2)
    look = Statistic("value", lambda batch: batch.rows[:, 0])
    noise = Statistic("noise", lambda batch: batch.rows[:, 0])

    def part():
        return [
            {"value": rng.integers(0, 3, 4000).astype(float), "noise": rng.random(4000)},
            {"value": rng.integers(2, 5, 4000).astype(float), "noise": rng.random(4000)},
        ]

    found = best_events([noise, look], part(), part(), goals=[(None, 0.0), (1.0, 0.0)], tests=4000, needed=9.0)
    for both in found:
        assert [each.order for each in both] == [0, 0, 1, 1]
        for each in (both[0], both[2]):
            assert each.event.statistic is look
            inside = each.event.contains(np.arange(5.0)).tolist()
            assert inside == ([True, True, False, False, False] if each.order == 0 else [False, False, False, True, True])


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 12),
    cells=st.one_of(st.none(), st.integers(2, 6)),
    moved=st.integers(1, 3),
    neighbouring=st.sampled_from(["replace-one", "add-remove"]),
)
def test_neighbours_differ_in_exactly_the_records_that_move(n, cells, moved, neighbouring):
    if moved > n:
        with pytest.raises(ModelError):
            neighbouring_tables(n=n, cells=cells, contributions=moved, neighbouring=neighbouring)
        return
    found = neighbouring_tables(n=n, cells=cells, contributions=moved, neighbouring=neighbouring)
    assert len({tuple(each.common.items()) for each in found}) == len(found) >= (1 if n == moved else 2)
    for turn, each in enumerate(found):
        assert sum(each.first.values()) == n
        assert sum(each.second.values()) == (n if neighbouring == "replace-one" else n - moved)
        changed = {cell: each.first.get(cell, 0) - each.second.get(cell, 0) for cell in {*each.first, *each.second}}
        expected = {each.left: moved} if neighbouring == "add-remove" else {each.left: moved, each.right: -moved}
        assert {cell: change for cell, change in changed.items() if change} == expected
        first, second = each.records(turn)
        for records, counts in ((first, each.first), (second, each.second)):
            seen = dict(zip(*(part.tolist() for part in np.unique(records, return_counts=True)), strict=True))
            assert seen == {cell: count for cell, count in counts.items() if count}
        if cells is not None:
            assert max(each.first) < cells


def test_the_worst_neighbours_of_the_urns_are_among_them():
    tables = neighbouring_tables(n=7, cells=3)
    assert any((each.first, each.second) == ({0: 1, 1: 6}, {1: 6, 2: 1}) for each in tables)  # both cells empty
    assert any((each.first, each.second) == ({0: 1, 2: 6}, {2: 7}) for each in tables)
    assert any(each.first.get(0) == 2 for each in tables)


def test_one_cell_has_nothing_to_audit():
    with pytest.raises(ModelError):
        neighbouring_tables(n=5, cells=1)
    assert neighbouring_tables(n=5, cells=1, neighbouring="add-remove")


def coin(data, /, *, size):
    return np.zeros(size)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pairs": []},
        {"samples": 10},
        {"failure_probability": 0.0},
        {"failure_probability": 1.0},
        {"epsilon": -1.0},
        {"delta": 1.0},
    ],
)
def test_an_audit_that_means_nothing_is_refused(wrong):
    options = {"pairs": [Pair("same", 0, 0)], "epsilon": 1.0, "samples": 200, **wrong}
    with pytest.raises(ModelError):
        audit(coin, **options)


def test_no_claim_and_an_infinite_claim_cannot_be_refuted():
    def tells(data, /, *, size):
        return np.full(size, data)

    for claim in (None, math.inf):
        result = audit(tells, pairs=[Pair("all is told", 0, 1)], epsilon=claim, samples=1_000)
        assert result.epsilon_lower > 3.0
        assert not result.convicted
        assert result.delta_lower is None
        assert result.power == ()
        assert result.to_json()["epsilon"] is None


def test_delta_test_and_epsilon_test_are_the_same_test():
    """log((p - delta)/q) > epsilon is p - e^epsilon q > delta: one finding convicts by both or by neither."""
    rng = np.random.default_rng(6)

    def answer(truth, /, *, size):
        return np.where(rng.random(size) < 0.9, truth, 1 - truth)

    for epsilon in (0.5, 1.5, 2.0, 2.1, 2.2, 3.0):
        for delta in (0.0, 0.05):
            result = audit(answer, pairs=[Pair("yes or no", 1, 0)], epsilon=epsilon, delta=delta, samples=4_000)
            for finding in result.findings:
                assert finding.epsilon_lower <= math.log(9.0)
                if finding.claim.finite is not None and finding.convicted:
                    assert finding.epsilon_lower >= epsilon
                    assert finding.delta_lower >= delta
                else:
                    assert finding.epsilon_lower <= epsilon or finding.delta_lower == 0.0


def test_the_failure_probability_is_split_over_directions_and_goals():
    rng = np.random.default_rng(7)

    def answer(truth, /, *, size):
        return np.where(rng.random(size) < 0.7, truth, 1 - truth)

    pairs = [Pair("one", 1, 0), Pair("two", 0, 1), Pair("three", 1, 1)]
    result = audit(answer, pairs=pairs, epsilon=0.4, samples=1_000, failure_probability=0.06)
    assert (
        len(result.findings) == 4
    )  # two directions, for the claim and for the largest epsilon, on the pair that promises most
    assert len({finding.pair for finding in result.findings}) == 1
    for finding in result.findings:
        assert finding.trials == 1_125  # three eighths of all outputs
        assert finding.convicted == (finding.evidence >= -math.log(0.06 / 4))


def test_evidence_is_the_wealth_of_the_bets():
    def tells(data, /, *, size):
        return np.full(size, data)

    [first, *_] = audit(tells, pairs=[Pair("all is told", 0, 1)], epsilon=1.0, samples=1_000).findings
    expected = log_wealth(PairCounts(0, 375, 0, 0), epsilon=1.0, delta=0.0, stakes=pair_stakes(1.0, 0.0))
    assert first.hits == (375, 0)
    assert first.evidence == expected > 100.0


def test_only_outputs_that_the_choice_has_not_seen_count():
    """A mechanism that tells everything while events are chosen and nothing afterwards is not convicted."""
    drawn = {0: 0, 1: 0}

    def tells_at_first(data, /, *, size):
        drawn[data] += size
        return np.full(size, data if drawn[data] <= 16 + 500 else 0)

    result = audit(tells_at_first, pairs=[Pair("late noise", 1, 0)], epsilon=0.5, samples=1_000)
    assert drawn == {0: 1016, 1: 1016}
    assert {finding.hits for finding in result.findings} <= {(0, 0), (375, 375)}
    assert result.epsilon_lower == 0.0


def test_progress_reaches_the_end():
    seen = []
    audit(coin, pairs=[Pair("one", 0, 0), Pair("two", 0, 0)], epsilon=1.0, samples=400, progress=lambda *at: seen.append(at))
    assert seen[-1] == (1600, 1600)
    assert seen == sorted(seen)


def test_a_sampler_that_gives_too_few_outputs_is_refused():
    with pytest.raises(FormatError):
        audit(lambda data, /, *, size: [0] * (size - 1), pairs=[Pair("same", 0, 0)], epsilon=1.0, samples=200)


def test_a_function_that_never_runs_is_refused():
    with pytest.raises(FormatError):
        audit_callable(lambda: 1, Claim(1.0), n=4, domain=2, samples=200)
    assert each_call(lambda data: 1 / data)(0, size=2) == ["raised ZeroDivisionError"] * 2
