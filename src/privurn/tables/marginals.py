"""Counts of a table by sets of its columns, counted where the records are: one pass, and only counts come back."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import TableDomain
from privurn.tables.counting import cell_expression, check_rows, integers, missing_values, records_sql, text_for_number
from privurn.tables.sources import Source


def count_sets(
    source: Source, domain: TableDomain, sets: Sequence[tuple[int, ...]], *, secret_size: bool = False
) -> tuple[NDArray[np.int64], int]:
    """How many records each cell of each set of columns has, one set after the other, and how many there are.

    Sets name columns by their places; the cells of a set's last column run fastest. Every record is made into a list of
    numbers, which are counted: its cell in each set, and behind those what has to be known of the table.
    """
    named = list(domain.columns.items())
    source.check_columns([name for name, _ in named])
    sizes = [prod(domain.sizes[j] for j in each) for each in sets]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    total = starts.pop()
    cells: list[str] = []
    untyped: list[str] = []
    numbers = [_joint(each, domain.sizes, start) for each, start in zip(sets, starts, strict=True)]
    numbers.append(str(total))  # every record
    for i, (name, column) in enumerate(named):
        expression, reads = cell_expression(source, name, column, i)
        cells.append(f"{expression} AS c{i}")
        numbers.append(f"CASE WHEN c{i} IS NULL THEN {-1 - i} END")
        if reads is not None:
            first = total + 1 + 2 * len(untyped)
            cells += [f"{reads} AS r{i}", f"{source.reference(name)} AS p{i}"]
            numbers += [f"CASE WHEN {what}{i} IS NOT NULL THEN {first + k} END" for k, what in enumerate("rp")]
            untyped.append(name)
    records = f"SELECT {', '.join(cells)} {records_sql(source, domain.columns)}"
    listed = source.dialect.one_each([f"CAST({each} AS BIGINT)" for each in numbers])
    query = f"SELECT cell, count(*) AS n FROM (SELECT {listed} AS cell FROM ({records})) WHERE cell IS NOT NULL GROUP BY cell"
    table = source.connection.sql(query).to_arrow_table()
    found, counts = integers(table["cell"]), integers(table["n"])
    dense = np.zeros(total + 1 + 2 * len(untyped), np.int64)
    dense[found[found >= 0]] = counts[found >= 0]
    rows = int(dense[total])
    if rows != source.rows():
        raise other_size()
    if not secret_size:
        check_rows(rows)
    for name, (readable, present) in zip(untyped, dense[total + 1 :].reshape(-1, 2).tolist(), strict=True):
        if readable == 0 and present > 0:
            raise text_for_number(name)
    if found.min(initial=0) < 0:
        raise missing_values([named[i][0] for i in sorted(-1 - int(each) for each in found[found < 0])])
    return dense[:total], rows


def _joint(columns: tuple[int, ...], sizes: Sequence[int], start: int) -> str:
    """Number of a record's cell in a set of columns, where it has one in each of them."""
    terms = [f"CAST({prod(sizes[k] for k in columns[at + 1 :])} AS BIGINT) * c{j}" for at, j in enumerate(columns)]
    return " + ".join([str(start), *terms])
