"""Posteriors from noisy sums: run chains of a model's parameters and n until they have mixed, say so if they have not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError, ModelError, NotMixed
from privurn.inference.cautions import PRIOR_DRAWS, say
from privurn.inference.draws import Draws, Summary
from privurn.inference.posterior import Posterior
from privurn.inference.predictive import DRAWS, PredictiveCheck
from privurn.inference.run import Lengths, Run, run_engine, whole_number
from privurn.inference.size import SizePrior
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.limit_chain import LimitChain, chosen_moves
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.mean_models import BernoulliModel, PoissonModel
from privurn.inference.sums.model import Model
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.mechanisms.sums.statistic import NoisyStatistics

__all__ = ["NotMixed", "SumModel", "SumPosterior", "fit", "sum_posterior"]

LENGTHS = Lengths(warm_up=2000, draws=2000, longest=256_000)
LIMIT_LENGTHS = Lengths(warm_up=250, draws=500, longest=64_000)
"""Of the Gaussian limit, whose sweeps hardly depend on the one before."""

PREDICTED = 50
"""Draws, and records of each, that the share of clamped values is judged by."""

SHOWN = 6
"""Numbers of the leading variable that a picture of intervals shows."""

Moves = Literal["auto", "interwoven", "centred", "limit"]
Picture = Literal["traces", "n", "intervals"]
Prior = RegressionPrior | LogisticPrior | tuple[float, float]

MODELS: Mapping[str, Any] = {
    "regression": RegressionModel,
    "normal": RegressionModel,
    "logistic": LogisticModel,
    "dirichlet": DirichletModel,
    "bernoulli": BernoulliModel,
    "poisson": PoissonModel,
}
"""The model that released sums belong to, by that of their statistic; what derives from one of these has its model."""


@dataclass(frozen=True, kw_only=True)
class SumModel:
    """The model that released sums belong to, with the analyst's priors.

    `prior`: a `RegressionPrior` or `LogisticPrior`; for a proportion the two numbers of a Beta law, for a rate and for the
    parameters of a Dirichlet law those of a Gamma law (shape, rate). Left out it follows the public bounds, is Beta(1, 1), or
    Gamma(1, 0.1). `size`: the prior of n where n is secret, flat where left out.

    `moves`: "interwoven" draws every latent record, and "centred", the slow sampler of the literature, does so too. "limit" is
    approximate: given the parameters the sums have their Gaussian limit, so that the time does not depend on n; for
    regression, logistic regression and a normal mean. "auto" is the limit from 10,000 records on, public or noisy n, where
    the model has one, and interwoven below.
    """

    prior: Prior | None = None
    size: SizePrior | None = None
    moves: Moves = "auto"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SumPosterior(Posterior):
    """Draws of parameters and n, with acceptance rates of each move in `sample_stats`."""

    model: Model
    observed: Observed
    draws: Draws
    asked: tuple[str, ...] = ()

    @property
    def shown(self) -> Draws:
        """What was asked for; else all parameters, and n where it is secret."""
        known = [name for name in self.draws.variables if name != "n" or self.observed.secret_size]
        return self.draws.only(self.asked or known)

    def prior_draws(self) -> Mapping[str, NDArray[Any]]:
        """Parameters, and n where it is secret."""
        rng = np.random.default_rng(0)
        theta = np.array([self.model.start(rng) for _ in range(PRIOR_DRAWS)])
        variables: dict[str, NDArray[Any]] = {name: values[None] for name, values in self.model.variables(theta).items()}
        if self.observed.secret_size:
            variables["n"] = self.observed.size_prior.draw(PRIOR_DRAWS, rng=rng)[None]
        drawn = Draws(variables=variables, markov=False, dims=self.model.dims, coords=self.model.coords)
        return {name: values.ravel() for name, values in drawn.numbers()}

    def clamped_shares(self) -> Mapping[str, float]:
        """Of columns with public bounds: what the model puts beyond them."""
        lower, upper = (np.atleast_1d(getattr(self.model, name, np.nan)).astype(np.float64) for name in ("lower", "upper"))
        if np.isnan(upper).any():
            return {}
        rng = np.random.default_rng(0)
        drawn = {name: self.draws.flat(name) for name in self.draws.variables}
        chosen = np.linspace(0, len(drawn["n"]) - 1, PREDICTED).astype(np.int64)
        thetas = [self.model.flat({name: values[at] for name, values in drawn.items()}) for at in chosen]
        records = np.concatenate([self.model.simulate(theta, n=PREDICTED, rng=rng) for theta in thetas])[:, : len(upper)]
        beyond = (records > upper) | (records < np.where(np.isnan(lower), -np.inf, lower))
        names = getattr(self.model, "names", ()) or [f"column {j + 1}" for j in range(len(upper))]
        return dict(zip(names, beyond.mean(axis=0).tolist(), strict=False))

    def predictive_check(self, *, draws: int = DRAWS, seed: int = 0) -> PredictiveCheck:
        """See `Posterior`; of all sums together, and of a noisy number of records."""
        from privurn.inference.sums.predictive import check_sums

        return check_sums(self, draws=whole_number("draws", draws, least=2, example=DRAWS), seed=seed)

    @property
    def approximation(self) -> str | None:
        """What is approximate about these draws, in a sentence; None where nothing is."""
        return self.draws.attributes.get("approximation")

    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Records of the posterior predictive law as a table (see `Posterior`)."""
        from privurn.inference.sums.synthetic import synthetic_table

        return synthetic_table(self, records=records, copies=copies, seed=seed)

    def plot(  # type: ignore[override]
        self, *, kind: Picture = "traces", level: float | None = None, beside: Mapping[str, Sequence[Summary]] | None = None
    ) -> "Figure":
        """A picture: "traces" of the chains, the posterior of "n", or "intervals" of the leading variable and of others."""
        from privurn.drawing import interval_picture, trace_picture, whole_number_picture

        if kind == "traces":
            return trace_picture(self.shown.numbers(self.shown.names))
        if kind == "n":
            if not self.observed.secret_size:
                raise FormatError("the number of records is public: it has no posterior.", hint="Leave this picture out")
            noisy = self.observed.noisy_n
            return whole_number_picture(self.draws["n"], name="n", marks={} if noisy is None else {"noisy n": noisy})
        if kind == "intervals":
            summaries = self.summary(level=level)
            leading = summaries[0].name.partition("[")[0]
            shown = [each for each in summaries if each.name.partition("[")[0] == leading][:SHOWN]
            named = {each.name for each in shown}
            groups = {"posterior": shown}
            groups |= {key: [each for each in rows if each.name in named] for key, rows in (beside or {}).items()}
            return interval_picture(groups, title="Posterior and comparators" if beside else "Posterior")
        raise FormatError(f"the picture {kind!r} is not known.", hint="traces, n or intervals")


def fit(
    model: Model,
    *,
    observed: Observed,
    moves: Moves = "auto",
    ask: Sequence[str] | None = None,
    run: Run | None = None,
    level: float = 0.95,
) -> SumPosterior:
    """The posterior of a model's parameters and of n.

    Where the run has no number of draws the chains go on until they have mixed: each time twice as many draws are made as were
    judged, at most 256,000 of each chain, and those that were judged are forgotten. Warnings (`InferenceWarning`) say what
    must be known: that they have not mixed, that the release tells little, that much was clamped. A checkpoint goes on bit by
    bit, whatever length the run had come to. `moves` as in `SumModel`.
    """
    run = run or Run()
    if run.chains < 2:
        raise ModelError("whether chains have mixed is judged by comparing at least two.", hint="Run(chains=4)")
    asked = (ask,) if isinstance(ask, str) else tuple(ask or ())
    if asked:
        _names(model).only(asked)  # a name that there is not is refused before the work
    chosen = chosen_moves(model, observed) if moves == "auto" else moves
    limit = chosen == "limit"
    found, _ = run_engine(
        LimitChain(model=model, observed=observed)
        if chosen == "limit"
        else LatentChain(model=model, observed=observed, moves=chosen),
        run,
        usual=LIMIT_LENGTHS if limit else LENGTHS,
        judged=(lambda draws: draws.only(asked)) if asked else (lambda draws: draws),
        dims=model.dims,
        coords=model.coords,
        attributes={"model": model.name},
    )
    if limit:
        found = replace(found, attributes={**found.attributes, "approximation": _limit_words(model, found)})
    return say(SumPosterior(model=model, observed=observed, draws=found, asked=asked, level=level))


def _names(model: Model) -> Draws:
    """One draw of nothing, by the names that all draws have."""
    variables = {name: each[None] for name, each in model.variables(np.ones((1, model.n_parameters))).items()}
    return Draws(variables={**variables, "n": np.zeros((1, 1))}, markov=False, dims=model.dims, coords=model.coords)


def _limit_words(model: Model, draws: Draws) -> str:
    """That the limit was used, and how far a sum may be from it at the posterior mean."""
    from privurn.inference.sums.clamped_moments import normal_distance

    middle = {name: np.mean(draws.flat(name), axis=0) for name in draws.variables}
    rows, weights = model.sum_nodes(model.flat(middle))  # type: ignore[attr-defined]
    distance = normal_distance(rows, weights, float(middle["n"]))
    return (
        "approximate: given the parameters, sums over the records are taken as normal (moves interwoven draws every record). "
        f"At the posterior mean no sum's law is further from its normal limit than {distance:.2g} (Berry-Esseen, before noise)."
    )


def sum_posterior(
    statistics: "NoisyStatistics",
    *,
    model: SumModel | Prior | Model | None = None,
    ask: Sequence[str] | None = None,
    run: Run | None = None,
    level: float = 0.95,
) -> SumPosterior:
    """The posterior of the model that released sums belong to, or of another with as many sums."""
    if model is None or isinstance(model, (RegressionPrior, LogisticPrior, tuple)):
        model = SumModel(prior=model)
    if not isinstance(model, SumModel):
        return fit(model, observed=Observed.from_statistics(statistics), ask=ask, run=run, level=level)
    made = records_model(statistics, prior=model.prior)
    observed = Observed.from_statistics(statistics, size_prior=model.size)
    return fit(made, observed=observed, moves=model.moves, ask=ask, run=run, level=level)


def records_model(statistics: "NoisyStatistics", *, prior: Any = None) -> Any:
    """The model of the records behind released sums: the statistic's own, or that of the nearest one it derives from."""
    own = statistics.mechanism.records_model()
    if own is None:
        return model_kind(statistics).from_statistics(statistics, prior=prior)
    if prior is not None:
        raise ModelError(f"the model {statistics.model} states its own prior.", hint="Leave the prior out")
    return own


def model_kind(statistics: "NoisyStatistics") -> Any:
    """The class of the model, where the statistic has none of its own."""
    name = statistics.nearest(MODELS)
    if name is None:
        raise ModelError(
            f"nobody has said what records are like whose sums are those of the model {statistics.model}.",
            hint="Give a PythonModel as the model, or let the statistic's records_model return one",
        )
    return MODELS[name]
