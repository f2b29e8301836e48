"""CSV files that two readers make the same of: looked at as bytes before Spark reads them.

DuckDB refuses text behind a closing quote, a quote that is never closed and line breaks of two kinds; Spark reads them somehow.
Blanks before a quote are part of the field to one of them only. So whatever is not written in the one plain way is refused.
"""

import codecs
import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path

from privurn.errors import FormatError
from privurn.tables.csv_header import HEADER_LINE, LONGEST_HEADER

BLOCK = 2**20
"""Bytes read at a time."""

LONGEST_RECORD = 2**26
"""Bytes; a quote that is not closed ends here."""


def check_alike(files: Iterable[str], delimiter: str) -> None:
    """Refuse files that could be read in two ways, or are not valid UTF-8."""
    for file in files:
        _check_file(Path(file), re.escape(delimiter.encode()))


def _check_file(path: Path, delimiter: bytes) -> None:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with opener(path, "rb") as handle:
            rest = handle.read(LONGEST_HEADER).removeprefix(BOM_UTF8)
            record, ended = _patterns(rest, delimiter)
            block = rest
            while block:
                decoder.decode(block)
                found = ended.match(rest)
                assert found is not None  # it matches nothing too
                rest = rest[found.end() :]
                if len(rest) > LONGEST_RECORD:
                    raise _ambiguous()
                block = handle.read(BLOCK)
                rest += block
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise FormatError(
            "the file is not valid UTF-8.", hint="Convert it first, for example: iconv -f latin1 -t utf-8 IN > OUT"
        ) from None
    except (OSError, EOFError, zlib.error):
        raise FormatError("a file cannot be read.", hint="Check that it is complete and readable") from None
    if record.fullmatch(rest) is None:
        raise _ambiguous()


def _patterns(start: bytes, delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A record, and as many of them as are there with the line break that the header line has."""
    header = HEADER_LINE.match(start)
    assert header is not None
    after = start[header.end() : header.end() + 2]
    end = b"\r\n" if after == b"\r\n" else re.escape(after[:1] or b"\n")
    field = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?![ \t]*")[^\r\n' + delimiter + rb"]*+)"
    record = field + rb"(?:" + delimiter + field + rb")*+"
    return re.compile(record), re.compile(rb"(?:" + record + end + rb")*+")


def _ambiguous() -> FormatError:
    return FormatError(
        "the file has quotes or line breaks that programs read differently.",
        hint="Write it again with a program that quotes whole fields, convert it to Parquet, or leave Spark out",
    )
