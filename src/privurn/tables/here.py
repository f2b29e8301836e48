"""Tasks without a cluster: the process that asks for them runs them, where a cluster cannot, and in tests."""

from collections.abc import Callable
from typing import Any

from privurn.tables.engine import Answer, Answered, Task, Work
from privurn.tables.part_sample import expanded
from privurn.tables.staged import Staged, in_order, with_words

ROWS = 2**17
"""Records at a time."""


class Here:
    """Tasks that run in this process, one after the other."""

    def answers(self, task: Task, number: int) -> list[Answered]:
        """In order."""
        return [task(each) for each in range(number)]

    def check(self, n: int) -> None:
        """Nothing is in the way."""

    def mapped(self, records: Answer, work: Work, *, like: Any, n: int) -> Any:
        """All of them in memory."""
        import pyarrow as pa

        batches = [with_words(work(batch.column(0))) for batch in records.to_arrow_reader(ROWS)]
        return in_order(pa.concat_tables(batches), like)

    def grouped(self, staged: Staged, task: Callable[[Any], Answered]) -> list[Answered]:
        """Parts that are read here."""
        return [task(each) for each in staged.parts()]

    def frame(self, rows: Any, groups: list[Any], places: list[tuple[int, int]]) -> Any:
        """An Arrow table."""
        import pyarrow as pa

        return pa.concat_tables(expanded(rows, groups[own], number) for own, number in places)

    def staged_frame(self, staged: Staged) -> Any:
        """An Arrow table."""
        return staged.to_arrow()
