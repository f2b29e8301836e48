"""How a CSV file is written, read off its header line alone.

The header is schema, so it is public; the records are not. A dialect guessed from records would let one record change how all
the others are read, which no guarantee for one record covers.
"""

import gzip
import os
import re
import zlib
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path

from privurn.errors import DomainError, FormatError
from privurn.tables.column_names import unused

DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 2**20
HEADER_LINE = re.compile(rb'(?:"[^"]*(?:""[^"]*)*"(?=[,;\t|\r\n]|\Z)|[^",;\t|\r\n][^,;\t|\r\n]*|[,;\t|])*')
"""Names and delimiters up to the end of the line, which a name in quotes may go beyond."""

QUOTED = re.compile(r'(?:(?<=[,;\t|])|^)"[^"]*(?:""[^"]*)*"')
"""A name in quotes; quotes in the middle of a name are part of it."""


@dataclass(frozen=True)
class Header:
    """Column names and delimiter."""

    names: tuple[str, ...]
    delimiter: str


def read_header(files: list[str]) -> Header:
    """The header that all files share."""
    headers = {_one_header(Path(file)) for file in files}
    if len(headers) != 1:
        raise FormatError(
            "the files have different header lines.", hint="Release files with the same columns in the same order"
        )
    return headers.pop()


def _one_header(path: Path) -> Header:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as handle:
            raw = handle.read(LONGEST_HEADER).removeprefix(BOM_UTF8)
    except (OSError, EOFError, zlib.error):
        raise FormatError(
            f"cannot read {os.path.realpath(path)!r}.", hint="Check that the file is complete and readable"
        ) from None
    found = HEADER_LINE.match(raw)
    assert found is not None  # it matches nothing too
    if not raw[: found.end() + 1].strip():
        raise DomainError("the table is empty.", hint="A CSV file names its columns in the first line; records follow")
    if raw[found.end() : found.end() + 1] not in (b"\r", b"\n", b"") or found.end() >= LONGEST_HEADER - len(BOM_UTF8):
        raise FormatError(
            "the header line has a quote that is not closed, or does not end.", hint="Check the first line of the file"
        )
    try:
        line = found[0].decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(
            "the file is not valid UTF-8.", hint="Convert it first, for example: iconv -f latin1 -t utf-8 IN > OUT"
        ) from None
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes)
    delimiter = "\t" if tabs else max(DELIMITERS, key=QUOTED.sub("", line).count)
    fields = _fields(line, delimiter)
    given = [name for name in fields if name is not None]
    if len(set(given)) != len(given):
        raise FormatError("the header line names a column twice.", hint="Give every column a name of its own")
    names: list[str] = []
    for i, name in enumerate(fields):
        names.append(unused(f"column_{i}", {*given, *names}) if name is None else name)
    return Header(tuple(names), delimiter)


def _fields(line: str, delimiter: str) -> list[str | None]:
    """Names between delimiters: in quotes as they are, else without the blanks around them; None where there is none."""
    after = re.escape(delimiter)
    field = re.compile(rf'"([^"]*(?:""[^"]*)*)"(?={after}|\Z)|([^{after}]*)')
    names: list[str | None] = []
    at = 0
    while at <= len(line):
        found = field.match(line, at)
        assert found is not None  # the second form matches anything
        names.append(found[1].replace('""', '"') if found[2] is None else found[2].strip() or None)
        at = found.end() + 1
    return names
