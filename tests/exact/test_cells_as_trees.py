"""Counts of cells under a Polya tree: the law of its draws by enumeration, coverage at a realistic size, and refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from experiments.fixed_truths import run
from latent_count_laws import term_log
from polya_tree_laws import node_counts, split_law, split_nodes, tables
from scipy.special import logsumexp

import privurn
from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.inference.counts import sampling
from privurn.inference.counts.released import Observed
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.cells import cells_as_tree
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, UrnTerm
from privurn.privacy.additive_noise import noise_deviation

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
    """Every table with its probability under the tree with these weights of the concentrations; cells in the tree's order.

    `term`: or the log likelihood itself.
    """
    splits = prior_splits(seen)
    listed, logs = [], []
    for n in sizes:
        for table in tables(3, n):
            sums = node_counts(seen.tree, table)
            log = term(table) if callable(term) else term_log(term, table)
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


def test_records_of_noisy_counts_have_the_enumerated_law_at_each_rate_and_all_rates_get_draws():
    released = np.array([40, 18, 2])
    hidden = NoisyRecordsTerm(noise="discrete-laplace", scale=0.8, smoothing=0.0, released=released)
    seen = cells_as_tree(hidden, GRID, n=24)
    assert seen.depths == (2,)
    for law in (seen.laws[0], seen.laws[-1]):
        cells = [law.logs(released[[j]], np.arange(25.0), np.zeros(25, np.int64)) for j in range(3)]
        assert_law(lambda table, own=cells: sum(own[j][c] for j, c in enumerate(table)), replace(seen, laws=(law,)), [24])
    means = [IndependentDraws(each).draw(4_000, rng=np.random.default_rng(1)).counts.mean(axis=1) for each in seen.versions]
    found = IndependentDraws(seen).draw(20_000, rng=np.random.default_rng(1))
    assert np.all(np.abs(found.counts.mean(axis=1) - np.mean(means, axis=0)) < 0.05)
    halves = found.counts[0].reshape(2, -1).mean(axis=1)  # rates stand in no order
    assert abs(halves[0] - halves[1]) < 0.05


FOUR = privurn.JointDomain({"x": privurn.Grid(0, 3, 1)})
HIDDEN = {
    "urn": UrnTerm(alpha=np.full(4, 0.25), released=np.array([[30, 0, 9, 9]])),
    "mixed": MixtureTerm(weight=Fraction(1, 2), released=np.array([14, 0, 5, 5])),
    "noisy": NoisyCountsTerm(noise="discrete-gaussian", scale=2.5, noisy=np.array([7, -5, 2, 2])),
}


def halved(kind):
    """What the two halves of the cells say by their sums: an urn of two cells, shares of two, normal noise on two."""
    term = HIDDEN[kind]
    if kind == "urn":
        return UrnTerm(alpha=np.full(2, 0.5), released=term.released.reshape(1, 2, 2).sum(axis=2))
    if kind == "mixed":
        return MixtureTerm(weight=term.weight, released=term.released.reshape(2, 2).sum(axis=1))
    return None


def of_sums(kind, weights, n):
    """Every table of four cells with its probability where the first split is told by the sums of the halves alone."""
    splits, term = Splits(CellTree((4,))), HIDDEN[kind]

    def split(depth, left, count, share):
        return np.log(weights[depth] @ [np.exp(split_law(left, count, a, share)) for a in CONCENTRATIONS])

    sums = [(left, n - left) for left in range(n + 1)]
    coarse = halved(kind)
    if coarse is None:
        variance = 2.0 * noise_deviation(noise="gaussian", scale=2.5) ** 2
        logs = [-0.5 * ((np.array([2, 4]) - each) ** 2).sum() / variance for each in sums]
    else:
        logs = [term_log(coarse, each) for each in sums]
    logs = np.array(logs) + [split(0, left, n, splits.shares[0][0]) for left, _ in sums]
    halves = dict(zip(sums, np.exp(logs - logsumexp(logs)), strict=True))
    within = {}
    for table in tables(4, n):
        of = (table[0] + table[1], table[2] + table[3])
        log = term_log(term, table) + sum(split(1, table[2 * u], of[u], splits.shares[1][u]) for u in range(2))
        within.setdefault(of, []).append((table, log))
    listed, mass = [], []
    for of, found in within.items():
        own = np.exp(np.array([log for _, log in found]) - logsumexp([log for _, log in found]))
        listed += [table for table, _ in found]
        mass += list(halves[of] * own)
    return listed, mass


@pytest.mark.parametrize("kind", HIDDEN)
def test_where_noise_hides_cells_wider_ranges_are_told_by_sums(kind):
    seen = replace(cells_as_tree(HIDDEN[kind], FOUR, n=6), sums_from=0)
    source, whole = (IndependentDraws(each, base=np.ones(4)) for each in (seen, replace(seen, sums_from=None)))
    many = 8 * DRAWS
    found, other = (np.rint(each.draw(many, rng=np.random.default_rng(2)).counts).T for each in (source, whole))
    listed, mass = of_sums(kind, source._fitted[1], 6)
    apart = []
    for table, p in zip(listed, mass, strict=True):
        if p * DRAWS > 30:
            error = np.sqrt(p * (1 - p) / many)
            assert abs(float((found == table).all(axis=1).mean()) - p) < ERRORS * error, table
            apart.append(abs(float((other == table).all(axis=1).mean()) - p) / error)
    assert max(apart) > 2 * ERRORS  # the law of all cells together is another


def test_means_and_draws_of_hidden_cells_agree():
    rng = np.random.default_rng(5)
    truth = rng.multinomial(4_000, np.exp(-np.arange(256) / 40.0) / np.exp(-np.arange(256) / 40.0).sum())
    noisy = NoisyCountsTerm(
        noise="discrete-gaussian", scale=30.0, noisy=np.rint(truth + rng.normal(0, 30, 256)).astype(np.int64)
    )
    seen = cells_as_tree(noisy, privurn.JointDomain({"x": privurn.Grid(0, 255, 1)}), n=4_000)
    assert seen.sums_from == 2
    means = approximate_posterior(seen).counts
    drawn = IndependentDraws(seen).draw(4_000, rng=np.random.default_rng(1)).counts
    for depth in (1, 2, 3):
        parts = np.add.reduceat(drawn, seen.tree.starts[depth], axis=0)
        error = parts.std(axis=1) * (ERRORS / np.sqrt(4_000) + 0.1)
        assert np.all(np.abs(np.add.reduceat(means, seen.tree.starts[depth]) - parts.mean(axis=1)) < error)


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
    assert [cells_as_tree(each, GRID, n=6) for each in (uneven, several)] == [None] * 2
    assert [cells_as_tree(each, GRID, n=None) for each in (TERMS["urn"], hidden)] == [None] * 2
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
