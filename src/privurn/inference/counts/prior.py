"""Functionals under the prior alone, before anything was released."""

import numpy as np
from numpy.typing import NDArray

from privurn.inference.counts.plans import Reduction
from privurn.inference.counts.sampling import AT_ONCE, Job
from privurn.inference.run import Arrays
from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.prior import prior_masses

Floats = NDArray[np.float64]


def prior_draws(job: Job, reduction: Reduction, *, draws: int) -> Arrays:
    """Functionals of the population under the prior alone, and n where it is secret."""
    rng = np.random.default_rng(0)
    draws = max(100, min(draws, AT_ONCE // len(reduction.groups)))
    found = {name: np.empty(draws) for name in reduction.names}
    for d, masses in enumerate(_prior_masses(job, reduction, draws, rng)):
        for name, value in reduction.evaluate(masses).items():
            found[name][d] = value
    return found | ({"n": job.size_prior.draw(draws, rng=rng)} if job.n is None else {})


def _prior_masses(job: Job, reduction: Reduction, draws: int, rng: np.random.Generator) -> Floats:
    """Masses of the cells, (draw, cell)."""
    if job.tree is not None:
        measured = job.measured
        cells, beside = measured.tree.cells, len(measured.special)
        drawn = prior_masses(prior_splits(measured, job.tree.base_of(cells)), special=beside, draws=draws, rng=rng)
        return np.asarray(measured.in_domain(drawn[:cells], drawn[cells:]).T)
    if isinstance(job.prior, str):
        term = job.observed[0].term
        shapes = np.broadcast_to(term.alpha, (draws, len(term.alpha)))
    else:
        k = len(job.prior)
        worth = np.exp(rng.random((draws, 1)) * np.log(k)) if job.shared else 1.0
        shapes = np.broadcast_to(job.prior * worth, (draws, k))  # of the shared prior, one record in all
    masses = rng.standard_gamma(shapes)
    return np.asarray(masses / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300))
