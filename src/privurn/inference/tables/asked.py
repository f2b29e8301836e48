"""What can be asked of a whole table, and how it is written.

mean(age), cdf(age, 40), q0.9(age)       of one column; median(age) is q0.5(age)
P(sex=f), P(18<=age<65, sex=f)           shares of all records, of up to three columns
mean(hours | sex=f), median(hours | ...) of the records that fulfil a condition
P(income=high | sex=f)                   likewise
A - B                                    the difference of two of these, but of a quantile and something else
A / B                                    the ratio of any two of these
table(age, sex)                          the share of every joint cell of up to three columns

Figures of a fine column alone come from its tree; with other columns its values are weighed as they are spread in its ranges.
"""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain, TableDomain
from privurn.errors import FormatError
from privurn.inference.counts.asked import _conditions
from privurn.inference.counts.functionals import End, Functional, parse_functionals
from privurn.inference.counts.open_labels import quoted
from privurn.inference.counts.places import WithinBins, places_of
from privurn.inference.counts.plans import ENDS, linear_weights, place_ends
from privurn.inference.tables.fine import Ranges, range_conditions
from privurn.mechanisms.marginal_counts import LARGEST_SET, Columns

Floats = NDArray[np.float64]

EXAMPLES = "mean(age), q0.9(age), P(sex=f), mean(hours | sex=f), mean(hours | sex=f) - mean(hours | sex=m), table(age, sex)"

_TABLE = re.compile(r"^\s*table\s*\((?P<inner>.*)\)\s*$")
_QUANTILE = re.compile(r"^\s*(?P<word>median|q[0-9][0-9.eE+-]*)\s*\((?P<inner>[^|]*)(?:\|(?P<given>[^|]*))?\)\s*$")
_GIVEN = re.compile(r"^\s*(?P<word>mean|P)\s*\((?P<inner>[^|]*)\|(?P<given>[^|]*)\)\s*$")


@dataclass(frozen=True, eq=False)
class Ratio:
    """sum of `above` over sum of `below`, plus an offset: functions of the cells of a few columns, an axis for each."""

    places: Columns
    above: Floats
    below: Floats
    offset: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest that it can be."""
        held = self.below > 0.0
        values = self.offset + self.above[held] / self.below[held]
        return float(values.min()), float(values.max())


@dataclass(frozen=True, eq=False)
class Question:
    """A name, and the ratio or the difference of two of them that it stands for."""

    name: str
    ratios: tuple[Ratio, ...]
    placed: "tuple[Question, Question] | None" = None
    """The least and the most that it can be wherever in their bins the records lie, where that matters and is known."""

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """Between what each of them lies."""
        return tuple(each.ends for each in self.ratios)

    @property
    def steps(self) -> "tuple[Question, ...]":
        """What must be estimated for it."""
        return (self, *(self.placed or ()))


@dataclass(frozen=True, eq=False)
class Quantile:
    """Where the shares at or below each value of a column reach a level; the last of them is 1 and not asked for."""

    level: float
    lows: Floats
    highs: Floats
    shares: tuple[Question, ...]


@dataclass(frozen=True, eq=False)
class QuantileQuestion:
    """A name, and the quantile or the difference of two of them that it stands for."""

    name: str
    quantiles: tuple[Quantile, ...]
    placed: bool = False
    """Whether it is known between what it lies, wherever in their bins the records lie."""

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """Between what each of them lies."""
        return tuple((float(each.lows.min()), float(each.highs.max())) for each in self.quantiles)

    @property
    def steps(self) -> tuple[Question, ...]:
        """What must be estimated for it."""
        return tuple(share for each in self.quantiles for share in each.shares)


@dataclass(frozen=True, eq=False)
class TreeQuestion:
    """A name, and the figure of a fine column alone or the difference of two of them: columns and texts."""

    name: str
    parts: tuple[tuple[str, str], ...]
    ends: tuple[tuple[float, float], ...]
    """Between what each of them lies."""
    steps: tuple[Question, ...] = ()
    """What must be estimated for it: nothing, the tree tells."""


Single = Question | QuantileQuestion | TreeQuestion


@dataclass(frozen=True, eq=False)
class Quotient:
    """A name, and the two figures that it stands for: the first over the second."""

    name: str
    parts: tuple[Single, Single]

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """Between what each of them lies."""
        return tuple(ends for each in self.parts for ends in each.ends)

    @property
    def steps(self) -> tuple[Question, ...]:
        """What must be estimated for it."""
        return tuple(step for each in self.parts for step in each.steps)


AnyQuestion = Single | Quotient


@dataclass(frozen=True, eq=False)
class View:
    """The columns that questions are about, where in their bins records lie, and the ranges of fine columns by place."""

    domain: TableDomain
    within: WithinBins = "uniform"
    ranges: Mapping[int, Ranges] = field(default_factory=dict)

    def size(self, place: int) -> int:
        """Cells of a column, or ranges."""
        return self.ranges[place].column.size if place in self.ranges else self.domain.sizes[place]

    def ranged(self, place: int, numbers: Floats) -> Floats:
        """Numbers of a column's cells, as those of its ranges where it has such."""
        return self.ranges[place].means(numbers) if place in self.ranges else numbers

    def array(self, factors: "Factors", places: Columns) -> Floats:
        """A product of functions of single columns, over the joint cells of some columns."""
        found = np.ones([self.size(j) for j in places])
        for axis, j in enumerate(places):
            if j in factors:
                found = found * self.ranged(j, factors[j]).reshape([-1 if i == axis else 1 for i in range(len(places))])
        return found


Factors = Mapping[int, Floats]
"""Functions of the cells of single columns, by place, which are multiplied."""


def questions(
    ask: str | Iterable[str] | None,
    domain: TableDomain,
    *,
    within: WithinBins = "uniform",
    ranges: Mapping[int, Ranges] | None = None,
) -> list[AnyQuestion]:
    """What was asked for; left out, means of numbers and shares of categories."""
    listed = default_questions(domain) if ask is None else [ask] if isinstance(ask, str) else list(ask)
    found: list[AnyQuestion] = []
    view = View(domain, within, ranges or {})
    for each in listed:
        if not isinstance(each, str):
            raise FormatError("what is asked of a table is text.", hint=f"For example {EXAMPLES}")
        if table := _TABLE.match(each):
            found += _cells(table["inner"], view)
            continue
        over, less = _split(each, "/"), _split(each, "-")
        if len(over) * len(less) > 2:
            raise FormatError(f"{each!r} is more than a difference or a ratio of two.", hint=f"For example {EXAMPLES}")
        if len(over) == 2:
            found.append(Quotient(each.strip(), (_figure(over[0], over[:1], view), _figure(over[1], over[1:], view))))
        else:
            found.append(_figure(each, less, view))
    if len({each.name for each in found}) < len(found) or not found:
        raise FormatError("something must be asked for, each thing once.", hint=f"For example {EXAMPLES}")
    return found


def _split(text: str, sign: str) -> list[str]:
    """What stands on either side of a sign between two figures."""
    parts = re.split(rf"\)\s+{sign}\s+", text)
    return [part + ")" for part in parts[:-1]] + [parts[-1]]


def _figure(name: str, texts: list[str], view: View) -> Single:
    """One figure, or the difference of two."""
    quantiles = [_QUANTILE.match(text) is not None for text in texts]
    if any(quantiles) and not all(quantiles):
        raise FormatError(f"{name!r} is a difference of a quantile and something else.", hint=f"For example {EXAMPLES}")
    asked: Question | QuantileQuestion
    if all(quantiles):
        placed = not any(_conditions_placed(text, view) for text in texts)
        asked = QuantileQuestion(name.strip(), tuple(_quantile(text, view) for text in texts), placed)
    else:
        asked = _question(name.strip(), texts, view)
    alone = [_fine_alone(text, view) for text in texts]
    named = tuple((column, text.strip()) for column, text in zip(alone, texts, strict=True) if column is not None)
    return TreeQuestion(asked.name, named, asked.ends) if len(named) == len(texts) else asked


def default_questions(domain: TableDomain) -> list[str]:
    """A mean for each column of numbers; shares of the values of the others."""
    from privurn.domain import Categories, label_text
    from privurn.tables.cells import is_numeric

    found = []
    for name, column in domain.columns.items():
        if is_numeric(column):
            found.append(f"mean({quoted(name)})")
        elif isinstance(column, Categories):
            found += [f"P({quoted(name)}={quoted(label_text(value))})" for value in column.values]
    return found


def _fine_alone(text: str, view: View) -> str | None:
    """The fine column that a figure is about, where it is about that column alone and all records."""
    if not view.ranges or any(found["given"] is not None for found in (_GIVEN.match(text), _QUANTILE.match(text)) if found):
        return None
    [functional] = parse_functionals([text])
    names = {functional.column} if functional.column else {each.column for each in functional.conditions}
    name = str(names.pop())
    return name if not names and view.domain.names.index(name) in view.ranges else None


def _cells(inner: str, view: View) -> list[Question]:
    """The share of each joint cell; of fine columns: of each range."""
    domain = view.domain
    names = [part.strip().strip("'\"") for part in inner.split(",")]
    for name in names:
        _check_known(name, domain)
    _check_few(sorted(set(names)), f"table({inner})")
    parts = []
    for name in names:
        column, j = domain.columns[name], domain.names.index(name)
        own = range_conditions(quoted(name), column, view.ranges[j]) if j in view.ranges else _conditions(quoted(name), column)
        parts.append([(text, j, cell) for cell, text in enumerate(own)])
    places = tuple(sorted({domain.names.index(name) for name in names}))
    everywhere, found = view.array({}, places), []
    for each in itertools.product(*parts):
        inside = np.zeros(everywhere.shape)
        if len({(j, cell) for _, j, cell in each}) == len(places):  # a column that is named twice is in one cell
            at = {j: cell for _, j, cell in each}
            inside[tuple(at[j] for j in places)] = 1.0
        found.append(Question(f"P({', '.join(text for text, _, _ in each)})", (Ratio(places, inside, everywhere),)))
    return found


def _question(name: str, texts: list[str], view: View) -> Question:
    """A figure, or the difference of two, with its ends; a condition that cuts a bin in two leaves them unknown."""
    ratios = tuple(_ratio(text, view) for text in texts)
    ends = [tuple(_ratio(text, view, end) for end in ENDS) for text in texts]
    known = not any(_conditions_placed(text, view) for text in texts)
    if not known or not any(least.offset != most.offset or np.any(least.above != most.above) for least, most in ends):
        return Question(name, ratios)
    (least, most), rest = ends[0], ends[1:]
    lowest = Question(f"{name}, least", (least, *(each[1] for each in rest)))
    return Question(name, ratios, (lowest, Question(f"{name}, most", (most, *(each[0] for each in rest)))))


def _conditions_placed(text: str, view: View) -> bool:
    """Whether what a figure is conditional on depends on where in their bins the records lie."""
    given = _QUANTILE.match(text) or _GIVEN.match(text)
    if given is None or given["given"] is None:
        return False
    [event] = parse_functionals([f"P({given['given']})"])
    return any(
        place_ends([own], domain=JointDomain({name: view.domain.columns[name]}), within=view.within)
        for name, own in _by_column(event).items()
    )


def _by_column(event: Functional) -> dict[str, Functional]:
    """What an event says of each column."""
    names = dict.fromkeys(str(each.column) for each in event.conditions)
    return {
        name: replace(event, conditions=tuple(each for each in event.conditions if str(each.column) == name)) for name in names
    }


def _ratio(text: str, view: View, end: End | None = None) -> Ratio:
    """One functional, with what it is conditional on."""
    given = _GIVEN.match(text)
    if given is None:
        [functional] = parse_functionals([text])
        return _made(*_weighted(replace(functional, end=end), view), view)
    [event] = parse_functionals([f"P({given['given']})"])
    condition, _, _ = _weighted(event, view)
    if given["word"] == "P":
        [both] = parse_functionals([f"P({given['inner']}, {given['given']})"])
        return _made(_weighted(replace(both, end=end), view)[0], condition, 0.0, view)
    [mean] = parse_functionals([f"mean({given['inner']})"])
    above, below, offset = _weighted(replace(mean, end=end), view)
    return _made(_times(above, condition), _times(below, condition), offset, view)


def _times(one: Factors, other: Factors) -> Factors:
    return {**one, **{j: one[j] * numbers if j in one else numbers for j, numbers in other.items()}}


def _made(above: Factors, below: Factors, offset: float, view: View) -> Ratio:
    """Functions of some columns as functions of all of them together."""
    places = tuple(sorted({*above, *below}))
    _check_few([view.domain.names[j] for j in places], "what was asked for")
    return Ratio(places, view.array(above, places), view.array(below, places), offset)


def _quantile(text: str, view: View) -> Quantile:
    """A quantile as shares at or below each value of the records that fulfil the condition and have a number."""
    match = _QUANTILE.match(text)
    assert match is not None
    [functional] = parse_functionals([f"{match['word']}({match['inner']})"])
    given = "" if match["given"] is None else f" | {match['given']}"
    mean = _ratio(f"mean({match['inner']}{given})", view)  # refuses what has no numbers
    name = str(functional.column)
    column, place = view.domain.columns[name], view.domain.names.index(name)
    places, size = places_of(column, within=view.within), view.size(place)
    values = size - (column.size - column.n_values)
    firsts = view.ranges[place].starts[:values] if place in view.ranges else np.arange(values)
    lows, highs = places.low[firsts], places.high[np.append(firsts[1:], column.n_values) - 1]
    shape = [-1 if j == place else 1 for j in mean.places]
    shares = []
    for i in range(values - 1):
        inside = (np.arange(size) <= i).astype(np.float64).reshape(shape)
        shares.append(Question(f"{text.strip()}, value {i + 1}", (Ratio(mean.places, mean.below * inside, mean.below),)))
    return Quantile(functional.at, lows, highs, tuple(shares))


def _weighted(functional: Functional, view: View) -> tuple[Factors, Factors, float]:
    """What stands above and below the line, as functions of single columns, and the offset."""
    domain = view.domain
    named = [functional.column] if functional.column else [each.column for each in functional.conditions]
    if None in named or functional.kind not in ("mean", "cdf", "event"):
        raise FormatError(f"{functional.name!r} cannot be asked of a whole table.", hint=f"For example {EXAMPLES}")
    for name in named:
        _check_known(str(name), domain)
    _check_few(list(dict.fromkeys(map(str, named))), functional.name)
    event = functional.kind == "event"
    above, below, offset = {}, {}, 0.0
    for name, own in (_by_column(functional) if event else {str(functional.column): functional}).items():
        found = linear_weights(own, domain=JointDomain({name: domain.columns[name]}), within=view.within)
        assert found is not None  # all three kinds are linear
        above[domain.names.index(name)], offset = found.weights, found.offset
        if not event:
            below[domain.names.index(name)] = found.present
    return above, below, offset


def _check_known(name: str, domain: TableDomain) -> None:
    if name not in domain.columns:
        raise FormatError(f"the release has no column {name!r}.", hint=f"Columns: {', '.join(domain.names)}")


def _check_few(names: list[str], text: str) -> None:
    if len(names) > LARGEST_SET:
        raise FormatError(f"{text!r} is about {len(names)} columns.", hint="Ask for three at most, or fit a regression")
