"""Domains from plain data and from files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from math import prod
from pathlib import Path
from typing import Any

from privurn.domain.categories import Categories, OpenLabels
from privurn.domain.column import MOST_CELLS
from privurn.domain.dates import Dates
from privurn.domain.joint import AnyDomain, JointDomain
from privurn.domain.numeric import Bins, Grid
from privurn.domain.table import TableDomain
from privurn.errors import FormatError


def domain_from_json(data: Mapping[str, Any]) -> AnyDomain | TableDomain:
    """Build a domain from plain data: {"kind": "grid", "low": 0, "high": 100, "step": 1}, and so on."""
    if not isinstance(data, Mapping):
        raise FormatError("a domain must be a mapping.", hint='For example {"kind": "grid", "low": 0, "high": 100, "step": 1}')
    named = data
    if "kind" not in data and all(isinstance(value, Mapping) for value in data.values()):
        data = {"kind": "joint", "columns": data}
    fields = {key: value for key, value in data.items() if key != "kind"}
    builders: dict[str, type[Grid] | type[Bins] | type[Dates] | type[Categories] | type[OpenLabels]] = {
        "grid": Grid,
        "bins": Bins,
        "dates": Dates,
        "categories": Categories,
        "open-labels": OpenLabels,
    }
    kind = data.get("kind")
    if kind is not None and kind not in ("joint", "table") and str(kind) not in builders:
        raise FormatError(f"the kind of domain {str(kind)!r} is not known.", hint=f"Known: {', '.join(builders)}, joint, table")
    try:
        if kind in ("joint", "table"):
            columns: Any = {name: domain_from_json(each) for name, each in fields["columns"].items()}
            table = TableDomain(columns)
            many = "kind" not in named and prod(table.sizes) > MOST_CELLS  # nobody said that they are taken jointly
            return table if kind == "table" or many else JointDomain(columns)
        if str(kind) in builders:
            check_keys(fields, known=[each.name for each in dataclass_fields(builders[str(kind)]) if each.init], what="domain")
        return builders[str(kind)](**fields)
    except (KeyError, TypeError, AttributeError):
        raise FormatError(
            "the domain is not understood.",
            hint="kinds: grid (low, high, step), bins (edges), dates (start, end, step), categories (values), open-labels, "
            "joint or table (columns); "
            "each but the last three also takes outside and nulls",
        ) from None


def check_keys(given: Mapping[str, Any], *, known: Sequence[str], what: str) -> None:
    """Name the keys of a description that mean nothing, most likely mistyped. Descriptions are public."""
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        keys = ", ".join(map(repr, unknown))
        raise FormatError(
            f"the {what} has no {'entry' if len(unknown) == 1 else 'entries'} {keys}.", hint=f"Known: kind, {', '.join(known)}"
        )


def domain_from_file(path: str | Path) -> AnyDomain | TableDomain:
    """Read a domain from a YAML or JSON file."""
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise FormatError(f"cannot read the domain file {str(path)!r}.", hint="Give a YAML or JSON file") from None
    try:
        data = json.loads(text) if str(path).endswith(".json") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        raise FormatError(f"the domain file {str(path)!r} is neither JSON nor YAML.") from None
    return domain_from_json(data)
