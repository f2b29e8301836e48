"""Data frames and files in and out: the only module that knows pandas, polars, Arrow and DuckDB.

Rows never become Python objects: DuckDB reads the file or frame, turns each record into its cell with one expression, and
returns counts. Messages name columns and files, never what is in them; DuckDB's own messages can quote a record, so they
are not passed on.
"""

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, Categories, ColumnDomain, Grid, JointDomain, plain
from privurn.errors import DomainError, FormatError

NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
READERS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".gz": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class Source:
    """An opened table: a DuckDB connection with the data registered as `t`, the frame kind it came in, and its columns."""

    connection: Any
    kind: str
    types: Mapping[str, str]
    untyped: frozenset[str] = field(default_factory=frozenset)
    """Columns whose stored type says nothing about their content: CSV fields, pandas object columns."""

    def check_columns(self, columns: list[str]) -> None:
        """Every column asked for is there."""
        for name in columns:
            if name not in self.types:
                known = ", ".join(repr(each) for each in list(self.types)[:20])
                raise DomainError(f"there is no column {name!r}.", hint=f"The table has {known}")


def quoted(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def frame_kind(data: Any) -> str:
    """Which family a table belongs to: "path", "pandas", "polars", "arrow", "numpy" or "duckdb"."""
    if isinstance(data, (str, Path)):
        return "path"
    module, name = type(data).__module__.split(".")[0], type(data).__name__
    if module in ("pandas", "polars") and name in ("DataFrame", "Series", "LazyFrame"):
        return module
    if module == "pyarrow" and name in ("Table", "RecordBatch"):
        return "arrow"
    if isinstance(data, np.ndarray):
        return "numpy"
    if name == "DuckDBPyRelation":
        return "duckdb"
    raise FormatError(
        f"cannot read a table from {module}.{name}.",
        hint="Give a path (CSV, Parquet, globs), a pandas, polars or Arrow table, a NumPy array or a DuckDB relation",
    )


@contextmanager
def open_table(data: Any) -> Iterator[Source]:
    """Open any supported table; closes the connection, and replaces errors that could quote a record."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"allow_community_extensions": False})
    connection.execute("SET pandas_analyze_sample = 0")  # never guess a column's type from its records
    connection.execute("SET enable_progress_bar = false")
    try:
        yield _register(connection, data, frame_kind(data))
    except duckdb.Error as error:
        raise _without_content(error) from None
    finally:
        with suppress(duckdb.Error):
            connection.close()


def _without_content(error: Exception) -> FormatError:
    """DuckDB's complaint without the record it quotes."""
    text = str(error).lower()
    if "utf" in text or "unicode" in text or "encod" in text:
        return FormatError(
            "the file is not valid UTF-8.", hint="Convert it first, for example: iconv -f latin1 -t utf-8 IN > OUT"
        )
    return FormatError(
        f"the table cannot be read ({type(error).__name__}).",
        hint="Check that the file is complete CSV or Parquet; details are withheld because they could quote a record",
    )


def _register(connection: Any, data: Any, kind: str) -> Source:
    untyped: frozenset[str] = frozenset()
    if kind == "path":
        untyped = _register_path(connection, str(data))
    else:
        frame, untyped = _frame(data, kind)
        connection.register("t", frame)
    types = {name: str(dtype) for name, dtype, *_ in connection.execute("DESCRIBE SELECT * FROM t").fetchall()}
    return Source(connection, kind, types, frozenset(types) if untyped == {"*"} else untyped)


def _register_path(connection: Any, path: str) -> frozenset[str]:
    files = sorted(glob.glob(path)) if glob.has_magic(path) and not Path(path).exists() else [path]
    if not files or not all(Path(each).is_file() for each in files):
        raise FormatError(f"there is no file {path!r}.", hint="Give a CSV or Parquet file, or a glob such as 'data/*.parquet'")
    reader = READERS.get(Path(files[0]).suffix.lower())
    listed = "[" + ", ".join(text_literal(each) for each in files) + "]"
    if reader == "parquet":
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet({listed}, union_by_name = true)")
        return frozenset()
    if reader == "csv":
        if all(Path(each).stat().st_size == 0 for each in files):
            raise DomainError("the table is empty.")
        connection.execute(f"CREATE VIEW t AS SELECT * FROM read_csv({listed}, header = true, all_varchar = true)")
        return frozenset({"*"})
    raise FormatError(
        f"the kind of file {path!r} is not known.", hint="Names must end in .csv, .csv.gz, .tsv, .txt, .parquet or .pq"
    )


def _frame(data: Any, kind: str) -> tuple[Any, frozenset[str]]:
    """Something DuckDB can scan, and its untyped columns."""
    import pyarrow as pa

    if kind == "pandas":
        frame = data.to_frame(name=data.name or "value") if type(data).__name__ == "Series" else data
        columns, untyped = {}, set()
        for name in frame.columns:
            column = frame[name]
            if column.dtype == object:
                untyped.add(str(name))
                columns[str(name)] = pa.array([None if _missing(value) else str(value) for value in column], pa.string())
            else:  # NaN of a float column stays a number that is not one; only true nulls are null
                columns[str(name)] = pa.array(column.to_numpy()) if isinstance(column.dtype, np.dtype) else pa.array(column)
        return pa.table(columns), frozenset(untyped)
    if kind == "polars":
        frame = data.collect() if type(data).__name__ == "LazyFrame" else data
        frame = frame.to_frame(frame.name or "value") if type(frame).__name__ == "Series" else frame
        return frame.to_arrow(), frozenset()
    if kind == "numpy":
        return _numpy_table(data)
    if kind == "duckdb":
        return data.to_arrow_reader(1_000_000), frozenset()
    return pa.table(data) if type(data).__name__ == "RecordBatch" else data, frozenset()


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


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
            arrays[name] = pa.array([None if _missing(value) else str(value) for value in column], pa.string())
        else:
            arrays[name] = pa.array(column.astype(str) if column.dtype.kind == "U" else column)
    return pa.table(arrays), frozenset(untyped)


def count_cells(source: Source, domain: JointDomain) -> CountTable:
    """Count the records of every cell of a joint domain."""
    source.check_columns(list(domain.columns))
    expressions, readable, radix = [], [], 1
    for position, (name, column) in enumerate(domain.columns.items()):
        expression, reads = _cell_expression(source, name, column, position)
        expressions.append(f"{radix}::BIGINT * ({expression})")
        if reads is not None:
            readable.append((name, reads))
        radix *= column.size
    joins = "".join(_category_join(source, name, column, i) for i, (name, column) in enumerate(domain.columns.items()))
    checks = "".join(f", count({reads}) AS readable_{i}" for i, (_, reads) in enumerate(readable))
    checks += "".join(f", count(t.{quoted(name)}) AS present_{i}" for i, (name, _) in enumerate(readable))
    query = f"SELECT {' + '.join(expressions)} AS joint_cell, count(*) AS n{checks} FROM t{joins} GROUP BY joint_cell"
    table = source.connection.sql(query).to_arrow_table()
    counts = _integers(table["n"])
    check_rows(int(counts.sum()))
    for i, (name, _) in enumerate(readable):
        if sum(table[f"readable_{i}"].to_pylist()) == 0 and sum(table[f"present_{i}"].to_pylist()) > 0:
            raise _text_for_number(name)
    if table["joint_cell"].null_count:
        declared = [name for name, column in domain.columns.items() if column.null_cell is None]
        raise DomainError(
            f"there are missing values in {' or '.join(repr(name) for name in declared)}, declared to have none.",
            hint="Give nulls a cell of their own with nulls='cell' (--nulls cell)",
        )
    return CountTable.from_cells(_integers(table["joint_cell"]), counts)


def count_labels(source: Source, column: str) -> CountTable:
    """Count the records of every distinct label of one column, compared as text; a missing value is the label None."""
    source.check_columns([column])
    query = f"SELECT CAST({quoted(column)} AS VARCHAR) AS label, count(*) AS n FROM t GROUP BY label ORDER BY label"
    table = source.connection.sql(query).to_arrow_table()
    counts = _integers(table["n"])
    check_rows(int(counts.sum()))
    return CountTable(np.array(table["label"].to_pylist(), dtype=object), counts)


def _integers(column: Any) -> NDArray[np.int64]:
    """A column of integers without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    chunk = column.combine_chunks()
    parts = [chunk] if not hasattr(chunk, "chunks") else chunk.chunks
    return np.concatenate([np.frombuffer(part.buffers()[1], np.int64)[part.offset : part.offset + len(part)] for part in parts])


def check_rows(n: int) -> None:
    """A guarantee for one record among n needs others to hide among."""
    if n == 0:
        raise DomainError("the table is empty.")
    if n == 1:
        raise DomainError("the table has one record: nothing can hide it.", hint="Release from at least two records")


def _text_for_number(name: str) -> DomainError:
    return DomainError(
        f"column {name!r} is declared numeric but holds text.",
        hint="Name another column, declare categories, or convert the column to numbers first",
    )


def _cell_expression(source: Source, name: str, domain: ColumnDomain, position: int) -> tuple[str, str | None]:
    """SQL for the cell of a record (NULL: a null that was declared impossible); for untyped columns also what was readable."""
    value = f"t.{quoted(name)}"
    null = "NULL" if domain.null_cell is None else str(domain.null_cell)
    if isinstance(domain, Categories):
        outside = domain.other_cell if domain.other_cell is not None else domain.null_cell
        return f"CASE WHEN {value} IS NULL THEN {null} ELSE coalesce(c{position}.cell, {outside}) END", None
    untyped = name in source.untyped
    if not untyped and not source.types[name].startswith(NUMERIC) and not source.types[name].startswith("U"):
        raise _text_for_number(name)
    number = f"TRY_CAST({value} AS DOUBLE)"
    cell, below, above = _grid_sql(domain, number) if isinstance(domain, Grid) else _bins_sql(as_bins(domain), number)
    if domain.outside == "clamp":
        inside = f"CASE WHEN {below} THEN 0 WHEN {above} THEN {domain.n_values - 1} ELSE {cell} END"
    else:
        outside = domain.other_cell if domain.other_cell is not None else domain.null_cell
        inside = f"CASE WHEN {below} OR {above} THEN {outside} ELSE {cell} END"
    expression = (
        f"CASE WHEN {value} IS NULL THEN {null} WHEN {number} IS NULL OR isnan({number}) "
        f"THEN {domain.unreadable_cell} ELSE {inside} END"
    )
    return expression, number if untyped else None


def as_bins(domain: ColumnDomain) -> Bins:
    """The only other numeric domain there is."""
    if not isinstance(domain, Bins):
        raise DomainError("a column's domain must be a grid, bins or categories.")
    return domain


def _grid_sql(domain: Grid, number: str) -> tuple[str, str, str]:
    """Cell, and conditions for below and above, of a number that is one. Infinities never reach the rounding."""
    low, high = domain.bounds
    step = float(domain.spacing)
    below = f"{number} < {float(low - domain.spacing / 2)!r}"
    above = f"{number} >= {float(high + domain.spacing / 2)!r}"
    cell = f"least(greatest(floor(({number} - {float(low)!r}) / {step!r} + 0.5), 0), {domain.n_values - 1})::BIGINT"
    return cell, below, above


def _bins_sql(domain: Bins, number: str) -> tuple[str, str, str]:
    edges = [float(Fraction(edge)) for edge in domain.edges]
    inner = " ".join(f"WHEN {number} < {edge!r} THEN {i}" for i, edge in enumerate(edges[1:-1]))
    cell = f"CASE {inner} ELSE {domain.n_values - 1} END" if inner else "0"
    return cell, f"{number} < {edges[0]!r}", f"{number} > {edges[-1]!r}"


def _category_join(source: Source, name: str, domain: ColumnDomain, position: int) -> str:
    """Join with the list of categories, so that cost and memory do not depend on how many other values there are."""
    import pyarrow as pa

    if not isinstance(domain, Categories):
        return ""
    as_numbers = source.types[name].startswith(NUMERIC) and name not in source.untyped and _numbers(domain.values) is not None
    labels = pa.array(_numbers(domain.values)) if as_numbers else pa.array([_label(value) for value in domain.values])
    cells = pa.table({"label": labels, "cell": pa.array(np.arange(domain.n_values))})
    source.connection.register(f"categories_{position}", cells)
    cast = "DOUBLE" if as_numbers else "VARCHAR"
    return f" LEFT JOIN categories_{position} AS c{position} ON CAST(t.{quoted(name)} AS {cast}) = c{position}.label"


def _label(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(values: Any) -> list[float] | None:
    try:
        numbers = [float(value) for value in values if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) == len(values) == len(set(numbers)) else None


def decode(cells: NDArray[np.int64], domain: JointDomain) -> Any:
    """Arrow table of the records that cell numbers stand for."""
    import pyarrow as pa

    columns, rest = {}, cells
    for name, column in domain.columns.items():
        rest, own = np.divmod(rest, column.size)
        columns[name] = _decode_column(own, column)
    return pa.table(columns)


def _decode_column(cells: NDArray[np.int64], domain: ColumnDomain) -> Any:
    """Released values: "other" is the text "other" among categories and NaN among numbers; the null cell is null."""
    import pyarrow as pa

    null = np.zeros(len(cells), bool) if domain.null_cell is None else cells == domain.null_cell
    if isinstance(domain, Categories):
        values = list(domain.values)
        if domain.other_cell is not None:
            values = [*map(str, values), "other"] if not all(isinstance(v, str) for v in values) else [*values, "other"]
        dictionary = pa.array(values if len({type(v) for v in values}) == 1 else [str(v) for v in values])
        return dictionary.take(_arrow(np.where(null, 0, cells), null))
    numbers = _grid_values(domain) if isinstance(domain, Grid) else _midpoints(as_bins(domain))
    if domain.other_cell is not None:
        numbers = np.append(numbers.astype(np.float64), np.nan)
    return _arrow(numbers[np.where(null, 0, cells)], null)


def _arrow(numbers: NDArray[Any], null: NDArray[np.bool_]) -> Any:
    """Arrow array of numbers by their buffers: Arrow's own conversion imports pandas where it is installed."""
    import pyarrow as pa

    whole = np.issubdtype(numbers.dtype, np.integer)
    data = np.ascontiguousarray(numbers, np.int64 if whole else np.float64)
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(pa.int64() if whole else pa.float64(), len(data), [validity, pa.py_buffer(data)])


def _grid_values(domain: Grid) -> NDArray[Any]:
    low, step = domain.bounds[0], domain.spacing
    common = low.denominator * step.denominator
    units = int(low * common) + int(step * common) * np.arange(domain.n_values, dtype=np.int64)
    if low.denominator == step.denominator == 1:
        return units
    return units / common  # one correctly rounded division, so 0.1 comes out as 0.1


def _midpoints(domain: Bins) -> NDArray[Any]:
    edges = [Fraction(edge) for edge in domain.edges]
    middles = [plain((a + b) / 2) for a, b in pairwise(edges)]
    return np.array(middles)


def decode_labels(labels: list[str | None], column: str) -> Any:
    """Arrow table of one column of text."""
    import pyarrow as pa

    return pa.table({column: pa.array(labels, pa.string())})


def to_kind(table: Any, kind: str) -> Any:
    """The Arrow table as the kind of frame that came in; files come out as Arrow."""
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if kind == "numpy":
        columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


def write(table: Any, path: Path) -> None:
    """Write CSV or Parquet, as the name says."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)


def read_columns(path: Path) -> Any:
    """Arrow table of a released file (public data)."""
    import pyarrow.csv
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
