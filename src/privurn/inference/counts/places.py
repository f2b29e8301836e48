"""Where in its bin a record lies: what is assumed of it, and how far a figure could move if nothing were.

A release of bins says which bin a record lies in, and nothing about where. `within` is what is assumed. "uniform": anywhere,
evenly; that is the prior's law restricted to the bin, and it enters in closed form (a share of the bin in P and cdf, width^2/12
in the variance, a straight line in quantiles). "whole": values are whole numbers, such as ages in years, and each of a bin's is
as likely as another: [20, 30) has mean 24.5 and not 25. "midpoint": at the middle. Grids have points: all are the same there.

The `end` of a figure assumes nothing: "least" and "most" are what it is with every record where in its bin it makes it least,
or most. The ends of its interval there hold whatever the law within bins is (partial identification).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, ColumnDomain
from privurn.errors import FormatError
from privurn.inference.counts.functionals import Condition, End
from privurn.tables.cells import cell_values

Floats = NDArray[np.float64]
WithinBins = Literal["uniform", "whole", "midpoint"]

ASSUMED: dict[WithinBins, str] = {
    "uniform": "evenly within bins",
    "whole": "whole numbers, evenly within bins",
    "midpoint": "at the middle of bins",
}


@dataclass(frozen=True, eq=False)
class Places:
    """Of each cell of a column: its first and last number, and their mean and variance; NaN where a cell is no number."""

    low: Floats
    high: Floats
    mean: Floats
    variance: Floats


def places_of(domain: ColumnDomain, *, within: WithinBins, end: End | None = None) -> Places:
    """Numbers that the records of each cell may have.

    >>> found = places_of(Bins([20, 30, 40]), within="whole")
    >>> found.mean.tolist(), found.high.tolist()
    ([24.5, 35.0], [29.0, 40.0])
    """
    if within not in ASSUMED:
        raise FormatError(f"within={within!r} is not known.", hint="uniform, whole or midpoint")
    values = cell_values(domain)
    still = np.where(np.isnan(values), np.nan, 0.0)
    if not isinstance(domain, Bins) or (within == "midpoint" and end is None):
        return Places(values, values, values, still)
    edges = np.array([float(edge) for edge in domain.edges])
    low, high, spread = edges[:-1], edges[1:], np.diff(edges) ** 2 / 12.0
    if within == "whole":
        low, high = np.ceil(low), np.append(np.ceil(high[:-1]) - 1.0, np.floor(high[-1]))  # the last bin is closed
        if np.any(high < low):
            raise FormatError("a bin holds no whole number.", hint="Leave within out, or declare other bins")
        spread = ((high - low + 1.0) ** 2 - 1.0) / 12.0
    rest = still[domain.n_values :]
    low, high, spread = (np.append(each, rest * np.nan) for each in (low, high, spread))
    if end is not None:
        chosen = low if end == "least" else high
        return Places(chosen, chosen, chosen, still)
    return Places(low, high, 0.5 * (low + high), spread)


def share_of(domain: ColumnDomain, conditions: Sequence[Condition], *, within: WithinBins, end: End | None = None) -> Floats:
    """Share of each cell's records that inequalities leave; 0 where a cell is no number.

    >>> share_of(Bins([20, 30, 40]), [Condition(None, ">", 20.0)], within="whole").tolist()
    [0.9, 1.0]
    """
    places = places_of(domain, within="uniform" if within == "midpoint" and end is not None else within)
    low, high = places.low, places.high
    if not isinstance(domain, Bins) or (within == "midpoint" and end is None):
        part = np.ones(domain.size)
        for each in conditions:
            value = float(each.value)
            part *= {"<": low < value, "<=": low <= value, ">": low > value, ">=": low >= value}[each.operator]
    elif within == "whole":
        first = np.maximum(low, max((_first_whole(each) for each in conditions if ">" in each.operator), default=-np.inf))
        last = np.minimum(high, min((_last_whole(each) for each in conditions if "<" in each.operator), default=np.inf))
        part = np.clip(last - first + 1.0, 0.0, None) / (high - low + 1.0)
        if end is not None:
            part = np.where(part >= 1.0 if end == "least" else part > 0.0, 1.0, 0.0)
    elif end is not None:
        part = _inside(low, high, conditions) if end == "least" else _met(low, high, conditions)
    else:
        below = min((float(each.value) for each in conditions if "<" in each.operator), default=np.inf)
        above = max((float(each.value) for each in conditions if ">" in each.operator), default=-np.inf)
        part = np.clip((np.minimum(high, below) - np.maximum(low, above)) / (high - low), 0.0, 1.0)
    return np.where(np.isnan(low), 0.0, part)


def depends_on_place(domain: ColumnDomain, conditions: Sequence[Condition], *, within: WithinBins) -> bool:
    """Whether inequalities cut a bin in two, so that its share of records is not known."""
    least, most = (share_of(domain, conditions, within=within, end=end) for end in ("least", "most"))
    return bool(np.any(least != most))


def _inside(low: Floats, high: Floats, conditions: Sequence[Condition]) -> Floats:
    """1 where inequalities hold all over a bin [low, high)."""
    part = np.ones(len(low))
    for each in conditions:
        value = float(each.value)
        part *= {"<": high <= value, "<=": high <= value, ">": low > value, ">=": low >= value}[each.operator]
    return part


def _met(low: Floats, high: Floats, conditions: Sequence[Condition]) -> Floats:
    """1 where they hold somewhere in it."""
    part = np.ones(len(low))
    for each in conditions:
        value = float(each.value)
        part *= {"<": low < value, "<=": low <= value, ">": high > value, ">=": high > value}[each.operator]
    for one in [each for each in conditions if ">" in each.operator]:
        for other in [each for each in conditions if "<" in each.operator]:
            both = one.operator == ">=" and other.operator == "<="
            if float(one.value) > float(other.value) or (float(one.value) == float(other.value) and not both):
                part *= 0.0  # nothing fulfils both
    return part


def _first_whole(condition: Condition) -> float:
    value = float(condition.value)
    return float(np.floor(value) + 1.0 if condition.operator == ">" else np.ceil(value))


def _last_whole(condition: Condition) -> float:
    value = float(condition.value)
    return float(np.ceil(value) - 1.0 if condition.operator == "<" else np.floor(value))
