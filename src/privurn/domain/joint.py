"""Several columns taken jointly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from privurn.domain.categories import Categories, OpenLabels
from privurn.domain.column import ColumnDomain, Domain, check_size
from privurn.domain.dates import Dates
from privurn.domain.numeric import Bins, Grid
from privurn.errors import DomainError


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
                    f"column {name!r}: only grids, bins, dates and categories can be taken jointly.",
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


AnyDomain = Grid | Bins | Dates | Categories | OpenLabels | JointDomain
