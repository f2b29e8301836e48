"""The cells of several columns side by side, in one pass over an opened table, a batch of records at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import TableDomain
from privurn.errors import DomainError
from privurn.tables.cell_expressions import MISSING, OUTSIDE, cell_expression, records_sql, refused, unreadable
from privurn.tables.counting import check_rows
from privurn.tables.source import Source
from privurn.tables.special_cells import SpecialCells

BATCH = 2**17
"""Records at a time."""

CODES = 2**16
"""Of a cell in 16 bits; the last two stand for MISSING and OUTSIDE, and columns have fewer cells."""


def cell_batches(
    source: Source, domain: TableDomain, *, secret_size: bool = False, special: SpecialCells | None = None
) -> Iterator[NDArray[np.uint16]]:
    """A row for each column and the cell of each record in it; what is wrong with a table is said after its last record.

    A secret number of records is not complained about. `special` is told how many are in cells that stand for no value.
    """
    named = list(domain.columns.items())
    source.check_columns([name for name, _ in named])
    most = CODES + min(MISSING, OUTSIDE)
    if max(domain.sizes) > most:
        raise DomainError(f"a column of a table has at most {most:,} cells.", hint="Use a larger step, or wider bins")
    wanted, untyped = [], []
    for i, (name, column) in enumerate(named):
        expression, reads = cell_expression(source, name, column, i)
        wanted.append(f"(({expression} + {CODES}) % {CODES})::USMALLINT AS c{i}")
        if reads is not None:
            wanted.append(f"({reads} IS NOT NULL)::UTINYINT + 2 * ({source.value(name)} IS NOT NULL)::UTINYINT AS r{i}")
            untyped.append(i)
    clamped = {} if special is None else special.clamped(source)
    wanted += [f"coalesce({condition}, false)::UTINYINT AS s{i}" for i, condition in enumerate(clamped.values())]
    records = records_sql(source, domain.columns)
    reader = source.connection.sql(f"SELECT {', '.join(wanted)} {records}").to_arrow_reader(BATCH)
    rows = 0
    missing, outside = np.zeros((2, len(named)), bool)
    found = dict.fromkeys(untyped, 0)  # 1: something could be read; 2: something was there
    for batch in reader:
        codes = np.empty((len(named), batch.num_rows), np.uint16)
        for i in range(len(named)):
            codes[i] = _numbers(batch.column(f"c{i}"), np.uint16)
        for i in untyped:
            found[i] |= int(np.bitwise_or.reduce(_numbers(batch.column(f"r{i}"), np.uint8), initial=0))
        if special is not None:
            for (name, _), own in zip(named, codes, strict=True):
                special.add_cells(name, own)
            for i, key in enumerate(clamped):
                special.found[key] += int(_numbers(batch.column(f"s{i}"), np.uint8).sum(dtype=np.int64))
        rows += batch.num_rows
        missing |= (codes == CODES + MISSING).any(axis=1)
        outside |= (codes == CODES + OUTSIDE).any(axis=1)
        if not (missing | outside).any():
            yield codes
    if rows != source.own_size(rows):
        raise other_size()
    if not secret_size:
        check_rows(rows)
    for i in untyped:
        if found[i] == 2:
            raise unreadable(*named[i])
    if (missing | outside).any():
        broken = [[named[i][0] for i in np.flatnonzero(each)] for each in (missing, outside)]
        raise refused(dict(named), missing=broken[0], outside=broken[1])


def _numbers(column: Any, dtype: type) -> NDArray[Any]:
    """A column without nulls, by its buffer."""
    size = np.dtype(dtype).itemsize
    buffer, offset, length = column.buffers()[1], column.offset, len(column)
    return np.frombuffer(buffer, dtype, count=length, offset=offset * size) if length else np.zeros(0, dtype)
