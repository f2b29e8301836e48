"""What records are compared with to find their category: text, or numbers of the type that the column stores.

Keys are distinct, so that a record has one category and is counted once. Python reads more as numbers than SQL does (digits of
other scripts, for one) and takes each NaN for another number than the next; here only plain finite numbers are numbers.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
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

    A category that the column's type cannot hold, such as text among numbers or 0.5 among whole ones, has no key: no record
    is in it.
    """
    import pyarrow as pa

    if is_number(stored):
        numbers = [_number(name, value) for value in domain.values]
        if len(set(numbers) - {None}) != len(numbers) - numbers.count(None):
            raise _alike(name)
        keys, arrow, key_type = _number_keys(numbers, stored)
    else:
        keys, arrow, key_type = [domain.compared(label_text(value)) for value in domain.values], pa.string(), "VARCHAR"
    held = [i for i, key in enumerate(keys) if key is not None]
    if len({keys[i] for i in held}) != len(held):
        raise _alike(name)
    try:
        column = pa.array([keys[i] for i in held], arrow)
    except UnicodeEncodeError:
        raise DomainError(f"a category of {name!r} is not valid Unicode text.") from None
    return pa.table({"key": column, "cell": pa.array(held, pa.int64())}), key_type


def _number(name: str, value: object) -> Fraction | None:
    """A category of a column of numbers, exactly; None for text. What is only nearly a number is refused as a likely slip."""
    if not isinstance(value, bool) and PLAIN_NUMBER.fullmatch(str(value)):
        with suppress(DomainError):
            return exact(str(value), name="category")
    try:
        float(str(value))
    except ValueError:
        return None
    raise DomainError(
        f"column {name!r} holds numbers, and one of its categories is a number that is not plain and finite.",
        hint="List numbers such as 1 or -2.5; NaN and infinities count as outside the list",
    )


def _number_keys(numbers: list[Fraction | None], stored: str) -> tuple[list[Any], Any, str]:
    """Each number as the type holds it, or None where it cannot; the Arrow and SQL types of keys."""
    import pyarrow as pa

    if stored == "DOUBLE":
        return [None if each is None else float(each) for each in numbers], pa.float64(), stored
    if stored == "FLOAT":
        return [None if each is None else _single(each) for each in numbers], pa.float32(), stored
    fixed = DECIMAL.fullmatch(stored)
    if fixed:
        width, scale = int(fixed[1]), int(fixed[2])
        units = _whole([None if each is None else each * 10**scale for each in numbers], 1 - 10**width, 10**width)
        return [None if each is None else Decimal(f"{each}E-{scale}") for each in units], pa.decimal128(width, scale), stored
    if "HUGEINT" in stored:  # Arrow has no such integers: compared as text, of which each has one
        return [None if each is None else str(each) for each in _whole(numbers, -(2**127), 2**128)], pa.string(), "VARCHAR"
    if stored == "UBIGINT":
        return _whole(numbers, 0, 2**64), pa.uint64(), stored
    return _whole(numbers, -(2**63), 2**63), pa.int64(), "BIGINT"


def _whole(numbers: Sequence[Fraction | None], low: int, end: int) -> list[int | None]:
    """Whole numbers from low up to before the end; None for others."""
    return [int(each) if each is not None and each.denominator == 1 and low <= each < end else None for each in numbers]


def _single(number: Fraction) -> float | None:
    with np.errstate(over="ignore"):
        single = float(np.float32(float(number)))
    return single if math.isfinite(single) else None


def _alike(name: str) -> DomainError:
    return DomainError(
        f"two categories of {name!r} are the same number as the column stores it.", hint="List every number once"
    )
