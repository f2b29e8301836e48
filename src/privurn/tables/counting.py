"""From an opened table to counts: one SQL expression turns a record into its cell and never fails on content."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, Categories, ColumnDomain, Grid, JointDomain
from privurn.errors import DomainError
from privurn.tables.category_keys import category_keys, is_number
from privurn.tables.dialects import double
from privurn.tables.sources import SETTINGS, Source


def count_cells(source: Source, domain: JointDomain, *, secret_size: bool = False) -> CountTable:
    """Count the records of every cell of a joint domain; a secret number of records is not complained about either."""
    source.check_columns(list(domain.columns))
    expressions, readable, radix = [], [], 1
    for position, (name, column) in enumerate(domain.columns.items()):
        expression, reads = cell_expression(source, name, column, position)
        expressions.append(f"CAST({radix} AS BIGINT) * ({expression})")
        if reads is not None:
            readable.append((name, reads))
        radix *= column.size
    wanted = "".join(f", {reads} AS r{i}, {source.reference(name)} AS p{i}" for i, (name, reads) in enumerate(readable))
    sums = "".join(f", count(r{i}) AS readable_{i}, count(p{i}) AS present_{i}" for i in range(len(readable)))
    records = f"SELECT {' + '.join(expressions)} AS cell{wanted} {records_sql(source, domain.columns)}"
    table = source.connection.sql(f"SELECT cell, count(*) AS n{sums} FROM ({records}) GROUP BY cell").to_arrow_table()
    rows = source.rows()
    if not secret_size:
        check_rows(rows)
    for i, (name, _) in enumerate(readable):
        if sum(table[f"readable_{i}"].to_pylist()) == 0 and sum(table[f"present_{i}"].to_pylist()) > 0:
            raise text_for_number(name)
    if table["cell"].null_count:
        declared = [name for name, column in domain.columns.items() if column.null_cell is None]
        raise DomainError(
            f"there are missing values in {' or '.join(repr(name) for name in declared)}, declared to have none.",
            hint="Give nulls a cell of their own with nulls='cell'",
        )
    return CountTable.from_cells(integers(table["cell"]), integers(table["n"]), rows=rows)


def count_labels(source: Source, column: str) -> CountTable:
    """Count the records of every distinct label of one column, compared as text; a missing value is the label None."""
    source.check_columns([column])
    labels = f"SELECT {source.dialect.label(source.reference(column), source.types[column])} AS label FROM t"
    query = f"SELECT label, count(*) AS n FROM ({labels}) GROUP BY label ORDER BY label NULLS LAST"
    table = written(source.connection.sql(query).to_arrow_table())
    rows = source.rows()
    check_rows(rows)
    return CountTable(np.array(table["label"].to_pylist(), dtype=object), integers(table["n"]), rows=rows)


def written(table: Any) -> Any:
    """Distinct labels with their counts: as text and in order, as DuckDB writes what another engine left as it was."""
    import duckdb
    import pyarrow as pa

    if pa.types.is_string(table.schema.field("label").type):
        return table
    with duckdb.connect(":memory:", config=SETTINGS) as connection:
        connection.register("found", table)
        query = "SELECT CAST(label AS VARCHAR) AS label, CAST(sum(n) AS BIGINT) AS n FROM found GROUP BY 1 ORDER BY 1"
        return connection.sql(query).to_arrow_table()


def integers(column: Any) -> NDArray[np.int64]:
    """A column of integers without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    chunk = column.combine_chunks()
    parts = [chunk] if not hasattr(chunk, "chunks") else chunk.chunks
    if sum(len(part) for part in parts) == 0:
        return np.zeros(0, np.int64)
    return np.concatenate([np.frombuffer(part.buffers()[1], np.int64)[part.offset : part.offset + len(part)] for part in parts])


def count_records(source: Source) -> int:
    """How many records there are, by asking for them; `Source.rows` is what the table says after it was read."""
    return int(source.connection.sql("SELECT count(*) AS n FROM t").to_arrow_table()["n"][0].as_py())


def check_rows(n: int) -> None:
    """A guarantee for one record among n needs others to hide among."""
    if n == 0:
        raise DomainError("the table is empty.")
    if n == 1:
        raise DomainError("the table has one record: nothing can hide it.", hint="Release from at least two records")


def missing_values(names: Sequence[str]) -> DomainError:
    """The table breaks its own declaration."""
    return DomainError(
        f"there are missing values in {', '.join(map(repr, names))}, declared to have none.",
        hint="Give nulls a cell of their own with nulls='cell'",
    )


def text_for_number(name: str) -> DomainError:
    """The column cannot be what it was declared to be."""
    return DomainError(
        f"column {name!r} is declared numeric but holds text.",
        hint="Name another column, declare categories, or convert the column to numbers first",
    )


def cell_expression(source: Source, name: str, domain: ColumnDomain, position: int) -> tuple[str, str | None]:
    """SQL for the cell of a record (NULL: a null that was declared impossible); for untyped columns also what was readable."""
    value = source.reference(name)
    null = "NULL" if domain.null_cell is None else str(domain.null_cell)
    if isinstance(domain, Categories):
        outside = domain.other_cell if domain.other_cell is not None else domain.null_cell
        return f"CASE WHEN {value} IS NULL THEN {null} ELSE coalesce(k{position}.cell, {outside}) END", None
    untyped = name in source.untyped
    if not untyped and not is_number(source.types[name]):
        raise text_for_number(name)
    number = f"t.x{position}"
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
    below = f"{number} < {double(float(low - domain.spacing / 2))}"
    above = f"{number} >= {double(float(high + domain.spacing / 2))}"
    nearest = f"floor(({number} - {double(float(low))}) / {double(step)} + {double(0.5)})"
    cell = f"least(greatest(TRY_CAST({nearest} AS BIGINT), 0), {domain.n_values - 1})"
    return cell, below, above


def _bins_sql(domain: Bins, number: str) -> tuple[str, str, str]:
    edges = [float(Fraction(edge)) for edge in domain.edges]
    inner = " ".join(f"WHEN {number} < {double(edge)} THEN {i}" for i, edge in enumerate(edges[1:-1]))
    cell = f"CASE {inner} ELSE {domain.n_values - 1} END" if inner else "0"
    return cell, f"{number} < {double(edges[0])}", f"{number} > {double(edges[-1])}"


def records_sql(source: Source, columns: Mapping[str, ColumnDomain], *, extra: str = "") -> str:
    """FROM clause of records for `cell_expression`: numbers are read once, as x0, x1, ..., and lists of categories joined.

    `extra` is what else shall be known of each record.
    """
    numeric = [(i, name) for i, (name, domain) in enumerate(columns.items()) if not isinstance(domain, Categories)]
    numbers = "".join(f", {source.number(name)} AS x{i}" for i, name in numeric)
    joins = "".join(category_join(source, name, column, i) for i, (name, column) in enumerate(columns.items()))
    return f"FROM (SELECT t.*{numbers}{extra} FROM t) AS t{joins}"


def category_join(source: Source, name: str, domain: ColumnDomain, position: int) -> str:
    """Join with the list of categories, so that cost and memory do not depend on how many other values there are.

    No two categories have the same key, so a record meets at most one.
    """
    if not isinstance(domain, Categories):
        return ""
    stored = "VARCHAR" if name in source.untyped else source.types[name]
    keys, key_type = category_keys(name, domain, stored=stored)
    source.connection.register(f"categories_{position}", keys)
    compared = source.dialect.converted(source.reference(name), source.types[name], key_type)
    return f" LEFT JOIN categories_{position} AS k{position} ON {compared} = k{position}.key"
