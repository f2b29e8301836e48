"""Noisy sums of one column of whole numbers: the sufficient statistic of a proportion and of a rate."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.sums.calibrating import FINE_STEP, Budget, with_least_noise, with_noise
from privurn.mechanisms.sums.number_statistic import NumberStatistic
from privurn.mechanisms.sums.told import Column, Missing, Upper
from privurn.tables.dialects import Dialect, double

LARGEST_COUNT = 2**31

S = TypeVar("S", bound="SumStatistic")


@dataclass(frozen=True, kw_only=True)
class SumStatistic(NumberStatistic):
    """Sum over records of one whole number in 0, ..., `upper`, a public bound.

    A value is rounded to the nearest whole number and clamped; what is no number counts as 0. A record added, removed or
    replaced moves the sum by at most `upper`.
    """

    usual_noise: ClassVar[str] = "discrete-laplace"

    column: str
    upper: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.upper, bool) or not isinstance(self.upper, int) or not 1 <= self.upper <= LARGEST_COUNT:
            raise DomainError(
                "the largest count must be a whole number from 1 on.",
                hint=f"A public number, chosen without looking at the data: bounds={{{self.column!r}: (0, 20)}}",
            )
        if self.noise.step not in (1.0, FINE_STEP):
            raise ModelError("the noise must be on whole numbers, or on multiples of 1/1024.")
        super().__post_init__()

    @property
    def names(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def l1_units(self) -> int:
        """`upper`, under either relation."""
        return round(self.upper / self.noise.step)

    @property
    def l2_squared_units(self) -> int:
        """One number moves."""
        return self.l1_units**2

    def record_units(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's whole number, in lattice steps."""
        whole = np.clip(np.rint(np.where(np.isnan(records), 0.0, records)), 0, self.upper).astype(np.int64)
        return whole * round(1.0 / self.noise.step)

    def in_sql(self, dialect: Dialect) -> tuple[list[str], list[str]]:
        """The same."""
        inside = f"least(greatest({dialect.nearest('x0')}, {double(0.0)}), {double(float(self.upper))})"
        return [f"CASE WHEN x0 IS NULL THEN 0 ELSE {inside} END"], [f"z0 * {round(1.0 / self.noise.step)}"]

    @classmethod
    def calibrated(cls: type[S], *, column: Column, upper: Upper = 1, budget: Budget, missing: Missing = "error") -> S:
        """The mechanism with the least noise for the budget."""
        make = with_noise(cls, budget, column=column, upper=upper, missing=missing)
        return with_least_noise(make, budget=budget, step=FINE_STEP if budget.noise == "laplace" else 1.0)


@dataclass(frozen=True, kw_only=True)
class BernoulliStatistic(SumStatistic):
    """Records that are 1 rather than 0."""

    model: ClassVar[str] = "bernoulli"
    fixed: ClassVar[tuple[str, ...]] = ("upper",)

    def __post_init__(self) -> None:
        if self.upper != 1:
            raise DomainError("a yes-or-no column holds 0 and 1.", hint="Use the model poisson for larger counts")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class PoissonStatistic(SumStatistic):
    """Counts, clamped to `upper`."""

    model: ClassVar[str] = "poisson"
