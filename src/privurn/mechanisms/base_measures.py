"""Where the new values of an open urn come from: labels of their own, or a public measure on cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.mechanisms.integer_urn import integer_type
from privurn.mechanisms.published import Content
from privurn.privacy.entropy import Entropy
from privurn.tables.released import fresh_labels


@dataclass(frozen=True, kw_only=True)
class FreshLabels:
    """A base measure without atoms: every new value is a label of its own, new_1, new_2, ..."""

    prefix: str = "new_"

    def is_fresh(self, label: object) -> bool:
        """Whether a published label is the urn's own: the prefix and a number."""
        return isinstance(label, str) and label.startswith(self.prefix) and label[len(self.prefix) :].isdecimal()

    def spelled(self, label: object) -> object:
        """How a label of the data is published: as it is, with one more underscore where it could be taken for a fresh one.

        The rule looks at the label alone and never maps two to one, so it changes no guarantee.

        >>> FreshLabels().spelled("new_1"), FreshLabels().spelled("new__1"), FreshLabels().spelled("newer")
        ('new__1', 'new___1', 'newer')
        """
        if isinstance(label, str) and label.startswith(self.prefix):
            rest = label[len(self.prefix) :]
            if rest.lstrip("_").isdecimal():
                return f"{self.prefix}_{rest}"
        return label

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "fresh-labels", "prefix": self.prefix}


FRESH = FreshLabels()


@dataclass(frozen=True, kw_only=True)
class FiniteBase:
    """A public discrete base measure on cells 0..cells-1: uniform, or with whole-number weights.

    Atoms make two new tables share a value now and then, which only hides more: the profile of the non-atomic urn
    is an upper bound (post-processing, docs/proofs/global-profiles.md).
    """

    cells: int
    weights: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise ModelError("a base measure needs at least one cell.")
        if self.weights is not None and (len(self.weights) != self.cells or min(self.weights) < 0 or sum(self.weights) < 1):
            raise ModelError("a base measure needs one whole weight, 0 or more, for each cell and at least one positive.")
        if self.weights is not None and integer_type(sum(self.weights)) is object:
            raise ModelError("the weights of a base measure must add up to less than 2^63.", hint="Divide them by a number")

    def sample(self, size: int, *, entropy: Entropy) -> NDArray[np.int64]:
        """Exact independent draws."""
        if self.weights is None:
            return entropy.integers(self.cells, size=size)
        ends = np.cumsum(np.array(self.weights, np.int64))
        return np.searchsorted(ends, entropy.integers(int(ends[-1]), size=size), side="right").astype(np.int64)

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        weights = "uniform" if self.weights is None else list(self.weights)
        return {"kind": "finite", "cells": self.cells, "weights": weights}


def base_from_parameters(data: dict[str, Any]) -> FreshLabels | FiniteBase:
    """Inverse of `parameters`."""
    if data["kind"] == "fresh-labels":
        return FreshLabels(prefix=str(data["prefix"]))
    weights = None if data["weights"] == "uniform" else tuple(int(each) for each in data["weights"])
    return FiniteBase(cells=int(data["cells"]), weights=weights)


class FreshContent(Content):
    """Labels of an open urn: its own are new_1, ..., new_k, each used; none where only old values are published."""

    wrong = "holds new labels that are not numbered from 1 on"

    def __init__(self, prefix: str, *, none: bool) -> None:
        self.prefix, self.none = prefix, none
        self.found: set[str] = set()

    def holds(self, batch: Any) -> bool:
        """Seen at the end."""
        self.found |= fresh_labels(batch.column(0), self.prefix)
        return True

    def complete(self) -> bool:
        """Whether the numbers are 1, ..., k."""
        return self.found == {f"{self.prefix}{i + 1}" for i in range(0 if self.none else len(self.found))}
