"""Small parametric models of one column: a bounded public grid of parameters, a prior on it, and a log density.

`MODELS` maps the names that certificates use to the classes.
"""

from collections.abc import Mapping
from typing import Any

from privurn.errors import ModelError
from privurn.models.families import Bernoulli, Beta, Normal, Poisson
from privurn.models.model import Axis, Model

MODELS: Mapping[str, type[Model]] = {each.kind: each for each in (Beta, Bernoulli, Poisson, Normal)}

__all__ = ["MODELS", "Axis", "Bernoulli", "Beta", "Model", "Normal", "Poisson", "model_from_json"]


def model_from_json(data: Mapping[str, Any]) -> Model:
    """Inverse of `Model.to_json`."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "kind"}
    try:
        return MODELS[str(data["kind"])](**fields)
    except (KeyError, TypeError):
        raise ModelError("the model is not understood.", hint=f"kinds: {', '.join(MODELS)}") from None
