"""What is reported of a table where nothing is asked for, and all of its cells where they are."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from privurn.domain import Bins, Categories, ColumnDomain, Dates, JointDomain, label_text
from privurn.errors import FormatError
from privurn.inference.counts import open_labels
from privurn.inference.counts.functionals import Functional, parse_functionals
from privurn.inference.counts.plans import two_by_two
from privurn.inference.counts.released import Observed
from privurn.tables.cells import cell_values, is_numeric

MOST_LABELS = 20
"""Categories of a column whose shares are reported where nothing is asked for."""

CELLS = "cells"
"""Stands for the share of each cell of the table."""

MOST_SHARES = 10_000


def functionals_of(release: Observed, ask: Any) -> tuple[Functional, ...]:
    """What was asked for, or what suits the domain."""
    if ask is None:
        return parse_functionals(default_functionals(release))
    listed = [ask] if isinstance(ask, str) else ask
    if isinstance(listed, Mapping) or not isinstance(listed, Iterable):
        return parse_functionals(listed)
    named: list[Any] = []
    for each in listed:
        named += _cells(release.domain) if isinstance(each, str) and each.strip() == CELLS else [each]
    return parse_functionals(named)


def default_functionals(release: Observed) -> list[str]:
    """Mean, deviation and quartiles of numbers; shares of categories; odds of a two by two table; shares of open labels."""
    domain = release.domain
    if domain is None:
        return open_labels.default_functionals(release)
    found = [each for name in domain.columns for each in _column_functionals(domain, name)]
    odds = two_by_two(domain) and not any(is_numeric(each) for each in domain.columns.values())
    return [*found, "log_odds_ratio"] if odds else found


def _column_functionals(domain: JointDomain, name: str) -> list[str]:
    column = domain.columns[name]
    alone = len(domain.columns) == 1
    quoted = open_labels.quoted(name)
    if is_numeric(column):
        words = ("mean", "sd", "q0.25", "q0.5", "q0.75")
        return [word if alone else f"{word}({quoted})" for word in words]
    labels = [label_text(value) for value in column.values] if isinstance(column, Categories) else []
    return [f"P({quoted}={open_labels.quoted(label)})" for label in labels[:MOST_LABELS]]


def _cells(domain: JointDomain | None) -> list[str]:
    """The share of every joint cell, the first column's values varying fastest."""
    if domain is None or domain.size > MOST_SHARES:
        raise FormatError(
            f"shares of all cells are for a public domain of at most {MOST_SHARES:,} cells.", hint="For example P(x=LABEL)"
        )
    found = [""]
    for name, column in domain.columns.items():
        own = _conditions(open_labels.quoted(name) if len(domain.columns) > 1 else "x", column)
        found = [f"{first}, {second}" if first else second for second in own for first in found]
    return [f"P({each})" for each in found]


def _conditions(name: str, column: ColumnDomain) -> list[str]:
    """Which records each cell of a column holds."""
    if isinstance(column, Categories):
        own = [f"{name}={open_labels.quoted(label_text(value))}" for value in column.values]
    elif isinstance(column, Dates):
        own = [f"{name}='{column.label(cell)}'" for cell in range(column.n_values)]
    elif isinstance(column, Bins):
        edges = [_number(edge) for edge in column.edges]
        own = [f"{low}<={name}<{high}" for low, high in pairwise(edges)]
    else:
        own = [f"{name}={_number(value)}" for value in cell_values(column)[: column.n_values]]
    own += [f"{name}=other"] if column.other_cell is not None else []
    return own + ([f"{name}=missing"] if column.null_cell is not None else [])


def _number(value: Any) -> str:
    """Short text that is read as the same 64-bit number."""
    return repr(float(value)).removesuffix(".0")
