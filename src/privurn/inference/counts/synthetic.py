"""Records from posterior draws of the confidential counts of cells."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.inference.trees.synthetic import balanced_counts, records_in_random_order
from privurn.mechanisms.published import copy_column
from privurn.mechanisms.recipe import check_records
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import decode

Floats = NDArray[np.float64]


def synthetic_table(
    shares: Floats, sizes: Floats, *, domain: JointDomain, records: int | None, copies: int, seed: int | None
) -> Any:
    """From draws of the cells' shares (draw, cell) among the confidential records, and of how many those are."""
    if copies < 1 or copies > len(shares):
        raise ModelError(f"between 1 and {len(shares):,} copies can be made of so many draws.", hint="For example copies=20")
    if copies > 1 and records is not None:
        raise ModelError("copies have as many records as the confidential table.", hint="Leave the number of records out")
    if records is not None and records < 1:
        raise ModelError("at least one record must be asked for.", hint="For example records=1000")
    rng, tree = np.random.default_rng(seed), CellTree((shares.shape[1],))
    counts = np.where(sizes[:, None] > 0.0, shares * sizes[:, None], 0.0)  # a table without records has no shares
    if copies == 1:
        size = max(1, round(float(sizes.mean()))) if records is None else records
        wanted = [_scaled(counts.mean(axis=0), size)]
    else:
        chosen = np.linspace(0, len(shares) - 1, copies).astype(np.int64)
        wanted = [_scaled(counts[d], float(np.rint(sizes[d]))) for d in chosen]
    total = sum(round(float(each.sum())) for each in wanted)
    if total == 0:
        raise ModelError("what was released tells of no record at all.")
    check_records(total)
    tables = [balanced_counts(tree, each, rng=rng)[0] for each in wanted]
    return records_of(tables, domain=domain, rng=rng, seed=seed or 0)


def _scaled(counts: Floats, size: float) -> Floats:
    """Counts that sum to a number of records."""
    total = float(counts.sum())
    if total <= 0.0 < size:
        raise ModelError("what was released tells of no record at all.")
    return counts * (size / total) if size > 0.0 else np.zeros_like(counts)


def records_of(tables: Sequence[NDArray[np.int64]], *, domain: JointDomain, rng: np.random.Generator, seed: int) -> Any:
    """Records with these counts of cells, in random order; of several tables one after the other, each behind its number."""
    cells = [records_in_random_order(each, rng=rng) for each in tables]
    made = decode(np.concatenate(cells), domain, entropy=SeededEntropy(seed))
    if len(tables) == 1:
        return made
    number = np.repeat(np.arange(1, len(tables) + 1), [len(each) for each in cells])
    return made.add_column(0, copy_column(domain.columns), [number])
