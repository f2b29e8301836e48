"""A mixture of products: classes with weights, in each of which the columns of a record are independent.

Everything low-order is a matrix product over the cells of all columns side by side: all marginals of two columns are
Phi^T diag(w) Phi.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MixtureOfProducts:
    """`weights[k]` of class k, and `cells[k, i]` the probability of cell i of all columns side by side in it."""

    sizes: tuple[int, ...]
    weights: Floats
    cells: Floats

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each column's cells begin, and where the last end."""
        return tuple(int(each) for each in np.concatenate([[0], np.cumsum(self.sizes)]))

    def column(self, j: int) -> Floats:
        """Probabilities of a column's cells, class by class."""
        return self.cells[:, self.starts[j] : self.starts[j + 1]]

    def marginal(self, places: Sequence[int]) -> Floats:
        """Probabilities of the cells of up to a few columns together, an axis for each column."""
        joint = self.weights[:, None]
        shape: tuple[int, ...] = ()
        for j in places[:-1]:
            joint = (joint[:, :, None] * self.column(j)[:, None, :]).reshape(len(self.weights), -1)
            shape += (self.sizes[j],)
        return (joint.T @ self.column(places[-1])).reshape(*shape, self.sizes[places[-1]])
