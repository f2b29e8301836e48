"""`privurn infer regression|logistic|dirichlet|table|mean`: posteriors from a file of noisy statistics."""

import warnings
from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import sweeps_bar
from privurn.cli.infer_answers import (
    PRIORS,
    Answer,
    Asked,
    checked,
    finish,
    numbers_of_prior,
    prior_of_logistic,
    prior_of_regression,
    prior_of_size,
    read,
)
from privurn.cli.inferring import DrawsFile, IntervalLevel, Seed
from privurn.cli.release import Json
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.sums.fit import Fit
    from privurn.inference.sums.size import SizePrior
    from privurn.mechanisms.sums.statistic import NoisyStatistics

BOOTSTRAPS = 2000
TABLE_WARM_UP = "1000"

File = Annotated[Path, typer.Argument(metavar="STATS.json", help="File that privurn statistics has written.")]
Prior = Annotated[
    list[str] | None,
    typer.Option("--prior", metavar="NAME=NUMBER", help="A number of the prior; repeatable. See below.", show_default=False),
]
SizePriorText = Annotated[
    str | None,
    typer.Option("--prior-n", metavar="PRIOR", help="Where n is secret: LOW:HIGH (flat) or poisson:MEAN. Left out: flat."),
]
DrawsText = Annotated[str, typer.Option("--draws", help="Of each chain; auto: until the chains have mixed.")]
Chains = Annotated[int, typer.Option("--chains", min=2)]
WarmUp = Annotated[str, typer.Option("--warm-up", help="Sweeps before the first draw, in which moves are adapted.")]
Moves = Annotated[str, typer.Option("--moves", help="interwoven, or centred (slow; the sampler of the literature).")]
Mle = Annotated[bool, typer.Option("--mle", help="Also the maximum of the likelihood, by Monte Carlo EM.")]
PlugIn = Annotated[bool, typer.Option("--plug-in", help="Show also what taking the noisy sums for exact would say.")]
Bootstrap = Annotated[bool, typer.Option("--bootstrap", help="Show also a parametric bootstrap around that.")]
Plots = Annotated[
    list[str] | None,
    typer.Option(
        "--plot",
        metavar="KIND=FILE",
        help="Draw a picture (.png, .svg, .pdf): traces, n or intervals; FILE alone is traces. Repeatable.",
        show_default=False,
    ),
]
Synthetic = Annotated[
    Path | None,
    typer.Option(
        "--synthetic", metavar="FILE.csv", help="Write records from the posterior predictive law.", show_default=False
    ),
]


def _options(
    file: File,
    prior: Prior = None,
    prior_n: SizePriorText = None,
    draws: DrawsText = "auto",
    chains: Chains = 4,
    warm_up: WarmUp = "2000",
    seed: Seed = None,
    moves: Moves = "interwoven",
    level: IntervalLevel = 0.95,
    mle: Mle = False,
    plug_in: PlugIn = False,
    bootstrap: Bootstrap = False,
    plot: Plots = None,
    output: DrawsFile = None,
    synthetic: Synthetic = None,
    json: Json = False,
) -> None:
    """Of all commands; each has those that its model has a use for."""


def _table(file: Path, prior: list[str] | None, prior_n: str | None, asked: Asked, *, plug_in: bool) -> None:
    from privurn.inference.run import Schedule
    from privurn.inference.sums.fit import NotMixed
    from privurn.inference.sums.report import plug_in as naive
    from privurn.inference.sums.report import write_synthetic_table
    from privurn.inference.sums.table_inference import infer_table, judged

    statistics = read(file, "table")
    if asked.draws is None and (asked.chains, asked.warm_up) != (4, int(TABLE_WARM_UP)):
        raise FormatError(
            "a length chosen by itself is for four chains and the usual warm-up.", hint="Give --draws 1000 as well"
        )
    schedule = None
    if asked.draws is not None:
        schedule = Schedule(chains=asked.chains, warm_up=asked.warm_up, draws=asked.draws, seed=asked.seed)
    numbers, size_prior = numbers_of_prior(prior, PRIORS["table"], "table"), prior_of_size(prior_n, statistics)
    with warnings.catch_warnings(), sweeps_bar("Sweeps", quiet=asked.json) as progress:
        warnings.simplefilter("ignore", NotMixed)  # said below
        drawn = infer_table(
            statistics, prior=numbers["cell"], size_prior=size_prior, schedule=schedule, seed=asked.seed, progress=progress
        )
    mechanism: Any = statistics.mechanism
    names = ["p", "n"] + (["log_odds_ratio"] if "log_odds_ratio" in drawn else [])
    finish(
        Answer(
            statistics=statistics,
            draws=drawn,
            names=names,
            problems=judged(drawn).problems(),
            beside={"plug-in": naive(statistics, level=asked.level)} if plug_in else {},
            maximum=None,
            write_synthetic=lambda path: write_synthetic_table(path, drawn, mechanism=mechanism, seed=asked.seed),
        ),
        asked,
    )


def _through_a_fit(
    command: str,
    file: Path,
    prior: list[str] | None,
    prior_n: str | None,
    asked: Asked,
    *,
    mle: bool,
    plug_in: bool,
    bootstrap: bool = False,
) -> None:
    from privurn.inference.sums import report
    from privurn.inference.sums.fit import NotMixed
    from privurn.inference.sums.mcem import maximise

    statistics = read(file, command)
    start = _fitter(statistics, prior, prior_of_size(prior_n, statistics))
    beside = {"plug-in": report.plug_in(statistics, level=asked.level)} if plug_in else {}
    if bootstrap:
        beside["bootstrap"] = report.bootstrap(statistics, replicates=BOOTSTRAPS, seed=asked.seed, level=asked.level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)  # said below
        with sweeps_bar("Sweeps", quiet=asked.json) as progress:
            how = {"chains": asked.chains, "warm_up": asked.warm_up, "draws": asked.draws, "seed": asked.seed}
            found = start(moves=asked.moves, progress=progress, **how)
    highest = None
    if mle:
        with sweeps_bar("Monte Carlo EM", quiet=asked.json) as progress:
            highest = maximise(found.model, observed=found.observed, chains=asked.chains, seed=asked.seed, progress=progress)
    columns = statistics.mechanism.columns
    finish(
        Answer(
            statistics=statistics,
            draws=found.draws,
            names=list(found.draws.variables),
            problems=found.problems,
            beside=beside,
            maximum=highest,
            write_synthetic=lambda path: report.write_synthetic_records(path, found, columns=columns, seed=asked.seed),
        ),
        asked,
    )


def _fitter(statistics: "NoisyStatistics", prior: list[str] | None, size_prior: "SizePrior | None") -> "Callable[..., Fit]":
    """The library call that belongs to the model, its prior filled in."""
    from functools import partial

    from privurn.inference.sums.fit import fit_dirichlet, fit_logistic, fit_mean, fit_regression

    common: dict[str, Any] = {"statistics": statistics, "size_prior": size_prior}
    if statistics.model in ("regression", "normal"):
        return partial(fit_regression, prior=prior_of_regression(statistics, prior), **common)
    if statistics.model == "logistic":
        return partial(fit_logistic, prior=prior_of_logistic(statistics, prior), **common)
    numbers = numbers_of_prior(prior, PRIORS[statistics.model], statistics.model)
    if statistics.model == "dirichlet":
        return partial(fit_dirichlet, shape=numbers["shape"], rate=numbers["rate"], **common)
    first, second = numbers.values()
    return partial(fit_mean, prior=(first, second), **common)


COMMANDS = {
    "regression": """Linear regression from noisy moments: coefficients, residual precision, n.

The prior follows the public bounds unless --prior says otherwise: --prior unit for 1 everywhere (data of that scale), or
numbers by name: coefficient_mean, coefficient_precision, precision_shape, precision_rate, covariate_mean,
covariate_mean_variance, wishart_degrees, wishart_scale.
""",
    "logistic": """Logistic regression from noisy sums by class: coefficients (log odds), covariates' means and precision, n.

The prior follows the public bounds unless --prior says otherwise: --prior unit for 1 everywhere (data of that scale), or
numbers by name: coefficient_mean, coefficient_variance, covariate_mean, covariate_mean_variance, wishart_degrees,
wishart_scale.
""",
    "dirichlet": """Dirichlet compositions from noisy sums of logarithms: alpha of each part, n.

The prior of each alpha is a Gamma law: --prior shape=1 --prior rate=0.1.
""",
    "table": """A contingency table from noisy counts: cell probabilities, n, and the odds ratio of a two by two table.

The prior of the probabilities is a Dirichlet law with the same number for each cell: --prior cell=1.
""",
    "mean": """A proportion (bernoulli), a rate (poisson) or a mean (normal), whichever the file holds.

The prior is Beta (--prior ones=1 --prior zeros=1) for a proportion, Gamma (--prior shape=1 --prior rate=0.1) for a rate,
and as for privurn infer regression for a normal mean.
""",
}
"""What each command is for."""

WITHOUT = {"logistic": {"bootstrap"}, "dirichlet": {"bootstrap"}, "mean": {"bootstrap"}, "table": {"moves", "mle", "bootstrap"}}
"""Options that a model has no use for."""

EXAMPLES = {
    "regression": """Examples:

privurn infer regression stats.json

privurn infer regression stats.json --plug-in --bootstrap --plot intervals=compare.png --plot traces=chains.png

privurn infer regression stats.json --prior unit --level 0.9 --mle --seed 1 --json

privurn infer regression stats.json --prior-n 500:5000 -o draws.nc --synthetic people.csv""",
    "logistic": """Examples:

privurn infer logistic stats.json --plug-in --plot intervals=compare.png

privurn infer logistic stats.json --prior coefficient_variance=4 --level 0.9 --seed 1 --json

privurn infer logistic stats.json --prior-n 500:5000 -o draws.nc --synthetic people.csv""",
    "dirichlet": """Examples:

privurn infer dirichlet stats.json --plot n=n.png

privurn infer dirichlet stats.json --prior shape=2 --prior rate=0.5 --plug-in --mle""",
    "table": """Examples:

privurn infer table stats.json --plug-in

privurn infer table stats.json --prior cell=0.5 --prior-n poisson:3000 --draws 5000 --plot n=n.png -o draws.nc""",
    "mean": """Examples:

privurn infer mean stats.json --plug-in

privurn infer mean stats.json --prior ones=0.5 --prior zeros=0.5 --level 0.9 --json""",
}


def register(app: typer.Typer) -> None:
    """Put the commands on `privurn infer`."""
    for name, about in COMMANDS.items():
        app.command(name, epilog=EXAMPLES[name], help=about)(_command(name))


def _command(name: str) -> Callable[..., None]:
    """The command of a model, with its own choice of the options."""

    def run(
        file: Path,
        prior: list[str] | None,
        prior_n: str | None,
        *,
        mle: bool = False,
        plug_in: bool,
        bootstrap: bool = False,
        **how: Any,
    ) -> None:
        asked = checked(**how)
        if name == "table":
            _table(file, prior, prior_n, asked, plug_in=plug_in)
        else:
            _through_a_fit(name, file, prior, prior_n, asked, mle=mle, plug_in=plug_in, bootstrap=bootstrap)

    own = [each for each in signature(_options).parameters.values() if each.name not in WITHOUT.get(name, ())]
    if name == "table":
        own = [each.replace(default=TABLE_WARM_UP) if each.name == "warm_up" else each for each in own]
    run.__signature__ = Signature(own)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in own}
    return run
