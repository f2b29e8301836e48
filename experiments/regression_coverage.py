"""Coverage of the 95% intervals of `privurn infer` of a regression with its default prior, which follows the public bounds.

    python -m experiments.regression_coverage [--replicates 200] [--truths wages ...] [--kept results.jsonl] [--seed S] [--json]

Fixed truths, data and noise drawn anew each time. Only a truth drawn from the prior is covered with 95% by necessity, but a
default that is fit for use comes near. Beside it is what taking the noisy sums for exact covers (the plug-in).

wages    hourly pay against age; a weak slope, both columns within a third of their bounds; 1,000 records
paper    two covariates, beta (0, -1, 1), the regression of the unknown-n paper; 1,000 records
doses    a straight line with little scatter, 400 records: a residual variance that the noise hides

Laplace noise on the moments (epsilon 1) and on n (epsilon_n 0.1), from a public seed: nothing here is a private release.
"""

import argparse
import json
import sys
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from experiments.unknown_n_runs import keep, run
from privurn.inference.infer import infer
from privurn.inference.run import NotMixed, Run
from privurn.inference.sums.fit import SumPosterior
from privurn.inference.sums.report import plug_in
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import RESOLUTION, RegressionStatistic
from privurn.mechanisms.sums.statistic import NoisyStatistics

EPSILON, EPSILON_N = 1.0, 0.1
LEVEL = 0.95


class Truth(NamedTuple):
    """Public bounds (response last), and what the records are drawn from."""

    records: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    beta: tuple[float, ...]
    deviation: float
    means: tuple[float, ...]
    spreads: tuple[float, ...]


TRUTHS = {
    "wages": Truth(1000, (18.0, 0.0), (70.0, 60.0), (12.0, 0.2), 8.0, (42.0,), (11.0,)),
    "paper": Truth(1000, (-5.0,) * 3, (5.0,) * 3, (0.0, -1.0, 1.0), 1.0, (-1.0, 1.0), (1.0, 1.0)),
    "doses": Truth(400, (0.0, 0.0), (10.0, 100.0), (20.0, 6.0), 3.0, (5.0,), (2.0,)),
}
Task = tuple[str, int]


def released(truth: Truth, rng: np.random.Generator) -> NoisyStatistics:
    """Fresh records and their noisy moments."""
    covariates = len(truth.means)
    sensitivity = covariates**2 / 2.0 + 2.5 * covariates + 2.0
    mechanism = RegressionStatistic(
        neighbouring="add-remove",
        noise=NoiseLaw(kind="laplace", scale=sensitivity / EPSILON, step=4.0**-RESOLUTION),
        size_noise=NoiseLaw(kind="laplace", scale=1.0 / EPSILON_N, step=2.0**-10),
        response="y",
        covariates=tuple(f"x{j + 1}" for j in range(covariates)),
        lower=truth.lower,
        upper=truth.upper,
    )
    x = np.array(truth.means) + np.array(truth.spreads) * rng.standard_normal((truth.records, covariates))
    y = truth.beta[0] + x @ np.array(truth.beta[1:]) + truth.deviation * rng.standard_normal(truth.records)
    mapped = mechanism.standardised(np.column_stack([x, y])) / 2.0**RESOLUTION
    columns = np.column_stack([np.ones(truth.records), mapped])
    first, second = mechanism.pairs
    values = (columns.T @ columns)[first, second] + sensitivity / EPSILON * rng.laplace(size=len(first))
    noisy_n = truth.records + rng.laplace() / EPSILON_N
    return NoisyStatistics(mechanism=mechanism, values=values, noisy_n=noisy_n)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Work for `run_tasks`; results are also appended to the file `kept`, where one is named."""

    seed: int
    kept: str | None = None

    @property
    def settings(self) -> list[Any]:
        """What has to be the same for results of an earlier run to be used."""
        return [self.seed]

    def run(self, task: Task) -> dict[str, Any]:
        """One data set: for each number whether posterior and plug-in cover it, and the width of the posterior's interval."""
        name, replicate = task
        truth = TRUTHS[name]
        statistics = released(truth, np.random.default_rng([self.seed, list(TRUTHS).index(name), replicate]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotMixed)  # counted instead
            found = infer(statistics, run=Run(chains=2, seed=replicate, threads=1))
        assert isinstance(found, SumPosterior)
        naive = {row.name: row for row in plug_in(statistics, level=LEVEL)}
        wanted = {f"beta[{each}]": b for each, b in zip(found.model.coords["coefficient"], truth.beta, strict=True)}
        wanted |= {"tau": truth.deviation**-2.0, "n": float(truth.records)}
        result: dict[str, Any] = {"mixed": found.mixed, "length": found.draws.n_draws, "rows": {}}
        for row in found.draws.summary(["beta", "tau", "n"], level=LEVEL):
            value, other = wanted[row.name], naive.get(row.name)
            if other is not None and not other.upper > other.lower:
                other = None  # a point, not an interval
            plain = None if other is None else bool(other.lower <= value <= other.upper)
            result["rows"][row.name] = [bool(row.lower <= value <= row.upper), plain, row.upper - row.lower]
        keep(self, task, result)
        return result


def rows(results: dict[Task, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Shares of data sets whose interval covers, by number."""
    own = [result for task, result in results.items() if task[0] == name]
    found = []
    for each in own[0]["rows"]:
        cells = [result["rows"][each] for result in own]
        plain = [cell[1] for cell in cells if cell[1] is not None]
        found.append(
            {
                "truth": name,
                "number": each,
                "replicates": len(own),
                "coverage": float(np.mean([cell[0] for cell in cells])),
                "plug-in": float(np.mean(plain)) if plain else None,
                "width": float(np.median([cell[2] for cell in cells])),
                "not mixed": sum(not result["mixed"] for result in own),
            }
        )
    return found


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--truths", nargs="+", choices=list(TRUTHS), default=list(TRUTHS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, help="left out: as many as there are cores")
    parser.add_argument("--kept", help="file of finished replicates, to go on from")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tasks = [(name, replicate) for replicate in range(given.replicates) for name in given.truths]
    results = run(Coverage(seed=given.seed, kept=given.kept), tasks, processes=given.processes, progress=lambda *_: None)
    found = [row for name in given.truths for row in rows(results, name)]
    if given.json:
        json.dump({"rows": found}, sys.stdout)
        print()
        return
    error = (LEVEL * (1.0 - LEVEL) / given.replicates) ** 0.5
    print(f"Share of {given.replicates} data sets whose 95% interval covers (standard error {error:.3f} at 0.95); median width")
    for row in found:
        plain = "      -" if row["plug-in"] is None else f"{row['plug-in']:7.3f}"
        print(
            f"  {row['truth']:6s} {row['number']:16s} posterior {row['coverage']:.3f}  plug-in {plain}"
            f"  width {row['width']:.4g}" + (f"  ({row['not mixed']} not mixed)" if row["not mixed"] else "")
        )


if __name__ == "__main__":
    main()
