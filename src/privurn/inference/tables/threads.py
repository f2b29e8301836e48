"""One thread for matrix products while a table is fitted.

Threads of a BLAS that wait for each other lose more than they gain where other work runs beside them, and sums in another order
round differently: with one thread a seed gives the same table whatever else the machine does.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
"""How builds of OpenBLAS call the two functions, with set or get in the gap."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it every loaded OpenBLAS uses one thread; other libraries are left alone."""
    before = [(change, int(ask())) for change, ask in _switches()]
    try:
        for change, _ in before:
            change(1)
        yield
    finally:
        for change, threads in before:
            change(threads)


@cache
def _switches() -> tuple[tuple[Any, Any], ...]:
    """Functions that set and get the number of threads, of each OpenBLAS that the process has loaded."""
    import numpy as np

    np.dot(np.ones((1, 1)), np.ones((1, 1)))  # is loaded now, if it ever is
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return ()
    files = sorted({line.split(maxsplit=5)[5] for line in lines if "openblas" in line and ".so" in line})
    found = []
    for file in files:
        try:
            library = ctypes.CDLL(file)
        except OSError:
            continue
        for name in NAMES:
            change, ask = (getattr(library, name.format(word), None) for word in ("set", "get"))
            if change is not None and ask is not None:
                change.argtypes, change.restype, ask.restype = [ctypes.c_int], None, ctypes.c_int
                found.append((change, ask))
                break
    return tuple(found)
