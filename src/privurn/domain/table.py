"""Columns side by side: what a record of a whole table is, without the product of all their cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from privurn.domain.column import MOST_CELLS, ColumnDomain
from privurn.domain.joint import JointDomain
from privurn.domain.numeric import Bins
from privurn.domain.public_facts import Place, known_shares, stated_zeros, zero_cells
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
    zeros: Sequence[Mapping[str, Any]] = ()
    """Structural zeros: values of two or three columns that no record has together."""
    known: Mapping[Any, Any] = field(default_factory=dict)
    """Public marginals: the shares of all cells of a column, or of two columns (a row for each cell of the first)."""
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "zeros", stated_zeros(self.zeros))
        object.__setattr__(self, "known", dict(self.known))
        if not self.columns:
            raise DomainError("a table needs at least one column.")
        for name, domain in self.columns.items():
            if not isinstance(domain, ColumnDomain):
                raise DomainError(
                    f"column {name!r}: only grids, bins, dates and categories can be columns of a table.",
                    hint="List the categories of open labels, or release them alone",
                )

        _ = self.zero_cells  # checked
        stated = {tuple(self.names[j] for j in places): shares for places, shares in self.known_shares.items()}
        object.__setattr__(self, "known", stated)

    @cached_property
    def zero_cells(self) -> tuple[tuple[Place, ...], ...]:
        """Two or three columns' places and cells that no record is in together."""
        return zero_cells(self.zeros, self.columns)

    @cached_property
    def known_shares(self) -> dict[tuple[int, ...], list[Any]]:
        """Of the cells of one column or two, by places that ascend."""
        return known_shares(self.known, self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, in order."""
        return tuple(self.columns)

    def in_order(self, names: Iterable[str]) -> "TableDomain":
        """The same columns, in the order of a table that has them."""
        return TableDomain({name: self.columns[name] for name in names if name in self.columns}, self.zeros, self.known)

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
        found: dict[str, Any] = {"kind": self.kind}
        found["columns"] = {name: domain.to_json() for name, domain in self.columns.items()}
        if self.zeros:
            found["zeros"] = [dict(each) for each in self.zeros]
        if self.known_shares:
            found["known"] = [
                {"columns": [self.names[j] for j in places], "shares": shares} for places, shares in self.known_shares.items()
            ]
        return found

    def describe(self) -> str:
        """One line for people."""
        parts = "; ".join(f"{name}: {domain.describe()} ({domain.size:,} cells)" for name, domain in self.columns.items())
        facts = f", {len(self.zeros)} structural zeros" * bool(self.zeros) + f", {len(self.known)} known marginals" * bool(
            self.known
        )
        return f"{parts}. Side by side {self.size:,} cells{facts}"


def several_columns(columns: Mapping[str, ColumnDomain]) -> JointDomain | TableDomain:
    """Columns that nobody said are taken jointly: jointly, or side by side where their product has too many cells."""
    table = TableDomain(columns)
    return table if prod(table.sizes) > MOST_CELLS else JointDomain(columns)
