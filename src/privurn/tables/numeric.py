"""Numeric columns of an opened table, in batches, or added up where they are: what sums over records are made of."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.errors import DomainError
from privurn.tables.category_keys import is_number
from privurn.tables.columns import floats, without_number
from privurn.tables.dialects import NAN
from privurn.tables.source import Source

Missing = Literal["error", "unreadable"]
"""What a missing value or text that is no number is: a breach of the declaration that there are none, or NaN."""

ROWS = 2**17
"""Records of a batch."""

AT_ONCE = 400
"""Sums of one query: each is compiled code, of which an engine takes so much."""


def numeric_batches(source: Source, columns: Sequence[str], *, missing: Missing = "error") -> Iterator[NDArray[np.float64]]:
    """Batches (records, columns) of numbers; what is missing or no number is NaN.

    Where that was declared not to be there it raises once all records have been read; so does a column of text.
    """
    _check_columns(source, columns, missing)
    wanted = [f"coalesce({source.number(name)}, {NAN}) AS x{i}" for i, name in enumerate(columns)]
    wanted += [f"CAST({source.value(name)} IS NULL AS DOUBLE) AS m{i}" for i, name in enumerate(columns)]
    nulls, readable, rows = np.zeros(len(columns)), np.zeros(len(columns)), 0
    for batch in source.connection.sql(f"SELECT {', '.join(wanted)} FROM t").to_arrow_reader(ROWS):
        numbers = np.column_stack([floats(batch.column(i)) for i in range(2 * len(columns))])
        values, absent = numbers[:, : len(columns)], numbers[:, len(columns) :]
        nulls += absent.sum(axis=0)
        readable += (~np.isnan(values)).sum(axis=0)
        rows += len(values)
        yield values
    _check_numbers(source, columns, missing, rows=rows, readable=readable, nulls=nulls)


def summed(
    source: Source, columns: Sequence[str], whole: Sequence[str], entries: Sequence[str], *, missing: Missing = "error"
) -> tuple[list[int], int]:
    """Exact sums over all records by the engine itself, and how many there are; refused as batches are.

    In SQL x0, x1, ... are the columns' numbers (NULL where there is none); from these come the `whole` numbers z0, z1, ..., and
    from these again the `entries` that are added up.
    """
    _check_columns(source, columns, missing)
    numbers = ", ".join(
        f"{source.number(name)} AS x{i}, {source.value(name)} IS NULL AS m{i}" for i, name in enumerate(columns)
    )
    kept = "".join(f", x{i}, m{i}" for i in range(len(columns)))
    made = ", ".join(f"CAST({each} AS BIGINT) AS z{i}" for i, each in enumerate(whole))
    records = f"FROM (SELECT {made}{kept} FROM (SELECT {numbers} FROM t))"
    facts = "".join(f", count(x{i}) AS r{i}, count_if(m{i}) AS m{i}" for i in range(len(columns)))
    totals, sizes = list[int](), set[int]()
    for start in range(0, len(entries), AT_ONCE):
        sums = [f"sum(CAST({each} AS DECIMAL(20, 0))) AS s{i}" for i, each in enumerate(entries[start : start + AT_ONCE])]
        found = source.connection.sql(f"SELECT count(*) AS n{facts}, {', '.join(sums)} {records}").to_arrow_table()
        n, *numbers_found = (int(column[0].as_py() or 0) for column in found.columns)  # the sum of no records is null
        readable, nulls = (np.array(numbers_found[k : 2 * len(columns) : 2]) for k in (0, 1))
        _check_numbers(source, columns, missing, rows=n, readable=readable, nulls=nulls)
        totals += numbers_found[2 * len(columns) :]
        sizes.add(n)
    if len(sizes) > 1:
        raise other_size()
    return totals, n


def _check_columns(source: Source, columns: Sequence[str], missing: Missing) -> None:
    if missing not in ("error", "unreadable"):
        raise DomainError("missing must be 'error' or 'unreadable'.")
    source.check_columns(list(columns))
    for name in columns:
        if name not in source.untyped and not is_number(source.types[name]) and source.types[name] != "BOOLEAN":
            raise _text(name)


def _check_numbers(
    source: Source, columns: Sequence[str], missing: Missing, *, rows: int, readable: NDArray[Any], nulls: NDArray[Any]
) -> None:
    if rows != source.own_size(rows):
        raise other_size()
    for i, name in enumerate(columns):
        if name in source.untyped and readable[i] == 0 and nulls[i] < rows:
            raise _text(name)
        if missing == "error" and readable[i] < rows:
            raise without_number(name, hint="Treat them as unreadable with missing='unreadable'")


def _text(name: str) -> DomainError:
    return DomainError(
        f"column {name!r} is declared numeric but holds text.",
        hint="Name another column, or convert it to numbers first, written like 1234.5: no commas",
    )
