"""One column of numbers of an opened table as an array, record by record in the table's order: what local channels need."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.errors import DomainError
from privurn.tables.category_keys import is_number
from privurn.tables.cell_expressions import text_for_number
from privurn.tables.dialects import NAN
from privurn.tables.engine import Answer
from privurn.tables.output import _arrow
from privurn.tables.source import Source

MissingNumbers = Literal["error", "lower"]


def read_numbers(source: Source, column: str, *, nulls: MissingNumbers = "error") -> NDArray[np.float64]:
    """The numbers of a column in order; what is missing or no number is NaN, or declared not to be there."""
    import pyarrow.compute as pc

    query = f"SELECT {_number(source, column)} AS number, {source.value(column)} IS NOT NULL AS present FROM t"
    table = source.connection.sql(query).to_arrow_table()
    check_any(table.num_rows)
    numbers, present = floats(table["number"]), pc.any(table["present"]).as_py()
    readable = len(numbers) - int(np.isnan(numbers).sum())
    _check(source, column, n=len(numbers), readable=readable, present=present, nulls=nulls)
    return numbers


def numbers_elsewhere(source: Source, column: str, *, nulls: MissingNumbers = "error") -> tuple[Answer, int]:
    """The same numbers where the engine has them, and how many there are; refused as they are when they are read."""
    number = _number(source, column)
    query = f"SELECT count(*) AS n, count({source.number(column)}) AS readable, count({source.value(column)}) AS present FROM t"
    n, readable, present = (int(each[0].as_py()) for each in source.connection.sql(query).to_arrow_table().columns)
    check_any(n)
    check_unchanged(source, n)
    _check(source, column, n=n, readable=readable, present=present > 0, nulls=nulls)
    return source.connection.sql(f"SELECT {number} AS number FROM t"), n


def _number(source: Source, column: str) -> str:
    """A number for each record, in SQL; NaN where there is none."""
    source.check_columns([column])
    if column not in source.untyped and not is_number(source.types[column]):
        raise text_for_number(column)
    return f"coalesce({source.number(column)}, {NAN})"


def _check(source: Source, column: str, *, n: int, readable: int, present: bool, nulls: MissingNumbers) -> None:
    if column in source.untyped and present and readable == 0:
        raise text_for_number(column)
    if nulls == "error" and readable < n:
        raise without_number(column, hint="Count them as the lower bound with nulls='lower'")


def without_number(column: str, *, hint: str) -> DomainError:
    """The column was declared to hold numbers only."""
    return DomainError(f"there are missing values in {column!r}, or text that is no number, declared to have none.", hint=hint)


def numbers_table(numbers: NDArray[Any], columns: list[str]) -> Any:
    """Arrow table of released numbers: one column, or one for each number of a record."""
    import pyarrow as pa

    parts = [numbers] if numbers.ndim == 1 else list(numbers.T)
    present = np.zeros(len(numbers), bool)
    return pa.table({name: _arrow(part, present) for name, part in zip(columns, parts, strict=True)})


def check_any(n: int) -> None:
    """There is a record."""
    if n == 0:
        raise DomainError("the table is empty.", hint="Give a table with records in it")


def check_unchanged(source: Source, n: int) -> None:
    """A table that will be read again once it is paid for, because it stays where it is, has as many records a second time."""
    if source.size() != n:
        raise other_size()


def floats(column: Any) -> NDArray[np.float64]:
    """A column of doubles without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    parts = getattr(column, "chunks", [column])
    return np.concatenate(
        [np.frombuffer(part.buffers()[1], np.float64)[part.offset : part.offset + len(part)] for part in parts]
    )
