"""Apache Spark as an engine: records stay on the cluster, and are counted there in Spark's own SQL.

Nothing has to be installed on the executors. No query fails on content: casts are tried ones, because Spark quotes the record
that a task failed on in its exceptions and in the executors' logs. Whatever Spark complains about is replaced here.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from privurn.counts import other_size
from privurn.errors import FormatError
from privurn.tables.column_names import check_names, parquet_names, places
from privurn.tables.dialects import SPARK
from privurn.tables.engine import Answer
from privurn.tables.files import REMOTE, find_files, readable
from privurn.tables.source import NOTHING, Source
from privurn.tables.spark_csv import read_csv
from privurn.tables.spark_files import SparkFiles, replaced_errors, session_builder, spark_schema, unreadable_columns
from privurn.tables.spark_tasks import SparkTasks

STORED = {
    "boolean": "BOOLEAN",
    "void": NOTHING,
    "tinyint": "BIGINT",
    "smallint": "BIGINT",
    "int": "BIGINT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
}
"""What Spark's types are called here; decimals, text and times of day besides."""


READING = {
    "recursiveFileLookup": "true",
    "mergeSchema": "true",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Parquet files: folders called a=1 are no columns, and old dates are what the files say."""

STAGING = "spark.privurn.staging"
"""Setting of a session: a folder that driver and executors share, for records that are noised."""


@dataclass(frozen=True)
class SparkAnswer:
    """To a query."""

    frame: Any

    def to_arrow_table(self) -> Any:
        """All of it, on the driver."""
        return self.frame.toArrow()

    def to_arrow_reader(self, batch_size: int, /) -> Iterator[Any]:
        """Partition by partition: the driver holds one of them at a time."""
        import pyarrow as pa

        names = self.frame.columns
        records = self.frame.toLocalIterator(prefetchPartitions=False)
        while rows := list(islice(records, batch_size)):
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names=names)


@dataclass(frozen=True)
class SparkEngine:
    """A session, and the views of it that were made for one opened table; the session may be a user's, so they go again."""

    session: Any
    views: dict[str, str] = field(default_factory=dict)

    def sql(self, query: str, /) -> Answer:
        """The names `t` and those registered hide whatever the session knows by them."""
        known = ", ".join(f"{name} AS (SELECT * FROM {view})" for name, view in self.views.items())
        return SparkAnswer(self.session.sql(f"WITH {known} {query}"))

    def register(self, name: str, table: Any, /) -> None:
        """A small table, sent to every executor, that records are joined with by its first column."""
        # a key that is there twice would count them twice, and a frame is not read again, so that it would be noticed
        if len(table.column(0).unique()) < table.num_rows:
            raise other_size()
        self.view(name, self.session.createDataFrame(table, spark_schema(table)).hint("broadcast"))

    def view(self, name: str, frame: Any) -> None:
        """Make a frame known under a name."""
        self.views[name] = f"privurn_{uuid4().hex}"
        frame.createTempView(self.views[name])

    def close(self) -> None:
        """Drop the views."""
        for view in self.views.values():
            with suppress(Exception):  # the session may be gone already
                self.session.catalog.dropTempView(view)


@contextmanager
def open_spark(data: Any) -> Iterator[Source]:
    """A Spark frame, or files that Spark shall read, as an opened table."""
    session_builder()
    with replaced_errors("read the table"), ExitStack() as stack:
        if not isinstance(data, SparkFiles):  # text says nothing about its content: Spark reads CSV files as text
            _check_running(data)
            yield stack.enter_context(_opened(data, "spark", text_is_untyped=True))
            return
        found = None if REMOTE.match(data.path) else find_files(data.path)
        session = stack.enter_context(data.session())
        names = [data.path] if found is None else [f"file://{name}" for name in stack.enter_context(readable(found))]
        if found is not None and found.reader == "csv":
            frame = read_csv(session, [name.removeprefix("file://") for name in names])
            source = stack.enter_context(_opened(frame, "path", text_is_untyped=True))
            yield replace(source, found=found, tasks=source.tasks and SparkTasks(data.session, data.staging))
            return
        with unreadable_columns(() if found is None else found.files):
            frame = session.read.options(**READING).parquet(*names)
            source = stack.enter_context(_opened(frame, "path", text_is_untyped=False))
        source = replace(source, tasks=source.tasks and SparkTasks(data.session, data.staging))
        if found is None:
            yield source
            return
        if sorted(source.types) != sorted(parquet_names(list(map(str, found.files)))):
            raise FormatError("Spark does not see the columns of the files.", hint="Read them without Spark, or rename columns")
        recorded = partial(_recorded, found.files)
        yield replace(source, rows=recorded, size=recorded, found=found)


def _check_running(frame: Any) -> None:
    """The session of a frame has not been stopped: pyspark would fail on an assertion of its own."""
    if "connect" not in type(frame).__module__ and frame.sparkSession.sparkContext._jsc is None:
        raise FormatError("Spark cannot read the table: its session was stopped.", hint="Make the frame anew")


@contextmanager
def _opened(frame: Any, kind: str, *, text_is_untyped: bool) -> Iterator[Source]:
    names = list(frame.columns)
    check_names(names)
    stored = [_stored(each.dataType) for each in frame.schema.fields]
    types = dict(zip(names, stored, strict=True))
    untyped = frozenset(name for name, each in types.items() if text_is_untyped and each == "VARCHAR")
    engine = SparkEngine(frame.sparkSession)
    try:
        engine.view("t", _plain(frame.toDF(*places(names)), stored))
        shared = frame.sparkSession.conf.get(STAGING, ".")
        tasks = SparkTasks(partial(nullcontext, frame.sparkSession), shared) if find_spec("pandas") else None  # Spark needs it
        yield Source(engine, kind, types, None, partial(_count, engine), untyped, dialect=SPARK, tasks=tasks)
    finally:
        engine.close()


def _recorded(files: Sequence[Path]) -> int:
    """How many records Parquet files say they have: a file that Spark passes over, as it does hidden ones, is noticed."""
    import pyarrow.parquet

    return sum(int(pyarrow.parquet.read_metadata(file).num_rows) for file in files)


def _stored(spark_type: Any) -> str:
    """A type of Spark's by the name that is used here."""
    written = str(spark_type.simpleString())
    if written.startswith(("string", "varchar", "char")):
        return "VARCHAR"
    return "TIME" if written.startswith("time(") else STORED.get(written, written.upper())


def _plain(frame: Any, stored: list[str]) -> Any:
    """Whole numbers of one length, and text that is compared by its bytes; what is so already is left alone."""
    from pyspark.sql import functions

    changed = {}
    for column, each in zip(frame.schema.fields, stored, strict=True):
        if column.dataType.simpleString() in ("bigint", "string"):
            continue
        if each == "BIGINT":
            changed[column.name] = functions.col(column.name).cast("bigint")
        elif each == "VARCHAR":
            changed[column.name] = functions.collate(column.name, "UTF8_BINARY")
    return frame.withColumns(changed) if changed else frame


def _count(engine: SparkEngine) -> int:
    return int(engine.sql("SELECT count(*) AS n FROM t").to_arrow_table()["n"][0].as_py())
