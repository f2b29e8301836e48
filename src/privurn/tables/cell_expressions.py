"""From a record to its cell: one SQL expression for each column, which never fails on content.

What breaks a declaration (a missing value in a column that has none, a value that matches none of the categories) has no
cell: the expression is then MISSING or OUTSIDE, and whoever reads all records refuses the table, without saying what it holds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from math import ceil, floor

from privurn.domain import LOWER, UPPER, Bins, Categories, ColumnDomain, Dates, Grid, OpenLabels
from privurn.errors import DomainError
from privurn.tables.category_keys import category_keys, is_number
from privurn.tables.dialects import NAN, double
from privurn.tables.source import Source

MISSING, OUTSIDE = -1, -2
"""In place of a cell: the record has no value; it has one that the domain does not hold."""

OF_64_BITS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT")
"""Types of whole numbers that BIGINT holds."""

MOST_WHOLE = 2**62
"""Between ends below it differences have 64 bits."""


@dataclass(frozen=True)
class ColumnSql:
    """A column of an opened table in SQL: conditions, in the order in which they are asked, and the cell where none holds."""

    missing: str
    strange: str
    """It has a value, but none of the column's kind: text among numbers, or a label that is not listed."""
    below: str | None
    above: str | None
    """NaN is above all numbers, in every engine."""
    cell: str
    reads: str | None
    """For untyped columns: what was readable, else NULL."""
    number: str | None = None
    """Of a column of numbers: the number, NULL where there is none."""


def column_sql(source: Source, name: str, domain: ColumnDomain, position: int) -> ColumnSql:
    """How records of a column are told apart, among those of `records_sql`."""
    if isinstance(domain, Categories):
        found = f"k{position}.cell"
        return ColumnSql(f"{source.value(name)} IS NULL", f"{found} IS NULL", None, None, found, None)
    if isinstance(domain, Dates):
        return _dates_sql(source, name, domain, position)
    untyped = name in source.untyped
    if not untyped and not is_number(source.types[name]):
        raise text_for_number(name)
    number = f"t.x{position}"
    if whole := _whole_sql(source, name, domain, number):
        cell, below, above = whole
        return ColumnSql(f"{number} IS NULL", "false", below, above, cell, None)
    missing = f"{source.stored(name)} IS NULL"
    cell, below, above = _grid_sql(domain, number) if isinstance(domain, Grid) else _bins_sql(as_bins(domain), number)
    reads, is_nan = number, f"coalesce(isnan({number}), false)"
    if not source.published:  # text that reads as NaN is a missing number
        reads, missing = f"nullif({number}, {NAN})", f"({missing} OR {is_nan})"
    return ColumnSql(missing, f"({number} IS NULL OR {is_nan})", below, above, cell, reads if untyped else None, number)


def records_sql(source: Source, columns: Mapping[str, ColumnDomain | OpenLabels], *, extra: str = "") -> str:
    """FROM clause of records for `column_sql`: numbers and moments are read once, as x0, x1, ..., and categories are joined.

    `extra` is what else shall be known of each record.
    """
    read, joins = "", ""
    for i, (name, domain) in enumerate(columns.items()):
        if isinstance(domain, Categories):
            joins += category_join(source, name, domain, i)
        elif isinstance(domain, Dates):
            read += f", {source.dialect.moment(source.value(name), source.types[name])} AS x{i}"
        elif not isinstance(domain, OpenLabels):
            stored, whole = source.stored(name), _whole_sql(source, name, domain, "")
            number = f"TRY_CAST({stored} AS BIGINT)" if whole else source.dialect.number(stored, source.types[name])
            read += f", {number} AS x{i}"
    return f"FROM (SELECT t.*{read}{extra} FROM t) AS t{joins}"


def cell_expression(
    source: Source, name: str, domain: ColumnDomain, position: int, *, ends: tuple[int, int] | None = None
) -> tuple[str, str | None]:
    """SQL for the cell of a record, negative where it breaks a declaration; for untyped columns also what was readable.

    Of a number little is asked: what it is where it is none is only looked into where it is NULL or above the others. `ends`
    are for records that are clamped, in place of the first and the last cell.
    """
    sql = column_sql(source, name, domain, position)
    missing = MISSING if domain.null_cell is None else domain.null_cell
    strange = OUTSIDE if domain.unreadable_cell is None else domain.unreadable_cell
    outside = OUTSIDE if domain.outside_cell is None else domain.outside_cell
    low, high = ends or ((0, domain.n_values - 1) if domain.outside == "clamp" else (outside, outside))
    cases: list[tuple[str | None, object]] = [(sql.missing, missing), (sql.strange, strange)]
    cases += [(sql.below, low), (sql.above, high)]
    if sql.number is not None:
        none = f"CASE WHEN {sql.missing} THEN {missing} ELSE {strange} END"
        end = f"CASE WHEN isnan({sql.number}) THEN {none} ELSE {high} END"
        cases = [(f"{sql.number} IS NULL", none), (sql.below, low), (sql.above, end)]
    whens = " ".join(f"WHEN {condition} THEN {cell}" for condition, cell in cases if condition is not None)
    return f"CASE {whens} ELSE {sql.cell} END", sql.reads


def as_bins(domain: ColumnDomain) -> Bins:
    """The only other numeric domain there is."""
    if not isinstance(domain, Bins):
        raise DomainError("a column's domain must be a grid, bins, dates or categories.")
    return domain


def _grid_sql(domain: Grid, number: str) -> tuple[str, str, str]:
    """Cell, and conditions for below and above, of a number that is one. Infinities never reach the rounding."""
    low, high = domain.bounds
    step = float(domain.spacing)
    below = f"{number} < {double(float(low - domain.spacing / 2))}"
    above = f"{number} >= {double(float(high + domain.spacing / 2))}"
    nearest = f"floor(({number} - {double(float(low))}) / {double(step)} + {double(0.5)})"
    cell = f"TRY_CAST(least(greatest({nearest}, {double(0.0)}), {double(domain.n_values - 1.0)}) AS BIGINT)"
    return cell, below, above


def _bins_sql(domain: Bins, number: str) -> tuple[str, str, str]:
    first, *inner, last = (double(float(Fraction(edge))) for edge in domain.edges)
    return _first_above(number, inner), f"{number} < {first}", f"{number} > {last}"


def _first_above(number: str, edges: Sequence[object]) -> str:
    """Which edge is the first above a number."""
    cases = " ".join(f"WHEN {number} < {edge} THEN {i}" for i, edge in enumerate(edges))
    return f"CASE {cases} ELSE {len(edges)} END" if edges else "0"


def _whole_sql(source: Source, name: str, domain: ColumnDomain, number: str) -> tuple[str, str, str] | None:
    """The same of whole numbers without floats, where bins or a grid of whole numbers cut them: exact, and less work.

    What is moved between the ends first cannot overflow.
    """
    if source.types[name] not in OF_64_BITS:
        return None
    if isinstance(domain, Grid):
        (low, high), step = domain.bounds, domain.spacing
        if any(each.denominator > 1 for each in (low, step)):
            return None
        first, last = int(low) - int(step) // 2, int(high) + (int(step) - 1) // 2
        inside = f"least(greatest({number}, {first}), {last}) - ({first})"
        cell = source.dialect.quotient(inside, int(step)) if step > 1 else f"({inside})"
    else:
        edges = [float(Fraction(edge)) for edge in as_bins(domain).edges]
        first, *inner, last = *map(ceil, edges[:-1]), floor(edges[-1])
        cell = _first_above(number, inner)
    return (cell, f"{number} < {first}", f"{number} > {last}") if max(-first, last) < MOST_WHOLE else None


def _dates_sql(source: Source, name: str, domain: Dates, position: int) -> ColumnSql:
    """By microseconds since 1970, of dates, times or text; moved between the ends first, so that nothing overflows."""
    stored, sql, moment = source.types[name], source.dialect, f"t.x{position}"
    if stored not in ("VARCHAR", "DATE") and not stored.startswith("TIMESTAMP"):
        raise no_dates(name)
    first, end = domain.begins(0), domain.begins(domain.n_values)
    inside = f"least(greatest({moment}, {first}), {end - 1})"
    if domain.months:
        day = sql.day(f"{inside} - {domain.into_month // timedelta(microseconds=1)}")
        cell = sql.quotient(f"12 * year({day}) + month({day}) - 1 - {domain.month_of(0)}", domain.months)
    else:
        cell = sql.quotient(f"{inside} - {first}", domain.width)
    missing, reads = f"{source.value(name)} IS NULL", moment if stored == "VARCHAR" else None
    return ColumnSql(missing, f"{moment} IS NULL", f"{moment} < {first}", f"{moment} >= {end}", cell, reads)


def category_join(source: Source, name: str, domain: Categories, position: int) -> str:
    """Join with the list of categories, so that cost and memory do not depend on how many other values there are.

    No two categories have the same key, so a record meets at most one.
    """
    stored = "VARCHAR" if name in source.untyped else source.types[name]
    keys, key_type = category_keys(name, domain, stored=stored)
    source.connection.register(f"categories_{position}", keys)
    compared = source.dialect.converted(source.value(name), source.types[name], key_type)
    if domain.ignore_case and key_type == "VARCHAR":
        compared = f"translate({compared}, '{UPPER}', '{LOWER}')"
    return f" LEFT JOIN categories_{position} AS k{position} ON {compared} = k{position}.key"


def unreadable(name: str, domain: ColumnDomain) -> DomainError:
    """Nothing in the column is what it was declared to hold."""
    return no_dates(name) if isinstance(domain, Dates) else text_for_number(name)


def no_dates(name: str) -> DomainError:
    """The column cannot hold what it was declared to hold."""
    return DomainError(
        f"column {name!r} is declared to hold dates but holds something else.",
        hint="Dates are stored as such, or written as text such as 2024-01-31 or 2024-01-31 18:00:00",
    )


def text_for_number(name: str) -> DomainError:
    """The column cannot be what it was declared to be."""
    return DomainError(
        f"column {name!r} is declared numeric but holds text.",
        hint="Name another column, declare categories, or convert it to numbers first, written like 1234.5: no commas",
    )


def refused(columns: dict[str, ColumnDomain], *, missing: Collection[str], outside: Collection[str]) -> DomainError:
    """The table breaks what its domain declares; which columns do, and nothing of what is in them."""
    if missing:
        return DomainError(
            f"there are missing values in {_listed(columns, missing)}, declared to have none.",
            hint="Give nulls a cell of their own with nulls='cell'",
        )
    labels = [name for name in columns if name in outside and isinstance(columns[name], Categories)]
    if labels:
        folded = all(getattr(columns[name], "ignore_case", False) for name in labels)
        case = "" if folded else "ignore_case=True if only capitals differ, "
        return DomainError(
            f"there are values in {_listed(columns, labels)} that match none of the categories, declared to be all.",
            hint=f"List every category, {case}or outside='other' for a cell of all others",
        )
    dates = all(isinstance(columns[name], Dates) for name in outside)
    kind, own = ("dates", "") if dates else ("numbers", "a cell of their own with outside='other', or ")
    return DomainError(
        f"there are values in {_listed(columns, outside)} that are outside the domain, or no {kind}, declared not to be there.",
        hint=f"Give them {own}the null cell with outside='null'",
    )


def _listed(columns: dict[str, ColumnDomain], names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in columns if name in names)
