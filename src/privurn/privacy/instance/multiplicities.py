"""Frequencies of frequencies: all that an instance-level figure needs to know about a table of counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError


class HasCounts(Protocol):
    """Anything that carries the counts of its distinct values, such as a CountTable."""

    @property
    def counts(self) -> Any:
        """One whole number for each distinct value."""


Counts = HasCounts | NDArray[np.integer[Any]] | Sequence[int]


@dataclass(frozen=True)
class Multiplicities:
    """`repeats[i]` values occur `sizes[i]` times each; sizes ascend and may start at 0 (empty cells of a public domain)."""

    sizes: tuple[int, ...]
    repeats: tuple[int, ...]

    @classmethod
    def of(cls, counts: Counts, *, cells: int | None = None) -> "Multiplicities":
        """From a table of counts; `cells` is the size of a public domain, whose missing cells are empty.

        >>> Multiplicities.of([3, 1, 1])
        Multiplicities(sizes=(1, 3), repeats=(2, 1))
        >>> Multiplicities.of([3, 1, 1], cells=5)
        Multiplicities(sizes=(0, 1, 3), repeats=(2, 2, 1))
        """
        array = np.asarray(getattr(counts, "counts", counts))
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or (array.size and array.min() < 0):
            raise ModelError(
                "counts must be a one-dimensional array of whole numbers, none negative.", hint="For example [3, 1, 1]"
            )
        array = array[array > 0]
        if array.size == 0:
            raise ModelError("the table has no records.", hint="counts must sum to at least 1")
        found, repeats = np.unique(array, return_counts=True)
        sizes, numbers = [int(each) for each in found], [int(each) for each in repeats]
        if cells is not None:
            empty = cells - int(array.size)
            if empty < 0:
                raise ModelError("the table has more distinct values than the public domain has cells.")
            if empty:
                sizes, numbers = [0, *sizes], [empty, *numbers]
        return cls(tuple(sizes), tuple(numbers))

    @property
    def n(self) -> int:
        """Number of records."""
        return sum(size * repeat for size, repeat in zip(self.sizes, self.repeats, strict=True))

    @property
    def distinct(self) -> int:
        """Number of values, empty cells included."""
        return sum(self.repeats)

    def has(self, size: int) -> bool:
        """Whether some value occurs exactly so often."""
        return size in self.sizes

    def smallest(self, at_least: int) -> int | None:
        """Smallest size no smaller than `at_least`."""
        return min((size for size in self.sizes if size >= at_least), default=None)

    def partners(self, size: int) -> list[int]:
        """Sizes that a value other than a given one of this size can have."""
        return [each for each, repeat in zip(self.sizes, self.repeats, strict=True) if each != size or repeat >= 2]

    def smallest_pairs(self, at_least: int) -> list[tuple[int, int]]:
        """Sizes of (l, t), two different values, l occurring `at_least` times: those that no other pair undercuts in both."""
        least = [size for size, repeat in zip(self.sizes, self.repeats, strict=True) for _ in range(min(2, repeat))]
        first = self.smallest(at_least)
        if first is None or self.distinct < 2:
            return []
        others = list(least)
        others.remove(first)
        best = [(first, others[0])]
        seconds = [size for size in least if size >= at_least]
        seconds.remove(first)
        if others[0] >= at_least and seconds and seconds[0] > first:  # l may also be the second smallest, t the smallest
            best.append((seconds[0], first))
        return best

    def expand(self) -> NDArray[np.int64]:
        """One size for each value, ascending."""
        return np.repeat(np.asarray(self.sizes, np.int64), np.asarray(self.repeats, np.int64))


def threshold(epsilon: float) -> float:
    """e^epsilon as the papers' events compare with it, lowered by a rounding error so that a near tie counts as above."""
    return math.exp(epsilon) * (1.0 - 1e-14)
