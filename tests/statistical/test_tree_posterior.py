"""The Polya-tree posterior at work: fast means beside the exact chain, and the chain beside the prior it claims to have.

The tests are seeded; by their own rates they would fail a right sampler with probability below 1e-9.
"""

import numpy as np
import pytest
from scipy import stats

from privurn._kernels.trees import sweeps
from privurn.cell_tree import CellTree
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.run import Schedule, run_chains
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.chain import TreeCounts, TreeSampler
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.additive_noise import simulated_noise

ASKED = ("mean", "q0.25", "q0.5", "q0.75")


def laws(cells):
    x = np.linspace(0, 1, cells, endpoint=False)
    rng = np.random.default_rng(5)
    sparse = np.zeros(cells)
    sparse[rng.choice(cells, max(4, cells // 50), replace=False)] = 1.0
    smooth = x**2 * np.exp(-9 * x)
    return {"sparse": sparse, "smooth": smooth}


def measured(counts, depths, scale, rng, *, kind="laplace", public=True, shape=None):
    tree = CellTree(shape or (len(counts),))
    noisy = tuple(
        tree.sums(counts, depth) + simulated_noise((tree.nodes(depth),), noise=kind, scale=scale, rng=rng) for depth in depths
    )
    return TreeMeasurements(tree, depths, noisy, ((kind, scale),) * len(depths), total=int(counts.sum()) if public else None)


def asked(cells):
    shares = [f"P({low}<=x<{low + cells // 8})" for low in range(0, cells, cells // 5)]
    return reduce(parse_functionals([*ASKED, *shares]), domain=JointDomain({"x": Grid(0, cells - 1, 1)}))


def away(name, cells, n, depths, scale, draws, *, public=True):
    """How far the fast means are from the chain's, in posterior deviations: the confidential records' mean and shares."""
    law = laws(cells)[name]
    rng = np.random.default_rng(3)
    given = measured(rng.multinomial(n, law / law.sum()), depths, scale, rng, public=public)
    reduction = asked(cells)
    sampler = TreeSampler(engine=TreeCounts(measured=given), reduction=reduction)
    drawn = run_chains(sampler, schedule=Schedule(chains=4, warm_up=draws // 4, draws=draws, seed=1))
    sample = {each.name.removeprefix("sample:"): each for each in drawn.summary() if each.name.startswith("sample:")}
    assert max(each.r_hat for each in sample.values()) < 1.03
    fast = reduction.evaluate(approximate_posterior(given).counts)
    return {
        name: abs(fast[name] - each.mean) / each.deviation
        for name, each in sample.items()
        if name in fast and not name.startswith("q") and each.deviation > 0.0
    }


def tables(engine, copies, *, seed, warm_up, thin):
    """Tables of one chain, so many sweeps apart."""
    rng = np.random.default_rng(seed)
    state = engine.start(rng)
    engine.sweep(state, rng, times=warm_up)
    found = []
    for _ in range(copies):
        engine.sweep(state, rng, times=thin)
        found.append(engine.table(state))
    return np.stack(found)


@pytest.mark.long
@pytest.mark.parametrize(("name", "depths"), [("sparse", (2, 6)), ("smooth", (2, 6)), ("smooth", (3, 6))])
def test_fast_means_are_near_those_of_the_chain(name, depths):
    """Of four ranges the base measure is uniform, of eight it is learnt."""
    for found in away(name, 64, 1_000, depths, 3.0, 8_000).values():
        assert found < 0.2


def test_tables_of_the_chain_and_its_starts_are_what_was_promised():
    rng = np.random.default_rng(2)
    given = measured(rng.multinomial(500, laws(32)["smooth"] / laws(32)["smooth"].sum()), (2, 5), 2.0, rng)
    engine = TreeCounts(measured=given)
    copies = tables(engine, 6, seed=4, warm_up=50, thin=5)
    assert copies.shape == (6, 32)
    assert np.all(copies.sum(axis=1) == 500)
    assert np.all(copies >= 0)
    assert len({tuple(each) for each in copies.tolist()}) == 6
    assert np.array_equal(copies, tables(engine, 6, seed=4, warm_up=50, thin=5))


def test_copies_of_a_secret_n_vary_in_size():
    rng = np.random.default_rng(2)
    given = measured(rng.multinomial(200, np.full(16, 1 / 16)), (0, 4), 5.0, rng, public=False)
    sizes = tables(TreeCounts(measured=given), 20, seed=4, warm_up=100, thin=20).sum(axis=1)
    assert len(set(sizes.tolist())) > 5
    assert abs(sizes.mean() - 200) < 25


def prior_draw(tree, n, rng, *, hidden=False):
    """Weights, concentrations and counts from the prior; the state that the chain would hold."""
    splits = Splits(tree, hidden=hidden)
    sizes = [tree.nodes(depth) for depth in range(tree.depth + 1)]
    weights = [rng.dirichlet(each) for each in splits.hyper]
    nodes, indices = [np.array([n])], []
    for depth in range(tree.depth):
        index = rng.choice(len(CONCENTRATIONS), sizes[depth], p=weights[depth])
        indices.append(index)
        below = np.empty(sizes[depth + 1], np.int64)
        for u, first in enumerate(splits.children[depth]):
            if not splits.two[depth][u]:
                below[first] = nodes[-1][u]
                continue
            a, r = CONCENTRATIONS[index[u]], splits.shares[depth][u]
            theta = r if np.isinf(a) else rng.beta(a * r, a * (1 - r))
            below[first] = rng.binomial(nodes[-1][u], theta)
            below[first + 1] = nodes[-1][u] - below[first]
        nodes.append(below)
    return {
        "counts": np.concatenate(nodes).astype(np.int64),
        "special": np.zeros(0, np.int64),
        "concentrations": np.concatenate(indices).astype(np.int64),
        "log_weights": np.log(np.maximum(weights, 1e-300)),
    }


def before_and_after(runs, *, kind, public, off=0, cells=6, largest=40):
    """Counts of three nodes drawn from the prior, and after sweeps of the chain given measurements of them (Geweke 2004)."""
    rng = np.random.default_rng(11)
    tree = CellTree((cells,))
    found = []
    for _ in range(runs):
        n = 25 if public else int(rng.integers(largest + 1))
        state = prior_draw(tree, n, rng, hidden=public)
        truth = state["counts"]
        cell_counts = truth[-cells:]
        given = measured(cell_counts, (0, 1, tree.depth), 1.5, rng, kind=kind, public=public)
        shifted = tuple(each + off for each in given.noisy)
        engine = TreeCounts(
            measured=TreeMeasurements(tree, given.depths, shifted, given.noise, total=given.total), largest_n=largest
        )
        engine.__dict__["splits"] = Splits(tree, hidden=public)  # one prior, whatever the noise makes of a secret n
        engine.__dict__["plan"] = sweeps.Plan(
            records=12,
            shifts=12,
            redraw=np.flatnonzero(engine.tree.two),
            steps=np.full(cells, 2.0),
            ends=np.arange(1.0, cells + 1),
        )
        moved = {name: values.copy() for name, values in state.items()}
        engine.sweep(moved, rng, times=4)
        found.append((truth[[0, 1, -1]], moved["counts"][[0, 1, -1]]))
    return np.array(found)


def p_value(pairs):
    """Before and after have the same law; separate halves, so that the two samples are independent."""
    half = len(pairs) // 2
    values = []
    for i in range(3):
        one, other = pairs[:half, 0, i], pairs[half:, 1, i]
        table = np.array([np.bincount(np.minimum(each, 40) // 4, minlength=11) for each in (one, other)])
        table = table[:, table.sum(axis=0) >= 10]
        values.append(stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0)
    gap = pairs[:, 1] - pairs[:, 0]  # of one law, before and after differ by nothing on average
    z = gap.mean(axis=0) / np.maximum(gap.std(axis=0) / np.sqrt(len(gap)), 1e-12)
    return min(*values, 2 * stats.norm.sf(np.abs(z).max())) * 6


@pytest.mark.parametrize(("kind", "public"), [("laplace", True), ("gaussian", False)])
def test_the_truth_keeps_its_law_under_the_chain(kind, public):
    assert p_value(before_and_after(400, kind=kind, public=public)) > 1e-9


@pytest.mark.long
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("public", [True, False])
def test_the_truth_keeps_its_law_under_the_chain_in_many_runs(kind, public):
    assert p_value(before_and_after(6_000, kind=kind, public=public)) > 1e-9


def test_noise_that_is_off_by_one_is_caught():
    assert p_value(before_and_after(1_000, kind="laplace", public=False, off=1)) < 1e-9


def ranks(runs, *, kind, public, claimed=1.0, base=None, shape=(32,), depths=(1, 3, 5)):
    """Ranks, between 0 and 1, of truths from the prior among independent draws given noisy counts of them.

    Of the first quarter's count, of the sum of all records' cells (of two columns: of the second's), and of one cell's count.
    `claimed`: what the draws take for the noise's scale, over what it is. Truths have the uniform base measure; the draws have
    `base`, or learn one.
    """
    rng = np.random.default_rng(21)
    tree = CellTree(shape)
    valued = np.arange(32) if len(shape) == 1 else np.arange(32) // shape[0]
    looked_at = np.stack([np.arange(32) < 8, valued, np.arange(32) == 20]).astype(float)
    found = np.empty((runs, 3))
    for run in range(runs):
        n = 300 if public else int(rng.integers(100, 600))
        truth = np.empty(32, np.int64)
        truth[tree.order] = prior_draw(tree, n, rng)["counts"][-32:]
        given = measured(truth, depths, 3.0, rng, kind=kind, public=public, shape=shape)
        noise = tuple((name, claimed * scale) for name, scale in given.noise)
        seen = TreeMeasurements(tree, given.depths, given.noisy, noise, total=given.total)
        drawn = looked_at @ IndependentDraws(seen, base).draw(99, rng=rng).counts
        wanted = (looked_at @ truth)[:, None]
        below, same = (drawn < wanted - 1e-6).sum(axis=1), (np.abs(drawn - wanted) <= 1e-6).sum(axis=1)
        found[run] = (below + rng.random(3) * (same + 1)) / 100.0
    return found


def rank_p_value(found):
    """That all three ranks are uniform, and so their distances from the middle, which show laws that are too narrow."""
    away = np.abs(2.0 * found - 1.0)
    return 6.0 * min(stats.kstest(each, "uniform").pvalue for each in (*found.T, *away.T))


BASES = pytest.mark.parametrize("base", [np.ones(32), None], ids=["the prior's base", "learnt base"])


@BASES
@pytest.mark.parametrize(("kind", "public"), [("laplace", False), ("gaussian", True)])
def test_truths_from_the_prior_rank_uniformly_among_independent_draws(kind, public, base):
    assert rank_p_value(ranks(80, kind=kind, public=public, base=base)) > 1e-3


@BASES
@pytest.mark.long
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("public", [True, False])
def test_truths_from_the_prior_rank_uniformly_among_independent_draws_in_many_runs(kind, public, base):
    assert rank_p_value(ranks(500, kind=kind, public=public, base=base)) > 1e-3


@BASES
@pytest.mark.parametrize(("kind", "public"), [("laplace", True), ("gaussian", False)])
def test_truths_of_two_columns_rank_uniformly(kind, public, base):
    assert rank_p_value(ranks(80, kind=kind, public=public, base=base, shape=(4, 8), depths=(2, 5))) > 1e-3


@BASES
@pytest.mark.long
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("public", [True, False])
def test_truths_of_two_columns_rank_uniformly_in_many_runs(kind, public, base):
    assert rank_p_value(ranks(500, kind=kind, public=public, base=base, shape=(4, 8), depths=(2, 5))) > 1e-3


def test_a_wrong_scale_of_the_noise_shows_in_the_ranks():
    assert rank_p_value(ranks(80, kind="laplace", public=True, claimed=0.25)) < 1e-9
