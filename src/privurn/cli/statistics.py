"""`privurn statistics`: from a file to noisy statistics with a certificate, in one JSON file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privurn.cli.console import note, print_json, print_text, stages
from privurn.cli.made import guarantee_words, print_opening, warn
from privurn.cli.mechanism_options import StatisticsCommand
from privurn.cli.options import DataFile, Json, Making, grouped
from privurn.cli.parsing import parse_neighbouring

if TYPE_CHECKING:
    from privurn.certificates.statistics import ReleasedStatistics

EXAMPLES = """Examples:

privurn statistics people.csv --model regression --y pay --x age --x years --bounds pay=0:200000 --bounds age=0:120
--bounds years=0:60 --epsilon 1 --epsilon-n 0.1 --neighbouring add-remove -o stats.json

privurn statistics people.csv --model logistic --y ill --x age --bounds age=0:120 --epsilon 1 -o stats.json

privurn statistics people.csv --model table --categories smoker=yes,no --categories ill=yes,no --epsilon 1 -o stats.json

privurn statistics days.csv --model dirichlet --part sleep --part work --part rest --floor 0.001 --epsilon 1 -o stats.json

privurn statistics people.csv --model normal --y height --bounds 0:250 --epsilon 1 -o stats.json"""


@grouped
def statistics(
    context: typer.Context,
    file: DataFile,
    model: Annotated[str, typer.Option(help="One of those below, each with options of its own.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Privacy loss of the sums.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="New JSON file for statistics and certificate.")
    ],
    *,
    epsilon_n: Annotated[
        float | None,
        typer.Option("--epsilon-n", help="With add-remove: privacy loss of n. Left out: nothing about it is published."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="For discrete-gaussian noise; 0 for the others.")] = 0.0,
    noise: Annotated[
        str | None,
        typer.Option(help="laplace, discrete-laplace (whole numbers; tables' default) or discrete-gaussian (with --delta)."),
    ] = None,
    neighbouring: Annotated[
        str, typer.Option("--neighbouring", help="replace-one (n is public and published) or add-remove (n is secret).")
    ] = "replace-one",
    making: Making,
    json: Json = False,
) -> None:
    """Publish noisy sums that a model can be inferred from, with a certificate."""
    from privurn.mechanisms.sums.calibrating import Budget
    from privurn.output_files import check_new_file
    from privurn.releases.statistics import release_statistics

    check_new_file(output)
    data = making.data(file)
    asked = StatisticsCommand.asked(context, StatisticsCommand.named(model))
    budget = Budget(
        epsilon=epsilon,
        delta=delta,
        epsilon_n=epsilon_n,
        neighbouring=parse_neighbouring(neighbouring),
        contributions=making.contributions,
        noise=noise or asked.statistic.usual_noise,  # type: ignore[arg-type]
    )
    with stages(quiet=json) as progress:
        progress("Adding up")
        made = release_statistics(
            data, mechanism=asked.calibrated(budget), budget=budget, ledger=making.payer, entropy=making.entropy
        ).save(output)
    _report(made, output, json=json)


def _report(made: "ReleasedStatistics", output: Path, *, json: bool) -> None:
    from privurn.privacy.profile import LARGEST_EPSILON

    certificate, public = made.certificate, made.statistics
    if json:
        print_json({"path": str(output), "remarks": list(made.remarks), **made.to_json()})
        return
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
        told = "but for what the counts add up to" if public.model == "table" else "and nothing about it was published"
        print_text(f"Records:   n is secret, {told}.")
    for remark in [*remarks(made), *made.remarks]:
        note(f"note: {remark}")
    warn(certificate)
    print_text(f"Statistics and certificate: {output}   (check them: privurn verify {output})")


def remarks(made: "ReleasedStatistics") -> list[str]:
    """What the published numbers say about their own use. Nothing confidential is looked at."""
    public, mechanism = made.statistics, made.statistics.mechanism
    n = public.noisy_n if public.n is None else float(public.n)
    found = []
    if n is not None and n < len(mechanism.columns) + 1:
        found.append("the published number of records is smaller than the model needs; inference will lean on its prior.")
    if n is not None and n >= 1.0 and (flat := mechanism.hidden_by_noise(public.values, n)):
        listed = ", ".join(repr(name) for name in flat)
        found.append(f"the noise may hide all variation of {listed}; narrower bounds or more budget would help.")
    return found
