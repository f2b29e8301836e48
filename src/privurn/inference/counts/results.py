"""Posteriors of counts: draws of the functionals, their summary, and what other analyses would say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import InferenceWarning, ModelError, NotMixed
from privurn.inference.cautions import PRIOR_DRAWS, one_weight, say
from privurn.inference.counts import asked, open_labels
from privurn.inference.counts.bounds import clamped_shares
from privurn.inference.counts.functionals import Asked, Functional
from privurn.inference.counts.places import ASSUMED
from privurn.inference.counts.plans import ENDS, Reduction, place_ends, reduce
from privurn.inference.counts.prior import prior_draws
from privurn.inference.counts.released import Observed
from privurn.inference.counts.sampling import Job, Of, Views, draw_views, naive_draws
from privurn.inference.counts.unbiased import Estimate, Estimates, unbiased_estimates
from privurn.inference.draws import Draws, Summary
from privurn.inference.posterior import Posterior
from privurn.inference.predictive import DRAWS, PredictiveCheck
from privurn.inference.run import whole_number
from privurn.inference.trees.cells import MANY
from privurn.mechanisms.noisy_tree_recipe import MOST_COPIES
from privurn.mechanisms.recipe import check_copies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Literal["density", "cdf", "intervals", "n", "traces"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountPosterior(Posterior):
    """Posterior draws of functionals given one or several releases.

    `of` says which distribution the functionals are of: "population", the law that the confidential records came from;
    "sample", the confidential records themselves; "urn", the limit of the urn's own draws. `population`, `sample` and `urn`
    switch; nothing is drawn anew where it is there already. `column` is the column of a release of open labels.
    """

    job: Job
    functionals: tuple[Functional, ...]
    of: Of
    views: Views
    column: str | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        return f"CountPosterior({names}; of the {self.of}; {self.draws.n_chains} x {self.draws.n_draws} draws)"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the functionals."""
        return tuple(each.name for each in self.functionals)

    @property
    def draws(self) -> Draws:
        """The draws: one array (chain, draw) for each functional, and n where it is secret. NaN: see `undefined`."""
        return self.views[self.of]

    @property
    def observed(self) -> tuple[Observed, ...]:
        """The releases."""
        return self.job.observed

    @property
    def population(self) -> "CountPosterior":
        """The same, of the law that the confidential records came from."""
        return self._switched("population")

    @property
    def sample(self) -> "CountPosterior":
        """The same, of the confidential records themselves."""
        return self._switched("sample")

    @property
    def urn(self) -> "CountPosterior":
        """The same, of the limit of the urn's own draws, Dirichlet(alpha + S): what the literature takes for the population."""
        return self._switched("urn")

    def ask(self, functionals: Sequence[Asked] | Mapping[str, Asked] | Asked) -> "CountPosterior":
        """Other functionals of the same posterior, from the same seed."""
        found = asked.functionals_of(self.observed[0], functionals)
        open_labels.check_column(found, self.column)
        return say(replace(self, functionals=found, views=draw(self.job, found, of=self.of)))

    @property
    def face_value(self) -> dict[str, float]:
        """The functionals of the released table itself (of all of them taken together)."""
        reduction = self._reduction
        if reduction is None:
            return open_labels.face_value(self.functionals, self.observed[0])
        return reduction.evaluate(self.job.face_value)

    def naive(self) -> Draws:
        """What an analyst would get who takes the release for the data: Dirichlet(prior + S). Not valid; for comparison."""
        reduction = self._reduction
        return (
            open_labels.naive_open_draws(self.job, self.functionals) if reduction is None else naive_draws(self.job, reduction)
        )

    def debiased(self) -> Estimates:
        """Unbiased estimates, with no prior, of the functionals that are linear: mean, shares, cdf, functions.

        Summaries show them as `unbiased`. Those that are not linear (quantiles, variance, sd) have none, and neither have
        releases from which none follows: open labels, records drawn from noisy counts, an urn with a secret n. `left_out` names
        them.
        """
        if self.of == "urn":
            raise ModelError("debiased estimates are about the sample or the population.", hint=".sample or .population")
        domain = self.observed[0].domain
        if domain is None:
            return Estimates((), left_out=self.names)
        population, within = self.of == "population", self.job.within
        return unbiased_estimates(self.observed, self.functionals, domain=domain, within=within, population=population)

    @cached_property
    def unbiased(self) -> Mapping[str, Estimate]:
        """`debiased` by name."""
        return {} if self.of == "urn" else {each.name: each for each in self.debiased()}

    def prior_draws(self) -> Mapping[str, NDArray[Any]]:
        """The functionals under the prior alone; labels that nobody listed have none."""
        return {} if self._reduction is None else prior_draws(self.job, self._reduction, draws=PRIOR_DRAWS)

    def predictive_check(self, *, draws: int = DRAWS, seed: int = 0) -> PredictiveCheck:
        """See `Posterior`; of the confidential counts of all cells, whatever was asked for."""
        from privurn.inference.counts.predictive import check_counts

        return check_counts(self.job, draws=whole_number("draws", draws, least=2, example=DRAWS), seed=seed)

    def clamped_shares(self) -> Mapping[str, float]:
        """Records in the outermost cells of columns whose other values were clamped, where those stand out."""
        return clamped_shares(self.observed)

    @cached_property
    def _cautions(self) -> tuple[InferenceWarning, ...]:
        """Beside the usual ones: that one prior weight is for many cells."""
        domain = self.observed[0].domain
        many = self.job.shared and domain is not None and domain.size > MANY
        return (*super()._cautions, *(one_weight(domain.size) if many and domain is not None else ()))

    def plot(self, *, kind: Picture = "density", level: float | None = None, naive: bool = False) -> "Figure":  # type: ignore[override]
        """A picture: "density" of each functional, "cdf" with a band, "intervals" beside released figures, "n" or "traces"."""
        from privurn.drawing import trace_picture, whole_number_picture
        from privurn.inference.counts.pictures import posterior_picture

        if kind == "traces":
            return trace_picture(self.draws.numbers(self.draws.names))
        if kind == "n":
            if self.job.n is not None:
                raise ModelError("the number of records is public: it has no posterior.", hint="Leave this picture out")
            return whole_number_picture(self.draws["n"], name="n", marks={})
        return posterior_picture(self, kind=kind, level=self.checked_level(level), naive=naive)

    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Debiased records as a table, from the posterior of the confidential counts.

        One copy is for use at face value: `records` of them (as many as confidential ones where left out), whose cumulative
        counts are posterior medians, rounded, as those of a release of a noisy tree are; of cells in no one order counts are
        posterior means. Several copies are tables drawn from the posterior, each behind its number in a column `copy`;
        estimates from them are put together by `privurn.combine`. Computed from what was released alone, so they cost no
        privacy.
        """
        from privurn.inference.counts.synthetic import synthetic_table, tree_copies, tree_records

        if records is not None and records < 1:
            raise ModelError("at least one record must be asked for.", hint="For example records=1000")
        if self.job.tree is not None and not self.job.tree.exact:
            check_copies(copies, records, most=MOST_COPIES)
            if copies == 1:
                return tree_records(self.job, records=records, seed=seed)
            return tree_copies(self.job, copies, seed=seed)
        cells = asked.functionals_of(self.observed[0], asked.CELLS)
        whole = replace(self, of="sample", functionals=cells, views=draw(self.job, cells, of="sample"))
        drawn = say(whole, only=NotMixed).draws
        shares = np.stack([drawn.flat(name) for name in drawn.names if name != "n"], axis=1)
        sizes = drawn.flat("n") if self.job.n is None else np.full(len(shares), float(self.job.n))
        domain = self.observed[0].domain
        assert domain is not None  # open labels have no cells to ask for
        return synthetic_table(shares, sizes, domain=domain, records=records, copies=copies, seed=seed)

    def _beside(self, rows: tuple[Summary, ...]) -> tuple[Summary, ...]:
        """What is assumed of places within bins, and between what a figure lies whatever they are."""
        drawn = self.views.get(_ends_of(self.of))

        def ends(row: Summary) -> tuple[float, float] | None:
            least, most = (f"{row.name}, {end}" for end in ENDS)
            if drawn is None or least not in drawn:
                return None
            tail = 0.5 - row.level / 2.0
            return float(np.nanquantile(drawn[least], tail)), float(np.nanquantile(drawn[most], 1.0 - tail))

        return tuple(row.between(ends(row), ASSUMED[self.job.within]) for row in super()._beside(rows))

    @cached_property
    def _reduction(self) -> Reduction | None:
        domain = self.observed[0].domain
        return None if domain is None else reduce(self.functionals, domain=domain, within=self.job.within)

    def _switched(self, of: Of) -> "CountPosterior":
        views = self.views if of in self.views else {**self.views, **draw(self.job, self.functionals, of=of)}
        return say(replace(self, of=of, views=views))


def draw(job: Job, functionals: tuple[Functional, ...], *, of: Of) -> Views:
    """Draws for a public or an open domain."""
    domain = job.observed[0].domain
    if domain is None:
        return open_labels.draw_open_views(job, functionals, of=of)
    ends = place_ends(functionals, domain=domain, within=job.within)
    views = draw_views(job, reduce((*functionals, *ends), domain=domain, within=job.within), of=of)
    if not ends:
        return views
    names = {each.name for each in ends}
    apart: Views = {}
    for view, each in views.items():
        own = {name: values for name, values in each.variables.items() if name not in names}
        apart |= {view: replace(each, variables=own), _ends_of(view): each.only([*names])}
    return apart


def _ends_of(of: str) -> str:
    """Where views keep the least and the most that figures can be."""
    return f"{of}, ends"
