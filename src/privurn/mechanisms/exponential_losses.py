"""Losses of the exponential mechanism between a confidential and a released histogram, and how much a record can move them.

Symbols: x counts of n confidential records on z cells, s of m released ones; p = x/n, q = s/m; P, Q their running totals.

    l1                  sum |p - q|                            range 4/n
    l2                  sqrt(sum (p - q)^2)                    range sqrt(8)/n
    l2-squared          sum (p - q)^2                          range 4/n
    hellinger           sqrt(sum (sqrt p - sqrt q)^2 / 2)      range 2/sqrt(n)          (two cells: less)
    hellinger-squared   sum (sqrt p - sqrt q)^2 / 2            range 2/sqrt(n)          (two cells: less)
    w1                  sum gap_j |P_j - Q_j|                  range 2 (sum of the gaps)/n

The range is the largest value of max_s D(s) - min_s D(s) over neighbours x, x', where D(s) = loss(x, s) - loss(x', s): at most
twice the sensitivity max |D|, and for squared losses about half of that. Proof: docs/proofs/exponential.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Clamped, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, Underflow
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LossName = Literal["l1", "l2", "l2-squared", "hellinger", "hellinger-squared", "w1"]
Route = Literal["cells", "totals", "candidates"]

DIGITS = 50
CONTEXT = Context(
    prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, DivisionByZero, Overflow, Underflow, Clamped]
)
"""Every weight is a positive decimal of fifty digits: no sum or product of them loses relative accuracy, none underflows."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """How a loss is put together from one term for each cell (or running total) and number s of records there.

    `route`   "cells": the sum of the cells' terms; "totals": the sum of the running totals' terms, each times its gap;
              "candidates": the root of the sum of the cells' terms, which does not factorise.
    `term`    (x, n, m, s) -> term, in exact integers or decimals; `float_term` the same for arrays of floats.
    `spread`  (n, m, z, sum of gaps) -> the range above, in the unit of the terms.
    """

    route: Route
    term: Callable[[int, int, int, int], Decimal]
    float_term: Callable[[NDArray[Any], int, int, NDArray[Any]], NDArray[np.float64]]
    spread: Callable[[int, int, int, int], Decimal]
    linear: bool = False


def _distance(x: int, n: int, m: int, s: int) -> Decimal:
    return Decimal(abs(m * x - n * s))


def _square(x: int, n: int, m: int, s: int) -> Decimal:
    return Decimal((m * x - n * s) ** 2)


def _root_square(x: int, n: int, m: int, s: int) -> Decimal:
    return ((Decimal(x) / n).sqrt() - (Decimal(s) / m).sqrt()) ** 2 / 2


def _float_distance(x: NDArray[Any], n: int, m: int, s: NDArray[Any]) -> NDArray[np.float64]:
    return np.abs(float(m) * x - float(n) * s)


def _float_square(x: NDArray[Any], n: int, m: int, s: NDArray[Any]) -> NDArray[np.float64]:
    return (float(m) * x - float(n) * s) ** 2


def _float_root_square(x: NDArray[Any], n: int, m: int, s: NDArray[Any]) -> NDArray[np.float64]:
    return 0.5 * (np.sqrt(x / n) - np.sqrt(s / m)) ** 2


def _root_gap(n: int) -> Decimal:
    """sqrt(n) - sqrt(n - 1): what the fuller of two cells still moves; a third cell lets both be as empty as can be."""
    return 1 / (Decimal(n).sqrt() + Decimal(n - 1).sqrt())


def _hellinger_spread(n: int, m: int, z: int, gaps: int) -> Decimal:
    other = Decimal(1) if z > 2 else _root_gap(n)
    return 2 * ((1 + other * other) / (2 * n)).sqrt()


def _hellinger_squared_spread(n: int, m: int, z: int, gaps: int) -> Decimal:
    other = Decimal(1) if z > 2 else _root_gap(n)
    return (1 + other) / Decimal(n).sqrt()


_HELLINGER: dict[str, Any] = {"term": _root_square, "float_term": _float_root_square}
_SQUARE: dict[str, Any] = {"term": _square, "float_term": _float_square}
_DISTANCE: dict[str, Any] = {"term": _distance, "float_term": _float_distance, "linear": True}

LOSSES: Mapping[LossName, Loss] = {
    "l1": Loss(route="cells", spread=lambda n, m, z, gaps: Decimal(4 * m), **_DISTANCE),
    "l2": Loss(route="candidates", spread=lambda n, m, z, gaps: Decimal(8 * m * m).sqrt(), **_SQUARE),
    "l2-squared": Loss(route="cells", spread=lambda n, m, z, gaps: Decimal(4 * n * m * m), **_SQUARE),
    "hellinger": Loss(route="candidates", spread=_hellinger_spread, **_HELLINGER),
    "hellinger-squared": Loss(route="cells", spread=_hellinger_squared_spread, **_HELLINGER),
    "w1": Loss(route="totals", spread=lambda n, m, z, gaps: Decimal(2 * m * gaps), **_DISTANCE),
}


def term_weights(loss: Loss, x: int, *, n: int, m: int, rate: Decimal) -> list[Decimal]:
    """e^(-rate term) for s = 0..m, inside CONTEXT."""
    if not loss.linear:
        return [(-rate * loss.term(x, n, m, s)).exp() for s in range(m + 1)]
    # The term is linear in s on both sides of its zero: two geometric series, one multiplication for each entry.
    ratio = (-rate * n).exp()
    middle = kink(x, n=n, m=m)
    falling, rising = [(-rate * loss.term(x, n, m, middle)).exp()], []
    for _ in range(middle):
        falling.append(falling[-1] * ratio)
    if middle < m:
        rising = [(-rate * loss.term(x, n, m, middle + 1)).exp()]
        for _ in range(m - middle - 1):
            rising.append(rising[-1] * ratio)
    return falling[::-1] + rising


def kink(x: int, *, n: int, m: int) -> int:
    """Largest s with s/m <= x/n: where a linear term turns."""
    return m * x // n
