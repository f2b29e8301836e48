"""Open any supported table, with the types of its columns: on a Spark cluster where it is there, else as a DuckDB view."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError
from privurn.tables.column_names import check_names, old_instants, parquet_names, places
from privurn.tables.csv_header import read_header
from privurn.tables.csv_lines import check_lines
from privurn.tables.database import connect, forget
from privurn.tables.files import DataFiles, find_files, readable
from privurn.tables.source import NOTHING, Source, text_literal
from privurn.tables.spark_files import LONGEST_DECIMAL, SparkFiles

BEYOND = 10**400
"""Whole numbers from here on are infinite, as they are among floats."""


def frame_kind(data: Any) -> str:
    """Which family a table belongs to: "path", "list", "pandas", "polars", "arrow", "numpy", "duckdb", "spark" or "own".

    The last has an engine of its own, and a method `open_source` that opens it (docs/how-to/add-an-engine.md).
    """
    if isinstance(data, (str, Path)):
        return "path"
    if hasattr(type(data), "open_source"):  # not of the object: a column could have that name
        return "own"
    module, name = type(data).__module__.split(".")[0], type(data).__name__
    if isinstance(data, SparkFiles) or (type(data).__module__.startswith("pyspark.sql.") and name == "DataFrame"):
        return "spark"
    if module in ("pandas", "polars") and name in ("DataFrame", "Series", "LazyFrame"):
        return module
    if module == "pyarrow" and name in ("Table", "RecordBatch"):
        return "arrow"
    if isinstance(data, np.ndarray):
        return "numpy"
    if isinstance(data, list):
        return "list"
    if name == "DuckDBPyRelation":
        return "duckdb"
    raise FormatError(
        f"cannot read a table from {module}.{name}.",
        hint="Give a path (CSV, Parquet, globs), a pandas, polars or Arrow table, a list, a NumPy array, a DuckDB relation, or "
        "a Spark data frame",
    )


@contextmanager
def open_table(data: Any, *, sized: bool = False) -> Iterator[Source]:
    """Open any supported table; closes the connection, and replaces errors that could quote a record.

    `sized`: its number of records must be known before it is read, so a relation is asked for it first.
    """
    import duckdb
    import pyarrow as pa

    kind = frame_kind(data)
    if kind == "own":
        with data.open_source() as source:
            yield source
        return
    if kind == "spark":
        from privurn.tables.spark import open_spark

        with open_spark(data) as source:
            yield source
        return
    found = find_files(str(data)) if kind == "path" else None
    connection = connect()
    try:
        size = partial(int, data.count("*").fetchall()[0][0]) if sized and kind == "duckdb" else None
        with readable(found) as names:
            if found is None:
                columns, untyped, rows = _register_frame(connection, data, kind)
            else:
                columns, untyped = _register_files(connection, found, names)
                rows = partial(_count, connection)
            described = connection.execute("DESCRIBE SELECT * FROM t").fetchall()
            types = {name: _type(str(dtype)) for name, (_, dtype, *_) in zip(columns, described, strict=True)}
            yield Source(connection, kind, types, rows, size or rows, frozenset(types) if untyped == {"*"} else untyped, found)
    except (duckdb.Error, UnicodeError, pa.ArrowException, RuntimeError) as error:
        if str(error) == "Query interrupted" or isinstance(error, duckdb.InterruptException):  # DuckDB's words for Ctrl-C
            raise KeyboardInterrupt from None
        if isinstance(error, RuntimeError) and not isinstance(error, (duckdb.Error, pa.ArrowException)):
            raise  # some of Arrow's are RuntimeErrors
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            forget()
        raise _without_content(error, file=found is not None) from None
    finally:
        with suppress(duckdb.Error):
            connection.close()


def _type(described: str) -> str:
    return NOTHING if described == '"NULL"' else described


def _without_content(error: Exception, *, file: bool) -> FormatError:
    """DuckDB's complaint without the record it quotes."""
    text = str(error).lower()
    if isinstance(error, UnicodeError) or any(words in text for words in ("unicode", "utf-8 encoded", "invalid utf")):
        return FormatError(
            "the file is not valid UTF-8.", hint="Convert it first, for example: iconv -f latin1 -t utf-8 IN > OUT"
        )
    what = (
        "Check that the file is complete: CSV with as many fields in each line as in the first, or Parquet"
        if file
        else "Convert its columns to plain numbers, text or dates"
    )
    return FormatError(
        f"the table cannot be read ({type(error).__name__}).",
        hint=f"{what}; details are withheld because they could quote a record",
    )


def _register_frame(connection: Any, data: Any, kind: str) -> tuple[list[str], frozenset[str], Callable[[], int]]:
    """A frame as the view `t`, columns by place: their names, which are untyped, and how many records there are."""
    frame, untyped = _frame(data, kind)
    names = list(frame.schema.names)
    check_names(names)
    frame, rows = _renamed(frame, places(names))
    connection.register("t", frame)
    return names, untyped, rows


def _count(connection: Any) -> int:
    [(rows,)] = connection.execute("SELECT count(*) FROM t").fetchall()
    return int(rows)


def _renamed(frame: Any, names: list[str]) -> tuple[Any, Callable[[], int]]:
    """An Arrow table or stream under other names, and how many records it has; of a stream, how many have passed."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        known = pa.schema([pa.field(name, _known(each)) for name, each in zip(names, frame.schema, strict=True)])
        return frame.rename_columns(names).cast(known), lambda: int(frame.num_rows)
    passed = 0

    def batches() -> Iterator[Any]:
        nonlocal passed
        for batch in frame:
            passed += batch.num_rows
            yield batch.rename_columns(names)

    schema = pa.schema([each.with_name(name) for each, name in zip(frame.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, batches()), lambda: passed


def _known(field: Any) -> Any:
    """The type that DuckDB, which scans no floats of 16 bits and no decimals of others than 128, takes a column in."""
    import pyarrow as pa

    if pa.types.is_float16(field.type):
        return pa.float32()
    if not pa.types.is_decimal(field.type):
        return field.type
    if field.type.precision > LONGEST_DECIMAL:
        raise FormatError(f"column {field.name!r} has decimals of more than 38 digits.", hint="Cast it to doubles first")
    return pa.decimal128(field.type.precision, field.type.scale)


def _register_files(connection: Any, found: DataFiles, names: list[str]) -> tuple[list[str], frozenset[str]]:
    """The files as the view `t`, columns by place: their names, and which are untyped. Folders called a=1 are no columns."""
    listed = "[" + ", ".join(text_literal(each) for each in names) + "], hive_partitioning = false"
    if found.reader == "parquet":
        columns = parquet_names(names)
        own, instants = places(columns), old_instants(names)
        connection.execute(
            f"CREATE TEMP VIEW stored({', '.join(own)}) AS SELECT * FROM read_parquet({listed}, union_by_name = true)"
        )
        read = [
            f"CAST({place} AS TIMESTAMP WITH TIME ZONE) AS {place}" if name in instants else place
            for name, place in zip(columns, own, strict=True)
        ]
        connection.execute(f"CREATE TEMP VIEW t AS SELECT {', '.join(read)} FROM stored")
        return columns, frozenset()
    header = read_header(names)
    check_lines(names)
    typed = ", ".join(f"{place}: 'VARCHAR'" for place in places(header.names))
    dialect = f"delim = {text_literal(header.delimiter)}, quote = '\"', escape = '\"'"
    connection.execute(
        f"CREATE TEMP VIEW t AS SELECT * FROM read_csv({listed}, auto_detect = false, header = true, skip = 0, comment = '', "
        f"strict_mode = true, {dialect}, columns = {{{typed}}})"
    )
    return list(header.names), frozenset({"*"})


def _frame(data: Any, kind: str) -> tuple[Any, frozenset[str]]:
    """Something DuckDB can scan, and its untyped columns."""
    import pyarrow as pa

    if kind == "pandas":
        frame = data.to_frame(name=data.name or "value") if type(data).__name__ == "Series" else data
        columns, untyped = {}, set()
        if len({str(name) for name in frame.columns}) != len(frame.columns):
            raise FormatError("two columns have the same name.", hint="Rename one of them first")
        for name in frame.columns:
            column = frame[name]
            if column.dtype == object:
                untyped.add(str(name))
                columns[str(name)] = pa.array([None if _missing(value) else _text(value) for value in column], pa.string())
            else:  # NaN of a float column is missing as well (`Source.value`), like that of any other table
                columns[str(name)] = pa.array(column.to_numpy()) if isinstance(column.dtype, np.dtype) else pa.array(column)
        return pa.table(columns), frozenset(untyped)
    if kind == "polars":
        frame = data.collect() if type(data).__name__ == "LazyFrame" else data
        frame = frame.to_frame(frame.name or "value") if type(frame).__name__ == "Series" else frame
        if any("\0" in name for name in frame.columns):  # polars would panic, and not with an exception
            raise FormatError("a column's name holds a null character.", hint="Rename it first")
        return frame.to_arrow(), frozenset()
    if kind == "list":
        return _list_table(data)
    if kind == "numpy":
        return _numpy_table(data)
    if kind == "duckdb":
        return data.to_arrow_reader(1_000_000), frozenset()
    return pa.Table.from_batches([data]) if type(data).__name__ == "RecordBatch" else data, frozenset()


def _missing(value: Any) -> bool:
    """Whether a Python object stands for nothing."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling one too, which is no float
    return isinstance(value, (float, np.floating)) and bool(np.isnan(float(value)))


def _list_table(data: list[Any]) -> tuple[Any, frozenset[str]]:
    """One column, each value read by itself: a type for all of them would depend on single records."""
    import pyarrow as pa

    if any(isinstance(value, (list, tuple, dict, set)) for value in data):
        raise FormatError("a list is one column of values.", hint="For several columns give a table, such as a DataFrame")
    texts = pa.array([None if _missing(value) else _text(value) for value in data], pa.string())
    return pa.table({"value": texts}), frozenset({"value"})


def _text(value: Any) -> str:
    """A Python object as text; truth values as columns of them are written."""
    if isinstance(value, int) and abs(value) >= BEYOND:  # Python refuses to write numbers of thousands of digits
        return "inf" if value > 0 else "-inf"
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _numpy_table(data: NDArray[Any]) -> tuple[Any, frozenset[str]]:
    import pyarrow as pa

    if data.ndim not in (1, 2):
        raise FormatError("a NumPy array must have one or two dimensions.")
    columns = {"value": data} if data.ndim == 1 else {f"column_{i}": data[:, i] for i in range(data.shape[1])}
    if data.dtype.names:
        columns = {name: data[name] for name in data.dtype.names}
    arrays, untyped = {}, set()
    for name, column in columns.items():
        if column.dtype == object:
            untyped.add(name)
            arrays[name] = pa.array([None if _missing(value) else _text(value) for value in column], pa.string())
        else:
            arrays[name] = pa.array(column.astype(str) if column.dtype.kind == "U" else column)
    return pa.table(arrays), frozenset(untyped)
