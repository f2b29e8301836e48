"""Which real files a path stands for: found once, and then both read and paid for by the same list.

A path that exists is taken literally, whatever its name looks like; only what does not exist is expanded as a glob. Links are
followed, and a file that is reached twice (by a glob and a link, or by two hard links) is one file: reading it twice would
count each person's records twice. The name that a reader is handed cannot be expanded again.
"""

import glob
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from privurn.errors import FormatError

READERS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".gz": "csv", ".parquet": "parquet", ".pq": "parquet"}
PLAIN = re.compile(r"[\w /.,=+@-]*")
"""Characters that mean themselves to every reader of paths. All others are left to the operating system."""

REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True)
class DataFiles:
    """Real files, and how they were found."""

    reader: str
    """ "csv" or "parquet"."""

    files: tuple[Path, ...]
    """Absolute, without links, each once."""

    suffixes: tuple[str, ...]
    """What each one's name says of its format: the name it was asked for by, since a link may point to any name."""

    names: tuple[Path, ...]
    """Every name on the way: the path as it was spelled, what a glob made of it, links, the real files."""


def find_files(spelling: str) -> DataFiles:
    """The real files that a path or a glob stands for, or a refusal."""
    if REMOTE.match(spelling):
        raise FormatError(
            f"{spelling!r} is an address, and only files of this computer are read.",
            hint="Download it first; a file whose name looks like an address is named by its full path",
        )
    found: dict[tuple[int, int], tuple[Path, str]] = {}
    names = [Path(spelling).absolute()]
    try:
        for name in _expanded(spelling):
            real = name.resolve(strict=True)
            state = real.stat()
            if not stat.S_ISREG(state.st_mode):
                raise FileNotFoundError
            found.setdefault((state.st_dev, state.st_ino), (real, _format(name.name).lower()))
            names += [*_links(name.absolute()), real]
    except (OSError, ValueError, RuntimeError):  # also names that are too long, hold a zero byte, or links in a circle
        found = {}
    if not found:
        raise FormatError(
            f"there is no file {spelling!r}.", hint="Give a CSV or Parquet file, or a glob such as 'data/*.parquet'"
        )
    files, suffixes = zip(*found.values(), strict=True)
    return DataFiles(_reader(spelling, suffixes), files, suffixes, tuple(dict.fromkeys(names)))


def _expanded(spelling: str) -> list[Path]:
    """The path itself where it exists, else what it matches as a glob beginning at the longest part of it that exists."""
    path = Path(spelling)
    if os.path.lexists(path) or not glob.has_magic(spelling):
        return [path]
    literal = next((each for each in path.parents if os.path.lexists(each)), path.parents[-1])
    pattern = os.path.join(glob.escape(str(literal)), path.relative_to(literal))
    return [Path(each) for each in sorted(glob.glob(pattern))]


def _links(path: Path) -> Iterator[Path]:
    """A path, and what each link on the way points to."""
    yield path
    while path.is_symlink():
        path = path.parent / path.readlink()
        yield path


def _format(name: str) -> str:
    """The endings of a name that say how a file is written, for example ".tsv.gz"; none where the last one says nothing."""
    suffixes = Path(name).suffixes
    known = [suffix for suffix in suffixes if suffix.lower() in READERS]
    return "".join(known) if known and suffixes[-1] == known[-1] else ""


def _reader(spelling: str, suffixes: tuple[str, ...]) -> str:
    readers = {READERS.get(Path(f"x{suffix}").suffix) for suffix in suffixes}
    if None in readers:
        raise FormatError(
            f"the kind of file {spelling!r} is not known.", hint="Names must end in .csv, .csv.gz, .tsv, .txt, .parquet or .pq"
        )
    if len(readers) > 1:
        raise FormatError(f"{spelling!r} stands for CSV and for Parquet files.", hint="Release files of one kind")
    return str(readers.pop())


@contextmanager
def readable(found: DataFiles | None) -> Iterator[list[str]]:
    """Names that a reader cannot misunderstand: the file's own where it is plain, else a link of ours that points to it."""
    with ExitStack() as stack:
        folder = ""
        names = []
        for i, (path, suffix) in enumerate(zip(found.files, found.suffixes, strict=True) if found else ()):
            name = str(path)
            if not PLAIN.fullmatch(name) or _format(path.name) != suffix:
                folder = folder or stack.enter_context(_folder_for_links())
                name = os.path.join(folder, f"{i}{suffix}")
                os.symlink(path, name)
            names.append(name)
        yield names


@contextmanager
def _folder_for_links() -> Iterator[str]:
    with ExitStack() as stack:
        try:
            folder = os.path.realpath(stack.enter_context(TemporaryDirectory(prefix="privurn-")))
        except OSError:
            folder = "?"
        if not PLAIN.fullmatch(folder):
            raise FormatError(
                "the file's name needs a link in a folder for temporary files, and there is none of a plain name.",
                hint="Rename the file, or set TMPDIR",
            )
        yield folder
