"""`privurn report`: one HTML page about a release."""

from pathlib import Path
from typing import Annotated

import typer

from privurn.cli.console import note, print_json, print_text
from privurn.cli.options import Json
from privurn.cli.parsing import check_release

EXAMPLES = """Examples:

privurn report out

privurn report out -o pay.html

privurn report sums

privurn report out --data pay.csv

privurn report out --data pay.csv -o CONFIDENTIAL-pay.html --json"""

WARNING = "confidential: the page holds figures computed from the data. Do not publish it or hand it over with the release."


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a release.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="FILE", help="The confidential table: adds before and after, marks the page.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="New file. Default: DIR/report.html; with --data CONFIDENTIAL-report.html beside DIR.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write one self-contained HTML page: what was released, what it promises in plain words, and how to check it.

    Without --data the page is computed from the folder alone and may be published with it.
    """
    from privurn.reports.html import report as write_report

    check_release(folder)
    path = write_report(folder, data=data, output=output)
    if data is not None:
        note(WARNING)
    if json:
        print_json({"report": str(path), "confidential": data is not None})
        return
    print_text(f"Report{' (confidential)' if data is not None else ''}: {path}")
