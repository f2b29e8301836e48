"""What people would do instead of a posterior: logistic regression from noisy sums as if they were exact.

With normal covariates, z ~ N(m, C), the sums of y and y z determine the coefficients: the likelihood of exact sums is highest
where E[s((1, z) b)] and E[s((1, z) b) z] are the shares that were released, s the logistic function. By Stein's lemma these
expectations, and their derivatives, are those of a single normal number (1, z) b.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.mechanisms.sums.statistic import NoisyStatistics

Floats = NDArray[np.float64]

POINTS = np.linspace(-9.0, 9.0, 2001)
WEIGHTS = np.exp(-0.5 * POINTS**2) / np.exp(-0.5 * POINTS**2).sum()
"""The trapezoidal rule for a standard normal number: exact to rounding for the logistic function of up to 100 times it."""

MOST_STEPS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class PlugInLogistic:
    """Coefficients (intercept first) on the scale of the data, and their covariance if the sums had no noise."""

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats

    @property
    def deviations(self) -> Floats:
        """Of each coefficient."""
        return np.sqrt(np.diag(self.covariance))


def plug_in_logistic(statistics: NoisyStatistics, *, n: float) -> PlugInLogistic:
    """Take noisy sums, and a public or noisy n, for exact. Refused where no normal covariates have such moments."""
    mechanism = statistics.of_model("logistic")
    p = len(mechanism.covariates)
    values = (statistics.values + n * mechanism.offsets) / n
    share, ones, zeros = (1.0 + values[0]) / 2.0, values[1 : 1 + p], values[1 + p : 1 + 2 * p]
    squares = np.zeros((p, p))
    squares[np.triu_indices(p)] = values[1 + 2 * p :]
    squares += np.triu(squares, 1).T
    middle = ones + zeros
    covariance = squares - np.outer(middle, middle)
    if not (0.0 < share < 1.0 and np.linalg.eigvalsh(covariance)[0] > 0.0):
        raise ModelError("there is no plug-in estimate: no table has sums like these.", hint="Ask for a posterior")
    found, curve = _solved(np.append(share, ones), middle, covariance)
    low, high = np.array(mechanism.lower), np.array(mechanism.upper)
    turn = np.diag(np.append(1.0, 2.0 / (high - low)))  # coefficients of mapped covariates to those of the data
    turn[0, 1:] = -(low + high) / (high - low)
    return PlugInLogistic(
        names=("intercept", *mechanism.covariates),
        coefficients=turn @ found,
        covariance=turn @ np.linalg.inv(n * curve) @ turn.T,
    )


def _solved(target: Floats, middle: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Newton on a concave function, b . target - E[log(1 + e^((1, z) b))]: the solution, and the information there."""
    b = np.zeros(len(target))
    level, slope, curve = _expected(b, target, middle, covariance)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(curve, slope)
        if np.abs(step).max() < 1e-10:
            return b, curve
        size = 1.0
        while size > 1e-8:
            after = _expected(b + size * step, target, middle, covariance)
            if after[0] >= level + 1e-4 * size * (slope @ step) - 1e-13:  # rounding only
                break
            size /= 2.0
        b, (level, slope, curve) = b + size * step, after
        if not np.abs(b).max() < 1e3 or np.linalg.eigvalsh(curve)[0] <= 1e-12:
            break
    raise ModelError("there is no plug-in estimate: no coefficients give sums like these.", hint="Ask for a posterior")


def _expected(b: Floats, target: Floats, middle: Floats, covariance: Floats) -> tuple[float, Floats, Floats]:
    """The function that `_solved` maximises, its gradient and minus its second derivatives."""
    from scipy.special import expit

    lean = covariance @ b[1:]
    line = b[0] + middle @ b[1:] + np.sqrt(max(float(b[1:] @ lean), 0.0)) * POINTS
    s = expit(line)
    first = s * (1.0 - s)
    s0, s1, s2, s3 = (float(WEIGHTS @ each) for each in (s, first, first * (1.0 - 2.0 * s), first * (1.0 - 6.0 * first)))
    ahead = np.append(1.0, middle)
    pull = np.append(0.0, lean)
    curve = s1 * np.outer(ahead, ahead) + s2 * (np.outer(ahead, pull) + np.outer(pull, ahead)) + s3 * np.outer(pull, pull)
    curve[1:, 1:] += s1 * covariance
    level = float(b @ target - WEIGHTS @ np.logaddexp(0.0, line))
    return level, target - s0 * ahead - s1 * pull, curve
