"""The exponential mechanism over histograms: of all histograms of m records, one is drawn that is likely to be near the data.

Weights are exact decimals and draws exact integers, so epsilon-DP holds with delta = 0 for the law actually sampled. Where that
law can neither be factorised nor enumerated the mechanism refuses. Proof: docs/proofs/exponential.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, Grid, JointDomain
from privurn.errors import Alternative, CalibrationError, ModelError
from privurn.mechanisms import exponential_sampling as sampling
from privurn.mechanisms.exponential_losses import CONTEXT, LOSSES, Loss, LossName, kink
from privurn.mechanisms.exponential_simulation import simulated_counts
from privurn.mechanisms.histogram_sampling import check_sizes
from privurn.mechanisms.mechanism import PER_RECORD, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.recipe import Public, Recipe, option
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import ExponentialMechanismProfile
from privurn.privacy.profile import Guarantee, check_epsilon

MOST_CANDIDATES = 10**6
"""Histograms enumerated for a loss that does not factorise: about half a minute."""
MOST_PRODUCTS = 5 * 10**7
"""z m^2 / 2 for a squared loss: ten to twenty seconds."""
MOST_ENTRIES = 10**6
"""Weights of fifty digits kept in memory."""
MOST_CONFIDENTIAL = 10**11
SMALLEST_EPSILON = 1e-9
SLACK = Decimal("1e-20")
"""Taken off epsilon: more than rounding to fifty digits can add to it within the limits above."""


@dataclass(frozen=True, kw_only=True)
class ExponentialHistogram(Mechanism):
    """A histogram s of `records` records on `cells` cells with probability proportional to e^(-epsilon loss(x, s) / range).

    The base measure is uniform over histograms: without data each of the C(m + z - 1, z - 1) count vectors is as likely as
    another. x is the confidential histogram of n records; `loss` and its range (at most twice the sensitivity) are listed in
    mechanisms/exponential_losses.py. `gaps` are the public distances between neighbouring cells for "w1"; None: all equal.

    The released records are those of s in random order. The log-likelihood ratio of neighbours lies in an interval of length
    `epsilon` (bounded range), which implies epsilon-DP with delta = 0. Replace-one neighbours only: proportions of a
    table of secret size may move by 1 with a single record.
    """

    n: int
    cells: int
    records: int
    epsilon: float
    loss: LossName = "l1"
    gaps: tuple[Fraction, ...] | None = None

    forecast: ClassVar[bool] = False
    in_words: ClassVar[str] = "a histogram drawn with a probability that falls with its distance from the data"
    why_not: ClassVar[str] = "its normaliser is a sum over all histograms, and another one for each confidential histogram"
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        check_sizes(n=self.n, cells=self.cells, records=self.records)
        if self.cells < 2:
            raise ModelError("the exponential mechanism chooses between histograms: it needs at least two cells.")
        if self.loss not in LOSSES:
            raise ModelError("the loss is not known.", hint=", ".join(LOSSES))
        if check_epsilon(self.epsilon) < SMALLEST_EPSILON:
            raise ModelError(f"epsilon must be at least {SMALLEST_EPSILON:g} here.", hint="For example epsilon=1.0")
        if self.n > min(MOST_CONFIDENTIAL, MAX_EMAX / self.epsilon):
            raise ModelError("too many confidential records for exact weights.", hint=f"At most {MOST_CONFIDENTIAL:,}")
        self._check_gaps()
        if not affordable(loss=self.loss, cells=self.cells, records=self.records):
            raise CalibrationError(_unaffordable(loss=self.loss, cells=self.cells, records=self.records))

    def _check_gaps(self) -> None:
        if self.gaps is None:
            return
        if self.loss != "w1":
            raise ModelError("only the loss 'w1' knows distances between cells.", hint="Leave the gaps out, or use loss='w1'")
        if len(self.gaps) != self.cells - 1 or not all(isinstance(gap, Fraction) and gap > 0 for gap in self.gaps):
            raise ModelError("gaps must be positive rationals, one less than there are cells.")

    @property
    def profile(self) -> ExponentialMechanismProfile:
        """That of bounded range: pure epsilon, with the best delta for smaller epsilon that bounded range alone implies."""
        return ExponentialMechanismProfile(epsilon0=self.epsilon, bounded_range=True)

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    @property
    def rate(self) -> Decimal:
        """Fifty digits of (epsilon - SLACK) / range, per unit in which the loss's terms are counted."""
        with localcontext(CONTEXT):
            return (Decimal(self.epsilon) - SLACK) / self._loss.spread(self.n, self.records, self.cells, sum(self.whole_gaps))

    @property
    def whole_gaps(self) -> tuple[int, ...]:
        """The gaps as whole numbers; a common factor changes nothing, as the range has it too."""
        if self.gaps is None:
            return (1,) * (self.cells - 1)
        common = math.lcm(*(gap.denominator for gap in self.gaps))
        return tuple(int(gap * common) for gap in self.gaps)

    @property
    def _loss(self) -> Loss:
        return LOSSES[self.loss]

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact: the law is that of the weights computed, whose distance from the ideal one is part of the guarantee."""
        return next(self.draw_many(counts, size=1, entropy=entropy))

    def draw_many(self, counts: CountTable, *, size: int, entropy: Entropy) -> Iterator[Drawn]:
        """`size` releases from one computation of the weights."""
        self.check(counts)
        choose = self._chooser(counts)
        for _ in range(size):
            out = np.repeat(np.arange(self.cells), choose(entropy))
            entropy.shuffle(out)
            yield Drawn(out)

    def _chooser(self, counts: CountTable) -> Callable[[Entropy], list[int]]:
        """Draws of the histogram, with the weights computed beforehand."""
        confidential, sizes = counts.dense(self.cells).tolist(), {"cells": self.cells, "records": self.records}
        if self._loss.route == "candidates":
            weights = self.candidate_weights(confidential)
            return lambda entropy: sampling.candidate(sampling.choose(weights, entropy=entropy), **sizes)
        law = self.sequential_weights(confidential)
        return lambda entropy: sampling.draw_sequentially(law, **sizes, entropy=entropy)

    def sequential_weights(self, confidential: list[int]) -> sampling.SequentialWeights:
        """Weights of one cell after the other, for a loss that factorises."""
        loss, n, m, rate = self._loss, self.n, self.records, self.rate
        if loss.route == "totals":
            return sampling.TotalWeights(sampling.total_tables(loss, confidential, gaps=self.whole_gaps, n=n, m=m, rate=rate))
        tables = sampling.cell_tables(loss, confidential, n=n, m=m, rate=rate)
        if not loss.linear:
            return sampling.CellWeights(tables)
        with localcontext(CONTEXT):
            ratio = (-rate * n).exp()
        return sampling.CellWeights(tables, kinks=[kink(x, n=n, m=m) for x in confidential], ratio=ratio)

    def candidate_weights(self, confidential: list[int]) -> list[Decimal]:
        """Weights of all histograms, for a loss that does not factorise."""
        return sampling.candidate_weights(self._loss, confidential, n=self.n, m=self.records, rate=self.rate)

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: how often each cell is drawn."""
        drawn: NDArray[np.int64] = self.simulate_many(counts, rng=rng, runs=1)[0]
        return drawn

    def simulate_many(self, counts: CountTable, *, rng: np.random.Generator, runs: int) -> NDArray[np.int64]:
        """`runs` independent simulated histograms, one a row, from one set of weights."""
        return simulated_counts(
            self._loss,
            counts.dense(self.cells),
            gaps=self.whole_gaps,
            n=self.n,
            m=self.records,
            rate=float(self.rate),
            rng=rng,
            runs=runs,
        )

    @property
    def error_sources(self) -> ErrorSources:
        """The base measure, and the choice."""
        return ErrorSources(
            shrinkage="the pull of the uniform measure over all histograms of so many records",
            noise="the mechanism's random choice of a histogram",
            size=f"the number of records, {self.records:,}, as many as can be drawn exactly",
        )

    def seconds(self, *, contributions: int) -> float:
        """An exact decimal weight of a cell takes some hundred times longer than a record of an urn."""
        return PER_RECORD * self.records * max(1.0, self.cells / 4)

    def parameters(self) -> dict[str, Any]:
        """The fields, and what the distance is weighed against."""
        return {**super().parameters(), "base": "uniform over histograms"}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        if data["base"] != "uniform over histograms":
            raise ModelError("the base measure is not known to this version.")
        return super().from_parameters(data)


def affordable(*, loss: LossName, cells: int, records: int) -> bool:
    """Whether the law can be sampled exactly within the limits of this module."""
    if LOSSES[loss].route == "candidates":
        # with 64 cells and records there are far too many already, and their exact number takes long
        return min(cells, records) < 64 and math.comb(records + cells - 1, cells - 1) <= MOST_CANDIDATES
    products = 0 if LOSSES[loss].linear else cells * records * records // 2
    return cells * (records + 1) <= MOST_ENTRIES and products <= MOST_PRODUCTS


def most_records(*, loss: LossName, cells: int) -> int:
    """Most records for which the law can be sampled exactly; 0 where there are too many cells for any.

    >>> [most_records(loss=loss, cells=100) for loss in ("l1", "w1", "l2-squared", "l2")]
    [9999, 9999, 1000, 3]
    """
    low, high = 0, MOST_ENTRIES
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if affordable(loss=loss, cells=cells, records=middle) else (low, middle - 1)
    return low


def _unaffordable(*, loss: LossName, cells: int, records: int) -> str:
    return (
        f"{records:,} records on {cells:,} cells are too many for an exact draw with the loss {loss!r}, "
        "and an approximate draw would have no guarantee."
    )


def calibrate_exponential(
    *,
    n: int,
    cells: int,
    guarantee: Guarantee,
    loss: LossName = "l1",
    records: int | None = None,
    gaps: tuple[Fraction, ...] | None = None,
) -> ExponentialHistogram:
    """The mechanism for the guarantee; delta may be 0. n records unless that is too many for an exact draw, then the most.

    A positive delta buys a larger pure epsilon, as far as the profile of bounded range allows.

    >>> calibrate_exponential(n=10_000, cells=100, guarantee=Guarantee(epsilon=1, delta=0), loss="w1").records
    9999
    """
    if guarantee.neighbouring != "replace-one":
        raise ModelError(
            "the exponential mechanism needs a public number of records.",
            hint="Use replace-one neighbours, or an urn",
        )
    if loss not in LOSSES:
        raise ModelError("the loss is not known.", hint=", ".join(LOSSES))
    single = guarantee.per_record()
    size = max(1, min(n, most_records(loss=loss, cells=cells))) if records is None else records
    epsilon = _largest_epsilon(single)
    return ExponentialHistogram(n=n, cells=cells, records=size, epsilon=epsilon, loss=loss, gaps=gaps)


def _largest_epsilon(wanted: Guarantee) -> float:
    """Largest pure epsilon0 whose profile is at most delta at epsilon: delta(epsilon) grows with epsilon0."""
    low, high = wanted.epsilon, min(600.0, 2.0 * wanted.epsilon + 1.0)
    if wanted.delta == 0.0:
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        kept = ExponentialMechanismProfile(epsilon0=middle).delta(wanted.epsilon) <= wanted.delta
        low, high = (middle, high) if kept else (low, middle)
    return low


@dataclass(frozen=True, kw_only=True, repr=False)
class Exponential(Recipe):
    """Records of a histogram near the data's. Left out: as many as confidential ones, or the most that can be drawn exactly."""

    alias: ClassVar[str] = "exponential"

    loss: LossName = option("l1 (default), l2, l2-squared, hellinger, hellinger-squared or w1.", default="l1")

    def check(self) -> None:
        """A loss that is known."""
        super().check()
        if self.loss not in LOSSES:
            raise ModelError("the loss is not known.", hint=", ".join(LOSSES))

    def calibrate(self, public: Public) -> ExponentialHistogram:
        """The largest epsilon."""
        n, cells = public.known_n, public.known_cells
        if cells < 2:
            raise ModelError(
                "the exponential mechanism chooses between histograms: it needs at least two cells.", alternatives=()
            )
        gaps = self._gaps(public.domain) if self.loss == "w1" else None
        records = self.records or max(1, min(n, most_records(loss=self.loss, cells=cells)))
        if not affordable(loss=self.loss, cells=cells, records=records):
            found = tuple(self._affordable(cells=cells, records=records))
            raise CalibrationError(_unaffordable(loss=self.loss, cells=cells, records=records), alternatives=found)
        return calibrate_exponential(n=n, cells=cells, guarantee=public.guarantee, loss=self.loss, records=records, gaps=gaps)

    def _gaps(self, domain: JointDomain | None) -> tuple[Fraction, ...] | None:
        """Distances between neighbouring cells; None where they are all the same."""
        column = None if domain is None or len(domain.columns) != 1 else next(iter(domain.columns.values()))
        if not isinstance(column, (Grid, Bins)) or column.size != column.n_values:
            raise ModelError(
                "the loss w1 needs cells in an order with known distances: one grid or bins, without a null or other cell.",
                alternatives=(
                    self._with("total variation in place of distances", loss="l1"),
                    self._with("squared Hellinger distance", loss="hellinger-squared"),
                ),
            )
        if isinstance(column, Grid):
            return None
        middles = [(Fraction(low) + Fraction(high)) / 2 for low, high in pairwise(column.edges)]
        return tuple(high - low for low, high in pairwise(middles))

    def _affordable(self, *, cells: int, records: int) -> Iterator[Alternative]:
        """Fewer records, or another loss; nothing here depends on the data."""
        if most := most_records(loss=self.loss, cells=cells):
            yield self._with(f"at most {most:,} records with the loss {self.loss!r}", records=most)
        others: tuple[LossName, ...] = ("l2-squared", "hellinger-squared", "l1")  # w1 wants cells with distances
        for other in sorted(others, key=lambda name: (not name.startswith(self.loss), name != "l1")):  # its own square, or l1
            if other != self.loss and affordable(loss=other, cells=cells, records=records):
                yield self._with(f"the loss {other!r} with these {records:,} records", loss=other)
                return
        fits = 0 if self.loss == "l1" else most_records(loss="l1", cells=cells)
        if fits > most:
            yield self._with(f"at most {fits:,} records with the loss 'l1'", loss="l1", records=fits)

    def _with(self, words: str, **changes: Any) -> Alternative:
        return Alternative(words=words, changes={"mechanism": replace(self, **changes)})

    def remarks(self, mechanism: ExponentialHistogram, public: Public) -> tuple[str, ...]:
        """Where fewer records than the data hold can be drawn exactly."""
        if self.records is not None or mechanism.records >= mechanism.n:
            return ()
        most = "1 record is" if mechanism.records == 1 else f"{mechanism.records:,} records are"
        return (f"{most} the most that this loss can draw exactly on {mechanism.cells:,} cells.",)
