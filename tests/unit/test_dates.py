"""Dates and times as a domain, bins as intervals, and lists: released, verified, read back and inferred from."""

import datetime
import json
import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import privurn
from privurn.domain import Bins, Categories, Dates, Grid, JointDomain, OpenLabels, domain_from_file, domain_from_json
from privurn.errors import DomainError, FormatError
from privurn.inference.counts.released import observe
from privurn.reports.html.released import read_release
from privurn.tables import count_cells, open_table
from privurn.tables.cells import cell_values

YEAR = Dates("2024-01-01", "2024-12-31", "month")


def counted(data, domain):
    with open_table(data) as source:
        table = count_cells(source, JointDomain({"x": domain}))
    return dict(zip(table.values.tolist(), table.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("domain", "size", "last"),
    [
        (Dates("2024-01-01", "2024-12-31"), 366, "2024-12-31"),
        (YEAR, 12, "2024-12-01"),
        (Dates("2024-01-15", "2024-12-14", "month"), 11, "2024-11-15"),
        (Dates("2024-01-15", "2024-12-15", "1 months"), 12, "2024-12-15"),
        (Dates(date(2024, 1, 1), date(2024, 2, 1), "2 weeks"), 3, "2024-01-29"),
        (Dates("2020-02-28", "2024-02-27", "year"), 4, "2023-02-28"),
        (Dates("2024-01-01", "2024-01-02", "6 hours"), 5, "2024-01-02 00:00:00"),
        (Dates("2024-01-01 00:30", "2024-01-01 01:00", "10minutes"), 4, "2024-01-01 01:00:00"),
        (Dates(pd.Timestamp("2024-01-01 00:00:01"), "2024-01-01 00:00:09", "second"), 9, "2024-01-01 00:00:09"),
        (Dates("0001-01-01", "9899-01-01", "100 years"), 99, "9801-01-01"),
    ],
)
def test_steps(domain, size, last):
    assert (domain.size, domain.label(domain.n_values - 1)) == (size, last)
    again = domain_from_json(json.loads(json.dumps(domain.to_json())))
    assert (again, again.to_json()) == (domain, domain.to_json())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("2024-01-02", "2024-01-01"), "after the first"),
        (("2024-01-31", "2024-12-31", "month"), "every month has"),
        (("2024-01-01", "2024-12-31", "fortnight"), "not understood"),
        (("2024-01-01", "2024-12-31", "0 days"), "not understood"),
        (("2024-01-01", "2024-13-31"), "is no date"),
        (("2024-01-01", 5), "begin and end with a date"),
        (("2024-01-01T00:00+02:00", "2024-12-31"), "no time zone"),
        (("2024-01-01+02:00", "2024-12-31"), "is no date"),  # Python reads two in the morning
        (("2024-01-01", "9999-12-31", "month"), "after the year 9999"),
        (("0001-01-01", "9999-01-01", "second"), "cells"),
        (("2024-01-01", "2024-12-31", "999999999 weeks"), "64 bits"),
    ],
)
def test_what_is_no_domain_of_dates(arguments, words):
    with pytest.raises(DomainError, match=words):
        Dates(*arguments)
    with pytest.raises(DomainError, match="no way to write 'other'"):
        Dates("2024-01-01", "2024-12-31", outside="other")


def test_text_with_an_offset_is_read_in_utc():
    """As a column of times with a zone is; text that states none is taken as it stands."""
    written = ["2024-03-01 01:00:00+02:00", "2024-03-01T01:00:00Z", "2024-02-29 23:30:00-01", "2024-03-01 01:00:00"]
    zone = datetime.timezone(timedelta(hours=2))
    stored = pa.array([datetime.datetime(2024, 3, 1, 1, tzinfo=zone)] * 2, pa.timestamp("us", tz="Europe/Berlin"))
    assert counted(pa.table({"x": written}), YEAR) == {1: 1, 2: 3}
    assert counted(pd.DataFrame({"x": pd.Series([stored[0].as_py(), date(2024, 3, 1)], dtype=object)}), YEAR) == {1: 1, 2: 1}
    assert counted(pa.table({"x": stored}), YEAR) == {1: 2}


def test_text_is_a_date_where_it_is_written_as_one_and_no_program_reads_it_otherwise():
    march = Dates("2024-03-01", "2024-04-01", "day", outside="null", nulls="cell")
    read = ["2024-03-01", "2024-3-1", "2024/03/01", "2024-03-01 9:05", "2024-03-01T09:05:07.123456789", "2024-03-01 10:00 UTC"]
    read += ["2024-03-01 23:00:00-00:30", "2024-03-02T00:30+02", "2024-03-02 00:53:27+00:53:28", "\t2024-03-02 01:00:00+0130\n"]
    none = [
        "24-03-01",
        "20240301",
        "2024-03-1x",
        "2024-02-30",
        "2024-03-01Z",
        "2024-03-01 24:00",
        "2024-03-01 10:00+16",
        "2024 03 01",
    ]
    none += [
        "2024-03-01 10:00:60",
        "2024-03-01 10:00:00.",
        "2024-03-01  10:00",
        "2024-03-01 10:00 Europe/Berlin",
        "epoch",
        "now",
    ]
    assert counted(pa.table({"x": [*read, *none]}), march) == {0: len(read), march.null_cell: len(none)}


UNITS = ["second", "minute", "hour", "day", "week", "month", "year"]


@given(
    start=st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    number=st.integers(1, 9),
    unit=st.sampled_from(UNITS),
    steps=st.integers(1, 50),
    picks=st.lists(st.tuples(st.integers(-2, 52), st.integers(-1, 1)), min_size=2, max_size=8),
)
def test_a_moment_belongs_to_the_step_it_lies_in(start, number, unit, steps, picks):
    """Compared with a plain search among the beginnings, at the beginnings and a microsecond before and after them."""
    start = start.replace(day=min(start.day, 28), microsecond=0)
    step = pd.DateOffset(**{f"{unit}s": number})
    begins = [(pd.Timestamp(start) + i * step).to_pydatetime() for i in range(steps + 2)]
    domain = Dates(start, begins[steps], f"{number} {unit}s")
    assert domain.n_values == steps + 1
    moments = [begins[min(max(i, 0), steps + 1)] + timedelta(microseconds=off, days=-40 * (i < 0)) for i, off in picks]
    expected = [min(max(sum(each >= begin for begin in begins) - 1, 0), steps) for each in moments]
    for column in (pa.array(moments, pa.timestamp("us")), pa.array([str(each) for each in moments])):
        assert counted(pa.table({"x": column}), domain) == {cell: expected.count(cell) for cell in expected}


DAYS = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), None, date(2024, 12, 31), date(2025, 1, 1)]
TABLES = {
    "list": lambda x, tmp: pa.table({"x": pa.array(x)}),
    "pandas objects": lambda x, tmp: pd.DataFrame({"x": pd.Series(x, dtype=object)}),
    "pandas times": lambda x, tmp: pd.DataFrame({"x": pd.to_datetime(pd.Series(x, dtype=object))}),
    "pandas text": lambda x, tmp: pd.DataFrame({"x": [None if each is None else f" {each}" for each in x]}),
    "pandas UTC": lambda x, tmp: pd.DataFrame({"x": pd.to_datetime(pd.Series(x, dtype=object), utc=True)}),
    "numpy": lambda x, tmp: np.array([(each,) for each in x], dtype=[("x", "datetime64[ns]")]),
    "polars": lambda x, tmp: pl.DataFrame({"x": x}),
    "arrow seconds": lambda x, tmp: pa.table({"x": pa.array(x).cast(pa.timestamp("s"))}),
    "csv": lambda x, tmp: written(tmp, x),
    "parquet": lambda x, tmp: parquet(tmp, x),
}


def written(folder, values):
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{each or ''},1\n" for each in values))
    return str(folder / "t.csv")


def parquet(folder, values):
    pq.write_table(pa.table({"x": values}), folder / "t.parquet")
    return str(folder / "t.parquet")


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table(kind, tmp_path):
    data = TABLES[kind](DAYS, tmp_path)
    month = {"start": "2024-01-01", "end": "2024-12-31", "step": "month"}
    assert counted(data, Dates(**month, nulls="cell")) == {0: 2, 1: 1, 11: 2, 12: 1}
    assert counted(data, Dates(**month, outside="null")) == {0: 1, 1: 1, 11: 1, 12: 3}
    with pytest.raises(DomainError, match="missing values in 'x'"):
        counted(data, YEAR)
    with pytest.raises(DomainError, match="outside the domain, or no dates"):
        counted(data, Dates(**month, outside="error", nulls="cell"))


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_nanosecond_before_midnight_is_of_the_day_before(zone, tmp_path):
    midnight = 1_704_067_200 * 10**9  # of the beginning of 2024
    moments = pa.array([midnight - 1, midnight, midnight + 999, -1, 0, None], pa.timestamp("ns", tz=zone))
    pq.write_table(pa.table({"x": moments}), tmp_path / "x.parquet")
    domain = JointDomain({"x": Dates("1969-01-01", "2025-01-01", "year", nulls="cell")})
    with open_table(str(tmp_path / "x.parquet")) as source:
        counts = count_cells(source, domain)
    assert dict(zip(counts.values.tolist(), counts.counts.tolist(), strict=True)) == {0: 1, 1: 1, 54: 1, 55: 2, 57: 1}


def test_what_holds_no_dates(tmp_path):
    for data in (pa.table({"x": [1, 2]}), pa.table({"x": ["a", "b"]}), pa.table({"x": [True, False]})):
        with pytest.raises(DomainError, match="declared to hold dates"):
            counted(data, YEAR)
    some = pa.table({"x": ["2024-01-01", "soon"]})
    with pytest.raises(DomainError, match="no dates, declared not to be there") as refused:
        counted(some, YEAR)
    assert "outside='null'" in str(refused.value)
    assert "other" not in str(refused.value)  # which dates cannot write
    assert counted(some, Dates("2024-01-01", "2024-12-31", "month", nulls="cell")) == {0: 1, 12: 1}
    extreme = pa.table({"x": pa.array([2**62, -(2**62)], pa.timestamp("us"))})
    assert counted(extreme, YEAR) == {0: 1, 11: 1}


def test_dates_beside_their_counts_in_an_array():
    days = np.array(["2024-01-09", "2024-01-31", "2024-03-01"], "datetime64[D]")
    counts = privurn.NoisyCounts(publish="counts")
    out = privurn.release(days, counts, domain=Dates("2024-01-01", "2024-03-31", "month"), epsilon=100)  # no noise by far
    assert out.data.tolist() == [[date(2024, 1, 1), 2], [date(2024, 2, 1), 0], [date(2024, 3, 1), 1]]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (Dates("2024-01-01", "2024-12-31", "month", nulls="cell"), date),
        (Dates("2024-01-01", "2024-01-02", "hour"), datetime.datetime),
    ],
    ids=["dates", "times"],
)
def test_records_are_dates_that_verify_and_are_read_back(domain, kind, file_format, tmp_path):
    rng = np.random.default_rng(1)
    moments = [datetime.datetime(2024, 1, 1) + timedelta(hours=int(each)) for each in rng.integers(0, 25, 300)]
    made = privurn.release(pa.table({"x": moments}), privurn.NoisyCounts(), domain=domain, epsilon=4)
    values = made.data["x"].to_pylist()
    assert {type(each) for each in values if each is not None} == {kind}
    saved = made.save(tmp_path / "out", file_format=file_format)
    assert privurn.verify(tmp_path / "out").reasons == ()
    counts = observe(tmp_path / "out").counts
    assert counts.tolist() == [
        *(sum(str(each) == domain.label(cell) for each in values) for cell in range(domain.n_values)),
        *([values.count(None)] if domain.null_cell is not None else []),
    ]
    cells = read_release(tmp_path / "out", saved.certificate)
    assert {int(cell): weight for cell, weight in zip(cells.cells, cells.weights, strict=True)} == {
        cell: count for cell, count in enumerate(counts.tolist()) if count
    }


def test_edited_dates_do_not_verify(tmp_path):
    from privurn.mechanisms.published import Cells

    content = Cells(JointDomain({"x": YEAR}).to_json())
    for text, right in [("2024-03-01", True), ("2024-03-02", False), ("2024-3-1", False), ("soon", False), (None, False)]:
        assert content.holds(pa.RecordBatch.from_pydict({"x": pa.array([text, "2024-01-01"])})) is right
    assert not content.holds(pa.RecordBatch.from_pydict({"x": pa.array([19723, 19723])}))


def test_the_default_release_and_what_is_inferred_from_it(tmp_path):
    """The tree's means are near the truth: 12 months, 2000 records, noise of a few records."""
    rng = np.random.default_rng(2)
    days = [date(2024, 1, 1) + timedelta(days=int(each)) for each in rng.integers(0, 120, 2000)]
    made = privurn.release(pl.DataFrame({"day": days}), domain={"day": YEAR}, epsilon=4, delta=1e-6)
    assert made.certificate["mechanism"]["name"] == "noisy-tree"
    assert made.data["day"].dtype == pl.Date
    assert len(made.data) == 2000
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").reasons == ()
    share = np.mean([day >= date(2024, 3, 1) for day in days])
    found = privurn.infer(tmp_path / "out", ask=["P(day>=2024-03-01)", "mean(day)", "P(day='2024-02-01')"])
    estimate = {each.name: each.mean for each in found.summary()}
    assert estimate["P(day>=2024-03-01)"] == pytest.approx(share, abs=0.05)
    truth = np.mean([(date(day.year, day.month, 1) - date(1970, 1, 1)).days for day in days])
    assert estimate["mean(day)"] == pytest.approx(truth, abs=5)


def test_a_column_of_a_whole_table(tmp_path):
    rng = np.random.default_rng(3)
    months = rng.integers(0, 12, 400)
    frame = pd.DataFrame(
        {"day": [date(2024, int(m) + 1, 15) for m in months], "warm": np.where((months > 3) & (months < 9), "y", "n")}
    )
    domain = {"day": YEAR, "warm": Categories(["y", "n"])}
    made = privurn.release(frame, privurn.Marginals(order=2), domain=domain, epsilon=4, delta=1e-6)
    assert len(made.data) == 400
    assert {day.day for day in made.data["day"]} == {1}
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").reasons == ()


def test_dates_count_as_days_since_1970():
    assert cell_values(Dates("1970-01-01", "1970-01-02", "12 hours", nulls="cell")).tolist()[:3] == [0.0, 0.5, 1.0]
    assert np.isnan(cell_values(Dates("1970-01-01", "1970-01-02", nulls="cell"))[-1])


# -- bins as intervals


def test_bins_are_published_as_the_user_chooses(tmp_path):
    ages = np.random.default_rng(0).integers(0, 99, 500).astype(float)
    expected = {"midpoint": {9.0, 41.5, 92.5}, "interval": {"[0, 18)", "[18, 65)", "[65, 120]"}}
    for within, values in expected.items():
        domain = Bins([0, 18, 65, 120], within=within)
        for recipe in (privurn.NoisyCounts(), privurn.Urn(records=50)):
            made = privurn.release(ages, recipe, domain=domain, epsilon=4, delta=0.0 if recipe.alias.startswith("p") else 1e-3)
            assert set(made.data.tolist()) == values
            folder = tmp_path / f"{within}-{recipe.alias}"
            made.save(folder)
            assert privurn.verify(folder).reasons == ()
            assert observe(folder).counts.sum() == len(made.data)
    counts = privurn.release(
        ages, privurn.NoisyCounts(publish="counts"), domain=Bins([0, 18, 65, 120], within="interval"), epsilon=9
    )
    assert counts.table.column_names == ["value", "count"]
    assert counts.table["value"].to_pylist() == ["[0, 18)", "[18, 65)", "[65, 120]"]
    with pytest.raises(DomainError, match="midpoint, uniform or interval"):
        Bins([0, 1], within="edges")


def test_the_default_release_of_intervals(tmp_path):
    ages = np.random.default_rng(0).integers(0, 99, 500).astype(float)
    made = privurn.release(ages, domain=Bins([0, 18, 65, 120], within="interval", nulls="cell"), epsilon=4)
    assert set(made.data.tolist()) <= {"[0, 18)", "[18, 65)", "[65, 120]", None}
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").reasons == ()


# -- lists, and names of columns


def test_a_list_is_a_column():
    made = privurn.release([1, 2.0, None, "2", 3] * 30, privurn.NoisyCounts(), domain=Grid(0, 3, 1, nulls="cell"), epsilon=5)
    assert isinstance(made.data, list)
    assert set(made.data) <= {0, 1, 2, 3, None}
    assert len(made.data) == 150
    truth = privurn.release([True, False, True] * 30, domain=Categories([True, False]), epsilon=5)
    assert set(truth.data) == {True, False}
    days = privurn.release([date(2024, 1, 1), date(2024, 5, 1)] * 30, privurn.NoisyCounts(), domain=YEAR, epsilon=20)
    assert date(2024, 5, 1) in days.data
    with pytest.raises(FormatError, match="one column of values"):
        privurn.release([[1, 2], [3, 4]], domain=Grid(0, 3, 1), epsilon=1)


def test_one_value_of_a_list_does_not_change_how_the_others_are_read():
    values = [1.0, 2.0, 1.0]
    for last in (2.0, "x", None, True, date(2024, 1, 1)):
        with open_table([*values, last]) as source:
            table = count_cells(source, JointDomain({"value": Categories(["1.0"], outside="null")}))
        assert dict(zip(table.values.tolist(), table.counts.tolist(), strict=True)) == {0: 2, 1: 2}


def test_a_column_that_is_not_there_is_shown_the_ones_that_are(tmp_path):
    (tmp_path / "t.csv").write_text("age,hours-per-week,sex\n39,40,Male\n50,13,Female\n")
    for asked in ("Hours", "hours_per_week", " age"):
        with pytest.raises(DomainError, match="The table has 'age', 'hours-per-week', 'sex'"):
            privurn.release(str(tmp_path / "t.csv"), domain={asked: Grid(0, 99, 1)}, epsilon=1)
    with pytest.raises(DomainError, match="The table has 'age'"):
        privurn.release(str(tmp_path / "t.csv"), domain={"age": Grid(0, 99, 1), "zzz": Grid(0, 99, 1)}, epsilon=1)
    (tmp_path / "bare.csv").write_text("39,Bob Smith,Male\n50,Ann Jones,Female\n")
    with pytest.raises(DomainError, match="first line") as refused:
        privurn.release(str(tmp_path / "bare.csv"), domain={"age": Grid(0, 99, 1)}, epsilon=1)
    assert "Bob" not in str(refused.value)
    with pytest.raises(DomainError, match="several columns") as refused:
        privurn.release(str(tmp_path / "bare.csv"), domain=Grid(0, 99, 1), epsilon=1)
    assert "Bob" not in str(refused.value)
    with pytest.raises(DomainError, match="The table has 'column_0', 'column_1'"):
        privurn.release(np.ones((9, 2)), domain=Grid(0, 99, 1), epsilon=1)


# -- files and the command line

FILE = """
age: {kind: grid, low: 0, high: 99, step: 1}
pay: {kind: bins, edges: [0, 1000, 5000], within: interval, outside: other}
day: {kind: dates, start: 2024-01-01, end: 2024-12-31, step: month, nulls: cell}
at: {kind: dates, start: 2024-01-01 06:00:00, end: 2024-01-01 18:00:00, step: 6 hours}
sex: {kind: categories, values: [f, m], ignore_case: true}
"""


def test_every_kind_of_domain_in_a_file(tmp_path):
    (tmp_path / "d.yaml").write_text(FILE)
    found = domain_from_file(tmp_path / "d.yaml")
    assert found.columns == {
        "age": Grid(0, 99, 1),
        "pay": Bins([0, 1000, 5000], within="interval", outside="other"),
        "day": Dates("2024-01-01", "2024-12-31", "month", nulls="cell"),
        "at": Dates("2024-01-01 06:00", "2024-01-01 18:00", "6 hours"),
        "sex": Categories(["f", "m"], ignore_case=True),
    }


def test_the_domains_that_the_documentation_shows():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "release.md").read_text()
    several, one = (yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    kinds = {each.kind for each in domain_from_json(several).columns.values()}
    assert kinds == {"grid", "bins", "dates", "categories"}
    assert domain_from_json(one) == Dates("2024-01-01", "2024-12-31", "week", nulls="cell")
    assert domain_from_json({"kind": "open-labels"}) == OpenLabels()


def test_on_the_command_line(privurn_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("day,age\n" + "".join(f"2024-{i % 12 + 1:02d}-09,{i % 90}\n" for i in range(120)))
    noisy = ["--mechanism", "perturbed-histogram", "--epsilon", 2]
    done = privurn_command("release", "t.csv", "--column", "day", "--dates", "2024-01-01,2024-12-31,month", *noisy, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "2024-06-01" in (tmp_path / "out" / "data.csv").read_text()
    done = privurn_command(
        "release",
        "t.csv",
        "--dates",
        "day=2024-01-01,2024-12-31,month",
        "--bins",
        "age=0,18,90",
        "--within",
        "interval",
        *noisy,
        "-o",
        "two",
    )
    assert done.returncode == 0, done.stderr
    assert "[18, 90]" in (tmp_path / "two" / "data.csv").read_text()
    assert privurn_command("verify", "two").returncode == 0
    refused = privurn_command("release", "t.csv", "--column", "day", "--dates", "2024-01-01:2024-12-31", *noisy, "-o", "no")
    assert refused.returncode == 2
    assert "--dates 2020-01-01,2023-12-31,month" in refused.stderr
    plan = json.loads(
        privurn_command("plan", "--n", 500, "--dates", "2024-01-01,2024-12-31,month", "--epsilon", 1, "--json").stdout
    )
    assert (plan["cells"], plan["options"][0]["mechanism"]) == (12, "noisy-tree")
