"""The low bits of released numbers, which floating-point noise leaves in a pattern that depends on the data.

A float near 0 has finer digits than one near 1. So 0 + noise and 1 + noise, computed in floating point, reach different sets of
numbers however smooth the noise is, and one look at the last bit of an output can tell a record (Mironov, "On significance of
the least significant bits for differential privacy", 2012). Noise on a fixed lattice has no such pattern.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from privurn.privacy.audit.statistics import ABSENT, Batch, Floats, Statistic, entry_at

MANTISSA = 53
NO_BIT = 2000.0
"""Stands for the lowest bit of 0, which has none, and of what is no number."""


def lowest_bit(values: Floats) -> Floats:
    """Exponent of the largest power of two that divides each number.

    >>> lowest_bit(np.array([6.0, 0.75, 3.0, 0.0])).tolist()
    [1.0, -2.0, 0.0, 2000.0]
    """
    share, exponent = np.frexp(values)
    whole = np.abs(share * 2.0**MANTISSA).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where((values == 0.0) | (np.abs(values) >= -ABSENT), NO_BIT, exponent - MANTISSA + lowest).astype(np.float64)


def bit_statistics(batches: Sequence[Batch], marked: Sequence[Hashable] = ()) -> list[Statistic]:
    """Lowest bits of the first entry, of the entries at the marked places and of all; none where all entries are whole."""
    if all(np.array_equal(batch.rows, np.rint(batch.rows)) for batch in batches):
        return []
    places = dict.fromkeys([0, *(value for value in marked if isinstance(value, int) and value >= 0)])
    found = [Statistic(f"lowest bit of the entry at place {place}", _at(place)) for place in places]
    return [*found, Statistic("finest bit of all entries", _finest)]


def _at(place: int) -> Callable[[Batch], Floats]:
    return lambda batch: lowest_bit(entry_at(batch, place))


def _finest(batch: Batch) -> Floats:
    return np.asarray(np.where(batch.present(), lowest_bit(batch.rows), NO_BIT).min(axis=1))


def off_lattice(name: str, *, start: float, step: float) -> Statistic:
    """Entries that are not start + step k for a whole number k: none, where the noise is what it is claimed to be."""

    def count(batch: Batch) -> Floats:
        steps = (batch.rows - start) / step
        off = np.abs(steps - np.rint(steps)) > 1e-6 + 1e-9 * np.abs(steps)
        return batch.total((off & (np.abs(batch.rows) < -ABSENT)).astype(np.int64)).astype(np.float64)

    return Statistic(name, count)
