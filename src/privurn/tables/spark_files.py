"""Files that Spark reads where they are, and the session that reads them."""

import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from privurn.errors import FormatError

LONGEST_DECIMAL = 38
"""Digits that engines have."""

LOOPBACK = ("127.0.0.1", "localhost")

STARTING = "It needs Java 17, and a master that is there, such as local[2] or spark://host:7077"
CONNECT_PORT, TIMEOUT = 15_002, 10
"""Of a Connect server, unless its address says another; and how many seconds somebody has to answer at an address."""

THREADS = re.compile(r"local(\[([1-9][0-9]*|\*)(, *[1-9][0-9]*)?\])?|local-cluster\[.*\]")
"""Masters that are threads of this computer."""


@dataclass(frozen=True)
class SparkFiles:
    """Files, and the Spark that shall read them: a `master`, or the address of a Spark Connect server (`remote`).

    The path is one of this computer that Spark can reach, or an address that it knows, such as hdfs:// or s3a://, of Parquet
    files. CSV files (`spark_csv`) are of this computer.

    >>> SparkFiles("visits/*.parquet", master="local[4]").path
    'visits/*.parquet'
    """

    path: str
    master: str | None = None
    remote: str | None = None
    staging: str = "."
    """A folder that driver and executors share, where more noised records are put than fit on this computer."""

    def __post_init__(self) -> None:
        if (self.master is None) == (self.remote is None):
            raise FormatError(
                "Spark needs a master, or the address of a Connect server.",
                hint="For example master='local[4]', master='spark://host:7077' or remote='sc://host:15002'",
            )
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise FormatError("the address of a Spark Connect server begins with sc://.", hint="For example sc://host:15002")
        if self.master is not None:
            check_master(self.master)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A session of this process: the one that is there if it is on the same master, else one that ends with the work."""
        session_builder()
        with replaced_errors("start", hint=STARTING):
            session, own = self._connected() if self.remote is not None else self._started()
        try:
            yield session
        finally:
            if own:
                session.stop()

    def _connected(self) -> tuple[Any, bool]:
        """A session of a Connect server, and whether it is new."""
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.session import SparkSession as Connected

        running = Connected.getActiveSession()
        if running is not None and running.client._builder.endpoint != DefaultChannelBuilder(str(self.remote)).endpoint:
            raise FormatError("this process has a Spark session elsewhere.", hint="Stop it first, or give its data frame")
        if running is None:
            _check_answers(str(self.remote))
        return running or session_builder().remote(self.remote).getOrCreate(), running is None

    def _started(self) -> tuple[Any, bool]:
        """A session on a master, and whether it is new."""
        from pyspark.sql import SparkSession

        running = SparkSession.getActiveSession()
        if running is not None and running.sparkContext.master != self.master:
            raise FormatError(
                "this process has a Spark session on another master.", hint="Stop it first, or give its data frame"
            )
        if running is None:
            _check_any_answers(_masters(str(self.master)))
        if is_here(str(self.master)):  # else Spark takes the first python3 that it finds
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = session_builder().master(str(self.master))
        for key, value in settings(str(self.master)).items():
            builder = builder.config(key, value)
        return running or builder.getOrCreate(), running is None


def check_master(master: str) -> None:
    """An address that Spark would wait at for minutes, or threads that are none, are refused at once."""
    if master.startswith("local") and not THREADS.fullmatch(master):
        raise FormatError(
            "a local master has a whole number of threads, at least one.", hint="For example local[2] or local[*]"
        )
    if master.startswith("spark://") and not all(host and port for host, port in _masters(master)):
        raise FormatError("the address of a Spark master has a host and a port.", hint="For example spark://host:7077")


def _masters(master: str) -> list[tuple[str | None, int | None]]:
    """Hosts and ports of a standalone cluster, which may have several masters; of others none."""
    if not master.startswith("spark://"):
        return []
    return [_host_and_port(f"spark://{each}") for each in master.removeprefix("spark://").split(",")]


def _host_and_port(address: str) -> tuple[str | None, int | None]:
    """None for what an address does not have."""
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port
    except ValueError:
        return None, None


def _check_any_answers(masters: Sequence[tuple[str | None, int | None]]) -> None:
    """One of the masters, if there are addresses: Spark itself would go on trying for a minute, or for ever."""
    if masters and not any(_listens(*each) for each in masters):
        raise FormatError(
            "nobody answers at the address of the Spark master.", hint="Start it, or give its address: spark://host:7077"
        )


def _listens(host: str | None, port: int | None) -> bool:
    if host is None or port is None:
        return False
    try:
        socket.create_connection((host, port), timeout=TIMEOUT).close()
    except OSError:
        return False
    return True


def _check_answers(address: str) -> None:
    """A Connect server does: Spark's own client would go on trying for ten minutes. Where there is a proxy, it is asked."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    host, port = _host_and_port(address)
    answers = bool(getproxies()) or _listens(host, port or CONNECT_PORT)
    if answers:
        with DefaultChannelBuilder(address).toChannel() as channel, suppress(grpc.FutureTimeoutError):
            grpc.channel_ready_future(channel).result(timeout=TIMEOUT)
            return
    raise FormatError(
        "nobody answers at the address of the Spark Connect server.", hint="Start it, or give its address: sc://host:15002"
    )


def session_builder() -> Any:
    """Spark's, or a refusal where it is not installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise FormatError("Spark is not installed.", hint="pip install 'privurn[spark]'; it needs Java 17 as well") from None
    return SparkSession.builder.appName("privurn")


def settings(master: str) -> dict[str, str]:
    """No web page about the job; and where the cluster is this computer, no port that others can reach."""
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return quiet | here if is_here(master) else quiet


def is_here(master: str) -> bool:
    """Whether the cluster is this computer."""
    return master.startswith("local") or master.removeprefix("spark://").rsplit(":", 1)[0] in LOOPBACK


@contextmanager
def replaced_errors(doing: str, *, hint: str = "Check that Spark itself can count it") -> Iterator[None]:
    """Spark's complaints, and those of what reads its answers, without the records that they quote."""
    import duckdb
    import pyarrow as pa
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, duckdb.Error, pa.ArrowException, UnicodeError, ConnectionError) as error:
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise FormatError(
            f"Spark cannot {doing} ({type(error).__name__}).",
            hint=f"{hint}; details are withheld because they could quote a record",
        ) from None


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: Spark then cancels its jobs, and complains of that in place of saying so."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def unreadable_columns(files: Sequence[Path]) -> Iterator[None]:
    """Where Spark refuses Parquet files for the names or types that they store, the columns are named."""
    import pyarrow.parquet
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError):
        schemas = [pyarrow.parquet.ParquetFile(file).schema for file in files]
        _check_one_layout([schema.to_arrow_schema() for schema in schemas])
        columns = [schema.column(i) for schema in schemas for i in range(len(schema))]
        names = dict.fromkeys(each.path for each in columns if _seldom_read(each))
        if not names:
            raise
        raise FormatError(
            f"Spark does not read the types that the files store of {', '.join(map(repr, names))}.",
            hint="Leave Spark out, or write times in microseconds, times of day as text, and other numbers as doubles first",
        ) from None


def _check_one_layout(schemas: Sequence[Any]) -> None:
    """Spark takes names for the same that differ in capitals only, and seldom two types for one column."""
    types: dict[str, set[str]] = {}
    for schema in schemas:
        for field in schema:
            types.setdefault(field.name, set()).add(str(field.type))
    if len({name.lower() for name in types}) < len(types):
        raise FormatError(
            "the files have columns whose names differ in capitals only, which Spark does not tell apart.",
            hint="Leave Spark out, or rename them first",
        )
    several = [name for name, each in types.items() if len(each) > 1]
    if several:
        raise FormatError(
            f"the files store {', '.join(map(repr, several))} in different types, and Spark does not read them together.",
            hint="Leave Spark out, or write the files in one type first",
        )


def _seldom_read(column: Any) -> bool:
    """Nanoseconds, times of day, floats of 16 bits and decimals of more than 38 digits: some Sparks read some of them."""
    logical = column.logical_type
    if logical.type == "DECIMAL":
        return int(column.precision) > LONGEST_DECIMAL
    return logical.type in ("TIME", "FLOAT16") or (logical.type == "TIMESTAMP" and "nanoseconds" in logical.to_json())


def spark_schema(table: Any) -> Any:
    """Spark's names for the types of an Arrow table, which may be empty; times without a zone have none."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
