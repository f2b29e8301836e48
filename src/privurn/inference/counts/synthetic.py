"""Records from the posterior of the confidential counts of cells."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.cell_tree import CellTree
from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.inference.trees.copies import drawn_tables
from privurn.inference.trees.nearest import face_value_counts, nearest_of_draws
from privurn.inference.trees.synthetic import balanced_counts, records_in_random_order
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.published import copy_column
from privurn.mechanisms.recipe import check_records
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import decode

if TYPE_CHECKING:
    from privurn.inference.counts.sampling import Job

Floats = NDArray[np.float64]


def synthetic_table(
    shares: Floats, sizes: Floats, *, domain: JointDomain, records: int | None, copies: int, seed: int | None
) -> Any:
    """From draws of the cells' shares (draw, cell) among the confidential records, and of how many those are."""
    if copies < 1 or copies > len(shares):
        raise ModelError(f"between 1 and {len(shares):,} copies can be made of so many draws.", hint="For example copies=20")
    if copies > 1 and records is not None:
        raise ModelError("copies have as many records as the confidential table.", hint="Leave the number of records out")
    rng, tree = np.random.default_rng(seed), CellTree((shares.shape[1],))
    counts = np.where(sizes[:, None] > 0.0, shares * sizes[:, None], 0.0)  # a table without records has no shares
    if copies == 1:
        size = max(1, round(float(sizes.mean()))) if records is None else records
        wanted = [_scaled(_nearest(counts, _in_order(domain)), size)]
    else:
        chosen = np.linspace(0, len(shares) - 1, copies).astype(np.int64)
        wanted = [_scaled(counts[d], float(np.rint(sizes[d]))) for d in chosen]
    total = sum(round(float(each.sum())) for each in wanted)
    if total == 0:
        raise ModelError("what was released tells of no record at all.")
    check_records(total)
    tables = [balanced_counts(tree, each, rng=rng)[0] for each in wanted]
    return records_of(tables, domain=domain, rng=rng, seed=seed or 0)


def tree_records(job: "Job", *, records: int | None, seed: int | None) -> Any:
    """Records for use at face value where the posterior is a tree's: what the release of a noisy tree makes."""
    model, domain, measured, rng = job.tree, job.observed[0].domain, job.measured, np.random.default_rng(seed)
    assert model is not None  # the caller has looked
    assert domain is not None  # open labels have no tree
    base, ordered = model.base_of(measured.tree.cells), _in_order(domain) > 0
    counts = face_value_counts(measured, records=records, rng=rng, base=base, size=job.size, ordered=ordered)
    return records_of([counts], domain=domain, rng=rng, seed=seed or 0)


def tree_copies(job: "Job", copies: int, *, seed: int | None) -> Any:
    """Tables drawn from the posterior of the confidential one where it is a tree's: what the release of a noisy tree makes."""
    model, domain, measured, rng = job.tree, job.observed[0].domain, job.measured, np.random.default_rng(seed)
    assert model is not None  # the caller has looked
    assert domain is not None  # open labels have no tree
    base = model.base_of(measured.tree.cells)
    tables = list(drawn_tables(measured, copies, rng=rng, base=base, size=job.size))
    total = sum(int(each.sum()) for each in tables)
    if total == 0:
        raise ModelError("what was released tells of no record at all.")
    check_records(total)
    return records_of(tables, domain=domain, rng=rng, seed=seed or 0)


def _in_order(domain: JointDomain) -> int:
    """How many of the first cells are the values of one column with an order; 0 where cells have no one order."""
    ordered = tree_shape(domain)
    return ordered[0][0] if ordered is not None and len(ordered[0]) == 1 else 0


def _nearest(counts: Floats, ordered: int) -> Floats:
    """Counts that are nearest to those drawn (draw, cell): medians of what lies below, where cells are ordered, else means."""
    if ordered == 0:
        return np.asarray(counts.mean(axis=0), np.float64)
    return np.append(nearest_of_draws(counts[:, :ordered]), counts[:, ordered:].mean(axis=0))


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
