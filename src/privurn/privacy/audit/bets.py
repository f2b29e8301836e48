"""The audit's test: a bet against the claim that can only win by luck if the claim is true.

(epsilon, delta)-DP says P_x(B) <= e^epsilon P_y(B) + delta for neighbours x, y and every event B. So for fresh outputs X on x
and Y on y the gain v = 1[X in B] - e^epsilon 1[Y in B] has expectation at most delta, and a gambler who starts with 1 and
multiplies it by 1 + stake (v - delta) for each fresh pair of outputs has expected wealth at most 1, for every stake from 0
to 1/(e^epsilon + delta) fixed beforehand; so has the average of several such gamblers. By Markov's inequality the wealth
reaches 1/f with probability at most f. That is exact for every number of outputs and every law of them.

The same holds for a gain in [0, 1] that is an average over many events in one output, such as the share of lone labels that
are named: no independence within an output is needed, only between outputs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

Floats = NDArray[np.float64]

STAKES = 12
"""Gamblers, each with half the stake of the one before: from the boldest that cannot lose all to the most careful."""
WIDE = 24
"""Gamblers where the stakes must reach further: no claim to tune them to, or events too rare to be in most outputs."""
ROUNDING = 1e-6
"""Taken off the logarithm of a wealth, far more than sums of logarithms round."""
LARGEST = 700.0
TINIEST = 1e-12
"""Claims of delta = 0 are tested at this delta where nothing is drawn on the neighbour; testing a weaker claim is valid."""


@dataclass(frozen=True)
class PairCounts:
    """How often an event happened on the first data set, on the second, on both and on neither, in pairs of outputs."""

    both: int
    first: int
    second: int
    neither: int

    @classmethod
    def of(cls, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> "PairCounts":
        """From whether the event happened in each output; the outputs are paired in their order."""
        both = int((first & second).sum())
        only_first, only_second = int(first.sum()) - both, int(second.sum()) - both
        return cls(both, only_first, only_second, len(first) - both - only_first - only_second)

    @property
    def trials(self) -> int:
        """Pairs of outputs."""
        return self.both + self.first + self.second + self.neither


def pair_stakes(epsilon: float | None, delta: float) -> Floats:
    """Stakes of the gamblers against a claim, or against any epsilon."""
    reach = math.exp(min(epsilon or 0.0, LARGEST)) + delta
    return np.asarray(0.5 ** np.arange(WIDE if epsilon is None else STAKES) / reach, np.float64)


def log_wealth(counts: PairCounts, *, epsilon: float, delta: float, stakes: Floats) -> float:
    """Logarithm of what the gamblers have on average. It falls in epsilon and in delta; a stake too bold for them is lost."""
    odds = math.exp(min(epsilon, LARGEST))
    gains = np.array([1.0 - odds, 1.0, -odds, 0.0]) - delta
    times = np.array([counts.both, counts.first, counts.second, counts.neither], np.float64)
    factors = 1.0 + stakes[:, None] * gains
    admissible = stakes * (odds + delta) <= 1.0 + 1e-12
    return _averaged(factors, times, admissible, n_stakes=len(stakes))


def share_stakes(bound: float) -> Floats:
    """Stakes of the gamblers against the claim that a share in [0, 1] has expectation at most `bound`."""
    return np.asarray(0.5 ** np.arange(WIDE) / max(bound, TINIEST), np.float64)


def log_wealth_of_shares(shares: Floats, *, bound: float, stakes: Floats) -> float:
    """The same for shares, one from each output; falls in `bound`."""
    bound = max(bound, TINIEST)
    factors = 1.0 + stakes[:, None] * (shares - bound)
    return _averaged(factors, np.ones(len(shares)), stakes * bound <= 1.0 + 1e-12, n_stakes=len(stakes))


def _averaged(factors: Floats, times: Floats, admissible: NDArray[np.bool_], *, n_stakes: int) -> float:
    """Log of the mean over all gamblers of prod factor^times, 0 for those who may not play."""
    used = times > 0.0
    with np.errstate(divide="ignore"):
        logs = (np.log(np.maximum(factors[:, used], 0.0)) * times[used]).sum(axis=1)
    logs = np.where(admissible, logs, -np.inf)
    top = float(logs.max())
    if top == -math.inf:
        return -math.inf
    return top + math.log(float(np.exp(logs - top).sum()) / n_stakes) - ROUNDING


def largest_refuted(wealth_at: Callable[[float], float], *, needed: float, most: float) -> float | None:
    """Largest x in [0, most] at which the log wealth still reaches `needed`, rounded down; None: not even at 0.

    The wealth falls in x, and a claim of less than a refuted one is refuted too, so one test gives the bound.
    """
    if wealth_at(0.0) < needed:
        return None
    if wealth_at(most) >= needed:
        return most
    low, high = 0.0, most
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if wealth_at(middle) >= needed else (low, middle)
    return low


def check_failure(failure_probability: float) -> None:
    """A failure probability that means something."""
    if not 0.0 < failure_probability < 1.0:
        raise ModelError("the failure probability must lie strictly between 0 and 1.", hint="For example 1e-3")
