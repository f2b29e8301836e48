"""What the inference experiments share: a public grid, five functionals, simulated releases, and draws given each.

Everything is simulated with floating-point twins of the mechanisms and a public seed: nothing here is a private release.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.composition import Composition
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.latent_counts import LARGEST_N, LatentCounts
from privurn.inference.counts.plans import Reduction, reduce
from privurn.inference.counts.sampling import CountSampler
from privurn.inference.size import SizePrior
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Finite = DirichletMultinomial | PitmanYor | PosteriorSample | PerturbedHistogram | SmoothedHistogram

FUNCTIONALS = {"mean": "mean", "median": "q0.5", "Q1": "q0.25", "Q3": "q0.75", "P(x > 0.75)": "P(x>0.75)"}
"""The five of the paper's table 2, by the names it gives them."""


@dataclass(frozen=True, kw_only=True)
class Chains:
    """How long a Markov chain on latent counts runs: `draws` of each chain, one every `thin` sweeps, after `warm` sweeps."""

    chains: int = 2
    warm: int = 200
    draws: int = 500
    thin: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Draws (chain, draw, functional) and the seconds that they took."""

    values: Floats
    seconds: float
    markov: bool

    @property
    def flat(self) -> Floats:
        """All draws (draw, functional)."""
        return self.values.reshape(-1, self.values.shape[2])


@lru_cache(maxsize=4)
def on_grid(step: str) -> tuple[Floats, Reduction]:
    """Points of the grid 0, step, ..., 1, and the five functionals of distributions on it."""
    grid = Grid(0, 1, Fraction(step))
    points = np.arange(grid.size) / (grid.size - 1)
    return points, reduce(parse_functionals(list(FUNCTIONALS.values())), domain=JointDomain({"x": grid}))


def beta_mixture(points: Floats) -> Floats:
    """The two-component beta-shaped law on a grid: 0.8 Beta(3, 8) + 0.2 Beta(8, 3), normalised."""
    from scipy.stats import beta

    weights = 0.8 * beta(3, 8).pdf(points) + 0.2 * beta(8, 3).pdf(points)
    return np.asarray(weights / weights.sum())


def evaluate(reduction: Reduction, distribution: Floats) -> Floats:
    """The five functionals of one distribution."""
    return np.array(list(reduction.evaluate(distribution).values()))


def simulate(mechanism: Mechanism, counts: Whole, *, rng: np.random.Generator) -> NDArray[np.float64]:
    """What the mechanism publishes of these counts, cell by cell."""
    table = CountTable.from_cells(np.arange(len(counts)), counts)
    if isinstance(mechanism, PitmanYor):  # without a discount, the same law as the urn with strength x weight in each cell
        if not isinstance(mechanism.base, FiniteBase) or mechanism.discount != 0 or mechanism.base.weights is not None:
            raise ValueError("a Dirichlet process on a uniform grid is what is simulated here")
        mechanism = DirichletMultinomial(
            n=mechanism.n, cells=len(counts), alpha=mechanism.strength / len(counts), records=mechanism.records
        )
    assert isinstance(mechanism, Finite)
    return np.asarray(mechanism.simulate(table, rng=rng), np.float64)


def face_value(mechanism: Mechanism, released: Floats) -> Floats:
    """The release taken for the data: its counts, none below 0; probabilities stand for n records."""
    return released * float(mechanism.n or 1) if isinstance(mechanism, PosteriorSample) else np.maximum(released, 0.0)


def latent_draws(
    mechanism: Mechanism,
    released: Floats,
    *,
    prior: Floats,
    reduction: Reduction,
    run: Chains,
    rng: np.random.Generator,
    largest_n: int = LARGEST_N,
    shared: bool = False,
) -> Drawn:
    """The population given the release and the analyst's own prior: Markov chains on the latent counts.

    `shared`: the default prior, flat with a worth that is drawn as well; `prior` then only says how many cells there are.
    """
    begun = perf_counter()
    term: Any = mechanism.likelihood(Numbers(released))
    engine = LatentCounts(
        cells=len(prior),
        n=mechanism.n,
        prior=prior,
        terms=(term,),
        size_prior=SizePrior(upper=largest_n),
    )
    sampler = CountSampler(engine=engine, reduction=reduction, shared=shared)
    chains = []
    for generator in rng.spawn(run.chains):
        state = sampler.start(generator)
        sampler.advance(state, generator, sweeps=run.warm, thin=run.warm, warming=True)
        found, _ = sampler.advance(state, generator, sweeps=run.draws * run.thin, thin=run.thin, warming=False)
        chains.append(np.column_stack([found[f"population:{name}"] for name in reduction.names]))
    return Drawn(values=np.stack(chains), seconds=perf_counter() - begun, markov=True)


def closed_draws(found: Composition, *, about: str, reduction: Reduction, n_draws: int, rng: np.random.Generator) -> Drawn:
    """Independent draws under the mechanism's own prior: of the population, or of the urn's limit."""
    from privurn._kernels.counts.functionals import update_composed

    if about == "urn":
        return dirichlet_draws(found.urn, reduction=reduction, n_draws=n_draws, rng=rng)
    begun = perf_counter()
    rows, sample = np.empty((n_draws, len(reduction.names))), np.empty((n_draws, len(reduction.names)))
    update_composed(  # type: ignore[no-untyped-call]
        rows, sample, rng, reduction.grouped(found.urn), reduction.grouped(found.prior), found.n, reduction.plan
    )
    return Drawn(values=rows[None], seconds=perf_counter() - begun, markov=False)


def dirichlet_draws(shapes: Floats, *, reduction: Reduction, n_draws: int, rng: np.random.Generator) -> Drawn:
    """Independent draws of functionals of Dirichlet(shapes)."""
    from privurn._kernels.counts.functionals import update_dirichlet

    begun = perf_counter()
    rows = np.empty((n_draws, len(reduction.names)))
    update_dirichlet(rows, rng, reduction.grouped(shapes), reduction.plan)  # type: ignore[no-untyped-call]
    return Drawn(values=rows[None], seconds=perf_counter() - begun, markov=False)
