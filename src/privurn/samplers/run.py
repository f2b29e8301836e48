"""Run several Markov chains side by side: pieces of work, progress, interruption, and continuing where a run stopped.

A sampler keeps all it needs for the next sweep in plain arrays, and every chain has a random generator of its own. A run
that is stopped after any piece, written to a file and taken up again therefore gives bit by bit what it would have given.
"""

import json
import os
import secrets
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.draws import Draws, effective_draws
from privurn.errors import FormatError, ModelError

Arrays = dict[str, NDArray[Any]]

PIECES = 100
"""A run is done in about this many pieces; between two of them progress is shown and Ctrl-C is heard."""

SAVE_EVERY = 10.0
"""Seconds between two writings of the checkpoint."""

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called with the sweeps done and those in all (over warm-up and draws of one chain), and figures worth showing."""


class Sampler(Protocol):
    """What can be run."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def monitored(self) -> tuple[str, ...]:
        """Variables (one number a draw) whose effective draws the progress bar shows."""

    def fingerprint(self) -> str:
        """Hash of model, data and settings: a checkpoint of another sampler is refused."""

    def start(self, rng: np.random.Generator) -> Arrays:
        """State of a chain before its first sweep, drawn so that several chains start apart."""

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """Do sweeps, changing `state` in place; every thin-th is kept.

        Returns variables and diagnostics, each with kept draws on its first axis. Only while `warming` may it adapt. It must
        not hold Python's lock for long (compiled kernels do not), and must not depend on how a run is cut into pieces.
        """


def whole_number(name: str, given: Any, *, least: int, example: int) -> int:
    """An argument that counts something, checked; NumPy's whole numbers become Python's."""
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, np.integer)) or given < least:
        raise ModelError(f"{name} must be a whole number, at least {least}.", hint=f"For example {name}={example}")
    return int(given)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long to run: `draws` kept of each chain after `warm_up` sweeps, one every `thin` sweeps."""

    chains: int = 4
    warm_up: int = 1000
    draws: int = 1000
    thin: int = 1
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("warm_up", 0), ("draws", 1), ("thin", 1), ("seed", 0)):
            given = getattr(self, name)
            if name != "seed" or given is not None:
                object.__setattr__(self, name, whole_number(name, given, least=least, example=getattr(Schedule, name) or 1))

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.warm_up + self.draws * self.thin


@dataclass(frozen=True)
class _Chain:
    """One chain in the making; a piece of work gives a new one, so that an interrupted piece leaves the old one as it was."""

    rng: np.random.Generator
    state: Arrays
    kept: tuple[Arrays, ...] = ()
    diagnostics: tuple[Arrays, ...] = ()


@dataclass(frozen=True)
class _Run:
    """All chains, after the same number of sweeps."""

    seed: int
    chains: tuple[_Chain, ...]
    done: int


def run_chains(
    sampler: Sampler,
    *,
    schedule: Schedule,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = lambda done, total, figures: None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Draws:
    """Draws of all chains; the same for any number of threads.

    With `checkpoint` the run is written to that file every few seconds and when it is interrupted; the same call then goes
    on from there, also with more `draws` than before. The file is left when the run is done.
    """
    if not isinstance(schedule, Schedule):
        raise ModelError("a run needs a schedule.", hint="schedule=Schedule(chains=4, warm_up=1000, draws=1000)")
    if not callable(progress):
        raise ModelError("progress must be a function.", hint="progress=lambda done, total, figures: print(done, total)")
    if threads is not None:
        threads = whole_number("threads", threads, least=1, example=2)
    file = None if checkpoint is None else _checkpoint(checkpoint)
    run = _begin(sampler, schedule) if file is None or not file.exists() else _restore(file, sampler, schedule)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    saved = time.monotonic()
    pool = ThreadPoolExecutor(min(schedule.chains, threads or cores))
    try:
        while run.done < schedule.sweeps:
            sweeps = _piece(schedule, run.done)
            warming = run.done < schedule.warm_up
            jobs = [pool.submit(_advance, sampler, each, sweeps, schedule.thin, warming) for each in run.chains]
            run = _Run(run.seed, tuple(job.result() for job in jobs), run.done + sweeps)
            progress(run.done, schedule.sweeps, _figures(sampler, run.chains))
            if file is not None and time.monotonic() - saved > SAVE_EVERY:
                _save(file, sampler, schedule, run)
                saved = time.monotonic()
    finally:
        pool.shutdown(cancel_futures=True)
        if file is not None:
            _save(file, sampler, schedule, run)
    return Draws(
        variables=_joined([each.kept for each in run.chains]),
        sample_stats=_joined([each.diagnostics for each in run.chains]),
        markov=True,
        dims=dict(dims or {}),
        coords=dict(coords or {}),
        attributes={"sampler": sampler.name, **asdict(schedule), "seed": run.seed, **(attributes or {})},
    )


def _checkpoint(given: str | Path) -> Path:
    """The file of a checkpoint, checked before any work is done."""
    if not isinstance(given, (str, os.PathLike)):
        raise FormatError("a checkpoint is the name of a file.", hint='For example checkpoint="run.ckpt"')
    file = Path(given)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise FormatError(f"no checkpoint can be written to {str(file)!r}.", hint="Name a file in a folder that exists")
    return file


def _begin(sampler: Sampler, schedule: Schedule) -> _Run:
    seed = secrets.randbits(63) if schedule.seed is None else schedule.seed
    generators = [np.random.Generator(np.random.PCG64(each)) for each in np.random.SeedSequence(seed).spawn(schedule.chains)]
    return _Run(seed, tuple(_Chain(rng, sampler.start(rng)) for rng in generators), 0)


def _piece(schedule: Schedule, done: int) -> int:
    """Sweeps until the next stop: a multiple of thin, and never across the end of the warm-up."""
    if done < schedule.warm_up:
        return min(max(1, schedule.warm_up // PIECES), schedule.warm_up - done)
    left = (schedule.sweeps - done) // schedule.thin
    return schedule.thin * min(max(1, schedule.draws // PIECES), left)


def _advance(sampler: Sampler, chain: _Chain, sweeps: int, thin: int, warming: bool) -> _Chain:
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = chain.rng.bit_generator.state
    state = {name: values.copy() for name, values in chain.state.items()}
    kept, diagnostics = sampler.advance(state, rng, sweeps=sweeps, thin=thin, warming=warming)
    if warming:
        return _Chain(rng, state)
    return _Chain(rng, state, (*chain.kept, kept), (*chain.diagnostics, diagnostics))


def concatenated(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Pieces one after the other; where draws of one are longer than those of another, the shorter end in zeros."""
    longest = tuple(max(sizes) for sizes in zip(*(each.shape[1:] for each in pieces), strict=True))
    if all(each.shape[1:] == longest for each in pieces):
        return np.concatenate(pieces)
    whole = np.zeros((sum(map(len, pieces)), *longest), pieces[0].dtype)
    first = 0
    for each in pieces:
        whole[(slice(first, first + len(each)), *(slice(size) for size in each.shape[1:]))] = each
        first += len(each)
    return whole


def _joined(chains: list[tuple[Arrays, ...]]) -> Arrays:
    """Pieces one after the other, chains on the first axis."""
    found = {}
    for name in chains[0][0]:
        whole = concatenated([piece[name] for pieces in chains for piece in pieces])
        found[name] = whole.reshape(len(chains), len(whole) // len(chains), *whole.shape[1:])
    return found


def _figures(sampler: Sampler, chains: tuple[_Chain, ...]) -> dict[str, float]:
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


def _save(file: Path, sampler: Sampler, schedule: Schedule, run: _Run) -> None:
    """One file, written beside and then renamed: a kill in the middle leaves the one before."""
    arrays: Arrays = {}
    for i, chain in enumerate(run.chains):
        arrays |= {f"{i}/state/{name}": values for name, values in chain.state.items()}
        if chain.kept:
            for kind, pieces in (("kept", chain.kept), ("diagnostics", chain.diagnostics)):
                arrays |= {f"{i}/{kind}/{name}": concatenated([piece[name] for piece in pieces]) for name in pieces[0]}
    header = {
        "fingerprint": sampler.fingerprint(),
        "schedule": asdict(schedule) | {"seed": run.seed},
        "done": run.done,
        "generators": [each.rng.bit_generator.state for each in run.chains],
    }
    handle, partial = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".npz", dir=file.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez(out, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
            out.flush()
            os.fsync(out.fileno())
        Path(partial).replace(file)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _restore(file: Path, sampler: Sampler, schedule: Schedule) -> _Run:
    try:
        with np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        generators, done, before = header["generators"], int(header["done"]), dict(header["schedule"])
        fingerprint = header["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        raise FormatError(f"the checkpoint {str(file)!r} cannot be read.", hint="Remove it to start anew") from None
    asked = asdict(schedule)
    fixed = ("chains", "warm_up", "thin") + (() if schedule.seed is None else ("seed",))
    if fingerprint != sampler.fingerprint() or any(before.get(key) != asked[key] for key in fixed) or done > schedule.sweeps:
        raise FormatError(
            f"the checkpoint {str(file)!r} belongs to another run.",
            hint="Same data, model, chains, warm-up, thinning and seed, and no fewer draws; or remove it to start anew",
        )
    chains = []
    for i, generator in enumerate(generators):
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = generator
        parts: dict[str, Arrays] = {"state": {}, "kept": {}, "diagnostics": {}}
        for name, values in arrays.items():
            chain, kind, key = name.split("/", 2)
            if int(chain) == i:
                parts[kind][key] = values
        kept = (parts["kept"],) if parts["kept"] else ()
        chains.append(_Chain(rng, parts["state"], kept, (parts["diagnostics"],) if kept else ()))
    return _Run(int(before["seed"]), tuple(chains), done)
