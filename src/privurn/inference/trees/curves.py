"""How high cells stand within the ranges of a depth, by the ranges around them: under rising curves through their sums.

Through the cumulative counts at the ends of ranges goes a rising curve, a cubic in each range (Fritsch and Carlson 1980, with
slopes as in Fritsch and Butland 1984). Ranges of two columns are boxes, which stand in rows and files: there is a curve along
each of them, and a cell is as high as both say, multiplied.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

LEAST = 1e-9
"""Height of a cell beside the mean of its range, at least."""


def heights(tree: CellTree, counts: Floats, depth: int) -> Floats:
    """Of the cells by number, about 1 on average in each range of the depth, whose counts are positive.

    >>> heights(CellTree((8,)), np.array([1.0, 3.0]), 1).round(2).tolist()
    [0.34, 0.91, 1.28, 1.47, 0.66, 0.93, 1.14, 1.28]
    """
    shape = (*tree.shape, 1)[:2]  # one column is a table of one row
    sizes = np.diff(np.append(tree.starts[depth], tree.cells))
    density = np.empty(tree.cells)
    density[tree.order] = np.repeat(counts / sizes, sizes)
    corner = tree.order[tree.starts[depth]]
    files, rows = np.unique(corner % shape[0]), np.unique(corner // shape[0])  # the first column runs fastest
    widths, depths = np.diff(np.append(files, shape[0])), np.diff(np.append(rows, shape[1]))
    boxes = density.reshape(shape[::-1])[np.ix_(rows, files)].T  # a box that others beside it halve stands twice
    first, second = along(boxes, widths), along(boxes.T, depths)  # (cells, boxes of the other column)
    found = np.repeat(first, depths, axis=1) * np.repeat(second, widths, axis=1).T
    return np.maximum(found.T.ravel(), LEAST)


def along(ranges: Floats, sizes: Whole) -> Floats:
    """Heights of the cells of ranges of these sizes, each over the height of its range; every column of `ranges` by itself.

    Between two ranges the curve is as steep as the harmonic mean of their heights: near nothing beside an empty one, and never
    so steep that a cubic would fall. At both ends the outermost range goes on from its neighbour.
    """
    if len(sizes) == 1:
        return np.ones((int(sizes[0]), ranges.shape[1]))
    between = 2.0 / (1.0 / ranges[:-1] + 1.0 / ranges[1:])
    ends = np.maximum(1.5 * ranges[[0, -1]] - 0.5 * ranges[[1, -2]], 0.0)
    first = np.repeat(np.vstack([ends[:1], between]) / ranges, sizes, axis=0)
    last = np.repeat(np.vstack([between, ends[1:]]) / ranges, sizes, axis=0)
    width = np.repeat(1.0 / sizes, sizes)[:, None]
    low = (np.arange(len(width)) - np.repeat(np.cumsum(sizes) - sizes, sizes))[:, None] * width

    def risen(t: Floats) -> Floats:
        return first * t * (1.0 - t) ** 2 - last * t**2 * (1.0 - t) + t**2 * (3.0 - 2.0 * t)

    return np.maximum((risen(low + width) - risen(low)) / width, LEAST)
