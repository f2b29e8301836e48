"""`privurn example`: a made-up table to try everything on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import print_text
from privurn.errors import FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = """Examples:

privurn example incomes.csv

privurn example people.csv

privurn example people.yaml"""

NEXT = {
    "incomes.csv": "privurn plan --n 50000 --grid 0:200000:1000 --epsilon 1 --delta 1e-6",
    "people.csv": "privurn example people.yaml",
    "people.yaml": "privurn release people.csv --domain people.yaml --epsilon 1 --delta 1e-6 -o survey",
}
"""What to type after each."""


def example(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=f"New file: {', '.join(NEXT)}; with or without a folder.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file of that name.")] = False,
) -> None:
    """Write a made-up table: incomes.csv (one column of numbers) or people.csv (eight mixed columns; people.yaml: its domain).

    Nobody is in them, and they are the same every time.
    """
    from privurn.output_files import check_file, check_new_file, write_file

    makers: Mapping[str, Callable[[], str]] = {"incomes.csv": _incomes, "people.csv": _people, "people.yaml": _people_domain}
    if file.name not in makers:
        raise FormatError(f"there is no example {file.name!r}.", hint=f"privurn example {' or '.join(makers)}")
    if force:
        check_file(file)
    elif file.exists():
        raise FormatError(f"the file {str(file)!r} exists.", hint=f"privurn example {file} --force replaces it")
    else:
        check_new_file(file)
    text = makers[file.name]()
    write_file(file, lambda partial: partial.write_text(text), new=not force)
    lines = text.count("\n") - file.name.endswith(".csv")
    print_text(f"Wrote {file} ({lines:,} {'records' if file.suffix == '.csv' else 'lines'}, made up). Next, for example:")
    print_text(f"  {NEXT[file.name]}")


def _incomes() -> str:
    from privurn.simulated.incomes import incomes

    return _csv({"income": incomes()})


def _people() -> str:
    from privurn.simulated.people import people

    return _csv(people())


def _people_domain() -> str:
    from privurn.simulated.people import DOMAIN

    return DOMAIN


def _csv(columns: "Mapping[str, NDArray[Any]]") -> str:
    """Plain values, a header and a line for each record."""
    rows = zip(*(each.tolist() for each in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"
