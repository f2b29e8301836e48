"""What a model of one column is: an exponential family on a finite public grid of parameters.

    log f(x | theta) = t_1(x) c_1(theta) + ... + t_k(x) c_k(theta) + c_0(theta) + h(x)

The grid lies in a bounded box, so a parameter is one of finitely many public points. That makes a draw from a (pseudo-)
posterior a choice among finitely many candidates, which can be made exactly.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

Floats = NDArray[np.float64]

PRIOR_TOTAL = 2**31
"""The prior is given in whole parts of this, at least one for each point."""

MOST_POINTS = 2**21
"""Grids beyond this are a mistake: every distinct value is compared with every point."""

LARGEST_TERM = 1e100
"""No term of a log density may be larger, at any grid point and value: sums and weights then stay far inside the floats."""


@dataclass(frozen=True)
class Axis:
    """Midpoints of `points` equal parts of [low, high], equal in the logarithm where spacing is "log"."""

    name: str
    low: float
    high: float
    points: int
    spacing: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ModelError(f"the bounds of {self.name} must be finite, the lower one first.")
        if self.spacing == "log" and self.low <= 0.0:
            raise ModelError(f"the bounds of {self.name} must be positive.")
        if self.points < 1:
            raise ModelError(f"{self.name} needs at least one grid point.")

    def check_values(self) -> None:
        """The grid points must be different numbers strictly inside the bounds, as floats."""
        with np.errstate(all="ignore"):
            values = self.values()
        if not (self.low < values[0] and values[-1] < self.high and (np.diff(values) > 0.0).all()):
            raise ModelError(
                f"the bounds of {self.name} do not hold {self.points:,} different numbers in floating point.",
                hint="Move the bounds, or give fewer points",
            )

    def values(self) -> Floats:
        """The grid points, in increasing order."""
        shares = (np.arange(self.points) + 0.5) / self.points
        if self.spacing == "linear":
            return np.asarray(self.low + (self.high - self.low) * shares)
        return np.asarray(np.exp(math.log(self.low) + math.log(self.high / self.low) * shares))


class Model(ABC):
    """Frozen public data: a box, a grid in it, a prior on the grid, and the family's functions.

    A record enters only through `statistics`, one scalar computation for each distinct value, so that what a record
    contributes depends on no other record, not even in the last bit.
    """

    kind: ClassVar[str]
    support: ClassVar[tuple[float, float]]
    """Values that the model can hold; a public domain beyond them is refused."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The parameters' grids, the last one varying fastest."""

    @abstractmethod
    def statistics(self, value: float) -> tuple[float, ...]:
        """t_1(x), ..., t_k(x), h(x) of one value, clamped to the public bounds first."""

    @abstractmethod
    def coefficients(self, points: Floats) -> tuple[Floats, ...]:
        """c_1, ..., c_k, c_0 at each row of `points`."""

    @abstractmethod
    def log_prior(self, points: Floats) -> Floats:
        """Log of the prior mass at each row of `points`, up to a constant, the grid's own spacing included."""

    @abstractmethod
    def cumulative(self, edges: Floats, parameters: Floats) -> Floats:
        """P(X <= edge) at one parameter."""

    @abstractmethod
    def sample(self, parameters: Floats, *, size: int, rng: np.random.Generator) -> Floats:
        """Floating-point draws, for simulation only."""

    @property
    def size(self) -> int:
        """Number of grid points."""
        return math.prod(axis.points for axis in self.axes)

    def check_grid(self) -> None:
        """The axes, a bound on their product, and a finite log density everywhere: public, and so before any data are read."""
        if self.size > MOST_POINTS:
            raise ModelError(
                f"the parameter grid has more than {MOST_POINTS:,} points.", hint="Give fewer points for each axis"
            )
        for axis in self.axes:
            axis.check_values()
        self.check_finite(self.grid())

    def check_finite(self, points: Floats) -> None:
        """Refuse parameters at which log f(x | theta), or a term of it, is no number or out of all proportion."""
        if not self._largest_term(points) <= LARGEST_TERM:
            raise ModelError(
                f"the {self.kind} model's log density is no finite number everywhere within its bounds.",
                hint="Keep the parameters' bounds away from 0 and from numbers beyond all measurement",
            )

    def _largest_term(self, points: Floats) -> float:
        """Of t_i c_i, c_0 and h. A statistic is largest at an end that values are clamped to, so two values stand for all."""
        try:
            ends = np.abs([self.statistics(end) for end in self.support]).max(axis=0)
        except (OverflowError, ValueError):  # what `math` raises where NumPy would have an infinity
            return math.inf
        with np.errstate(all="ignore"):
            sizes = np.array([np.abs(each).max() for each in self.coefficients(points)])
            return float(np.append(ends[:-1] * sizes[:-1], [ends[-1], sizes[-1]]).max())

    def grid(self) -> Floats:
        """All parameter points, one a row."""
        axes = np.meshgrid(*(axis.values() for axis in self.axes), indexing="ij")
        return np.stack([axis.ravel() for axis in axes], axis=1)

    def prior(self) -> NDArray[np.int64]:
        """The prior in whole parts of about PRIOR_TOTAL, at least one for each point."""
        logs = self.log_prior(self.grid())
        shares = np.exp(logs - logs.max())
        return np.asarray(np.maximum(1, np.rint(shares * (PRIOR_TOTAL / shares.sum()))), np.int64)

    def summaries(self, values: Floats) -> Floats:
        """Rows t_1, ..., t_k, h, one for each value."""
        width = len(self.coefficients(self.grid()[:1]))
        return np.array([self.statistics(float(value)) for value in values], np.float64).reshape(len(values), width)

    def log_density(self, summaries: Floats, coefficients: tuple[Floats, ...]) -> Floats:
        """Log density, one row for each value, one column for each point: products and sums of pairs, no matrix product."""
        out = summaries[:, -1:] + coefficients[-1]
        for i, each in enumerate(coefficients[:-1]):
            out += summaries[:, i : i + 1] * each
        return np.asarray(out)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `model_from_json` turns back into the same model."""
        fields = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind, **{key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}}
