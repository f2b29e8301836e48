"""Simulated releases as a weight for each cell: fast, seeded, and for comparisons only, never for a release."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.mechanisms.mechanism import Mechanism
from privurn.releases.synthetic import simulated_records


def simulated_release(
    mechanism: Mechanism,
    counts: CountTable,
    *,
    cells: int,
    rng: np.random.Generator,
    law: Any = None,
) -> NDArray[Any]:
    """How often each cell is released, or the number published beside it; negative ones become 0.

    `law` is the mechanism's `shared_law` of the same counts, where it is at hand. By the mechanism's floating-point twin where
    it has one (that of OpenDP's noise is NumPy's), else by seeded exact draws.
    """
    if mechanism.measures:  # what is looked at are the records made from the measurements
        return simulated_records(mechanism, counts, rng=rng)
    weights = mechanism.simulated_weights(counts, rng=rng, law=law)
    if len(weights) != cells:
        raise ModelError("the mechanism does not belong to this domain.")
    return weights


def plain_sample(shares: NDArray[np.float64], *, records: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Records drawn from the data themselves with replacement: not private, the scale that errors are seen on."""
    return rng.multinomial(records, shares)


def coarsened(counts: CountTable, *, group: int) -> CountTable:
    """Counts on the grid of `group` times the step (odd, dividing the range): every cell goes to the nearest coarse one."""
    if group % 2 == 0:
        raise ModelError("only an odd number of neighbouring cells has a middle.")
    if group == 1:
        return counts
    cells = (counts.values + group // 2) // group
    distinct, place = np.unique(cells, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place, counts.counts)
    return CountTable.from_cells(distinct, summed)


def refined(release: NDArray[Any], *, group: int, cells: int) -> NDArray[Any]:
    """A release on the coarse grid, as one on the fine grid: coarse points are fine points too."""
    out = np.zeros(cells, release.dtype)
    out[::group] = release
    return out
