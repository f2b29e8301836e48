"""A release too large for one computer: known by its counts, and divided into blocks where there is room for them.

Records are drawn block by block, and only how often each was drawn is kept. Given that, every order is equally likely and tells
nothing of the data: which records are in which block is drawn from a key (`part_sample`), and so is the order in it. The driver
divides the counts into those of a few blocks at a time, executors divide these and write the blocks, and so neither holds what
grows with the number of records. Why the whole has the law of records drawn one after the other: docs/proofs/integer-urn.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import FormatError
from privurn.tables.engine import Answered, Tasks
from privurn.tables.output import for_spreadsheets
from privurn.tables.part_file import drawn_records, write_records
from privurn.tables.part_sample import expanded, halved, halved_records

SIZE = 2**21
"""Records of a block, which is a part of the release, too: they are in memory at once where the part is written."""

GROUP = 8
"""Blocks that the driver leaves to be divided by whoever writes one of them."""

WAVE_BLOCKS, WAVE_BYTES = 1_024, 2**25
"""What executors are given at a time: so many blocks, of which they are sent about so many bytes."""

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
    def waves(self) -> "Iterator[Wave]":
        """Parts that are written at a time, one wave after the other."""


class Wave(Protocol):
    """Some parts of a release."""

    @property
    def parts(self) -> int:
        """How many, as far as that is known beforehand."""

    def write(self, tasks: Tasks, folder: Path, file_format: str, /) -> list[Answered]:
        """Write each part into a file of a folder that all tasks can reach: names as they came, rows, hashes."""

    def are(self, rows: list[int], /) -> bool:
        """Whether parts of so many records are these."""


@dataclass(frozen=True, eq=False)
class Lot:
    """Records in random order: `halve(held, size, words)` are the first so many of them and the rest.

    `expand(rows, held, more, key)` are the records of a block, the same each time. Both are functions that executors are sent.
    """

    held: Any
    records: int
    key: bytes
    halve: Callable[..., Any] = halved_records
    expand: Callable[..., Any] = drawn_records
    more: tuple[Any, ...] = ()
    """What is the same for all blocks."""
    size: int = field(default_factory=lambda: SIZE)
    """Records of each block but the last."""

    @property
    def blocks(self) -> int:
        """How many."""
        return -(-self.records // self.size)

    def rows(self, number: int) -> int:
        """Records of a block."""
        return min(self.size, self.records - number * self.size)

    def groups(self) -> "Iterator[Group]":
        """Of a few blocks each, in order; the counts of what was passed are no longer held."""
        left = [(self.held, 0, self.blocks)]
        while left:
            held, first, last = left.pop()
            if last - first <= GROUP:
                yield Group(self, held, first, last)
                continue
            one, other = halved(held, self.halve, self.key, first, last, self.size)
            middle = first + (last - first) // 2
            left += [(other, middle, last), (one, first, middle)]


@dataclass(frozen=True, eq=False)
class Group:
    """Some blocks of a lot, from the first to before the last."""

    lot: Lot
    held: Any
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """About so many are sent to whoever writes one of them."""
        return _bytes(self.held)

    @property
    def numbers(self) -> range:
        """Of the blocks."""
        return range(self.first, self.last)

    def given(self) -> tuple[Any, ...]:
        """The same without classes that executors would have to know."""
        lot = self.lot
        return (self.held, lot.halve, lot.key, self.first, self.last, lot.size), lot.expand, lot.more


@dataclass(frozen=True, eq=False)
class BlocksWave:
    """Some groups of blocks, which executors are sent at a time."""

    rows: Any
    groups: tuple[Group, ...]

    @property
    def parts(self) -> int:
        """One for each block."""
        return sum(len(each.numbers) for each in self.groups)

    def write(self, tasks: Tasks, folder: Path, file_format: str) -> list[Answered]:
        """By a task for each block."""
        rows = for_spreadsheets(self.rows) if file_format == "csv" else self.rows
        groups, places = listed(self.groups)
        where = str(folder.absolute())

        def task(number: int) -> Answered:
            own, block = places[number]
            return write_records(expanded(rows, groups[own], block), where, file_format)

        return tasks.answers(task, len(places))

    def are(self, rows: list[int]) -> bool:
        """Whether parts of so many records are these."""
        return rows == [each.lot.rows(number) for each in self.groups for number in each.numbers]


def listed(groups: Iterable[Group]) -> tuple[list[tuple[Any, ...]], list[tuple[int, int]]]:
    """What is sent to executors of some groups, and each block as the place of its group there and its number."""
    found = list(groups)
    return [each.given() for each in found], [(own, number) for own, each in enumerate(found) for number in each.numbers]


@dataclass(frozen=True)
class Blocks(InParts):
    """Released records in their order, lot after lot. `rows` are the distinct ones, or have the distinct values."""

    lots: tuple[Lot, ...] = field(repr=False, kw_only=True)

    @classmethod
    def drawn(
        cls,
        counts: Iterable[CountTable],
        *,
        decode: Callable[[NDArray[np.int64]], tuple[Any, Any]],
        words: Words,
        tasks: Tasks,
    ) -> "Blocks":
        """From the counts of each lot; `decode` makes records of cells, and tells how they are spread."""
        held = list(counts)
        cells = np.unique(np.concatenate([each.values for each in held]))
        rows, spread = decode(cells)
        lots = (
            Lot((np.searchsorted(cells, each.values), each.counts), each.n, words(4).tobytes(), more=(spread,)) for each in held
        )
        return cls(rows, lots=tuple(lots), tasks=tasks)

    @property
    def num_rows(self) -> int:
        """All records."""
        return sum(each.records for each in self.lots)

    @property
    def sizes(self) -> list[int]:
        """Records of each part."""
        return [each.rows(number) for each in self.lots for number in range(each.blocks)]

    def groups(self) -> Iterator[Group]:
        """Of all lots."""
        for each in self.lots:
            yield from each.groups()

    def expanded(self) -> Iterator[Any]:
        """Arrow tables, one for each block: the records as they are written."""
        for each in self.groups():
            given = each.given()
            for number in each.numbers:
                yield expanded(self.rows, given, number)

    def to_arrow(self) -> Any:
        """All of it on this computer."""
        import pyarrow as pa

        return pa.concat_tables(self.expanded())

    def frame(self) -> Any:
        """Expanded whenever it is read. All of its groups are sent to executors, and so they must be few."""
        groups, total = [], 0
        for each in self.groups():
            groups.append(each)
            total += each.bytes
            if total > WAVE_BYTES:
                raise FormatError(
                    f"{self.num_rows:,} records are too many for a frame that makes them anew whenever it is read.",
                    hint="Save the release, and read the files in its folder 'data' with Spark",
                )
        return self.tasks.frame(self.rows, *listed(groups))

    def waves(self) -> Iterator[Wave]:
        """As many groups as executors are sent at a time."""
        groups: list[Group] = []
        blocks = total = 0
        for each in self.groups():
            blocks, total = blocks + len(each.numbers), total + each.bytes
            if groups and (blocks > WAVE_BLOCKS or total > WAVE_BYTES):
                yield BlocksWave(self.rows, tuple(groups))
                groups, blocks, total = [], len(each.numbers), each.bytes
            groups.append(each)
        if groups:
            yield BlocksWave(self.rows, tuple(groups))


def _bytes(held: Any) -> int:
    """Of all arrays in it."""
    if isinstance(held, np.ndarray):
        return held.nbytes
    parts = held.values() if isinstance(held, dict) else held
    return sum(map(_bytes, parts))
