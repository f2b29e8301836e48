"""Packages that a core installation leaves out, and what to type where they are missing."""

import sys
from importlib.util import find_spec

from privurn.errors import MissingExtra

EXTRAS = {"inference": ("arviz_base", "arviz_stats", "h5netcdf", "h5py"), "plots": ("matplotlib",)}
"""Modules by the extra that installs them, as pyproject.toml says."""


def need(extra: str, *, what: str) -> None:
    """Refuse, before any work is done, what cannot be done without an extra. `what` begins the sentence, many of them."""
    if any(map(_missing, EXTRAS[extra])):
        raise MissingExtra(f"{what} need packages that are not installed: pip install 'privurn[{extra}]'")


def _missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except (ImportError, ValueError):
        return module not in sys.modules
