"""Counts of a table by sets of its columns, counted where the records are: one pass, and only counts come back."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import TableDomain
from privurn.tables.cell_expressions import MISSING, OUTSIDE, cell_expression, records_sql, refused, unreadable
from privurn.tables.counting import check_rows, integers
from privurn.tables.source import Source
from privurn.tables.special_cells import SpecialCells


def count_sets(
    source: Source,
    domain: TableDomain,
    sets: Sequence[tuple[int, ...]],
    *,
    ranges: Mapping[int, Sequence[int]] | None = None,
    secret_size: bool = False,
    special: SpecialCells | None = None,
) -> tuple[NDArray[np.int64], int]:
    """How many records each cell of each set of columns has, one set after the other, and how many there are.

    Sets name columns by their places; the cells of a set's last column run fastest. Columns with `ranges`, each named by its
    first cell, are counted by those; behind the sets stand the counts of all of their cells. Every record is made into a list
    of numbers, which are counted: its cell in each set, and behind those one for each thing that has to be known of the table.
    """
    named = list(domain.columns.items())
    source.check_columns([name for name, _ in named])
    wide = ranges or {}
    counted = {f"c{j}": size for j, size in enumerate(domain.sizes)} | {f"w{j}": len(own) for j, own in wide.items()}
    marginals = [[f"w{j}" if j in wide else f"c{j}" for j in each] for each in sets] + [[f"c{j}"] for j in wide]
    *starts, total = np.cumsum([0, *(prod(counted[name] for name in each) for each in marginals)]).tolist()
    cells, facts = [], {("every", "record"): "true"}
    for i, (name, column) in enumerate(named):
        expression, reads = cell_expression(source, name, column, i)
        cells.append(f"{expression} AS c{i}")
        facts |= {(name, "missing"): f"c{i} = {MISSING}", (name, "outside"): f"c{i} = {OUTSIDE}"}
        if reads is not None:
            cells += [f"{reads} AS r{i}", f"{source.value(name)} AS p{i}"]
            facts |= {(name, "readable"): f"r{i} IS NOT NULL", (name, "present"): f"p{i} IS NOT NULL"}
        if special is not None:
            own = {"null": column.null_cell, "other": column.other_cell}
            facts |= {(name, kind): f"c{i} = {cell}" for kind, cell in own.items() if cell is not None}
    for i, (key, condition) in enumerate(special.clamped(source).items() if special is not None else ()):
        cells.append(f"{condition} AS s{i}")
        facts[key] = f"s{i}"
    numbers = [_joint(each, counted, start) for each, start in zip(marginals, starts, strict=True)]
    numbers += [f"CASE WHEN {condition} THEN {total + k} END" for k, condition in enumerate(facts.values())]
    records = f"SELECT {', '.join(cells)} {records_sql(source, domain.columns)}"
    if wide:
        ranged = [f"{_range(f'c{j}', own)} AS w{j}" for j, own in wide.items()]
        records = f"SELECT *, {', '.join(ranged)} FROM ({records})"
    listed = source.dialect.one_each([f"CAST({each} AS BIGINT)" for each in numbers])
    query = f"SELECT cell, count(*) AS n FROM (SELECT {listed} AS cell FROM ({records})) WHERE cell IS NOT NULL GROUP BY cell"
    table = source.connection.sql(query).to_arrow_table()
    counts = np.zeros(total + len(facts), np.int64)
    counts[integers(table["cell"])] = integers(table["n"])
    known = dict(zip(facts, counts[total:].tolist(), strict=True))
    rows = known["every", "record"]
    if rows != source.own_size(rows):
        raise other_size()
    if not secret_size:
        check_rows(rows)
    for name, column in named:
        if known.get((name, "readable")) == 0 and known[name, "present"] > 0:
            raise unreadable(name, column)
    missing, outside = ([name for name, _ in named if known[name, what]] for what in ("missing", "outside"))
    if missing or outside:
        raise refused(dict(named), missing=missing, outside=outside)
    if special is not None:
        special.found |= {key: known[key] for key in special.found if key in known}
    return counts[:total], rows


def _joint(columns: Sequence[str], sizes: Mapping[str, int], start: int) -> str:
    """Number of a record's cell in a set of columns, where it has one in each of them."""
    terms = [f"CAST({prod(sizes[k] for k in columns[at + 1 :])} AS BIGINT) * {name}" for at, name in enumerate(columns)]
    held = " AND ".join(f"{name} >= 0" for name in columns)
    return f"CASE WHEN {held} THEN {' + '.join([str(start), *terms])} END"


def _range(cell: str, starts: Sequence[int]) -> str:
    """The range that a cell is in, which begins at the last start not behind it; what is no cell stays as it is."""
    found = " ".join(f"WHEN {cell} < {start} THEN {i}" for i, start in enumerate(starts[1:]))
    return f"CASE WHEN {cell} < 0 THEN {cell} {found} ELSE {len(starts) - 1} END"
