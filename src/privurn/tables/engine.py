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


class Tasks(Protocol):
    """Where an engine has computers of its own: they write a release that is as large as what they hold (`blocks`)."""

    def answers(self, task: Task, number: int, /) -> list[Answered]:
        """Of tasks 0, 1, ..., in order. A task that was lost may be run again, and gives the same file under another name."""

    def frame(self, blocks: Any, /) -> Any:
        """The records of blocks as a frame of the engine's own kind."""
