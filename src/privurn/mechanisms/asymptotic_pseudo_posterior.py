"""Pseudo-posteriors with weights from the whole data set: for comparison with the literature, never for a certificate.

Their guarantee is asymptotic (aDP): epsilon = 2 max_i a_i D_i at the data at hand, said to hold over all data sets only as n
grows. It is not differential privacy, so a profile is refused. It stands in the package, and not in `papers/`, because
`compare --asymptotic` draws from it beside the mechanisms that have a guarantee; it is in no registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import ColumnDomain
from privurn.errors import ModelError, NotCertifiable
from privurn.mechanisms.histogram_sampling import check_sizes, sample_cells
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.mechanisms.models import Model
from privurn.mechanisms.numeric_cells import cell_numbers, cell_weights, check_numeric, inner_edges
from privurn.mechanisms.pseudo_posterior import BLOCK, only_column
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.record_weights import levelled_weights, linear_weights, truncated_weights
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import PrivacyProfile

Floats = NDArray[np.float64]
Variant = Literal["unweighted", "weighted", "weighted-e", "censor-w"]

BOUND_DRAWS = 1000
"""Draws of the parameters over which a record's largest |log f| is taken."""


@dataclass(frozen=True, kw_only=True)
class AsymptoticPseudoPosterior(Mechanism):
    """One parameter from prior x exp(sum of a_i log f(x_i | theta)) on the model's grid, then `records` cells from the model.

    "unweighted": a_i = 1. "weighted": a_i linear in the record's bound. "weighted-e": the same, with 0 where a_i D_i exceeds
    `threshold`. "censor-w": levelled weights, and each a_i log f clipped to [-threshold, threshold]. All weights are
    multiplied by `downscale`.
    """

    n: int
    domain: ColumnDomain
    model: Model
    records: int
    variant: Variant = "weighted"
    threshold: float | None = None
    downscale: float = 1.0

    certifiable: ClassVar[bool] = False
    name: ClassVar[str] = "asymptotic-pseudo-posterior"

    def __post_init__(self) -> None:
        check_numeric(self.domain, self.model)
        check_sizes(n=self.n, cells=self.domain.size, records=self.records)
        if self.variant not in ("unweighted", "weighted", "weighted-e", "censor-w"):
            raise ModelError("the variant must be 'unweighted', 'weighted', 'weighted-e' or 'censor-w'.")
        needs = self.variant in ("weighted-e", "censor-w")
        if needs != (self.threshold is not None) or (self.threshold is not None and self.threshold <= 0.0):
            raise ModelError("weighted-e and censor-w need a positive threshold, the others none.", hint="threshold=epsilon/2")
        if not 0.0 < self.downscale <= 1.0:
            raise ModelError("downscale must lie in (0, 1].")

    @property
    def profile(self) -> PrivacyProfile:
        """There is none."""
        raise NotCertifiable(
            f"the {self.variant} pseudo-posterior is not differentially private: its weights depend on the whole table, "
            "and its guarantee is asymptotic only.",
            hint="Use the pseudo-posterior mechanism, whose weights are a public function of one record",
        )

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    def record_weights(self, counts: CountTable, *, entropy: Entropy) -> tuple[Floats, float]:
        """Weight of each distinct value, and the asymptotic epsilon 2 max a_i D_i. Both are confidential."""
        summaries = self.model.summaries(cell_numbers(self.domain, counts.values))
        ones = np.ones(len(summaries))
        bounds = self._bounds(summaries, self._draw(counts, summaries, ones, BOUND_DRAWS, entropy))
        if self.variant == "unweighted":
            return ones * self.downscale, 2.0 * self.downscale * float(bounds.max(initial=0.0))
        weights = linear_weights(bounds)
        if self.variant == "censor-w":
            points = self._draw(counts, summaries, weights, BOUND_DRAWS, entropy)
            weights = levelled_weights(weights, weights * self._bounds(summaries, points))
        weights = weights * self.downscale
        if self.variant == "weighted-e" and self.threshold is not None:
            weights = truncated_weights(weights, bounds, threshold=self.threshold)
        spent = weights * bounds
        if self.variant == "censor-w" and self.threshold is not None:
            spent = np.minimum(spent, self.threshold)
        return weights, 2.0 * float(spent.max(initial=0.0))

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """In floating point: there is no guarantee that rounding could break."""
        self.check(counts)
        weights, _ = self.record_weights(counts, entropy=entropy)
        summaries = self.model.summaries(cell_numbers(self.domain, counts.values))
        clip = self.threshold if self.variant == "censor-w" else None
        point = self._draw(counts, summaries, weights, 1, entropy, clip=clip)[0]
        cells = sample_cells(
            cell_weights(self.model, self.model.grid()[point], inner_edges(self.domain)),
            values=np.arange(self.domain.size),
            cells=self.domain.size,
            smoothing=Fraction(0),
            size=self.records,
            entropy=entropy,
        )
        return Drawn(cells)

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Cells of the domain."""
        return self.domain.size

    @property
    def error_sources(self) -> ErrorSources:
        """The model, and the draw of its parameters."""
        model = f"the model: a {self.model.kind} curve does not follow the data everywhere"
        rare = "" if self.variant == "unweighted" else ", and rare records weigh less"
        return ErrorSources(shrinkage=f"{model}{rare}", noise="the draw of the model's parameters")

    def _bounds(self, summaries: Floats, points: NDArray[np.int64]) -> Floats:
        coefficients = self.model.coefficients(self.model.grid()[np.unique(points)])
        return np.asarray(np.abs(self.model.log_density(summaries, coefficients)).max(axis=1, initial=0.0))

    def _draw(
        self,
        counts: CountTable,
        summaries: Floats,
        weights: Floats,
        size: int,
        entropy: Entropy,
        *,
        clip: float | None = None,
    ) -> NDArray[np.int64]:
        logs = np.log(self.model.prior()) + log_likelihood(self.model, summaries, counts.counts, weights=weights, clip=clip)
        law = np.exp(logs - logs.max())
        places = entropy.integers(2**53, size=size) * 2.0**-53
        ends = np.cumsum(law)
        return np.asarray(np.searchsorted(ends, places * ends[-1], side="right"))


def log_likelihood(
    model: Model, summaries: Floats, counts: NDArray[np.int64], *, weights: Floats, clip: float | None = None
) -> Floats:
    """Weighted log-likelihood at every grid point, each record's term clipped to [-clip, clip] where that is given."""
    coefficients = model.coefficients(model.grid())
    effective = counts * weights
    if clip is None:  # the sums of the statistics are enough
        weighted = (*coefficients[:-1], effective.sum() * coefficients[-1])
        return np.asarray(model.log_density((effective @ summaries)[None, :], weighted)[0])
    total: Floats = np.zeros(model.size)
    size = max(1, BLOCK // model.size)
    for start in range(0, len(summaries), size):
        part = slice(start, start + size)
        terms = model.log_density(summaries[part], coefficients)
        terms *= weights[part, None]
        total += counts[part].astype(np.float64) @ np.clip(terms, -clip, clip, out=terms)
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class AsymptoticPseudo(Recipe):
    """A pseudo-posterior without differential privacy: to be looked at in a comparison, with the threshold of the paper."""

    alias: ClassVar[str] = "asymptotic pseudo-posterior"
    certifiable: ClassVar[bool] = False

    model: Model
    variant: Variant

    def calibrate(self, public: Public) -> AsymptoticPseudoPosterior:
        """With epsilon/2 where the variant has a threshold."""
        return AsymptoticPseudoPosterior(
            n=public.known_n,
            domain=only_column(public.domain),
            model=self.model,
            records=public.known_n if self.records is None else self.records,
            variant=self.variant,
            threshold=public.guarantee.epsilon / 2.0 if self.variant in ("weighted-e", "censor-w") else None,
        )


ASYMPTOTIC: Mapping[str, Mapping[str, Any]] = {
    f"{AsymptoticPseudo.alias}, {variant}": {"model": ..., "variant": variant} for variant in get_args(Variant)
}
"""Ways of the literature, by name, as `Mechanism.ways` has those with a certificate."""
