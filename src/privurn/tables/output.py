"""From released cells to records: the values that cells stand for, in the kind of frame that came in, or in a file."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Grid, JointDomain, plain
from privurn.tables.counting import as_bins


def decode(cells: NDArray[np.int64], domain: JointDomain) -> Any:
    """Arrow table of the records that cell numbers stand for."""
    import pyarrow as pa

    columns, rest = {}, cells
    for name, column in domain.columns.items():
        rest, own = np.divmod(rest, column.size)
        columns[name] = _decode_column(own, column)
    return pa.table(columns)


def _decode_column(cells: NDArray[np.int64], domain: ColumnDomain) -> Any:
    """Released values: "other" is the text "other" among categories and NaN among numbers; the null cell is null."""
    import pyarrow as pa

    null = np.zeros(len(cells), bool) if domain.null_cell is None else cells == domain.null_cell
    if isinstance(domain, Categories):
        values = list(domain.values)
        if domain.other_cell is not None:
            values = [*map(str, values), "other"] if not all(isinstance(v, str) for v in values) else [*values, "other"]
        dictionary = pa.array(values if len({type(v) for v in values}) == 1 else [str(v) for v in values])
        return dictionary.take(_arrow(np.where(null, 0, cells), null))
    numbers = _grid_values(domain) if isinstance(domain, Grid) else _midpoints(as_bins(domain))
    if domain.other_cell is not None:
        numbers = np.append(numbers.astype(np.float64), np.nan)
    return _arrow(numbers[np.where(null, 0, cells)], null)


def _arrow(numbers: NDArray[Any], null: NDArray[np.bool_]) -> Any:
    """Arrow array of numbers by their buffers: Arrow's own conversion imports pandas where it is installed."""
    import pyarrow as pa

    whole = np.issubdtype(numbers.dtype, np.integer)
    data = np.ascontiguousarray(numbers, np.int64 if whole else np.float64)
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(pa.int64() if whole else pa.float64(), len(data), [validity, pa.py_buffer(data)])


def _grid_values(domain: Grid) -> NDArray[Any]:
    low, step = domain.bounds[0], domain.spacing
    common = low.denominator * step.denominator
    units = int(low * common) + int(step * common) * np.arange(domain.n_values, dtype=np.int64)
    if low.denominator == step.denominator == 1:
        return units
    return units / common  # one correctly rounded division, so 0.1 comes out as 0.1


def _midpoints(domain: Bins) -> NDArray[Any]:
    edges = [Fraction(edge) for edge in domain.edges]
    middles = [plain((a + b) / 2) for a, b in pairwise(edges)]
    return np.array(middles)


def decode_labels(labels: list[str | None], column: str) -> Any:
    """Arrow table of one column of text."""
    import pyarrow as pa

    return pa.table({column: pa.array(labels, pa.string())})


def to_kind(table: Any, kind: str) -> Any:
    """The Arrow table as the kind of frame that came in; files come out as Arrow."""
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if kind == "numpy":
        columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


def write(table: Any, path: Path) -> None:
    """Write CSV or Parquet, as the name says."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
