"""The smoothed histogram: independent records from a mixture of the confidential histogram and the uniform.

No noise is added to any count: each released record is a copy of a random confidential one, or, with the probability `weight`,
a uniform draw from the domain. Exact integers throughout. Profile: privacy/laws/histogram.py; proof:
docs/proofs/histograms.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.exact_numbers import rational
from privurn.mechanisms.dirichlet_multinomial import below
from privurn.mechanisms.histogram_sampling import check_sizes, check_smoothing, sample_cells
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.privacy.entropy import Entropy
from privurn.privacy.histogram_calibration import smallest_weight, weight_up
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogram(Mechanism):
    """`records` independent records, each uniform over `cells` cells with probability `weight`, else a random one of the n.

    Replace-one neighbours only: n is public, and 1/n is the mass of a record.
    """

    n: int
    cells: int
    records: int
    weight: Fraction

    in_words: ClassVar[str] = "records drawn from the histogram of the data, mixed with the uniform distribution"

    def __post_init__(self) -> None:
        check_sizes(n=self.n, cells=self.cells, records=self.records)
        check_smoothing(self.weight, name="weight", positive=True)

    @property
    def name(self) -> str:
        """smoothed-histogram."""
        return "smoothed-histogram"

    @property
    def profile(self) -> SmoothedHistogramProfile:
        """Exact, but for two cells and many records, where it is an upper bound (its `tight` says so)."""
        return SmoothedHistogramProfile(n=self.n, bins=self.cells, records=self.records, weight=below(self.weight))

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    @property
    def effective_sample_size(self) -> float:
        """Records of a plain random sample of the table that would tell as much after debiasing: (1 - weight)^2 records."""
        return float((1 - self.weight) ** 2 * self.records)

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact draws."""
        self.check(counts)
        return Drawn(
            sample_cells(
                counts.counts,
                values=counts.values.astype(np.int64),
                cells=self.cells,
                smoothing=self.weight,
                size=self.records,
                entropy=entropy,
            )
        )

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: how often each cell is drawn."""
        weight = float(self.weight)
        return rng.multinomial(self.records, (1.0 - weight) * counts.dense(self.cells) / counts.n + weight / self.cells)

    @property
    def error_sources(self) -> ErrorSources:
        """The uniform."""
        share = f"the uniform over {self.cells:,} cells weighs {float(self.weight):.1%} of what is released"
        return ErrorSources(shrinkage=f"shrinkage: {share}")

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {"n": self.n, "cells": self.cells, "records": self.records, "weight": str(self.weight)}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "SmoothedHistogram":
        """Inverse of `parameters`."""
        return cls(n=int(data["n"]), cells=int(data["cells"]), records=int(data["records"]), weight=rational(data["weight"]))


def calibrate_smoothed_histogram(*, n: int, cells: int, guarantee: Guarantee, records: int | None = None) -> SmoothedHistogram:
    """Least smoothing for the guarantee and `records` records, n of them unless said otherwise.

    >>> float(calibrate_smoothed_histogram(n=10_000, cells=100, guarantee=Guarantee(epsilon=1, delta=1e-6)).weight)
    0.22002
    """
    if guarantee.neighbouring != "replace-one":
        raise ModelError(
            "the smoothed histogram needs a public number of records.", hint="Use replace-one neighbours, or mechanism='auto'"
        )
    single = guarantee.per_record()
    size = n if records is None else records
    weight = smallest_weight(n=n, bins=cells, records=size, epsilon=single.epsilon, delta=single.delta)
    exact = weight_up(weight) if weight > 0.0 else Fraction(1, 10**5)  # one cell: nothing to hide
    return SmoothedHistogram(n=n, cells=cells, records=size, weight=exact)
