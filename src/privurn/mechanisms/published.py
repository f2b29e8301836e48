"""What a data file can hold, batch by batch: the values that a mechanism can have published.

A statement says what is wrong and never quotes a value. Mechanisms that publish something else have a content of their own,
beside them.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain, TableDomain, domain_from_json
from privurn.privacy.certificate import canonical
from privurn.tables.column_names import unused
from privurn.tables.released import CellReader, numbers


class Content:
    """What may stand in a data file; it may remember the batches before."""

    by_batches = False
    """Whether it looks at each batch by itself, so that parts can be read by different computers."""
    wrong = "holds values that the mechanism cannot have published"
    """What is said of a file whose content is wrong."""

    def holds(self, batch: Any) -> bool:
        """Whether the next batch may be part of what is certified."""
        return True

    def complete(self) -> bool:
        """Whether the file may end here."""
        return True


class Cells(Content):
    """Records of a public domain."""

    by_batches = True
    wrong = "holds values outside the domain"

    def __init__(self, domain: Mapping[str, Any]) -> None:
        stated: Any = domain_from_json(domain)  # of columns taken jointly, or side by side
        self.domain = stated
        self.readers = [CellReader(each) for each in self.domain.columns.values()]

    def cells(self, batch: Any) -> list[NDArray[np.int64]]:
        """The cell of each record, column by column; -1 outside."""
        return [reader.cells(batch.column(i)) for i, reader in enumerate(self.readers)]

    def holds(self, batch: Any) -> bool:
        """Every value is one of its column's domain, and none is in a structurally empty cell."""
        found = self.cells(batch)
        if not all(bool((each >= 0).all()) for each in found):
            return False
        zeros = self.domain.zero_cells if isinstance(self.domain, TableDomain) else ()
        return not any(bool(np.logical_and.reduce([found[j] == cell for j, cell in each]).any()) for each in zeros)


class SyntheticContent(Cells):
    """Records that were made from measurements; of several copies, each behind its number, one copy after the other.

    One copy has at least one record. Each of several has n where that is public.
    """

    def __init__(self, domain: Mapping[str, Any], *, copies: int, n: int | None) -> None:
        super().__init__(domain)
        self.by_batches = copies == 1
        self.copies, self.n, self.last = copies, n, 1
        self.rows = np.zeros(copies, np.int64)

    def holds(self, batch: Any) -> bool:
        """Every value is one of its column's domain, and copies are numbered in order."""
        if self.copies == 1:
            self.rows[0] += batch.num_rows
            return super().holds(batch)
        copy = numbers(batch.column(0))
        if copy is None or not np.isin(copy, np.arange(1, self.copies + 1)).all():
            return False
        if np.any(np.diff(copy, prepend=self.last) < 0):
            return False
        self.last = int(copy[-1]) if len(copy) else self.last
        self.rows += np.bincount(copy.astype(np.int64) - 1, minlength=self.copies)
        return super().holds(batch.remove_column(0))

    def complete(self) -> bool:
        """Whether no copy is missing or cut short."""
        if self.copies == 1:
            return bool(self.rows[0] >= 1)
        return self.n is None or bool((self.rows == self.n).all())


def copy_column(columns: Container[str | None]) -> str:
    """What the column with the number of the copy is called beside these."""
    return unused("copy", columns)


class Table(Cells):
    """All cells in order, once for each draw, with finite numbers beside each."""

    by_batches = False
    wrong = "is not the table of all cells and their numbers"

    def __init__(self, domain: Mapping[str, Any]) -> None:
        super().__init__(domain)
        self.row = 0

    def holds(self, batch: Any) -> bool:
        """The cells are the next ones, and the numbers possible."""
        rows = np.arange(self.row, self.row + batch.num_rows)
        self.row += batch.num_rows
        draw, cell = np.divmod(rows, self.domain.size)
        for reader, found in zip(self.readers, self.cells(batch), strict=True):
            cell, own = np.divmod(cell, reader.domain.size)
            if not np.array_equal(found, own):
                return False
        beside = [numbers(batch.column(i)) for i in range(len(self.readers), batch.num_columns)]
        finite = [each for each in beside if each is not None and np.isfinite(each).all()]
        return len(finite) == len(beside) and self.possible(draw, *finite)

    def possible(self, draw: NDArray[np.int64], *beside: NDArray[np.float64]) -> bool:
        """Whether the mechanism can have published these numbers, given the draw that each belongs to."""
        return True


def joint_domain(stated: Mapping[str, Any]) -> JointDomain:
    """The public domain of a certificate that has one."""
    domain = domain_from_json(stated)
    assert isinstance(domain, JointDomain)
    return domain


def stated_joint(stated: Mapping[str, Any]) -> JointDomain | None:
    """The public domain, where there is one and it is stated as privurn states it."""
    if stated["kind"] != "joint":
        return None
    domain = domain_from_json(stated)
    same = isinstance(domain, JointDomain) and canonical(domain.to_json()) == canonical(stated)
    return domain if same and isinstance(domain, JointDomain) else None
