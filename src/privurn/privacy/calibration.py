"""Turn a guarantee into parameters: how many records, how much prior. Every answer lies on the private side.

Each function is the exact inverse of a profile in urn_accounting, so a caller never meets an approximate condition.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from privurn.errors import Alternative, CalibrationError
from privurn.privacy.laws.divergences import public_domain_pure_epsilon
from privurn.privacy.laws.urn import (
    UNLIMITED,
    DirichletMultinomialProfile,
    DirichletProcessProfile,
    PitmanYorProfile,
    Unlimited,
    check_counts,
)
from privurn.privacy.profile import PrivacyProfile, check_delta, check_epsilon, smallest_admissible

LEAST_ALPHA = 1e-3
"""A smaller prior changes nothing for the data but needs larger integers; more prior is never less private."""

MOST_RECORDS = 2**53
"""Beyond this a count is no longer exact as a float."""


def largest(admissible: Callable[[int], bool]) -> int:
    """Largest m >= 0 with admissible(m), a property that once false stays false; MOST_RECORDS at most."""
    if not admissible(1):
        return 0
    low, high = 1, 2
    while high < MOST_RECORDS and admissible(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admissible(middle) else (low, middle)
    return low


def largest_records(profile: PrivacyProfile, *, epsilon: float, delta: float) -> int | Unlimited:
    """Most records that the urn described by `profile` may release; its own `records` is ignored. 0 when none may be.

    >>> from privurn.privacy.laws.urn import DirichletProcessProfile
    >>> largest_records(DirichletProcessProfile(n=11_918_162, records=1, strength=1), epsilon=2, delta=1e-5)
    119
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if isinstance(profile, DirichletMultinomialProfile):
        if profile.cells == 1 or (delta > 0.0 and replace(profile, records=UNLIMITED).delta(epsilon) <= delta):
            return UNLIMITED
        if delta == 0.0:  # m <= alpha (E - 1), tested with the profile's own rounding
            return largest(lambda m: replace(profile, records=m).pure_epsilon <= epsilon)
    if not isinstance(profile, (DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile)):
        raise TypeError(f"no number of records to solve for in {type(profile).__name__}")
    return largest(lambda m: replace(profile, records=m).delta(epsilon) <= delta)


@lru_cache(maxsize=4096)
def smallest_alpha(*, n: int, cells: int, records: int | Unlimited, epsilon: float, delta: float) -> float:
    """Smallest prior mass of each cell at which `records` records may be released from a domain of `cells` cells.

    >>> round(smallest_alpha(n=10**6, cells=100, records=10**6, epsilon=1, delta=1e-6), 1)
    16.4
    """
    check_counts(n=n, records=records)

    def delta_at(alpha: float) -> float:
        return DirichletMultinomialProfile(n=n, cells=cells, alpha=alpha, records=records).delta(epsilon)

    return least_alpha(delta_at, cells=cells, records=records, epsilon=epsilon, delta=delta)


def least_alpha(
    delta_at: Callable[[float], float], *, cells: int, records: int | Unlimited, epsilon: float, delta: float
) -> float:
    """Smallest alpha with delta_at(alpha) <= delta; at most the pure one, m/(e^epsilon - 1). 0 with one cell."""
    check_epsilon(epsilon)
    check_delta(delta)
    if cells == 1:
        return 0.0
    if records == UNLIMITED and delta == 0.0:
        raise CalibrationError(
            "Unlimited records cannot be released with delta = 0 from more than one cell.",
            alternatives=(
                Alternative(words="a positive delta", changes={"delta": 1e-6}),
                Alternative(words="a finite number of records", changes={"records": 1000}),
            ),
        )
    pure = math.inf
    if records != UNLIMITED:
        pure = math.nextafter(records / math.expm1(epsilon), math.inf)
        while public_domain_pure_epsilon(cells=cells, alpha=pure, records=records) > epsilon:  # a hair short by rounding
            pure *= 1.0 + 1e-15
        if delta == 0.0:
            return pure
    found = smallest_admissible(lambda alpha: delta_at(alpha) if alpha > 0.0 else 1.0, delta, start=10.0 / epsilon, limit=1e15)
    return min(pure, found)


def alpha_star(*, epsilon: float, delta: float) -> float:
    """Prior mass of each cell at which the number of released records is unlimited, for any n and any number of cells.

    >>> round(alpha_star(epsilon=1, delta=1e-6), 1)
    37.1
    """
    return smallest_alpha(n=1, cells=3, records=UNLIMITED, epsilon=epsilon, delta=delta)


def round_up_to_rational(alpha: float, *, digits: int = 5) -> Fraction:
    """Smallest decimal with `digits` significant digits that is at least alpha and LEAST_ALPHA: the integer urn needs one.

    >>> round_up_to_rational(16.400001)
    Fraction(16401, 1000)
    """
    if alpha <= 0.0:
        return Fraction(1)
    alpha = max(alpha, LEAST_ALPHA)
    exponent = digits - 1 - math.floor(math.log10(alpha))
    scale = Fraction(10) ** exponent
    return Fraction(math.ceil(Fraction(alpha) * scale)) / scale
