"""`privurn privatise`: noise every record of a column by itself, with a certificate."""

from pathlib import Path
from typing import Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_text, stages
from privurn.cli.release import Epsilon, Json
from privurn.errors import FormatError

EXAMPLES = """Examples:

privurn privatise pay.csv --column pay --channel laplace --epsilon 2 --bounds 0:100000 -o noisy

privurn privatise pay.csv --column pay --channel gaussian --epsilon 2 --delta 1e-6 --bounds 0:100000 -o noisy

privurn privatise pay.csv --column pay --channel haar-wavelet --levels 4 --epsilon 10 --bounds 0:100000 -o noisy

privurn privatise visits.parquet --column region --channel randomised-response --categories north,south --epsilon 1 -o noisy"""


def privatise(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet file, or a glob in quotes.")],
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="New folder for data and certificate.")],
    channel: Annotated[
        str,
        typer.Option(
            help="laplace, gaussian, haar-wavelet, randomised-response, discrete-laplace or discrete-gaussian (whole numbers)."
        ),
    ] = "laplace",
    delta: Annotated[float, typer.Option("--delta", help="Allowed failure probability; the Gaussian channels need it.")] = 0.0,
    column: Annotated[str | None, typer.Option("--column", help="The confidential column.", show_default=False)] = None,
    bounds: Annotated[
        str | None, typer.Option("--bounds", metavar="LO:HI", help="Public limits of numbers; what lies outside is clamped.")
    ] = None,
    categories: Annotated[
        str | None, typer.Option("--categories", metavar="LIST", help="Public values of randomised response, comma-separated.")
    ] = None,
    levels: Annotated[int | None, typer.Option(help="Finest level of the wavelet.", show_default=False)] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="Gaussian: analytic (default), zcdp, classical. Wavelet: tight (default), butucea2020."),
    ] = None,
    nulls: Annotated[
        str, typer.Option(help="Missing values: error (declared absent), lower (numbers: the lower bound), cell (categories).")
    ] = "error",
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Rows in the order of the file, which tells who is who. Default: shuffled.")
    ] = False,
    contributions: Annotated[int, typer.Option(help="Most records that one person may own.")] = 1,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger that pays first. Default: FILE.ledger where that exists.", metavar="PATH")
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Use no ledger; the certificate says so.")] = False,
    file_format: Annotated[str, typer.Option("--format", help="Format of the released data: csv or parquet.")] = "csv",
    seed: Annotated[int | None, typer.Option(help="For tests only: marks the release as seeded, not private.")] = None,
    json: Json = False,
) -> None:
    """Privatise every record of a column by itself (local differential privacy) with a certificate."""
    from privurn.cli.parsing import parse_domain
    from privurn.cli.release import _ledger_path
    from privurn.privatising import privatise as make
    from privurn.storage import check_new_folder

    check_new_folder(output)
    if file_format not in ("csv", "parquet"):
        raise FormatError(f"the format {file_format!r} is not known.", hint="--format csv or --format parquet")
    listed: Any = None
    if categories is not None:
        listed = parse_domain(
            columns=[],
            grids=[],
            bins=[],
            categories=[categories],
            open_labels=False,
            domain_file=None,
            outside=None,
            nulls="cell" if nulls == "cell" else "error",
        )
    entropy = None
    if seed is not None:
        from privurn.privacy.entropy import SeededEntropy

        entropy = SeededEntropy(seed)
    with stages(quiet=json) as progress:
        made = make(
            file,
            channel=channel,  # type: ignore[arg-type]
            epsilon=epsilon,
            delta=delta,
            bounds=None if bounds is None else parse_bounds(bounds),
            categories=listed,
            levels=levels,
            calibration=calibration,  # type: ignore[arg-type]
            column=column,
            nulls=nulls,  # type: ignore[arg-type]
            order="kept" if keep_order else "shuffled",
            contributions=contributions,
            ledger=_ledger_path(file, ledger, no_ledger),
            entropy=entropy,
            progress=progress,
        ).save(output, file_format=file_format)  # type: ignore[arg-type]
    _report(made, output, json=json)


def parse_bounds(text: str) -> tuple[float, float]:
    """LO:HI as two numbers."""
    try:
        lower, upper = (float(part) for part in text.split(":"))
    except ValueError:
        raise FormatError(f"the bounds {text!r} are not understood.", hint="Give LO:HI, for example --bounds 0:100") from None
    return lower, upper


def _report(made: Any, output: Path, *, json: bool) -> None:
    certificate = made.certificate
    paths = {
        "folder": str(output),
        "data": str(output / certificate["output"]["file"]),
        "certificate": str(output / "certificate.json"),
    }
    if json:
        print_json({"paths": paths, "remarks": list(made.remarks), "certificate": dict(certificate.data)})
        return
    target, parameters = certificate["target"], certificate["mechanism"]["parameters"]
    print_text(f"Privatised {certificate['output']['rows']:,} records, each by itself ({certificate['mechanism']['name']}).")
    if not certificate["private"]:
        print_text("Seeded, so NOT private: for tests only. Without the seed it would be:")
    print_text(
        f"Guarantee: ({target['epsilon']:g}, {target['delta']:g})-differential privacy for "
        f"{certificate['privacy_unit']['unit']}, against everyone who sees the output."
    )
    if certificate["rho"] is not None:
        print_text(f"           Also rho-zCDP with rho = {certificate['rho']:.4g}.")
    for remark in made.remarks:
        print_text(f"Note: {remark}")
    if parameters["order"] == "kept":
        print_text("Note: rows are in the order of the file, which tells who is who.")
    if not certificate["private"]:
        note("warning: seeded: not private. Use it for tests only.")
    if not certificate["ledger"]["used"]:
        note("warning: no ledger was used, so nothing stops a second release; the certificate says so.")
    print_text(f"Data:        {paths['data']}")
    print_text(f"Certificate: {paths['certificate']}   (check it: privurn verify {output})")
