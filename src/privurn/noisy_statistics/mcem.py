"""Monte Carlo expectation-maximisation: the parameters of highest likelihood given noisy sums.

E-step: one sweep of the chain (records, and jumps where n is secret) at the current parameters, from where the last one
ended. M-step: the complete-data likelihood maximised at a running average of the sufficient statistic. The share of
information that noisy sums leave is small, so each step goes only a small part of the way: a gain that falls to zero would
stop before it arrives. The gain is therefore constant and small, and the estimate is the average of the path (Polyak and
Ruppert); its bias is of the order of the gain times the squared spread of the path. Under much noise the likelihood may have no
maximum inside (a noisy moment matrix need not be positive definite): paths then drift, and `problems` says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privurn.draws import Draws, Summary
from privurn.errors import ModelError
from privurn.noisy_statistics.latent_chain import LatentChain, entry
from privurn.noisy_statistics.model import Model
from privurn.noisy_statistics.observed import Observed
from privurn.samplers.run import Arrays, Progress, Schedule, run_chains

GAIN = 0.1
START = 1000
"""Sweeps of the posterior's chain that find each start."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Maximising(LatentChain):
    """The chain at parameters that follow the average of what it has seen."""

    gain: float = GAIN

    @property
    def name(self) -> str:
        """Which chain."""
        return "Monte Carlo EM"

    def start(self, rng: np.random.Generator) -> Arrays:
        """A draw from the posterior, near enough: far from it the likelihood may have no way in."""
        posterior = LatentChain(model=self.model, observed=self.observed)
        state = posterior.start(rng)
        posterior.advance(state, rng, sweeps=START, thin=1, warming=True)
        return {**state, "numbers": np.zeros(3), "summary": np.zeros(self.model.summary_size)}

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """See `samplers.run.Sampler`."""
        from privurn._kernels.noisy_statistics.maximisation import update_maximising_chain

        kept = np.empty((0 if warming else sweeps // thin, self.model.n_parameters))
        kept_n, rates = np.empty(len(kept), np.int64), np.zeros((len(kept), 3))
        own = [state[name] for name in ("theta", "records", "count", "numbers", "summary")]
        state["records"] = entry(update_maximising_chain, self.model)(
            *(self.model.record, self.noise(), self.observed.size_record(), self._tuning()),
            *own,
            *(rng, sweeps, thin, warming, self.gain, kept, kept_n, rates),
        )
        if warming:
            return {}, {}
        return {**self.model.variables(kept), "n": kept_n}, {"acceptance_records": rates[:, 0]}


@dataclass(frozen=True, kw_only=True, eq=False)
class Maximum:
    """The estimate of each parameter (`estimate`), its Monte Carlo error, and the path (`trace`) it is the average of.

    `n` among them is the average over its law given the estimate, not a maximiser: n is latent.
    """

    estimate: Mapping[str, Any]
    monte_carlo_error: Mapping[str, Any]
    trace: Draws
    problems: tuple[str, ...]

    def summary(self) -> tuple[Summary, ...]:
        """One row for each number; deviation is that of the path, not a confidence statement."""
        return self.trace.summary()


def maximise(
    model: Model,
    *,
    observed: Observed,
    iterations: int = 20_000,
    chains: int = 4,
    seed: int | None = None,
    progress: Progress = lambda done, total, figures: None,
) -> Maximum:
    """Maximum likelihood by Monte Carlo EM from several starts; they disagree (`problems`) where it has not converged."""
    if model.summary_size < 1:
        raise ModelError(f"the model {model.name} has no maximisation step.")
    if iterations < 100:
        raise ModelError("Monte Carlo EM needs at least 100 iterations.", hint="iterations=20000")
    sampler = _Maximising(model=model, observed=observed, moves="centred", jumps=5, block=0)
    thin = max(1, iterations // 2000)
    warm_up = iterations // 4
    schedule = Schedule(chains=chains, warm_up=warm_up, draws=(iterations - warm_up) // thin, thin=thin, seed=seed)
    trace = run_chains(sampler, schedule=schedule, progress=progress, dims=model.dims, coords=model.coords)
    estimate, error = {}, {}
    for name, values in trace.variables.items():
        estimate[name] = values.mean(axis=(0, 1))
        rows = iter(trace.summary([name]))
        error[name] = np.reshape([next(rows).standard_error for _ in range(estimate[name].size)], estimate[name].shape)
    return Maximum(estimate=estimate, monte_carlo_error=error, trace=trace, problems=trace.problems())
