"""`privurn ledger`: set a budget once, see what is left, check that nothing was lost or edited."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_table, print_text, print_words, rounded_up, stages
from privurn.cli.options import Json, NeighbouringOption
from privurn.cli.parsing import check_release, parse_neighbouring

if TYPE_CHECKING:
    from privurn.privacy.certificate import Certificate
    from privurn.privacy.ledger_book import Book

EXAMPLES = """Examples:

privurn ledger init pay.csv.ledger --epsilon 4 --delta 1e-6

privurn ledger init pay.csv.ledger --rho 0.5

privurn ledger show pay.csv.ledger

privurn ledger check pay.csv.ledger --certificate out"""

app = typer.Typer(
    help="The budget of a data set: set once, debited before every release.", epilog=EXAMPLES, no_args_is_help=True
)
PathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="The ledger file. FILE.ledger is found by itself, beside FILE.")
]


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
    data = path.with_name(path.name.removesuffix(".ledger"))
    if data != path and data.is_symlink():
        note(f"warning: {data} is a link. A ledger beside {data.resolve()} would be found whichever way that is spelled.")
    if json:
        print_json({"path": str(path), "id": ledger.meta["id"], "budget": ledger.budget(), "head": ledger.read().head})
        return
    budget = ", ".join(f"{key} = {value:g}" for key, value in ledger.budget().items())
    print_text(f"Created {path} with a budget of {budget}.")


@app.command("show", epilog=EXAMPLES)
def show(path: PathArgument, json: Json = False) -> None:
    """Show budget, entries and what is left."""
    from dataclasses import asdict

    from privurn.certificates.spending import spending
    from privurn.privacy.ledger import Ledger

    ledger = Ledger(path)
    book = ledger.read()
    entries = book.entries
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
                **_state(book),
                "entries": [asdict(e) for e in entries],
            }
        )
        return
    rows = [
        (
            str(e.number),
            e.created,
            e.description,
            e.epsilon,
            e.delta,
            rounded_up(float(e.rho)) if e.rho else "-",
            e.status,
            (e.output or "-")[:12],
        )
        for e in entries
    ]
    print_table("Entries", ("entry", "created", "mechanism", "epsilon", "delta", "rho", "status", "output"), rows)
    remaining = ledger.remaining()
    for key, value in ledger.budget().items():
        print_text(f"{key}: {remaining[key]:g} of {value:g} left")
    if spent.tight_epsilon is not None:
        enforced = "" if "rho" in remaining else " (what is enforced)"
        print_words(
            f"Spent so far, added up{enforced}: epsilon = {rounded_up(spent.epsilon)}, "
            f"delta = {rounded_up(spent.delta)}. "
            f"Had all of it been planned beforehand: epsilon = {rounded_up(spent.tight_epsilon)} at that delta."
        )
    _print_state(book)


def _state(book: "Book") -> dict[str, Any]:
    return {"head": book.head, "stands_for": None if book.subject is None else book.subject.to_json()}


def _print_state(book: "Book") -> None:
    if book.subject is not None:
        files = f" in {', '.join(book.subject.files)}" if book.subject.files else ""
        size = "" if book.subject.n is None else f"{book.subject.n:,} records of "
        print_words(f"Stands for: {size}{', '.join(book.subject.columns)}{files}")
    print_words(f"Head: {book.head}   (noted elsewhere, it tells this ledger from an old copy)")


@app.command("check", epilog=EXAMPLES)
def check(
    path: PathArgument,
    head: Annotated[
        list[str] | None, typer.Option(metavar="HASH", help="A head noted earlier: the ledger must continue it. Repeatable.")
    ] = None,
    certificate: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A release that it must have paid for. Repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute every hash and the balance of a ledger; exit code 1 if it is damaged, was edited or lacks a payment.

    By itself it cannot tell an old copy that was put back from the true ledger: name a head that was noted elsewhere, or the
    releases that it has paid for.
    """
    from privurn.privacy.ledger_check import check_ledger

    named = {str(each): _certificate(each) for each in certificate or []}
    result = check_ledger(path, noted=head or [], certificates=named)
    if json:
        known = {} if result.book is None else {"entries": len(result.book.entries), **_state(result.book)}
        print_json({"path": str(path), "valid": result.valid, "reasons": list(result.reasons), **known})
    elif result.valid and result.book is not None:
        spent = ", ".join(f"{name} = {float(left):g}" for name, left in result.book.left().items())
        print_text(f"intact: {len(result.book.entries):,} entries, every hash fits, and {spent} is left.")
        _print_state(result.book)
    else:
        print_text("NOT intact:")
        for reason in result.reasons:
            print_text(f"  - {reason}")
    if not result.valid:
        raise typer.Exit(1)


def _certificate(path: Path) -> "Certificate":
    from privurn.privacy.certificate import Certificate

    check_release(path)
    return Certificate.read(path)
