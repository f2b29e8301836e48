"""Posteriors from released statistics: pick the model, run chains until they have mixed, say so if they have not."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.draws import Draws
from privurn.inference.run import NotMixed, Progress, Schedule, run_until_mixed, say_not_mixed
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.latent_chain import LatentChain, Moves
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.mean_models import BernoulliModel, PoissonModel
from privurn.inference.sums.model import Model
from privurn.inference.sums.observed import Observed, released_numbers
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior
from privurn.inference.sums.size import SizePrior

if TYPE_CHECKING:
    from privurn.certificates.statistics import ReleasedStatistics
    from privurn.mechanisms.sums.statistic import NoisyStatistics

    Released = NoisyStatistics | ReleasedStatistics

__all__ = ["Fit", "NotMixed", "fit", "fit_dirichlet", "fit_logistic", "fit_mean", "fit_regression"]

WARM_UP, FIRST_DRAWS, LONGEST = 2000, 2000, 256_000
"""Sweeps of each chain before the first draw; draws kept at first; where doubling them ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Draws of parameters and n, with acceptance rates of each move in `sample_stats`; `problems` is empty where all mixed."""

    model: Model
    observed: Observed
    draws: Draws
    problems: tuple[str, ...]

    @property
    def mixed(self) -> bool:
        """Whether `Draws.problems` found none: R-hat, effective draws of the bulk, the tails and the mean."""
        return not self.problems

    @property
    def length(self) -> int:
        """Draws that were kept of each chain."""
        return self.draws.n_draws

    def synthetic(self, *, tables: int = 1, seed: int | None = None) -> list[NDArray[np.float64]]:
        """Tables from the posterior predictive law: parameters and n of a draw, then as many records.

        They are computed from released numbers alone, so they cost no privacy.
        """
        rng = np.random.default_rng(seed)
        drawn = {name: self.draws.flat(name) for name in self.draws.variables}
        found = []
        for at in rng.integers(self.draws.n_chains * self.draws.n_draws, size=tables):
            one = {name: values[at] for name, values in drawn.items()}
            found.append(self.model.simulate(self.model.flat(one), n=int(one["n"]), rng=rng))
        return found


def fit(
    model: Model,
    *,
    observed: Observed,
    moves: Moves = "interwoven",
    chains: int = 4,
    warm_up: int = WARM_UP,
    draws: int | None = None,
    seed: int | None = None,
    progress: Progress = lambda done, total, figures: None,
    checkpoint: str | Path | None = None,
    threads: int | None = None,
) -> Fit:
    """The posterior of a model's parameters and of n.

    With `draws` left out the chains go on until they have mixed: each time twice as many draws are made as were judged, at
    most 256,000 of each chain, and those that were judged are forgotten. Where they have not mixed a `NotMixed` warning says
    so. A checkpoint goes on bit by bit, whatever length the run had come to.
    """
    if chains < 2:
        raise ModelError("whether chains have mixed is judged by comparing at least two.", hint="chains=4")
    sampler = LatentChain(model=model, observed=observed, moves=moves)
    found, problems = run_until_mixed(
        sampler,
        schedule=Schedule(chains=chains, warm_up=warm_up, draws=FIRST_DRAWS if draws is None else draws, seed=seed),
        longest=LONGEST if draws is None else draws,
        checkpoint=checkpoint,
        progress=progress,
        threads=threads,
        dims=model.dims,
        coords=model.coords,
        attributes={"model": model.name, "length": "chosen" if draws is None else "given"},
    )
    say_not_mixed(found, problems)
    return Fit(model=model, observed=observed, draws=found, problems=problems)


def fit_regression(
    statistics: "Released", *, prior: RegressionPrior | None = None, size_prior: SizePrior | None = None, **how: Any
) -> Fit:
    """Linear regression (or a normal mean) from released moments; the prior follows the public bounds where none is given.

    `statistics`: what `release_statistics` or `read_statistics` returned, here and in the other fits; `how` is passed to `fit`.
    """
    statistics = released_numbers(statistics)
    model = RegressionModel.from_statistics(statistics, prior=prior)
    return fit(model, observed=Observed.from_statistics(statistics, size_prior=size_prior), **how)


def fit_logistic(
    statistics: "Released", *, prior: LogisticPrior | None = None, size_prior: SizePrior | None = None, **how: Any
) -> Fit:
    """Logistic regression from released sums by class; the prior follows the public bounds where none is given."""
    statistics = released_numbers(statistics)
    model = LogisticModel.from_statistics(statistics, prior=prior)
    return fit(model, observed=Observed.from_statistics(statistics, size_prior=size_prior), **how)


def fit_dirichlet(
    statistics: "Released", *, shape: float = 1.0, rate: float = 0.1, size_prior: SizePrior | None = None, **how: Any
) -> Fit:
    """Dirichlet compositions from released log sums; alpha_j ~ Gamma(shape, rate)."""
    statistics = released_numbers(statistics)
    model = DirichletModel.from_statistics(statistics, shape=shape, rate=rate)
    return fit(model, observed=Observed.from_statistics(statistics, size_prior=size_prior), **how)


def fit_mean(
    statistics: "Released",
    *,
    prior: tuple[float, float] | RegressionPrior | None = None,
    size_prior: SizePrior | None = None,
    **how: Any,
) -> Fit:
    """A proportion, a rate or a normal mean. `prior`: the two numbers of a Beta or Gamma law, or a RegressionPrior.

    Left out it is Beta(1, 1), Gamma(1, 0.1), or for a normal mean the one that follows the public bounds.
    """
    statistics = released_numbers(statistics)
    if statistics.model == "normal":
        if isinstance(prior, tuple):
            raise ModelError("the prior of a normal mean is a RegressionPrior.")
        return fit_regression(statistics, prior=prior, size_prior=size_prior, **how)
    if isinstance(prior, RegressionPrior):
        raise ModelError("the prior of a proportion or a rate is a pair of numbers.", hint="prior=(1, 1)")
    model: Model
    if statistics.model == "bernoulli":
        first, second = prior or (1.0, 1.0)
        model = BernoulliModel(first=first, second=second)
    elif statistics.model == "poisson":
        shape, inverse_scale = prior or (1.0, 0.1)
        model = PoissonModel(upper=statistics.mechanism.upper, shape=shape, inverse_scale=inverse_scale)  # type: ignore[attr-defined]
    else:
        raise ModelError(f"these are statistics of the model {statistics.model}, not of a mean.")
    return fit(model, observed=Observed.from_statistics(statistics, size_prior=size_prior), **how)
