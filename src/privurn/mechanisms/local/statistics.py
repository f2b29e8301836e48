"""Record-additive statistics: sums over the records of a bounded vector t(y), in whole lattice units.

A record touches few coordinates (its bin, its cell of each marginal, or all of a few moments), so replacing one is O(1).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.local.channel import as_numbers, check_bounds, clamped, whole_number

MOST_CELLS = 5_000_000
"""Every cell gets noise, the empty ones too."""


def equal_bins(values: ArrayLike, *, bounds: tuple[float, float], bins: int) -> NDArray[np.int64]:
    """Number of the equal bin that each clamped number falls into; the last bin is closed."""
    lower, upper = bounds
    share = (clamped(values, bounds) - lower) / (upper - lower)
    return np.clip(np.floor(share * bins), 0, bins - 1).astype(np.int64)


class Statistic(ABC):
    """t(y) in lattice units of 1/`unit`; moving one record moves the sum by at most `l1` (sum) and `l2_squared` (squares)."""

    kind: ClassVar[str]
    dimension: int
    unit: int = 1
    """Lattice steps that make 1 in the published numbers."""

    @property
    @abstractmethod
    def l1(self) -> int:
        """Largest L1 distance between t(y) and t(y'), attained, in lattice units."""

    @property
    @abstractmethod
    def l2_squared(self) -> int:
        """Largest squared Euclidean distance, attained, in squared lattice units."""

    @abstractmethod
    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and amounts of each record, shape (n, w)."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Plain data with the `kind`."""


@dataclass(frozen=True, kw_only=True)
class HistogramStatistic(Statistic):
    """Counts of `bins` equal bins between `bounds`: a replaced record moves two counts by one each."""

    bounds: tuple[float, float]
    bins: int
    kind: ClassVar[str] = "histogram"
    l1: ClassVar[int] = 2
    l2_squared: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        bins = whole_number("bins", self.bins, least=2, most=MOST_CELLS, hint="For example bins=20")
        object.__setattr__(self, "bins", bins)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """One coordinate for each bin."""
        return self.bins

    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """1 in the record's bin."""
        positions = equal_bins(data, bounds=self.bounds, bins=self.bins)[:, None]
        return positions, np.ones_like(positions)

    def parameters(self) -> dict[str, Any]:
        """Bounds and bins."""
        return {"kind": self.kind, "lower": self.bounds[0], "upper": self.bounds[1], "bins": self.bins}


@dataclass(frozen=True, kw_only=True)
class MomentsStatistic(Statistic):
    """Sums of u, u^2, ..., u^degree with u the clamped record mapped from `bounds` to [0, 1], rounded to 1/`unit`.

    A record at the lower bound replaced by one at the upper bound moves every sum by 1, and no pair moves one by more.
    """

    bounds: tuple[float, float]
    degree: int = 2
    unit: int = 2**20
    kind: ClassVar[str] = "moments"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        degree = whole_number("degree", self.degree, least=1, most=64, hint="For example degree=2")
        object.__setattr__(self, "degree", degree)
        unit = whole_number("unit", self.unit, least=1, most=2**30, hint="The default is 2**20")
        object.__setattr__(self, "unit", unit)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """One coordinate for each power."""
        return self.degree

    @property
    def l1(self) -> int:
        """Every sum moves by 1."""
        return self.degree * self.unit

    @property
    def l2_squared(self) -> int:
        """Every sum moves by 1."""
        return self.degree * self.unit**2

    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All powers of every record."""
        lower, upper = self.bounds
        share = (clamped(data, self.bounds) - lower) / (upper - lower)
        powers = np.clip(share[:, None] ** np.arange(1, self.degree + 1), 0.0, 1.0)
        amounts = np.rint(powers * self.unit).astype(np.int64)
        return np.broadcast_to(np.arange(self.degree), amounts.shape).copy(), amounts

    def parameters(self) -> dict[str, Any]:
        """Bounds, degree and lattice."""
        lower, upper = self.bounds
        return {"kind": self.kind, "lower": lower, "upper": upper, "degree": self.degree, "unit": self.unit}


@dataclass(frozen=True, kw_only=True)
class MarginalsStatistic(Statistic):
    """Tables of counts over chosen sets of columns of codes 0..size-1; each replaced record moves two counts of each table.

    `sizes` are the numbers of codes in the columns; `marginals` are tuples of column numbers. Coordinates run through the
    tables in order, the first column of a table fastest. Data have shape (n, columns).
    """

    sizes: tuple[int, ...]
    marginals: tuple[tuple[int, ...], ...]
    kind: ClassVar[str] = "marginals"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "marginals", tuple(tuple(int(c) for c in each) for each in self.marginals))
        if not self.sizes or min(self.sizes) < 2:
            raise ModelError("every column needs at least two codes.", hint="For example sizes=(2, 3)")
        known = range(len(self.sizes))
        if not self.marginals or any(not each or len(set(each)) != len(each) for each in self.marginals):
            raise ModelError("marginals must name columns, each once.", hint="For example marginals=((0,), (0, 1))")
        if any(column not in known for each in self.marginals for column in each):
            raise ModelError("a marginal names a column that is not there.", hint=f"Columns are 0..{len(self.sizes) - 1}")
        if self.dimension > MOST_CELLS:
            raise ModelError(f"the marginals have more than {MOST_CELLS:,} cells together.", hint="Name smaller marginals")

    def _cells(self) -> list[int]:
        return [math.prod(self.sizes[column] for column in each) for each in self.marginals]

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Cells of all tables."""
        return sum(self._cells())

    @property
    def l1(self) -> int:
        """Two counts of each table."""
        return 2 * len(self.marginals)

    @property
    def l2_squared(self) -> int:
        """Two counts of each table."""
        return 2 * len(self.marginals)

    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """1 in the record's cell of each table."""
        values = as_numbers(data)
        if values.ndim != 2 or values.shape[1] != len(self.sizes):
            raise DomainError("marginals need one column of codes for each of `sizes`.")
        codes = np.stack([np.rint(clamped(values[:, c], (0.0, size - 1.0))) for c, size in enumerate(self.sizes)], axis=1)
        positions = np.empty((len(values), len(self.marginals)), np.int64)
        first = 0
        for i, (each, cells) in enumerate(zip(self.marginals, self._cells(), strict=True)):
            radix = np.cumprod([1, *(self.sizes[column] for column in each[:-1])])
            positions[:, i] = first + codes[:, list(each)].astype(np.int64) @ radix
            first += cells
        return positions, np.ones_like(positions)

    def parameters(self) -> dict[str, Any]:
        """Sizes and marginals."""
        return {"kind": self.kind, "sizes": list(self.sizes), "marginals": [list(each) for each in self.marginals]}
