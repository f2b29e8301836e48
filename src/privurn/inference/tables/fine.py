"""Fine columns: where in its range a record is, and figures of such a column alone, both from its noisy tree.

With other columns a fine column is known by ranges of its values. Within a range its values are taken to be spread as the tree
says, whatever the other columns are: records are drawn so, and figures of several columns weigh the values so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, ColumnDomain, Dates, JointDomain, TableDomain
from privurn.inference.cautions import unsaid
from privurn.inference.counts.asked import _conditions, _number
from privurn.inference.counts.places import WithinBins
from privurn.inference.counts.posterior import count_posterior
from privurn.inference.counts.released import Observed
from privurn.inference.counts.unbiased import Estimate
from privurn.inference.draws import Summary
from privurn.inference.run import Run
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.model import PolyaTree
from privurn.inference.trees.synthetic import balanced_counts
from privurn.mechanisms.fine_columns import FineColumn
from privurn.mechanisms.table_measurements import MeasuredColumn, MeasuredTable
from privurn.tables.cells import cell_values

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranges:
    """The share that each of a fine column's cells has of the records in its range."""

    column: FineColumn
    shares: Floats

    @classmethod
    def of(cls, column: FineColumn, counts: Floats) -> "Ranges":
        """From counts of the values; a range without records is taken as even."""
        padded = np.append(np.maximum(counts, 0.0), np.ones(column.special))
        number, starts = column.number(column.ranges_depth), column.starts(column.ranges_depth)
        totals, sizes = np.add.reduceat(padded, starts)[number], np.bincount(number)[number]
        return cls(column, np.where(totals > 0.0, padded / np.where(totals > 0.0, totals, 1.0), 1.0 / sizes))

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first cell of each range."""
        return self.column.starts(self.column.ranges_depth)

    def means(self, numbers: Floats) -> Floats:
        """Of numbers of all cells, one for each range."""
        found: Floats = np.add.reduceat(self.shares * numbers, self.starts)
        return found

    def cells(self, ranges: NDArray[np.uint16], *, rng: np.random.Generator) -> NDArray[np.uint16]:
        """A cell in the range of each record, in random order within each."""
        held = self.counts(np.bincount(ranges, minlength=self.column.size), rng=rng)
        found = np.empty(len(ranges), np.uint16)
        found[np.lexsort((rng.random(len(ranges)), ranges))] = np.repeat(np.arange(len(held), dtype=np.uint16), held)
        return found

    def counts(self, sizes: NDArray[np.int64], *, rng: np.random.Generator) -> NDArray[np.int64]:
        """How many records each cell has where each range has so many: at every node of the tree within one of its share."""
        column = self.column
        expected = self.shares * sizes[column.number(column.ranges_depth)]
        counts, _ = balanced_counts(column.tree, expected[: column.values], rng=rng)
        own = np.split(counts, self.starts[1 : len(self.starts) - column.special])
        for part, size in zip(own, sizes, strict=False):  # of 10^12 records the sums of ranges are rounded, and one may move
            part[part.argmax()] += size - part.sum()
        return np.append(counts, sizes[column.size - column.special :]) if column.special else counts


def usual_ranges(table: MeasuredTable) -> dict[int, Ranges]:
    """By the posterior means of each tree, by place."""
    return {j: Ranges.of(each.column, approximate_posterior(each.measured).counts) for j, each in table.trees.items()}


def drawn_ranges(table: MeasuredTable, copies: int, *, seed: int) -> list[dict[int, Ranges]]:
    """By draws of each tree's counts, one for each copy."""
    found: list[dict[int, Ranges]] = [{} for _ in range(copies)]
    for j, each in table.trees.items():
        rng = np.random.default_rng([seed, 7, j])
        drawn = IndependentDraws(each.measured).draw(copies, rng=rng).counts[: each.column.values]
        for number, ranges in enumerate(found):
            ranges[j] = Ranges.of(each.column, drawn[:, number])
    return found


def put_values(cells: NDArray[np.uint16], ranges: Mapping[int, Ranges], *, rng: np.random.Generator) -> None:
    """Cells in place of the ranges of fine columns; a row for each column, which is changed."""
    for j, own in ranges.items():
        cells[j] = own.cells(cells[j], rng=rng)


def range_conditions(name: str, column: ColumnDomain, ranges: Ranges) -> list[str]:
    """Which records each range of a column holds, and each special cell behind them."""
    beside = _conditions(name, column)[column.n_values :]
    firsts = ranges.starts[: len(ranges.starts) - len(beside)]
    lasts = np.append(firsts[1:], column.n_values) - 1
    if isinstance(column, Bins):
        edges = [_number(edge) for edge in column.edges]
        own = [f"{edges[a]}<={name}<{edges[b + 1]}" for a, b in zip(firsts, lasts, strict=True)]
    elif isinstance(column, Dates):
        own = [f"{column.label(int(a))}<={name}<={column.label(int(b))}" for a, b in zip(firsts, lasts, strict=True)]
    else:
        values = [_number(value) for value in cell_values(column)[: column.n_values]]
        own = [f"{values[a]}<={name}<={values[b]}" for a, b in zip(firsts, lasts, strict=True)]
    return own + beside


@dataclass(frozen=True, eq=False)
class TreeAnswer:
    """A figure of a fine column alone: draws of its posterior, their summary, and the unbiased estimate where there is one."""

    drawn: Floats
    row: Summary
    unbiased: Estimate | None


def tree_answers(
    table: MeasuredTable,
    asked: Iterable[tuple[str, str]],
    *,
    of: str,
    within: WithinBins,
    draws: int,
    seed: int,
    level: float,
) -> dict[str, TreeAnswer]:
    """Answers to questions, each with the name of the column that it is about, by question."""
    assert table.domain is not None  # whoever asks has looked
    by_column: dict[str, list[str]] = {}
    for name, text in dict.fromkeys(asked):
        by_column.setdefault(name, []).append(text)
    found: dict[str, TreeAnswer] = {}
    for name, texts in by_column.items():
        observed = _observed(table.trees[table.domain.names.index(name)], name, table.domain)
        with unsaid():  # what there is to say, the table's posterior says
            posterior = count_posterior(
                (observed,),
                model=PolyaTree(within=within),
                ask=texts,
                of=of,  # type: ignore[arg-type]
                run=Run(chains=1, draws=draws, seed=seed),
                level=level,
            )
        unbiased = posterior.unbiased
        rows = {row.name: row for row in posterior.summary()}
        found |= {text: TreeAnswer(posterior.draws[text].ravel(), rows[text], unbiased.get(text)) for text in texts}
    return found


def _observed(fine: MeasuredColumn, name: str, domain: TableDomain) -> Observed:
    means = approximate_posterior(fine.measured)
    return Observed(
        mechanism=fine.tree,
        domain=JointDomain({name: domain.columns[name]}),
        counts=fine.measured.in_domain(means.counts, means.special),
        measured=fine.measured,
    )
