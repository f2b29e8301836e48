"""Where results are put: checked before anything is paid or computed, written all of it or nothing.

A name that is taken in any way is taken: a link that leads nowhere, or round in a circle, too. What is half written has a short
hidden name of its own beside the target, so that a target whose name is as long as names may be can be written as well.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from privurn.errors import FormatError

PARTIAL = ".privurn-"
"""How names begin of what is not finished yet."""


def check_new_folder(path: str | Path) -> Path:
    """A folder that does not exist yet and can be made, checked by making one beside it."""
    target = _free(path, what="output folder", hint="Name a new folder, or remove the old one first")
    try:
        trial = new_partial_folder(target)
        try:
            (trial / "certificate.json").touch()
            _missing(target / "certificate.json")
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except OSError:
        raise _unwritable(target) from None
    return target


def check_new_file(path: str | Path) -> Path:
    """A file that does not exist yet and can be written, checked by writing one beside it."""
    target = _free(path, what="file", hint="Name a new file, or remove the old one first")
    _try_beside(target)
    return target


def check_file(path: str | Path) -> Path:
    """A file that can be written; one of that name may be replaced, and nothing else."""
    target = Path(path)
    if os.path.isdir(target):
        raise FormatError(f"{str(target)!r} is a folder.", hint="Name a file")
    _check_parent(target)
    try:
        _missing(target)
    except (OSError, ValueError):
        raise _unwritable(target) from None
    _try_beside(target)
    return target


def new_partial_folder(target: Path) -> Path:
    """A hidden folder beside the target, to be renamed."""
    return Path(tempfile.mkdtemp(prefix=PARTIAL, dir=target.absolute().parent))


def move_folder(partial: Path, target: Path) -> None:
    """Give the finished folder its name: at once, unless the file system copies its files one by one instead."""
    partial.rename(target)


def write_file(path: str | Path, write: Callable[[Path], object], *, new: bool = True, private: bool = False) -> Path:
    """Let `write` fill a hidden file beside the target, flush it, and give it its name.

    new: a file that has appeared meanwhile is left alone, and an error. private: for the owner's eyes only.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=target.suffix[:20], dir=target.absolute().parent)
    except OSError:
        raise _unwritable(target) from None
    os.close(handle)
    partial = Path(name)
    try:
        write(partial)
        flush(partial)
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            partial.chmod(0o666 & ~mask)
        if new:
            _link(partial, target)
        else:
            partial.replace(target)
    except FileExistsError:
        raise FormatError(f"the file {str(target)!r} exists.", hint="Name a new file, or remove the old one first") from None
    except OSError:
        raise _unwritable(target) from None
    finally:  # Ctrl-C too
        partial.unlink(missing_ok=True)
    return target


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _free(path: str | Path, *, what: str, hint: str) -> Path:
    target = Path(path)
    try:
        if not _missing(target):
            raise FormatError(f"the {what} {str(target)!r} exists.", hint=hint)
        _check_parent(target)
    except (OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise _unwritable(target) from None
    return target


def _missing(path: Path) -> bool:
    """Whether nothing has that name; links are not followed. Raises on names that nothing can have."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    return False


def _check_parent(target: Path) -> None:
    parent = target.absolute().parent
    if not os.path.isdir(parent):
        raise FormatError(
            f"there is no folder {str(parent)!r} to write into.", hint=f"Create it first: mkdir -p {shlex.quote(str(parent))}"
        )


def _try_beside(target: Path) -> None:
    try:
        handle, trial = tempfile.mkstemp(prefix=PARTIAL, suffix=target.suffix[:20], dir=target.absolute().parent)
        os.close(handle)
        Path(trial).unlink()
    except OSError:
        raise _unwritable(target) from None


def _link(partial: Path, target: Path) -> None:
    """Give the finished file its name, and fail where the name is taken."""
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: claim the name, then rename over the claim
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        partial.replace(target)


def _unwritable(target: Path) -> FormatError:
    shown = str(target) if len(str(target)) <= 200 else f"{str(target)[:200]}..."
    return FormatError(f"{shown!r} cannot be written.", hint="Is its name allowed and short enough, and its folder writable?")
