"""Data frames and files in and out: the only package that knows pandas, polars, Arrow and DuckDB.

Rows never become Python objects: DuckDB reads the file or frame, turns each record into its cell with one expression, and
returns counts. Messages name columns and files, never what is in them; DuckDB's own messages can quote a record, so they
are not passed on.
"""

from privurn.tables.counting import check_rows, count_cells, count_labels
from privurn.tables.opening import frame_kind, open_table
from privurn.tables.output import decode, decode_labels, to_kind, write
from privurn.tables.source import Source

__all__ = [
    "Source",
    "check_rows",
    "count_cells",
    "count_labels",
    "decode",
    "decode_labels",
    "frame_kind",
    "open_table",
    "to_kind",
    "write",
]
