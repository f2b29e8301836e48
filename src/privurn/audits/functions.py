"""Audit a user's function: on cell numbers, counts of cells, raw numbers or labels."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from privurn.audits.target import Target
from privurn.errors import FormatError, ModelError
from privurn.privacy.audit.attack import RAISED, Pair, Progress, each_call
from privurn.privacy.audit.bets import Floats
from privurn.privacy.audit.findings import AuditResult, Claim
from privurn.privacy.audit.neighbours import neighbouring_tables
from privurn.privacy.audit.raw_records import HOSTILE_NUMBERS, NO_NUMBERS
from privurn.privacy.audit.statistics import code, to_batch
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.profile import Neighbouring

Takes = Literal["records", "counts", "values", "labels"]

RUNS = 20_000
"""Outputs with a random mark in one record, at most."""
LONGEST_OUTPUT = 256
"""Entries of an output of which one may be a random mark by chance."""
LARGEST_GUESS = 1e-9
"""Where the chance of that is more, marks say nothing."""
PROBED = 20


def audit_callable(
    function: Callable[[Any], Any],
    claim: Claim,
    *,
    n: int,
    takes: Takes = "records",
    domain: int | Sequence[float] | None = None,
    neighbouring: Neighbouring = "replace-one",
    contributions: int = 1,
    samples: int | None = None,
    failure_probability: float = 1e-3,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Try to refute that a user's `function` keeps the `claim`, (epsilon, delta)-DP.

    It gets a NumPy array and may return a number, an array or anything hashable; its randomness is its own. Under add-remove
    the neighbour has n - 1 records. Left out, `samples` is what the function's speed allows in a minute, 50,000 at most.

    takes
        "records": the number of each record's cell; "counts": the count of each cell; "values": raw numbers, most of them
        within public bounds and some far out of them, infinite or not a number; "labels": texts that nobody listed.
    domain
        The number of cells of records and counts, such as 3; the bounds of raw numbers, such as (0, 100).
    """
    if takes in ("records", "counts"):
        if not isinstance(domain, int):
            raise ModelError("the number of cells is missing.", hint="For example domain=3")
        pairs, support = _cell_pairs(n, domain, takes, neighbouring, contributions), []
    else:
        make = _Values(n, domain) if takes == "values" else _Labels(n)
        pairs = make.pairs(neighbouring, contributions)
        support = [] if claim.finite is None or make.guess > LARGEST_GUESS else [_mark_attack(function, make, claim, samples)]
    seconds = _check_runs(function, pairs[0])
    target = Target(each_call(function), pairs, claim, support=support, seconds=seconds)
    return target.audit(samples=samples, failure_probability=failure_probability, progress=progress)


def _check_runs(function: Callable[[Any], Any], pair: Pair) -> float:
    """Seconds a call. A function that cannot run at all is a mistake on the command line, not a mechanism."""
    start = time.perf_counter()
    outputs = [output for data in (pair.first, pair.second) for output in each_call(function)(data, size=PROBED)]
    if all(isinstance(output, str) and output.startswith(RAISED) for output in outputs):
        raise FormatError(f"the function {outputs[0]} on both tables.", hint="It gets one NumPy array: see takes")
    return (time.perf_counter() - start) / len(outputs) + 1e-5


def _cell_pairs(n: int, cells: int, takes: Takes, neighbouring: Neighbouring, contributions: int) -> list[Pair]:
    found = neighbouring_tables(n=n, cells=cells, neighbouring=neighbouring, contributions=contributions)
    if cells > 2:  # a function may treat cells differently: one in the middle is tried too
        middle = (cells // 2, cells - 1)
        first = neighbouring_tables(n=n, cells=cells, neighbouring=neighbouring, contributions=contributions, differing=middle)[
            0
        ]
        found.append(replace(first, name=f"{first.name}, from a middle cell"))
    pairs = []
    for i, each in enumerate(found):
        sides = each.records(i) if takes == "records" else (each.dense(each.first, cells), each.dense(each.second, cells))
        pairs.append(Pair(each.name, *sides, (each.left, each.right)))
    return pairs


class _Raw(ABC):
    """Arrays of raw records: what most of them hold, and which ones to exchange."""

    marks = 2.0**52
    """How many equally likely marks there are, at least."""

    def __init__(self, n: int) -> None:
        self.n = n

    @property
    def guess(self) -> float:
        """More than the chance of meeting a mark in an output that knows nothing of it."""
        return LONGEST_OUTPUT / self.marks

    @abstractmethod
    def exchanged(self) -> dict[str, tuple[Any, Any, Any]]:
        """For each pair: what the others hold, and what the differing records hold in either data set."""

    @abstractmethod
    def array(self, others: Any, own: Any, number: int, total: int) -> Any:
        """`number` records of one person, the last ones, among `total`."""

    @abstractmethod
    def mark(self) -> tuple[Any, Any]:
        """A random value that nobody can guess, and data in which one record holds it."""

    def pairs(self, neighbouring: Neighbouring, moved: int) -> list[Pair]:
        """Neighbours: the person's records replaced, or gone."""
        if not 1 <= moved <= self.n:
            raise ModelError("the number of records that move must lie between 1 and n.")
        found = []
        for name, (others, one, other) in self.exchanged().items():
            first = self.array(others, one, moved, self.n)
            gone = neighbouring == "add-remove"
            second = self.array(others, other, 0, self.n - moved) if gone else self.array(others, other, moved, self.n)
            found.append(Pair(name, first, second, (one, other)))
        return found


class _Values(_Raw):
    """Numbers, with public bounds that the function is said to clamp to."""

    def __init__(self, n: int, bounds: int | Sequence[float] | None) -> None:
        super().__init__(n)
        ends = () if bounds is None or isinstance(bounds, int) else tuple(map(float, bounds))
        if len(ends) != 2 or not ends[0] < ends[1] or not all(np.isfinite(ends)):
            raise ModelError("raw numbers need public bounds.", hint="For example domain=(0, 100)")
        self.low, self.high = ends
        gap = np.spacing(max(abs(self.low), abs(self.high)))  # marks are rounded to floats, and a float may stand for several
        self.marks = min(2.0**52, (self.high - self.low) / gap) / 2.0

    def exchanged(self) -> dict[str, tuple[float, float, float]]:
        low, high = self.low, self.high
        width = high - low
        found = {
            "from end to end, the others at the lower": (low, high, low),
            "from end to end, the others at the upper": (high, low, high),
            "a number above the bounds": (low, high + 100.0 * width, low),
            "a number below the bounds": (high, low - 100.0 * width, high),
        }
        hostile = HOSTILE_NUMBERS | {name: value for name, value in NO_NUMBERS.items() if isinstance(value, float)}
        return found | {name: (low, value, high if value < 0 else low) for name, value in hostile.items()}

    def array(self, others: float, own: float, number: int, total: int) -> Any:
        return np.append(np.full(total - number, others), np.full(number, own))

    def mark(self) -> tuple[float, Any]:
        value = self.low + (self.high - self.low) * (secrets.randbits(52) / 2.0**52)
        return value, self.array(self.low, value, 1, self.n)


class _Labels(_Raw):
    """Texts; the differing record holds one that nobody else has."""

    def exchanged(self) -> dict[str, tuple[str, str, str]]:
        return {
            "a label nobody else has": ("common", "lone", "common"),
            "one lone label for another": ("common", "lone", "other"),
            "an empty text": ("common", "", "common"),
        }

    def array(self, others: str, own: str, number: int, total: int) -> Any:
        return np.array([others] * (total - number) + [own] * number, dtype=object)

    def mark(self) -> tuple[str, Any]:
        label = secrets.token_hex(8)
        return label, self.array("common", label, 1, self.n)


def _mark_attack(function: Callable[[Any], Any], make: _Raw, claim: Claim, samples: int | None) -> SupportAttack:
    """One record holds a value drawn anew for each output: an output that holds it too has published the record."""
    sample = each_call(function)

    def shares(runs: int) -> Floats:
        found = np.zeros(runs)
        for i in range(runs):
            value, data = make.mark()
            entries = to_batch(sample(data, size=1)).rows.ravel()[:LONGEST_OUTPUT]
            found[i] = bool((entries == code(value)).any())
        return found

    runs = min(RUNS, samples or RUNS)
    return SupportAttack(
        "a record with a random mark", "the record's own value is published", shares, 1, runs, (claim,), make.guess
    )
