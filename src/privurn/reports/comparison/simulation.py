"""Simulated releases as a weight for each cell: fast, seeded, and for comparisons only, never for a release."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.pitman_yor import FiniteBase, PitmanYor
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.privacy.entropy import SeededEntropy


def shared_law(mechanism: Mechanism, counts: CountTable) -> NDArray[np.float64] | None:
    """What all simulated releases of the same data share and what takes long to compute; None where there is no such thing."""
    return mechanism.law(counts) if isinstance(mechanism, PseudoPosterior) else None


def simulated_release(
    mechanism: Mechanism,
    counts: CountTable,
    *,
    cells: int,
    rng: np.random.Generator,
    law: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """How often each cell is released, or the number published beside it; negative ones become 0.

    `law` is `shared_law` of the same mechanism and counts, where it is at hand.

    By the mechanism's floating-point twin where it has one (that of OpenDP's noise is NumPy's), else by seeded exact draws.
    """
    if isinstance(mechanism, PitmanYor):
        return _urn_release(mechanism, counts, cells=cells, rng=rng)
    if isinstance(mechanism, PseudoPosterior):
        return mechanism.simulate(counts, rng=rng, law=law)
    twin = getattr(mechanism, "simulate", None)
    if twin is not None:
        weights = np.asarray(twin(counts, rng=rng)).reshape(-1, cells).sum(axis=0)  # several draws are averaged
    else:
        drawn = mechanism.draw(counts, entropy=SeededEntropy(int(rng.integers(2**63))))
        weights = np.bincount(drawn.cells, drawn.weights, minlength=cells)
    weights = np.maximum(weights, 0)
    return weights if weights.any() else np.ones(cells)


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


def _urn_release(urn: PitmanYor, counts: CountTable, *, cells: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Old values keep their cell, each new one gets a cell from the base."""
    if not isinstance(urn.base, FiniteBase) or urn.base.cells != cells:
        raise ModelError("the urn's base does not belong to this domain.")
    old, new = urn.simulate(counts, rng=rng)
    out = np.zeros(cells, np.int64)
    out[counts.values] = old
    if not urn.old_values_only:
        weights = None if urn.base.weights is None else np.array(urn.base.weights) / sum(urn.base.weights)
        np.add.at(out, rng.choice(cells, len(new), p=weights), new)
    return out
