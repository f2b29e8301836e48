"""Which depths of a tree are measured, and with how much noise: from public quantities only.

The rule was chosen by simulation: docs/proofs/noisy-trees.md has its figures, `python -m benchmarks.tree_layout` prints them. A
layout that followed the data, or a secret number of records, would itself be a release.
"""

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

from privurn.cell_tree import CellTree
from privurn.errors import ModelError
from privurn.privacy.laws.noisy_tree import TreeNoise

SPACING: dict[TreeNoise, float] = {"discrete-laplace": 4.0, "discrete-gaussian": 2.0}
"""Binary depths from one measured depth to the next, about: Gaussian noise grows with the root of their number only."""

DEVIATIONS = 8.0
"""Of the noise that a node holds on average at the last depth that stands out from it."""

PUBLIC = 0.5
"""Depths further down with Laplace noise where n is public: cumulative counts then have about a third of the variance."""

MOST_DEPTHS = 5
"""With Laplace noise, where leaves stand out: six would gain less than 1% of the error with two million cells."""

LEAVES_WEIGHT = 0.5
"""Budget of leaves that do not stand out, over that of another depth, with Laplace noise."""

FALLING, STANDING_OUT = 0.8, 16.0
"""Budget of a depth over that of the one above it, with Laplace noise, one column and a public n, where leaves stand out by
less than so many deviations: what wide ranges hold their measurements alone tell, what narrow ones do neighbours as well."""

CLEARLY = 1.04
"""How much larger the error of evenly spread depths may be."""

SKEWED = 1 / 4
"""Of the variance of an unknown total, in the square of the error of a share up to a cell: none where records are spread
evenly, a third where all lie at one end, on average over the cells. Real columns are more often nearer to that."""


@dataclass(frozen=True)
class TreeLayout:
    """Measured depths, and their relative precisions (1/scale)."""

    depths: tuple[int, ...]
    precisions: tuple[float, ...]


def tree_layout(tree: CellTree, *, noise: TreeNoise, flat_deviation: float, n: int, secret: bool = False) -> TreeLayout:
    """The layout for about n records, where noise on the leaves alone would have the deviation `flat_deviation`.

    d* is the last depth that is worth measuring beside the leaves. Where it lies within one spacing (4 binary depths for
    Laplace, 2 for Gaussian noise) of the leaves or below them, the depths are spread evenly from the root to the leaves, one
    for each spacing; else evenly down to d*, and the leaves beside. All have the same noise; but with Laplace noise leaves that
    hold less than four deviations on average get half the budget of another depth, and of one column where they hold less than
    sixteen each depth gets four fifths of what the one above it does. Where n is `secret` the total is one more thing to be
    measured: Laplace noise is laid out as for a tree with one more depth above the root, all depths alike where leaves stand
    out, and other depths are then taken if they are `clearly_better`. A tree of one node is then measured there.

    >>> tree_layout(CellTree((4096,)), noise="discrete-laplace", flat_deviation=1.4, n=10_000).depths
    (4, 8, 12)
    >>> tree_layout(CellTree((256,)), noise="discrete-laplace", flat_deviation=1.4, n=5_000).precisions
    (0.5555555555555556, 0.4444444444444445)
    >>> tree_layout(CellTree((4096,)), noise="discrete-laplace", flat_deviation=1.4, n=10_000, secret=True).depths
    (3, 7, 12)
    >>> tree_layout(CellTree((4096,)), noise="discrete-laplace", flat_deviation=1.4, n=1_000, secret=True)
    TreeLayout(depths=(2, 6, 12), precisions=(0.4, 0.4, 0.2))
    """
    depth, spacing = tree.depth, SPACING[noise]
    if depth == 0:
        if not secret:
            raise ModelError("a tree of one cell has nothing to measure where n is public.", hint="Use a finer domain")
        return TreeLayout((0,), (1.0,))
    laplace = noise == "discrete-laplace"
    worthwhile = min(float(depth), max(1.0, worthwhile_depth(n / flat_deviation, noise=noise, secret=secret)))
    spread_out = below_total if secret and laplace else spread
    hidden = 2.0 * n < DEVIATIONS * flat_deviation * tree.cells
    if worthwhile <= depth - spacing:
        depths = (*spread_out(worthwhile, spacing), depth)
    else:
        filled = math.log2(tree.cells)
        depths = above_leaves(filled, spacing, leaves=depth, secret=secret) if laplace else spread(depth, spacing)
        if secret and not hidden:
            depths = clearly_better(tree, noise, depths)
    weights = [1.0] * len(depths)
    if laplace and hidden and len(depths) > 1:
        weights[-1] = LEAVES_WEIGHT
    elif laplace and not secret and len(tree.shape) == 1 and n < STANDING_OUT * flat_deviation * tree.cells:
        weights = [FALLING**place for place in range(len(depths))]
    return TreeLayout(depths, tuple(each / sum(weights) for each in weights))


def worthwhile_depth(deviations: float, *, noise: TreeNoise, secret: bool) -> float:
    """d*, the last depth worth measuring beside the leaves, where all records are so many deviations of the noise.

    With Gaussian noise many depths are measured, and the noise of a cumulative count hardly grows with the last of them: down
    to where a node of n/2^d records stands out. With Laplace noise few are, and it grows with the root of the number of nodes:
    down to where 2^(d/2) deviations are as much as spreading records evenly within ranges of 2^-d of the width may move.

    >>> [worthwhile_depth(2.0**12, noise=noise, secret=True) for noise in SPACING]
    [8.0, 9.0]
    """
    if noise == "discrete-gaussian":
        return math.log2(deviations / DEVIATIONS)
    return 2.0 / 3.0 * math.log2(deviations) + (0.0 if secret else PUBLIC)


def above_leaves(last: float, spacing: float, *, leaves: int, secret: bool) -> tuple[int, ...]:
    """Depths for Laplace noise spread evenly down to the leaves, which are `last` binary depths down on average.

    Cells that are no power of two fill a part of their last depth only: the depths above are fractions of what it would be if
    they did, rounded up from 0.4 on, so that the wide gaps are above; with a secret n they are below, as in `below_total`.

    >>> [above_leaves(math.log2(cells), 4.0, leaves=math.ceil(math.log2(cells)), secret=False) for cells in (512, 4096, 5001)]
    [(5, 9), (4, 8, 12), (4, 8, 13)]
    >>> above_leaves(math.log2(5001), 4.0, leaves=13, secret=True)
    (3, 7, 13)
    """
    above = 1.0 if secret else 0.0
    count = max(1, round((last + above) / spacing))
    fractions = [(last + above) * i / count for i in range(1, count)]
    depths = [math.floor(each + 1e-9) - 1 if secret else math.ceil(each - 0.4) for each in fractions]
    return (*sorted({max(1, each) for each in depths} - {leaves}), leaves)


def clearly_better(tree: CellTree, noise: TreeNoise, usual: tuple[int, ...]) -> tuple[int, ...]:
    """Of a secret total, and leaves that stand out: the depths with the least error of a share up to a cell, if clearly less.

    Depths that come out evenly spread are near to the least; those of few cells do not always. Of Laplace noise all sets of at
    most five depths are looked at; of Gaussian noise every other depth, from one of the first two on.

    >>> clearly_better(CellTree((99,)), "discrete-laplace", (2, 7))
    (3, 7)
    >>> clearly_better(CellTree((4096,)), "discrete-laplace", (3, 7, 12))
    (3, 7, 12)
    >>> clearly_better(CellTree((501,)), "discrete-gaussian", (3, 5, 7, 9))
    (1, 3, 5, 7, 9)
    """
    leaves, laplace = tree.depth, noise == "discrete-laplace"
    if laplace:
        above = [each for count in range(MOST_DEPTHS) for each in combinations(range(1, leaves), count)]
    else:
        above = [tuple(range(first, leaves, 2)) for first in (1, 2)]

    def error(depths: tuple[int, ...]) -> float:
        deviation = float(len(depths)) if laplace else math.sqrt(len(depths))
        nodes = [tree.nodes(each) for each in depths]
        return math.sqrt(range_variance(nodes, (deviation,) * len(nodes), n=math.inf, secret=True))

    best = min(((*each, leaves) for each in above), key=error)
    return best if error(usual) > CLEARLY * error(best) else usual


def spread(last: float, spacing: float) -> tuple[int, ...]:
    """Depths spread evenly down to `last`, about `spacing` apart; where they do not come out even, the wide gaps are above.

    >>> spread(9.0, 4.0), spread(7.0, 2.0)
    ((5, 9), (2, 4, 6, 7))
    """
    count, end = max(1, round(last / spacing)), max(1, round(last))
    return tuple(sorted({math.ceil(end * i / count) for i in range(1, count + 1)}))


def below_total(last: float, spacing: float) -> tuple[int, ...]:
    """Depths spread evenly below a depth above the root, that of an unknown total; here the wide gaps are below.

    The shares up to a cell of a skewed column are off by the sum of all ranges beyond it, which a public n would tie down.

    >>> below_total(12.0, 4.0), below_total(10.0, 4.0), below_total(2.0, 4.0)
    ((3, 7, 12), (2, 6, 10), (2,))
    """
    count, end = max(1, round((last + 1.0) / spacing)), max(1, round(last)) + 1
    return tuple(sorted({max(1, end * i // count - 1) for i in range(1, count + 1)}))


def range_variance(nodes: list[int], deviations: tuple[float, ...], *, n: float, secret: bool) -> float:
    """Mean squared error of the count up to a cell, from noise of these deviations on so many nodes, depth by depth.

    Upwards, a node's own measurement (variance v) and the sum of its b nodes at the next measured depth (variance b w) are
    combined by inverse variances. Downwards, given a node's count c, the first j of its b nodes have the variance
    w j (1 - j/b), (b^2 - 1)/(6 b) w on average over j; or c^2/12, as if the records stood anywhere in it, where that is less. c
    is n over the number of nodes. To that a secret total adds a part of its own variance.
    """
    precision = error = 0.0  # of the sum of the nodes below; nothing is below the last
    for deviation, (above, at) in zip(deviations[::-1], list(pairwise([1, *nodes]))[::-1], strict=True):
        branching = at / above
        variance = 1.0 / (1.0 / deviation**2 + precision)
        error += min(variance * (branching - 1.0 / branching) / 6.0, (n / above) ** 2 / 12.0)
        precision = 1.0 / (branching * variance)
    return error + (SKEWED / precision if secret else 0.0)
