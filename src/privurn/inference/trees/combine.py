"""Combine what an analysis says about several synthetic copies into one estimate with an honest variance.

The copies are tables drawn from the posterior of the confidential counts, n records each. With q the estimate and u its usual
variance on each of M copies, B the variance between the q, U the mean of the u and k = 1 + 1/M:

    about                     T               degrees of freedom
    the population            U + k B         (M - 1)(T/(k B))^2
    the confidential table    k B             M - 1

Copies that were resampled to m records carry that sampling too, which is taken back from B: k B - U + U m/n and k B - U, or,
where U is larger than B, B/M + U m/n and B/M. What the mean of M copies carries of it is never taken back.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from privurn.errors import ModelError

About = Literal["population", "table"]


@dataclass(frozen=True)
class Combined:
    """One estimate from several copies: t distributed about the truth with this variance and these degrees of freedom."""

    estimate: float
    variance: float
    degrees_of_freedom: float

    @property
    def standard_error(self) -> float:
        """Root of the variance."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Equal-tailed interval. From few copies of Laplace counts a little short; posterior quantiles are better."""
        from scipy import stats

        if not 0.0 < level < 1.0:
            raise ModelError("the level of an interval must be between 0 and 1.", hint="For example level=0.95")
        freedom = self.degrees_of_freedom
        wide = float(stats.norm.ppf(0.5 + level / 2) if math.isinf(freedom) else stats.t.ppf(0.5 + level / 2, freedom))
        return self.estimate - wide * self.standard_error, self.estimate + wide * self.standard_error


def combine(
    estimates: Sequence[float] | ArrayLike,
    variances: Sequence[float] | ArrayLike | None = None,
    *,
    about: About = "population",
    resampled: tuple[int, int] | None = None,
) -> Combined:
    """One estimate from those of M copies, with its variance about the population or about the confidential table.

    `variances`: the usual ones, one for each copy; the confidential table needs none unless the copies were resampled.
    `resampled`: (m, n) where each copy holds m records drawn from a table of n.

    >>> combine([10.0, 12.0, 11.0], [4.0, 4.0, 4.0]).variance
    5.333333333333333
    >>> combine([10.0, 12.0, 11.0], about="table").degrees_of_freedom
    2.0
    """
    q = np.asarray(estimates, np.float64)
    if q.ndim != 1 or len(q) < 2 or not np.all(np.isfinite(q)):
        raise ModelError("combining needs the estimates of at least two copies.", hint="copies=20 when the release is made")
    if about not in ("population", "table"):
        raise ModelError(f"about={about!r} is not known.", hint="population or table")
    if variances is None and (about == "population" or resampled is not None):
        raise ModelError("the usual variance of each copy's estimate is needed.", hint="variances=[...], one for each copy")
    u = np.zeros(len(q)) if variances is None else np.asarray(variances, np.float64)
    if u.shape != q.shape or not np.all(np.isfinite(u)) or np.any(u < 0.0):
        raise ModelError("each estimate needs one variance, 0 or more.")
    spread, within = float(np.var(q, ddof=1)), float(u.mean())
    between = (1.0 + 1.0 / len(q)) * spread
    if resampled is None:
        variance = between + (within if about == "population" else 0.0)
    else:
        m, n = resampled
        if m < 1 or n < 1:
            raise ModelError("resampled copies have m records each, from tables of n.", hint="resampled=(1000, 20000)")
        variance = max(spread - within, 0.0) + spread / len(q) + (within * m / n if about == "population" else 0.0)
    freedom = (len(q) - 1) * (variance / between) ** 2 if between > 0.0 else math.inf
    return Combined(estimate=float(q.mean()), variance=variance, degrees_of_freedom=max(freedom, 1.0))
