"""Posterior predictive check of noisy sums: whether the published sums are such as this posterior would publish.

For each draw of the parameters and n, records are simulated twice. The sums of the first are what both are measured from: the
published sums, and those of the second with noise of the stated law. Both distances have the same law where all is as stated.
From LIMIT records on, sums that have a Gaussian limit are drawn from it.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.inference.predictive import Distance, PredictiveCheck, compared
from privurn.inference.sums.limit_chain import has_limit
from privurn.inference.sums.model import Model, PythonModel
from privurn.inference.sums.observed import Kind

if TYPE_CHECKING:
    from privurn.inference.sums.fit import SumPosterior

Floats = NDArray[np.float64]

LIMIT = 10_000
AT_ONCE = 1_000_000
"""Records that are simulated at a time."""


def check_sums(found: "SumPosterior", *, draws: int, seed: int) -> PredictiveCheck:
    """Of all sums together, and of the number of records where that was published with noise."""
    rng, observed = np.random.default_rng(seed), found.observed
    drawn = {name: found.draws.flat(name) for name in found.draws.variables}
    chosen = np.linspace(0, len(drawn["n"]) - 1, draws).astype(np.int64)
    published, anew = np.empty((draws, len(observed.values))), np.empty((draws, len(observed.values)))
    for d, at in enumerate(chosen):
        theta, n = found.model.flat({name: values[at] for name, values in drawn.items()}), int(drawn["n"][at])
        from_here = _total(found.model, theta, n, rng)
        published[d] = observed.values - from_here
        anew[d] = _total(found.model, theta, n, rng) + _noise(observed.kind, observed.scales, rng) - from_here
    spread = np.maximum(np.median(np.abs(anew), axis=0), np.asarray(observed.scales) * 1e-3)
    parts = [Distance("sums", np.abs(published / spread).mean(axis=1), np.abs(anew / spread).mean(axis=1))]
    if observed.noisy_n is not None:
        noise = _noise(observed.noisy_n_kind, np.full(draws, observed.noisy_n_scale), rng)
        parts.append(Distance("noisy n", np.abs(observed.noisy_n - drawn["n"][chosen]), np.abs(noise)))
    return compared(parts)


def _total(model: Model, theta: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Sums over n simulated records."""
    if isinstance(model, PythonModel):
        return np.asarray(np.sum([model.statistic(each) for each in model.simulate(theta, n=n, rng=rng)], axis=0), np.float64)
    if n >= LIMIT and has_limit(model):
        mean, covariance = model.sum_law(theta)  # type: ignore[attr-defined]
        return np.asarray(rng.multivariate_normal(n * mean, n * covariance, method="eigh", check_valid="ignore"))
    total = np.zeros(model.n_entries)
    for first in range(0, n, AT_ONCE):
        records = model.simulate(theta, n=min(AT_ONCE, n - first), rng=rng)
        total += model.statistic(records)  # type: ignore[attr-defined]
    return total


def _noise(kind: Kind, scales: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(scales * (rng.laplace(size=len(scales)) if kind == "laplace" else rng.standard_normal(len(scales))))
