"""Exact global profiles of the urns: what m records drawn from a posterior-predictive urn cost, whatever the data.

Each profile is frozen data whose docstring is its whole contract. Proofs: docs/proofs/tight-divergence.md, monotonicity.md
and global-profiles.md; enumeration: tests/exact/test_profiles.py.
"""

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from privurn.errors import ModelError
from privurn.privacy.profile import ROUND_UP, PrivacyProfile

Unlimited = Literal["unlimited"]
UNLIMITED: Unlimited = "unlimited"

UNLIMITED_ROUNDING = 1e-13
"""Relative error allowed for each of the two terms of the limit (tests/exact/test_precision.py)."""

STEP_ROUNDING = 1e-15
"""Rounding of one lattice step: a handful of products, each off by at most 1.2e-16."""

LARGEST_RANGE = 2e7
"""Above this many steps the finite-m divergence is replaced by its limit for m -> infinity, which is never smaller."""


def check_counts(*, n: int, records: int | Unlimited) -> None:
    """N confidential records, `records` released ones."""
    if n < 1:
        raise ModelError("n must be a positive whole number.", hint="The number of confidential records, for example n=10000")
    if records != UNLIMITED and int(records) < 1:
        raise ModelError("the number of released records must be at least 1.", hint="For example records=1000")


def delta_unlimited(a: float, b: float, epsilon: float) -> float:
    """Limit of D_oo(a, b) as the number of released records grows: posterior sampling of two cell probabilities.

    With q = E a/(b + E a) and Ibar the upper regularised incomplete beta function it is Ibar_q(a+1, b) - E Ibar_q(a, b+1).
    Both shifts are taken out of the functions, which leaves t (1/a + E/b) - (E - 1) Ibar_q(a, b), t = q^a (1-q)^b / B(a, b).
    Proof: docs/proofs/unlimited-records.md.
    """
    from scipy.special import betaincc

    ratio, gain = math.exp(epsilon), math.expm1(epsilon)
    spread = b + ratio * a
    # t by its deviance, so that nothing of the size of lnGamma(a + b) cancels
    log_t = a * math.log1p(b * gain / spread) + b * math.log1p(-a * gain / spread)
    log_t += _stirling(a + b) - _stirling(a) - _stirling(b)
    t = math.exp(log_t) * math.sqrt(a * b / (2.0 * math.pi * (a + b)))
    tail = float(betaincc(a, b, ratio * a / spread))
    first, second = t * (1.0 / a + ratio / b), gain * tail
    rounding = UNLIMITED_ROUNDING * (first + abs(second))
    return min(1.0, max(0.0, first - second + rounding))


def _stirling(x: float) -> float:
    """lnGamma(x) less its leading Stirling terms."""
    if x < 16.0:
        return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi))
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


def _range(records: int, a: float, b: float, rest: float) -> float:
    """About how many lattice points D_oo visits: twenty standard deviations of N, and of X given a typical N."""

    def spread(m: float, first: float, second: float) -> float:
        total = first + second
        return math.sqrt(m * first * second * (total + m) / (total * total * (total + 1.0)))

    typical = records * (a + b + 1.0) / (a + b + rest + 1.0)
    return 20.0 * (spread(records, a + b + 1.0, max(0.0, rest)) + spread(typical, a, b))


def old_old(a: float, b: float, rest: float, records: int | Unlimited, epsilon: float) -> float:
    """D_oo(a, b) in an urn with `rest` mass elsewhere, rounded up."""
    from privurn._kernels.old_values import old_old_divergence

    if records == UNLIMITED:
        return delta_unlimited(a, b, epsilon)
    steps = _range(records, a, b, rest)
    if steps > LARGEST_RANGE:
        return delta_unlimited(a, b, epsilon)
    value = float(old_old_divergence(a, b, max(0.0, rest), float(records), epsilon))
    return min(1.0, value * (ROUND_UP + STEP_ROUNDING * steps))


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
        return math.nextafter(self.records / (self.strength + self.n + self.records - 1), 1.0)

    def delta(self, epsilon: float) -> float:
        """Phi + (1 - phi) (1 - e^epsilon)_+ ."""
        return self.floor + (1.0 - self.floor) * max(0.0, -math.expm1(epsilon)) * ROUND_UP


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
        from privurn._kernels.new_values import release_probability

        return min(1.0, float(release_probability(self.strength + self.n - 1.0, self.discount, float(self.records))) * ROUND_UP)

    def delta(self, epsilon: float) -> float:
        """The largest of the candidate divergences."""
        return _pitman_yor_delta(self.n, self.records, self.strength, self.discount, float(epsilon), self.floor)


@lru_cache(maxsize=256)
def _pitman_yor_delta(n: int, m: int, theta: float, sigma: float, epsilon: float, phi: float) -> float:
    from privurn._kernels.new_values import one_fresh_divergence

    total = theta + n - 1.0
    both_fresh = phi + (1.0 - phi) * max(0.0, -math.expm1(epsilon))
    candidates = [both_fresh]
    corners = {1: [], 2: [(1.0 - sigma, 1)]}.get(n, [(1.0 - sigma, 2), (n - 1.0 - sigma, 1)])
    if n >= 3:
        single = 1.0 - sigma
        candidates.append(old_old(single, single, total - 2.0 * single, m, epsilon))
    for mass, n_values in corners:
        new_mass = theta + n_values * sigma
        candidates.append(one_fresh_divergence(mass, new_mass, total, sigma, m, epsilon, True))
        candidates.append(phi + (1.0 - phi) * one_fresh_divergence(mass, new_mass, total, sigma, m, epsilon, False))
    return min(1.0, float(max(candidates)) * ROUND_UP)


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
        if self.cells < 1:
            raise ModelError("a public domain needs at least one cell.")
        if not (self.alpha > 0.0 and math.isfinite(self.alpha)):
            raise ModelError("alpha must be positive and finite.", hint="Prior records in each cell, for example alpha=20")

    @property
    def pure_epsilon(self) -> float:
        """log(1 + m/alpha_min); no records can tell one cell apart, so it is 0 there."""
        if self.cells == 1:
            return 0.0
        if self.records == UNLIMITED:
            return math.inf
        return math.nextafter(math.log1p(self.records / self.alpha), math.inf)

    def delta(self, epsilon: float) -> float:
        """Largest divergence over neighbours, both directions."""
        if self.cells == 1:
            return max(0.0, -math.expm1(epsilon)) * ROUND_UP
        if epsilon >= self.pure_epsilon:
            return 0.0
        first = self.alpha
        second = self.alpha if self.second_alpha is None else self.second_alpha
        prior = self.alpha * self.cells if self.prior_total is None else self.prior_total
        if self.cells == 2:
            value = _two_cell_delta(first, second, self.n, self.records, float(epsilon))
        else:
            rest = prior + self.n - 1.0 - first - second
            value = old_old(first, second, rest, self.records, epsilon)
            if first != second:
                value = max(value, old_old(second, first, rest, self.records, epsilon))
        return value


@lru_cache(maxsize=1024)
def _two_cell_delta(first: float, second: float, n: int, records: int | Unlimited, epsilon: float) -> float:
    """Max over k of D_oo(first + k, second + n - 1 - k), both orders, by branch and bound.

    D_oo falls in either mass, so over a block lo <= k <= hi it is at most D_oo(first + lo, second + n - 1 - hi), with the
    total mass unchanged. A block that cannot beat the best value by a rounding error is dropped.
    """

    def bound(lo: int, hi: int, swapped: bool) -> float:
        a, b = first + lo, second + (n - 1 - hi)
        if swapped:
            a, b = b, a
        ceiling = delta_unlimited(a, b, epsilon)  # cheap, and no smaller
        return ceiling if ceiling <= best else old_old(a, b, float(hi - lo), records, epsilon)

    best = 0.0
    best = max(bound(k, k, swapped) for k in {0, n - 1} for swapped in (False, True))
    queue = [(-bound(0, n - 1, swapped), 0, n - 1, swapped) for swapped in (False, True)]
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
