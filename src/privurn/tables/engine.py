"""What reads the records of a table: SQL goes in, Arrow comes out. Nothing else in the package asks a database anything.

Records stay where the engine has them. Only three things leave it: counts of distinct cells or labels (`counting`), cells or
numbers of records in batches that are added up as they come (`cell_batches`, `numeric`), and records one by one for what noises
each of them (`columns`, `rows`). How far engines differ in their SQL is said in `dialects`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class Answer(Protocol):
    """To a query; nothing is computed before it is asked for."""

    def to_arrow_table(self) -> Any:
        """All of it."""

    def to_arrow_reader(self, batch_size: int, /) -> Iterable[Any]:
        """Arrow batches of about so many rows."""


class Engine(Protocol):
    """An opened table is `t` in its SQL. DuckDB's own connection is such an engine."""

    def sql(self, query: str, /) -> Any:
        """The `Answer` to a question about `t` and registered tables."""

    def register(self, name: str, table: Any, /) -> Any:
        """Make a small Arrow table known, such as a list of categories."""


Answered = tuple[str, int, str]
"""Of a task that wrote a part of a release: the file's name, its records, its SHA-256."""

Task = Callable[[int], Answered]

Work = Callable[[Any], Any]
"""What is made of the only column of a batch of records, an Arrow array: an Arrow table with a row for each."""


class Tasks(Protocol):
    """Where an engine has computers of its own: they noise records, and write a release as large as what they hold."""

    def answers(self, task: Task, number: int, /) -> list[Answered]:
        """Of tasks 0, 1, ..., in order. A task that was lost may be run again, and gives the same file under another name."""

    def frame(self, rows: Any, groups: list[Any], places: list[tuple[int, int]], /) -> Any:
        """The records of blocks (`tables.part_sample.expanded`) as a frame of the engine's own kind."""

    def check(self, n: int, /) -> None:
        """Before anything is paid: a refusal where n records could not be noised, whatever they hold."""

    def mapped(self, records: Answer, work: Work, /, *, like: Any, n: int) -> Any:
        """Each of n records through `work` exactly once, in random order: an Arrow table, or `Staged` where they are many.

        `like` is an Arrow table as `work` returns them, with every text that may be in one.
        """

    def grouped(self, staged: Any, task: Callable[[Any], Answered], /) -> list[Answered]:
        """Of a task for each part of `Staged` records, an Arrow table, in order."""

    def staged_frame(self, staged: Any, /) -> Any:
        """`Staged` records as a frame of the engine's own kind."""
