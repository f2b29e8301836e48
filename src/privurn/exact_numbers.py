"""Numbers as people and certificates write them, without rounding: 0.1 is one tenth."""

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from privurn.errors import DomainError

Number = int | float | str | Fraction

LARGEST_EXPONENT = 300
"""Beyond this a decimal number is a mistake, or an attack on whoever expands it."""

LARGEST, SMALLEST = Fraction(10) ** (LARGEST_EXPONENT + 1), Fraction(10) ** -LARGEST_EXPONENT
LONGEST = 10**400
"""Numerators and denominators must have at most 400 digits, so that what is written can be read again."""


def rational(text: str) -> Fraction:
    """A fraction written as p/q or p, as `str(Fraction)` writes it, that a float can hold; anything else is a ValueError."""
    if not re.fullmatch(r"-?\d{1,400}(/[1-9]\d{0,399})?", str(text)):
        raise ValueError("not a plain fraction")
    return _checked(Fraction(str(text)))


def exact(value: Number, *, name: str) -> Fraction:
    """A number as the fraction its decimal digits say: 0.1 is one tenth, and 1/3 is one third."""
    try:
        if isinstance(value, Fraction):
            return _checked(value)
        if "/" in str(value):
            return rational(str(value))
        number = Decimal(str(value))
        if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT or len(number.as_tuple().digits) > 400:
            raise InvalidOperation
        return _checked(Fraction(number))
    except (InvalidOperation, ValueError):
        raise DomainError(f"{name} must be a finite number.", hint="For example 0, 250 or 0.5") from None


def _checked(value: Fraction) -> Fraction:
    if value and not SMALLEST <= abs(value) < LARGEST:
        raise ValueError("beyond the floats")
    if max(abs(value.numerator), value.denominator) >= LONGEST:
        raise ValueError("too many digits")
    return value


def float_up(value: Fraction) -> float:
    """Smallest float that is at least the fraction; infinity where there is none.

    >>> float_up(Fraction(1, 3)) > Fraction(1, 3), float_up(Fraction(10) ** 400)
    (True, inf)
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def decimal_text(value: Fraction) -> str:
    """Exact text that `exact` reads as the same number: decimal digits, all of them, or p/q where they would not end.

    >>> decimal_text(Fraction(-1, 8)), decimal_text(Fraction(1, 3))
    ('-0.125', '1/3')
    """
    twos = (value.denominator & -value.denominator).bit_length() - 1
    fives, rest = 0, value.denominator >> twos
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    places = max(twos, fives)
    if rest != 1 or places == 0:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
