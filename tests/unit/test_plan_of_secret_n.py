"""Plans under add-remove neighbours: the number of records asked for is the public guess of a secret n."""

import json
from itertools import pairwise

import numpy as np
import pytest

import privurn
from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.domain import Categories, Grid, JointDomain, TableDomain
from privurn.errors import ModelError
from privurn.inference.trees.splits import Splits
from privurn.mechanisms.forecast import Expected, OrderedCells, expected_errors
from privurn.mechanisms.recipe import Option
from privurn.privacy.profile import Guarantee
from privurn.releases.forecast import polya_shares
from privurn.releases.pictures import plan_picture
from privurn.releases.plan import options, remarks
from privurn.releases.synthetic import simulated_records

WITHIN = 0.25


def secret(epsilon: float = 1.0, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon=epsilon, delta=delta, neighbouring="add-remove")


def planned(records: int, cells: int, guarantee: Guarantee, *, ordered: bool = True) -> list[Option]:
    domain = JointDomain({"x": Grid(0, cells - 1, 1)}) if ordered else None
    return options(records=records, cells=cells, guarantee=guarantee, domain=domain)


# ---- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_simulated_tables")
def test_every_row_is_what_a_release_of_so_many_records_makes():
    rows = [each for each in planned(300, 20, secret(delta=1e-6)) if each.asked is not None]
    assert [each.mechanism for each in rows] == ["noisy-tree", "dirichlet-multinomial", *["perturbed-histogram"] * 2]
    for n in (40, 4000):  # which is secret
        for each in rows:
            out = privurn.release(
                np.arange(n) % 20, each.asked, domain=Grid(0, 19, 1), epsilon=1, delta=1e-6, neighbouring="add-remove"
            )
            assert out.certificate["mechanism"] == {"name": each.made.name, "parameters": each.made.parameters()}
            assert len(out.data) == each.records == 300


@pytest.mark.usefixtures("few_simulated_tables")
def test_a_default_that_cannot_be_had_spoils_no_plan():
    """What was asked for is refused; a default discount that so many records rule out is a row."""
    how = {"n": 10**12, "cells": 100, "guarantee": Guarantee(epsilon=1.0, delta=1e-6), "strength": 1.0}
    row = next(each for each in options(**how, discount=0.5) if each.mechanism == "pitman-yor")
    assert row.remark.startswith("cannot be had: with a discount at most 1,000,000 records")
    with pytest.raises(ModelError, match="with a discount at most 1,000,000 records"):
        options(**how, discount=0.25)


@pytest.mark.parametrize("neighbouring", ["add-remove", "replace-one"])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("size", "delta"), [(2000, 1e-6), (30, 0.0)])
def test_every_row_has_its_figures_or_says_why_not(neighbouring, ordered, size, delta):
    guarantee = Guarantee(epsilon=1.0, delta=delta, neighbouring=neighbouring)
    domain = JointDomain({"x": Grid(0, 49, 1) if ordered else Categories([str(i) for i in range(50)])})
    known = {"n": size} if neighbouring == "replace-one" else {"records": size}
    found = options(**known, cells=50, guarantee=guarantee, domain=domain)
    assert len(found) >= 6
    for each in found:
        if not each.records:
            assert each.expected is None
            assert "cannot be had" in each.remark or "delta is below" in each.remark
        elif each.expected is None:
            assert "no errors: " in each.remark
        else:
            assert (each.expected.mean_error is None) == ("no mean: " in each.remark) == (not ordered)
            assert (each.expected.share_error is None) == ("no 1% share: " in each.remark)
            assert each.expected.distance > 0.0
    assert found[0].expected is not None


def test_what_needs_a_public_number_says_so():
    found = {each.mechanism: each for each in planned(400, 2, secret(delta=1e-6))}
    for name in ("smoothed-histogram", "dirichlet-process", "pitman-yor", "exponential"):
        assert found[name].records == 0
        assert "public number of confidential records" in found[name].remark
    assert remarks(records=400, cells=2, guarantee=secret()) == ()


@pytest.mark.parametrize("sizes", [{"n": 10**8}, {"records": 10**8}])
def test_what_cannot_be_calibrated_says_so(sizes):
    """The others are shown."""
    relation = "replace-one" if "n" in sizes else "add-remove"
    found = options(**sizes, cells=5, guarantee=Guarantee(epsilon=1e-8, delta=0.0, neighbouring=relation))
    rows = {each.mechanism: each for each in found}
    assert rows["dirichlet-multinomial"].remark == "cannot be had: alpha must lie between 1e-12 and 1e+15"
    assert rows["perturbed-histogram"].expected is not None
    many = options(**sizes, cells=6 * 10**6, guarantee=Guarantee(epsilon=1.0, delta=0.0, neighbouring=relation))
    [row] = [each for each in many if each.mechanism == "perturbed-histogram"]
    assert row.remark.startswith("cannot be had: a perturbed histogram adds noise to every cell")


@pytest.mark.parametrize("neighbouring", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_effective_sample_falls_with_epsilon(monkeypatch, neighbouring, delta):
    """Of rows whose number of records does not follow epsilon; others have none."""
    monkeypatch.setattr("privurn.releases.forecast.Forecasts.told", lambda _, row: row)
    worth: dict[tuple[str, object], list[float]] = {}
    epsilons = np.geomspace(8.0, 0.02, 12)
    for epsilon in epsilons:
        guarantee = Guarantee(epsilon=float(epsilon), delta=delta, neighbouring=neighbouring)
        known = {"n": 5000} if neighbouring == "replace-one" else {"records": 5000}
        for each in options(**known, cells=40, guarantee=guarantee):
            if each.effective_sample_size is not None and each.records:
                worth.setdefault((each.mechanism, each.records), []).append(each.effective_sample_size)
    assert {records for _, records in worth} == ({5000, "unlimited", 10**6} if delta else {5000})
    for values in worth.values():
        assert len(values) == len(epsilons)
        assert all(a > b > 0.0 for a, b in pairwise(values))


def test_columns_side_by_side_are_planned_for_a_guess():
    table = TableDomain({"age": Grid(0, 30, 1), "pay": Grid(0, 300, 1), "sex": Categories(["f", "m"])})
    about = {"records": 20_000, "cells": table.size, "guarantee": secret(delta=1e-6), "domain": table}
    [row] = options(**about)
    assert (row.mechanism, row.records) == ("noisy-marginals", 20_000)
    first, second = remarks(**about)
    assert "total variation" in first
    assert "Too fine" in second


# ---- what is asked --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "neighbouring", "words", "hint"),
    [
        ({"n": 500}, "add-remove", "n is secret", "--records 500"),
        ({}, "add-remove", "a public guess", "--records 50000"),
        ({"records": 0}, "add-remove", "a public guess", "--records 50000"),
        ({"n": 500, "records": 40}, "add-remove", "n is secret", "--records 40"),
        ({"records": 500}, "replace-one", "here it is public", "--neighbouring add-remove"),
        ({}, "replace-one", "a plan needs the number", "--n 50000"),
    ],
)
def test_the_number_of_records_is_said_once(privurn_command, sizes, neighbouring, words, hint):
    with pytest.raises(ModelError, match=words):
        options(**sizes, cells=5, guarantee=Guarantee(epsilon=1.0, delta=0.0, neighbouring=neighbouring))
    typed = [word for name, value in sizes.items() for word in (f"--{name}", value)]
    done = privurn_command("plan", *typed, "--cells", 5, "--epsilon", 1, "--neighbouring", neighbouring)
    assert done.returncode == 2
    assert words in done.stderr
    assert hint in done.stderr


def test_open_labels_need_a_public_number(privurn_command):
    done = privurn_command("plan", "--records", 500, "--open-labels", "--epsilon", 1, "--neighbouring", "add-remove")
    assert done.returncode == 2
    assert "public number of records" in done.stderr


@pytest.mark.usefixtures("few_simulated_tables")
def test_the_command_shows_a_plan_of_a_secret_number(privurn_command, tmp_path):
    words = ["plan", "--neighbouring", "add-remove", "--records", "2e3", "--grid", "0:30:1", "--epsilon", 1, "--delta", 1e-6]
    shown = json.loads(privurn_command(*words, "--json", "--plot", tmp_path / "plan.png").stdout)
    assert (shown["n"], shown["records"], shown["neighbouring"]) == (None, 2000, "add-remove")
    assert (tmp_path / "plan.png").stat().st_size > 1000
    first = shown["options"][0]
    assert first["mechanism"] == "noisy-tree"
    assert not {"made", "asked"} & set(first)
    told = planned(2000, 31, secret(delta=1e-6))
    assert shown["options"] == json.loads(json.dumps([each.to_json() for each in told]))
    table = privurn_command("plan", "--neighbouring", "add-remove", "--records", 2000, "--cells", 5, "--epsilon", 1).stdout
    assert "about 2,000 records (n is secret: add-remove)" in table
    assert "n = 2,000" not in table
    assert "Were n far from 2,000" in table


def test_the_picture_is_of_the_relation():
    relations = secret(), Guarantee(epsilon=1.0, delta=0.0)
    one, other = (plan_picture(n=500, cells=9, guarantee=each, points=5) for each in relations)
    titles = [each.axes[0].get_title() or each.get_suptitle() for each in (one, other)]
    assert "about 500 records" in titles[0]
    assert "n = 500" in titles[1]
    [curve, default] = [axes.get_ydata() for axes in one.axes[0].lines]
    [row] = [each for each in planned(500, 9, secret(), ordered=False) if each.mechanism == "dirichlet-multinomial"]
    assert default[0] == pytest.approx(row.effective_sample_size)
    assert len(curve) == 5


# ---- right under the prior, where the guess is ----------------------------------------------------------------------


def off(found: Expected | None, other: Expected) -> list[float]:
    """Relative distances of all figures."""
    pairs = [(getattr(found, name), getattr(other, name)) for name in vars(other)]
    return [abs(a / b - 1.0) for a, b in pairs if a is not None]


def tables(*, n: int, cells: int, runs: int) -> list[np.ndarray]:
    """Of other seeds than the forecast's."""
    rng, splits = np.random.default_rng([98, n, cells]), Splits(CellTree((cells,)))
    return [rng.multinomial(n, polya_shares(splits, rng=rng)) for _ in range(runs)]


def test_forecasts_hold_in_other_runs():
    n, cells = 500, 33
    drawn, order = tables(n=n, cells=cells, runs=100), OrderedCells((cells,), (0,))
    rows = [each for each in planned(n, cells, secret(0.3)) if each.expected is not None]
    assert len(rows) == 3
    for each in rows:

        def release(counts: CountTable, rng: np.random.Generator, made=each.made) -> np.ndarray:
            return simulated_records(made, counts, rng=rng) if made.measures else made.simulated_weights(counts, rng=rng)

        assert max(off(each.expected, expected_errors(release, drawn, order=order))) < WITHIN, each.mechanism


@pytest.mark.parametrize(
    ("mechanism", "runs"), [("perturbed-histogram", 60), pytest.param("noisy-tree", 400, marks=pytest.mark.long)]
)
def test_forecasts_hold_for_real_releases(mechanism, runs):
    n, cells = 400, 32
    [first, *_] = [each for each in planned(n, cells, secret(0.5, 1e-6)) if each.mechanism == mechanism]
    drawn, released = tables(n=n, cells=cells, runs=runs), []
    for counts in drawn:
        data = np.repeat(np.arange(cells), counts)
        out = privurn.release(
            data, first.asked, domain=Grid(0, cells - 1, 1), epsilon=0.5, delta=1e-6, neighbouring="add-remove"
        )
        released.append(np.bincount(np.asarray(out.data, np.int64), minlength=cells))
    rest = iter(released)
    again = expected_errors(lambda *_: next(rest), drawn, order=OrderedCells((cells,), (0,)))
    assert max(off(first.expected, again)[: 1 if mechanism == "noisy-tree" else 3]) < WITHIN
