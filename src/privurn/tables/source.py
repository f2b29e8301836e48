"""An opened table: its engine, its columns and their types, and how each is read in SQL."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from privurn.domain import BLANKS
from privurn.errors import DomainError
from privurn.tables.column_names import places
from privurn.tables.dialects import DUCKDB, NAN, Dialect
from privurn.tables.engine import Engine, Tasks
from privurn.tables.files import DataFiles

MOST_SHOWN = 20
ENOUGH = 3
"""Letters by which a name may be known."""

NOTHING = "BIGINT"
"""The type of a column that has none, because it holds nothing: whole numbers that are all missing."""

NAMED = "Name it, for example domain={'income': Grid(0, 100, 1)}"


@dataclass(frozen=True)
class Source:
    """An opened table: an engine with the data registered as `t`, the frame kind it came in, and its columns.

    In SQL the columns of `t` are called c0, c1, ...: see `column_names`.
    """

    connection: Engine
    kind: str
    types: Mapping[str, str]
    rows: Callable[[], int] | None
    """The table's own number of records, asked for after it has been read: a stream knows only then. None where there is no
    other way to it than to read all of them again."""
    size: Callable[[], int]
    """The same asked for beforehand; of a stream only where it was opened as `sized`."""
    untyped: frozenset[str] = field(default_factory=frozenset)
    """Columns whose stored type says nothing about their content: CSV fields, pandas object columns."""

    found: DataFiles | None = None
    """The real files that are read, and every name they were found by; None for a frame."""

    published: bool = False
    """Whether these are released records, in which NaN is how "other" is written among numbers."""

    dialect: Dialect = DUCKDB
    """Of the engine's SQL."""

    tasks: Tasks | None = None
    """What writes a large release, where records are on other computers; counts are then fetched rather than records."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The real files that are read, none for a frame."""
        return () if self.found is None else self.found.files

    def own_size(self, counted: int) -> int:
        """How many records there are, which ought to be those that were counted; and is, where the table does not know."""
        return counted if self.rows is None else self.rows()

    def the_column(self, column: str | None) -> str:
        """The column asked for, or the only one there is.

        A CSV file's column must be named: without a header line its first record would be taken for the name, and published.
        """
        if column is None:
            bare = self.kind == "path" and self.untyped
            if len(self.types) != 1:
                shown = "" if bare else f". The table has {self._names()}"
                raise DomainError("the table has several columns.", hint=NAMED + shown)
            if bare:
                raise DomainError("a CSV file's column must be named, as its header line has it.", hint=NAMED)
            column = next(iter(self.types))
        self.check_columns([column])
        return column

    def reference(self, column: str) -> str:
        """A column in SQL."""
        return f"t.{places(list(self.types))[list(self.types).index(column)]}"

    def stored(self, column: str) -> str:
        """A column in SQL as it is read: text without the blanks around it, of which nothing is left where it is missing."""
        bare = self.reference(column)
        return f"nullif(trim(BOTH {text_literal(BLANKS)} FROM {bare}), '')" if self.types[column] == "VARCHAR" else bare

    def value(self, column: str) -> str:
        """A column in SQL as it is compared: as it is read, but NaN is missing."""
        read, kind = self.stored(column), self.types[column]
        return f"nullif({read}, CAST('nan' AS {kind}))" if kind in ("FLOAT", "DOUBLE") and not self.published else read

    def number(self, column: str) -> str:
        """A column in SQL as a number; NULL where it holds none."""
        number = self.dialect.number(self.value(column), self.types[column])
        return number if self.published else f"nullif({number}, {NAN})"

    def _names(self) -> str:
        known = ", ".join(repr(each) for each in list(self.types)[:MOST_SHOWN])
        return known + (f" and {len(self.types) - MOST_SHOWN} more" if len(self.types) > MOST_SHOWN else "")

    def check_columns(self, columns: list[str]) -> None:
        """Every column asked for is there."""
        for name in columns:
            if name not in self.types:
                hint = f"The table has {self._names()}"
                if self.kind == "path" and self.untyped and not alike(columns, self.types):
                    hint = "Look at the file's first line: it names the columns, and is not shown here in case it is a record"
                raise DomainError(f"there is no column {name!r}.", hint=hint)


def alike(asked: Iterable[str], names: Iterable[str]) -> bool:
    """Whether some column that was asked for is among the names, or nearly: then they are names, and no record."""
    folded = [name.strip().lower() for name in names]
    for each in asked:
        own = each.strip().lower()
        if get_close_matches(own, folded, n=1) or any(len(own) >= ENOUGH and own in name for name in folded):
            return True
    return False


def text_literal(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
