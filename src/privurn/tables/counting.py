"""From an opened table to counts: one SQL expression turns a record into its cell and never fails on content."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, Categories, ColumnDomain, Grid, JointDomain, label_text
from privurn.errors import DomainError
from privurn.tables.sources import Source

NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


def quoted(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def count_cells(source: Source, domain: JointDomain, *, secret_size: bool = False) -> CountTable:
    """Count the records of every cell of a joint domain; a secret number of records is not complained about either."""
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
    if not secret_size:
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
    if sum(len(part) for part in parts) == 0:
        return np.zeros(0, np.int64)
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
    labels = pa.array(_numbers(domain.values)) if as_numbers else pa.array([label_text(value) for value in domain.values])
    cells = pa.table({"label": labels, "cell": pa.array(np.arange(domain.n_values))})
    source.connection.register(f"categories_{position}", cells)
    cast = "DOUBLE" if as_numbers else "VARCHAR"
    return f" LEFT JOIN categories_{position} AS c{position} ON CAST(t.{quoted(name)} AS {cast}) = c{position}.label"


def _numbers(values: Any) -> list[float] | None:
    try:
        numbers = [float(value) for value in values if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) == len(values) == len(set(numbers)) else None
