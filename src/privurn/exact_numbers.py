"""Numbers as people and certificates write them, without rounding: 0.1 is one tenth."""

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from privurn.errors import DomainError

Number = int | float | str | Fraction

LARGEST_EXPONENT = 300
"""Beyond this a decimal number is a mistake, or an attack on whoever expands it."""


def rational(text: str) -> Fraction:
    """A fraction written as p/q or p, as `str(Fraction)` writes it; anything else is a ValueError."""
    if not re.fullmatch(r"-?\d{1,400}(/[1-9]\d{0,399})?", str(text)):
        raise ValueError("not a plain fraction")
    return Fraction(str(text))


def exact(value: Number, *, name: str) -> Fraction:
    """A number as the fraction its decimal digits say: 0.1 is one tenth, and 1/3 is one third."""
    try:
        if isinstance(value, Fraction):
            return value
        if "/" in str(value):
            return rational(str(value))
        number = Decimal(str(value))
        if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT or len(number.as_tuple().digits) > 400:
            raise InvalidOperation
        return Fraction(number)
    except (InvalidOperation, ValueError):
        raise DomainError(f"{name} must be a finite number.", hint="For example 0, 250 or 0.5") from None


def float_up(value: Fraction) -> float:
    """Smallest float that is at least the fraction."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def plain(value: Fraction) -> int | float:
    """The fraction as an int where it is one, else as the nearest float."""
    return value.numerator if value.denominator == 1 else value.numerator / value.denominator


def decimal_text(value: Fraction) -> str:
    """Exact text of a fraction that came from decimal digits."""
    return (
        str(value.numerator) if value.denominator == 1 else format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    )
