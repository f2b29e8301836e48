"""Counts of least expected Wasserstein distance: medians of cumulative shares, and means where there is no one order."""

import numpy as np

from privurn.cell_tree import CellTree
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.nearest import ROUNDS, _move_to_medians, nearest_counts
from privurn.mechanisms.tree_measurements import TreeMeasurements


def measured(counts, *, depths, scale, rng, shape=None):
    tree = CellTree(shape or (len(counts),))
    noise = [np.rint(rng.laplace(0.0, scale, tree.nodes(depth))).astype(np.int64) for depth in depths]
    noisy = tuple(tree.sums(counts, depth) + each for depth, each in zip(depths, noise, strict=True))
    return TreeMeasurements(tree, depths, noisy, (("laplace", scale),) * len(depths), total=int(counts.sum()))


def test_cumulative_shares_are_medians_of_those_drawn():
    """Three draws of two ranges of two cells; means as drawn, so that nothing but the medians is left."""
    nodes = np.array([[8.0, 9.0, 1.0], [2.0, 1.0, 9.0]])
    counts = np.repeat(nodes.mean(axis=1), 2) * np.array([0.25, 0.75, 0.5, 0.5])
    _move_to_medians(counts, np.array([0, 2]), nodes)
    assert np.allclose(counts, [2.0, 6.0, 1.0, 1.0])


def test_without_spread_nothing_moves_and_no_record_is_fine():
    counts = np.array([1.0, 2.0, 3.0, 4.0])
    _move_to_medians(counts, np.array([0, 2]), np.array([[3.0] * 5, [7.0] * 5]))
    assert np.allclose(counts, [1.0, 2.0, 3.0, 4.0])
    for none in (np.zeros(4), counts):
        kept = none.copy()
        _move_to_medians(kept, np.array([0, 2]), np.zeros((2, 5)))
        assert np.array_equal(kept, none)


def test_a_long_empty_tail_is_nearer_than_with_means():
    """All records on few cells at the low end: means of hundreds of empty cells make a tail that medians leave out."""
    counts, rng = np.zeros(256, np.int64), np.random.default_rng(6)
    counts[:3] = 300, 150, 50
    apart = {"means": 0.0, "medians": 0.0}
    for _ in range(10):
        seen = measured(counts, depths=(4, 8), scale=4.0, rng=rng)
        for name, found in (("means", approximate_posterior(seen)), ("medians", nearest_counts(seen, rng=rng))):
            assert np.all(found.counts >= 0.0)
            assert np.isclose(found.counts.sum(), 500.0)
            apart[name] += np.abs(np.cumsum(found.counts - counts)).sum()
    assert apart["medians"] < 0.8 * apart["means"]


def test_two_columns_keep_their_means():
    counts, rng = np.arange(16), np.random.default_rng(7)
    seen = measured(counts, depths=(2, 4), scale=3.0, rng=rng, shape=(4, 4))
    assert np.array_equal(nearest_counts(seen, rng=rng).counts, approximate_posterior(seen, rounds=ROUNDS).counts)


def test_later_rounds_learn_how_smooth_a_column_is():
    """Even columns that noise half hides: cells are nearer to the truth than after one round, and hardly further elsewhere."""
    rng, apart = np.random.default_rng(8), {}
    laws = {"even": np.full(1024, 1.0 / 1024), "sparse": np.where(np.arange(1024) % 97 == 5, 1.0 / 11, 0.0)}
    for name, law in laws.items():
        found = {1: 0.0, ROUNDS: 0.0}
        for _ in range(5):
            counts = rng.multinomial(250_000, law / law.sum())
            seen = measured(counts, depths=(4, 7, 10), scale=60.0, rng=rng)
            for rounds in found:
                found[rounds] += np.abs(approximate_posterior(seen, rounds=rounds).counts - counts).sum()
        apart[name] = found[ROUNDS] / found[1]
    assert apart["even"] < 0.95
    assert apart["sparse"] < 1.02
