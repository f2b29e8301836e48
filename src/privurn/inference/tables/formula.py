"""Regressions over the columns of a table, as they are written: `response ~ term + term`.

A term is a column: its number where it has numbers, else one indicator for each of its values but the first; `column=VALUE` one
indicator; `a:b` every product of what stands for the one with what stands for the other, and `a*b` is `a + b + a:b`. Names and
values stand in quotes where they hold one of ~ + * : =. The response of a linear or Poisson regression is a column of numbers,
that of a logistic one a column of two values (the second counts as 1) or `column=VALUE`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Categories, ColumnDomain, TableDomain, label_text
from privurn.errors import FormatError, ModelError
from privurn.inference.tables.fine import Ranges
from privurn.inference.tables.regression import Family
from privurn.mechanisms.marginal_counts import Columns
from privurn.tables.cells import cell_values, is_numeric

Floats = NDArray[np.float64]

EXAMPLE = "For example 'income ~ age + education + sex'"


@dataclass(frozen=True)
class TableRegression:
    """A regression of a response on terms; see the module for the formula."""

    formula: str
    family: ClassVar[Family]

    def variables(self, domain: TableDomain) -> "Variables":
        """Response and design over the columns of a table."""
        sides = _split(self.formula, "~")
        if len(sides) != 2 or not all(sides):
            raise FormatError("a formula is a response, ~ and terms.", hint=EXAMPLE)
        response = _response(sides[0], self.family, domain)
        written = _split(sides[1], "+")
        if len(set(written)) < len(written):
            raise FormatError("a term stands in the formula twice.", hint=EXAMPLE)
        effects = {frozenset[str](): [Effect("intercept", ())]}
        for parts in (each for term in written for each in _products(term)):
            effects.setdefault(frozenset(parts), _product(parts, domain))
        every = [each for group in effects.values() for each in group]
        if len({each.name for each in every}) < len(every):
            raise FormatError("a term stands in the formula twice.", hint=EXAMPLE)
        if any(place in {j for j, _ in response.factors} for each in every for place, _ in each.factors):
            raise FormatError("the response stands among the terms as well.", hint=EXAMPLE)
        return Variables(self.family, response, tuple(every))


class LinearRegression(TableRegression):
    """Least squares."""

    family: ClassVar[Family] = "linear"


class LogisticRegression(TableRegression):
    """Of a response with two values."""

    family: ClassVar[Family] = "logistic"


class PoissonRegression(TableRegression):
    """Of a count, with a logarithmic link."""

    family: ClassVar[Family] = "poisson"


FAMILIES: dict[str, type[TableRegression]] = {
    "linear": LinearRegression,
    "logistic": LogisticRegression,
    "poisson": PoissonRegression,
}


def regression_from_text(text: str) -> TableRegression:
    """From `family: formula`.

    >>> regression_from_text("logistic: income ~ age + sex").formula
    'income ~ age + sex'
    """
    family, colon, formula = text.partition(":")
    if not colon or family.strip() not in FAMILIES:
        raise FormatError(
            f"the regression {text!r} is not understood.",
            hint="For example 'logistic: income ~ age + education + sex'; also linear and poisson",
        )
    return FAMILIES[family.strip()](formula.strip())


@dataclass(frozen=True, eq=False)
class Effect:
    """A product of numbers that depend on one column each (no factor: 1); NaN where a record has no such number."""

    name: str
    factors: tuple[tuple[int, Floats], ...]


@dataclass(frozen=True, eq=False)
class Variables:
    """Response and effects, each a product of functions of single columns."""

    family: Family
    response: Effect
    effects: tuple[Effect, ...]

    @property
    def places(self) -> Columns:
        """Columns that are used, ascending."""
        return tuple(sorted({j for each in (self.response, *self.effects) for j, _ in each.factors}))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return tuple(each.name for each in self.effects)

    def ranged(self, ranges: Mapping[int, Ranges]) -> "Variables":
        """With the means of ranges in place of the values of fine columns."""

        def of(effect: Effect) -> Effect:
            factors = tuple((j, ranges[j].means(numbers) if j in ranges else numbers) for j, numbers in effect.factors)
            return Effect(effect.name, factors)

        return Variables(self.family, of(self.response), tuple(map(of, self.effects)))

    def at(self, effect: Effect, cells: NDArray[np.int64]) -> Floats:
        """An effect at joint cells of `places`, a row for each column; NaN where it is missing."""
        found = np.ones(cells.shape[1])
        for j, numbers in effect.factors:
            found = found * numbers[cells[self.places.index(j)]]
        return found


def _response(text: str, family: Family, domain: TableDomain) -> Effect:
    name, *value = _split(text, "=")
    if family == "logistic" and not value:
        text = _bare(name)
        place, column = _column(text, domain)
        listed = column.values if isinstance(column, Categories) else ()
        numbers = None if isinstance(column, Categories) else cell_values(column)
        if len(listed) == 2:
            return Effect(f"{text}={label_text(listed[1])}", ((place, _indicator(column.size, 1, missing=column.null_cell)),))
        if numbers is not None and set(numbers[~np.isnan(numbers)].tolist()) == {0.0, 1.0}:
            return Effect(text, ((place, numbers),))
        raise ModelError(
            f"the response {text!r} of a logistic regression does not have two values.", hint=f"Name one: '{text}=VALUE ~ ...'"
        )
    effects = _term(text, domain)
    if len(effects) != 1 or (family != "logistic" and not is_numeric(_column(_bare(name), domain)[1])):
        raise ModelError(f"the response {text!r} is no column of numbers.", hint="Use a logistic regression for categories")
    if family == "poisson" and np.nanmin(effects[0].factors[0][1]) < 0.0:
        raise ModelError("the response of a Poisson regression must not be negative.", hint="Use a linear regression")
    return effects[0]


def _products(term: str) -> Iterator[tuple[str, ...]]:
    """What a term with `*` stands for: each of its parts, then their products."""
    crossed = _split(term, "*")
    for size in range(1, len(crossed) + 1):
        for chosen in combinations(crossed, size):
            yield tuple(part for each in chosen for part in _split(each, ":"))


def _product(parts: tuple[str, ...], domain: TableDomain) -> list[Effect]:
    """Every product of one effect of each part."""
    groups = [_term(part, domain) for part in parts]
    if len({group[0].factors[0][0] for group in groups}) < len(groups):
        raise ModelError(f"the product {':'.join(parts)!r} must be of different columns.", hint="For example 'age:sex'")
    return [
        Effect(":".join(each.name for each in chosen), tuple(factor for each in chosen for factor in each.factors))
        for chosen in product(*groups)
    ]


def _term(text: str, domain: TableDomain) -> list[Effect]:
    """One effect, or one for each value but the first."""
    if not text:
        raise FormatError("a formula has an empty term.", hint=EXAMPLE)
    name, *value = (_bare(part) for part in _split(text, "="))
    if len(value) > 1:
        raise FormatError(f"the term {text!r} has more than one equals sign.", hint="Put a value in quotes: \"size='a=b'\"")
    equals, label = bool(value), "".join(value)
    place, column = _column(name, domain)
    if not equals and is_numeric(column):
        return [Effect(name, ((place, cell_values(column)),))]
    if not isinstance(column, Categories):
        raise ModelError(f"column {name!r} holds numbers and has no single values.", hint=f"Use {name!r} as it is")
    labels = [label_text(value) for value in column.values] + (["other"] if column.other_cell is not None else [])
    if equals:
        if label not in labels:
            raise FormatError(f"column {name!r} has no value {label!r}.", hint=f"It holds {', '.join(labels[:8])}")
        return [Effect(f"{name}={label}", ((place, _indicator(column.size, labels.index(label), missing=column.null_cell)),))]
    return [
        Effect(f"{name}={each}", ((place, _indicator(column.size, i, missing=column.null_cell)),))
        for i, each in enumerate(labels)
        if i > 0
    ]


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that stand outside quotes.

    >>> _split("income='a+b' + age", "+")
    ["income='a+b'", 'age']
    """
    pieces = re.findall(rf"""'[^']*'|"[^"]*"|{re.escape(mark)}|.""", text, flags=re.DOTALL)
    ends = [at for at, piece in enumerate(pieces) if piece == mark]
    return ["".join(pieces[a + 1 : b]).strip() for a, b in zip([-1, *ends], [*ends, len(pieces)], strict=True)]


def _bare(text: str) -> str:
    """Without quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _column(name: str, domain: TableDomain) -> tuple[int, ColumnDomain]:
    if name not in domain.columns:
        raise FormatError(f"the release has no column {name!r}.", hint=f"Columns: {', '.join(domain.names)}")
    return domain.names.index(name), domain.columns[name]


def _indicator(size: int, place: int, *, missing: int | None) -> Floats:
    found = np.zeros(size)
    found[place] = 1.0
    if missing is not None:
        found[missing] = np.nan
    return found
