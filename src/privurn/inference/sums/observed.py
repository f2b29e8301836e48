"""What inference sees of a release: numbers, the noise on them, and what is known of the number of records."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.size import SizePrior

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import NoisyStatistics

Kind = Literal["laplace", "gaussian"]
_KINDS = {"laplace": 1, "gaussian": 2}


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """values[j] = sum over records of t_j(record) + noise of scale scales[j]; about n either of two things is known.

    `n` is the public number of records (neighbours replace a record). Where it is None, n is secret (neighbours add or remove
    one): `noisy_n`, if there is one, is n plus noise of its own scale, and `size_prior` is believed before that. A latent
    table has at least one record.

    >>> Observed(values=np.array([3.2]), scales=np.array([1.0]), noisy_n=11.5, noisy_n_scale=2.0).secret_size
    True
    """

    values: NDArray[np.float64]
    scales: NDArray[np.float64]
    kind: Kind = "laplace"
    n: int | None = None
    noisy_n: float | None = None
    noisy_n_scale: float = 1.0
    noisy_n_kind: Kind = "laplace"
    size_prior: SizePrior = field(default_factory=SizePrior)
    columns: tuple[str, ...] = ()
    """Of the records, where they have names."""

    def __post_init__(self) -> None:
        values, scales = np.atleast_1d(self.values), np.atleast_1d(self.scales)
        if values.ndim != 1 or values.shape != scales.shape or not np.all(np.isfinite(values)):
            raise ModelError("noisy sums are a vector of finite numbers, with one scale of noise for each.")
        if not (np.all(scales > 0.0) and np.all(np.isfinite(scales)) and 0.0 < self.noisy_n_scale < np.inf):
            raise ModelError("scales of noise must be positive and finite.")
        if self.kind not in _KINDS or self.noisy_n_kind not in _KINDS:
            raise ModelError("the noise is not known.", hint="laplace or gaussian")
        if self.n is not None and (self.n < 1 or self.noisy_n is not None):
            raise ModelError("a public number of records is at least 1, and is not published with noise as well.")
        if self.noisy_n is not None and not np.isfinite(self.noisy_n):
            raise ModelError("the noisy number of records must be finite.")
        if self.secret_size and self.size_prior.upper < 1:
            raise ModelError("the prior of the number of records allows none.", hint="SizePrior(upper=...) of at least 1")
        if self.secret_size and self.noisy_n is None and self.size_prior == SizePrior():
            raise ModelError(
                "nothing is known of the number of records: a flat prior on all of them gives no posterior.",
                hint="Give a prior, such as SizePrior(kind='poisson', mean=1000) or SizePrior(lower=500, upper=2000)",
            )

    @classmethod
    def from_statistics(cls, statistics: "NoisyStatistics", *, size_prior: SizePrior | None = None) -> "Observed":
        """What a released statistics object says; a prior of n only where n is secret."""
        if statistics.n is not None and size_prior is not None:
            raise ModelError("the number of records is public: it has no prior.", hint="Leave the prior of n out")
        if statistics.n == 0:
            raise ModelError("the released statistics are of no record at all.")
        size_noise = statistics.size_noise
        return cls(
            values=statistics.values,
            scales=np.full(len(statistics.values), statistics.noise.scale),
            kind=statistics.noise.kind,
            n=statistics.n,
            noisy_n=statistics.noisy_n,
            noisy_n_scale=1.0 if size_noise is None else size_noise.scale,
            noisy_n_kind="laplace" if size_noise is None else size_noise.kind,
            size_prior=size_prior or SizePrior(),
            columns=tuple(statistics.mechanism.columns),
        )

    @property
    def secret_size(self) -> bool:
        """Whether the number of records is latent."""
        return self.n is None

    def log_density(self, total: NDArray[np.float64]) -> float:
        """Log density of the released sums, up to a constant, where the sums without noise are `total`."""
        z = (self.values - total) / self.scales
        return float(-np.sum(np.abs(z)) if self.kind == "laplace" else -0.5 * np.sum(z * z))

    def noise_record(self) -> Any:
        """The same for compiled code."""
        from privurn._kernels.sums.noise import Noise

        values = np.ascontiguousarray(self.values, np.float64)
        return Noise(values, 1.0 / np.ascontiguousarray(self.scales, np.float64), _KINDS[self.kind])

    def size_record(self) -> Any:
        """What is known of n, for compiled code."""
        from privurn._kernels.sums.noise import ABSENT, FLAT, POISSON, Size

        if self.n is not None:
            return Size(0.0, 1.0, ABSENT, FLAT, 1.0, self.n, self.n)
        prior = self.size_prior
        return Size(
            float(self.noisy_n or 0.0),
            1.0 / self.noisy_n_scale,
            ABSENT if self.noisy_n is None else _KINDS[self.noisy_n_kind],
            POISSON if prior.kind == "poisson" else FLAT,
            float(prior.mean or 1.0),
            max(1, prior.lower),
            prior.upper,
        )

    def start_size(self, rng: np.random.Generator) -> int:
        """A number of records to start from, spread at least as widely as what is known allows."""
        if self.n is not None:
            return self.n
        lower, upper = max(1, self.size_prior.lower), self.size_prior.upper
        if self.noisy_n is not None:
            guess = self.noisy_n + 2.0 * self.noisy_n_scale * rng.laplace()
            guess = abs(guess) if guess < 1.0 else guess
        elif self.size_prior.mean is not None:
            guess = self.size_prior.mean + 2.0 * np.sqrt(self.size_prior.mean) * rng.standard_normal()
        else:
            guess = float(rng.integers(lower, min(upper, lower + 10**6), endpoint=True))
        return int(min(max(round(guess), lower), upper))
