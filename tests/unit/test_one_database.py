"""DuckDB's one database for a process: what it gives up on is not used again, and moments that it fails on do not end it."""

from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile_table import cells, labels
from privurn.domain import Categories, Dates
from privurn.tables import database

FIRST, LAST = -(2**63), 2**63 - 1
MOMENTS = pa.array([FIRST, FIRST + 1, LAST, LAST - 1, 0, None], pa.int64())
"""DuckDB takes the second and the third for infinities, and fails when it writes the first."""


class GivenUp:
    """A database after a fatal error."""

    def cursor(self):
        raise duckdb.FatalException("database has been invalidated because of a previous fatal error")


def test_a_database_that_was_given_up_is_not_used_again(monkeypatch):
    made = [GivenUp(), duckdb.connect()]
    monkeypatch.setattr(database, "_database", cache(lambda process: made.pop(0)))
    assert database.connect().sql("SELECT 1").fetchall() == [(1,)]
    assert made == []


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_first_and_last_moments_end_no_count(tmp_path, zone):
    table, path = pa.table({"x": MOMENTS.cast(pa.timestamp("us", zone))}), tmp_path / "x.parquet"
    pq.write_table(table, path)
    ending = "" if zone is None else "+00"
    listed = Categories([f"1970-01-01 00:00:00{ending}", "infinity"], outside="other", nulls="cell")
    for each in (table, str(path)):  # of files DuckDB casts all distinct values at once
        assert cells(each, {"x": listed}) == ([0, 2, 3], [1, 4, 1])
        assert labels(each, "x")[1] == [1, 1, 4]
        assert cells(each, {"x": Dates("1960-01-01", "1980-01-01", "year", nulls="cell")})[1] == [1, 1, 1, 3]


def test_old_timestamps_are_instants_and_nothing_is_missing_numbers(tmp_path):
    path, moments = str(tmp_path / "x.parquet"), pa.array([1_711_848_600 * 10**9, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"old": moments, "none": pa.nulls(2)}), path, use_deprecated_int96_timestamps=True)
    assert labels(path, "old") == (["2024-03-31 01:30:00+00", None], [1, 1])
    assert cells(path, {"none": Categories([1], nulls="cell")}) == ([1], [2])
