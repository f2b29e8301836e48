"""From released values to the posterior of the confidential population: the main call, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import InferenceWarning, ModelError
from privurn.inference.cautions import say
from privurn.inference.draws import Draws
from privurn.inference.mixtures import results
from privurn.inference.mixtures.clustering import CoClustering, PointClustering
from privurn.inference.mixtures.fitted import FittedMixture, Question
from privurn.inference.mixtures.marginal_samplers import Neal2, Neal3, Neal8
from privurn.inference.mixtures.mixings import DirichletProcess
from privurn.inference.mixtures.model import MixtureModel
from privurn.inference.mixtures.samplers import MOST_KEPT, REGROUP, Keep, MixtureSampler, Neal5, SliceSampler, cells_of
from privurn.inference.predictive import DRAWS, PredictiveCheck
from privurn.inference.run import Lengths, Run, run_engine, whole_number

SamplerName = Literal["auto", "neal5", "slice", "neal8", "neal2", "neal3"]

Moves = Literal["auto", "regrouped", "plain"]

LENGTHS = Lengths(warm_up=2000, draws=1000, longest=4000, thin=10)
"""Ten sweeps a draw, since every draw keeps a whole measure."""

REGROUPED_LENGTHS = Lengths(warm_up=300, draws=500, longest=4000)
"""Sweeps that sum clusters and values out cost more, and few are needed."""

NARROW, FEW = 25.0, 5000
"""From this width of the bounds in scales of the noise, up to so many records, the slice sampler is the better; measured, and
on other data the best sampler gave at most 1.7 times as much (`benchmarks.mixture_samplers`)."""

ASKED = ("mean", "q0.5")
"""Figures of numbers that must have mixed."""

DENSITY_POINTS = 5
"""Where it is judged whether the density has mixed."""

MOST_SHARES = 50
"""Shares of categories that must have mixed: so many of the largest."""

LEAST_MOVED = 10.0
"""Times that a record must have moved in a chain, on average."""

LITTLE_MASS = 1e-4
"""Mass that may lie on too few atoms."""

SAMPLERS: Mapping[str, type[MixtureSampler]] = {
    "neal5": Neal5,
    "slice": SliceSampler,
    "neal8": Neal8,
    "neal2": Neal2,
    "neal3": Neal3,
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MixturePosterior(FittedMixture):
    """Draws from the posterior of a mixture, and what follows from them. Holds nothing but what was released or drawn."""

    @property
    def shown(self) -> Draws:
        """Figures of the confidential population; of what was kept where there are none."""
        if self.question.functionals:
            return self.draws.only([each.name for each in self.question.functionals])
        if "atoms" not in self.draws or not (self.model.kernel.categorical or results.has_bounds(self)):
            return self.draws.only([name for name in ("n_clusters", "strength") if name in self.draws])
        return results.population(self)

    def problems(self) -> tuple[str, ...]:
        """Why mean and median, or the largest shares, should not be trusted, one sentence each; nothing where all is well."""
        return (*self.mixing_problems(), *self.cut_problems())

    def mixing_problems(self) -> tuple[str, ...]:
        """Which of what people ask has not mixed; of the number of clusters only where nothing else was kept."""
        return (*self.judged.problems(), *self._stuck_problems())

    def _stuck_problems(self) -> tuple[str, ...]:
        """Whether records hardly moved: figures then mix for the values that chains were started with."""
        accepted = self.draws.sample_stats.get("acceptance")
        if accepted is None or self.draws.attributes.get("moves") != "plain":
            return ()
        moved = float(accepted.mean(axis=1).min()) * self.draws.n_draws * int(self.draws.attributes["thin"])
        if moved >= LEAST_MOVED:
            return ()
        return (
            f"records are stuck: on average one moved {moved:.1f} times in a chain, because the noise is too narrow for values "
            "that a cluster proposes; take another sampler, where one can be had, or a mixture of the released values.",
        )

    def unmixed_besides(self) -> tuple[str, ...]:
        """Figures that are shown though nobody asked for them, no run waits for them, and they have not mixed."""
        besides = [name for name in self.shown.names if name not in self.judged]
        found = tuple(name for name in besides if self.shown.problems([name], means=False))
        return (*found, "density") if self._density_unmixed() else found

    def _density_unmixed(self) -> bool:
        """Whether chains differ in the density, which mean and median need not show; judged at DENSITY_POINTS of the grid."""
        if self.model.kernel.categorical or "atoms" not in self.draws or not hasattr(self.model.channel, "bounds"):
            return False
        grid = results.default_grid(self)
        points = grid[np.linspace(0, len(grid) - 1, DENSITY_POINTS + 2).astype(np.int64)[1:-1]]
        heights = self.densities(points).reshape(self.draws.n_chains, self.draws.n_draws, -1)
        return bool(Draws(variables={"density": heights}, markov=True).problems(means=False))

    @property
    def judged(self) -> Draws:
        """What must have mixed."""
        if self.question.functionals:
            return self.shown
        asked = [name for name in ASKED if name in self.draws]
        if "share" not in self.draws:
            return self.draws.only(asked or ["n_clusters"])
        share = self.draws["share"]
        largest = np.sort(np.argsort(-share.mean(axis=(0, 1)), kind="stable")[:MOST_SHARES])
        coords = {"category": [self.draws.coords["category"][i] for i in largest]}
        return Draws(variables={"share": share[..., largest]}, markov=True, dims={"share": ("category",)}, coords=coords)

    def cut_problems(self) -> tuple[str, ...]:
        """Whether so few atoms were kept that bands and deviations are too wide."""
        lumped = float(self.draws.sample_stats["mass_lumped"].max()) if "mass_lumped" in self.draws.sample_stats else 0.0
        if lumped <= LITTLE_MASS:
            return ()
        return (
            f"too few atoms were kept: up to {lumped:.2g} of a draw's mass lies on fewer atoms than its law has, so that "
            f"deviations, quantiles and bands are too wide; keep more, Keep(atoms={MOST_KEPT}).",
        )

    def cautions(self) -> tuple[InferenceWarning, ...]:
        """Those of every posterior, and whether too few atoms were kept."""
        return (*super().cautions(), *map(InferenceWarning, self.cut_problems()))

    def prior_draws(self) -> Mapping[str, NDArray[Any]]:
        """Figures of mixing measures from the prior (`results.prior_figures`)."""
        return results.prior_figures(self)

    def clamped_shares(self) -> Mapping[str, float]:
        """What the drawn densities put beyond the public bounds (`results.beyond_bounds`)."""
        return results.beyond_bounds(self)

    def predictive_check(self, *, draws: int = DRAWS, seed: int = 0) -> PredictiveCheck:
        """See `Posterior`; of the published values of all records together."""
        from privurn.inference.mixtures.predictive import check_mixture

        return check_mixture(self, draws=whole_number("draws", draws, least=2, example=DRAWS), seed=seed)

    def population(self, **options: Any) -> Draws:
        """Mean, deviation and quantiles of the confidential population, or shares of categories (`results.population`)."""
        return results.population(self, **options)

    def predict(self, n: int, **options: Any) -> NDArray[Any]:
        """Synthetic records from the posterior predictive law (`results.predict`)."""
        return results.predict(self, n, **options)

    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Records of the posterior predictive law as a table (see `Posterior`)."""
        from privurn.inference.mixtures.synthetic import synthetic_table

        return synthetic_table(self, records=records, copies=copies, seed=seed)

    def co_clustering(self, **options: Any) -> CoClustering:
        """How often each two records are in one cluster (`results.co_clustering`)."""
        return results.co_clustering(self, **options)

    def point_clustering(self, **options: Any) -> PointClustering:
        """One clustering in the middle of the draws (`results.point_clustering`)."""
        return results.point_clustering(self, **options)

    def informativeness(self, **options: Any) -> results.Informativeness:
        """Whether the release tells anything: posterior against prior (`results.informativeness`)."""
        return results.informativeness(self, **options)

    def plot(self, *, kind: Any = None, level: float | None = None, **options: Any) -> Any:
        """Pictures: kind="density" (categories have none), "intervals", "clusters", "together" or "traces" (`results.plot`)."""
        usual: results.Picture = "intervals" if self.model.kernel.categorical else "density"
        return results.plot(self, kind=kind or usual, level=self.checked_level(level), **options)


def choose_sampler(model: MixtureModel, released: ArrayLike, *, keep: Keep) -> tuple[MixtureSampler, str]:
    """The sampler that `sampler="auto"` takes, and why.

    Neal 5 proposes values from the kernel alone: the wider the noise, the more of them are accepted. The slice sampler draws
    them from their exact law where it is known, and wins under little noise (`python -m benchmarks.mixture_samplers`).
    """
    channel: Any = model.channel
    if getattr(channel, "continuous_noise", None) and isinstance(model.mixing, DirichletProcess):
        slices = SliceSampler(model=model, released=released, keep=keep)
        narrow = (channel.bounds[1] - channel.bounds[0]) / channel.scale >= NARROW
        exact, few = slices.has_exact_latent(), slices.observed.n <= FEW
        if narrow and exact and (not slices.has_marginal() or (few and worth_regrouping(slices))):
            return slices, "latent values have an exact law and the noise is narrow"
    return Neal5(model=model, released=released, keep=keep), "its clusters mix faster for its time here"


def fit_mixture(
    released: ArrayLike,
    *,
    model: MixtureModel,
    sampler: SamplerName = "auto",
    moves: Moves = "auto",
    keep: Keep | None = None,
    question: Question | None = None,
    run: Run | None = None,
    level: float = 0.95,
    **options: Any,
) -> MixturePosterior:
    """Posterior of a mixture of confidential values from what was released of them.

    Parameters
    ----------
    released
        What the channel released, one entry (a number or a row) for each record.
    model
        Channel, kernel and mixing.
    sampler
        "neal5", "slice", "neal8", "neal2", "neal3", or "auto"; the choice and its reason are attributes of the draws. `options`
        go to the sampler.
    moves
        "regrouped": weights and atoms move together, clusters and values summed out, before every sweep of the sampler
        (for pairs of channel and kernel whose law of released values is known). "plain": the sampler alone, for comparison;
        mean, median and density need far longer. "auto" regroups Gaussian and Beta kernels behind Laplace or Gaussian noise,
        but not Beta kernels with few records behind the latter, where sweeps alone give more for their time.
    keep
        What is kept of every draw besides numbers: bounds memory.
    question
        Figures that must have mixed, in place of mean and median (or the largest shares).
    run
        How long: left out, until those have mixed.

    Warns
    -----
    InferenceWarning
        Where mean and median of the population (or the shares of categories) have not mixed, where the release tells little of
        them, or where much seems to have been clamped.
    """
    if not isinstance(model, MixtureModel):
        raise ModelError(
            "a mixture needs a model.", hint="MixtureModel; GlobalMixtureModel and fit_global_mixture for one output for all"
        )
    reason = "it was asked for"
    if sampler == "auto":
        if options:
            raise ModelError("options of a sampler need its name.", hint='For example sampler="neal5", values=5')
        chosen, reason = choose_sampler(model, released, keep=Keep() if keep is None else keep)
    else:
        chosen = make_sampler(SAMPLERS, sampler, model=model, released=released, keep=keep, **options)
    if "regroup" not in options:
        chosen = with_moves(chosen, moves)
    return run_sampler(chosen, run=run, question=question, level=level, stated={"chosen_because": reason})


def with_moves(sampler: MixtureSampler, moves: Moves) -> MixtureSampler:
    """The same sampler with moves that sum clusters and values out, or without them."""
    from privurn._kernels.mixtures import beta, gaussian, total_gaussian  # noqa: F401 (they register their steps)
    from privurn._kernels.mixtures.kernels import log_step

    if moves not in ("auto", "regrouped", "plain"):
        raise ModelError(f"the moves {moves!r} are not known.", hint="auto, regrouped or plain")
    walks = (type(sampler.records[1]),) in log_step.table and sampler.has_marginal()
    if moves == "regrouped" or (moves == "auto" and walks and worth_regrouping(sampler)):
        return replace(sampler, regroup=REGROUP)
    return sampler


def worth_regrouping(sampler: MixtureSampler) -> bool:
    """Whether moves that sum values out are worth their time."""
    n, nodes = sampler.observed.n, len(cells_of(sampler.observed)[2])
    return sampler.model.kernel.worth_regrouping(sampler.records[0], n=n, nodes=nodes)


def make_sampler(known: Mapping[str, type[MixtureSampler]], name: str, *, keep: Keep | None, **given: Any) -> MixtureSampler:
    """A sampler by its name, with the options that it has."""
    make = known.get(name) if isinstance(name, str) else None
    if make is None:
        raise ModelError(f"the sampler {name!r} is not known.", hint=f"{', '.join(known)}; or leave it out")
    others = set(given) - {field.name for field in fields(make)}
    if others:
        raise ModelError(f"{name} has no such option: {', '.join(sorted(others))}.", hint="Leave it out")
    return make(keep=Keep() if keep is None else keep, **given)


def run_sampler(
    sampler: MixtureSampler,
    *,
    run: Run | None = None,
    question: Question | None = None,
    level: float = 0.95,
    stated: Mapping[str, Any] | None = None,
) -> MixturePosterior:
    """Chains of a sampler as the posterior of its model; `stated` goes to the draws' attributes."""
    model, asked = sampler.model, question or Question()
    attributes = {"kernel": model.kernel.name, "mixing": model.mixing.name, "records": sampler.observed.n}
    attributes["moves"] = "regrouped" if sampler.regroup else "plain"

    stating: dict[str, Any] = {"model": model, "question": asked, "level": level, "released": sampler.released}

    def finished(draws: Draws) -> MixturePosterior:
        return results.with_population(MixturePosterior(**stating, draws=draws))

    found, _ = run_engine(
        sampler,
        run or Run(),
        usual=REGROUPED_LENGTHS if sampler.regroup else LENGTHS,
        judged=lambda draws: finished(draws).judged,
        dims=sampler.dims(),
        coords=sampler.coords(),
        attributes={**(stated or {}), **attributes},
    )
    if "mass_not_kept" in found.sample_stats:
        largest = float(found.sample_stats["mass_not_kept"].max())
        found = replace(found, attributes={**found.attributes, "mass_not_kept": largest})
    return say(finished(found))
