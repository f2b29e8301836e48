"""Whole tables through the public calls: frames, files, certificates, what a reader of the folder finds, bad input."""

import json
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privurn
from privurn.domain import TableDomain, domain_from_json
from privurn.errors import DomainError, FormatError, ModelError, PrivurnError
from privurn.inference.tables.reading import read_table
from privurn.inference.verified import verified
from privurn.privacy.certificate import Certificate
from privurn.tables import to_kind
from privurn.tables.cell_batches import cell_batches
from privurn.tables.opening import open_table
from privurn.tables.released import released_batches

DOMAIN = {
    "age": privurn.Grid(0, 90, 10),
    "sex": privurn.Categories(["f", "m"], outside="other"),
    "town": privurn.Categories(["a", "b", "c"], nulls="cell", outside="other"),
    "pay": privurn.Bins([0, 10, 20, 50, 100], nulls="cell"),
}


def frame(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 10, n) * 10
    pay = np.where(rng.random(n) < 0.1, np.nan, np.clip(rng.normal(20 + 0.3 * age, 10), 0, 99))
    town = rng.choice(["a", "b", "c", "z"], n, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    town[:50] = None
    return pd.DataFrame({"age": age, "sex": np.where(rng.random(n) < 0.4, "f", "m"), "town": town, "pay": pay})


@pytest.fixture(scope="module")
def made():
    return privurn.release(frame(), privurn.Marginals(order=2), domain=DOMAIN, epsilon=2, delta=1e-6, ledger=False)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "out"
    made.save(path)
    return path


def test_records_have_the_columns_types_and_size_of_the_table(made):
    data = made.data
    assert isinstance(data, pd.DataFrame)
    assert list(data.columns) == list(DOMAIN)
    assert len(data) == 3_000
    assert data["age"].dtype == np.int64
    assert set(data["sex"]) <= {"f", "m", "other"}
    assert data["town"].isna().any()
    assert list(made.measurements.columns) == ["marginal", "cell", "count"]
    true = frame()
    for name in ("age", "sex"):
        first, second = (each[name].value_counts(normalize=True) for each in (data, true))
        assert 0.5 * first.sub(second, fill_value=0.0).abs().sum() < 0.1


def test_the_relation_between_columns_is_kept(made):
    """Shrunk towards none, as the documentation says: 0.52 in the binned data."""
    far = made.data.dropna()
    assert 0.3 < far["age"].corr(far["pay"]) < 0.6


def test_the_folder_verifies_and_a_changed_file_is_convicted(folder, tmp_path):
    assert privurn.verify(folder).valid
    assert sorted(each.name for each in folder.iterdir()) == ["certificate.json", "data.csv", "measurements.csv"]
    for name in ("measurements.csv", "data.csv"):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        text = (copy / name).read_text().splitlines()
        (copy / name).write_text("\n".join([*text[:-1], ""]))
        assert any(name in each for each in privurn.verify(copy).reasons)
        (copy / name).unlink()
        assert any("missing" in each for each in privurn.verify(copy).reasons)


def test_records_outside_the_domain_are_convicted_even_if_the_hash_fits(folder, tmp_path):
    from privurn.privacy.certificate import file_hash

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / "data.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1].replace(lines[1].split(",")[0], "7", 1), *lines[2:], ""]))
    certificate = Certificate.read(copy)
    synthetic = {**certificate["synthetic"], "sha256": file_hash(file)}
    (copy / "certificate.json").write_text(certificate.with_fields(synthetic=synthetic).to_json())
    assert any("outside the domain" in each for each in privurn.verify(copy).reasons)


def test_the_measurements_are_read_back_as_they_were(made, folder):
    again = read_table(verified(folder))
    assert np.array_equal(again.counts, made.measurements["count"].to_numpy())
    assert again.domain == TableDomain(DOMAIN)
    assert sum(batch.num_rows for batch in released_batches(folder / "measurements.csv")) == again.mechanism.rows


def test_anybody_makes_the_same_records_from_the_measurements(made, folder):
    from privurn.inference.tables.synthetic import synthetic_table

    certificate = Certificate.read(folder)
    stated = certificate["synthetic"]
    table, _ = synthetic_table(read_table(verified(folder)), records=stated["rows"], seed=stated["seed"])
    pd.testing.assert_frame_equal(to_kind(table, "pandas"), made.data)


@pytest.mark.parametrize("kind", ["polars", "arrow", "csv", "parquet"])
def test_every_kind_of_table_is_read_and_given_back(kind, tmp_path):
    data = frame(400)
    given = {"polars": lambda: pl.from_pandas(data), "arrow": lambda: pa.Table.from_pandas(data, preserve_index=False)}
    if kind in given:
        source = given[kind]()
    else:
        source = tmp_path / f"t.{kind}"
        data.to_csv(source, index=False) if kind == "csv" else data.to_parquet(source)
    with open_table(source) as opened:
        found = np.concatenate(list(cell_batches(opened, TableDomain(DOMAIN))), axis=1)
    with open_table(data) as opened:
        wanted = np.concatenate(list(cell_batches(opened, TableDomain(DOMAIN))), axis=1)
    assert np.array_equal(found[:, np.lexsort(found)], wanted[:, np.lexsort(wanted)])
    assert wanted[2, :50].tolist() == [4] * 50  # missing
    recipe = privurn.Marginals(order=1, records=10)
    out = privurn.release(source, recipe, domain=DOMAIN, epsilon=1, delta=1e-6, ledger=False)
    assert type(out.data).__module__.startswith("polars" if kind == "polars" else "pyarrow")
    assert len(out.data) == 10


@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_relations_and_a_pure_epsilon(neighbouring, delta):
    told = []
    out = privurn.release(
        frame(),
        privurn.Marginals(order=2),
        domain=DOMAIN,
        epsilon=4,
        delta=delta,
        neighbouring=neighbouring,
        contributions=2,
        ledger=False,
        progress=told.append,
    )
    assert told[:4] == ["planning", "counting", "drawing", "fitting"]
    assert told[-1].startswith("fitting: 800 of 800, misfit ")
    secret = neighbouring == "add-remove"
    assert out.certificate["n"] == (None if secret else 3_000)
    assert abs(len(out.data) - 3_000) <= (300 if secret else 0)
    if delta == 0.0:
        assert out.certificate["mechanism"]["parameters"]["noise"] == "discrete-laplace"
        assert out.certificate["achieved"]["delta"] == 0.0


def test_inference_reads_a_folder_and_a_release(made, folder):
    truth = frame()
    for source in (made, folder):
        found = privurn.infer(source, ask=["mean(age)", "P(sex=f)"], of="sample")
        assert abs(found.figures[0].estimate - truth["age"].mean()) < 6.5 * found.figures[0].deviation
    fitted = privurn.infer(folder, privurn.LinearRegression("pay ~ age"))
    assert fitted.names == ("intercept", "age")
    assert 0.0 < fitted.figures[1].estimate < 0.6
    with pytest.raises(ModelError, match="CountModel is no model of noisy marginals"):
        privurn.infer(folder, privurn.CountModel())


# ---- bad input -------------------------------------------------------------------------------------------------------------


def release(data, domain, recipe=None, **options):
    given = {"epsilon": 1.0, "delta": 1e-6, "ledger": False} | options
    return privurn.release(data, recipe or privurn.Marginals(order=2, records=20), domain=domain, **given)


def test_strange_columns_are_no_obstacle():
    """One category, one never seen, a constant column, missing values everywhere, five records."""
    n = 5
    data = pd.DataFrame({"one": ["x"] * n, "never": ["a"] * n, "constant": [3] * n, "gone": [None] * n, "also": [np.nan] * n})
    domain = {
        "one": privurn.Bins([0, 1], nulls="error"),
        "never": privurn.Categories(["a", "unseen"], outside="other"),
        "constant": privurn.Grid(0, 5, 1),
        "gone": privurn.Categories(["p", "q"], nulls="cell", outside="other"),
        "also": privurn.Grid(0, 3, 1, nulls="cell"),
    }
    data["one"] = 0.5
    out = release(data, domain)
    assert len(out.data) == 20
    assert (out.data["one"] == 0.5).all()
    assert any("tells little" in each for each in out.remarks)
    found = privurn.infer(out, ask=["P(never=unseen)", "mean(constant)"])
    assert all(np.isfinite(each.deviation) for each in found.figures)


def test_a_secret_table_that_noise_drowns_is_remarked_on_and_inference_says_so_too():
    """Noise of some tens on each of 25 cells of 40 records, whose number is only known from the measurements."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.integers(0, 5, 40), "b": rng.integers(0, 5, 40)})
    domain = {"a": privurn.Grid(0, 4, 1), "b": privurn.Grid(0, 4, 1)}
    out = release(data, domain, epsilon=0.05, neighbouring="add-remove")
    assert any("tells little" in each for each in out.remarks)
    assert any("tells little" in each for each in privurn.infer(out, ask="mean(a)").problems())
    clear = release(pd.concat([data] * 500), domain, epsilon=5)
    assert not any("tells little" in each for each in (*clear.remarks, *privurn.infer(clear, ask="mean(a)").problems()))


def test_every_column_may_have_missing_values_and_one_value():
    data = pd.DataFrame({"a": [1.0, None] * 100, "b": ["x", None] * 100, "c": [7] * 200})
    domain = {
        "a": privurn.Grid(1, 2, 1, nulls="cell"),
        "b": privurn.Categories(["x"], outside="null"),
        "c": privurn.Categories([7], outside="null"),
    }
    out = release(data, domain, privurn.Marginals(), epsilon=8.0)
    assert len(out.data) == 200
    assert 60 < out.data["a"].isna().sum() < 140
    assert (out.data["a"].isna() == out.data["b"].isna()).mean() > 0.8
    found = privurn.infer(out, ask=["P(b=missing)", "mean(a)", "P(a=missing, b=missing)"], of="sample")
    assert abs(found.figures[2].estimate - 0.5) < 6.5 * found.figures[2].deviation + 0.01


@pytest.mark.parametrize(
    ("data", "domain", "words"),
    [
        (pa.table({"a": [1, None, 2]}), {"a": privurn.Grid(0, 3, 1)}, "missing values in 'a'"),
        (pd.DataFrame({"a": [1, 2]}), {"b": privurn.Grid(0, 3, 1)}, "no column 'b'"),
        (pd.DataFrame({"a": []}), {"a": privurn.Grid(0, 3, 1)}, "empty"),
        (pd.DataFrame({"a": [1]}), {"a": privurn.Grid(0, 3, 1)}, "one record"),
        (pd.DataFrame({"a": ["x", "y"]}), {"a": privurn.Grid(0, 3, 1)}, "text"),
        (pd.DataFrame({"a": [1, 2]}), privurn.Grid(0, 3, 1), "must be named"),
        (pd.DataFrame({"a": [1, 2]}), {"a": privurn.OpenLabels()}, "only grids, bins, dates and categories"),
        (pd.DataFrame({"a": [1, 2]}), {"a": privurn.Grid(0, 100_000, 1)}, "more than"),
    ],
)
def test_what_cannot_be_released_is_refused_in_words(data, domain, words):
    with pytest.raises(PrivurnError, match=words):
        release(data, domain)


def test_many_columns_are_a_table_for_marginals_and_too_many_for_joint_cells():
    columns = {f"c{i}": {"kind": "grid", "low": 0, "high": 9, "step": 1} for i in range(12)}
    domain = domain_from_json(columns)
    assert isinstance(domain, TableDomain)
    assert domain_from_json(domain.to_json()) == domain
    data = pd.DataFrame({name: [1, 2, 3] for name in columns})
    with pytest.raises(DomainError, match="too many"):
        privurn.release(data, privurn.Urn(), domain=domain, epsilon=1, ledger=False)
    with pytest.raises(FormatError, match="not known"):
        domain_from_json({"kind": "tables", "columns": {}})


def test_a_ledger_pays_before_the_noise_is_drawn(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "a.ledger", epsilon=1.5, delta=1e-5)
    release(frame(200), DOMAIN, ledger=ledger)
    assert len(ledger.entries()) == 1
    assert json.loads(ledger.entries()[0].parameters)["n"] == 200
    with pytest.raises(PrivurnError, match="is left"):
        release(frame(200), DOMAIN, ledger=ledger)


@pytest.mark.parametrize("epsilon", [20.0, 300.0])
def test_next_to_no_noise_gives_records_near_the_table(epsilon):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 5, 3000).astype(float)
    table = pd.DataFrame({"a": a, "h": a * 2 + rng.integers(0, 4, 3000)})
    domain = {"a": privurn.Grid(0, 4, 1), "h": privurn.Grid(0, 12, 1)}
    made = privurn.release(table, privurn.Marginals(), domain=domain, epsilon=epsilon, delta=1e-6)
    assert made.synthetic is not None, made.remarks
    assert abs(made.data["h"].mean() - table["h"].mean()) < 0.2
    assert made.data["a"].corr(made.data["h"]) > 0.8


def test_measurements_are_released_where_no_record_can_be_made(tmp_path):
    table = pd.DataFrame({"a": [0, 1] * 10, "b": [0, 1] * 10})
    domain = {"a": privurn.Grid(0, 1, 1), "b": privurn.Grid(0, 1, 1)}
    made = privurn.release(table, privurn.Marginals(), domain=domain, epsilon=1e-12, neighbouring="add-remove")
    if made.synthetic is None:  # the noise decides how many records there seem to be
        assert any("No records were made" in each for each in made.remarks)
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid
