"""Writing a release: a folder with the data and the certificate, all of it or nothing."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from privurn.certificates.parts import Progress, write_parts
from privurn.errors import FormatError
from privurn.output_files import check_new_folder, flush, move_folder, new_partial_folder, write_file
from privurn.privacy.certificate import Certificate, file_hash
from privurn.tables import write
from privurn.tables.blocks import InParts
from privurn.tables.parts import MANIFEST

FORMATS = ("csv", "parquet")


def check_format(file_format: str) -> None:
    """A format that data can be written in."""
    if file_format not in FORMATS:
        raise FormatError(f"the format {file_format!r} is not known.", hint="file_format='csv' or file_format='parquet'")


@dataclass(frozen=True)
class SyntheticTable:
    """Records made from published measurements: the table, how many copies it holds, and the public seed they came from."""

    table: Any
    copies: int
    seed: int


def save_release(
    table: Any,
    certificate: Certificate,
    folder: Path,
    *,
    file_format: Literal["csv", "parquet"],
    synthetic: SyntheticTable | None = None,
    measured: bool = False,
    progress: Progress = lambda stage: None,
) -> Certificate:
    """Write into a hidden sibling, flush, then rename: an interrupted run leaves no folder behind.

    What the mechanism published is the data; or the measurements, where the data are records that were made from them. Data in
    parts have a manifest, which is written last of all: without it a folder is no release.
    """
    check_format(file_format)
    check_new_folder(folder)
    partial = unfinished = new_partial_folder(folder)
    try:
        name = "measurements" if measured else "data"
        stated, manifest = _written(table, partial, name, file_format, progress)
        certificate = certificate.with_fields(output=stated)
        if synthetic is not None:
            made, manifest = _written(synthetic.table, partial, "data", file_format, progress)
            certificate = certificate.with_fields(synthetic={**made, "copies": synthetic.copies, "seed": synthetic.seed})
        (partial / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
        for each in partial.iterdir():
            flush(each)
        partial.chmod(0o755)
        move_folder(partial, folder)
        unfinished = folder if manifest is not None else partial  # without its manifest it is no release
        flush(folder.absolute().parent)
        if manifest is not None:
            write_file(folder / MANIFEST, lambda file: file.write_bytes(manifest))
            flush(folder)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return certificate


def save_synthetic(table: Any, folder: Path, *, about: dict[str, Any]) -> None:
    """Records that were made from releases, and what they were made from: `data.csv` and `synthetic.json`, all or nothing."""
    check_new_folder(folder)
    partial = new_partial_folder(folder)
    try:
        stated = {"schema": "privurn-synthetic/1", **about, **_written(table, partial, "data", "csv")[0]}
        (partial / "synthetic.json").write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
        for each in partial.iterdir():
            flush(each)
        partial.chmod(0o755)
        partial.rename(folder)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _written(
    table: Any, folder: Path, name: str, file_format: str, progress: Progress = lambda stage: None
) -> tuple[dict[str, Any], bytes | None]:
    """What a certificate says of the data, and their manifest if they are in parts."""
    if isinstance(table, InParts):
        return write_parts(table, folder, file_format=file_format, progress=progress)
    file = folder / f"{name}.{file_format}"
    write(table, file)
    return {"file": file.name, "rows": table.num_rows, "sha256": file_hash(file)}, None
