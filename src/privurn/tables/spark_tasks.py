"""Blocks of a release written by Spark's executors: one task a block, however often Spark has to run it.

Executors need Python with NumPy and Arrow, as Spark's own Arrow functions do; privurn's part of the task is sent along.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from privurn.errors import FormatError
from privurn.tables import part_file
from privurn.tables.blocks import Blocks
from privurn.tables.engine import Answered, Task
from privurn.tables.part_file import arranged, key_stream
from privurn.tables.spark_files import replaced_errors

ANSWER = "number bigint, name string, rows bigint, sha256 string"


@dataclass(frozen=True)
class SparkTasks:
    """Tasks of a session that is there when they run."""

    session: Callable[[], AbstractContextManager[Any]]

    def answers(self, task: Task, number: int) -> list[Answered]:
        """A partition of one number for each task: `range` fixes them, so a lost task is run again and no other is."""
        with replaced_errors("write the release"), self.session() as session:
            table = _numbers(session, number).mapInArrow(_answering(task), ANSWER).toArrow()
        found = sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
        if [each[0] for each in found] != list(range(number)):
            raise FormatError("Spark did not write every part of the release once.", hint="Save it again")
        return [(name, rows, sha256) for _, name, rows, sha256 in found]

    def frame(self, blocks: Blocks) -> Any:
        """A Spark frame, expanded block by block whenever it is read, and the same each time."""
        with self.session() as session:
            schema = session.createDataFrame(blocks.rows.slice(0, 0)).schema
            held = [(each.places, each.counts, each.key) for each in blocks.blocks]
            return _numbers(session, len(held)).mapInArrow(_expanding(blocks.rows, held), schema)


def _numbers(session: Any, number: int) -> Any:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(part_file)
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


def _expanding(rows: Any, held: list[Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def expanding(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                places, counts, key = held[number]
                yield from rows.take(pa.array(arranged(places, counts, key_stream(key)))).to_batches(max_chunksize=2**17)

    return expanding
