"""Domains of labels: a list of them, or whichever there are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privurn.domain.column import ColumnDomain, Nulls, Outside
from privurn.errors import DomainError

BLANKS = " \t\n\r\v\f"
"""What is cut off around text before it is compared."""

UPPER, LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
"""The letters whose case can be ignored. Beyond ASCII, case depends on the language."""


def label_text(value: object) -> str:
    """How a category is written."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain_value(value: object) -> Any:
    """Text, numbers and booleans as they are; NumPy's scalars as Python's; dates and the like as text."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.item() if hasattr(value, "item") else str(value)


@dataclass(frozen=True)
class Categories(ColumnDomain):
    """An explicit list of values, compared as text (or as numbers where column and list are numeric).

    ASCII blanks around text do not count, and with `ignore_case` neither does the case of ASCII letters; categories are
    published as they are listed. Values that the list does not hold are declared not to be there unless `outside` gives them
    a cell.

    >>> Categories(["north", "south"]).size, Categories(["north", "south"], outside="other").size
    (2, 3)
    """

    values: Sequence[str | int | float | bool]
    outside: Outside = "error"
    nulls: Nulls = "error"
    ignore_case: bool = False
    kind: ClassVar[str] = "categories"

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            raise DomainError("categories must be a list of values, not one text.", hint="For example ['north', 'south']")
        object.__setattr__(self, "values", tuple(plain_value(value) for value in self.values))
        if not isinstance(self.ignore_case, bool):
            raise DomainError("ignore_case must be true or false.")
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
        self._check_keys()
        if self.outside == "clamp":
            raise DomainError("categories cannot be clamped.", hint="Use outside='other' or outside='null'")
        super().__post_init__()

    def _check_keys(self) -> None:
        """No two categories are compared alike, and none is compared with nothing."""
        keys = [self.compared(label_text(value)) for value in self.values]
        if len(set(keys)) != len(keys):
            if len({label_text(value) for value in self.values}) != len(keys):
                raise DomainError("categories hold the same value twice.", hint="List every value once")
            apart = "blanks around them, or in case," if self.ignore_case else "blanks around them"
            raise DomainError(f"two categories differ in {apart} alone, which does not count.", hint="List every value once")
        if "" in keys:
            raise DomainError("a category is empty, and empty text is a missing value.", hint="Use nulls='cell' for nulls")
        if self.outside == "other" and self.compared("other") in keys:
            raise DomainError(
                "a category is called 'other', and so is the cell of values outside the list.",
                hint="Use outside='null', or another name",
            )

    def compared(self, text: str) -> str:
        """Text as it is compared.

        >>> Categories(["f", "m"], ignore_case=True).compared(" F ")
        'f'
        """
        bare = text.strip(BLANKS)
        return bare.translate(str.maketrans(UPPER, LOWER)) if self.ignore_case else bare

    @property
    def n_values(self) -> int:
        """Listed values."""
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        case = {"ignore_case": True} if self.ignore_case else {}
        return {"kind": self.kind, "values": list(self.values), **self._policy(), **case}

    def describe(self) -> str:
        """One line for people."""
        case = ", case ignored" if self.ignore_case else ""
        return f"{self.n_values} {'category' if self.n_values == 1 else 'categories'}{case}, {self._edges()}"


@dataclass(frozen=True)
class OpenLabels:
    """Labels nobody listed beforehand: which of them may be named is itself paid for (label discovery).

    Missing values are one more label, and every other value is compared as text, without the ASCII blanks around it.
    """

    kind: ClassVar[str] = "open-labels"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind}

    def describe(self) -> str:
        """One line for people."""
        return "open labels"
