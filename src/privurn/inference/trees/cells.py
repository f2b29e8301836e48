"""Counts of cells as those of a tree, of which nothing but the cells was measured: where the Polya tree is the default prior.

One prior weight for all cells cannot describe a full body and an empty tail: it keeps the noise of empty cells as records. A
Polya tree learns how records split, depth by depth, also that all of them are on one side.
"""

import numpy as np

from privurn.cell_tree import CellTree
from privurn.domain import JointDomain
from privurn.mechanisms.likelihood import CountTerm
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.tree_measurements import DRAWN, TreeMeasurements

MANY = 32
"""So many cells are described by one prior weight for all; of more the default is the tree."""


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
    return TreeMeasurements(
        tree,
        (tree.depth,),
        (numbers,),
        (leaves.noise,),
        total=n,
        special=tuple(leaves.numbers[~inside].tolist()),
        special_noise=None if inside.all() else leaves.noise,  # type: ignore[arg-type]
        places=np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]),
    )
