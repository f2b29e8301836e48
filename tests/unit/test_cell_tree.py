"""The tree over cells: every depth a partition, every node a run of places that is halved one depth further down."""

import numpy as np
import pytest

from privurn.cell_tree import CellTree
from privurn.errors import ModelError


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (4096,), (1, 1), (5, 3), (1, 6), (16, 64), (13, 100)])
def test_every_depth_is_a_partition_that_refines_the_one_above(shape):
    tree = CellTree(shape)
    assert sorted(tree.order) == list(range(tree.cells))
    assert tree.starts[-1].tolist() == list(range(tree.cells))
    assert tree.nodes(0) == 1
    counts = np.random.default_rng(0).integers(0, 100, tree.cells)
    for depth in range(tree.depth + 1):
        assert tree.sums(counts, depth).sum() == counts.sum()
    for above, below in zip(tree.starts, tree.starts[1:], strict=False):
        assert set(above) < set(below)
        assert (np.diff(np.searchsorted(below, [*above, tree.cells])) <= 2).all()  # one child or two


def test_nodes_of_two_columns_are_boxes():
    tree = CellTree((6, 10))
    for starts in tree.starts:
        for cells in np.split(tree.order, starts[1:]):
            rows, columns = np.divmod(cells, 6)[::-1]
            assert len(cells) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)


def test_a_column_keeps_its_order():
    assert CellTree((37,)).order.tolist() == list(range(37))


def test_what_is_no_tree():
    for shape in ((), (0,), (2, 2, 2)):
        with pytest.raises(ModelError):
            CellTree(shape)
