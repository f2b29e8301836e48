"""The noisy tree: counts of all nodes of chosen depths of a tree over ordered cells, with noise.

Cells that stand in no order (null, other) are measured beside the tree. The noise is OpenDP's: exact samplers on integers, from
a generator that the operating system seeds; that of some depths may be tied to that of the depth above (`privacy.tied_noise`),
else all is independent. Proof: docs/proofs/noisy-trees.md. Which depths, and how much noise: tree_layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.domain import Bins, Dates, Grid, JointDomain
from privurn.errors import ModelError
from privurn.mechanisms.likelihood import Kind, Numbers
from privurn.mechanisms.mechanism import PER_CALL, PER_NOISE, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.published import Content, stated_joint
from privurn.mechanisms.tree_content import TreeContent
from privurn.mechanisms.tree_measurements import Groups, TreeMeasurements, tied_groups
from privurn.privacy.additive_noise import check_scale, noise_deviation, noisy_integers, simulated_noise
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.noisy_tree import KINDS, NoisyTreeProfile, TreeNoise
from privurn.privacy.profile import Guarantee
from privurn.privacy.tied_noise import check_tied, kept_share, tied_noise

MOST_CELLS = 5_000_000
"""Every node gets noise, the empty ones too, at some microseconds each."""

BESIDE = -1
"""Stands for the depth of the special cells, which have no place in the tree."""


@dataclass(frozen=True, eq=False)
class TreeCounts:
    """A whole number for each node of the measured depths, `levels[i]` for the i-th of them, and one for each special cell."""

    levels: tuple[NDArray[np.int64], ...]
    special: NDArray[np.int64]


def tree_shape(domain: JointDomain) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Values in order and special cells of each column; None where some column has no order, or there are more than two."""
    columns = tuple(domain.columns.values())
    if len(columns) > 2 or not all(isinstance(each, (Grid, Bins, Dates)) for each in columns):
        return None
    return tuple(each.n_values for each in columns), tuple(each.size - each.n_values for each in columns)


class DrawnTree(Drawn):
    """Measured nodes as a table: each with its first cell, its depth, its number at that depth, and its noisy count.

    The special cells follow, at depth -1, numbered as they stand in the domain.
    """

    def __init__(self, tree: "PerturbedTree", counts: TreeCounts) -> None:
        self.tree, self.counts = tree, counts
        numbers = (*counts.levels, counts.special)
        starts = [tree.tree_cells[tree.tree.order[tree.tree.starts[depth]]] for depth in tree.depths]
        super().__init__(np.concatenate([*starts, tree.special_cells]), weights=np.concatenate(numbers), weight_name="count")
        self.depth = np.repeat(np.array([*tree.depths, BESIDE]), [len(each) for each in numbers])
        self.node = np.concatenate([np.arange(len(each)) for each in numbers])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Depth, node and count."""
        return {"depth": self.depth, "node": self.node, **super().columns()}


@dataclass(frozen=True, kw_only=True)
class PerturbedTree(Mechanism):
    """Counts of the nodes of the measured `depths` of a tree over ordered cells, with `noise`; n = None: secret.

    `shape`: how many ordered values each column has (one column, or two); `special`: how many cells beside them, "other" and
    null. Cells are numbered as in a joint domain of those columns, in each of which the special cells come last. A cell that
    is special in any column is a special cell here.

    `noise`: "discrete-laplace", P(j) proportional to e^(-|j|/scale), or "discrete-gaussian", P(j) proportional to
    e^(-j^2/(2 scale^2)), with one of `scales` for each depth and `special_scale` for the special cells. The depths rise. The
    root (depth 0) may be measured only where n is secret: else it is n less the special cells.

    All noise is independent, but at the `tied` depths, where nodes' Laplace noise sums to that of the measured node above them,
    or to zero at the first depth (n public, no special cells).

    >>> mechanism = PerturbedTree(n=100, shape=(4,), depths=(1, 2), scales=(4.0, 4.0), noise="discrete-laplace")
    >>> mechanism.rows, mechanism.profile.pure_epsilon
    (6, 1.0)
    """

    n: int | None
    shape: tuple[int, ...]
    depths: tuple[int, ...]
    scales: tuple[float, ...]
    noise: TreeNoise
    special: tuple[int, ...] = ()
    special_scale: float | None = None
    tied: tuple[int, ...] = ()

    adds_noise: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    inferred_from: ClassVar[Kind] = "tree"
    in_words: ClassVar[str] = "counts of ranges of values, wide ones and narrow ones, with random noise added to each"
    rows_are: ClassVar[str] = "noisy counts of a tree"
    name: ClassVar[str] = "noisy-tree"
    beside: ClassVar[tuple[str, ...]] = ("depth", "node", "count")
    """Depth and number of each node, and its noisy count."""

    def __post_init__(self) -> None:
        if not self.special:
            object.__setattr__(self, "special", (0,) * len(self.shape))
        if self.n is not None and self.n < 1:
            raise ModelError(
                "n must be a positive whole number.", hint="The number of confidential records, for example n=10000"
            )
        if len(self.special) != len(self.shape) or any(each < 0 for each in self.special):
            raise ModelError("special cells are counted column by column, 0 or more of them.")
        check_cells(self.cells)
        _ = self.tree  # checks the shape
        if len(self.depths) != len(self.scales) or any(a >= b for a, b in pairwise(self.depths)):
            raise ModelError("measured depths must rise, and each needs the scale of its noise.")
        if self.depths and self.depths[-1] > self.tree.depth:
            raise ModelError(
                f"the tree over {prod(self.shape):,} cells is {self.tree.depth} deep: "
                f"depth {self.depths[-1]} is below its leaves.",
                hint=f"Measure depths up to {self.tree.depth}",
            )
        if self.depths and self.depths[0] < (0 if self.n is None else 1):
            raise ModelError("the root is not measured where the number of records is public.", hint="Measure depths from 1 on")
        for scale in (*self.scales, *(() if self.special_scale is None else (self.special_scale,))):
            check_scale(scale)
        if any(depth not in self.depths for depth in self.tied):
            raise ModelError("only the noise of measured depths is tied.")
        _ = self.profile  # checks the rest
        for sizes, above, below in self.groups().values():
            check_tied(sizes, above=above, below=below)

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Cells of the domain, the special ones too."""
        return prod(size + beside for size, beside in zip(self.shape, self.special, strict=True))

    @cached_property
    def tree(self) -> CellTree:
        """The tree over the ordered cells."""
        return CellTree(self.shape)

    @property
    def profile(self) -> NoisyTreeProfile:
        """For one record; `group` has that for several of one person."""
        return NoisyTreeProfile(
            noise=self.noise,
            scales=self.scales,
            special_cells=self.cells - prod(self.shape),
            special_scale=self.special_scale,
            neighbouring="add-remove" if self.n is None else "replace-one",
            tied=tuple(self.depths.index(depth) for depth in self.tied),
        )

    @property
    def rows(self) -> int:
        """One for each measured node and each special cell."""
        return sum(self.tree.nodes(depth) for depth in self.depths) + self.cells - prod(self.shape)

    @property
    def records(self) -> int:  # type: ignore[override]
        """What is drawn are the measurements."""
        return self.rows

    def likelihood(self, published: Numbers) -> TreeMeasurements:
        """Noisy counts of nodes, in the order of the published table."""
        return self.measurements(self.read(published.values))

    def measurements(self, counts: TreeCounts) -> TreeMeasurements:
        """What was published, as inference reads it."""
        kind = KINDS[self.noise]
        return TreeMeasurements(
            self.tree,
            self.depths,
            counts.levels,
            tuple((kind, scale) for scale in self.scales),
            total=self.n,
            special=tuple(int(each) for each in counts.special),
            special_noise=None if self.special_scale is None else (kind, self.special_scale),
            places=np.concatenate([self.tree_cells, self.special_cells]),
            tied=self.tied,
        )

    def read(self, published: NDArray[np.int64]) -> TreeCounts:
        """The noisy counts of a published table, whose rows stand as `DrawnTree` puts them."""
        ends = np.cumsum([self.tree.nodes(depth) for depth in self.depths])
        *levels, special = np.split(np.asarray(published, np.int64), ends)
        return TreeCounts(tuple(levels), special)

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """One or two columns with an order, as many values and special cells in each as the tree has."""
        joint = stated_joint(domain)
        return joint is not None and tree_shape(joint) == (self.shape, self.special)

    def content(self, domain: Mapping[str, Any]) -> Content:
        """The nodes in their order, with whole numbers."""
        nothing = TreeCounts(tuple(np.zeros(self.tree.nodes(each), np.int64) for each in self.depths), self.special_cells * 0)
        return TreeContent(domain, DrawnTree(self, nothing))

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """That of the noise."""
        return self.profile.group(guarantee.contributions).zcdp

    @property
    def error_sources(self) -> ErrorSources:
        """The noise, and what the posterior makes of it."""
        last = self.noise_deviations[-1] if self.scales else 0.0
        return ErrorSources(
            shrinkage="the posterior's pull, towards even splits or empty ones",
            noise=f"noise: a standard deviation of {last:.3g} on the narrowest ranges",
        )

    def seconds(self, *, contributions: int) -> float:
        """Every count is a call of OpenDP's sampler, and of tied noise every one that is drawn anew."""
        return PER_CALL + PER_NOISE * (self.rows + self.drawn_anew)

    @property
    def drawn_anew(self) -> float:
        """Expected numbers that are drawn for tied noise, beside those that are kept."""
        found = 0.0
        for sizes, above, below in self.groups().values():
            nodes = float(sizes.sum())
            found += (nodes + 3.0 * len(sizes)) / kept_share(nodes / len(sizes), above=above, below=below) - nodes
        return found

    @property
    def noise_deviations(self) -> tuple[float, ...]:
        """Standard deviation of the noise at each measured depth, as if none were tied: with that it is some per cent less."""
        return tuple(noise_deviation(noise=KINDS[self.noise], scale=scale) for scale in self.scales)

    @property
    def _ordered(self) -> NDArray[np.bool_]:
        """Which cells of the domain are in the tree."""
        inside = np.ones(1, np.bool_)
        for size, beside in zip(self.shape, self.special, strict=True):
            inside = np.outer(np.arange(size + beside) < size, inside).ravel()
        return inside

    @property
    def tree_cells(self) -> NDArray[np.int64]:
        """Cells of the domain that the tree stands over, in the tree's own numbers."""
        return np.flatnonzero(self._ordered)

    @property
    def special_cells(self) -> NDArray[np.int64]:
        """Cells of the domain beside the tree."""
        return np.flatnonzero(~self._ordered)

    def exact_counts(self, counts: CountTable) -> TreeCounts:
        """What is measured, without noise: confidential."""
        dense, ordered = counts.dense(self.cells), self._ordered
        return TreeCounts(tuple(self.tree.sums(dense[ordered], depth) for depth in self.depths), dense[~ordered])

    def draw(self, counts: CountTable, *, entropy: Entropy) -> DrawnTree:
        """Noise by OpenDP, whatever `entropy` is."""
        self.check(counts)
        exact, kind = self.exact_counts(counts), KINDS[self.noise]
        tied = self._tied()
        levels = tuple(
            level + tied[depth] if depth in tied else noisy_integers(level, noise=kind, scale=scale)
            for depth, level, scale in zip(self.depths, exact.levels, self.scales, strict=True)
        )
        special = exact.special
        if self.special_scale is not None:
            special = noisy_integers(special, noise=kind, scale=self.special_scale)
        return DrawnTree(self, TreeCounts(levels, special))

    def _tied(self, rng: np.random.Generator | None = None) -> dict[int, NDArray[np.int64]]:
        """Noise of the tied depths and of those that they are tied to; with `rng` simulated."""
        found = {}
        for (top, depth), (sizes, above, below) in self.groups().items():
            found[top], found[depth] = tied_noise(sizes, above=above, below=below, rng=rng)
        return found

    def groups(self) -> Groups:
        """Which of the numbers are tied to each other."""
        return tied_groups(self.tree, self.depths, self.scales, self.tied)

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> TreeCounts:
        """Floating-point twin for simulation, never for a release."""
        exact, kind = self.exact_counts(counts), KINDS[self.noise]
        tied = self._tied(rng)
        levels = tuple(
            level + (tied[depth] if depth in tied else simulated_noise(level.shape, noise=kind, scale=scale, rng=rng))
            for depth, level, scale in zip(self.depths, exact.levels, self.scales, strict=True)
        )
        special = exact.special
        if self.special_scale is not None:
            special = special + simulated_noise(special.shape, noise=kind, scale=self.special_scale, rng=rng)
        return TreeCounts(levels, special)


def check_cells(cells: int) -> None:
    """Refuse a tree over more cells than noise can be added to in a reasonable time."""
    if cells > MOST_CELLS:
        raise ModelError(
            f"a noisy tree adds noise to every cell, and at most {MOST_CELLS:,} are supported.",
            hint="Use a larger grid step, wider bins, or one column instead of two",
        )
