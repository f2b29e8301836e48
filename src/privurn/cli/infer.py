"""`privurn infer`: what can be concluded from releases, privatised records and noisy statistics."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli import infer_counts, infer_mixtures, infer_sums, infer_tables, infer_trees
from privurn.cli.console import note, sweeps_bar
from privurn.cli.infer_answers import Asked, checked
from privurn.cli.infer_beside import beside
from privurn.cli.infer_models import COMPONENTS, DISCOUNT, MIXINGS, check_model
from privurn.cli.options import Json
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.published import Published

EXAMPLES = f"""Examples:

privurn infer out

privurn infer out --ask mean --ask q0.5 --ask "P(x>50000)" --naive

privurn infer monday tuesday --ask "P(18<=age<65)" --sample --level 0.9 --plot intervals=mean.png -o draws.nc --json

privurn infer out --ask "P(income='>50K')" --ask "P(town='Paris, Texas')"

privurn infer out --prior mechanism --draws 1e5 --chains 1

privurn infer table --ask cells --ask log_odds_ratio --prior 1 --prior-n poisson:3000

privurn infer noisy --mixing {MIXINGS[1]} --discount 0.25 --clusters --plot density.png --checkpoint run.npz

privurn infer women --ask mean --against men --sensitivity --check

privurn infer survey --model "logistic: income ~ age + education + sex"

privurn infer survey --ask "median(pay | sex=f) - median(pay | sex=m)" --ask "table(sex, income)"

privurn infer survey --synthetic 1e5 -o records

privurn infer regression --prior unit --prior-n 500:5000 --naive --bootstrap --mle --plot intervals=compare.png"""

PATIENCE = 2.0
"""Seconds before a progress bar appears."""

KINDS = {
    "counts": infer_counts,
    "tree": infer_trees,
    "mixture": infer_mixtures,
    "sums": infer_sums,
    "tables": infer_tables,
}
COUNTS, TREES, MIXTURES, SUMS = "Counts of cells", "Noisy trees, noisy counts", "Privatised records", "Noisy sums"


def infer(
    context: typer.Context,
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="What was released: a folder; several of the same cells."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="counts, tree, mixture, or that of the statistics; of a whole table a regression. Left out: what fits.",
            show_default=False,
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            "--ask",
            "-a",
            metavar="F",
            help="mean, sd, variance, q0.5, cdf(0.3), P(x>0.75), P(18<=age<65), P(sex=f), mean(age), cells, log_odds_ratio, "
            "discovery; of sums a parameter, as beta[age]; of whole tables also mean(hours | sex=f), q0.9(pay | sex=f), "
            "table(age, sex). "
            """Put all of it in double quotes for the shell, and text with signs or commas in single ones: """
            """--ask "P(income='>50K')". Repeatable.""",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRIOR",
            help="Of counts: flat (its worth is learnt), mechanism, or a number for each cell; of more than 32 cells a Polya "
            "tree where left out. Of sums: NAME=NUMBER, repeatable, or unit. See below.",
            show_default=False,
        ),
    ] = None,
    prior_n: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Where n is secret: LOW:HIGH (flat) or poisson:MEAN.", show_default="flat"),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    draws: Annotated[str, typer.Option(help="Of each chain; auto: until what is asked for has mixed.")] = "auto",
    chains: Annotated[int, typer.Option(min=1)] = 4,
    warm_up: Annotated[
        str | None,
        typer.Option(help="Sweeps before the first draw.", show_default="500 for counts, else 2000"),
    ] = None,
    thin: Annotated[
        int | None, typer.Option(min=1, help="Sweeps for each draw.", show_default="10 for mixtures, else 1")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same draws.", show_default=False)] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Kept while running; the same command goes on from it.", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Another release, of other records: differences and ratios of what both say.",
            show_default=False,
        ),
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="The same under a few other priors, side by side.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Whether the published numbers are such as the posterior would publish."),
    ] = False,
    naive: Annotated[bool, typer.Option("--naive", help="Show also what taking the release for the data would say.")] = False,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=FILE",
            help="A picture (.png, .svg, .pdf); FILE alone is the first kind. Counts: density, cdf, intervals, n, traces. "
            "Mixtures: density (of categories intervals), clusters, together, traces. Sums: traces, n, intervals. Repeatable.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE.nc", help="Write the draws as netCDF; or the new folder.", show_default=False
        ),
    ] = None,
    synthetic: Annotated[
        Path | None,
        typer.Option(
            metavar="N|FILE.csv",
            help="Write records from the posterior: N of them into the new folder -o NEWDIR, or a file.",
            show_default=False,
        ),
    ] = None,
    copies: Annotated[
        int,
        typer.Option(
            min=1,
            help="So many tables drawn from the posterior, each of the confidential size whatever N is, into the new folder "
            "-o NEWDIR.",
        ),
    ] = 1,
    records: Annotated[
        str | None,
        typer.Option(metavar="N", help="How many of them.", show_default="as many as there were", rich_help_panel=MIXTURES),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Of the confidential records themselves, not the population.", rich_help_panel=COUNTS),
    ] = False,
    within: Annotated[
        str, typer.Option(help="Where in its bin a record lies: uniform, whole (numbers) or midpoint.", rich_help_panel=COUNTS)
    ] = "uniform",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Polya tree by a Markov chain, slow; left out: by independent draws, fast and approximate.",
            rich_help_panel=TREES,
        ),
    ] = False,
    kernel: Annotated[
        str,
        typer.Option(
            help="Law within a cluster: gaussian, beta (bounds 0:1), categorical, total-gaussian, auto.",
            rich_help_panel=MIXTURES,
        ),
    ] = "auto",
    mixing: Annotated[
        str, typer.Option(help=f"{', '.join(MIXINGS[:-1])} or {MIXINGS[-1]}.", rich_help_panel=MIXTURES)
    ] = MIXINGS[0],
    strength: Annotated[
        str, typer.Option(help="A number, or gamma:SHAPE:RATE for a prior (Dirichlet process).", rich_help_panel=MIXTURES)
    ] = "1",
    discount: Annotated[
        float | None, typer.Option(help="Of the Pitman-Yor process.", show_default=str(DISCOUNT), rich_help_panel=MIXTURES)
    ] = None,
    components: Annotated[
        int | None, typer.Option(help="Of the finite mixture.", show_default=str(COMPONENTS), rich_help_panel=MIXTURES)
    ] = None,
    sampler: Annotated[str, typer.Option(help="auto, neal5, slice, neal8, neal2, neal3.", rich_help_panel=MIXTURES)] = "auto",
    unclamped: Annotated[
        bool,
        typer.Option(
            "--unclamped",
            help="Model the values as if nothing lay outside the bounds (Laplace, Gaussian).",
            rich_help_panel=MIXTURES,
        ),
    ] = False,
    clusters: Annotated[
        bool, typer.Option("--clusters", help="Also one clustering in the middle of the drawn ones.", rich_help_panel=MIXTURES)
    ] = False,
    deconvolution: Annotated[
        bool,
        typer.Option(
            "--deconvolution",
            help="Show also the deconvolution kernel density estimate (Laplace, Gaussian).",
            rich_help_panel=MIXTURES,
        ),
    ] = False,
    moves: Annotated[
        str | None,
        typer.Option(
            help="Of sums interwoven; limit (approximate, its time does not depend on n); auto: limit for regression and "
            "normal means from 10,000 records on; centred. Of mixtures regrouped, or plain. Centred and plain are slow: the "
            "samplers of the literature.",
            show_default="auto",
        ),
    ] = None,
    mle: Annotated[
        bool, typer.Option("--mle", help="Also the maximum of the likelihood, by Monte Carlo EM.", rich_help_panel=SUMS)
    ] = False,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Show also a parametric bootstrap (regression).", rich_help_panel=SUMS)
    ] = False,
    json: Json = False,
) -> None:
    """Valid conclusions from what was released: releases, privatised records, noisy statistics.

    Certificates and files are verified first, and say how the numbers were made; a Markov chain runs until what is asked for
    has mixed. Standard error says where it has not, where the release tells little (an interval more than half as wide as the
    prior's), where posterior and unbiased estimate disagree by more than chance, and where much seems to have been clamped.

    Of cells, records drawn from them and noisy counts the confidential counts are latent; of privatised records, the values
    behind the noise; of noisy sums, the records of the model: regression, logistic, dirichlet, bernoulli, poisson or
    normal. Of whole tables figures are estimated without a chain: a model fitted to the noisy counts, corrected by them; with
    --model "linear: y ~ a + b" (or logistic, poisson) a regression.

    Priors of sums follow the public bounds unless --prior says otherwise: unit for 1 everywhere (data of that scale), or
    numbers by name. Regression and normal: coefficient_mean, coefficient_precision, precision_shape, precision_rate,
    covariate_mean, covariate_mean_variance, wishart_degrees, wishart_scale; logistic: coefficient_variance in place of the
    precisions. A proportion has --prior ones=1 --prior zeros=1, a rate and each alpha of a Dirichlet law --prior shape=1
    --prior rate=0.1. The base measure of a mixture follows the public bounds alone; the total-gaussian kernel is the
    conjugate one for the Gaussian channel, which neal2 and neal3 need.
    """
    from privurn.inference.cautions import unsaid

    typed = dict(context.params)
    asked = checked(typed)
    kind, given = _published(releases, model)
    work: Any = KINDS[kind]
    _refuse_others(context, kind, work)
    built = work.model_of(given[0].numbers, asked)
    other = _against(against, model, kind, asked)
    if (other is not None or sensitivity) and len(given) > 1:
        raise FormatError("several releases together have nothing beside them.", hint="Leave --against and --sensitivity out")
    with unsaid():  # `finish` says those of what was asked for
        with _patient_bar(quiet=json) as progress:
            found = _infer(given, built, asked, progress)
            alone = replace(asked, typed={**asked.typed, "checkpoint": None})
            shown = beside(
                found,
                given[0],
                built,
                other=other,
                priors=sensitivity,
                check=check,
                infer=lambda one, model: _infer([one], model, alone, progress),
            )
        work.finish(given[0].numbers, found, replace(asked, extra=shown.to_json()))
    shown.warn()
    if not json:
        shown.print(level=asked.level)


def _against(folder: Path | None, model: str | None, kind: str, asked: Asked) -> "tuple[Published, Any] | None":
    """Another release and its model, checked before any work is done."""
    if folder is None:
        return None
    found, given = _published([folder], model)
    if found != kind:
        raise FormatError("the other release is of another kind.", hint="--against takes one that was made in the same way")
    work: Any = KINDS[found]
    return given[0], work.model_of(given[0].numbers, asked)


def _infer(given: "list[Published]", model: Any, asked: Asked, progress: Any) -> Any:
    from privurn.inference.infer import infer as conclude

    return conclude(
        given,
        model,
        ask=asked.ask,
        of="sample" if asked.typed["sample"] else "population",
        run=asked.run(progress),
        level=asked.level,
    )


def _published(releases: list[Path], model: str | None) -> "tuple[str, list[Published]]":
    """What kind of numbers was published, and the numbers."""
    from privurn.inference.published import published

    given = [published(str(each), mixture=model == "mixture") for each in releases]
    if not all(each.private for each in given):
        note("warning: this was released with seeded randomness: it is not private.")
    if model is not None:
        check_model(model, given[0])
    return given[0].kind, given


def _refuse_others(context: typer.Context, kind: str, work: Any) -> None:
    """Options that only other kinds of releases have a use for."""
    every = {name for each in KINDS.values() for name in each.OPTIONS}
    for name in sorted(every - set(work.OPTIONS)):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise FormatError(
                f"the option --{name.replace('_', '-')} is not for {work.WHAT}.", hint="Leave it out; see privurn infer --help"
            )


@contextmanager
def _patient_bar(*, quiet: bool) -> Iterator[Callable[[int, int, Mapping[str, float]], None]]:
    """A progress bar that only appears where the work takes longer than a moment."""
    from privurn.inference.run import silent

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
