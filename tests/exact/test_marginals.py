"""Noisy marginals: every pair of tiny tables against the profile, the drawn law, the least noise, and what is refused."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from privurn.domain import Bins, Categories, Dates, Grid, TableDomain
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.choice import choose
from privurn.mechanisms.fine_columns import FineColumn
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.marginal_counts import MarginalCounts, MarginalLayout, count_marginals
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import MOST_THREE_WAY_CELLS, every_set, fine_values, measurable, precisions
from privurn.mechanisms.marginals_recipe import Marginals, calibrate_marginals
from privurn.mechanisms.noisy_tree_recipe import NoisyTree
from privurn.mechanisms.recipe import Public
from privurn.privacy.additive_noise import log_mass
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.laws.marginals import MarginalsProfile
from privurn.privacy.profile import GroupProfile, Guarantee

LAPLACE, GAUSSIAN = "discrete-laplace", "discrete-gaussian"
EPSILONS = (0.0, 0.2, 0.7, 1.3, 2.4, 5.0)
FINE = FineColumn(place=0, values=4, special=1, ranges_depth=1, depths=(2,))
TABLES = {
    "2 x 2": ((2, 2), ((0,), (1,), (0, 1)), (1.1, 1.1, 0.8), ()),
    "2 x 2 x 2": ((2, 2, 2), ((0,), (0, 1), (1, 2), (0, 1, 2)), (0.9, 1.3, 1.3, 1.3), ()),
    "2 x 3, one pair": ((2, 3), ((0, 1),), (0.7,), ()),
    "a fine column by two ranges x 2": ((3, 2), ((0,), (0, 1)), (1.2, 1.2, 0.8), (FINE,)),
}


# ---- the truth, by enumeration ---------------------------------------------------------------------------------------


def tables(sizes, most, *, secret):
    """All tables of up to `most` records (of exactly as many where n is public), as cells of every column."""
    cells = list(itertools.product(*map(range, sizes)))
    for size in range(most + 1) if secret else [most]:
        yield from itertools.combinations_with_replacement(cells, size)


def measured(mechanism, records):
    codes = np.array(records, np.uint16).reshape(-1, len(mechanism.sizes)).T
    return count_marginals([codes], mechanism.layout).counts


@cache
def shift_law(noise, scale, shift):
    """Losses and probabilities of one integer moved by `shift`."""
    reach = math.ceil((40 if noise == LAPLACE else 9) * scale) + 6
    k = np.arange(-reach, reach + 1 + shift, dtype=float)
    kind = "laplace" if noise == LAPLACE else "gaussian"
    first, second = log_mass(k, noise=kind, scale=scale), log_mass(k - shift, noise=kind, scale=scale)
    return merged(first - second, np.exp(first))


def merged(losses, masses):
    keys, place = np.unique(np.round(losses, 9), return_inverse=True)
    found = np.bincount(place, masses)
    return keys[found > 1e-22], found[found > 1e-22]


@cache
def divergence(noise, moved, epsilon):
    losses, masses = np.zeros(1), np.ones(1)
    for scale, shift in moved:
        more, weights = shift_law(noise, scale, shift)
        losses, masses = merged(np.add.outer(losses, more).ravel(), np.multiply.outer(masses, weights).ravel())
    return float(masses @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))))


@cache
def moves(mechanism, contributions):
    """Which counts move by how much between any two tables within `contributions` records of each other."""
    secret, sizes, found = mechanism.n is None, mechanism.layout.stated_sizes, set()
    scales = np.repeat(mechanism.scales, mechanism.layout.cells)
    counted = [(records, measured(mechanism, records)) for records in tables(sizes, contributions, secret=secret)]
    full = [(np.array([records.count(c) for c in itertools.product(*map(range, sizes))]), y) for records, y in counted]
    for (first, one), (second, other) in itertools.combinations(full, 2):
        apart = np.abs(first - second).sum()
        if 0 < (apart if secret else apart // 2) <= contributions:
            found.add(tuple(sorted((s, abs(int(d))) for s, d in zip(scales, one - other, strict=True) if d)))
    return frozenset(found)


SLOW = ("2 x 2 x 2", GAUSSIAN, False, 2)
CASES = [
    pytest.param(*case, marks=pytest.mark.long if case == SLOW else ())
    for case in itertools.product(TABLES, (LAPLACE, GAUSSIAN), (False, True), (1, 2))
]


@pytest.mark.parametrize(("table", "noise", "secret", "contributions"), CASES)
def test_no_two_tables_exceed_the_profile_and_some_attain_it(table, noise, secret, contributions):
    sizes, sets, scales, fine = TABLES[table]
    mechanism = NoisyMarginals(
        n=None if secret else contributions, sizes=sizes, sets=sets, scales=scales, noise=noise, fine=fine
    )
    profile = mechanism.profile.group(contributions)
    twice = replace(profile, scales=(*scales, scales[-1]))
    short = replace(profile, scales=scales[:-1]) if len(scales) > 1 else None
    noticed = []
    for epsilon in EPSILONS:
        truth = max(divergence(noise, moved, epsilon) for moved in moves(mechanism, contributions))
        assert profile.delta(epsilon) == pytest.approx(truth, rel=1e-7, abs=1e-15)
        if truth > 1e-9:
            noticed.append((twice.delta(epsilon) / truth, short.delta(epsilon) / truth if short else 0.0))
    assert max(more for more, _ in noticed) > 1.01  # a marginal paid twice
    assert min(less for _, less in noticed) < 0.99  # or not at all
    if noise == LAPLACE:
        per_record = sum(1 / s for s in scales) * (1 if secret else 2)
        assert profile.pure_epsilon == pytest.approx(contributions * per_record, rel=1e-12)
        assert profile.delta(profile.pure_epsilon) == 0.0


def test_shifts_are_cheaper_than_group_privacy():
    single = MarginalsProfile(noise=GAUSSIAN, scales=(6.0,) * 6)
    assert single.delta(1.0) < single.group(3).delta(1.0) < GroupProfile(single=single, contributions=3).delta(1.0)
    assert single.group(3).zcdp == pytest.approx(9 * single.zcdp)


# ---- counting and drawing ---------------------------------------------------------------------------------------------


def test_counts_are_those_of_a_plain_loop_whatever_the_batches():
    rng, sizes = np.random.default_rng(3), (3, 4, 2, 5)
    layout = MarginalLayout(sizes, every_set(sizes, order=3))
    codes = np.array([rng.integers(0, size, 10_001) for size in sizes]).astype(np.uint16)
    found = count_marginals(np.split(codes, [0, 17, 5000], axis=1), layout)
    assert found.n == 10_001
    for places, counts in zip(layout.sets, layout.split(found.counts), strict=True):
        wanted = np.zeros([sizes[j] for j in places], np.int64)
        np.add.at(wanted, tuple(codes[j] for j in places), 1)
        assert np.array_equal(counts, wanted)
    with pytest.raises(DomainError, match="does not have"):
        count_marginals([np.full((4, 1), 4, np.uint16)], layout)


def test_fine_columns_are_counted_by_their_ranges_and_alone_at_every_depth():
    rng, column = np.random.default_rng(4), FineColumn(place=1, values=11, special=2, ranges_depth=2, depths=(1, 4))
    layout = MarginalLayout((3, 6), ((0,), (1,), (0, 1)), (column,))
    codes = np.array([rng.integers(0, 3, 500), rng.integers(0, 13, 500)]).astype(np.uint16)
    found = count_marginals(np.split(codes, [123], axis=1), layout)
    whole = np.bincount(codes[1], minlength=13)
    by_depth = {d: [part.sum() for part in np.split(whole, column.starts(d)[1:])] for d in (1, 2, 4)}
    single, ranges, both, halves, values = layout.split(found.counts)
    assert [len(each) for each in by_depth.values()] == [4, 6, 13]
    assert ranges.tolist() == both.sum(axis=0).tolist() == by_depth[2]
    assert both.sum(axis=1).tolist() == single.tolist()
    assert (halves.tolist(), values.tolist()) == (by_depth[1], by_depth[4])
    sets = np.concatenate([single, ranges, both.ravel(), whole])
    assert np.array_equal(MarginalCounts.from_sets(layout, sets, 500).counts, found.counts)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_drawn_and_simulated_numbers_have_the_law_that_is_claimed(noise):
    sizes, sets = (2, 2), ((0,), (0, 1))
    made = NoisyMarginals(n=9, sizes=sizes, sets=sets, scales=(2.0, 0.7), noise=noise)
    counts = count_marginals([np.array([[0] * 4 + [1] * 5, [1] * 9], np.uint16)], made.layout)
    rng, size = np.random.default_rng(1), 1000
    drawn = np.array([made.draw(counts, entropy=SystemEntropy()).weights for _ in range(size)]) - counts.counts
    twin = np.array([made.simulate(counts, rng=rng) for _ in range(size)]) - counts.counts
    support = np.arange(-3, 4)
    for noises in (drawn, twin):
        for columns, scale in ((slice(0, 2), 2.0), (slice(2, 6), 0.7)):
            values = np.clip(noises[:, columns].ravel(), -3, 3)
            mass = np.exp(log_mass(np.arange(-400.0, 401.0), noise=noise.removeprefix("discrete-"), scale=scale))
            expected = np.array([mass[np.clip(np.arange(-400, 401), -3, 3) == k].sum() for k in support]) * values.size
            observed = np.array([(values == k).sum() for k in support])
            kept = expected > 5
            statistic = float(((observed - expected) ** 2 / expected)[kept].sum())
            assert chi2.sf(statistic, kept.sum()) > 1e-10


# ---- what is measured, and how precisely -------------------------------------------------------------------------------


def test_every_set_takes_the_smallest_triples_as_far_as_there_is_room():
    assert len(every_set((2,) * 14, order=3)) == 14 + 91 + 364
    sizes = (200, 200, 200, 10, 10, 10)
    kept = [each for each in every_set(sizes, order=3) if len(each) == 3]
    total = sum(math.prod(sizes[j] for j in each) for each in kept)
    assert (3, 4, 5) in kept
    assert (0, 1, 2) not in kept
    assert total <= MOST_THREE_WAY_CELLS


def test_shares_of_the_budget_are_those_of_the_rule():
    sizes = (2, 3, 5, 9)
    sets = every_set(sizes, order=3)
    share = {each: p**2 for each, p in zip(sets, precisions(sizes, sets, noise=GAUSSIAN), strict=True)}
    by_order = [sum(s for each, s in share.items() if len(each) == r) for r in (1, 2, 3)]
    assert by_order == pytest.approx([0.03, 0.57, 0.4])
    assert share[1, 2, 3] > share[0, 1, 2]
    only = precisions(sizes, sets[:4], noise=GAUSSIAN)
    assert sum(p**2 for p in only) == pytest.approx(1.0)


def test_a_depth_of_a_fine_column_has_the_share_of_a_pair():
    made = calibrate_marginals(
        n=500, sizes=(3, 101, 4), fine={1: 100}, guarantee=Guarantee(epsilon=1.0, delta=1e-6), noise=GAUSSIAN
    )
    scale = dict(zip(made.layout.every_set, made.scales, strict=True))
    assert made.sizes == (3, 33, 4)
    assert [(each.depths, each.special) for each in made.fine] == [((3, 7), 1)]
    assert scale[1,] == scale[3,] == scale[4,] == scale[0, 1] < scale[0,]
    twice = calibrate_marginals(
        n=500,
        sizes=(3, 101, 4),
        fine={1: 100},
        weights={(1,): 4.0},
        guarantee=Guarantee(epsilon=1.0, delta=1e-6),
        noise=GAUSSIAN,
    )
    more = dict(zip(twice.layout.every_set, twice.scales, strict=True))
    assert [more[0, 1] / more[each] for each in ((1,), (3,), (4,))] == pytest.approx([2.0] * 3, rel=1e-5)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("contributions", "fine"), [(1, None), (3, None), (3, {4: 60})])
def test_the_least_noise_meets_the_guarantee_and_less_does_not(delta, neighbouring, contributions, fine):
    guarantee = Guarantee(epsilon=1.0, delta=delta, neighbouring=neighbouring, contributions=contributions)
    made = calibrate_marginals(n=500, sizes=(3, 4, 2, 6, 5 if fine is None else 60), guarantee=guarantee, fine=fine)
    assert made.n == (None if neighbouring == "add-remove" else 500)
    assert made.noise == (LAPLACE if delta == 0.0 else GAUSSIAN)
    assert max(map(len, made.sets)) == (2 if delta == 0.0 else 3)
    own = made.unit_profile(guarantee)
    assert 0.995 * delta <= own.delta(1.0) <= delta
    assert replace(own, scales=tuple(0.999 * each for each in own.scales)).delta(1.0) > delta


def test_few_marginals_get_the_noise_with_the_smaller_deviation():
    guarantee = Guarantee(epsilon=1.0, delta=1e-9)
    assert calibrate_marginals(n=500, sizes=(3, 4), guarantee=guarantee).noise == LAPLACE
    forced = calibrate_marginals(n=500, sizes=(3, 4), guarantee=guarantee, noise=GAUSSIAN)
    assert forced.noise == GAUSSIAN
    with pytest.raises(CalibrationError, match="no pure epsilon"):
        calibrate_marginals(n=500, sizes=(3, 4), guarantee=Guarantee(epsilon=1.0, delta=0.0), noise=GAUSSIAN)


# ---- what is asked for, and refused --------------------------------------------------------------------------------------


def public(columns, *, n=1000, delta=1e-6, contributions=1):
    table = TableDomain(columns)
    guarantee = Guarantee(
        epsilon=1.0, delta=delta, neighbouring="add-remove" if n is None else "replace-one", contributions=contributions
    )
    return Public(n=n, cells=table.size, guarantee=guarantee, table=table)


COLUMNS = {"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m"], outside="null"), "one": Bins([0, 1])}


def test_a_workload_is_measured_with_every_single_column_and_weights_buy_precision():
    for asked in ("age*sex", [("sex", "age")], {("age", "sex"): 4.0, "age": 1.0}):
        made, _ = choose(Marginals(workload=asked), public(COLUMNS))
        assert made.sets == ((0,), (1,), (0, 1))
    more = calibrate_marginals(
        n=9, sizes=(3, 3, 3), guarantee=Guarantee(epsilon=1.0, delta=1e-6), order=2, weights={(0, 1): 4.0}, noise=GAUSSIAN
    )
    scale = dict(zip(more.sets, more.scales, strict=True))
    assert scale[0, 2] / scale[0, 1] == pytest.approx(2.0, rel=1e-5)


def test_several_records_of_one_person_are_accepted_at_the_tight_figure():
    made, _ = choose(Marginals(), public(COLUMNS, contributions=4))
    alone, _ = choose(Marginals(), public(COLUMNS))
    assert made.scales[0] == pytest.approx(4 * alone.scales[0], rel=0.02)


@pytest.mark.parametrize(
    ("recipe", "columns", "words"),
    [
        (Marginals(order=4), COLUMNS, "one, two or three"),
        (Marginals(order=2.0), COLUMNS, "one, two or three"),
        (Marginals(order=True), COLUMNS, "one, two or three"),
        (Marginals(order=2, workload="age"), COLUMNS, "both say"),
        (Marginals(workload="age*town"), COLUMNS, "'town'"),
        (Marginals(workload=[("age", "age")]), COLUMNS, "different columns"),
        (Marginals(workload={"age": 0.0}), COLUMNS, "positive"),
        (Marginals(workload={"age": math.inf}), COLUMNS, "positive numbers"),
        (Marginals(workload={"age": "lots"}), COLUMNS, "positive numbers"),
        (Marginals(workload="age=lots"), COLUMNS, "not a number"),
        (Marginals(workload=2), COLUMNS, "list of sets"),
        (Marginals(workload=[2]), COLUMNS, "no set of columns"),
        (Marginals(workload="a*b*c"), {each: Categories(range(250)) for each in "abc"}, "workload has 15,625,750 cells"),
        (Marginals(), {f"x{i}": Bins(range(3)) for i in range(200)}, "200 columns are too many"),
        (Marginals(copies=101), COLUMNS, "at most 100 copies"),
        (Marginals(copies=2, records=5), COLUMNS, "confidential table"),
        (Marginals(), {"one": Bins([0, 1])}, "nothing to measure"),
        (Marginals(), {"town": Categories(range(500))}, "'town' has more than"),
        (Marginals(), {"pay": Grid(0, 70_000, 1)}, "'pay' has more than"),
        (Marginals(), {f"x{i}": Bins(range(30)) for i in range(200)}, "can be measured"),
    ],
)
def test_what_cannot_be_had_is_refused_in_words(recipe, columns, words):
    with pytest.raises((ModelError, DomainError, FormatError), match=words) as refused:
        choose(recipe, public(columns))
    assert refused.value.hint


def test_what_is_suggested_for_copies_is_an_option_of_theirs():
    """A noisy tree takes a guess of a secret number of records; marginals need none."""
    for recipe, guess in ((Marginals, False), (NoisyTree, True)):
        with pytest.raises(ModelError, match="confidential table") as refused:
            recipe(copies=2, records=5).check()
        assert ("guess=" in refused.value.hint) == guess == hasattr(recipe, "guess")


def test_too_many_columns_are_told_which_to_drop():
    with pytest.raises(ModelError) as refused:
        choose(
            Marginals(), public({**{f"x{i}": Bins(range(3)) for i in range(60)}, "fine": Bins(range(30)), "y": Bins(range(9))})
        )
    assert "Leave out 'fine', 'y'" in refused.value.hint
    with pytest.raises(ModelError) as refused:
        choose(Marginals(), public({f"x{i}": Categories(range(200 + i)) for i in range(30)}))
    assert "'x29'" in refused.value.hint
    assert "'x0'" not in refused.value.hint


def test_a_workload_over_the_cap_is_told_what_to_leave_out():
    with pytest.raises(ModelError) as refused:
        choose(Marginals(workload="a*b,a*b*c"), public({each: Categories(range(250)) for each in "abc"}))
    assert "Leave out a*b*c" in refused.value.hint


def test_columns_with_more_values_than_ranges_are_fine_unless_public_knowledge_names_them():
    columns = {
        "pay": Grid(0, 5_000, 10, nulls="cell"),
        "day": Dates("2024-01-01", "2024-12-31"),
        "age": Bins(range(33)),
        "town": Categories(range(40)),
    }
    assert fine_values(TableDomain(columns)) == {0: 501, 1: 366}
    assert measurable(TableDomain(columns))
    known = TableDomain(columns, zeros=[{"pay": 0, "town": 1}])
    assert fine_values(known) == {1: 366}
    assert not measurable(known)
    made, _ = choose(Marginals(), public(columns))
    assert made.sizes == (33, 32, 32, 40)
    assert made.fits(TableDomain(columns).to_json())
    assert not made.fits(TableDomain({**columns, "pay": Grid(0, 5_010, 10)}).to_json())


def test_what_was_measured_of_a_fine_column_is_a_noisy_tree():
    columns = {"pay": Grid(0, 99, 1, nulls="cell"), "sex": Categories(["f", "m"])}
    made, _ = choose(Marginals(noise=GAUSSIAN), public(columns))
    codes = np.array([np.arange(1000) % 101, np.arange(1000) % 2], np.uint16)
    counts = count_marginals([codes], made.layout).counts
    table = made.likelihood(Numbers(counts))
    assert (table.sizes, table.mechanism.rows, len(table.counts)) == ((33, 2), 33 + 2 + 66, 33 + 2 + 66)
    measured, whole = table.trees[0].measured, np.bincount(codes[0])
    assert measured.depths == (3, 5, 7)
    assert (measured.total, measured.special) == (1000, (int(whole[100]),))
    for depth, noisy in zip(measured.depths, measured.noisy, strict=True):
        assert np.array_equal(noisy, measured.tree.sums(whole[:100], depth))
    assert np.array_equal(table.ranges(codes)[0], made.fine[0].number(5)[codes[0]])


def test_typed_weights_are_those_of_a_mapping():
    typed, mapped = (
        choose(Marginals(workload=each), public(COLUMNS))[0] for each in ("age*sex=4,age", {("age", "sex"): 4.0, ("age",): 1.0})
    )
    assert typed == mapped


def test_noise_larger_than_the_table_is_remarked_on():
    assert choose(Marginals(), public(COLUMNS, n=5))[1]
    assert not choose(Marginals(), public(COLUMNS, n=100_000))[1]
