"""CSV files read by Spark as DuckDB reads them: all columns text, the dialect from the header line, nothing passed over.

What the two would read differently is refused (`csv_alike`). Lines of more or fewer fields than the header has are marked by
Spark rather than complained about, because its complaints quote them, and refused once they are counted.
"""

from typing import Any

from privurn.errors import FormatError
from privurn.tables.column_names import places
from privurn.tables.csv_alike import check_alike
from privurn.tables.csv_header import read_header
from privurn.tables.csv_lines import check_lines

BROKEN = "broken"
"""Column of lines that are no records."""


def read_csv(session: Any, files: list[str]) -> Any:
    """A frame of text under the names of the header line."""
    header = read_header(files)
    if len(header.names) == 1:  # where they are records
        raise FormatError(
            "Spark leaves out the empty lines of a CSV file of one column.", hint="Convert it to Parquet, or leave Spark out"
        )
    check_lines(files)
    check_alike(files, header.delimiter)
    columns = places(header.names)
    frame = session.read.csv(
        [f"file://{name}" for name in files],
        schema=", ".join(f"{name} string" for name in [*columns, BROKEN]),
        header=True,
        sep=header.delimiter,
        quote='"',
        escape='"',
        multiLine=True,
        emptyValue="",
        maxCharsPerColumn=-1,
        unescapedQuoteHandling="STOP_AT_DELIMITER",
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=BROKEN,
    )
    if frame.selectExpr(f"count({BROKEN})", "count(c0)").collect()[0][0]:  # Spark wants another column beside it
        raise FormatError(
            "the table cannot be read: a line has more or fewer fields than the header.",
            hint="Check that the file is complete; details are withheld because they could quote a record",
        )
    return frame.select(*columns).toDF(*header.names)
