"""Noisy moments of clamped columns: the sufficient statistic of linear regression, and of a normal mean.

Sensitivities, d columns mapped to [-1, 1] (docs/proofs/noisy-statistics.md, section 2):

    relation      squares       L1                      Euclidean, squared
    add-remove    plain         d (d + 3)/2             d (d + 3)/2
    add-remove    complement    d (d + 1)/2  (*)        d (d + 1)/2
    replace-one   either        d (d + 2)^2/(2 (d + 1)) 4 floor((d + 1)^2/4)

(*) 5/4 for d = 1. With d = p + 1 the first line is p^2/2 + 5p/2 + 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError, ModelError
from privurn.exact_numbers import exact
from privurn.mechanisms.sums.calibrating import Budget, with_least_noise, with_noise
from privurn.mechanisms.sums.noise_law import LARGEST_UNITS, NoiseLaw
from privurn.mechanisms.sums.number_statistic import NumberStatistic
from privurn.mechanisms.sums.told import ColumnBounds, Covariates, Missing, Response, Squares
from privurn.tables.dialects import Dialect, double

RESOLUTION = 20
"""Clamped columns are rounded to multiples of 2^-20 of half their range."""

MOST_COLUMNS = 200


@dataclass(frozen=True, kw_only=True)
class RegressionStatistic(NumberStatistic):
    """Sums of z_j and of z_j z_k over all records, z the columns (covariates, then response) clamped and mapped to [-1, 1].

    z_j = (2 v - lower_j - upper_j)/(upper_j - lower_j), clipped to [-1, 1] and rounded to multiples of 2^-resolution; what
    is no number becomes 0. Entries: with z_0 = 1, the products z_j z_k for 0 <= j <= k, row by row, without (0, 0), which is n.

    squares="complement" subtracts 1 from every z_j^2 (j >= 1), so that a record at the bounds, which moves all other entries
    most, does not move these. Noise falls from d (d + 3)/2 to d (d + 1)/2 under add-remove, but the sums of squares are then
    known only as well as n is: worth it where epsilon_n is at least a tenth of epsilon. Under replace-one nothing changes.
    """

    response: str
    covariates: tuple[str, ...] = ()
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    squares: Squares = "plain"
    resolution: int = RESOLUTION
    model: ClassVar[str] = "regression"
    record_a_column: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(self.columns, self.lower, self.upper)
        object.__setattr__(self, "lower", tuple(float(each) for each in self.lower))
        object.__setattr__(self, "upper", tuple(float(each) for each in self.upper))
        if self.squares not in ("plain", "complement"):
            raise ModelError("squares must be 'plain' or 'complement'.")
        if not 1 <= self.resolution <= 24 or self.noise.step != 4.0**-self.resolution:
            raise ModelError("the noise must be on the lattice of the products.", hint="step = 4^-resolution")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        """Covariates, then the response."""
        return (*self.covariates, self.response)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and second index of each entry, 0 standing for the constant 1."""
        first, second = np.triu_indices(len(self.columns) + 1)
        return first[1:], second[1:]

    @property
    def names(self) -> tuple[str, ...]:
        """A product is written a*b."""
        named = ("1", *self.columns)
        return tuple(named[k] if j == 0 else f"{named[j]}*{named[k]}" for j, k in zip(*self.pairs, strict=True))

    @property
    def offsets(self) -> NDArray[np.float64]:
        """1 for the squares where they are complements."""
        first, second = self.pairs
        return np.where((first == second) & (self.squares == "complement"), 1.0, 0.0)

    @property
    def l1(self) -> Fraction:
        """Table at the top of the module."""
        d = len(self.columns)
        if self.neighbouring == "replace-one":
            return Fraction(d * (d + 2) ** 2, 2 * (d + 1))
        if self.squares == "plain":
            return Fraction(d * (d + 3), 2)
        return Fraction(d * (d + 1), 2) if d > 1 else Fraction(5, 4)

    @property
    def l1_units(self) -> int:
        """The rounded z are points of [-1, 1] too, so the bound for all of them holds, rounded down to the lattice."""
        return int(self.l1 * 4**self.resolution)

    @property
    def l2_squared_units(self) -> int:
        """Table at the top of the module."""
        d = len(self.columns)
        if self.neighbouring == "replace-one":
            squared = 4 * ((d + 1) ** 2 // 4)
        else:
            squared = d * (d + (3 if self.squares == "plain" else 1)) // 2
        return int(squared * 16**self.resolution)

    def standardised(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's z in steps of 2^-resolution."""
        low, high = np.array(self.lower), np.array(self.upper)
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.clip((records - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0)
        return np.rint(np.where(np.isnan(z), 0.0, z) * 2.0**self.resolution).astype(np.int64)

    def record_units(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's vector in lattice steps: exact products of whole numbers."""
        one = np.int64(2**self.resolution)
        z = np.column_stack([np.full(len(records), one), self.standardised(records)])
        first, second = self.pairs
        return np.asarray(z[:, first] * z[:, second] - self.offsets.astype(np.int64) * one * one, np.int64)

    def in_sql(self, dialect: Dialect) -> tuple[list[str], list[str]]:
        """The same, operation by operation: engines round as IEEE 754 has it."""
        whole = []
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            z = f"(x{i} - {double(low)}) / {double(high - low)} * {double(2.0)} - {double(1.0)}"
            inside = f"least(greatest({z}, {double(-1.0)}), {double(1.0)}) * {double(2.0**self.resolution)}"
            whole.append(f"CASE WHEN x{i} IS NULL THEN 0 ELSE {dialect.nearest(inside)} END")
        one, offsets = 2**self.resolution, self.offsets.astype(np.int64)
        named = (f"CAST({one} AS BIGINT)", *(f"z{i}" for i in range(len(self.columns))))
        pairs = zip(*self.pairs, offsets, strict=True)
        return whole, [f"{named[j]} * {named[k]} - CAST({offset * one * one} AS BIGINT)" for j, k, offset in pairs]

    def hidden_by_noise(self, values: NDArray[np.float64], n: float) -> list[str]:
        """Columns whose variance is smaller than twice the noise on their mean square."""
        first, second = self.pairs
        spread = (values + n * self.offsets)[first == second] / n - (values[first == 0] / n) ** 2
        doubt = 2.0 * self.noise.deviation / n
        return [name for name, each in zip(self.columns, spread, strict=True) if each < doubt]

    @classmethod
    def calibrated(
        cls,
        *,
        response: Response,
        covariates: Covariates = (),
        bounds: ColumnBounds,
        budget: Budget,
        squares: Squares = "plain",
        missing: Missing = "error",
    ) -> "RegressionStatistic":
        """The mechanism with the least noise for the budget. `bounds`: for each column, or one pair for all.

        >>> budget = Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")
        >>> made = RegressionStatistic.calibrated(response="pay", covariates=("age", "years"), bounds=(-5, 5), budget=budget)
        >>> made.noise.scale, made.size_noise.scale
        (9.0, 10.0)
        """
        columns = (*covariates, response)
        lower, upper = column_bounds(bounds, columns)
        if budget.noise == "discrete-laplace":
            raise ModelError(
                "products of clamped numbers are not whole numbers.", hint="noise='laplace', which is exact on a fine lattice"
            )
        resolution = RESOLUTION

        def make(noise: NoiseLaw, size_noise: NoiseLaw | None) -> "RegressionStatistic":
            named = {"response": response, "covariates": tuple(covariates), "lower": lower, "upper": upper, "squares": squares}
            return with_noise(cls, budget, **named, resolution=resolution, missing=missing)(noise, size_noise)

        units = budget.contributions * float(make(NoiseLaw(kind="laplace", scale=1.0, step=4.0**-resolution), None).l1)
        while resolution > 8 and units / (0.01 * budget.sums) * 4.0**resolution > LARGEST_UNITS:
            resolution -= 1  # more noise than 64 bits hold on so fine a lattice
        return with_least_noise(make, budget=budget, step=4.0**-resolution)


@dataclass(frozen=True, kw_only=True)
class NormalStatistic(RegressionStatistic):
    """Sums of z and z^2 of one column: a regression without covariates."""

    model: ClassVar[str] = "normal"
    fixed: ClassVar[tuple[str, ...]] = ("covariates",)

    def __post_init__(self) -> None:
        if self.covariates:
            raise ModelError("a normal mean has no covariates.", hint="Use the model regression")
        super().__post_init__()


def column_bounds(bounds: ColumnBounds, columns: tuple[str, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Lower and upper ends for each column, as floats."""
    if isinstance(bounds, Mapping):
        absent = [name for name in columns if name not in bounds]
        if absent:
            raise DomainError(
                f"there are no public bounds for {', '.join(repr(name) for name in absent)}.",
                hint=f"Bounds must be known without looking at the data, such as bounds={{{absent[0]!r}: (0, 100)}}",
            )
        unknown = sorted(set(bounds) - set(columns))
        if unknown:
            raise DomainError(f"there are bounds for {unknown[0]!r}, which is not used.", hint=f"Columns: {', '.join(columns)}")
        pairs = [bounds[name] for name in columns]
    else:
        pairs = [bounds] * len(columns)
    try:
        ends = [(float(exact(low, name="a bound")), float(exact(high, name="a bound"))) for low, high in pairs]
    except (TypeError, ValueError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError("bounds must be pairs of numbers.", hint="For example (0, 120)") from None
    return tuple(low for low, _ in ends), tuple(high for _, high in ends)


def check_bounds(columns: tuple[str, ...], lower: tuple[float, ...], upper: tuple[float, ...]) -> None:
    """One finite interval of positive length for each column, and each column once."""
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise ModelError(f"a model has 1 to {MOST_COLUMNS} columns.")
    if len(set(columns)) != len(columns):
        raise DomainError("a column is named twice.", hint="Name every covariate once, and not the response")
    if not len(columns) == len(lower) == len(upper):
        raise ModelError("each column needs a lower and an upper bound.")
    for name, low, high in zip(columns, lower, upper, strict=True):
        if not (np.isfinite(low) and np.isfinite(high) and low < high and np.isfinite(high - low)):
            raise DomainError(
                f"the bounds of {name!r} are reversed, equal or not finite.", hint=f"For example bounds={{{name!r}: (0, 100)}}"
            )
