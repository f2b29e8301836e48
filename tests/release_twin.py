"""A release done again in Python's own integers and fractions: written from the documentation, sharing no code with it."""

import csv
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from privurn.privacy.entropy import SystemEntropy

F = Fraction


class PlayedEntropy(SystemEntropy):
    """Integers that a seed decides, many of them at the ends of their range; what was asked for is written down.

    It calls itself private, so that whatever it touches is certified and verified as a real release would be.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self.bounds: list[int] = []
        self.drawn: list[int] = []

    def words(self, size: int) -> np.ndarray:
        return self._generator.integers(0, 2**63, size=size, dtype=np.int64)

    def below_ramp(self, first: int, *, step: int, size: int) -> np.ndarray:
        before = len(self.bounds)
        drawn = super().below_ramp(first, step=step, size=size)
        del self.bounds[before:], self.drawn[before:]  # what was drawn again is among the drawn
        for i, edge in enumerate(self._generator.integers(0, 8, size=min(size, 64)).tolist()):
            if edge < 2:
                drawn[i] = edge * (first + step * i - 1)
        self.bounds += [first + step * i for i in range(size)]
        self.drawn += drawn.tolist()
        return drawn

    def below_long_ramp(self, first: int, *, step: int, size: int) -> Iterator[int]:
        return (self.below(first + step * i) for i in range(size))

    def below(self, bound: int) -> int:
        edge = int(self._generator.integers(0, 8))
        drawn = edge * (bound - 1) if edge < 2 else super().below(bound)
        self.bounds.append(bound)
        self.drawn.append(drawn)
        return drawn

    def shuffle(self, values: np.ndarray) -> None:
        """Leave the order alone: it carries no information, and the twin can compare."""


def write_table(path: Path, columns: dict[str, list], *, kind: str) -> None:
    """A file of these columns: text in CSV, typed in Parquet."""
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def grid_cell(value: float, *, low: Fraction, step: Fraction, size: int) -> int:
    """Number of the nearest grid point, the ends for what lies beyond them."""
    if math.isinf(value):
        return size - 1 if value > 0 else 0
    return min(max(math.floor((F(value) - low) / step + F(1, 2)), 0), size - 1)


def bin_cell(value: float, *, edges: list[Fraction]) -> int:
    """Number of the bin that begins at or below the value; the last one is closed on both sides."""
    last = len(edges) - 2
    if math.isinf(value):
        return last if value > 0 else 0
    return min(max(sum(F(value) >= edge for edge in edges) - 1, 0), last)


def category_cell(value: str, *, values: list[str]) -> int:
    """Place in the list, or the cell after it; blanks around text do not count."""
    bare = [each.strip(" ") for each in values]
    return bare.index(value.strip(" ")) if value.strip(" ") in bare else len(values)


class UrnTwin:
    """The Dirichlet-multinomial urn in whole slots: q for each record, q alpha for each cell's prior.

    In order: the priors of all cells and then the records, cell by cell, where alpha is one number; each cell's prior with its
    records where there is one alpha for each; then q slots for each earlier draw.
    """

    def __init__(self, counts: Counter, alpha: str | list[str], *, cells: int) -> None:
        alphas = [F(each) for each in alpha] if isinstance(alpha, list) else [F(alpha)] * cells
        self.q = math.lcm(*(each.denominator for each in alphas))
        priors = [(cell, int(each * self.q)) for cell, each in enumerate(alphas)]
        held = [(cell, counts.get(cell, 0) * self.q) for cell in range(cells)]
        if isinstance(alpha, list):
            self.slots = [(cell, own + more) for (cell, own), (_, more) in zip(priors, held, strict=True)]
        else:
            self.slots = [*priors, *held]
        self.total = sum(width for _, width in self.slots)

    def bounds(self, records: int) -> list[int]:
        """Below what each integer is drawn."""
        return [self.total + self.q * i for i in range(records)]

    def cells(self, drawn: list[int]) -> list[int]:
        """The cells that integers lead to."""
        found: list[int] = []
        for each in drawn:
            if each >= self.total:
                found.append(found[(each - self.total) // self.q])
                continue
            place = each
            for cell, width in self.slots:
                if place < width:
                    found.append(cell)
                    break
                place -= width
        return found
