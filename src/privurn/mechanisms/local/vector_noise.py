"""Profile of Laplace noise on several numbers at once, of which a neighbour moves many."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.laws.noise import SymmetricProfile, check_positive


@dataclass(frozen=True, kw_only=True)
class VectorLaplaceProfile(SymmetricProfile):
    """An e0-DP mechanism that is also rho-zCDP: pure from e0 = `epsilon0` on, below it the smaller of two bounds.

    (1 - e^(epsilon - e0))/(1 + e^-e0) holds for every e0-DP mechanism, and the conversion of privacy/conversions.py for every
    rho-zCDP one. For independent Laplace noise on coordinates that move by d_i, e0 is the sum and rho half the sum of squares
    of d_i/scale.
    """

    epsilon0: float
    zcdp: float
    tight: ClassVar[bool] = False
    """Only the point (e0, 0) is attained."""

    def __post_init__(self) -> None:
        check_positive("epsilon0", self.epsilon0)
        check_positive("zcdp", self.zcdp)

    @property
    def pure_epsilon(self) -> float:
        """epsilon0."""
        return self.epsilon0

    def _divergence(self, epsilon: float) -> float:
        pure = -math.expm1(epsilon - self.epsilon0) / (1.0 + math.exp(-self.epsilon0))
        return min(pure, ZeroConcentratedProfile(rho=self.zcdp)._divergence(epsilon))
