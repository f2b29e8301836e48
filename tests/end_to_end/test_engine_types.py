"""Types of columns that engines store differently, or not at all, are counted alike or refused in words."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from hostile_table import cells, labels, untyped
from privurn.domain import Bins, Categories, Dates, Grid
from privurn.errors import DomainError, FormatError
from privurn.tables import open_table, spark_files
from spark_session import asked, local_session, spark_frame

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

OTHER = {"outside": "other", "nulls": "cell"}
STEPS = [1_711_848_600 * 10**9 + 999, 1_704_067_200 * 10**9 - 1, -1, None]
RARE = {
    "nanoseconds": pa.array(STEPS, pa.timestamp("ns")),
    "instants in nanoseconds": pa.array(STEPS, pa.timestamp("ns", tz="UTC")),
    "times of day": pa.array([datetime.time(1, 30), datetime.time(23, 59, 59, 500_000), None], pa.time64("us")),
    "floats of 16 bits": pa.array([np.float16(0.1), np.float16(2.5), None], pa.float16()),
    "decimals of 70 digits": pa.array([Decimal("0.5"), Decimal("1e30"), None], pa.decimal256(70, 38)),
}
"""What Spark does not read of Parquet files."""
KEPT = {
    "beyond 63 bits": pa.array([2**64 - 1, 2**64 - 2**11, 2**63, 2**53 + 1, 3, 0, None], pa.uint64()),
    "256 bits for 38 digits": pa.array([Decimal("0.1"), Decimal("2.5"), None], pa.decimal256(38, 10)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", KEPT)
def test_numbers_of_parquet_files_that_spark_stores_as_others_are_counted_alike(tmp_path, name):
    local_session()
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": KEPT[name]}), path)
    there = spark_files.SparkFiles(path, **asked())
    for domain in (
        Grid(0, 2**64, 2**60, **OTHER),
        Bins([0, 0.1, 2.5, 2**53, 2**53 + 2, 2**63, 2**64], **OTHER),
        Categories([2**64 - 1, 2**63, 2**53, 3, "0.1", "2.5"], **OTHER),
        Dates("2024-01-01", "2025-01-01", "month"),
    ):
        assert cells(there, {"x": domain}) == cells(path, {"x": domain})
    assert labels(there, "x") == labels(path, "x")


@pytest.mark.long
@pytest.mark.parametrize("name", RARE)
def test_columns_that_spark_does_not_read_are_named_before_anything_is_paid(tmp_path, name):
    local_session()
    path, ledger = str(tmp_path / "x.parquet"), tmp_path / "ledger"
    pq.write_table(pa.table({"a column": RARE[name], "other": pa.array([1] * len(RARE[name]))}), path)
    assert sum(labels(path, "a column")[1]) == len(RARE[name])
    with pytest.raises(FormatError, match=r"of 'a column'\.\n  Leave Spark out, or write times in microseconds"):
        privurn.release(spark_files.SparkFiles(path, **asked()), domain={"other": Grid(0, 1, 1)}, epsilon=1, ledger=ledger)
    assert not ledger.exists()


@pytest.mark.long
def test_frames_of_times_and_of_collated_text_are_counted_alike():
    session = local_session()
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    words = ["north", "North", "NORTH ", "süd", "SÜD", None]
    times = RARE["times of day"].to_pylist() * 2
    table = pa.table(
        {"word": words, "time": pa.array(times, pa.time64("us")), "step": pa.array([*STEPS, *STEPS[:2]], pa.timestamp("ns"))}
    )
    there = spark_frame(table).selectExpr("word COLLATE UTF8_LCASE AS word", "time", "step")
    assert "collate" in there.schema["word"].simpleString()
    domain = {
        "word": Categories(["north", "süd"], **OTHER),
        "time": Categories(["01:30:00", "23:59:59.5"], **OTHER),
        "step": Dates("1969-12-01", "2024-12-31", "month", nulls="cell"),
    }
    here = untyped(table)
    found = cells(here, domain)
    assert len(found[0]) == 6
    assert cells(there, domain) == found
    assert [labels(there, each) for each in ("word", "time")] == [labels(here, each) for each in ("word", "time")]
    for refused in (Grid(0, 9, 1), Dates("2024-01-01", "2025-01-01", "month")):
        assert cells(there, {"time": refused}) == cells(here, {"time": refused})


DAYS = (
    "2024-01-31",
    "2024-1-3",
    "2024/2/29",
    "2023-02-29",
    "0001-01-01",
    "9999-12-31",
    "2024-04-31",
    "2024-00-10",
    "2000/02/29",
)
CLOCKS = (
    "",
    "T10:00",
    " 9:5",
    " 23:59:59.9999999",
    "T00:00:00.000001",
    " 7:08:9",
    " 24:00",
    "T23:60",
    " 10:00:60",
    " 10:00:00.",
)
OFFSETS = (
    *("", "Z", " UTC", "+02", "-0230", "+15:59", "-15:59", "+16", "+1", "-00:30", " Z", "+02:30:15", " +02", "+14:60"),
    *("+00:53:28", "-15:59:59", "+16:00:00", "-00:00:01", "+00:00:60", "+0053:28", "+005328", "+02:3", "z", "GMT"),
)


def moments(data):
    """Microseconds that each text stands for."""
    with open_table(data) as source:
        read = source.dialect.moment(source.value("x"), source.types["x"])
        found = source.connection.sql(f"SELECT {source.reference('x')} AS x, {read} AS moment FROM t").to_arrow_table()
    return dict(zip(found["x"].to_pylist(), found["moment"].to_pylist(), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_text_is_the_same_date_or_none_in_every_session(tmp_path, ansi):
    session, path = local_session(), str(tmp_path / "x.parquet")
    written = pa.table({"x": ["".join(each) for each in itertools.product(DAYS, CLOCKS, OFFSETS)]})
    pq.write_table(written, path)
    domain = {"x": Dates("2024-01-01", "2024-12-31", "minute", outside="null", nulls="cell")}
    here = cells(untyped(written), domain)
    assert len(here[0]) > 80
    exact = moments(untyped(written))
    assert sum(each is not None for each in exact.values()) > 300
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    before = {name: session.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.timestampType")}
    try:
        session.conf.set("spark.sql.ansi.enabled", ansi)
        for kind in ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
            session.conf.set("spark.sql.timestampType", kind)
            assert cells(spark_frame(written), domain) == here
            assert moments(spark_frame(written)) == exact
            assert cells(spark_files.SparkFiles(path, **asked()), domain) == cells(path, domain) == here
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


NOTHING = "nothing"
"""A column without a type: all of it is missing."""
SECONDS_OF_OLD = -719_529 * 86_400
EDGES = {
    NOTHING: pa.nulls(6),
    "day": pa.array([2**31 - 1, -(2**31), -(2**31) + 1, -719_529, 106_751_992, None], pa.int32()).cast(pa.date32()),
    "local": pa.array([2**63 - 1, -(2**63), 1 - 2**63, 2**63 - 2, 10**6 * SECONDS_OF_OLD, None], pa.timestamp("us")),
    "instant": pa.array([1 - 2**63, 2**63 - 1, -(2**63), 10**6 * SECONDS_OF_OLD, -1, None], pa.timestamp("us", tz="UTC")),
}
"""The last moments that 64 bits hold, which DuckDB takes for infinities, the first ones, and days before the year 1."""
OF_EDGES = {
    "as moments": {name: Dates("1950-01-01", "2050-01-01", "year", nulls="cell", outside="clamp") for name in list(EDGES)[1:]},
    "as text": {
        NOTHING: Categories(["a"], **OTHER),
        "day": Categories(["0002-12-31 (BC)", "5877642-06-23 (BC)", "infinity"], **OTHER),
        "local": Categories(["0002-12-31 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "infinity"], **OTHER),
        "instant": Categories(["0002-12-31 (BC) 00:00:00+00", "1969-12-31 23:59:59.999999+00"], **OTHER),
    },
}


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """Files with such columns."""
    path = tmp_path_factory.mktemp("edges") / "x.parquet"
    pq.write_table(pa.table(EDGES), path)
    return str(path)


@pytest.mark.parametrize("kind", OF_EDGES)
def test_the_first_and_last_moments_are_counted_alike_and_none_fails(edges, kind):
    session = local_session()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    found = cells(edges, OF_EDGES[kind])
    assert sum(found[1]) == 6
    assert len(found[0]) > 4
    assert cells(spark_files.SparkFiles(edges, **asked()), OF_EDGES[kind]) == found


@pytest.mark.long
def test_labels_of_first_and_last_moments_are_written_alike(edges):
    local_session()
    for name in EDGES:
        assert labels(spark_files.SparkFiles(edges, **asked()), name) == labels(edges, name)


@pytest.mark.long
def test_a_column_that_holds_nothing_is_missing_in_files_and_frames(edges):
    there = local_session().sql("SELECT NULL AS nothing, id FROM range(6)")
    frame = pa.table({NOTHING: EDGES[NOTHING], "id": range(6)})
    for domain in (
        Grid(0, 9, 1, **OTHER),
        Categories(["a"], **OTHER),
        Grid(0, 9, 1),
        Dates("2024-01-01", "2025-01-01", "month"),
    ):
        found = cells(frame, {NOTHING: domain})
        for each in (edges, spark_files.SparkFiles(edges, **asked()), there):
            assert cells(each, {NOTHING: domain}) == found
    assert cells(frame, {NOTHING: Grid(0, 9, 1, **OTHER)}) == ([11], [6])


@pytest.mark.long
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_old_timestamps_of_96_bits_are_instants(tmp_path, zone):
    local_session().conf.set("spark.sql.session.timeZone", zone)
    path, moments = str(tmp_path / "x.parquet"), [*STEPS, -(10**9) * 86_400 * 36_600]
    pq.write_table(pa.table({"x": pa.array(moments, pa.timestamp("ns"))}), path, use_deprecated_int96_timestamps=True)
    there = spark_files.SparkFiles(path, **asked())
    for domain in (
        Categories(["2024-03-31 01:30:00+00", "1869-10-17 00:00:00+00"], **OTHER),
        Dates("1850-01-01", "2024-12-31", "day", nulls="cell"),
    ):
        found = cells(path, {"x": domain})
        assert len(found[0]) > 3
        assert cells(there, {"x": domain}) == found
    assert labels(there, "x") == labels(path, "x")
    assert "2024-03-31 01:30:00+00" in labels(path, "x")[0]


NESTED = {
    "binary": pa.array([b"a", b"\x00\xff", None], pa.binary()),
    "lists": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
    "structures": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", NESTED)
def test_binary_and_nested_columns_are_refused_alike(name):
    local_session()
    table = pa.table({"x": NESTED[name]})
    for domain in (Categories(["a"], **OTHER), Grid(0, 9, 1, **OTHER), Dates("2024-01-01", "2025-01-01", "month")):
        found = cells(table, {"x": domain})
        assert issubclass(found[0], DomainError)
        assert cells(spark_frame(table), {"x": domain}) == found
    assert labels(spark_frame(table), "x") == labels(table, "x")


LAYOUTS = {
    "capitals": ([{"x": [1, 2], "X": [3, 4]}], "differ in capitals only"),
    "types": ([{"x": [1, 2]}, {"x": ["a", "b"]}], "'x' in different types"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_that_spark_does_not_read_are_refused_in_words(tmp_path, name):
    local_session()
    tables, said = LAYOUTS[name]
    for i, table in enumerate(tables):
        pq.write_table(pa.table(table), tmp_path / f"{i}.parquet")
    with pytest.raises(FormatError, match=said):
        cells(spark_files.SparkFiles(str(tmp_path / "*.parquet"), **asked()), {"x": Grid(0, 9, 1, **OTHER)})
