"""Several columns of an opened table at once, record by record in the table's order: one query, so that rows stay together."""

import numpy as np
from numpy.typing import NDArray

from privurn.counts import other_size
from privurn.domain import JointDomain
from privurn.errors import DomainError
from privurn.tables.columns import check_any
from privurn.tables.counting import cell_expression, integers, records_sql
from privurn.tables.sources import Source


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
    joint = np.zeros(table.num_rows, np.int64)
    for i, (name, each) in reversed(list(enumerate(named))):
        column = table[f"cell_{i}"]
        if column.null_count:
            raise DomainError(
                f"there are missing values in {name!r}, declared to have none.",
                hint="Give nulls a category of their own with nulls='cell'",
            )
        joint = joint * each.size + integers(column.cast("int64"))
    return joint
