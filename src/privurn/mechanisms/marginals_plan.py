"""What noise does to marginals, before any data are touched: which columns are too fine, and what coarser ones would buy."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from privurn.domain import TableDomain
from privurn.domain.coarser import coarser, typed
from privurn.errors import PrivurnError
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.recipe import Public
from privurn.mechanisms.registry import default_recipe

FINE = 0.1
"""Mean total variation of a column's pairs, by noise alone, from which on the column is called too fine."""

FEW_CELLS = 10
"""A column of no more is never called too fine: its partners are."""

WANTED = 0.05
"""What a coarser column is to reach."""


def planned_words(public: Public) -> tuple[str, ...]:
    """For a plan of columns side by side."""
    recipe: Any = default_recipe("table")()
    table, n = public.table, public.about_n
    if table is None:
        return ()
    try:
        made = recipe.calibrate(public)
    except PrivurnError as error:
        return (f"Side by side: {error.message} {error.hint or ''}".strip(),)
    errors: dict[Columns, float] = made.expected_errors(n)
    worst = max(errors, key=lambda each: errors[each])
    named = " and ".join(repr(table.names[j]) for j in worst)
    mean = float(np.mean(list(errors.values())))
    words = [
        f"Side by side ({made.name}): noise alone puts a marginal of {len(worst)} columns {mean:.2g} off in total variation on "
        f"average, {errors[worst]:.2g} at worst ({named}); the fitted model usually comes nearer."
    ]
    fine = _too_fine(made.sizes, errors)
    if fine:
        words.append(_bought(recipe, public, table, made.sizes, errors, fine))
    return tuple(words)


def _too_fine(sizes: tuple[int, ...], errors: dict[Columns, float]) -> dict[int, float]:
    """Columns whose marginals are lost in noise, with the mean error of those; the finest of the table first."""
    found = {}
    for j in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        own = [error for each, error in errors.items() if j in each]
        if own and float(np.mean(own)) > FINE and sizes[j] > FEW_CELLS:
            found[j] = float(np.mean(own))
    return found


def _bought(
    recipe: Any,
    public: Public,
    table: TableDomain,
    sizes: tuple[int, ...],
    errors: dict[Columns, float],
    fine: dict[int, float],
) -> str:
    """What the error would be with coarser columns: calibrated again, not guessed."""
    columns, typed_ones = dict(table.columns), []
    for j, error in fine.items():
        name = table.names[j]
        special = table.sizes[j] - table.columns[name].n_values
        found = coarser(table.columns[name], math.floor((sizes[j] - special) * WANTED / error))
        if found is not None and found.size < sizes[j]:
            columns[name] = found
            typed_ones.append(f"{name!r} as {typed(found)}")
    listed = ", ".join(f"{table.names[j]!r} ({sizes[j]} {'cells' if sizes[j] == table.sizes[j] else 'ranges'})" for j in fine)
    if not typed_ones:
        return f"Too fine for so many records: {listed}. Group rare categories, or leave columns out."
    coarse = TableDomain(columns)
    again = replace(public, cells=coarse.size, table=coarse)
    less = recipe.calibrate(again).expected_errors(public.about_n)
    before, after = (float(np.mean(list(each.values()))) for each in (errors, less))
    return (
        f"Too fine for so many records: {listed}. With {', '.join(typed_ones)} the mean is {after:.2g} in place of "
        f"{before:.2g}."
    )
