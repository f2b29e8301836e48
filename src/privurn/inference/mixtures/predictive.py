"""Posterior predictive check of privatised records: whether the published ones are such as this posterior would publish.

For each drawn mixing measure, records are drawn from it and privatised, twice. The first lot is what both are measured from:
the published values and the second lot. Distances have the same law where all is as stated. Of one value for each record it is
the largest difference of distribution functions (Kolmogorov and Smirnov), averaged over columns; of one output for all records,
the mean difference of its numbers.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.mixtures.results import records_of_draws
from privurn.inference.predictive import Distance, PredictiveCheck, compared

if TYPE_CHECKING:
    from privurn.inference.mixtures.fitted import FittedMixture

MOST = 4_000_000
"""Records in all; of many fewer draws are looked at, but no fewer than FEWEST."""

FEWEST = 200


def check_mixture(found: "FittedMixture", *, draws: int, seed: int) -> PredictiveCheck:
    """Of all published values together."""
    if found.released is None or "atoms" not in found.draws:
        raise ModelError("what was released, or the atoms, were not kept: there is nothing to check.", hint="Keep(atoms=4096)")
    rng, n = np.random.default_rng(seed), int(found.draws.attributes["records"])
    channel: Any = found.model.channel
    together = bool(getattr(channel, "one_output", False))
    seen = channel.summary(found.released) if together else found.released
    known = found.draws.n_chains * found.draws.n_draws
    chosen = np.linspace(0, known - 1, min(draws, max(MOST // (2 * n), FEWEST))).astype(np.int64)
    published, anew = [], []
    for draw in chosen:
        first, second = (_published(found, np.full(n, draw), rng) for _ in range(2))
        if together:
            first, second = channel.summary(first), channel.summary(second)
        published.append(np.abs(seen - first) if together else _furthest(seen, first, channel))
        anew.append(np.abs(second - first) if together else _furthest(second, first, channel))
    stated, again = np.array(published), np.array(anew)
    if together:
        spread = np.maximum(again.mean(axis=0), 1e-12)
        stated, again = ((each / spread).mean(axis=1) for each in (stated, again))
    return compared([Distance("the one output" if together else "records", stated, again)])


def _published(found: "FittedMixture", draws: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
    """What the channel would publish of records from these draws."""
    values = records_of_draws(found, draws, clamped=bool(getattr(found.model, "clamped", True)), rng=rng)
    channel: Any = found.model.channel
    if isinstance(channel, tuple):
        return np.stack([each.simulate(values[:, j], rng=rng) for j, each in enumerate(channel)], axis=1)
    if not hasattr(channel, "simulate"):
        raise ModelError("this channel does not say how to simulate it: there is nothing to check.", hint="Leave the check out")
    return np.asarray(channel.simulate(values, rng=rng))


def _furthest(one: Any, other: Any, channel: Any) -> float:
    """Largest difference of distribution functions, averaged over columns; codes count as they are numbered."""
    rows = [np.asarray(channel.rows(each) if hasattr(channel, "rows") else each, np.float64) for each in (one, other)]
    first, second = (np.sort(each.reshape(len(each), -1), axis=0) for each in rows)
    apart = []
    for a, b in zip(first.T, second.T, strict=True):
        points = np.concatenate([a, b])
        below = [np.searchsorted(each, points, side="right") / len(each) for each in (a, b)]
        apart.append(np.abs(below[0] - below[1]).max())
    return float(np.mean(apart))
