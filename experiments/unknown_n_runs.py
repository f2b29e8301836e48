"""What the unknown-n experiments share: the simulated data, one replicate of each kind, and results that are kept as they come.

Noise is continuous Laplace from a public seed, as in the paper: nothing here is a private release. A replicate draws the same
noise, up to its scale, in all settings, so that settings differ by what they are and not by luck.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.inference.cautions import unsaid
from privurn.inference.run import Run
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.fit import fit
from privurn.inference.sums.mcem import maximise
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import RESOLUTION, RegressionStatistic
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.reports.comparison.parallel import run_tasks

RECORDS, COVARIATES = 1000, 2
LOWER, UPPER = -5.0, 5.0
BETA, TAU, MU = (0.0, -1.0, 1.0), 1.0, (-1.0, 1.0)
SENSITIVITY = 9.0
"""p^2/2 + 5p/2 + 2 at p = 2."""

COMPOSITIONS = 6656
ALPHA = (12.0, 1.6, 16.4)
"""Of the stand-in: mean shares 0.40, 0.05 and 0.55 of a day."""
FLOOR = 0.0006
BOOTSTRAPS = 10_000
PRINTED_SWEEPS, PRINTED_BURN_IN = 10_000, 0.3
"""Of the path that is averaged in the printed table 2."""

KNOWN = "known"
Task = tuple[str, float, float | str, int]
"""Kind (posterior, maximum, bootstrap or compositions), epsilon of the sums, epsilon of n or "known", and replicate."""


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """Work for `run_tasks`: each task's result, also appended to the file `kept` where one is named."""

    seed: int
    draws: int | None = None
    warm_up: int = 2000
    chains: int = 4
    iterations: int = 20_000
    compositions: int = COMPOSITIONS
    kept: str | None = None

    @property
    def settings(self) -> list[Any]:
        """What has to be the same for results of an earlier run to be used."""
        return [self.seed, self.draws, self.warm_up, self.chains, self.iterations, self.compositions]

    def run(self, task: Task) -> dict[str, Any]:
        """One replicate."""
        kinds = {
            "posterior": self.posterior,
            "maximum": self.maximum,
            "bootstrap": self.bootstrap,
            "compositions": self.composed,
        }
        begun = time.perf_counter()
        kind, epsilon, epsilon_n, replicate = task
        result = kinds[kind](epsilon, epsilon_n, replicate)
        result["seconds"] = time.perf_counter() - begun
        keep(self, task, result)
        return result

    def posterior(self, epsilon: float, epsilon_n: float | str, replicate: int) -> dict[str, Any]:
        """Posterior means and variances, and whether chains have mixed at the length that was chosen."""
        statistics = released(epsilon, epsilon_n, replicate, seed=self.seed)
        model = RegressionModel.from_statistics(statistics, prior=RegressionPrior())  # ones everywhere, as in the paper
        observed = Observed.from_statistics(statistics)
        return self._fitted(model, observed, ("beta", "tau", "n"), replicate)

    def composed(self, epsilon: float, epsilon_n: float | str, replicate: int) -> dict[str, Any]:
        """The same for compositions: one noisy sum for each epsilon, and a noisy n of its own for each replicate."""
        model = DirichletModel(parts=("care", "eating", "other"), floor=FLOOR)
        rng = np.random.default_rng([self.seed, 1])
        total = model.statistic(model.simulate(np.array(ALPHA), n=self.compositions, rng=rng))
        scale = -len(ALPHA) * np.log(FLOOR) / epsilon
        values = total + scale * rng.laplace(size=len(ALPHA))
        about = _about_size(epsilon_n, self.compositions, np.random.default_rng([self.seed, 2, replicate]))
        observed = Observed(values=values, scales=np.full(len(ALPHA), scale), **about)
        return self._fitted(model, observed, ("alpha", "n"), replicate)

    def _fitted(self, model: Any, observed: Observed, names: Sequence[str], replicate: int) -> dict[str, Any]:
        with unsaid():  # problems are counted instead
            found = fit(
                model,
                observed=observed,
                run=Run(chains=self.chains, warm_up=self.warm_up, draws=self.draws, seed=replicate, threads=1),
            )
        rows = found.draws.summary(names)
        return {
            "mean": {row.name: row.mean for row in rows},
            "variance": {row.name: row.deviation**2 for row in rows},
            "n": np.quantile(found.draws["n"], [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]).tolist(),
            "length": found.draws.n_draws,
            "problems": list(found.problems()),
        }

    def maximum(self, epsilon: float, epsilon_n: float | str, replicate: int) -> dict[str, Any]:
        """Maximum likelihood by Monte Carlo EM, and the average of a path that the printed table 2 is made of."""
        statistics = released(epsilon, epsilon_n, replicate, seed=self.seed)
        model = RegressionModel.from_statistics(statistics, prior=RegressionPrior())  # ones everywhere, as in the paper
        observed = Observed.from_statistics(statistics)
        with unsaid():
            found = maximise(model, observed=observed, iterations=self.iterations, chains=self.chains, seed=replicate)
        estimate = [*found.estimate["beta"], found.estimate["tau"]]
        error = [*found.monte_carlo_error["beta"], found.monte_carlo_error["tau"]]
        return {
            "estimate": [float(each) for each in estimate],
            "error": [float(each) for each in error],
            "problems": list(found.problems),
            "as_printed": path_as_printed(model, observed, iterations=min(self.iterations, PRINTED_SWEEPS), seed=replicate),
        }

    def bootstrap(self, epsilon: float, epsilon_n: float | str, replicate: int) -> dict[str, Any]:
        """The parametric bootstrap around the repaired plug-in."""
        from privurn.inference.sums.comparators import bootstrap_regression

        statistics = released(epsilon, epsilon_n, replicate, seed=self.seed)
        found = bootstrap_regression(statistics, replicates=BOOTSTRAPS, seed=replicate)
        n = statistics.noisy_n if statistics.n is None else statistics.n
        assert n is not None
        return {
            "mean": found.replicates.mean(axis=0).tolist(),
            "variance": found.variance.tolist(),
            "residual_variance": found.estimate.residual_variance,
            "n": max(float(n), COVARIATES + 1.0),
            "repaired_n": found.estimate.n,
            "as_printed": bootstrap_as_printed(epsilon, epsilon_n, replicate, seed=self.seed),
        }


def _about_size(epsilon_n: float | str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    if isinstance(epsilon_n, str):
        return {"n": n}
    return {"noisy_n": n + float(rng.laplace()) / epsilon_n, "noisy_n_scale": 1.0 / epsilon_n}


def data(seed: int) -> NDArray[np.float64]:
    """The one data set of tables 1 to 4: columns x1, x2, y."""
    rng = np.random.default_rng([seed, 0])
    x = np.array(MU) + rng.standard_normal((RECORDS, COVARIATES))
    y = BETA[0] + x @ np.array(BETA[1:]) + rng.standard_normal(RECORDS) / np.sqrt(TAU)
    return np.column_stack([x, y])


def released(epsilon: float, epsilon_n: float | str, replicate: int, *, seed: int) -> NoisyStatistics:
    """Noisy moments: Laplace of scale 9/epsilon on each, also where n is known (twice epsilon under replace-one neighbours)."""
    rng = np.random.default_rng([seed, 3, replicate])
    noise = SENSITIVITY / epsilon * rng.laplace(size=9)
    about = _about_size(epsilon_n, RECORDS, rng)
    scale = about.pop("noisy_n_scale", None)
    mechanism = RegressionStatistic(
        neighbouring="replace-one" if scale is None else "add-remove",
        noise=NoiseLaw(kind="laplace", scale=SENSITIVITY / epsilon, step=4.0**-RESOLUTION),
        size_noise=None if scale is None else NoiseLaw(kind="laplace", scale=scale, step=2.0**-10),
        response="y",
        covariates=("x1", "x2"),
        lower=(LOWER,) * 3,
        upper=(UPPER,) * 3,
    )
    exact = mechanism.standardised(data(seed)) / 2.0**RESOLUTION
    moments = np.column_stack([np.ones(RECORDS), exact])
    first, second = mechanism.pairs
    return NoisyStatistics(mechanism=mechanism, values=(moments.T @ moments)[first, second] + noise, **about)


def path_as_printed(model: RegressionModel, observed: Observed, *, iterations: int, seed: int) -> list[float]:
    """Average of one path of Monte Carlo EM with the closed-form step after each sweep, its first three tenths left out."""
    with unsaid():
        found = maximise(model, observed=observed, iterations=iterations, chains=2, seed=seed, method="closed form")
    sweeps = iterations - iterations // 4  # a quarter is not in the trace
    left_out = 1.0 - (1.0 - PRINTED_BURN_IN) * iterations / sweeps
    paths = [found.trace.variables[name][0].reshape(found.trace.n_draws, -1) for name in ("beta", "tau")]
    whole = np.hstack(paths)
    return [float(each) for each in whole[round(left_out * len(whole)) :].mean(axis=0)]


def bootstrap_as_printed(epsilon: float, epsilon_n: float | str, replicate: int, *, seed: int) -> dict[str, Any]:
    """The bootstrap that the printed table 4 fits: noise of scale 9/epsilon_n on n, and the ridge on the scale of the data."""
    from privurn.inference.sums.comparators import least_squares, repaired

    scale = np.full((4, 4), UPPER**2)
    scale[0, :] = scale[:, 0] = UPPER
    scale *= SENSITIVITY / epsilon
    scale[0, 0] = 0.0 if isinstance(epsilon_n, str) else SENSITIVITY / epsilon_n
    rng = np.random.default_rng([seed, 4, replicate])

    def noise(copies: int) -> NDArray[np.float64]:
        drawn = np.triu(rng.laplace(size=(copies, 4, 4)) * scale)
        return np.asarray(drawn + np.swapaxes(np.triu(drawn, 1), 1, 2))

    columns = np.column_stack([np.ones(RECORDS), np.clip(data(seed), LOWER, UPPER)])
    noisy = columns.T @ columns + noise(1)
    moments, _ = repaired(noisy)
    slopes, variances = least_squares(moments)
    design, slope, variance = moments[0, :3, :3], slopes[0], float(variances[0])
    normal = rng.standard_normal((BOOTSTRAPS, 3))
    cross = np.sqrt(variance) * normal @ np.linalg.cholesky(design).T
    squares = variance * ((normal**2).sum(axis=1) + rng.chisquare(design[0, 0] - 3.0, BOOTSTRAPS))
    simulated = np.empty((BOOTSTRAPS, 4, 4))
    simulated[:, :3, :3] = design
    simulated[:, :3, 3] = simulated[:, 3, :3] = design @ slope + cross
    simulated[:, 3, 3] = slope @ design @ slope + 2.0 * cross @ slope + squares
    again, _ = least_squares(repaired(simulated + noise(BOOTSTRAPS))[0])
    return {
        "mean": again.mean(axis=0).tolist(),
        "variance": again.var(axis=0, ddof=1).tolist(),
        "residual_variance": variance,
        "n": max(float(noisy[0, 0, 0]), COVARIATES + 1.0),
        "repaired_n": float(moments[0, 0, 0]),
    }


def has_maximum(epsilon: float, epsilon_n: float | str, replicate: int, *, seed: int) -> bool:
    """Whether the noisy moments are those of some table: if they are not, the likelihood has no maximum inside."""
    from privurn.inference.sums.comparators import noisy_moments

    moments = noisy_moments(released(epsilon, epsilon_n, replicate, seed=seed))
    return bool(np.linalg.eigvalsh(moments)[0] > 0.0)


class Kept(Protocol):
    """A job whose results are written down as they come."""

    @property
    def kept(self) -> str | None:
        """Where to."""

    @property
    def settings(self) -> list[Any]:
        """What has to be the same for results of an earlier run to be used."""

    def run(self, task: Any) -> dict[str, Any]:
        """Do one task."""


def keep(job: Kept, task: Any, result: dict[str, Any]) -> None:
    """Append a result to the job's file, if it has one."""
    if job.kept is not None:
        line = json.dumps([job.settings, task, result]) + "\n"
        handle = os.open(job.kept, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())  # one call, so that lines of several processes do not mix
        finally:
            os.close(handle)


def run(
    job: Kept, tasks: Sequence[Any], *, processes: int | None, progress: Callable[[int, int], None]
) -> dict[Any, dict[str, Any]]:
    """All results; those that an earlier run has kept are not computed again."""
    found: dict[Any, dict[str, Any]] = {}
    if job.kept is not None and Path(job.kept).exists():
        for line in Path(job.kept).read_text().splitlines():
            settings, task, result = json.loads(line)
            if settings == job.settings:
                found[tuple(task)] = result
    left = [task for task in tasks if task not in found]
    found |= zip(left, run_tasks(job, left, processes=processes, progress=progress), strict=True)
    return {task: found[task] for task in tasks}
