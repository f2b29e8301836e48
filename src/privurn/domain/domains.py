"""Public knowledge: which values a column may hold, decided without looking at the data.

A domain turns every record into one of finitely many cells, by a rule that looks at that record alone. That rule never
fails on the content of a record: an exception would be an output. Two public choices say what happens at the edges:

`outside`  where a record goes whose value the domain does not hold: "clamp" (numbers only: to the nearest cell; what is
           no number at all goes to the null cell, or to the first cell where there is none), "other" (a cell of its own),
           "null" (the null cell).
`nulls`    "cell": a missing value is a cell of its own; "error": the custodian declares that there are none, and a table
           that breaks its own declaration is refused.

Dropping records is not offered: it would make the number of records depend on their content.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal

from privurn.errors import DomainError
from privurn.exact_numbers import Number, decimal_text, exact

Outside = Literal["clamp", "other", "null"]
Nulls = Literal["cell", "error"]
Within = Literal["midpoint", "uniform"]

MOST_CELLS = 10**8
"""Beyond this a domain is a mistake: the prior would drown any data."""

MOST_STEPS_FROM_ZERO = 2**49
"""Of a grid's ends. Records are 64-bit floats: within it their rounding moves none by more than a quarter of a step."""


def check_size(size: int, *, what: str) -> None:
    """Refuse domains that no release could fill."""
    if size > MOST_CELLS:
        raise DomainError(
            f"{what} has {size:,} cells; at most {MOST_CELLS:,} are supported.",
            hint="Use a larger step, fewer bins or categories, or fewer columns taken jointly",
        )


def label_text(value: object) -> str:
    """How a category is written: records are compared with it as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain_category(value: object) -> Any:
    """Text, numbers and booleans as they are; NumPy's scalars as Python's; dates and the like as text."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.item() if hasattr(value, "item") else str(value)


class Domain(ABC):
    """A finite public domain: `size` cells, numbered from 0."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of cells."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data that `domain_from_json` turns back into the same domain."""

    @abstractmethod
    def describe(self) -> str:
        """One line for people."""


class ColumnDomain(Domain):
    """A domain of one column: `n_values` proper cells, then "other" and null cells where the policy has them."""

    outside: Outside
    nulls: Nulls

    def __post_init__(self) -> None:
        if self.outside not in ("clamp", "other", "null"):
            raise DomainError("outside must be 'clamp', 'other' or 'null'.")
        if self.nulls not in ("cell", "error"):
            raise DomainError("nulls must be 'cell' or 'error'.")
        check_size(self.size, what="the domain")

    @property
    @abstractmethod
    def n_values(self) -> int:
        """Number of proper cells."""

    @property
    def size(self) -> int:
        """Proper cells plus the "other" and null cells."""
        return self.n_values + (self.other_cell is not None) + (self.null_cell is not None)

    @property
    def other_cell(self) -> int | None:
        """Where values outside the domain go, if they have a cell of their own."""
        return self.n_values if self.outside == "other" else None

    @property
    def null_cell(self) -> int | None:
        """Where missing values go, if they have a cell."""
        if self.nulls == "error" and self.outside != "null":
            return None
        return self.n_values + (self.outside == "other")

    @property
    def unreadable_cell(self) -> int:
        """Where a record goes that is neither missing nor a value of the column's type (NaN, text among numbers)."""
        if self.other_cell is not None:
            return self.other_cell
        return self.null_cell if self.null_cell is not None else 0

    def _policy(self) -> dict[str, str]:
        return {"outside": self.outside, "nulls": self.nulls}

    def _edges(self) -> str:
        words = {"clamp": "others clamped", "other": 'others counted as "other"', "null": "others counted as null"}
        return words[self.outside] + (", nulls a cell" if self.null_cell is not None else ", no nulls declared")


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
                "grid bounds are reversed or equal.", hint="Give LO:HI:STEP with LO < HI, for example 0:200000:500"
            )
        if self.spacing <= 0:
            raise DomainError("grid step must be positive.", hint="Give LO:HI:STEP, for example 0:200000:500")
        steps = (self.bounds[1] - self.bounds[0]) / self.spacing
        if steps.denominator != 1:
            nearest = self.bounds[0] + self.spacing * max(1, math.floor(steps))
            raise DomainError(
                "grid step does not divide the range from low to high.",
                hint=f"Try {decimal_text(self.bounds[0])}:{decimal_text(nearest)}:{decimal_text(self.spacing)}",
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

    `within` is what a record in a bin is released as: the bin's "midpoint", or a number drawn from it "uniform"ly.

    >>> Bins([0, 18, 65, 120]).size
    3
    """

    edges: Sequence[Number]
    outside: Outside = "clamp"
    nulls: Nulls = "error"
    within: Within = "midpoint"
    kind: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        if self.within not in ("midpoint", "uniform"):
            raise DomainError(f"within={self.within!r} is not known.", hint="midpoint or uniform")
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

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers as exact decimal text."""
        spread = {} if self.within == "midpoint" else {"within": self.within}
        return {"kind": self.kind, "edges": [decimal_text(Fraction(edge)) for edge in self.edges], **self._policy(), **spread}

    def describe(self) -> str:
        """One line for people."""
        ends = decimal_text(Fraction(self.edges[0])), decimal_text(Fraction(self.edges[-1]))
        return f"{self.n_values} bins from {ends[0]} to {ends[1]}, {self._edges()}"


@dataclass(frozen=True)
class Categories(ColumnDomain):
    """An explicit list of values, compared as text (or as numbers where column and list are numeric).

    >>> Categories(["north", "south"], outside="other").size
    3
    """

    values: Sequence[str | int | float | bool]
    outside: Outside = "other"
    nulls: Nulls = "error"
    kind: ClassVar[str] = "categories"

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            raise DomainError("categories must be a list of values, not one text.", hint="For example ['north', 'south']")
        object.__setattr__(self, "values", tuple(_plain_category(value) for value in self.values))
        if not self.values:
            raise DomainError("categories must list at least one value.", hint="For example ['north', 'south']")
        if any(value is None or (isinstance(value, float) and not math.isfinite(value)) for value in self.values):
            raise DomainError(
                "categories cannot hold a null or a number that is not finite.", hint="Use nulls='cell' for nulls"
            )
        if any(isinstance(value, int) and abs(value) >= 2**64 for value in self.values):
            raise DomainError("categories that are whole numbers have at most 64 bits.", hint="Write longer ones as text")
        if any(isinstance(value, str) and value.encode(errors="replace").decode() != value for value in self.values):
            raise DomainError("a category is no valid Unicode text.", hint="Leave out halves of surrogate pairs")
        if len({label_text(value) for value in self.values}) != len(self.values):
            raise DomainError("categories hold the same value twice.", hint="List every value once")
        if self.outside == "other" and "other" in map(label_text, self.values):
            raise DomainError(
                "a category is called 'other', and so is the cell of values outside the list.",
                hint="Use outside='null', or another name",
            )
        if self.outside == "clamp":
            raise DomainError("categories cannot be clamped.", hint="Use outside='other' or outside='null'")
        super().__post_init__()

    @property
    def n_values(self) -> int:
        """Listed values."""
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "values": list(self.values), **self._policy()}

    def describe(self) -> str:
        """One line for people."""
        return f"{self.n_values} categories, {self._edges()}"


@dataclass(frozen=True)
class OpenLabels:
    """Labels nobody listed beforehand: which of them may be named is itself paid for (label discovery).

    Missing values are one more label, and every other value is compared as text.
    """

    kind: ClassVar[str] = "open-labels"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind}

    def describe(self) -> str:
        """One line for people."""
        return "open labels"


@dataclass(frozen=True)
class Bounds:
    """Public limits of numbers that stay numbers: what lies outside is clamped, what is none counts as the lower one.

    `nulls`: missing values are an "error" (declared absent) or count as the "lower" bound as well.
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


@dataclass(frozen=True)
class JointDomain(Domain):
    """The product of column domains: cell = first + size_1 (second + size_2 (third + ...)).

    >>> JointDomain({"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m"], outside="null")}).size
    9
    """

    columns: Mapping[str, ColumnDomain]
    kind: ClassVar[str] = "joint"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns))
        if not self.columns:
            raise DomainError("a joint domain needs at least one column.")
        for name, domain in self.columns.items():
            if not isinstance(domain, ColumnDomain):
                raise DomainError(
                    f"column {name!r}: only grids, bins and categories can be taken jointly.",
                    hint="Release open labels alone, or list their categories",
                )
        sizes = " x ".join(f"{domain.size:,}" for domain in self.columns.values())
        check_size(self.size, what=f"the joint domain ({sizes})")

    @property
    def size(self) -> int:
        """Product of the columns' sizes."""
        return math.prod(domain.size for domain in self.columns.values())

    @property
    def spread(self) -> bool:
        """Whether records of some column are spread out in their bins."""
        return any(isinstance(domain, Bins) and domain.within == "uniform" for domain in self.columns.values())

    def whole_bins(self) -> "JointDomain":
        """The same cells, in which a bin is one value, its midpoint."""
        own = {
            name: replace(each, within="midpoint") if isinstance(each, Bins) else each for name, each in self.columns.items()
        }
        return JointDomain(own)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "columns": {name: domain.to_json() for name, domain in self.columns.items()}}

    def describe(self) -> str:
        """One line for people, the size of the product shown."""
        parts = "; ".join(f"{name}: {domain.describe()} ({domain.size:,} cells)" for name, domain in self.columns.items())
        return f"{parts}. Jointly {self.size:,} cells"


AnyDomain = Grid | Bins | Categories | OpenLabels | JointDomain
