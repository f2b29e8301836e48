"""What can be run, for how long, and where a run is: plain data that the runner and its checkpoints share."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

Arrays = dict[str, NDArray[Any]]

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
    """How long to run: `draws` kept of each chain after `warm_up` sweeps, one every `thin` sweeps.

    `forgotten` draws are made before those: chains that go on because they had not mixed do not keep what was judged.
    """

    chains: int = 4
    warm_up: int = 1000
    draws: int = 1000
    thin: int = 1
    seed: int | None = None
    forgotten: int = 0

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("warm_up", 0), ("draws", 1), ("thin", 1), ("seed", 0), ("forgotten", 0)):
            given = getattr(self, name)
            if name != "seed" or given is not None:
                object.__setattr__(self, name, whole_number(name, given, least=least, example=getattr(Schedule, name) or 1))

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.warm_up + (self.forgotten + self.draws) * self.thin

    def carries_on(self, done: int, forgotten: int) -> bool:
        """Whether a run of so many sweeps that has forgotten so many draws can still become this one."""
        return done <= self.sweeps and forgotten <= self.forgotten

    def longer(self) -> "Schedule":
        """The same chains carried on: twice as many draws, all of them new."""
        return replace(self, forgotten=self.forgotten + self.draws, draws=2 * self.draws)


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """What an engine runs where nothing else is asked for: warm-up, draws at first, sweeps a draw, and where doubling ends."""

    warm_up: int
    draws: int
    longest: int
    thin: int = 1


def silent(done: int, total: int, figures: Mapping[str, float]) -> None:
    """Nobody is watching."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """How to run an inference, whatever its engine.

    `draws` of each chain; left out, chains go on until what was asked for has mixed, at most to `longest` draws, and results
    say so where it has not. `warm_up` sweeps come first, one draw is kept every `thin` sweeps; left out they are the engine's
    own. The same `seed` gives the same draws, with any number of `threads`. A run that was interrupted goes on from its
    `checkpoint`, a file. `progress` is called with the sweeps done, those in all, and figures worth showing.

    >>> Run(draws=500, seed=1).chains
    4
    """

    chains: int = 4
    warm_up: int | None = None
    draws: int | None = None
    thin: int | None = None
    seed: int | None = None
    longest: int | None = None
    threads: int | None = None
    checkpoint: str | Path | None = None
    progress: Progress = silent

    def __post_init__(self) -> None:
        for name, least in (("longest", 1), ("threads", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(name, getattr(self, name), least=least, example=1000))
        if not callable(self.progress):
            raise ModelError("progress must be a function.", hint="progress=lambda done, total, figures: print(done, total)")
        self.schedule(Lengths(warm_up=0, draws=1, longest=1))  # the other numbers are checked there

    def schedule(self, usual: Lengths) -> Schedule:
        """The first length of the run."""
        given = {name: getattr(self, name) for name in ("warm_up", "draws", "thin")}
        chosen = {name: getattr(usual, name) if value is None else value for name, value in given.items()}
        return Schedule(chains=self.chains, seed=self.seed, **chosen)

    def settled(self) -> "Run":
        """The same with a seed, so that the same draws can be made again."""
        return self if self.seed is not None else replace(self, seed=secrets.randbits(63))


@dataclass(frozen=True)
class Chain:
    """One chain in the making; a piece of work gives a new one, so that an interrupted piece leaves the old one as it was."""

    rng: np.random.Generator
    state: Arrays
    kept: tuple[Arrays, ...] = ()
    diagnostics: tuple[Arrays, ...] = ()

    def without(self, draws: int) -> "Chain":
        """The same chain, its first draws forgotten."""
        return replace(self, kept=_later(self.kept, draws), diagnostics=_later(self.diagnostics, draws))


@dataclass(frozen=True)
class Underway:
    """All chains, after the same number of sweeps; what they keep starts after `forgotten` draws."""

    seed: int
    chains: tuple[Chain, ...]
    done: int
    forgotten: int = 0

    def forgetting(self, draws: int) -> "Underway":
        """The same run where that many draws from the first one on are forgotten."""
        more = draws - self.forgotten
        return self if more == 0 else replace(self, chains=tuple(each.without(more) for each in self.chains), forgotten=draws)


def _later(pieces: tuple[Arrays, ...], draws: int) -> tuple[Arrays, ...]:
    """Pieces one after the other without the first draws."""
    joined = joined_pieces(pieces)
    length = len(next(iter(joined.values()))) if joined else 0
    return ({name: values[draws:] for name, values in joined.items()},) if length > draws else ()


def joined_pieces(pieces: tuple[Arrays, ...]) -> Arrays:
    """Pieces one after the other."""
    return {name: concatenated([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else {}


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
