"""`privurn infer mixture`: density and clusters of the confidential population from records that were privatised one by one."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, sweeps_bar
from privurn.cli.inferring import (
    DrawsFile,
    DrawsOfEach,
    Seed,
    WarmUpSweeps,
    check_common,
    named_pictures,
    print_files,
)
from privurn.cli.mixture_answers import Answer, Asked, as_json, extra_of, print_answer, write_answer
from privurn.cli.parsing import whole_number
from privurn.cli.release import Json
from privurn.errors import FormatError
from privurn.output_files import check_file, check_new_file

if TYPE_CHECKING:
    from privurn.inference.mixtures.mixings import Mixing
    from privurn.inference.mixtures.reading import Privatised

EXAMPLES = """Examples:

privurn infer mixture noisy --plot density.png

privurn infer mixture noisy --mixing pitman-yor --discount 0.25 --strength 1 --draws 5000 --chains 4 -o draws.nc

privurn infer mixture noisy --strength gamma:2:2 --clusters --plot together=together.png

privurn infer mixture noisy --draws 20000 --checkpoint run.npz --json

privurn infer mixture noisy --synthetic 1000 synthetic.csv --deconvolution --plot density.svg"""

MIXINGS = ("dirichlet-process", "pitman-yor", "finite")
PICTURES = ("density", "clusters", "together", "traces")
COMPONENTS = 10
MOST_LABELS = 200_000_000
"""Cluster labels that are kept at most: records times draws."""

MOST_CLUSTERED = 5_000


def mixture(
    source: Annotated[Path, typer.Argument(metavar="DIR_OR_FILE", help="Folder of privurn privatise, or a file in it.")],
    kernel: Annotated[
        str,
        typer.Option(help="Law within a cluster: gaussian, beta (bounds 0:1), categorical, total-gaussian (see below), auto."),
    ] = "auto",
    mixing: Annotated[str, typer.Option(help="dirichlet-process, pitman-yor or finite.")] = "dirichlet-process",
    strength: Annotated[str, typer.Option(help="A number, or gamma:SHAPE:RATE for a prior (Dirichlet process).")] = "1",
    discount: Annotated[float | None, typer.Option(help="Of the Pitman-Yor process.", show_default="0.25")] = None,
    components: Annotated[int | None, typer.Option(help="Of the finite mixture.", show_default=str(COMPONENTS))] = None,
    sampler: Annotated[str, typer.Option(help="auto, neal5, slice, neal8, neal2, neal3.")] = "auto",
    unclamped: Annotated[
        bool, typer.Option("--unclamped", help="Model the values as if nothing lay outside the bounds (Laplace, Gaussian).")
    ] = False,
    draws: DrawsOfEach = "1000",
    warm_up: WarmUpSweeps = "2000",
    chains: Annotated[int, typer.Option("--chains", min=1)] = 4,
    thin: Annotated[int, typer.Option("--thin", min=1, help="Sweeps for each draw: bounds memory.")] = 10,
    seed: Seed = None,
    level: Annotated[float, typer.Option("--level", help="Of intervals and bands.")] = 0.95,
    clusters: Annotated[bool, typer.Option("--clusters", help="Also one clustering in the middle of the drawn ones.")] = False,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            "--plot",
            metavar="KIND=FILE",
            help="A picture (.png, .svg, .pdf): density, clusters, together or traces; FILE alone is density. Repeatable.",
            show_default=False,
        ),
    ] = None,
    output: DrawsFile = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Kept while running; the same command goes on from it.", show_default=False
        ),
    ] = None,
    synthetic: Annotated[
        tuple[str, Path] | None,
        typer.Option(
            "--synthetic", metavar="N FILE.csv", help="Write N records from the posterior predictive law.", show_default=False
        ),
    ] = None,
    deconvolution: Annotated[
        bool, typer.Option("--deconvolution", help="Show also the deconvolution kernel density estimate (Laplace, Gaussian).")
    ] = False,
    json: Json = False,
) -> None:
    """Density, clusters and their uncertainty for the confidential population, from privatised records.

    The certificate is verified, and the channel read from it. The base measure follows the public bounds alone. The
    total-gaussian kernel is the conjugate one for the Gaussian channel (another prior), which neal2 and neal3 need.
    """
    from privurn.inference.mixtures.reading import default_model, read_privatised
    from privurn.inference.mixtures.results import informativeness, population, with_population

    check_common(level, output)
    if checkpoint is not None:
        check_file(checkpoint)
    asked = Asked(
        draws=whole_number(draws),
        warm_up=whole_number(warm_up),
        chains=chains,
        thin=thin,
        seed=seed,
        level=level,
        clusters=clusters,
        pictures=named_pictures(plot, PICTURES, example="--plot clusters=k.png"),
        output=output,
        synthetic=_synthetic(synthetic),
        deconvolution=deconvolution,
    )
    law = _mixing(mixing, strength, discount, components)
    given = read_privatised(source)
    model = default_model(given.channel, kernel=kernel, mixing=law, clamped=not unclamped)  # type: ignore[arg-type]
    _check_against(given, model, asked)
    if not given.private:
        note("warning: this release was made with seeded randomness: it is not private.")
    with warnings.catch_warnings(), sweeps_bar("Sweeps", quiet=json) as progress:
        warnings.simplefilter("ignore", UserWarning)  # said below
        found = with_population(_fit(given, model, sampler, asked, checkpoint, progress), labels=given.labels or None)
    figures, learned = population(found, labels=given.labels or None), informativeness(found)
    problems = (*figures.problems(), *found.cut_problems(), *learned.problems())
    for problem in problems:
        note(f"warning: {problem}")
    answer = Answer(
        given=given,
        found=found,
        figures=figures,
        learned=learned,
        problems=problems,
        **extra_of(given, found, asked),
    )
    files = write_answer(answer, asked)
    if json:
        print_json(as_json(answer, asked) | {"files": files})
        return
    print_answer(answer, asked)
    print_files(files)


def _synthetic(typed: tuple[str, Path] | None) -> tuple[int, Path] | None:
    """How many records, and a new file for them."""
    if typed is None:
        return None
    number, path = whole_number(typed[0]), typed[1]
    if number < 1:
        raise FormatError("at least one synthetic record must be asked for.", hint="--synthetic 1000 synthetic.csv")
    if path.suffix not in (".csv", ".parquet"):
        raise FormatError("synthetic records are written as CSV or Parquet.", hint="--synthetic 1000 synthetic.csv")
    return number, check_new_file(path)


def _mixing(name: str, strength: str, discount: float | None, components: int | None) -> "Mixing":
    from privurn.inference.mixtures.mixings import DirichletProcess, FiniteDirichlet, GammaPrior, PitmanYor

    if name not in MIXINGS:
        raise FormatError(f"the mixing {name!r} is not known.", hint=", ".join(MIXINGS))
    if discount is not None and name != "pitman-yor":
        raise FormatError("only the Pitman-Yor process has a discount.", hint="--mixing pitman-yor --discount 0.25")
    if components is not None and name != "finite":
        raise FormatError("only the finite mixture has a number of components.", hint="--mixing finite --components 10")
    kind, *numbers = strength.split(":")
    try:
        values = [float(each) for each in (numbers if kind == "gamma" else [strength])]
        if len(values) != (2 if kind == "gamma" else 1) or not all(math.isfinite(each) for each in values):
            raise ValueError
    except ValueError:
        raise FormatError(
            f"the strength {strength!r} is not understood.", hint="--strength 1 or --strength gamma:2:2"
        ) from None
    if kind == "gamma":
        if name != "dirichlet-process":
            raise FormatError("only the Dirichlet process takes a prior on its strength.", hint="--strength 1")
        return DirichletProcess(strength=GammaPrior(shape=values[0], rate=values[1]))
    if name == "pitman-yor":
        return PitmanYor(discount=0.25 if discount is None else discount, strength=values[0])
    if name == "finite":
        return FiniteDirichlet(components=COMPONENTS if components is None else components, strength=values[0])
    return DirichletProcess(strength=values[0])


def _needs_labels(asked: Asked) -> bool:
    return asked.clusters or "together" in asked.pictures


def _check_against(given: "Privatised", model: Any, asked: Asked) -> None:
    """What can be refused before the chains are run."""
    from privurn.inference.mixtures.results import MOST_CELLS
    from privurn.mechanisms.local import GaussianChannel, GlobalChannel, LaplaceChannel

    if _needs_labels(asked):
        if isinstance(given.channel, GlobalChannel):
            raise FormatError("one output for all records does not say who is with whom.", hint="Leave --clusters out")
        if given.n > MOST_CLUSTERED:
            raise FormatError(
                f"clusterings are searched for up to {MOST_CLUSTERED:,} records.", hint="In Python: co_clustering(rows=...)"
            )
        if given.n * asked.draws * asked.chains > MOST_LABELS:
            raise FormatError("so many draws of so many labels do not fit.", hint="Fewer --draws, with --thin")
    if "density" in asked.pictures and model.kernel.categorical:
        raise FormatError("categories have no density to draw.", hint="--plot traces=FILE or --plot clusters=FILE")
    if model.kernel.categorical and math.prod(getattr(model.kernel, "categories", ())) > MOST_CELLS:
        raise FormatError(
            f"there are more than {MOST_CELLS:,} joint categories to compare with the prior.",
            hint="In Python: fit_mixture, and population() for each column",
        )
    if asked.deconvolution and not isinstance(given.channel, (LaplaceChannel, GaussianChannel)):
        raise FormatError("deconvolution needs the Laplace or the Gaussian channel.", hint="Leave --deconvolution out")


def _fit(given: "Privatised", model: Any, sampler: str, asked: Asked, checkpoint: Path | None, progress: Any) -> Any:
    from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, fit_global_mixture
    from privurn.inference.mixtures.posterior import fit_mixture
    from privurn.inference.mixtures.samplers import Keep
    from privurn.inference.run import Schedule

    schedule = Schedule(chains=asked.chains, warm_up=asked.warm_up, draws=asked.draws, thin=asked.thin, seed=asked.seed)
    common: dict[str, Any] = {"schedule": schedule, "checkpoint": checkpoint, "progress": progress}
    if isinstance(model, GlobalMixtureModel):
        if sampler not in ("auto", "neal5", "slice"):
            raise FormatError(f"the sampler {sampler!r} is for releases record by record.", hint="--sampler auto")
        named: Any = "neal5" if sampler == "auto" else sampler
        return fit_global_mixture(given.released, model=model, sampler=named, keep=Keep(), **common)
    keep = Keep(allocations=_needs_labels(asked))
    chosen: Any = sampler  # checked there
    return fit_mixture(given.released, model=model, sampler=chosen, keep=keep, **common)
