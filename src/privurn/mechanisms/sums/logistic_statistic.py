"""Noisy sums for logistic regression: the response, clamped covariates in either class, and their products.

Sensitivities, p covariates mapped to [-1, 1] (docs/proofs/noisy-statistics.md, section 6); h = floor(p/2):

    relation      squares       L1                                                    Euclidean, squared
    add-remove    plain         1 + p (p + 3)/2                                       1 + p (p + 3)/2
    add-remove    complement    1 + p (p + 1)/2  (*)                                  1 + p (p + 1)/2
    replace-one   either        2 + p (p + 3)/2 + (1 + 3 h - (1 + h)^2/(p - h + 1))/2  4 + 2 p + 4 floor(p^2/4)

(*) 9/4 for p = 1. Sums by class, and not over all records: a record moves only those of its own class.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.sums.calibrating import Budget, with_least_noise, with_noise
from privurn.mechanisms.sums.number_statistic import NumberStatistic
from privurn.mechanisms.sums.regression_statistic import RESOLUTION, RegressionStatistic
from privurn.mechanisms.sums.told import ColumnBounds, Covariates, Missing, Response, Squares
from privurn.tables.dialects import Dialect, double


@dataclass(frozen=True, kw_only=True)
class LogisticStatistic(NumberStatistic):
    """Sums of 2 y - 1, of z_j where y = 1, of z_j where y = 0, and of z_j z_k; z the covariates clamped and mapped to [-1, 1].

    The response is rounded to the nearest of 0 and 1, and what is no number counts as 0. Covariates, `squares` and
    `resolution` are treated as by `RegressionStatistic`, whose moments of the covariates these are; `lower` and `upper` have
    one end for each of them.
    """

    response: str
    covariates: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    squares: Squares = "plain"
    resolution: int = RESOLUTION
    model: ClassVar[str] = "logistic"
    record_a_column: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_covariates(self.covariates)
        if self.response in self.covariates:
            raise DomainError("a column is named twice.", hint="Name every covariate once, and not the response")
        for name in ("lower", "upper"):  # bounds, squares and lattice are checked there
            object.__setattr__(self, name, getattr(self.moments, name))
        super().__post_init__()

    @cached_property
    def moments(self) -> RegressionStatistic:
        """Moments of the covariates alone."""
        return RegressionStatistic(
            neighbouring=self.neighbouring,
            noise=self.noise,
            response=self.covariates[-1],
            covariates=self.covariates[:-1],
            lower=self.lower,
            upper=self.upper,
            squares=self.squares,
            resolution=self.resolution,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Covariates, then the response."""
        return (*self.covariates, self.response)

    @property
    def names(self) -> tuple[str, ...]:
        """A product is written a*b; `a if y=1` is the sum over the records of that class."""
        classes = [f"{name} if {self.response}={c}" for c in (1, 0) for name in self.covariates]
        return (self.response, *classes, *self.moments.names[len(self.covariates) :])

    @property
    def offsets(self) -> NDArray[np.float64]:
        """1 for the squares where they are complements."""
        p = len(self.covariates)
        return np.concatenate([np.zeros(1 + 2 * p), self.moments.offsets[p:]])

    @property
    def l1(self) -> Fraction:
        """Table at the top of the module."""
        p = len(self.covariates)
        if self.neighbouring == "add-remove":
            return 1 + self.moments.l1
        h = p // 2
        return 2 + Fraction(p * (p + 3), 2) + (1 + 3 * h - Fraction((1 + h) ** 2, p - h + 1)) / 2

    @property
    def l1_units(self) -> int:
        """The rounded z are points of [-1, 1] too, so the bound for all of them holds, rounded down to the lattice."""
        return int(self.l1 * 4**self.resolution)

    @property
    def l2_squared_units(self) -> int:
        """Table at the top of the module."""
        p, one = len(self.covariates), 16**self.resolution
        if self.neighbouring == "add-remove":
            return int(one + self.moments.l2_squared_units)
        return int((4 + 2 * p + 4 * (p * p // 4)) * one)

    def record_units(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's vector in lattice steps: whole numbers, by a rule that looks at one record."""
        p = len(self.covariates)
        with np.errstate(invalid="ignore"):
            y = (records[:, p:] > 0.5).astype(np.int64)  # what is no number is not above
        each = self.moments.record_units(records[:, :p])
        z, products = each[:, :p], each[:, p:]
        return np.hstack([(2 * y - 1) * np.int64(4**self.resolution), z * y, z * (1 - y), products])

    def in_sql(self, dialect: Dialect) -> tuple[list[str], list[str]]:
        """The same."""
        p = len(self.covariates)
        whole, products = self.moments.in_sql(dialect)
        y = f"CASE WHEN x{p} > {double(0.5)} THEN 1 ELSE 0 END"
        classes = [f"({z}) * {own}" for own in (f"z{p}", f"(1 - z{p})") for z in products[:p]]
        return [*whole, y], [f"(2 * z{p} - 1) * CAST({4**self.resolution} AS BIGINT)", *classes, *products[p:]]

    @classmethod
    def calibrated(
        cls,
        *,
        response: Response,
        covariates: Covariates,
        bounds: ColumnBounds,
        budget: Budget,
        squares: Squares = "plain",
        missing: Missing = "error",
    ) -> "LogisticStatistic":
        """The mechanism with the least noise for the budget. `bounds`: for each covariate, or one pair for all.

        >>> budget = Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")
        >>> made = LogisticStatistic.calibrated(response="ill", covariates=("age", "weight"), bounds=(-5, 5), budget=budget)
        >>> made.noise.scale, made.size_noise.scale
        (6.0, 10.0)
        """
        _check_covariates(covariates)
        # bounds and lattice are chosen as for the moments of the covariates: its margin for large noise covers ours
        moments = RegressionStatistic.calibrated(
            response=covariates[-1], covariates=tuple(covariates[:-1]), bounds=bounds, budget=budget, squares=squares
        )
        make = with_noise(
            cls,
            budget,
            response=response,
            covariates=tuple(covariates),
            lower=moments.lower,
            upper=moments.upper,
            squares=squares,
            resolution=moments.resolution,
            missing=missing,
        )
        return with_least_noise(make, budget=budget, step=4.0**-moments.resolution)


def _check_covariates(covariates: tuple[str, ...] | list[str]) -> None:
    if not covariates:
        raise ModelError(
            "a logistic regression has covariates.",
            hint="For example covariates=['age'], or the model bernoulli for a proportion",
        )
