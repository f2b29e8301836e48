"""Exact global profiles of the urns: what m records drawn from a posterior-predictive urn cost, whatever the data.

Each profile is frozen data whose docstring is its whole contract. Proofs: docs/proofs/tight-divergence.md, monotonicity.md
and global-profiles.md; enumeration: tests/exact/test_profiles.py.
"""

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache

from privurn.errors import ModelError
from privurn.privacy.laws.divergences import (
    SMALLEST,
    UNLIMITED,
    Unlimited,
    check_counts,
    check_public_domain,
    delta_unlimited,
    fresh_is_released,
    new_to_old,
    old_old,
    old_to_new,
    public_domain_pure_epsilon,
)
from privurn.privacy.profile import LARGEST_EPSILON, ROUND_UP, PrivacyProfile

__all__ = [
    "UNLIMITED",
    "DirichletMultinomialProfile",
    "DirichletProcessProfile",
    "PitmanYorProfile",
    "Unlimited",
    "check_counts",
]


@dataclass(frozen=True, kw_only=True)
class DirichletProcessProfile(PrivacyProfile):
    """m records from the urn of a Dirichlet process (strength theta, non-atomic base measure) after n records.

    delta(epsilon) = m / (theta + n + m - 1) for every epsilon >= 0: the chance that a record nobody else shares is
    copied (docs/proofs/floor.md). For an atomic base measure the same number is an upper bound (post-processing).
    """

    n: int
    records: int
    strength: float

    def __post_init__(self) -> None:
        check_counts(n=self.n, records=self.records)
        if not self.strength > 0.0:
            raise ModelError("strength must be positive for a Dirichlet process.", hint="For example strength=1")

    @property
    def floor(self) -> float:
        """Chance that a fresh record's value is released."""
        return math.nextafter(self.records / (self.strength + (self.n + self.records - 1)), 1.0)

    def delta(self, epsilon: float) -> float:
        """Phi + (1 - phi) (1 - e^epsilon)_+ ."""
        return min(1.0, self.floor - (1.0 - self.floor) * math.expm1(min(0.0, epsilon)) * ROUND_UP)


@dataclass(frozen=True, kw_only=True)
class PitmanYorProfile(PrivacyProfile):
    """m records from the urn of a Pitman-Yor process (discount sigma in (0, 1), strength theta > -sigma, non-atomic base).

    The maximum of phi, D_oo at the two smallest masses, and D_on, D_no at (1 - sigma, two values) and at
    (n - 1 - sigma, one value). Never above m/(theta + n + m - 1) (docs/proofs/total-variation.md), never below phi
    (docs/proofs/floor.md).
    """

    n: int
    records: int
    strength: float
    discount: float

    def __post_init__(self) -> None:
        check_counts(n=self.n, records=self.records)
        if not 0.0 < self.discount < 1.0:
            raise ModelError(
                "discount must lie in (0, 1) for a Pitman-Yor process.", hint="discount=0 is the Dirichlet process"
            )
        if not self.strength > -self.discount:
            raise ModelError("strength must be larger than -discount.", hint="For example strength=1, discount=0.5")

    @property
    def floor(self) -> float:
        """Chance that a fresh record's value is released."""
        return fresh_is_released(self.strength + (self.n - 1.0), discount=self.discount, records=self.records)

    def delta(self, epsilon: float) -> float:
        """The largest of the candidate divergences."""
        size = min(float(epsilon), LARGEST_EPSILON)
        return _pitman_yor_delta(self.n, self.records, self.strength, self.discount, size, self.floor)


@lru_cache(maxsize=256)
def _pitman_yor_delta(n: int, m: int, theta: float, sigma: float, epsilon: float, phi: float) -> float:
    total = theta + (n - 1.0)
    best = min(1.0, (phi + (1.0 - phi) * -math.expm1(min(0.0, epsilon))) * ROUND_UP)
    if n >= 3:
        single = 1.0 - sigma
        best = max(best, old_old(single, single, total - 2.0 * single, m, epsilon))
    corners = {1: [], 2: [(1.0 - sigma, 1)]}.get(n, [(1.0 - sigma, 2), (n - 1.0 - sigma, 1)])
    for mass, n_values in corners:
        new_mass = theta + n_values * sigma
        best = max(best, old_to_new(mass, new_mass, total, discount=sigma, records=m, epsilon=epsilon, at_least=best))
        best = max(best, new_to_old(mass, new_mass, total, discount=sigma, records=m, epsilon=epsilon, floor=phi))
    return best


@dataclass(frozen=True, kw_only=True)
class DirichletMultinomialProfile(PrivacyProfile):
    """m records from the urn on a public domain of `cells` cells, `alpha` prior records in each, after n records.

    D_oo at the two smallest alphas, both orders (three cells or more); with two cells the largest over all splits of the
    common records; with one cell 0. `records="unlimited"` is the limit m -> infinity, that is publishing the cell
    probabilities themselves. Pure epsilon-DP holds from epsilon = log(1 + m/alpha) on.

    With a public prior that differs between cells, `alpha` is the smallest, `second_alpha` the next and `prior_total` the
    sum of them all.
    """

    n: int
    cells: int
    alpha: float
    records: int | Unlimited
    second_alpha: float | None = None
    prior_total: float | None = None

    def __post_init__(self) -> None:
        check_counts(n=self.n, records=self.records)
        check_public_domain(cells=self.cells, alpha=self.alpha)

    @property
    def pure_epsilon(self) -> float:
        """log(1 + m/alpha_min); no records can tell one cell apart, so it is 0 there."""
        return public_domain_pure_epsilon(cells=self.cells, alpha=self.alpha, records=self.records)

    def delta(self, epsilon: float) -> float:
        """Largest divergence over neighbours, both directions."""
        if self.cells == 1:
            return min(1.0, -math.expm1(min(0.0, epsilon)) * ROUND_UP)
        if epsilon >= self.pure_epsilon:
            return 0.0
        first = self.alpha
        second = self.alpha if self.second_alpha is None else self.second_alpha
        prior = self.alpha * self.cells if self.prior_total is None else self.prior_total
        if self.cells == 2:
            value = _two_cell_delta(first, second, self.n, self.records, float(epsilon))
        else:
            rest = (prior - first - second) + (self.n - 1.0)
            value = _both_orders(first, second, rest, self.records, float(epsilon))
        return max(value, SMALLEST)


@lru_cache(maxsize=4096)
def _both_orders(first: float, second: float, rest: float, records: int | Unlimited, epsilon: float) -> float:
    """The larger of the two D_oo; kept, since a certificate is made, checked and drawn at the same points."""
    value = old_old(first, second, rest, records, epsilon)
    return value if first == second else max(value, old_old(second, first, rest, records, epsilon))


@lru_cache(maxsize=1024)
def _two_cell_delta(first: float, second: float, n: int, records: int | Unlimited, epsilon: float) -> float:
    """Max over k of D_oo(first + k, second + n - 1 - k), both orders, by branch and bound.

    D_oo falls in either mass, so over a block lo <= k <= hi it is at most D_oo(first + lo, second + n - 1 - hi), with the
    total mass unchanged. A block that cannot beat the best value by a rounding error is dropped. With equal priors the other
    order of k records is this one of n - 1 - k.
    """
    orders = (False,) if first == second else (False, True)

    def bound(lo: int, hi: int, swapped: bool) -> float:
        a, b = first + lo, second + (n - 1 - hi)
        if swapped:
            a, b = b, a
        ceiling = delta_unlimited(a, b, epsilon)  # cheap, and no smaller
        return ceiling if ceiling <= best else old_old(a, b, float(hi - lo), records, epsilon)

    best = 0.0
    best = max(bound(k, k, swapped) for k in {0, n - 1} for swapped in orders)
    queue = [(-bound(0, n - 1, swapped), 0, n - 1, swapped) for swapped in orders]
    heapq.heapify(queue)
    while queue:
        negative, lo, hi, swapped = heapq.heappop(queue)
        if -negative <= best * ROUND_UP:
            break
        if lo == hi:
            best = max(best, -negative)
            continue
        middle, edge = (lo + hi) // 2, min(1000, (hi - lo) // 4)
        pieces = [(lo, middle), (middle + 1, hi)]
        if edge >= 2:  # the ends decide most often, and thin blocks beside them are cheap to bound
            pieces = [(lo, lo), (lo + 1, lo + edge), (lo + edge + 1, hi - edge - 1), (hi - edge, hi - 1), (hi, hi)]
        for low, high in pieces:
            heapq.heappush(queue, (-bound(low, high, swapped), low, high, swapped))
    return best
