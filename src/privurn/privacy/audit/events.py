"""Which event to test: thresholds and learned sets of values, compared on outputs that the test will not use.

The choice may be as greedy as it likes. Whatever it picks, the test on fresh outputs stays exact; a bad choice only
finds less.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.audit.bets import LARGEST, STAKES
from privurn.privacy.audit.statistics import Floats, Statistic, position_of, readable

MOST_THRESHOLDS = 256
SHORTLISTED = 3
"""Events of different statistics that are compared once more before the test."""
MOST_VALUES = 512
"""Distinct values that a learned set tells apart; ordered statistics with more are cut into that many intervals."""


@dataclass(frozen=True, eq=False)
class Classes:
    """A statistic's values sorted into classes: one for each known value, or intervals between `points`."""

    points: Floats
    intervals: bool

    @classmethod
    def learn(cls, values: Floats, *, ordered: bool) -> "Classes":
        """Classes from values that were seen."""
        distinct, tally = np.unique(values, return_counts=True)
        if len(distinct) <= MOST_VALUES:
            return cls(distinct, False)
        if ordered:
            return cls(np.unique(np.sort(values)[:: -(-len(values) // MOST_VALUES)]), True)
        return cls(np.sort(distinct[np.argsort(tally, kind="stable")[-MOST_VALUES:]]), False)

    @property
    def size(self) -> int:
        """Number of classes, that of values never seen included (the last one)."""
        return len(self.points) + 1

    def of(self, values: Floats) -> NDArray[np.int64]:
        """Class of each value."""
        return np.searchsorted(self.points, values, side="right") if self.intervals else position_of(values, self.points)

    def tally(self, values: Floats) -> NDArray[np.int64]:
        """How many values fall into each class."""
        return np.bincount(self.of(values), minlength=self.size)


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs: those whose statistic passes a threshold, or falls into one of some classes."""

    statistic: Statistic
    kind: Literal["at least", "at most", "one of"]
    threshold: float = 0.0
    classes: Classes | None = None
    members: tuple[int, ...] = ()

    def contains(self, values: Floats) -> NDArray[np.bool_]:
        """Whether each output is in the event, from its statistic."""
        if self.classes is None:
            return values >= self.threshold if self.kind == "at least" else values <= self.threshold
        member = np.zeros(self.classes.size, np.bool_)
        member[list(self.members)] = True
        return member[self.classes.of(values)]

    @property
    def description(self) -> str:
        """For a report."""
        if self.classes is None:
            return f"{self.statistic.name} {self.kind} {readable(self.threshold)}"
        if self.statistic.ordered and not self.classes.intervals and len(self.members) <= 4:
            values = sorted(float(self.classes.points[i]) for i in self.members)
            return f"{self.statistic.name} one of {', '.join(readable(value) for value in values)}"
        return f"{self.statistic.name} in a learned set of {len(self.members)}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event in one direction (order 0: likelier on the first data set), and what it promises to prove."""

    promise: float
    order: int
    event: Event


@dataclass(frozen=True)
class Prospect:
    """What a test of an event would prove: `goal` and `delta` of the claim, `tests` outputs a side, the log wealth `needed`.

    A goal of None is the largest epsilon at `delta`, a goal of epsilon the largest delta there.
    """

    goal: float | None
    delta: float
    tests: int
    needed: float

    def promises(self, first: NDArray[np.int64], second: NDArray[np.int64], trials: int) -> Floats:
        """For each event, from how often it happened in `trials` outputs on either side.

        The shares are moved by a standard error against the event, for what the choice does not know, and then by what the
        bet will need: sqrt(2 L V/m) + L b/m for gains of variance V and at most b, with m outputs to reach a log wealth of L.
        """
        p, q = _wilson(first, trials, -1.0), _wilson(second, trials, 1.0)
        unit = (self.needed + math.log(STAKES)) / self.tests
        if self.goal is None:
            least = p - np.sqrt(2.0 * unit * p) - unit - self.delta
            most = q + np.sqrt(2.0 * unit * q) + unit
            return np.where(least > 0.0, np.log(np.maximum(least, 1e-300) / most), least - 1.0)
        odds = math.exp(min(self.goal, LARGEST))
        spread = np.sqrt(2.0 * unit * (p + odds * odds * q)) + unit * odds
        return p - odds * q - self.delta - spread


def best_events(
    statistics: Sequence[Statistic],
    learned: Sequence[Mapping[str, Floats]],
    chosen: Sequence[Mapping[str, Floats]],
    *,
    goals: Sequence[tuple[float | None, float]],
    tests: int,
    needed: float,
) -> list[list[Candidate]]:
    """For each goal (epsilon or None, delta), the `SHORTLISTED` events that promise most in either direction, best first.

    `learned` and `chosen` hold each statistic's values on the two data sets: the first to order classes by their likelihood
    ratio, the second to compare events.
    """
    searches = [
        _Search(look, *(np.stack(sides) for sides in ([side[look.name] for side in part] for part in (learned, chosen))))
        for look in statistics
    ]
    found = []
    for goal, delta in goals:
        prospect = Prospect(goal, delta, tests, needed)
        shortlist: list[Candidate] = []
        for order in (0, 1):
            ranked = sorted((each.best(order, prospect) for each in searches), key=lambda each: -each.promise)
            shortlist += ranked[:SHORTLISTED]
        found.append(shortlist)
    return found


class _Search:
    """All events of one statistic, counted once for both directions and all goals."""

    def __init__(self, statistic: Statistic, learned: Floats, chosen: Floats) -> None:
        self.statistic = statistic
        self.trials = chosen.shape[1]
        self.classes = Classes.learn(learned.reshape(-1), ordered=statistic.ordered)
        self.learned = [self.classes.tally(side) for side in learned]
        self.chosen = [self.classes.tally(side) for side in chosen]
        if statistic.ordered:
            sides = np.sort(chosen, axis=1)
            points = np.unique(sides)
            self.points = points[:: -(-len(points) // MOST_THRESHOLDS)]
            self.above = [self.trials - np.searchsorted(side, self.points, side="left") for side in sides]
            self.below = [np.searchsorted(side, self.points, side="right") for side in sides]

    def best(self, order: int, prospect: Prospect) -> Candidate:
        """Largest promise and its event; a threshold wins over a set that promises the same."""

        def promise(hits: Sequence[NDArray[np.int64]]) -> Floats:
            return prospect.promises(hits[order], hits[1 - order], self.trials)

        found: list[Candidate] = []
        if self.statistic.ordered:
            kinds: tuple[tuple[Literal["at least", "at most"], list[NDArray[np.int64]]], ...]
            kinds = (("at least", self.above), ("at most", self.below))
            for kind, hits in kinds:
                gain = promise(hits)
                i = int(np.argmax(gain))
                found.append(Candidate(float(gain[i]), order, Event(self.statistic, kind, float(self.points[i]))))
        # Neyman and Pearson: the best sets are those of the largest likelihood ratios
        ratio = (self.learned[order] + 0.5) / (self.learned[1 - order] + 0.5)
        ranked = np.argsort(-ratio, kind="stable")
        if not self.classes.intervals:
            ranked = ranked[ranked != self.classes.size - 1]  # nothing is known of values never seen
        gain = promise([np.cumsum(side[ranked]) for side in self.chosen])
        last = int(np.argmax(gain))
        members = tuple(ranked[: last + 1].tolist())
        found.append(
            Candidate(float(gain[last]), order, Event(self.statistic, "one of", classes=self.classes, members=members))
        )
        return max(found, key=lambda each: each.promise)


def _wilson(hits: NDArray[np.int64], trials: int, z: float) -> Floats:
    """Wilson's bound for a share: upper for z > 0, lower for z < 0; in (0, 1]."""
    share = hits / trials
    spread = z * np.sqrt(share * (1.0 - share) / trials + z * z / (4.0 * trials * trials))
    return np.clip((share + z * z / (2.0 * trials) + spread) / (1.0 + z * z / trials), 1e-300, 1.0)
