"""Noisy marginals as inference reads them: counts, the law of their noise, and the number of records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain
from privurn.errors import ModelError
from privurn.mechanisms.fine_columns import FineColumn
from privurn.mechanisms.marginal_counts import Columns, MarginalLayout
from privurn.mechanisms.tree_measurements import TreeMeasurements

if TYPE_CHECKING:
    from privurn.mechanisms.marginals import NoisyMarginals
    from privurn.mechanisms.mechanism import Mechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasuredColumn:
    """A fine column alone: the noisy tree that its marginals are, and what was measured of it."""

    column: FineColumn
    tree: "Mechanism"
    measured: TreeMeasurements


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Noisy counts of all measured cells, one marginal after the other, and the mechanism that published them.

    Fine columns are here by their ranges, in the mechanism as well; what is known of them alone are the `trees`, by place. The
    `domain` has all of their values.
    """

    mechanism: "NoisyMarginals"
    counts: Floats
    domain: TableDomain | None = None
    trees: Mapping[int, MeasuredColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.counts.shape != (self.mechanism.rows,):
            raise ModelError("there must be one noisy count for each measured cell.")

    @property
    def layout(self) -> MarginalLayout:
        """Which cells were measured."""
        return self.mechanism.layout

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column; of fine ones: ranges and special cells."""
        return self.mechanism.sizes

    def ranges(self, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Cells of records, a row for each column, with the ranges in place of the values of fine columns."""
        fine = tuple(each.column for each in self.trees.values())
        return MarginalLayout(self.sizes, (), fine).ranges(codes)

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
