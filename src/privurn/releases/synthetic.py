"""Synthetic records from published measurements, through their posterior: post-processing, with a public seed.

One copy is for use at face value: its counts are those of least expected distance, rounded so that every range of values is
within one or so of what is expected. Several copies are draws of the confidential table from its posterior.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.certificates.folder import SyntheticTable
from privurn.counts import CountTable
from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.inference.counts.synthetic import records_of
from privurn.inference.trees.copies import drawn_tables
from privurn.inference.trees.nearest import face_value_counts
from privurn.mechanisms.published import copy_column
from privurn.mechanisms.recipe import check_records
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import blocks
from privurn.tables.blocks import Blocks
from privurn.tables.engine import Tasks
from privurn.tables.output import decode_rows

Whole = NDArray[np.int64]

SEEDS = 2**53
"""A seed is a number that JSON readers keep."""


def synthetic_table(
    measured: TreeMeasurements,
    *,
    domain: JointDomain,
    records: int | None,
    copies: int,
    seed: int,
    tasks: Tasks | None = None,
) -> SyntheticTable:
    """Records as a table; `records` of a single copy: as many as were measured where left out.

    Where there are `tasks` for it, more records than a block are left to them.
    """
    rng = np.random.default_rng(seed)
    if copies == 1:
        tables = [face_value_counts(measured, records=records, rng=rng, in_parts=tasks is not None)]
    else:
        tables = list(drawn_tables(measured, copies, rng=rng))
        total = sum(int(each.sum()) for each in tables)
        check_records(total, in_parts=tasks is not None)
        if total == 0:
            raise ModelError("the measurements tell of no record at all.")
    if tasks is not None and sum(int(each.sum()) for each in tables) > blocks.SIZE:
        return SyntheticTable(_in_blocks(tables, domain=domain, seed=seed, tasks=tasks), copies, seed)
    return SyntheticTable(records_of(tables, domain=domain, rng=rng, seed=seed), copies, seed)


def _in_blocks(tables: list[Whole], *, domain: JointDomain, seed: int, tasks: Tasks) -> Blocks:
    """What `records_of` makes, by the counts of cells; those of each copy have numbers of their own."""

    def decoded(cells: Whole) -> Any:
        made, widths = decode_rows(cells % domain.size, domain)
        if len(tables) == 1:
            return made, widths
        numbered = made.add_column(0, copy_column(domain.columns), [cells // domain.size + 1])
        return numbered, {j + 1: each for j, each in widths.items()}

    counts = [CountTable.from_cells(copy * domain.size + np.arange(domain.size), table) for copy, table in enumerate(tables)]
    return Blocks.drawn(counts, decode=decoded, words=SeededEntropy(seed).words, tasks=tasks)


def simulated_records(mechanism: Any, counts: CountTable, *, rng: np.random.Generator, detail: float = 1.0) -> Whole:
    """For comparisons, never for a release: how many of as many records as confidential ones each cell gets."""
    measured = mechanism.measurements(mechanism.simulate(counts, rng=rng))
    return face_value_counts(measured, records=counts.n, rng=rng, detail=detail, in_parts=True)  # nobody holds the records


def public_seed(entropy: Any) -> int:
    """A seed for the certificate; not the noise's."""
    return int(entropy.below(SEEDS))
