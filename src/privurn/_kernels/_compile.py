"""How kernels are compiled, and where the machine code is kept between processes.

numba keys its cache by one source file's time stamp, so it does not notice a change in a kernel that another kernel
calls. The cache folder is therefore named after a hash of all sources a kernel may call: those of its own folder and those
of the folders above it. Any change among them starts a fresh folder; kernels in a neighbouring folder keep theirs.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

ROOT = Path(__file__).parent
OPTIONS = {"error_model": "numpy", "nogil": True}


@cache
def cache_folder(folder: Path = ROOT) -> str:
    """Folder for code compiled from sources in `folder`, one for each state of what they may call."""
    digest = hashlib.sha256()
    above = [each for each in folder.parents if each.is_relative_to(ROOT)]
    for source in [source for each in (folder, *above) for source in sorted(each.glob("*.py"))]:
        digest.update(source.read_bytes())
    root = os.environ.get("PRIVURN_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(root) / "privurn" / f"kernels-{digest.hexdigest()[:16]}")


def compiled(function: F) -> F:
    """Compile with numba in nopython mode, cached across processes where the cache folder can be written."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = cache_folder(Path(function.__code__.co_filename).parent)
    try:
        return numba.njit(cache=True, **OPTIONS)(function)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):  # a read-only home: compile in every process instead
        return numba.njit(**OPTIONS)(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = previous


def written_out(function: F) -> F:
    """A part of a kernel that is written out where it is called: not compiled by itself as well, which takes a while."""
    return numba.njit(inline="always", **OPTIONS)(function)  # type: ignore[no-any-return]
