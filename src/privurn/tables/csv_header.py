"""How a CSV file is written, read off its header line alone.

The header is schema, so it is public; the records are not. A dialect guessed from records would let one record change how all
the others are read, which no guarantee for one record covers.
"""

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

from privurn.errors import DomainError, FormatError

DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 2**20


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
            raw = handle.readline(LONGEST_HEADER)
    except (OSError, EOFError):
        raise FormatError(
            f"cannot read {os.path.realpath(path)!r}.", hint="Check that the file is complete and readable"
        ) from None
    if not raw.strip():
        raise DomainError("the table is empty.")
    try:
        line = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(
            "the file is not valid UTF-8.", hint="Convert it first, for example: iconv -f latin1 -t utf-8 IN > OUT"
        ) from None
    line = line.rstrip("\r\n")
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes)
    delimiter = "\t" if tabs else max(DELIMITERS, key=line.count)
    names = tuple(name.strip() or f"column_{i}" for i, name in enumerate(next(csv.reader([line], delimiter=delimiter))))
    if len(set(names)) != len(names):
        raise FormatError("the header line names a column twice.", hint="Give every column a name of its own")
    return Header(names, delimiter)
