"""How much does privurn cost on Spark, beside what Spark itself takes for counting and for writing?

Targets: counting at most 1.3 times a bare GROUP BY of the same column in the same session; a release of 20 million records
written at least half as fast as Spark writes 20 million generated integers. Needs pyspark and Java; not part of `make bench`.

    python -m benchmarks.spark [--counting ROWS] [--writing RECORDS] [--repeats R] [--master local[2]]
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import privurn
from privurn.domain import Grid, JointDomain
from privurn.tables import count_cells, open_table
from privurn.tables.spark_files import settings

CELLS = 1_001


def best(work: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several runs, after one that is not counted."""
    work()
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def counting(session: Any, rows: int, folder: Path, repeats: int) -> None:
    """A column of whole numbers in Parquet files."""
    path = str(folder / "table")
    session.range(rows).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x").write.parquet(path)
    frame = session.read.parquet(path)
    bare = best(lambda: frame.groupBy("x").count().toArrow(), repeats)
    known = best(lambda: (frame.groupBy("x").count().toArrow(), frame.count()), repeats)

    def ours() -> None:
        with open_table(frame) as source:
            assert count_cells(source, JointDomain({"x": Grid(0, CELLS - 1, 1)})).n == rows

    took = best(ours, repeats)
    print(f"count {rows:,} records: bare GROUP BY {bare:.2f} s, with their number {known:.2f} s, privurn {took:.2f} s", end="")
    print(f": {took / bare:.2f} times (target 1.3)")


def writing(session: Any, records: int, folder: Path, repeats: int) -> None:
    """Release records of one column, and write as many integers."""
    table = session.range(1_000_000).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x")
    domain, where = {"x": Grid(0, CELLS - 1, 1)}, folder / "written"
    parts = -(-records // 2**21)

    def theirs() -> None:
        shutil.rmtree(where, ignore_errors=True)
        session.range(0, records, 1, parts).write.parquet(str(where))

    bare = best(theirs, repeats)
    drawing = time.perf_counter()
    made = privurn.release(table, privurn.Urn(records=records), domain=domain, epsilon=1, delta=1e-6)
    drawing = time.perf_counter() - drawing

    def ours() -> None:
        shutil.rmtree(where, ignore_errors=True)
        made.save(where, file_format="parquet")

    took = best(ours, repeats)
    shutil.rmtree(where)
    whole = time.perf_counter()
    privurn.release(table, privurn.Urn(records=records), domain=domain, epsilon=1, delta=1e-6).save(
        where, file_format="parquet"
    )
    whole = time.perf_counter() - whole
    rows = sum(pq.read_metadata(each).num_rows for each in (where / "data").iterdir())
    assert rows == records
    checking = time.perf_counter()
    assert privurn.verify(where).valid
    checking = time.perf_counter() - checking
    print(
        f"{records:,} records in {parts} parts: Spark writes integers in {bare:.2f} s; privurn writes in {took:.2f} s", end=""
    )
    print(f" (speed {bare / took:.2f} of Spark's, target 0.5); release and save {whole:.2f} s ({bare / whole:.2f});")
    print(f"  first release without saving {drawing:.2f} s; verify {checking:.2f} s;", end=" ")
    print(f"driver's peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--counting", type=int, default=20_000_000)
    parser.add_argument("--writing", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(asked.master)
    for key, value in settings(asked.master).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        if asked.counting:
            counting(session, asked.counting, Path(folder), asked.repeats)
        if asked.writing:
            writing(session, asked.writing, Path(folder), asked.repeats)
    session.stop()


if __name__ == "__main__":
    main()
