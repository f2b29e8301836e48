"""Neighbours of privatised records for an audit: values of one person, from the column that is read on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain
from privurn.mechanisms.local.channel import LocalChannel
from privurn.privacy.audit.attack import RAISED, Pair
from privurn.privacy.audit.bits import off_lattice
from privurn.privacy.audit.raw_records import BEYOND_FLOATS, HOSTILE_NUMBERS, NO_NUMBERS, hostile_values
from privurn.privacy.audit.statistics import Batch, Floats, Statistic
from privurn.tables import open_table
from privurn.tables.columns import read_numbers
from privurn.tables.rows import read_cells

COLUMN = "value"


def number_pairs(channel: LocalChannel, contributions: int) -> list[Pair]:
    """The ends of the bounds, their middle, and hostile numbers against the end they are not clamped to."""
    low, high = channel.bounds
    values: dict[str, tuple[Any, Any]] = {
        "from end to end": (low, high),
        "from an end to the middle": (low, low + (high - low) / 2),
    }
    for name, value in HOSTILE_NUMBERS.items():
        values[f"raw records: {name}"] = (value, low if value > 0 else high)
    for name, text in {**NO_NUMBERS, **BEYOND_FLOATS}.items():
        values[f"raw records: {name}"] = (text, high)
    published = channel.published_lattice
    lattice = () if published is None else (off_lattice("entries off the lattice", start=published[0], step=published[1]),)
    found = []
    for name, ends in values.items():
        first, second = (_read(value, contributions, low) for value in ends)
        ratio: tuple[Statistic, ...] = ()
        if not isinstance(first, str) and not isinstance(second, str):
            ratio = (_likelihood_ratio(channel, first, second),)
        found.append(Pair(name, first, second, looks=(*ratio, *lattice)))
    return found


def _read(value: Any, contributions: int, plain: float) -> NDArray[np.float64] | str:
    """The way of `privatise` from a column to numbers, with one plain record before the person's own; none is refused."""
    kind: Any = np.float64 if isinstance(value, float) else object
    column = np.array([(plain,), *[(value,)] * contributions], dtype=[(COLUMN, kind)])
    try:
        with open_table(column) as source:
            return read_numbers(source, COLUMN, nulls="lower")[1:]
    except Exception as error:
        return f"{RAISED} {type(error).__name__}"


def _likelihood_ratio(channel: LocalChannel, first: Floats, second: Floats) -> Statistic:
    """How much likelier the claimed law makes an output on the first records: the best thing to look at if it holds."""
    outputs = len(channel.columns(COLUMN))

    def score(batch: Batch) -> Floats:
        released = batch.rows.reshape(len(batch), len(first), outputs) if outputs > 1 else batch.rows
        with np.errstate(over="ignore", invalid="ignore"):
            logs = channel.log_density(released, first) - channel.log_density(released, second)
        return np.asarray(np.nan_to_num(logs.reshape(len(batch), -1).sum(axis=1)).round(9))

    return Statistic("claimed log likelihood ratio", score)


def category_pairs(domain: JointDomain, contributions: int) -> list[Pair]:
    """Every column from its first to its last category, and labels that are not listed where they have a cell."""
    firsts = {name: each.values[0] for name, each in domain.columns.items()}  # type: ignore[attr-defined]
    lasts = {name: each.values[-1] for name, each in domain.columns.items()}  # type: ignore[attr-defined]
    found = {"from the first category to the last": (firsts, lasts)}
    for column, each in domain.columns.items():
        for name, value in hostile_values(each).items():
            found[f"raw records: {name} in {column!r}"] = (firsts | {column: value}, lasts)
    return [
        Pair(name, _coded(first, domain, contributions), _coded(second, domain, contributions))
        for name, (first, second) in found.items()
    ]


def _coded(record: dict[str, Any], domain: JointDomain, contributions: int) -> NDArray[np.int64] | str:
    table = np.array([tuple(record.values())] * contributions, dtype=[(name, object) for name in record])
    try:
        with open_table(table) as source:
            return read_cells(source, domain)
    except Exception as error:
        return f"{RAISED} {type(error).__name__}"
