"""How kernels are compiled, and where the machine code is kept between processes.

numba keys its cache by one source file's time stamp, so it does not notice a change in a kernel that another kernel
calls. The cache folder is therefore named after a hash of all kernel sources: any change starts a fresh folder.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


@cache
def cache_folder() -> str:
    """Folder for compiled code, one for each state of the kernel sources."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    root = os.environ.get("PRIVURN_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(root) / "privurn" / f"kernels-{digest.hexdigest()[:16]}")


def compiled(function: F) -> F:
    """Compile with numba in nopython mode, cached across processes where the cache folder can be written."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = cache_folder()
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):  # a read-only home: compile in every process instead
        return numba.njit(error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = previous
