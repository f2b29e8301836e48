"""What an auditor looks at: outputs of any kind as rows of numbers, and statistics of such rows.

Every statistic is a function of one output alone, never of the batch it came in: only then is what the audit counts a
binomial number. Two outputs that share a code by accident only hide a leak; they never invent one.
"""

import hashlib
import math
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError

Floats = NDArray[np.float64]

ABSENT = -1.5e300
"""Stands where an output has no number: an entry past its end, or not-a-number."""
LARGEST = 1e300
CODE_BITS = 52
"""Codes of whole outputs and of labels are whole numbers that a float holds exactly."""
LEARNED_VALUES = 4096
LEARNED_PLACES = 64
LEARNED_INTERVALS = 32


@dataclass(frozen=True, eq=False)
class Batch:
    """Outputs as rows of numbers; an output shorter than the longest one is padded on the right."""

    rows: Floats
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """Entries of the longest output."""
        return int(self.rows.shape[1])

    @property
    def padded(self) -> bool:
        """Whether some output is shorter than the others."""
        return bool((self.lengths != self.width).any())

    def present(self) -> NDArray[np.bool_]:
        """Which entries are not padding."""
        return np.arange(self.width) < self.lengths[:, None]

    def total(self, entries: NDArray[Any]) -> NDArray[Any]:
        """Sum over each row's own entries."""
        own = np.where(self.present(), entries, entries.dtype.type(0)) if self.padded else entries
        return np.asarray(own.sum(axis=1))


@dataclass(frozen=True)
class Statistic:
    """A number for each output of a batch; `ordered` says that being large or small means something."""

    name: str
    values: Callable[[Batch], Floats]
    ordered: bool = True


def to_batch(outputs: Any) -> Batch:
    """Outputs as rows: an array (the first axis counts outputs), or any sequence of numbers, arrays, tuples, hashables."""
    if isinstance(outputs, Batch):
        return outputs
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        rows = _plain(outputs.reshape(len(outputs), -1))
        return Batch(rows, np.full(len(rows), rows.shape[1], np.int64))
    entries = [_entries(output) for output in outputs]
    lengths = np.array([len(each) for each in entries], np.int64)
    rows = np.full((len(entries), max(1, int(lengths.max(initial=0)))), ABSENT)
    for row, each in zip(rows, entries, strict=True):
        row[: len(each)] = each
    return Batch(_plain(rows), lengths)


def code(value: Any) -> float:
    """A number stays itself; anything else hashable gets a code."""
    if isinstance(value, numbers.Real):
        return min(max(float(value), -LARGEST), LARGEST) if value == value else ABSENT  # noqa: PLR0124  (not a number)
    if value is None or isinstance(value, (str, bytes)):
        return float(int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest()) >> (64 - CODE_BITS))
    try:
        return float(hash(value) % (1 << CODE_BITS))
    except TypeError:
        raise FormatError(
            "an output of the audited mechanism cannot be compared with others.",
            hint="Return a number, an array, or something hashable such as a tuple or a text",
        ) from None


def _entries(output: Any) -> Floats:
    if hasattr(output, "to_numpy"):  # data frames and series
        output = output.to_numpy()
    if isinstance(output, np.ndarray):
        if output.dtype.kind in "biuf":
            return _plain(output.reshape(-1))
        output = output.reshape(-1).tolist()
    if isinstance(output, Mapping):
        return np.sort([code(item) for item in output.items()])
    if isinstance(output, AbstractSet):
        return np.sort([code(item) for item in output])
    if isinstance(output, Sequence) and not isinstance(output, (str, bytes)):
        return np.array([code(item) for item in output], np.float64)
    return np.array([code(output)])


def _plain(values: NDArray[Any]) -> Floats:
    """Finite floats; -0.0 becomes 0.0, so that equal numbers have equal bits."""
    return np.nan_to_num(values.astype(np.float64), nan=ABSENT, posinf=LARGEST, neginf=-LARGEST) + 0.0


def _mixed(entries: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser: a bijection that scatters nearby numbers."""
    entries = (entries ^ (entries >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    entries = (entries ^ (entries >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return entries ^ (entries >> np.uint64(31))


def _placed(rows: Floats) -> NDArray[np.uint64]:
    """One hash for each entry and its place."""
    places = (np.arange(rows.shape[1], dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return _mixed(_mixed(np.ascontiguousarray(rows).view(np.uint64)) + places)


def _short(hashes: NDArray[np.uint64]) -> Floats:
    return (hashes >> np.uint64(64 - CODE_BITS)).astype(np.float64)


def _whole_output(batch: Batch) -> Floats:
    return _short(_mixed(batch.total(_placed(batch.rows)) + batch.lengths.astype(np.uint64)))


def _any_order(batch: Batch) -> Floats:
    return _short(
        _mixed(batch.total(_mixed(np.ascontiguousarray(batch.rows).view(np.uint64))) + batch.lengths.astype(np.uint64))
    )


def entry_at(batch: Batch, place: int) -> Floats:
    """Entry at a place, from the end for -1."""
    positions = batch.lengths + place if place < 0 else np.full(len(batch), place)
    inside = (positions >= 0) & (positions < batch.lengths)
    picked = batch.rows[np.arange(len(batch)), np.clip(positions, 0, batch.width - 1)]
    return np.where(inside, picked, ABSENT)


def _extreme(batch: Batch, *, largest: bool) -> Floats:
    rows = np.where(batch.present(), batch.rows, ABSENT if largest else -ABSENT) if batch.padded else batch.rows
    return np.asarray(rows.max(axis=1) if largest else rows.min(axis=1))


def _sum(batch: Batch) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.nan_to_num(batch.total(batch.rows).round(6)))


def _copies(batch: Batch, value: float) -> Floats:
    return batch.total((batch.rows == value).astype(np.int64)).astype(np.float64)


def standard_statistics(marked: Sequence[Hashable] = ()) -> list[Statistic]:
    """Statistics for outputs of any kind; `marked` are the values in which two neighbours differ (at most two)."""
    found = []
    for value in marked:
        number = code(value)
        found.append(Statistic(f"copies of {value!r}", partial(_copies, value=number)))
        if isinstance(value, int) and value >= 0:  # an output may be a table with a place for each cell
            found.append(Statistic(f"entry at place {value}", partial(entry_at, place=value)))
    if len(marked) == 2:
        found += _two_values(*marked)
    return [
        *found,
        Statistic("number of entries", lambda batch: batch.lengths.astype(np.float64)),
        Statistic("first entry", partial(entry_at, place=0)),
        Statistic("last entry", partial(entry_at, place=-1)),
        Statistic("sum of entries", _sum),
        Statistic("largest entry", partial(_extreme, largest=True)),
        Statistic("smallest entry", partial(_extreme, largest=False)),
        Statistic("output in any order", _any_order, ordered=False),
        Statistic("whole output", _whole_output, ordered=False),
    ]


def _two_values(left: Hashable, right: Hashable) -> list[Statistic]:
    """Two marked values taken together; the smallest entry beside them numbers the new values of an open urn."""
    a, b = code(left), code(right)

    def difference(batch: Batch) -> Floats:
        return _copies(batch, a) - _copies(batch, b)

    def together(batch: Batch) -> Floats:
        parts = np.stack([_copies(batch, a), _copies(batch, b), _extreme(batch, largest=False)], axis=1)
        return _short(_mixed(_placed(parts).sum(axis=1)))

    found = [
        Statistic("difference of the two values' copies", difference),
        Statistic("copies of the two values and the smallest entry", together, ordered=False),
    ]
    if isinstance(left, int) and isinstance(right, int) and min(left, right) >= 0:
        i, j = left, right
        found.append(
            Statistic("difference of the entries at the two places", lambda batch: entry_at(batch, i) - entry_at(batch, j))
        )
    return found


def learned_statistics(first: Batch, second: Batch) -> list[Statistic]:
    """Log likelihood ratios learned from outputs on two data sets, as if the entries of an output were independent."""
    found = [_learned_score("learned score of the entries", first, second, lambda batch: batch.rows)]
    if 1 < max(first.width, second.width) <= LEARNED_PLACES:
        name = "learned score of the entries and their places"
        found.append(_learned_score(name, first, second, lambda batch: _short(_placed(batch.rows))))
        edges = _place_edges(first, second)
        found.append(
            _learned_score("learned score of intervals at each place", first, second, lambda batch: _interval(batch, edges))
        )
    return found


def _place_edges(first: Batch, second: Batch) -> list[Floats]:
    """For each place, points that cut the entries seen there into about equally many."""
    edges = []
    for place in range(max(first.width, second.width)):
        seen = np.sort(np.concatenate([entry_at(first, place), entry_at(second, place)]))
        edges.append(np.unique(seen[:: -(-len(seen) // LEARNED_INTERVALS)]))
    return edges


def _interval(batch: Batch, edges: Sequence[Floats]) -> Floats:
    """Place and interval of each entry as one number; places past the learned ones say nothing."""
    keys = np.full(batch.rows.shape, -1.0)
    for place, points in enumerate(edges[: batch.width]):
        interval = np.searchsorted(points, batch.rows[:, place], side="right")
        keys[:, place] = place * (LEARNED_INTERVALS + 2.0) + interval
    return keys


def _learned_score(name: str, first: Batch, second: Batch, keys: Callable[[Batch], Floats]) -> Statistic:
    tallies = []
    for batch in (first, second):
        entries = keys(batch)
        tallies.append(np.unique(entries[batch.present()] if batch.padded else entries, return_counts=True))
    (seen_first, _), (seen_second, _) = tallies
    known = np.union1d(seen_first, seen_second)
    counts = np.zeros((2, len(known)))
    for count, (seen, tally) in zip(counts, tallies, strict=True):
        count[np.searchsorted(known, seen)] = tally
    if len(known) > LEARNED_VALUES:  # rare values say little; keep the common ones
        kept = np.sort(np.argsort(counts.sum(axis=0))[-LEARNED_VALUES:])
        known, counts = known[kept], counts[:, kept]
    shares = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 0.5 * len(known))
    weights = np.append(np.log(shares[0] / shares[1]), 0.0)

    def score(batch: Batch) -> Floats:
        entries = keys(batch)
        return batch.total(weights[position_of(entries, known)]).round(6)  # rounding: padding must not show in the last digit

    return Statistic(name, score)


def position_of(values: Floats, known: Floats) -> NDArray[np.int64]:
    """Position of each value among the sorted `known` ones, len(known) for any other."""
    if len(known) == 0:
        return np.zeros(values.shape, np.int64)
    position = np.searchsorted(known, values)
    found = known[np.minimum(position, len(known) - 1)] == values
    return np.where(found, position, len(known))


def readable(number: float) -> str:
    """A threshold for a report."""
    if number <= ABSENT:
        return "absent"
    return f"{int(number)}" if math.isfinite(number) and number == int(number) and abs(number) < 1e15 else f"{number:.6g}"
