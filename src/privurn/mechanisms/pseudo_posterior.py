"""Records from a parametric model whose parameters come from a censored pseudo-posterior: strict differential privacy.

Each record adds its weighted log density, clipped to [-threshold, threshold], to the score of every parameter on a finite
public grid; a parameter is drawn with probability proportional to prior x exp(score). That is an exponential mechanism, drawn
exactly, and the records drawn from the model afterwards are post-processing. Proof: docs/proofs/pseudo-posterior.md.

Censoring is by J. Hu, M. R. Williams and T. D. Savitsky (arXiv 2205.05003). Their weights come from the whole data set, which
voids the argument; here a weight is a public function of its own record. The others live in asymptotic_pseudo_posterior.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, ColumnDomain, Grid, JointDomain, domain_from_json
from privurn.errors import Alternative, DomainError, ModelError
from privurn.mechanisms.grid_choice import PointChoice
from privurn.mechanisms.histogram_sampling import check_sizes, sample_cells
from privurn.mechanisms.integer_urn import integer_type
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.mechanisms.models import Bernoulli, Beta, Model, Normal, model_from_json
from privurn.mechanisms.numeric_cells import cell_numbers, cell_weights, check_numeric, inner_edges
from privurn.mechanisms.published import joint_domain
from privurn.mechanisms.recipe import Public, Recipe, option
from privurn.privacy.composition import compose
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import ExponentialMechanismProfile
from privurn.privacy.profile import Guarantee, PrivacyProfile

Floats = NDArray[np.float64]

STEPS = 2**20
"""A clipped term is a whole number of threshold/STEPS: its sums are then exact in floating point."""

FLOAT_RECORDS = 2**32
"""STEPS times this is 2^52: beyond it sums in floating point would round, and slower integers are used."""

SMALLEST_THRESHOLD = 1e-100
"""Far below any use; with a model's LARGEST_TERM it keeps STEPS/threshold times a log density inside the floats."""

BLOCK = 2**17
"""Terms held at a time: a processor's cache."""

MOST_TERMS = 2**36
"""Cells times grid points: minutes of work if every cell were occupied."""

MOST_DRAWS = 10_000
"""Of which the privacy losses are composed in seconds."""

FINE_CELLS = 10**6
"""Up to here any model's own grid of parameters will do."""

RANGE = {"replace-one": 4, "add-remove": 2}
"""Width of the range of log-likelihood ratios, in thresholds."""


@dataclass(frozen=True, kw_only=True)
class PseudoPosterior(Mechanism):
    """`draws` parameters theta of the model's grid, each with probability proportional to prior(theta) exp(score(theta)).

    score(theta) = sum over records of a(x) log f(x | theta) clipped to [-threshold, threshold] and rounded to a multiple of
    threshold/2^20; x is the number of the record's cell. a(x) = downscale min(1, threshold / D(x)), D(x) the largest
    |log f(x | theta)| over the grid of `reference`, a public guess of where theta lies; without a reference a(x) = downscale.
    So Censor_uw is the default, and Censor_w with strict privacy the one with a reference. Then `records` cells are drawn from
    the model, shared out evenly over the draws.

    One draw is 4 threshold-DP when a record is replaced, and 2 threshold-DP when one is added or removed (n = None).
    """

    n: int | None
    domain: ColumnDomain
    model: Model
    threshold: float
    records: int
    draws: int = 1
    reference: Model | None = None
    downscale: float = 1.0

    certifiable: ClassVar[bool] = True
    in_words: ClassVar[str] = (
        "records drawn from a small model whose parameters come from a posterior with censored log densities"
    )
    why_not: ClassVar[str] = "its records share latent parameters of a small model, so that their law is no product over cells"
    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "pseudo-posterior": {"model": ...},
        "pseudo-posterior, reference": {"model": ..., "reference": ...},
    }
    name: ClassVar[str] = "pseudo-posterior"

    def __post_init__(self) -> None:
        check_numeric(self.domain, self.model)
        check_sizes(n=self.n, cells=self.cells, records=self.records)
        if not SMALLEST_THRESHOLD <= self.threshold < math.inf:
            raise ModelError("the threshold must be positive and finite.", hint="epsilon/4, or epsilon/2 with add-remove")
        if not 0.0 < self.downscale <= 1.0:
            raise ModelError("downscale must lie in (0, 1].")
        if not 1 <= self.draws <= min(self.records, MOST_DRAWS):
            raise ModelError(f"draws must be at least 1, and at most the number of records and {MOST_DRAWS:,}.")
        if self.reference is not None and self.reference.kind != self.model.kind:
            raise ModelError("the reference must be a model of the same kind.")
        if self.reference is not None:
            self.model.check_finite(self.reference.grid())
        if self.cells * self.model.size > MOST_TERMS:
            raise DomainError("cells times grid points are too many.", hint="Use a coarser domain or fewer points")

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Cells of the domain."""
        return self.domain.size

    @property
    def profile(self) -> PrivacyProfile:
        """Bounded range 4 threshold (2 with add-remove neighbours), composed over the draws."""
        single = ExponentialMechanismProfile(epsilon0=RANGE[self.relation] * self.threshold, neighbouring=self.relation)
        return single if self.draws == 1 else compose([single], counts=[self.draws])

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    def weights(self, summaries: Floats) -> Floats:
        """a(x) of each value: a public function of that value alone."""
        if self.reference is None:
            return np.full(len(summaries), self.downscale)
        coefficients = self.model.coefficients(self.reference.grid())  # the model's: it is the density that is weighed
        largest = np.array(
            [np.abs(self.model.log_density(summaries[i : i + 1], coefficients)).max() for i in range(len(summaries))]
        )
        return np.asarray(self.downscale * np.minimum(1.0, self.threshold / np.maximum(largest, self.threshold)))

    def scores(self, counts: CountTable) -> NDArray[Any]:
        """Score of every grid point in steps of threshold/2^20, exact (`integer_urn.integer_type`). Confidential."""
        summaries = self.model.summaries(cell_numbers(self.domain, counts.values))
        weights = self.weights(summaries) * (STEPS / self.threshold)
        coefficients = self.model.coefficients(self.model.grid())
        kind = np.float64 if counts.n <= FLOAT_RECORDS else integer_type(2 * STEPS * counts.n)  # a gap of two scores fits too
        held = counts.counts.astype(kind)
        total = np.zeros(self.model.size, np.int64 if kind is np.float64 else kind)
        size = max(1, BLOCK // self.model.size)
        for start in range(0, len(summaries), size):
            part = slice(start, start + size)
            terms = censored_terms(self.model.log_density(summaries[part], coefficients), weights[part])
            if kind is np.float64:  # whole numbers below 2^53: exact in any order
                total += (held[part] @ terms).astype(np.int64)
            else:
                total += held[part] @ terms.astype(np.int64).astype(kind)
        return total

    def choice(self, counts: CountTable) -> PointChoice:
        """The exact law of a parameter's number. Confidential."""
        self.check(counts)
        return PointChoice(self.model.prior(), self.scores(counts), unit=Fraction(self.threshold) / STEPS)

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Parameters from the grid, exactly, then records from the model."""
        return next(self.draw_many(counts, size=1, entropy=entropy))

    def draw_many(self, counts: CountTable, *, size: int, entropy: Entropy) -> Iterator[Drawn]:
        """`size` releases from one computation of the scores."""
        choice, grid, edges = self.choice(counts), self.model.grid(), inner_edges(self.domain)
        shares = [self.records // self.draws + (i < self.records % self.draws) for i in range(self.draws)]
        for _ in range(size):
            parameters = grid[choice.draw(self.draws, entropy=entropy)]
            parts = [
                sample_cells(
                    cell_weights(self.model, each, edges),
                    values=np.arange(self.cells),
                    cells=self.cells,
                    smoothing=Fraction(0),
                    size=share,
                    entropy=entropy,
                )
                for each, share in zip(parameters, shares, strict=True)
            ]
            yield Drawn(np.concatenate(parts))

    def law(self, counts: CountTable) -> Floats:
        """Probability of each grid point, in floating point: for simulation only. Confidential."""
        scores = self.scores(counts)
        law = self.model.prior() * np.exp((scores - scores.max()).astype(np.float64) * (self.threshold / STEPS))
        return np.asarray(law / law.sum())

    shared_law = law

    def simulate(self, counts: CountTable, *, rng: np.random.Generator, law: Floats | None = None) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: how often each cell is drawn.

        `law` is what `law` gives for the same counts: one for many simulated releases.
        """
        law = self.law(counts) if law is None else law
        points = rng.choice(len(law), size=self.draws, p=law)
        share, edges = rng.multinomial(self.records, np.full(self.draws, 1.0 / self.draws)), inner_edges(self.domain)
        out = np.zeros(self.cells, np.int64)
        for point, size in zip(points, share, strict=True):
            weights = cell_weights(self.model, self.model.grid()[point], edges)
            out += rng.multinomial(size, weights / weights.sum())
        return out

    @property
    def error_sources(self) -> ErrorSources:
        """The model, and the draw of its parameters."""
        return ErrorSources(
            shrinkage=f"the model: a {self.model.kind} curve does not follow the data everywhere, and each record's log "
            f"density is cut off at {self.threshold:.3g}",
            noise="the draw of the model's parameters, which censoring spreads out",
        )

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """One column, whose domain it is."""
        return super().fits(domain) and list(joint_domain(domain).columns.values()) == [self.domain]

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {
            "n": self.n,
            "cells": self.cells,
            "domain": self.domain.to_json(),
            "model": self.model.to_json(),
            "threshold": self.threshold,
            "steps": STEPS,
            "records": self.records,
            "draws": self.draws,
            "reference": None if self.reference is None else self.reference.to_json(),
            "downscale": self.downscale,
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "PseudoPosterior":
        """Inverse of `parameters`."""
        domain = domain_from_json(data["domain"])
        if int(data["steps"]) != STEPS or not isinstance(domain, ColumnDomain) or int(data["cells"]) != domain.size:
            raise ModelError("the steps, the cells or the domain are not this version's.")
        return cls(
            n=None if data["n"] is None else int(data["n"]),
            domain=domain,
            model=model_from_json(data["model"]),
            threshold=float(data["threshold"]),
            records=int(data["records"]),
            draws=int(data["draws"]),
            reference=None if data["reference"] is None else model_from_json(data["reference"]),
            downscale=float(data["downscale"]),
        )


def censored_terms(terms: Floats, weights: Floats) -> Floats:
    """Weighted log densities, one row a value, as whole numbers of at most STEPS in size, in place.

    Whatever floating point makes of them: what is no number becomes -STEPS. So a term is a public function of its own record
    with values in [-STEPS, STEPS], which is all that the guarantee asks of it.
    """
    terms *= weights[:, None]
    np.fmin(np.fmax(terms, -STEPS, out=terms), STEPS, out=terms)
    return np.rint(terms, out=terms)


def calibrate_pseudo_posterior(
    *,
    n: int | None,
    domain: ColumnDomain,
    model: Model,
    guarantee: Guarantee,
    records: int | None = None,
    draws: int = 1,
    reference: Model | None = None,
    downscale: float = 1.0,
) -> PseudoPosterior:
    """Largest threshold for the guarantee; n records unless `records` says otherwise. n is ignored where it is secret.

    >>> from privurn.domain import Grid
    >>> from privurn.mechanisms.models import Beta
    >>> pure = Guarantee(epsilon=4.0, delta=0.0)
    >>> calibrate_pseudo_posterior(n=2000, domain=Grid(0, 1, "0.001"), model=Beta(), guarantee=pure).threshold
    1.0
    """
    secret = guarantee.neighbouring == "add-remove"
    rows = records if records is not None else None if secret else n
    if rows is None:
        raise ModelError("the number of released records must be given where n is secret.", hint="For example records=1000")
    single = guarantee.per_record()
    width = RANGE[guarantee.neighbouring]
    made = PseudoPosterior(
        n=None if secret else n,
        domain=domain,
        model=model,
        threshold=single.epsilon / draws / width,
        records=rows,
        draws=draws,
        reference=reference,
        downscale=downscale,
    )

    def kept(threshold: float) -> bool:
        return replace(made, threshold=threshold).profile.delta(single.epsilon) <= single.delta

    low = made.threshold
    while not kept(low):  # a sum of epsilons may have been rounded up
        low *= 1.0 - 1e-12
    if single.delta == 0.0:
        return replace(made, threshold=low)
    high = 2.0 * low
    while kept(high):
        low, high = high, 2.0 * high
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if kept(middle) else (low, middle)
    return replace(made, threshold=low)


@dataclass(frozen=True, kw_only=True, repr=False)
class Pseudo(Recipe):
    """Records from a small parametric model of one column, whose parameters come from a censored pseudo-posterior."""

    alias: ClassVar[str] = "pseudo-posterior"
    keeps_n_secret: ClassVar[bool] = True

    model: Model | None = option("beta, bernoulli, or a YAML/JSON file with kind and bounds.")
    draws: int = option("How many parameters to draw, 1 where left out.", default=1)
    reference: Model | None = None
    """A public guess of the same kind, which weighs the records."""

    def check(self) -> None:
        """Numbers in their range."""
        super().check()
        if self.draws < 1:
            raise ModelError("the number of draws must be at least 1.")

    def calibrate(self, public: Public) -> PseudoPosterior:
        """The largest threshold."""
        if self.model is None:
            raise ModelError("a pseudo-posterior needs a model of the column.", alternatives=tuple(self._models(public.domain)))
        try:
            return calibrate_pseudo_posterior(
                n=public.n,
                domain=only_column(public.domain),
                model=self.model,
                guarantee=public.guarantee,
                records=self.records,
                draws=self.draws,
                reference=self.reference,
            )
        except DomainError as error:  # a model and a domain that do not fit: public knowledge
            raise DomainError(error.message, alternatives=tuple(self._models(public.domain))) from None

    def _models(self, domain: JointDomain | None) -> Iterator[Alternative]:
        """Models that fit the domain."""
        column = None if domain is None or len(domain.columns) != 1 else next(iter(domain.columns.values()))
        if not isinstance(column, (Grid, Bins)) or not 1 < column.size == column.n_values <= FINE_CELLS:
            return
        low, high = (float(each) for each in cell_numbers(column, np.array([0, column.size - 1])))
        if (low, high, column.size) == (0.0, 1.0, 2) and not isinstance(self.model, Bernoulli):
            yield self._with("a model of zeros and ones", Bernoulli())
        elif low >= 0.0 and high <= 1.0 and not isinstance(self.model, Beta):
            yield self._with("a beta curve", Beta())
        if not isinstance(self.model, Normal):
            curve = Normal(mean=(low, high), deviation=(float(f"{(high - low) / 100.0:g}"), high - low))
            yield self._with("a normal curve within the domain's bounds", curve)

    def _with(self, words: str, model: Model) -> Alternative:
        return Alternative(words=words, changes={"mechanism": replace(self, model=model)})


def only_column(domain: JointDomain | None) -> ColumnDomain:
    """The domain's one column; refuses several."""
    if domain is None or len(domain.columns) != 1:
        raise DomainError("a model is of one column.", hint="Name one column, or leave the model out")
    return next(iter(domain.columns.values()))
