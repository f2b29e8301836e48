"""`privurn audit`: attack a mechanism from outside, and say what that proves."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_table, print_words, sweeps_bar
from privurn.cli.mechanism_options import AuditCommand
from privurn.cli.options import Json
from privurn.cli.parsing import check_release, parse_bounds, parse_neighbouring, whole_number
from privurn.errors import CertificateError, FormatError

if TYPE_CHECKING:
    from privurn.privacy.audit.findings import AuditResult
    from privurn.privacy.profile import Guarantee

EXAMPLES = """Examples:

privurn audit dirichlet-multinomial --n 20 --cells 3 --alpha 2 --records 20 --epsilon 1 --delta 1e-3

privurn audit dirichlet-multinomial --n 20 --cells 3 --alpha 1/2 --records 2 --delta 0.1 --samples 1e6 --json

privurn audit smoothed-histogram --n 20 --cells 3 --records 5 --epsilon 1

privurn audit --certificate out

privurn audit --certificate sums

privurn audit --callable mypackage.release:noisy_counts --takes counts --n 10 --cells 3 --epsilon 1

privurn audit --callable mypackage.release:noisy_mean --takes values --bounds 0:100 --n 20 --epsilon 1"""


TAKES = ("records", "counts", "values", "labels")


def audit(
    context: typer.Context,
    mechanism: Annotated[
        str | None, typer.Argument(metavar="[MECHANISM]", help="Name of a mechanism, whose parameters are among the options.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Audit a release, privatised records or statistics against their certificate."),
    ] = None,
    function: Annotated[
        str | None, typer.Option("--callable", metavar="MODULE:FUNCTION", help="Audit a function of your own.")
    ] = None,
    n: Annotated[str | None, typer.Option("--n", help="Number of confidential records.")] = None,
    cells: Annotated[
        str | None, typer.Option(help="Number of cells of the public domain; of a whole table: of each of two columns.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The claim to refute, which parameters that are left out are calibrated for. Default: what the mechanism's "
            "profile says at delta; they are then calibrated for 1."
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="The claim's delta.")] = 0.0,
    takes: Annotated[
        str, typer.Option(help="What your function gets: records (cell numbers), counts, values (raw numbers) or labels.")
    ] = "records",
    bounds: Annotated[str | None, typer.Option(metavar="LO:HI", help="Public bounds of raw numbers (--takes values).")] = None,
    neighbouring: Annotated[str, typer.Option(help="Neighbours: replace-one or add-remove.")] = "replace-one",
    contributions: Annotated[int, typer.Option(help="Records in which neighbours differ.")] = 1,
    samples: Annotated[
        str | None,
        typer.Option(
            help="Outputs drawn on each data set, on average. Default: 100000; of a release or your function up to 50000, as "
            "many as take about a minute."
        ),
    ] = None,
    failure_probability: Annotated[float, typer.Option(help="Chance of a wrong finding anywhere in the audit.")] = 1e-3,
    seed: Annotated[int | None, typer.Option(help="Repeat an audit of our own mechanisms.")] = None,
    json: Json = False,
) -> None:
    """Attack a mechanism on made-up neighbouring data sets: a lower bound on its epsilon, with a failure probability.

    No data are read. Exit code 0 when nothing is proved against the claim, 1 when the claim is refuted. An audit convicts; it
    never acquits.
    """
    from privurn.audits import Claim, audit_callable, audit_certificate, audit_mechanism
    from privurn.privacy.profile import Guarantee

    if (mechanism is not None) + (certificate is not None) + (function is not None) != 1:
        raise FormatError(
            "say what to audit, in one way.", hint="A mechanism's name, --certificate DIR or --callable MODULE:FUNCTION"
        )
    if mechanism is None and (given := AuditCommand.given(context)):
        raise FormatError(f"--{next(iter(given))} is for a mechanism by its name.", hint="Leave it out")
    options: dict[str, Any] = {"failure_probability": failure_probability}
    if samples is not None:
        options["samples"] = whole_number(samples)
    with audit_bar(str(certificate or function or mechanism), quiet=json) as progress:
        options["progress"] = progress
        if certificate is not None:
            if epsilon is not None or delta != 0.0:
                raise FormatError("a certificate makes its own claim.", hint="Leave --epsilon and --delta out")
            check_release(certificate)
            try:
                what, result = str(certificate), audit_certificate(certificate, seed=seed, **options)
            except CertificateError as error:  # exit code 1 is kept for a conviction
                raise FormatError(error.message, hint=error.hint) from None
        elif function is not None:
            if takes not in TAKES:
                raise FormatError(f"--takes {takes!r} is not known.", hint=f"--takes {' or '.join(TAKES)}")
            if takes == "values" and bounds is None:
                raise FormatError("raw numbers need public bounds.", hint="For example --bounds 0:100")
            of_cells = takes in ("records", "counts")
            result = audit_callable(
                _imported(function),
                Claim(epsilon, delta),
                n=_needed(n, "--n"),
                takes=takes,  # type: ignore[arg-type]
                domain=_needed(cells, "--cells") if of_cells else None if bounds is None else parse_bounds(bounds),
                neighbouring=parse_neighbouring(neighbouring),
                contributions=contributions,
                **options,
            )
            what = function
        else:
            recipe = AuditCommand.asked(context, AuditCommand.named(str(mechanism)))
            relation = parse_neighbouring(neighbouring)
            asked = 1.0 if epsilon is None else epsilon
            guarantee = Guarantee(epsilon=asked, delta=delta, neighbouring=relation, contributions=contributions)
            made, what = _mechanism(recipe, n=n, cells=cells, guarantee=guarantee), str(mechanism)
            result = audit_mechanism(made, epsilon=epsilon, delta=delta, contributions=contributions, seed=seed, **options)
    if json:
        print_json({"audited": what, **result.to_json()})
    else:
        _report(what, result)
    if result.convicted:
        raise typer.Exit(1)


@contextmanager
def audit_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; where that cannot be seen, one line says what runs and about how long."""
    with sweeps_bar("Drawing outputs", quiet=quiet) as show:
        first: list[tuple[float, int]] = []

        def progress(done: int, wanted: int) -> None:
            show(done, wanted, {})
            first.append((time.perf_counter(), done))
            if len(first) == 2 and not quiet and not sys.stderr.isatty():  # the first outputs include what is compiled once
                (start, before), (now, _) = first
                seconds = (now - start) / max(1, done - before) * wanted
                about = "about a minute or less" if seconds < 30.0 else f"some {math.ceil(seconds / 60.0):,} min"
                note(f"auditing {what}: {wanted:,} outputs on made-up neighbouring tables, {about}; fewer with --samples")
            del first[2:]

        yield progress


def _mechanism(recipe: Any, *, n: str | None, cells: str | None, guarantee: "Guarantee") -> Any:
    """On a made-up column of numbers from 0 to 1, or on two of them where it is for whole tables.

    The number of records is not checked as in a release: a posterior sample of few draws may be audited.
    """
    from dataclasses import replace

    from privurn.domain import Grid, JointDomain, TableDomain
    from privurn.mechanisms.recipe import Public

    replace(recipe, records=None).check()
    secret = guarantee.neighbouring == "add-remove"
    if secret and n is not None:
        raise FormatError("with add-remove neighbours the number of records is secret.", hint="Leave --n out")
    size = None if secret else _needed(n, "--n")
    if recipe.discovers:  # the cells are what it found: labels and "other"
        return recipe.then(*recipe.split(guarantee), n=size, labels=_needed(cells, "--cells") - 1)[0]
    if cells is None and not recipe.needs_domain:
        return recipe.calibrate(Public(n=size, cells=None, guarantee=guarantee))
    number = _needed(cells, "--cells")
    if number < 2:
        raise FormatError("there must be two cells or more.", hint="For example --cells 3")
    column = Grid(0, 1, f"1/{number - 1}")
    if recipe.whole_tables:
        table = TableDomain({"x": column, "y": column})
        return recipe.calibrate(Public(n=size, cells=sum(table.sizes), guarantee=guarantee, table=table))
    return recipe.calibrate(Public(n=size, cells=number, guarantee=guarantee, domain=JointDomain({"x": column})))


def _needed_text(text: str | None, option: str) -> str:
    if text is None:
        raise FormatError(f"{option} is needed here.", hint=f"For example {option} 20")
    return text


def _needed(text: str | None, option: str) -> int:
    return whole_number(_needed_text(text, option))


def _imported(name: str) -> Callable[[Any], Any]:
    """A function by MODULE:FUNCTION, from the working folder or wherever Python looks."""
    from importlib import import_module

    module, separator, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if not (module and separator and attribute):
            raise ImportError
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        raise FormatError(
            f"there is no function {name!r}.", hint="For example --callable mypackage.release:noisy_counts"
        ) from None
    if not callable(found):
        raise FormatError(f"{name!r} is not a function.")
    return found  # type: ignore[no-any-return]


def _report(what: str, result: "AuditResult") -> None:
    rows = [
        (
            finding.pair,
            finding.event,
            f"{finding.hits[0]:,} : {finding.hits[1]:,}",
            f"{finding.trials:,}",
            finding.claim.of,
            _number(finding.epsilon_lower),
            "-" if finding.delta_lower is None else f"{finding.delta_lower:.3g}",
        )
        for finding in dict.fromkeys(sorted(result.findings, key=lambda finding: -finding.evidence))
    ]
    print_table(
        f"{what}: the events that were tested, on outputs the choice has not seen",
        ("pair", "event", "happened", "trials", "claim", "epsilon at least", "delta at least"),
        rows,
    )
    for power in result.power:
        print_words(f"Could have seen: {power.sentence()}")
    bound = f"epsilon >= {_number(result.epsilon_lower)} at delta = {result.delta:g}"
    sure = f"(failure probability {result.failure_probability:g})"
    if result.convicted:
        found = result.strongest
        proved = bound if found in result.main else f"delta >= {found.delta_lower:.3g} at epsilon = {found.claim.epsilon:.4g}"
        claim = f"epsilon = {found.claim.epsilon:.4g}, delta = {found.claim.delta:.3g}"
        print_words(f"CONVICTED: {proved} {sure}, against a claim of {claim} for {found.claim.of}.")
    elif result.epsilon is None or math.isinf(result.epsilon):
        print_words(f"No finite epsilon was claimed. The audit proves {bound} {sure}.")
    else:
        print_words(f"Not convicted of exceeding epsilon = {result.epsilon:.4g}: {bound} {sure}. That is no proof of privacy.")


def _number(epsilon: float) -> str:
    return f"{epsilon:.3f}" if math.isfinite(epsilon) else "any"
