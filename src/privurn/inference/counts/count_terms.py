"""What one release says about the confidential counts: a likelihood that is a product over cells.

C_i are the confidential counts, k cells, n = sum C. Factors that depend on neither C nor a latent number are left out.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.mechanisms.sums.table_statistic import TableStatistic
from privurn.privacy.laws.noisy_counts import STEPS, Noise

OFF_LATTICE = 1e-6
"""A published number that is further from its lattice than this share of a step was not made by the mechanism."""

LARGEST_SCALE = 1e12


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


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureTerm:
    """S_i records of cell i, each uniform with probability `weight`: prod_i ((1 - weight) C_i/n + weight/k)^S_i, n public."""

    weight: float
    released: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not 0.0 < self.weight <= 1.0:
            raise ModelError("the weight of the uniform must be in (0, 1].")
        _check_released(self.released, cells=len(self.released), axes=1)

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.released)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCountsTerm:
    """Published noisy counts: prod_i P(noisy_i - steps C_i), P as in `PerturbedHistogram`; `noisy` in lattice steps."""

    noise: Noise
    scale: float
    noisy: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check_noise(self.noise, self.scale)
        if self.noisy.ndim != 1 or self.noisy.dtype != np.int64:
            raise ModelError("noisy counts must be whole numbers of lattice steps, one for each cell.")

    @property
    def cells(self) -> int:
        """Cells."""
        return len(self.noisy)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyRecordsTerm:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySizeTerm:
    """The number of all records plus noise: P(noisy - n) proportional to e^(-|z|/scale), or to e^(-z^2/(2 scale^2))."""

    gaussian: bool
    scale: float
    noisy: float

    def __post_init__(self) -> None:
        if not (0.0 < self.scale <= LARGEST_SCALE and math.isfinite(self.noisy)):
            raise ModelError(f"a noisy n is finite, and the scale of its noise positive and at most {LARGEST_SCALE:g}.")


Term = UrnTerm | MixtureTerm | NoisyCountsTerm | NoisyRecordsTerm | NoisySizeTerm


def term_for(mechanism: Mechanism | StatisticMechanism, *, counts: NDArray[Any]) -> Term:
    """The likelihood of what a mechanism published.

    `counts`: the number of records released in each cell; for published noisy counts, these; for posterior samples, the
    probabilities, one row for each draw.

    >>> from fractions import Fraction
    >>> urn = DirichletMultinomial(n=10, cells=2, alpha=Fraction(3), records=4)
    >>> term_for(urn, counts=np.array([1, 3])).alpha
    array([3., 3.])
    """
    given = np.asarray(counts)
    if isinstance(mechanism, DiscoveredUrn):  # the labels are taken as known: what choosing them tells is not used
        return term_for(mechanism.urn, counts=given)
    if isinstance(mechanism, DirichletMultinomial):
        released = _whole(given, cells=mechanism.cells, records=mechanism.records)
        return UrnTerm(alpha=_alphas(mechanism), released=released[None, :])
    if isinstance(mechanism, PosteriorSample):
        if given.size != mechanism.draws * mechanism.cells:
            raise ModelError("posterior samples need one probability for each draw and cell.")
        rows = given.reshape(mechanism.draws, mechanism.cells) * float(mechanism.records)
        vectors = [_whole(row, cells=mechanism.cells, records=mechanism.records) for row in rows]
        return UrnTerm(alpha=_alphas(mechanism.urn), released=np.stack(vectors))
    if isinstance(mechanism, SmoothedHistogram):
        released = _whole(given, cells=mechanism.cells, records=mechanism.records)
        return MixtureTerm(weight=float(mechanism.weight), released=released)
    if isinstance(mechanism, PerturbedHistogram):
        return _noisy_term(mechanism, given)
    if isinstance(mechanism, TableStatistic):
        noise = mechanism.noise_name
        noisy = _whole(given * float(STEPS[noise]), cells=mechanism.n_entries, signed=True)
        return NoisyCountsTerm(noise=noise, scale=mechanism.noise.scale, noisy=noisy)
    if isinstance(mechanism, PitmanYor) and isinstance(mechanism.base, FiniteBase) and mechanism.discount == 0:
        return _process_term(mechanism, mechanism.base, given)
    raise ModelError(
        f"there is no likelihood of counts for a release by {mechanism.name}.",
        hint="There is one for urns without discount and for histograms, on a public domain",
    )


def _noisy_term(mechanism: PerturbedHistogram, given: NDArray[Any]) -> NoisyCountsTerm | NoisyRecordsTerm:
    if mechanism.publish == "counts":
        noisy = _whole(given * float(STEPS[mechanism.noise]), cells=mechanism.cells, signed=True)
        return NoisyCountsTerm(noise=mechanism.noise, scale=mechanism.scale, noisy=noisy)
    return NoisyRecordsTerm(
        noise=mechanism.noise,
        scale=mechanism.scale,
        smoothing=float(mechanism.smoothing),
        released=_whole(given, cells=mechanism.cells, records=mechanism.records),
    )


def _process_term(mechanism: PitmanYor, base: FiniteBase, given: NDArray[Any]) -> UrnTerm:
    """A Dirichlet process with a finite base is an urn with alpha = strength x weight; of its old values alone, with 0."""
    if mechanism.old_values_only:
        return UrnTerm(alpha=np.zeros(base.cells), released=_whole(given, cells=base.cells)[None, :])
    weights = np.ones(base.cells) if base.weights is None else np.array(base.weights, np.float64)
    alpha = float(mechanism.strength) * weights / weights.sum()
    return UrnTerm(alpha=alpha, released=_whole(given, cells=base.cells, records=mechanism.records)[None, :])


def _alphas(urn: DirichletMultinomial) -> NDArray[np.float64]:
    each = urn.alpha if isinstance(urn.alpha, tuple) else (urn.alpha,) * urn.cells
    return np.array([float(alpha) for alpha in each])


def _whole(values: NDArray[Any], *, cells: int, records: int | None = None, signed: bool = False) -> NDArray[np.int64]:
    """Published numbers as integers, checked."""
    if values.shape != (cells,) or values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ModelError("released counts must be numbers, one for each cell.")
    rounded = np.rint(values)
    if np.any(np.abs(values - rounded) > OFF_LATTICE * np.maximum(1.0, np.abs(rounded) * 1e-6)):
        raise ModelError("the released numbers are not ones that the mechanism can publish.")
    whole: NDArray[np.int64] = rounded.astype(np.int64)
    if not signed and np.any(whole < 0):
        raise ModelError("released counts must not be negative.")
    if records is not None and whole.sum() != records:
        raise ModelError("the release holds another number of records than its mechanism publishes.")
    return whole


def _check_released(released: NDArray[np.int64], *, cells: int, axes: int) -> None:
    if released.ndim != axes or released.dtype != np.int64 or released.shape[-1] != cells or np.any(released < 0):
        raise ModelError("released counts must be whole numbers, 0 or more, one for each cell.")


def _check_noise(noise: Noise, scale: float) -> None:
    if noise not in STEPS:
        raise ModelError(f"the noise {noise!r} is not known.", hint=", ".join(STEPS))
    if not 0.0 < scale <= LARGEST_SCALE:
        raise ModelError(f"the scale of noise must be positive and at most {LARGEST_SCALE:g}.")
