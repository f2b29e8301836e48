"""Audit noisy statistics: records at the corners of their bounds and hostile ones, from the table to the noisy sums."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from privurn.audits.raw_records import HOSTILE_NUMBERS, HOSTILE_TEXTS, column_ends, hostile_values
from privurn.audits.target import Target, at_zero, seeded
from privurn.mechanisms.sums.statistic import StatisticMechanism, opened
from privurn.mechanisms.sums.table_statistic import TableStatistic
from privurn.privacy.audit.attack import RAISED, Pair, Sampler
from privurn.privacy.audit.bits import off_lattice
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.statistics import Batch, Floats, Statistic
from privurn.privacy.entropy import Entropy

PER_NOISE, PER_CALL = 3e-5, 2e-4
MOST_PAIRS = 5
Sums = tuple[list[int], int]
"""Exact sums in lattice steps, and the number of records."""


def statistics_target(mechanism: StatisticMechanism, claim: Claim, *, seed: int | None = None) -> Target:
    """Neighbours differ in all of a person's records, which add as much to the sums as records can, or are hostile."""
    return Target(
        _sampler(mechanism, entropy=seeded(seed)),
        _pairs(mechanism),
        claim,
        more_claims=at_zero(mechanism.profile),
        seconds=PER_CALL + PER_NOISE * mechanism.n_entries,
    )


def _sampler(mechanism: StatisticMechanism, *, entropy: Entropy) -> Sampler:
    """The sums are read once; each output has noise of its own, and ends in what is said of the number of records."""

    def noisy(sums: list[int], n: int) -> Floats:
        released = mechanism.add_noise(sums, n, entropy=entropy)
        size = released.n if released.n is not None else released.noisy_n
        return np.append(released.values, [] if size is None else [float(size)])

    def sample(data: Sums | str, /, *, size: int) -> Any:
        if isinstance(data, str):
            return [data] * size
        try:
            return np.stack([noisy(*data) for _ in range(size)])
        except Exception as error:
            return [f"{RAISED} {type(error).__name__}"] * size

    return sample


def _pairs(mechanism: StatisticMechanism) -> list[Pair]:
    ends = _column_ends(mechanism)
    low, high = ({name: each[i] for name, each in ends.items()} for i in (0, 1))
    alternating = {name: each[i % 2] for i, (name, each) in enumerate(ends.items())}
    single = low | dict([next(iter(high.items()))])
    wanted = [("from end to end", low, high), ("alternating ends", alternating, high), ("one column at its end", single, low)]
    for name, record in _hostile_records(mechanism, low):
        wanted += [(f"raw records: {name}", record, low), (f"raw records: {name}, against the other end", record, high)]
    found = []
    for name, one, other in wanted:
        sides = [
            _summed(mechanism, low, one),
            _summed(mechanism, low, None if mechanism.neighbouring == "add-remove" else other),
        ]
        found.append(Pair(name, sides[0], sides[1], looks=_looks(mechanism, *sides)))
    return _worth_drawing(mechanism, found)


def _column_ends(mechanism: StatisticMechanism) -> dict[str, tuple[Any, Any]]:
    """Two values of each column, as far apart as the public bounds let them be."""
    if isinstance(mechanism, TableStatistic):
        return {name: column_ends(each) for name, each in mechanism.domain.columns.items()}
    own = mechanism.own_parameters()
    if isinstance(own.get("lower"), list):  # moments of bounded columns; the response of a logistic regression is 0 or 1
        bounds = list(zip(own["lower"], own["upper"], strict=True))
        return dict(zip(mechanism.columns, [*bounds, (0.0, 1.0)], strict=False))
    return {name: (0.0, float(own.get("upper", 1.0))) for name in mechanism.columns}


def _hostile_records(mechanism: StatisticMechanism, low: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Something hostile in all columns of numbers at once, or in one column of a table."""
    if isinstance(mechanism, TableStatistic):
        for column, each in mechanism.domain.columns.items():
            yield from ((f"{name} in {column!r}", low | {column: value}) for name, value in hostile_values(each).items())
        return
    for name, value in {**HOSTILE_NUMBERS, **HOSTILE_TEXTS}.items():
        yield name, dict.fromkeys(low, value)


def _summed(mechanism: StatisticMechanism, plain: dict[str, Any], extra: dict[str, Any] | None) -> Sums | str:
    """The way of a release from a table to its exact sums; an exception is an output like any other."""
    rows = [plain] * (len(plain) + 1) + ([] if extra is None else [extra] * mechanism.contributions)
    kinds: list[tuple[str, Any]] = []
    for name in mechanism.columns:
        plain_numbers = all(isinstance(row[name], float) for row in rows) and not isinstance(mechanism, TableStatistic)
        kinds.append((name, np.float64 if plain_numbers else object))
    table = np.array([tuple(row[name] for name in mechanism.columns) for row in rows], dtype=kinds)
    try:
        with opened(table) as source:
            return mechanism.sum_units(source)
    except Exception as error:
        return f"{RAISED} {type(error).__name__}"


def _worth_drawing(mechanism: StatisticMechanism, pairs: list[Pair]) -> list[Pair]:
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


def _looks(mechanism: StatisticMechanism, first: Sums | str, second: Sums | str) -> tuple[Statistic, ...]:
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
