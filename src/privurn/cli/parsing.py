"""Turn what a person typed into domains and numbers, with errors that say what to type instead."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.domain import AnyDomain, ColumnDomain, TableDomain
    from privurn.mechanisms.models import Model
    from privurn.privacy.profile import Neighbouring


def whole_number(text: str) -> int:
    """A whole number; 10000, 10_000 and 1e4 are the same."""
    try:
        value = int(text.replace("_", "")) if text.replace("_", "").lstrip("+-").isdigit() else float(text)
        if value != int(value):
            raise ValueError
        return int(value)
    except (ValueError, OverflowError):
        raise FormatError(f"{text!r} is not a whole number.", hint="For example 10000 or 1e7") from None


def records_number(text: str) -> int | str:
    """A whole number of records, or the word unlimited."""
    return "unlimited" if text == "unlimited" else whole_number(text)


def _grid(text: str, **policy: Any) -> ColumnDomain:
    from privurn.domain import Grid

    parts = text.split(":")
    if len(parts) != 3:
        raise FormatError(f"the grid {text!r} is not understood.", hint="Give LO:HI:STEP, for example --grid 0:200000:500")
    low, high, step = parts
    return Grid(low, high, step, **policy)


def _bins(text: str, **policy: Any) -> ColumnDomain:
    from privurn.domain import Bins

    return Bins(text.split(","), **policy)


def _dates(text: str, **policy: Any) -> ColumnDomain:
    from privurn.domain import Dates

    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3):
        raise FormatError(
            f"the dates {text!r} are not understood.",
            hint="Give START,END,STEP, for example --dates 2020-01-01,2023-12-31,month",
        )
    start, end, step = (*parts, "day")[:3]
    return Dates(start, end, step, **policy)


def _categories(text: str, **policy: Any) -> ColumnDomain:
    from privurn.domain import Categories

    labels = [label.strip() for label in next(csv.reader([text], skipinitialspace=True))]  # "a,b",c are two
    if not all(labels):
        raise FormatError("an empty category was given.", hint="For example --categories north,south,east,west")
    if policy.get("outside") == "clamp":
        raise FormatError("categories cannot be clamped.", hint="Use --outside other, --outside null or --outside error")
    if all(label.lstrip("-").isdigit() and str(int(label)) == label for label in labels):
        return Categories([int(label) for label in labels], **policy)  # 1,2,3 are numbers; 01,02 are codes
    return Categories(labels, **policy)


def parse_domain(
    *,
    columns: Sequence[str] | None = None,
    grids: Sequence[str] | None = None,
    bins: Sequence[str] | None = None,
    dates: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    open_labels: bool = False,
    domain_file: str | None = None,
    outside: str | None = None,
    nulls: str = "error",
    within: str = "midpoint",
    ignore_case: bool = False,
) -> AnyDomain | TableDomain | dict[str, ColumnDomain]:
    """One domain for one column, or COLUMN=DOMAIN pairs for several taken jointly."""
    from privurn.domain import OpenLabels, domain_from_file

    if within != "midpoint" and not bins:
        raise FormatError("--within is for bins.", hint="Declare --bins, or leave --within out")
    described: list[tuple[Callable[..., ColumnDomain], str]] = [
        *((_grid, text) for text in grids or ()),
        *((partial(_bins, within=within), text) for text in bins or ()),
        *((_dates, text) for text in dates or ()),
        *((partial(_categories, ignore_case=ignore_case), text) for text in categories or ()),
    ]
    columns = columns or ()
    if ignore_case and not categories and domain_file is None:
        raise FormatError("only categories have capitals to ignore.", hint="Declare --categories, or leave --ignore-case out")
    if (domain_file is not None) + open_labels + bool(described) != 1:
        raise FormatError(
            "say what values the column may hold, in one way.",
            hint="--grid LO:HI:STEP, --bins EDGES, --dates START,END,STEP, --categories LIST, --open-labels or --domain FILE",
        )
    if not described and (outside is not None or nulls != "error" or ignore_case):
        raise FormatError(
            "--outside, --nulls and --ignore-case are for domains given by options.",
            hint="In a file write outside: other, nulls: cell, ignore_case: true in each domain; open labels need none",
        )
    if domain_file is not None:
        return domain_from_file(domain_file)
    if open_labels:
        return OpenLabels()
    policy: dict[str, Any] = {"nulls": nulls}
    if outside is not None:
        policy["outside"] = outside
    if len(described) == 1 and len(columns) <= 1 and not _has_name(described[0][1]):
        build, text = described[0]
        return build(text, **policy)  # type: ignore[return-value]
    joint: dict[str, ColumnDomain] = {}
    for build, text in described:
        name, separator, rest = text.partition("=")
        if not separator or name in joint:
            raise FormatError(
                "several columns need a name before each domain.",
                hint="For example --grid age=0:100:1 --categories sex=f,m",
            )
        joint[name] = build(rest, **policy)
    if columns and set(columns) != set(joint):
        raise FormatError(
            "the columns and the named domains do not match.", hint="Leave --column out, or name the same columns"
        )
    return joint


def named_column(domain: Any, columns: Sequence[str] | None) -> Any:
    """A single domain under the name of its column, where that is given."""
    if columns and len(columns) == 1 and not isinstance(domain, Mapping) and domain.kind != "joint":
        return {columns[0]: domain}
    return domain


def _has_name(text: str) -> bool:
    return "=" in text


def parse_neighbouring(text: str) -> Neighbouring:
    """One of the two relations."""
    if text == "add-remove":
        return "add-remove"
    if text == "replace-one":
        return "replace-one"
    raise FormatError(f"the neighbouring relation {text!r} is not known.", hint="replace-one or add-remove")


def check_release(path: Path) -> None:
    """A folder of a release, or its certificate: what is not there is input that cannot be used, whoever asks for it."""
    if not (path / "certificate.json" if path.is_dir() else path).is_file():
        raise FormatError(
            f"there is no certificate at {str(path)!r}.",
            hint="Name a folder that privurn release made, or its certificate.json",
        )


def parse_model(text: str) -> Model:
    """A model by its name, where its defaults do, as {kind: ..., ...}, or from a file."""
    import json

    import yaml

    from privurn.mechanisms.models import MODELS, model_from_json

    if text in MODELS:
        return model_from_json({"kind": text})
    try:
        content = text if text.startswith("{") else Path(text).read_text(encoding="utf-8")
        data = json.loads(content) if text.endswith(".json") else yaml.safe_load(content)
    except (OSError, ValueError, yaml.YAMLError):
        raise FormatError(f"the model {text!r} is neither known nor a readable file.", hint=", ".join(MODELS)) from None
    if not isinstance(data, dict):
        raise FormatError(
            f"the model file {text!r} is not understood.", hint="kind: normal, mean: [0, 100], deviation: [1, 50]"
        )
    return model_from_json(data)
