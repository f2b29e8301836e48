"""The perturbed histogram: every count gets independent noise; publish the noisy counts, or records sampled from them.

The noise is OpenDP's: exact samplers on integers, from a generator that the operating system seeds. What follows it (clipping
at 0, normalising, smoothing, sampling) is post-processing, done in exact integers. Proof: docs/proofs/histograms.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import CalibrationError, FormatError, ModelError
from privurn.exact_numbers import Number, exact
from privurn.mechanisms.histogram_sampling import check_sizes, check_smoothing, mostly_empty, sample_cells
from privurn.mechanisms.likelihood import NoisyCountsTerm, NoisyRecordsTerm, Numbers, whole_counts
from privurn.mechanisms.mechanism import PER_CALL, PER_NOISE, PER_RECORD, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.published import Content, Table
from privurn.mechanisms.recipe import Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import LARGEST_PRIOR_WEIGHT
from privurn.privacy.additive_noise import NoiseKind, noise_deviation, noisy_integers, simulated_noise
from privurn.privacy.calibration import round_up_to_rational
from privurn.privacy.entropy import Entropy
from privurn.privacy.histogram_calibration import smallest_scale
from privurn.privacy.laws.noisy_counts import STEPS, Noise, NoisyCountsProfile
from privurn.privacy.profile import Guarantee

Publish = Literal["records", "counts"]

MOST_CELLS = 5_000_000
"""Every cell gets noise, the empty ones too, at some microseconds each."""

LARGEST = 2**63 - 1


class NoisyCountsContent(Table):
    """All cells with a count on the lattice of its noise."""

    def __init__(self, domain: Mapping[str, Any], *, steps: int) -> None:
        super().__init__(domain)
        self.steps = steps

    def possible(self, draw: NDArray[np.int64], *beside: NDArray[np.float64]) -> bool:
        """Whole numbers of lattice steps, of 64 bits."""
        with np.errstate(over="ignore"):
            steps = beside[-1] * self.steps
        return bool((steps == np.rint(steps)).all() and (np.abs(steps) <= 2.0**63).all())


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram(Mechanism):
    """Counts of `cells` cells plus independent `noise` of the given `scale`; n = None: add-remove neighbours, n secret.

    `noise`: "discrete-laplace", P(k) proportional to e^(-|k|/scale) on the integers; "laplace", the same on multiples of
    1/1024; "discrete-gaussian", P(k) proportional to e^(-k^2/(2 scale^2)) on the integers.

    publish="counts": the noisy counts themselves, negative ones too; `records` is then the number of cells, one row each.
    publish="records": noisy counts below 0 become 0, and `records` independent records are drawn, each a cell with
    probability (1 - smoothing) count/total + smoothing/cells, or uniform where all counts are 0.

    The profile is that of the noisy counts: tight for publish="counts", an upper bound for records.
    """

    n: int | None
    cells: int
    records: int
    noise: Noise
    scale: float
    publish: Publish = "records"
    smoothing: Fraction = Fraction(0)

    adds_noise: ClassVar[bool] = True
    coarser: ClassVar[bool] = True
    in_words: ClassVar[str] = "counts of the cells with random noise added to each"
    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "perturbed-histogram": {},
        "perturbed-histogram, Gaussian": {"noise": "discrete-gaussian"},
        "perturbed-histogram, counts": {"publish": "counts", "records": None},
    }
    name: ClassVar[str] = "perturbed-histogram"

    def __post_init__(self) -> None:
        check_sizes(n=self.n, cells=self.cells, records=self.records)
        check_smoothing(self.smoothing, name="smoothing", positive=False)
        if self.publish not in ("records", "counts"):
            raise ModelError("publish must be 'records' or 'counts'.")
        if self.publish == "counts" and (self.records != self.cells or self.smoothing != 0):
            raise ModelError(
                "noisy counts are one row for each cell, without smoothing.", hint="Give records=cells, no smoothing"
            )
        if self.cells > MOST_CELLS:
            raise ModelError(
                f"a perturbed histogram adds noise to every cell, and at most {MOST_CELLS:,} are supported.",
                hint="Use a coarser domain, or an urn, in which empty cells cost nothing",
            )
        _ = self.profile  # checks noise and scale

    @property
    def profile(self) -> NoisyCountsProfile:
        """That of the noisy counts."""
        return NoisyCountsProfile(
            cells=self.cells,
            noise=self.noise,
            scale=self.scale,
            neighbouring=self.relation,
        )

    @property
    def rows(self) -> int:
        """Records, or one row for each cell."""
        return self.records

    @property
    def beside(self) -> tuple[str, ...]:
        """The noisy counts, where they are what is published."""
        return ("count",) if self.publish == "counts" else ()

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of the noise on one count."""
        kind, scale = lattice_noise(self.noise, self.scale)
        return noise_deviation(noise=kind, scale=scale) / STEPS[self.noise]

    @property
    def noise_share(self) -> float:
        """Share of the released records that noise would make if all cells but one were empty, on average and about."""
        if self.n is None:
            raise ModelError("this needs the number of confidential records, which is secret here.")
        if self.noise == "discrete-gaussian":
            kept = self.scale / np.sqrt(2.0 * np.pi)
        else:  # half the mean size of the noise, r/(1 - r^2)
            steps = STEPS[self.noise]
            kept = 0.5 / np.sinh(1.0 / (self.scale * steps)) / steps
        return float((self.cells - 1) * kept / (self.n + (self.cells - 1) * kept))

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Noise by OpenDP, whatever `entropy` is; records from the clipped counts by `entropy`."""
        self.check(counts)
        noisy = self.noisy_counts(counts)
        steps = STEPS[self.noise]
        if self.publish == "counts":
            return Drawn(np.arange(self.cells), weights=noisy if steps == 1 else noisy / steps, weight_name="count")
        return Drawn(
            sample_cells(
                np.maximum(noisy, 0),
                values=np.arange(self.cells),
                cells=self.cells,
                smoothing=self.smoothing,
                size=self.records,
                entropy=entropy,
            )
        )

    def noisy_counts(self, counts: CountTable) -> NDArray[np.int64]:
        """All counts with noise, in lattice steps (1/1024 for "laplace").

        A count whose steps would leave 64 bits (from 2^53 on) is cut off there first, which brings neighbours no farther apart.
        """
        kind, scale = lattice_noise(self.noise, self.scale)
        steps = STEPS[self.noise]
        return noisy_integers(np.minimum(counts.dense(self.cells), LARGEST // steps) * steps, noise=kind, scale=scale)

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[Any]:
        """Floating-point twin for simulation, never for a release: noisy counts, or how often each cell is drawn."""
        steps = STEPS[self.noise]
        kind, scale = lattice_noise(self.noise, self.scale)
        added = simulated_noise((self.cells,), noise=kind, scale=scale, rng=rng)
        noisy = (counts.dense(self.cells) * steps + added) / steps
        if self.publish == "counts":
            return noisy
        clipped = np.maximum(noisy, 0.0)
        uniform = np.full(self.cells, 1.0 / self.cells)
        shares = clipped / clipped.sum() if clipped.any() else uniform
        weight = float(self.smoothing)
        return rng.multinomial(self.records, (1.0 - weight) * shares + weight * uniform)

    def likelihood(self, published: Numbers) -> NoisyCountsTerm | NoisyRecordsTerm:
        """The noise of each count is independent; behind records the noisy counts are latent too."""
        if self.publish == "counts":
            return NoisyCountsTerm.of(published.values, noise=self.noise, scale=self.scale, cells=self.cells)
        return NoisyRecordsTerm(
            noise=self.noise,
            scale=self.scale,
            smoothing=float(self.smoothing),
            released=whole_counts(published.values, cells=self.cells, records=self.records),
        )

    @property
    def rows_are(self) -> str:
        """Counts or records."""
        return "noisy counts" if self.publish == "counts" else super().rows_are

    @property
    def error_sources(self) -> ErrorSources:
        """The noise, and its clipping."""
        deviation = f"a standard deviation of {self.noise_deviation:.3g} on each of the {self.cells:,} counts"
        cut = "negative counts that are taken as 0" if self.publish == "counts" else "noise that is cut off at 0"
        return ErrorSources(shrinkage=f"{cut}, which fills empty cells", noise=f"noise: {deviation}")

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """That of the noise, which grows by k^2 for k records of one person (Bun and Steinke 2016, proposition 1.9)."""
        return self.profile.zcdp * guarantee.contributions**2

    def content(self, domain: Mapping[str, Any]) -> Content:
        """Records, or noisy counts."""
        return NoisyCountsContent(domain, steps=STEPS[self.noise]) if self.beside else super().content(domain)

    def seconds(self, *, contributions: int) -> float:
        """Every count is a call of OpenDP's sampler."""
        return PER_RECORD * self.records + PER_CALL + PER_NOISE * self.cells

    def parameters(self) -> dict[str, Any]:
        """The fields, and the lattice of the noise."""
        return {**super().parameters(), "steps": STEPS[self.noise]}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        if int(data["steps"]) != STEPS[data["noise"]]:
            raise ModelError("the noise is on another lattice than this version's.")
        return super().from_parameters(data)


def lattice_noise(noise: Noise, scale: float) -> tuple[NoiseKind, float]:
    """What is added to the counts in lattice steps: the kind of the noise, and its scale in steps."""
    return "gaussian" if noise == "discrete-gaussian" else "laplace", scale * STEPS[noise]


def calibrate_perturbed_histogram(
    *,
    n: int | None,
    cells: int,
    guarantee: Guarantee,
    records: int | None = None,
    noise: Noise = "discrete-laplace",
    publish: Publish = "records",
    smoothing: Fraction = Fraction(0),
) -> PerturbedHistogram:
    """Least noise for the guarantee; n records are drawn unless `records` says otherwise. n is ignored where it is secret.

    >>> calibrate_perturbed_histogram(n=100, cells=5, guarantee=Guarantee(epsilon=0.5, delta=0.0)).scale
    4.0
    """
    secret = guarantee.neighbouring == "add-remove"
    rows = cells if publish == "counts" else records if records is not None else None if secret else n
    if rows is None:
        raise ModelError("the number of released records must be given where n is secret.", hint="For example records=1000")
    single = guarantee.per_record()
    scale = smallest_scale(
        cells=cells, noise=noise, epsilon=single.epsilon, delta=single.delta, neighbouring=guarantee.neighbouring
    )
    made = PerturbedHistogram(
        n=None if secret else n,
        cells=cells,
        records=rows,
        noise=noise,
        scale=float(round_up_to_rational(scale, digits=7)),
        publish=publish,
        smoothing=smoothing,
    )
    kept = made.profile.delta(single.epsilon) <= single.delta  # more Gaussian noise need not be more private
    return made if kept else replace(made, scale=scale)


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyCounts(Recipe):
    """Counts with the least noise that is private, or records drawn from them. Left out: as many as confidential ones."""

    alias: ClassVar[str] = "perturbed-histogram"
    offered: ClassVar[str | None] = "records from noisy counts at the same guarantee"
    keeps_n_secret: ClassVar[bool] = True

    noise: Noise = option("discrete-laplace (default), laplace or discrete-gaussian.", default="discrete-laplace")
    publish: Publish = option("records (default) or the noisy counts themselves.", default="records")
    smoothing: Number = option("Weight of the uniform, 0 where left out.", default=0)

    @property
    def publishes_records(self) -> bool:
        """Or else the noisy counts."""
        return self.publish != "counts"

    def check(self) -> None:
        """Words that are known, and no number of records beside counts."""
        super().check()
        if self.noise not in STEPS:
            raise FormatError(f"the noise {self.noise!r} is not known.", hint=", ".join(STEPS))
        if self.publish not in ("records", "counts"):
            raise FormatError("what to publish is not known.", hint="records or counts")
        if self.publish == "counts" and self.records is not None:
            raise ModelError("noisy counts are one row for each cell.", hint="Leave the number of records out")

    def planned(self, public: Public) -> Iterator[Option]:
        """With either noise; a noisy count has no effective sample size."""
        noises: tuple[Noise, ...] = ("discrete-laplace", "discrete-gaussian")
        for noise in noises[: 1 if public.guarantee.delta == 0.0 else 2]:
            asked = replace(self, noise=noise)
            made = asked.calibrate(public)
            remark = f"{noise} noise, standard deviation {made.noise_deviation:.4g} on each count"
            yield Option(mechanism=self.alias, records=made.records, remark=remark, made=made, asked=asked)

    def calibrate(self, public: Public) -> PerturbedHistogram:
        """The least noise."""
        if public.known_cells > MOST_CELLS:
            raise ModelError(
                f"a perturbed histogram adds noise to every cell, and at most {MOST_CELLS:,} are supported.", alternatives=()
            )
        try:
            return calibrate_perturbed_histogram(
                n=public.n,
                cells=public.known_cells,
                guarantee=public.guarantee,
                records=self.records,
                noise=self.noise,
                publish=self.publish,
                smoothing=exact(self.smoothing, name="smoothing"),
            )
        except CalibrationError as error:  # Gaussian noise without delta: the noise is this recipe's, delta the release's
            found = [
                replace(each, changes={"mechanism": replace(self, **each.changes)} if "noise" in each.changes else each.changes)
                for each in error.alternatives or ()
            ]
            raise CalibrationError(error.message, alternatives=found) from None

    def remarks(self, mechanism: PerturbedHistogram, public: Public) -> tuple[str, ...]:
        """What noise does to empty cells."""
        found = mostly_empty(n=public.n, cells=mechanism.cells)
        if public.n is not None and self.publishes_records and mechanism.noise_share > LARGEST_PRIOR_WEIGHT:
            share = f"up to about {mechanism.noise_share:.0%} of the released records."
            found += (f"Where most cells are empty, noise in them makes {share}",)
        return found
