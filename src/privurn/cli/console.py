"""What commands print: tables and notes for people on a terminal, JSON for machines, errors on standard error."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


def print_json(data: Any) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")


def print_text(text: str) -> None:
    """Plain text on standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A remark on standard error, so that standard output stays clean."""
    sys.stderr.write(text + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; numbers are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        numeric = all(row[i][:1].isdigit() or row[i] in ("", "-", "unlimited") for row in rows)
        table.add_column(column, justify="right" if numeric and i else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a pipe has no width: do not fold needlessly
    console.print(table)


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
