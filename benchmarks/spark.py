"""How much does privurn cost on Spark, beside what Spark itself takes for counting and for writing?

Targets: counting at most 1.3 times a bare GROUP BY of the same column in the same session; a release of 20 million records
written at least half as fast as Spark writes 20 million generated integers. Whole tables and noise have no target, and are set
beside as many generated records, and integers through a Python function that gives them back. Needs pyspark and Java; not part
of `make bench`.

    python -m benchmarks.spark [--counting ROWS] [--writing RECORDS] [--tables RECORDS] [--noising RECORDS]
        [--repeats R] [--master local[2]]
    python -m benchmarks.spark --large 250000000      one release of so many records, and nothing else
    python -m benchmarks.spark --dividing 10000000000 what the driver does to divide so many records into parts; no Spark
"""

import argparse
import contextlib
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privurn
from privurn.counts import CountTable
from privurn.domain import Bounds, Categories, Grid, JointDomain
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import count_cells, open_table
from privurn.tables.blocks import Blocks
from privurn.tables.here import Here
from privurn.tables.spark_files import settings

CELLS = 1_001


def processor_seconds() -> float:
    """Of this process and all below it, Spark's among them: what a shared computer does not distort."""
    table = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = each.read_text().rsplit(")", 1)[1].split()
            table[int(each.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, (parent, _) in table.items() if parent in below} - below:
        below |= more
    return sum(table[pid][1] for pid in below if pid in table) / os.sysconf("SC_CLK_TCK")


class Took(NamedTuple):
    """Seconds by the clock, and of processors."""

    clock: float
    work: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} s ({self.work:.2f} s of processors)"


def timed(work: Callable[[], Any]) -> Took:
    start, spent = time.perf_counter(), processor_seconds()
    work()
    return Took(time.perf_counter() - start, processor_seconds() - spent)


def best(work: Callable[[], Any], repeats: int) -> Took:
    """The fastest of several runs, in both respects, after one that is not counted."""
    return fastest([took for [took] in repeated([work], repeats)])


def repeated(works: list[Callable[[], Any]], repeats: int) -> list[list[Took]]:
    """What each took each time, in turns: Java compiles as it goes, and so what comes later has less to do."""
    return [[timed(work) for work in works] for _ in range(repeats + 1)][1:]


def fastest(took: Sequence[Took]) -> Took:
    """By the clock, and of processors, which need not be the same run."""
    return Took(min(each.clock for each in took), min(each.work for each in took))


def ratio(one: Took, other: Took) -> str:
    return f"{one.clock / other.clock:.2f} ({one.work / other.work:.2f})"


def counting(session: Any, rows: int, folder: Path, repeats: int) -> None:
    """A column of whole numbers in Parquet files."""
    path = str(folder / "table")
    session.range(rows).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x").write.parquet(path)
    frame = session.read.parquet(path)

    def ours() -> None:
        with open_table(frame) as source:
            assert count_cells(source, JointDomain({"x": Grid(0, CELLS - 1, 1)})).n == rows

    pairs = repeated([lambda: frame.groupBy("x").count().toArrow(), ours], repeats)
    bare, took = map(fastest, zip(*pairs, strict=True))
    print(f"count {rows:,} records: bare GROUP BY {bare}, privurn {took}: {ratio(took, bare)} times as long, target 1.3")
    print(f"  of each repeat: {', '.join(ratio(own, other) for other, own in pairs)}")


def writing(session: Any, records: int, folder: Path, repeats: int) -> None:
    """Release records of one column, and write as many integers."""
    table = session.range(1_000_000).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x")
    domain, where = {"x": Grid(0, CELLS - 1, 1)}, folder / "written"
    parts = -(-records // 2**21)

    def theirs() -> None:
        shutil.rmtree(where, ignore_errors=True)
        session.range(0, records, 1, parts).write.parquet(str(where))

    bare = best(theirs, repeats)
    asked: Any = {"domain": domain, "epsilon": 1, "delta": 1e-6}
    made = privurn.release(table, privurn.Urn(records=records), **asked)

    def ours() -> None:
        shutil.rmtree(where, ignore_errors=True)
        made.save(where, file_format="parquet")

    took = best(ours, repeats)
    shutil.rmtree(where)
    urn = privurn.Urn(records=records)
    whole = timed(lambda: privurn.release(table, urn, **asked).save(where, file_format="parquet"))
    assert sum(pq.read_metadata(each).num_rows for each in (where / "data").iterdir()) == records
    found: list[bool] = []
    checking = timed(lambda: found.append(privurn.verify(where).valid))
    assert found == [True]
    print(f"{records:,} records in {parts} parts: Spark writes integers in {bare}, privurn writes in {took}:", end=" ")
    print(f"{ratio(bare, took)} of the speed, target 0.5")
    print(f"  release and save {whole}: {ratio(bare, whole)} of the speed; verify {checking};", end=" ")
    print(f"driver's peak memory without Java {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def whole_tables(session: Any, records: int, folder: Path, repeats: int) -> None:
    """Records of ten columns that were made from marginals, and as many generated ones."""
    columns = [f"CAST(pmod(hash(id, {j}), 32) AS BIGINT) AS x{j}" for j in range(10)]
    table, where = session.range(100_000).selectExpr(*columns), folder / "whole"
    generated = session.range(0, records, 1, -(-records // 2**21)).selectExpr(*columns)

    def theirs() -> None:
        shutil.rmtree(where, ignore_errors=True)
        generated.write.parquet(str(where))

    domain = {f"x{j}": Grid(0, 31, 1) for j in range(10)}
    made = privurn.release(table, privurn.Marginals(order=2, records=records), domain=domain, epsilon=1, delta=1e-6)

    def ours() -> None:
        shutil.rmtree(where, ignore_errors=True)
        made.save(where, file_format="parquet")

    bare, took = best(theirs, repeats), best(ours, repeats)
    assert sum(pq.read_metadata(each).num_rows for each in (where / "data").iterdir()) == records
    assert privurn.verify(where).valid
    print(
        f"{records:,} records of a whole table: Spark writes {bare}, privurn {took}: {ratio(bare, took)} of the speed;", end=" "
    )
    print(f"driver's peak memory without Java {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def large(session: Any, records: int, folder: Path) -> None:
    """A release of more records than one computer makes at once, from counting to a figure that is inferred from it."""
    table = session.range(1_000_000).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x")
    where = folder / "large"
    made: list[Any] = []
    found: list[Any] = []
    domain: Any = {"x": Grid(0, CELLS - 1, 1)}

    def release() -> None:
        made.append(privurn.release(table, privurn.Urn(records=records), domain=domain, epsilon=1, delta=1e-6))

    steps: dict[str, Callable[[], Any]] = {
        "count a million and draw": release,
        "write": lambda: made[0].save(where, file_format="parquet"),
        "verify": lambda: found.append(privurn.verify(where).valid),
        "infer a mean": lambda: found.append(privurn.infer(where, ask=["mean(x)"])),
    }
    for name, work in steps.items():
        took, held = timed(work), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{records:,} records: {name} {took}; driver's peak memory without Java until then {held:.0f} MB", flush=True)
    parts = list((where / "data").iterdir())
    assert found[0] is True
    assert sum(pq.read_metadata(each).num_rows for each in parts) == records
    print(f"  {len(parts)} parts, {sum(each.stat().st_size for each in parts) / 1e9:.2f} GB")


def dividing(records: int) -> None:
    """The counts of so many records of one column, divided into those that executors are sent wave by wave."""
    counts = np.random.default_rng(1).multinomial(records, np.full(CELLS, 1 / CELLS))
    table = Blocks.drawn(
        [CountTable(np.arange(CELLS), counts)],
        decode=lambda cells: (pa.table({"x": cells}), {}),
        words=SeededEntropy(1).words,
        tasks=Here(),
    )
    sent: list[tuple[int, int]] = []
    took = timed(lambda: sent.extend((wave.parts, sum(each.bytes for each in wave.groups)) for wave in table.waves()))  # type: ignore[attr-defined]
    print(f"{records:,} records into {sum(parts for parts, _ in sent):,} parts in {len(sent)} waves: {took};", end=" ")
    print(f"at most {max(size for _, size in sent) / 1e6:.1f} MB a wave;", end=" ")
    print(f"driver's peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def noising(session: Any, records: int, folder: Path) -> None:
    """Noise records of one column in the executors, once, as it is only done once; and save them in parts."""
    session.conf.set("spark.privurn.staging", str(folder))
    table = session.range(records).selectExpr(f"CAST(pmod(hash(id), {CELLS}) AS BIGINT) AS x")
    through, where = folder / "through", folder / "noised"

    def theirs() -> None:
        shutil.rmtree(through, ignore_errors=True)
        table.mapInArrow(lambda batches: batches, "x bigint").write.parquet(str(through))

    bare = best(theirs, 1)
    made: list[Any] = []
    kinds: dict[str, Any] = {
        "Laplace": {"domain": {"x": Bounds(0, CELLS - 1)}},
        "randomised response": {"domain": {"x": Categories(range(CELLS))}},
    }

    def noise(asked: Any) -> None:
        made.append(privurn.privatise(table, epsilon=1, **asked))

    for name, asked in kinds.items():
        drawn = timed(partial(noise, asked))
        shutil.rmtree(where, ignore_errors=True)
        saved = timed(lambda: made[-1].save(where, file_format="parquet"))
        assert made[-1].table.num_rows == records
        print(f"noise {records:,} records ({name}): Spark gives them to Python and writes them in {bare};", end=" ")
        print(f"privurn checks, noises and stages in {drawn}: {ratio(drawn, bare)} times as long; saves in {saved};", end=" ")
        print(f"driver's peak memory without Java {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--counting", type=int, default=20_000_000)
    parser.add_argument("--writing", type=int, default=20_000_000)
    parser.add_argument("--tables", type=int, default=8_000_000)
    parser.add_argument("--noising", type=int, default=4_000_000)
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--dividing", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    if asked.dividing:
        dividing(asked.dividing)
        return
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(asked.master)
    for key, value in settings(asked.master).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        if asked.large:
            large(session, asked.large, Path(folder))
            asked.counting = asked.writing = asked.tables = asked.noising = 0
        if asked.counting:
            counting(session, asked.counting, Path(folder), asked.repeats)
        if asked.writing:
            writing(session, asked.writing, Path(folder), asked.repeats)
        if asked.tables:
            whole_tables(session, asked.tables, Path(folder), asked.repeats)
        if asked.noising:
            noising(session, asked.noising, Path(folder))
    session.stop()


if __name__ == "__main__":
    main()
