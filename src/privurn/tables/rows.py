"""Several columns of an opened table at once, record by record in the table's order: one query, so that rows stay together."""

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import JointDomain
from privurn.tables.cell_expressions import MISSING, OUTSIDE, cell_expression, records_sql, refused
from privurn.tables.columns import check_any
from privurn.tables.counting import integers
from privurn.tables.source import Source

BROKEN = (MISSING, OUTSIDE)


def read_cells(source: Source, domain: JointDomain) -> NDArray[np.int64]:
    """The joint cell of every record's categories, in order."""
    named = list(domain.columns.items())
    source.check_columns([name for name, _ in named])
    cells = [f"{cell_expression(source, name, each, i)[0]} AS cell_{i}" for i, (name, each) in enumerate(named)]
    numbered = records_sql(source, domain.columns, extra=f", {source.dialect.place()} AS place")
    query = f"SELECT {', '.join(cells)} {numbered} ORDER BY t.place"
    table = source.connection.sql(query).to_arrow_table()
    check_any(table.num_rows)
    if table.num_rows != source.rows():
        raise other_size()
    columns = [integers(table[f"cell_{i}"].cast("int64")) for i in range(len(named))]
    missing, outside = ([name for (name, _), own in zip(named, columns, strict=True) if (own == each).any()] for each in BROKEN)
    if missing or outside:
        raise refused(dict(named), missing=missing, outside=outside)
    joint = np.zeros(table.num_rows, np.int64)
    for (_, each), own in reversed(list(zip(named, columns, strict=True))):
        joint = joint * each.size + own
    return joint
