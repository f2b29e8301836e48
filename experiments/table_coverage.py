"""Do 95% intervals from noisy marginals of a whole table cover? Resamples of tables, their own shares being the truth.

    python -m experiments.table_coverage --adult adult.data --cps cps.csv.gz --credit credit_data.csv [--simulated]
        [--resamples 200] [--synthetic 200] [--epsilon 0.3 1 4] [--kept results.jsonl] [--seed S] [--processes P]

Of real tables, and of two simulated ones: a mixture of products, and a tree of columns each of which depends on one before.
For each table and epsilon (delta = 1e-6, add-remove) as many records as the table has, at most 50,000, are drawn with
replacement, measured and fitted. Counted is how often intervals hold the figures of the table: cells of two columns, by how
many records are expected in them, and coefficients of regressions on the numbers of the bins. Beside them: the mean width of a
linear regression's intervals over that of the estimate straight from the moments, and what plain regression on the synthetic
table covers, which knows nothing of the noise (of the first `--synthetic` resamples: making that table takes most of the time).
A figure fails where an exact binomial test at 1e-4 rejects its band;
cells of one resample share its noise, and count as one trial.

Every resample is kept as it comes, and a later run goes on from there; the time that one took is told at the end. Noise is from
a public seed: nothing here is a private release.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import tables
from benchmarks.table_data import CodedTable, adult, cps, credit
from benchmarks.tables import DELTA, simulated
from numpy.typing import NDArray

from experiments.unknown_n_runs import keep, run
from privurn.errors import ModelError, SamplingError
from privurn.inference.tables.assisted import solve_weighted
from privurn.inference.tables.discrepancy import MOST
from privurn.inference.tables.features import LESS_THAN_NOISE, MOST_PAIRS
from privurn.inference.tables.fit import AT_FACE_VALUE, Fit, FitSettings, fit_mixture, fit_pairs
from privurn.inference.tables.formula import TableRegression, regression_from_text
from privurn.inference.tables.posterior import table_posterior
from privurn.inference.tables.regression import GeneralisedLinear
from privurn.inference.tables.sampling import synthetic_cells
from privurn.mechanisms.marginal_counts import MarginalLayout, count_marginals
from privurn.mechanisms.table_measurements import MeasuredTable

MOST_RECORDS = 50_000
mechanism = lru_cache(maxsize=9)(tables.mechanism)
"""Once a process."""
REACH = 1.959963984540054
SIMULATED = ("mixture", "tree")
READERS: dict[str, Callable[[Path], CodedTable]] = {
    "adult": adult,
    "cps": cps,
    "credit": credit,
    **{kind: lambda _, kind=kind: simulated(kind) for kind in SIMULATED},  # type: ignore[misc]
}
REGRESSIONS = {
    "adult": (
        "logistic: income ~ age + hours + sex",
        "linear: hours ~ age + sex + income",
        "poisson: hours ~ age + sex + income",
    ),
    "cps": (
        "logistic: MARS=2 ~ age_head + e00200",
        "linear: e00200 ~ age_head + nu18 + XTOT",
        "poisson: nu18 ~ age_head + e00200",
    ),
    "credit": (
        "logistic: default ~ age + income + late30",
        "linear: lines ~ age + income + houses",
        "poisson: late30 ~ age + income + default",
    ),
}
REGRESSIONS |= dict.fromkeys(
    SIMULATED,
    (
        "logistic: c5 ~ c0 + c3 + c8",
        "linear: c0 ~ c4 + c6 + c9",
        "poisson: c7 ~ c1 + c2",
    ),
)
BANDS = {
    "above 100": (0.93, 0.98),
    "5 to 100": (0.91, 1.0),
    "below 5": (0.0, 1.0),
    "coefficient": (0.91, 0.99),
}
"""In which coverage must lie; of cells by the records expected in them."""
FALSE_ALARM = 1e-4
Task = tuple[str, float, int]


@lru_cache(maxsize=3)
def read(name: str, path: str) -> CodedTable:
    """Once a process."""
    return READERS[name](Path(path))


def pairs(table: CodedTable) -> list[tuple[int, int]]:
    """Each column with the next: a public choice."""
    return [(j, j + 1) for j in range(len(table.names) - 1)]


def plain(model: TableRegression, table: CodedTable, codes: NDArray[np.uint16]) -> dict[str, tuple[float, float]]:
    """Regression on records as if they were data: estimates and their usual deviations, by name."""
    variables = model.variables(table.domain)
    shape = [table.sizes[j] for j in variables.places]
    counts = np.bincount(np.ravel_multi_index(codes[list(variables.places)], shape), minlength=int(np.prod(shape)))
    cells, shares = np.array(np.unravel_index(np.arange(len(counts)), shape)), counts / counts.sum()
    design = np.array([variables.at(each, cells) for each in variables.effects])
    response = variables.at(variables.response, cells)
    equation = GeneralisedLinear(variables.family, design, response, np.ones(len(counts)))
    b = solve_weighted(shares, equation, start=equation.start)
    psi = equation.psi(b)
    inverse = np.linalg.inv(equation.slope(b, shares))
    deviations = np.sqrt(np.diag(inverse @ ((psi * shares) @ psi.T) @ inverse.T) / counts.sum())
    return {name: (float(b[i]), float(deviations[i])) for i, name in enumerate(variables.names)}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Work for `run_tasks`; results are also appended to the file `kept`, where one is named."""

    seed: int
    paths: dict[str, str]
    synthetic: int
    kept: str | None = None

    @property
    def settings(self) -> list[Any]:
        """What has to be the same for results of an earlier run to be used."""
        used = [MOST, MOST_PAIRS, LESS_THAN_NOISE]
        return [self.seed, self.synthetic, MOST_RECORDS, DELTA, repr(AT_FACE_VALUE), repr(FitSettings()), used]

    def run(self, task: Task) -> dict[str, Any]:
        """One resample."""
        name, epsilon, number = task
        begun = time.process_time()
        table = read(name, self.paths[name])
        rng = np.random.default_rng([self.seed, list(READERS).index(name), round(100 * epsilon), number])
        total = table.codes.shape[1]
        codes = np.ascontiguousarray(table.codes[:, rng.integers(0, total, min(total, MOST_RECORDS))])
        made = mechanism(table.sizes, epsilon)
        noisy = made.simulate(count_marginals([codes], made.layout), rng=rng)
        measured = MeasuredTable(made, noisy.astype(float), table.domain)
        fit = fit_pairs(measured)
        result: dict[str, Any] = {"cells": self.cells(table, measured, fit, codes.shape[1]), "coefficients": {}, "refused": {}}
        synthetic = None
        if number < self.synthetic:
            best = fit_mixture(measured, seed=number, settings=AT_FACE_VALUE)
            synthetic = synthetic_cells(best.mixture, max(1, round(measured.n)), seed=number)
        for text in REGRESSIONS[name]:
            model = regression_from_text(text)
            truth = plain(model, table, table.codes)
            try:
                found = table_posterior(measured, model=model, fit=fit)
            except (ModelError, SamplingError) as error:
                result["refused"][text] = error.message
                continue
            naive = None if synthetic is None else plain(model, table, synthetic)
            for one, each in zip(found.summary(), found.figures, strict=True):
                value = truth[one.name][0]
                result["coefficients"][f"{text}: {one.name}"] = [
                    bool(one.lower <= value <= one.upper),
                    None if naive is None else abs(naive[one.name][0] - value) <= REACH * naive[one.name][1],
                    None if each.direct_deviation is None else each.deviation / each.direct_deviation,
                    (one.mean - value) / one.deviation,
                ]
        result["seconds"] = time.process_time() - begun
        keep(self, task, result)
        return result

    def cells(self, table: CodedTable, measured: MeasuredTable, fit: Fit, n: int) -> dict[str, list[int]]:
        """How many cells of two columns were asked about, and how many intervals held the table's share, by their size."""
        asked = [f"table({table.names[j]}, {table.names[k]})" for j, k in pairs(table)]
        found = table_posterior(measured, ask=asked, fit=fit)
        counts = count_marginals([table.codes], MarginalLayout(table.sizes, tuple(pairs(table))))
        truth = counts.counts / counts.n
        rows = found.summary()
        assert len(rows) == len(truth)
        counted = {size: [0, 0] for size in ("above 100", "5 to 100", "below 5")}
        for row, share in zip(rows, truth, strict=True):
            size = "above 100" if share * n > 100 else "5 to 100" if share * n >= 5 else "below 5"
            counted[size][0] += 1
            counted[size][1] += bool(row.lower <= share <= row.upper)
        return counted


def verdict(held: float, trials: int, band: tuple[float, float]) -> str:
    """Whether so many of so many trials contradict the band."""
    from scipy.stats import binom

    count = round(held * trials)
    low, high = float(binom.cdf(count, trials, band[0])), float(binom.sf(count - 1, trials, band[1]))
    return "FAILS" if min(low, high) < FALSE_ALARM else "holds"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in READERS:
        if name not in SIMULATED:
            parser.add_argument(f"--{name}", help="the file")
    parser.add_argument("--simulated", action="store_true", help="the two simulated tables as well")
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--synthetic", type=int, default=200, help="resamples of which the synthetic table is made as well")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 4.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, help="left out: as many as there are cores")
    parser.add_argument("--kept", help="file of finished resamples, to go on from")
    given = parser.parse_args()
    paths = {name: "" for name in SIMULATED if given.simulated}
    paths = {name: path for name in READERS if (path := getattr(given, name, None)) is not None} | paths
    tasks = [(name, epsilon, number) for number in range(given.resamples) for name in paths for epsilon in given.epsilon]
    job = Coverage(seed=given.seed, paths=paths, synthetic=given.synthetic, kept=given.kept)
    results = run(job, tasks, processes=given.processes, progress=lambda *_: None)
    for name in paths:
        for epsilon in given.epsilon:
            own = [result for task, result in results.items() if task[:2] == (name, epsilon)]
            print(f"{name}, epsilon {epsilon:g}: {len(own)} resamples, {np.mean([each['seconds'] for each in own]):.1f} s each")
            for size, band in list(BANDS.items())[:3]:
                asked, held = np.sum([each["cells"][size] for each in own], axis=0)
                share = held / max(1, asked)
                print(f"  cells with counts {size:10s} {share:.3f} of {asked:,} covered; {verdict(share, len(own), band)}")
            for text in sorted({text for each in own for text in each["coefficients"]}):
                rows = [each["coefficients"][text] for each in own if text in each["coefficients"]]
                covered, plainly, widths, off = (np.array([row[i] for row in rows if row[i] is not None]) for i in range(4))
                naive = f", on synthetic records {plainly.mean():.3f} of {len(plainly)}" if len(plainly) else ""
                wide = f", width over direct {widths.mean():.2f}" if len(widths) else ""
                errors = f", errors {off.mean():+.2f} +- {off.std():.2f} deviations"
                judged = verdict(float(covered.mean()), len(rows), BANDS["coefficient"])
                print(f"  {text:52s} {covered.mean():.3f} of {len(rows)} covered{naive}{wide}{errors}; {judged}")
            refused = sum(len(each["refused"]) for each in own)
            if refused:
                print(f"  {refused} analyses refused")
    print(f"processor time of all: {sum(each['seconds'] for each in results.values()) / 3600:.2f} hours")


if __name__ == "__main__":
    main()
