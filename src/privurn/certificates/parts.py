"""Releases in parts: written into a folder, and checked against their manifest."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from privurn.errors import FormatError
from privurn.privacy.certificate import file_hash
from privurn.tables import blocks
from privurn.tables.blocks import InParts, Wave
from privurn.tables.engine import Answered, Tasks
from privurn.tables.here import Here
from privurn.tables.parts import FOLDER, MANIFEST, Part, part_name, read_manifest, written_manifest

Progress = Callable[[str], None]
Each = TypeVar("Each")


def waves(parts: Sequence[Each]) -> Iterator[Sequence[Each]]:
    """So many at a time that what is sent to executors of them does not grow with the release."""
    for first in range(0, len(parts), blocks.WAVE_BLOCKS):
        yield parts[first : first + blocks.WAVE_BLOCKS]


def write_parts(
    table: InParts, folder: Path, *, file_format: str, progress: Progress = lambda stage: None
) -> tuple[dict[str, Any], bytes]:
    """Write the parts below a folder that is not a release yet; what a certificate says of them, and the manifest.

    What was paid for is not lost with a cluster: where that cannot write, this computer does, the same part after part.
    """
    work, kept = folder / "work", folder / FOLDER
    for each in (work, kept):
        each.mkdir()
    parts: list[Part] = []
    tasks, rows = table.tasks, 0
    for wave in table.waves():
        try:
            written = _written(wave, tasks, work, file_format)
        except FormatError as error:
            warnings.warn(f"{error.message} This computer writes it instead, which takes longer.", stacklevel=2)
            tasks = Here()
            written = _written(wave, tasks, work, file_format)
        for name, number, sha256 in written:
            parts.append(Part(part_name(len(parts), file_format), number, sha256))
            (work / name).rename(kept / parts[-1].file)
            rows += number
        progress(f"writing: {rows:,} of {table.num_rows:,} records")
    if rows != table.num_rows:
        raise _other_records()
    shutil.rmtree(work.rename(folder / "left"))  # a lost task that still writes finds no folder, and is not in the way
    manifest = written_manifest(parts)
    return {"file": MANIFEST, "rows": rows, "sha256": hashlib.sha256(manifest).hexdigest()}, manifest


def _written(wave: Wave, tasks: Tasks, work: Path, file_format: str) -> list[Answered]:
    """Tasks write under names of their own: one that was lost, and comes to an end all the same, disturbs no other."""
    found = wave.write(tasks, work, file_format)
    if not all((work / name).exists() for name, _, _ in found):
        raise FormatError(
            "a part of the release was not written where this computer looks for it.",
            hint="Name an output folder that the driver and all executors share",
        )
    if not wave.are([rows for _, rows, _ in found]):
        raise _other_records()
    return found


def _other_records() -> FormatError:
    return FormatError("the parts of the release do not hold its records.", hint="Save it again")


def changed_parts(folder: Path, stated: Mapping[str, Any], tasks: Tasks | None = None) -> list[str]:
    """Why the parts are not those that an unchanged manifest lists, or are not as many records as are stated."""
    try:
        parts = read_manifest(folder / MANIFEST)
        there = {each.name for each in os.scandir(folder / FOLDER)}
    except FormatError as error:
        return [error.message.removesuffix(".")]
    except OSError:
        return [f"the folder {FOLDER!r} of the parts is missing"]
    where = folder.absolute() / FOLDER
    wrong: list[str] = []
    for wave in waves(parts):

        def task(number: int, wave: Sequence[Part] = wave) -> Answered:
            part = wave[number]
            return part.file, part.rows, "same" if _same(where / part.file, part.sha256) else "other"

        wrong += [name for name, _, found in (tasks or Here()).answers(task, len(wave)) if found != "same"]
    found = {
        "the manifest does not list the rows that are stated": sum(each.rows for each in parts) != stated["rows"],
        f"the folder {FOLDER!r} holds files that the manifest does not list": bool(there - {each.file for each in parts}),
        f"parts are missing or were changed: {', '.join(wrong[:3])}{' ...' * (len(wrong) > 3)}": bool(wrong),
    }
    return [reason for reason, true in found.items() if true]


def _same(file: Path, sha256: str) -> bool:
    try:
        return file_hash(file) == sha256
    except OSError:
        return False
