"""The Polya-tree posterior on tiny trees: prior and moves against brute force, with planted errors that must be caught."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from polya_tree_laws import Enumerated, noise_log, prior_log, split_nodes, tables
from scipy import stats

from privurn._kernels.trees import counts as counts_kernel
from privurn._kernels.trees import moves, redraws, sweeps
from privurn._kernels.trees.components import BAND, component_at, update_band, update_inverse_whole, update_side
from privurn.cell_tree import CellTree
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.base import prior_splits
from privurn.inference.trees.chain import TreeCounts
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.tree_measurements import TreeMeasurements

ALPHA = 1e-9


def whole(*values):
    return np.array(values, np.int64)


def measured(kind="laplace", *, total=4, leaves=(3, -1, 0, 2), coarse=(1, 2), scale=0.8, **special):
    return TreeMeasurements(
        CellTree((4,)), (1, 2), (whole(*coarse), whole(*leaves)), ((kind, scale), (kind, 1.5 * scale)), total, **special
    )


THREE = TreeMeasurements(CellTree((3,)), (0, 2), (whole(3), whole(1, -1, 2)), (("laplace", 0.7), ("gaussian", 1.1)))
BESIDE = TreeMeasurements(
    CellTree((2,)), (1,), (whole(2, 0),), (("laplace", 0.9),), total=4, special=(1, 2), special_noise=("laplace", 0.9)
)
SECRET_BESIDE = TreeMeasurements(
    CellTree((2,)), (1,), (whole(2, 0),), (("gaussian", 0.9),), special=(1,), special_noise=("gaussian", 0.9)
)
CASES = {
    "laplace": (measured(), None),
    "gaussian": (measured("gaussian"), None),
    "three cells, secret n, both noises": (THREE, 4),
    "special cells": (BESIDE, None),
    "special cell, secret n": (SECRET_BESIDE, 4),
}
BASES = {"three cells, secret n, both noises": np.array([0.5, 1.0, 3.0])}


@cache
def enumerated(name):
    given, largest = CASES[name]
    return Enumerated(given, BASES.get(name), largest)


def engine(given, largest=None, base=None):
    """The chain with a plan for tiny trees: every move often."""
    made = TreeCounts(measured=given, base=base, **({} if largest is None else {"largest_n": largest}))
    cells = given.tree.cells
    made.__dict__["plan"] = sweeps.Plan(
        records=4, shifts=4, redraw=np.flatnonzero(made.tree.two), steps=np.full(cells, 0.8), ends=np.cumsum(np.ones(cells))
    )
    return made


@pytest.mark.parametrize("cells", [2, 3, 4])
@pytest.mark.parametrize("base", [None, "uneven"])
def test_the_prior_of_counts_sums_to_one(cells, base):
    splits = Splits(CellTree((cells,)), None if base is None else np.arange(1.0, cells + 1))
    nodes = split_nodes(splits)
    for n, indices in itertools.product((1, 3), [(0,) * len(nodes), (8,) * len(nodes), tuple(range(3, 3 + len(nodes)))]):
        total = ends = 0.0
        for table in tables(cells, n):
            sums = [splits.tree.sums(whole(*table), depth) for depth in range(splits.depth + 1)]
            inside, value = True, 0.0
            for (depth, u), index in zip(nodes, indices, strict=True):
                left, count = sums[depth + 1][splits.children[depth][u]], sums[depth][u]
                value += counts_kernel.split_log(left, count, CONCENTRATIONS[index], splits.shares[depth][u])
                inside &= count == 0 or 0 < left < count
            assert value == pytest.approx(prior_log(splits, table, indices), abs=1e-10)
            total += math.exp(value)
            ends += math.exp(value) * inside
        assert total == pytest.approx(1.0, abs=1e-12)
        assert ends < 0.9  # a law whose end points have no mass would be caught


@pytest.mark.parametrize("a", CONCENTRATIONS)
@pytest.mark.parametrize("h", [1, 4])
def test_laws_on_lattices_are_laws_with_the_right_mean(a, h):
    r, top = 0.6, 12
    component = component_at(a, r, h, float(h * top), 0.5 * top)
    left, right, inverse = np.empty(top + 1), np.empty(top + 1), np.empty(top + 1)
    for total in range(1, top + 1):
        if component.form == BAND:
            law = np.zeros(64)
            first, end = update_band(law, total, 0, total + 1, component)
            masses, points = law[: end - first], np.arange(first, end)
        else:
            scale = update_side(left, 0, component, True) + update_side(right, 0, component, False)
            scale -= update_inverse_whole(inverse, 0, component)
            points = np.arange(total + 1)
            masses = left[points] * right[total - points] * inverse[total] * math.exp(scale)
        assert masses.sum() == pytest.approx(1.0, abs=1e-9)
        assert masses @ points == pytest.approx(r * total, abs=0.03 if component.form == BAND else 1e-9)
        if h == 1:
            expected = [math.exp(counts_kernel.split_log(x, total, a, r)) for x in points]
            assert masses == pytest.approx(expected, abs=1e-12)


def shifts(given, make, *, ratio=moves.shift_log):
    """All shifts of one or two records in a tree of four cells: the kernel's log ratio and that of brute force."""
    made, splits = make, prior_splits(given)
    indices = (2, 8, 5)
    a_index = np.array(indices, np.int64)
    for table in tables(4, 4):
        counts = np.concatenate([given.tree.sums(whole(*table), depth) for depth in range(3)])
        for i, j, d in itertools.product(range(4), range(4), (1, 2)):
            if i == j or table[i] < d:
                continue
            after = list(table)
            after[i] -= d
            after[j] += d
            brute = prior_log(splits, after, indices) + noise_log(given, after)
            brute -= prior_log(splits, table, indices) + noise_log(given, table)
            first = made.tree.cells
            yield ratio(counts, a_index, first + i, first + j, d, made.tree), brute


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_shift_has_the_ratio_of_the_posterior(kind):
    given = measured(kind)
    for found, brute in shifts(given, engine(given)):
        assert found == pytest.approx(brute, abs=1e-10)


def test_planted_errors_of_a_shift_are_caught(monkeypatch):
    given = measured()
    missing = TreeMeasurements(given.tree, (2,), given.noisy[1:], given.noise[1:], total=4)
    off = measured(leaves=(4, -1, 0, 2))
    for wrong in (engine(missing), engine(off)):
        assert any(abs(found - brute) > 0.1 for found, brute in shifts(given, wrong))
    made = engine(given)
    right = counts_kernel.common_ancestor

    def too_high(u, v, tree):
        return 0

    def loop(*arguments):
        return moves.shift_log.py_func(*arguments)

    monkeypatch.setattr(moves, "common_ancestor", too_high)
    assert any(abs(found - brute) > 0.1 for found, brute in shifts(given, made, ratio=loop))
    monkeypatch.setattr(moves, "common_ancestor", right)
    assert all(abs(found - brute) < 1e-10 for found, brute in shifts(given, made, ratio=loop))


def law_after(exact, move, *, size, seed, times=1):
    """Numbers of the tables after some moves from exact draws of the posterior."""
    rng = np.random.default_rng(seed)
    number = {table: i for i, table in enumerate(exact.tables)}
    which, indices = exact.draw(size, rng)
    tree = exact.measured.tree
    found = np.zeros(len(exact.tables), np.int64)
    for w, each in zip(which, indices, strict=True):
        state = exact.state(w, each, rng)
        for _ in range(times):
            move(state, rng)
        cells = state["counts"][-tree.cells :]
        found[number[tuple(int(x) for x in (*cells, *state["special"]))]] += 1
    return found


def p_value(exact, found):
    expected = exact.probabilities * found.sum()
    order = np.argsort(expected)
    kept = order[np.cumsum(expected[order]) >= 10]  # the rarest tables together
    rest = np.setdiff1d(order, kept)
    observed = np.append(found[kept], found[rest].sum())
    wanted = np.append(expected[kept], expected[rest].sum())
    return stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue


def alone(made):
    """Plans of the same chain with one kind of move each, and with all of them."""
    plan, nothing = made.plan, np.zeros(0, np.int64)
    return {
        "records": plan._replace(shifts=0, redraw=nothing),
        "shifts": plan._replace(records=0, shifts=8, redraw=nothing),
        "redraws": plan._replace(records=0, shifts=0),
        "all": plan,
    }


@pytest.mark.parametrize("name", CASES)
def test_every_move_keeps_the_posterior(name):
    given, largest = CASES[name]
    exact, made = enumerated(name), engine(given, largest, BASES.get(name))
    for i, (move, plan) in enumerate(alone(made).items()):
        made.__dict__["plan"] = plan
        found = law_after(exact, lambda state, rng: made.sweep(state, rng, times=3), size=2_500, seed=i)
        assert p_value(exact, found) > ALPHA, move


def test_the_chain_finds_the_posterior_from_its_own_start():
    given, largest = CASES["three cells, secret n, both noises"]
    exact, made = enumerated("three cells, secret n, both noises"), engine(given, largest, BASES[next(iter(BASES))])
    rng = np.random.default_rng(5)
    number = {table: i for i, table in enumerate(exact.tables)}
    found = np.zeros(len(exact.tables))
    state = made.start(rng)
    state["concentrations"][:] = 0
    made.sweep(state, rng, times=50)
    for _ in range(4_000):
        made.sweep(state, rng, times=1)
        found[number[tuple(int(x) for x in state["counts"][-3:])]] += 1
    assert 0.5 * np.abs(found / found.sum() - exact.probabilities).sum() < 0.06


def redraw_in_python(state, rng, tree):
    redraws.update_redraw.py_func(state["counts"], 0, state["concentrations"], tree, rng)


def test_a_redraw_without_its_normalisers_is_caught(monkeypatch):
    exact, made = enumerated("laplace"), engine(measured())
    right_window, right_drawn = redraws.update_window, redraws.drawn

    def unnormalised(logs, v, count, a_index, tree):
        lo, hi = right_window(logs, v, count, a_index, tree)
        first = tree.child[v]
        a, r = tree.concentrations[a_index[v]], tree.share[v]
        there = counts_kernel.split_log(lo, count, a, r)
        there += redraws.estimate_log(first, lo, tree) + redraws.estimate_log(first + 1, count - lo, tree)
        logs[: hi - lo + 1] += there - logs[0]
        return lo, hi

    def renormalised(logs, size, rng):
        return right_drawn(logs[:size] - np.log(np.exp(logs[:size]).sum()), size, rng)

    def move(state, rng):
        redraw_in_python(state, rng, made.tree)

    monkeypatch.setattr(redraws, "update_window", unnormalised)
    monkeypatch.setattr(redraws, "drawn", renormalised)
    assert p_value(exact, law_after(exact, move, size=600, seed=8, times=4)) < ALPHA


def test_scaling_the_counts_below_a_split_is_caught():
    """Below the redrawn split the counts are scaled and rounded, as if that were reversible."""
    given = measured()
    exact, made = enumerated("laplace"), engine(given)
    splits = exact.splits

    def move(state, rng):
        tree, counts, logs = made.tree, state["counts"], np.empty(2 * redraws.HALF + 1)
        lo, hi = redraws.update_window(logs, 0, counts[0], state["concentrations"], tree)
        new = lo + redraws.drawn(logs, hi - lo + 1, rng)
        table = []
        for child, there in ((1, new), (2, counts[0] - new)):
            old, left = counts[child], counts[tree.child[child]]
            scaled = min(there, round(there * left / old)) if old > 0 else there // 2
            table += [scaled, there - scaled]
        after = whole(*table)
        indices = tuple(int(x) for x in state["concentrations"])
        change = prior_log(splits, after, indices) + noise_log(given, after)
        change -= prior_log(splits, counts[-4:], indices) + noise_log(given, counts[-4:])
        change += logs[counts[1] - lo] - logs[new - lo]
        if rng.random() < math.exp(min(change, 0.0)):
            counts[:] = np.concatenate([given.tree.sums(after, depth) for depth in range(3)])

    assert p_value(exact, law_after(exact, move, size=1_200, seed=9, times=3)) < ALPHA


@pytest.mark.parametrize("name", CASES)
def test_the_approximation_is_near_the_enumerated_posterior(name):
    given, _ = CASES[name]
    exact = enumerated(name)
    found = approximate_posterior(given, base=BASES.get(name))
    cells = given.tree.cells
    away = np.abs(found.counts - exact.means()[:cells]) / exact.deviations()[:cells]
    assert away.max() < 0.2
    assert np.all(found.counts >= 0.0)
    if len(found.special):
        assert np.max(np.abs(found.special - exact.means()[cells:]) / exact.deviations()[cells:]) < 0.25
