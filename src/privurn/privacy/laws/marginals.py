"""Profile of noisy marginals: counts of a table by sets of columns, each count with independent noise.

A record lies in one cell of every marginal. One that leaves lowers those counts by one each, one that enters raises them; under
replace-one neighbours one leaves and another enters, under add-remove one does either. All moved counts have independent
symmetric noise, so their losses add. k records of one person move counts by up to k, and that is worst where they move
together. Proofs: docs/proofs/marginals.md; enumeration: tests/exact/test_marginals.py.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from privurn.errors import ModelError
from privurn.exact_numbers import float_up
from privurn.privacy.laws.noise import SymmetricProfile, check_positive, check_whole
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise
from privurn.privacy.laws.shift_losses import Moved, divergence, is_exact
from privurn.privacy.profile import ROUND_UP


@dataclass(frozen=True, kw_only=True)
class MarginalsProfile(SymmetricProfile):
    """Independent noise on every count of each marginal, with one of `scales` for each; `contributions` records a person.

    discrete-laplace, P(j) proportional to e^(-|j|/scale): pure epsilon is k times the sum of 1/scale under add-remove, and
    twice that under replace-one. discrete-gaussian, P(j) proportional to e^(-j^2/(2 scale^2)): rho is k^2 times the sum of
    1/(2 scale^2), and twice that. Tables attain the profile: two records that differ in every column.

    >>> MarginalsProfile(noise="discrete-laplace", scales=(4.0, 8.0, 8.0)).pure_epsilon
    1.0
    """

    noise: TreeNoise
    scales: tuple[float, ...]
    contributions: int = 1

    def __post_init__(self) -> None:
        if self.noise not in KINDS:
            raise ModelError(f"the noise {self.noise!r} is not known.", hint=", ".join(KINDS))
        if not self.scales:
            raise ModelError("at least one marginal must be measured.")
        check_whole("contributions", self.contributions)
        for scale in self.scales:
            check_positive("scale", scale)

    def group(self, contributions: int) -> "MarginalsProfile":
        """The profile for so many records of one person together: their shifts, which group privacy would overstate."""
        return replace(self, contributions=self.contributions * contributions)

    @property
    def tight(self) -> bool:
        """Whether tables attain it up to last digits: not too many distinct scales."""
        return is_exact(KINDS[self.noise], self._moved)

    @property
    def pure_epsilon(self) -> float:
        """See the class; infinite for Gaussian noise."""
        if self.noise == "discrete-gaussian":
            return math.inf
        return float_up(sum((times * shift / Fraction(scale) for scale, shift, times in self._moved), Fraction(0)))

    @property
    def zcdp(self) -> float:
        """Rho: D^2/(2 scale^2) for each count moved by D, of either noise, because e0-DP is e0^2/2-zCDP."""
        total = sum((times * shift**2 / (2 * Fraction(scale) ** 2) for scale, shift, times in self._moved), Fraction(0))
        return float_up(total) * ROUND_UP

    @cached_property
    def _moved(self) -> tuple[Moved, ...]:
        """Scale, shift and number of the counts that move in the worst case."""
        cells = 1 if self.neighbouring == "add-remove" else 2
        return tuple(sorted((scale, self.contributions, cells * times) for scale, times in Counter(self.scales).items()))

    def _divergence(self, epsilon: float) -> float:
        return divergence(KINDS[self.noise], self._moved, epsilon)
