"""How far a mixture of products is from noisy marginals, and the gradient: matrix products in single precision.

With P = N^2/sigma^2 and Y = y/N the misfit is half the sum over measured cells of P (Q - Y)^2, Q the mixture's
probabilities. All pairs of columns are one product Phi^T diag(w) Phi over the cells of all columns side by side, halved because
each pair stands there twice; for triples, the first two columns a < b are multiplied out and all third columns are taken at
once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from privurn.mechanisms.table_measurements import MeasuredTable

Single = NDArray[np.float32]
Side = Callable[..., Iterable[tuple[float, Single, Single]]]
"""As `map`: for parts one after the other, or side by side in threads."""

PARTS = 4
"""Of the triples, added up in order: the same sum however many threads there are."""


LEAST_NOISE = 1.0
"""Less than a record of noise on a count is fitted as one record: no mixture is that near, and precisions stay small."""

SURER = 0.1
"""Deviation that stands for certainty about what is public, in the smallest one of the noise: none would be too stiff."""

EMPTY = 0.5
"""The same of structurally empty cells. To be surer is to pay more in a prior of many classes, each of which must choose:
values that only some records may have were given up where noise was large. Records are kept out of them exactly."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Measured triples that begin with columns a and b: shares of the cells (a, b) by cells of the third columns."""

    a: int
    b: int
    third: slice | NDArray[np.int64]
    shares: Single
    precision: Single
    """Of each cell of the third columns."""


@dataclass(frozen=True, eq=False)
class Objective:
    """Noisy marginals as shares of N records, with their precisions."""

    starts: tuple[int, ...]
    one: Single
    one_precision: Single
    two: Single
    two_precision: Single
    triples: tuple[Triples, ...]
    empty: NDArray[np.int64]
    """Cells of three columns that no record has together, a row for each column."""
    nearly: float
    """Precision with which these are empty."""

    @classmethod
    def of(cls, table: MeasuredTable) -> "Objective":
        """What was measured; sets that were not have no precision, and what is publicly known is taken in its place."""
        n, starts, cells = table.n, table.starts, table.starts[-1]
        one, one_precision = np.zeros(cells, np.float32), np.zeros(cells, np.float32)
        two, two_precision = np.zeros((cells, cells), np.float32), np.zeros((cells, cells), np.float32)
        for places, y in table.marginals.items():
            at = [slice(starts[j], starts[j + 1]) for j in places]
            precision = (n / max(table.deviations[places], LEAST_NOISE)) ** 2
            if len(places) == 1:
                one[at[0]], one_precision[at[0]] = y / n, precision
            elif len(places) == 2:
                two[at[0], at[1]], two_precision[at[0], at[1]] = y / n, precision
                two[at[1], at[0]], two_precision[at[1], at[0]] = y.T / n, precision
        sure, nearly = ((n / max(LEAST_NOISE, each * float(table.mechanism.deviations.min()))) ** 2 for each in (SURER, EMPTY))
        for places, known in ({} if table.domain is None else table.domain.known_shares).items():
            at = [slice(starts[j], starts[j + 1]) for j in places]
            if len(places) == 1:
                one[at[0]], one_precision[at[0]] = known, sure
            else:
                two[at[0], at[1]], two_precision[at[0], at[1]] = known, sure
                two[at[1], at[0]], two_precision[at[1], at[0]] = np.transpose(known), sure
        zeros = [[starts[j] + cell for j, cell in each] for each in (() if table.domain is None else table.domain.zero_cells)]
        for a, b in (each for each in zeros if len(each) == 2):
            two[a, b] = two[b, a] = 0.0
            two_precision[a, b] = two_precision[b, a] = nearly
        empty = np.array([each for each in zeros if len(each) == 3], np.int64).reshape(-1, 3).T
        return cls(starts, one, one_precision, two, two_precision, _triples(table), empty, nearly)

    @cached_property
    def parts(self) -> tuple[tuple[Triples, ...], ...]:
        """The triples in parts of about as many cells, the largest first to the smallest part."""
        parts: list[list[Triples]] = [[] for _ in range(PARTS)]
        for each in sorted(self.triples, key=lambda each: -each.shares.size):
            min(parts, key=lambda part: sum(other.shares.size for other in part)).append(each)
        return tuple(tuple(part) for part in parts if part)

    def value(self, weights: Single, cells: Single, *, triples: bool, side: Side = map) -> tuple[float, Single, Single]:
        """The misfit, and its gradient by the weights and by the cells' probabilities."""
        q1 = weights @ cells
        r1 = self.one_precision * (q1 - self.one)
        weighted = weights[:, None] * cells
        q2 = cells.T @ weighted
        q2 -= self.two
        r2 = self.two_precision * q2
        misfit = 0.5 * float(r1 @ (q1 - self.one)) + 0.25 * float(np.vdot(r2, q2))
        pulled = cells @ r2
        by_weights = 0.5 * np.einsum("kd,kd->k", pulled, cells) + cells @ r1
        by_cells = weights[:, None] * (pulled + r1)
        if self.empty.size:
            misfit += self._add_empty(weights, cells, by_weights, by_cells)
        if triples:
            for own in side(lambda part: self._part(part, weights, cells), self.parts):
                misfit, by_weights, by_cells = misfit + own[0], by_weights + own[1], by_cells + own[2]
        return misfit, by_weights, by_cells

    def _add_empty(self, weights: Single, cells: Single, by_weights: Single, by_cells: Single) -> float:
        """What the structural zeros of three columns weigh; the gradients are raised by theirs."""
        own = [cells[:, each] for each in self.empty]
        product = own[0] * own[1] * own[2]
        share = weights @ product
        residual = np.float32(self.nearly) * share
        by_weights += product @ residual
        pull = weights[:, None] * residual
        for i, at in enumerate(self.empty):
            np.add.at(by_cells.T, at, (pull * own[i - 1] * own[i - 2]).T)  # a cell may stand in several
        return 0.5 * float(residual @ share)

    def _part(self, part: tuple[Triples, ...], weights: Single, cells: Single) -> tuple[float, Single, Single]:
        """The misfit of some triples and its gradients."""
        by_weights, by_cells = np.zeros_like(weights), np.zeros_like(cells)
        misfit = sum(self._add(each, weights, cells, by_weights, by_cells) for each in part)
        return misfit, by_weights, by_cells

    def _add(self, each: Triples, weights: Single, cells: Single, by_weights: Single, by_cells: Single) -> float:
        """The misfit of triples that begin alike; the gradients are raised by theirs."""
        at_a, at_b = (slice(self.starts[j], self.starts[j + 1]) for j in (each.a, each.b))
        first, second, third = cells[:, at_a], cells[:, at_b], cells[:, each.third]
        product = first[:, :, None] * second[:, None, :]
        flat = product.reshape(len(weights), -1)
        weighted = weights[:, None] * flat
        off = weighted.T @ third
        off -= each.shares
        residual = off * each.precision
        misfit = 0.5 * float(np.vdot(residual, off))
        by_cells[:, each.third] += weighted @ residual
        pulled = third @ residual.T
        by_weights += np.einsum("kd,kd->k", pulled, flat)
        pulled *= weights[:, None]
        shaped = pulled.reshape(product.shape)
        by_cells[:, at_a] += np.einsum("kab,kb->ka", shaped, second)
        by_cells[:, at_b] += np.einsum("kab,ka->kb", shaped, first)
        return misfit


def _triples(table: MeasuredTable) -> tuple[Triples, ...]:
    found, starts = [], table.starts
    sets = sorted(each for each in table.layout.sets if len(each) == 3)
    for (a, b), group in groupby(sets, key=lambda each: each[:2]):
        thirds = [each[2] for each in group]
        places = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in thirds])
        whole = slice(int(places[0]), int(places[-1]) + 1) if len(places) == places[-1] - places[0] + 1 else places
        pair = table.sizes[a] * table.sizes[b]
        shares = np.concatenate([table.marginals[a, b, c].reshape(pair, -1) for c in thirds], axis=1) / table.n
        precision = np.concatenate(
            [np.full(table.sizes[c], (table.n / max(table.deviations[a, b, c], LEAST_NOISE)) ** 2) for c in thirds]
        )
        found.append(Triples(a, b, whole, shares.astype(np.float32), precision.astype(np.float32)))
    return tuple(found)
