"""Neighbouring data sets for audits: made from public sizes, chosen to be as revealing as possible.

The least protected record is the one that stands alone: in an empty cell, beside all the others in one cell, in a table of
two cells, or with a value nobody else has. The proofs of the urns' profiles say that their suprema sit there
(docs/proofs/global-profiles.md); other mechanisms tend to fail there too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.privacy.profile import Neighbouring

LARGEST_SPREAD = 10_000
"""Most distinct values in a data set made for an audit."""


@dataclass(frozen=True)
class NeighbouringTables:
    """Two tables that differ in `moved` records: in cell `left` of the first, in cell `right` of the second or gone."""

    name: str
    common: dict[int, int]
    left: int
    right: int
    moved: int
    neighbouring: Neighbouring

    @property
    def first(self) -> dict[int, int]:
        """Counts of the first table."""
        return {**self.common, self.left: self.common.get(self.left, 0) + self.moved}

    @property
    def second(self) -> dict[int, int]:
        """Counts of the second table."""
        if self.neighbouring == "add-remove":
            return self.common
        return {**self.common, self.right: self.common.get(self.right, 0) + self.moved}

    def first_counts(self) -> CountTable:
        """The first table, for our mechanisms."""
        return _count_table(self.first)

    def second_counts(self) -> CountTable:
        """The second table, for our mechanisms."""
        return _count_table(self.second)

    def dense(self, counts: dict[int, int], cells: int) -> NDArray[np.int64]:
        """A count for each cell."""
        return np.array([counts.get(cell, 0) for cell in range(cells)], np.int64)

    def records(self, turn: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both tables record by record; the differing ones stand first, last or in the middle, by turns."""
        common = np.repeat(np.array(list(self.common), np.int64), np.array(list(self.common.values()), np.int64))
        place = (0, len(common), len(common) // 2)[turn % 3]
        first = np.insert(common, place, [self.left] * self.moved)
        if self.neighbouring == "add-remove":
            return first, common
        return first, np.insert(common, place, [self.right] * self.moved)


def neighbouring_tables(
    *,
    n: int,
    cells: int | None,
    neighbouring: Neighbouring = "replace-one",
    contributions: int = 1,
    differing: tuple[int, int] | None = None,
) -> list[NeighbouringTables]:
    """Neighbours that reveal most: lone records, pairs, empty cells, two cells only, everything in one other cell.

    `cells=None` is an open domain, where any number is a label of its own. `differing` are the cells that the record moves
    between; left out, the first and the last.

    >>> [each.name for each in neighbouring_tables(n=5, cells=2)]
    ['a lone record, the others where it moves to', 'a lone record leaves all the others', 'a second copy', 'two even cells']
    """
    kept = n - contributions
    if contributions < 1 or kept < 0:
        raise ModelError("the number of records that move must lie between 1 and n.")
    if cells is not None and cells < 2 and neighbouring == "replace-one":
        raise ModelError("with one cell a replaced record changes nothing: there is nothing to audit.")
    last = 1 if cells is None else cells - 1
    left, right = (0, last) if differing is None else differing
    span = range(min(LARGEST_SPREAD, n + 2 if cells is None else cells))
    others = [cell for cell in span if cell not in (left, right)]
    other = others[0] if others else right
    candidates: dict[str, dict[int, int]] = {}
    if others:
        candidates["a lone record, the others in one cell"] = {other: kept}
    candidates["a lone record, the others where it moves to"] = {right: kept}
    candidates["a lone record leaves all the others"] = {left: kept}
    if kept >= 1:
        candidates["a second copy"] = _added({left: 1}, {other: kept - 1})
        candidates["two even cells"] = {left: kept // 2, right: kept - kept // 2}
    if others and kept >= 2:
        candidates["lone records in both cells"] = _added({left: 1, right: 1}, {other: kept - 2})
        candidates["the others spread over all other cells"] = _spread(others, kept)
        if cells is not None:
            candidates["all spread over all cells"] = _spread(list(span), kept)
    found: list[NeighbouringTables] = []
    for name, counts in candidates.items():
        common = {cell: count for cell, count in sorted(counts.items()) if count > 0}
        if all(common != each.common for each in found):
            found.append(NeighbouringTables(name, common, left, right, contributions, neighbouring))
    return found


def _added(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    return {cell: first.get(cell, 0) + second.get(cell, 0) for cell in {*first, *second}}


def _spread(cells: list[int], records: int) -> dict[int, int]:
    share, rest = divmod(records, len(cells))
    return {cell: share + (i < rest) for i, cell in enumerate(cells)}


def _count_table(counts: dict[int, int]) -> CountTable:
    return CountTable.from_cells(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))
