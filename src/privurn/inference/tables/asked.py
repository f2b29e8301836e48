"""What can be asked of a whole table, and how it is written.

mean(age), cdf(age, 40), q0.9(age)       of one column; median(age) is q0.5(age)
P(sex=f), P(18<=age<65, sex=f)           shares of all records, of up to three columns
mean(hours | sex=f), median(hours | ...) of the records that fulfil a condition
P(income=high | sex=f)                   likewise
A - B                                    the difference of two of these, but of a quantile and something else
table(age, sex)                          the share of every joint cell of up to three columns
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain, TableDomain
from privurn.errors import FormatError
from privurn.inference.counts.asked import _conditions
from privurn.inference.counts.functionals import End, Functional, parse_functionals
from privurn.inference.counts.open_labels import quoted
from privurn.inference.counts.places import WithinBins, places_of
from privurn.inference.counts.plans import ENDS, linear_weights, place_ends
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


def questions(
    ask: str | Iterable[str] | None, domain: TableDomain, *, within: WithinBins = "uniform"
) -> "list[Question | QuantileQuestion]":
    """What was asked for; left out, means of numbers and shares of categories."""
    listed = default_questions(domain) if ask is None else [ask] if isinstance(ask, str) else list(ask)
    found: list[Question | QuantileQuestion] = []
    for each in listed:
        if not isinstance(each, str):
            raise FormatError("what is asked of a table is text.", hint=f"For example {EXAMPLES}")
        if table := _TABLE.match(each):
            found += _cells(table["inner"], domain, within)
            continue
        parts = re.split(r"\)\s+-\s+", each)
        texts = [part + ")" for part in parts[:-1]] + [parts[-1]]
        if len(texts) > 2:
            raise FormatError(f"{each!r} is more than a difference of two.", hint=f"For example {EXAMPLES}")
        quantiles = [_QUANTILE.match(text) is not None for text in texts]
        if any(quantiles) and not all(quantiles):
            raise FormatError(f"{each!r} is a difference of a quantile and something else.", hint=f"For example {EXAMPLES}")
        if all(quantiles):
            quantiles_asked = tuple(_quantile(text, domain, within) for text in texts)
            placed = not any(_conditions_placed(text, domain, within) for text in texts)
            found.append(QuantileQuestion(each.strip(), quantiles_asked, placed))
        else:
            found.append(_question(each.strip(), texts, domain, within))
    if len({each.name for each in found}) < len(found) or not found:
        raise FormatError("something must be asked for, each thing once.", hint=f"For example {EXAMPLES}")
    return found


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


def _cells(inner: str, domain: TableDomain, within: WithinBins) -> list[Question]:
    names = [part.strip().strip("'\"") for part in inner.split(",")]
    for name in names:
        if name not in domain.columns:
            raise FormatError(f"the release has no column {name!r}.", hint=f"Columns: {', '.join(domain.names)}")
    parts = [_conditions(quoted(name), domain.columns[name]) for name in names]
    texts = [f"P({', '.join(each)})" for each in itertools.product(*parts)]
    return [Question(text, (_ratio(text, domain, within),)) for text in texts]


def _question(name: str, texts: list[str], domain: TableDomain, within: WithinBins) -> Question:
    """A figure, or the difference of two, with its ends; a condition that cuts a bin in two leaves them unknown."""
    ratios = tuple(_ratio(text, domain, within) for text in texts)
    ends = [tuple(_ratio(text, domain, within, end) for end in ENDS) for text in texts]
    known = not any(_conditions_placed(text, domain, within) for text in texts)
    if not known or not any(least.offset != most.offset or np.any(least.above != most.above) for least, most in ends):
        return Question(name, ratios)
    (least, most), rest = ends[0], ends[1:]
    lowest = Question(f"{name}, least", (least, *(each[1] for each in rest)))
    return Question(name, ratios, (lowest, Question(f"{name}, most", (most, *(each[0] for each in rest)))))


def _conditions_placed(text: str, domain: TableDomain, within: WithinBins) -> bool:
    """Whether what a figure is conditional on depends on where in their bins the records lie."""
    given = _QUANTILE.match(text) or _GIVEN.match(text)
    if given is None or given["given"] is None:
        return False
    [event] = parse_functionals([f"P({given['given']})"])
    columns = {str(each.column): domain.columns[str(each.column)] for each in event.conditions}
    return bool(place_ends([event], domain=JointDomain(columns), within=within))


def _ratio(text: str, domain: TableDomain, within: WithinBins, end: End | None = None) -> Ratio:
    """One functional, with what it is conditional on."""
    given = _GIVEN.match(text)
    if given is None:
        [functional] = parse_functionals([text])
        return _weighted(replace(functional, end=end), domain, within)
    [event] = parse_functionals([f"P({given['given']})"])
    if given["word"] == "P":
        [both] = parse_functionals([f"P({given['inner']}, {given['given']})"])
        top, bottom = _weighted(replace(both, end=end), domain, within), _weighted(event, domain, within)
        places, (above, below) = _aligned([(top.places, top.above), (bottom.places, bottom.above)], domain)
        return Ratio(places, above, below)
    [mean] = parse_functionals([f"mean({given['inner']})"])
    top, condition = _weighted(replace(mean, end=end), domain, within), _weighted(event, domain, within)
    places, (above, below, where) = _aligned(
        [(top.places, top.above), (top.places, top.below), (condition.places, condition.above)], domain
    )
    return Ratio(places, above * where, below * where, top.offset)


def _quantile(text: str, domain: TableDomain, within: WithinBins) -> Quantile:
    """A quantile as shares at or below each value of the records that fulfil the condition and have a number."""
    match = _QUANTILE.match(text)
    assert match is not None
    [functional] = parse_functionals([f"{match['word']}({match['inner']})"])
    given = "" if match["given"] is None else f" | {match['given']}"
    mean = _ratio(f"mean({match['inner']}{given})", domain, within)  # refuses what has no numbers
    name = str(functional.column)
    column, place = domain.columns[name], domain.names.index(name)
    places = places_of(column, within=within)
    lows, highs = places.low[: column.n_values], places.high[: column.n_values]
    shape = [-1 if j == place else 1 for j in mean.places]
    shares = []
    for i in range(column.n_values - 1):
        inside = (np.arange(column.size) <= i).astype(np.float64).reshape(shape)
        shares.append(Question(f"{text.strip()}, value {i + 1}", (Ratio(mean.places, mean.below * inside, mean.below),)))
    return Quantile(functional.at, lows, highs, tuple(shares))


def _weighted(functional: Functional, domain: TableDomain, within: WithinBins) -> Ratio:
    named = [functional.column] if functional.column else [each.column for each in functional.conditions]
    if None in named or functional.kind not in ("mean", "cdf", "event"):
        raise FormatError(f"{functional.name!r} cannot be asked of a whole table.", hint=f"For example {EXAMPLES}")
    names = [name for name in domain.columns if name in named]
    for name in named:
        if name not in domain.columns:
            raise FormatError(f"the release has no column {name!r}.", hint=f"Columns: {', '.join(domain.names)}")
    _check_few(names, functional.name)
    part = JointDomain({name: domain.columns[name] for name in names})
    found = linear_weights(functional, domain=part, within=within)
    if found is None:
        raise FormatError(f"{functional.name!r} cannot be asked of a whole table.", hint=f"For example {EXAMPLES}")
    shape = [domain.columns[name].size for name in names]
    places = tuple(domain.names.index(name) for name in names)
    return Ratio(places, found.weights.reshape(shape, order="F"), found.present.reshape(shape, order="F"), found.offset)


def _check_few(names: list[str], text: str) -> None:
    if len(names) > LARGEST_SET:
        raise FormatError(f"{text!r} is about {len(names)} columns.", hint="Ask for three at most, or fit a regression")


def _aligned(arrays: list[tuple[Columns, Floats]], domain: TableDomain) -> tuple[Columns, list[Floats]]:
    """Functions of some columns as functions of all of them together."""
    places = tuple(sorted({j for own, _ in arrays for j in own}))
    _check_few([domain.names[j] for j in places], "what was asked for")
    full = [domain.sizes[j] for j in places]
    shaped = [array.reshape([domain.sizes[j] if j in own else 1 for j in places]) for own, array in arrays]
    return places, [np.broadcast_to(each, full) for each in shaped]
