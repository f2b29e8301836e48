"""Numbers of the nearest things that can be had in place of a refused request.

Every alternative is accepted when it is asked for, so numbers are rounded to the private side, and pairs are tried before they
are offered. Everything is computed from public quantities.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from privurn.errors import Alternative, ModelError
from privurn.exact_numbers import decimal_text, exact
from privurn.privacy.profile import LARGEST_EPSILON, SMALLEST_DELTA, Guarantee, PrivacyProfile

DIGITS = 5
LONGEST_WIDENING = 40
WEAK_EPSILON, WEAK_DELTA = 10.0, 0.1
"""A guarantee beyond these is hardly one: offered only where there is nothing else."""


def rounded_up(value: float, *, digits: int = DIGITS) -> float:
    """A number of few digits, at least `value`.

    >>> rounded_up(1.23456789), rounded_up(2.0), rounded_up(1e-7)
    (1.2346, 2.0, 1e-07)
    """
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def number(value: Fraction) -> int | float | str:
    """The fraction as people write it: a whole number, a float that is read as the same fraction, or exact text."""
    if value.denominator == 1:
        return int(value)
    return float(value) if exact(float(value), name="number") == value else decimal_text(value)


def in_words(records: int) -> str:
    """How many records."""
    return "1 record" if records == 1 else f"{records:,} records"


def wider(profile: PrivacyProfile, wanted: Guarantee) -> Iterator[Alternative]:
    """The same release under a larger epsilon or delta."""
    if (epsilon := epsilon_for(profile, wanted)) is not None:
        words = "the same release at a larger epsilon"
        yield Alternative(words=words, changes={"epsilon": epsilon}, weak=epsilon > WEAK_EPSILON)
    if (delta := delta_for(profile, wanted)) is not None:
        yield Alternative(words="the same release at a larger delta", changes={"delta": delta}, weak=delta > WEAK_DELTA)


def meets(profile: PrivacyProfile, guarantee: Guarantee) -> bool:
    """Whether a profile of one record keeps the guarantee for all that one person may own."""
    single = guarantee.per_record()
    if profile.delta(single.epsilon) <= single.delta:
        return True
    return guarantee.contributions > 1 and _unit(profile, guarantee).delta(guarantee.epsilon) <= guarantee.delta


def epsilon_for(profile: PrivacyProfile, wanted: Guarantee) -> float | None:
    """The epsilon at which this profile would do at the same delta."""
    return _tried(
        _unit(profile, wanted).epsilon(wanted.delta), LARGEST_EPSILON, lambda e: meets(profile, replace(wanted, epsilon=e))
    )


def delta_for(profile: PrivacyProfile, wanted: Guarantee) -> float | None:
    """The delta at which this profile would do at the same epsilon."""
    start = max(SMALLEST_DELTA, _unit(profile, wanted).delta(wanted.epsilon))
    return _tried(start, 0.999, lambda d: meets(profile, replace(wanted, delta=d)))


def _unit(profile: PrivacyProfile, wanted: Guarantee) -> PrivacyProfile:
    return profile.group(wanted.contributions)


def _tried(start: float, most: float, accepted: Callable[[float], bool]) -> float | None:
    """From `start` upwards the first number that is accepted; None where that would be beyond `most`."""
    value = start
    for _ in range(LONGEST_WIDENING):  # shares of one person are rounded down on the way, so start may be a hair short
        if not 0.0 < value <= most:
            return None
        short = rounded_up(value)
        try:
            if accepted(short):
                return short
        except ModelError:
            return None
        value = short * (1.0 + 1e-4)
    return None
