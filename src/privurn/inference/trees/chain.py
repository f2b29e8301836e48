"""The exact posterior given a noisy tree, as a Markov chain on counts, concentrations and their weights.

State: counts of all nodes, a concentration a_v for every split, weights of the concentrations at every depth, counts of the
special cells; and the number of records where it is secret. All moves have exact ratios (`_kernels/trees`), and the noise's
discreteness is exact. The chain starts from the fast approximation; a sweep costs O(cells).

A secret number of records in the tree is flat on 0, ..., `largest_n`, and so is that of each special cell; where n is public,
all ways to divide it between the tree and the special cells are equally likely a priori.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.run import Arrays
from privurn.inference.trees.approximation import TreePosterior, approximate_posterior
from privurn.inference.trees.base import splits_of
from privurn.inference.trees.gaussian import subtree_estimates
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.inference.trees.synthetic import balanced_counts
from privurn.mechanisms.tree_measurements import TreeMeasurements

if TYPE_CHECKING:
    from privurn._kernels.trees.counts import Tree
    from privurn._kernels.trees.sweeps import Plan
    from privurn.inference.counts.plans import Reduction

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

LARGEST_N = 10**7
"""Bound of the flat prior on a secret number of records, unless another is given."""

MOST_RECORDS = 4
"""Records that a sweep tries to move, at most, for each cell."""

REDRAWN = 4
"""Subtrees of at most so many cells are redrawn as a whole."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeCounts:
    """The chain's law and its moves: measurements, base measure (None: learnt), and the bound of a secret number of records."""

    measured: TreeMeasurements
    base: Floats | None = None
    largest_n: int = LARGEST_N

    def __post_init__(self) -> None:
        if self.largest_n < 1:
            raise ModelError("the largest number of records must be at least 1.")

    @cached_property
    def splits(self) -> Splits:
        """The tree's splits."""
        return splits_of(self.measured, self.base)

    @cached_property
    def approximation(self) -> TreePosterior:
        """Where the chain starts."""
        return approximate_posterior(self.measured, base=self.base)

    @property
    def cells(self) -> int:
        """Cells of the tree and special ones."""
        return self.measured.tree.cells + len(self.measured.special)

    @cached_property
    def tree(self) -> "Tree":
        """The public data as the kernels want them."""
        from privurn._kernels.trees.counts import LAPLACE, NORMAL, Tree

        measured, splits, depth = self.measured, self.splits, self.measured.tree.depth
        sizes = [measured.tree.nodes(each) for each in range(depth + 1)]
        offset = np.concatenate([[0], np.cumsum(sizes)])
        parent, child = np.full(offset[-1], -1), np.full(offset[-1], -1)
        two, share = np.zeros(offset[-1], np.bool_), np.ones(offset[-1])
        noisy = np.zeros(offset[-1], np.result_type(np.int64, *measured.noisy))
        kind, scale = np.full(depth + 1, -1), np.ones(depth + 1)
        codes = {"laplace": LAPLACE, "gaussian": NORMAL}
        for each in range(depth + 1):
            here = slice(offset[each], offset[each + 1])
            own = measured.own(each)
            if own is not None:
                noisy[here], kind[each], scale[each] = own[0], codes[own[1][0]], own[1][1]
            if each < depth:
                first = offset[each + 1] + splits.children[each]
                child[here], two[here], share[here] = first, splits.two[each], splits.shares[each]
                parent[first] = np.arange(offset[each], offset[each + 1])
                parent[first[two[here]] + 1] = np.arange(offset[each], offset[each + 1])[two[here]]
        means, variances = zip(*subtree_estimates(measured, splits), strict=True)
        special_noise = measured.special_noise or ("laplace", 1.0)
        return Tree(
            parent=parent,
            child=child,
            two=two,
            share=share,
            depth=np.repeat(np.arange(depth + 1), sizes),
            noisy=noisy,
            mean=np.concatenate(means),
            variance=np.concatenate(variances),
            kind=kind,
            scale=scale,
            cells=int(offset[depth]),
            concentrations=np.array(CONCENTRATIONS),
            hyper=self.splits.hyper,
            special=np.array(measured.special, noisy.dtype),
            special_kind=codes[special_noise[0]],
            special_scale=special_noise[1],
            total=-1 if measured.total is None else measured.total,
            most=self.largest_n if measured.total is None else measured.total,
        )

    @cached_property
    def plan(self) -> "Plan":
        """What a sweep tries; from public data, so that every choice is made without looking at the state."""
        from privurn._kernels.trees.sweeps import Plan

        tree, cells = self.measured.tree, self.measured.tree.cells
        deviations = self.approximation.deviations[tree.order]
        about = int(self.approximation.counts.sum())
        sizes = np.concatenate([np.diff(np.append(starts, cells)) for starts in tree.starts])
        return Plan(
            records=max(min(about, MOST_RECORDS * cells), min(cells, 64)),
            shifts=cells,
            redraw=np.flatnonzero(self.tree.two & (sizes <= REDRAWN)),
            steps=np.maximum(deviations, 0.5),
            ends=np.cumsum(deviations + 0.1 * float(deviations.mean()) + 1e-9),
        )

    def start(self, rng: np.random.Generator) -> Arrays:
        """Whole counts around the approximate means, made at random; concentrations by the approximate weights."""
        found, total = self.approximation, self.measured.total
        expected = rng.gamma(1.0 + 4.0 * found.counts) / 4.0 if len(found.counts) > 1 else found.counts
        special = found.special
        n = round(float(found.counts.sum() + special.sum())) if total is None else total
        weight = float(expected.sum() + special.sum())
        counts, beside = balanced_counts(
            self.measured.tree,
            expected * (n / weight) if weight > 0.0 else np.full(len(expected), n / len(expected)),
            rng=rng,
            special=special * (n / weight) if weight > 0.0 else special,
        )
        depth = self.measured.tree.depth
        nodes = [self.measured.tree.sums(counts, each) for each in range(depth + 1)]
        return {
            "counts": np.concatenate(nodes).astype(np.int64),
            "special": beside,
            "concentrations": rng.integers(0, len(CONCENTRATIONS), self.tree.cells).astype(np.int64),
            "log_weights": np.log(self.splits.hyper / self.splits.hyper.sum(axis=1, keepdims=True)),
        }

    def sweep(self, state: Arrays, rng: np.random.Generator, *, times: int) -> dict[str, float]:
        """Sweeps, changing the state in place; acceptance rates."""
        from privurn._kernels.trees.sweeps import update_tree

        rates = update_tree(
            state["counts"], state["special"], state["concentrations"], state["log_weights"], self.tree, self.plan, times, rng
        )
        return dict(zip(("records moved", "records shifted", "splits redrawn"), map(float, rates), strict=True))

    def table(self, state: Arrays) -> Whole:
        """The confidential counts of the state: of cells by number, then of the special ones."""
        counts = np.empty(self.measured.tree.cells, np.int64)
        counts[self.measured.tree.order] = state["counts"][self.tree.cells :]
        return np.append(counts, state["special"])

    def population(self, state: Arrays, rng: np.random.Generator) -> Floats:
        """The population's probabilities given the state: of cells by number, then of the special ones."""
        from privurn._kernels.trees.sweeps import update_population

        masses = np.empty(self.cells)
        update_population(masses, state["counts"], state["special"], state["concentrations"], self.tree, rng)
        out = masses.copy()
        out[self.measured.tree.order] = masses[: self.measured.tree.cells]
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeSampler:
    """The chain with functionals of each state: of the population, and of the confidential records."""

    engine: TreeCounts
    reduction: "Reduction"

    @property
    def name(self) -> str:
        """polya-tree."""
        return "polya-tree"

    @property
    def monitored(self) -> tuple[str, ...]:
        """Nothing: effective draws cost more than the sweeps."""
        return ()

    def fingerprint(self) -> str:
        """Hash of measurements, base measure and functionals."""
        measured = self.engine.measured
        settings = (measured.tree, measured.depths, measured.noise, measured.total, measured.special, measured.special_noise)
        digest = hashlib.sha256(repr((settings, self.engine.largest_n)).encode())
        arrays: list[Any] = [*measured.noisy, np.array(CONCENTRATIONS)]
        base = self.engine.splits.base
        arrays += [] if base is None else [base]
        for each in [*arrays, self.reduction.groups, *self.reduction.plan]:
            digest.update(np.ascontiguousarray(each).tobytes())
        return digest.hexdigest()

    def start(self, rng: np.random.Generator) -> Arrays:
        """The engine's."""
        return self.engine.start(rng)

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """Sweeps; after every thin-th the functionals, and n where it is secret."""
        if warming:
            self.engine.sweep(state, rng, times=sweeps)
            return {}, {}
        kept = sweeps // thin
        found: Arrays = {f"{of}:{name}": np.empty(kept) for of in ("population", "sample") for name in self.reduction.names}
        if self.engine.measured.total is None:
            found["n"] = np.empty(kept, np.int64)
        rates: dict[str, list[float]] = {}
        for d in range(kept):
            for key, value in self.engine.sweep(state, rng, times=thin).items():
                rates.setdefault(key, []).append(value)
            table = self.engine.table(state)
            if "n" in found:
                found["n"][d] = table.sum()
            for of, masses in (("population", self.engine.population(state, rng)), ("sample", table)):
                own, cells = self.engine.measured, self.engine.measured.tree.cells
                for name, value in self.reduction.evaluate(own.in_domain(masses[:cells], masses[cells:])).items():
                    found[f"{of}:{name}"][d] = value
        return found, {key: np.array(values) for key, values in rates.items()}
