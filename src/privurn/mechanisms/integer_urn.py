"""Urns in whole slots: cumulative numbers with a constant-time look-up, in 64 bits where everything fits.

Whether it fits is decided in Python's own integers, before an array is made. Where it does not (an alpha of many digits, or
an enormous table) the arrays hold Python's integers too, and mechanisms/long_integer_urn.py draws from the same urn.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.entropy import WORD_BITS


def integer_type(most: int) -> type[np.int64] | type[object]:
    """What an array of whole numbers from 0 to `most` holds: 64-bit integers, or else Python's, which have no end."""
    return np.int64 if most < 2**WORD_BITS else object


@dataclass(frozen=True)
class Slots:
    """An urn of whole slots: `uniform` shared evenly by all cells, then those of the listed `cells`; `per_ball` a draw."""

    per_ball: int
    uniform: int
    per_cell: int
    ends: NDArray[Any]
    cells: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Slots before the first draw."""
        return self.uniform + int(self.ends[-1])

    @property
    def long(self) -> bool:
        """Whether the slots need more than 63 bits before the last draw is made."""
        return self.ends.dtype == object


def guided(ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Cumulative counts with their guide table: about two blocks for each value, so a look-up is O(1) on average."""
    from privurn._kernels.urns.urn import guide_table

    shift = max(0, int(ends[-1]).bit_length() - len(ends).bit_length() - 1)
    return ends, guide_table(ends, shift), shift
