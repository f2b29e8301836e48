"""One door from what was released to what can be concluded from it.

What was published decides what can be asked: cells, records drawn from them and noisy counts are latent counts; records that
were privatised one by one are a mixture behind a channel; noisy sums are the latent records of a model; noisy marginals are a
whole table, with a mixture of products behind it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privurn.errors import FormatError, ModelError
from privurn.extras import need
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.posterior import count_posterior
from privurn.inference.counts.released import Observed, check_same_data
from privurn.inference.counts.sampling import Of
from privurn.inference.draws import check_level
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel
from privurn.inference.mixtures.model import MixtureModel
from privurn.inference.mixtures.reading import Mixture, Privatised, mixture_posterior
from privurn.inference.posterior import Posterior
from privurn.inference.published import Published, published
from privurn.inference.run import Run
from privurn.inference.sums.fit import MODELS, SumModel, sum_posterior
from privurn.inference.sums.logistic_model import LogisticPrior
from privurn.inference.sums.model import PythonModel
from privurn.inference.sums.regression_model import RegressionPrior
from privurn.inference.tables.formula import LinearRegression, TableRegression
from privurn.inference.tables.model import TableModel
from privurn.inference.tables.posterior import table_posterior
from privurn.inference.trees.model import PolyaTree
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.table_measurements import MeasuredTable

MIXTURES = (Mixture, MixtureModel, GlobalMixtureModel)

FITTING: dict[str, tuple[type, ...]] = {
    "counts": (CountModel, PolyaTree),
    "tree": (PolyaTree,),
    "mixture": MIXTURES,
    "sums": (SumModel, RegressionPrior, LogisticPrior, tuple, PythonModel, *set(MODELS.values())),
    "tables": (LinearRegression, TableRegression, TableModel),
}
"""Models of what was published, the usual one first."""


def infer(
    releases: Any,
    model: Any = None,
    *,
    ask: Any = None,
    of: Of = "population",
    run: Run | None = None,
    level: float = 0.95,
) -> Posterior:
    """The posterior given what was released, however that was made.

    Parameters
    ----------
    releases
        The folder of a release, or what `release`, `privatise` or `release_statistics` returned; a list of several where they
        are counts of the same data over the same domain. Certificates and files are verified first.
    model
        Left out, the one that fits what was published: `CountModel` for cells, records and noisy counts (of many cells its
        prior is a Polya tree), `PolyaTree` for noisy trees, `Mixture` for privatised records, and for noisy sums the model of
        the statistic with a prior that follows the public bounds. A `SumModel`, a `RegressionPrior` or a `LogisticPrior` states
        another prior, a `MixtureModel` another channel. Of a whole table: `LinearRegression`, `LogisticRegression` or
        `PoissonRegression`, with a formula such as "income ~ age + sex", or a `TableModel` that says where in bins records lie.
    ask
        What to report, and what must have mixed. Of counts and mixtures: "mean", "variance", "sd", "median", "q0.9",
        "cdf(0.3)", "P(x>0.75)", "P(18<=age<65)", "P(sex=f)", "mean(age)"; of counts also "cells", "log_odds_ratio",
        "discovery", functions of the cells' values whose mean is taken, and a mapping that gives functions names. Of sums:
        parameters, such as "beta" or "beta[age]". Of whole tables: "mean(age)", "q0.9(age)", "P(sex=f)",
        "mean(hours | sex=f)", "median(hours | sex=f)", differences of two of them, "table(age, sex)". Left out: what suits the
        release.
    of
        Of counts and whole tables: "population", the law that the confidential records came from; "sample", those records
        themselves; of counts also "urn", the limit of an urn's own draws under its own prior, which is narrower than the
        population's posterior and not for it.
    run
        Chains, length, seed, progress and checkpoint. Left out, chains run until what is asked for has mixed.
    level
        Of the intervals.

    Returns
    -------
    Posterior
        Draws, summary, problems, pictures and files. Warnings (`privurn.errors.InferenceWarning`) say where chains have not
        mixed, where the release tells little, where posterior and unbiased estimate disagree by more than chance, and where
        much seems to have been clamped; `cautions()` has them again.

    Examples
    --------
    >>> import privurn
    >>> pay = np.random.default_rng(0).gamma(4, 9000, size=20_000)
    >>> made = privurn.release(pay, domain=privurn.Grid(0, 100_000, 10_000), epsilon=1, delta=1e-6)
    >>> found = infer(made, ask=["mean", "P(x>50000)"], run=Run(draws=250, seed=1))
    >>> found.names, 34_000 < found.summary()[0].mean < 38_000
    (('mean', 'P(x>50000)'), True)
    """
    need("inference", what="conclusions")
    check_level(level, of="an interval")
    if run is not None and not isinstance(run, Run):
        raise ModelError("how to run is said by a Run.", hint="run=Run(draws=1000, seed=1)")
    if isinstance(model, (MixtureModel, GlobalMixtureModel)) and isinstance(releases, np.ndarray):
        _check_of(of)
        released = Privatised(released=releases, channel=model.channel, column="x")  # type: ignore[arg-type]
        return mixture_posterior(released, model=model, ask=ask, run=run, level=level)
    several = isinstance(releases, Sequence) and not isinstance(releases, (str, bytes))
    given = [published(each, mixture=isinstance(model, MIXTURES)) for each in (releases if several else [releases])]
    _check_together(given, model)
    if given[0].kind not in ("counts", "tree", "tables"):
        _check_of(of)
    common: dict[str, Any] = {"model": model, "ask": ask, "run": run, "level": level}
    numbers = [each.numbers for each in given]
    if isinstance(numbers[0], NoisyStatistics):
        return sum_posterior(numbers[0], **common)
    if isinstance(numbers[0], MeasuredTable):
        return table_posterior(numbers[0], of=of, **common)  # type: ignore[arg-type]
    if isinstance(numbers[0], Privatised):
        return mixture_posterior(numbers[0], **common)
    return count_posterior(tuple(each for each in numbers if isinstance(each, Observed)), of=of, **common)


def _check_of(of: Of) -> None:
    """Of records and sums only the population has a posterior."""
    if of != "population":
        raise ModelError("only counts of cells have a posterior of anything but the population.", hint="Leave of out")


def _check_together(given: Sequence[Published], model: Any) -> None:
    """One release; or several, all of them counts of the same cells; and a model that is for such numbers."""
    if not given:
        raise FormatError("no release was given.", hint="Name a release folder")
    first = given[0]
    if len(given) > 1:
        other = next((each for each in given if each.kind != "counts"), None)
        if other is not None:
            raise ModelError(
                f"{other.words} are analysed one release at a time.", hint="Only counts of the same cells are combined"
            )
        check_same_data([each.numbers for each in given if isinstance(each.numbers, Observed)])
        # saving changes the hash of a certificate, and two that were never saved may have the same: numbers tell releases apart
        numbers = [each.numbers for each in given if each.sha256 is not None]
        counts = [each.counts.tobytes() for each in numbers if isinstance(each, Observed)]
        if len(set(counts)) < len(counts):
            raise FormatError("the same release was named twice, by its numbers.", hint="It tells no more the second time")
    if model is not None and not isinstance(model, FITTING[first.kind]):
        raise ModelError(
            f"{type(model).__name__} is no model of {first.words}, which were published.",
            hint=f"Leave the model out, or give a {FITTING[first.kind][0].__name__}",
        )
