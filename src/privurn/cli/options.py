"""Options that several commands share. A parameter of a command that is a group stands for all the options of that group."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.privacy.entropy import Entropy
    from privurn.tables.spark_files import SparkFiles

DataFile = Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet file, or a glob in quotes.")]
Folder = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="New folder for data and certificate.")]
FileFormat = Annotated[str, typer.Option("--format", help="Format of the released data: csv or parquet.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy loss of one replaced record.")]
Delta = Annotated[float, typer.Option("--delta", help="Allowed failure probability; 0 asks for pure epsilon-DP.")]
Contributions = Annotated[int, typer.Option(help="Most records that one person may own.")]
NeighbouringOption = Annotated[
    str,
    typer.Option(
        "--neighbouring", help="replace-one (n is public) or add-remove (n is secret; public domains, give --records)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


EngineName = Annotated[str, typer.Option("--engine", help="What reads FILE: duckdb, or spark (with --master or --remote).")]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master, for example local[4] or spark://host:7077.")
]
Remote = Annotated[str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://host:15002.")]


def read_by(engine: str, master: str | None, remote: str | None, file: str, *, staging: Path = Path()) -> "str | SparkFiles":
    """A file, and the engine that shall read it."""
    from privurn.tables.spark_files import SparkFiles

    if engine == "spark":
        return SparkFiles(file, master=master, remote=remote, staging=str(staging))
    if engine != "duckdb":
        raise FormatError(f"the engine {engine!r} is not known.", hint="duckdb or spark")
    if master is not None or remote is not None:
        raise FormatError("--master and --remote are Spark's.", hint="Add --engine spark")
    return file


@contextmanager
def session(engine: str, master: str | None, remote: str | None) -> Iterator[Any]:
    """A Spark session; None where Spark is not asked for."""
    files = read_by(engine, master, remote, "")
    if isinstance(files, str):
        yield None
        return
    with files.session() as spark:
        yield spark


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command of which each parameter that is a dataclass is made from options: the fields of that dataclass."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(command)
    def run(**typed: Any) -> None:
        made = {name: kind(**{each.name: typed.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()}
        command(**made, **typed)

    shown = []
    for each in inspect.signature(command).parameters.values():
        own = fields(groups[each.name]) if each.name in groups else ()
        options = [(one.name, each.empty if one.default is MISSING else one.default, one.type) for one in own]
        for name, default, kind in options or [(each.name, each.default, hints[each.name])]:
            shown.append(inspect.Parameter(name, each.KEYWORD_ONLY, default=default, annotation=kind))
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


@dataclass(frozen=True, kw_only=True)
class Making:
    """What every command that makes a release is told: for whom, who pays, and what reads the file."""

    contributions: Contributions = 1
    ledger: Annotated[
        Path | None,
        typer.Option(help="Ledger that pays first. Default: FILE.ledger, however FILE is spelled.", metavar="PATH"),
    ] = None
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Use no ledger, even where one stands; the certificate says so.")
    ] = False
    engine: EngineName = "duckdb"
    master: Master = None
    remote: Remote = None
    seed: Annotated[int | None, typer.Option(help="For tests only: marks the release as seeded, not private.")] = None

    def data(self, file: str, *, staging: Path = Path()) -> "str | SparkFiles":
        """The file, and what shall read it; `staging` is a folder that a cluster shares."""
        return read_by(self.engine, self.master, self.remote, file, staging=staging)

    @property
    def payer(self) -> Path | Literal[False] | None:
        """The ledger named, none at all, or (None) the one beside the data, which the library looks for."""
        if self.ledger is not None and self.no_ledger:
            raise FormatError("--ledger and --no-ledger contradict each other.", hint="Leave one of them out")
        return False if self.no_ledger else self.ledger

    @property
    def entropy(self) -> "Entropy | None":
        """That can be repeated, where a test asks for it."""
        from privurn.privacy.entropy import SeededEntropy

        return None if self.seed is None else SeededEntropy(self.seed)


def check_output(folder: Path, file_format: str) -> None:
    """A new folder, and a format that can be written."""
    from privurn.certificates.folder import check_format
    from privurn.output_files import check_new_folder

    check_format(file_format)
    check_new_folder(folder)
