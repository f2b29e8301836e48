"""Numeric columns of an opened table, in batches: what sums over records are made of."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.tables.category_keys import is_number
from privurn.tables.columns import without_number
from privurn.tables.dialects import NAN
from privurn.tables.source import Source

Missing = Literal["error", "unreadable"]
"""What a missing value or text that is no number is: a breach of the declaration that there are none, or NaN."""

ROWS = 2**17
"""Records of a batch."""


def numeric_batches(source: Source, columns: Sequence[str], *, missing: Missing = "error") -> Iterator[NDArray[np.float64]]:
    """Batches (records, columns) of numbers; what is missing or no number is NaN.

    Where that was declared not to be there it raises once all records have been read; so does a column of text.
    """
    if missing not in ("error", "unreadable"):
        raise DomainError("missing must be 'error' or 'unreadable'.")
    source.check_columns(list(columns))
    for name in columns:
        if name not in source.untyped and not is_number(source.types[name]) and source.types[name] != "BOOLEAN":
            raise _text(name)
    wanted = [f"coalesce({source.number(name)}, {NAN}) AS x{i}" for i, name in enumerate(columns)]
    wanted += [f"CAST({source.value(name)} IS NULL AS DOUBLE) AS m{i}" for i, name in enumerate(columns)]
    nulls, readable, rows = np.zeros(len(columns)), np.zeros(len(columns)), 0
    for batch in source.connection.sql(f"SELECT {', '.join(wanted)} FROM t").to_arrow_reader(ROWS):
        numbers = np.column_stack([_floats(batch.column(i)) for i in range(2 * len(columns))])
        values, absent = numbers[:, : len(columns)], numbers[:, len(columns) :]
        nulls += absent.sum(axis=0)
        readable += (~np.isnan(values)).sum(axis=0)
        rows += len(values)
        yield values
    for i, name in enumerate(columns):
        if name in source.untyped and readable[i] == 0 and nulls[i] < rows:
            raise _text(name)
        if missing == "error" and readable[i] < rows:
            raise without_number(name, hint="Treat them as unreadable with missing='unreadable'")


def _text(name: str) -> DomainError:
    return DomainError(f"column {name!r} is declared numeric but holds text.", hint="Name another column, or convert it first")


def _floats(column: Any) -> NDArray[np.float64]:
    """A column of floats without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    return np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
