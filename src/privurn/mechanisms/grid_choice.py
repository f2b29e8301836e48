"""An exact draw from finitely many candidates with probability proportional to prior_j exp(unit score_j), scores whole numbers.

Floating-point numbers only propose: candidate j is proposed with a whole weight that is certainly above its own, and accepted
with exactly the ratio of the two, by comparing a uniform number with exp(-d) to as many digits as the comparison needs. So
the law is the stated one to the last bit, and no rounding has to be paid for in delta. Proof: docs/proofs/pseudo-posterior.md.
"""

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import SamplingError
from privurn.privacy.entropy import Entropy

PROPOSAL_BITS = 30
SLACK = 1e-11
"""Far above the rounding of a product and an exponential in floating point."""

WORD = 64


class PointChoice:
    """The law for one set of scores. The prior must be positive, with a total below 2^32. Confidential.

    Scores are 64-bit integers whose differences are such too, or Python's.
    """

    def __init__(self, prior: NDArray[np.int64], scores: NDArray[Any], *, unit: Fraction) -> None:
        self._unit = unit
        self._gaps = scores.max() - scores
        floats = np.exp(-self._gaps.astype(np.float64) * float(unit) * (1.0 - SLACK)) * (1.0 + SLACK)
        self._bounds = np.floor(floats * 2.0**PROPOSAL_BITS).astype(np.int64) + 1
        self._ends = np.cumsum(prior * self._bounds)

    def draw(self, size: int, *, entropy: Entropy) -> NDArray[np.int64]:
        """Numbers of independent candidates, exactly."""
        out = np.empty(size, np.int64)
        for i in range(size):
            while True:
                j = int(np.searchsorted(self._ends, entropy.below(int(self._ends[-1])), side="right"))
                bound = Fraction(int(self._bounds[j]), 2**PROPOSAL_BITS)
                if accepts(self._unit * int(self._gaps[j]), bound=bound, entropy=entropy):
                    out[i] = j
                    break
        return out


def accepts(exponent: Fraction, *, bound: Fraction, entropy: Entropy) -> bool:
    """True with probability exactly exp(-exponent)/bound, for a bound that is at least exp(-exponent).

    A uniform number in [0, bound) is revealed 64 bits at a time until it is certainly below or above exp(-exponent).
    """
    word, bits = entropy.below(2**WORD), WORD
    while True:
        low, high = exponential_bounds(exponent, bits=bits)
        if low > bound:
            raise SamplingError("a candidate's proposal weight is below its weight.")
        if (word + 1) * bound <= low * 2**bits:
            return True
        if word * bound >= high * 2**bits:
            return False
        word, bits = (word << WORD) | entropy.below(2**WORD), bits + WORD


def exponential_bounds(exponent: Fraction, *, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around exp(-exponent), exponent >= 0, that close in as `bits` grows.

    Python's decimal exponential is correctly rounded; rounding the exponent x first multiplies by at most e^(x 10^-digits).
    Where x is beyond any use for this many bits, [0, 2^-(2 bits)] is enough.
    """
    if exponent > 2 * bits:
        return Fraction(0), Fraction(1, 2 ** (2 * bits))
    digits = bits // 2 + 12
    context = Context(prec=digits)
    rounded = context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
    centre = Fraction(context.exp(rounded))
    error = Fraction(int(exponent) + 3, 10 ** (digits - 1))
    return centre * (1 - error), centre * (1 + error)
