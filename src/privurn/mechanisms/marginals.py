"""Noisy marginals: counts of a whole table by single columns, pairs and triples of them, each with independent noise.

What is published are these measurements. Records, models and intervals follow from them without touching the data again.
The noise is OpenDP's: exact samplers on integers, from a generator that the operating system seeds. Which marginals, and how
much noise: marginals_layout. Proof: docs/proofs/marginals.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain, domain_from_json
from privurn.errors import ModelError
from privurn.mechanisms.fine_columns import FineColumn
from privurn.mechanisms.likelihood import Kind, Numbers
from privurn.mechanisms.marginal_counts import LARGEST_SET, Columns, MarginalCounts, MarginalLayout
from privurn.mechanisms.marginals_layout import MOST_CELLS
from privurn.mechanisms.mechanism import PER_CALL, PER_NOISE, SECRET_SIZE, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.noisy_tree import PerturbedTree, TreeCounts
from privurn.mechanisms.published import Content
from privurn.mechanisms.table_measurements import MeasuredColumn, MeasuredTable
from privurn.privacy.additive_noise import check_scale, noise_deviation, noisy_integers, simulated_noise
from privurn.privacy.certificate import canonical
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.marginals import MarginalsProfile
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise
from privurn.privacy.profile import Guarantee
from privurn.tables.cells import is_numeric
from privurn.tables.released import numbers

if TYPE_CHECKING:
    from privurn.domain import JointDomain
    from privurn.privacy.audit.attack import Pair
    from privurn.privacy.audit.raw_records import Reader

NAMES = ("marginal", "cell", "count")
"""Columns of what is published."""


DROWNED = 0.5
"""Mean total variation of pairs by noise alone at which a release tells little."""


class DrawnMarginals(Drawn):
    """Measured cells as a table: number of the marginal, of the cell in it (the last column's cells run fastest), and count."""

    def __init__(self, layout: MarginalLayout, counts: NDArray[np.int64]) -> None:
        self.layout = layout
        cells = np.concatenate([np.arange(each) for each in layout.cells])
        super().__init__(cells, weights=counts, weight_name=NAMES[-1])

    def columns(self) -> dict[str, NDArray[Any]]:
        """All that is published."""
        marginal = np.repeat(np.arange(len(self.layout.cells)), self.layout.cells)
        return {"marginal": marginal, "cell": self.cells, **super().columns()}


class MarginalsContent(Content):
    """All marginals in order, all of their cells in order, and a whole number beside each."""

    wrong = "is not the table of all measured cells and their counts"

    def __init__(self, layout: MarginalLayout) -> None:
        self.marginal = np.repeat(np.arange(len(layout.cells)), layout.cells)
        self.cell = np.concatenate([np.arange(each) for each in layout.cells])
        self.row = 0

    def holds(self, batch: Any) -> bool:
        """The cells are the next ones, and the counts whole numbers of 64 bits."""
        here = slice(self.row, self.row + batch.num_rows)
        self.row += batch.num_rows
        found = [numbers(batch.column(i)) for i in range(batch.num_columns)]
        if len(found) != len(NAMES) or any(each is None for each in found):
            return False
        marginal, cell, count = (np.asarray(each, np.float64) for each in found)
        same = np.array_equal(marginal, self.marginal[here]) and np.array_equal(cell, self.cell[here])
        return same and bool((count == np.rint(count)).all() and (np.abs(count) < 2.0**63).all())


@dataclass(frozen=True, kw_only=True)
class NoisyMarginals(Mechanism):
    """Counts of a table with columns of `sizes` cells, by each of `sets` of columns, plus independent `noise`.

    n = None: secret. `noise`: "discrete-laplace", P(j) proportional to e^(-|j|/scale), or "discrete-gaussian", P(j)
    proportional to e^(-j^2/(2 scale^2)), with one of `scales` for each set. A column of one cell is in no set.

    `fine` columns have the sizes of their ranges in the sets, and are counted alone at further depths of a tree over their
    values: `scales` has one for each of those behind those of the sets.

    >>> made = NoisyMarginals(n=50, sizes=(2, 3), sets=((0,), (0, 1)), scales=(4.0, 4.0), noise="discrete-laplace")
    >>> made.rows, made.profile.pure_epsilon
    (8, 1.0)
    """

    n: int | None
    sizes: tuple[int, ...]
    sets: tuple[Columns, ...]
    scales: tuple[float, ...]
    noise: TreeNoise
    fine: tuple[FineColumn, ...] = ()

    adds_noise: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    inferred_from: ClassVar[Kind] = "table"
    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # cells taken jointly are compared, and not whole tables
    rows_are: ClassVar[str] = "noisy counts of marginals"
    name: ClassVar[str] = "noisy-marginals"

    def __post_init__(self) -> None:
        if self.n is not None and self.n < 1:
            raise ModelError("n must be a positive whole number.", hint="The number of confidential records, for example 10000")
        if not self.sizes or min(self.sizes) < 1:
            raise ModelError("every column needs at least one cell.")
        places = [each.place for each in self.fine]
        if len(set(places)) < len(places) or any(self.sizes[each.place : each.place + 1] != (each.size,) for each in self.fine):
            raise ModelError("fine columns have the sizes of their ranges.")
        if not {(place,) for place in places} <= set(self.sets):
            raise ModelError("fine columns are measured alone by their ranges as well.")
        if len(self.layout.every_set) != len(self.scales) or len(set(self.sets)) != len(self.sets):
            raise ModelError("every marginal is measured once, with a scale of its noise.")
        for each in self.sets:
            places = list(each)
            if not 1 <= len(each) <= LARGEST_SET or places != sorted(set(places)) or places[0] < 0:
                raise ModelError("a marginal has one, two or three columns, in order.")
            if places[-1] >= len(self.sizes) or min(self.sizes[j] for j in each) < 2:
                raise ModelError("a marginal is of columns with two cells or more.")
        if self.layout.total > MOST_CELLS:
            raise ModelError(
                f"noise is added to every cell, and at most {MOST_CELLS:,} are supported.",
                hint="Use fewer or coarser columns, or a smaller workload",
            )
        for scale in self.scales:
            check_scale(scale)
        _ = self.profile  # checks the rest

    @cached_property
    def layout(self) -> MarginalLayout:
        """Cells of all marginals."""
        return MarginalLayout(self.sizes, self.sets, self.fine)

    def parameters(self) -> dict[str, Any]:
        """Fine columns only where there are some: certificates of other tables are as they were before there could be."""
        found = super().parameters()
        return found if self.fine else {name: each for name, each in found.items() if name != "fine"}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return super().from_parameters({"fine": (), **data})

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Cells of all columns, one column after the other."""
        return sum(self.sizes)

    @property
    def profile(self) -> MarginalsProfile:
        """For one record; `group` has that for several of one person."""
        return MarginalsProfile(noise=self.noise, scales=self.scales, neighbouring=self.relation)

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """That of the noise, for all records of one person."""
        return self.profile.group(guarantee.contributions).zcdp

    @property
    def rows(self) -> int:
        """One for each measured cell."""
        return self.layout.total

    @property
    def records(self) -> int:  # type: ignore[override]
        """What is drawn are the measurements."""
        return self.rows

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the noise on a count, for each marginal."""
        return np.array([noise_deviation(noise=KINDS[self.noise], scale=scale) for scale in self.scales])

    def expected_errors(self, n: float) -> dict[Columns, float]:
        """Total variation that noise alone gives each measured pair (each column, where there is none), at most 1.

        Half of the sum over cells of E|noise|, about deviation sqrt(2/pi). A fitted model comes nearer where cells are many.
        """
        errors = (self.layout.cells * self.deviations / (math.sqrt(2.0 * math.pi) * n))[: len(self.sets)]
        order = 2 if any(len(each) == 2 for each in self.sets) else len(self.sets[0])
        pairs = zip(self.sets, errors, strict=True)
        return {each: min(1.0, float(error)) for each, error in pairs if len(each) == order}

    def drowned(self, n: float) -> tuple[str, ...]:
        """What to say where the noise sums to about as much as there are records; else nothing."""
        if float(np.mean(list(self.expected_errors(n).values()))) < DROWNED:
            return ()
        return (
            "The noise on the cells of a marginal sums to as much as there are records: the release tells little. "
            "Use a larger epsilon, fewer or coarser columns, or a smaller workload.",
        )

    @property
    def in_words(self) -> str:
        """For readers of a report."""
        orders = [sum(len(each) == r for each in self.sets) for r in (1, 2, 3)]
        measured = ", ".join(f"{k:,} of {r}" for r, k in zip(("one column", "two", "three"), orders, strict=True) if k)
        alone = f", and of {len(self.fine):,} fine columns down to every value" * bool(self.fine)
        return f"counts of the table by {len(self.sets):,} sets of columns ({measured}){alone}, each with random noise added"

    @property
    def error_sources(self) -> ErrorSources:
        """The noise, and what low-order marginals do not tell."""
        low, high = float(self.deviations.min()), float(self.deviations.max())
        span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        return ErrorSources(
            shrinkage="what the measured marginals do not tell of more columns together",
            noise=f"noise: a standard deviation of {span} on each of the {self.rows:,} counts",
        )

    def draw(self, counts: MarginalCounts, *, entropy: Entropy) -> DrawnMarginals:
        """Noise by OpenDP, whatever `entropy` is."""
        self._check(counts)
        kind, out = KINDS[self.noise], np.empty(self.rows, np.int64)
        per_cell = np.repeat(np.array(self.scales), self.layout.cells)
        for scale in sorted(set(self.scales)):
            own = per_cell == scale
            out[own] = noisy_integers(counts.counts[own], noise=kind, scale=scale)
        return DrawnMarginals(self.layout, out)

    def simulate(self, counts: MarginalCounts, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: the noisy counts."""
        self._check(counts)
        kind, out = KINDS[self.noise], counts.counts.copy()
        per_cell = np.repeat(np.array(self.scales), self.layout.cells)
        for scale in sorted(set(self.scales)):
            own = np.flatnonzero(per_cell == scale)
            out[own] += simulated_noise((len(own),), noise=kind, scale=scale, rng=rng)
        return out

    def _check(self, counts: MarginalCounts) -> None:
        if counts.layout != self.layout:
            raise ModelError("the mechanism was planned for other marginals than were counted.")
        if self.n is not None and counts.n != self.n:
            raise ModelError("the mechanism was planned for another number of records than the data hold.")

    # -- what is published

    def likelihood(self, published: Numbers) -> MeasuredTable:
        """Noisy counts of all measured cells."""
        counts = np.asarray(published.values, np.float64)
        if counts.shape != (self.rows,):
            raise ModelError("there must be one noisy count for each measured cell.")
        sets = len(self.sets)
        joint = replace(self, scales=self.scales[:sets], fine=())
        parts = dict(zip(self.layout.every_set, self.layout.split(counts), strict=True))
        noise = dict(zip(self.layout.every_set, self.scales, strict=True))
        trees, first = {}, len(self.sizes)
        for column in self.fine:
            behind = [(first + i,) for i in range(len(column.depths))]
            by_depth = {column.ranges_depth: (column.place,), **dict(zip(column.depths, behind, strict=True))}
            trees[column.place] = self._tree(column, {d: (parts[each], noise[each]) for d, each in sorted(by_depth.items())})
            first += len(behind)
        return MeasuredTable(joint, counts[: joint.rows], trees=trees)

    def _tree(self, column: FineColumn, by_depth: Mapping[int, tuple[NDArray[np.float64], float]]) -> MeasuredColumn:
        """What was measured of a fine column as a noisy tree; of its special cells, what stands beside the ranges."""
        scale = by_depth[column.ranges_depth][1]
        tree = PerturbedTree(
            n=self.n,
            shape=(column.values,),
            depths=tuple(by_depth),
            scales=tuple(each for _, each in by_depth.values()),
            noise=self.noise,
            special=(column.special,),
            special_scale=scale if column.special else None,
        )
        whole = {depth: np.rint(counts).astype(np.int64) for depth, (counts, _) in by_depth.items()}
        inside = tuple(counts[: column.tree.nodes(depth)] for depth, counts in whole.items())
        beside = whole[column.ranges_depth][column.tree.nodes(column.ranges_depth) :]
        return MeasuredColumn(column, tree, tree.measurements(TreeCounts(inside, beside)))

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """Columns of the right sizes, stated as privurn states them."""
        stated = stated_table(domain)
        if stated is None or stated.sizes != self.layout.stated_sizes:
            return False
        columns = tuple(stated.columns.values())
        return all(is_numeric(columns[each.place]) and columns[each.place].n_values == each.values for each in self.fine)

    def columns_for(self, domain: Mapping[str, Any]) -> list[str]:
        """Number of the marginal, of the cell, and count."""
        return list(NAMES)

    def content(self, domain: Mapping[str, Any]) -> Content:
        """All measured cells."""
        return MarginalsContent(self.layout)

    # -- what an audit needs

    def neighbours(
        self, *, contributions: int, domain: "JointDomain | None" = None, read: "Reader | None" = None
    ) -> "list[Pair]":
        """Records that differ in every column, alone or beside others: they move a count of every marginal."""
        from privurn.mechanisms.marginal_counts import count_marginals
        from privurn.privacy.audit.attack import Pair

        n = SECRET_SIZE if self.n is None else self.n
        if contributions > n:
            raise ModelError("one person owns more records than there are.")
        last = np.array(self.layout.stated_sizes, np.uint16)[:, None] - 1

        def table(others: int, ones: int) -> MarginalCounts:
            codes = np.zeros((len(self.sizes), others + ones), np.uint16)
            codes[:, others:] = last
            return count_marginals([codes], self.layout)

        left = table(n - contributions, contributions)
        right = table(n if self.n is not None else n - contributions, 0)
        return [Pair("a record that differs in every column", left, right)]

    def seconds(self, *, contributions: int) -> float:
        """Every count is a call of OpenDP's sampler."""
        return PER_CALL + PER_NOISE * self.rows


def stated_table(stated: Mapping[str, Any]) -> TableDomain | None:
    """The columns' domains, where they are stated as privurn states them."""
    if stated["kind"] != "table":
        return None
    domain = domain_from_json(stated)
    return domain if isinstance(domain, TableDomain) and canonical(domain.to_json()) == canonical(stated) else None
