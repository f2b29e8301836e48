"""Counts of cells as those of a tree, of which nothing but the cells was measured: where the Polya tree is the default prior.

One prior weight for all cells cannot describe a full body and an empty tail: it keeps the noise of empty cells as records. A
Polya tree learns how records split, depth by depth, also that all of them are on one side. Where noise hides single cells the
tree is told of wider ranges by the sums over their cells.
"""

import math
from dataclasses import replace

import numpy as np

from privurn.cell_tree import CellTree
from privurn.domain import JointDomain
from privurn.mechanisms.likelihood import CountTerm
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.tree_measurements import DRAWN, TreeMeasurements

MANY, MANY_ORDERED = 32, 16
"""So many cells, in no order and in one, are described by one prior weight for all; of more the default is the tree."""

CLEAR = 4.0
"""Deviations of its noise that a node holds on average where noise does not hide it; of hidden ones sums are used."""


def usual_tree(domain: JointDomain) -> bool:
    """Whether the tree is the default prior of counts over a domain.

    >>> from privurn.domain import Categories, Grid
    >>> usual_tree(JointDomain({"x": Grid(0, 19, 1)})), usual_tree(JointDomain({"x": Categories(list("abcdefghijkl"))}))
    (True, False)
    """
    return domain.size > (MANY if tree_shape(domain) is None else MANY_ORDERED)


def cells_as_tree(term: CountTerm, domain: JointDomain, *, n: int | None, whole: bool = False) -> TreeMeasurements | None:
    """What a release says of its cells, in the terms of a tree; None where that cannot be said in them.

    Columns of numbers and dates, one or two, are halved as noisy trees are. Other cells have no order: they are halved as they
    are listed, which still tells empty ones from full ones. `whole`: special cells are in the tree as well, as they must be
    where something is known of all records together, or of none but through records that were drawn.
    """
    leaves = term.as_leaves(n=n)
    if leaves is None:
        return None
    ordered = tree_shape(domain)
    together = whole or leaves.noise[0] in DRAWN
    if ordered is None or (together and any(ordered[1])):
        tree, inside = CellTree((domain.size,)), np.ones(domain.size, np.bool_)
    else:
        tree, inside = CellTree(ordered[0]), np.ones(1, np.bool_)
        for size, beside in zip(*ordered, strict=True):
            inside = np.outer(np.arange(size + beside) < size, inside).ravel()
    numbers = leaves.numbers[inside][tree.order]
    found = TreeMeasurements(
        tree,
        (tree.depth,),
        (numbers,),
        (leaves.noise,),
        total=n,
        special=tuple(leaves.numbers[~inside].tolist()),
        special_noise=None if inside.all() else leaves.noise,  # type: ignore[arg-type]
        places=np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]),
        laws=leaves.laws,
    )
    return replace(found, sums_from=clear_depth(found))


def clear_depth(measured: TreeMeasurements) -> int | None:
    """The last depth whose nodes noise does not hide, on average; None where that is the cells', or there are few of them.

    A cell's count is not below zero, so that noise on hidden cells is read as records wherever it is positive: little in each
    of them, much in all together. Their sum is free of that.
    """
    estimates, variances = measured.estimates(measured.tree.depth) or ((), ())
    records = float(np.sum(estimates)) if measured.total is None else float(measured.total - sum(measured.special))
    spread = float(np.sqrt(np.mean(variances)))
    wanted = CLEAR * spread * measured.tree.cells / max(records, 1.0)
    if wanted <= 1.0 or measured.tree.cells <= MANY_ORDERED:
        return None
    return max(0, measured.tree.depth - math.ceil(2.0 * math.log2(wanted)))
