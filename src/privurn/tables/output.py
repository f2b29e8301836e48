"""From released cells to records: the values that cells stand for, in the kind of frame that came in, or in a file."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Dates, JointDomain, label_text
from privurn.errors import DomainError
from privurn.tables.cell_expressions import as_bins
from privurn.tables.cells import moments, published_as, released_numbers
from privurn.tables.column_names import unused
from privurn.tables.spreadsheet_text import marked, would_run

WITHIN_STEPS = 2**20
"""Equal parts of a bin; a uniform number within it is the middle of one of them."""


class Integers(Protocol):
    """A source of random integers (`privacy.entropy.Entropy` is one)."""

    def integers(self, bound: int, *, size: int) -> NDArray[np.int64]:
        """Independent integers, uniform on [0, bound)."""


def decode(
    cells: NDArray[np.int64],
    domain: JointDomain,
    *,
    entropy: Integers | None = None,
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> Any:
    """Arrow table of the records that cell numbers stand for; `extra` columns of numbers are put beside them.

    Numbers of bins that are to be spread out are, at a resolution of WITHIN_STEPS, with integers from `entropy`.
    """
    import pyarrow as pa

    if domain.spread and (entropy is None or extra):
        raise DomainError("only records in bins can be spread out.", hint="Leave within='uniform' out")
    columns, rest = {}, cells
    for name, column in domain.columns.items():
        rest, own = np.divmod(rest, column.size)
        spread = entropy if isinstance(column, Bins) and column.within == "uniform" else None
        columns[name] = _decode_column(own, column, spread=spread)
    for name, numbers in (extra or {}).items():
        columns[unused(name, columns)] = _arrow(numbers, np.zeros(len(cells), bool))
    return pa.table(columns)


def decode_rows(cells: NDArray[np.int64], domain: JointDomain) -> tuple[Any, dict[int, NDArray[np.float64]]]:
    """Records that others spread out in their bins (`part_file.spread_out`): at midpoints, and the widths of the bins."""
    import pyarrow as pa

    columns, rest = {}, cells
    widths: dict[int, NDArray[np.float64]] = {}
    for j, (name, column) in enumerate(domain.columns.items()):
        rest, own = np.divmod(rest, column.size)
        columns[name], found = _decode_bins(own, column)
        widths |= {} if found is None else {j: found}
    return pa.table(columns), widths


def decode_cells(columns: Mapping[str, ColumnDomain], rows: int) -> tuple[Any, dict[int, NDArray[np.float64]]]:
    """Likewise what each cell of each column stands for, side by side; shorter columns repeat their last."""
    import pyarrow as pa

    found = {name: _decode_bins(np.minimum(np.arange(rows), each.size - 1), each) for name, each in columns.items()}
    widths = {j: each for j, (_, each) in enumerate(found.values()) if each is not None}
    return pa.table({name: values for name, (values, _) in found.items()}), widths


def decode_side_by_side(cells: Sequence[NDArray[Any]], columns: Mapping[str, ColumnDomain], *, entropy: Integers) -> Any:
    """Arrow table of records whose cells are given column by column."""
    import pyarrow as pa

    found = {}
    for own, (name, column) in zip(cells, columns.items(), strict=True):
        spread = entropy if isinstance(column, Bins) and column.within == "uniform" else None
        found[name] = _decode_column(own.astype(np.int64), column, spread=spread)
    return pa.table(found)


def number_table(columns: Mapping[str, NDArray[Any]], names: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Any:
    """Arrow table of numbers, behind columns of `names`."""
    import pyarrow as pa

    texts = {name: pa.array(each, pa.string()) for name, each in names.items()}
    return pa.table({**texts, **{name: _arrow(each, np.zeros(len(each), bool)) for name, each in columns.items()}})


def _decode_column(cells: NDArray[np.int64], domain: ColumnDomain, *, spread: Integers | None = None) -> Any:
    """Released values: "other" is the text "other" among categories and NaN among numbers; the null cell is null."""
    import pyarrow as pa

    null = np.zeros(len(cells), bool) if domain.null_cell is None else cells == domain.null_cell
    domain = published_as(domain)
    if isinstance(domain, Dates):
        times = _arrow(moments(domain)[np.where(null, 0, cells)], null).cast(pa.timestamp("us"))
        return times.cast(pa.date32()) if domain.days_only else times
    if isinstance(domain, Categories):
        values = list(domain.values)
        if domain.other_cell is not None:
            values = [*map(label_text, values), "other"]
        plain = len({type(v) for v in values}) == 1 and not any(
            isinstance(v, int) and not -(2**63) <= v < 2**63 for v in values
        )
        dictionary = pa.array(values if plain else [label_text(v) for v in values])
        return dictionary.take(_arrow(np.where(null, 0, cells), null))
    numbers = released_numbers(domain)
    if domain.other_cell is not None:
        numbers = np.append(numbers.astype(np.float64), np.nan)
    released = numbers[np.where(null, 0, cells)]
    if spread is not None:
        released = released + _offsets(cells, as_bins(domain), spread)
    return _arrow(released, null)


def _decode_bins(cells: NDArray[np.int64], domain: ColumnDomain) -> tuple[Any, NDArray[np.float64] | None]:
    """Released values, and the widths of the bins if they are to be spread out there."""
    import pyarrow as pa

    values = _decode_column(cells, domain)
    if isinstance(domain, Bins) and domain.within == "uniform":
        return values.cast(pa.float64()), _widths(as_bins(domain))[cells]
    return values, None


def _widths(domain: Bins) -> NDArray[np.float64]:
    """Of all cells; 0 where these are no bins."""
    widths = np.array([float(Fraction(b) - Fraction(a)) for a, b in pairwise(domain.edges)])
    return np.append(widths, [0.0] * (domain.size - domain.n_values))


def _fits(value: Any) -> bool:
    """Whether Arrow's 64-bit integers hold a category, if it is one."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _offsets(cells: NDArray[np.int64], domain: Bins, spread: Integers) -> NDArray[np.float64]:
    """Distances from the bins' midpoints, strictly inside the bins; 0 for records in no bin. Adds no information on them."""
    own = _widths(domain)[cells]
    places = spread.integers(WITHIN_STEPS, size=len(cells))
    offsets: NDArray[np.float64] = own * ((2 * places + 1 - WITHIN_STEPS) / (2 * WITHIN_STEPS))
    return offsets


def _arrow(numbers: NDArray[Any], null: NDArray[np.bool_]) -> Any:
    """Arrow array of numbers by their buffers: Arrow's own conversion imports pandas where it is installed."""
    import pyarrow as pa

    whole = np.issubdtype(numbers.dtype, np.integer)
    data = np.ascontiguousarray(numbers, np.int64 if whole else np.float64)
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(pa.int64() if whole else pa.float64(), len(data), [validity, pa.py_buffer(data)])


def decode_labels(labels: list[str | None], column: str) -> Any:
    """Arrow table of one column of text."""
    import pyarrow as pa

    return pa.table({column: pa.array(labels, pa.string())})


def to_kind(table: Any, kind: str) -> Any:
    """The Arrow table as the kind of frame that came in; files come out as Arrow."""
    if kind == "pandas":
        return _pandas(table)
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if kind == "numpy":
        columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        if len({column.dtype for column in columns}) > 1 and not all(np.issubdtype(each.dtype, np.number) for each in columns):
            columns = [column.astype(object) for column in columns]  # dates beside counts have no type in common
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    if kind == "list":
        columns = [column.to_pylist() for column in table.columns]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    if kind == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        return table if session is None else session.createDataFrame(table)
    return table


def _pandas(table: Any) -> Any:
    """Dates as pandas' own, and whole numbers as such where some are missing: it would make objects and floats of them."""
    import pandas as pd
    import pyarrow as pa

    found = table.to_pandas(date_as_object=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            found[name] = column.to_pandas(types_mapper={column.type: pd.Int64Dtype()}.get)
    return found


def write(table: Any, path: Path) -> None:
    """Write CSV or Parquet, as the name says; in CSV, text that a spreadsheet would run is marked (`spreadsheet_text`)."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(for_spreadsheets(table), path)


def needs_marks(table: Any) -> bool:
    """Whether there is text that a spreadsheet would run, in names or values."""
    return any(would_run(name) for name in table.column_names) or any(
        would_run(text) for _, column in _text_columns(table) for text in column.unique().to_pylist() if text is not None
    )


def _text_columns(table: Any) -> list[tuple[int, Any]]:
    import pyarrow as pa

    return [(i, column) for i, column in enumerate(table.columns) if pa.types.is_string(column.type)]


def for_spreadsheets(table: Any) -> Any:
    """The table as CSV has it: text that a spreadsheet would run is marked, in names too."""
    import pyarrow as pa

    for i, column in _text_columns(table):
        coded = column.combine_chunks().dictionary_encode()
        texts = pa.array([marked(text) for text in coded.dictionary.to_pylist()], pa.string())
        table = table.set_column(i, table.column_names[i], texts.take(coded.indices))
    return table.rename_columns([marked(name) for name in table.column_names])
