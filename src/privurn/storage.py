"""Writing a release: a folder with the data and the certificate, all of it or nothing."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from privurn.errors import FormatError
from privurn.privacy.certificate import Certificate, file_hash
from privurn.tables import write


def check_new_folder(folder: Path) -> None:
    """A release never overwrites anything."""
    if folder.exists():
        raise FormatError(f"the output folder {str(folder)!r} exists.", hint="Name a new folder, or remove the old one first")
    if not folder.absolute().parent.is_dir():
        raise FormatError(f"there is no folder {str(folder.absolute().parent)!r} to write into.", hint="Create it first")
    try:
        Path(tempfile.mkdtemp(prefix=".privurn-", dir=folder.absolute().parent)).rmdir()
    except OSError:
        raise FormatError(
            f"cannot write into {str(folder.absolute().parent)!r}.", hint="Name a folder you may write to"
        ) from None


def save_release(table: Any, certificate: Certificate, folder: Path, *, file_format: Literal["csv", "parquet"]) -> Certificate:
    """Write into a hidden sibling, flush, then rename: an interrupted run leaves no folder behind."""
    check_new_folder(folder)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.absolute().parent))
    try:
        file = partial / f"data.{file_format}"
        write(table, file)
        output = {"file": file.name, "rows": table.num_rows, "sha256": file_hash(file)}
        certificate = certificate.with_fields(output=output)
        (partial / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
        for each in partial.iterdir():
            _flush(each)
        partial.chmod(0o755)
        partial.rename(folder)
        _flush(folder.absolute().parent)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return certificate


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
