"""From a privatised folder to what a mixture needs: the released values, the channel that its certificate states, and a model.

Nothing here comes from the released values but the values themselves: the base measure follows the public bounds alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.certificates.release import Release
from privurn.certificates.verify import SEEDED, check_certificate, verify
from privurn.domain import Categories, JointDomain, domain_from_json, label_text
from privurn.errors import CertificateError, FormatError, ModelError
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.released import observe
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, fit_global_mixture
from privurn.inference.mixtures.kernels import BetaKernel, CategoricalKernel, GaussianKernel, Kernel
from privurn.inference.mixtures.mixings import DirichletProcess, Mixing
from privurn.inference.mixtures.model import MixtureModel
from privurn.inference.mixtures.posterior import MixturePosterior, Question, SamplerName, fit_mixture
from privurn.inference.mixtures.samplers import Keep
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel
from privurn.inference.run import Run
from privurn.mechanisms.local import (
    Channel,
    DiscreteGaussianChannel,
    DiscreteLaplaceChannel,
    GaussianChannel,
    GlobalChannel,
    NoisyStatisticChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.from_certificate import channel_of
from privurn.mechanisms.local.randomised_responses import RESPONSES, RandomisedResponsesChannel
from privurn.mechanisms.local.statistics import HistogramStatistic
from privurn.privacy.certificate import Certificate
from privurn.tables import open_table
from privurn.tables.columns import read_numbers
from privurn.tables.released import open_released
from privurn.tables.rows import read_cells

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
    but can be analysed like any other.
    """

    released: NDArray[Any]
    channel: Channel
    column: str
    labels: tuple[str, ...] = ()
    domain: JointDomain | None = None
    private: bool = True

    @property
    def n(self) -> int:
        """Confidential records."""
        return self.channel.n if isinstance(self.channel, GlobalChannel) else len(self.released)


def read_privatised(source: str | Path | Release) -> Privatised:
    """Read and verify what `privatise` made: a folder, its data file or its certificate file, or the result itself.

    Releases of one column in equal bins by the smoothed histogram, or of noisy counts, are read too: one output for all.

    >>> from privurn.domain import Bounds
    >>> from privurn.releases.privatise import privatise
    >>> found = read_privatised(privatise(np.array([1.0, 2.0, 4.0]), domain=Bounds(0, 10), epsilon=2))
    >>> found.n, found.channel.scale
    (3, 5.0)
    """
    if isinstance(source, Release):
        certificate, data, reasons = source.certificate, source.table, check_certificate(source.certificate)
    elif isinstance(source, (str, Path)):
        folder, certificate = located(Path(source))
        data, reasons = folder / _output(certificate), list(verify(folder).reasons)
    else:
        raise FormatError(
            f"an object of type {type(source).__name__} is nothing privatised.",
            hint="Give a folder that privurn privatise made",
        )
    left = [reason for reason in reasons if reason != SEEDED]
    if left:
        raise CertificateError(
            "the release does not verify, so nothing is concluded from it: " + "; ".join(left) + ".",
            hint="Get it again from its source; privurn verify DIR shows the same reasons",
        )
    channel = channel_of(certificate)
    private = certificate["private"] is True
    if isinstance(channel, GlobalChannel):
        return _read_global(source, certificate, channel, private=private)
    columns = [str(each) for each in certificate["columns"]]
    with open_released(data) if isinstance(data, Path) else open_table(data) as table:
        if isinstance(channel, RESPONSES):
            domain, labels = _categories(certificate)
            codes = read_cells(table, domain)
            rows = channel.rows(codes) if isinstance(channel, RandomisedResponsesChannel) else codes
            return Privatised(released=rows, channel=channel, column=columns[0], labels=labels, domain=domain, private=private)
        numbers = [read_numbers(table, name) for name in columns]
    released = numbers[0] if len(numbers) == 1 else np.stack(numbers, axis=1)
    if not np.isfinite(released).all():
        raise FormatError("the released file holds something that is no finite number.", hint="No channel releases that")
    return Privatised(released=released, channel=channel, column=str(certificate["domain"]["column"]), private=private)


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
    if isinstance(channel, GlobalChannel):
        if not clamped:
            raise ModelError("only Laplace and Gaussian noise on each record can be modelled without clamping.")
        return GlobalMixtureModel(channel=channel, kernel=made, mixing=mixing)
    if isinstance(channel, RandomisedResponsesChannel):
        return MixtureModel(channel=channel.responses, kernel=made, mixing=mixing, clamped=clamped)
    unclamped = not clamped or isinstance(made, TotalGaussianKernel)
    return MixtureModel(channel=channel, kernel=made, mixing=mixing, clamped=not unclamped)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture model of privatised records, whose channel is read from the release.

    `kernel`, `mixing` and `clamped` as in `default_model`; `sampler` and `keep` as in `fit_mixture`. A `MixtureModel` states
    its channel itself.
    """

    kernel: KernelName | Kernel = "auto"
    mixing: Mixing | None = None
    clamped: bool = True
    sampler: SamplerName = "auto"
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
    asked = () if ask is None else parse_functionals([ask] if isinstance(ask, str) else ask)
    question = Question(functionals=asked, labels=given.labels, domain=given.domain, column=given.column)
    common: dict[str, Any] = {"sampler": how.sampler, "keep": how.keep, "question": question, "run": run, "level": level}
    if isinstance(made, GlobalMixtureModel):
        return fit_global_mixture(given.released, model=made, **common)
    return fit_mixture(given.released, model=made, **common)


def public_bounds(channel: Channel) -> tuple[float, float]:
    """Bounds of the confidential values, as the channel has them."""
    if isinstance(channel, NoisyStatisticChannel):
        return getattr(channel.statistic, "bounds", (0.0, 1.0))
    return channel.bounds  # type: ignore[attr-defined,no-any-return]


def _kernel(channel: Channel, name: str) -> Kernel:
    if name not in KERNELS:
        raise ModelError(f"the kernel {name!r} is not known.", hint=", ".join(KERNELS))
    response = isinstance(channel, RESPONSES)
    if name == "auto":
        name = "categorical" if response else "gaussian"
    if response and name != "categorical":
        raise ModelError("randomised response releases categories.", hint="kernel='categorical', or leave it out")
    lower, upper = public_bounds(channel)
    if name == "categorical":
        whole = isinstance(channel, (DiscreteLaplaceChannel, DiscreteGaussianChannel))
        if not response and not (whole and lower == 0.0 and upper < MOST_CATEGORIES):
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
    if not isinstance(channel, GaussianChannel):
        raise ModelError("the total-gaussian kernel is for the Gaussian channel.", hint="kernel='gaussian'")
    return TotalGaussianKernel(noise=channel.scale, mean=mean, scale=scale)


def located(path: Path) -> tuple[Path, Certificate]:
    """Folder and certificate; a data file must be the one that the certificate beside it names."""
    if not path.exists():
        raise FormatError(f"there is no {str(path)!r}.", hint="Give what privurn has released: a folder, or a file in it")
    if path.is_dir() or path.suffix == ".json":
        return (path if path.is_dir() else path.parent), Certificate.read(path)
    if not (path.parent / "certificate.json").exists():
        raise CertificateError(
            f"there is no certificate beside {path.name!r}, so its channel is not known.",
            hint="Give the folder that privurn privatise made",
        )
    certificate = Certificate.read(path.parent)
    if _output(certificate) != path.name:
        raise CertificateError(f"the certificate beside {path.name!r} belongs to another file.", hint="Give the whole folder")
    return path.parent, certificate


def _output(certificate: Certificate) -> str:
    output = certificate["output"]
    name = output.get("file") if isinstance(output, dict) else None
    if not isinstance(name, str):
        raise CertificateError("the certificate names no data file.")
    return name


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


def _read_global(source: Any, certificate: Certificate, channel: GlobalChannel, *, private: bool) -> Privatised:
    """Noisy counts, or the bin numbers of the released draws."""
    place = source if isinstance(source, Release) or Path(source).is_dir() else Path(source).parent
    counts = observe(place)[0].counts
    column = str(certificate["columns"][0])
    if isinstance(channel, SmoothedHistogramChannel):
        bins = np.repeat(np.arange(len(counts)), np.asarray(counts, np.int64))
        return Privatised(released=bins, channel=channel, column=column, private=private)
    assert isinstance(channel, NoisyStatisticChannel)
    assert isinstance(channel.statistic, HistogramStatistic)
    return Privatised(released=np.asarray(counts), channel=channel, column=column, private=private)
