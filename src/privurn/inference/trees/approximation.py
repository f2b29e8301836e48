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

from privurn.inference.size import SizePrior
from privurn.inference.trees.base import splits_of
from privurn.inference.trees.gaussian import gaussian_fit
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
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

LARGEST, LEAST = 700.0, -1e6
"""Of logarithms: that of the least mass which is told from none, and what stands for none."""

NEVER = 1e-150
"""Of the likeliest sum of special cells: sums that are less likely are left out."""

UNLIKELY = -60.0
"""The least that parts may say of a node's count where its sum is what counts."""

FEW_SPECIAL = 3
"""Special cells, as of one column, that are each as likely to hold any number of records; more teach how many are empty."""

TAIL = 8.0
"""Minus the logarithm of what the first windows leave out on either side of a node, at most, about."""

FEW = 4
"""Fewer splits with one share r of the base measure than this do not get a table of their own."""

DEARER = 3.0
"""Times that a point of a shared table costs what a point of a node's own does, about."""

UNUSED = 0.3
"""Components that less than so many of a depth's nodes ask for, in all, are left out of the next round."""


@dataclass(frozen=True, eq=False)
class TreePosterior:
    """Posterior means of the confidential `counts` by cell number, and their `deviations`.

    `special`: mean counts of the special cells. `weights`: those of the concentrations, depth by depth.
    """

    counts: Floats
    deviations: Floats
    special: Floats
    weights: Floats


def approximate_posterior(
    measured: TreeMeasurements, *, base: Floats | None = None, detail: float = 1.0, rounds: int = 1
) -> TreePosterior:
    """Posterior means of counts under a Polya tree, given noisy counts of its nodes.

    `base`: positive numbers, one for each cell by number, that splits are centred at; left out, it is learnt (`base`).
    `detail`: steps of the lattices, over the usual number of them. `rounds` of learning the concentrations' weights.

    >>> from privurn.cell_tree import CellTree
    >>> noisy = np.array([3, -2, 41, 0, 1, -1, 0, 2])
    >>> seen = TreeMeasurements(CellTree((8,)), (3,), (noisy,), (("laplace", 1.0),), total=45)
    >>> found = approximate_posterior(seen)
    >>> bool(found.counts.min() >= 0), float(round(found.counts.sum(), 6)), bool(39 < found.counts[2] < 43)
    (True, 45.0, True)
    """
    work = Propagation(measured, splits_of(measured, base), detail=detail)
    weights = work.fitted(rounds=rounds)
    work.go_down(weights)
    return work.found(weights)


class Propagation:
    """Windows, messages and laws from outside, depth by depth down to the deepest that is measured."""

    def __init__(
        self, measured: TreeMeasurements, splits: Splits, *, size: SizePrior | None = None, detail: float = 1.0
    ) -> None:
        self.measured, self.splits, self.size = measured, splits, size
        self.last = measured.depths[-1]
        self.detail = detail * (1.0 if measured.tree.cells <= LARGE else 0.625)
        self.fit = gaussian_fit(measured, splits)
        self.levels = [self._level(depth, self._allowed(depth), COARSE * self.detail) for depth in range(self.last + 1)]
        self.messages = [np.empty(int(each.nodes["width"].sum())) for each in self.levels]
        self.concentrations = np.array(CONCENTRATIONS)
        self.parts: dict[int, Floats] = {}

    def fitted(self, *, rounds: int = 1) -> Floats:
        """Learn the weights of the concentrations, which are returned; then the messages of the last round.

        In every round those of a depth are learnt given those that the round before gave to all others.
        """
        weights: Floats = self.splits.hyper[: self.last] / self.splits.hyper[: self.last].sum(axis=1, keepdims=True)
        for _ in range(rounds):
            self.tabulate(weights, each=True)
            self.go_up(weights)
            weights = self.go_down(weights, learn=True)
        self.narrow()
        self.tabulate(weights)
        self.go_up(weights)
        return weights

    def tabulate(self, weights: Floats, *, each: bool = False, last: int | None = None) -> None:
        """Laws of splits that nodes share, of all depths or those above `last`; of each component by itself if asked for."""
        self.tables = [self._tables(depth, weights[depth], each=each) for depth in range(self.last if last is None else last)]

    def _allowed(self, depth: int) -> Ends:
        """Counts that the measurements alone allow, up to tails that no node of the depth is likely to be in."""
        fit = self.fit[depth]
        tail = max(4.0 + np.log(len(fit.mean)), TAIL)
        heavy = any(kind in ("laplace", "clipped") for kind, _ in self.measured.noise)
        reach = np.sqrt(fit.variance) * (max(np.sqrt(2.0 * tail), tail / np.sqrt(2.0)) if heavy else np.sqrt(2.0 * tail))
        most = np.inf if self.measured.total is None else float(self.measured.total)
        least = 0.0
        if depth == 0 and self.size is not None and self.measured.total is None:
            least, most = float(self.size.lower), float(self.size.upper)
        return np.clip(fit.mean - reach, least, most), np.clip(fit.mean + reach, least, most)

    def _level(self, depth: int, ends: Ends, most: float) -> "Level":
        """Windows between the ends, on the finest lattice whose windows are not longer than `most` steps in quadratic mean."""
        from privurn._kernels.trees.lattice import LAPLACE, NODE, NONE, NORMAL, Level

        low, high = ends
        spacing = 1
        while np.mean(((high - low) / spacing + 1.0) ** 2) > most**2:
            spacing *= 2
        lo = np.floor(low / spacing).astype(np.int64)
        hi = np.ceil(high / spacing).astype(np.int64)
        nodes = np.zeros(len(lo), NODE)
        nodes["lo"], nodes["width"], nodes["table"] = lo, hi - lo + 1, -1
        nodes["start"][1:] = np.cumsum(nodes["width"])[:-1]
        nodes["usual"] = 0.5 * (low + high)
        nodes["upper"] = np.minimum(self.fit[depth].mean + 2.0 * np.sqrt(self.fit[depth].variance), high)
        if depth < self.last:
            nodes["child"], nodes["two"] = self.splits.children[depth], self.splits.two[depth]
            nodes["share"] = self.splits.shares[depth]
        own = self.measured.own(depth)
        if own is None or self.measured.drawn:
            return Level(spacing, NONE, 1.0, nodes)
        nodes["noisy"] = own[0]
        return Level(spacing, LAPLACE if own[1][0] == "laplace" else NORMAL, own[1][1], nodes)

    def _tables(self, depth: int, weights: Floats, *, each: bool = False) -> Floats:
        """Laws of splits that nodes of a depth share, one table for each share r; of each component by itself if asked for.

        A table is filled from zero on. It is as large as saves most: nodes that need a larger one get their own laws.
        """
        from privurn._kernels.trees.split_laws import update_tables

        level, below = self.levels[depth], self.levels[depth + 1]
        nodes, ends = level.nodes, below.nodes["lo"] + below.nodes["width"]
        split = np.flatnonzero(nodes["two"])
        first = nodes["child"][split]
        needed = np.maximum(ends[first], ends[first + 1])
        points = below.nodes["width"][first] * below.nodes["width"][first + 1]
        shares, group = np.unique(np.round(nodes["share"][split], 12), return_inverse=True)
        chosen: list[float] = []
        size = 1
        for number in np.flatnonzero(np.bincount(group, minlength=len(shares)) >= FEW):
            here = np.flatnonzero(group == number)
            here = here[np.argsort(needed[here], kind="stable")]
            saved = np.cumsum(points[here]) - DEARER * needed[here].astype(np.float64) ** 2
            if saved.max() > 0.0:
                largest = needed[here[np.argmax(saved)]]
                nodes["table"][split[here[needed[here] <= largest]]] = len(chosen)
                chosen.append(float(nodes["share"][split[here[0]]]))
                size = max(size, int(largest))
        tables = np.empty((len(chosen), 1 + (len(CONCENTRATIONS) if each else 1), size, size))
        update_tables(tables, np.array(chosen, np.float64), below.spacing, self.concentrations, weights)
        return tables

    def go_up(self, weights: Floats) -> None:
        """Messages of all depths, from below."""
        from privurn._kernels.trees.lattice import update_messages, update_own

        if self.measured.drawn:
            self._tell_sums(self.last)
        else:
            update_own(self.messages[-1], self.levels[-1])
        for depth in range(self.last - 1, -1, -1):
            level, below = self.levels[depth], self.levels[depth + 1]
            given = self.messages[depth + 1], self.concentrations, weights[depth], self.tables[depth]
            update_messages(self.messages[depth], level, below, *given)
            if self._by_sums(depth):
                self.parts[depth] = self.messages[depth].copy()
                self._tell_sums(depth)

    def _by_sums(self, depth: int) -> bool:
        """Whether the sums over its cells are all that is said of a node of this depth."""
        return self.measured.sums_from is not None and self.measured.sums_from <= depth < self.last

    def _tell_sums(self, depth: int) -> None:
        """Messages of a depth's nodes by the sums over their cells."""
        from privurn._kernels.trees.lattice import LOWEST

        level, messages = self.levels[depth], self.messages[depth]
        widths, starts = level.nodes["width"], level.nodes["start"]
        nodes = np.repeat(np.arange(len(widths)), widths)
        steps = np.arange(len(messages)) - np.repeat(starts, widths) + np.repeat(level.nodes["lo"], widths)
        logs = self.measured.summed_logs(depth, steps * float(level.spacing), nodes)
        messages[:] = np.maximum(logs - np.repeat(np.maximum.reduceat(logs, starts), widths), LOWEST)

    def go_down(self, weights: Floats, *, learn: bool = False) -> Floats:
        """Laws from outside of all nodes, from the root down; returns the weights, or those that the posterior asks for."""
        from privurn._kernels.trees.lattice import update_outside

        found = weights.copy()
        self.q = [self.root_law()]
        for depth in range(self.last):
            level, below, messages = self.levels[depth], self.levels[depth + 1], self.messages[depth + 1]
            q, odds = np.empty(len(messages)), np.empty((len(level.nodes) if learn else 0, len(CONCENTRATIONS)))
            above = self.q[depth]
            if self._by_sums(depth):  # splits are drawn given the node's count: what its parts say of that is taken off
                above = above + self.messages[depth] - np.maximum(self.parts[depth], UNLIKELY)
            update_outside(q, odds, level, below, messages, above, self.concentrations, weights[depth], self.tables[depth])
            self.q.append(q)
            if learn:
                found[depth] = learnt_weights(odds[level.nodes["two"]], weights[depth], self.splits.hyper[depth])
        return found

    def narrow(self) -> None:
        """Windows of what the posterior leaves possible, on finer lattices, for the next round."""
        for depth in range(self.last + 1):
            _, _, low, high = self._moments(depth)
            self.levels[depth] = self._level(depth, (low, high), FINE * self.detail)
            self.messages[depth] = np.empty(int(self.levels[depth].nodes["width"].sum()))

    def _moments(self, depth: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Posterior means and deviations of a depth's counts, and their first and last values."""
        from privurn._kernels.trees.lattice import update_moments

        out = np.empty((4, len(self.levels[depth].nodes)))
        update_moments(out[0], out[1], out[2], out[3], self.levels[depth], self.messages[depth], self.q[depth])
        return out[0], out[1], out[2], out[3]

    def root_law(self) -> Floats:
        """What is known of the number of records in the tree from outside."""
        level, total = self.levels[0], self.measured.total
        counts = (level.nodes["lo"][0] + np.arange(level.nodes["width"][0])) * float(level.spacing)
        if total is not None:
            return special_log(self.measured, total - counts) if self.measured.special else np.zeros(len(counts))
        return np.zeros(len(counts)) if self.size is None else np.maximum(self.size.log_mass(counts), LEAST)

    def found(self, weights: Floats) -> TreePosterior:
        """Means of the deepest nodes, shared out to their cells by the base measure."""
        means, deviations, _, _ = self._moments(self.last)
        special, total = special_means(self.measured), self.measured.total
        if total is not None:
            if len(special):
                special = shifted_to(special, max(total - float(means.sum()), 0.0))
            rest = total - float(special.sum())
            means *= rest / means.sum() if means.sum() > 0.0 else 0.0
        return TreePosterior(
            counts=self.splits.spread(means, self.last),
            deviations=self.splits.spread(deviations, self.last),
            special=special,
            weights=weights,
        )


def special_means(measured: TreeMeasurements) -> Floats:
    """Posterior mean of each special cell's count from its own measurement alone, flat on 0, 1, ... a priori."""
    return np.array([float(mass @ counts / mass.sum()) for counts, mass in special_laws(measured)], np.float64)


def special_laws(measured: TreeMeasurements) -> list[tuple[Floats, Floats]]:
    """Counts of each special cell, in steps that all share, and their masses given its own measurement.

    A few are flat on 0, 1, ... a priori. Of more it is learnt how many are empty: were each flat, the noise on a hundred empty
    ones would be taken for hundreds of records.
    """
    found = []
    for noisy in measured.special:
        assert measured.special_noise is not None  # what the measurements insist on
        kind, scale = measured.special_noise
        first = max(0, int(noisy - REACH * scale))
        counts = np.arange(first, max(noisy, 0) + int(REACH * scale) + 2, max(1, int(scale / 16)), dtype=np.float64)
        logs = log_mass(noisy - counts, noise=kind, scale=scale)
        found.append((counts, np.exp(logs - logs.max())))
    return found if len(found) <= FEW_SPECIAL else _often_empty(found, scale=scale)


def _often_empty(laws: list[tuple[Floats, Floats]], *, scale: float) -> list[tuple[Floats, Floats]]:
    """The same of cells that may be empty, as many as they teach; else any count below the noise's scale, or any size."""
    largest = max(float(counts[-1]) for counts, _ in laws)
    weights = [1.0 / ((counts + scale) * np.log1p(largest / scale)) * (counts[1] - counts[0]) for counts, _ in laws]
    filled = [masses * each for (_, masses), each in zip(laws, weights, strict=True)]
    empty = [masses * (counts == 0.0) for counts, masses in laws]
    told = np.array([[float(one.sum()), float(other.sum())] for one, other in zip(empty, filled, strict=True)])
    share, others = 0.5, 1.0 - 1.0 / len(laws)  # what the others teach, as of splits
    for _ in range(EM_STEPS):
        asked = share * told[:, 0] / (share * told[:, 0] + (1.0 - share) * told[:, 1])
        share = (1.0 + others * float(asked.sum())) / (2.0 + others * len(laws))
    mixed = (share * one + (1.0 - share) * other for one, other in zip(empty, filled, strict=True))
    return [(counts, masses / masses.max()) for (counts, _), masses in zip(laws, mixed, strict=True)]


def special_log(measured: TreeMeasurements, sums: Floats) -> Floats:
    """Log probability, up to a constant, that the special cells hold so many records together; next to none below zero."""
    (counts, mass), *others = special_laws(measured)
    first, step = float(counts[0]), float(counts[1] - counts[0])
    for other, other_mass in others:
        mass = np.convolve(mass, other_mass)
        mass /= mass.max()
        likely = np.flatnonzero(mass > NEVER)  # of hundreds of cells the rest would be nearly all
        first, mass = first + float(other[0]) + step * float(likely[0]), mass[likely[0] : likely[-1] + 1]
    places = first + step * np.arange(len(mass))
    logs = np.interp(sums, places, np.log(np.maximum(mass / mass.max(), np.exp(-LARGEST))), left=LEAST, right=LEAST)
    return np.asarray(logs, np.float64)


def shifted_to(values: Floats, total: float) -> Floats:
    """The same shift of all numbers, none below zero, that makes them sum to a total."""
    low, high = -float(values.max()), total
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(values + middle, 0.0).sum() < total else (low, middle)
    moved = np.maximum(values + high, 0.0)
    return moved * (total / moved.sum()) if moved.sum() > 0.0 else moved


def learnt_weights(likelihood: Floats, weights: Floats, hyper: Floats) -> Floats:
    """Weights of components from the likelihood of each at every node: where their posterior mean leads, from `weights` on.

    What each of k nodes should be judged by are weights that the other k - 1 teach, or it would count twice. All have the same
    here: the k are taken (k - 1)/k times, so that a single one is judged by the prior's.

    >>> learnt_weights(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), np.array([3.0, 1.0])).tolist()
    [1.0, 0.0]
    >>> learnt_weights(np.array([[0.9, 0.1]]), np.array([0.5, 0.5]), np.array([3.0, 1.0])).tolist()
    [0.75, 0.25]
    """
    others = 1.0 - 1.0 / max(len(likelihood), 1)
    for _ in range(EM_STEPS):
        asked = weights * ((1.0 / (likelihood @ weights)) @ likelihood)
        counted = hyper + others * asked
        weights = counted / counted.sum()
    kept = np.where(asked >= UNUSED * min(1.0, len(likelihood) / 100.0), counted, 0.0)
    return np.asarray(kept / kept.sum(), np.float64)
