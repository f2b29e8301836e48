"""Noisy sums of the logarithms of compositions: the sufficient statistic of the Dirichlet law."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError, ModelError
from privurn.mechanisms.sums.calibrating import Budget, with_least_noise, with_noise
from privurn.mechanisms.sums.number_statistic import NumberStatistic
from privurn.mechanisms.sums.told import Floor, Missing, Parts

STEP = 2.0**-24
"""Logarithms are rounded to multiples of this."""


@dataclass(frozen=True, kw_only=True)
class DirichletStatistic(NumberStatistic):
    """Sums over records of log max(x_j, floor), x a record's parts divided by their sum; `floor` is a public number.

    What is no number, or negative, counts as 0; parts that are all 0 become equal. Logarithms are rounded to multiples of
    2^-24.

    With d parts and A = -log floor, floor <= 1/d, the L1 sensitivity is (d - 1) A - log(1 - (d - 1) floor) for a record added
    or removed (the parts add up to 1, so they are not all at the floor), and d A for a record replaced; both plus d
    lattice steps or fewer for the rounding. Squared Euclidean: (d - 1) A^2 + log(1 - (d - 1) floor)^2, and d A^2.
    """

    parts: tuple[str, ...]
    floor: float
    model: ClassVar[str] = "dirichlet"

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or len(set(self.parts)) != len(self.parts):
            raise ModelError(
                "a composition has at least two parts, each named once.", hint="For example parts=['sleep', 'work', 'rest']"
            )
        if not 1e-300 <= self.floor <= 1.0 / len(self.parts):
            raise DomainError(
                "the floor of the parts must be positive and at most 1 divided by their number.",
                hint="A public number, chosen without looking at the data, such as floor=0.001",
            )
        if self.noise.step != STEP:
            raise ModelError("the noise must be on the lattice of the logarithms.", hint=f"step = {STEP}")
        super().__post_init__()

    @property
    def names(self) -> tuple[str, ...]:
        """The log of each part."""
        return tuple(f"log {part}" for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The parts."""
        return self.parts

    @property
    def _top(self) -> int:
        """Largest -log x in lattice steps."""
        return math.ceil(-math.log(self.floor) / STEP)

    @property
    def _most(self) -> int:
        """Largest sum of a record's -log x, in lattice steps."""
        rest = len(self.parts) - 1
        slack = -math.log1p(-min(rest * self.floor, rest / (rest + 1)))
        return rest * self._top + math.ceil(slack / STEP) + len(self.parts)

    @property
    def l1_units(self) -> int:
        """See the class; `record_units` keeps to it whatever floating point does."""
        return self._most if self.neighbouring == "add-remove" else len(self.parts) * self._top

    @property
    def l2_squared_units(self) -> int:
        """See the class: whole numbers in [0, top] whose sum is at most `most` have the largest squares at an end."""
        if self.neighbouring == "replace-one":
            return len(self.parts) * self._top**2
        full, rest = divmod(self._most, self._top)
        full = min(full, len(self.parts))
        return full * self._top**2 + (rest**2 if full < len(self.parts) else 0)

    def record_units(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's logarithms (none is positive) in lattice steps."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            parts = np.where(records > 0.0, np.minimum(records, 1e300), 0.0)
            largest = parts.max(axis=1, keepdims=True)
            parts = np.where(largest > 0.0, parts / np.where(largest > 0.0, largest, 1.0), 1.0)
            shares = parts / parts.sum(axis=1, keepdims=True)
            units = np.rint(-np.log(np.maximum(shares, self.floor)) / STEP).astype(np.int64)
        units = np.clip(units, 0, self._top)
        excess = np.maximum(units.sum(axis=1) - self._most, 0)  # 0 in exact arithmetic; the proof does not rest on that
        if excess.any():
            rows = np.arange(len(units))
            units[rows, units.argmax(axis=1)] -= excess
        return np.asarray(-np.maximum(units, 0), np.int64)

    @classmethod
    def calibrated(cls, *, parts: Parts, floor: Floor, budget: Budget, missing: Missing = "error") -> "DirichletStatistic":
        """The mechanism with the least noise for the budget."""
        if budget.noise == "discrete-laplace":
            raise ModelError("logarithms are not whole numbers.", hint="noise='laplace', which is exact on a fine lattice")
        make = with_noise(cls, budget, parts=tuple(parts), floor=float(floor), missing=missing)
        return with_least_noise(make, budget=budget, step=STEP)
