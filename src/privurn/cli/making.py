"""What the commands that make a release share: options, who pays, seeds for tests, and the lines that all of them print."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privurn.cli.console import note, print_json, print_text
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.certificates.release import Release
    from privurn.privacy.certificate import Certificate
    from privurn.privacy.entropy import Entropy
    from privurn.tables.spark_files import SparkFiles

DataFile = Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet file, or a glob in quotes.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="What reads FILE: duckdb, or spark (Parquet files, with --master or --remote).")
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master, for example local[4] or spark://host:7077.")
]
Remote = Annotated[
    str | None,
    typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://host:15002 (not tried by any test yet)."),
]
Folder = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="New folder for data and certificate.")]
Contributions = Annotated[int, typer.Option(help="Most records that one person may own.")]
LedgerPath = Annotated[
    Path | None,
    typer.Option(help="Ledger that pays first. Default: FILE.ledger, however FILE is spelled.", metavar="PATH"),
]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Use no ledger, even where one stands; the certificate says so.")]
FileFormat = Annotated[str, typer.Option("--format", help="Format of the released data: csv or parquet.")]
TestSeed = Annotated[int | None, typer.Option(help="For tests only: marks the release as seeded, not private.")]


def check_output(folder: Path, file_format: str) -> None:
    """A new folder, and a format that can be written."""
    from privurn.certificates.folder import check_format
    from privurn.output_files import check_new_folder

    check_format(file_format)
    check_new_folder(folder)


def data_for(file: str, engine: str, master: str | None, remote: str | None) -> "str | SparkFiles":
    """The file, and what shall read it."""
    from privurn.tables.spark_files import SparkFiles

    if engine == "spark":
        return SparkFiles(file, master=master, remote=remote)
    if engine != "duckdb":
        raise FormatError(f"the engine {engine!r} is not known.", hint="duckdb or spark")
    if master is not None or remote is not None:
        raise FormatError("--master and --remote are Spark's.", hint="Add --engine spark")
    return file


def payment(ledger: Path | None, no_ledger: bool) -> Path | Literal[False] | None:
    """The ledger named, none at all, or (None) the one beside the data, which the library looks for."""
    if ledger is not None and no_ledger:
        raise FormatError("--ledger and --no-ledger contradict each other.", hint="Leave one of them out")
    return False if no_ledger else ledger


def seeded(seed: int | None) -> "Entropy | None":
    """Entropy that can be repeated, where a test asks for it."""
    from privurn.privacy.entropy import SeededEntropy

    return None if seed is None else SeededEntropy(seed)


def print_opening(certificate: "Certificate", what: str) -> None:
    """What was made, and whether its guarantee holds."""
    print_text(what)
    if not certificate["private"]:
        print_text("Seeded, so NOT private: for tests only. Without the seed it would be:")


def guarantee_words(certificate: "Certificate") -> str:
    """Epsilon and delta, and for whom."""
    target, unit = certificate["target"], certificate["privacy_unit"]["unit"]
    return f"Guarantee: ({target['epsilon']:g}, {target['delta']:g})-differential privacy for {unit}"


def warn(certificate: "Certificate") -> None:
    """On standard error: a seed, or no ledger."""
    if not certificate["private"]:
        note("warning: seeded: not private. Use it for tests only.")
    if certificate["ledger"].get("declined"):
        note("warning: no ledger was used although one stands beside the data; the certificate says so.")
    elif not certificate["ledger"]["used"]:
        note("warning: no ledger was used, so nothing stops a second release; the certificate says so.")


def show_folder(made: "Release", output: Path, *, json: bool, words: Callable[[], None]) -> None:
    """A folder that was written: one JSON object, or a command's own words and where everything is."""
    from privurn.tables.parts import FOLDER, MANIFEST

    certificate = made.certificate
    data = (certificate["synthetic"] or certificate["output"])["file"]
    paths = {
        "folder": str(output),
        "data": str(output / (FOLDER if data == MANIFEST else data)),
        **({} if certificate["synthetic"] is None else {"measurements": str(output / certificate["output"]["file"])}),
        "certificate": str(output / "certificate.json"),
    }
    if json:
        print_json({"paths": paths, "remarks": list(made.remarks), "certificate": dict(certificate.data)})
        return
    words()
    warn(certificate)
    print_text(f"Data:        {paths['data']}")
    if "measurements" in paths:
        print_text(f"Measured:    {paths['measurements']}   (what privurn infer reads)")
    print_text(f"Certificate: {paths['certificate']}   (check it: privurn verify {output})")
