"""What commands print: tables and notes for people on a terminal, JSON for machines, errors on standard error."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

PIPE = 160
"""Characters of a table's line where nobody says how wide it may be."""
PADDING = 3
"""Of each column: a line and two blanks."""


def print_json(data: Any) -> None:
    """One JSON object on standard output; in plain characters where those of other scripts cannot be encoded."""
    plain = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(data, ensure_ascii=plain, allow_nan=False) + "\n")


def print_text(text: str) -> None:
    """Plain text on standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A remark on standard error, so that standard output stays clean."""
    sys.stderr.write(text + "\n")


def print_words(text: str) -> None:
    """Sentences on standard output: no word is broken where a line of the terminal is full."""
    width = _width()
    print_text(text if width is None else "\n".join(wrap(text, width, break_long_words=False, break_on_hyphens=False)))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; numbers are aligned to the right.

    Cells are broken between words only. What does not fit side by side goes into further tables below, each with the first
    column, which names the rows.
    """
    from rich.console import Console

    width = _width() or PIPE
    console = Console(width=width)
    print_words(title)
    cells = [[row[i] for row in rows] for i in range(len(columns))]
    for widths in _layout([[head, *own] for head, own in zip(columns, cells, strict=True)], width):
        console.print(_table(columns, cells, widths))


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]], widths: Mapping[int, int]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for i, width in widths.items():
        numeric = all(each[:1].isdigit() or each in ("", "-", "unlimited") for each in cells[i])
        table.add_column(Text(columns[i]), justify="right" if numeric and i else "left", overflow="fold", width=width)
    for j in range(len(cells[0])):
        table.add_row(*(Text(cells[i][j]) for i in widths))  # beta[age] is no style
    return table


def _width() -> int | None:
    """Of the terminal, or as COLUMNS says, 0 being no width; a pipe has none: nothing is folded needlessly."""
    from rich.console import Console

    console = Console()
    return (console.width or None) if console.is_terminal or os.environ.get("COLUMNS", "").isdigit() else None


def _layout(columns: Sequence[Sequence[str]], width: int) -> list[dict[int, int]]:
    """Widths by column, for one table or for several below each other; a column is as narrow as its longest word at least."""
    least = [max(_longest(each.split()) for each in own) for own in columns]
    tables: list[list[int]] = [[0]]
    for i in range(1, len(columns)):
        if sum(least[j] + PADDING for j in [*tables[-1], i]) + 1 > width and len(tables[-1]) > 1:
            tables.append([0])
        tables[-1].append(i)
    natural = [max(_longest(each.splitlines()) for each in own) for own in columns]
    return [_fitted({i: (least[i], natural[i]) for i in each}, width) for each in tables]


def _fitted(columns: Mapping[int, tuple[int, int]], width: int) -> dict[int, int]:
    """As wide as the text where there is room, else the widest give way first."""
    found = {i: natural for i, (_, natural) in columns.items()}
    while sum(each + PADDING for each in found.values()) + 1 > width:
        widest = max(found, key=lambda i: (found[i] > columns[i][0], found[i]))
        if found[widest] == 1:
            break  # more columns than characters
        found[widest] -= 1
    return found


def _longest(texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)


@contextmanager
def custodian_notes() -> Iterator[None]:
    """What the custodian alone is told of the data, as notes on standard error."""
    import warnings

    from privurn.errors import ConfidentialWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConfidentialWarning)
        try:
            yield
        finally:
            for each in caught:
                note(f"warning: {each.message}")


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A spinner that names the stage of the work; silent for machines."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda stage: None
        return
    words = {"counting": "Counting distinct values", "planning": "Computing the guarantee", "drawing": "Drawing records"}
    with console.status("Reading") as status:
        yield lambda stage: status.update(words.get(stage, stage))


@contextmanager
def sweeps_bar(words: str, *, quiet: bool) -> Iterator[Callable[[int, int, Mapping[str, float]], None]]:
    """A progress bar for Markov chains, with effective draws and acceptance beside it; silent for machines."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total, figures: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[shown]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=None, shown="")

        def show(done: int, total: int, figures: Mapping[str, float]) -> None:
            shown = "  ".join(f"{name} {value:,.3g}" for name, value in figures.items())
            bar.update(task, completed=done, total=total, shown=shown)

        yield show


def rounded_up(value: float) -> str:
    """Six digits, never less than the value but for the last bits of a sum; what needs fewer is printed as it was typed."""
    from decimal import ROUND_CEILING, Context

    short = f"{value:g}"
    if float(short) >= value * (1.0 - 1e-14):
        return short
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value)):g}"
