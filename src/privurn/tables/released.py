"""The one reader of released data: a CSV or Parquet file that `tables.output.write` wrote, or parts of one, as published.

Whoever checks a release, or concludes something from it, reads it here. Rows are looked at in batches, by whole columns. Any
file whatever gives batches or a FormatError.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Dates, Grid, label_text
from privurn.errors import DomainError, FormatError
from privurn.tables.cells import grid_numbers, moments, published_as
from privurn.tables.opening import open_table
from privurn.tables.parts import data_files
from privurn.tables.source import Source
from privurn.tables.spreadsheet_text import unmarked, unmarked_text

BLOCK = 2**22
"""Bytes of a CSV file that are read at a time; a record that does not fit was written by someone else."""

ROWS = 2**17
"""Records of a Parquet file that are read at a time."""


NUMBER = r"\A(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?|-?inf|nan)\z"
"""How numbers are written in CSV. Arrow would read more, such as nan with text in brackets after it."""


MOMENT = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?)?\z"
"""How dates and times are written in CSV."""


@contextmanager
def _readable() -> Iterator[None]:
    """Whatever Arrow has to say of a file that is none of ours, without quoting it."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            "the data file cannot be read as what its name says.", hint="Get the release again from its source"
        ) from None


def released_columns(path: Path) -> list[str]:
    """Names of the columns, in order; of parts, those of the first."""
    path = data_files(path)[0]
    with _readable(), path.open("rb") as handle:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            opened = parquet.ParquetFile(handle)
            if _holds_more(opened, size=path.stat().st_size) or _unused_text(handle, opened.schema_arrow):
                raise FormatError("the data file holds more than its columns.", hint="Get the release again from its source")
            return [str(name) for name in opened.schema_arrow.names]
    return [unmarked(name) for name in _header(path)]


def _holds_more(opened: Any, *, size: int) -> bool:
    """Whether a Parquet file has what `write` does not write: other types, metadata, bytes beside its columns."""
    import pyarrow as pa

    schema, footer = opened.schema_arrow, opened.metadata
    plain = (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("us"))
    if set(footer.metadata or {}) - {b"ARROW:schema"} or schema.metadata:
        return True
    if any(each.metadata or each.type not in plain for each in schema):
        return True
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    return bool(12 + sum(each.total_compressed_size for each in chunks) + footer.serialized_size != size)


def _unused_text(handle: Any, schema: Any) -> bool:
    """Whether a dictionary of a Parquet file lists text that no record has."""
    import pyarrow as pa
    from pyarrow import parquet

    texts = [each.name for each in schema if pa.types.is_string(each.type)]
    if not texts or len(set(schema.names)) < len(schema.names):
        return False
    opened = parquet.ParquetFile(handle, read_dictionary=texts)
    return any(
        len(chunk.dictionary) > len(chunk.indices.unique().drop_null())
        for i in range(opened.num_row_groups)
        for column in opened.read_row_group(i, columns=texts).columns
        for chunk in column.chunks
        if pa.types.is_dictionary(chunk.type)
    )


def _header(path: Path) -> list[str]:
    """Names as the header line of a CSV file has them."""
    with _readable(), path.open("rb") as handle:
        return [str(name) for name in _csv(handle, ()).schema.names]


def released_batches(path: Path) -> Iterator[Any]:
    """Arrow batches in the file's order; every column of a CSV file is text, and an empty field without quotes is missing."""
    for each in data_files(path):
        yield from _batches(each)


def _batches(path: Path) -> Iterator[Any]:
    if len(set(names := released_columns(path))) < len(names):
        raise FormatError("the data file names a column twice.", hint="Get the release again from its source")
    with _readable(), path.open("rb") as handle:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            yield from parquet.ParquetFile(handle).iter_batches(batch_size=ROWS, use_threads=False)
        else:
            yield from map(_as_published, _csv(handle, _header(path)))


def _csv(handle: Any, text: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    return csv.open_csv(
        handle,
        read_options=csv.ReadOptions(block_size=BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _as_published(batch: Any) -> Any:
    """A batch of a CSV file without the marks that `write` puts before text a spreadsheet would run."""
    import pyarrow as pa

    columns = [unmarked_text(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=[unmarked(name) for name in batch.schema.names])


@contextmanager
def open_released(path: Path) -> Iterator[Source]:
    """The same file as an opened table, for queries."""
    import pyarrow as pa

    first = data_files(path)[0]
    with _readable():
        table = pa.Table.from_batches(list(released_batches(path)), schema=_schema(first))
    with open_table(table) as source:
        typed = first.suffix == ".parquet"
        yield replace(source, kind="path", untyped=frozenset() if typed else frozenset(source.types), published=True)


def _schema(path: Path) -> Any:
    import pyarrow as pa

    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_schema(path)
    return pa.schema([(name, pa.string()) for name in released_columns(path)])


def numbers(column: Any) -> NDArray[np.float64] | None:
    """A column as floats, NaN where it is missing; None where it holds something that is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        if not pc.all(pc.match_substring_regex(column, pattern=NUMBER), min_count=0).as_py():
            return None
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    try:
        floats = _buffer(pc.cast(column, pa.float64(), safe=False), np.float64)
    except pa.ArrowException:
        return None
    return np.where(missing(column), np.nan, floats) if column.null_count else floats


def whole_numbers(column: Any) -> NDArray[np.int64] | None:
    """A column of whole numbers, exactly; None where something is none, is missing, or outgrows 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count or not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        return None
    try:
        return _buffer(pc.cast(column, pa.int64()), np.int64)
    except pa.ArrowException:
        return None


def missing(column: Any) -> NDArray[np.bool_]:
    """Which entries are missing."""
    import pyarrow.compute as pc

    return _buffer(pc.cast(column.is_null(), "int8"), np.int8).astype(bool)


def _buffer(array: Any, dtype: Any) -> NDArray[Any]:
    """An array by its buffer, with anything where it is null: Arrow's own conversion imports pandas where it is installed."""
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


class CellReader:
    """From released values of a column back to the cells they stand for: the inverse of how they were written."""

    def __init__(self, domain: ColumnDomain) -> None:
        domain = self.domain = published_as(domain)
        if isinstance(domain, Dates):
            self.moments = moments(domain)
        elif isinstance(domain, Categories):
            self.labels = self._labels(domain)
        elif isinstance(domain, Bins):
            self.edges = np.array([float(Fraction(edge)) for edge in domain.edges])
            self.middles = np.array([float((Fraction(a) + Fraction(b)) / 2) for a, b in pairwise(domain.edges)])

    @staticmethod
    def _labels(domain: Categories) -> dict[str, int]:
        """Every spelling of a category, and of "other"; a file may write true as True."""
        labels = {label_text(value): i for i, value in enumerate(domain.values)}
        for i, value in enumerate(domain.values):
            labels.setdefault(str(value), i)
        return labels if domain.other_cell is None else {**labels, "other": domain.other_cell}

    def cells(self, column: Any) -> NDArray[np.int64]:
        """The cell of each value, -1 for what the domain does not hold."""
        if isinstance(self.domain, Dates):
            found = self._date_cells(column)
        else:
            found = self._label_cells(column) if isinstance(self.domain, Categories) else self._number_cells(column)
        absent = missing(column)
        return np.where(absent, -1 if self.domain.null_cell is None else self.domain.null_cell, found)

    def _date_cells(self, column: Any) -> NDArray[np.int64]:
        """Beginnings of steps; text is a date or a time as `write` spells it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        assert isinstance(self.domain, Dates)
        stored = pa.date32() if self.domain.days_only else pa.timestamp("us")
        try:
            if pa.types.is_string(column.type) and not pc.all(pc.match_substring_regex(column, pattern=MOMENT)).as_py():
                return np.full(len(column), -1)
            if column.type not in (pa.string(), pa.null(), stored):
                return np.full(len(column), -1)
            stated = pc.cast(pc.cast(pc.cast(column, stored), pa.timestamp("us")), pa.int64()).fill_null(0)
        except pa.ArrowException:
            return np.full(len(column), -1)
        found = _buffer(stated, np.int64)
        place = np.minimum(np.searchsorted(self.moments, found), len(self.moments) - 1)
        return np.where(self.moments[place] == found, place, -1)

    def _label_cells(self, column: Any) -> NDArray[np.int64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        assert isinstance(self.domain, Categories)
        try:
            text = pc.cast(column, pa.string())
        except pa.ArrowException:
            return np.full(len(column), -1)
        places = pc.index_in(text, value_set=pa.array(list(self.labels), pa.string())).fill_null(-1)
        known = np.array([*self.labels.values(), -1])
        found = known[_buffer(places, np.int32)]
        values = self.domain.values
        if np.any(found < 0) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            found = np.where(found < 0, self._as_numbers(column, values), found)  # a file may write 1.0 as 1
        return np.asarray(found)

    @staticmethod
    def _as_numbers(column: Any, values: Sequence[Any]) -> NDArray[np.int64]:
        stated = numbers(column)
        if stated is None:
            return np.full(len(column), -1)
        order = np.argsort(listed := np.array([float(value) for value in values]))
        place = order[np.minimum(np.searchsorted(listed, stated, sorter=order), len(listed) - 1)]
        return np.where(listed[place] == stated, place, -1)

    def _number_cells(self, column: Any) -> NDArray[np.int64]:
        stated, domain = numbers(column), self.domain
        if stated is None:
            return np.full(len(column), -1)
        last = domain.n_values - 1
        if isinstance(domain, Grid):
            low, step = (float(each) for each in (domain.bounds[0], domain.spacing))
            with np.errstate(over="ignore", invalid="ignore"):
                place = np.clip(np.nan_to_num(np.rint((stated - low) / step)), 0, last).astype(np.int64)
            inside = grid_numbers(domain, place).astype(np.float64) == stated
        elif isinstance(domain, Bins) and domain.within == "uniform":
            place = np.clip(np.searchsorted(self.edges, stated, side="right") - 1, 0, last)
            inside = (stated >= self.edges[0]) & (stated <= self.edges[-1])
        else:
            place = np.minimum(np.searchsorted(self.middles, stated), last)
            inside = self.middles[place] == stated
        other = -1 if domain.other_cell is None else domain.other_cell
        return np.where(np.isnan(stated), other, np.where(inside, place, -1)).astype(np.int64)


def stray_labels(column: Any, allowed: Sequence[str | None]) -> bool:
    """Whether a column of text holds a label that is not listed; None stands for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return True
    listed = pa.array([label for label in allowed if label is not None], pa.string())
    known = pc.is_in(column, value_set=listed)
    if None in allowed:
        known = pc.or_(known, column.is_null())
    return not pc.all(known, min_count=0).as_py()


def fresh_labels(column: Any, prefix: str) -> set[str]:
    """Distinct labels of a column that are spelled as an urn's own: the prefix and a number."""
    import re

    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        raise DomainError("labels are text.")
    spelled = pc.match_substring_regex(column, pattern=rf"\A{re.escape(prefix)}\p{{Nd}}+\z")
    return set(pc.unique(column.filter(spelled)).to_pylist())
