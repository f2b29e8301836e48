"""A release too large for one computer: known by the counts of its blocks, expanded where there is room for it.

Records are drawn block by block, and only the counts of each block are kept. Given these, every order within a block is equally
likely and tells nothing of the data, so whoever writes the block puts it into one. Why the whole has the law of records drawn
one after the other, order included: docs/proofs/integer-urn.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.tables.engine import Answered, Tasks
from privurn.tables.output import for_spreadsheets
from privurn.tables.part_file import drawn_records, write_records

SIZE = 2**21
"""Records of a block, which is a part of the release, too: they are in memory at once where the part is written."""

Words = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True)
class InParts(ABC):
    """Released records that are written by tasks, in parts. `rows` is an Arrow table with every text that they hold."""

    rows: Any = field(repr=False)
    tasks: Tasks = field(repr=False, kw_only=True)

    @property
    def column_names(self) -> list[str]:
        """As an Arrow table has them."""
        return list(self.rows.column_names)

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """All records."""

    @abstractmethod
    def to_arrow(self) -> Any:
        """All of it on this computer."""

    @abstractmethod
    def frame(self) -> Any:
        """A frame of the engine that has the tasks."""

    @abstractmethod
    def write(self, folder: Path, file_format: str) -> list[Answered]:
        """Write each part into a file of a new folder that all tasks can reach: names as they came, rows, hashes."""

    @abstractmethod
    def are(self, rows: list[int]) -> bool:
        """Whether parts of so many records are these."""


class Block(Protocol):
    """What a block is expanded from: `expand(rows, *held)` are its records, wherever that is done, and the same each time."""

    @property
    def size(self) -> int:
        """Records."""

    @property
    def held(self) -> tuple[Any, ...]:
        """Of no class that executors would have to know."""

    @property
    def expand(self) -> Callable[..., Any]:
        """A function of `part_file`, which is sent to executors."""


@dataclass(frozen=True)
class DrawnBlock:
    """Which of the distinct records a block holds, how often each, and the key that its order comes from."""

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    key: bytes
    expand: ClassVar[Callable[..., Any]] = staticmethod(drawn_records)

    @property
    def size(self) -> int:
        """Records."""
        return int(self.counts.sum())

    @property
    def held(self) -> tuple[Any, ...]:
        """What it is expanded from."""
        return self.places, self.counts, self.key


@dataclass(frozen=True)
class Blocks(InParts):
    """Released records in their order, block after block. `rows` are the distinct ones, or have the distinct values."""

    blocks: tuple[Block, ...] = field(repr=False, kw_only=True)

    @classmethod
    def drawn(
        cls, counts: Iterable[CountTable], *, decode: Callable[[NDArray[np.int64]], Any], words: Words, tasks: Tasks
    ) -> "Blocks":
        """From the cells of each block; `decode` makes records of cells."""
        held = list(counts)
        cells = np.unique(np.concatenate([each.values for each in held]))
        blocks = tuple(DrawnBlock(np.searchsorted(cells, each.values), each.counts, words(4).tobytes()) for each in held)
        return cls(decode(cells), blocks=blocks, tasks=tasks)

    @property
    def num_rows(self) -> int:
        """All records."""
        return sum(each.size for each in self.blocks)

    def expanded(self) -> Iterator[Any]:
        """Arrow tables, one for each block: the records as they are written."""
        for each in self.blocks:
            yield each.expand(self.rows, *each.held)

    def to_arrow(self) -> Any:
        """All of it on this computer."""
        import pyarrow as pa

        return pa.concat_tables(self.expanded())

    def frame(self) -> Any:
        """Expanded whenever it is read."""
        return self.tasks.frame(self)

    def write(self, folder: Path, file_format: str) -> list[Answered]:
        """A part for each block."""
        rows = for_spreadsheets(self.rows) if file_format == "csv" else self.rows
        held = [(each.expand, each.held) for each in self.blocks]
        where = str(folder.absolute())

        def task(number: int) -> Answered:
            expand, own = held[number]
            return write_records(expand(rows, *own), where, file_format)

        return self.tasks.answers(task, len(held))

    def are(self, rows: list[int]) -> bool:
        """Whether parts of so many records are these."""
        return rows == [each.size for each in self.blocks]


def split(counts: NDArray[np.int64], *, size: int, rng: np.random.Generator) -> Iterator[CountTable]:
    """Counts of cells into those of blocks, as records in a uniformly random order would fall into them."""
    left, cells = counts.copy(), np.arange(len(counts))
    while (total := int(left.sum())) > 0:
        taken = left if total <= size else sampled(left, size, rng=rng)
        yield CountTable.from_cells(cells, taken)
        left = left - taken


def sampled(counts: NDArray[np.int64], size: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of each kind are among so many that are taken at random from all of them, without putting any back."""
    return rng.multivariate_hypergeometric(counts, size, method="marginals")
