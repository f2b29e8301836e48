"""The numbers that the cells of a column are released as."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Dates, Grid
from privurn.domain.column import Outside
from privurn.errors import DomainError

MICROSECONDS_OF_A_DAY = 86_400_000_000


def is_numeric(domain: ColumnDomain) -> bool:
    """Whether cells stand for numbers, or dates, with distances between them."""
    return isinstance(domain, (Grid, Bins, Dates))


def published_as(domain: ColumnDomain) -> ColumnDomain:
    """The domain of what a column's records are published as: bins that are published as intervals are labels."""
    if not isinstance(domain, Bins) or domain.within != "interval":
        return domain
    outside: Outside = "error" if domain.outside == "clamp" else domain.outside
    return Categories(domain.intervals, outside=outside, nulls=domain.nulls)


def moments(domain: Dates) -> NDArray[np.int64]:
    """Microseconds from 1970 to the beginning of each step."""
    if not domain.months:
        return domain.begins(0) + domain.width * np.arange(domain.n_values, dtype=np.int64)
    return np.array([domain.begins(cell) for cell in range(domain.n_values)], np.int64)


def released_numbers(domain: ColumnDomain) -> NDArray[Any]:
    """What each proper cell is released as: 64-bit integers where all of them are such, else the nearest floats.

    Decided in exact fractions; a quotient of whole numbers is rounded once, so 0.1 comes out as 0.1. Dates are days since the
    beginning of 1970.
    """
    if isinstance(domain, Grid):
        return grid_numbers(domain, range(domain.n_values))
    if isinstance(domain, Dates):
        return moments(domain) / MICROSECONDS_OF_A_DAY
    if not isinstance(domain, Bins):
        raise DomainError("categories are not numbers.", hint="Their total variation can be computed, not their distance")
    middles = [(Fraction(a) + Fraction(b)) / 2 for a, b in pairwise(domain.edges)]
    if all(middle.denominator == 1 and -(2**63) <= middle < 2**63 for middle in middles):
        return np.array([int(middle) for middle in middles], np.int64)
    return np.array([float(middle) for middle in middles], np.float64)


def grid_numbers(domain: Grid, cells: range | NDArray[np.int64]) -> NDArray[Any]:
    """What cells of a grid are released as, by their numbers."""
    (low, high), step = domain.bounds, domain.spacing
    common = math.lcm(low.denominator, step.denominator)
    first, each = int(low * common), int(step * common)
    largest = max(abs(first), abs(int(high * common)), common)
    if largest < 2**53:  # sums and products stay far within 64 bits, and are exact as floats
        numbered = np.arange(cells.start, cells.stop, cells.step) if isinstance(cells, range) else cells
        points = first + each * numbered
        return points if common == 1 else points / common
    whole = common == 1 and low >= -(2**63) and high < 2**63
    distinct, place = (cells, slice(None)) if isinstance(cells, range) else np.unique(cells, return_inverse=True)
    exact = (first + each * int(cell) for cell in distinct)
    if whole:
        return np.fromiter(exact, np.int64, len(distinct))[place]
    return np.fromiter((point / common for point in exact), np.float64, len(distinct))[place]


def cell_values(domain: ColumnDomain) -> NDArray[np.float64]:
    """The number that each cell is released as, as a float; NaN for the null and "other" cells."""
    numbers = released_numbers(domain).astype(np.float64)
    return np.append(numbers, np.full(domain.size - domain.n_values, np.nan))
