"""Synthetic tables from noisy marginals: one for use at face value, or several copies drawn from the posterior.

A copy is a mixture drawn from its (approximate) posterior, and as many records as the confidential table has, taken from it
systematically. The draw is one of the confidential table's shares, without sampling from a population, and systematic records
add next to none: so copies are combined as tables drawn from their posterior are (`privurn.combine`), about the population with
U + (1 + 1/M) B, about the confidential table with (1 + 1/M) B. That holds for what was measured, shares of cells and means;
regressions on copies are shrunk, like those on one table. Values of fine columns are drawn within their ranges.
"""

from typing import Any

import numpy as np

from privurn.errors import ModelError
from privurn.inference.tables.fine import drawn_ranges, put_values, usual_ranges
from privurn.inference.tables.fit import AT_FACE_VALUE, Fit, FitSettings, Progress, draw_mixture, fit_mixture
from privurn.inference.tables.in_blocks import table_lot, values_of
from privurn.inference.tables.sampling import synthetic_cells
from privurn.mechanisms.marginals_layout import MOST_COPIES
from privurn.mechanisms.published import copy_column
from privurn.mechanisms.recipe import check_copies, check_records, most_records
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.privacy.entropy import SeededEntropy
from privurn.tables import blocks
from privurn.tables.blocks import Blocks, Lot
from privurn.tables.engine import Tasks
from privurn.tables.output import decode_side_by_side


def synthetic_table(
    table: MeasuredTable,
    *,
    records: int | None,
    copies: int = 1,
    seed: int,
    settings: FitSettings | None = None,
    progress: Progress = lambda done, total, misfit: None,
    tasks: Tasks | None = None,
) -> tuple[Any, Fit]:
    """Records made from the measurements alone as an Arrow table of the domain's columns, and the (last) fit behind them.

    `records` of a single copy: left out, as many as confidential ones, an estimate where that number is secret. Several copies
    stand one after the other, each behind its number; each has as many records as its draw says that there are. `progress` is
    told the steps of the only fit, or the copies that are done. Where there are `tasks` for it, more records than a block are
    left to them.
    """
    check_copies(copies, records, most=MOST_COPIES)
    if table.domain is None:
        raise ModelError("records need the columns' domains.")
    in_parts = tasks is not None and not (table.domain.zero_cells and table.trees)
    if table.mechanism.n is None and copies == 1 and records is None:  # known only after payment, and so never refused
        records = max(1, min(round(table.n), most_records(in_parts=in_parts)))
    expected = copies * (round(table.n) if records is None else records)
    check_records(expected, in_parts=in_parts)
    found: list[Any] = []
    sizes: list[int] = []
    lots: list[Lot] = []
    ranges = [usual_ranges(table)] if copies == 1 else drawn_ranges(table, copies, seed=seed)
    in_blocks = in_parts and expected > blocks.SIZE
    zeros, entropy = table.domain.zero_cells, SeededEntropy(seed)
    rows, widths = values_of(table.domain, copies)
    for number in range(copies):
        if copies == 1:
            fit = fit_mixture(table, seed=seed, settings=settings or AT_FACE_VALUE, progress=progress)
        else:
            fit = draw_mixture(table, seed=seed, number=number, settings=settings)
            progress(number + 1, copies, fit.misfit)
        sizes.append(round(fit.n) if records is None else records)
        own: dict[str, Any] = {"seed": seed, "number": number, "zeros": zeros}
        if in_blocks:
            copy = None if copies == 1 else number
            own |= {"ranges": ranges[number], "copy": copy, "key": entropy.words(4).tobytes(), "widths": widths}
            lots.append(table_lot(fit.mixture, sizes[-1], **own))
            continue
        made = synthetic_cells(fit.mixture, sizes[-1], **own)
        put_values(made, ranges[number], rng=np.random.default_rng([seed, 8, number]))
        found.append(made)
    if tasks is not None and in_blocks:
        return Blocks(rows, lots=tuple(lots), tasks=tasks), fit
    cells = np.concatenate(found, axis=1)
    decoded = decode_side_by_side(list(cells), table.domain.columns, entropy=entropy)
    if copies == 1:
        return decoded, fit
    numbered = np.repeat(np.arange(1, copies + 1), sizes)
    return decoded.add_column(0, copy_column(table.domain.columns), [numbered]), fit
