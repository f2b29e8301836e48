"""Draws of figures of a whole table, and ratios of two of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.tables.answers import Figures

Floats = NDArray[np.float64]
Ends = tuple[float, float]

CLEAR = 4.0
"""Errors that a denominator must be away from 0."""


def normal_draws(parts: Sequence[tuple[Figures, Floats]], draws: int, *, rng: np.random.Generator) -> dict[str, Floats]:
    """From the normal law of estimates with their covariances; figures that were worked out together are drawn together."""
    found: dict[str, Floats] = {}
    for part, covariance in parts:
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        numbers = part.estimate + rng.standard_normal((draws, len(part.names))) @ root.T
        found |= {name: numbers[:, i] for i, name in enumerate(part.names)}
    return found


def difference(numbers: Sequence[Floats]) -> Floats:
    """The only ones, or the first less the second."""
    return numbers[0] if len(numbers) == 1 else numbers[0] - numbers[1]


def quotient(names: Sequence[str], drawn: Mapping[str, Floats], estimated: Mapping[str, Any]) -> Floats:
    """Draws of the first over those of the second; refused where the second may be 0, by its estimate and deviation."""
    first, second = names
    below = estimated.get(second)
    value, error = (drawn[second].mean(), drawn[second].std()) if below is None else (below.estimate, below.deviation)
    if abs(value) <= CLEAR * error:
        raise ModelError(f"the denominator {second!r} may be 0: the ratio may be anything.", hint="Ask for the difference")
    return drawn[first] / drawn[second]


def quotient_ends(first: Ends, second: Ends) -> Ends | None:
    """Between what a ratio of two numbers lies; None where the second may be 0."""
    if second[0] <= 0.0 <= second[1]:
        return None
    corners = [a / b for a in first for b in second]
    return min(corners), max(corners)
