"""Names of a package that are imported on first use, so that importing the package stays fast."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are found in the modules said in `homes`, each below privurn."""
    modules = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"privurn.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
