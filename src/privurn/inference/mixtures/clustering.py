"""From many drawn clusterings to what a person can read: who is with whom, and one clustering in the middle of them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError

Loss = Literal["binder", "variation-of-information"]

MOST_ROWS = 5_000
"""The matrix of all pairs is quadratic in the rows: beyond this a subsample must be asked for."""

MOST_DRAWS = 500
"""Drawn clusterings that the search for a central one looks at, evenly spread over the draws."""

MOST_STARTS = 20


@dataclass(frozen=True, eq=False)
class CoClustering:
    """probabilities[a, b]: posterior probability that rows[a] and rows[b] are in one cluster."""

    rows: NDArray[np.int64]
    probabilities: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PointClustering:
    """Labels 0, 1, ... by first appearance, and the mean loss against the draws that were looked at."""

    labels: NDArray[np.int64]
    loss: Loss
    expected_loss: float

    @property
    def n_clusters(self) -> int:
        """Clusters."""
        return int(self.labels.max()) + 1


def co_clustering(allocations: ArrayLike, *, rows: ArrayLike | None = None) -> CoClustering:
    """How often each two rows are in one cluster; `allocations` has a row of labels for each draw.

    >>> co_clustering([[0, 0, 1], [0, 1, 1]]).probabilities[0].tolist()
    [1.0, 0.5, 0.0]
    """
    from privurn._kernels.mixtures.partitions import update_together

    labels = _checked(allocations)
    chosen = np.arange(labels.shape[1]) if rows is None else np.asarray(rows, np.int64)
    if len(chosen) > MOST_ROWS:
        raise ModelError(
            f"the matrix of all pairs is quadratic: at most {MOST_ROWS:,} rows.",
            hint="Give rows, for example rows=range(0, n, n // 1000)",
        )
    if len(chosen) < 1 or chosen.min() < 0 or chosen.max() >= labels.shape[1]:
        raise ModelError("rows must be numbers of rows that the allocations have.")
    together = np.zeros((len(chosen), len(chosen)), np.int64)
    update_together(together, np.ascontiguousarray(labels[:, chosen]))
    together += np.triu(together, 1).T
    return CoClustering(chosen, together / len(labels))


def point_clustering(
    allocations: ArrayLike, *, loss: Loss = "variation-of-information", seed: int = 0, starts: int = MOST_STARTS
) -> PointClustering:
    """A clustering whose mean loss against the draws is small: greedy moves of single rows from several drawn clusterings.

    "binder" counts pairs that are together in one and apart in the other, divided by the number of pairs;
    "variation-of-information" (Meila 2007) is in nats. The search ends where no single row wants to move; that this is the
    least loss over all clusterings is not proved. `seed` is for the order in which rows are visited.

    >>> point_clustering([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]).labels.tolist()
    [0, 0, 1, 1]
    """
    from privurn._kernels.mixtures.partitions import expected_loss, update_candidate, update_terms

    if loss not in ("binder", "variation-of-information"):
        raise ModelError(f"the loss {loss!r} is not known.", hint="binder or variation-of-information")
    labels = _checked(allocations)
    looked_at = labels[np.unique(np.linspace(0, len(labels) - 1, MOST_DRAWS).astype(np.int64))]
    n_draws, n = looked_at.shape
    n_labels = int(looked_at.max()) + 1
    terms = np.empty(n + 2)
    update_terms(terms, loss != "binder")
    rng = np.random.default_rng(seed)
    first = np.unique(np.linspace(0, n_draws - 1, max(1, starts)).astype(np.int64))
    best: tuple[float, NDArray[np.int64]] | None = None
    for start in [*(looked_at[i] for i in first), np.zeros(n, np.int64)]:
        candidate = start.copy()
        most = min(n, 2 * n_labels + 2)
        for _ in range(100):
            candidate = relabelled(candidate)
            if update_candidate(candidate, looked_at, terms, most, n_labels, rng.permutation(n)) == 0:
                break
        candidate = relabelled(candidate)
        found = float(expected_loss(candidate, looked_at, terms, int(candidate.max()) + 1, n_labels))
        if best is None or found < best[0]:
            best = found, candidate
    assert best is not None
    scale = n * (n - 1) if loss == "binder" else n
    return PointClustering(best[1], loss, best[0] / max(1, scale))


def adjusted_rand_index(first: ArrayLike, second: ArrayLike) -> float:
    """Agreement of two clusterings corrected for chance (Hubert and Arabie 1985): 1 for the same, about 0 for unrelated.

    >>> adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    a, b = (np.unique(np.asarray(each), return_inverse=True)[1].ravel() for each in (first, second))
    if len(a) != len(b) or len(a) < 2:
        raise ModelError("two clusterings of the same rows, at least two of them, are needed.")
    table = np.bincount(a * (b.max() + 1) + b).astype(np.float64)

    def pairs(sizes: NDArray[np.float64]) -> float:
        return float(np.sum(sizes * (sizes - 1.0)) / 2.0)

    together, rows, columns = pairs(table), pairs(np.bincount(a).astype(np.float64)), pairs(np.bincount(b).astype(np.float64))
    chance = rows * columns / (len(a) * (len(a) - 1) / 2.0)
    largest = (rows + columns) / 2.0
    return 1.0 if largest == chance else (together - chance) / (largest - chance)


def relabelled(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same clustering with labels 0, 1, ... in order of first appearance.

    >>> relabelled(np.array([7, 7, 3, 7])).tolist()
    [0, 0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse.ravel()], np.int64)


def _checked(allocations: ArrayLike) -> NDArray[np.int64]:
    """Draws by rows, labels small and not negative; chains are put one after the other."""
    labels = np.asarray(allocations)
    if labels.ndim > 2:
        labels = labels.reshape(-1, labels.shape[-1])
    if labels.ndim != 2 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise ModelError("allocations must be whole labels, one row for each draw and one column for each record.")
    return np.stack([relabelled(each) for each in labels.astype(np.int64)])
