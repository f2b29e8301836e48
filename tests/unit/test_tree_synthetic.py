"""Records from a posterior: balanced rounding along the tree, random order; and what several copies say together."""

from datetime import date

import numpy as np
import pytest
from scipy import stats

from privurn.cell_tree import CellTree
from privurn.domain import Categories, Grid, JointDomain
from privurn.errors import ModelError
from privurn.inference.counts.synthetic import synthetic_table as shares_table
from privurn.inference.trees.combine import combine, combine_quantile
from privurn.inference.trees.synthetic import balanced_counts, records_in_random_order


def expectations(shape, records, seed):
    rng = np.random.default_rng(seed)
    cells = int(np.prod(shape))
    raw = rng.gamma(0.5, size=cells) * (rng.random(cells) < 0.7) + 1e-6
    return raw * (records / raw.sum())


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (64,), (1000,), (5, 6), (16, 16)])
@pytest.mark.parametrize("records", [1, 10, 1000])
def test_every_node_is_within_one_of_its_expectation(shape, records):
    tree, rng = CellTree(shape), np.random.default_rng(2)
    expected = expectations(shape, records, 1)
    for _ in range(20):
        counts, special = balanced_counts(tree, expected, rng=rng)
        assert counts.sum() == records
        assert len(special) == 0
        for depth in range(tree.depth + 1):
            wanted = np.add.reduceat(expected[tree.order], tree.starts[depth])
            got = tree.sums(counts, depth)
            assert np.all(np.abs(got - wanted) < 1.0 + 1e-9)
        assert np.all(np.abs(np.cumsum(counts[tree.order]) - np.cumsum(expected[tree.order])) < 1.0 + 1e-9)


@pytest.mark.parametrize("shape", [(13,), (3, 4)])
def test_cells_that_nothing_is_expected_in_get_nothing_and_whole_ranges_keep_their_sums(shape):
    tree, rng = CellTree(shape), np.random.default_rng(8)
    expected = np.zeros(tree.cells)
    expected[tree.order[[1, 2, 5, 6, 7, 11]]] = [0.1, 0.9, 1 / 3, 1 / 3, 1 / 3, 1.0]  # sums of floats are no whole numbers
    for _ in range(200):
        counts = balanced_counts(tree, expected, rng=rng)[0]
        placed = counts[tree.order]
        assert np.all(counts[expected == 0.0] == 0)
        assert (placed[1:3].sum(), placed[5:8].sum(), placed[11]) == (1, 1, 1)


def test_counts_of_trillions_of_records_keep_their_sum():
    expected = np.random.default_rng(9).gamma(1.0, size=1_000)
    expected *= 2_000_000_000_001 / expected.sum()
    counts, special = balanced_counts(CellTree((999,)), expected[:999], special=expected[999:], rng=np.random.default_rng(1))
    assert counts.sum() + special.sum() == 2_000_000_000_001
    assert np.all(np.abs(counts - expected[:999]) < 1.01)


def test_counts_of_trillions_of_records_are_unbiased():
    expected, rng = np.array([1e12 - 2.7, 0.3, 0.3, 0.3, 1.8]), np.random.default_rng(2)
    drawn = np.array([balanced_counts(CellTree((5,)), expected, rng=rng)[0] for _ in range(2_000)])
    assert np.all(np.abs(drawn[:, 1:].mean(axis=0) - expected[1:]) < 0.02 + 6 * 0.5 / np.sqrt(2_000))
    assert np.all(drawn.sum(axis=1) == 10**12)


def too_far(draws, expected, alpha=1e-9):
    """Whether the mean of any column is further from its expectation than chance allows; draws are floors or ceilings."""
    fraction = expected - np.floor(expected)
    ups = np.sum(draws - np.floor(expected), axis=0).astype(int)
    size = len(draws)
    tail = [min(stats.binom.cdf(u, size, f), stats.binom.sf(u - 1, size, f)) for u, f in zip(ups, fraction, strict=True)]
    return min(tail) < alpha / (2 * len(expected))


def test_rounding_is_unbiased_in_every_cell_and_deterministic_rounding_is_not():
    tree, rng = CellTree((13,)), np.random.default_rng(3)
    expected, special = expectations((13,), 9.6, 4), np.array([0.3, 1.1])
    drawn = [balanced_counts(tree, expected, special=special, rng=rng) for _ in range(3_000)]
    both = np.array([np.append(cells, beside) for cells, beside in drawn])
    wanted = np.append(expected, special)
    assert np.all(both.sum(axis=1) == 11)
    assert not too_far(both, wanted)
    assert too_far(np.tile(np.floor(wanted + 0.5), (3_000, 1)), wanted)


def test_a_flat_law_does_not_beat_against_the_grid():
    counts, _ = balanced_counts(CellTree((100, 100)), np.full(10_000, 0.01), rng=np.random.default_rng(5))
    columns = counts.reshape(100, 100)
    assert columns.any(axis=0).sum() > 40
    assert columns.any(axis=1).sum() > 40
    halves = balanced_counts(CellTree((4096,)), np.full(4096, 0.5), rng=np.random.default_rng(5))[0]
    assert abs(halves[::2].sum() - 1024) < 6 * np.sqrt(2048 / 4)  # systematic rounding fills every second cell


def test_records_come_in_random_order():
    counts = np.array([500, 0, 300, 200])
    records = records_in_random_order(counts, rng=np.random.default_rng(6))
    assert np.array_equal(np.bincount(records, minlength=4), counts)
    assert 0.3 < np.mean(records[:500] == 0) < 0.7
    assert np.array_equal(records, records_in_random_order(counts, rng=np.random.default_rng(6)))


def test_what_cannot_be_rounded_is_refused():
    tree, rng = CellTree((3,)), np.random.default_rng(0)
    for expected in (np.array([0.5, 0.2, 0.1]), np.array([-1.0, 1.0, 1.0]), np.ones(2), np.array([np.nan, 1.0, 1.0])):
        with pytest.raises(ModelError):
            balanced_counts(tree, expected, rng=rng)


RUNS, ALPHA = 1_500, 1e-9


def toy(copies, noise, rng, runs=RUNS):
    """Means of tables seen with noise; copies from the posterior of the table's mean. Sampling variance 1."""
    table = rng.normal(0.0, 1.0, runs)
    seen = table + rng.normal(0.0, np.sqrt(noise), runs)
    return table, seen[:, None] + rng.normal(0.0, np.sqrt(noise), (runs, copies))


def band(p, runs=RUNS):
    return stats.binom.ppf([ALPHA / 2, 1 - ALPHA / 2], runs, p) / runs


@pytest.mark.parametrize("copies", [5, 20])
@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_intervals_of_combined_copies_cover(copies, noise):
    table, estimates = toy(copies, noise, np.random.default_rng(7))
    inside = {"population": 0, "table": 0}
    variance = 0.0
    for true, q in zip(table, estimates, strict=True):
        for about, target in (("population", 0.0), ("table", true)):
            found = combine(q, np.ones(copies), about=about)
            low, high = found.interval()
            inside[about] += low <= target <= high
            variance += found.variance * (about == "population") / RUNS
    assert band(0.942)[0] <= inside["population"] / RUNS <= band(0.953)[1]
    assert band(0.947)[0] <= inside["table"] / RUNS <= band(0.950)[1]
    # about the population the mean of the copies errs by sampling, noise and the copies' own spread
    assert variance == pytest.approx(1.0 + noise * (1.0 + 1.0 / copies), rel=0.1)


@pytest.mark.parametrize("about", ["population", "table"])
def test_quantiles_are_combined_by_the_shares_up_to_each_value(about):
    rng = np.random.default_rng(4)
    tables = [rng.integers(0, 30, n) for n in (50, 60, 50, 55)]
    for level in (0.1, 0.5, 0.9):
        found = combine_quantile(tables, level, about=about)
        shares = {at: [np.mean(each <= at) for each in tables] for at in range(30)}
        usual = {at: [p * (1 - p) / len(each) for p, each in zip(shares[at], tables, strict=True)] for at in shares}
        own = {at: combine(shares[at], usual[at], about=about) for at in shares}
        low = min(at for at in own if own[at].interval(0.8)[1] >= level)
        high = min(at for at in own if own[at].interval(0.8)[0] >= level)
        assert found.interval(0.8) == (low, high)
        assert found.estimate == min(at for at in own if own[at].estimate >= level)
        assert found.interval(0.5)[0] >= low


def test_combined_quantiles_cover_where_a_few_values_hold_nearly_all():
    """Just over half of all records lie at or below 3: the median jumps between 3 and 8, and is no normal number."""
    rng, runs, n = np.random.default_rng(3), 500, 500
    law, values, inside, as_means = [0.2, 0.301, 0.499], np.array([0, 3, 8]), 0, 0
    for _ in range(runs):
        counts = rng.multinomial(n, law)
        noise = np.rint(rng.normal(0.0, 8.0, 3))  # copies spread as the posterior of counts under as much noise
        tables = np.maximum(np.rint(counts + noise + rng.normal(0.0, 8.0, (10, 3))), 0).astype(int)
        columns = [np.repeat(values, each) for each in tables]
        low, high = combine_quantile(columns, 0.5).interval()
        inside += low <= 3 <= high
        low, high = combine([np.median(each) for each in columns], np.zeros(10)).interval()
        as_means += low <= 3 <= high
    assert as_means / runs < band(0.95, runs)[0] <= inside / runs


def test_the_table_rule_does_not_serve_the_population():
    _, estimates = toy(20, 0.1, np.random.default_rng(8))
    inside = np.mean([np.prod(combine(q, about="table").interval()) <= 0.0 for q in estimates])
    assert inside < band(0.942)[0]


def test_resampled_copies_give_back_their_own_sampling():
    rng, copies, noise, m, n = np.random.default_rng(9), 20, 0.5, 40, 50
    table, estimates = toy(copies, noise, rng)
    resampled = estimates + rng.normal(0.0, np.sqrt(n / m), estimates.shape)
    usual = np.full(copies, n / m)
    found = [combine(q, usual, resampled=(m, n)) for q in resampled]
    spread = np.var(resampled.mean(axis=1))  # sampling 1, noise, and the copies' own
    assert np.mean([each.variance for each in found]) == pytest.approx(spread, rel=0.05)
    about_table = np.var(resampled.mean(axis=1) - table)
    taken_back = [combine(q, usual, about="table", resampled=(m, n)).variance for q in resampled]
    assert np.mean(taken_back) == pytest.approx(about_table, rel=0.1)
    assert np.mean([combine(q, usual).variance for q in resampled]) > 1.8 * spread  # the rule for whole tables is too wide


@pytest.mark.parametrize("copies", [2, 5, 20])
@pytest.mark.parametrize("about", ["population", "table"])
def test_copies_that_spread_by_resampling_alone_keep_an_interval_that_covers(copies, about):
    """Their own sampling, with variance 1, hides the posterior's 0.05: half of all spreads are below what is taken back."""
    rng, m, n, runs = np.random.default_rng(10), 100, 10_000, 400
    target = rng.normal(0.0, np.sqrt(0.05 + (m / n if about == "population" else 0.0)), runs)
    estimates = rng.normal(0.0, np.sqrt(1.05), (runs, copies))
    found = [combine(q, np.ones(copies), about=about, resampled=(m, n)).interval() for q in estimates]
    assert min(high - low for low, high in found) > 0.0
    assert np.mean([low <= each <= high for (low, high), each in zip(found, target, strict=True)]) > 0.9


def test_records_from_draws_have_medians_where_cells_are_in_order_and_means_elsewhere():
    """A cell of missing values is in no order with the others: it keeps its mean, 1 of 11 records."""
    counts = np.array([[8.0, 2.0, 1.0], [9.0, 1.0, 0.0], [1.0, 9.0, 2.0]])
    domains = {
        (8, 2): Grid(0, 1, 1),
        (6, 4): Categories(["a", "b"]),
        (8, 2, 1): Grid(0, 1, 1, nulls="cell"),
    }
    for wanted, column in domains.items():
        drawn, n = counts[:, : len(wanted)], sum(wanted)
        table = shares_table(
            drawn / n, np.full(3, float(n)), domain=JointDomain({"x": column}), records=n, copies=1, seed=1
        ).to_pandas()
        assert tuple(table["x"].value_counts(dropna=False, sort=False).sort_index(na_position="last")) == wanted


def test_records_are_made_from_draws_of_which_some_have_no_record():
    """Where the number of records is secret and small; shares of an empty table are none."""
    shares, sizes = np.array([[0.25, 0.75], [np.nan, np.nan], [1.0, 0.0]]), np.array([4.0, 0.0, 2.0])
    options = {"domain": JointDomain({"x": Grid(0, 1, 1)}), "seed": 1}
    assert shares_table(shares, sizes, records=6, copies=1, **options)["x"].to_pylist().count(0) == 3
    assert shares_table(shares, sizes, records=None, copies=3, **options)["copy"].to_pylist() == [1, 1, 1, 1, 3, 3]
    with pytest.raises(ModelError, match="no record at all"):
        shares_table(shares[1:2], sizes[1:2], records=6, copies=1, **options)


@pytest.mark.parametrize(
    ("copies", "options", "words"),
    [
        ([[1.0, 2.0]], {}, "at least two copies"),
        ([], {}, "at least two copies"),
        ([[1.0], []], {}, "one or more"),
        ([[1.0], [np.nan]], {}, "one or more"),
        ([[1.0], [2.0]], {"level": 1.0}, "between 0 and 1"),
        ([[1.0], [2.0]], {"about": "sample"}, "not known"),
        ([["a"], ["b"]], {}, "one of numbers"),
        (np.array([["2020-01-01"], ["2020-01-02"]], "datetime64[D]"), {}, "one of numbers"),
        ([[date(2020, 1, 1)], [date(2020, 1, 2)]], {}, "one of numbers"),
    ],
)
def test_what_has_no_combined_quantile_is_refused(copies, options, words):
    with pytest.raises(ModelError, match=words):
        combine_quantile(copies, **options)


def test_what_cannot_be_combined_is_refused():
    for words in (
        {"estimates": [1.0], "variances": [1.0]},
        {"estimates": [1.0, 2.0]},
        {"estimates": [1.0, 2.0], "variances": [1.0]},
        {"estimates": [1.0, 2.0], "variances": [1.0, -1.0]},
        {"estimates": [1.0, 2.0], "about": "sample"},
        {"estimates": [1.0, 2.0], "variances": [1.0, 1.0], "resampled": (0, 5)},
        {"estimates": [1.0, 2.0], "variances": [1.0, 1.0], "resampled": (5,)},
        {"estimates": [1.0, 2.0], "variances": [1.0, 1.0], "resampled": (5.5, np.nan)},
        {"estimates": [1.0, np.nan], "variances": [1.0, 1.0]},
    ):
        with pytest.raises(ModelError):
            combine(**words)
