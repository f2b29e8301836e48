"""Inference from noisy counts: cell probabilities, true counts, and n where it is secret.

model       n from its prior; x | n, p multinomial; p Dirichlet(gamma); noisy counts x_i + noise, noisy n = n + noise

With a Poisson prior on n the counts given p are independent Poissons. p is integrated out, so that what is left are whole
numbers whose conditional laws along lines are drawn from exactly (_kernels/sums/count_tables.py); p is then drawn
given the counts. A sweep costs the same for any n and any noise.
"""

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.draws import Draws
from privurn.inference.run import Arrays, Progress, Schedule, run_until_mixed, say_not_mixed
from privurn.inference.sums.observed import released_numbers
from privurn.inference.sums.size import SizePrior
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.sums.table_statistic import TableStatistic

if TYPE_CHECKING:
    from privurn._kernels.sums.count_tables import Table
    from privurn.certificates.statistics import ReleasedStatistics

REACH = 12.0
"""The longest window covers this many deviations of the noise."""

STEPS_OF_SIZE = 64
"""All cells together grow by multiples of about this many records or two to a cell, in proportions that many can express."""

LONGEST = 64_000
"""Draws of each chain at which doubling ends."""

JUDGED = 60

MOST_NUMBERS = 2 * 10**8
"""Draws times cells times chains: beyond this the draws would not fit into memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableSampler:
    """The Markov chain of `infer_table`: state "counts"; draws "counts", "p" and "n"."""

    statistics: NoisyStatistics
    prior: NDArray[np.float64]
    size_prior: SizePrior = field(default_factory=SizePrior)

    def __post_init__(self) -> None:
        cells = len(self.statistics.values)
        if self.prior.shape != (cells,) or not np.all(np.isfinite(self.prior)) or not np.all(self.prior > 0.0):
            raise ModelError(
                "the prior needs one positive number for each cell.", hint="prior=1 is flat, prior=0.5 is Jeffreys'"
            )

    @property
    def name(self) -> str:
        """count-table."""
        return "count-table"

    @property
    def monitored(self) -> tuple[str, ...]:
        """The number of records, where it is not known."""
        return () if self.statistics.n is not None else ("n",)

    def fingerprint(self) -> str:
        """Hash of everything that fixes the chain."""
        stated = (self.statistics.mechanism.parameters(), self.statistics.n, self.statistics.noisy_n, self.size_prior)
        digest = hashlib.sha256(repr(stated).encode())
        digest.update(self.statistics.values.tobytes())
        digest.update(self.prior.tobytes())
        return digest.hexdigest()

    @cached_property
    def table(self) -> "Table":
        """The public data as the kernels want them."""
        from privurn._kernels.sums.count_tables import ABSENT, GAUSSIAN, LAPLACE, WINDOW, Table

        public, noise, size = self.statistics, self.statistics.noise, self.statistics.size_noise
        kinds = {"laplace": LAPLACE, "gaussian": GAUSSIAN}
        worth = np.maximum(public.values, 0.0) + self.prior
        steps = max(STEPS_OF_SIZE, 2 * len(worth))
        proportions = np.stack([_whole_shares(worth, steps), _whole_shares(self.prior, steps)])
        # Gamma(gamma + x)/x! e^(-x/scale) is a Gamma law of shape gamma: sqrt(gamma) times as wide as the noise alone
        reach = REACH * noise.deviation * math.sqrt(max(1.0, float(self.prior.max()))) / WINDOW
        known = public.n is not None
        return Table(
            noisy=public.values,
            kind=kinds[noise.kind],
            scale=noise.scale,
            prior=self.prior,
            prior_total=float(self.prior.sum()),
            noisy_size=0.0 if public.noisy_n is None else public.noisy_n,
            size_kind=ABSENT if size is None else kinds[size.kind],
            size_scale=1.0 if size is None else size.scale,
            poisson_mean=self.size_prior.mean or 0.0,
            lower=public.n if public.n is not None else self.size_prior.lower,
            upper=public.n if public.n is not None else self.size_prior.upper,
            proportions=proportions,
            hub=int(np.argmax(worth)),
            cell_stride=1 + math.floor(reach),
            size_stride=1 if known else 1 + math.floor(reach * math.sqrt(len(worth)) / steps),
        )

    def start(self, rng: np.random.Generator) -> Arrays:
        """Counts that are possible, spread twice as wide as the noise."""
        public = self.statistics
        spread = public.values + 2.0 * public.noise.deviation * rng.normal(size=len(public.values))
        counts = np.rint(np.maximum(spread, 0.0)).astype(np.int64)
        lower, upper = int(self.table.lower), int(self.table.upper)
        n = int(np.clip(counts.sum(), lower, upper))
        if n != counts.sum():
            shares = (counts + self.prior) / (counts + self.prior).sum()
            counts = rng.multinomial(n, shares)
        return {"counts": counts.astype(np.int64)}

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """Sweeps in compiled code. Nothing adapts, so warming up only forgets the start."""
        from privurn._kernels.sums.count_tables import update_table

        kept = sweeps if warming else sweeps // thin
        cells = len(self.prior)
        counts, shares = np.empty((kept, cells), np.int64), np.empty((kept, cells))
        update_table(state["counts"], self.table, counts, shares, 1 if warming else thin, rng)
        return {"counts": counts, "p": shares, "n": counts.sum(axis=1)}, {}


def _whole_shares(weights: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers in about these proportions that add up to about `total`."""
    shares: NDArray[np.int64] = np.rint(total * weights / weights.sum()).astype(np.int64)
    if not shares.any():
        shares[int(np.argmax(weights))] = 1
    return shares


def infer_table(
    statistics: "NoisyStatistics | ReleasedStatistics",
    *,
    prior: float | NDArray[np.float64] = 1.0,
    size_prior: SizePrior | None = None,
    schedule: Schedule | None = None,
    seed: int | None = None,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = lambda done, total, figures: None,
) -> Draws:
    """Posterior of a contingency table from its noisy counts.

    Parameters
    ----------
    statistics
        What `release_statistics` with a `TableStatistic`, or `read_statistics`, returned.
    prior
        Dirichlet prior of the cell probabilities: one number for all cells, or one for each.
    size_prior
        Prior of n where n is secret; flat where left out. Ignored where n is public.
    schedule
        How long to run. Left out: four chains of 1000 draws; where they have not mixed twice as many new ones, up to 64,000.
    seed
        Of the chains, where there is no schedule.
    threads, checkpoint, progress
        As in `samplers.run.run_chains`.

    Returns
    -------
    Draws
        "p", the cell probabilities; "counts", the true counts; "n", their sum; for a table of two columns with two proper
        values each also "log_odds_ratio", of the population's four proper cells. Chains that have not mixed give a warning.

    Examples
    --------
    >>> from privurn import Categories
    >>> from privurn.mechanisms.sums.calibrating import Budget
    >>> cells = {"smoker": Categories(["yes", "no"]), "ill": Categories(["yes", "no"])}
    >>> made = TableStatistic.calibrated(domain=cells, budget=Budget(epsilon=1, noise="discrete-laplace"))
    >>> noisy = np.array([31.0, 18, 0, 24, 61, -1, 1, 0, 0])
    >>> draws = infer_table(NoisyStatistics(mechanism=made, values=noisy), seed=1)
    >>> bool(draws["n"].mean() > 120), draws.problems()
    (True, ())
    """
    statistics = released_numbers(statistics)
    mechanism = statistics.mechanism
    if not isinstance(mechanism, TableStatistic):
        raise ModelError(
            f"these are statistics for the model {statistics.model!r}, not a table.", hint=f"privurn infer {statistics.model}"
        )
    cells = len(statistics.values)
    sampler = TableSampler(
        statistics=statistics,
        prior=np.full(cells, float(prior)) if np.ndim(prior) == 0 else np.asarray(prior, np.float64),
        size_prior=size_prior or SizePrior(),
    )
    asked = schedule or Schedule(seed=seed)
    if asked.draws * asked.chains * cells > MOST_NUMBERS:
        raise ModelError(
            f"so many draws of {cells:,} cells do not fit into memory.",
            hint="schedule=Schedule(draws=100, thin=10), or fewer cells",
        )
    longest = min(LONGEST, MOST_NUMBERS // (cells * asked.chains)) if schedule is None else asked.draws
    draws, problems = run_until_mixed(
        sampler,
        schedule=asked,
        longest=longest,
        judged=judged,
        threads=threads,
        checkpoint=checkpoint,
        progress=progress,
        dims={"p": ("cell",), "counts": ("cell",)},
        coords={"cell": list(mechanism.names)},
        attributes={
            "model": "table",
            "neighbouring": statistics.neighbouring,
            "size_prior": sampler.size_prior.to_json(),
            "length": "chosen" if schedule is None else "given",
        },
    )
    say_not_mixed(draws, problems)
    ratio = log_odds_ratio(draws["p"], mechanism)
    return draws if ratio is None else replace(draws, variables={**draws.variables, "log_odds_ratio": ratio})


def judged(draws: Draws) -> Draws:
    """The draws that mixing is judged by: n and at most JUDGED probabilities, since each number takes milliseconds."""
    cells = draws["p"].shape[-1]
    chosen = np.unique(np.linspace(0, cells - 1, min(cells, JUDGED)).astype(np.int64))
    return Draws(variables={"n": draws["n"], "p": draws["p"][..., chosen]}, markov=True)


def log_odds_ratio(p: NDArray[np.float64], mechanism: TableStatistic) -> NDArray[np.float64] | None:
    """Of the proper cells of two columns with two proper values each; None for other tables."""
    columns = list(mechanism.domain.columns.values())
    if len(columns) != 2 or any(column.n_values != 2 for column in columns):
        return None
    width = columns[0].size
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))  # tiny shares of a tiny prior underflow to 0
    ratio: NDArray[np.float64] = logs[..., 0] + logs[..., width + 1] - logs[..., 1] - logs[..., width]
    return ratio
