"""Tables of the law of a split, against SciPy's laws and against the laws that nodes compute by themselves."""

import numpy as np
import pytest
from scipy import stats

from privurn._kernels.trees.split_laws import update_tables
from privurn.cell_tree import CellTree
from privurn.inference.trees import approximation
from privurn.inference.trees.splits import CONCENTRATIONS
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.additive_noise import simulated_noise

WEIGHTS = np.arange(1.0, 10.0) / 45.0
WEIGHTS[4] = 0.0


def laws(size, *, r, h):
    tables = np.full((1, 1 + len(CONCENTRATIONS), size, size), np.nan)
    kept = np.where(WEIGHTS > 0.0, WEIGHTS, 0.0)
    update_tables(tables, np.array([r]), h, np.array(CONCENTRATIONS), kept)
    return tables[0]


def test_on_whole_counts_tables_hold_the_laws_of_the_prior():
    size, r = 12, 0.6
    found = laws(size, r=r, h=1)
    mixed = np.zeros((size, size))
    for c, (a, weight) in enumerate(zip(CONCENTRATIONS, WEIGHTS, strict=True)):
        if weight == 0.0:
            continue
        for i in range(size):
            for j in range(size):
                law = stats.binom(i + j, r) if np.isinf(a) else stats.betabinom(i + j, a * r, a * (1 - r))
                assert found[c + 1, i, j] == pytest.approx(law.pmf(i), rel=1e-9, abs=1e-300)
                mixed[i, j] += weight * found[c + 1, i, j]
    assert np.allclose(found[0], mixed, rtol=1e-12)


def test_on_coarse_lattices_every_sum_has_its_mean_and_variance():
    size, r, h = 40, 0.5, 4
    found = laws(size, r=r, h=h)
    for c, a in enumerate(CONCENTRATIONS):
        for total in (0, 1, 2, 7, 30) if WEIGHTS[c] > 0.0 else ():
            i = np.arange(total + 1)
            law = found[c + 1][i, total - i]
            mean = law @ i
            assert law.sum() == pytest.approx(1.0, abs=1e-4)
            assert mean == pytest.approx(r * total, abs=1e-3 * max(total, 1))
            count = total * h
            wanted = count * r * (1 - r) * (1.0 if np.isinf(a) else (a + count) / (a + 1.0))
            if total > 2 and wanted / h**2 > 0.5:
                assert h**2 * (law @ i**2 - mean**2) == pytest.approx(wanted, rel=0.05)


def test_nodes_with_a_shared_table_find_what_those_without_find(monkeypatch):
    rng = np.random.default_rng(4)
    counts = rng.multinomial(60, rng.dirichlet(np.full(37, 0.2)))
    tree = CellTree((37,))
    sums = [tree.sums(counts, depth) for depth in (2, 6)]
    noisy = tuple(each + simulated_noise(each.shape, noise="laplace", scale=1.0, rng=rng) for each in sums)
    seen = TreeMeasurements(tree, (2, 6), noisy, (("laplace", 1.0),) * 2, total=60)
    monkeypatch.setattr(approximation, "DEARER", 0.0)
    work = approximation.Propagation(seen, approximation.Splits(tree))
    work.fitted()
    assert any((each.nodes["table"] >= 0).any() for each in work.levels)
    assert {each.spacing for each in work.levels} == {1}
    shared = approximation.approximate_posterior(seen)
    monkeypatch.setattr(approximation, "FEW", 10**9)
    own = approximation.approximate_posterior(seen)
    assert np.allclose(shared.weights, own.weights, rtol=1e-6)
    assert np.allclose(shared.counts, own.counts, rtol=1e-6)
