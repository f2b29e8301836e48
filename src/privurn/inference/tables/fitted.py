"""How near records are to noisy marginals, set by set, in units of each set's own noise: public numbers only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.marginal_counts import Columns, count_marginals
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedMarginal:
    """Measured shares of the cells of a set of columns, those of the records, and the deviation of the noise on one."""

    places: Columns
    measured: Floats
    made: Floats
    deviation: float

    @property
    def misfit(self) -> float:
        """Mean squared difference in deviations of the noise: about 1 where the noise explains it."""
        return float(np.mean(((self.measured - self.made) / self.deviation) ** 2))

    @property
    def excess(self) -> float:
        """By how many deviations the misfit is more than what noise alone would give."""
        return (self.misfit - 1.0) * float(np.sqrt(self.measured.size / 2.0))


def fitted_marginals(table: MeasuredTable, codes: NDArray[np.uint16]) -> tuple[FittedMarginal, ...]:
    """One for each measured set, in order; `codes` are the cells of the records, a row for each column."""
    counts = count_marginals([table.ranges(codes)], table.layout)
    shares = table.layout.split(counts.counts / max(1, counts.n))
    return tuple(
        FittedMarginal(places, table.marginals[places] / table.n, made, table.deviations[places] / table.n)
        for places, made in zip(table.layout.sets, shares, strict=True)
    )
