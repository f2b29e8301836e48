"""Quantiles of a column, of all records or of those that fulfil a condition.

A quantile is where the distribution function reaches a level. The function is estimated at every value, each with a normal law
of its error; a quantile's law follows by raising and lowering all of it together and looking where the level is reached then
(Woodruff's interval, at every probability at once). In a bin the function is a straight line, on a grid it has steps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Shares at or below the end of each value, the last of them 1, with the deviation of each."""

    level: float
    lows: Floats
    """Where each value begins."""
    highs: Floats
    """Where it ends; the same on a grid."""
    shares: Floats
    deviations: Floats

    @property
    def place(self) -> int:
        """The value in which the level is reached."""
        return int((_rising(self.shares[None, :])[0] >= self.level).argmax())

    @property
    def spread(self) -> float:
        """Half of the way from one deviation below to one above."""
        return float(-np.diff(self.reached(np.array([-1.0, 1.0])))[0]) / 2.0

    def reached(self, shifts: Floats) -> Floats:
        """Where the level is reached by the function shifted by so many deviations at every value."""
        raised = _rising(self.shares + shifts[:, None] * self.deviations)
        place = (raised >= self.level).argmax(axis=1)
        rows = np.arange(len(shifts))
        before = np.where(place > 0, raised[rows, np.maximum(place - 1, 0)], 0.0)
        part = (self.level - before) / np.maximum(raised[rows, place] - before, 1e-300)
        found: Floats = self.lows[place] + np.clip(part, 0.0, 1.0) * (self.highs - self.lows)[place]
        return found

    def drawn(self, count: int, *, rng: np.random.Generator) -> Floats:
        """Of the law of the quantile: evenly spread normal shifts in random order."""
        return self.reached(rng.permutation(ndtri((np.arange(count) + 0.5) / count)))


def _rising(shares: Floats) -> Floats:
    """Distribution functions: within 0 and 1, never falling, 1 at the end."""
    found: Floats = np.maximum.accumulate(np.clip(shares, 0.0, 1.0), axis=1)
    found[:, -1] = 1.0
    return found
