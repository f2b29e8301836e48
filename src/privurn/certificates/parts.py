"""Releases in parts: written into a folder, and checked against their manifest."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from privurn.errors import FormatError
from privurn.privacy.certificate import file_hash
from privurn.tables.blocks import InParts
from privurn.tables.engine import Answered, Tasks
from privurn.tables.here import Here
from privurn.tables.parts import FOLDER, MANIFEST, Part, part_name, read_manifest, written_manifest


def write_parts(table: InParts, folder: Path, *, file_format: str) -> tuple[dict[str, Any], bytes]:
    """Write the parts below a folder that is not a release yet; what a certificate says of them, and the manifest.

    What was paid for is not lost with a cluster: where that cannot write, this computer does, the same part after part.
    """
    try:
        parts = _written(table, folder, file_format)
    except FormatError as error:
        warnings.warn(f"{error.message} This computer writes it instead, which takes longer.", stacklevel=2)
        parts = _written(replace(table, tasks=Here()), folder, file_format)
    manifest = written_manifest(parts)
    return {"file": MANIFEST, "rows": table.num_rows, "sha256": hashlib.sha256(manifest).hexdigest()}, manifest


def _written(table: InParts, folder: Path, file_format: str) -> list[Part]:
    """Tasks write under names of their own: one that was lost, and comes to an end all the same, disturbs no other."""
    work, kept = folder / "work", folder / FOLDER
    for each in (work, kept):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    parts = []
    for i, (name, rows, sha256) in enumerate(table.write(work, file_format)):
        part = Part(part_name(i, file_format), rows, sha256)
        try:
            (work / name).rename(kept / part.file)
        except FileNotFoundError:
            raise FormatError(
                "a part of the release was not written where this computer looks for it.",
                hint="Name an output folder that the driver and all executors share",
            ) from None
        parts.append(part)
    if not table.are([each.rows for each in parts]):
        raise FormatError("the parts of the release do not hold its records.", hint="Save it again")
    shutil.rmtree(work)
    return parts


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

    def task(number: int) -> Answered:
        part = parts[number]
        return part.file, part.rows, "same" if _same(where / part.file, part.sha256) else "other"

    wrong = [name for name, _, found in (tasks or Here()).answers(task, len(parts)) if found != "same"]
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
