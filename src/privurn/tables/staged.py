"""Records that were noised on other computers, in files there: drawn once, and read as often as they are wanted.

Noise that is drawn a second time for the same records is no longer the noise of their guarantee, so what is too large for one
computer is written down as it is drawn, and everything later reads that. A random word stands beside each record, and is never
published: records are put into its order, and equal words into that of what is published, which tells nothing of the data.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privurn.tables import blocks
from privurn.tables.blocks import InParts, Wave
from privurn.tables.column_names import places
from privurn.tables.engine import Answered, Tasks
from privurn.tables.output import for_spreadsheets
from privurn.tables.part_file import write_records

WORD, WORDS = "word", 2**63
"""What the random words are called in the files, and how many there are."""


def with_words(table: Any) -> Any:
    """Records as they are staged: a random word of the operating system's first, then the columns by their places."""
    import numpy as np
    import pyarrow as pa

    words = np.frombuffer(bytearray(os.urandom(8 * table.num_rows)), np.int64) & np.int64(WORDS - 1)
    own = pa.Array.from_buffers(pa.int64(), len(words), [None, pa.py_buffer(words)])
    return pa.table([own, *table.columns], names=[WORD, *places(table.column_names)])


def in_order(staged: Any, like: Any) -> Any:
    """Staged records in the order of their words, without these, as `like` has its columns."""
    import pyarrow.compute as pc

    names = [WORD, *places(like.column_names)]
    order = pc.sort_indices(staged, sort_keys=[(name, "ascending") for name in names])
    return staged.select(names[1:]).take(order).combine_chunks().rename_columns(like.column_names).cast(like.schema)


@dataclass(frozen=True)
class Staged(InParts):
    """All of them in a folder of Parquet files."""

    folder: str = field(kw_only=True)
    records: int = field(kw_only=True)

    @property
    def num_rows(self) -> int:
        """All records."""
        return self.records

    @property
    def width(self) -> int:
        """How many words belong to each part, which has about as many records as a block."""
        return -(-WORDS // max(1, -(-self.records // blocks.SIZE)))

    def parts(self) -> Iterator[Any]:
        """Staged records of each part, read by this computer."""
        import pyarrow.dataset as ds

        stored = ds.dataset(self.folder, format="parquet")
        for first in range(0, WORDS, self.width):
            last = min(first + self.width, WORDS) - 1
            yield stored.to_table(filter=(ds.field(WORD) >= first) & (ds.field(WORD) <= last))

    def to_arrow(self) -> Any:
        """All of it on this computer."""
        import pyarrow as pa

        return pa.concat_tables(in_order(each, self.rows) for each in self.parts())

    def frame(self) -> Any:
        """Read from the files whenever it is asked for."""
        return self.tasks.staged_frame(self)

    def waves(self) -> Iterator[Wave]:
        """One of all parts: Spark brings their records together at once."""
        yield StagedWave(self)


@dataclass(frozen=True, eq=False)
class StagedWave:
    """All parts, random ones, each in the order of its words."""

    staged: Staged

    @property
    def parts(self) -> int:
        """About so many."""
        return -(-WORDS // self.staged.width)

    def write(self, tasks: Tasks, folder: Path, file_format: str) -> list[Answered]:
        """By a task for each part."""
        where, like = str(folder.absolute()), self.staged.rows

        def task(staged: Any) -> Answered:
            table = in_order(staged, like)
            return write_records(for_spreadsheets(table) if file_format == "csv" else table, where, file_format)

        return tasks.grouped(self.staged, task)

    def are(self, rows: list[int]) -> bool:
        """Whether parts of so many records are these."""
        return sum(rows) == self.staged.records
