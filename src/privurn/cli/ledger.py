"""`privurn ledger`: set a budget once, see what is left."""

from pathlib import Path
from typing import Annotated

import typer

from privurn.cli.console import print_json, print_table, print_text, stages
from privurn.cli.parsing import parse_neighbouring
from privurn.cli.release import Json, NeighbouringOption

EXAMPLES = """Examples:

privurn ledger init pay.csv.ledger --epsilon 4 --delta 1e-6

privurn ledger init pay.csv.ledger --rho 0.5

privurn ledger show pay.csv.ledger"""

app = typer.Typer(
    help="The budget of a data set: set once, debited before every release.", epilog=EXAMPLES, no_args_is_help=True
)
PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="The ledger file. FILE.ledger is found by itself.")]


@app.command("init", epilog=EXAMPLES)
def init(
    path: PathArgument,
    epsilon: Annotated[float | None, typer.Option(help="Total epsilon.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total delta.")] = None,
    rho: Annotated[float | None, typer.Option(help="Total zCDP rho, in place of epsilon and delta.")] = None,
    contributions: Annotated[int, typer.Option(help="Most records that one person may own.")] = 1,
    neighbouring: NeighbouringOption = "replace-one",
    name: Annotated[str, typer.Option(help="What the data set is called.")] = "",
    json: Json = False,
) -> None:
    """Create a ledger. Its budget cannot be changed afterwards."""
    from privurn.privacy.ledger import Ledger

    ledger = Ledger.create(
        path,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        contributions=contributions,
        neighbouring=parse_neighbouring(neighbouring),
        name=name,
    )
    if json:
        print_json({"path": str(path), "id": ledger.meta["id"], "budget": ledger.budget()})
        return
    budget = ", ".join(f"{key} = {value:g}" for key, value in ledger.budget().items())
    print_text(f"Created {path} with a budget of {budget}.")


@app.command("show", epilog=EXAMPLES)
def show(path: PathArgument, json: Json = False) -> None:
    """Show budget, entries and what is left."""
    from dataclasses import asdict

    from privurn.privacy.ledger import Ledger
    from privurn.spending import spending

    ledger = Ledger(path)
    entries = ledger.entries()
    with stages(quiet=json) as progress:
        progress("Composing what was spent")
        spent = spending(ledger)
    if json:
        data = {"path": str(path), "id": ledger.meta["id"], "contributions": ledger.contributions}
        print_json(
            {
                **data,
                "budget": ledger.budget(),
                "remaining": ledger.remaining(),
                "spent": asdict(spent),
                "entries": [asdict(e) for e in entries],
            }
        )
        return
    rows = [
        (str(e.number), e.created, e.description, e.epsilon, e.delta, e.rho or "-", e.status, (e.output or "-")[:12])
        for e in entries
    ]
    print_table("Entries", ("entry", "created", "mechanism", "epsilon", "delta", "rho", "status", "output"), rows)
    remaining = ledger.remaining()
    for key, value in ledger.budget().items():
        print_text(f"{key}: {remaining[key]:g} of {value:g} left")
    if spent.tight_epsilon is not None:
        enforced = "" if "rho" in remaining else " (what is enforced)"
        print_text(
            f"Spent so far, added up{enforced}: epsilon = {spent.epsilon:.4g}, delta = {spent.delta:.4g}. "
            f"Had all of it been planned beforehand: epsilon = {spent.tight_epsilon:.4g} at that delta."
        )
