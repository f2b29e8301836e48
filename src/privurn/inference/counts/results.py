"""What `posterior` returns: draws of the functionals, their summary, and what other analyses would say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.counts import open_labels
from privurn.inference.counts.composition import composition
from privurn.inference.counts.functionals import Asked, Functional, parse_functionals
from privurn.inference.counts.plans import Reduction, linear_weights, reduce
from privurn.inference.counts.released import Observed
from privurn.inference.counts.sampling import Job, Of, Views, draw_views, naive_draws, silent
from privurn.inference.draws import Draws, Summary
from privurn.inference.run import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Literal["density", "cdf", "intervals"]


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
class Posterior:
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
        return f"Posterior({names}; of the {self.of}; {self.draws.n_chains} x {self.draws.n_draws} draws)"

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

    def summary(self, *, level: float = 0.95) -> tuple[Summary, ...]:
        """Mean, deviation and equal-tailed interval of each functional, of the draws in which it is defined."""
        return tuple(row for each in self._defined for row in each.summary(level=level))

    @property
    def undefined(self) -> dict[str, int]:
        """Draws that hold no record that a functional speaks of, by functional: with n = 0, or with no number for a mean.

        What a functional of nothing is, nobody can say: `summary` leaves these draws out, so that it is about the draws with
        such records. Chains are cut to the length of the shortest that is left.
        """
        counted = {name: int(np.isnan(values).sum()) for name, values in self.draws.variables.items()}
        return {name: count for name, count in counted.items() if count}

    def problems(self) -> tuple[str, ...]:
        """Why the draws should not be trusted; nothing where they are independent or have mixed."""
        return tuple(problem for each in self._defined for problem in each.problems())

    @property
    def population(self) -> "Posterior":
        """The same, of the law that the confidential records came from."""
        return self._switched("population")

    @property
    def sample(self) -> "Posterior":
        """The same, of the confidential records themselves."""
        return self._switched("sample")

    @property
    def urn(self) -> "Posterior":
        """The same, of the limit of the urn's own draws, Dirichlet(alpha + S): what the literature takes for the population."""
        return self._switched("urn")

    def ask(self, functionals: Sequence[Asked] | Mapping[str, Asked] | Asked, *, progress: Progress = silent) -> "Posterior":
        """Other functionals of the same posterior, from the same seed."""
        asked = parse_functionals(functionals)
        open_labels.check_column(asked, self.column)
        return replace(self, functionals=asked, views=draw(self.job, asked, of=self.of, progress=progress))

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
        found = composition(release.urn, counts=release.counts)
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

    def to_datatree(self) -> Any:
        """The draws as xarray.DataTree."""
        return self._written.to_datatree()

    def to_inference_data(self) -> Any:
        """The draws as arviz.InferenceData, where ArviZ 0.x is installed."""
        return self._written.to_inference_data()

    def save(self, path: str | Path) -> Path:
        """Write the draws as a netCDF file, all of it or nothing."""
        return self._written.save(path)

    def plot(self, *, kind: Picture = "density", level: float = 0.95, naive: bool = False) -> "Figure":
        """A picture: "density" of each functional, "cdf" with a credible band, "intervals" beside the released figures."""
        from privurn.inference.counts.pictures import posterior_picture

        return posterior_picture(self, kind=kind, level=level, naive=naive)

    @cached_property
    def _reduction(self) -> Reduction | None:
        domain = self.observed[0].domain
        return None if domain is None else reduce(self.functionals, domain=domain, within=self.job.within)

    @cached_property
    def _defined(self) -> tuple[Draws, ...]:
        """The draws, or where some are undefined those of each variable that are not."""
        if not self.undefined:
            return (self.draws,)
        return tuple(
            replace(self.draws, variables={name: _without_nan(values)}, sample_stats={})
            for name, values in self.draws.variables.items()
        )

    @property
    def _written(self) -> Draws:
        """A netCDF file takes no "/" in names."""
        return replace(self.draws, variables={name.replace("/", "|"): each for name, each in self.draws.variables.items()})

    def _switched(self, of: Of) -> "Posterior":
        if of in self.views:
            return replace(self, of=of)
        return replace(self, of=of, views={**self.views, **draw(self.job, self.functionals, of=of)})


def _without_nan(values: NDArray[Any]) -> NDArray[Any]:
    """Chains of the same length without NaN, and without those that hold nothing else; as they are where all do."""
    kept = [chain[~np.isnan(chain)] for chain in values if not np.isnan(chain).all()]
    length = min((len(chain) for chain in kept), default=0)
    return np.stack([chain[:length] for chain in kept]) if kept else values


def draw(job: Job, functionals: tuple[Functional, ...], *, of: Of, progress: Progress = silent) -> Views:
    """Draws for a public or an open domain."""
    domain = job.observed[0].domain
    if domain is None:
        return open_labels.draw_open_views(job, functionals, of=of, progress=progress)
    return draw_views(job, reduce(functionals, domain=domain, within=job.within), of=of, progress=progress)
