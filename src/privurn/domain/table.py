"""Columns side by side: what a record of a whole table is, without the product of all their cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privurn.domain.column import ColumnDomain
from privurn.domain.numeric import Bins
from privurn.errors import DomainError


@dataclass(frozen=True)
class TableDomain:
    """The domains of a table's columns, for mechanisms that never look at all columns jointly.

    A joint domain numbers the product of all cells and is capped; here only the columns' own cells count.

    >>> from privurn.domain import Bins, Categories
    >>> TableDomain({"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m"], outside="null")}).sizes
    (3, 3)
    """

    columns: Mapping[str, ColumnDomain]
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns))
        if not self.columns:
            raise DomainError("a table needs at least one column.")
        for name, domain in self.columns.items():
            if not isinstance(domain, ColumnDomain):
                raise DomainError(
                    f"column {name!r}: only grids, bins, dates and categories can be columns of a table.",
                    hint="List the categories of open labels, or release them alone",
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, in order."""
        return tuple(self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column."""
        return tuple(domain.size for domain in self.columns.values())

    @property
    def size(self) -> int:
        """Cells of all columns, one column after the other."""
        return sum(self.sizes)

    @property
    def spread(self) -> bool:
        """Whether records of some column are spread out in their bins."""
        return any(isinstance(domain, Bins) and domain.within == "uniform" for domain in self.columns.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "columns": {name: domain.to_json() for name, domain in self.columns.items()}}

    def describe(self) -> str:
        """One line for people."""
        parts = "; ".join(f"{name}: {domain.describe()} ({domain.size:,} cells)" for name, domain in self.columns.items())
        return f"{parts}. Side by side {self.size:,} cells"
