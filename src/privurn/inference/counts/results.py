"""Posteriors of counts: draws of the functionals, their summary, and what other analyses would say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privurn.errors import ModelError
from privurn.inference.counts import asked, open_labels
from privurn.inference.counts.composition import closed_form
from privurn.inference.counts.functionals import Asked, Functional
from privurn.inference.counts.plans import Reduction, linear_weights, reduce
from privurn.inference.counts.released import Observed
from privurn.inference.counts.sampling import Job, Of, Views, draw_views, naive_draws
from privurn.inference.draws import Draws
from privurn.inference.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Literal["density", "cdf", "intervals", "n", "traces"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A debiased estimate and its standard error, about what `of` says."""

    name: str
    value: float
    standard_error: float
    effective_sample_size: float


class Estimates(tuple[Estimate, ...]):
    """Debiased estimates. `left_out` names the functionals that have none."""

    left_out: tuple[str, ...]

    def __new__(cls, found: Iterable[Estimate], *, left_out: Iterable[str]) -> "Estimates":
        """A tuple that knows what is missing from it."""
        made = super().__new__(cls, found)
        made.left_out = tuple(left_out)
        return made

    def __repr__(self) -> str:
        missing = f", left_out={self.left_out!r}" if self.left_out else ""
        return f"Estimates({list(self)!r}{missing})"


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
        return replace(self, functionals=found, views=draw(self.job, found, of=self.of))

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

        Those that are not (quantiles, variance, sd), and means where records may be missing, have none: `left_out` names them.

        For one Dirichlet-multinomial release with a public n. Var(f; S) is the variance of f's values among the m released
        records; A = n + prior records, v = Var(f; S) (A/n)^2 (A + m)/(A (m - 1)) estimates the variance about the confidential
        records' own figure, and (v + Var(f; C)/n) n/(n - 1) that about the population's.
        """
        if len(self.observed) != 1 or self._reduction is None:
            raise ModelError("debiased estimates are for one release on a public domain.")
        if self.of == "urn":
            raise ModelError("debiased estimates are about the sample or the population.", hint=".sample or .population")
        release, domain = self.observed[0], self.observed[0].domain
        found = closed_form(release.term, n=release.n)
        n, m, total = found.n, float(found.released.sum()), found.n + float(found.prior.sum())
        worth = (n / total) ** 2 * m * (total + 1.0) / (total + m)
        share = found.released / m
        shares = (total * share - found.prior) / n
        estimates, left_out = [], []
        for each in self.functionals:
            linear = None if domain is None else linear_weights(each, domain=domain, within=self.job.within)
            if linear is None or not np.all(linear.present == 1.0):
                left_out.append(each.name)
                continue  # not linear, or a ratio: the share of the records that count is itself unknown
            value = float(linear.weights @ shares)
            about = float(share @ linear.weights**2 - (share @ linear.weights) ** 2)
            variance = (total / n) ** 2 * about * (total + m) / (total * (m - 1.0))
            if self.of == "population":
                of_data = max(0.0, float(shares @ linear.weights**2) - value**2)
                variance = (variance + of_data / n) * n / (n - 1.0) if n > 1 else np.nan
            error = float(np.sqrt(variance))
            estimates.append(
                Estimate(name=each.name, value=linear.offset + value, standard_error=error, effective_sample_size=worth)
            )
        return Estimates(estimates, left_out=left_out)

    def plot(self, *, kind: Picture = "density", level: float | None = None, naive: bool = False) -> "Figure":  # type: ignore[override]
        """A picture: "density" of each functional, "cdf" with a band, "intervals" beside released figures, "n" or "traces"."""
        from privurn.drawing import trace_picture, whole_number_picture
        from privurn.inference.counts.pictures import posterior_picture

        if kind == "traces":
            return trace_picture(self.draws.numbers(self.draws.names))
        if kind == "n":
            if self.job.n is not None:
                raise ModelError("the number of records is public: it has no posterior.", hint="Leave this picture out")
            noisy = [each.noisy_n for each in self.observed if each.noisy_n is not None]
            return whole_number_picture(self.draws["n"], name="n", marks={"noisy n": noisy[0]} if noisy else {})
        return posterior_picture(self, kind=kind, level=self.checked_level(level), naive=naive)

    def synthetic(self, *, records: int | None = None, copies: int = 1, seed: int | None = None) -> Any:
        """Debiased records as a table, from the posterior of the confidential counts.

        One copy is for use at face value: `records` of them (as many as confidential ones where left out), whose counts are the
        posterior means, rounded. Several copies are tables drawn from the posterior, each behind its number in a column `copy`;
        estimates from them are put together by `privurn.combine`. Computed from what was released alone, so they cost no
        privacy.
        """
        from privurn.inference.counts.synthetic import synthetic_table

        drawn = self.sample.ask(asked.CELLS).draws
        shares = np.stack([drawn.flat(name) for name in drawn.names if name != "n"], axis=1)
        sizes = drawn.flat("n") if self.job.n is None else np.full(len(shares), float(self.job.n))
        domain = self.observed[0].domain
        assert domain is not None  # open labels have no cells to ask for
        return synthetic_table(shares, sizes, domain=domain, records=records, copies=copies, seed=seed)

    @cached_property
    def _reduction(self) -> Reduction | None:
        domain = self.observed[0].domain
        return None if domain is None else reduce(self.functionals, domain=domain, within=self.job.within)

    def _switched(self, of: Of) -> "CountPosterior":
        if of in self.views:
            return replace(self, of=of)
        return replace(self, of=of, views={**self.views, **draw(self.job, self.functionals, of=of)})


def draw(job: Job, functionals: tuple[Functional, ...], *, of: Of) -> Views:
    """Draws for a public or an open domain."""
    domain = job.observed[0].domain
    if domain is None:
        return open_labels.draw_open_views(job, functionals, of=of)
    return draw_views(job, reduce(functionals, domain=domain, within=job.within), of=of)
