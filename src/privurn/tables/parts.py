"""A release in parts: files in a folder, in the order of their names, and a manifest that lists them with rows and hashes.

The manifest is written last, after everything that it lists is in its place: where it is missing nothing was released. So no
file system has to rename a folder at once, which object stores cannot.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from privurn.errors import FormatError

MANIFEST, FOLDER = "manifest.json", "data"
SCHEMA = "privurn-manifest/1"
MOST_PARTS = 10**6
LONGEST = 2**28
"""Bytes of a manifest: as many parts fit."""
NAME = re.compile(r"part-[0-9]{6}\.(csv|parquet)")
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """A file, its number of records and its SHA-256."""

    file: str
    rows: int
    sha256: str


def part_name(number: int, file_format: str) -> str:
    """Names sort as the parts do.

    >>> part_name(7, "parquet")
    'part-000007.parquet'
    """
    return f"part-{number:06d}.{file_format}"


def written_manifest(parts: Sequence[Part]) -> bytes:
    """The one way to write a list of parts."""
    return (json.dumps({"schema": SCHEMA, "parts": [asdict(each) for each in parts]}, indent=1) + "\n").encode()


def read_manifest(path: Path) -> list[Part]:
    """Parts in order: numbered from 0, all of one format, and written in no other way than `written_manifest` does."""
    try:
        with path.open("rb") as handle:
            raw = handle.read(LONGEST)  # a longer one is cut off, and then no manifest
        parts = [Part(**each) for each in json.loads(raw)["parts"]]
        same = written_manifest(parts) == raw
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise _no_manifest() from None
    formats = {match[1] for each in parts if isinstance(each.file, str) and (match := NAME.fullmatch(each.file))}
    if not same or len(formats) != 1 or len(parts) > MOST_PARTS:
        raise _no_manifest()
    [file_format] = formats
    for i, each in enumerate(parts):
        counted = type(each.rows) is int and each.rows >= 0
        if not (counted and each.file == part_name(i, file_format) and HASH.fullmatch(str(each.sha256))):
            raise _no_manifest()
    return parts


def data_files(path: Path) -> list[Path]:
    """The files of released data: the parts that a manifest lists, or the only one."""
    if path.name != MANIFEST:
        return [path]
    return [path.parent / FOLDER / each.file for each in read_manifest(path)]


def _no_manifest() -> FormatError:
    return FormatError("the manifest is not a list of parts in order.", hint="Get the release again from its source")
