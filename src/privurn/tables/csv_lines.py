"""Lines of CSV files, looked at as bytes before anything else reads them.

The reader refuses very long lines, and one at the very end it leaves out without a word; so lines have a stated limit of our
own, well below its limit.
"""

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

from privurn.errors import FormatError

LONGEST_LINE = 2**20
"""Bytes."""

BLOCK = 2**18
"""Bytes read at a time: fewer than a line may have, so a line that is too long begins and ends in different blocks."""


def check_lines(files: Iterable[str]) -> None:
    """Refuse files with a line that is too long."""
    for file in files:
        _check_file(Path(file))


def _check_file(path: Path) -> None:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    start, end = 0, 0
    try:
        with opener(path, "rb") as handle:
            while block := handle.read(BLOCK):
                first, last = _first_break(block), _last_break(block)
                if max((end + first if first >= 0 else end + len(block)) - start, 0) > LONGEST_LINE:
                    raise FormatError(
                        f"a line is longer than {LONGEST_LINE:,} bytes.",
                        hint="Shorten the field, or convert the file to Parquet",
                    )
                start = start if last < 0 else end + last + 1
                end += len(block)
    except (OSError, EOFError, zlib.error):
        raise FormatError("a file cannot be read.", hint="Check that it is complete and readable") from None


def _first_break(block: bytes) -> int:
    found = [place for place in (block.find(b"\n"), block.find(b"\r")) if place >= 0]
    return min(found, default=-1)


def _last_break(block: bytes) -> int:
    return max(block.rfind(b"\n"), block.rfind(b"\r"))
