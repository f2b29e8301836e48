"""Audit a mechanism from outside: lower bounds on its epsilon that hold with a stated probability.

For two neighbouring data sets x, y and any event B fixed beforehand, (epsilon, delta)-DP says P_x(B) <= e^epsilon P_y(B) +
delta. One part of the outputs learns and chooses events that separate x from y; outputs the choice has not seen count how
often they happen, and exact binomial (Clopper-Pearson) bounds p <= P_x(B), q >= P_y(B) give epsilon >= log((p - delta)/q).
The failure probability is split over pairs, directions, events and the two bounds, so all findings of an audit hold
together with probability at least 1 - failure_probability, whatever the mechanism.

An audit convicts; it never acquits. A leak that shows in one output of a million stays unseen in a thousand.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from privurn.errors import FormatError, ModelError
from privurn.privacy.audit_events import Event, best_events
from privurn.privacy.audit_statistics import Batch, Floats, Statistic, learned_statistics, standard_statistics, to_batch
from privurn.privacy.profile import LARGEST_EPSILON, check_delta

BATCH_ENTRIES = 2**22
"""Most numbers held at once (32 megabytes)."""
PROBES = 16
"""Outputs drawn to see how long one is; they are not used."""
SMALLEST_AUDIT = 100
RAISED = "raised"
"""First word of the output that stands for an exception."""
HONEST = 1e-9
"""Relative allowance for the rounding of the inverse beta function; bounds move away from a conviction by it."""

Progress = Callable[[int, int], None]
"""Called with outputs drawn so far and outputs wanted."""


class Sampler(Protocol):
    """A mechanism as the audit sees it."""

    def __call__(self, data: Any, /, *, size: int) -> Any:
        """`size` independent outputs on `data`: an array whose first axis counts them, or a sequence."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring data sets, and the values in which they differ."""

    name: str
    first: Any
    second: Any
    marked: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One event on one pair, in one direction: how often it happened on each side, and what that proves."""

    pair: str
    direction: Literal["first over second", "second over first"]
    event: str
    hits: tuple[int, int]
    trials: int
    probability_at_least: float
    other_probability_at_most: float
    epsilon_lower: float
    """log((p - delta)/q), 0 where that is negative."""
    delta_lower: float | None
    """p - e^epsilon q at the claimed epsilon, 0 where that is negative; None without a claim."""


@dataclass(frozen=True)
class AuditResult:
    """All findings. They hold together with probability at least 1 - failure_probability."""

    findings: tuple[Finding, ...]
    epsilon: float | None
    """The claim that was tested; None or infinite cannot be refuted."""
    delta: float
    samples: int
    failure_probability: float

    @property
    def strongest(self) -> Finding:
        """The finding with the largest epsilon."""
        return max(self.findings, key=lambda finding: (finding.epsilon_lower, finding.delta_lower or 0.0))

    @property
    def epsilon_lower(self) -> float:
        """The mechanism's epsilon at `delta` is at least this."""
        return self.strongest.epsilon_lower

    @property
    def delta_lower(self) -> float | None:
        """The mechanism's delta at the claimed epsilon is at least this."""
        found = [finding.delta_lower for finding in self.findings if finding.delta_lower is not None]
        return max(found) if found else None

    @property
    def convicted(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon is not None and self.epsilon_lower > self.epsilon

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        from dataclasses import asdict

        claim = None if self.epsilon is None or math.isinf(self.epsilon) else self.epsilon
        return {
            "convicted": self.convicted,
            "epsilon_lower": self.epsilon_lower,
            "delta_lower": self.delta_lower,
            "epsilon": claim,
            "delta": self.delta,
            "failure_probability": self.failure_probability,
            "samples": self.samples,
            "findings": [{**asdict(finding), "hits": list(finding.hits)} for finding in self.findings],
        }


def audit(
    sampler: Sampler,
    *,
    pairs: Sequence[Pair],
    epsilon: float | None,
    delta: float = 0.0,
    samples: int = 100_000,
    failure_probability: float = 1e-3,
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
        Outputs drawn on each data set of each pair: half to choose events, half to test them.
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
    if not 0.0 < failure_probability < 1.0:
        raise ModelError("the failure probability must lie strictly between 0 and 1.", hint="For example 1e-3")
    goals: list[float | None] = [None] if epsilon is None or math.isinf(epsilon) else [None, epsilon]
    each = failure_probability / (len(pairs) * 2 * len(goals) * 2)
    claim = _Claim(epsilon=goals[-1], delta=delta, goals=tuple(goals), failure=each)
    findings: list[Finding] = []
    for i, pair in enumerate(pairs):
        done = 2 * samples * i
        step = lambda drawn, done=done: progress(done + drawn, 2 * samples * len(pairs))  # noqa: E731
        findings += _Examination(sampler, pair, claim, statistics, step).findings(samples)
    return AuditResult(tuple(findings), epsilon, delta, samples, failure_probability)


@dataclass(frozen=True)
class _Claim:
    """What is tested, what events are chosen for (None: the largest epsilon), and the failure allowed to each bound."""

    epsilon: float | None
    delta: float
    goals: tuple[float | None, ...]
    failure: float


class _Examination:
    """One pair: learn statistics, choose events, test them, each on outputs of its own."""

    def __init__(
        self, sampler: Sampler, pair: Pair, claim: _Claim, extra: Sequence[Statistic], progress: Callable[[int], None]
    ) -> None:
        self.sampler, self.pair, self.claim, self.extra, self.progress = sampler, pair, claim, extra, progress
        self.drawn = 0

    def findings(self, samples: int) -> list[Finding]:
        widest = max(self._draw(data, PROBES).width for data in (self.pair.first, self.pair.second))
        self.drawn = 0
        room = max(PROBES, BATCH_ENTRIES // widest)
        n_learn = min(samples // 4, room)
        n_choose = samples // 2 - n_learn
        n_test = samples - n_learn - n_choose
        batches = [self._draw(data, n_learn) for data in (self.pair.first, self.pair.second)]
        looks = [*standard_statistics(self.pair.marked), *learned_statistics(*batches), *self.extra]
        learned = [{look.name: look.values(batch) for look in looks} for batch in batches]
        chosen = self._both(n_choose, looks, room)
        events = best_events(looks, learned, chosen, goals=self.claim.goals, delta=self.claim.delta, failure=self.claim.failure)
        events = list({(order, event.description, event.members): (order, event) for order, event in events}.values())
        needed = {event.statistic.name: event.statistic for _, event in events}
        tested = self._both(n_test, list(needed.values()), room)
        return [self._finding(event, order, tested, n_test) for order, event in events]

    def _finding(self, event: Event, order: int, tested: list[dict[str, Floats]], trials: int) -> Finding:
        first, second = (
            int(event.contains(values[event.statistic.name]).sum()) for values in (tested[order], tested[1 - order])
        )
        p, q = smallest_probability(first, trials, self.claim.failure), largest_probability(second, trials, self.claim.failure)
        gap = p - self.claim.delta
        return Finding(
            pair=self.pair.name,
            direction="second over first" if order else "first over second",
            event=event.description,
            hits=(first, second),
            trials=trials,
            probability_at_least=p,
            other_probability_at_most=q,
            epsilon_lower=max(0.0, math.log(gap / q)) if gap > 0.0 else 0.0,
            delta_lower=None if self.claim.epsilon is None else max(0.0, p - math.exp(self.claim.epsilon) * q),
        )

    def _both(self, size: int, looks: Sequence[Statistic], room: int) -> list[dict[str, Floats]]:
        """Every statistic of `size` outputs on each side, in batches that fit in memory."""
        sides = []
        for data in (self.pair.first, self.pair.second):
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
        self.progress(self.drawn)
        return batch


def smallest_probability(hits: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: an event that happened `hits` times is at least this likely, but for `failure`.

    >>> smallest_probability(0, 100, 0.05), round(smallest_probability(100, 100, 0.05), 4)
    (0.0, 0.9705)
    """
    from scipy.special import betaincinv

    return 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, failure)) * (1.0 - HONEST)


def largest_probability(hits: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: an event that happened `hits` times is at most this likely, but for `failure`.

    >>> round(largest_probability(0, 100, 0.05), 4), largest_probability(100, 100, 0.05)
    (0.0295, 1.0)
    """
    from scipy.special import betainccinv

    return 1.0 if hits == trials else min(1.0, float(betainccinv(hits + 1, trials - hits, failure)) * (1.0 + HONEST))


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
