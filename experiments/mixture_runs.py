"""One fit of the mixture paper's experiments, and the figures that all sections look at."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privurn.inference.draws import effective_draws
from privurn.inference.mixtures import Keep, MixtureModel, MixturePosterior, fit_mixture, posterior
from privurn.inference.mixtures.results import default_grid, hellinger
from privurn.inference.run import Run

Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is run."""

    iterations: int = 20_000
    repeats: int = 1
    quick: bool = False
    seed: int = 1
    figures: Path | None = None

    @property
    def thin(self) -> int:
        """Sweeps for each kept draw."""
        return max(1, self.iterations // 2 // 1000)


def masses(density: Floats) -> Floats:
    """Probabilities of the grid's cells, scaled to sum to 1."""
    cut = np.maximum(density, 0.0)
    return np.asarray(cut / cut.sum())


def error(density: Floats, truth: Floats) -> float:
    """Hellinger distance on the grid."""
    return float(hellinger(masses(density), masses(truth)))


def run(
    model: MixtureModel, released: Any, *, sampler: str, effort: Effort, seed: int, labels: bool = False, **options: Any
) -> Row:
    """Fit, and what every section looks at."""
    found: MixturePosterior = fit_mixture(
        released,
        model=model,
        sampler=cast("Any", sampler),
        keep=Keep(allocations=labels),
        run=Run(
            chains=1, warm_up=effort.iterations // 2, draws=effort.iterations // 2 // effort.thin, thin=effort.thin, seed=seed
        ),
        **options,
    )
    return {
        "found": found,
        "density": found.densities(default_grid(found)).mean(axis=0),
        "acceptance": float(found.draws.sample_stats["acceptance"].mean()),
        "ess": effective_draws(found.n_clusters.astype(np.float64)),
        "clusters": float(found.n_clusters.mean()),
    }


def sweep_time(model: MixtureModel, released: Any, *, sampler: str, seed: int, **options: Any) -> float:
    """Microseconds of processor time, the least of three pieces after a short warm-up."""
    made = posterior.SAMPLERS[sampler](model=model, released=released, keep=Keep(atoms=0), **options)
    rng = np.random.default_rng(seed)
    state, pieces = made.start(rng), []
    made.advance(state, rng, sweeps=100, thin=1, warming=True)
    for _ in range(3):
        start = time.process_time()
        made.advance(state, rng, sweeps=100, thin=1, warming=False)
        pieces.append((time.process_time() - start) / 100)
    return 1e6 * min(pieces)


def medians(rows: Sequence[Row]) -> Row:
    """Of every number over the repeats."""
    return {key: float(np.median([each[key] for each in rows])) for key in rows[0]}
