"""Confidential tables drawn from the posterior of a noisy tree: copies, whose spread shows how far an estimate may be off."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privurn.inference.size import SizePrior
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.synthetic import balanced_counts
from privurn.mechanisms.tree_measurements import TreeMeasurements

Floats = NDArray[np.float64]


def drawn_tables(
    measured: TreeMeasurements,
    copies: int,
    *,
    rng: np.random.Generator,
    base: Floats | None = None,
    size: SizePrior | None = None,
) -> Iterator[NDArray[np.int64]]:
    """Confidential tables drawn from their posterior, by the domain's cells: independent draws, approximate, made whole."""
    cells = measured.tree.cells
    for batch in IndependentDraws(measured, base, size).batches(copies, rng=rng):
        for drawn in batch.counts.T:
            n = round(float(drawn.sum())) if measured.total is None else measured.total
            scaled = drawn * (n / drawn.sum()) if drawn.sum() > 0.0 else np.full(len(drawn), n / len(drawn))
            counts, special = balanced_counts(measured.tree, scaled[:cells], rng=rng, special=scaled[cells:])
            yield np.asarray(measured.in_domain(counts, special), np.int64)
