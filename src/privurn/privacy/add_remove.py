"""What m records from an urn on a public domain cost when the number of confidential records is itself secret.

Neighbours differ by the presence of one record, so n never enters: the profile is the largest divergence over tables of
every size. The released size m must be a public argument, not a function of n. Proof: docs/proofs/add-remove.md;
enumeration: tests/exact/test_add_remove.py.

A histogram with added noise needs no new profile under this relation, only its sensitivity: one record more or less moves
one count by one, so its L1 and L2 sensitivities are 1 (a replaced record: 2 and sqrt 2), and Laplace or geometric noise
of scale 1/epsilon is enough for epsilon. Nothing published beside it may depend on n, such as shares of the true total.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from privurn.errors import ModelError
from privurn.privacy.calibration import largest, least_alpha
from privurn.privacy.divergences import (
    EXPONENT_ROUNDING,
    UNLIMITED,
    Unlimited,
    check_counts,
    check_public_domain,
    public_domain_pure_epsilon,
)
from privurn.privacy.profile import LARGEST_EPSILON, ROUND_UP, PrivacyProfile, check_delta, check_epsilon

SMALL = 128
"""Up to this many records every threshold of the attacker is tried with its own worst total."""

LARGEST_WALK = 2e7
"""Above about this many steps closed bounds on both sides of the likely maximum stand for the maximum itself."""

SMALLEST_DELTA = 1e-300
"""Stands for a positive divergence too small for a float: never claim an exact zero that is not one."""

LOG_NOTHING = -750.0
"""The exponential of anything below is 0 in floats."""

ROUNDING = 1e-14
"""Times sqrt(m): relative margin for the rounding of some 40 sqrt(m) products; measured errors stay 30 times below it."""

ATTACKERS_SHARE = 2.0**-50
"""Relative."""

CLOSED_FORM_ERROR = 1e-11
"""Times 1 + a/100: relative error granted to the closed forms that decide which part of the search is left out."""


@dataclass(frozen=True, kw_only=True)
class AddRemoveDirichletMultinomialProfile(PrivacyProfile):
    """m records from the urn on a public domain of `cells` cells with `alpha` prior records in each; n is secret.

    With S ~ beta-binomial(m, alpha, T - alpha) and L = (1 + S/alpha) T/(T + m), delta(epsilon) is the largest of
    E[(L - e^epsilon)_+] (a record was added) and E[(1 - e^epsilon L)_+] (removed) over T = cells alpha + 0, 1, 2, ...: the
    record's cell is otherwise empty and the other cells hold any number of records. With one cell it is 0.

    `records="unlimited"` is the limit m -> infinity, publishing the cell probabilities themselves; then L is G/alpha with
    G ~ Gamma(alpha), whatever the number of cells, and no table attains the supremum. Pure epsilon-DP holds from
    epsilon = log(1 + m/alpha) on, as it does for replaced records.

    With a public prior that differs between cells, `alpha` is the smallest and `prior_total` the sum of them all.
    """

    cells: int
    alpha: float
    records: int | Unlimited
    prior_total: float | None = None

    neighbouring = "add-remove"  # no annotation: a constant of the class, not a parameter

    def __post_init__(self) -> None:
        check_counts(n=1, records=self.records)
        check_public_domain(cells=self.cells, alpha=self.alpha)
        if self.prior_total is not None and not self.prior_total >= self.cells * self.alpha * (1.0 - 1e-12):
            raise ModelError("prior_total must be at least cells times alpha.", hint="alpha is the smallest of the priors")

    @property
    def pure_epsilon(self) -> float:
        """log(1 + m/alpha), approached as n grows; 0 with one cell."""
        return public_domain_pure_epsilon(cells=self.cells, alpha=self.alpha, records=self.records)

    def delta(self, epsilon: float) -> float:
        """Largest divergence over neighbours of every size, both directions."""
        if self.cells == 1:
            return -math.expm1(min(0.0, epsilon))
        if epsilon >= self.pure_epsilon:
            return 0.0
        total = self.cells * self.alpha if self.prior_total is None else self.prior_total
        size = min(abs(float(epsilon)), LARGEST_EPSILON)
        value = 0.0
        if size < self.pure_epsilon:
            value = max(SMALLEST_DELTA, _global_delta(float(self.alpha), float(total), self.records, size) * ROUND_UP)
        if epsilon < 0.0:  # sup(Q_x - E Q_y) = 1 - E + E sup(Q_y - Q_x/E), and both orders are neighbours
            value = -math.expm1(epsilon) + math.exp(epsilon) * value
        return min(1.0, value)


def delta_unlimited_add_remove(alpha: float, *, epsilon: float) -> tuple[float, float]:
    """E[(G/alpha - E)_+] and E[(1 - E G/alpha)_+] for G ~ Gamma(alpha): the limits m -> infinity, record added, removed."""
    from scipy.special import gammainc, gammaincc

    from privurn._kernels.add_remove import gamma_lower, gamma_upper, log_gamma_density

    above, below = (float(log_gamma_density(alpha, sign * epsilon)) for sign in (1.0, -1.0))
    # Near the mean the series are slow, and differences lose little; further out they would lose a factor of e^epsilon.
    gain, near = math.expm1(epsilon), epsilon <= 0.5 and epsilon * math.sqrt(alpha) <= 0.1
    if near or alpha * math.exp(epsilon) < 1.0:  # the continued fraction is slow there, and this difference loses little
        added = math.exp(above) - gain * float(gammaincc(alpha, alpha * math.exp(epsilon)))
    else:
        added = float(gamma_upper(alpha, epsilon)) if above > LOG_NOTHING else 0.0
    if near:
        removed = math.exp(epsilon + below) - gain * float(gammainc(alpha, alpha * math.exp(-epsilon)))
    else:
        removed = float(gamma_lower(alpha, epsilon)) if below > LOG_NOTHING else 0.0
    return added * (1.0 - EXPONENT_ROUNDING * above), removed * (1.0 - EXPONENT_ROUNDING * below)


@lru_cache(maxsize=4096)
def _global_delta(a: float, smallest_total: float, records: int | Unlimited, epsilon: float) -> float:
    """Supremum over both directions and all totals, epsilon >= 0; a direction whose limit is too small is not searched."""
    added, removed = delta_unlimited_add_remove(a, epsilon=epsilon)
    if records == UNLIMITED:
        return max(added, removed, SMALLEST_DELTA)
    best = SMALLEST_DELTA if epsilon < math.log1p(records / a) * (1.0 + 2.0**-50) else 0.0
    for limit, sign in sorted([(added, 1.0), (removed, -1.0)], reverse=True):
        if limit > best:
            scale = (1.0 if sign > 0.0 else math.exp(epsilon)) * (1.0 + ROUNDING * math.sqrt(records))
            value = scale * _largest_over_totals(a, smallest_total, records, sign * epsilon)
            best = max(best, min(value, limit))
    return best


def _attackers_ratio(epsilon: float) -> tuple[float, float]:
    """e^epsilon and e^epsilon - 1, moved in the attacker's favour by more than their rounding.

    Near the pure epsilon the two sides of L > e agree in all but the last digits.
    """
    share = ATTACKERS_SHARE if epsilon < 0.0 else -ATTACKERS_SHARE
    return math.exp(epsilon) * (1.0 + share), math.expm1(epsilon) + share * abs(math.expm1(epsilon))


def _largest_over_totals(a: float, smallest_total: float, records: int, epsilon: float) -> float:
    """Largest V(T) over T = smallest_total + 0, 1, 2, ...; V is E[(L - e)_+] for epsilon >= 0, E[(e - L)_+] below.

    V has many local maxima in T, but it lies below its limit for m -> infinity, which grows with T, and below its value for
    a negative binomial S of the same mean, which falls with T. The kernels walk from the likely maximum both ways to
    where these bounds exclude a better total; a bound that does not is part of the answer.
    """
    from privurn._kernels.add_remove import largest_by_threshold, tail_value, walk_down, walk_up

    m, (e, g) = float(records), _attackers_ratio(epsilon)
    if m <= SMALL:
        return float(largest_by_threshold(a, smallest_total, m, e, g))
    # About the maximum when e a is large; for a small one beyond it, where fewer counts carry weight and a step costs less.
    likely = max(e * a + math.sqrt((e * a + 1.0) * (e * a + m)), a + 2.0)
    if g > 0.0:
        spare = m - a * g
        if spare <= 0.0:
            return 0.0
        likely = max(likely, 2.0 * e * a * (m + 1.0) / spare)  # at half of this the threshold is m itself
    elif g < 0.0:
        spare = e * m / -g - smallest_total
        if spare <= 0.0:
            return 0.0  # even S = 0 speaks for the record
        likely = min(likely, smallest_total + math.floor(0.5 * spare))
    room = math.ceil(max(0.0, likely - smallest_total))
    start = smallest_total + room

    def below(distance: float) -> float:
        return _limit_bound(a, start - distance, e, g)

    def above(distance: float) -> float:
        return _negative_binomial_bound(a, start + distance, m, e, g)

    value, weight, threshold = 0.0, 0.0, 0.0
    if (e * a + 10.0 * math.sqrt(a) + 10.0) * m / start <= LARGEST_WALK:
        value, weight, threshold = tail_value(a, start, m, e, g)
    if value < SMALLEST_DELTA:  # nothing to measure a walk by
        if m * (m - max(0.0, a * g)) <= LARGEST_WALK:
            return float(largest_by_threshold(a, smallest_total, m, e, g))
        return _bound_over_totals(a, smallest_total, m, e, g)

    best, left_out, walked = 1.0, 0.0, 0  # in units of V(start)
    state = (threshold, weight, 1.0)
    while walked < room and state[0] <= m and below(walked + 1.0) > best * value:
        total = start - walked
        stage = math.ceil(min(_distance(below, best * value, most=float(room)) - walked, 0.5 * total, room - walked))
        if walked + stage > LARGEST_WALK or e * a * m / (total - stage) > LARGEST_WALK:
            left_out = below(walked + 1.0)
            break
        seen, *end = walk_down(a, total, m, e, g, *state, stage)
        best, state = max(best, seen), tuple(end)
        walked += stage
    up = _distance(above, best * value, most=LARGEST_WALK)
    best = max(best, walk_up(a, start, m, e, g, threshold, weight, 1.0, math.floor(up))[0])
    if (beyond := above(up)) > best * value:
        left_out = max(left_out, beyond)
    return float(max(best * value, left_out))


def _bound_over_totals(a: float, smallest_total: float, m: float, e: float, g: float) -> float:
    """A value that no V(T) exceeds: smaller totals than T are bounded by the limit at T, the others by the other bound there.

    The best T is where the rising and the falling bound meet.
    """
    low = high = smallest_total
    while _negative_binomial_bound(a, high, m, e, g) > _limit_bound(a, high, e, g):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        rising = _negative_binomial_bound(a, middle, m, e, g) > _limit_bound(a, middle, e, g)
        low, high = (middle, high) if rising else (low, middle)
    if high == smallest_total:
        return _negative_binomial_bound(a, high, m, e, g)
    return _limit_bound(a, high, e, g)


def _distance(bound: Callable[[float], float], value: float, *, most: float) -> float:
    """A distance, at most `most` and too long by a per cent or two, from which on bound(distance) <= value."""
    if most <= 0.0 or bound(most) > value:
        return most
    low, high = 0.0, most
    while high - low > max(1.0, 0.02 * high):
        middle = math.sqrt(max(low, 1.0) * high) if high > 4.0 * max(low, 1.0) else 0.5 * (low + high)
        low, high = (low, middle) if bound(middle) <= value else (middle, high)
    return high


def _limit_bound(a: float, total: float, e: float, g: float) -> float:
    """V(T) for m -> infinity: L is P T/a with P ~ Beta(a, T - a). Bounds V at every smaller T and every m."""
    from scipy.special import betainc, betaincc

    from privurn._kernels.add_remove import log_beta_term

    if total <= 0.0 or (q := e * a / total) >= 1.0:
        return 0.0
    first = math.exp(log_beta_term(a, total, e))
    second = g * float(betaincc(a, total - a, q)) if g >= 0.0 else -g * float(betainc(a, total - a, q))
    return max(0.0, first - second) + CLOSED_FORM_ERROR * (1.0 + 0.01 * a) * (first + second)


def _negative_binomial_bound(a: float, total: float, m: float, e: float, g: float) -> float:
    """V(T) if S were negative binomial with the same mean a m/T. Bounds V at this and every larger T, for T - a >= 1."""
    from scipy.special import betainc, betaincc

    from privurn._kernels.add_remove import log_negative_binomial_term

    if total - a < 1.0:
        return math.inf
    r = m / total
    s = math.floor(a * g + a * e * r) + 1.0
    if s <= 0.0:
        return 0.0
    first = math.exp(log_negative_binomial_term(a, r, s))
    p = 1.0 / (1.0 + r)
    second = g * float(betaincc(a, s, p)) if g >= 0.0 else -g * float(betainc(a, s, p))
    return max(0.0, first - second) + CLOSED_FORM_ERROR * (1.0 + 0.01 * a) * (first + second)


def largest_records_add_remove(
    *, cells: int, alpha: float, epsilon: float, delta: float, prior_total: float | None = None
) -> int | Unlimited:
    """Most records an urn on a public domain may release when n is secret. 0 when none may be.

    >>> largest_records_add_remove(cells=100, alpha=20, epsilon=1, delta=1e-6)
    16071
    >>> largest_records_add_remove(cells=100, alpha=25, epsilon=1, delta=1e-6)
    'unlimited'
    """
    check_epsilon(epsilon)
    check_delta(delta)
    profile = AddRemoveDirichletMultinomialProfile(cells=cells, alpha=alpha, records=UNLIMITED, prior_total=prior_total)
    if cells == 1 or (delta > 0.0 and profile.delta(epsilon) <= delta):
        return UNLIMITED
    if delta == 0.0:  # m <= alpha (E - 1), tested with the profile's own rounding
        return largest(lambda m: replace(profile, records=m).pure_epsilon <= epsilon)
    return largest(lambda m: replace(profile, records=m).delta(epsilon) <= delta)


@lru_cache(maxsize=4096)
def smallest_alpha_add_remove(*, cells: int, records: int | Unlimited, epsilon: float, delta: float) -> float:
    """Smallest prior mass of each cell at which `records` records may be released when n is secret.

    >>> round(smallest_alpha_add_remove(cells=100, records=10_000, epsilon=1, delta=1e-6), 2)
    18.34
    """
    check_counts(n=1, records=records)

    def delta_at(alpha: float) -> float:
        return AddRemoveDirichletMultinomialProfile(cells=cells, alpha=alpha, records=records).delta(epsilon)

    return least_alpha(delta_at, cells=cells, records=records, epsilon=epsilon, delta=delta)


def alpha_star_add_remove(*, epsilon: float, delta: float) -> float:
    """Prior mass of each cell at which the number of released records is unlimited, for any table and number of cells.

    >>> round(alpha_star_add_remove(epsilon=1, delta=1e-6), 2)
    24.14
    """
    return smallest_alpha_add_remove(cells=2, records=UNLIMITED, epsilon=epsilon, delta=delta)
