"""k-ary randomised response in exact integers. Proof: docs/proofs/channels.md, section 5."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import DomainError, ModelError
from privurn.exact_numbers import rational
from privurn.mechanisms.local.channel import LocalChannel, check_target, clamped, whole_number
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noise import RandomisedResponseProfile

MOST_CATEGORIES = 2**30
FINE_BITS, FINE_EPSILON = 30, 20.0
"""Up to this epsilon the odds are multiples of 2^-30; above it they are whole numbers."""
LARGEST_ODDS = 2**59
"""Odds and categories together must fit in the 63 bits of one random word. Larger odds are cut to this: more private."""

UP = 1e-15
"""Covers the rounding of a logarithm and of its argument."""


@dataclass(frozen=True, kw_only=True)
class RandomisedResponseChannel(LocalChannel):
    """A code 0..k-1 is kept with probability odds/(odds + k - 1); else another is drawn uniformly. k = `categories`.

    `odds` > 1 is how much likelier the true code is than any given other one: e^epsilon, rounded down to a fraction.

    >>> channel = RandomisedResponseChannel.calibrate(categories=3, epsilon=math.log(2))
    >>> round(float(channel.odds), 6), round(channel.kept, 6)
    (2.0, 0.5)
    """

    categories: int
    odds: Fraction
    name: ClassVar[str] = "randomised-response"
    adds_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        k = whole_number(
            "categories", self.categories, least=2, most=MOST_CATEGORIES, hint="Randomised response needs two or more"
        )
        object.__setattr__(self, "categories", k)
        if not isinstance(self.odds, Fraction) or not 1 < self.odds <= LARGEST_ODDS:
            raise ModelError("odds must be a fraction above 1 and at most 2**59.", hint="For example odds=Fraction(3)")
        if self.odds.numerator + (k - 1) * self.odds.denominator >= 2**63:
            raise ModelError("the odds need larger integers than there are.", hint="Use a smaller denominator")

    @property
    def sizes(self) -> tuple[int, ...]:
        """One column."""
        return (self.categories,)

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Smallest and largest code."""
        return 0.0, float(self.categories - 1)

    @property
    def epsilon0(self) -> float:
        """log(odds), rounded up."""
        return math.log1p(float(self.odds - 1)) * (1.0 + UP)

    @property
    def kept(self) -> float:
        """Probability of the true code."""
        return float(self.odds / (self.odds + self.categories - 1))

    @property
    def profile(self) -> RandomisedResponseProfile:
        """Exact up to the rounding of log(odds)."""
        return RandomisedResponseProfile(categories=self.categories, epsilon0=self.epsilon0)

    @classmethod
    def calibrate(cls, *, categories: int, epsilon: float) -> Self:
        """Largest odds whose logarithm, rounded up, is at most epsilon."""
        epsilon, _ = check_target(epsilon)
        denominator = 1 << FINE_BITS if epsilon <= FINE_EPSILON else 1
        numerator = min(int(denominator * math.exp(min(epsilon, 41.0) * (1.0 - 3.0 * UP))), LARGEST_ODDS)
        made = cls(categories=categories, odds=Fraction(max(numerator, denominator + 1), denominator))
        while made.epsilon0 > epsilon:
            numerator -= 1
            if numerator <= denominator:
                raise ModelError("epsilon is too small for randomised response.", hint="At least 1e-8")
            made = cls(categories=categories, odds=Fraction(numerator, denominator))
        return made

    def codes(self, data: ArrayLike) -> NDArray[np.int64]:
        """Whole codes within 0..k-1, whatever the record holds."""
        return np.rint(clamped(data, self.bounds)).astype(np.int64)

    def privatise(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[np.int64]:
        """One integer for each record decides: below the numerator of the odds the code is kept."""
        codes = self.codes(data)
        keep, each = self.odds.numerator, self.odds.denominator
        drawn = entropy.integers(keep + (self.categories - 1) * each, size=codes.size).reshape(codes.shape)
        other = (drawn - keep) // each  # one of the k - 1 other codes, in their order
        return np.where(drawn < keep, codes, other + (other >= codes))

    def simulate(self, data: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin."""
        codes = self.codes(data)
        other = rng.integers(0, self.categories - 1, codes.shape)
        return np.where(rng.random(codes.shape) < self.kept, codes, other + (other >= codes))

    def log_density(self, released: ArrayLike, data: ArrayLike) -> NDArray[np.float64]:
        """Log probability of the released code; exact. Codes that the channel never releases have probability 0."""
        z = np.asarray(released)
        whole = self.odds + self.categories - 1
        same, other = math.log(float(self.odds / whole)), math.log(float(1 / whole))
        inside = (z >= 0) & (z < self.categories) & (z == np.rint(z))
        return np.where(inside, np.where(z == self.codes(data), same, other), -np.inf)

    def log_table(self, released: NDArray[np.int64], *, categories: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """All codes."""
        if self.categories != categories:
            raise ModelError("the channel has another number of categories than the kernel's column.")
        if released.min() < 0 or released.max() >= categories:
            raise DomainError("a released code is none of the channel's.", hint=f"Codes are 0 to {categories - 1}")
        codes = np.arange(categories)
        return self.log_density(codes[None, :], codes[:, None]), released

    @property
    def remarks(self) -> tuple[str, ...]:
        """How often the truth is told."""
        return (f"a record keeps its category with probability {self.kept:.4g}.",)

    def parameters(self) -> dict[str, Any]:
        """Categories and odds."""
        return {"categories": self.categories, "odds": str(self.odds)}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return cls(categories=int(data["categories"]), odds=rational(data["odds"]))
