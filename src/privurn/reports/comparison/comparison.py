"""Every mechanism at the same guarantee on the same data, many times: which comes closest, and why.

    counts --(candidates)--> mechanisms --(simulated releases, R of each)--> yardstick --> medians, spread, words

It is simulation: seeded, in floating point, and nothing of it may be published. The result is computed from the confidential
data, and so is a choice that follows it: choose on an older or a made-up table, or count the choice as a look at the data.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import AnyDomain, ColumnDomain, Grid, JointDomain, OpenLabels, TableDomain, several_columns
from privurn.errors import CalibrationError, DomainError, ModelError
from privurn.mechanisms.recipe import Recipe
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.candidates import Candidate, candidates
from privurn.reports.comparison.parallel import run_tasks
from privurn.reports.comparison.results import Comparison, Result, quantiles_of
from privurn.reports.comparison.simulation import coarsened, plain_sample, refined, simulated_release
from privurn.reports.comparison.table_comparison import TableComparison, compare_tables
from privurn.reports.comparison.yardsticks import Yardstick, yardstick
from privurn.tables import count_cells, open_table

PLAIN = "plain sample"
"""Name of the row of records drawn from the data themselves: no privacy at all, there to show the scale."""

RUNS_AT_ONCE = 5
TABLE_RUNS = 5
"""Simulated releases of a whole table: each is a fit, which may take seconds."""
MOST_CELLS = 10**7
FEWEST_COARSE_STEPS = 10
MAIN_SHARE = 0.6
"""A source of error that by itself makes this share of the whole is called the main one."""


@dataclass(frozen=True)
class Runs:
    """How much is simulated.

    `number` releases of each mechanism. The same `seed` gives the same numbers, for any number of processes and whichever
    other mechanisms are compared. `processes`: left out, more than one only where the work turns out to be long.
    """

    number: int = 100
    seed: int = 0
    processes: int | None = None


def compare(
    data: Any,
    *,
    domain: AnyDomain | ColumnDomain | TableDomain | Mapping[str, ColumnDomain],
    epsilon: float,
    delta: float = 0.0,
    mechanisms: Sequence[Recipe] | None = None,
    records: int | None = None,
    runs: Runs | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison | TableComparison:
    """Simulate releases of every mechanism that meets the guarantee and measure them against the data. Confidential.

    Parameters
    ----------
    data, domain
        As for `release`; any public domain. Of a `TableDomain`, or of more columns than can be taken jointly, whole tables are
        compared (`TableComparison`).
    epsilon, delta
        The guarantee that all mechanisms must meet, for one replaced record.
    mechanisms
        Those to compare, as `release` takes them, with whatever is asked of each; left out, all that need nothing else
        (`candidates.usual_mechanisms`). `Pseudo` needs a model. An `AsymptoticPseudo` has no certificate: it is marked, and
        never counts as best. Of a whole table: one.
    records
        How many records each releases that does not say so itself; left out, what each would choose.
    runs
        Simulated releases of each mechanism; left out, 100, and of whole tables 5.
    progress
        Called with the number of simulated releases done and wanted.
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta)
    table = whole_table(domain, mechanisms)
    settled = runs or Runs(TABLE_RUNS if table is not None else Runs.number)
    _check(runs=settled.number, seed=settled.seed, processes=settled.processes)
    if table is not None:
        if records is not None or len(mechanisms or ()) > 1:
            raise ModelError("a whole table is compared with one mechanism, and has its own size.", hint="Leave records out")
        recipe = mechanisms[0] if mechanisms else None
        given: dict[str, Any] = {"guarantee": guarantee, "runs": settled.number, "seed": settled.seed, "progress": progress}
        return compare_tables(data, domain=table, recipe=recipe, **given)
    counts, named = _counted(data, domain)
    return compare_counts(
        counts,
        domain=named,
        guarantee=guarantee,
        mechanisms=mechanisms,
        n_records=records,
        runs=settled.number,
        seed=settled.seed,
        processes=settled.processes,
        progress=progress,
    )


def whole_table(domain: Any, mechanisms: Sequence[Recipe] | None) -> TableDomain | None:
    """The columns side by side, where they are too many to be taken jointly or a mechanism for whole tables is asked for."""
    found = several_columns(domain) if isinstance(domain, Mapping) and len(domain) > 1 else domain
    if isinstance(found, TableDomain):
        return found
    asked = bool(mechanisms) and all(getattr(each, "whole_tables", False) for each in mechanisms or ())
    return TableDomain(found.columns) if asked and isinstance(found, JointDomain) else None


def compare_counts(
    counts: CountTable,
    *,
    domain: JointDomain,
    guarantee: Guarantee,
    mechanisms: Sequence[Recipe] | None = None,
    n_records: int | None = None,
    runs: int = 100,
    seed: int = 0,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """`compare` for a table that is counted already."""
    _check(runs=runs, seed=seed, processes=processes)
    if domain.size > MOST_CELLS:
        raise DomainError(f"at most {MOST_CELLS:,} cells can be compared.", hint="Use a larger step, or fewer columns")
    able, refused = candidates(
        n=counts.n,
        cells=domain.size,
        guarantee=guarantee,
        n_records=n_records,
        asked=mechanisms,
        coarser=coarser_grid(domain),
        domain=domain,
    )
    if not any(each.certified for each in able):
        reasons = "\n    ".join(f"{each.name}: {each.reason}" for each in refused)
        raise CalibrationError("no mechanism meets the guarantee.", hint=reasons)
    simulation = _Simulation(counts, yardstick(counts, domain=domain), able, domain.size, seed)
    every = range(-1, len(able))
    tasks = [(i, first, min(first + RUNS_AT_ONCE, runs)) for i in every for first in range(0, runs, RUNS_AT_ONCE)]
    parts = run_tasks(simulation, tasks, processes=processes, progress=_in_runs(progress, runs * len(every)))
    results = [
        simulation.result(i, [part for task, part in zip(tasks, parts, strict=True) if task[0] == i], runs) for i in every
    ]
    ranked = sorted(zip(able, results[1:], strict=True), key=lambda each: _place(each[1]))
    return Comparison(
        n=counts.n,
        cells=domain.size,
        guarantee=guarantee,
        runs=runs,
        seed=seed,
        metrics=simulation.yardstick.metrics,
        axes=simulation.yardstick.axes,
        data_curves=tuple(simulation.yardstick.curves(counts.dense(domain.size))),
        results=tuple(result for candidate, result in ranked if candidate.certified),
        uncertified=tuple(result for candidate, result in ranked if not candidate.certified),
        plain=results[0],
        refused=refused,
    )


def _place(result: Result) -> tuple[bool, float]:
    """By the first metric's median; what could not be measured comes last."""
    return bool(np.isnan(result.medians[0])), float(result.medians[0])


@dataclass(frozen=True)
class _Part:
    """A few runs of one mechanism."""

    errors: NDArray[np.float64]
    plain: NDArray[np.float64]
    curves: list[list[NDArray[np.float64]]]
    shares: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class _Simulation:
    """The whole job; a task is (candidate, first run, past the last run), candidate -1 the plain sample of n records."""

    counts: CountTable
    yardstick: Yardstick
    able: tuple[Candidate, ...]
    cells: int
    seed: int
    laws: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)
    """What all runs of a candidate share, once it is computed."""

    def run(self, task: tuple[int, int, int]) -> _Part:
        """Some runs of one candidate; each run has random numbers of its own, whoever simulates it."""
        which, first, last = task
        errors, plain, curves, shares = [], [], [], np.zeros(self.cells)
        for run in range(first, last):
            key = (zlib.crc32((PLAIN if which < 0 else self.able[which].name).encode()), run)
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
            release = self.release(which, rng)
            errors.append(self.yardstick.measure(release))
            curves.append(self.yardstick.curves(release))
            shares += release / release.sum()
            records = None if which < 0 else self.able[which].records
            if records is not None:
                plain.append(self.yardstick.measure(plain_sample(self.shares, records=records, rng=rng))[0])
        return _Part(np.array(errors), np.array(plain), curves, shares)

    def release(self, which: int, rng: np.random.Generator) -> NDArray[Any]:
        """One simulated release as weights of the domain's cells."""
        if which < 0:
            return plain_sample(self.shares, records=self.counts.n, rng=rng)
        group = self.able[which].group
        own = coarsened(self.counts, group=group)
        size = (self.cells - 1) // group + 1
        if which not in self.laws:
            self.laws[which] = self.able[which].mechanism.shared_law(own)
        drawn = simulated_release(self.able[which].mechanism, own, cells=size, rng=rng, law=self.laws[which])
        return refined(drawn, group=group, cells=self.cells)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The data as shares of the cells."""
        return self.counts.dense(self.cells) / self.counts.n

    def result(self, which: int, parts: list[_Part], runs: int) -> Result:
        """All runs of one candidate together."""
        errors = np.concatenate([part.errors for part in parts])
        average = np.sum([part.shares for part in parts], axis=0) / runs
        systematic = float(self.yardstick.measure(average)[0])
        plain = quantiles_of(np.concatenate([part.plain for part in parts])[:, None], 0.5)[0]
        rows = [curves for part in parts for curves in part.curves]
        curves = tuple(np.quantile([row[axis] for row in rows], [0.1, 0.5, 0.9], axis=0) for axis in range(len(rows[0])))
        made = partial(Result, errors=errors, systematic=systematic, curves=curves)
        if which < 0:
            reason, output = "no privacy, only the chance of sampling", _records(self.counts.n)
            return made(name=PLAIN, output=output, reason=reason)
        candidate = self.able[which]
        rounding = 0.0
        if candidate.group > 1:
            own = coarsened(self.counts, group=candidate.group).dense((self.cells - 1) // candidate.group + 1)
            rounding = float(self.yardstick.measure(refined(own, group=candidate.group, cells=self.cells))[0])
        total = float(quantiles_of(errors, 0.5)[0])
        reason = _reason(candidate, total=total, systematic=systematic, plain=float(plain), rounding=rounding)
        return made(name=candidate.name, output=candidate.output, reason=reason)


def _reason(candidate: Candidate, *, total: float, systematic: float, plain: float, rounding: float) -> str:
    """The main source of a mechanism's error, by what the simulation shows of each; `plain` is NaN without records."""
    if rounding >= MAIN_SHARE * total:
        return f"mostly bins: rounding to them alone is {rounding:,.4g} away"
    if systematic >= MAIN_SHARE * total and not plain > systematic:
        return f"mostly {candidate.sources.shrinkage}"
    if MAIN_SHARE * total <= plain <= total / MAIN_SHARE:  # a release nearer than a sample has another reason
        return f"mostly {candidate.size}: a plain sample of as many is already {plain:,.4g} away"
    return f"mostly {candidate.sources.noise}"


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def coarser_grid(domain: JointDomain) -> tuple[int, int] | None:
    """An odd number g of cells to take as one, about five, and how many that leaves: only for a single grid.

    With g odd and dividing the number of steps, the nearest coarse point of a record is that of its nearest fine point, so the
    fine counts give just what counting on the coarse grid would.
    """
    column = next(iter(domain.columns.values()))
    if len(domain.columns) > 1 or not isinstance(column, Grid) or column.size != column.n_values:
        return None
    steps = column.n_values - 1
    for group in (5, 3, 7, 9, 11, 13):
        if steps % group == 0 and steps // group >= FEWEST_COARSE_STEPS:
            return group, steps // group + 1
    return None


def _check(*, runs: int, seed: int, processes: int | None) -> None:
    if runs < 1:
        raise ModelError("at least one run is needed.", hint="For example runs=100")
    if seed < 0 or (processes is not None and processes < 1):
        raise ModelError("the seed must not be negative, and the number of processes must be positive.")


def _in_runs(progress: Callable[[int, int], None], total: int) -> Callable[[int, int], None]:
    return lambda done, tasks: progress(round(total * done / tasks), total)


def _counted(data: Any, domain: Any) -> tuple[CountTable, JointDomain]:
    """Counts of a table on a public domain."""
    if isinstance(domain, OpenLabels) or (
        isinstance(domain, Mapping) and any(isinstance(each, OpenLabels) for each in domain.values())
    ):
        raise DomainError("open labels cannot be compared: mechanisms need the same public domain.", hint="List the categories")
    with open_table(data) as source:
        if isinstance(domain, Mapping):
            domain = JointDomain(domain)
        if not isinstance(domain, JointDomain):
            domain = JointDomain({source.the_column(None): domain})
        return count_cells(source, domain), domain
