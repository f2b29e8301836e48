"""The smoothed histogram: independent records from a mixture of the confidential histogram and the uniform.

No noise is added to any count: each released record is a copy of a random confidential one, or, with the probability `weight`,
a uniform draw from the domain. Exact integers throughout. Profile: privacy/laws/histogram.py; proof:
docs/proofs/histograms.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, ModelError
from privurn.exact_numbers import Number, exact
from privurn.mechanisms.alternatives import in_words, number
from privurn.mechanisms.dirichlet_multinomial import below
from privurn.mechanisms.histogram_sampling import check_sizes, check_smoothing, mostly_empty, sample_cells
from privurn.mechanisms.likelihood import MixtureTerm, Numbers, whole_counts
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.mechanisms.recipe import Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import LARGEST_PRIOR_WEIGHT, about, best_number
from privurn.privacy.entropy import Entropy
from privurn.privacy.histogram_calibration import largest_smoothed_records, smallest_weight, weight_up
from privurn.privacy.laws.histogram import SmoothedHistogramProfile
from privurn.privacy.profile import Guarantee

NEARLY_UNIFORM = 0.99


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogram(Mechanism):
    """`records` independent records, each uniform over `cells` cells with probability `weight`, else a random one of the n.

    Replace-one neighbours only: n is public, and 1/n is the mass of a record.
    """

    n: int
    cells: int
    records: int
    weight: Fraction

    in_words: ClassVar[str] = "records drawn from the histogram of the data, mixed with the uniform distribution"
    name: ClassVar[str] = "smoothed-histogram"

    def __post_init__(self) -> None:
        check_sizes(n=self.n, cells=self.cells, records=self.records)
        check_smoothing(self.weight, name="weight", positive=True)

    @property
    def profile(self) -> SmoothedHistogramProfile:
        """Exact, but for two cells and many records, where it is an upper bound (its `tight` says so)."""
        return SmoothedHistogramProfile(n=self.n, bins=self.cells, records=self.records, weight=below(self.weight))

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    @property
    def effective_sample_size(self) -> float:
        """Records of a plain random sample of the table that would tell as much after debiasing: (1 - weight)^2 records."""
        return float((1 - self.weight) ** 2 * self.records)

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact draws."""
        self.check(counts)
        return Drawn(
            sample_cells(
                counts.counts,
                values=counts.values.astype(np.int64),
                cells=self.cells,
                smoothing=self.weight,
                size=self.records,
                entropy=entropy,
            )
        )

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: how often each cell is drawn."""
        weight = float(self.weight)
        return rng.multinomial(self.records, (1.0 - weight) * counts.dense(self.cells) / counts.n + weight / self.cells)

    def likelihood(self, published: Numbers) -> MixtureTerm:
        """Records are independent given the counts."""
        released = whole_counts(published.values, cells=self.cells, records=self.records)
        return MixtureTerm(weight=self.weight, released=released)

    @property
    def error_sources(self) -> ErrorSources:
        """The uniform."""
        share = f"the uniform over {self.cells:,} cells weighs {float(self.weight):.1%} of what is released"
        return ErrorSources(shrinkage=f"shrinkage: {share}")


def calibrate_smoothed_histogram(*, n: int, cells: int, guarantee: Guarantee, records: int | None = None) -> SmoothedHistogram:
    """Least smoothing for the guarantee and `records` records, n of them unless said otherwise.

    >>> float(calibrate_smoothed_histogram(n=10_000, cells=100, guarantee=Guarantee(epsilon=1, delta=1e-6)).weight)
    0.22002
    """
    if guarantee.neighbouring != "replace-one":
        raise ModelError(
            "the smoothed histogram needs a public number of records.", hint="Use replace-one neighbours, or an urn"
        )
    single = guarantee.per_record()
    size = n if records is None else records
    weight = smallest_weight(n=n, bins=cells, records=size, epsilon=single.epsilon, delta=single.delta)
    enough = weight_up(weight) if weight > 0.0 else Fraction(1, 10**5)  # one cell: nothing to hide
    return SmoothedHistogram(n=n, cells=cells, records=size, weight=enough)


@dataclass(frozen=True, kw_only=True, repr=False)
class Smoothed(Recipe):
    """Records from the histogram mixed with the uniform. Left out: the least smoothing, and as many as confidential ones."""

    alias: ClassVar[str] = "smoothed-histogram"
    offered: ClassVar[str | None] = "records from the histogram mixed with the uniform, at the same guarantee"

    smoothing: Number | None = option("Weight of the uniform. Default: the smallest that is private.")

    def calibrate(self, public: Public) -> SmoothedHistogram:
        """The least smoothing, unless it is given."""
        n, cells = public.known_n, public.known_cells
        if self.smoothing is None:
            return calibrate_smoothed_histogram(n=n, cells=cells, guarantee=public.guarantee, records=self.records)
        records = n if self.records is None else self.records
        return SmoothedHistogram(n=n, cells=cells, records=records, weight=exact(self.smoothing, name="smoothing"))

    def planned(self, public: Public) -> Iterator[Option]:
        """As many records as there are, or as were asked for."""
        made = self.calibrate(public)
        as_many = made.records == made.n
        yield Option(
            mechanism=self.alias,
            records=made.records,
            prior_weight=float(made.weight),
            effective_sample_size=made.effective_sample_size if as_many else None,
            remark="n records" if as_many else "as many records as asked for",
            made=made,
            asked=self,
        )

    def too_costly(self, mechanism: Mechanism) -> str:
        """A given weight that is too small."""
        return f"{in_words(mechanism.records)} from the histogram with this smoothing would cost more than the guarantee."

    def nearby(self, mechanism: SmoothedHistogram, public: Public) -> Iterator[Alternative]:
        """Fewer records with this weight, or a larger weight for as many."""
        single = public.guarantee.per_record()
        most = largest_smoothed_records(
            n=mechanism.n,
            bins=mechanism.cells,
            weight=mechanism.profile.weight,
            epsilon=single.epsilon,
            delta=single.delta,
        )
        if isinstance(most, int) and most > 0:
            fewer = replace(self, records=most)
            yield Alternative(words=f"at most {in_words(most)} with this smoothing", changes={"mechanism": fewer})
        least = number(_calibrated(mechanism, public, mechanism.records).weight)
        words = f"a weight of at least {least} for {in_words(mechanism.records)}"
        yield Alternative(words=words, changes={"mechanism": replace(self, smoothing=least)})

    def remarks(self, mechanism: SmoothedHistogram, public: Public) -> tuple[str, ...]:
        """What is left of the data."""
        found, weight = mostly_empty(n=mechanism.n, cells=mechanism.cells), float(mechanism.weight)
        if weight <= LARGEST_PRIOR_WEIGHT:
            return found
        tells = f"The uniform has weight {weight:.6g}"
        if weight >= NEARLY_UNIFORM:
            tells = f"The release is nearly uniform noise: the uniform has weight {weight:.10g}"
        copies = float(mechanism.records * (1 - mechanism.weight))
        found += (
            f"{tells}; about {about(copies)} of the {mechanism.records:,} released records come from the data, and the release "
            f"is worth about {about(mechanism.effective_sample_size)} plain records.",
        )

        def worth(records: int) -> float:
            return _calibrated(mechanism, public, records).effective_sample_size

        if mechanism.cells > 2 and mechanism.records > 1:  # two cells are slow to calibrate
            best = best_number(worth, mechanism.records)
            if best < mechanism.records and worth(best) > 1.1 * mechanism.effective_sample_size:
                need = "1 record needs" if best == 1 else f"{best:,} records need"
                found += (f"{need} less of it and would be worth about {about(worth(best))} (records={best}).",)
        return found


def _calibrated(like: SmoothedHistogram, public: Public, records: int) -> SmoothedHistogram:
    return calibrate_smoothed_histogram(n=like.n, cells=like.cells, guarantee=public.guarantee, records=records)
