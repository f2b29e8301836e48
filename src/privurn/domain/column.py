"""Public knowledge: which values a column may hold, decided without looking at the data.

A domain turns every record into one of finitely many cells, by a rule that looks at that record alone. Two public choices say
what happens at the edges:

`outside`  where a record goes whose value the domain does not hold: "clamp" (what has an order only: to the nearest cell),
           "other" (a cell of its own), "null" (the null cell); "error": the custodian declares that there is none.
`nulls`    "cell": a missing value is a cell of its own; "error": the custodian declares that there are none.

A table that breaks a declaration is refused. Where nothing is declared, no record is refused for what it holds: an exception
would be an output. What cannot be read at all, such as text among numbers, is outside, and is not clamped: it goes to the
"other" cell, else to the null cell, and where neither was asked for the custodian declares that there is none.

Dropping records is not offered: it would make the number of records depend on their content.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

from privurn.errors import DomainError

Outside = Literal["clamp", "other", "null", "error"]
Nulls = Literal["cell", "error"]

MOST_CELLS = 10**8
"""Beyond this a domain is a mistake: the prior would drown any data."""


def check_size(size: int, *, what: str) -> None:
    """Refuse domains that no release could fill."""
    if size > MOST_CELLS:
        raise DomainError(
            f"{what} has {size:,} cells; at most {MOST_CELLS:,} are supported.",
            hint="Use a larger step, fewer bins or categories, or fewer columns taken jointly",
        )


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
        if self.outside not in ("clamp", "other", "null", "error"):
            raise DomainError("outside must be 'clamp', 'other', 'null' or 'error'.", hint="For example outside='null'")
        if self.nulls not in ("cell", "error"):
            raise DomainError("nulls must be 'cell' or 'error'.", hint="For example nulls='cell'")
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
    def unreadable_cell(self) -> int | None:
        """Where a record goes that holds something else than the column's values; None: declared not to be there."""
        if self.outside == "error":
            return None
        return self.null_cell if self.other_cell is None else self.other_cell

    @property
    def outside_cell(self) -> int | None:
        """Where values outside the domain go that are not clamped; None: declared not to be there."""
        return self.null_cell if self.outside == "null" else self.other_cell

    def _policy(self) -> dict[str, str]:
        return {"outside": self.outside, "nulls": self.nulls}

    def _edges(self) -> str:
        words = {
            "clamp": "others clamped",
            "other": 'others counted as "other"',
            "null": "others counted as null",
            "error": "no others declared",
        }
        return words[self.outside] + (", nulls a cell" if self.null_cell is not None else ", no nulls declared")
