"""One column of numbers of an opened table as an array, record by record in the table's order: what local channels need."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.tables.category_keys import is_number
from privurn.tables.counting import text_for_number
from privurn.tables.dialects import NAN
from privurn.tables.output import _arrow
from privurn.tables.sources import Source

MissingNumbers = Literal["error", "lower"]


def read_numbers(source: Source, column: str, *, nulls: MissingNumbers = "error") -> NDArray[np.float64]:
    """The numbers of a column in order; what is no number is NaN. Nulls are NaN too, or declared not to be there."""
    source.check_columns([column])
    untyped = column in source.untyped
    if not untyped and not is_number(source.types[column]):
        raise text_for_number(column)
    value = source.reference(column)
    query = f"SELECT coalesce({source.number(column)}, {NAN}) AS number, {value} IS NOT NULL AS present FROM t"
    table = source.connection.sql(query).to_arrow_table()
    present = int(table["present"].true_count if hasattr(table["present"], "true_count") else sum(table["present"].to_pylist()))
    check_any(table.num_rows)
    if nulls == "error" and present < table.num_rows:
        raise DomainError(
            f"there are missing values in {column!r}, declared to have none.",
            hint="Count them as the lower bound with nulls='lower'",
        )
    numbers = _floats(table["number"])
    if untyped and present > 0 and np.isnan(numbers).all():
        raise text_for_number(column)
    return numbers


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
