"""One call from a release to a posterior that knows how the data were made."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.domain import Categories, JointDomain, label_text
from privurn.errors import ModelError
from privurn.inference.counts import open_labels
from privurn.inference.counts.functionals import Asked, parse_functionals
from privurn.inference.counts.plans import WithinBins
from privurn.inference.counts.released import Observed, OneRelease, observe
from privurn.inference.counts.results import Posterior, draw
from privurn.inference.counts.sampling import MECHANISM, Job, Of, settled, silent
from privurn.inference.run import Progress, Schedule
from privurn.tables.cells import is_numeric

MOST_LABELS = 20
"""Categories of a column whose shares are reported where nothing is asked for."""


def posterior(
    source: OneRelease | Sequence[OneRelease],
    *,
    functionals: Sequence[Asked] | Mapping[str, Asked] | Asked | None = None,
    prior: float | ArrayLike | Literal["flat", "mechanism"] | None = None,
    of: Of = "population",
    n_draws: int = 1000,
    chains: int = 4,
    warm_up: int = 500,
    thin: int = 1,
    seed: int | None = None,
    within: WithinBins = "uniform",
    largest_n: int | None = None,
    threads: int | None = None,
    progress: Progress = silent,
) -> Posterior:
    """Posterior of functionals of the data's distribution, given one or several releases of the same data.

    Parameters
    ----------
    source
        A `Release`, the folder of one, or a list of several releases made from the same data over the same domain. Certificate
        and file are verified first.
    functionals
        "mean", "variance", "sd", "median", "q0.9", "cdf(0.3)", "P(x>0.75)", "P(18<=age<65)", "P(sex=f)", "mean(age)"; functions
        of the cells' values, whose mean is taken; a mapping gives functions names. Left out: what suits the domain. A sample
        may hold no record that a functional speaks of (where n is secret, none at all): such draws are NaN, the summary leaves
        them out, and `undefined` counts them.
    prior
        The analyst's Dirichlet prior on the cells: one number for all, or one for each. Left out, or "flat": the same in each
        cell, and how much is learnt from the release: from one record in all to one in each cell, log-uniform. A fixed number
        can outweigh the data where there are many cells. "mechanism": the prior that the mechanism itself has. It is set by
        privacy, not by belief, and has a closed form.
    of
        "population": the law that the confidential records came from. "sample": the confidential records themselves. "urn":
        the limit of the urn's own draws (prior="mechanism" only); narrower than the population's posterior, and not for it.
    n_draws, chains, warm_up, thin, seed, threads
        Draws of each chain. Warm-up and thinning matter only where a Markov chain is needed: any prior but the mechanism's.
    within
        Where in its bin a record lies: "uniform" spreads it evenly, "midpoint" puts it in the middle. Grids have points.
    largest_n
        Where n is secret: it is flat on 0, ..., largest_n a priori.
    progress
        Called with the draws done and those in all.

    Examples
    --------
    >>> import privurn
    >>> pay = np.random.default_rng(0).gamma(4, 9000, size=20_000)
    >>> made = privurn.release(pay, domain=privurn.Grid(0, 100_000, 10_000), epsilon=1, delta=1e-6)
    >>> found = posterior(made, functionals=["mean", "P(x>50000)"], n_draws=250, seed=1)
    >>> found.names, 34_000 < found.summary()[0].mean < 38_000
    (('mean', 'P(x>50000)'), True)
    """
    observed = observe(source)
    schedule = settled(Schedule(chains=chains, warm_up=warm_up, draws=n_draws, thin=thin, seed=seed))
    if of not in ("population", "sample", "urn"):
        raise ModelError(f"of={of!r} is not known.", hint="population, sample or urn")
    job = Job(
        observed=observed,
        prior=_prior(prior, observed),
        schedule=schedule,
        within=within,
        largest_n=largest_n,
        threads=threads,
        shared=observed[0].domain is not None and (prior is None or (isinstance(prior, str) and prior == "flat")),
    )
    asked = parse_functionals(default_functionals(observed[0]) if functionals is None else functionals)
    column = open_labels.column_of(source) if observed[0].domain is None else None
    open_labels.check_column(asked, column)
    views = draw(job, asked, of=of, progress=progress)
    return Posterior(job=job, functionals=asked, of=of, views=views, column=column)


def _prior(prior: Any, observed: tuple[Observed, ...]) -> NDArray[np.float64] | str:
    """One positive number for each cell, or the word."""
    domain = observed[0].domain
    if isinstance(prior, str):
        if prior not in (MECHANISM, "flat"):
            raise ModelError(f"the prior {prior!r} is not known.", hint='A number, one for each cell, "flat" or "mechanism"')
        if prior == MECHANISM:
            return MECHANISM
    if domain is None:
        if prior is not None:
            raise ModelError(
                "labels that nobody listed have no cells to put a prior on.",
                hint='Leave prior out: open labels are analysed under the mechanism\'s own (prior="mechanism")',
            )
        return MECHANISM
    try:
        given = np.asarray(1.0 / domain.size if prior is None or isinstance(prior, str) else prior, np.float64)
        spread = np.array(np.broadcast_to(given, domain.size))
    except (TypeError, ValueError):
        raise ModelError(
            f"the prior must be one positive number, or one for each of the {domain.size:,} cells.",
            hint="For example prior=0.5, or leave it out",
        ) from None
    if not np.all(np.isfinite(spread)) or not np.all(spread > 0.0):
        raise ModelError("a prior must be positive in every cell.", hint="For example prior=0.5, or leave it out")
    return spread


def default_functionals(release: Observed) -> list[str]:
    """Mean, deviation and quartiles of numbers; shares of categories; shares of labels and of something new."""
    if release.domain is None:
        return open_labels.default_functionals(release)
    return [each for name in release.domain.columns for each in _column_functionals(release.domain, name)]


def _column_functionals(domain: JointDomain, name: str) -> list[str]:
    column = domain.columns[name]
    alone = len(domain.columns) == 1
    quoted = open_labels.quoted(name)
    if is_numeric(column):
        words = ("mean", "sd", "q0.25", "q0.5", "q0.75")
        return [word if alone else f"{word}({quoted})" for word in words]
    labels = [label_text(value) for value in column.values] if isinstance(column, Categories) else []
    return [f"P({'x' if alone else quoted}={open_labels.quoted(label)})" for label in labels[:MOST_LABELS]]
