"""The numbers that the cells of a column are released as."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, ColumnDomain, Grid
from privurn.errors import DomainError


def is_numeric(domain: ColumnDomain) -> bool:
    """Whether cells stand for numbers with distances between them."""
    return isinstance(domain, (Grid, Bins))


def cell_values(domain: ColumnDomain) -> NDArray[np.float64]:
    """The number that each cell is released as; NaN for the null and "other" cells."""
    if isinstance(domain, Grid):
        low, step = domain.bounds[0], domain.spacing
        common = low.denominator * step.denominator
        numbers = (int(low * common) + int(step * common) * np.arange(domain.n_values, dtype=np.int64)) / common
    elif isinstance(domain, Bins):
        numbers = np.array([float((Fraction(a) + Fraction(b)) / 2) for a, b in pairwise(domain.edges)])
    else:
        raise DomainError("categories are not numbers.", hint="Their total variation can be computed, not their distance")
    return np.append(numbers, np.full(domain.size - domain.n_values, np.nan))
