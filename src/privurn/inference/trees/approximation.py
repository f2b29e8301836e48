"""Posterior means given a noisy tree, fast and deterministic: belief propagation on lattices of counts.

The posterior of the counts given the concentrations' weights is a tree-shaped Markov law, so messages up and down the tree give
every node's posterior. Here a message is held on a window of at most about a hundred steps of a lattice, whose spacing is a
fraction of what is unknown about the node's count; with a spacing of 1 nothing but the window is approximate. The weights are
learnt depth by depth, from the cells upwards, by expectation and maximisation, and once more with all that is known.

What is taken from here and what from the exact chain: docs/explanation/polya-trees.md.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.inference.trees.gaussian import gaussian_fit
from privurn.inference.trees.splits import CONCENTRATIONS, HYPER, Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.additive_noise import log_mass

if TYPE_CHECKING:
    from privurn._kernels.trees.lattice import Level

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

COARSE, FINE = 32.0, 64.0
"""Steps of windows, in quadratic mean over a depth: in the first round, and once the posterior is roughly known."""

LARGE = 20_000
"""Trees with more cells get windows of 5/8 as many steps."""

EM_STEPS = 50

REACH = 40.0
"""Noise beyond so many scales does not happen."""

UNUSED = 0.3
"""Components that less than so many of a depth's nodes ask for, in all, are left out of the next round."""


@dataclass(frozen=True, eq=False)
class TreePosterior:
    """Posterior means by cell number: of the confidential `counts`, and of the population's probabilities `shares`.

    `shares` are of the whole population where nothing hangs beside the tree, else of the part inside it. `deviations` are those
    of the counts. `special`: mean counts of the special cells. `weights`: those of the concentrations, depth by depth.
    """

    counts: Floats
    deviations: Floats
    shares: Floats
    special: Floats
    weights: Floats


def approximate_posterior(measured: TreeMeasurements, *, base: Floats | None = None) -> TreePosterior:
    """Posterior means of counts and probabilities under a Polya tree, given noisy counts of its nodes.

    `base`: positive numbers, one for each cell by number, that splits are centred at; left out, the uniform.

    >>> from privurn.cell_tree import CellTree
    >>> noisy = np.array([3, -2, 41, 0, 1, -1, 0, 2])
    >>> seen = TreeMeasurements(CellTree((8,)), (3,), (noisy,), (("laplace", 1.0),), total=45)
    >>> found = approximate_posterior(seen)
    >>> bool(found.counts.min() >= 0), float(round(found.counts.sum(), 6)), bool(39 < found.counts[2] < 43)
    (True, 45.0, True)
    """
    work = Propagation(measured, Splits(measured.tree, base))
    return work.found(work.fitted())


class Propagation:
    """Windows, messages and laws from outside, depth by depth down to the deepest that is measured."""

    def __init__(self, measured: TreeMeasurements, splits: Splits) -> None:
        self.measured, self.splits = measured, splits
        self.last = measured.depths[-1]
        self.detail = 1.0 if measured.tree.cells <= LARGE else 0.625
        self.fit = gaussian_fit(measured, splits)
        self.levels = [self._level(depth, self._allowed(depth), COARSE * self.detail) for depth in range(self.last + 1)]
        self.messages = [np.zeros(int(each.width.sum())) for each in self.levels]
        self.concentrations = np.array(CONCENTRATIONS)

    def fitted(self) -> Floats:
        """Both rounds: learn the weights of the concentrations, which are returned, then what they say."""
        weights = np.full((self.last, len(CONCENTRATIONS)), 1.0 / len(CONCENTRATIONS))
        self.go_up(weights)
        weights = self.go_down(weights)
        self.narrow()
        self.go_up(weights)
        self.go_down(weights)
        return weights

    def _allowed(self, depth: int) -> Ends:
        """Counts that the measurements alone allow, up to tails that no node of the depth is likely to be in."""
        fit = self.fit[depth]
        tail = 4.0 + np.log(len(fit.mean))
        heavy = any(kind == "laplace" for kind, _ in self.measured.noise)
        reach = np.sqrt(fit.variance) * (max(np.sqrt(2.0 * tail), tail / np.sqrt(2.0)) if heavy else np.sqrt(2.0 * tail))
        most = np.inf if self.measured.total is None else float(self.measured.total)
        return np.clip(fit.mean - reach, 0.0, most), np.clip(fit.mean + reach, 0.0, most)

    def _level(self, depth: int, ends: Ends, most: float) -> "Level":
        """Windows between the ends, on the finest lattice whose windows are not longer than `most` steps in quadratic mean."""
        from privurn._kernels.trees.lattice import LAPLACE, NONE, NORMAL, Level

        low, high = ends
        spacing = 1
        while np.mean(((high - low) / spacing + 1.0) ** 2) > most**2:
            spacing *= 2
        lo = np.floor(low / spacing).astype(np.int64)
        hi = np.ceil(high / spacing).astype(np.int64)
        own = self.measured.own(depth)
        bottom = depth == self.last
        nothing = np.zeros(0, np.int64)
        return Level(
            spacing=spacing,
            lo=lo,
            width=hi - lo + 1,
            start=np.concatenate([[0], np.cumsum(hi - lo + 1)[:-1]]),
            usual=0.5 * (low + high),
            upper=np.minimum(self.fit[depth].mean + 2.0 * np.sqrt(self.fit[depth].variance), high),
            kind=NONE if own is None else LAPLACE if own[1][0] == "laplace" else NORMAL,
            scale=1.0 if own is None else own[1][1],
            noisy=nothing.astype(np.float64) if own is None else own[0].astype(np.float64),
            child=nothing if bottom else self.splits.children[depth],
            two=nothing.astype(np.bool_) if bottom else self.splits.two[depth],
            share=nothing.astype(np.float64) if bottom else self.splits.shares[depth],
        )

    def go_up(self, weights: Floats) -> None:
        """Messages of all depths, from below."""
        from privurn._kernels.trees.lattice import update_messages, update_own

        update_own(self.messages[-1], self.levels[-1])
        for depth in range(self.last - 1, -1, -1):
            level, below = self.levels[depth], self.levels[depth + 1]
            update_messages(self.messages[depth], level, below, self.messages[depth + 1], self.concentrations, weights[depth])

    def go_down(self, weights: Floats) -> Floats:
        """Laws from outside of the deepest nodes; returns the weights that the posterior under these weights asks for."""
        from privurn._kernels.trees.lattice import update_outside

        found = weights.copy()
        outside, inside = self._root()
        self.q = [outside]
        for depth in range(self.last):
            level, below = self.levels[depth], self.levels[depth + 1]
            q, s = np.zeros(len(self.messages[depth + 1])), np.zeros(len(self.messages[depth + 1]))
            odds = np.zeros((len(level.lo), len(CONCENTRATIONS)))
            update_outside(
                q, s, odds, level, below, self.messages[depth + 1], self.q[-1], inside, self.concentrations, weights[depth]
            )
            self.q.append(q)
            inside = s
            found[depth] = learnt_weights(odds[level.two], weights[depth])
        self.s = inside
        return found

    def narrow(self) -> None:
        """Windows of what the posterior leaves possible, on finer lattices, for the next round."""
        from privurn._kernels.trees.lattice import update_ends

        for depth, level in enumerate(self.levels):
            low, high = np.empty(len(level.lo)), np.empty(len(level.lo))
            update_ends(low, high, level, self.messages[depth], self.q[depth])
            self.levels[depth] = self._level(depth, (low, high), FINE * self.detail)
            self.messages[depth] = np.zeros(int(self.levels[depth].width.sum()))

    def _root(self) -> tuple[Floats, Floats]:
        """What is known of the number of records in the tree from outside."""
        level, fit = self.levels[0], self.fit[0]
        counts = (level.lo[0] + np.arange(level.width[0])) * float(level.spacing)
        known = float(fit.outside_variance[0])
        law = -0.5 * (counts - fit.outside_mean[0]) ** 2 / known if 0.0 < known < np.inf else np.zeros(len(counts))
        return law, np.ones(len(counts))

    def found(self, weights: Floats) -> TreePosterior:
        """Means of the deepest nodes, shared out to their cells by the base measure."""
        from privurn._kernels.trees.lattice import update_moments

        nodes = len(self.levels[-1].lo)
        means, deviations, shares = np.empty(nodes), np.empty(nodes), np.empty(nodes)
        update_moments(means, deviations, shares, self.levels[-1], self.messages[-1], self.q[-1], self.s)
        special, total = special_means(self.measured), self.measured.total
        if total is not None:
            if len(special):
                special = shifted_to(special, max(total - float(means.sum()), 0.0))
            rest = total - float(special.sum())
            means *= rest / means.sum() if means.sum() > 0.0 else 0.0
        return TreePosterior(
            counts=self.splits.spread(means, self.last),
            deviations=self.splits.spread(deviations, self.last),
            shares=self.splits.spread(shares / shares.sum(), self.last),
            special=special,
            weights=weights,
        )


def special_means(measured: TreeMeasurements) -> Floats:
    """Posterior mean of each special cell's count from its own measurement alone, flat on 0, 1, ... a priori."""
    found = []
    for noisy in measured.special:
        assert measured.special_noise is not None  # what the measurements insist on
        kind, scale = measured.special_noise
        first = max(0, int(noisy - REACH * scale))
        counts = np.arange(first, max(noisy, 0) + int(REACH * scale) + 2, max(1, int(scale / 16)), dtype=np.float64)
        logs = log_mass(noisy - counts, noise=kind, scale=scale)
        mass = np.exp(logs - logs.max())
        found.append(float(mass @ counts / mass.sum()))
    return np.array(found, np.float64)


def shifted_to(values: Floats, total: float) -> Floats:
    """The same shift of all numbers, none below zero, that makes them sum to a total."""
    low, high = -float(values.max()), total
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(values + middle, 0.0).sum() < total else (low, middle)
    moved = np.maximum(values + high, 0.0)
    return moved * (total / moved.sum()) if moved.sum() > 0.0 else moved


def learnt_weights(likelihood: Floats, weights: Floats) -> Floats:
    """Weights of components from the likelihood of each at every node: where their posterior mean leads, from `weights` on."""
    for _ in range(EM_STEPS):
        odds = likelihood * weights
        counted = HYPER + (odds / odds.sum(axis=1, keepdims=True)).sum(axis=0)
        weights = counted / counted.sum()
    kept = np.where(counted - HYPER >= UNUSED * min(1.0, len(likelihood) / 100.0), counted, 0.0)
    return np.asarray(kept / kept.sum(), np.float64)
