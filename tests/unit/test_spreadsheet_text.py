"""Text that a spreadsheet would run is marked in CSV, and can be unmarked without loss."""

import csv
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.certificates.folder import SyntheticTable
from privurn.domain import Categories
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import open_table, write
from privurn.tables.released import open_released
from privurn.tables.spreadsheet_text import marked, unmarked, unmarked_text

texts = st.one_of(st.text(max_size=8), st.text(alphabet="'=+-@\t\r\n 15.eE\uff1d\uff0b\uff0d\uff20a", max_size=6))
RUN = [
    "=1+1",
    '=HYPERLINK("x")',
    "+a",
    "-a",
    "@SUM(1)",
    "\tx",
    "\rx",
    "\nx",
    " =1",
    "\uff1d1",
    "''=1",
    "-",
    "-5-5",
    "+1e5-",
]
HARMLESS = ["", "a", "5", "-5", "+5", "-1.5e-3", "-.5", "'", "'a", "''", "'-5", "a=1", "1-2"]


@settings(max_examples=300)
@given(text=texts)
def test_marks_come_off_again(text):
    assert unmarked(marked(text)) == text
    assert marked(text) in (text, "'" + text)


@settings(max_examples=200)
@given(one=texts, other=texts)
def test_no_two_texts_are_written_alike(one, other):
    assert (marked(one) == marked(other)) == (one == other)


@pytest.mark.parametrize("text", RUN)
def test_what_would_run_is_marked(text):
    assert marked(text) == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_runs_nothing_is_left_alone(text):
    assert marked(text) == text
    assert unmarked(text) == text


def test_no_marked_text_begins_as_a_formula_does():
    for text in RUN:
        assert not re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]", marked(text))


@settings(max_examples=8)
@given(many=st.lists(texts, min_size=40, max_size=80))
def test_arrow_unmarks_as_python_does(many):
    column = pa.array([*map(marked, many), *many, None], pa.string())
    assert unmarked_text(column).to_pylist() == [*many, *map(unmarked, many), None]


def test_labels_and_names_are_marked_in_csv_and_read_as_they_were(tmp_path):
    labels = ["=1+1", "-5", "plain", "'@x", None, "\tt"]
    table = pa.table({"=name": labels, "n": [1, -2, 3, -4, 5, -6]})
    write(table, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.reader(handle))
    assert rows[0] == ["'=name", "n"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "-5", "plain", "''@x", "", "'\tt"]
    assert [row[1] for row in rows[1:]] == ["1", "-2", "3", "-4", "5", "-6"]
    with open_released(tmp_path / "t.csv") as source:
        found = source.connection.sql(f"SELECT {source.reference('=name')} FROM t").fetchall()
    assert [label for (label,) in found] == labels
    write(table, tmp_path / "t.parquet")
    with open_released(tmp_path / "t.parquet") as source:
        assert list(source.types) == ["=name", "n"]


def test_a_custodians_own_file_is_read_as_it_stands(tmp_path):
    """Only released files carry marks: an apostrophe in confidential data is part of the value."""
    (tmp_path / "t.csv").write_text("x\n'=1\n=1\n")
    with open_table(str(tmp_path / "t.csv")) as source:
        assert sorted(source.connection.sql("SELECT c0 FROM t").fetchall()) == [("'=1",), ("=1",)]


def test_a_release_of_formulas(tmp_path):
    """Published marked, said in a remark, verified, and understood by inference and the report."""
    labels = ["=cmd|' /C calc'!A0", "@x", "'@x", "-5"]
    data = pa.table({"+col": [labels[i % 4] for i in range(400)]})
    made = privurn.release(data, domain=Categories(labels, outside="other"), epsilon=4, delta=1e-3, entropy=SeededEntropy(5))
    assert not any("apostrophe" in remark for remark in made.remarks)
    saved = made.save(tmp_path / "out")
    assert any("apostrophe" in remark for remark in saved.remarks)
    assert not any("apostrophe" in remark for remark in made.save(tmp_path / "parquet", file_format="parquet").remarks)
    records = SyntheticTable(made.table, 1, 5)
    remade = replace(made, table=pa.table({"count": [3]}), synthetic=records, measured=True)
    assert any("apostrophe" in remark for remark in remade.save(tmp_path / "made").remarks)
    lines = (tmp_path / "out" / "data.csv").read_text().splitlines()
    assert {line.strip('"') for line in lines} <= {"'+col", "'=cmd|' /C calc'!A0", "'@x", "''@x", "-5", "other"}
    reasons = privurn.verify(tmp_path / "out").reasons
    assert [each for each in reasons if "seeded" not in each] == []
    from privurn.inference.counts.released import observe
    from privurn.reports.html.released import read_release

    observed = observe(tmp_path / "out")
    released = made.data["+col"].to_pylist()
    assert observed.counts.tolist() == [released.count(label) for label in [*labels, "other"]]
    cells = read_release(tmp_path / "out", saved.certificate)
    assert dict(zip(cells.cells.tolist(), cells.weights.tolist(), strict=True)) == {
        i: count for i, count in enumerate(observed.counts.tolist()) if count
    }


def test_discovered_labels_and_privatised_ones_are_read_back(tmp_path):
    data = pa.table({"town": ["=a"] * 200 + ["b"] * 200})
    made = privurn.release(data, domain={"town": privurn.OpenLabels()}, epsilon=8, delta=1e-3).save(tmp_path / "open")
    from privurn.inference.counts.released import observe
    from privurn.inference.mixtures.reading import read_privatised

    observed = observe(tmp_path / "open")
    assert observed.counts.sum() == len(made.data)
    noisy = privurn.privatise(data, domain={"town": privurn.Categories(["=a", "b"], outside="other")}, epsilon=3)
    noisy.save(tmp_path / "noisy")
    codes = {"=a": 0, "b": 1, "other": 2}
    assert read_privatised(tmp_path / "noisy").released.tolist() == [codes[each] for each in noisy.data["town"].to_pylist()]
