"""Which leaks an audit could have seen with the outputs it drew: the smallest that it would have convicted almost surely."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privurn.privacy.audit.bets import (
    ROUNDING,
    TINIEST,
    PairCounts,
    log_wealth,
    log_wealth_of_shares,
    pair_stakes,
    share_stakes,
)

SURE = 0.999
"""A leak that "could have been seen" is convicted with this probability."""
SIMULATED = 4_000


@dataclass(frozen=True)
class Power:
    """What one attack could have seen: an event of probability `leak` on one data set, impossible on the other."""

    attack: str
    of: str
    """Whose claim was attacked."""
    trials: int
    leak: float | None
    """None: not even an event of probability 1."""
    delta: float = 0.0
    """The claim's."""
    provided: str = ""
    """What else has to be so."""

    def sentence(self) -> str:
        """For people."""
        if self.leak is None:
            return f"{self.attack} ({self.of}): nothing can be seen in {self.trials:,} trials at so large an epsilon."
        rest = f", {self.provided}" if self.provided else ""
        return (
            f"{self.attack} ({self.of}, delta {self.delta:.3g}): in {self.trials:,} trials an event of probability "
            f"{self.leak:.3g} on one data set, impossible on the other, is convicted with probability {SURE:.1%}{rest}."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "attack": self.attack,
            "of": self.of,
            "trials": self.trials,
            "claimed_delta": self.delta,
            "delta": self.leak,
            "probability": SURE,
            "provided": self.provided or None,
        }


def least_leak_in_pairs(trials: int, *, epsilon: float, delta: float, needed: float) -> float | None:
    """Smallest probability, on one data set, of an event impossible on the other, at which a test of it is lost for sure.

    For sure means with probability 0.999; None where even an event of probability 1 would not be seen.
    """
    stakes = pair_stakes(epsilon, delta)

    return _least_probability(
        trials,
        lambda hits: log_wealth(PairCounts(0, hits, 0, trials - hits), epsilon=epsilon, delta=delta, stakes=stakes) >= needed,
    )


def _least_probability(trials: int, wins: Callable[[int], bool]) -> float | None:
    """Smallest probability at which so many trials hit often enough to win, for sure."""
    from scipy.special import betaincinv

    if not wins(trials):
        return None
    low, high = 0, trials
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return float(betaincinv(high, trials - high + 1, SURE))


def least_leak_in_shares(runs: int, marks: int, *, bound: float, needed: float) -> float | None:
    """The same for the share of `marks` disclosed in each of `runs` outputs, if each is disclosed independently.

    Several marks: by simulation with a seed. The figure is about power; the test's validity does not rest on it.
    """
    from scipy.stats import binom

    stakes = share_stakes(bound)
    if marks == 1:
        return _least_probability(
            runs,
            lambda hits: log_wealth_of_shares(np.repeat([1.0, 0.0], [hits, runs - hits]), bound=bound, stakes=stakes) >= needed,
        )
    bound = max(bound, TINIEST)
    rng = np.random.default_rng(1)

    def seen(probability: float) -> bool:
        mean, spread = marks * probability, 12.0 * math.sqrt(marks * probability * (1.0 - probability)) + 30.0
        hits = np.arange(max(0, math.floor(mean - spread)), min(marks, math.ceil(mean + spread)) + 1)
        law = binom.pmf(hits, marks, probability)
        outputs = rng.multinomial(runs, law / law.sum(), size=SIMULATED)  # how many outputs disclose so many marks
        logs = np.log(np.maximum(1.0 + stakes[:, None] * (hits / marks - bound), 1e-300))
        best = (outputs @ logs.T).max(axis=1) - math.log(len(stakes))  # the best gambler alone has no more than the average
        return float((best - ROUNDING >= needed).mean()) >= SURE

    if not seen(1.0):
        return None
    low, high = math.log(max(bound, 1e-9)), 0.0
    for _ in range(18):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if seen(math.exp(middle)) else (middle, high)
    return math.exp(high)
