"""A coarser domain of a column, and how it is typed."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privurn.domain.column import ColumnDomain
from privurn.domain.numeric import Bins, Grid
from privurn.exact_numbers import decimal_text, exact


def coarser(domain: ColumnDomain, most: int) -> ColumnDomain | None:
    """The same range in at most so many values (two at least), in round multiples of the step; None for categories.

    >>> typed(coarser(Grid(0, 200_000, 500), 30))
    '0:200000:10000'
    >>> typed(coarser(Bins(range(0, 101, 5)), 6))
    '0,20,40,60,80,100'
    """
    wanted = max(2, most)
    if isinstance(domain, Grid):
        steps = domain.n_values - 1
        least = math.ceil(steps / (wanted - 1))
        several = [k for k in _round_numbers(20 * least) if k >= least]
        k = next((k for k in several if steps % k == 0), several[0])
        step = domain.spacing * k
        return replace(domain, high=domain.bounds[0] + step * math.ceil(steps / k), step=step)
    if isinstance(domain, Bins):
        width = math.ceil(domain.n_values / wanted)
        edges = [*domain.edges[:-1:width], domain.edges[-1]]
        return replace(domain, edges=edges)
    return None


def typed(domain: ColumnDomain | None) -> str:
    """LO:HI:STEP of a grid, edges of bins."""
    if isinstance(domain, Grid):
        return ":".join(decimal_text(each) for each in (*domain.bounds, domain.spacing))
    edges = domain.edges if isinstance(domain, Bins) else ()
    return ",".join(decimal_text(Fraction(exact(each, name="bin edge"))) for each in edges)


def _round_numbers(most: int) -> Iterator[int]:
    """1, 2, 4, 5, 10, 20, 25, 40, 50, 100, ..."""
    ten = 1
    while ten <= most:
        yield from sorted({ten, 2 * ten, 4 * ten, 5 * ten, 25 * ten // 10} if ten > 1 else {1, 2, 4, 5})
        ten *= 10
