"""Several columns of an opened table at once, record by record in the table's order: one query, so that rows stay together."""

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import JointDomain
from privurn.tables.cell_expressions import MISSING, OUTSIDE, cell_expression, records_sql, refused
from privurn.tables.columns import check_any, check_unchanged
from privurn.tables.counting import integers
from privurn.tables.engine import Answer
from privurn.tables.source import Source

BROKEN = (MISSING, OUTSIDE)


def read_cells(source: Source, domain: JointDomain) -> NDArray[np.int64]:
    """The joint cell of every record's categories, in order."""
    named = list(domain.columns.items())
    cells = ", ".join(f"{each} AS cell_{i}" for i, each in enumerate(_cells(source, domain)))
    numbered = records_sql(source, domain.columns, extra=f", {source.dialect.place()} AS place")
    query = f"SELECT {cells} {numbered} ORDER BY t.place"
    table = source.connection.sql(query).to_arrow_table()
    check_any(table.num_rows)
    if table.num_rows != source.own_size(table.num_rows):
        raise other_size()
    columns = [integers(table[f"cell_{i}"].cast("int64")) for i in range(len(named))]
    missing, outside = ([name for (name, _), own in zip(named, columns, strict=True) if (own == each).any()] for each in BROKEN)
    if missing or outside:
        raise refused(dict(named), missing=missing, outside=outside)
    joint = np.zeros(table.num_rows, np.int64)
    for (_, each), own in reversed(list(zip(named, columns, strict=True))):
        joint = joint * each.size + own
    return joint


def cells_elsewhere(source: Source, domain: JointDomain) -> tuple[Answer, int]:
    """The same cells where the engine has them, and how many there are; refused as they are when they are read."""
    named, cells = list(domain.columns.items()), _cells(source, domain)
    broken = {(name, kind): f"{cell} = {kind}" for (name, _), cell in zip(named, cells, strict=True) for kind in BROKEN}
    counts = "".join(f", count_if({each}) AS b{i}" for i, each in enumerate(broken.values()))
    found = source.connection.sql(f"SELECT count(*) AS n{counts} {records_sql(source, domain.columns)}").to_arrow_table()
    n, *numbers = (int(each[0].as_py() or 0) for each in found.columns)  # none of no records is null
    check_any(n)
    check_unchanged(source, n)
    held = [key for key, each in zip(broken, numbers, strict=True) if each]
    missing, outside = ([name for name, what in held if what == kind] for kind in BROKEN)
    if missing or outside:
        raise refused(dict(named), missing=missing, outside=outside)
    joint, radix = [], 1
    for (_, each), cell in zip(named, cells, strict=True):  # at least 0: of a table that changes a record may be broken now
        joint.append(f"CAST({radix} AS BIGINT) * greatest({cell}, 0)")
        radix *= each.size
    return source.connection.sql(f"SELECT {' + '.join(joint)} AS cell {records_sql(source, domain.columns)}"), n


def _cells(source: Source, domain: JointDomain) -> list[str]:
    """Each column's cell in SQL."""
    source.check_columns(list(domain.columns))
    return [cell_expression(source, name, each, i)[0] for i, (name, each) in enumerate(domain.columns.items())]
