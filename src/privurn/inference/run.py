"""Run several Markov chains side by side: pieces of work, progress, interruption, and continuing where a run stopped.

A sampler keeps all it needs for the next sweep in plain arrays, and every chain has a random generator of its own. A run
that is stopped after any piece, written to a file and taken up again therefore gives bit by bit what it would have given.

Chains of a chosen length are judged, and carried on where they have not mixed. What was judged is then forgotten: a chain that
was still on its way from its start would otherwise be diluted until the figures look fine, and bias them.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privurn.cores import usable_cores
from privurn.errors import ModelError
from privurn.inference.checkpoint import checkpoint_file, restored_run, save_run
from privurn.inference.draws import Draws, NotMixed, effective_draws
from privurn.inference.sampler import (
    Arrays,
    Chain,
    Lengths,
    Progress,
    Run,
    Sampler,
    Schedule,
    Underway,
    concatenated,
    silent,
    whole_number,
)

__all__ = [
    "Arrays",
    "Lengths",
    "NotMixed",
    "Progress",
    "Run",
    "Sampler",
    "Schedule",
    "run_chains",
    "run_engine",
    "run_until_mixed",
    "silent",
    "whole_number",
]

PIECES = 100
"""A run is done in about this many pieces; between two of them progress is shown and Ctrl-C is heard."""

SAVE_EVERY = 10.0
"""Seconds between two writings of the checkpoint."""

TAILS = 8

Problems = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What stays the same while a run goes on."""

    sampler: Sampler
    threads: int
    file: Path | None
    progress: Progress
    labels: Mapping[str, Any]

    def begun(self, stages: tuple[Schedule, ...]) -> Underway:
        """A run at its start, or where its checkpoint has it."""
        if self.file is not None and self.file.exists():
            return restored_run(self.file, self.sampler, stages)
        schedule = stages[0]
        seed = secrets.randbits(63) if schedule.seed is None else schedule.seed
        seeds = np.random.SeedSequence(seed).spawn(schedule.chains)
        generators = [np.random.Generator(np.random.PCG64(each)) for each in seeds]
        return Underway(seed, tuple(Chain(rng, self.sampler.start(rng)) for rng in generators), 0)

    def advanced(self, run: Underway, schedule: Schedule) -> Underway:
        """The run at the end of a schedule."""
        saved = time.monotonic()
        pool = ThreadPoolExecutor(min(schedule.chains, self.threads))
        try:
            while run.done < schedule.sweeps:
                sweeps = _piece(schedule, run.done)
                warming = run.done < schedule.warm_up
                jobs = [pool.submit(_advance, self.sampler, each, sweeps, schedule.thin, warming) for each in run.chains]
                run = Underway(run.seed, tuple(job.result() for job in jobs), run.done + sweeps, run.forgotten)
                if self.progress is not silent:  # effective draws may cost more than the sweeps
                    self.progress(run.done, schedule.sweeps, _figures(self.sampler, run.chains))
                if self.file is not None and time.monotonic() - saved > SAVE_EVERY:
                    save_run(self.file, self.sampler, schedule, run)
                    saved = time.monotonic()
        finally:
            pool.shutdown(cancel_futures=True)
            if self.file is not None:
                save_run(self.file, self.sampler, schedule, run)
        return run.forgetting(schedule.forgotten)

    def draws(self, run: Underway, schedule: Schedule) -> Draws:
        """What a run has kept."""
        return Draws(
            variables=_joined([each.kept for each in run.chains]),
            sample_stats=_joined([each.diagnostics for each in run.chains]),
            markov=True,
            dims=dict(self.labels["dims"] or {}),
            coords=dict(self.labels["coords"] or {}),
            attributes={
                "sampler": self.sampler.name,
                **asdict(schedule),
                "seed": run.seed,
                **(self.labels["attributes"] or {}),
            },
        )


def run_chains(
    sampler: Sampler,
    *,
    schedule: Schedule,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = silent,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Draws:
    """Draws of all chains; the same for any number of threads.

    With `checkpoint` the run is written to that file every few seconds and when it is interrupted; the same call then goes
    on from there, also with more `draws` than before. The file is left when the run is done.
    """
    work = _work(sampler, schedule, threads, checkpoint, progress, dims=dims, coords=coords, attributes=attributes)
    return work.draws(work.advanced(work.begun((schedule,)), schedule), schedule)


def run_until_mixed(
    sampler: Sampler,
    *,
    schedule: Schedule,
    longest: int,
    judged: Callable[[Draws], Draws] = lambda draws: draws,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = silent,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> tuple[Draws, Problems]:
    """Draws of chains that go on until those that are `judged` have no problem, or twice as many were more than `longest`.

    Each time twice as many draws are made as were judged, and those that were judged are forgotten. A mean that few draws
    decide is waited for until there are TAILS times as many draws as at first, no longer: where tails are too heavy for a mean,
    nothing cures it. A checkpoint goes on from wherever the run was; what was judged before needs no second judgement, so the
    draws are those of a run in one go.
    """
    work = _work(sampler, schedule, threads, checkpoint, progress, dims=dims, coords=coords, attributes=attributes)
    stages = [schedule]
    while 2 * stages[-1].draws <= longest:
        stages.append(stages[-1].longer())
    run = work.begun(tuple(stages))
    for stage in [each for each in stages if each.carries_on(run.done, run.forgotten)]:
        run = work.advanced(run.forgetting(stage.forgotten), stage)
        draws = work.draws(run, stage)
        shown = judged(draws)
        problems = shown.problems()
        if not problems or (stage.draws >= TAILS * schedule.draws and not shown.problems(means=False)):
            break
    return draws, problems


def run_engine(
    sampler: Sampler,
    run: Run,
    *,
    usual: Lengths,
    judged: Callable[[Draws], Draws] = lambda draws: draws,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> tuple[Draws, Problems]:
    """Draws of any engine: of the length that was given, or until those that are `judged` have mixed."""
    schedule = run.schedule(usual)
    chosen = run.draws is None
    return run_until_mixed(
        sampler,
        schedule=schedule,
        longest=(run.longest or usual.longest) if chosen else schedule.draws,
        judged=judged,
        threads=run.threads,
        checkpoint=run.checkpoint,
        progress=run.progress,
        dims=dims,
        coords=coords,
        attributes={**(attributes or {}), "length": "chosen" if chosen else "given"},
    )


def _work(
    sampler: Sampler,
    schedule: Schedule,
    threads: int | None,
    checkpoint: str | Path | None,
    progress: Progress,
    **labels: Any,
) -> _Work:
    """All that is given, checked."""
    if not isinstance(schedule, Schedule):
        raise ModelError("a run needs a schedule.", hint="schedule=Schedule(chains=4, warm_up=1000, draws=1000)")
    if not callable(progress):
        raise ModelError("progress must be a function.", hint="progress=lambda done, total, figures: print(done, total)")
    return _Work(
        sampler=sampler,
        threads=usable_cores() if threads is None else whole_number("threads", threads, least=1, example=2),
        file=None if checkpoint is None else checkpoint_file(checkpoint),
        progress=progress,
        labels=labels,
    )


def _piece(schedule: Schedule, done: int) -> int:
    """Sweeps until the next stop: a multiple of thin, and never across the end of the warm-up."""
    if done < schedule.warm_up:
        return min(max(1, schedule.warm_up // PIECES), schedule.warm_up - done)
    left = (schedule.sweeps - done) // schedule.thin
    return schedule.thin * min(max(1, schedule.draws // PIECES), left)


def _advance(sampler: Sampler, chain: Chain, sweeps: int, thin: int, warming: bool) -> Chain:
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = chain.rng.bit_generator.state
    state = {name: values.copy() for name, values in chain.state.items()}
    kept, diagnostics = sampler.advance(state, rng, sweeps=sweeps, thin=thin, warming=warming)
    if warming:
        return Chain(rng, state)
    return Chain(rng, state, (*chain.kept, kept), (*chain.diagnostics, diagnostics))


def _joined(chains: list[tuple[Arrays, ...]]) -> Arrays:
    """Pieces one after the other, chains on the first axis."""
    found = {}
    for name in chains[0][0]:
        whole = concatenated([piece[name] for pieces in chains for piece in pieces])
        found[name] = whole.reshape(len(chains), len(whole) // len(chains), *whole.shape[1:])
    return found


def _figures(sampler: Sampler, chains: tuple[Chain, ...]) -> dict[str, float]:
    """Effective draws so far, and the mean of each diagnostic over the last piece."""
    if not chains[0].kept:
        return {}
    shown = {}
    for name in sampler.monitored:
        pieces = [np.concatenate([piece[name] for piece in each.kept]).astype(np.float64) for each in chains]
        shown[f"ESS {name}"] = effective_draws(np.stack(pieces))
    for name in chains[0].diagnostics[-1]:
        shown[name] = float(np.mean([each.diagnostics[-1][name] for each in chains]))
    return shown
