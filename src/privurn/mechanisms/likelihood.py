"""What was published says about the confidential data: all that inference may ask of a mechanism.

`Mechanism.likelihood` turns the published numbers into one of five kinds. A `CountTerm` is the likelihood of the confidential
counts of cells, a product over the cells: C_i are the confidential counts, k cells, n = sum C, and factors that depend on
neither C nor a latent number are left out. `TreeMeasurements` are noisy counts of ranges
of cells, a `MeasuredTable` noisy counts of several marginals. A `RecordDensity` is the
density of each record's output given that record, and a `SumDensity` that of noisy sums given the exact ones. Each model of
inference is for one of the kinds.

Likelihoods of counts say as well what can be said without a prior: `unbiased_sums` estimates sums over the cells.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.mechanisms.clipped_records import ClippedRecords
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.mechanisms.tree_measurements import Leaves, TreeMeasurements, Unbiased
from privurn.privacy.additive_noise import NoiseKind, noise_deviation
from privurn.privacy.laws.noisy_counts import STEPS, Noise

if TYPE_CHECKING:
    from privurn.mechanisms.local.channel import Channel

Kind = Literal["counts", "tree", "table", "records", "sums"]

OFF_LATTICE = 1e-6
"""A published number that is further from its lattice than this share of a step was not made by the mechanism."""

LARGEST_SCALE = 1e12

Floats = NDArray[np.float64]

KINDS: dict[Noise, NoiseKind] = {"laplace": "laplace", "discrete-laplace": "laplace", "discrete-gaussian": "gaussian"}
"""The law of noise on whole numbers of lattice steps."""


class WithoutEstimate:
    """A likelihood of counts from which no unbiased estimate follows."""

    def unbiased_sums(self, weights: Floats, *, n: int | None) -> Unbiased | None:
        """Unbiased estimates of sum_i weights_i C_i, one for each row of weights, and of their variances given C; or None."""
        return None

    def as_leaves(self, *, n: int | None) -> Leaves | None:
        """The same as a law of each cell's count by itself, as the leaves of a tree have it; None where it is none."""
        return None


@dataclass(frozen=True, eq=False)
class Numbers:
    """What was published, as plain numbers.

    `values`: the records released in each cell; or the number beside each cell, one row for each draw where there are several;
    or one entry for each record; or sums. `labels` name the cells where nobody listed them beforehand. `n` and `noisy_n` are
    what was published of the number of records beside the values.
    """

    values: NDArray[Any]
    labels: tuple[Any, ...] = ()
    n: int | None = None
    noisy_n: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class UrnTerm:
    """S_i records of cell i from the urn: Gamma(A + n)/Gamma(A + n + m) prod_i Gamma(alpha_i + C_i + S_i)/Gamma(alpha_i + C_i).

    A = sum alpha, m = sum S. Each row of `released` is a separate run of the urn.
    """

    alpha: NDArray[np.float64]
    released: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.alpha.ndim != 1 or not np.all(np.isfinite(self.alpha)) or np.any(self.alpha < 0.0):
            raise ModelError("alpha needs one number, 0 or more, for each cell.")
        _check_released(self.released, cells=len(self.alpha), axes=2)

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.alpha)

    def unbiased_sums(self, weights: Floats, *, n: int | None) -> Unbiased | None:
        """A S/m - alpha for C, A all records of the urn, which is secret where n is; runs of the urn are averaged.

        E[v | C] = q (A + 1)^-1 A (m - 1)/m for the variance v of the released weights and q that of the urn's.
        """
        records = self.released.sum(axis=1).astype(np.float64)
        if n is None or records.min() < 2:
            return None
        total = n + float(self.alpha.sum())
        share = self.released / records[:, None]
        means = share @ weights.T
        spread = share @ (weights**2).T - means**2
        variances = total * spread * ((total + records) / (records - 1.0))[:, None]
        return total * means.mean(axis=0) - weights @ self.alpha, variances.mean(axis=0) / len(records)

    def as_leaves(self, *, n: int | None) -> Leaves | None:
        """Where n is public, for one run of an urn with the same prior in each cell."""
        alpha = float(self.alpha[0])
        if not n or len(self.released) > 1 or not self.released.any() or alpha <= 0.0 or np.any(self.alpha != alpha):
            return None
        return Leaves(self.released[0], ("urn", alpha))


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureTerm:
    """S_i records of cell i, each uniform with probability `weight`: prod_i ((1 - weight) C_i/n + weight/k)^S_i, n public."""

    weight: Fraction | float
    released: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not 0.0 < self.weight <= 1.0:
            raise ModelError("the weight of the uniform must be in (0, 1].")
        _check_released(self.released, cells=len(self.released), axes=1)

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.released)

    def unbiased_sums(self, weights: Floats, *, n: int | None) -> Unbiased | None:
        """For C: n (S/m - weight/k)/(1 - weight)."""
        records, kept = float(self.released.sum()), 1.0 - float(self.weight)
        if n is None or records < 2 or kept <= 0.0:
            return None
        share = self.released / records
        means = weights @ share
        spread = weights**2 @ share - means**2
        values = n * (means - float(self.weight) * weights.mean(axis=1)) / kept
        return values, (n / kept) ** 2 * spread / (records - 1.0)

    def as_leaves(self, *, n: int | None) -> Leaves | None:
        """Shares of the counts and of the uniform."""
        if not n or not self.released.any() or self.weight >= 1.0:
            return None
        return Leaves(self.released, ("mixed", float(self.weight) * n / (self.cells * (1.0 - float(self.weight)))))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCountsTerm:
    """Published noisy counts: prod_i P(noisy_i - steps C_i), P the law of whole-number `noise`; `noisy` in lattice steps."""

    noise: Noise
    scale: float
    noisy: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check_noise(self.noise, self.scale)
        if self.noisy.ndim != 1 or self.noisy.dtype != np.int64:
            raise ModelError("noisy counts must be whole numbers of lattice steps, one for each cell.")

    @classmethod
    def of(cls, counts: NDArray[Any], *, noise: Noise, scale: float, cells: int) -> "NoisyCountsTerm":
        """From the published counts of so many cells."""
        noisy = whole_counts(counts * float(STEPS[noise]), cells=cells, signed=True)
        return cls(noise=noise, scale=scale, noisy=noisy)

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.noisy)

    def unbiased_sums(self, weights: Floats, *, n: int | None) -> Unbiased:
        """The noisy counts; where n is public, moved by the same number each so that they sum to it."""
        steps = STEPS[self.noise]
        counts = self.noisy / steps
        variance = (noise_deviation(noise=KINDS[self.noise], scale=self.scale * steps) / steps) ** 2
        if n is None:
            return weights @ counts, variance * (weights**2).sum(axis=1)
        level = weights.mean(axis=1, keepdims=True)
        values = (weights - level) @ counts + level[:, 0] * n
        return values, variance * ((weights - level) ** 2).sum(axis=1)

    def as_leaves(self, *, n: int | None) -> Leaves:
        """As they are."""
        return Leaves(self.noisy / STEPS[self.noise], (KINDS[self.noise], self.scale))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyRecordsTerm(WithoutEstimate):
    """S_i records of cell i drawn from noisy counts D that are not published, and so are latent.

    P(D_i - steps C_i) for each cell, and prod_i ((1 - smoothing) max(D_i, 0)/T + smoothing/k)^S_i with T = sum max(D_i, 0);
    uniform where T = 0.
    """

    noise: Noise
    scale: float
    smoothing: float
    released: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check_noise(self.noise, self.scale)
        if not 0.0 <= self.smoothing <= 1.0:
            raise ModelError("smoothing must be in [0, 1].")
        _check_released(self.released, cells=len(self.released), axes=1)

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.released)

    def as_leaves(self, *, n: int | None) -> Leaves | None:
        """Where n is public and nothing is smoothed: approximate, by a few likely T."""
        if not n or self.smoothing:
            return None
        steps = STEPS[self.noise]
        laws = ClippedRecords.of(self.released, noise=KINDS[self.noise], scale=self.scale * steps, steps=steps, n=n)
        return Leaves(self.released, ("clipped", self.scale), laws) if laws else None


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenUrnTerm(WithoutEstimate):
    """Records of labels that nobody listed, from the urn that opens new ones at a public rate: no cells, no prior but its own.

    `of_data`: which labels the data hold, as their names show. `all_published` = False: only draws that copy a value of the
    data were published.
    """

    n: int
    released: NDArray[np.int64]
    strength: float
    discount: float
    of_data: NDArray[np.bool_]
    all_published: bool = True


CountTerm = UrnTerm | MixtureTerm | NoisyCountsTerm | NoisyRecordsTerm | OpenUrnTerm


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordDensity:
    """Entry i of `released` has the density that `channel` gives it where record i is y_i, independently of all others."""

    released: NDArray[Any]
    channel: "Channel"


class SumDensity(Protocol):
    """Noisy sums: what the exact ones make of the published numbers, whatever the records are."""

    @property
    def model(self) -> str:
        """Of which model of the records these sums are all that matters."""

    @property
    def values(self) -> NDArray[np.float64]:
        """The published sums."""

    def log_density(self, exact_sums: NDArray[np.float64]) -> float:
        """Log probability of the published sums if the exact ones were these."""


Likelihood = CountTerm | TreeMeasurements | MeasuredTable | RecordDensity | SumDensity


def whole_counts(values: Any, *, cells: int, records: int | None = None, signed: bool = False) -> NDArray[np.int64]:
    """Published numbers as integers, one for each cell and `records` in all, checked."""
    values = np.asarray(values)
    if values.shape != (cells,) or values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ModelError(f"released counts must be numbers, one for each of the {cells:,} cells.")
    rounded = np.rint(values)
    if np.any(np.abs(values - rounded) > OFF_LATTICE * np.maximum(1.0, np.abs(rounded) * 1e-6)):
        raise ModelError("the released numbers are not ones that the mechanism can publish.")
    whole: NDArray[np.int64] = rounded.astype(np.int64)
    if not signed and np.any(whole < 0):
        raise ModelError("released counts must not be negative.")
    if records is not None and whole.sum() != records:
        raise ModelError(f"the released counts do not add up to the {records:,} records that the mechanism publishes.")
    return whole


def _check_released(released: NDArray[np.int64], *, cells: int, axes: int) -> None:
    if released.ndim != axes or released.dtype != np.int64 or released.shape[-1] != cells or np.any(released < 0):
        raise ModelError("released counts must be whole numbers, 0 or more, one for each cell.")


def _check_noise(noise: Noise, scale: float) -> None:
    if noise not in STEPS:
        raise ModelError(f"the noise {noise!r} is not known.", hint=", ".join(STEPS))
    if not 0.0 < scale <= LARGEST_SCALE:
        raise ModelError(f"the scale of noise must be positive and at most {LARGEST_SCALE:g}.")
