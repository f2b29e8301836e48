"""Measured cells as features of a record, under a model of some columns: their covariance is applied, never written down.

A record of the columns used is one of their joint cells, over which the model has probabilities m. The features are the
indicators of all measured cells of sets of those columns. Of three columns there may be tens of thousands, so what is needed,
(G/n0 + S)^-1 c with G their covariance under m, is solved by conjugate gradients.

Functions of a record are arrays with a row for each function and a column for each joint cell; what belongs to features has a
row for each function as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.mechanisms.marginal_counts import Columns
from privurn.mechanisms.table_measurements import MeasuredTable

Floats = NDArray[np.float64]

MOST_JOINT_CELLS = 1_000_000
"""Of the columns that an analysis uses."""

LEFT_OUT = 1e-8
"""Probability of joint cells that are left out, the least probable ones."""

MOST_STEPS = 1_000


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
        return cls(used, cells, law[kept] / law[kept].sum(), sizes, sets, measured, noise / table.n**2)

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

    def covariances(self, functions: Floats) -> Floats:
        """Of the features with functions, under the model."""
        return self.sums(self.probabilities * (functions - self.mean(functions)[:, None]))

    def variance(self, functions: Floats) -> Floats:
        """Covariance matrix of functions, under the model."""
        centred = functions - self.mean(functions)[:, None]
        found: Floats = (self.probabilities * centred) @ centred.T
        return found

    def solve(self, right: Floats, *, size: float, tolerance: float, steps: int = MOST_STEPS) -> Floats:
        """(G/size + S)^-1 right by conjugate gradients, row by row at once."""
        diagonal = self.means * (1.0 - self.means) / size + self.variances
        found, residual = np.zeros_like(right), right.copy()
        direction = residual / diagonal
        product = np.einsum("pf,pf->p", residual, direction)
        wanted = tolerance**2 * product
        for _ in range(steps):
            if (product <= wanted).all():
                break
            applied = self.covariances(self.combined(direction)) / size + self.variances * direction
            step = (product / np.maximum(np.einsum("pf,pf->p", direction, applied), 1e-300))[:, None]
            found += step * direction
            residual -= step * applied
            scaled = residual / diagonal
            following = np.einsum("pf,pf->p", residual, scaled)
            direction = scaled + (following / np.maximum(product, 1e-300))[:, None] * direction
            product = following
        return found


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
