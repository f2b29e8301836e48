"""Samples as distinct numbers with weights: what every distance on the line is computed from.

Twelve million rows cost what their distinct values cost.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.tables.cells import cell_values, is_numeric

__all__ = ["Sample", "cell_values", "grouped", "is_numeric"]


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """A finite distribution on the line: value i has probability weights[i] / total.

    `values` are finite and strictly increasing, `weights` positive: counts of records, or shares. What it prints shows nothing.
    """

    values: NDArray[np.float64]
    weights: NDArray[Any]

    def __post_init__(self) -> None:
        if len(self.values) == 0 or len(self.values) != len(self.weights):
            raise DomainError("a sample needs at least one value, and one weight for each.")
        if not (np.isfinite(self.values).all() and (np.diff(self.values) > 0).all() and (self.weights > 0).all()):
            raise DomainError("a sample needs finite values in increasing order, with positive weights.")

    @classmethod
    def from_records(cls, records: Any) -> "Sample":
        """Compress raw numbers, one for each record."""
        values, counts = np.unique(np.asarray(records, np.float64), return_counts=True)
        return cls(values, counts)

    @classmethod
    def from_weights(cls, values: NDArray[Any], weights: NDArray[Any]) -> "Sample":
        """Of increasing `values`, those that are numbers and have a positive weight."""
        kept = (weights > 0) & ~np.isnan(values)
        return cls(np.asarray(values[kept], np.float64), weights[kept])

    @property
    def total(self) -> float:
        """Sum of the weights: the number of records where they are counts."""
        return self.weights.sum()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "Sample(confidential)"


def grouped(place: NDArray[Any], weights: NDArray[Any], *, size: int = 0) -> NDArray[np.float64]:
    """Sums of the weights by the group that each is in, for at least `size` groups."""
    return np.bincount(place, weights, minlength=size).astype(np.float64, copy=False)
