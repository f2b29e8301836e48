"""What a custodian looks at before a release: how the records of each column fit its domain, in one pass. Confidential."""

from collections.abc import Mapping
from dataclasses import dataclass

from privurn.domain import ColumnDomain, OpenLabels
from privurn.tables.cell_expressions import cell_expression, column_sql, records_sql
from privurn.tables.source import Source


@dataclass(frozen=True)
class ColumnFigures:
    """Numbers of records of a column; `strange` are text among numbers, or labels that are not listed."""

    missing: int
    strange: int
    below: int
    above: int
    distinct: int
    """Different values, the missing ones aside."""


@dataclass(frozen=True)
class TableFigures:
    """All records of a table, and how many different combinations of cells they are in."""

    n: int
    columns: Mapping[str, ColumnFigures]
    filled: int


def table_figures(source: Source, columns: Mapping[str, ColumnDomain | OpenLabels]) -> TableFigures:
    """Read an opened table once. Nothing is refused for what a record holds."""
    source.check_columns(list(columns))
    wanted, cells = ["count(*)"], []
    for i, (name, domain) in enumerate(columns.items()):
        value = source.value(name)
        if isinstance(domain, OpenLabels):
            conditions = [f"{value} IS NULL", "false", "false", "false"]
            cells.append(value)
        else:
            sql = column_sql(source, name, domain, i)
            plain = f"NOT ({sql.missing}) AND NOT ({sql.strange}) AND"
            ends = [f"{plain} {each}" if each is not None else "false" for each in (sql.below, sql.above)]
            conditions = [sql.missing, f"NOT ({sql.missing}) AND ({sql.strange})", *ends]
            cells.append(cell_expression(source, name, domain, i)[0])
        wanted += [f"count_if({each})" for each in conditions]
        wanted.append(f"count(DISTINCT {value})")
    wanted.append(f"count(DISTINCT {source.dialect.together(cells)})")
    asked = ", ".join(f"{each} AS w{i}" for i, each in enumerate(wanted))
    found = source.connection.sql(f"SELECT {asked} {records_sql(source, columns)}").to_arrow_table()
    n, *numbers, filled = (column[0].as_py() or 0 for column in found.columns)  # none of no records is null
    each = [ColumnFigures(*map(int, numbers[5 * i : 5 * i + 5])) for i in range(len(columns))]
    return TableFigures(int(n), dict(zip(columns, each, strict=True)), int(filled))
