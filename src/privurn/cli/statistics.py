"""`privurn statistics`: from a file to noisy sums with a certificate."""

from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli.console import custodian_notes, note, print_text, stages
from privurn.cli.made import guarantee_words, print_opening, show_folder
from privurn.cli.mechanism_options import StatisticsCommand
from privurn.cli.options import DataFile, FileFormat, Folder, Json, Making, check_output, grouped
from privurn.cli.parsing import parse_neighbouring
from privurn.cli.release import report_release

if TYPE_CHECKING:
    from privurn.certificates.release import Release

EXAMPLES = """Examples:

privurn statistics people.csv --model regression --y pay --x age --x years --bounds pay=0:200000 --bounds age=0:120
--bounds years=0:60 --epsilon 1.1 --epsilon-n 0.1 --neighbouring add-remove -o sums

privurn statistics people.csv --model logistic --y ill --x age --bounds age=0:120 --epsilon 1 -o sums

privurn statistics people.csv --model table --categories smoker=yes,no --categories ill=yes,no --epsilon 1 -o sums

privurn statistics days.csv --model dirichlet --part sleep --part work --part rest --floor 0.001 --epsilon 1 -o sums

privurn statistics people.csv --model normal --y height --bounds 0:250 --epsilon 1 -o sums"""


@grouped
def statistics(
    context: typer.Context,
    file: DataFile,
    model: Annotated[str, typer.Option(help="One of those below, each with options of its own.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss of everything that is published.")],
    output: Folder,
    *,
    epsilon_n: Annotated[
        float | None,
        typer.Option("--epsilon-n", help="With add-remove: the part of epsilon for n. Left out: nothing of n is published."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="For discrete-gaussian noise, then the default of sums.")] = 0.0,
    noise: Annotated[
        str | None,
        typer.Option(help="laplace, discrete-laplace (whole numbers; their default) or discrete-gaussian (with --delta)."),
    ] = None,
    neighbouring: Annotated[
        str, typer.Option("--neighbouring", help="replace-one (n is public and published) or add-remove (n is secret).")
    ] = "replace-one",
    file_format: FileFormat = "csv",
    making: Making,
    json: Json = False,
) -> None:
    """Publish noisy sums that a model can be inferred from, with a certificate."""
    from privurn.privacy.profile import Guarantee

    check_output(output, file_format)
    data = making.data(file)
    asked = StatisticsCommand.asked(context, StatisticsCommand.named(model))
    guarantee = Guarantee(
        epsilon=epsilon,
        delta=delta,
        neighbouring=parse_neighbouring(neighbouring),
        contributions=making.contributions,
    )
    paid = {"ledger": making.payer, "entropy": making.entropy}
    with custodian_notes(), stages(quiet=json) as progress:
        progress("Adding up")
        made = asked.release(data, guarantee, epsilon_n=epsilon_n, noise=noise, **paid).save(output, file_format=file_format)
    sums = made.certificate["domain"]["kind"] == "statistics"
    show_folder(made, output, json=json, words=lambda: (_report if sums else report_release)(made))


def _report(made: "Release") -> None:
    from privurn.inference.sums.reading import released_sums
    from privurn.privacy.profile import LARGEST_EPSILON

    certificate, public = made.certificate, released_sums(made)
    target, achieved = certificate["target"], certificate["achieved"]
    print_opening(certificate, f"Released {len(public.values):,} noisy sums for the model {public.model}.")
    print_text(f"{guarantee_words(certificate)}, neighbours: {public.neighbouring};")
    print_text(
        f"           recomputed from the parameters: epsilon = {achieved['epsilon']:.6g} at delta = {target['delta']:g}."
    )
    if public.neighbouring == "add-remove" and 2.0 * target["epsilon"] <= LARGEST_EPSILON and target["delta"] == 0.0:
        print_text(f"           For one record replaced by another it is {2.0 * target['epsilon']:g}: one removed, one added.")
    print_text(f"Noise:     {public.noise.kind} of scale {public.noise.scale:g} on each sum.")
    if public.n is not None:
        print_text(f"Records:   n = {public.n:,}, public.")
    elif public.noisy_n is not None and public.size_noise is not None:
        print_text(f"Records:   noisy n = {public.noisy_n:,.6g}, noise of scale {public.size_noise.scale:g}; n is secret.")
    else:
        print_text("Records:   n is secret, and nothing about it was published.")
    for remark in made.remarks:
        note(f"note: {remark}")
