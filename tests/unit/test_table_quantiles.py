"""Quantiles of whole tables, and synthetic tables and copies made from their measurements."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

import privurn
from privurn.cli import infer_tables
from privurn.cli.infer_answers import Asked
from privurn.domain import Bins, Categories, Grid, TableDomain
from privurn.errors import FormatError, ModelError
from privurn.inference.tables.asked import QuantileQuestion, questions
from privurn.inference.tables.drawn import quotient
from privurn.inference.tables.fit import FitSettings
from privurn.inference.tables.posterior import table_posterior
from privurn.inference.tables.quantiles import Curve
from privurn.inference.tables.synthetic import synthetic_table
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import every_set
from privurn.mechanisms.table_measurements import MeasuredTable

DOMAIN = TableDomain(
    {
        "pay": Bins([0, 10, 20, 30, 50], nulls="cell"),
        "sex": Categories(["f", "m"], outside="null"),
        "visits": Grid(0, 4, 1),
    }
)
QUICK = FitSettings(classes=12, pair_steps=120, triple_steps=60)


def people(n, seed):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    pay = np.where(rng.random(n) < 0.05, 4, rng.choice(4, n, p=[0.2, 0.3, 0.3, 0.2]))
    pay = np.where((sex == 1) & (pay < 3) & (rng.random(n) < 0.5), pay + 1, pay)
    return np.array([pay, sex, rng.binomial(4, 0.2 + 0.1 * np.minimum(pay, 3))], np.uint16)


def measured(codes, *, seed, scale=6.0, secret=False, order=3):
    sets, n = every_set(DOMAIN.sizes, order=order), codes.shape[1]
    made = NoisyMarginals(
        n=None if secret else n, sizes=DOMAIN.sizes, sets=sets, scales=(scale,) * len(sets), noise="discrete-gaussian"
    )
    counts = made.simulate(count_marginals([codes], made.layout), rng=np.random.default_rng(seed))
    return MeasuredTable(made, counts.astype(float), DOMAIN)


def figures(table, **options):
    return table_posterior(table, settings=QUICK, **options)


# ---- the inversion of a distribution function ----------------------------------------------------------------------------


def test_a_quantile_is_where_the_function_reaches_the_level():
    """On a line within bins, at a step on a grid; a function that falls by noise is taken at its highest so far."""
    low, high = np.array([0.0, 10.0, 20.0]), np.array([10.0, 20.0, 40.0])
    bins = Curve(0.5, low, high, np.array([0.2, 0.8, 1.0]), np.array([0.1, 0.1, 0.0]))
    assert bins.reached(np.zeros(1)) == pytest.approx([15.0])
    assert bins.reached(np.array([1.0, -1.0])) == pytest.approx([10 + 10 * 0.2 / 0.6, 10 + 10 * 0.4 / 0.6])
    assert bins.spread == pytest.approx(10 * 0.1 / 0.6)
    grid = replace(bins, highs=low)
    assert grid.reached(np.array([-4.0, 0.0, 4.0])).tolist() == [20.0, 10.0, 0.0]
    falling = Curve(0.5, low, low, np.array([0.6, 0.4, 1.0]), np.zeros(3))
    assert falling.reached(np.zeros(1)).tolist() == [0.0]
    assert grid.place == 1
    certain = Curve(0.3, np.array([5.0]), np.array([9.0]), np.array([1.0]), np.zeros(1))
    assert certain.reached(np.zeros(1)) == pytest.approx([6.2])


def test_draws_have_the_law_of_the_inverted_function():
    """P(quantile <= t) = P(F(t) >= level): a normal probability at every end of a bin."""
    edges = np.arange(11.0)
    shares = np.linspace(0.1, 1.0, 10)
    curve = Curve(0.5, edges[:-1], edges[1:], shares, np.append(np.full(9, 0.07), 0.0))
    drawn = curve.drawn(20_000, rng=np.random.default_rng(0))
    for t in (3, 4, 6, 7):
        assert (drawn <= t).mean() == pytest.approx(ndtr((shares[t - 1] - 0.5) / 0.07), abs=2e-4)


# ---- asked of a table ----------------------------------------------------------------------------------------------------


def test_quantiles_are_answered_near_the_truth_and_their_intervals_cover():
    codes = people(8_000, 1)
    table = measured(codes, seed=2)
    f, m = (codes[0][(codes[1] == sex) & (codes[0] < 4)] for sex in (0, 1))
    edges = np.array([0.0, 10, 20, 30, 50])

    def quantile(cells, level):
        shares = np.append(0.0, np.cumsum(np.bincount(cells, minlength=4)) / len(cells))
        return float(np.interp(level, shares, edges))

    truth = {
        "median(visits)": float(np.quantile(codes[2], 0.5, method="inverted_cdf")),
        "q0.8(pay)": quantile(codes[0][codes[0] < 4], 0.8),
        "mean(visits)": codes[2].mean(),
        "median(pay | sex=m) - median(pay | sex=f)": quantile(m, 0.5) - quantile(f, 0.5),
        "q0.25(pay|sex=f)": quantile(f, 0.25),
    }
    found = figures(table, ask=list(truth), of="sample")
    assert found.names == tuple(truth)  # in the order in which they were asked
    for each, one in zip(found.figures, found.summary(level=0.9999), strict=True):
        assert one.lower <= truth[each.name] <= one.upper, each
        assert each.direct is not None
        assert abs(each.estimate - each.direct) <= 6.0 * each.direct_deviation + 1e-9
        assert found.draws[each.name].shape == (1, 4_000)
    wide = figures(table, ask=list(truth)).summary()
    narrow = found.summary()
    assert all(a.upper - a.lower >= b.upper - b.lower for a, b in zip(wide, narrow, strict=True))
    assert narrow[3].upper - narrow[3].lower > narrow[4].upper - narrow[4].lower > 0.0


def test_intervals_of_quantiles_cover_about_as_often_as_they_say():
    """40 noisy versions of one table: 38 are expected of a 95% interval, 33 or more with probability above 1 - 1e-2; seeded."""
    codes = people(2_000, 3)
    cells = codes[0][codes[0] < 4]
    truth = float(np.interp(0.5, np.append(0.0, np.cumsum(np.bincount(cells, minlength=4)) / len(cells)), [0, 10, 20, 30, 50]))
    quick = replace(QUICK, pair_steps=60)
    hits = 0
    for seed in range(40):
        table = measured(codes, seed=100 + seed, scale=20.0, order=2)
        one = table_posterior(table, ask="median(pay)", of="sample", settings=quick).summary()[0]
        hits += one.lower <= truth <= one.upper
    assert 33 <= hits <= 40


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("median(sex)", "categories"),
        ("median(town)", "no column 'town'"),
        ("q1.5(pay)", "between 0 and 1"),
        ("median(pay) - mean(pay)", "quantile and something else"),
        ("sd(pay)", "cannot be asked"),
    ],
)
def test_quantiles_that_make_no_sense_are_refused_in_words(asked, words):
    with pytest.raises(FormatError, match=words):
        questions(asked, DOMAIN)


def test_a_column_of_one_value_has_a_quantile_for_certain():
    domain = TableDomain({**DOMAIN.columns, "one": Bins([6, 8])})
    [asked] = questions("median(one)", domain)
    assert isinstance(asked, QuantileQuestion)
    assert asked.steps == ()
    table = measured(people(500, 1), seed=2, order=1)
    mechanism = replace(table.mechanism, sizes=(*DOMAIN.sizes, 1))
    found = figures(MeasuredTable(mechanism, table.counts, domain), ask="median(one)").summary()[0]
    assert (found.mean, found.lower, found.upper, found.deviation) == (7.0, 7.0, 7.0, 0.0)


# ---- ratios --------------------------------------------------------------------------------------------------------------


def test_ratios_of_two_figures_lie_where_those_of_the_table_do():
    codes = people(4_000, 1)
    table = measured(codes, seed=2)
    visits = [codes[2][codes[1] == sex].mean() for sex in (0, 1)]
    truth = {
        "mean(visits | sex=m) / mean(visits | sex=f)": visits[1] / visits[0],
        "P(sex=m) / P(sex=f)": np.mean(codes[1] == 1) / np.mean(codes[1] == 0),
        "median(pay | sex=m) / mean(pay)": None,
    }
    found = figures(table, ask=[*truth, "mean(visits | sex=m)", "mean(visits | sex=f)"], of="sample")
    rows = {each.name: each for each in found.summary(level=0.9999)}
    for name, wanted in truth.items():
        assert wanted is None or rows[name].lower <= wanted <= rows[name].upper, rows[name]
        assert rows[name].unbiased is None
    first = next(iter(truth))
    # by the delta method; the two groups share no record, and their estimates next to nothing
    parts = [rows["mean(visits | sex=m)"], rows["mean(visits | sex=f)"]]
    relative = np.hypot(*(each.deviation / each.mean for each in parts))
    assert rows[first].mean == pytest.approx(parts[0].mean / parts[1].mean)
    assert rows[first].deviation == pytest.approx(relative * rows[first].mean, rel=0.15)
    drawn = [found.draws[each.name] for each in parts]
    assert np.array_equal(found.draws[first], drawn[0] / drawn[1])
    place = rows["median(pay | sex=m) / mean(pay)"]
    assert place.lowest < place.lower < place.upper < place.highest
    assert rows[first].lowest is None  # visits are whole


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ("mean(pay) / mean(pay) / mean(pay)", FormatError, "ratio of two"),
        ("mean(pay) / mean(pay) - mean(pay)", FormatError, "ratio of two"),
        ("mean(pay) / P(pay=missing, sex=f, visits=3)", ModelError, "may be 0"),
    ],
)
def test_ratios_that_say_nothing_are_refused_in_words(asked, error, words):
    with pytest.raises(error, match=words):
        figures(measured(people(400, 1), seed=2), ask=asked).summary()


# ---- synthetic tables ----------------------------------------------------------------------------------------------------


def test_copies_are_numbered_tables_of_the_confidential_size():
    table = measured(people(300, 1), seed=2)
    made, _ = synthetic_table(table, records=None, copies=3, seed=4, settings=QUICK)
    assert made.column_names == ["copy", *DOMAIN.names]
    assert np.bincount(made["copy"].to_numpy()).tolist() == [0, 300, 300, 300]
    again, _ = synthetic_table(table, records=None, copies=3, seed=4, settings=QUICK)
    assert again.equals(made)
    frames = [made.filter(made["copy"].to_numpy() == i).drop_columns("copy") for i in (1, 2)]
    assert not frames[0].equals(frames[1])
    secret = measured(people(300, 1), seed=2, secret=True)
    sizes = np.bincount(synthetic_table(secret, records=None, copies=4, seed=4, settings=QUICK)[0]["copy"].to_numpy())[1:]
    assert len(set(sizes.tolist())) > 1
    assert abs(sizes - 300).max() < 60
    with pytest.raises(ModelError, match="confidential table"):
        synthetic_table(table, records=50, copies=2, seed=1)
    with pytest.raises(ModelError, match="at most 100"):
        synthetic_table(table, records=None, copies=101, seed=1)


def test_combined_copies_cover_the_share_of_the_confidential_table():
    """About the table with (1 + 1/M) B: 48 shares of measured cells in 8 noisy versions of a table; seeded."""
    codes = people(2_000, 5)
    truth = [np.mean((codes[1] == sex) & (codes[2] == k)) for sex in (0, 1) for k in (0, 1, 2)]
    hits, spreads = 0, []
    quick = replace(QUICK, pair_steps=200)
    for seed in range(8):
        table = measured(codes, seed=seed, scale=20.0, order=2)
        made, _ = synthetic_table(table, records=None, copies=8, seed=seed, settings=quick)
        copy, sex, visits = (made[name].to_numpy(zero_copy_only=False) for name in ("copy", "sex", "visits"))
        own = [
            [np.mean((sex[copy == i] == label) & (visits[copy == i] == k)) for i in range(1, 9)]
            for label in ("f", "m")
            for k in (0, 1, 2)
        ]
        for shares, wanted in zip(own, truth, strict=True):
            low, high = privurn.combine(shares, about="table").interval(0.95)
            hits += low <= wanted <= high
            spreads.append(np.std(shares, ddof=1))
    assert hits >= 41
    noise = 20.0 / 2_000  # of a cell that only its own marginal tells of; single columns tell a little more
    assert 0.6 * noise < np.mean(spreads) < 1.15 * noise


def test_a_posterior_makes_records_of_any_number():
    table = measured(people(400, 1), seed=2)
    found = figures(table, ask="mean(visits)")
    assert found.synthetic(records=1_000, seed=1).num_rows == 1_000
    assert found.synthetic(seed=1).num_rows == 400
    assert found.synthetic(copies=2, seed=1).num_rows == 800


# ---- places within bins --------------------------------------------------------------------------------------------------


def test_figures_of_bins_say_what_they_assume_and_between_what_they_lie():
    codes = people(4_000, 1)
    asked = ["mean(pay)", "q0.5(pay)", "P(pay>15)", "mean(pay | sex=f) - mean(pay | sex=m)"]
    table = measured(codes, seed=2)
    rows = {each.name: each for each in privurn.infer(table, ask=[*asked, "P(pay>=10)", "mean(visits)"]).summary()}
    for name in asked:
        row = rows[name]
        assert row.lowest < row.lower < row.upper < row.highest, row
        assert row.label == f"{name}, evenly within bins"
    for name in ("P(pay>=10)", "mean(visits)"):
        assert (rows[name].lowest, rows[name].assumed) == (None, None)
    pay = codes[0][codes[0] < 4]
    lows, highs = np.array([0, 10, 20, 30])[pay].mean(), np.array([10, 20, 30, 50])[pay].mean()
    mean, share = rows["mean(pay)"], rows["P(pay>15)"]
    reach = (mean.upper - mean.lower) / 2  # about as much at the ends
    assert (mean.lowest + reach, mean.highest - reach) == (pytest.approx(lows, abs=1.0), pytest.approx(highs, abs=1.0))
    held = np.bincount(codes[0], minlength=5) / codes.shape[1]
    assert share.highest - share.lowest == pytest.approx(held[1] + share.upper - share.lower, abs=0.03)
    whole = privurn.infer(table, privurn.TableModel(within="whole"), ask="mean(pay)").summary()[0]
    assert whole.mean - mean.mean == pytest.approx(-0.5 * np.mean(pay < 3), abs=0.02)
    assert whole.label == "mean(pay), whole numbers, evenly within bins"


def test_a_condition_that_cuts_a_bin_in_two_leaves_the_ends_unknown():
    for text in ("mean(pay | pay>15)", "q0.5(pay | pay>15)", "P(visits=1 | pay>15)"):
        [question] = questions(text, DOMAIN)
        assert not question.placed
    for text in ("mean(pay | pay>=10)", "q0.5(pay | sex=f)", "P(pay>15 | visits=1)"):
        [question] = questions(text, DOMAIN)
        assert question.placed


def test_the_command_takes_whole_numbers_but_not_for_regressions():
    typed = {"model": None, "within": "whole", "plot": None, "synthetic": None}
    asked = Asked(typed=typed, draws=None, warm_up=None, records=None)
    assert infer_tables.model_of(None, asked) == privurn.TableModel(within="whole")
    with pytest.raises(FormatError, match="middles of bins"):
        infer_tables.model_of(None, replace(asked, typed={**typed, "model": "linear: pay ~ visits"}))
    with pytest.raises(FormatError, match="where in its bin"):
        infer_tables.model_of(None, replace(asked, typed={**typed, "within": "edges"}))


@pytest.mark.parametrize(("error", "refused"), [(0.24, False), (0.26, True)])
def test_whether_a_ratio_is_answered_follows_from_estimate_and_error_not_from_draws(error, refused):
    drawn = {"a": np.array([-0.1, 2.1]), "b": np.array([-0.9, 1.1])}
    estimated = {"b": SimpleNamespace(estimate=-1.0, deviation=error)}
    if refused:
        with pytest.raises(ModelError, match="may be 0"):
            quotient(["a", "b"], drawn, estimated)
    else:
        assert quotient(["a", "b"], drawn, estimated).shape == (2,)
