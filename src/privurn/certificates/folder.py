"""Writing a release: a folder with the data and the certificate, all of it or nothing."""

import shutil
from pathlib import Path
from typing import Any, Literal

from privurn.errors import FormatError
from privurn.output_files import check_new_folder, flush, new_partial_folder
from privurn.privacy.certificate import Certificate, file_hash
from privurn.tables import write

FORMATS = ("csv", "parquet")


def check_format(file_format: str) -> None:
    """A format that data can be written in."""
    if file_format not in FORMATS:
        raise FormatError(f"the format {file_format!r} is not known.", hint="file_format='csv' or file_format='parquet'")


def save_release(
    table: Any,
    certificate: Certificate,
    folder: Path,
    *,
    file_format: Literal["csv", "parquet"],
    synthetic: Any = None,
    seed: int = 0,
) -> Certificate:
    """Write into a hidden sibling, flush, then rename: an interrupted run leaves no folder behind.

    `synthetic` are records that were made from the table alone with the public `seed`; they get a file beside it.
    """
    check_format(file_format)
    check_new_folder(folder)
    partial = new_partial_folder(folder)
    try:
        file = partial / f"data.{file_format}"
        write(table, file)
        output: dict[str, Any] = {"file": file.name, "rows": table.num_rows, "sha256": file_hash(file)}
        if synthetic is not None:
            beside = partial / f"synthetic.{file_format}"
            write(synthetic, beside)
            stated = {"file": beside.name, "rows": synthetic.num_rows, "sha256": file_hash(beside), "seed": seed}
            output["synthetic"] = stated
        certificate = certificate.with_fields(output=output)
        (partial / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
        for each in partial.iterdir():
            flush(each)
        partial.chmod(0o755)
        partial.rename(folder)
        flush(folder.absolute().parent)
    except BaseException:  # Ctrl-C too
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return certificate
