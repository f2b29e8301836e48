"""From an opened table to counts."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable, exact_sum
from privurn.domain import JointDomain
from privurn.errors import DomainError
from privurn.tables.cell_expressions import cell_expression, records_sql, refused, unreadable
from privurn.tables.database import connect
from privurn.tables.dialects import DUCKDB
from privurn.tables.source import Source
from privurn.tables.special_cells import SpecialCells

MOST_CODES = 2**62
"""Of joint cells with two more of each column for what is clamped there; with more nothing is told of it."""


def count_cells(
    source: Source, domain: JointDomain, *, secret_size: bool = False, special: SpecialCells | None = None
) -> CountTable:
    """Count the records of every cell of a joint domain; a secret number of records is not complained about either.

    `special` is told how many records are in cells that stand for no value.
    """
    source.check_columns(list(domain.columns))
    named = list(domain.columns.items())
    cells, readable, joint, broken, radix = [], [], [], [], 1
    watched = special is not None and prod(column.size + 2 for _, column in named) < MOST_CODES
    widths = {name: column.size + 2 * (watched and column.outside == "clamp") for name, column in named}
    for i, (name, column) in enumerate(named):
        ends = (column.size, column.size + 1) if widths[name] > column.size else None
        expression, reads = cell_expression(source, name, column, i, ends=ends)
        cells.append(f"{expression} AS c{i}")
        joint.append(f"CAST({radix} AS BIGINT) * c{i}")
        broken.append(f"WHEN c{i} < 0 THEN c{i} - {2 * i}")
        if reads is not None:
            readable.append((name, reads))
        radix *= widths[name]
    wanted = "".join(f", {reads} AS r{i}, {source.value(name)} AS p{i}" for i, (name, reads) in enumerate(readable))
    sums = "".join(f", count(r{i}) AS readable_{i}, count(p{i}) AS present_{i}" for i in range(len(readable)))
    records = f"SELECT {', '.join(cells)}{wanted} {records_sql(source, domain.columns)}"
    # of one column the cell is all there is: what is asked of every record decides how long counting takes
    cell = f"CASE {' '.join(broken)} ELSE {' + '.join(joint)} END" if len(named) > 1 else "CAST(c0 AS BIGINT)"
    query = f"SELECT cell, count(*) AS n{sums} FROM (SELECT *, {cell} AS cell FROM ({records})) GROUP BY cell"
    table = source.connection.sql(query).to_arrow_table()
    numbers = integers(table["n"])
    rows = source.own_size(exact_sum(numbers))
    if not secret_size:
        check_rows(rows)
    for i, (name, _) in enumerate(readable):
        if sum(table[f"readable_{i}"].to_pylist()) == 0 and sum(table[f"present_{i}"].to_pylist()) > 0:
            raise unreadable(name, domain.columns[name])
    found = integers(table["cell"])
    if found.min(initial=0) < 0:
        at = [divmod(-1 - int(each), 2) for each in found[found < 0]]  # column, and whether it is OUTSIDE rather than MISSING
        names = {kind: {named[i][0] for i, outside in at if outside == kind} for kind in (0, 1)}
        raise refused(dict(named), missing=names[0], outside=names[1])
    if special is not None:
        found, numbers = _told(special, widths, found, numbers)
    return CountTable.from_cells(found, numbers, rows=rows)


def _told(
    special: SpecialCells, widths: Mapping[str, int], codes: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Joint cells and their numbers of records, from codes with two more for what is clamped, of which `special` is told."""
    cells, radix, clamped = np.zeros_like(codes), 1, 0
    for name, width in widths.items():
        codes, own = np.divmod(codes, width)
        size = special.columns[name].size
        if width > size:
            clamped += int((own >= size).sum())
            own = special.unclamped(name, own, numbers)
        special.add_cells(name, own, numbers)
        cells += radix * own
        radix *= size
    if clamped == 0:
        return cells, numbers
    distinct, place = np.unique(cells, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, place, numbers)
    return distinct, totals


def count_labels(source: Source, column: str) -> CountTable:
    """Count the records of every distinct label of one column, compared as text; a missing value is the label None."""
    source.check_columns([column])
    labels = f"SELECT {source.dialect.label(source.value(column), source.types[column])} AS label FROM t"
    query = f"SELECT label, count(*) AS n FROM ({labels}) GROUP BY label ORDER BY label NULLS LAST"
    table = written(source.connection.sql(query).to_arrow_table())
    numbers = integers(table["n"])
    rows = source.own_size(exact_sum(numbers))
    check_rows(rows)
    return CountTable(np.array(table["label"].to_pylist(), dtype=object), numbers, rows=rows)


def written(table: Any) -> Any:
    """Distinct labels with their counts: as text and in order, as DuckDB writes what another engine left as it was."""
    import pyarrow as pa

    if pa.types.is_string(table.schema.field("label").type):
        return table
    with connect() as connection:
        connection.register("found", table)
        [(_, stored, *_), _] = connection.sql("DESCRIBE found").fetchall()
        text = DUCKDB.text("label", str(stored))
        query = f"SELECT {text} AS label, CAST(sum(n) AS BIGINT) AS n FROM found GROUP BY 1 ORDER BY 1"
        return connection.sql(query).to_arrow_table()


def integers(column: Any) -> NDArray[np.int64]:
    """A column of integers without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    parts = getattr(column, "chunks", [column])
    if sum(len(part) for part in parts) == 0:
        return np.zeros(0, np.int64)
    return np.concatenate([np.frombuffer(part.buffers()[1], np.int64)[part.offset : part.offset + len(part)] for part in parts])


def check_rows(n: int) -> None:
    """A guarantee for one record among n needs others to hide among."""
    if n == 0:
        raise DomainError("the table is empty.", hint="Give a table of at least two records")
    if n == 1:
        raise DomainError("the table has one record: nothing can hide it.", hint="Release from at least two records")
