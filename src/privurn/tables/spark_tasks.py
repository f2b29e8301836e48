"""What Spark's executors do for a release: they write its blocks, and noise records.

A block is written by one task, however often Spark has to run it; for that executors need Python with NumPy and Arrow, as
Spark's own Arrow functions do, and privurn's part of the task is sent along. For noise, they need privurn itself. Records are
noised by one action: of a task that Spark runs again, because its executor was lost, one attempt is kept and nobody sees the
others. A second action would draw again, so there is none: what is too large for the driver the first one writes (`staged`).
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from privurn.counts import other_size
from privurn.errors import FormatError
from privurn.output_files import PARTIAL
from privurn.tables import blocks, part_file, part_sample
from privurn.tables.engine import Answer, Answered, Task, Work
from privurn.tables.part_sample import expanded
from privurn.tables.spark_files import replaced_errors, spark_schema
from privurn.tables.staged import WORD, Staged, in_order, with_words

ANSWER = "number bigint, name string, rows bigint, sha256 string"
PROBES = 4
"""Tasks that try whether executors can do what they are asked for."""

NEEDED = "Executors need Python with privurn, of the driver's version, and write into a folder that they share with the driver"

STAGED: list[Any] = []
"""Folders of staged records: they are there as long as this process is, and its frames that read them."""


@dataclass(frozen=True)
class SparkTasks:
    """Tasks of a session that is there when they run."""

    session: Callable[[], AbstractContextManager[Any]]
    staging: str = "."
    """A folder that driver and executors share, for records that are noised."""

    def answers(self, task: Task, number: int) -> list[Answered]:
        """A partition of one number for each task: `range` fixes them, so a lost task is run again and no other is."""
        with replaced_errors("write or read the release"), self.session() as session:
            return _in_order(_numbers(session, number).mapInArrow(_answering(task), ANSWER).toArrow(), number)

    def frame(self, rows: Any, groups: list[Any], places: list[tuple[int, int]]) -> Any:
        """A Spark frame, expanded block by block whenever it is read, and the same each time."""
        with self.session() as session:
            return _numbers(session, len(places)).mapInArrow(_expanding(rows, groups, places), spark_schema(rows))

    def check(self, n: int) -> None:
        """Executors have this privurn, and write where this computer reads, if they will have to."""
        from privurn import __version__

        folder = self._folder() if n > blocks.SIZE else None
        try:
            with replaced_errors("noise records", hint=NEEDED), self.session() as session:
                probes = _numbers(session, PROBES).mapInArrow(partial(_probing, folder), "version string, name string")
                found = probes.toArrow().to_pylist()
            if {each["version"] for each in found} != {__version__}:
                raise FormatError(
                    "Spark's executors have another privurn than the driver.", hint=f"Install {__version__} there"
                )
            if folder is not None and not all(os.path.exists(os.path.join(folder, each["name"])) for each in found):
                raise FormatError(
                    "Spark's executors do not write where this computer looks for it.",
                    hint="Name a folder that driver and executors share: -o on the command line, the setting "
                    "spark.privurn.staging of a session",
                )
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def mapped(self, records: Answer, work: Work, *, like: Any, n: int) -> Any:
        """By one action: its rows come to the driver, or are written into a folder that is there until this process ends."""
        with replaced_errors("noise the records"):
            frame = records.frame  # type: ignore[attr-defined]  # Spark's own answer
            noised = frame.mapInArrow(partial(_through, work), spark_schema(with_words(like.slice(0, 0))))
            if n <= blocks.SIZE:
                table = in_order(noised.toArrow(), like)
                if table.num_rows != n:
                    raise other_size()
                return table
            folder = tempfile.TemporaryDirectory(prefix=PARTIAL, dir=os.path.abspath(self.staging))
            STAGED.append(folder)
            where = os.path.join(folder.name, "rows")
            noised.write.parquet(f"file://{where}")
            if frame.sparkSession.read.parquet(f"file://{where}").count() != n:
                raise other_size()
            return Staged(like, tasks=self, folder=where, records=n)

    def grouped(self, staged: Staged, task: Callable[[Any], Answered]) -> list[Answered]:
        """Spark brings the records of a part together, from what was staged."""
        with replaced_errors("write the release"), self.session() as session:
            rows = session.read.parquet(f"file://{staged.folder}").selectExpr("*", f"{WORD} DIV {staged.width} AS part")
            found = rows.groupBy("part").applyInArrow(_grouping(task), ANSWER).toArrow()
            return _in_order(found, found.num_rows)

    def staged_frame(self, staged: Staged) -> Any:
        """In the order of the words."""
        with self.session() as session:
            stored = session.read.parquet(f"file://{staged.folder}")
            return stored.sort(*stored.columns).drop(WORD).toDF(*staged.column_names)

    def _folder(self) -> str:
        try:
            return tempfile.mkdtemp(prefix=PARTIAL, dir=os.path.abspath(self.staging))
        except OSError:
            raise FormatError(f"there is no folder {self.staging!r} that can be written.", hint=NEEDED) from None


def _in_order(table: Any, number: int) -> list[Answered]:
    """Answers of tasks 0, 1, ..., once each."""
    found = sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    if [each[0] for each in found] != list(range(number)):
        raise FormatError("Spark did not write every part of the release once.", hint="Save it again")
    return [(name, rows, sha256) for _, name, rows, sha256 in found]


def _probing(folder: str | None, batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: which privurn it has, and a file that the driver shall see."""
    from uuid import uuid4

    import pyarrow as pa

    from privurn import __version__

    for batch in batches:
        names = [uuid4().hex for _ in range(batch.num_rows)]
        for name in names if folder is not None else ():
            with open(os.path.join(str(folder), name), "wb"):
                pass
        yield pa.RecordBatch.from_pydict({"version": [__version__] * len(names), "name": names})


def _through(work: Work, batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: noise."""
    for batch in batches:
        yield from with_words(work(batch.column(0))).to_batches()


def _grouping(task: Callable[[Any], Answered]) -> Callable[[Any], Any]:
    def grouping(table):  # type: ignore[no-untyped-def]  # Spark reads hints as what it shall do
        import pyarrow as pa

        name, rows, sha256 = task(table)
        return pa.table({"number": table["part"][:1], "name": [name], "rows": [rows], "sha256": [sha256]})

    return grouping


def _numbers(session: Any, number: int) -> Any:
    from pyspark import cloudpickle

    for each in (part_file, part_sample):
        cloudpickle.register_pickle_by_value(each)
    return session.range(0, number, 1, numPartitions=number)


def _answering(task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def answering(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, rows, sha256 = task(number)
                values = {"number": [number], "name": [name], "rows": [rows], "sha256": [sha256]}
                yield pa.RecordBatch.from_pydict(values)

    return answering


def _expanding(rows: Any, groups: list[Any], places: list[tuple[int, int]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def expanding(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for own, block in (places[number] for number in batch.column(0).to_pylist()):
                yield from expanded(rows, groups[own], block).to_batches(max_chunksize=2**17)

    return expanding
