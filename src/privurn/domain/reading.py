"""Domains from plain data and from files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

from privurn.domain.categories import Categories, OpenLabels
from privurn.domain.dates import Dates
from privurn.domain.joint import AnyDomain, JointDomain
from privurn.domain.numeric import Bins, Grid
from privurn.domain.table import TableDomain, several_columns
from privurn.errors import FormatError

WRITTEN = "such as   age: {kind: grid, low: 0, high: 99, step: 1}"
"""A line of a domain file."""


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
            if kind == "table":
                check_keys(fields, known=["columns", "zeros", "known"], what="domain")
                shares = {tuple(each["columns"]): each["shares"] for each in fields.get("known", ())}
                return TableDomain(columns, fields.get("zeros", ()), shares)
            return several_columns(columns) if "kind" not in named else JointDomain(columns)
        if str(kind) in builders:
            own = [each for each in dataclass_fields(builders[str(kind)]) if each.init]
            check_keys(fields, known=[each.name for each in own], what="domain")
            lacking = [each.name for each in own if each.default is MISSING and each.name not in fields]
            if lacking:
                raise FormatError(
                    f"a domain of kind {kind!r} needs {', '.join(lacking)}.", hint=f"Add {': ..., '.join(lacking)}: ..."
                )
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
        why = "cannot read the" if Path(path).exists() else "there is no"
        raise FormatError(f"{why} domain file {str(path)!r}.", hint=f"Give a YAML or JSON file, {WRITTEN}") from None
    try:
        data = json.loads(text) if str(path).endswith(".json") else _yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = getattr(error, "lineno", None) if mark is None else mark.line + 1
        where = "" if line is None else f" in line {line}"
        raise FormatError(
            f"the domain file {str(path)!r} is neither JSON nor YAML: there is a slip{where}.", hint=f"Lines {WRITTEN}"
        ) from None
    return domain_from_json(data)


def _yaml(text: str) -> Any:
    """YAML in which yes, no, on and off are words, as in its version 1.2: a list of categories may well hold them."""
    import yaml

    class Words(yaml.SafeLoader):
        pass

    Words.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in known if not tag.endswith(":bool") or first in "tTfF"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, Words)
