"""The base measure that trees learn where none is given: within ranges, never of ranges."""

import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.cell_tree import CellTree
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.base import STEPS, learnt_base, splits_of
from privurn.inference.trees.chain import TreeCounts
from privurn.inference.trees.curves import heights
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.tree_measurements import TreeMeasurements

RANGES = np.array([0, 10, 300, 900, 500, 100, 0, 0])


def measured(ranges=RANGES, *, cells=64, shape=None, scales=(2.0, 200.0), depths=(3, 6)):
    """Ranges without error, and cells of which nothing was seen."""
    tree = CellTree(shape or (cells,))
    noisy = tuple(ranges if tree.nodes(depth) == len(ranges) else np.zeros(tree.nodes(depth), np.int64) for depth in depths)
    noise = tuple(("laplace", scale) for scale in scales)
    return TreeMeasurements(tree, depths, noisy, noise, total=int(ranges.sum()))


@pytest.mark.parametrize("cells", [64, 61])
def test_ranges_keep_their_share_and_splits_within_them_come_in_steps(cells):
    seen = measured(cells=cells)
    found = learnt_base(seen)
    sizes = np.diff(np.append(seen.tree.starts[3], cells))
    assert np.all(found > 0.0)
    assert np.allclose(np.add.reduceat(found, seen.tree.starts[3]), sizes / cells, rtol=1e-12)
    splits = splits_of(seen)
    for depth in range(3, seen.tree.depth):
        steps = STEPS * splits.shares[depth][splits.two[depth]]
        assert np.allclose(steps, np.rint(steps), atol=1e-9)
        assert np.all((steps > 0.5) & (steps < STEPS - 0.5))


def test_cells_rise_and_fall_as_the_ranges_around_them_do():
    heights = learnt_base(measured()).reshape(8, 8)
    assert np.all(np.diff(heights[2]) > 0.0)
    assert heights[2, 0] < 0.2 * heights[2, -1]  # nearly nothing before it
    assert np.all(np.diff(heights[5]) <= 0.0)
    assert heights[5, -1] < 0.3 * heights[5, 0]
    assert heights[3].argmax() not in (0, 7)  # a peak


def test_what_noise_hides_stays_flat():
    hidden = learnt_base(measured(np.array([0, 3, 0, 4000, 4000, 0, 2, 0]), scales=(40.0, 4000.0))).reshape(8, 8)
    assert np.ptp(hidden[[0, 1]]) < 0.1 * hidden[0, 0]
    assert np.ptp(hidden[3]) > hidden[3].mean()


@pytest.mark.parametrize(
    "seen",
    [
        measured(depths=(6,), scales=(2.0,)),
        measured(scales=(2.0, 1.0)),
        measured(scales=(100.0, 200.0)),
        measured(np.zeros(8, np.int64)),
        measured(np.full(8, 500)),
        measured(np.array([900, 0, 900, 0, 100, 900, 0, 300])),
        measured(np.array([300, 900, 500, 0]), depths=(2, 6)),
        measured(np.array([1810]), depths=(0,), scales=(2.0,)),
    ],
    ids=[
        "cells alone",
        "clear cells",
        "hidden",
        "no record",
        "even",
        "round numbers",
        "few ranges",
        "no ranges",
    ],
)
def test_where_ranges_tell_nothing_of_cells_the_base_is_uniform(seen):
    assert learnt_base(seen) is None
    assert splits_of(seen).base is None


def boxes(law, *, cells=32, depths=(6, 10), total=100_000):
    """Of two columns: boxes of a law without error, and cells of which nothing was seen."""
    tree = CellTree((cells, cells))
    x, y = np.meshgrid(np.arange(cells), np.arange(cells))  # the first column runs fastest
    p = law(x, y).ravel()
    counts = np.rint(p / p.sum() * total).astype(np.int64)
    noisy = tree.sums(counts, depths[0]), np.zeros(tree.nodes(depths[1]), np.int64)
    return TreeMeasurements(tree, depths, noisy, (("laplace", 2.0), ("laplace", 4000.0)), total=int(counts.sum()))


def test_cells_of_two_columns_rise_and_fall_as_the_boxes_around_them_do():
    seen = boxes(lambda x, y: np.exp(-x / 8.0 - y / 4.0))
    found = learnt_base(seen)
    placed = found[seen.tree.order]
    assert np.allclose(np.add.reduceat(placed, seen.tree.starts[6]), 1 / 64, rtol=1e-12)  # boxes keep their share
    box = found.reshape(32, 32)[8:12, 8:12]
    across, along = box[0] / box[-1], box[:, 0] / box[:, -1]
    assert np.all(np.diff(box, axis=0) < 0.0)
    assert np.all(np.diff(box, axis=1) < 0.0)
    assert across.mean() == pytest.approx(np.exp(0.75), rel=0.15)  # three cells up; cubics are no exponentials
    assert along.mean() == pytest.approx(np.exp(0.375), rel=0.1)


def test_a_column_that_tells_nothing_does_not_shape_the_other():
    found = learnt_base(boxes(lambda x, y: np.exp(-y / 6.0) + 0.0 * x)).reshape(32, 32)
    assert np.ptp(found, axis=1).max() < 0.05 * found.mean()
    assert found[8, 0] > 1.3 * found[11, 0]


@pytest.mark.parametrize(
    "law",
    [lambda x, y: np.ones(x.shape), lambda x, y: 1.0 + ((x // 4 + y // 4) % 2) * 50.0],
    ids=["even", "boxes that do not follow their neighbours"],
)
def test_of_two_columns_too_the_base_is_uniform_where_boxes_tell_nothing(law):
    assert learnt_base(boxes(law)) is None


@pytest.mark.parametrize("shape", [(5, 100), (100, 5), (3, 8), (7, 9), (24, 60), (40, 32), (1, 30)])
def test_boxes_of_every_depth_have_heights_whether_or_not_they_stand_in_full_rows(shape):
    """Of sizes that are no powers of two some boxes of a depth are halved along one column, others along the other."""
    tree = CellTree(shape)
    for depth in range(1, tree.depth + 1):
        sizes = np.diff(np.append(tree.starts[depth], tree.cells))
        assert np.allclose(heights(tree, 7.0 * sizes, depth), 1.0)
        found = heights(tree, np.random.default_rng(depth).gamma(1.0, 1.0, len(sizes)) + 0.01, depth)
        assert np.all(np.isfinite(found))
        assert np.all(found > 0.0)


def test_releases_of_a_short_and_a_long_column_have_records_and_a_posterior():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "answer": np.clip(np.rint(rng.normal(3.0, 1.0, 10_000)), 1, 5),
            "age": np.clip(np.rint(rng.gamma(4.0, 8.0, 10_000)), 0, 99),
        }
    )
    release = privurn.release(
        frame, domain={"answer": privurn.Grid(1, 5, 1), "age": privurn.Grid(0, 99, 1)}, epsilon=1, ledger=False
    )
    assert len(release.data) == 10_000
    found = privurn.infer(release, ask=["mean(age)", "mean(answer)"]).summary()
    assert abs(found[0].mean - frame["age"].mean()) < 2.0  # some ten deviations
    assert abs(found[1].mean - frame["answer"].mean()) < 0.2


def test_a_block_with_sharp_edges_keeps_an_even_base_and_a_slope_does_not():
    """Wide boxes of a block follow their neighbours, for its edges cut them; how narrow ones split says that these do not."""
    x, y = np.meshgrid(np.arange(64), np.arange(64))
    tree, rng = CellTree((64, 64)), np.random.default_rng(2)
    steep = {}
    for name, law in (
        ("block", ((x >= 8) & (x < 56) & (y >= 24) & (y < 56)).astype(float)),
        ("slope", np.exp(-x / 20.0 - y / 16.0)),
    ):
        counts = rng.multinomial(20_000, law.ravel() / law.sum())
        noisy = tuple(tree.sums(counts, d) + np.rint(rng.laplace(0.0, 3.0, tree.nodes(d))).astype(int) for d in (3, 7, 12))
        seen = TreeMeasurements(tree, (3, 7, 12), noisy, (("laplace", 3.0),) * 3, total=None)
        base = learnt_base(seen)
        steep[name] = 0.0 if base is None else float(np.ptp(base) / base.mean())
    assert steep["block"] < 0.3
    assert steep["slope"] > 0.6


@pytest.mark.parametrize("shape", [(64, 1), (1, 64), (2, 50), (7, 9)])
def test_narrow_tables_of_two_columns_have_a_base(shape):
    tree = CellTree(shape)
    x, y = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]))
    counts = np.rint(1e5 * np.exp(-(x / shape[0] + y / shape[1]) * 3.0)).astype(np.int64).ravel()
    depth = next(depth for depth in range(tree.depth) if tree.nodes(depth) >= 8)
    noisy = tree.sums(counts, depth), np.zeros(tree.cells, np.int64)
    noise = ("laplace", 2.0), ("laplace", 1e5)
    found = learnt_base(TreeMeasurements(tree, (depth, tree.depth), noisy, noise, total=int(counts.sum())))
    assert np.all(found > 0.0)
    placed = found[tree.order]
    ends = np.append(tree.starts[depth][1:], tree.cells) - 1
    falls = placed[tree.starts[depth]] / placed[ends]  # from each box's low corner to its high one
    assert falls.mean() > 1.02
    assert falls.min() > 0.9


def test_every_computation_has_the_same_base_and_a_given_one_is_kept():
    seen, given = measured(), np.arange(1.0, 65.0)
    for base, wanted in ((None, learnt_base(seen)), (given, given)):
        assert np.array_equal(IndependentDraws(seen, base)._fitted[0].splits.base, wanted)
        assert np.array_equal(TreeCounts(measured=seen, base=base).splits.base, wanted)
    means = approximate_posterior(seen).counts
    assert np.array_equal(means, approximate_posterior(seen, base=learnt_base(seen)).counts)
    assert not np.allclose(means, approximate_posterior(seen, base=np.ones(64)).counts)


def test_records_at_the_edge_of_a_gap_lie_nearer_than_with_an_even_base():
    """Two humps, with noise that hides where in a range records lie; the same for both."""
    x, rng = np.arange(256), np.random.default_rng(3)
    law = np.exp(-0.5 * ((x - 50) / 10.0) ** 2) + np.exp(-0.5 * ((x - 180) / 7.0) ** 2)
    law[(x > 70) & (x < 165)] = 0.0
    tree, apart = CellTree((256,)), np.zeros(2)
    for _ in range(10):
        counts = rng.multinomial(5_000, law / law.sum())
        noise = ((4, 15.0), (8, 60.0))
        noisy = tuple(tree.sums(counts, d) + np.rint(rng.laplace(0.0, scale, tree.nodes(d))).astype(int) for d, scale in noise)
        seen = TreeMeasurements(tree, (4, 8), noisy, tuple(("laplace", scale) for _, scale in noise), total=5_000)
        for i, base in enumerate((None, np.ones(256))):
            apart[i] += np.abs(np.cumsum(approximate_posterior(seen, base=base).counts - counts)).sum()
    assert apart[0] < 0.9 * apart[1]
