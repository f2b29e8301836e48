"""What an analyst believes about the number of records before seeing anything: a prior on n."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

LARGEST_SIZE = 10**12
"""A flat prior on all whole numbers is cut here; no table that this library reads is larger."""


@dataclass(frozen=True, kw_only=True)
class SizePrior:
    """Prior mass of n on the whole numbers lower, ..., upper: all equal (kind="flat"), or Poisson(mean) cut to them.

    The default is flat on 0, ..., 10^12, proper but far from any data: with a noisy n the posterior does not notice its end.

    >>> expected = SizePrior(kind="poisson", mean=1000).log_mass(np.array([0, 1000]))
    >>> bool(expected[0] < expected[1])
    True
    """

    kind: Literal["flat", "poisson"] = "flat"
    lower: int = 0
    upper: int = LARGEST_SIZE
    mean: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("flat", "poisson"):
            raise ModelError(f"the prior {self.kind!r} of n is not known.", hint="flat or poisson")
        if not 0 <= self.lower <= self.upper <= LARGEST_SIZE:
            raise ModelError("the prior of n needs 0 <= lower <= upper <= 10^12.", hint="For example lower=0, upper=100000")
        if (self.kind == "poisson") != (self.mean is not None):
            raise ModelError("a Poisson prior of n has a mean, and a flat one has none.", hint="kind='poisson', mean=1000")
        if self.mean is not None and not (0.0 < self.mean < math.inf):
            raise ModelError("the mean of a Poisson prior must be positive and finite.")

    def log_mass(self, n: NDArray[Any]) -> NDArray[np.float64]:
        """Log prior of each n, up to a constant."""
        from scipy.special import gammaln

        n = np.asarray(n, np.float64)
        inside = (n >= self.lower) & (n <= self.upper)
        if self.mean is None:
            return np.where(inside, 0.0, -np.inf)
        safe = np.where(inside, n, 0.0)
        return np.where(inside, safe * math.log(self.mean) - self.mean - gammaln(safe + 1.0), -np.inf)

    def draw(self, size: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draws of n, independent."""
        if self.mean is None:
            return rng.integers(self.lower, self.upper, size=size, endpoint=True)
        return np.clip(rng.poisson(self.mean, size), self.lower, self.upper)

    @property
    def words(self) -> str:
        """Flat on 0 to 10,000; Poisson with mean 1,000."""
        within = f"{self.lower:,} to {self.upper:,}"
        if self.mean is None:
            return f"flat on {within}"
        return f"Poisson with mean {self.mean:,g}" + (f" on {within}" if (self.lower, self.upper) != (0, LARGEST_SIZE) else "")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "lower": self.lower, "upper": self.upper, "mean": self.mean}
