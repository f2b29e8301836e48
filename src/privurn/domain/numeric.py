"""Domains of numbers: grids, bins, and bounds of numbers that stay numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal

from privurn.domain.column import ColumnDomain, Nulls, Outside
from privurn.errors import DomainError
from privurn.exact_numbers import Number, decimal_text, exact

Within = Literal["midpoint", "uniform", "interval"]

MOST_STEPS_FROM_ZERO = 2**49
"""Of a grid's ends. Records are 64-bit floats: within it their rounding moves none by more than a quarter of a step."""


@dataclass(frozen=True)
class Grid(ColumnDomain):
    """Numbers low, low + step, ..., high; a value belongs to its nearest grid point.

    So a value is outside only when it lies more than half a step beyond an end. Released are whole numbers where all points
    are 64-bit ones, else the floats nearest to the points.

    >>> Grid(0, 100, 25).size
    5
    """

    low: Number
    high: Number
    step: Number
    outside: Outside = "clamp"
    nulls: Nulls = "error"
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, exact(getattr(self, name), name=f"grid {name}"))
        if self.bounds[1] <= self.bounds[0]:
            raise DomainError(
                "grid bounds are reversed or equal.", hint="The lower one comes first: for example Grid(0, 200000, 500)"
            )
        if self.spacing <= 0:
            raise DomainError("grid step must be positive.", hint="For example Grid(0, 200000, 500)")
        steps = (self.bounds[1] - self.bounds[0]) / self.spacing
        if steps.denominator != 1:
            nearest = self.bounds[0] + self.spacing * max(1, math.floor(steps))
            texts = [decimal_text(each) for each in (self.bounds[0], nearest, self.spacing)]
            listed = ", ".join(repr(each) if "/" in each else each for each in texts)
            raise DomainError(
                "grid step does not divide the range from low to high.",
                hint=f"Try Grid({listed})",
            )
        if max(map(abs, self.bounds)) > MOST_STEPS_FROM_ZERO * self.spacing:
            raise DomainError(
                "grid points lie too close together, for their size, to be told apart as 64-bit numbers.",
                hint="Use a larger step, or subtract a public number from the column first",
            )
        super().__post_init__()

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Low and high as exact fractions."""
        return Fraction(self.low), Fraction(self.high)

    @property
    def spacing(self) -> Fraction:
        """Step as an exact fraction."""
        return Fraction(self.step)

    @property
    def n_values(self) -> int:
        """Grid points."""
        return int((self.bounds[1] - self.bounds[0]) / self.spacing) + 1

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers as exact decimal text."""
        low, high = self.bounds
        numbers = {"low": decimal_text(low), "high": decimal_text(high), "step": decimal_text(self.spacing)}
        return {"kind": self.kind, **numbers, **self._policy()}

    def describe(self) -> str:
        """One line for people."""
        low, high = self.bounds
        return f"grid {decimal_text(low)}..{decimal_text(high)} in steps of {decimal_text(self.spacing)}, {self._edges()}"


@dataclass(frozen=True)
class Bins(ColumnDomain):
    """Numbers in half-open bins [edge_i, edge_i+1), the last one closed.

    `within` is what a record in a bin is released as: the bin's "midpoint", a number drawn from it "uniform"ly, or the bin
    itself, an "interval" as text such as [0, 18).

    >>> Bins([0, 18, 65, 120]).size
    3
    """

    edges: Sequence[Number]
    outside: Outside = "clamp"
    nulls: Nulls = "error"
    within: Within = "midpoint"
    kind: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        if self.within not in ("midpoint", "uniform", "interval"):
            raise DomainError(f"within={self.within!r} is not known.", hint="midpoint, uniform or interval")
        if isinstance(self.edges, str):
            raise DomainError("the edges of bins must be a list of numbers, not one text.", hint="For example [0, 18, 65, 120]")
        edges = tuple(exact(edge, name="bin edge") for edge in self.edges)
        object.__setattr__(self, "edges", edges)
        if len(edges) < 2 or any(b <= a for a, b in pairwise(edges)):
            raise DomainError("bins need at least two edges in increasing order.", hint="For example 0,18,65,120")
        if any(float(b) <= float(a) for a, b in pairwise(edges)):
            raise DomainError("bin edges lie too close together to be told apart as 64-bit numbers.", hint="Use wider bins")
        if any(b <= a for a, b in pairwise(float((low + high) / 2) for low, high in pairwise(edges))):
            raise DomainError("bins lie too close together for their midpoints to be told apart.", hint="Use wider bins")
        super().__post_init__()

    @property
    def n_values(self) -> int:
        """Bins."""
        return len(self.edges) - 1

    @property
    def intervals(self) -> tuple[str, ...]:
        """Bins as text; the last one is closed.

        >>> Bins([0, 18, 65]).intervals
        ('[0, 18)', '[18, 65]')
        """
        edges = [decimal_text(Fraction(edge)) for edge in self.edges]
        ends = [")"] * (self.n_values - 1) + ["]"]
        return tuple(f"[{low}, {high}{end}" for (low, high), end in zip(pairwise(edges), ends, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers as exact decimal text."""
        spread = {} if self.within == "midpoint" else {"within": self.within}
        return {"kind": self.kind, "edges": [decimal_text(Fraction(edge)) for edge in self.edges], **self._policy(), **spread}

    def describe(self) -> str:
        """One line for people."""
        ends = decimal_text(Fraction(self.edges[0])), decimal_text(Fraction(self.edges[-1]))
        return f"{self.n_values} bins from {ends[0]} to {ends[1]}, {self._edges()}"


@dataclass(frozen=True)
class Bounds:
    """Public limits of numbers that stay numbers: what lies outside is clamped.

    `nulls`: missing values, and what is no number, are an "error" (declared absent) or count as the "lower" bound.
    """

    lower: float
    upper: float
    nulls: Literal["error", "lower"] = "error"
    kind: ClassVar[str] = "bounds"

    def __post_init__(self) -> None:
        try:
            ends = float(self.lower), float(self.upper)
        except (TypeError, ValueError):
            raise DomainError("bounds must be two numbers.", hint="For example Bounds(0, 100)") from None
        if not -math.inf < ends[0] < ends[1] < math.inf:
            raise DomainError("bounds must be finite, the lower one first.", hint="For example Bounds(0, 100)")
        if self.nulls not in ("error", "lower"):
            raise DomainError(f"nulls={self.nulls!r} is not possible with numbers.", hint="error or lower")
        object.__setattr__(self, "lower", ends[0])
        object.__setattr__(self, "upper", ends[1])

    @property
    def ends(self) -> tuple[float, float]:
        """Both."""
        return self.lower, self.upper
