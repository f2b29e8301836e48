"""`privurn privatise`: noise every record of a column, or of several, by itself, with a certificate."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import print_text, stages
from privurn.cli.domain_options import DomainOptions
from privurn.cli.made import guarantee_words, print_opening, show_folder
from privurn.cli.mechanism_options import ChannelCommand
from privurn.cli.options import DataFile, Epsilon, FileFormat, Folder, Json, Making, check_output, grouped
from privurn.cli.parsing import parse_bounds
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.certificates.release import Release

EXAMPLES = """Examples:

privurn privatise pay.csv --column pay --channel laplace --epsilon 2 --bounds 0:100000 -o noisy

privurn privatise pay.csv --column pay --channel gaussian --epsilon 2 --delta 1e-6 --bounds 0:100000 -o noisy

privurn privatise pay.csv --column pay --channel haar-wavelet --levels 4 --epsilon 10 --bounds 0:100000 -o noisy

privurn privatise visits.parquet --column region --channel randomised-response --categories north,south --epsilon 1 -o noisy

privurn privatise visits.csv --channel randomised-response --categories town=a,b --categories sex=f,m --epsilon 2 -o noisy"""


@grouped
def privatise(
    context: typer.Context,
    file: DataFile,
    epsilon: Epsilon,
    output: Folder,
    *,
    channel: Annotated[
        str,
        typer.Option(
            help="auto (laplace, or randomised-response with --categories), laplace, gaussian, haar-wavelet, "
            "randomised-response, discrete-laplace or discrete-gaussian (whole numbers)."
        ),
    ] = "auto",
    delta: Annotated[float, typer.Option("--delta", help="Allowed failure probability; the Gaussian channels need it.")] = 0.0,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", help="The confidential column; repeat for randomised response of several.", show_default=False
        ),
    ] = None,
    bounds: Annotated[
        str | None, typer.Option("--bounds", metavar="LO:HI", help="Public limits of numbers; what lies outside is clamped.")
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--categories",
            metavar="LIST",
            help="Public values of randomised response, comma-separated; COLUMN=LIST for each of several, which share epsilon.",
        ),
    ] = None,
    nulls: Annotated[
        str,
        typer.Option(help="Missing values, NaN too: error (declared absent), lower (numbers: lower bound), cell (categories)."),
    ] = "error",
    outside: Annotated[
        str | None,
        typer.Option(
            help="Values that are not listed: error (declared absent), other or null (a cell of their own, or that of nulls).",
            show_default="error",
        ),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Categories: capitals A-Z and small letters are the same.")
    ] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Rows in the order of the file, which tells who is who. Default: shuffled.")
    ] = False,
    file_format: FileFormat = "csv",
    making: Making,
    json: Json = False,
) -> None:
    """Privatise every record of a column, or of several, by itself (local differential privacy) with a certificate."""
    from privurn.releases.privatise import privatise as make

    check_output(output, file_format)
    data = making.data(file, staging=output.absolute().parent)
    domain = _domain(bounds, categories or [], column or [], nulls=nulls, outside=outside, ignore_case=ignore_case)
    default = "randomised-response" if categories else "laplace"
    asked = ChannelCommand.asked(context, ChannelCommand.named(default if channel == "auto" else channel))
    with stages(quiet=json) as progress:
        made = make(
            data,
            asked,
            domain=domain,
            epsilon=epsilon,
            delta=delta,
            order="kept" if keep_order else "shuffled",
            contributions=making.contributions,
            ledger=making.payer,
            entropy=making.entropy,
            progress=progress,
        ).save(output, file_format=file_format, progress=progress)  # type: ignore[arg-type]
    show_folder(made, output, json=json, words=lambda: _report(made))


def _domain(
    bounds: str | None, categories: list[str], columns: list[str], *, nulls: str, outside: str | None, ignore_case: bool
) -> Any:
    """Bounds of a column of numbers, or the categories of one or several."""
    from privurn.domain import Bounds

    if (bounds is None) == (not categories):
        raise FormatError("say what values the column may hold, in one way.", hint="--bounds LO:HI, or --categories LIST")
    allowed = ("error", "cell") if categories else ("error", "lower")
    if nulls not in allowed:
        raise FormatError(f"--nulls {nulls} is not possible here.", hint=" or ".join(allowed))
    if bounds is not None:
        if outside is not None or ignore_case:
            raise FormatError("--outside and --ignore-case are for categories.", hint="Numbers outside the bounds are clamped")
        if len(columns) > 1:
            raise FormatError("only randomised response takes several columns.", hint="Privatise one column at a time")
        return DomainOptions(column=columns).named(Bounds(*parse_bounds(bounds), nulls=nulls))  # type: ignore[arg-type]
    listed = DomainOptions(column=columns, categories=categories, outside=outside, nulls=nulls, ignore_case=ignore_case)
    return listed.named(listed.declared())


def _report(made: "Release") -> None:
    certificate = made.certificate
    name, parameters = certificate["mechanism"]["name"], certificate["mechanism"]["parameters"]
    print_opening(certificate, f"Privatised {certificate['output']['rows']:,} records, each by itself ({name}).")
    print_text(f"{guarantee_words(certificate)}, against everyone who sees the output.")
    if certificate["rho"] is not None:
        print_text(f"           Also rho-zCDP with rho = {certificate['rho']:.4g}.")
    for remark in made.remarks:
        print_text(f"Note: {remark}")
    if parameters["order"] == "kept":
        print_text("Note: rows are in the order of the file, which tells who is who.")
