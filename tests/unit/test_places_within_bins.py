"""Figures of binned columns: where in their bins the records lie is assumed, said, and bounded, through the public call."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import privurn
from privurn.domain import Bins
from privurn.errors import FormatError
from privurn.inference.counts.functionals import Condition
from privurn.inference.counts.places import places_of, share_of

EDGES = list(range(17, 92, 2))
OPERATORS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
RUN = privurn.Run(draws=500, seed=1)


def ages(n=20_000):
    """Whole numbers, not even within bins."""
    return np.clip(np.random.default_rng(3).gamma(6.0, 6.5, n), 17, 90).astype(np.int64)


@pytest.fixture(scope="module")
def made():
    return privurn.release(
        pa.table({"age": ages()}), privurn.NoisyCounts(publish="counts"), domain={"age": Bins(EDGES)}, epsilon=50, ledger=False
    )


def row(made, ask, **model):
    return privurn.infer(made, privurn.CountModel(**model), ask=ask, run=RUN).summary()[0]


def test_means_and_variances_over_whole_numbers_are_those_of_a_list():
    places = places_of(Bins([20, 30, "37.5", 40]), within="whole")
    listed = [range(20, 30), range(30, 38), range(38, 41)]
    assert places.mean.tolist() == [np.mean(each) for each in listed]
    assert np.allclose(places.variance, [np.var(each) for each in listed])


@pytest.mark.parametrize("operators", [(">",), (">=",), ("<",), ("<=",), (">", "<="), (">=", "<")])
def test_shares_and_their_ends_are_those_of_a_list(operators):
    bins, listed = Bins([20, 30, 40]), [np.arange(20, 30), np.arange(30, 41)]
    for values in itertools.product([19.5, 20.0, 24.0, 30.0, 39.5, 40.0, 41.0], repeat=len(operators)):
        conditions = [Condition(None, sign, value) for sign, value in zip(operators, values, strict=True)]
        hold = [np.all([OPERATORS[each.operator](own, each.value) for each in conditions], axis=0) for own in listed]
        assert share_of(bins, conditions, within="whole").tolist() == [each.mean() for each in hold]
        for end, said in (("least", np.all), ("most", np.any)):
            assert share_of(bins, conditions, within="whole", end=end).tolist() == [float(said(each)) for each in hold]
            between = [np.linspace(low, high, 4001)[:-1] for low, high in ((20, 30), (30, 40))]  # the bins' upper ends are open
            fine = [np.all([OPERATORS[each.operator](own, each.value) for each in conditions], axis=0) for own in between]
            found = share_of(bins, conditions, within="uniform", end=end)
            assert found.tolist() == [float(said(each)) for each in fine], (conditions, end)


def test_the_mean_of_whole_numbers_is_half_a_year_less_and_the_row_says_so(made):
    even, whole = (row(made, "mean", within=within) for within in ("uniform", "whole"))
    inner = np.histogram(ages(), EDGES)[0][:-1].sum() / 20_000
    assert whole.mean - even.mean == pytest.approx(-0.5 * inner, abs=0.01)  # the last bin is closed
    assert (even.label, whole.label) == ("mean, evenly within bins", "mean, whole numbers, evenly within bins")


@pytest.mark.parametrize("ask", ["mean", "q0.5", "P(age>39)", "cdf(25)", "P(25<=age<50)"])
@pytest.mark.parametrize("within", ["uniform", "whole", "midpoint"])
def test_the_truth_lies_between_the_ends_wherever_in_their_bins_records_are(made, ask, within):
    x = ages()
    truth = {
        "mean": x.mean(),
        "q0.5": np.median(x),
        "P(age>39)": (x > 39).mean(),
        "cdf(25)": (x <= 25).mean(),
        "P(25<=age<50)": ((x >= 25) & (x < 50)).mean(),
    }[ask]
    found = row(made, ask, within=within)
    assert found.lowest <= truth <= found.highest
    assert found.lowest <= found.lower
    assert found.upper <= found.highest


@pytest.mark.parametrize("ask", ["P(age>=31)", "P(31<=age<45)", "sd"])
def test_what_no_bin_is_cut_by_has_no_ends(made, ask):
    found = row(made, ask)
    assert (found.lowest, found.highest, found.assumed, found.label) == (None, None, None, ask)


def test_grids_have_points_and_no_ends():
    grid = privurn.Grid(17, 91, 1)
    made = privurn.release(ages(500), privurn.NoisyCounts(publish="counts"), domain=grid, epsilon=5, ledger=False)
    assert row(made, "mean").lowest is None


def test_draws_hold_what_was_asked_and_nothing_else(made, tmp_path):
    found = privurn.infer(made, ask=["mean", "P(age>40)"], run=RUN)
    assert found.draws.names == found.sample.draws.names == ("mean", "P(age>40)")
    assert found.sample.summary()[0].highest <= found.summary()[0].highest + 1.0


def test_bins_without_a_whole_number_are_refused(made):
    with pytest.raises(FormatError, match="whole number"):
        places_of(Bins([0, "0.2", "0.7", 2]), within="whole")


def test_the_command_prints_the_ends_and_what_is_assumed(made, tmp_path):
    from privurn.cli.main import app

    made.save(tmp_path / "out")
    asked = ["infer", str(tmp_path / "out"), "--ask", "mean", "--draws", "200", "--seed", "1", "--within", "whole"]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "250"}).output
    assert "mean, whole numbers, evenly within bins" in shown
    assert "wherever in their bins" in shown
