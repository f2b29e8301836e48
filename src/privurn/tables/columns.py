"""One column of numbers of an opened table as an array, record by record in the table's order: what local channels need."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.tables.category_keys import is_number
from privurn.tables.cell_expressions import text_for_number
from privurn.tables.dialects import NAN
from privurn.tables.output import _arrow
from privurn.tables.source import Source

MissingNumbers = Literal["error", "lower"]


def read_numbers(source: Source, column: str, *, nulls: MissingNumbers = "error") -> NDArray[np.float64]:
    """The numbers of a column in order; what is missing or no number is NaN, or declared not to be there."""
    import pyarrow.compute as pc

    source.check_columns([column])
    untyped = column in source.untyped
    if not untyped and not is_number(source.types[column]):
        raise text_for_number(column)
    number, present = f"coalesce({source.number(column)}, {NAN})", f"{source.value(column)} IS NOT NULL"
    query = f"SELECT {number} AS number, {present} AS present FROM t"
    table = source.connection.sql(query).to_arrow_table()
    any_present = pc.any(table["present"]).as_py()
    check_any(table.num_rows)
    numbers = _floats(table["number"])
    if untyped and any_present and np.isnan(numbers).all():
        raise text_for_number(column)
    if nulls == "error" and np.isnan(numbers).any():
        raise without_number(column, hint="Count them as the lower bound with nulls='lower'")
    return numbers


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
        raise DomainError("the table is empty.")


def _floats(column: Any) -> NDArray[np.float64]:
    """A column of doubles without nulls, by the buffer: Arrow's own conversion imports pandas where it is installed."""
    parts = column.chunks
    return np.concatenate(
        [np.frombuffer(part.buffers()[1], np.float64)[part.offset : part.offset + len(part)] for part in parts]
    )
