"""One or several posterior samples of the cell probabilities, as relative frequencies of a long release from the exact urn.

A draw from the Dirichlet posterior is the limit of the frequencies in the Dirichlet-multinomial urn. Publishing S/m after
m = 10^6 urn draws has an exact law in integers and a slightly better profile than the limit; a floating-point Dirichlet draw
has neither. Profile: docs/proofs/histograms.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, ModelError
from privurn.exact_numbers import Number
from privurn.mechanisms.alternatives import rounded_up
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial, exact_alpha
from privurn.mechanisms.histogram_sampling import mostly_empty
from privurn.mechanisms.likelihood import Numbers, UrnTerm
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.mechanisms.published import Content, Table
from privurn.mechanisms.recipe import Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import LARGEST_PRIOR_WEIGHT
from privurn.privacy.calibration import round_up_to_rational
from privurn.privacy.entropy import Entropy
from privurn.privacy.histogram_calibration import smallest_alpha_for_draws
from privurn.privacy.laws.posterior_sample import draws_profile
from privurn.privacy.profile import Guarantee, PrivacyProfile

RECORDS = 10**6
"""Urn draws behind each published vector of probabilities: its resolution is one in a million."""

MOST_DRAWS = 10_000
"""Of which the privacy losses are composed in seconds."""


class ProbabilitiesContent(Table):
    """All cells with probabilities that are shares of the urn's draws and add up to 1, once for each draw."""

    def __init__(self, domain: Mapping[str, Any], *, records: int, draws: int) -> None:
        super().__init__(domain)
        self.records = records
        self.sums = np.zeros(draws, np.int64)

    def possible(self, draw: NDArray[np.int64], *beside: NDArray[np.float64]) -> bool:
        """Shares of so many draws, and the number of the draw where there are several."""
        if len(beside) > 1 and not np.array_equal(beside[0], draw + 1):
            return False
        counts = np.rint(beside[-1] * self.records).astype(np.int64)
        np.add.at(self.sums, draw, counts)
        return bool((counts >= 0).all() and np.array_equal(counts / self.records, beside[-1]))

    def complete(self) -> bool:
        """Every draw adds up."""
        return bool((self.sums == self.records).all())


@dataclass(frozen=True, kw_only=True)
class PosteriorSample(Mechanism):
    """`draws` independent vectors S/m: S the cells' counts among m = `records` records of the Dirichlet-multinomial urn.

    `alpha` prior records in each cell (one rational, or one for each cell). n = None keeps the number of confidential records
    secret. One vector has exactly the urn's profile for m records; several are composed by their privacy losses.
    """

    n: int | None
    cells: int
    alpha: Fraction | tuple[Fraction, ...]
    records: int = RECORDS
    draws: int = 1

    rows_are: ClassVar[str] = "cell probabilities"
    in_words: ClassVar[str] = "cell probabilities drawn from the posterior distribution of a Dirichlet prior"
    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {"posterior-sample": {"records": None}}  # its records are a resolution
    name: ClassVar[str] = "posterior-sample"

    def __post_init__(self) -> None:
        if not 1 <= self.draws <= MOST_DRAWS:
            raise ModelError(f"the number of draws must be from 1 to {MOST_DRAWS:,}.")
        _ = self.urn  # checks the rest

    @property
    def urn(self) -> DirichletMultinomial:
        """The urn behind one draw."""
        return DirichletMultinomial(n=self.n, cells=self.cells, alpha=self.alpha, records=self.records)

    @property
    def profile(self) -> PrivacyProfile:
        """The urn's own for one draw; an upper bound, tight to its lattice's rounding, for several."""
        return draws_profile(self.urn.profile, draws=self.draws)

    @property
    def rows(self) -> int:
        """One for each cell and draw."""
        return self.cells * self.draws

    @property
    def beside(self) -> tuple[str, ...]:
        """The number of the draw, where there are several, and the probabilities."""
        return ("draw", "probability") if self.draws > 1 else ("probability",)

    @property
    def prior_weight(self) -> float:
        """Share of the prior in the released distribution."""
        return self.urn.prior_weight

    @property
    def effective_sample_size(self) -> float:
        """Records of a plain sample that would tell as much: draws are independent given the data, so their worths add."""
        return self.draws * self.urn.effective_sample_size

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact urn draws, counted and divided by their number."""
        self.check(counts)
        vectors = [
            np.bincount(self.urn.draw(counts, entropy=entropy).cells, minlength=self.cells) / self.records
            for _ in range(self.draws)
        ]
        cells = np.tile(np.arange(self.cells), self.draws)
        return Drawn(cells, weights=np.concatenate(vectors), weight_name="probability", draws=self.draws)

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Floating-point twin for simulation, never for a release: the average of the draws' probabilities."""
        draws = [self.urn.simulate(counts, rng=rng) / self.records for _ in range(self.draws)]
        return np.asarray(np.mean(draws, axis=0))

    def likelihood(self, published: Numbers) -> UrnTerm:
        """Probabilities are shares of many records of an urn, whose own prior has a closed form for one draw."""
        values = np.asarray(published.values)
        if values.size != self.draws * self.cells:
            raise ModelError("posterior samples need one probability for each draw and cell.")
        rows = values.reshape(self.draws, self.cells) * float(self.records)
        drawn = [self.urn.likelihood(Numbers(row)) for row in rows]
        return UrnTerm(alpha=drawn[0].alpha, released=np.concatenate([each.released for each in drawn]))

    @property
    def error_sources(self) -> ErrorSources:
        """Those of the urn."""
        return self.urn.error_sources

    @property
    def least_protected(self) -> tuple[int, int] | None:
        """Those of the urn."""
        return self.urn.least_protected

    def content(self, domain: Mapping[str, Any]) -> Content:
        """Probabilities."""
        return ProbabilitiesContent(domain, records=self.records, draws=self.draws)

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {**self.urn.parameters(), "draws": self.draws}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "PosteriorSample":
        """Inverse of `parameters`."""
        urn = DirichletMultinomial.from_parameters(data)
        return cls(n=urn.n, cells=urn.cells, alpha=urn.alpha, records=urn.records, draws=int(data["draws"]))


def calibrate_posterior_sample(
    *, n: int | None, cells: int, guarantee: Guarantee, records: int = RECORDS, draws: int = 1
) -> PosteriorSample:
    """Least prior for the guarantee. n is ignored where it is secret.

    >>> float(calibrate_posterior_sample(n=10_000, cells=100, guarantee=Guarantee(epsilon=1, delta=1e-6)).alpha)
    36.487
    """
    public = None if guarantee.neighbouring == "add-remove" else n
    single = guarantee.per_record()
    alpha = smallest_alpha_for_draws(
        n=public, cells=cells, records=records, draws=draws, epsilon=single.epsilon, delta=single.delta
    )
    return PosteriorSample(n=public, cells=cells, alpha=round_up_to_rational(alpha), records=records, draws=draws)


@dataclass(frozen=True, kw_only=True, repr=False)
class PosteriorDraws(Recipe):
    """Draws of the cell probabilities, each the frequencies of `records` urn draws, a million where left out."""

    alias: ClassVar[str] = "posterior-sample"
    offered: ClassVar[str | None] = "cell probabilities at the same guarantee"
    keeps_n_secret: ClassVar[bool] = True
    publishes_records: ClassVar[bool] = False
    """Probabilities; its records are their resolution."""

    alpha: Number | Sequence[Number] | None = option("Prior records in each cell. Default: the smallest that is private.")
    draws: int = option("How many posterior samples, 1 where left out.", default=1)

    def check(self) -> None:
        """Numbers in their range."""
        super().check()
        if self.draws < 1:
            raise ModelError("the number of draws must be at least 1.")
        if self.records is not None and self.records < RECORDS:
            raise ModelError(
                f"a posterior sample needs at least {RECORDS:,} urn draws.", hint="Leave the number of records out"
            )

    def calibrate(self, public: Public) -> PosteriorSample:
        """The least prior, unless it is given."""
        alpha, sizes = exact_alpha(self.alpha), {"records": self.records or RECORDS, "draws": self.draws}
        if alpha is None:
            return calibrate_posterior_sample(n=public.n, cells=public.known_cells, guarantee=public.guarantee, **sizes)
        return PosteriorSample(n=public.n, cells=public.known_cells, alpha=alpha, **sizes)

    def planned(self, public: Public) -> Iterator[Option]:
        """One draw, where there is a delta: without one it would be all prior."""
        if public.guarantee.delta == 0.0:
            return
        made = self.calibrate(public)
        weighed = replace(made, n=public.about_n)
        yield Option(
            mechanism=self.alias,
            records=made.records,
            alpha=float(made.urn.prior_total) / made.cells,
            prior_weight=weighed.prior_weight,
            effective_sample_size=weighed.effective_sample_size,
            made=made,
            remark="the cell probabilities, as frequencies of so many urn draws",
        )

    def too_costly(self, mechanism: Mechanism) -> str:
        """A given prior that is too small."""
        sample = "a posterior sample" if self.draws == 1 else f"{self.draws:,} posterior samples"
        return f"{sample} with this alpha would cost more than the guarantee."

    def nearby(self, mechanism: PosteriorSample, public: Public) -> Iterator[Alternative]:
        """A larger prior."""
        least = replace(self, alpha=None).calibrate(public)
        alpha = rounded_up(float(least.urn.prior_total / mechanism.cells), digits=8)
        words = f"a prior of at least {alpha:.8g} in every cell"
        yield Alternative(words=words, changes={"mechanism": replace(self, alpha=alpha)})

    def remarks(self, mechanism: PosteriorSample, public: Public) -> tuple[str, ...]:
        """What the prior costs."""
        found = mostly_empty(n=public.n, cells=mechanism.cells)
        if public.n is not None and mechanism.prior_weight > LARGEST_PRIOR_WEIGHT:
            found += (
                f"The prior that the guarantee needs weighs {mechanism.prior_weight:.0%} of the released probabilities, which "
                f"are worth about {mechanism.effective_sample_size:,.0f} plain records.",
            )
        return found
