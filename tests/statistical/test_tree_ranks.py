"""Ranks under the Polya tree by the public call at its defaults: noisy trees, and more ordered cells than one weight is for.

Truths have the tree's prior with the uniform base (another where noise hides the halves of all records), releases are made of
them, and their ranks among the draws are uniform. The draws are independent and, where the base and the concentrations' weights
are learnt, approximate: how far they are off is less than so many truths tell. Seeded; the bound is that of
test_tree_posterior.py.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sampler_checks import random_rank
from test_tree_posterior import prior_draw, rank_p_value

import privurn
from privurn.cell_tree import CellTree
from privurn.counts import CountTable
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.cells import cells_as_tree
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram

CELLS, N, DRAWS = 32, 300, 99
TREE = CellTree((CELLS,))
DOMAIN = privurn.JointDomain({"x": privurn.Grid(0, CELLS - 1, 1)})
ASKED = ["P(x<8)", "mean", "P(x=20)"]
REDUCTION = reduce(parse_functionals(ASKED), domain=DOMAIN)


def noisy(kind, *, n=N, publish="counts"):
    records = CELLS if publish == "counts" else 400
    return PerturbedHistogram(n=n, cells=CELLS, records=records, noise=f"discrete-{kind}", scale=2.0, publish=publish)


def tree(kind, *, n=N, scale=3.0, tied=()):
    return PerturbedTree(n=n, shape=(CELLS,), depths=(1, 3, 5), scales=(scale,) * 3, noise=f"discrete-{kind}", tied=tied)


URN = DirichletMultinomial(n=N, cells=CELLS, alpha=Fraction(1, 2), records=200)
NAMED = DiscoveredUrn(
    n=N,
    records=200,
    discovery=LabelDiscovery(scale=1.0, threshold=10),
    urn=replace(URN, alpha=Fraction(1)),
    urn_guarantee=privurn.Guarantee(epsilon=1.0, delta=1e-6),
)
"""Its labels are taken as listed beforehand, as its likelihood does."""
ROWS = {
    "noisy-tree laplace": tree("laplace"),
    "noisy-tree gaussian": tree("gaussian"),
    "noisy-tree laplace, secret n": tree("laplace", n=None),
    "noisy-tree gaussian, secret n": tree("gaussian", n=None),
    "noisy-tree laplace, much noise": tree("laplace", scale=30.0),
    "noisy-tree gaussian, much noise": tree("gaussian", scale=30.0),
    "noisy-tree laplace, tied": tree("laplace", tied=(1, 5)),
    "noisy-tree laplace, tied, secret n": tree("laplace", n=None, tied=(3,)),
    "noisy-tree laplace, tied, much noise": tree("laplace", scale=30.0, tied=(1, 5)),
    "noisy counts": noisy("laplace"),
    "Gaussian counts": noisy("gaussian"),
    "noisy counts, secret n": noisy("laplace", n=None),
    "noisy records": noisy("laplace", publish="records"),
    "urn": URN,
    "urn of labels that were named": NAMED,
    "Dirichlet process": PitmanYor(n=N, records=200, strength=Fraction(24), base=FiniteBase(cells=CELLS)),
    "smoothed": SmoothedHistogram(n=N, cells=CELLS, records=400, weight=Fraction(2, 5)),
    "posterior sample": PosteriorSample(n=N, cells=CELLS, alpha=Fraction(1, 2), records=1000),
}


def released(mechanism, counts, rng, claimed=1.0):
    """What is handed to the public call; `claimed`: what a tree's noise is taken for, over what it is."""
    if isinstance(mechanism, PerturbedTree):
        seen = mechanism.measurements(mechanism.simulate(CountTable.from_cells(np.arange(CELLS), counts), rng=rng))
        seen = replace(seen, noise=tuple((name, claimed * scale) for name, scale in seen.noise))
        return Observed(mechanism=mechanism, domain=DOMAIN, counts=np.ones(CELLS), measured=seen)
    if isinstance(mechanism, PitmanYor):
        alpha = float(mechanism.strength) / CELLS
        numbers = rng.multinomial(mechanism.records, rng.dirichlet(counts + alpha))
    else:
        urn = mechanism.urn if isinstance(mechanism, DiscoveredUrn) else mechanism
        numbers = urn.simulate(CountTable.from_cells(np.arange(CELLS), counts), rng=rng)
    numbers = np.atleast_2d(numbers) if isinstance(mechanism, PosteriorSample) else numbers
    return Observed(mechanism=mechanism, domain=DOMAIN, counts=numbers)


def hides_halves(mechanism):
    """Whether its noise does, as inference has it; of these rows by far, whatever the counts."""
    told = []
    for counts in (np.full(CELLS, N // CELLS), np.bincount([7], [N], CELLS).astype(np.int64)):
        made = released(mechanism, counts, np.random.default_rng(3))
        seen = made.measured if made.measured is not None else cells_as_tree(made.term, DOMAIN, n=mechanism.n)
        told.append(prior_splits(seen).hidden)
    assert told[0] == told[1]
    return told[0]


def ranks(mechanism, runs, **options):
    """Of the confidential table's figures among draws, between 0 and 1."""
    rng, hidden = np.random.default_rng(31), hides_halves(mechanism)
    found = np.empty((runs, len(ASKED)))
    for run in range(runs):
        n = mechanism.n or int(rng.integers(100, 600))
        counts = prior_draw(TREE, n, rng, hidden=hidden)["counts"][-CELLS:]
        given = privurn.Run(draws=DRAWS, chains=1, seed=run)
        drawn = privurn.infer(released(mechanism, counts, rng, **options), ask=ASKED, of="sample", run=given).draws
        truth = REDUCTION.evaluate(counts)
        for place, name in enumerate(ASKED):
            values = np.round(drawn.flat(name), 9)
            found[run, place] = (random_rank(round(float(truth[name]), 9), values, rng) + rng.random()) / (DRAWS + 1)
    return found


def test_ranks_of_truths_are_uniform():
    assert rank_p_value(ranks(ROWS["urn"], 40)) > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS)
def test_ranks_of_truths_are_uniform_in_many_runs(row):
    assert rank_p_value(ranks(ROWS[row], 400)) > 1e-3


def test_some_rows_hide_the_halves_and_some_do_not():
    assert hides_halves(ROWS["noisy-tree laplace, much noise"])
    assert not hides_halves(ROWS["noisy-tree laplace"])


@pytest.mark.long
def test_a_wrong_scale_of_the_noise_shows():
    assert rank_p_value(ranks(ROWS["noisy-tree laplace"], 100, claimed=0.25)) < 1e-9
