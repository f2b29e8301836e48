"""Missing values, blanks, capitals and values that nobody listed count alike in every kind of frame and file.

Each table below holds the same people. A release counts them alike or refuses them alike, before it is paid for and without
naming a value.
"""

import datetime
import math
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.domain import Bins, Bounds, Categories, ColumnDomain, Grid, JointDomain, OpenLabels, TableDomain
from privurn.errors import DomainError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.regression_statistic import NormalStatistic
from privurn.privacy.ledger import Ledger
from privurn.releases.statistics import release_statistics
from privurn.tables import count_cells, count_labels, open_table
from privurn.tables.cell_batches import cell_batches
from privurn.tables.rows import read_cells

SECRET = "Pa55word"
HOURS = [40.0, 20.0, None, 60.0, None, 40.0]
SEXES = ["Male", " Female", "\tMale ", None, "Female", "Male"]


def written(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("\n".join(["x", *lines]) + "\n")
    return str(folder / name)


def parquet(folder: Path, column: pa.Array) -> str:
    pq.write_table(pa.table({"x": column}), folder / "t.parquet")
    return str(folder / "t.parquet")


def nan(values):
    return [math.nan if value is None else value for value in values]


def masked(values, dtype):
    """What is hidden under the mask does not count."""
    known = next(value for value in values if value is not None)
    shown = np.array([known if value is None else value for value in values], dtype=dtype)
    return np.ma.masked_array(shown, mask=[value is None for value in values])


NUMBERS = {
    "list": lambda x, tmp: list(x),
    "list with NaN": lambda x, tmp: nan(x),
    "numpy array": lambda x, tmp: np.array(nan(x)),
    "numpy": lambda x, tmp: np.array([(each,) for each in nan(x)], dtype=[("x", float)]),
    "numpy single": lambda x, tmp: np.array([(each,) for each in nan(x)], dtype=[("x", np.float32)]),
    "numpy objects": lambda x, tmp: np.array([(each,) for each in x], dtype=[("x", object)]),
    "numpy objects with NaN": lambda x, tmp: np.array([(each,) for each in nan(x)], dtype=[("x", object)]),
    "numpy masked": lambda x, tmp: masked(x, float),
    "numpy masked objects": lambda x, tmp: masked(x, object),
    "pandas float": lambda x, tmp: pd.DataFrame({"x": nan(x)}),
    "pandas series": lambda x, tmp: pd.Series(nan(x), name="x"),
    "pandas Float64": lambda x, tmp: pd.DataFrame({"x": pd.array(x, dtype="Float64")}),
    "pandas Int64": lambda x, tmp: pd.DataFrame({"x": pd.array(x, dtype="Int64")}),
    "pandas Arrow": lambda x, tmp: pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(nan(x))))}),
    "pandas object": lambda x, tmp: pd.DataFrame({"x": pd.Series(x, dtype=object)}),
    "pandas object with NaN": lambda x, tmp: pd.DataFrame({"x": pd.Series(nan(x), dtype=object)}),
    "pandas category": lambda x, tmp: pd.DataFrame({"x": pd.Categorical(x)}),
    "polars": lambda x, tmp: pl.DataFrame({"x": x}),
    "polars with NaN": lambda x, tmp: pl.DataFrame({"x": nan(x)}),
    "polars lazy": lambda x, tmp: pl.DataFrame({"x": nan(x)}).lazy(),
    "arrow": lambda x, tmp: pa.table({"x": x}),
    "arrow with NaN": lambda x, tmp: pa.table({"x": nan(x)}),
    "record batch": lambda x, tmp: pa.RecordBatch.from_pydict({"x": nan(x)}),
    "duckdb": lambda x, tmp: duckdb.from_arrow(pa.table({"x": x})),
    "duckdb with NaN": lambda x, tmp: duckdb.from_arrow(pa.table({"x": nan(x)})),
    "parquet": lambda x, tmp: parquet(tmp, pa.array(x)),
    "parquet with NaN": lambda x, tmp: parquet(tmp, pa.array(nan(x))),
    "csv": lambda x, tmp: written(tmp, "t.csv", ['""' if each is None else f" {each}" for each in x]),
    "csv with NaN": lambda x, tmp: written(tmp, "t.csv", [f" {each} " for each in nan(x)]),
}
LABELS = {
    "list": lambda x, tmp: list(x),
    "list with NaN": lambda x, tmp: nan(x),
    "numpy array": lambda x, tmp: np.array(x, dtype=object),
    "numpy text": lambda x, tmp: np.array([each or "" for each in x]),
    "numpy objects": lambda x, tmp: np.array([(each,) for each in x], dtype=[("x", object)]),
    "numpy objects with NaN": lambda x, tmp: np.array([(each,) for each in nan(x)], dtype=[("x", object)]),
    "numpy masked objects": lambda x, tmp: masked(x, object),
    "pandas": lambda x, tmp: pd.DataFrame({"x": x}),
    "pandas object": lambda x, tmp: pd.DataFrame({"x": pd.Series(x, dtype=object)}),
    "pandas object with NaN": lambda x, tmp: pd.DataFrame({"x": pd.Series(nan(x), dtype=object)}),
    "pandas string": lambda x, tmp: pd.DataFrame({"x": pd.array(x, dtype="string")}),
    "pandas category": lambda x, tmp: pd.DataFrame({"x": pd.Categorical(x)}),
    "polars": lambda x, tmp: pl.DataFrame({"x": x}),
    "polars category": lambda x, tmp: pl.DataFrame({"x": pl.Series(x, dtype=pl.Categorical)}),
    "arrow": lambda x, tmp: pa.table({"x": x}),
    "arrow dictionary": lambda x, tmp: pa.table({"x": pa.array(x).dictionary_encode()}),
    "empty text": lambda x, tmp: pa.table({"x": [each or "  " for each in x]}),
    "duckdb": lambda x, tmp: duckdb.from_arrow(pa.table({"x": x})),
    "parquet": lambda x, tmp: parquet(tmp, pa.array(x)),
    "csv": lambda x, tmp: written(tmp, "t.csv", ['""' if each is None else each for each in x]),
}


def named(data) -> str:
    """Plain lists and arrays have no name for their only column."""
    return "value" if isinstance(data, list) or (isinstance(data, np.ndarray) and data.dtype.names is None) else "x"


def counted(data, domain: ColumnDomain) -> dict[int, int]:
    with open_table(data) as source:
        table = count_cells(source, JointDomain({named(data): domain}))
    return dict(zip(table.values.tolist(), table.counts.tolist(), strict=True))


def every_reader(data, domain: ColumnDomain):
    """Ways from a table to the cells of a column, as functions that read or refuse."""

    def whole_table():
        with open_table(data) as source:
            return [each.tolist() for each in cell_batches(source, TableDomain({named(data): domain}))]

    def records():
        with open_table(data) as source:
            return read_cells(source, JointDomain({named(data): domain})).tolist()

    return [lambda: counted(data, domain), whole_table, records]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Grid(0, 80, 20, nulls="cell"), {1: 1, 2: 2, 3: 1, 5: 2}),
        (Grid(0, 80, 20, outside="other", nulls="cell"), {1: 1, 2: 2, 3: 1, 6: 2}),
        (Bins([0, 30, 50], outside="null"), {0: 1, 1: 2, 2: 3}),
        (Grid(0, 80, 20), None),
        (Grid(0, 80, 20, outside="other"), None),
        (Grid(0, 80, 20, outside="error"), None),
    ],
    ids=lambda each: each.describe() if isinstance(each, ColumnDomain) else "",
)
def test_missing_numbers(kind, domain, expected, tmp_path):
    data = NUMBERS[kind](HOURS, tmp_path)
    if expected is not None:
        assert counted(data, domain) == expected
        return
    for read in every_reader(data, domain) if kind != "duckdb" else [lambda: counted(data, domain)]:
        with pytest.raises(DomainError, match=f"missing values in '{named(data)}', declared to have none"):
            read()


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Categories(["Male", "Female"], nulls="cell"), {0: 3, 1: 2, 2: 1}),
        (Categories([" Male", "Female\n"], nulls="cell"), {0: 3, 1: 2, 2: 1}),
        (Categories(["male", "FEMALE"], nulls="cell", ignore_case=True), {0: 3, 1: 2, 2: 1}),
        (Categories(["Male"], outside="other", nulls="cell"), {0: 3, 1: 2, 2: 1}),
        (Categories(["Male"], outside="null"), {0: 3, 1: 3}),
        (Categories(["male", "female"], outside="other", nulls="cell"), {2: 5, 3: 1}),
        (Categories(["Male", "Female"]), "missing values in 'x', declared to have none"),
        (Categories(["Male", "Female"], outside="other"), "missing values in 'x', declared to have none"),
        (Categories(["Male"], nulls="cell"), "values in 'x' that match none of the categories"),
        (Categories(["male", "female"], nulls="cell"), "values in 'x' that match none of the categories"),
    ],
    ids=lambda each: f"{each.values} {each.describe()}" if isinstance(each, Categories) else "",
)
def test_text(kind, domain, expected, tmp_path):
    data = LABELS[kind](SEXES, tmp_path)
    if isinstance(expected, dict):
        assert counted(data, domain) == expected
        return
    for read in every_reader(data, domain) if kind != "duckdb" else [lambda: counted(data, domain)]:
        with pytest.raises(DomainError, match=expected.replace("'x'", f"'{named(data)}'")) as refused:
            read()
        assert not any(sex.strip() in str(refused.value) for sex in SEXES if sex)


@pytest.mark.parametrize("kind", LABELS)
def test_open_labels(kind, tmp_path):
    data = LABELS[kind](SEXES, tmp_path)
    with open_table(data) as source:
        table = count_labels(source, named(data))
    assert dict(zip(table.values.tolist(), table.counts.tolist(), strict=True)) == {"Male": 3, "Female": 2, None: 1}


def test_only_ascii_blanks_and_letters_are_folded():
    labels = pa.table({"x": ["ä", "Ä", "\u00a0a", "a", "A"]})
    assert counted(labels, Categories(["ä", "a"], outside="other", ignore_case=True)) == {0: 1, 1: 2, 2: 2}
    assert counted(labels, Categories(["ä", "Ä", "a", "\u00a0a"], ignore_case=True)) == {0: 1, 1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (["a", " a"], {}, "differ in blanks around them alone"),
        (["a", "A"], {"ignore_case": True}, "or in case, alone"),
        (["b", "\n"], {}, "empty text is a missing value"),
        (["Other"], {"ignore_case": True, "outside": "other"}, "called 'other'"),
    ],
)
def test_lists_that_collide_are_refused(values, options, words):
    with pytest.raises(DomainError, match=words):
        Categories(values, **options)
    assert Categories(["a", "A"]).size == 2


@pytest.mark.parametrize("value", [math.nan, np.float32("nan"), Decimal("nan"), None, pd.NA, pd.NaT])
def test_python_objects_that_stand_for_nothing(value):
    frame = pd.DataFrame({"x": pd.Series([1, value, 2], dtype=object)})
    assert counted(frame, Grid(0, 2, 1, nulls="cell")) == {1: 1, 2: 1, 3: 1}


def table_of(**columns):
    return pa.table(columns)


REFUSED = {
    "a column of numbers": lambda ledger: privurn.release(
        table_of(x=[1.0, math.nan, 2.0]), domain=Grid(0, 2, 1), epsilon=1, ledger=ledger
    ),
    "a column of text": lambda ledger: privurn.release(
        table_of(x=["a", SECRET, "a"]), domain=Categories(["a", "b"]), epsilon=1, ledger=ledger
    ),
    "several columns": lambda ledger: privurn.release(
        table_of(x=["a", SECRET, "a"], y=[1.0, 2.0, 2.0]),
        domain={"y": Grid(0, 2, 1), "x": Categories(["a", "b"])},
        epsilon=1,
        ledger=ledger,
    ),
    "a whole table": lambda ledger: privurn.release(
        table_of(x=["a", SECRET, "a"], y=[1.0, 2.0, 2.0]),
        privurn.Marginals(),
        domain={"y": Grid(0, 2, 1), "x": Categories(["a", "b"])},
        epsilon=1,
        ledger=ledger,
    ),
    "privatised categories": lambda ledger: privurn.privatise(
        table_of(x=["a", SECRET, "a"]), domain=Categories(["a", "b"]), epsilon=1, ledger=ledger
    ),
    "privatised numbers": lambda ledger: privurn.privatise(
        pd.DataFrame({"x": [1.0, math.nan]}), domain=Bounds(0, 2), epsilon=1, ledger=ledger
    ),
    "privatised numbers as text": lambda ledger: privurn.privatise(
        pd.DataFrame({"x": pd.Series([1.0, SECRET], dtype=object)}), domain=Bounds(0, 2), epsilon=1, ledger=ledger
    ),
    "a table of noisy counts": lambda ledger: privurn.release(
        pd.DataFrame({"x": ["a", SECRET]}),
        privurn.NoisyCounts(publish="counts"),
        domain={"x": Categories(["a", "b"])},
        epsilon=1,
        ledger=ledger,
    ),
    "noisy sums": lambda ledger: statistics(NormalStatistic, {"x": [1.0, math.nan]}, ledger, response="x", bounds=(0, 2)),
    "noisy sums of text": lambda ledger: statistics(
        NormalStatistic, {"x": pd.Series([1.0, SECRET], dtype=object)}, ledger, response="x", bounds=(0, 2)
    ),
}


def statistics(kind, columns, ledger, **given):
    budget = Budget(epsilon=1)
    made = kind.calibrated(budget=budget, **given)
    return release_statistics(pd.DataFrame(columns), mechanism=made, budget=budget, ledger=ledger)


@pytest.mark.parametrize("job", REFUSED)
def test_what_was_declared_absent_is_refused_before_payment(job, tmp_path):
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=3, delta=0.1)
    with pytest.raises(DomainError, match="'x'") as refused:
        REFUSED[job](ledger)
    assert SECRET not in str(refused.value)
    assert ledger.entries() == []


def test_a_whole_table_may_be_a_relation():
    relation = duckdb.from_arrow(pa.table({"x": ["a", "b"] * 20, "y": [0, 1] * 20}))
    domain = {"x": Categories(["a", "b"]), "y": Grid(0, 1, 1)}
    made = privurn.release(relation, privurn.Marginals(records=5), domain=domain, epsilon=1)
    assert (made.certificate["n"], len(made.data)) == (40, 5)


def test_text_among_numbers_is_never_the_lowest_number(tmp_path):
    path = written(tmp_path, "t.csv", ["39", "?", " 50"])
    with pytest.raises(DomainError, match="values in 'x' that are outside the domain, or no numbers"):
        counted(path, Grid(0, 90, 10))
    assert counted(path, Grid(0, 90, 10, outside="other")) == {4: 1, 5: 1, 10: 1}
    assert counted(path, Grid(0, 90, 10, nulls="cell")) == {4: 1, 5: 1, 10: 1}


def test_numbers_declared_to_lie_inside():
    frame = pa.table({"x": [1.0, 2.0, 7.0]})
    with pytest.raises(DomainError, match="outside the domain, or no numbers, declared not to be there"):
        counted(frame, Grid(0, 5, 1, outside="error"))
    assert counted(frame, Grid(0, 7, 1, outside="error")) == {1: 1, 2: 1, 7: 1}


def test_what_a_refusal_suggests_can_be_had(tmp_path):
    people = pa.table({"sex": ["Male", "Female"] * 40})
    with pytest.raises(DomainError) as refused:
        privurn.release(people, domain=Categories(["male", "female"]), epsilon=1)
    assert "ignore_case=True" in str(refused.value)
    assert "outside='other'" in str(refused.value)
    made = privurn.release(people, domain=Categories(["male", "female"], ignore_case=True), epsilon=1)
    assert set(made.data["sex"].to_pylist()) <= {"male", "female"}
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid
    assert made.certificate["domain"]["columns"]["sex"]["ignore_case"] is True


@pytest.mark.parametrize("domain", [Categories(["a", "b", "c"]), Grid(0, 9, 1), OpenLabels()], ids=lambda each: each.kind)
def test_as_many_records_as_there_are_without_delta(domain):
    """Pure epsilon-DP is no reason for a handful of records, or for ones that a prior has made."""
    values = np.array(["a"] * 2700 + ["b"] * 250 + ["c"] * 50)
    if isinstance(domain, OpenLabels):
        with pytest.raises(privurn.errors.PrivurnError, match="delta"):
            privurn.release(values, domain=domain, epsilon=1)
        return
    data = values if isinstance(domain, Categories) else np.arange(3000) % 3
    made = privurn.release(data, domain=domain, epsilon=1)
    assert (len(made.data), made.certificate["target"]) == (3000, {"epsilon": 1.0, "delta": 0.0})
    if isinstance(domain, Categories):
        # noise of scale 2 on each count, and 3000 draws: a share within 0.05 of 0.9 but for probability 1e-15
        assert abs(np.mean(made.data == "a") - 0.9) < 0.05


def test_dates_are_no_numbers():
    with pytest.raises(DomainError, match="holds text"):
        counted(pa.table({"x": [datetime.date(2024, 1, 1)] * 2}), Grid(0, 5, 1))
