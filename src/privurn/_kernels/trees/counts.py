"""The Polya tree's law of counts and the noise of their measurements, node by node.

Nodes of all depths stand in one list, depth by depth; a node of one cell has itself as its only child one depth further down.

symbol  meaning
C       counts of all nodes;  l, c: those of a left child and of its parent
a, r    concentration of a split (inf: exactly r), share of one side
d       a number of records
"""

import math
from typing import Any, NamedTuple

from privurn._kernels._compile import compiled

LAPLACE, NORMAL = 0, 1


class Tree(NamedTuple):
    """Public data.

    Of every node: `parent` (-1 at the root), first child (`child`, -1 at the cells), whether there are `two`, share r of the
    first, `depth`, noisy count (`noisy`; 0 where not measured), and the estimate of its count by its own subtree (`mean`,
    `variance`). Of every depth: `kind` of noise (-1: not measured) and `scale`. `cells`: the node of the first cell;
    `concentrations`, and `hyper`, the Dirichlet parameters of their weights by depth. Of special cells: `special` noisy counts
    with `special_kind` and `special_scale`. `total`: public n of all cells, -1 where secret; `most`: the largest n.
    """

    parent: Any
    child: Any
    two: Any
    share: Any
    depth: Any
    noisy: Any
    mean: Any
    variance: Any
    kind: Any
    scale: Any
    cells: int
    concentrations: Any
    hyper: Any
    special: Any
    special_kind: int
    special_scale: float
    total: int
    most: int


@compiled
def noise_log(kind, scale, z):
    """Log probability of noise z, up to a constant."""
    return -abs(z) / scale if kind == LAPLACE else -0.5 * (z / scale) ** 2


@compiled
def measured_log(v, count, tree):
    """Log probability of a node's noisy count if its count is this, up to a constant; 0 where it has none."""
    kind = tree.kind[tree.depth[v]]
    return noise_log(kind, tree.scale[tree.depth[v]], tree.noisy[v] - count) if kind >= 0 else 0.0


@compiled
def rise(x, d):
    """Log of Gamma(x + d)/Gamma(x)."""
    if 0 <= d <= 4:
        product = 1.0
        for i in range(d):
            product *= x + i
        return math.log(product)
    if -4 <= d < 0:
        product = 1.0
        for i in range(-d):
            product *= x - 1.0 - i
        return -math.log(product)
    return math.lgamma(x + d) - math.lgamma(x)


@compiled
def side_rise(a, r, count, d):
    """What d more records on a side of share r, which has `count`, do to the log prior of a split with a fixed total."""
    return d * math.log(r) if a == math.inf else rise(a * r + count, d)


@compiled
def whole_rise(a, count, d):
    """What d more records in all do to the normaliser of a split."""
    return 0.0 if a == math.inf else rise(a + count, d)


@compiled
def split_log(left, count, a, r):
    """Log probability of `left` of `count` records in the left child: beta-binomial, or binomial where a is infinite."""
    choose = math.lgamma(count + 1.0) - math.lgamma(left + 1.0) - math.lgamma(count - left + 1.0)
    return choose + order_log(left, count, a, r)


@compiled
def order_log(left, count, a, r):
    """The same for records in a given order, of which the first `left` are those in the left child."""
    return side_rise(a, r, 0, left) + side_rise(a, 1.0 - r, 0, count - left) - whole_rise(a, 0, count)


@compiled
def common_ancestor(u, v, tree):
    """The lowest node above two others of the same depth."""
    while u != v:
        u, v = tree.parent[u], tree.parent[v]
    return u
