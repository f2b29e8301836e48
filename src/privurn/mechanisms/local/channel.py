"""What every channel is: public parameters, a guarantee, a way to privatise, and the density of the output given the data.

How to add one: subclass `LocalChannel` (or `GlobalChannel`) as a frozen dataclass in one file; docs/how-to/privatise.md has
a skeleton. To be certified it also needs an entry in mechanisms/registry.py, a section in docs/proofs/channels.md and an
enumeration in tests/exact/test_channels.py.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import zcdp_bound
from privurn.privacy.profile import PrivacyProfile

LARGEST_EPSILON = 16_384.0
"""Above this the noise would be narrower than 64 steps of the default lattice. A certificate stops far earlier."""

CLOSEST, SMALLEST_WIDTH = 2.0**-24, 1e-250
"""Bounds closer than this (relative, absolute) would have lattice points that floats cannot tell apart."""

LARGEST_BOUND = 1e280
"""Within it every 64-bit number of lattice steps, however wide, is a finite float."""


class Channel(ABC):
    """A channel is frozen public data; it keeps no reference to the data it is applied to."""

    name: ClassVar[str]
    """What certificates and the command line call it."""
    one_output: ClassVar[bool]
    """Whether there is one output for all records; else one for each."""

    @property
    @abstractmethod
    def profile(self) -> PrivacyProfile:
        """The guarantee when one record is replaced by any other; exact, or an upper bound where its `tight` is False."""

    @property
    def rho(self) -> float | None:
        """Smallest known rho for which the channel is rho-zCDP, None where none is known."""
        bound = zcdp_bound(self.profile)
        return bound if math.isfinite(bound) else None

    @abstractmethod
    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[Any]:
        """What is published, in exact integers: noise from OpenDP or integers from `entropy`. Never fails on content."""

    @abstractmethod
    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[Any]:
        """Floating-point twin of `privatise` for simulation studies, never for a release."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output, as plain data."""


class LocalChannel(Channel):
    """Every record is privatised by itself: z_i ~ q(. | y_i), independently. Records outside `bounds` are clamped first."""

    bounds: tuple[float, float]
    """Public lower and upper bound of the data; codes 0..k-1 for categories."""
    adds_noise: ClassVar[bool] = True
    """Whether the randomness is OpenDP's; else it is drawn in integers."""
    one_output: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    """Whether the data are whole numbers."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Categories of each confidential column; none where the data are numbers."""
        return ()

    @property
    def parts(self) -> "tuple[LocalChannel, ...]":
        """A channel for each column of categories, independent of each other."""
        return (self,)

    @property
    def continuous_noise(self) -> NoiseKind | None:
        """Kind of the noise, of the scale `scale`, where that is added to a clamped number; None for other channels."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know of the noise before using the data."""
        return ()

    @property
    def published_lattice(self) -> tuple[float, float] | None:
        """A point and the step of the lattice that outputs lie on, for audits to look at; None: nothing to look at."""
        return None

    @abstractmethod
    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """Log of q(z | clamp(y)) for each record, by broadcasting; several outputs of a record are the last axis of z."""

    def possible(self, released: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers the channel can have released, whatever the data were."""
        return np.isfinite(released)

    def compiled(self, released: ArrayLike, *, clamped: bool = True) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
        """For inference on numbers: the record that `log_density` of `_kernels` takes, outputs, and values to start from."""
        raise ModelError(f"there is no compiled density of {self.name} channels.", hint="OwnChannel: docs/design-mixtures.md")

    def log_table(self, released: NDArray[np.int64], *, categories: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """For inference on categories: log probabilities (y, z), and the outputs as their column numbers."""
        raise ModelError("this channel cannot be used with a categorical kernel.", hint="Randomised response")

    def rows(self, codes: ArrayLike) -> NDArray[np.int64]:
        """Outputs as inference takes them: the codes of every column, where one number stands for several."""
        return np.asarray(codes, np.int64)

    def columns(self, column: str) -> list[str]:
        """Names of the published columns for a confidential one."""
        return [column]

    @classmethod
    @abstractmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""


class GlobalChannel(Channel):
    """One output for all n records, through a sum: W ~ q(. | t(y_1) + ... + t(y_n)), with a density that factorises.

    A record touches few coordinates of the sum: `entries` gives their positions and the whole amounts it adds, both of shape
    (n, w). log q(W | sum) is a sum over coordinates of `terms`, so replacing one record costs O(w), whatever n is.
    """

    n: int
    """Public number of records."""
    dimension: int
    """Coordinates of the sum."""
    statistic: Any
    """What is summed: one of local/statistics.py."""
    one_output: ClassVar[bool] = True

    @abstractmethod
    def noise_record(self) -> tuple[Any, ...]:
        """For inference: what `log_change` of `_kernels` takes."""

    @abstractmethod
    def entries(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and amounts that each record adds to the sum."""

    @abstractmethod
    def summary(self, released: ArrayLike) -> NDArray[Any]:
        """What `terms` needs of the output, one number for each coordinate; computed once."""

    @abstractmethod
    def terms(self, summary: NDArray[Any], total: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.float64]:
        """Contributions to log q(W | sum) of the coordinates `at`, where the sum has the values `total` (same shape)."""

    def total(self, data: ArrayLike) -> NDArray[np.int64]:
        """The sum over all records."""
        positions, amounts = self.entries(data)
        out = np.zeros(self.dimension, np.int64)
        np.add.at(out, positions.ravel(), amounts.ravel())
        return out

    def log_density(self, released: ArrayLike, data: ArrayLike) -> float:
        """Log of q(W | y_1, ..., y_n)."""
        total = self.total(data)
        return float(self.terms(self.summary(released), total, np.arange(self.dimension)).sum())

    def replaced(self, total: NDArray[np.int64], old: ArrayLike, new: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Coordinates that change when the record `old` becomes `new`, and the sum there afterwards; O(w)."""
        before, after = self.entries(np.asarray(old)[None]), self.entries(np.asarray(new)[None])
        at, where = np.unique(np.concatenate([before[0].ravel(), after[0].ravel()]), return_inverse=True)
        changed = total[at].copy()
        np.add.at(changed, where, np.concatenate([-before[1].ravel(), after[1].ravel()]))
        return at, changed

    def log_ratio(self, summary: NDArray[Any], total: NDArray[np.int64], *, old: ArrayLike, new: ArrayLike) -> float:
        """Log of q(W | one record replaced)/q(W | sum); O(w)."""
        at, changed = self.replaced(total, old, new)
        return float((self.terms(summary, changed, at) - self.terms(summary, total[at], at)).sum())

    def check_size(self, n: int) -> None:
        """The guarantee of a sum may depend on n; it was computed for one."""
        if n != self.n:
            raise ModelError("the channel was made for another number of records than the data hold.")


def finite_numbers(released: ArrayLike, *, axes: int) -> NDArray[np.float64]:
    """What was released as finite numbers: one for each record, or one row of them."""
    try:
        z = np.asarray(released, np.float64)
    except (TypeError, ValueError):
        raise DomainError("released values must be numbers.") from None
    if z.ndim != axes or z.shape[0] == 0:
        expected = "one number for each record" if axes == 1 else "one row of numbers for each record"
        raise DomainError(f"released values must be {expected}, at least one.")
    if not np.isfinite(z).all():
        raise DomainError(
            "released values must be finite.", hint="No channel releases NaN or infinity: check how the file was read"
        )
    return np.ascontiguousarray(z)


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """Lower and upper bound as floats, or what is wrong with them."""
    try:
        lower, upper = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise DomainError("bounds must be two numbers.", hint="For example bounds=(0, 100)") from None
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper and math.isfinite(upper - lower)):
        raise DomainError("bounds must be finite, the lower one first.", hint="For example bounds=(0, 100)")
    if max(-lower, upper) > LARGEST_BOUND:
        raise DomainError(
            f"bounds must lie between {-LARGEST_BOUND:g} and {LARGEST_BOUND:g}, or the noise would leave the numbers.",
            hint="Divide the data by a public number first",
        )
    if upper - lower < max(abs(lower), abs(upper)) * CLOSEST or upper - lower < SMALLEST_WIDTH:
        raise DomainError(
            "the bounds are too close together for their size.", hint="Subtract a public number from the data first"
        )
    return lower, upper


def whole_number(name: str, value: Any, *, least: int, most: int, hint: str) -> int:
    """A whole number within limits, as an int."""
    whole = not isinstance(value, (bool, str)) and math.isfinite(value) and int(value) == value
    if not whole or not least <= value <= most:
        raise ModelError(f"{name} must be a whole number from {least:,} to {most:,}.", hint=hint)
    return int(value)


def check_target(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """An (epsilon, delta) that a channel can be calibrated for."""
    if not (isinstance(epsilon, (int, float, np.number)) and 0.0 < epsilon <= LARGEST_EPSILON):
        raise ModelError(f"epsilon must be positive and at most {LARGEST_EPSILON:g}.", hint="For example epsilon=2")
    if not (isinstance(delta, (int, float, np.number)) and 0.0 <= delta < 1.0):
        raise ModelError("delta must lie in [0, 1).", hint="For example delta=1e-6; delta=0 asks for pure epsilon-DP")
    return float(epsilon), float(delta)


def as_numbers(data: ArrayLike) -> NDArray[np.float64]:
    """Floats; what is no number is NaN, because an exception would be an output and could quote a record."""
    try:
        return np.asarray(data, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.asarray(np.vectorize(_as_number, otypes=[np.float64])(np.asarray(data, object)), np.float64)


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the floats
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def clamped(data: ArrayLike, bounds: tuple[float, float]) -> NDArray[np.float64]:
    """The data within their bounds; what is no number goes to the lower bound, because an exception would be an output."""
    values = as_numbers(data)
    return np.clip(np.where(np.isnan(values), bounds[0], values), bounds[0], bounds[1])
