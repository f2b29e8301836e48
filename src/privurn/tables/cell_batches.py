"""The cells of several columns side by side, in one pass over an opened table, a batch of records at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import TableDomain
from privurn.errors import DomainError
from privurn.tables.counting import cell_expression, check_rows, missing_values, records_sql, text_for_number
from privurn.tables.sources import Source

BATCH = 2**17
"""Records at a time."""

MISSING = 2**16 - 1
"""Stands for a missing value that was declared impossible; columns have fewer cells."""


def cell_batches(source: Source, domain: TableDomain, *, secret_size: bool = False) -> Iterator[NDArray[np.uint16]]:
    """A row for each column and the cell of each record in it; what is wrong with a table is said after its last record.

    A secret number of records is not complained about.
    """
    named = list(domain.columns.items())
    source.check_columns([name for name, _ in named])
    if max(domain.sizes) > MISSING:
        raise DomainError(f"a column of a table has at most {MISSING:,} cells.", hint="Use a larger step, or wider bins")
    wanted, untyped = [], []
    for i, (name, column) in enumerate(named):
        expression, reads = cell_expression(source, name, column, i)
        wanted.append(f"coalesce({expression}, {MISSING})::USMALLINT AS c{i}")
        if reads is not None:
            wanted.append(f"({reads} IS NOT NULL)::UTINYINT + 2 * ({source.reference(name)} IS NOT NULL)::UTINYINT AS r{i}")
            untyped.append(i)
    records = records_sql(source, domain.columns)
    reader = source.connection.sql(f"SELECT {', '.join(wanted)} {records}").to_arrow_reader(BATCH)
    rows, missing = 0, np.zeros(len(named), bool)
    found = dict.fromkeys(untyped, 0)  # 1: something could be read; 2: something was there
    for batch in reader:
        codes = np.empty((len(named), batch.num_rows), np.uint16)
        for i in range(len(named)):
            codes[i] = _numbers(batch.column(f"c{i}"), np.uint16)
        for i in untyped:
            found[i] |= int(np.bitwise_or.reduce(_numbers(batch.column(f"r{i}"), np.uint8), initial=0))
        rows += batch.num_rows
        missing |= (codes == MISSING).any(axis=1)
        if not missing.any():
            yield codes
    if rows != source.rows():
        raise other_size()
    if not secret_size:
        check_rows(rows)
    for i in untyped:
        if found[i] == 2:
            raise text_for_number(named[i][0])
    if missing.any():
        raise missing_values([named[i][0] for i in np.flatnonzero(missing)])


def _numbers(column: Any, dtype: type) -> NDArray[Any]:
    """A column without nulls, by its buffer."""
    size = np.dtype(dtype).itemsize
    buffer, offset, length = column.buffers()[1], column.offset, len(column)
    return np.frombuffer(buffer, dtype, count=length, offset=offset * size) if length else np.zeros(0, dtype)
