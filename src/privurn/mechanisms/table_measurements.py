"""Noisy marginals as inference reads them: counts, the law of their noise, and the number of records."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain
from privurn.errors import ModelError
from privurn.mechanisms.marginal_counts import Columns, MarginalLayout

if TYPE_CHECKING:
    from privurn.mechanisms.marginals import NoisyMarginals

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Noisy counts of all measured cells, one marginal after the other, and the mechanism that published them."""

    mechanism: "NoisyMarginals"
    counts: Floats
    domain: TableDomain | None = None

    def __post_init__(self) -> None:
        if self.counts.shape != (self.mechanism.rows,):
            raise ModelError("there must be one noisy count for each measured cell.")

    @property
    def layout(self) -> MarginalLayout:
        """Which cells were measured."""
        return self.mechanism.layout

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column."""
        return self.mechanism.sizes

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each column's cells begin among those of all columns, and where the last end."""
        return tuple(int(each) for each in np.concatenate([[0], np.cumsum(self.sizes)]))

    @cached_property
    def marginals(self) -> dict[Columns, Floats]:
        """Noisy counts by set of columns."""
        return dict(zip(self.layout.sets, self.layout.split(self.counts), strict=True))

    @cached_property
    def deviations(self) -> dict[Columns, float]:
        """Of the noise on a count, by set of columns."""
        return dict(zip(self.layout.sets, map(float, self.mechanism.deviations), strict=True))

    @cached_property
    def estimated_n(self) -> tuple[float, float]:
        """The number of records and its standard deviation: public, or from the sums of all marginals."""
        if self.mechanism.n is not None:
            return float(self.mechanism.n), 0.0
        sums = np.array([each.sum() for each in self.marginals.values()])
        precision = 1.0 / (self.layout.cells * self.mechanism.deviations**2)
        return float(sums @ precision / precision.sum()), float(precision.sum() ** -0.5)

    @property
    def n(self) -> float:
        """The number of records, at least 1."""
        return max(1.0, self.estimated_n[0])
