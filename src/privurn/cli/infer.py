"""`privurn infer`: conclusions from privatised output. `release`: from a release and its certificate."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from privurn.cli.console import note, print_json, print_table, print_text, sweeps_bar
from privurn.cli.inferring import (
    DrawsFile,
    DrawsOfEach,
    IntervalLevel,
    Seed,
    WarmUpSweeps,
    cells_of,
    check_common,
    check_picture,
    diagnostics_of,
    interval,
    print_files,
    short,
)
from privurn.cli.parsing import whole_number
from privurn.cli.release import Json
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.counts import Posterior
    from privurn.inference.counts.plans import WithinBins
    from privurn.inference.draws import Summary

EXAMPLES = """Examples:

privurn infer release out

privurn infer release out --functional mean --functional q0.5 --functional "P(x>50000)" --naive

privurn infer release out --functional "P(18<=age<65)" --functional "P(sex=f)" --sample --level 0.9 --json

privurn infer release out --prior mechanism --draws 1e5 --chains 1

privurn infer release monday tuesday --functional mean --plot mean.png -o draws.nc"""

PATIENCE = 2.0
"""Seconds before a progress bar appears."""

app = typer.Typer(no_args_is_help=True, help="Valid inference from privatised output.")


@app.callback()
def infer() -> None:
    """Valid inference from privatised output."""


@app.command("release", epilog=EXAMPLES)
def release(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folder of a release, or several of the same data.")],
    functional: Annotated[
        list[str] | None,
        typer.Option(
            "--functional",
            "-f",
            metavar="F",
            help="mean, sd, variance, q0.5, cdf(0.3), P(x>0.75), P(18<=age<65), P(sex=f), mean(age), discovery; repeatable.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option("--prior", metavar="PRIOR", help="flat (its worth is learnt), mechanism, or a number for each cell."),
    ] = "flat",
    sample: Annotated[
        bool, typer.Option("--sample", help="Of the confidential records themselves, not the population.")
    ] = False,
    level: IntervalLevel = 0.95,
    draws: DrawsOfEach = "1000",
    chains: Annotated[int, typer.Option("--chains", min=1)] = 4,
    warm_up: WarmUpSweeps = "500",
    thin: Annotated[int, typer.Option("--thin", min=1, help="Sweeps for each draw.")] = 1,
    seed: Seed = None,
    largest_n: Annotated[
        str | None,
        typer.Option("--largest-n", help="Where n is secret: its prior is flat up to here [10000000].", show_default=False),
    ] = None,
    within: Annotated[str, typer.Option("--within", help="Where in its bin a record lies: uniform or midpoint.")] = "uniform",
    naive: Annotated[bool, typer.Option("--naive", help="Show also what taking the release for the data would say.")] = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: .png, .svg or .pdf.", show_default=False)
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help="Of the picture: density, cdf or intervals.")] = "density",
    output: DrawsFile = None,
    json: Json = False,
) -> None:
    """Posterior of figures of the data, given a release and how it was made.

    The certificate and the file are verified first. With the flat prior the confidential counts are latent and a Markov chain
    is run; with the mechanism's own prior the draws are independent.
    """
    from privurn.inference.counts import posterior

    check_common(level, output)
    if kind not in ("density", "cdf", "intervals"):
        raise FormatError(f"the picture {kind!r} is not known.", hint="--kind density, cdf or intervals")
    if plot is not None:
        check_picture(plot)
    with _patient_bar(quiet=json) as progress:
        found = posterior(
            [str(folder) for folder in folders],
            functionals=functional or None,
            prior=_prior(prior),
            of="sample" if sample else "population",
            n_draws=whole_number(draws),
            chains=chains,
            warm_up=whole_number(warm_up),
            thin=thin,
            seed=seed,
            largest_n=None if largest_n is None else whole_number(largest_n),
            within=cast("WithinBins", within),  # checked there
            progress=progress,
        )
    for problem in found.problems():
        note(f"warning: {problem}")
    for name, count in found.undefined.items():
        drawn = found.draws.n_chains * found.draws.n_draws
        note(f"note: {name} is undefined in {count:,} of {drawn:,} draws, which hold no record of it; they are left out.")
    summaries = found.summary(level=level)
    beside = {each.name: each for each in found.naive().summary(level=level)} if naive else {}
    written = _write(found, plot=plot, kind=kind, level=level, naive=naive, output=output)
    if json:
        print_json(_as_json(found, summaries, beside, written))
        return
    _print(found, summaries, beside, level)
    print_files(written)


def _prior(text: str) -> Any:
    if text == "flat":
        return None
    if text == "mechanism":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise FormatError(f"the prior {text!r} is not understood.", hint="--prior flat, --prior mechanism, or --prior 0.5")
    return value


@contextmanager
def _patient_bar(*, quiet: bool) -> Iterator[Callable[[int, int, Mapping[str, float]], None]]:
    """A progress bar that only appears where the work takes longer than a moment."""
    from contextlib import ExitStack

    from privurn.inference.counts.sampling import silent

    if quiet or not sys.stderr.isatty():
        yield silent
        return
    started = time.monotonic()
    with ExitStack() as stack:
        shown: list[Callable[[int, int, Mapping[str, float]], None]] = []

        def show(done: int, total: int, figures: Mapping[str, float]) -> None:
            if not shown and time.monotonic() - started > PATIENCE:
                shown.append(stack.enter_context(sweeps_bar("Sweeps", quiet=False)))
            if shown:
                shown[0](done, total, {name.replace("population:", ""): value for name, value in figures.items()})

        yield show


def _write(
    found: "Posterior", *, plot: str | None, kind: str, level: float, naive: bool, output: Path | None
) -> dict[str, str]:
    """The picture is drawn in full before the first file is touched."""
    from privurn.drawing import save

    figure = None if plot is None else found.plot(kind=kind, level=level, naive=naive)  # type: ignore[arg-type]
    written = {}
    if output is not None:
        written["draws"] = str(found.save(output))
    if figure is not None and plot is not None:
        written["picture"] = str(save(figure, plot))
    return written


def _as_json(
    found: "Posterior", summaries: "tuple[Summary, ...]", beside: "Mapping[str, Summary]", written: Mapping[str, str]
) -> dict[str, Any]:
    released = found.face_value
    rows = []
    for each in summaries:
        row = each.to_json()
        value = released.get(each.name, math.nan)
        row["released"] = value if math.isfinite(value) else None
        if each.name in beside:
            row["naive"] = beside[each.name].to_json()
        rows.append(row)
    how = {key: value for key, value in found.draws.attributes.items() if value is None or isinstance(value, (str, int, float))}
    told = {"functionals": rows, "how": how, "problems": list(found.problems())}
    return {**told, **({"undefined": found.undefined} if found.undefined else {}), **written}


def _print(found: "Posterior", summaries: "tuple[Summary, ...]", beside: "Mapping[str, Summary]", level: float) -> None:
    stated = found.draws.attributes
    released = found.face_value
    title = f"Posterior of the {found.of}: {stated['mechanisms']}; prior: {stated['prior']}; {stated['how']}"
    columns = ["", "mean", "sd", f"{level:.0%} interval", "released"]
    columns += [f"naive {level:.0%} interval (not valid)"] if beside else []
    columns += ["effective draws", "R-hat"] if found.draws.markov else ["draws"]
    rows = []
    for each in summaries:
        row = [*cells_of(each), short(released.get(each.name, math.nan))]
        if beside:
            row.append(interval(beside[each.name]) if each.name in beside else "-")
        rows.append(row + diagnostics_of(each)[: 2 if found.draws.markov else 1])
    print_table(title, columns, rows)
    if "largest_n" in stated:
        print_text(
            f"n is secret, and flat on 0 to {stated['largest_n']:,} a priori; with --largest-n you can say what you know."
        )
