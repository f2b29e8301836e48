"""A mixture model of confidential values seen through a channel, and what was seen, in the form that compiled loops take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.inference.mixtures.kernels import Kernel
from privurn.inference.mixtures.mixings import DirichletProcess, Mixing
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel
from privurn.mechanisms.local import LocalChannel
from privurn.mechanisms.local.channel import finite_numbers

EDGE = 1e-3
"""Latent values start this far (of the width) within the support of a kernel on an interval."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableChannel:
    """Any mechanism on finitely many values: probabilities[y, z], for one column of codes; no guarantee is claimed."""

    probabilities: NDArray[np.float64]
    one_output: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        q = np.asarray(self.probabilities, np.float64)
        if q.ndim != 2 or np.any(q < 0.0) or not np.allclose(q.sum(axis=1), 1.0):
            raise ModelError("a table channel needs rows of probabilities that sum to 1.")
        object.__setattr__(self, "probabilities", q)

    def __repr__(self) -> str:
        return f"TableChannel(probabilities={self.probabilities.tolist()})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """One column."""
        return (self.probabilities.shape[0],)

    def log_table(self, released: NDArray[np.int64], *, categories: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The table itself."""
        if self.sizes != (categories,) or released.min() < 0 or released.max() >= self.probabilities.shape[1]:
            raise DomainError("a released code is none of the channel's, or the channel has other categories than the kernel.")
        with np.errstate(divide="ignore"):
            table = np.log(self.probabilities)
        if np.any(np.isneginf(table[:, released]).all(axis=0)):
            raise DomainError("a released code has probability 0 whatever the confidential value.")
        return table, released


@dataclass(frozen=True, kw_only=True)
class OwnChannel:
    """A channel that is written elsewhere: a record that answers `log_density`, and values to start from (one a record).

    No guarantee is claimed. The released array is handed on as it is: z[i] is what belongs to record i.
    """

    record: tuple[Any, ...]
    start: tuple[float, ...]
    one_output: ClassVar[bool] = False


class AnyMixture(Protocol):
    """What samplers and results ask of a model, with one output for each record or one for all of them."""

    @property
    def channel(self) -> Any:
        """Where the released values come from."""

    @property
    def kernel(self) -> Kernel:
        """Law of a value within its cluster."""

    @property
    def mixing(self) -> Mixing:
        """Law of the mixing measure."""

    def observe(self, released: ArrayLike, /) -> "Observed":
        """The released values as compiled loops take them, checked."""


ColumnChannel = LocalChannel | TableChannel | OwnChannel


@dataclass(frozen=True, kw_only=True)
class MixtureModel:
    """y_i ~ kernel at theta_i, theta_i ~ P, P ~ mixing; released z_i ~ channel given y_i.

    A categorical kernel takes one channel for all columns, or a tuple of one for each. The channel clamps what it is given,
    and so does the model; `clamped=False` leaves that out (Laplace and Gaussian noise only), which is right where the
    population lies within the bounds, and no bound on acceptance rates holds then.
    """

    channel: ColumnChannel | tuple[ColumnChannel, ...]
    kernel: Kernel
    mixing: Mixing = field(default_factory=DirichletProcess)
    clamped: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.channel, Sequence) and not isinstance(self.channel, tuple):
            object.__setattr__(self, "channel", tuple(self.channel))
        if len(parts := getattr(self.channel, "parts", ())) > 1:
            object.__setattr__(self, "channel", parts)
        channels = self.channel if isinstance(self.channel, tuple) else (self.channel,)
        if any(getattr(each, "one_output", False) for each in channels):
            raise ModelError(
                "this channel publishes one output for all records, not one for each.",
                hint="GlobalMixtureModel and fit_global_mixture",
            )
        if not isinstance(self.kernel, Kernel) or not isinstance(self.mixing, Mixing):
            raise ModelError(
                "a mixture needs a kernel and a mixing.", hint="kernel=GaussianKernel(), mixing=DirichletProcess()"
            )
        if not channels or not all(hasattr(each, "one_output") for each in channels):
            raise ModelError("a mixture needs a local channel.", hint="One of privurn.mechanisms.local")
        for each in channels:
            self._check(each)
        if len(channels) not in (1, self.kernel.columns()):
            raise ModelError("a categorical kernel needs one channel, or one for each column.")
        noise = getattr(self.channel, "continuous_noise", None)
        if isinstance(self.kernel, TotalGaussianKernel) and not (
            noise == "gaussian" and not self.clamped and self.channel.scale == self.kernel.noise  # type: ignore[union-attr]
        ):
            raise ModelError(
                "this kernel is for values that are not clamped, behind Gaussian noise of its own deviation.",
                hint="TotalGaussianKernel(noise=channel.scale), a Gaussian channel and clamped=False",
            )
        if not self.clamped and noise is None:
            raise ModelError("only Laplace and Gaussian noise can be modelled without clamping.", hint="Leave clamped out")

    def _check(self, channel: ColumnChannel) -> None:
        if isinstance(channel, OwnChannel):
            return
        if self.kernel.categorical and not channel.sizes and not channel.whole:
            raise ModelError("this channel is for numbers, and the kernel is for categories.", hint="Randomised response")
        if not self.kernel.categorical and channel.sizes:
            raise ModelError("this channel is for categories, and the kernel is for numbers.", hint="CategoricalKernel")

    def observe(self, released: ArrayLike) -> "Observed":
        """The released values as compiled loops take them, checked."""
        if isinstance(self.channel, OwnChannel):
            return _observe_own(self.channel, self.kernel, released)
        return _observe_codes(self, released) if self.kernel.categorical else _observe_numbers(self, released)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Record of the channel, z and latent values to start from, one entry of each array for each record."""

    channel: tuple[Any, ...]
    z: NDArray[Any]
    start: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.z)


def _inside(y: NDArray[Any], kernel: Kernel) -> NDArray[Any]:
    low, high = kernel.support()
    if math.isinf(low) and math.isinf(high):
        return y
    edge = EDGE * (high - low) if math.isfinite(high - low) else EDGE
    return np.asarray(np.clip(y, low + edge, high - edge))


def _observe_own(channel: OwnChannel, kernel: Kernel, released: ArrayLike) -> Observed:
    z = np.ascontiguousarray(released)
    start = np.asarray(channel.start, np.float64)
    if start.shape != z.shape[:1] or kernel.categorical:
        raise ModelError("a channel of one's own needs one number to start from for each record, and a kernel on numbers.")
    return Observed(channel=channel.record, z=z, start=_inside(start, kernel))


def _observe_numbers(model: MixtureModel, released: ArrayLike) -> Observed:
    channel: Any = model.channel
    record, z, start = channel.compiled(released, clamped=model.clamped)
    return Observed(channel=record, z=z, start=_inside(start, model.kernel))


def _observe_codes(model: MixtureModel, released: ArrayLike) -> Observed:
    """Each column through the table of its channel; whole-number noise becomes one over the values that were seen."""
    from privurn._kernels.mixtures.channels import Table

    kernel = model.kernel
    columns = kernel.columns()
    raw = np.asarray(released)
    z = finite_numbers(raw[:, None] if raw.ndim == 1 else raw, axes=2)
    if z.shape[1] != columns:
        raise DomainError(f"the kernel has {columns} columns, the released values have {z.shape[1]}.")
    if np.any(z != np.rint(z)):
        raise DomainError("released categories must be whole codes 0, 1, 2, ...")
    channels = model.channel if isinstance(model.channel, tuple) else (model.channel,) * columns
    sizes = getattr(kernel, "categories", None) or (int(kernel.support()[1]) + 1,)
    tables, codes = [], []
    for j, (channel, size) in enumerate(zip(channels, sizes, strict=True)):
        table, code = channel.log_table(z[:, j].astype(np.int64), categories=size)  # type: ignore[union-attr]
        tables.append(table)
        codes.append(code)
    log_q = np.full((columns, max(t.shape[0] for t in tables), max(t.shape[1] for t in tables)), -np.inf)
    for j, table in enumerate(tables):
        log_q[j, : table.shape[0], : table.shape[1]] = table
    start = np.stack([table.argmax(axis=0)[code] for table, code in zip(tables, codes, strict=True)], axis=1)
    return Observed(channel=Table(log_q), z=np.stack(codes, axis=1), start=np.ascontiguousarray(start))
