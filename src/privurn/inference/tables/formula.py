"""Regressions over the columns of a table, as they are written: `response ~ term + term`.

A term is a column: its number where it has numbers, else one indicator for each of its values but the first; `column=VALUE` one
indicator; `a:b` the product of two columns of numbers or single indicators. The response of a linear or Poisson regression is a
column of numbers, that of a logistic one a column of two values (the second counts as 1) or `column=VALUE`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Categories, ColumnDomain, TableDomain, label_text
from privurn.errors import FormatError, ModelError
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
        left, tilde, right = self.formula.partition("~")
        if not tilde or not left.strip() or not right.strip():
            raise FormatError("a formula is a response, ~ and terms.", hint=EXAMPLE)
        response = _response(left.strip(), self.family, domain)
        effects = [Effect("intercept", ())]
        for term in right.split("+"):
            effects += _term(term.strip(), domain)
        names = [each.name for each in effects]
        if len(set(names)) < len(names):
            raise FormatError("a term stands in the formula twice.", hint=EXAMPLE)
        if any(place in {j for j, _ in response.factors} for each in effects for place, _ in each.factors):
            raise FormatError("the response stands among the terms as well.", hint=EXAMPLE)
        return Variables(self.family, response, tuple(effects))


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

    def at(self, effect: Effect, cells: NDArray[np.int64]) -> Floats:
        """An effect at joint cells of `places`, a row for each column; NaN where it is missing."""
        found = np.ones(cells.shape[1])
        for j, numbers in effect.factors:
            found = found * numbers[cells[self.places.index(j)]]
        return found


def _response(text: str, family: Family, domain: TableDomain) -> Effect:
    if family == "logistic" and "=" not in text:
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
    if len(effects) != 1 or (family != "logistic" and not is_numeric(_column(text, domain)[1])):
        raise ModelError(f"the response {text!r} is no column of numbers.", hint="Use a logistic regression for categories")
    if family == "poisson" and np.nanmin(effects[0].factors[0][1]) < 0.0:
        raise ModelError("the response of a Poisson regression must not be negative.", hint="Use a linear regression")
    return effects[0]


def _term(text: str, domain: TableDomain) -> list[Effect]:
    """One effect, or one for each value but the first."""
    if not text:
        raise FormatError("a formula has an empty term.", hint=EXAMPLE)
    if ":" in text:
        parts = [_term(part.strip(), domain) for part in text.split(":")]
        if any(len(part) != 1 for part in parts) or len({part[0].factors[0][0] for part in parts}) < len(parts):
            raise ModelError(
                f"the product {text!r} must be of different columns, each a number or one value.", hint="age:sex=f"
            )
        return [Effect(text, tuple(factor for part in parts for factor in part[0].factors))]
    name, equals, label = (part.strip().strip("'\"") for part in text.partition("="))
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
