"""How many records land in a cell that stands for no value of its column. Confidential: for the custodian alone.

A release of which most is "missing", "other" or the end of a range is most likely a mistake in its domain, and nobody but the
custodian can see it: whoever reads the release sees a column like any other.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import ColumnDomain
from privurn.tables.cell_expressions import column_sql
from privurn.tables.source import Source

WORDS = {
    "null": "have no value in {name}, or one that counts as missing",
    "other": "hold something in {name} that its domain does not list",
    "below": "lie below the lowest value of {name}, and are clamped to it",
    "above": "lie above the highest value of {name}, and are clamped to it",
}


class SpecialCells:
    """Filled by whoever reads a table: for each column how many records are in its null and "other" cells, or clamped."""

    def __init__(self, columns: Mapping[str, ColumnDomain]) -> None:
        self.columns = columns
        self.found = {(name, kind): 0 for name in columns for kind in WORDS}

    def clamped(self, source: Source) -> dict[tuple[str, str], str]:
        """Conditions in SQL for the records that are clamped, by column and end; NULL where a record holds nothing."""
        conditions: dict[tuple[str, str], str] = {}
        for i, (name, domain) in enumerate(self.columns.items()):
            if domain.outside == "clamp":
                sql = column_sql(source, name, domain, i)
                number = "" if sql.number is None else f" AND NOT isnan({sql.number})"
                conditions |= {(name, "below"): f"{sql.below}", (name, "above"): f"({sql.above}{number})"}
        return conditions

    def unclamped(self, name: str, codes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cells of a column, where the two numbers after its last cell stand for records below and above, which are counted."""
        domain = self.columns[name]
        below, above = codes == domain.size, codes == domain.size + 1
        self.found[name, "below"] += int(counts[below].sum())
        self.found[name, "above"] += int(counts[above].sum())
        return np.where(below, 0, np.where(above, domain.n_values - 1, codes))

    def add_cells(self, name: str, cells: NDArray[Any], counts: NDArray[np.int64] | int = 1) -> None:
        """Records by their cells in a column."""
        domain = self.columns[name]
        for kind, cell in (("null", domain.null_cell), ("other", domain.other_cell)):
            if cell is not None:
                self.found[name, kind] += int(((cells == cell) * counts).sum())

    def remarks(self, n: int) -> list[str]:
        """Where more than half of n records are in one such cell."""
        return [
            f"more than half of the records {WORDS[kind].format(name=repr(name))}."
            for (name, kind), number in self.found.items()
            if 2 * number > n
        ]
