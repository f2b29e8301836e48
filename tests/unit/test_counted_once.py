"""Every record is counted once, whatever columns and categories are called; plain Python counts are the oracle."""

import math
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.counts import CountTable
from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import DomainError, FormatError
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.tables import count_cells, count_labels, open_table
from privurn.tables.columns import read_numbers
from privurn.tables.csv_header import read_header
from privurn.tables.numeric import numeric_batches
from privurn.tables.rows import read_cells
from privurn.tables.spark import SparkEngine

NAMES = [
    *["joint_cell", "n", "label", "cell", "t", "readable_0", "present_0", "c0", "c1", "k0", "key", "categories_0", "stored"],
    *["number", "present", "place", "rowid", "file_row_number", "filename", "r0", "p0", "x", "X", "a.b", 'a"b', "a'b", "a b"],
    *["column_0", "column_1", "column_0_", "", " ", " x", "x ", "a\nb", "a\r\nb", "a;b;c", "a,b", "=1+1", "'=1+1", "-5", "@x"],
    *["é", "e\u0301", "ß", "ẞ", "İ", "i", "I", "SELECT", "*", "count", "NULL", "t.c0", "c0 FROM t --", "x\0y", "\ud7ff"],
]
LABELS = ["=1+1", "'=1", "-5", "+a", "@x", "a\nb", 'q"r', "north", "\tx", "-"]
ROWS = 12


def csv_file(table, folder):
    path = folder / "t.csv"
    pc.write_csv(table, path)
    return str(path)


def parquet_file(table, folder):
    path = folder / "t.parquet"
    pq.write_table(table, path)
    return str(path)


FRAMES = {
    "arrow": lambda table, folder: table,
    "record batch": lambda table, folder: table.to_batches()[0],
    "pandas": lambda table, folder: table.to_pandas(),
    "polars": lambda table, folder: pl.DataFrame(dict(zip(table.column_names, table.to_pydict().values(), strict=True))),
    "duckdb": lambda table, folder: duckdb.from_arrow(table),
    "csv": csv_file,
    "parquet": parquet_file,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("frames")


def as_dict(table):
    return dict(zip(table.values.tolist(), table.counts.tolist(), strict=True))


def numbers_named(names):
    """Columns of different numbers, so that reading another column shows."""
    return {name: [(i * 5 + row * (i + 1)) % 7 for row in range(ROWS)] for i, name in enumerate(names)}


def can_carry(kind, names):
    """Where the frame itself cannot hold such names, there is nothing to read."""
    if kind == "csv":  # files end lines and text where these do
        return not any("\r" in name or "\0" in name for name in names)
    if kind == "duckdb":  # a relation has renamed them itself
        return len({name.lower() for name in names}) == len(names) and "" not in names and not any("\0" in n for n in names)
    return kind not in ("parquet", "polars") or not any("\0" in name for name in names)


def check_names(kind, names, one, two, folder):
    """Two columns jointly and the labels of one, counted in a frame of the kind and in plain Python."""
    columns = numbers_named(names)

    def opened():
        return open_table(FRAMES[kind](pa.table(list(columns.values()), names=names), folder))

    with opened() as source:
        assert list(source.types) == names
        joint = JointDomain({one: Grid(0, 6, 1), two: Categories([0, 1, 2, 3], outside="other")})
        counted = as_dict(count_cells(source, joint))
    assert counted == Counter(a + 7 * min(b, 4) for a, b in zip(columns[one], columns[two], strict=True))
    with opened() as source:
        assert as_dict(count_labels(source, one)) == Counter(map(str, columns[one]))


some_names = st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True)


@settings(max_examples=50)
@given(kind=st.sampled_from(list(FRAMES)), names=some_names, turn=st.integers(0, 3))
def test_columns_may_be_called_anything(kind, names, turn, folder):
    if can_carry(kind, names):
        check_names(kind, names, names[turn % len(names)], names[(turn + 1) % len(names)], folder)


@pytest.mark.long
@settings(max_examples=500)
@given(kind=st.sampled_from(list(FRAMES)), names=some_names, turn=st.integers(0, 3))
def test_many_columns_may_be_called_anything(kind, names, turn, folder):
    if can_carry(kind, names):
        check_names(kind, names, names[turn % len(names)], names[(turn + 1) % len(names)], folder)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("names", [("number", "present"), ("place", "cell_0"), ("X", "x")])
def test_records_come_in_order_whatever_columns_are_called(kind, names, folder):
    if not can_carry(kind, names):
        return
    columns = numbers_named(names)

    def opened():
        return open_table(FRAMES[kind](pa.table(columns), folder))

    with opened() as source:
        assert read_numbers(source, names[1]).tolist() == columns[names[1]]
    with opened() as source:
        assert np.concatenate(list(numeric_batches(source, names))).T.tolist() == [columns[name] for name in names]
    with opened() as source:
        cells = read_cells(source, JointDomain({name: Categories(range(7), outside="null") for name in names}))
    assert cells.tolist() == [a + 8 * b for a, b in zip(*columns.values(), strict=True)]


def test_arrays_with_named_fields():
    data = np.array([(1, 5), (1, 6), (0, 6)], dtype=[("n", int), ("N", int)])
    with open_table(data) as source:
        assert as_dict(count_cells(source, JointDomain({"N": Grid(5, 6, 1)}))) == {0: 1, 1: 2}


def test_a_column_called_as_ours_gives_the_same_release(tmp_path):
    """A raw value must never stand in for the cell: the urn would be without prior for it."""
    records = [3, 90, 90, 4, 5] * 8
    for name in ("joint_cell", "cell", "n"):
        frame = pa.table({name: records, "label": records})
        out = [
            privurn.release(
                each, privurn.Urn(), domain={column: Grid(0, 10, 1)}, epsilon=1, delta=1e-3, entropy=SeededEntropy(3)
            ).data
            for each, column in ((frame, name), (frame.rename_columns(["a", "b"]), "a"))
        ]
        assert out[0].column(0).to_pylist() == out[1].column(0).to_pylist()
    (tmp_path / "t.csv").write_text("city,label\n" + "u,1\n" * 40 + "v,2\n" * 40)
    out = privurn.release(str(tmp_path / "t.csv"), domain={"city": privurn.OpenLabels()}, epsilon=8, delta=1e-3)
    assert set(out.certificate["domain"]["labels"]) == {"u", "v"}


def test_folders_are_no_columns(tmp_path):
    """Some readers take /pay=5/ in a path for a column; the records' own values count."""
    home = tmp_path / "pay=5" / "c0=6"
    home.mkdir(parents=True)
    table = pa.table({"pay": [1, 2, 2], "other": [0, 0, 1]})
    for file in (csv_file(table, home), parquet_file(table, home)):
        with open_table(file) as source:
            assert list(source.types) == ["pay", "other"]
            assert as_dict(count_cells(source, JointDomain({"pay": Grid(0, 9, 1)}))) == {1: 1, 2: 2}


def test_names_that_a_frame_cannot_hand_over_are_refused():
    with pytest.raises(FormatError, match="null character"), open_table(pl.DataFrame({"x\0y": [1]})):
        pass


def test_names_that_cannot_be_told_apart_are_refused(tmp_path):
    for i, name in enumerate(["x", "X"]):
        pq.write_table(pa.table({name: [i, i]}), tmp_path / f"{i}.parquet")
    with pytest.raises(FormatError, match="capitals only"), open_table(str(tmp_path / "*.parquet")):
        pass
    for frame in (pa.table([[1], [2]], names=["x", "x"]), pa.table({}), duckdb.sql("SELECT 1 AS x, 2 AS x")):
        with pytest.raises(FormatError, match=r"same name|no columns"), open_table(frame):
            pass


@pytest.mark.parametrize(
    ("text", "names", "delimiter"),
    [
        ("a,b\n1,2\n", ("a", "b"), ","),
        ('"a,b,c";d\n1;2\n', ("a,b,c", "d"), ";"),
        ('"a;b;c","d"\n1,2\n', ("a;b;c", "d"), ","),
        ('"a\nb",c\n1,2\n', ("a\nb", "c"), ","),
        ('" a","b ", c \r\n1,2,3\r\n', (" a", "b ", "c"), ","),
        ('height ("),"say ""x"""\n1,2\n', ('height (")', 'say "x"'), ","),
        ("column_1,,\n1,2,3\n", ("column_1", "column_1_", "column_2"), ","),
        ('"",b\n1,2\n', ("", "b"), ","),
        ('\ufeff"a",b\n1,2\n', ("a", "b"), ","),
        ("a\rb\n", ("a",), ","),
    ],
)
def test_header_lines(text, names, delimiter, tmp_path):
    (tmp_path / "t.csv").write_bytes(text.encode())
    header = read_header([str(tmp_path / "t.csv")])
    assert (header.names, header.delimiter) == (names, delimiter)


def test_a_quote_left_open_does_not_make_records_a_name(tmp_path):
    (tmp_path / "t.csv").write_text('x,"y\n' + "1,424242\n" * 10)
    with pytest.raises(FormatError, match="quote that is not closed") as caught, open_table(str(tmp_path / "t.csv")):
        pass
    assert "424242" not in str(caught.value)


SPELLINGS = [
    *["1", "1.0", "01", "+1", "1e0", "0", "-0", "0.0", "0.1", "0.10", "2.5", "-3", "255", "300", "1e3", "1000", "16777217"],
    *["9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e40"],
    *[
        "170141183460469231731687303715884105727",
        "1e300",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1e400",
        "1_000",
        " 1",
        "1 ",
        "\u0661",
    ],
    *["0x10", "true", "True", "a", "1,5", "é", "e\u0301", True, False, 1, 2.5, 1000, 0.1, -3],
]
PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
STORED = {
    "DOUBLE": ([0.0, -0.0, 0.1, 1.0, 2.5, math.nan, math.inf, 1000.0, 2.0**53, 1e300, None], pa.float64(), lambda f: float(f)),
    "FLOAT": ([0.0, 0.1, 1.0, 2.5, math.nan, math.inf, 2.0**24, None], pa.float32(), lambda f: float(np.float32(float(f)))),
    "UTINYINT": ([0, 1, 255, None], pa.uint8(), lambda f: f),
    "BIGINT": ([0, 1, -3, 255, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None], pa.int64(), lambda f: f),
    "UBIGINT": ([0, 1, 2**53 + 1, 2**64 - 1, None], pa.uint64(), lambda f: f),
    "DECIMAL(5,2)": ([Decimal("0.10"), Decimal("2.50"), Decimal("-3.00"), Decimal("300.00"), None], pa.decimal128(5, 2), None),
    "DECIMAL(38,0)": ([Decimal(1), Decimal(2**64 - 1), Decimal(10**37), None], pa.decimal128(38, 0), None),
    "DECIMAL(1,1)": ([Decimal("0.1"), Decimal("0.0"), None], pa.decimal128(1, 1), None),
    "BOOLEAN": ([True, False, None], pa.bool_(), None),
    "VARCHAR": (["1", "1.0", "01", "nan", "NaN", "true", "True", "", " 1", "é", "e\u0301", "a\0", None], pa.string(), None),
}


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def number_of(value):
    """A plain number exactly, None for text, "refused" for what is only nearly a number."""
    if not isinstance(value, bool) and PLAIN.fullmatch(str(value)):
        found = Fraction(Decimal(str(value)))
        return found if found < 10**301 else "refused"
    try:
        float(str(value))
    except ValueError:
        return None
    return "refused"


def expected_cells(records, values, stored):
    """Cell of each record by plain comparison, or None where the categories must be refused."""
    other, null = len(values), len(values) + 1
    if stored in ("VARCHAR", "BOOLEAN"):
        keys = [text_of(value).strip(" ") for value in values]
        texts = [None if r is None else text_of(r).strip(" ") or None for r in records]
        return [null if text is None else keys.index(text) if text in keys else other for text in texts]
    numbers = [number_of(value) for value in values]
    if "refused" in numbers:
        return None
    hold = STORED[stored][2] or (lambda f: f)
    with np.errstate(over="ignore"):
        keys = [None if f is None else hold(f) for f in numbers]
    finite = [key for key in keys if key is not None and not math.isinf(key)]
    plain = [f for f in numbers if f is not None]
    if len(set(finite)) < len(finite) or len(set(plain)) < len(plain):
        return None

    def cell(record):
        if record is None or record != record:  # noqa: PLR0124 (NaN)
            return null
        found = [i for i, key in enumerate(keys) if key in finite and key == record]
        return found[0] if found else other

    return [cell(record) for record in records]


def check_spellings(stored, values, picks):
    """Counts and cells of records in a column of the stored type, and in plain Python."""
    pool, arrow, _ = STORED[stored]
    table = pa.table({"x": pa.array([pool[pick % len(pool)] for pick in picks], arrow)})
    domain = JointDomain({"x": Categories(values, nulls="cell", outside="other")})
    expected = expected_cells(table["x"].to_pylist(), values, stored)
    with open_table(table) as source:
        assert source.types["x"] == stored
        if expected is None:
            with pytest.raises(DomainError, match=r"same number|not plain and finite"):
                count_cells(source, domain)
            return
        assert as_dict(count_cells(source, domain)) == Counter(expected)
        assert read_cells(source, domain).tolist() == expected


spellings = {
    "stored": st.sampled_from(sorted(STORED)),
    "values": st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=4, unique_by=lambda each: text_of(each).strip(" ")),
    "picks": st.lists(st.integers(0, 10**6), min_size=2, max_size=25),
}


@settings(max_examples=80)
@given(**spellings)
def test_categories_may_be_spelled_in_any_way(stored, values, picks):
    check_spellings(stored, values, picks)


@pytest.mark.long
@settings(max_examples=1000)
@given(**spellings)
def test_categories_may_be_spelled_in_very_many_ways(stored, values, picks):
    check_spellings(stored, values, picks)


def test_huge_integers_are_told_apart():
    big = [2**63, 2**63 + 1, 5]
    values = ", ".join(f"({each}::HUGEINT)" for each in big)
    source = duckdb.sql(f"SELECT * FROM (VALUES {values}) AS v(x)")
    with open_table(source) as opened:
        assert as_dict(count_cells(opened, JointDomain({"x": Categories([2**63, 7], outside="other")}))) == {0: 1, 2: 2}


@pytest.mark.parametrize("frame", ["pandas", "polars", "arrow", "parquet"])
def test_spellings_of_nan_are_refused_before_payment(frame, tmp_path, folder):
    table = pa.table({"x": [math.nan] * 50 + [1.0] * 100})
    data = FRAMES[frame](table, folder)
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=10.0, delta=0.1)
    listed = Categories(["nan", "NaN", "NAN", "1"], outside="other")
    for call in (
        lambda: privurn.release(data, domain={"x": listed}, epsilon=1, delta=1e-3, ledger=ledger),
        lambda: privurn.privatise(data, privurn.RandomisedResponse(), domain={"x": listed}, epsilon=1, ledger=ledger),
    ):
        with pytest.raises(DomainError, match="not plain and finite"):
            call()
    assert not ledger.entries()
    made = privurn.privatise(data, privurn.RandomisedResponse(), domain={"x": Categories(["1", "2"], nulls="cell")}, epsilon=1)
    assert (made.certificate["n"], len(made.data)) == (150, 150)


@pytest.mark.parametrize(
    "values", [["1", "1.0"], ["1", "01"], ["0", "-0"], [1, "1.0"], ["9007199254740992", "9007199254740993"]]
)
def test_categories_that_are_one_number_are_refused(values):
    with (
        open_table(pa.table({"x": [1.0, 2.0]})) as source,
        pytest.raises(DomainError, match="are the same number") as caught,
    ):
        count_cells(source, JointDomain({"x": Categories(values, outside="other")}))
    assert "List every number once" in str(caught.value)


def test_a_count_table_checks_itself():
    five = np.array([2, 3])
    with pytest.raises(DomainError, match="each distinct value"):
        CountTable(np.array([1, 1]), five)
    with pytest.raises(DomainError, match="each distinct value"):
        CountTable(np.array(["a", "a"], dtype=object), five)
    with pytest.raises(DomainError, match="each distinct value"):
        CountTable.from_cells(np.array([4, 4]), five)
    with pytest.raises(DomainError, match="positive whole counts"):
        CountTable.from_cells(np.array([1, 2]), np.array([3, -1]))
    with pytest.raises(DomainError, match="64 bits"):
        CountTable(np.array([1, 2]), np.array([2**62, 2**62]))
    with pytest.raises(DomainError, match="every record of the table once") as caught:
        CountTable(np.array([1, 2]), five, rows=6)
    assert not re.search(r"\d", str(caught.value))
    assert CountTable(np.array([1, 2]), np.array([2**62, 2**62 - 1]), rows=2**63 - 1).n == 2**63 - 1
    assert CountTable(np.array(["a", None], dtype=object), five, rows=5).n == 5


@pytest.mark.parametrize("kind", FRAMES)
def test_what_was_counted_is_the_tables_own_number_of_rows(kind, folder):
    """A join that doubles records, planted by registering the categories twice over, is noticed by every reader."""
    frame = FRAMES[kind](pa.table({"x": ["a", "b", "b"], "y": [1, 2, 3]}), folder)
    domain = JointDomain({"x": Categories(["a", "b"], outside="other")})
    with open_table(frame) as source:
        count_cells(source, domain)
        assert source.rows() == 3

    def doubled(source):
        register = source.connection.register

        class Doubling:
            def register(self, name, table):
                register(name, pa.concat_tables([table, table]))

            def __getattr__(self, name):
                return getattr(source.connection, name)

        return replace(source, connection=Doubling())

    for read in (count_cells, read_cells):
        frame = FRAMES[kind](pa.table({"x": ["a", "b", "b"], "y": [1, 2, 3]}), folder)
        with open_table(frame) as source, pytest.raises(DomainError, match="every record of the table once"):
            read(doubled(source), domain)


def test_spark_is_given_no_list_that_would_count_a_record_twice():
    """It reads a frame once, so that nothing else would notice."""
    twice = pa.table({"key": ["a", "b", "a"], "cell": [0, 1, 0]})
    with pytest.raises(DomainError, match="every record of the table once"):
        SparkEngine(session=None).register("categories_0", twice)


@settings(max_examples=15)
@given(
    names=st.lists(st.sampled_from([name for name in NAMES if "\0" not in name]), min_size=2, max_size=3, unique=True),
    file_format=st.sampled_from(["csv", "parquet"]),
    labels=st.lists(
        st.sampled_from(["=1+1", "'=1", "-5", "+a", "@x", "a\nb", 'q"r', "north", "\tx", "-"]), min_size=2, unique=True
    ),
)
def test_releases_read_back_as_they_were(names, file_format, labels, tmp_path_factory):
    """Whatever columns and labels are called, a saved folder verifies and says what the release said."""
    if file_format == "csv" and any("\r" in name for name in names):
        return
    home = tmp_path_factory.mktemp("release")
    table = pa.table([[labels[i % len(labels)] for i in range(60)], list(range(60)), [1] * 60][: len(names)], names=names)
    domain = {names[0]: Categories(labels, outside="other"), names[1]: Bins([0, 30, 60])}
    made = privurn.release(table, domain=domain, epsilon=1, delta=1e-3)
    saved = made.save(home / "out", file_format=file_format)
    assert privurn.verify(home / "out").valid
    texts = (*names[:2], *saved.data[names[0]].to_pylist())
    runs = file_format == "csv" and any(re.match(r"'*[=+\-@\t]", text) and text.lstrip("'") != "-5" for text in texts)
    assert any("apostrophe" in remark for remark in saved.remarks) == runs
    from privurn.inference.counts.released import observe

    before, after = observe(made), observe(home / "out")
    assert before.counts.tolist() == after.counts.tolist()
    assert after.counts.sum() == len(made.data)


def test_other_frames_are_counted_too(folder):
    values = ["1", "2", "2", "x"]
    domain = JointDomain({"value": Categories(["1", "2"], outside="other")})
    for frame in (
        np.array(values),
        np.array(values, dtype=object),
        pd.Series(values, name="value"),
        pl.Series("value", values),
    ):
        with open_table(frame) as source:
            assert as_dict(count_cells(source, domain)) == {0: 1, 1: 2, 2: 1}


def test_lists_and_identifiers_are_no_numbers():
    for frame in (pa.table({"x": [[1.0], [2.0]]}), duckdb.sql("SELECT union_value(num := 2) AS x FROM range(3)")):
        with open_table(frame) as source, pytest.raises(DomainError, match="holds text"):
            count_cells(source, JointDomain({"x": Grid(0, 1, 1)}))


def test_releases_of_truth_values_with_others_are_read_back(tmp_path):
    frame = pa.table({"x": [True] * 70 + [False] * 30})
    made = privurn.release(
        frame, domain=Categories([True, False], outside="other"), epsilon=4, delta=1e-3, entropy=SeededEntropy(1)
    )
    assert set(made.data["x"].to_pylist()) <= {"true", "false", "other"}
    made.save(tmp_path / "out")
    from privurn.reports.html.released import read_release

    cells = read_release(tmp_path / "out", made.save(tmp_path / "again").certificate)
    assert cells.weights[cells.cells == 0].sum() == made.data["x"].to_pylist().count("true")


@pytest.mark.parametrize("statistics", [True, False])
def test_a_number_that_is_none_counts_alike_in_every_file(tmp_path, statistics):
    """Whatever a file says of its columns: a NaN's cell may not depend on the other records."""
    numbers = [1.0, math.nan, 2.0, math.nan, math.inf]
    table = pa.table({"x": numbers, "y": ["a"] * 5})
    pq.write_table(table, tmp_path / "t.parquet", write_statistics=statistics)
    for outside, expected in (("clamp", {1: 1, 2: 1, 4: 1, 5: 2}), ("other", {1: 1, 2: 1, 5: 1, 6: 2})):
        domain = JointDomain({"x": Grid(0, 4, 1, outside=outside, nulls="cell")})
        for data in (table, str(tmp_path / "t.parquet")):
            with open_table(data) as source:
                found = count_cells(source, domain)
            assert dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == expected
