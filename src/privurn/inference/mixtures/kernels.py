"""Laws of the confidential values within a cluster, with the base measure of their parameters: frozen public data."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError


class Kernel(ABC):
    """What samplers need to know: the compiled record, and the sizes of an atom and of its statistics.

    `categorical` kernels have rows of category numbers as values; the others have one number.
    """

    name: ClassVar[str]
    categorical: ClassVar[bool] = False

    @property
    @abstractmethod
    def parameter_names(self) -> tuple[str, ...]:
        """Parameters that are kept of an atom."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in an atom: the parameters first, then what the compiled kernel derives from them."""

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """Numbers that say all about an atom that its cluster's values do."""

    @abstractmethod
    def record(self) -> tuple[Any, ...]:
        """The compiled kernel's record."""

    def support(self) -> tuple[float, float]:
        """Open interval of possible values; for categories the codes of the first column."""
        return -math.inf, math.inf

    def columns(self) -> int:
        """Columns of categories; 0 for kernels on numbers."""
        return 0

    def spread(self) -> float:
        """Usual deviation of a value within its cluster; infinite where atoms take no steps of a size."""
        return math.inf

    def sums_out(self, channel: tuple[Any, ...]) -> bool:
        """Whether values behind this channel's record are summed out, given that the pair of their types can be."""
        return True

    def worth_regrouping(self, channel: tuple[Any, ...], *, n: int, nodes: int) -> bool:
        """Whether moves that sum n values out at so many nodes give more effective draws for their time than sweeps do."""
        return True

    def below(self, atoms: NDArray[np.float64], x: float) -> NDArray[np.float64] | None:
        """Mass of each atom up to x, where that is known; else None."""
        return None


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (isinstance(value, (int, float, np.number)) and 0.0 < value < math.inf):
            raise ModelError(f"{name} must be a positive number.", hint=f"For example {name}=1.0")


@dataclass(frozen=True, kw_only=True)
class GaussianKernel(Kernel):
    """N(mu, s^2) with mu | s^2 ~ N(mean, s^2 / precision) and s^2 ~ inverse gamma(shape, scale).

    >>> GaussianKernel(mean=2.0).parameter_names
    ('mean', 'deviation')
    """

    mean: float = 0.0
    precision: float = 0.1
    shape: float = 3.0
    scale: float = 3.0
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean):
            raise ModelError("the mean of the base measure must be finite.")
        _positive(precision=self.precision, shape=self.shape, scale=self.scale)

    parameter_names: ClassVar[tuple[str, ...]] = ("mean", "deviation")
    width: ClassVar[int] = 3
    n_statistics: ClassVar[int] = 3

    def record(self) -> tuple[Any, ...]:
        """Normal inverse-gamma base."""
        from privurn._kernels.mixtures.gaussian import GaussianKernel as Record

        return Record(float(self.mean), float(self.precision), float(self.shape), float(self.scale))

    def spread(self) -> float:
        """That of the base measure's usual variance."""
        return math.sqrt(self.scale / self.shape)

    def below(self, atoms: NDArray[np.float64], x: float) -> NDArray[np.float64]:
        """The normal distribution function."""
        from scipy.special import ndtr

        return np.asarray(ndtr((x - atoms[..., 0]) / atoms[..., 1]), np.float64)


NARROWEST = 0.02
"""Scale of noise below which values in the unit interval are not summed out: they are nearly known."""

RECORDS_A_NODE = 25
"""From so many records for each node on moves that sum them out behind Gaussian noise are worth their time; measured."""


@dataclass(frozen=True, kw_only=True)
class BetaKernel(Kernel):
    """Beta(a, b) on (0, 1), a and b independently Gamma(shape, rate); atoms move by Langevin steps adapted in warm-up."""

    shape: float = 2.0
    rate: float = 2.0
    name: ClassVar[str] = "beta"

    def __post_init__(self) -> None:
        _positive(shape=self.shape, rate=self.rate)

    parameter_names: ClassVar[tuple[str, ...]] = ("a", "b")
    width: ClassVar[int] = 3
    n_statistics: ClassVar[int] = 3

    def record(self) -> tuple[Any, ...]:
        """Gamma base."""
        from privurn._kernels.mixtures.beta import BetaKernel as Record

        return Record(float(self.shape), float(self.rate))

    def support(self) -> tuple[float, float]:
        """The unit interval."""
        return 0.0, 1.0

    def spread(self) -> float:
        """That of a and b at their prior mean."""
        return 0.5 / math.sqrt(1.0 + 2.0 * self.shape / self.rate)

    def below(self, atoms: NDArray[np.float64], x: float) -> NDArray[np.float64]:
        """The regularised incomplete beta function."""
        from scipy.special import betainc

        return np.asarray(betainc(atoms[..., 0], atoms[..., 1], min(max(x, 0.0), 1.0)), np.float64)

    def sums_out(self, channel: tuple[Any, ...]) -> bool:
        """Sums and nodes grow with 1 / scale; bounds that leave no part of the unit interval say nothing."""
        scale, lower, upper = channel
        return bool(scale >= NARROWEST and max(lower, 0.0) < min(upper, 1.0))

    def worth_regrouping(self, channel: tuple[Any, ...], *, n: int, nodes: int) -> bool:
        """Behind Gaussian noise each node has an integral of its own: few records are swept many times meanwhile."""
        from privurn._kernels.mixtures.channels import Gaussian

        return n >= RECORDS_A_NODE * nodes or not isinstance(channel, Gaussian)


@dataclass(frozen=True, kw_only=True)
class CategoricalKernel(Kernel):
    """Independent columns of `categories[j]` categories each, with probabilities ~ Dirichlet(concentration, ...).

    >>> CategoricalKernel(categories=(2, 3)).parameter_names
    ('0:0', '0:1', '1:0', '1:1', '1:2')
    """

    categories: tuple[int, ...]
    concentration: float = 1.0
    name: ClassVar[str] = "categorical"
    categorical: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(int(k) for k in self.categories))
        if not self.categories or min(self.categories) < 2:
            raise ModelError("every column needs at least two categories.", hint="For example categories=(2, 3)")
        _positive(concentration=self.concentration)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Column and category."""
        return tuple(f"{j}:{v}" for j, k in enumerate(self.categories) for v in range(k))

    @property
    def width(self) -> int:
        """Probabilities and their logarithms."""
        return 2 * sum(self.categories)

    @property
    def n_statistics(self) -> int:
        """Counts."""
        return sum(self.categories)

    def record(self) -> tuple[Any, ...]:
        """Dirichlet base."""
        from privurn._kernels.mixtures.categorical import CategoricalKernel as Record

        starts = np.concatenate([[0], np.cumsum(self.categories)]).astype(np.int64)
        return Record(starts, np.full(sum(self.categories), float(self.concentration)))

    def support(self) -> tuple[float, float]:
        """Codes of the first column."""
        return 0.0, self.categories[0] - 1.0

    def columns(self) -> int:
        """One for each number of categories."""
        return len(self.categories)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComponentsKernel(Kernel):
    """Known components: an atom is the number a of one, with prior probability base[a]; value v has probability f[a, v]."""

    base: NDArray[np.float64]
    f: NDArray[np.float64]
    name: ClassVar[str] = "components"
    categorical: ClassVar[bool] = True

    def __post_init__(self) -> None:
        base, f = np.asarray(self.base, np.float64), np.asarray(self.f, np.float64)
        if f.ndim != 2 or base.shape != f.shape[:1] or np.any(base <= 0.0) or np.any(f < 0.0):
            raise ModelError("components need one positive prior probability and one row of probabilities each.")
        if not (np.allclose(base.sum(), 1.0) and np.allclose(f.sum(axis=1), 1.0)):
            raise ModelError("the probabilities of components must sum to 1.")
        object.__setattr__(self, "base", base / base.sum())
        object.__setattr__(self, "f", f / f.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"ComponentsKernel(base={self.base.tolist()}, f={self.f.tolist()})"

    parameter_names: ClassVar[tuple[str, ...]] = ("component",)
    width: ClassVar[int] = 1

    @property
    def n_statistics(self) -> int:
        """Counts."""
        return int(self.f.shape[1])

    def record(self) -> tuple[Any, ...]:
        """Logarithms of the probabilities."""
        from privurn._kernels.mixtures.categorical import ComponentsKernel as Record

        with np.errstate(divide="ignore"):
            return Record(self.base, np.log(self.f))

    def support(self) -> tuple[float, float]:
        """Codes."""
        return 0.0, self.f.shape[1] - 1.0

    def columns(self) -> int:
        """One."""
        return 1


@dataclass(frozen=True, kw_only=True)
class OwnKernel(Kernel):
    """A kernel on numbers that is written elsewhere: `make` gives its record, whose answers docs/design-mixtures.md lists.

    `parameters` names what is kept of an atom, `statistics` counts what its values add up to, `derived` counts further numbers
    of an atom; values lie between `low` and `high`.
    """

    make: Callable[[], tuple[Any, ...]]
    parameters: tuple[str, ...]
    statistics: int
    derived: int = 0
    low: float = -math.inf
    high: float = math.inf
    name: ClassVar[str] = "own"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As declared."""
        return self.parameters

    @property
    def n_statistics(self) -> int:
        """As declared."""
        return self.statistics

    @property
    def width(self) -> int:
        """Parameters and derived numbers."""
        return len(self.parameters) + self.derived

    def record(self) -> tuple[Any, ...]:
        """What `make` gives."""
        return self.make()

    def support(self) -> tuple[float, float]:
        """As declared."""
        return self.low, self.high

    def __repr__(self) -> str:
        return f"OwnKernel({self.record()!r})"
