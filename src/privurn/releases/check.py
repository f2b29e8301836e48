"""How a table fits its domain, before anything is released: confidential, free, for the custodian alone.

Shares of missing, unlisted and clamped records, distinct values, joint cells, and what a plan says for as many records.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privurn.domain import AnyDomain, Categories, ColumnDomain, OpenLabels, TableDomain, several_columns
from privurn.mechanisms.recipe import Option
from privurn.privacy.profile import Guarantee
from privurn.releases.plan import options
from privurn.releases.plan import remarks as plan_remarks
from privurn.releases.release import named_columns
from privurn.tables import open_table
from privurn.tables.counting import check_rows
from privurn.tables.figures import ColumnFigures, table_figures

HALF = 0.5


@dataclass(frozen=True)
class ColumnCheck:
    """One column: shares of all records, and how many different values and cells there are."""

    name: str
    domain: str
    missing: float
    unlisted: float
    """Labels that match no category, or text among numbers."""
    below: float
    above: float
    """Numbers beyond an end of the domain: `clamped` says whether they count as that end."""
    clamped: bool
    distinct: int
    cells: int | None
    """Of the domain; None for labels that nobody listed."""
    refused: tuple[str, ...]
    """What a release would be refused for."""


@dataclass(frozen=True)
class Check:
    """What the custodian learns. Never publish it: no guarantee covers it."""

    n: int
    columns: tuple[ColumnCheck, ...]
    cells: int | None
    """Joint cells of all columns; None for labels that nobody listed."""
    filled: int
    """Combinations of cells that some record has."""
    guarantee: Guarantee
    options: tuple[Option, ...]
    """What a plan says for as many records."""
    side_by_side: int | None = None
    """Cells as such a plan counts them, where columns are too many to be taken jointly."""
    plan_remarks: tuple[str, ...] = ()
    """What the plan says besides."""

    @property
    def refused(self) -> tuple[str, ...]:
        """Why a release would be refused; empty: it would not be, for what the records hold."""
        return tuple(f"{each.name}: {reason}" for each in self.columns for reason in each.refused)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is likely to be a mistake in the domain."""
        found = []
        for each in self.columns:
            shares = {
                "are missing": each.missing,
                "match nothing that is listed": each.unlisted,
                "lie below the lowest value": each.below,
                "lie above the highest value": each.above,
            }
            found += [f"{each.name}: more than half of the records {words}." for words, share in shares.items() if share > HALF]
        return tuple(found)

    def to_confidential(self) -> dict[str, Any]:
        """Plain data, marked."""
        return {
            "confidential": True,
            "n": self.n,
            "columns": [vars(each) | {"refused": list(each.refused)} for each in self.columns],
            "cells": self.cells,
            "filled": self.filled,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "options": [each.to_json() for each in self.options],
            "plan_remarks": list(self.plan_remarks),
            "refused": list(self.refused),
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return "Check(confidential)"


def check(
    data: Any,
    *,
    domain: AnyDomain | TableDomain | ColumnDomain | Mapping[str, ColumnDomain | OpenLabels],
    epsilon: float = 1.0,
    delta: float = 0.0,
    contributions: int = 1,
) -> Check:
    """Look at how a table fits a domain, before a release. Confidential, and free: nothing is released and nothing is paid.

    The domain should be known without looking at the data. Changing it because of what is seen here is a look at the data that
    no guarantee covers; use it to find mistakes, such as a wrong column, unit or spelling.

    Parameters
    ----------
    data, domain
        As `release` takes them.
    epsilon, delta, contributions
        The guarantee to plan for.

    Examples
    --------
    >>> import numpy as np, privurn
    >>> hours = np.array([40.0, 38.0, np.nan, 200.0])
    >>> found = privurn.check(hours, domain=privurn.Grid(0, 80, 10))
    >>> found.columns[0].missing, found.columns[0].above, found.refused
    (0.25, 0.25, ('value: missing values, declared absent',))
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta, contributions=contributions)
    with open_table(data) as source:
        columns = named_columns(domain, source)
        figures = table_figures(source, columns)
    check_rows(figures.n)
    checked = tuple(_column(name, each, figures.columns[name], figures.n) for name, each in columns.items())
    sizes = [each.cells for each in checked]
    cells = math.prod(each for each in sizes if each is not None) if None not in sizes else None
    joint = None if cells is None else several_columns(columns)  # type: ignore[arg-type]
    public: Any = {"n": figures.n, "cells": None if joint is None else joint.size, "guarantee": guarantee, "domain": joint}
    beside = joint.size if isinstance(joint, TableDomain) else None
    planned = options(**public)
    words = plan_remarks(**public, found=planned)
    return Check(figures.n, checked, cells, figures.filled, guarantee, tuple(planned), beside, words)


def _column(name: str, domain: ColumnDomain | OpenLabels, figures: ColumnFigures, n: int) -> ColumnCheck:
    refused = []
    if isinstance(domain, ColumnDomain):
        labels = isinstance(domain, Categories)
        if figures.missing and domain.null_cell is None:
            refused.append("missing values, declared absent")
        if figures.strange and domain.unreadable_cell is None:
            refused.append("values that match no category, declared absent" if labels else "text among numbers")
        elif not labels and 0 < figures.strange == n - figures.missing:
            refused.append("not one record that can be read as what it is declared to be")
        if figures.below + figures.above and domain.outside == "error":
            refused.append("values outside the domain, declared absent")
    return ColumnCheck(
        name=name,
        domain=domain.describe(),
        missing=figures.missing / n,
        unlisted=figures.strange / n,
        below=figures.below / n,
        above=figures.above / n,
        clamped=isinstance(domain, ColumnDomain) and domain.outside == "clamp",
        distinct=figures.distinct,
        cells=domain.size if isinstance(domain, ColumnDomain) else None,
        refused=tuple(refused),
    )
