"""Types of columns that engines store differently, or not at all, are counted alike or refused in words."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from hostile_table import cells, labels, untyped
from privurn.domain import Bins, Categories, Dates, Grid
from privurn.errors import FormatError
from privurn.tables import spark_files
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
