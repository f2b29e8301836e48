"""From a privatised folder to what a mixture needs: the released values, the channel that its certificate states, and a model.

Nothing here comes from the released values but the values themselves: the base measure follows the public bounds alone.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, JointDomain, domain_from_json, label_text
from privurn.errors import CertificateError, FormatError, ModelError
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.released import Observed as CountsObserved
from privurn.inference.counts.released import observe
from privurn.inference.mixtures.fitted import Question
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, fit_global_mixture
from privurn.inference.mixtures.kernels import BetaKernel, CategoricalKernel, GaussianKernel, Kernel
from privurn.inference.mixtures.mixings import DirichletProcess, Mixing
from privurn.inference.mixtures.model import MixtureModel
from privurn.inference.mixtures.posterior import MixturePosterior, Moves, SamplerName, fit_mixture
from privurn.inference.mixtures.samplers import Keep
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel
from privurn.inference.run import Run
from privurn.inference.verified import verified
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, Numbers
from privurn.mechanisms.local import Channel, NoisyStatisticChannel, SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic
from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.certificate import Certificate
from privurn.tables.columns import read_numbers
from privurn.tables.rows import read_cells

ONE_OUTPUT = (MixtureTerm, NoisyCountsTerm)
"""Likelihoods of counts that are one output of all records, where the cells are equal bins."""

WHOLE_NOISE: dict[str, NoiseKind] = {"discrete-laplace": "laplace", "discrete-gaussian": "gaussian"}
"""Noise of whole counts, as sums call it."""

KernelName = Literal["auto", "gaussian", "beta", "categorical", "total-gaussian"]
KERNELS = ("auto", "gaussian", "beta", "categorical", "total-gaussian")

WIDTH = 20.0
"""Of the bounds (-10, 10) of the mixture paper, whose base measure is scaled to other bounds."""

MOST_CATEGORIES = 10_000
"""Whole numbers that a categorical kernel takes for categories."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Privatised:
    """What was released, one entry for each record (or one output for all of them), and the channel behind it.

    `labels` are the categories that codes stand for, those of several columns one after the other as column=category, and
    `domain` is where they were listed. `private` is False for seeded releases, which promise nothing to anyone
    but can be analysed like any other. `mechanism` is the name of the one behind counts that are read as one output.
    """

    released: NDArray[Any]
    channel: Channel
    column: str
    labels: tuple[str, ...] = ()
    domain: JointDomain | None = None
    private: bool = True
    mechanism: str | None = None

    @property
    def n(self) -> int:
        """Confidential records."""
        return self.channel.n if self.channel.one_output else len(self.released)  # type: ignore[attr-defined]


def read_privatised(source: Any) -> Privatised:
    """Read and verify what `privatise` made: a folder, its data file or its certificate file, or the result itself.

    Counts of one column in equal bins are read too, as one output of all records.

    >>> from privurn.domain import Bounds
    >>> from privurn.releases.privatise import privatise
    >>> found = read_privatised(privatise(np.array([1.0, 2.0, 4.0]), domain=Bounds(0, 10), epsilon=2))
    >>> found.n, found.channel.scale
    (3, 5.0)
    """
    given = verified(source)
    certificate, columns = given.certificate, [str(each) for each in given.certificate["columns"]]
    private = certificate["private"] is True
    if given.mechanism.inferred_from != "records":
        return replace(one_output(observe(given)), private=private)
    with given.open() as table:
        if certificate["domain"]["kind"] == "joint":
            domain, labels = _categories(certificate)
            density: Any = given.mechanism.likelihood(Numbers(read_cells(table, domain)))
            stated: Any = {"labels": labels, "domain": domain, "private": private, "channel": density.channel}
            return Privatised(released=density.channel.rows(density.released), column=columns[0], **stated)
        numbers = [read_numbers(table, name, nulls="lower") for name in columns]  # what is none is refused below
    released = numbers[0] if len(numbers) == 1 else np.stack(numbers, axis=1)
    if not np.isfinite(released).all():
        raise FormatError("the released file holds something that is no finite number.", hint="No channel releases that")
    density = given.mechanism.likelihood(Numbers(released))
    column = str(certificate["domain"]["column"])
    return Privatised(released=density.released, channel=density.channel, column=column, private=private)


def one_output(observed: CountsObserved) -> Privatised:
    """Counts of one column in equal bins, n public, as one output of all records: their channel follows from the likelihood."""
    term, n = observed.term, observed.n
    smoothed = isinstance(term, MixtureTerm)
    if n is None or not (smoothed or (isinstance(term, NoisyCountsTerm) and term.noise in WHOLE_NOISE)):
        raise ModelError(
            f"a mixture is no model of counts of cells by {observed.mechanism.name}, which are no one output of all records.",
            hint="Privatise the records; or release equal bins with n public, as whole noisy counts or by a smoothed histogram",
        )
    column, bounds, bins = _equal_bins(observed.domain)
    if isinstance(term, MixtureTerm):
        draws = int(term.released.sum())
        channel: Channel = SmoothedHistogramChannel(bounds=bounds, bins=bins, n=n, draws=draws, weight=Fraction(term.weight))
        released = np.repeat(np.arange(bins), term.released)
        return Privatised(released=released, channel=channel, column=column, mechanism=observed.mechanism.name)
    histogram = HistogramStatistic(bounds=bounds, bins=bins)
    channel = NoisyStatisticChannel(statistic=histogram, n=n, noise=WHOLE_NOISE[term.noise], scale=term.scale)
    counts = np.asarray(observed.counts)
    return Privatised(released=counts, channel=channel, column=column, mechanism=observed.mechanism.name)


def _equal_bins(domain: JointDomain | None) -> tuple[str, tuple[float, float], int]:
    """Name, bounds and number of bins of a one-column domain of equal bins that holds nothing else."""
    [(column, bins)] = domain.columns.items() if domain is not None and len(domain.columns) == 1 else [("", None)]
    if not isinstance(bins, Bins) or bins.size != bins.n_values:
        raise ModelError(
            "a mixture is no model of counts of cells that are not one column in bins.",
            hint="Declare bins with outside values clamped and no nulls",
        )
    edges = [Fraction(edge) for edge in bins.edges]
    if len({b - a for a, b in pairwise(edges)}) != 1:
        raise ModelError("a mixture is no model of counts of bins that are not of equal width.", hint="Release equal bins")
    return column, (float(edges[0]), float(edges[-1])), bins.n_values


def default_model(
    channel: Channel, *, kernel: KernelName | Kernel = "auto", mixing: Mixing | None = None, clamped: bool = True
) -> MixtureModel | GlobalMixtureModel:
    """A mixture whose base measure follows the channel's public bounds, never the released values.

    "auto" is Gaussian for numbers, and categorical for randomised response. On bounds of width w about m a Gaussian kernel has
    mu | s^2 ~ N(m, 10 s^2), s^2 ~ inverse gamma(3, 3 (w/20)^2): the mixture paper's base on (-10, 10), moved and scaled.
    "total-gaussian" is the paper's conjugate one for unclamped values behind Gaussian noise. "beta" is for bounds (0, 1).

    >>> from privurn.mechanisms.local import LaplaceChannel
    >>> default_model(LaplaceChannel.calibrate(bounds=(0, 40), epsilon=2)).kernel
    GaussianKernel(mean=20.0, precision=0.1, shape=3.0, scale=12.0)
    """
    made = kernel if isinstance(kernel, Kernel) else _kernel(channel, kernel)
    mixing = DirichletProcess() if mixing is None else mixing
    if channel.one_output:
        if not clamped:
            raise ModelError("only Laplace and Gaussian noise on each record can be modelled without clamping.")
        return GlobalMixtureModel(channel=channel, kernel=made, mixing=mixing)  # type: ignore[arg-type]
    unclamped = not clamped or isinstance(made, TotalGaussianKernel)
    return MixtureModel(channel=channel, kernel=made, mixing=mixing, clamped=not unclamped)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture model of privatised records, whose channel is read from the release.

    `kernel`, `mixing` and `clamped` as in `default_model`; `sampler`, `moves` and `keep` as in `fit_mixture`. A `MixtureModel`
    states its channel itself.
    """

    kernel: KernelName | Kernel = "auto"
    mixing: Mixing | None = None
    clamped: bool = True
    sampler: SamplerName = "auto"
    moves: Moves = "auto"
    keep: Keep | None = None


def mixture_posterior(
    given: Privatised,
    *,
    model: Mixture | MixtureModel | GlobalMixtureModel | None = None,
    ask: Any = None,
    run: Run | None = None,
    level: float = 0.95,
) -> MixturePosterior:
    """The posterior of the population behind privatised records, or behind one output for all of them."""
    how = model if isinstance(model, Mixture) else Mixture()
    stated = model if isinstance(model, (MixtureModel, GlobalMixtureModel)) else None
    made = stated or default_model(given.channel, kernel=how.kernel, mixing=how.mixing, clamped=how.clamped)
    together = bool(getattr(given.channel, "one_output", False))  # a tuple has a channel for each column
    if together != isinstance(made, GlobalMixtureModel):
        seen = "one output of all records" if together else "an output of each record"
        raise ModelError(f"{type(made).__name__} is no model of {seen}, which was published.", hint="Give a Mixture")
    asked = () if ask is None else parse_functionals([ask] if isinstance(ask, str) else ask)
    question = Question(functionals=asked, labels=given.labels, domain=given.domain, column=given.column)
    common: dict[str, Any] = {"sampler": how.sampler, "keep": how.keep, "question": question, "run": run, "level": level}
    if not isinstance(made, GlobalMixtureModel):
        return fit_mixture(given.released, model=made, moves=how.moves, **common)
    if how.moves == "regrouped":
        raise ModelError("one output for all records leaves no record to be summed out.", hint="Leave moves out")
    return fit_global_mixture(given.released, model=made, **common)


def _kernel(channel: Any, name: str) -> Kernel:
    if name not in KERNELS:
        raise ModelError(f"the kernel {name!r} is not known.", hint=", ".join(KERNELS))
    response = bool(getattr(channel, "sizes", ()))
    if name == "auto":
        name = "categorical" if response else "gaussian"
    if response and name != "categorical":
        raise ModelError("randomised response releases categories.", hint="kernel='categorical', or leave it out")
    lower, upper = channel.bounds or (0.0, 1.0)
    if name == "categorical":
        if not response and not (getattr(channel, "whole", False) and lower == 0.0 and upper < MOST_CATEGORIES):
            raise ModelError(
                "a categorical kernel is for randomised response, or for whole numbers with a lower bound of 0.",
                hint="kernel='gaussian'",
            )
        return CategoricalKernel(categories=getattr(channel, "sizes", ()) or (int(upper) + 1,))
    if name == "beta":
        if (lower, upper) != (0.0, 1.0):
            raise ModelError("the beta kernel is for values between 0 and 1.", hint="kernel='gaussian' takes any bounds")
        return BetaKernel()
    width = upper - lower
    mean, scale = lower + 0.5 * width, GaussianKernel.scale * (width / WIDTH) ** 2
    if name == "gaussian":
        return GaussianKernel(mean=mean, scale=scale)
    if getattr(channel, "continuous_noise", None) != "gaussian":
        raise ModelError("the total-gaussian kernel is for the Gaussian channel.", hint="kernel='gaussian'")
    return TotalGaussianKernel(noise=channel.scale, mean=mean, scale=scale)


def _categories(certificate: Certificate) -> tuple[JointDomain, tuple[str, ...]]:
    """Columns of categories, and how the categories are called."""
    domain = domain_from_json(certificate["domain"])
    if not isinstance(domain, JointDomain):
        raise CertificateError("the certificate lists no categories.")
    labels: list[str] = []
    for name, column in domain.columns.items():
        if not isinstance(column, Categories):
            raise CertificateError("the certificate lists no categories.")
        before = f"{name}=" if len(domain.columns) > 1 else ""
        labels += [before + label for label in _labels(column)]
    return domain, tuple(labels)


def _labels(domain: Categories) -> tuple[str, ...]:
    names = [label_text(value) for value in domain.values]
    special = {domain.other_cell: "other", domain.null_cell: "missing"}
    return tuple(names[i] if i < len(names) else special.get(i, str(i)) for i in range(domain.size))
