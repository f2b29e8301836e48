"""What a file of noisy sums can hold: every sum beside its name, in order, on the lattice of its noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privurn.mechanisms.published import Content
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.tables.released import numbers

NAMES, VALUES = "sum_of", "value"
"""Columns of the file."""


LARGEST = 2.0**63
"""No table has more records, and no noise is more lattice steps."""


class SumsContent(Content):
    """Rows of given names, each a finite number on the lattice of one noise, and no more than records and noise can add up to.

    `units`: lattice steps that a record adds to a sum at the most.
    """

    wrong = "is not the list of all sums, on the lattice of their noise"

    def __init__(self, names: Sequence[str], noises: Sequence[NoiseLaw], units: Sequence[float]) -> None:
        self.names, self.steps = names, np.array([each.step for each in noises])
        self.most = LARGEST * (1.0 + np.array(units))
        self.row = 0

    def holds(self, batch: Any) -> bool:
        """The names are the next ones, and the numbers possible."""
        rows = slice(self.row, self.row + batch.num_rows)
        self.row += batch.num_rows
        found = numbers(batch.column(1))
        if found is None or not np.isfinite(found).all() or batch.column(0).to_pylist() != list(self.names[rows]):
            return False
        with np.errstate(over="ignore"):
            steps = found / self.steps[rows]  # exact: powers of two
        return bool(((steps == np.rint(steps)) & (np.abs(steps) <= self.most[rows])).all())
