"""Counts of cells under a Polya tree: the law of its draws by enumeration, coverage at a realistic size, and refusals."""

from fractions import Fraction

import numpy as np
import pytest
from experiments.fixed_truths import run
from latent_count_laws import term_log
from polya_tree_laws import node_counts, split_law, split_nodes, tables

import privurn
from privurn.errors import ModelError
from privurn.inference.counts import sampling
from privurn.inference.counts.released import Observed
from privurn.inference.trees.cells import cells_as_tree
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, UrnTerm

DRAWS, ERRORS = 20_000, 5.0  # the seed settles false alarms
GRID = privurn.JointDomain({"x": privurn.Grid(0, 2, 1)})
MISSING = privurn.JointDomain({"x": privurn.Grid(0, 1, 1, nulls="cell")})
LABELS = privurn.JointDomain({"x": privurn.Categories(["a", "b", "c"])})
TERMS = {
    "urn": UrnTerm(alpha=np.full(3, 0.5), released=np.array([[4, 1, 2]])),
    "mixed": MixtureTerm(weight=Fraction(1, 2), released=np.array([5, 2, 1])),
    "noisy": NoisyCountsTerm(noise="discrete-laplace", scale=1.2, noisy=np.array([4, 2, -1])),
    "lattice": NoisyCountsTerm(noise="laplace", scale=1.2, noisy=np.array([4100, 1900, -700])),
}


def enumerated(term, seen, weights, sizes):
    """Every table with its probability under the tree with these weights of the concentrations; cells in the tree's order."""
    splits = Splits(seen.tree)
    listed, logs = [], []
    for n in sizes:
        for table in tables(3, n):
            sums, log = node_counts(seen.tree, table), term_log(term, table)
            for depth, u in split_nodes(splits):
                left, r = sums[depth + 1][splits.children[depth][u]], splits.shares[depth][u]
                laws = [np.exp(split_law(left, sums[depth][u], a, r)) for a in CONCENTRATIONS]
                log += np.log(weights[depth] @ laws)
            listed.append(table)
            logs.append(log)
    mass = np.exp(np.array(logs) - max(logs))
    return np.array(listed), mass / mass.sum()


def assert_law(term, seen, sizes, size=None):
    source = IndependentDraws(seen, size=size)
    drawn = source.draw(DRAWS, rng=np.random.default_rng(1))
    listed, mass = enumerated(term, seen, source._fitted[1], sizes)
    found = np.rint(drawn.counts).astype(np.int64).T
    for table, p in zip(listed, mass, strict=True):
        if p * DRAWS > 30:
            share = float((found == table).all(axis=1).mean())
            assert abs(share - p) < ERRORS * np.sqrt(p * (1 - p) / DRAWS), (table, share, p)


@pytest.mark.parametrize("domain", [GRID, LABELS], ids=["numbers", "labels"])
@pytest.mark.parametrize("kind", TERMS)
def test_tables_have_the_enumerated_law(kind, domain):
    term = TERMS[kind]
    seen = cells_as_tree(term, domain, n=6)
    assert seen.depths == (2,)
    assert_law(term, seen, [6])


def test_a_secret_n_with_what_is_known_of_it():
    noisy = TERMS["noisy"]
    bounded = cells_as_tree(noisy, GRID, n=None, whole=True)
    assert_law(noisy, bounded, range(4, 7), size=privurn.SizePrior(lower=4, upper=6))


def test_missing_values_hang_beside_the_tree_or_stand_in_it():
    noisy = TERMS["noisy"]
    beside = cells_as_tree(noisy, MISSING, n=6)
    assert (beside.tree.cells, beside.special) == (2, (-1.0,))
    assert cells_as_tree(TERMS["urn"], MISSING, n=6).special == ()
    assert cells_as_tree(noisy, MISSING, n=None, whole=True).special == ()


def test_what_says_nothing_of_each_cell_by_itself_is_no_tree():
    hidden = NoisyRecordsTerm(noise="discrete-laplace", scale=1.0, smoothing=0.0, released=np.array([1, 2, 0]))
    uneven = UrnTerm(alpha=np.array([0.5, 1.0, 0.5]), released=np.array([[4, 1, 2]]))
    several = UrnTerm(alpha=np.full(3, 0.5), released=np.array([[4, 1, 2], [3, 3, 1]]))
    assert [cells_as_tree(each, GRID, n=6) for each in (hidden, uneven, several)] == [None] * 3
    assert cells_as_tree(TERMS["urn"], GRID, n=None) is None
    urn = DirichletMultinomial(n=None, cells=3, alpha=Fraction(1, 2), records=7)
    with pytest.raises(ModelError, match="a Polya tree is for one release of noisy counts"):
        privurn.infer(Observed(mechanism=urn, domain=GRID, counts=np.array([4, 1, 2])), privurn.PolyaTree())
    urn = DirichletMultinomial(n=6, cells=3, alpha=Fraction(1, 2), records=7)
    with pytest.raises(ModelError, match="the exact chain is for noisy counts"):
        privurn.infer(Observed(mechanism=urn, domain=GRID, counts=np.array([4, 1, 2])), privurn.PolyaTree(exact=True))


@pytest.mark.filterwarnings("ignore::privurn.errors.InferenceWarning")
def test_of_many_cells_fewer_draws_are_made_but_no_fewer_than_a_thousand_unless_asked_for(monkeypatch):
    urn = DirichletMultinomial(n=6, cells=3, alpha=Fraction(1, 2), records=7)
    given = Observed(mechanism=urn, domain=GRID, counts=np.array([4, 1, 2]))

    def drawn(**run):
        return privurn.infer(given, privurn.PolyaTree(), ask="mean", run=privurn.Run(seed=1, **run)).draws["mean"].shape

    assert drawn() == (4, 1000)
    monkeypatch.setattr(sampling, "TREE_NUMBERS", 3 * 2_000)
    assert drawn() == (4, 500)
    monkeypatch.setattr(sampling, "TREE_NUMBERS", 3)
    assert drawn() == (4, 250)
    assert drawn(chains=3) == (3, 334)
    assert drawn(draws=20) == (4, 20)


@pytest.mark.parametrize(("name", "least"), [("noisy counts", 7), ("urn", 5)])
def test_intervals_of_incomes_on_a_fine_grid_hold_the_truth(name, least):
    """Lognormal incomes, n = 5,000, (1, 1e-6), 200 cells, by the public call: under one flat prior hardly any does."""
    held = {"mean": 0, "P(x>100000)": 0}
    for number in range(8):
        figures = run(f"lognormal, 200 cells, n 5000, epsilon 1, {name}", number)["figures"]
        for each in held:
            low, high = figures[each]["interval"]
            held[each] += low <= figures[each]["truth"] <= high
    assert min(held.values()) >= least, held
