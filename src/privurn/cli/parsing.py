"""Turn what a person typed into numbers and models, with errors that say what to type instead."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from privurn.errors import FormatError

if TYPE_CHECKING:
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


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{text!r} is not a number.", hint="For example 0.5 or 1e-6")
    return value


def records_number(text: str) -> int | str:
    """A whole number of records, or the word unlimited."""
    return "unlimited" if text == "unlimited" else whole_number(text)


def parse_bounds(text: str) -> tuple[float, float]:
    """LO:HI as two numbers."""
    try:
        lower, upper = (float(part) for part in text.split(":"))
    except ValueError:
        raise FormatError(f"the bounds {text!r} are not understood.", hint="Give LO:HI, for example --bounds 0:100") from None
    if not lower < upper:
        raise FormatError(f"the bounds {text!r} are reversed or equal.", hint="Give LO:HI, for example --bounds 0:100")
    return lower, upper


def parse_neighbouring(text: str) -> Neighbouring:
    """One of the two relations."""
    if text == "add-remove":
        return "add-remove"
    if text == "replace-one":
        return "replace-one"
    raise FormatError(
        f"the neighbouring relation {text!r} is not known.", hint="--neighbouring replace-one or --neighbouring add-remove"
    )


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
