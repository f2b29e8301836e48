"""Audit a mechanism from outside: lower bounds on its epsilon that hold with a stated probability.

For two neighbouring data sets x, y and any event B fixed beforehand, (epsilon, delta)-DP says P_x(B) <= e^epsilon P_y(B) +
delta. Half of the outputs, on every pair of neighbours, learns and chooses events that separate x from y. An eighth compares
the most promising ones once more, and the rest goes to the pair that came out best: outputs that the choice has not seen are
bet against the claim (bets.py). The failure probability is split over the bets, so all findings of an audit hold
together with probability at least 1 - failure_probability, whatever the mechanism.

    pairs --learn, choose, compare--> events --fresh outputs--> findings
    marks ------------------------------------fresh outputs--> findings (support.py)

An audit convicts; it never acquits. It says which leaks it could have seen (power.py).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privurn.errors import FormatError, ModelError
from privurn.privacy.audit.bets import LARGEST, PairCounts, check_failure, largest_refuted, log_wealth, pair_stakes
from privurn.privacy.audit.bits import bit_statistics
from privurn.privacy.audit.events import Candidate, Event, best_events
from privurn.privacy.audit.findings import AuditResult, Claim, Finding
from privurn.privacy.audit.power import Power, least_leak_in_pairs
from privurn.privacy.audit.statistics import Batch, Floats, Statistic, learned_statistics, standard_statistics, to_batch
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.profile import LARGEST_EPSILON, check_delta

BATCH_ENTRIES = 2**22
"""Most numbers held at once (32 megabytes)."""
PROBES = 16
"""Outputs drawn to see how long one is; they are not used."""
COMPARED = 3
"""Pairs whose events are compared once more before the test."""
SMALLEST_AUDIT = 100
RAISED = "raised"
"""First word of the output that stands for an exception."""

Progress = Callable[[int, int], None]
"""Called with outputs drawn so far and outputs wanted."""


class Sampler(Protocol):
    """A mechanism as the audit sees it."""

    def __call__(self, data: Any, /, *, size: int) -> Any:
        """`size` independent outputs on `data`: an array whose first axis counts them, or a sequence."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring data sets, the values in which they differ, and what else to look at on them."""

    name: str
    first: Any
    second: Any
    marked: tuple[Hashable, ...] = ()
    looks: tuple[Statistic, ...] = ()


def audit(
    sampler: Sampler,
    *,
    pairs: Sequence[Pair],
    epsilon: float | None,
    delta: float = 0.0,
    samples: int = 100_000,
    failure_probability: float = 1e-3,
    claims: Sequence[Claim] = (),
    support: Sequence[SupportAttack] = (),
    statistics: Sequence[Statistic] = (),
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Test the claim that a mechanism is (epsilon, delta)-DP on pairs of neighbouring data sets.

    Parameters
    ----------
    sampler
        The mechanism; `each_call` makes one from a function that gives one output a call.
    epsilon
        The claim. None: only the lower bound is wanted.
    samples
        Outputs drawn on each data set of each pair, on average: half of all choose events on every pair, an eighth compares the
        best of them, and the rest tests what is left.
    claims
        More that is claimed of the same mechanism, such as delta at another epsilon.
    support
        Attacks with marks that only one record carries.
    statistics
        More things to look at than the standard ones.

    Examples
    --------
    Randomised response that keeps the truth with probability 0.9 has epsilon = log 9 = 2.197:

    >>> rng = np.random.default_rng(1)
    >>> def answer(truth, *, size):
    ...     return np.where(rng.random(size) < 0.9, truth, 1 - truth)
    >>> result = audit(answer, pairs=[Pair("yes or no", 1, 0)], epsilon=1.0, samples=20_000)
    >>> result.convicted, round(result.epsilon_lower, 1)
    (True, 2.1)
    """
    if epsilon is not None and not (0.0 <= epsilon <= LARGEST_EPSILON or epsilon == math.inf):
        raise ModelError("the claimed epsilon must be 0 or more.", hint="For example epsilon=1.0")
    check_delta(delta)
    if not pairs:
        raise ModelError("an audit needs at least one pair of neighbouring data sets.")
    if samples < SMALLEST_AUDIT:
        raise ModelError(f"an audit needs at least {SMALLEST_AUDIT} samples.", hint="For example samples=100000")
    check_failure(failure_probability)
    goals = _goals(Claim(epsilon, delta), claims)
    n_bets = 2 * len(goals) + sum(len(attack.claims) for attack in support)
    failure = failure_probability / n_bets
    run = _Run(sampler, samples, len(pairs), goals, failure, statistics, progress)
    findings, power = run.examine(pairs)
    for attack in support:
        findings += attack.findings(failure=failure)
        power += attack.power(failure=failure)
    names = tuple(pair.name for pair in pairs)
    return AuditResult(tuple(findings), epsilon, delta, samples, failure_probability, names, tuple(power))


@dataclass(frozen=True)
class Goal:
    """What an event is chosen for: to refute a claim (`at` is its epsilon), or the largest epsilon (None)."""

    claim: Claim
    at: float | None


Shortlist = dict[Goal, list[Candidate]]
"""The most promising events of a pair, for each goal."""


def _goals(main: Claim, others: Sequence[Claim]) -> list[Goal]:
    found = [Goal(claim, claim.finite) for claim in (main, *others) if claim.finite is not None]
    return [*found, Goal(main, None)]


class _Run:
    """Learn and choose on every pair; then test on the pairs that promise most, each step on outputs of its own."""

    def __init__(
        self,
        sampler: Sampler,
        samples: int,
        n_pairs: int,
        goals: Sequence[Goal],
        failure: float,
        extra: Sequence[Statistic],
        progress: Progress,
    ) -> None:
        self.sampler, self.samples, self.goals, self.failure, self.extra = sampler, samples, goals, failure, extra
        self.needed = -math.log(failure)
        self.report = progress
        self.wanted = 2 * samples * n_pairs
        self.n_test = (samples - samples // 2) * n_pairs
        """Outputs on each side that the test may draw in all."""
        self.n_compare = self.n_test // 4
        """Of these, outputs that compare events once more before the test."""
        self.drawn = 0
        self.rooms: dict[int, int] = {}

    def examine(self, pairs: Sequence[Pair]) -> tuple[list[Finding], list[Power]]:
        """Findings, and what the tests could have seen."""
        chosen = [self._candidates(pair) for pair in pairs]
        finalists = self._compare(pairs, chosen)
        size = (self.n_test - self.n_compare) // len(finalists)
        findings: list[Finding] = []
        for i, events in finalists.items():
            findings += self._test(pairs[i], events, size)
        self.report(self.wanted, self.wanted)
        power = [
            Power(
                attack="learned events",
                of=goal.claim.of,
                trials=size,
                leak=least_leak_in_pairs(size, epsilon=goal.at, delta=goal.claim.delta, needed=self.needed),
                delta=goal.claim.delta,
                provided="provided that the choice has singled it out",
            )
            for goal in self.goals
            if goal.at is not None
        ]
        return findings, power

    def _compare(self, pairs: Sequence[Pair], chosen: list[Shortlist]) -> dict[int, list[tuple[Goal, Candidate]]]:
        """The pair and the events that win most against each claim on fresh outputs: promises alone follow the noise."""
        claims = [goal for goal in self.goals if goal.at is not None] or self.goals
        ranked = {goal: sorted(range(len(pairs)), key=lambda i: -max(e.promise for e in chosen[i][goal])) for goal in claims}
        listed = sorted({i for goal in claims for i in ranked[goal][:COMPARED]})
        size = self.n_compare // len(listed)
        wealth: dict[tuple[Goal, int], list[tuple[float, Candidate]]] = {}
        for i in listed:
            looks = {each.event.statistic.name: each.event.statistic for goal in claims for each in chosen[i][goal]}
            seen = self._both(pairs[i], size, list(looks.values()))
            for goal in claims:
                wealth[goal, i] = [(self._wealth(each, goal, seen), each) for each in chosen[i][goal]]
        finalists: dict[int, list[tuple[Goal, Candidate]]] = {}
        for goal in self.goals:
            if goal in claims:
                i = max(listed, key=lambda i: max(each for each, _ in wealth[goal, i]))
                scored = wealth[goal, i]
            else:  # the largest epsilon, on a pair that is tested anyway
                i = next(iter(finalists))
                scored = [(each.promise, each) for each in chosen[i][goal]]
            for order in (0, 1):
                best = max((pair for pair in scored if pair[1].order == order), key=lambda pair: pair[0])
                finalists.setdefault(i, []).append((goal, best[1]))
        return finalists

    def _wealth(self, each: Candidate, goal: Goal, seen: list[dict[str, Floats]]) -> float:
        if goal.at is None:
            return each.promise
        name = each.event.statistic.name
        first, second = (each.event.contains(seen[side][name]) for side in (each.order, 1 - each.order))
        stakes = pair_stakes(goal.at, goal.claim.delta)
        return log_wealth(PairCounts.of(first, second), epsilon=goal.at, delta=goal.claim.delta, stakes=stakes)

    def _candidates(self, pair: Pair) -> Shortlist:
        """For each goal the best events in either direction."""
        n_learn = min(self.samples // 4, self._room(pair))
        n_choose = self.samples // 2 - n_learn
        batches = [self._draw(data, n_learn) for data in (pair.first, pair.second)]
        looks = [*standard_statistics(pair.marked), *learned_statistics(*batches), *bit_statistics(batches, pair.marked)]
        looks += [*pair.looks, *self.extra]
        learned = [{look.name: look.values(batch) for look in looks} for batch in batches]
        chosen = self._both(pair, n_choose, looks)
        found = best_events(
            looks,
            learned,
            chosen,
            goals=[(goal.at, goal.claim.delta) for goal in self.goals],
            tests=self.n_test,
            needed=self.needed,
        )
        return dict(zip(self.goals, found, strict=True))

    def _test(self, pair: Pair, events: Sequence[tuple[Goal, Candidate]], size: int) -> list[Finding]:
        needed = {each.event.statistic.name: each.event.statistic for _, each in events}
        tested = self._both(pair, size, list(needed.values()))
        return [self._finding(pair, goal, each.order, each.event, tested) for goal, each in events]

    def _finding(self, pair: Pair, goal: Goal, order: int, event: Event, tested: list[dict[str, Floats]]) -> Finding:
        first, second = (event.contains(values[event.statistic.name]) for values in (tested[order], tested[1 - order]))
        counts, claim = PairCounts.of(first, second), goal.claim
        stakes = pair_stakes(goal.at, claim.delta)

        def wealth(epsilon: float, delta: float) -> float:
            return log_wealth(counts, epsilon=epsilon, delta=delta, stakes=stakes)

        at = claim.finite
        epsilon_lower = largest_refuted(lambda x: wealth(x, claim.delta), needed=self.needed, most=LARGEST)
        delta_lower = None if at is None else largest_refuted(lambda x: wealth(at, x), needed=self.needed, most=1.0) or 0.0
        evidence = wealth(at or 0.0, claim.delta)
        return Finding(
            pair=pair.name,
            direction="second over first" if order else "first over second",
            event=event.description,
            claim=claim,
            hits=(int(first.sum()), int(second.sum())),
            trials=counts.trials,
            evidence=evidence,
            convicted=at is not None and evidence >= self.needed,
            epsilon_lower=epsilon_lower or 0.0,
            delta_lower=delta_lower,
        )

    def _room(self, pair: Pair) -> int:
        """Outputs that may be held at once."""
        if id(pair) not in self.rooms:
            widest = max(to_batch(self.sampler(data, size=PROBES)).width for data in (pair.first, pair.second))
            self.rooms[id(pair)] = max(PROBES, BATCH_ENTRIES // widest)
        return self.rooms[id(pair)]

    def _both(self, pair: Pair, size: int, looks: Sequence[Statistic]) -> list[dict[str, Floats]]:
        """Every statistic of `size` outputs on each side, in batches that fit in memory."""
        sides, room = [], self._room(pair)
        for data in (pair.first, pair.second):
            pieces = []
            for start in range(0, size, room):
                batch = self._draw(data, min(room, size - start))
                pieces.append([look.values(batch) for look in looks])
            sides.append({look.name: np.concatenate([piece[i] for piece in pieces]) for i, look in enumerate(looks)})
        return sides

    def _draw(self, data: Any, size: int) -> Batch:
        batch = to_batch(self.sampler(data, size=size))
        if len(batch) != size:
            raise FormatError("the audited sampler gave another number of outputs than it was asked for.")
        self.drawn += size
        self.report(min(self.drawn, self.wanted), self.wanted)
        return batch


def each_call(function: Callable[[Any], Any]) -> Sampler:
    """A sampler from a function that gives one output a call.

    An exception is an output too: where a mechanism fails on one data set and not on its neighbour, that shows.
    """

    def sample(data: Any, /, *, size: int) -> list[Any]:
        outputs = []
        for _ in range(size):
            try:
                outputs.append(function(data))
            except Exception as error:
                outputs.append(f"{RAISED} {type(error).__name__}")
        return outputs

    return sample
