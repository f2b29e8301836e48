"""A table of what engines are known to read differently, domains to count it by, and what all of them must make of it."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa

from privurn.domain import Bins, Categories, Dates, Grid, JointDomain
from privurn.errors import PrivurnError
from privurn.tables import count_cells, count_labels, open_table
from privurn.tables.marginals import count_sets
from privurn.tables.special_cells import SpecialCells

NUMBERS_AS_TEXT = [
    *("0", "7", " 3", "4 ", "\t5", "+5", "5.", ".5", "-.5e1", "1e0", "1E+00", "0.30000000000000004", "4.9e-324", "1e999"),
    *("inf", "-INF", "+Infinity", "nan", "NaN", "-nan", "+nan", "1_000", "1d", "1f", "0x1p3", "0x10", "1,5", "--5", "1e", "e1"),
    *("1\x00", "\x005", "5\x85", "5\u2028", "\u0663", "½", "", "one", "2.5", "3.5", "1e-999", "8.499999999999999999999999999"),
]
"""What engines are known to read differently, and what they are not to."""
NUMBERS = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -0.51, 9.5, 9.49999, 1e30, -1e30, np.inf, -np.inf, 5e-30, 0.1 + 0.2, None]
WIDE = [*map(Decimal, ("0.30000000000000000001", "2.49999999999999999999", "2.50000000000000000001", "7")), None]
LABELS = [
    "north",
    "North",
    "south",
    "so uth",
    "O'Hara",
    "back\\slash",
    "naïve",
    "na\u0131ve",
    "其他",
    "%",
    "\x00",
    "😀",
    " north",
    None,
]
MOMENTS = [
    datetime.datetime(2024, 3, 31, 1, 30),
    datetime.datetime(2024, 1, 1, 0, 0, 0, 500_000),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    None,
]
DATES_AS_TEXT = [
    *("2024-01-31", "2024-1-3", "2024/2/29", "2023-02-29", "0000-01-01", "9999-12-31", "1582-10-10", "1900-2-29", "24-01-31"),
    *("2024-01-31T10:00", "2024-01-31 9:5", "1969-12-31 23:59:59.9999999", "2024-01-31 10:00Z", "2024-01-31 10:00:00 UTC"),
    *(
        "2024-01-01 00:30+02",
        "2024-01-01 00:30:00-0230",
        "2024-01-31T23:59:59.5-15:59",
        "2024-01-31 10:00:00+16",
        "2024-01-31Z",
    ),
    *("2024-01-31 24:00", "2024-01-31 10:00:60", "2024-01-31 10:00:00.", "2024-01-31 10:00 Europe/Berlin", "2024-01-31  10:00"),
    *(
        " 2024-02-01\t",
        "2024-02-01\x00",
        "\u0662024-01-31",
        "infinity",
        "epoch",
        "0044-03-15 (BC)",
        "-0044-03-15",
        "+12024-01-01",
    ),
    *("20240131", "31.01.2024", "2024 01 31", "2024-01/31", "now", "", None),
]


def of_length(values, n):
    return [values[i % len(values)] for i in range(n)]


def hostile():
    """A table of every type that both engines know, full of what they are known to read differently."""
    n = 2 * len(NUMBERS_AS_TEXT) + 1
    columns = {
        "text": pa.array(of_length(NUMBERS_AS_TEXT, n)),
        "number": pa.array(of_length(NUMBERS, n), pa.float64()),
        "single": pa.array(of_length([each if each is None else np.float32(each) for each in NUMBERS], n), pa.float32()),
        "small": pa.array(of_length([-128, 127, 0, 3, None], n), pa.int8()),
        "long": pa.array(of_length([2**63 - 1, -(2**63), 2**53 + 1, 3, None], n), pa.int64()),
        "wide": pa.array(of_length(WIDE, n), pa.decimal128(38, 20)),
        "label": pa.array(of_length(LABELS, n)),
        "written": pa.array(of_length(DATES_AS_TEXT, n)),
        "yes": pa.array(of_length([True, False, None], n)),
        "day": pa.array(of_length([None if each is None else each.date() for each in MOMENTS], n)),
        "instant": pa.array(of_length(MOMENTS, n), pa.timestamp("us", tz="UTC")),
        "local": pa.array(of_length(MOMENTS[::-1], n), pa.timestamp("us")),
    }
    return pa.table(columns)


DOMAINS = [
    {
        "text": Grid(0, 9, 1, outside="other", nulls="cell"),
        "number": Bins([0, 0.5, 2.5, 9.5], outside="other", nulls="cell"),
        "wide": Bins([0, 0.3, 2.5, 8], outside="other", nulls="cell"),
        "label": Categories(["north", "O'Hara", "back\\slash", "naïve", "😀", "\x00"], outside="other", nulls="cell"),
        "yes": Categories([True, False], outside="other", nulls="cell"),
    },
    {
        "single": Grid(0, 9, "0.5", outside="other", nulls="cell"),
        "small": Categories([3, "0.5", -128], outside="other", nulls="cell"),
        "long": Categories([2**63 - 1, 2**53, 3], outside="other", nulls="cell"),
        "day": Categories(["2024-03-31", "9999-12-31"], outside="other", nulls="cell"),
        "instant": Categories(["2024-03-31 01:30:00+00", "1969-12-31 23:59:59.999999+00"], outside="other", nulls="cell"),
    },
    {
        "day": Dates("1950-01-15", "2050-01-15", "7 months", outside="null", nulls="cell"),
        "instant": Dates("2024-03-30", "2024-04-02", "hour", nulls="cell"),
        "local": Dates("1969-12-01", "2024-12-31", "month", nulls="cell"),
        "number": Grid(0, 9, 3, nulls="cell"),
    },
    {
        "written": Dates("1969-12-31", "2024-12-31", "day", outside="null", nulls="cell"),
        "small": Grid(-99, 97, 7, outside="other", nulls="cell"),
        "long": Bins([-0.5, 3, 2**53, 2**53 + 2, 2**60], outside="other", nulls="cell"),
    },
]


def outcome(work):
    """What counting gives, or what it refuses with."""
    try:
        found = work()
    except PrivurnError as refusal:
        return type(refusal), str(refusal)
    return found.values.tolist(), found.counts.tolist()


def cells(data, domain):
    with open_table(data) as source:
        return outcome(lambda: count_cells(source, JointDomain(domain)))


def labels(data, column):
    with open_table(data) as source:
        return outcome(lambda: count_labels(source, column))


def untyped(table):
    """The same table for DuckDB, with text as NumPy's objects: like text of a Spark frame, it may hold numbers."""
    import pandas as pd

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type):
            columns[name] = pd.Series(column.to_pylist(), dtype=object)
        else:
            columns[name] = pd.Series(column.to_pylist(), dtype=pd.ArrowDtype(column.type))
    return pd.DataFrame(columns)


TABLE = {
    "number": Bins([0, 0.5, 2.5, 9.5], nulls="cell"),
    "label": Categories(["north", "south"], outside="other", nulls="cell", ignore_case=True),
    "text": Grid(0, 9, 1, outside="other", nulls="cell"),
    "yes": Categories([True, False], outside="other", nulls="cell"),
}
SETS = ((0,), (1,), (2,), (3,), (0, 1), (1, 3), (0, 2, 3))


def by_query(data, domain):
    """The same as an engine counts it."""
    special = SpecialCells(domain.columns)
    with open_table(data) as source:
        counts, n = count_sets(source, domain, SETS, special=special)
    return counts.tolist(), n, special.found


REFUSED = {
    "missing values": {"label": Categories(["north"], outside="other")},
    "values outside": {"label": Categories(["north"], nulls="cell")},
    "text among numbers": {"text": Grid(0, 9, 1, nulls="cell", outside="error")},
    "text among dates": {"written": Dates("2024-01-01", "2024-12-31", nulls="cell", outside="error")},
    "no dates at all": {"label": Dates("2024-01-01", "2024-12-31", nulls="cell")},
    "no numbers at all": {"label": Grid(0, 9, 1, nulls="cell", outside="other")},
    "a type that holds no numbers": {"day": Grid(0, 9, 1)},
    "no such column": {"nothing": Grid(0, 9, 1)},
}
