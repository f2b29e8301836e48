"""What a profile means for a test: the trade-off curve of hypothesis-testing privacy (f-DP) and bounds on power.

Someone who must tell from the release which of two neighbours it came from errs in two ways. By convex duality (Dong, Roth, Su
2022) the smallest false-negative rate at false-positive rate a is

    f(a) = sup over epsilon of 1 - delta(epsilon) - e^epsilon a,   at least 0,

over epsilon of both signs; with the symmetry of profiles the negative ones give e^-epsilon (1 - delta(epsilon) - a). Any set of
epsilons gives a curve that is too low, never too high: an answer on the private side.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.privacy.laws.loss_law import largest_loss
from privurn.privacy.profile import Guarantee, PrivacyProfile

FIRST_PASS = 128
"""Values of epsilon that all false-positive rates share, before each looks around its own best one."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def _check_rates(rates: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(rates, dtype=np.float64)
    if not bool(np.all((array >= 0.0) & (array <= 1.0))):
        raise ModelError("error rates must lie in [0, 1].", hint="For example 0.05")
    return array


def trade_off(profile: PrivacyProfile, *, false_positive: ArrayLike) -> NDArray[np.float64]:
    """Smallest false-negative rate of any test at each false-positive rate, rounded down.

    >>> from privurn.privacy.laws.noise import RandomisedResponseProfile
    >>> trade_off(RandomisedResponseProfile(categories=2, epsilon0=math.log(3.0)), false_positive=[0.0, 0.25, 1.0]).round(6)
    array([1.  , 0.25, 0.  ])
    """
    rates = _check_rates(false_positive)
    known: dict[float, float] = {}

    def kept(epsilon: float) -> float:
        if epsilon not in known:
            known[epsilon] = 1.0 if epsilon >= profile.pure_epsilon else 1.0 - profile.delta(epsilon)
        return known[epsilon]

    def line(epsilon: float, rate: float) -> float:
        if epsilon >= 0.0:
            return kept(epsilon) - math.exp(epsilon) * rate
        return math.exp(epsilon) * (kept(-epsilon) - rate)

    largest = largest_loss(profile, tail=1e-15)
    grid = np.linspace(-largest, largest, 2 * FIRST_PASS + 1).tolist() if largest > 0.0 else [0.0]

    def smallest_miss(rate: float) -> float:
        values = [line(epsilon, rate) for epsilon in grid]
        best = int(np.argmax(values))
        value = values[best]
        low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        # the line's height is concave in e^epsilon, so one maximum lies between the neighbours of the best grid point
        inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left, right = line(inner, rate), line(outer, rate)
        while high - low > 1e-11 * largest:  # at a kink the error is of first order
            if left >= right:
                high, outer, right = outer, inner, left
                inner = high - GOLDEN * (high - low)
                left = line(inner, rate)
            else:
                low, inner, left = inner, outer, right
                outer = low + GOLDEN * (high - low)
                right = line(outer, rate)
        return max(0.0, value, left, right) * (1.0 - 1e-15)

    flat = np.array([smallest_miss(float(rate)) for rate in rates.ravel()])
    return flat.reshape(rates.shape)


def power_bound(promise: Guarantee | PrivacyProfile, *, level: ArrayLike) -> NDArray[np.float64]:
    """Largest power of any test at each level: min(1, e^epsilon level + delta) of a guarantee, or 1 - trade_off of a profile.

    >>> power_bound(Guarantee(epsilon=1.0, delta=1e-6), level=0.05).round(6)
    np.float64(0.135915)
    """
    levels = _check_rates(level)
    if isinstance(promise, Guarantee):
        bound = np.minimum(1.0, (math.exp(promise.epsilon) * levels + promise.delta) * (1.0 + 1e-15))
    else:
        bound = np.minimum(1.0, 1.0 - trade_off(promise, false_positive=levels))
    return np.asarray(bound, dtype=np.float64)
