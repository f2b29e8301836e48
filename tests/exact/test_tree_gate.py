"""Polya trees through the public call at its defaults: noisy trees and cells in an order, enumerated with all their states.

The chain is exact. The fast draws have weights of the concentrations that other splits of a depth teach; given these they are
exact where nothing but the cells was measured. Three cells have one split in each depth, which is judged by the prior's: there
the fast draws are exact where ranges were measured too.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from polya_tree_laws import Enumerated, noise_log
from test_cells_as_trees import enumerated
from test_inference_gate import assert_agreement

import privurn
from privurn import Run
from privurn.cell_tree import CellTree
from privurn.inference.counts.released import Observed
from privurn.inference.trees.cells import cells_as_tree
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.noisy_tree import PerturbedTree, TreeCounts
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.mechanisms.tree_measurements import TreeMeasurements

GRID = privurn.JointDomain({"x": privurn.Grid(0, 2, 1)})
LARGEST = 14
"""Of the flat prior of a secret n, so that everything can be listed."""


def assert_shares(found, tables, law):
    """Of all cells; of no records there are none, which is at most nothing."""
    sizes, points = tables.sum(axis=1), (0.1, 0.3, 0.6)
    for cell in range(3):
        wanted = [float(law[(sizes > 0) & (tables[:, cell] <= point * sizes)].sum()) for point in points]
        assert_agreement(found[f"P(x={cell})"], points, wanted)


TREES = [(size, noise) for size in ("public", "secret") for noise in ("discrete-laplace", "discrete-gaussian")]


@pytest.mark.parametrize("exact", [True, False], ids=["chain", "default"])
@pytest.mark.parametrize(("size", "noise"), [TREES[0], *(pytest.param(*row, marks=pytest.mark.long) for row in TREES[1:])])
def test_noisy_trees(size, noise, exact):
    n, noisy = 6 if size == "public" else None, (np.array([4, 1]), np.array([2, 3, -1]))
    noises = tuple((noise.removeprefix("discrete-"), scale) for scale in (1.5, 1.2))
    seen = TreeMeasurements(CellTree((3,)), (1, 2), noisy, noises, total=n)
    mechanism = PerturbedTree(n=n, shape=(3,), depths=(1, 2), scales=(1.5, 1.2), noise=noise)
    observed = Observed(mechanism=mechanism, domain=GRID, counts=np.ones(3), measured=seen)
    model = privurn.PolyaTree(exact=exact, largest_n=LARGEST)
    found = privurn.infer(observed, model, ask="cells", of="sample", run=Run(seed=1, draws=4_000)).draws
    listed = Enumerated(seen, largest=LARGEST)
    assert_shares(found, np.array(listed.tables), listed.probabilities)


def summing_up(counts, above, below):
    """Log of the law of noise on a range and on its parts that sums up, by listing all such noise."""
    reach = range(-60, 61)
    whole = sum(
        math.exp(-sum(map(abs, parts)) / below - abs(sum(parts)) / above)
        for parts in itertools.product(reach, repeat=len(counts) - 1)
    )
    if counts[0] != sum(counts[1:]):
        return -math.inf
    return -abs(counts[0]) / above - sum(map(abs, counts[1:])) / below - math.log(whole)


@pytest.mark.parametrize("exact", [True, False], ids=["chain", "default"])
@pytest.mark.parametrize("n", [6, pytest.param(None, marks=pytest.mark.long)], ids=["public", "secret"])
def test_noisy_trees_whose_noise_sums_up(n, exact):
    mechanism = PerturbedTree(n=n, shape=(3,), depths=(1, 2), scales=(1.5, 1.2), noise="discrete-laplace", tied=(2,))
    noisy = np.array([4, 1]), np.array([5, -1, 1])
    seen = mechanism.measurements(TreeCounts(noisy, np.zeros(0, np.int64)))
    observed = Observed(mechanism=mechanism, domain=GRID, counts=np.ones(3), measured=seen)
    found = privurn.infer(
        observed, privurn.PolyaTree(exact=exact, largest_n=LARGEST), ask="cells", of="sample", run=Run(seed=1, draws=4_000)
    ).draws
    listed = Enumerated(seen, largest=LARGEST)
    logs = []
    for table in listed.tables:
        two, one = noisy[1] - np.array(table), noisy[0] - np.array([table[0] + table[1], table[2]])
        stated = summing_up((one[0], two[0], two[1]), 1.5, 1.2) + summing_up((one[1], two[2]), 1.5, 1.2)
        logs.append(stated - noise_log(seen, table))
    weights = listed.probabilities * np.exp(np.array(logs) - max(logs))
    assert_shares(found, np.array(listed.tables), weights / weights.sum())


HALF = Fraction(1, 2)
URN = DirichletMultinomial(n=6, cells=3, alpha=HALF, records=7)
CELLS = {
    "dirichlet-multinomial": (URN, [4, 1, 2]),
    "label-discovery": (
        DiscoveredUrn(
            n=6,
            records=7,
            discovery=LabelDiscovery(scale=1.0, threshold=10),
            urn=URN,
            urn_guarantee=privurn.Guarantee(epsilon=1.0, delta=1e-6),
        ),
        [4, 1, 2],
    ),
    "dirichlet-process": (PitmanYor(n=6, records=7, strength=Fraction(2), base=FiniteBase(cells=3)), [4, 1, 2]),
    "perturbed-histogram": (
        PerturbedHistogram(n=6, cells=3, records=3, noise="discrete-laplace", scale=1.2, publish="counts"),
        [4, 2, -1],
    ),
    "perturbed-histogram, secret n": (
        PerturbedHistogram(n=None, cells=3, records=3, noise="discrete-laplace", scale=1.2, publish="counts"),
        [4, 2, -1],
    ),
    "perturbed-histogram gaussian": (
        PerturbedHistogram(n=6, cells=3, records=3, noise="discrete-gaussian", scale=1.2, publish="counts"),
        [4, 2, -1],
    ),
    "smoothed-histogram": (SmoothedHistogram(n=6, cells=3, records=8, weight=HALF), [5, 2, 1]),
    "posterior-sample": (PosteriorSample(n=6, cells=3, alpha=HALF, records=10), [[5, 1, 4]]),
}


def assert_cells(observed, tables, law):
    """Of the confidential records, by the public call."""
    model = privurn.PolyaTree(largest_n=LARGEST)
    found = privurn.infer(observed, model, ask="cells", of="sample", run=Run(seed=1, draws=4_000)).draws
    assert_shares(found, tables, law)


@pytest.mark.parametrize("row", CELLS)
def test_cells_in_an_order(row):
    """The default prior of more of them than 16."""
    mechanism, numbers = CELLS[row]
    counts = np.array(numbers) / (10.0 if row == "posterior-sample" else 1)
    term = mechanism.likelihood(Numbers(counts))
    seen = cells_as_tree(term, GRID, n=mechanism.n)
    weights = IndependentDraws(seen)._fitted[1]
    observed = Observed(mechanism=mechanism, domain=GRID, counts=counts)
    sizes = range(LARGEST + 1) if mechanism.n is None else [mechanism.n]
    assert_cells(observed, *enumerated(term, seen, weights, sizes))


def test_records_of_noisy_counts_in_an_order():
    """The sum of the positive noisy counts is one of five, equally likely; given it cells have laws of their own."""
    mechanism, released = (
        PerturbedHistogram(n=24, cells=3, records=60, noise="discrete-laplace", scale=0.8),
        np.array([40, 18, 2]),
    )
    seen, laws = cells_as_tree(mechanism.likelihood(Numbers(released)), GRID, n=24), []
    for version in seen.versions:
        [law] = version.laws
        cells = [law.logs(released[[j]], np.arange(25.0), np.zeros(25, np.int64)) for j in range(3)]
        weights = IndependentDraws(version)._fitted[1]
        tables, own = enumerated(
            lambda table, cells=cells: sum(logs[c] for logs, c in zip(cells, table, strict=True)), version, weights, [24]
        )
        laws.append(own)
    assert_cells(Observed(mechanism=mechanism, domain=GRID, counts=released), tables, np.mean(laws, axis=0))
