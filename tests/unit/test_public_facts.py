"""Structural zeros and public marginals of a table: they cost nothing, stand in the certificate, and records follow them."""

import json
import shutil
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.domain import Bins, Categories, Dates, Grid, TableDomain, domain_from_file, domain_from_json
from privurn.errors import DomainError
from privurn.inference.tables.fit import FitSettings, fit_mixture
from privurn.inference.tables.reading import read_table
from privurn.inference.tables.synthetic import synthetic_table
from privurn.inference.verified import verified
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.marginals_recipe import calibrate_marginals
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.privacy.certificate import Certificate, file_hash
from privurn.privacy.profile import Guarantee

COLUMNS = {
    "sex": Categories(["f", "m"], outside="null"),
    "birth": Categories(["no", "yes"], outside="null"),
    "age": Bins([0, 20, 50, 90]),
    "visits": Grid(0, 2, 1, nulls="cell"),
}
ZEROS = [{"sex": "m", "birth": "yes"}, {"birth": "yes", "age": 5}, {"sex": None, "visits": None}]
SHARES = [0.3, 0.7, 0.0]


def people(n=1_200):
    """Seven in ten are men; one in two of the women gave birth."""
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["f", "m"], n, p=[0.3, 0.7]), rng.integers(20, 90, n)
    birth = np.where((sex == "f") & (rng.random(n) < 0.5), "yes", "no")
    return pd.DataFrame({"sex": sex, "birth": birth, "age": age, "visits": rng.integers(0, 3, n)})


@pytest.fixture(scope="module")
def made():
    domain = TableDomain(COLUMNS, ZEROS, {"sex": SHARES})
    return privurn.release(people(), privurn.Marginals(order=2), domain=domain, epsilon=0.3, delta=1e-6, ledger=False)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "out"
    made.save(path)
    return path


def impossible(data):
    return ((data["sex"] == "m") & (data["birth"] == "yes")) | ((data["birth"] == "yes") & (data["age"] < 20))


def test_no_record_is_where_none_can_be_and_known_shares_are_followed(made, folder):
    """At an epsilon at which the noise alone would put a third of the records elsewhere."""
    assert not impossible(made.data).any()
    assert abs((made.data["sex"] == "m").mean() - 0.7) < 0.05
    assert privurn.verify(folder).valid
    quick = FitSettings(classes=10, pair_steps=80)
    copies, _ = synthetic_table(read_table(verified(folder)), records=None, copies=2, seed=1, settings=quick)
    assert not impossible(copies.to_pandas()).any()


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_value_that_only_some_records_can_have_is_not_lost(epsilon):
    """The default fit, where the noise of a count is a tenth of such records and more."""
    rng = np.random.default_rng(1)
    sex, age = rng.choice(["m", "f"], 1_200), rng.integers(0, 10, 1_200)
    birth = np.where((sex == "f") & (rng.random(1_200) < 0.32), "yes", "no")
    columns = {"sex": Categories(["m", "f"]), "age": Grid(0, 9, 1), "birth": Categories(["yes", "no"])}
    domain = TableDomain(columns, [{"sex": "m", "birth": "yes"}])
    data = pd.DataFrame({"sex": sex, "age": age, "birth": birth})
    found = privurn.release(data, privurn.Marginals(), domain=domain, epsilon=epsilon, delta=1e-6, ledger=False).data
    assert abs((found["birth"] == "yes").mean() - (birth == "yes").mean()) < 0.06
    assert not ((found["sex"] == "m") & (found["birth"] == "yes")).any()


def test_three_columns_may_exclude_each_other():
    """Only pairs are measured, which leave open how many records are there; they stay as they are."""
    columns = {"a": Grid(0, 1, 1), "b": Categories(["x", "y"]), "day": Dates("2024-01-01", "2024-12-31", "6 months")}
    domain = TableDomain(columns, [{"a": 1, "b": "y", "day": date(2024, 9, 30)}])
    assert domain.zero_cells == (((0, 1), (1, 1), (2, 1)),)
    assert domain_from_json(json.loads(json.dumps(domain.to_json()))) == domain
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (3, 8_000)).astype(np.uint16)
    codes = codes[:, ~codes.all(axis=0)]
    made = calibrate_marginals(n=codes.shape[1], sizes=(2, 2, 2), guarantee=Guarantee(epsilon=1.0, delta=1e-6), order=2)
    counts = count_marginals([codes], made.layout)
    noisy = made.simulate(counts, rng=rng).astype(float)
    quick = FitSettings(classes=10, pair_steps=150)
    shares = {}
    for own in (domain, TableDomain(columns)):
        table = replace(MeasuredTable(made, noisy), domain=own)
        shares[own is domain] = fit_mixture(table, seed=0, settings=quick).mixture.marginal((0, 1, 2))
    assert shares[True][1, 1, 1] < 0.2 * shares[False][1, 1, 1]
    assert abs(shares[True].sum(axis=2) - counts.layout.split(counts.counts)[3] / counts.n).max() < 0.02
    cells, _ = synthetic_table(table=replace(MeasuredTable(made, noisy), domain=domain), records=4_000, seed=1, settings=quick)
    found = cells.to_pandas()
    assert not ((found["a"] == 1) & (found["b"] == "y") & (found["day"].astype(str) == "2024-07-01")).any()
    assert (((found["a"] == 1) & (found["b"] == "y")).mean()) > 0.1


def test_public_knowledge_costs_nothing(made):
    plain = privurn.release(
        people(), privurn.Marginals(order=2, records=10), domain=COLUMNS, epsilon=0.3, delta=1e-6, ledger=False
    )
    assert plain.certificate["mechanism"] == made.certificate["mechanism"]
    assert plain.certificate["achieved"] == made.certificate["achieved"]


def test_a_record_in_an_empty_cell_is_convicted_even_if_the_hash_fits(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / "data.csv"
    data = pd.read_csv(file)
    data.loc[0, ["sex", "birth"]] = ["m", "yes"]
    data.to_csv(file, index=False)
    certificate = Certificate.read(copy)
    synthetic = {**certificate["synthetic"], "sha256": file_hash(file)}
    (copy / "certificate.json").write_text(certificate.with_fields(synthetic=synthetic).to_json())
    assert any("outside the domain" in each for each in privurn.verify(copy).reasons)


def test_facts_are_read_back_from_plain_data_and_files(tmp_path):
    domain = TableDomain(COLUMNS, ZEROS, {("age", "sex"): [[0.1, 0.2, 0.0], [0.1, 0.2, 0.0], [0.1, 0.3, 0.0]]})
    assert domain.zero_cells == (((0, 1), (1, 1)), ((1, 1), (2, 0)), ((0, 2), (3, 3)))
    assert domain.known_shares == {(0, 2): [[0.1, 0.1, 0.1], [0.2, 0.2, 0.3], [0.0, 0.0, 0.0]]}
    assert domain_from_json(domain.to_json()) == domain
    file = tmp_path / "table.json"
    file.write_text(json.dumps(domain.to_json()))
    assert domain_from_file(file) == domain
    turned = domain.in_order(["visits", "age", "birth", "sex"])
    assert turned.known_shares == {(1, 3): [[0.1, 0.2, 0.0], [0.1, 0.2, 0.0], [0.1, 0.3, 0.0]]}
    assert "3 structural zeros, 1 known marginals" in domain.describe()


@pytest.mark.parametrize(
    ("zeros", "known", "words"),
    [
        ([{"sex": "m"}], {}, "one value of each of two or three columns"),
        ([{"sex": "m", "birth": "no", "age": 5, "visits": 1}], {}, "one value of each of two or three columns"),
        ([("sex", "m")], {}, "one value of each of two or three columns"),
        ([{"age": "old", "birth": "yes"}], {}, "a structural zero of 'age' must be a finite number"),
        ([{"visits": 0.5, "birth": "yes"}], {}, "column 'visits' has no such value"),
        ([{"sex": "m", "town": "x"}], {}, "'town'"),
        ([{"sex": "x", "birth": "yes"}], {}, "column 'sex' has no such value"),
        ([{"age": 95, "birth": "yes"}], {}, "column 'age' has no such value"),
        ([{"age": None, "birth": "yes"}], {}, "column 'age' has no such value"),
        ([{"age": "other", "birth": "yes"}], {}, "column 'age' has no such value"),
        ([{"age": "old", "birth": "yes"}], {}, "'age' must be a finite number"),
        ([{"visits": float("nan"), "birth": "yes"}], {}, "'visits' must be a finite number"),
        ([{"visits": "1/0", "birth": "yes"}], {}, "'visits' must be a finite number"),
        (
            [],
            {("sex", "birth"): [[1.0, 0.0, 0.0]] + [[0.0] * 3] * 2, ("birth", "sex"): [[1.0, 0, 0]] + [[0.0] * 3] * 2},
            "twice",
        ),
        ([], {"sex": [0.5, 0.5]}, "needs 3 shares"),
        ([], {"sex": [0.5, 0.6, 0.0]}, "sum to 1"),
        ([], {("sex", "birth"): [[1.0, 0.0, 0.0]]}, "needs 3 x 3 shares"),
        ([], {("sex", "sex"): [[1.0]]}, "one column or two"),
        ([], {("sex", "birth"): [1.0]}, "not made of numbers"),
        ([], {"town": [1.0]}, "'town'"),
    ],
)
def test_facts_that_make_no_sense_are_refused_in_words(zeros, known, words):
    with pytest.raises(DomainError, match=words):
        TableDomain(COLUMNS, zeros, known)


def test_zeros_name_values_as_records_are_read():
    """The last bin is closed, blanks and case count as in the column, a moment lies in its step; stated as plain data."""
    columns = {
        "age": Bins([0, 20, 50, 90], outside="other"),
        "sex": Categories(["f", "m"], ignore_case=True),
        "since": Dates("2024-01-01", "2024-12-31", "month"),
    }
    zeros = [{"age": np.int64(90), "sex": " M"}, {"age": "other", "sex": "f"}, {"since": date(2024, 2, 29), "age": 20}]
    domain = TableDomain(columns, zeros)
    assert domain.zero_cells == (((0, 2), (1, 1)), ((0, 3), (1, 0)), ((0, 1), (2, 1)))
    assert domain_from_json(json.loads(json.dumps(domain.to_json()))) == domain
    with pytest.raises(DomainError, match="column 'since' has no such value"):
        TableDomain(columns, [{"since": "2025-01-01", "age": 20}])


def test_zeros_that_leave_no_room_are_told():
    """Every pair of cells empty: nothing can be drawn, and what was paid for is released all the same."""
    columns = {"a": Grid(0, 1, 1), "b": Grid(0, 1, 1)}
    every = [{"a": i, "b": j} for i in (0, 1) for j in (0, 1)]
    data = pd.DataFrame({"a": [0, 1] * 20, "b": [0, 1] * 20})
    out = privurn.release(
        data, privurn.Marginals(records=5), domain=TableDomain(columns, every), epsilon=1, delta=1e-6, ledger=False
    )
    assert out.synthetic is None
    assert any("structural zeros" in each for each in out.remarks)
