"""How near one whole table is to another, simulated releases beside their floors, and one thread while a table is fitted."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from privurn.cli.main import app
from privurn.domain import Categories, Grid, TableDomain
from privurn.errors import DomainError, PrivurnError
from privurn.inference.tables.fit import FitSettings
from privurn.inference.tables.threads import _switches, one_thread
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.table_comparison import RESAMPLED, SHUFFLED, compare_tables
from privurn.reports.comparison.whole_tables import (
    classified,
    marginal_distances,
    propensity_ratio,
    resampled,
    shuffled,
    worst_pairs,
)

SIZES = (3, 2, 4)
DOMAIN = TableDomain({"a": Grid(0, 2, 1), "b": Categories(["n", "y"], outside="null"), "c": Grid(0, 3, 1)})


def table(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = (rng.random(n) < 0.2 + 0.3 * a).astype(int)
    return np.array([a, b, np.minimum(a + rng.integers(0, 2, n), 3)], np.uint16)


def test_distances_of_marginals_are_half_the_summed_differences():
    data = np.array([[0, 0, 1, 2], [0, 1, 0, 1], [0, 0, 0, 3]], np.uint16)
    made = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], np.uint16)
    one, two, three = marginal_distances(data, made, SIZES)
    assert (one.order, two.order, three.order) == (1, 2, 3)
    assert one.mean == pytest.approx((0.25 + 0.0 + 0.25) / 3)
    assert (two.worst, three.mean) == (0.25, 0.25)
    assert one.worst_set in ((0,), (2,))
    assert all(each.mean == each.worst == 0.0 for each in marginal_distances(data, data, SIZES))
    assert worst_pairs(data, made, SIZES, most=2) == [((0, 1), 0.25), ((0, 2), 0.25)]


def test_floors_keep_what_they_say():
    data, rng = table(4_000, 1), np.random.default_rng(2)
    mixed, again = shuffled(data, rng=rng), resampled(data, rng=rng)
    assert marginal_distances(data, mixed, SIZES)[0].mean == 0.0
    assert marginal_distances(data, mixed, SIZES)[1].mean > 0.1
    assert 0.0 < marginal_distances(data, again, SIZES)[1].mean < 0.04


def test_the_propensity_ratio_is_about_one_where_tables_cannot_be_told_apart():
    data, rng = table(3_000, 1), np.random.default_rng(0)
    same = np.mean([propensity_ratio(table(3_000, seed), data, SIZES, rng=rng) for seed in range(2, 22)])
    assert 0.6 < same < 1.6  # on average 1: a chi-squared, divided by its degrees of freedom, of twenty tables; seeded
    assert propensity_ratio(data, shuffled(data, rng=rng), SIZES, rng=rng) > 5.0  # single columns are the same
    other = data.copy()
    other[2] = np.minimum(other[2] + 1, 3)
    assert propensity_ratio(data, other, SIZES, rng=rng) > 20.0


def test_a_classifier_learns_the_same_from_the_same_table():
    data, held_out, rng = table(2_000, 1), table(1_000, 2), np.random.default_rng(0)
    same = classified(data, held_out, data, SIZES, response=1, rng=rng)
    assert same.coefficients_off == pytest.approx(0.0, abs=1e-6)
    assert 0.6 < same.accuracy < 0.8  # 0.7 at best: b is 1 with probability 0.2, 0.5, 0.8
    lost = classified(data, held_out, shuffled(data, rng=rng), SIZES, response=1, rng=rng)
    assert lost.accuracy < same.accuracy
    assert lost.coefficients_off > 1.0


def frame(n, seed):
    a, b, c = table(n, seed)
    return pd.DataFrame({"a": a, "b": np.array(["n", "y"])[b], "c": c})


def test_a_release_lies_between_its_floors():
    quick = FitSettings(classes=12, pair_steps=120, triple_steps=60)
    found = compare_tables(
        frame(3_000, 3), domain=DOMAIN, guarantee=Guarantee(epsilon=4.0, delta=1e-6), response="b", runs=2, settings=quick
    )
    name = next(iter(found.medians))
    two = {each: figures["2"] for each, figures in found.medians.items()}
    assert two[name] < 0.5 * two[SHUFFLED]
    assert two[RESAMPLED] < two[SHUFFLED]
    assert found.medians[name]["accuracy"] > 0.6
    assert found.to_confidential()["confidential"] is True
    with pytest.raises(DomainError, match="'x'"):
        compare_tables(frame(100, 1), domain=DOMAIN, guarantee=Guarantee(epsilon=1.0, delta=1e-6), response="x")


def test_the_command_compares_whole_tables(tmp_path):
    file = tmp_path / "people.csv"
    frame(500, 4).to_csv(file, index=False)
    words = ["compare", file, "--grid", "a=0:2:1", "--categories", "b=n,y", "--grid", "c=0:3:1", "--epsilon", "2"]
    words += ["--delta", "1e-6", "--mechanism", "noisy-marginals"]
    done = CliRunner().invoke(app, [str(word) for word in [*words, "--runs", "1", "--json"]])
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    assert (found["n"], found["response"], len(found["tables"])) == (500, "c", 3)
    assert {"1", "2", "3", "propensity", "accuracy", "coefficients"} <= set(found["tables"][SHUFFLED])
    shown = CliRunner().invoke(app, [str(word) for word in [*words, "--runs", "1"]])
    assert "three columns" in shown.output
    refused = CliRunner().invoke(app, [str(word) for word in [*words, "--plot", "p"]])
    assert isinstance(refused.exception, PrivurnError)


def test_matrix_products_use_one_thread_within_and_as_many_as_before_after():
    if "openblas" not in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]:
        pytest.skip("NumPy was built with another BLAS")
    switches = _switches()
    assert switches
    own = [int(ask()) for _, ask in switches]
    try:
        for change, _ in switches:
            change(2)
        with one_thread():
            assert [int(ask()) for _, ask in switches] == [1] * len(switches)
        assert [int(ask()) for _, ask in switches] == [2] * len(switches)
    finally:
        for (change, _), threads in zip(switches, own, strict=True):
            change(threads)
