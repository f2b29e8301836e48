"""Settings of a table at face value (`privurn.inference.tables.fit`), chosen on the Adult table alone by a rule stated here.

    python -m benchmarks.tune_tables --adult adult.data --kept FILE

Cases: all 14 columns of Adult; all its records at epsilon 0.3, 1 and 4, one draw of the noise each, and 500, 1,000, 2,000 and
4,000 of them at epsilon 1, two draws of records and noise each. Add-remove neighbours, delta 1e-6, as in `benchmarks.tables`.

Score: an n-row synthetic table at face value is compared with the records. What counts is the mean over cases, draws and both
orders of the logarithm of the mean total variation of marginals of two and of three columns, and for each doubling of the work
one hundredth, which a setting that takes longer has thus to gain. Work is searches x classes x (steps x cells that each goes
over). No setting may take more than three times the work of the start on all records, which keeps `Marginals` within a third
of the time of MST.

Start: what was specified before anything was measured: 100 classes, a spread of 1.5, one search, 400 and 300 steps. From there,
with what was chosen before, and round twice: the number of classes (its three numbers together), steps on pairs, steps on
triples, number of searches, spread (its three numbers together). Of each all candidates below are tried on the same
measurements, and the least score is taken, the first of equals. Candidates that come to the same settings in a case share its
fit. All of it took 14 minutes of processor time; the last lines say whether the defaults are what was chosen.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.table_data import CodedTable, adult
from benchmarks.tables import DELTA, described, mechanism, remembered
from privurn.inference.tables.fit import AT_FACE_VALUE, Classes, FitSettings, Spread, fit_mixture
from privurn.inference.tables.sampling import synthetic_cells
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.reports.comparison.whole_tables import marginal_distances

DOUBLING = 0.01
"""What twice the work has to gain, in logarithms of the error."""
MOST_WORK = 3.0
"""On all records, in those of the start."""
ROUNDS = 2
SHOWN = 5
"""Candidates of each step that are printed, best first."""


START = FitSettings(classes=100, spread=1.5, pair_steps=400, triple_steps=300, searches=1)
Candidates = Callable[[FitSettings], Iterable[FitSettings]]


def class_rules(held: FitSettings) -> Iterable[FitSettings]:
    for noise, least, most in product((0.75, 1.5, 3.0), (10, 25, 50, 100), (50, 100, 150)):
        if least <= most:
            yield replace(held, classes=Classes(noise=noise, within=(least, most)))


def spread_rules(held: FitSettings) -> Iterable[FitSettings]:
    for factor, least, most in product((0.05, 0.07, 0.1, 0.14, 0.2), (0.75, 1.0, 1.25, 1.5), (1.5, 2.0, 2.5, 3.0)):
        yield replace(held, spread=Spread(factor=factor, within=(least, most)))


CANDIDATES: dict[str, Candidates] = {
    "classes": class_rules,
    "steps on pairs": lambda held: [replace(held, pair_steps=each) for each in (200, 400, 800)],
    "steps on triples": lambda held: [replace(held, triple_steps=each) for each in (150, 200, 250, 300, 400)],
    "searches": lambda held: [replace(held, searches=each) for each in (1, 2, 3, 4)],
    "spread": spread_rules,
}


@dataclass(frozen=True, eq=False)
class Case:
    """Some records of a table, or all of them, measured once."""

    table: CodedTable
    epsilon: float
    records: int | None
    """None: all of them."""
    draw: int

    @cached_property
    def sampled(self) -> CodedTable:
        if self.records is None:
            return self.table
        own = np.random.default_rng([self.draw, self.records]).choice(self.table.codes.shape[1], self.records, replace=False)
        return replace(self.table, codes=np.ascontiguousarray(self.table.codes[:, own]))

    @cached_property
    def measured(self) -> MeasuredTable:
        """With noise of its own that is the same for all candidates, and in every run."""
        made = mechanism(self.table.sizes, self.epsilon)
        rng = np.random.default_rng([self.draw, self.records or 0, round(1000 * self.epsilon)])
        counts = count_marginals([self.sampled.codes], made.layout)
        return MeasuredTable(made, made.simulate(counts, rng=rng).astype(float))

    @property
    def name(self) -> str:
        return f"{self.sampled.codes.shape[1]:,} records, epsilon {self.epsilon:g}, draw {self.draw}"

    def work(self, settings: FitSettings) -> float:
        """Of all products, in multiplications."""
        layout = self.measured.layout
        low_order = sum(int(cells) for cells, places in zip(layout.cells, layout.sets, strict=True) if len(places) < 3)
        classes = settings.classes_for(self.measured)
        return settings.searches * classes * (settings.pair_steps * low_order + settings.triple_steps * layout.total)

    def own(self, settings: FitSettings) -> FitSettings:
        """With the numbers that its rules come to here."""
        return replace(settings, classes=settings.classes_for(self.measured), spread=settings.spread_for(self.measured))

    def errors(self, settings: FitSettings) -> dict[str, float]:
        """Mean total variation of pairs and of triples."""
        fit = fit_mixture(self.measured, seed=self.draw, settings=settings)
        cells = synthetic_cells(fit.mixture, max(1, round(self.measured.n)), seed=self.draw)
        distances = marginal_distances(self.sampled.codes, cells, self.table.sizes)
        return {f"{each.order}-way": each.mean for each in distances if each.order > 1}


def cases(table: CodedTable) -> list[Case]:
    """Fewer records have more draws: their errors vary more, and cost less."""
    whole = [Case(table, epsilon, None, 0) for epsilon in (0.3, 1.0, 4.0)]
    return whole + [Case(table, 1.0, records, draw) for records in (500, 1000, 2000, 4000) for draw in (0, 1)]


class Trials:
    """Errors of candidates on all cases; each fit is made once."""

    def __init__(self, cases: Sequence[Case], *, kept: Path | None = None) -> None:
        self.cases = cases
        self.kept = kept
        self.found: dict[str, dict[str, float]] = {}

    def errors(self, case: Case, settings: FitSettings) -> dict[str, float]:
        own = case.own(settings)
        key = [*described(case.sampled), DELTA, case.epsilon, case.draw, repr(own)]
        text = json.dumps(key)
        if text not in self.found:
            self.found[text] = remembered(self.kept, key, lambda: case.errors(own))
        return self.found[text]

    def gain(self, settings: FitSettings, over: FitSettings) -> tuple[float, float]:
        """By how much the score is lower than another's, and the error alone, both in logarithms."""
        score, error = self.score(settings), self.error(settings)
        return self.score(over) - score, self.error(over) - error

    def error(self, settings: FitSettings) -> float:
        return self._mean(lambda case: float(np.mean(np.log(list(self.errors(case, settings).values())))))

    def score(self, settings: FitSettings) -> float:
        return self.error(settings) + DOUBLING * self._mean(lambda case: math.log2(case.work(settings)))

    def _mean(self, of: Callable[[Case], float]) -> float:
        """Draws of one case count as one."""
        own: dict[tuple[int | None, float], list[float]] = {}
        for case in self.cases:
            own.setdefault((case.records, case.epsilon), []).append(of(case))
        return float(np.mean([np.mean(each) for each in own.values()]))

    def affordable(self, settings: FitSettings, start: FitSettings) -> bool:
        whole = [case for case in self.cases if case.records is None]
        return all(case.work(settings) <= MOST_WORK * case.work(start) for case in whole)


def chosen(trials: Trials, start: FitSettings, candidates: dict[str, Candidates]) -> FitSettings:
    """One setting after the other, printing what was tried; a round that changes nothing is the last."""
    held = start
    for number in range(ROUNDS):
        before = held
        for name, tried in candidates.items():
            each = [one for one in tried(held) if trials.affordable(one, start)]
            ranked = sorted(each, key=trials.score)
            print(f"\nround {number + 1}, {name}: {len(each)} candidates", flush=True)
            for one in ranked[:SHOWN]:
                score, error = trials.gain(one, held)
                changed = {field: value for field, value in vars(one).items() if any(vars(two)[field] != value for two in each)}
                print(f"  gains {100 * score:6.2f}% with its work, {100 * error:6.2f}% without  {changed}", flush=True)
            held = ranked[0]
        if held == before:
            break
    return held


def told(trials: Trials, choices: dict[str, FitSettings]) -> None:
    """Errors case by case."""
    for name, choice in choices.items():
        print(f"\n{name}: {choice}")
        for case in trials.cases:
            own = case.own(choice)
            errors = "  ".join(f"{order} {value:.4f}" for order, value in trials.errors(case, own).items())
            print(f"  {case.name}: {errors}  ({own.classes} classes, spread {own.spread:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--adult", type=Path, required=True, help="adult.data of the UCI repository")
    parser.add_argument("--kept", type=Path, help="file of finished fits, to go on from")
    given = parser.parse_args()
    trials = Trials(cases(adult(given.adult)), kept=given.kept)
    found = chosen(trials, START, CANDIDATES)
    told(trials, {"start": START, "chosen": found})
    if found == AT_FACE_VALUE:
        print("\nThe defaults are what was chosen.")
        return
    told(trials, {"defaults": AT_FACE_VALUE})
    score, error = trials.gain(found, AT_FACE_VALUE)
    print(f"\nWhat was chosen gains {100 * score:.2f}% on the defaults with its work, {100 * error:.2f}% without.")


if __name__ == "__main__":
    main()
