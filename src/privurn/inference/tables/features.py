"""Measured cells as features of a record, under a model of some columns: their covariance is applied, never written down.

A record of the columns used is one of their joint cells, over which the model has probabilities m. The features are the
indicators of all measured cells of sets of those columns. Of three columns there may be tens of thousands, so what is needed,
(D + S)^-1 c with S the variance of the noise and D the covariance of how far the table's cells may be from the model's (G/n0
with G their covariance under m, or more: `Trust`), is solved by conjugate gradients.

Functions of a record are arrays with a row for each function and a column for each joint cell; what belongs to features has a
row for each function as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError, SamplingError
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]

MOST_JOINT_CELLS = 1_000_000
"""Of the columns that an analysis uses."""

LEFT_OUT = 1e-8
"""Probability of joint cells that are left out, the least probable ones."""

MOST_STEPS = 1_000
LARGEST_MISS = 0.01
"""What may be left of equations that count as solved."""

COMMON = 1e-5
"""Share of a pair's cell from which on it is solved for at once."""

AT_ONCE = 32

MOST_WRITTEN_DOWN = 4_000
"""Features up to which equations that conjugate gradients do not solve, because of rounding, are written down after all."""

MOST_PAIRS = 3.0
"""Records' worth that the model's own pairs are trusted beside the measured ones, at most."""

LESS_THAN_NOISE = 30.0
"""How many times less they are trusted than the noisy pairs."""


@dataclass(frozen=True)
class Trust:
    """How far a table may be from the model: as far as so many records of it, and what its pairs say as far as `pairs` more."""

    size: float
    pairs: float = inf


@dataclass(frozen=True, eq=False)
class Features:
    """Indicators of the measured cells of sets of the columns `places`, for each of their joint cells."""

    places: Columns
    cells: NDArray[np.int64]
    """Of each column used, for each joint cell: a row for each column."""
    probabilities: Floats
    """m of each joint cell."""
    sizes: tuple[int, ...]
    sets: tuple[Columns, ...]
    """As rows of `cells`."""
    measured: Floats
    """y/N of all features, one set after the other."""
    variances: Floats
    """S: of the noise on them."""
    size_deviation: float = 0.0
    """Of N, as a share of it; 0 where it is public."""

    @classmethod
    def of(cls, table: MeasuredTable, mixture: MixtureOfProducts, places: Sequence[int]) -> "Features":
        """All that was measured of these columns, also together with others, which are summed out.

        A measured set counts for the columns that it shares with those used, and for no others, so that the noise on different
        sets stays independent; those that share the same columns are combined by inverse variances.
        """
        used = tuple(sorted(set(places)))
        sizes = tuple(table.sizes[j] for j in used)
        joint = int(np.prod(sizes))
        if joint > MOST_JOINT_CELLS:
            raise ModelError(
                f"the columns of this analysis have {joint:,} joint cells, and at most {MOST_JOINT_CELLS:,} are supported.",
                hint="Use fewer columns, or release coarser ones",
            )
        own = _shared(table, used)
        if not own:
            raise ModelError("none of these columns was measured: each of them has one cell.")
        law = mixture.marginal(used).ravel()
        order = np.argsort(law)
        kept = np.sort(order[np.cumsum(law[order]) > LEFT_OUT])
        measured = np.concatenate([y.ravel() for y, _ in own.values()]) / table.n
        noise = np.concatenate([np.full(y.size, variance) for y, variance in own.values()])
        sets = tuple(tuple(used.index(j) for j in each) for each in own)
        cells = np.array(np.unravel_index(kept, sizes), np.int64)
        size_deviation = table.estimated_n[1] / table.n
        return cls(used, cells, law[kept] / law[kept].sum(), sizes, sets, measured, noise / table.n**2, size_deviation)

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.sizes[i] for i in each) for each in self.sets]

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([int(np.prod(shape)) for shape in self._shapes])

    @cached_property
    def _homes(self) -> tuple[int, ...]:
        """For each set the largest one that holds it: sums over its cells are sums over theirs."""
        by_size = sorted(range(len(self.sets)), key=lambda s: -len(self.sets[s]))
        return tuple(next(t for t in by_size if set(each) <= set(self.sets[t])) for each in self.sets)

    @cached_property
    def _index(self) -> NDArray[np.int32]:
        """Features that a joint cell has, among the sets that are held by no other."""
        starts = np.concatenate([[0], self._ends[:-1]])
        rows = [
            starts[s] + np.ravel_multi_index(tuple(self.cells[i] for i in self.sets[s]), self._shapes[s])
            for s in sorted(set(self._homes))
        ]
        return np.array(rows, np.int32)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int32], Floats]:
        """The cell of each measured pair of columns that a joint cell is in, and their means; pairs one after the other."""
        from privurn._kernels.tables.features import update_scattered

        rows, start = [np.zeros((0, self.cells.shape[1]), np.int32)], 0
        for i, k in sorted({pair for each in self.sets for pair in combinations(each, 2)}):
            rows.append((start + self.cells[i] * self.sizes[k] + self.cells[k]).astype(np.int32)[None, :])
            start += self.sizes[i] * self.sizes[k]
        index, means = np.concatenate(rows), np.empty((1, start))
        update_scattered(index, self.probabilities[None, :], means)
        return index, np.maximum(means[0], 1e-300)

    @property
    def pair_trust(self) -> float:
        """What the model's own pairs are trusted where they must not count: less by far than the noisy ones."""
        parts = np.split(self.variances, self._ends[:-1])
        worth = [1.0 / float(part.sum()) for part, each in zip(parts, self.sets, strict=True) if len(each) == 2]
        return min(MOST_PAIRS, min(worth, default=inf) / LESS_THAN_NOISE)

    def sums(self, numbers: Floats) -> Floats:
        """Sums over the joint cells in which each feature is 1."""
        from privurn._kernels.tables.features import update_scattered

        found = np.empty((len(numbers), int(self._ends[-1])))
        update_scattered(self._index, np.ascontiguousarray(numbers), found)
        parts = np.split(found, self._ends[:-1], axis=1)
        for s, home in enumerate(self._homes):
            if home != s:
                drop = tuple(1 + i for i, axis in enumerate(self.sets[home]) if axis not in self.sets[s])
                held = parts[home].reshape(len(numbers), *self._shapes[home])
                parts[s] = held.sum(axis=drop).reshape(len(numbers), -1)
        return np.concatenate(parts, axis=1)

    def combined(self, coefficients: Floats) -> Floats:
        """The sum of coefficient times feature at every joint cell."""
        from privurn._kernels.tables.features import update_gathered

        gathered = coefficients.copy()
        parts = np.split(gathered, self._ends[:-1], axis=1)  # views
        for s, home in enumerate(self._homes):
            if home != s:
                shape = [self.sizes[axis] if axis in self.sets[s] else 1 for axis in self.sets[home]]
                held = parts[home].reshape(len(gathered), *self._shapes[home])
                held = held + parts[s].reshape(len(gathered), *shape)
                parts[home][...] = held.reshape(len(gathered), -1)
        out = np.empty((len(coefficients), len(self.probabilities)))
        update_gathered(self._index, gathered, out)
        return out

    @cached_property
    def means(self) -> Floats:
        """Of the features under the model."""
        found: Floats = self.sums(self.probabilities[None, :])[0]
        return found

    def mean(self, functions: Floats) -> Floats:
        """Of functions, under the model."""
        found: Floats = functions @ self.probabilities
        return found

    def variance(self, functions: Floats) -> Floats:
        """Covariance matrix of functions, under the model."""
        centred = functions - self.mean(functions)[:, None]
        found: Floats = (self.probabilities * centred) @ centred.T
        return found

    def spread(self, functions: Floats, trust: Trust) -> Floats:
        """The covariance operator of the table's discrepancy from the model, applied to functions.

        That of `size` records, I/size, and for the pairs a random function of each measured pair of columns: the sum of the
        expectations given the cells of a pair, /pairs.
        """
        from privurn._kernels.tables.features import update_gathered, update_scattered

        centred = functions - self.mean(functions)[:, None]
        if trust.pairs == inf:
            return np.asarray(centred / trust.size)
        index, means = self._pairs
        within, back = np.empty((len(centred), len(means))), np.empty_like(centred)
        update_scattered(index, self.probabilities * centred, within)
        update_gathered(index, within / means, back)
        return np.asarray(centred / trust.size + back / trust.pairs)

    def discrepancies(self, functions: Floats, trust: Trust) -> Floats:
        """Covariances of the features' discrepancies with those of functions."""
        return self.sums(self.probabilities * self.spread(functions, trust))

    def solve(self, right: Floats, trust: Trust, *, tolerance: float, steps: int | None = None) -> Floats:
        """(D + S)^-1 right, D the covariance of the features' discrepancies, by conjugate gradients, row by row at once.

        Without a number of steps, what is found is put in again: where it is no solution after all, none is given.
        """
        diagonal = self.means * (1.0 - self.means) / trust.size + self.variances
        found = self._descended(right, trust, diagonal, tolerance=tolerance, steps=MOST_STEPS if steps is None else steps)
        if steps is not None or self._solves(found, right, trust, diagonal):
            return found
        if right.shape[1] <= MOST_WRITTEN_DOWN:
            found = self._written_down(right, trust)
            if self._solves(found, right, trust, diagonal):
                return found
        raise SamplingError(
            "the equations of this analysis cannot be solved as exactly as its interval needs.",
            hint="Use fewer or coarser columns, or terms that depend less on each other",
        )

    def _solves(self, found: Floats, right: Floats, trust: Trust, diagonal: Floats) -> bool:
        left = right - self._applied(found, trust)
        off, whole = (np.einsum("pf,pf->p", each, each / diagonal) for each in (left, right))
        return bool(np.all(off <= LARGEST_MISS**2 * whole))

    def _written_down(self, right: Floats, trust: Trust) -> Floats:
        ones = np.eye(right.shape[1])
        rows = [self._applied(ones[first : first + AT_ONCE], trust) for first in range(0, len(ones), AT_ONCE)]
        return np.asarray(np.linalg.solve(np.concatenate(rows), right.T).T)

    def _descended(self, right: Floats, trust: Trust, diagonal: Floats, *, tolerance: float, steps: int) -> Floats:
        stiff, applied_to_stiff, inverse = self._stiff(trust, diagonal)
        found = (right @ stiff.T) @ inverse @ stiff
        residual = right - (right @ stiff.T) @ inverse @ applied_to_stiff

        def smooth(scaled: Floats) -> Floats:
            return np.asarray(scaled - (scaled @ applied_to_stiff.T) @ inverse @ stiff)

        scaled = residual / diagonal
        direction = smooth(scaled)
        product = np.einsum("pf,pf->p", residual, scaled)
        wanted = tolerance**2 * np.einsum("pf,pf->p", right, right / diagonal)  # of what is left, rounding would not allow it
        for _ in range(steps):
            if (product <= wanted).all():
                break
            applied = self._applied(direction, trust)
            step = (product / np.maximum(np.einsum("pf,pf->p", direction, applied), 1e-300))[:, None]
            found += step * direction
            residual -= step * applied
            scaled = residual / diagonal
            following = np.einsum("pf,pf->p", residual, scaled)
            direction = smooth(scaled) + (following / np.maximum(product, 1e-300))[:, None] * direction
            product = following
        return found

    def _applied(self, coefficients: Floats, trust: Trust) -> Floats:
        return self.discrepancies(self.combined(coefficients), trust) + self.variances * coefficients

    def _stiff(self, trust: Trust, diagonal: Floats) -> tuple[Floats, Floats, Floats]:
        """Directions in which the pairs' part is large, D + S applied to them, and its inverse on them.

        They are solved for at once: conjugate gradients, left to the rest, would need thousands of steps.
        """
        if trust.pairs == inf:
            nothing = np.zeros((0, self.means.size))
            return nothing, nothing, np.zeros((0, 0))
        if trust not in self._known_stiff:
            from privurn._kernels.tables.features import update_gathered

            index, means = self._pairs
            kept = np.flatnonzero(means > COMMON)
            rows, applied = np.empty((len(kept), self.means.size)), np.empty((len(kept), self.means.size))
            for first in range(0, len(kept), AT_ONCE):
                here = kept[first : first + AT_ONCE]
                ones, cells = np.zeros((len(here), len(means))), np.empty((len(here), self.probabilities.size))
                ones[np.arange(len(here)), here] = means[here] ** -0.5
                update_gathered(index, ones, cells)
                block = slice(first, first + len(here))
                rows[block] = self.discrepancies(cells, Trust(1.0)) / diagonal
                applied[block] = self._applied(rows[block], trust)
            inverse = np.asarray(np.linalg.pinv(rows @ applied.T, rcond=1e-10, hermitian=True), np.float64)
            self._known_stiff[trust] = rows, applied, inverse
        return self._known_stiff[trust]

    @cached_property
    def _known_stiff(self) -> dict[Trust, tuple[Floats, Floats, Floats]]:
        """What `_stiff` has worked out before."""
        return {}


def _shared(table: MeasuredTable, used: Columns) -> dict[Columns, tuple[Floats, float]]:
    """Noisy counts and the variance of each, by the columns that measured sets share with those used."""
    sums: dict[Columns, Floats] = {}
    precisions: dict[Columns, float] = {}
    for each, y in table.marginals.items():
        shared = tuple(j for j in each if j in used)
        if not shared:
            continue
        axes = tuple(i for i, j in enumerate(each) if j not in used)
        summed = int(np.prod([table.sizes[each[i]] for i in axes]))
        precision = 1.0 / (summed * table.deviations[each] ** 2)
        sums[shared] = sums.get(shared, 0.0) + precision * y.sum(axis=axes)
        precisions[shared] = precisions.get(shared, 0.0) + precision
    order = sorted(sums, key=lambda each: (len(each), each))
    return {each: (sums[each] / precisions[each], 1.0 / precisions[each]) for each in order}
