"""What records are compared with to find their category: text, or numbers of the type that the column stores.

Keys are distinct, so that a record has one category and is counted once. Python reads more as numbers than SQL does (digits of
other scripts, for one) and takes each NaN for another number than the next; here only plain finite numbers are numbers.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privurn.domain import Categories, label_text
from privurn.errors import DomainError
from privurn.exact_numbers import exact

WHOLE = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)")
DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def is_number(stored: str) -> bool:
    """Whether a column of this SQL type holds numbers."""
    return stored in ("FLOAT", "DOUBLE") or (WHOLE.fullmatch(stored) or DECIMAL.fullmatch(stored)) is not None


def category_keys(name: str, domain: Categories, *, stored: str) -> tuple[Any, str]:
    """Arrow table of keys and cells, and the SQL type that a column of the stored type is compared in.

    A category that the column's type cannot hold, such as 0.5 among whole numbers, has no key: no record is in it.
    """
    import pyarrow as pa

    if is_number(stored):
        keys, arrow, key_type = _number_keys(_numbers(name, domain), stored)
    else:
        keys, arrow, key_type = [label_text(value) for value in domain.values], pa.string(), "VARCHAR"
    held = [i for i, key in enumerate(keys) if key is not None]
    if len({keys[i] for i in held}) != len(held):
        raise _alike(name)
    try:
        column = pa.array([keys[i] for i in held], arrow)
    except UnicodeEncodeError:
        raise DomainError(f"a category of {name!r} is not valid Unicode text.") from None
    return pa.table({"key": column, "cell": pa.array(held, pa.int64())}), key_type


def _numbers(name: str, domain: Categories) -> list[Fraction]:
    """The categories of a column of numbers, exactly; each must be one, and another one."""
    numbers = [_number(value) for value in domain.values]
    found = [number for number in numbers if number is not None]
    if len(found) != len(numbers):
        raise DomainError(
            f"column {name!r} holds numbers, and not all of its categories are plain finite numbers.",
            hint="List numbers such as 1 or 2.5 (NaN and infinities count as outside the list), or store the column as text",
        )
    if len(set(found)) != len(found):
        raise _alike(name)
    return found


def _number(value: object) -> Fraction | None:
    if isinstance(value, bool) or not PLAIN_NUMBER.fullmatch(str(value)):
        return None
    try:
        return exact(str(value), name="category")
    except DomainError:
        return None


def _number_keys(numbers: list[Fraction], stored: str) -> tuple[list[Any], Any, str]:
    """Each number as the type holds it, or None where it cannot; the Arrow and SQL types of keys."""
    import pyarrow as pa

    if stored == "DOUBLE":
        return [float(each) for each in numbers], pa.float64(), stored
    if stored == "FLOAT":
        return [_single(each) for each in numbers], pa.float32(), stored
    fixed = DECIMAL.fullmatch(stored)
    if fixed:
        width, scale = int(fixed[1]), int(fixed[2])
        units = [each * 10**scale for each in numbers]
        fits = [each.denominator == 1 and abs(each) < 10**width for each in units]
        decimals = [Decimal(f"{each.numerator}E-{scale}") if fit else None for each, fit in zip(units, fits, strict=True)]
        return decimals, pa.decimal128(width, scale), stored
    if "HUGEINT" in stored:  # Arrow has no such integers: compared as text, of which each has one
        return [str(each.numerator) if each.denominator == 1 else None for each in numbers], pa.string(), "VARCHAR"
    limits = (0, 2**64) if stored == "UBIGINT" else (-(2**63), 2**63)
    whole = [int(each) if each.denominator == 1 and limits[0] <= each < limits[1] else None for each in numbers]
    return whole, *((pa.uint64(), "UBIGINT") if stored == "UBIGINT" else (pa.int64(), "BIGINT"))


def _single(number: Fraction) -> float | None:
    with np.errstate(over="ignore"):
        single = float(np.float32(float(number)))
    return single if math.isfinite(single) else None


def _alike(name: str) -> DomainError:
    return DomainError(
        f"two categories of {name!r} are the same number as the column stores it.", hint="List every number once"
    )
