"""Independent draws of the confidential counts and of the population given a noisy tree: fast, and approximate.

Counts are drawn from the root down by the messages of `approximation`. Approximate are the lattices (counts of wide ranges are
multiples of a spacing that is small beside what is unknown of them), and that the concentrations' weights are the learnt ones,
not drawn. The exact chain is in `chain`; docs/explanation/polya-trees.md says where the two were compared.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privurn.inference.size import SizePrior
from privurn.inference.trees.approximation import Propagation, special_laws
from privurn.inference.trees.base import splits_of
from privurn.mechanisms.tree_measurements import TreeMeasurements

Floats = NDArray[np.float64]

AT_ONCE = 20_000_000
"""Numbers held at a time, about: cells times draws."""


@dataclass(frozen=True, eq=False)
class TreeDraws:
    """Draws, one column each: counts of the cells by number and then of the special ones, and the population's masses alike.

    Masses of the special cells stand beside those of the tree, which sum to the tree's share.
    """

    counts: Floats
    masses: Floats


def drawn_nodes(
    work: Propagation, weights: Floats, last: int, *, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draws, one column each: counts of the root, counts of a depth's nodes, and the nodes' shares of the tree's population.

    Lattices of different depths blur the sum of two children; both are scaled to what their parent was drawn to have, else the
    blur of thousands of nodes would add up in the count of a wide range. Tables of splits above `last` hold each component.
    """
    from privurn._kernels.trees.sampling import update_draws, update_root

    drawn, p = np.empty((1, draws), np.int64), np.ones((1, draws))
    update_root(drawn, work.levels[0], work.messages[0], work.root_law(), rng)
    roots = counts = np.asarray(drawn * float(work.levels[0].spacing), np.float64)
    for depth in range(last):
        level, below = work.levels[depth], work.levels[depth + 1]
        drawn_below, p_below = np.empty((len(below.nodes), draws), np.int64), np.empty((len(below.nodes), draws))
        given = work.messages[depth + 1], work.concentrations, weights[depth], work.tables[depth]
        update_draws(drawn_below, p_below, drawn, p, level, below, *given, rng)
        drawn, p = drawn_below, p_below
        sums = np.add.reduceat(drawn, level.nodes["child"], axis=0) * float(below.spacing)
        scale = np.divide(counts, sums, out=np.zeros(sums.shape), where=sums > 0.0)
        counts = np.asarray(drawn * float(below.spacing) * np.repeat(scale, 1 + level.nodes["two"], axis=0), np.float64)
    return roots[0], counts, p


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """The fitted tree, ready to be drawn from; a base measure that is not given is learnt."""

    measured: TreeMeasurements
    base: Floats | None = None
    size: SizePrior | None = None

    @cached_property
    def _fitted(self) -> tuple[Propagation, Floats]:
        work = Propagation(self.measured, splits_of(self.measured, self.base), size=self.size)
        weights = work.fitted()
        work.tabulate(weights, each=True)
        return work, weights

    @cached_property
    def _versions(self) -> "tuple[IndependentDraws, ...]":
        return tuple(replace(self, measured=each) for each in self.measured.versions)

    def batches(self, draws: int, *, rng: np.random.Generator) -> Iterator[TreeDraws]:
        """As many draws, in batches that fit into memory."""
        most = max(1, AT_ONCE // (4 * self.measured.tree.cells))
        while draws > 0:
            yield self.draw(min(draws, most), rng=rng)
            draws -= most

    def draw(self, draws: int, *, rng: np.random.Generator) -> TreeDraws:
        """Counts and the population's masses; of each version of what was measured by turns."""
        if len(self.measured.laws) > 1:
            turns = rng.permutation(draws) % len(self._versions)
            parts = [each.draw(int((turns == i).sum()), rng=rng) for i, each in enumerate(self._versions)]
            places = np.argsort(np.argsort(turns, kind="stable"))
            return TreeDraws(*(np.concatenate(each, axis=1)[:, places] for each in zip(*map(astuple, parts), strict=True)))
        work, weights = self._fitted
        roots, nodes, p = drawn_nodes(work, weights, work.last, draws=draws, rng=rng)
        counts = self._cells(nodes)
        total = self.measured.total
        if total is not None and not self.measured.special:
            counts *= total / np.maximum(counts.sum(axis=0), 1e-300)
        if not self.measured.special:
            return TreeDraws(counts, self._cells(p))
        special = self._special(roots, rng=rng)
        inside = rng.standard_gamma(counts.sum(axis=0) + 1.0)
        beside = rng.standard_gamma(special + 1.0)
        whole = inside + beside.sum(axis=0)
        return TreeDraws(np.vstack([counts, special]), np.vstack([self._cells(p) * (inside / whole), beside / whole]))

    def _cells(self, nodes: Floats) -> Floats:
        """Numbers of the deepest measured nodes shared out to the cells, by number."""
        work = self._fitted[0]
        splits, depth = work.splits, work.last
        if depth < splits.depth:
            sizes = np.diff(np.append(splits.tree.starts[depth], splits.tree.cells))
            share = splits.masses[-1] / np.repeat(splits.masses[depth], sizes)
            nodes = np.repeat(nodes, sizes, axis=0) * share[:, None]
        out = np.empty(nodes.shape)
        out[splits.tree.order] = nodes
        return out

    def _special(self, roots: Floats, *, rng: np.random.Generator) -> Floats:
        """Counts of the special cells from their own measurements; moved by the same number each where the sum is public."""
        found = np.empty((len(self.measured.special), len(roots)))
        for k, (counts, masses) in enumerate(special_laws(self.measured)):
            mass = np.cumsum(masses)
            found[k] = counts[np.minimum(np.searchsorted(mass, rng.random(len(roots)) * mass[-1]), len(counts) - 1)]
        if self.measured.total is None:
            return found
        rest = np.maximum(self.measured.total - roots, 0.0)
        whole = found.sum(axis=0)
        return np.where(whole > 0.0, found * (rest / np.maximum(whole, 1e-300)), rest / len(found))
