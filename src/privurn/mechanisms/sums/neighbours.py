"""Neighbours of noisy sums for an audit: records at the corners of their bounds and hostile ones, read and added up."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.privacy.audit.attack import RAISED, Pair
from privurn.privacy.audit.bits import off_lattice
from privurn.privacy.audit.statistics import Batch, Floats, Statistic
from privurn.tables import open_table

if TYPE_CHECKING:
    from privurn.mechanisms.sums.statistic import StatisticMechanism

MOST_PAIRS = 5
Sums = tuple[list[int], int]
"""Exact sums in lattice steps, and the number of records."""


def sum_pairs(mechanism: "StatisticMechanism") -> list[Pair]:
    """Pairs of exact sums."""
    ends = mechanism.column_ends()
    low, high = ({name: each[i] for name, each in ends.items()} for i in (0, 1))
    alternating = {name: each[i % 2] for i, (name, each) in enumerate(ends.items())}
    single = low | dict([next(iter(high.items()))])
    wanted = [("from end to end", low, high), ("alternating ends", alternating, high), ("one column at its end", single, low)]
    for name, record in mechanism.hostile_records(low):
        wanted += [(f"raw records: {name}", record, low), (f"raw records: {name}, against the other end", record, high)]
    found = []
    for name, one, other in wanted:
        sides = [
            _summed(mechanism, low, one),
            _summed(mechanism, low, None if mechanism.neighbouring == "add-remove" else other),
        ]
        found.append(Pair(name, sides[0], sides[1], looks=_looks(mechanism, *sides)))
    return _worth_drawing(mechanism, found)


def _summed(mechanism: "StatisticMechanism", plain: dict[str, Any], extra: dict[str, Any] | None) -> Sums | str:
    """The way of a release from a table to its exact sums; an exception is an output like any other."""
    rows = [plain] * (len(plain) + 1) + ([] if extra is None else [extra] * mechanism.contributions)
    kinds: list[tuple[str, Any]] = []
    for name in mechanism.columns:
        kinds.append((name, np.float64 if all(isinstance(row[name], float) for row in rows) else object))
    table = np.array([tuple(row[name] for name in mechanism.columns) for row in rows], dtype=kinds)
    try:
        with open_table(table) as source:
            return mechanism.sum_units(source)
    except Exception as error:
        return f"{RAISED} {type(error).__name__}"


def _worth_drawing(mechanism: "StatisticMechanism", pairs: list[Pair]) -> list[Pair]:
    """Pairs whose sums differ most, one for each way to differ, and all whose sums differ by more than they may."""
    kept: dict[Any, Pair] = {}
    for pair in pairs:
        if isinstance(pair.first, str) or isinstance(pair.second, str):
            if pair.first != pair.second:
                kept[pair.name] = pair
            continue
        moves = tuple(a - b for a, b in zip(pair.first[0], pair.second[0], strict=True))
        if any(moves) or pair.first[1] != pair.second[1]:
            kept.setdefault(moves, pair)

    def size(pair: Pair) -> float:
        if isinstance(pair.first, str) or isinstance(pair.second, str):
            return np.inf
        return float(sum(abs(a - b) for a, b in zip(pair.first[0], pair.second[0], strict=True)))

    most = float(mechanism.contributions * mechanism.l1_units)
    ranked = sorted(kept.values(), key=size, reverse=True)
    return [pair for i, pair in enumerate(ranked) if i < MOST_PAIRS or size(pair) > most] or pairs[:1]


def _looks(mechanism: "StatisticMechanism", first: Sums | str, second: Sums | str) -> tuple[Statistic, ...]:
    """The claimed likelihood ratio of the sums, and whether they are on the lattice of their noise."""
    lattice = off_lattice("entries off the lattice", start=0.0, step=min(1.0, mechanism.noise.step))
    if isinstance(first, str) or isinstance(second, str):
        return (lattice,)
    step = Fraction(mechanism.noise.step)
    one, other = (np.array([float(each * step) for each in sums]) for sums, _ in (first, second))

    def score(batch: Batch) -> Floats:
        values = batch.rows[:, : len(one)]
        if values.shape[1] < len(one):  # an exception instead of sums
            return np.zeros(len(batch))
        logs = mechanism.noise.log_density(values - one) - mechanism.noise.log_density(values - other)
        return np.asarray(np.nan_to_num(logs.sum(axis=1)).round(9))

    return (Statistic("claimed log likelihood ratio", score), lattice)
