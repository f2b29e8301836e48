"""Mixtures from one output for all records: a smoothed histogram, noisy counts, noisy moments or noisy marginals.

    y_i | theta_i ~ kernel,   theta_i ~ P,   P ~ mixing,   one released W ~ channel(. | y_1, ..., y_n)

The number of records is public. W says nothing about who is in which cluster, since the records are exchangeable given W: what
can be learned is the density of the population.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError, SamplingError
from privurn.inference.mixtures.fitted import Question
from privurn.inference.mixtures.kernels import Kernel
from privurn.inference.mixtures.mixings import DirichletProcess, Mixing
from privurn.inference.mixtures.model import EDGE, Observed
from privurn.inference.mixtures.posterior import MixturePosterior, make_sampler, run_sampler
from privurn.inference.mixtures.samplers import Keep, MixtureSampler, parts
from privurn.inference.run import Arrays, Run
from privurn.mechanisms.local import GlobalChannel
from privurn.mechanisms.local.statistics import MarginalsStatistic, MomentsStatistic

SPREAD = 0.5
"""Added to every released count before chains start from them: no bin is out of reach, and none is negative."""

SMALLEST_DEVIATION = 1e-3
"""Least deviation, relative to the bounds, of the values that chains start from where moments were released."""


@dataclass(frozen=True, kw_only=True)
class OwnGlobalChannel:
    """A channel that is written elsewhere, and values to start from: a number, or a row of codes, for each of the n records.

    `statistic_record` answers `width`, `position` and `amount`, `noise_record` answers `log_change`, for every
    value that the kernel can draw (privurn._kernels.mixtures.global_channels). The output is handed on as it is, one number
    for each coordinate. No guarantee is claimed.
    """

    statistic_record: tuple[Any, ...]
    noise_record: tuple[Any, ...]
    start: tuple[Any, ...]
    one_output: ClassVar[bool] = True

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.start)


@dataclass(frozen=True, kw_only=True)
class GlobalMixtureModel:
    """y_i ~ kernel at theta_i, theta_i ~ P, P ~ mixing; one released output W ~ channel given all y_i.

    The channel fixes n and clamps what it is given, and so does the model. Kernels on numbers take histograms, smoothed or
    noisy, and moments; a kernel on one column of categories takes any statistic of its codes 0, 1, ...; one on several
    columns takes marginals of them.
    """

    channel: GlobalChannel | OwnGlobalChannel
    kernel: Kernel
    mixing: Mixing = field(default_factory=DirichletProcess)

    def __post_init__(self) -> None:
        if not getattr(self.channel, "one_output", False):
            raise ModelError(
                "a mixture from one output needs a smoothed histogram or a noisy statistic.",
                hint="SmoothedHistogramChannel or NoisyStatisticChannel; MixtureModel is for channels with an output a record",
            )
        if not isinstance(self.kernel, Kernel) or not isinstance(self.mixing, Mixing):
            raise ModelError("a mixture needs a kernel and a mixing.", hint="kernel=BetaKernel(), mixing=DirichletProcess()")
        if isinstance(self.channel, OwnGlobalChannel):
            return
        marginals = _marginals(self.channel)
        if marginals is None:
            if self.kernel.columns() > 1:
                raise ModelError("several columns of categories need noisy marginals.", hint="MarginalsStatistic")
        elif not self.kernel.categorical:
            raise ModelError("marginals are of categories, and the kernel is for numbers.", hint="CategoricalKernel")
        elif marginals.sizes != _categories(self.kernel):
            raise ModelError("the marginals are of other categories than the kernel's.", hint="Equal sizes and categories")

    @property
    def n(self) -> int:
        """Public number of records."""
        return self.channel.n

    def observe(self, output: ArrayLike) -> "GlobalObserved":
        """The output as compiled loops take it, checked, and values to start from."""
        w = _summary(self.channel, output)
        if isinstance(self.channel, OwnGlobalChannel):
            return _observe_own(self.channel, self.kernel, w)
        statistic, start = (_codes if self.kernel.categorical else _numbers)(self.channel, self.kernel, w)
        return GlobalObserved(channel=(statistic, self.channel.noise_record()), z=w, start=np.ascontiguousarray(start))


@dataclass(frozen=True, kw_only=True)
class GlobalObserved(Observed):
    """Records of the statistic and of the noise, the output for each coordinate, and latent values to start from."""

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.start)


def _observe_own(channel: OwnGlobalChannel, kernel: Kernel, w: NDArray[np.float64]) -> GlobalObserved:
    from privurn._kernels.mixtures.global_channels import position, width

    start = np.array(channel.start, np.int64 if kernel.categorical else np.float64)
    if not channel.n or start.shape != (channel.n, kernel.columns())[: 1 + kernel.categorical]:
        raise ModelError("a channel of one's own needs one number, or one row of codes, to start from for each record.")
    places = [position(channel.statistic_record, y, e) for y in start for e in range(width(channel.statistic_record))]
    if w.ndim != 1 or not all(0 <= place < len(w) for place in places):
        raise ModelError("the output must be one number for each coordinate of the statistic.")
    return GlobalObserved(channel=(channel.statistic_record, channel.noise_record), z=np.ascontiguousarray(w), start=start)


def _summary(channel: GlobalChannel | OwnGlobalChannel, output: ArrayLike) -> NDArray[np.float64]:
    try:
        given = np.asarray(output, np.float64)
    except (TypeError, ValueError):
        raise DomainError("the released output must be numbers.") from None
    if not np.isfinite(given).all():
        raise DomainError("the released output must be finite.", hint="No channel releases NaN or infinity")
    return given if isinstance(channel, OwnGlobalChannel) else np.asarray(channel.summary(given), np.float64)


def _marginals(channel: GlobalChannel) -> MarginalsStatistic | None:
    return channel.statistic if isinstance(channel.statistic, MarginalsStatistic) else None


def _categories(kernel: Kernel) -> tuple[int, ...]:
    return getattr(kernel, "categories", None) or (int(kernel.support()[1]) + 1,)


def _quantiles(masses: NDArray[np.float64], places: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of the density that is constant between neighbouring places."""
    ends = np.concatenate([[0.0], np.cumsum(masses)])
    return np.asarray(np.interp(at, ends / ends[-1], places))


def _numbers(channel: GlobalChannel, kernel: Kernel, w: NDArray[np.float64]) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
    """The statistic's record, and evenly spaced quantiles of a law that fits the output."""
    from privurn._kernels.mixtures.global_channels import Bins, Moments

    at = (np.arange(channel.n) + 0.5) / channel.n
    statistic = channel.statistic
    lower, upper = statistic.bounds
    if isinstance(statistic, MomentsStatistic):
        record: tuple[Any, ...] = Moments(lower, upper, statistic.degree, statistic.unit)
        share = w / (channel.n * statistic.unit)
        mean = float(np.clip(share[0], 0.0, 1.0))
        square = float(share[1]) - mean**2 if statistic.degree > 1 else 1.0 / 12.0
        deviation = float(np.clip(square, SMALLEST_DEVIATION**2, 0.25)) ** 0.5
        start = np.clip(mean + deviation * 12.0**0.5 * (at - 0.5), 0.0, 1.0)
        start = lower + (upper - lower) * start
    else:
        record = Bins(lower, upper, statistic.bins)
        start = _quantiles(np.maximum(w, 0.0) + SPREAD, np.linspace(lower, upper, statistic.bins + 1), at)
    low, high = kernel.support()
    edge = EDGE * (high - low) if np.isfinite(high - low) else EDGE
    return record, np.clip(start, low + edge, high - edge)


def _codes(channel: GlobalChannel, kernel: Kernel, w: NDArray[np.float64]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The statistic's record, and codes whose frequencies fit the output, columns independent of each other."""
    from privurn._kernels.mixtures.global_channels import Codes, Marginals

    sizes, marginals, n = _categories(kernel), _marginals(channel), channel.n
    counts = np.maximum(w, 0.0) + SPREAD
    laws: list[NDArray[np.float64]] = []
    if marginals is None:
        positions, amounts = channel.entries(np.arange(sizes[0]))
        record: tuple[Any, ...] = Codes(np.ascontiguousarray(positions), np.ascontiguousarray(amounts))
        alone = positions.shape[1] == 1  # counts: codes that share a bin share its count
        laws.append(counts[positions[:, 0]] / np.bincount(positions[:, 0])[positions[:, 0]] if alone else np.ones(sizes[0]))
    else:
        starts = np.zeros(len(marginals.marginals), np.int64)
        radix = np.zeros((len(marginals.marginals), len(sizes)), np.int64)
        laws = [np.ones(size) for size in sizes]
        first = 0
        for e, columns in enumerate(marginals.marginals):
            shape = [sizes[column] for column in columns]
            starts[e] = first
            radix[e, list(columns)] = np.cumprod([1, *shape[:-1]])
            table = counts[first : first + int(np.prod(shape))].reshape(shape, order="F")
            for axis, column in enumerate(columns):
                laws[column] = table.sum(axis=tuple(a for a in range(len(columns)) if a != axis))
            first += table.size
        record = Marginals(starts, radix)
    at, rng = (np.arange(n) + 0.5) / n, np.random.default_rng(0)
    codes = [
        np.searchsorted(np.cumsum(law / law.sum())[:-1], at if j == 0 else rng.permutation(at)) for j, law in enumerate(laws)
    ]
    return record, np.stack(codes, axis=1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class GlobalSampler(MixtureSampler):
    """What both samplers share; `released` is the one output. The channel's sum is computed anew at the start of each call."""

    model: GlobalMixtureModel

    def _run(self, loop: Callable[..., NDArray[Any]], state: Arrays, *given: Any) -> NDArray[Any]:
        from privurn._kernels.dispatch import entry

        (statistic, noise), kernel, mixing = self.records
        records = statistic, noise, kernel, mixing
        run: Callable[..., NDArray[Any]] = entry(loop, *records)
        return run(*records, self.observed.z, *parts(state), self.model.kernel.n_statistics, *given)


@dataclass(frozen=True, kw_only=True)
class GlobalNeal5(GlobalSampler):
    """Cluster from the urn and value from its kernel, proposed together and judged by the channel."""

    name: ClassVar[str] = "global-neal5"

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.mixtures.global_neal5 import run_global_neal5

        return self._run(run_global_neal5, state, sweeps, thin, warming, keep, rng)


@dataclass(frozen=True, kw_only=True)
class GlobalSlice(GlobalSampler):
    """Clusters given values by slices of the mixing measure; values by a Metropolis step with the kernel as proposal."""

    name: ClassVar[str] = "global-slice"

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.mixtures.global_slices import run_global_slices

        atoms = self._run(run_global_slices, state, sweeps, thin, warming, keep, rng)
        if len(atoms) == 0:
            raise SamplingError("a sweep needs more than a million atoms.", hint='sampler="neal5", or a smaller discount')
        return atoms


SAMPLERS: Mapping[str, type[GlobalSampler]] = {"neal5": GlobalNeal5, "slice": GlobalSlice}


def fit_global_mixture(
    output: ArrayLike,
    *,
    model: GlobalMixtureModel,
    sampler: Literal["auto", "neal5", "slice"] = "auto",
    keep: Keep | None = None,
    question: Question | None = None,
    run: Run | None = None,
    level: float = 0.95,
) -> MixturePosterior:
    """Posterior of a mixture of n confidential values from one output that was released of them all; warns as `fit_mixture`.

    `output` is what the channel released: bin numbers of a smoothed histogram, or the noisy sums. The samplers "neal5", which
    "auto" is, and "slice" have the same posterior. All else is as for `fit_mixture`.
    """
    if not isinstance(model, GlobalMixtureModel):
        raise ModelError(
            "one output for all records needs a model of it.", hint="GlobalMixtureModel; fit_mixture is for an output a record"
        )
    named = "neal5" if sampler == "auto" else sampler
    chosen = make_sampler(SAMPLERS, named, model=model, released=output, keep=keep)
    return run_sampler(chosen, run=run, question=question, level=level)
