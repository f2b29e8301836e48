"""From functionals to what the compiled loop needs: weights of cells, their order, and cells that may be taken together.

Two cells that no functional tells apart form one group. Cumulative and tail probabilities need a handful of groups, however
many cells there are.

Where in its bin a record lies is said in `places`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Dates, Grid, JointDomain, label_text
from privurn.domain.dates import days_since_1970
from privurn.errors import DomainError, FormatError, ModelError
from privurn.inference.counts.functionals import Condition, End, Functional
from privurn.inference.counts.places import Places, WithinBins, depends_on_place, places_of, share_of
from privurn.tables.cells import cell_values, is_numeric

Floats = NDArray[np.float64]

ENDS: tuple[End, End] = ("least", "most")
PLACED = ("mean", "quantile", "cdf", "event")
"""Figures whose ends are known where the place of records in their bins is not."""

MOST_CELLS = 5_000_000
"""Each cell has a latent count and some numbers."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Numerator and denominator weights of the cells: sum(weights p)/sum(present p), plus an offset."""

    weights: Floats
    present: Floats
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is asked of a distribution over `cells` cells: `groups` maps each of them to a group, `plan` speaks of groups."""

    functionals: tuple[Functional, ...]
    groups: NDArray[np.int64]
    n_groups: int
    plan: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Of the functionals."""
        return tuple(each.name for each in self.functionals)

    def grouped(self, cells: NDArray[Any]) -> Floats:
        """Sums of the cells' numbers by group."""
        return np.bincount(self.groups, weights=cells, minlength=self.n_groups).astype(np.float64, copy=False)

    def evaluate(self, shares: NDArray[Any]) -> dict[str, float]:
        """The functionals of one distribution, given by any masses of the cells.

        >>> domain = JointDomain({"x": Grid(0, 1, "0.5")})
        >>> from privurn.inference.counts.functionals import parse_functionals
        >>> reduce(parse_functionals(["mean", "q0.5"]), domain=domain).evaluate(np.array([1, 1, 2]))
        {'mean': 0.625, 'q0.5': 0.5}
        """
        from privurn._kernels.counts.functionals import update_row, update_sums

        masses = self.grouped(shares)
        row, sums = np.empty(len(self.functionals)), np.empty(self.plan.weights.shape[1])
        update_sums(sums, masses, self.plan.weights)
        update_row(row, masses, sums, self.plan)
        return dict(zip(self.names, row.tolist(), strict=True))


def reduce(functionals: Sequence[Functional], *, domain: JointDomain, within: WithinBins = "uniform") -> Reduction:
    """Prepare functionals of distributions over the cells of a domain."""
    from privurn._kernels.counts.functionals import DEVIATION, LOG_ODDS, QUANTILE, RATIO, VARIANCE, Plan

    if domain.size > MOST_CELLS:
        raise ModelError(f"a posterior needs a number for each cell, and at most {MOST_CELLS:,} cells are supported.")
    rows: list[Floats] = []
    axes: list[tuple[str, End | None]] = []

    def row(weights: Floats) -> int:
        for i, known in enumerate(rows):
            if known is weights or np.array_equal(known, weights):
                return i
        rows.append(weights)
        return len(rows) - 1

    entries: list[tuple[int, int, int, int, float, float]] = []
    for each in functionals:
        a, b = 0, 0
        cells = _Cells(domain, within, each.end)
        if each.kind == "quantile":
            axis = cells.column(each.column, numeric=True), each.end
            if axis not in axes:
                axes.append(axis)
            a, d, shift, sort = axes.index(axis), 0, 0.0, QUANTILE
        elif each.kind in ("variance", "sd"):
            centred, squares, present = cells.moments(cells.column(each.column, numeric=True))
            a, b, d, shift = row(centred.weights), row(squares), row(present), 0.0
            sort = VARIANCE if each.kind == "variance" else DEVIATION
        elif each.kind == "log_odds_ratio":
            a, d, shift, sort = len(rows), 0, 0.0, LOG_ODDS
            rows += cells.four()
        else:
            linear = cells.linear(each)
            a, d, shift, sort = row(linear.weights), row(linear.present), linear.offset, RATIO
        entries.append((sort, a, b, d, shift, each.at))
    kind, first, second, below, offset, level = zip(*entries, strict=True)
    ends = [_Cells(domain, within, end).ends(column) for column, end in axes]
    groups, kept = _groups([*rows, *(each for pair in ends for each in pair)], domain.size)
    order, numbers, low, high = _orders([(lows[kept], highs[kept]) for lows, highs in ends], len(kept))
    plan = Plan(
        weights=np.ascontiguousarray(np.array([each[kept] for each in rows]).reshape(len(rows), len(kept)).T),
        kind=np.array(kind, np.int64),
        first=np.array(first, np.int64),
        second=np.array(second, np.int64),
        below=np.array(below, np.int64),
        offset=np.array(offset, np.float64),
        level=np.array(level, np.float64),
        order=order,
        numbers=numbers,
        low=low,
        high=high,
    )
    return Reduction(tuple(functionals), groups, len(kept), plan)


def two_by_two(domain: JointDomain) -> bool:
    """Whether there are two columns with two proper values each."""
    return [each.n_values for each in domain.columns.values()] == [2, 2]


def linear_weights(functional: Functional, *, domain: JointDomain, within: WithinBins = "uniform") -> Weighted | None:
    """Weights of a functional that is linear in the distribution, for those that are."""
    if functional.kind not in ("mean", "cdf", "event", "function"):
        return None
    return _Cells(domain, within, functional.end).linear(functional)


def place_ends(functionals: Sequence[Functional], *, domain: JointDomain, within: WithinBins) -> tuple[Functional, ...]:
    """The least and the most that figures can be, of those that depend on where in their bins the records lie."""
    if not any(isinstance(each, Bins) for each in domain.columns.values()):
        return ()
    cells = _Cells(domain, within)
    found = [each for each in functionals if each.kind in PLACED and cells.placed(each)]
    return tuple(replace(each, name=f"{each.name}, {end}", end=end) for each in found for end in ENDS)


def _groups(features: Sequence[Floats], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each cell, and one cell of each group. Groups come in the order of the first feature's values."""
    groups, kept = np.zeros(size, np.int64), np.zeros(1, np.int64)
    for feature in features:
        own = np.unique(feature, return_inverse=True)[1].reshape(-1)  # NaN is one value
        pairs = groups * (int(own.max(initial=0)) + 1) + own
        _, kept, groups = np.unique(pairs, return_index=True, return_inverse=True)
        groups = groups.reshape(-1)
    return groups, kept


def _orders(ends: Sequence[tuple[Floats, Floats]], size: int) -> tuple[Any, Any, Floats, Floats]:
    """Groups with a number first and by increasing value, for each column; where their values begin and end."""
    order = np.zeros((len(ends), size), np.int64)
    numbers = np.zeros(len(ends), np.int64)
    low, high = np.zeros((len(ends), size)), np.zeros((len(ends), size))
    for i, (lows, highs) in enumerate(ends):
        order[i] = np.argsort(lows, kind="stable")  # NaN last
        numbers[i] = int(np.sum(~np.isnan(lows)))
        low[i], high[i] = lows[order[i]], highs[order[i]]
    return order, numbers, low, high


class _Cells:
    """Numbers and labels of the joint cells of a domain, column by column."""

    def __init__(self, domain: JointDomain, within: WithinBins, end: End | None = None) -> None:
        self.domain, self.within, self.end = domain, within, end

    def column(self, name: str | None, *, numeric: bool = False) -> str:
        """A column by its name, by "x" or by nothing where there is only one."""
        names = list(self.domain.columns)
        if name not in names:
            if len(names) > 1 or name not in (None, "x"):
                what = "several columns, and a functional must say which" if name is None else f"no column {name!r}"
                raise FormatError(f"the release has {what}.", hint=f"Columns: {', '.join(names)}; for example P({names[0]}>1)")
            name = names[0]
        if numeric and not is_numeric(self.domain.columns[name]):
            raise FormatError(f"column {name!r} holds categories, not numbers.", hint=f"Ask for shares, as in P({name}=LABEL)")
        return name

    def spread(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Values of a column's own cells, for all joint cells."""
        shape = [1] * len(self.domain.columns)
        position = list(self.domain.columns).index(name)
        shape[position] = -1
        sizes = [each.size for each in self.domain.columns.values()]
        return np.broadcast_to(values.reshape(shape), sizes).reshape(-1, order="F")

    def places(self, name: str) -> Places:
        """Numbers of each of a column's own cells; NaN for cells that are no numbers."""
        return places_of(self.domain.columns[name], within=self.within, end=self.end)

    def ends(self, name: str) -> tuple[Floats, Floats]:
        """Where the numbers of each joint cell begin and end."""
        places = self.places(name)
        return self.spread(name, places.low), self.spread(name, places.high)

    def placed(self, functional: Functional) -> bool:
        """Whether a figure depends on where in their bins the records lie."""
        if functional.kind in ("mean", "quantile"):
            column = self.domain.columns[self.column(functional.column, numeric=True)]
            least, most = (places_of(column, within=self.within, end=end).mean for end in ENDS)
            return bool(np.any(least < most))
        conditions = functional.conditions
        if functional.kind == "cdf":
            conditions = (Condition(functional.column, "<=", functional.at),)
        by_name: dict[str, list[Condition]] = {}
        for each in conditions:
            if each.operator not in ("=", "!="):
                by_name.setdefault(self.column(each.column, numeric=True), []).append(each)
        return any(depends_on_place(self.domain.columns[name], own, within=self.within) for name, own in by_name.items())

    def moments(self, name: str) -> tuple[Weighted, Floats, Floats]:
        """Centred numbers, their squares and which cells are numbers. Centring keeps differences of large numbers exact."""
        places = self.places(name)
        numbers = ~np.isnan(places.mean)
        centre = float(np.mean(places.mean[numbers]))
        centred = np.where(numbers, places.mean - centre, 0.0)
        squares = np.where(numbers, centred**2 + places.variance, 0.0)
        present = self.spread(name, numbers.astype(np.float64))
        return Weighted(self.spread(name, centred), present, centre), self.spread(name, squares), present

    def linear(self, functional: Functional) -> Weighted:
        """Weights of a mean, a share or a function."""
        if functional.kind == "mean":
            return self.moments(self.column(functional.column, numeric=True))[0]
        if functional.kind == "cdf":
            name = self.column(functional.column, numeric=True)
            present = ~np.isnan(self.places(name).mean)
            inside = self.interval(name, [Condition(name, "<=", functional.at)])
            return Weighted(self.spread(name, inside), self.spread(name, present.astype(np.float64)))
        if functional.kind == "function":
            return self.function(functional)
        if functional.kind != "event":
            raise FormatError(
                f"{functional.name!r} is for releases with open labels.",
                hint="This release has a public domain: ask for shares",
            )
        weights = np.ones(self.domain.size)
        named = [(self.column(each.column), each) for each in functional.conditions]
        for name in dict.fromkeys(name for name, _ in named):
            own = [each for other, each in named if other == name]
            factor = self.interval(name, [each for each in own if each.operator not in ("=", "!=")])
            for each in own:
                if each.operator in ("=", "!="):
                    match = self.label(name, str(each.value))
                    factor = factor * (match if each.operator == "=" else 1.0 - match)
            weights = weights * self.spread(name, factor)
        return Weighted(weights, np.ones(self.domain.size))

    def four(self) -> list[Floats]:
        """Which joint cells are the four of a two by two table: the diagonal, then the others."""
        if not two_by_two(self.domain):
            raise FormatError("an odds ratio is of two columns with two values each.", hint="Ask for shares, as in P(x=LABEL)")
        width = next(iter(self.domain.columns.values())).size
        every = np.arange(self.domain.size)
        return [(every == place).astype(np.float64) for place in (0, width + 1, 1, width)]

    def interval(self, name: str, conditions: Sequence[Condition]) -> Floats:
        """Share of each of a column's cells that inequalities leave."""
        domain = self.domain.columns[name]
        if not conditions:
            return np.ones(domain.size)
        self.column(name, numeric=True)
        return share_of(domain, conditions, within=self.within, end=self.end)

    def label(self, name: str, label: str) -> Floats:
        """1 for the cell of a column with this label or number, else 0."""
        domain = self.domain.columns[name]
        match = np.zeros(domain.size)
        match[_labelled_cell(name, domain, label)] = 1.0
        return match

    def function(self, functional: Functional) -> Weighted:
        """A user's function of the cells' values: of one array, or of a mapping from columns to arrays."""
        values = {name: self.spread(name, _values(domain)) for name, domain in self.domain.columns.items()}
        given: Any = next(iter(values.values())) if len(values) == 1 else values
        assert functional.function is not None  # what the kind means
        weights = np.asarray(functional.function(given), np.float64)
        if weights.shape != (self.domain.size,):
            raise ModelError(
                f"the function {functional.name!r} must return one number for each of {self.domain.size} cells.",
                hint="It is given an array of the cells' values (a mapping from columns to arrays where there are several)",
            )
        if np.any(np.isinf(weights)) or np.all(np.isnan(weights)):
            raise ModelError(f"the function {functional.name!r} must be finite; NaN leaves cells out.")
        present = ~np.isnan(weights)
        return Weighted(np.where(present, weights, 0.0), present.astype(np.float64))


def _values(domain: ColumnDomain) -> NDArray[Any]:
    """Numbers, or labels as they are listed; None for missing values."""
    if is_numeric(domain):
        return cell_values(domain)
    listed: list[Any] = list(getattr(domain, "values", ()))
    listed += ["other"] * (domain.other_cell is not None) + [None] * (domain.null_cell is not None)
    out = np.empty(len(listed), object)
    out[:] = listed
    return out


def _labelled_cell(name: str, domain: ColumnDomain, label: str) -> int:
    if isinstance(domain, Categories):
        labels = [label_text(value) for value in domain.values]
        if label in labels:
            return labels.index(label)
        shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
    else:
        shown = "its numbers"
    if label == "other" and domain.other_cell is not None:
        return domain.other_cell
    if label == "missing" and domain.null_cell is not None:
        return domain.null_cell
    if isinstance(domain, (Grid, Dates)):
        try:
            wanted = days_since_1970(label) if isinstance(domain, Dates) else float(label)
            found = np.flatnonzero(cell_values(domain) == wanted)
        except ValueError:
            found = np.zeros(0, np.int64)
        if len(found):
            return int(found[0])
        shown = "the points of its grid" if isinstance(domain, Grid) else "the dates at which its steps begin"
    elif isinstance(domain, Bins):
        raise DomainError(f"column {name!r} is in bins, which hold no single number.", hint=f"For example P(18<={name}<65)")
    raise DomainError(f"column {name!r} has no value {label!r}.", hint=f"It holds {shown}")
