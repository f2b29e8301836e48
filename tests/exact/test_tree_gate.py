"""Polya trees through the public call at its defaults: noisy trees and cells in an order, enumerated with all their states.

The chain is exact. The fast draws have learnt weights of the concentrations; given these they are exact where nothing but the
cells was measured, and up to `APART` off in a share where ranges were measured too, which is what three cells leave to learn.
"""

from fractions import Fraction

import numpy as np
import pytest
from polya_tree_laws import Enumerated
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
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.mechanisms.tree_measurements import TreeMeasurements

APART = 0.02
GRID = privurn.JointDomain({"x": privurn.Grid(0, 2, 1)})
LARGEST = 14
"""Of the flat prior of a secret n, so that everything can be listed."""

TREES = [(size, noise) for size in ("public", "secret") for noise in ("discrete-laplace", "discrete-gaussian")]


@pytest.mark.parametrize("exact", [True, False], ids=["chain", "default"])
@pytest.mark.parametrize(("size", "noise"), TREES, ids=[" ".join(row) for row in TREES])
def test_noisy_trees(size, noise, exact):
    n, noisy = 6 if size == "public" else None, (np.array([4, 1]), np.array([2, 3, -1]))
    noises = tuple((noise.removeprefix("discrete-"), scale) for scale in (1.5, 1.2))
    seen = TreeMeasurements(CellTree((3,)), (1, 2), noisy, noises, total=n)
    mechanism = PerturbedTree(n=n, shape=(3,), depths=(1, 2), scales=(1.5, 1.2), noise=noise)
    observed = Observed(mechanism=mechanism, domain=GRID, counts=np.ones(3), measured=seen)
    model = privurn.PolyaTree(exact=exact, largest_n=LARGEST)
    found = privurn.infer(observed, model, ask="cells", of="sample", run=Run(seed=1, draws=4_000)).draws
    listed = Enumerated(seen, largest=LARGEST)
    held = [(table, p) for table, p in zip(listed.tables, listed.probabilities, strict=True) if sum(table)]
    tables, law = np.array([table for table, _ in held]), np.array([p for _, p in held]) / sum(p for _, p in held)
    points = (0.1, 0.3, 0.6)
    for cell in range(3):
        shares = tables[:, cell] / tables.sum(axis=1)
        wanted = [float(law[shares <= point].sum()) for point in points]
        assert_agreement(found[f"P(x={cell})"], points, wanted, 0.0 if exact else APART)


HALF = Fraction(1, 2)
CELLS = {
    "dirichlet-multinomial": (DirichletMultinomial(n=6, cells=3, alpha=HALF, records=7), [4, 1, 2]),
    "dirichlet-process": (PitmanYor(n=6, records=7, strength=Fraction(2), base=FiniteBase(cells=3)), [4, 1, 2]),
    "perturbed-histogram": (
        PerturbedHistogram(n=6, cells=3, records=3, noise="discrete-laplace", scale=1.2, publish="counts"),
        [4, 2, -1],
    ),
    "perturbed-histogram gaussian": (
        PerturbedHistogram(n=6, cells=3, records=3, noise="discrete-gaussian", scale=1.2, publish="counts"),
        [4, 2, -1],
    ),
    "smoothed-histogram": (SmoothedHistogram(n=6, cells=3, records=8, weight=HALF), [5, 2, 1]),
    "posterior-sample": (PosteriorSample(n=6, cells=3, alpha=HALF, records=10), [[5, 1, 4]]),
}


@pytest.mark.parametrize("row", CELLS)
def test_cells_in_an_order(row):
    """The default prior of more of them than 16."""
    mechanism, numbers = CELLS[row]
    counts = np.array(numbers) / (10.0 if row == "posterior-sample" else 1)
    observed = Observed(mechanism=mechanism, domain=GRID, counts=counts)
    found = privurn.infer(observed, privurn.PolyaTree(), ask="cells", of="sample", run=Run(seed=1, draws=4_000)).draws
    term = mechanism.likelihood(Numbers(counts))
    seen = cells_as_tree(term, GRID, n=6)
    tables, law = enumerated(term, seen, IndependentDraws(seen)._fitted[1], [6])
    for cell in range(3):
        points = (0.1, 0.3, 0.6)
        wanted = [float(law[tables[:, cell] / 6 <= point].sum()) for point in points]
        assert_agreement(found[f"P(x={cell})"], points, wanted)
