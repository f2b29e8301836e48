"""Expected errors of every row of a plan: tables drawn from a prior once, and each row's mechanism simulated on all of them."""

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.errors import PrivurnError
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.forecast import MOST_CELLS, SEED, Expected, OrderedCells, expected_errors, unordered_tables
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.noisy_tree_recipe import trimmed
from privurn.mechanisms.recipe import Option, Public
from privurn.releases.synthetic import simulated_records

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

RUNS, FEWEST_RUNS = 64, 12
"""Tables; the fewest are for mechanisms on very many cells. The error of a mean varies by 90% of what it is about."""
FEW_CELLS, MORE_RUNS = 64, 4
"""Fewer cells than these have more tables, up to so many times: all their records may be on one side or on the other."""
MOST_TREE_CELLS = 1024
"""A posterior over more takes too long: neighbours are taken together."""
MANY_CELLS = 4096
"""Other mechanisms are simulated on fewer tables where there are more."""
DETAIL = 0.5
"""Of a posterior's lattices: a quarter of the work, and the same errors to a few per cent."""


class Forecasts:
    """Those of one plan."""

    def __init__(self, public: Public) -> None:
        self.public, self.known = public, list[tuple[Mechanism, Expected | None]]()
        found = None if public.domain is None else tree_shape(public.domain)
        self.order = None if found is None or max(found[0]) < 2 else OrderedCells(*found)

    def of(self, mechanism: Mechanism | None) -> Expected | None:
        """What a row's records would be off; None where nothing is simulated, or where it would take too long."""
        if mechanism is None or self.public.cells is None or not mechanism.forecast:
            return None
        for other, found in self.known:
            if type(other) is type(mechanism) and other == mechanism:
                return found
        self.known.append((mechanism, self._simulated(mechanism)))
        return self.known[-1][1]

    def _simulated(self, mechanism: Mechanism) -> Expected | None:
        if mechanism.measures:
            return self._of_tree(mechanism) if mechanism.inferred_from == "tree" else None
        if self.public.known_cells > MOST_CELLS:
            return None
        try:
            return expected_errors(
                lambda counts, rng: mechanism.simulated_weights(counts, rng=rng), self._tables, order=self.order
            )
        except PrivurnError:  # a mechanism of one's own, whose outputs are no weights of cells
            return None

    def told(self, row: Option) -> Option:
        """A row of a plan with its expected errors, and a remark that says why there are none, or not all of them."""
        expected = self.of(row.made)
        missing = _missing(expected) if expected is not None else [f"no errors: {why}"] if (why := self._why_none(row)) else []
        return replace(row, expected=expected, remark="; ".join([row.remark, *missing]))

    def _why_none(self, row: Option) -> str | None:
        """In words; None where the row publishes nothing, or tells its errors itself."""
        if row.records == 0 or (row.made is not None and row.made.measures and row.made.inferred_from != "tree"):
            return None
        if row.made is None or self.public.cells is None:
            return "which values there are is not public"
        if not row.made.forecast:
            return "to simulate it takes too long"
        if row.made.measures and self.order is None:
            return "in which order the cells stand is not said"
        return "the cells are too many" if self.public.cells > MOST_CELLS else "it draws values of its own"

    def _of_tree(self, mechanism: Any) -> Expected | None:
        """Of records made from measurements of a tree, with few enough cells."""
        if self.order is None:
            return None
        made = trimmed(mechanism, MOST_TREE_CELLS)
        return expected_errors(
            lambda counts, rng: simulated_records(made, counts, rng=rng, detail=DETAIL),
            polya_tables(n=self.public.about_n, shape=made.shape, runs=_runs(prod(made.shape))),
            order=OrderedCells(made.shape, made.special),
        )

    @cached_property
    def _tables(self) -> list[Whole]:
        n = self.public.about_n
        if self.order is None:
            return unordered_tables(n=n, cells=self.public.known_cells)
        runs = _runs(prod(self.order.shape))
        return [self.order.placed(each) for each in polya_tables(n=n, shape=self.order.shape, runs=runs)]


def _runs(cells: int) -> int:
    """How many tables are simulated over so many ordered cells."""
    if cells < FEW_CELLS:
        return RUNS * min(MORE_RUNS, FEW_CELLS // cells)
    return max(FEWEST_RUNS, min(RUNS, RUNS * MANY_CELLS // cells))


def _missing(expected: Expected) -> list[str]:
    """Why not all figures are there."""
    found = [] if expected.total_variation is None else ["no mean: the cells are in no order"]
    return found + (["no 1% share: no range holds about so much"] if expected.share_error is None else [])


def polya_tables(*, n: int, shape: tuple[int, ...], runs: int) -> list[Whole]:
    """Counts of n records whose shares are drawn from the Polya tree's prior, the one that the posterior starts from."""
    splits = Splits(CellTree(shape))
    return [
        rng.multinomial(n, polya_shares(splits, rng=rng)) for rng in (np.random.default_rng([SEED, run]) for run in range(runs))
    ]


def polya_shares(splits: Splits, *, rng: np.random.Generator) -> Floats:
    """Shares of the cells, by number: weights of the concentrations for each depth, a concentration and a share a split."""
    mass, kinds = np.ones(1), np.array(CONCENTRATIONS)
    for depth in range(splits.depth):
        weights = rng.dirichlet(splits.hyper[depth])
        two, base = splits.two[depth], splits.shares[depth]
        concentration = rng.choice(kinds, size=len(base), p=weights)
        left = base.copy()
        drawn = two & np.isfinite(concentration)
        left[drawn] = _beta(concentration[drawn] * base[drawn], concentration[drawn] * (1.0 - base[drawn]), rng)
        below, first = np.empty(splits.tree.nodes(depth + 1)), splits.children[depth]
        below[first] = mass * left
        below[first[two] + 1] = (mass * (1.0 - left))[two]
        mass = below
    out = np.empty(splits.tree.cells)
    out[splits.tree.order] = mass
    return np.asarray(out / out.sum(), np.float64)


def _beta(a: Floats, b: Floats, rng: np.random.Generator) -> Floats:
    """Beta draws that stay right where a and b are tiny: gammas on a scale of logarithms."""
    x, y = (np.log(rng.standard_gamma(each + 1.0)) + np.log1p(-rng.random(each.shape)) / each for each in (a, b))
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(y - x, -700.0, 700.0))), np.float64)
