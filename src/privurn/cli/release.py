"""`privurn release`: from a file to a certified synthetic data set."""

from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli.console import custodian_notes, print_text, stages
from privurn.cli.domain_options import DomainOptions
from privurn.cli.made import guarantee_words, print_opening, show_folder
from privurn.cli.mechanism_options import asked_mechanism
from privurn.cli.options import (
    DataFile,
    Delta,
    Epsilon,
    FileFormat,
    Folder,
    Json,
    Making,
    NeighbouringOption,
    check_output,
    grouped,
)
from privurn.cli.parsing import parse_neighbouring

if TYPE_CHECKING:
    from privurn.certificates.release import Release

EXAMPLES = """Examples:

privurn release pay.csv --column pay --grid 0:200000:500 --epsilon 1 --delta 1e-6 -o out

privurn release visits.parquet --column region --categories north,south,east,west --epsilon 0.5 --ledger visits.ledger -o out

privurn release people.csv --grid age=0:99:1 --categories sex=f,m --epsilon 2 --delta 1e-8 -o out

privurn release shops.csv --column town --open-labels --epsilon 1 --delta 1e-6 -o out

privurn release survey.parquet --domain columns.yaml --mechanism noisy-marginals --epsilon 1 --delta 1e-6 -o out

privurn release pay.csv --column pay --grid 0:200000:5000 --mechanism perturbed-histogram --publish counts --epsilon 1 -o out

privurn release pay.csv --column pay --bounds 0:200000 --mechanism laplace --epsilon 2 -o noisy

privurn release people.csv --mechanism normal --y height --bounds 0:250 --epsilon 1 -o sums"""


@grouped
def release(
    context: typer.Context,
    file: DataFile,
    epsilon: Epsilon,
    output: Folder,
    *,
    delta: Delta = 0.0,
    domain: DomainOptions,
    mechanism: Annotated[
        str,
        typer.Option(
            help="auto, or one of those below, each with options of its own. A channel (laplace, gaussian, ...) or a model of "
            "sums (regression, table, ...) as well: the options are then those of privatise or statistics, short for it.",
            show_default=True,
        ),
    ] = "auto",
    neighbouring: NeighbouringOption = "replace-one",
    file_format: FileFormat = "csv",
    making: Making,
    json: Json = False,
) -> None:
    """Release synthetic records of a column (or a few taken jointly) with a certificate."""
    from privurn.releases.release import release as make_release

    check_output(output, file_format)
    data = making.data(file)
    declared = domain.declared()
    asked = asked_mechanism(context, mechanism, domain=declared)
    with custodian_notes(), stages(quiet=json) as progress:
        made = make_release(
            data,
            asked,
            domain=domain.named(declared),
            epsilon=epsilon,
            delta=delta,
            contributions=making.contributions,
            neighbouring=parse_neighbouring(neighbouring),
            ledger=making.payer,
            entropy=making.entropy,
            progress=progress,
        ).save(output, file_format=file_format, progress=progress)  # type: ignore[arg-type]
    show_folder(made, output, json=json, words=lambda: report_release(made))


def report_release(made: "Release") -> None:
    """What was released, and what is promised."""
    from privurn.cli.flags import translated
    from privurn.domain import domain_from_json
    from privurn.mechanisms.registry import rebuild

    certificate = made.certificate
    target, achieved = certificate["target"], certificate["achieved"]
    name = certificate["mechanism"]["name"]
    mechanism = rebuild(name, certificate["mechanism"]["parameters"])
    rows = certificate["output"]["rows"]
    opening = f"Released {rows:,} {mechanism.rows_are} with the {name} mechanism"
    if certificate["synthetic"] is not None:
        opening += f", and {certificate['synthetic']['rows']:,} synthetic records made from them"
    print_opening(certificate, f"{opening}.")
    print_text(f"{guarantee_words(certificate)};")
    print_text(
        f"           recomputed from the parameters: delta = {achieved['delta']:.3g} at epsilon = {target['epsilon']:g}."
    )
    if certificate["domain"]["kind"] in ("joint", "table"):
        print_text(f"Domain:    {domain_from_json(certificate['domain']).describe()}.")
    for remark in made.remarks:
        print_text(f"Note: {translated(remark, {'records'})}")
