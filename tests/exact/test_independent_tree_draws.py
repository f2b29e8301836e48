"""Independent draws from a noisy tree against the enumerated law, given the weights that were learnt."""

import numpy as np
import pytest
from polya_tree_laws import Enumerated, node_counts, noise_log, split_law, split_nodes, tables

from privurn.cell_tree import CellTree
from privurn.inference.trees import approximation
from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.independent import IndependentDraws, drawn_nodes
from privurn.inference.trees.splits import CONCENTRATIONS
from privurn.mechanisms.tree_measurements import TreeMeasurements

DRAWS = 40_000
ERRORS = 5.0  # the seed settles false alarms


def measured(kind, *, total=6):
    tree = CellTree((3,))
    noisy = (np.array([4, 1]), np.array([2, 3, -1]))
    return TreeMeasurements(tree, (1, 2), noisy, ((kind, 1.5), (kind, 1.2)), total=total)


def enumerated(seen, weights, base):
    """Every table with its probability, and the posterior mean of each cell's share of the population."""
    splits = prior_splits(seen, base)
    sizes = [seen.total] if seen.total is not None else range(27)
    listed, logs, shares = [], [], []
    for n in sizes:
        for table in tables(3, n):
            sums = node_counts(seen.tree, table)
            log, mean = noise_log(seen, table), np.ones(3)
            reached = {(0, 0): 1.0}
            for depth, u in split_nodes(splits):
                first, count = splits.children[depth][u], sums[depth][u]
                left, r = sums[depth + 1][first], splits.shares[depth][u]
                each = np.array(
                    [w * np.exp(split_law(left, count, a, r)) for a, w in zip(CONCENTRATIONS, weights[depth], strict=True)]
                )
                log += np.log(each.sum())
                thetas = [r if np.isinf(a) else (a * r + left) / (a + count) for a in CONCENTRATIONS]
                theta = float(each @ thetas / each.sum())
                reached[depth + 1, first] = reached[depth, u] * theta
                reached[depth + 1, first + 1] = reached[depth, u] * (1.0 - theta)
            for depth in range(splits.depth):
                for u in np.flatnonzero(~splits.two[depth]):
                    reached[depth + 1, splits.children[depth][u]] = reached[depth, u]
            mean[seen.tree.order] = [reached[splits.depth, u] for u in range(3)]
            listed.append(table)
            logs.append(log)
            shares.append(mean)
    mass = np.exp(np.array(logs) - max(logs))
    mass /= mass.sum()
    return np.array(listed), mass, mass @ np.array(shares)


def gap(seen, drawn, weights, *, base=None):
    """Largest deviation of table frequencies and of mean shares, in standard errors."""
    listed, mass, shares = enumerated(seen, weights, base)
    found = np.rint(drawn.counts).astype(np.int64).T
    apart = []
    for table, p in zip(listed, mass, strict=True):
        if p * DRAWS > 30:
            share = float((found == table).all(axis=1).mean())
            apart.append(abs(share - p) / np.sqrt(p * (1 - p) / DRAWS))
    errors = drawn.masses.std(axis=1) / np.sqrt(DRAWS)
    return max(*apart, *(np.abs(drawn.masses.mean(axis=1) - shares) / errors))


@pytest.mark.parametrize("shared", [False, True], ids=["laws of its own", "shared laws"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("total", [6, None])
def test_tables_and_shares_have_the_enumerated_law(kind, total, shared, monkeypatch):
    """Whether a split has its own laws or shares a table of them, as those of large trees do."""
    if shared:
        monkeypatch.setattr(approximation, "FEW", 1)
        monkeypatch.setattr(approximation, "DEARER", 0.0)
    seen = measured(kind, total=total)
    source = IndependentDraws(seen)
    assert [bool(each.nodes["table"].max() >= 0) for each in source._fitted[0].levels[:-1]] == [shared] * 2
    drawn = source.draw(DRAWS, rng=np.random.default_rng(1))
    assert gap(seen, drawn, source._fitted[1]) < ERRORS
    assert np.allclose(drawn.masses.sum(axis=0), 1.0)
    if total is not None:
        assert np.allclose(drawn.counts.sum(axis=0), total)


def test_a_base_measure_decides_where_hidden_records_lie():
    seen, base = measured("gaussian"), np.array([1.0, 2.0, 5.0])
    source = IndependentDraws(seen, base)
    drawn = source.draw(DRAWS, rng=np.random.default_rng(1))
    assert gap(seen, drawn, source._fitted[1], base=base) < ERRORS
    assert gap(seen, drawn, source._fitted[1]) > 2 * ERRORS


def test_children_that_are_read_off_by_one_are_caught():
    """Planted: what the splits below say belongs to the neighbouring count."""
    seen = measured("laplace")
    source = IndependentDraws(seen)
    work, weights = source._fitted
    work.messages[1] = np.roll(work.messages[1], 1)
    assert gap(seen, source.draw(DRAWS, rng=np.random.default_rng(1)), weights) > 2 * ERRORS


def test_a_range_has_what_its_cells_have_where_lattices_are_coarse():
    """The blur between lattices of different spacing does not add up over cells: draws of a seed agree from depth to depth."""
    tree, rng = CellTree((64,)), np.random.default_rng(4)
    counts = rng.multinomial(1_000_000, np.full(64, 1 / 64))
    noisy = tuple(tree.sums(counts, depth) + rng.laplace(0.0, 60.0, tree.nodes(depth)).astype(np.int64) for depth in (3, 6))
    work, weights = IndependentDraws(TreeMeasurements(tree, (3, 6), noisy, (("laplace", 60.0),) * 2, total=1_000_000))._fitted
    assert len({level.spacing for level in work.levels}) > 1
    below = [drawn_nodes(work, weights, depth, draws=50, rng=np.random.default_rng(5))[1] for depth in (3, 6)]
    assert np.allclose(below[1].reshape(8, 8, 50).sum(axis=1), below[0], rtol=1e-9)
    assert np.allclose(below[1].sum(axis=0), 1_000_000, rtol=1e-9)


def twice(likelihood, weights, hyper):
    """The planted error: every split teaches the weights that it is judged by."""
    for _ in range(50):
        counted = hyper + weights * ((1.0 / (likelihood @ weights)) @ likelihood)
        weights = counted / counted.sum()
    return weights


@pytest.mark.parametrize(("learnt", "right"), [(approximation.learnt_weights, True), (twice, False)], ids=["prior", "twice"])
def test_the_only_split_of_a_depth_is_judged_by_the_prior(learnt, right, monkeypatch):
    """Its weights integrated out are those of the prior, and the draws have the posterior itself."""
    monkeypatch.setattr(approximation, "learnt_weights", learnt)
    seen = TreeMeasurements(CellTree((2,)), (1,), (np.array([41, -1]),), (("laplace", 1.3),), total=40)
    listed, many = Enumerated(seen), 25 * DRAWS
    drawn = IndependentDraws(seen).draw(many, rng=np.random.default_rng(1)).counts[0]
    found = np.bincount(np.rint(drawn).astype(np.int64), minlength=41)[np.array(listed.tables)[:, 0]] / many
    p, often = listed.probabilities, listed.probabilities * many > 30
    worst = np.max(np.abs(found - p)[often] / np.sqrt(p * (1 - p) / many)[often])
    assert (worst < ERRORS) == right, worst
    assert right or worst > 2 * ERRORS
