"""Small parametric models of one column: a bounded public grid of parameters, a prior on it, and a log density.

`MODELS` maps the names that certificates use to the classes.
"""

from collections.abc import Mapping
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from typing import Any

from privurn.domain import check_keys
from privurn.errors import ModelError
from privurn.mechanisms.models.families import Bernoulli, Beta, Normal, Poisson
from privurn.mechanisms.models.model import Axis, Model

MODELS: Mapping[str, type[Model]] = {each.kind: each for each in (Beta, Bernoulli, Poisson, Normal)}

__all__ = ["MODELS", "Axis", "Bernoulli", "Beta", "Model", "Normal", "Poisson", "model_from_json"]


def model_from_json(data: Mapping[str, Any]) -> Model:
    """Inverse of `Model.to_json`."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "kind"}
    kind = str(data.get("kind"))
    if kind not in MODELS:
        stated = f"the kind of model {kind!r} is not known." if "kind" in data else "the model says no kind."
        raise ModelError(stated, hint=f"kinds: {', '.join(MODELS)}")
    taken = [each for each in dataclass_fields(MODELS[kind]) if each.init]  # type: ignore[arg-type]
    check_keys(fields, known=[each.name for each in taken], what=f"{kind} model")
    missing = [each.name for each in taken if each.default is MISSING and each.name not in fields]
    if missing:
        raise ModelError(f"the {kind} model needs {' and '.join(missing)}.", hint=f"For example {missing[0]}: [1, 100]")
    for name, value in fields.items():
        parts, types = value if isinstance(value, tuple) else (value,), (int,) if name == "points" else (int, float, type(None))
        if not all(type(each) in types for each in parts):
            raise ModelError(f"an entry of the {kind} model is not a number, or not a pair of them.")
    try:
        return MODELS[kind](**fields)
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"an entry of the {kind} model is not a number, or not a pair of them.") from None
