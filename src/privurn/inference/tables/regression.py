"""Regressions as estimating equations over the joint cells of some columns."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privurn.inference.tables.assisted import Equation

Floats = NDArray[np.float64]
Family = Literal["linear", "logistic", "poisson"]

LARGEST_PREDICTOR = 30.0
"""Beyond this the mean of a logistic or Poisson regression is taken as at it: Newton's method may come by there."""


@dataclass(frozen=True, eq=False)
class GeneralisedLinear(Equation):
    """psi = z (response - mean(z^T b)): a row of `design` for each coefficient."""

    family: Family
    design: Floats
    response: Floats
    present: Floats
    """1 for records that take part, 0 for those with a missing value among the variables."""

    def _means(self, b: Floats) -> tuple[Floats, Floats]:
        predictor = b @ self.design
        if self.family == "linear":
            return predictor, np.ones_like(predictor)
        predictor = np.clip(predictor, -LARGEST_PREDICTOR, LARGEST_PREDICTOR)
        if self.family == "poisson":
            mean = np.exp(predictor)
            return mean, mean
        mean = 1.0 / (1.0 + np.exp(-predictor))
        return mean, mean * (1.0 - mean)

    def psi(self, b: Floats) -> Floats:
        """See the class."""
        return self.design * (self.present * (self.response - self._means(b)[0]))

    def slope(self, b: Floats, weights: Floats) -> Floats:
        """Information of so weighted records."""
        return (self.design * (weights * self.present * self._means(b)[1])) @ self.design.T

    @property
    def start(self) -> Floats:
        """All coefficients 0."""
        return np.zeros(len(self.design))
