"""Combine what an analysis says about several synthetic copies into one estimate with an honest variance.

The copies are tables drawn from the posterior of the confidential counts, n records each. With q the estimate and u its usual
variance on each of M copies, B the variance between the q, U the mean of the u and k = 1 + 1/M:

    about                     T               degrees of freedom
    the population            U + k B         (M - 1)(T/(k B))^2
    the confidential table    k B             M - 1

Copies that were resampled to m records carry that sampling too, which is taken back from B: k B - U + U m/n and k B - U, or,
where U is larger than B, B/M + U m/n and B/M. What the mean of M copies carries of it is never taken back.

A quantile is no mean: where few values hold many records it jumps from one to another, and has no usual variance. What is
combined are the shares up to each value, and the interval holds the values whose shares may be the asked one (Woodruff 1952).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError

About = Literal["population", "table"]
Floats = NDArray[np.float64]

TOO_FEW, MORE = "combining needs the estimates of at least two copies.", "copies=20 when the release is made"


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
        wide = float(_half_width(np.array(self.variance), np.array(self.degrees_of_freedom), level))
        return self.estimate - wide, self.estimate + wide


@dataclass(frozen=True, eq=False)
class CombinedQuantile:
    """A quantile from several copies, by the shares at or below each of the `values` in them."""

    level: float
    values: Floats
    shares: Floats
    variances: Floats
    degrees_of_freedom: Floats

    @property
    def estimate(self) -> float:
        """The first value with so large a share at or below it, on average over the copies."""
        return self._first(self.shares)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """From the first value whose share at or below it may be so large, to the first that cannot have a smaller one."""
        wide = _half_width(self.variances, self.degrees_of_freedom, level)
        return self._first(self.shares + wide), self._first(self.shares - wide)

    def _first(self, shares: Floats) -> float:
        large = np.flatnonzero(shares >= self.level * (1.0 - 1e-12))
        return float(self.values[large[0]] if len(large) else self.values[-1])


def combine_quantile(copies: Sequence[ArrayLike], level: float = 0.5, *, about: About = "population") -> CombinedQuantile:
    """A quantile of the population, or of the confidential table, from the numbers of one column of each copy.

    >>> combine_quantile([[1, 2, 2, 3], [1, 1, 2, 3], [1, 2, 3, 3]]).interval(0.8)
    (1.0, 3.0)
    """
    if not 0.0 < level < 1.0:
        raise ModelError("the level of a quantile must be between 0 and 1.", hint="For example level=0.25")
    tables = [np.sort(_numbers(each)) for each in copies]
    if any(each.ndim != 1 or not len(each) or not np.all(np.isfinite(each)) for each in tables):
        raise ModelError("each copy needs its numbers, one or more and none of them missing.", hint="Leave missing values out")
    if len(tables) < 2:
        raise ModelError(TOO_FEW, hint=MORE)
    _check_about(about)
    values = np.unique(np.concatenate(tables))
    shares = np.array([np.searchsorted(each, values, side="right") / len(each) for each in tables])
    sizes = np.array([len(each) for each in tables])[:, None]
    spread, within = np.var(shares, axis=0, ddof=1), np.mean(shares * (1.0 - shares) / sizes, axis=0)
    return CombinedQuantile(level, values, shares.mean(axis=0), *_rule(spread, within, len(tables), about=about))


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
        raise ModelError(TOO_FEW, hint=MORE)
    _check_about(about)
    if variances is None and (about == "population" or resampled is not None):
        raise ModelError("the usual variance of each copy's estimate is needed.", hint="variances=[...], one for each copy")
    u = np.zeros(len(q)) if variances is None else np.asarray(variances, np.float64)
    if u.shape != q.shape or not np.all(np.isfinite(u)) or np.any(u < 0.0):
        raise ModelError("each estimate needs one variance, 0 or more.")
    spread, within = float(np.var(q, ddof=1)), float(u.mean())
    if resampled is not None and not (len(resampled) == 2 and all(math.isfinite(x) and int(x) == x >= 1 for x in resampled)):
        raise ModelError("resampled copies have m records each, from tables of n.", hint="resampled=(1000, 20000)")
    variance, freedom = _rule(np.array(spread), np.array(within), len(q), about=about, resampled=resampled)
    return Combined(estimate=float(q.mean()), variance=float(variance), degrees_of_freedom=float(freedom))


def _numbers(values: ArrayLike) -> Floats:
    given = np.asarray(values)
    try:
        if given.dtype.kind in "mMSU":
            raise TypeError("no number")
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            "a quantile is one of numbers.", hint="Of dates take days, for example (dates - dates.min()).dt.days"
        ) from None


def _check_about(about: str) -> None:
    if about not in ("population", "table"):
        raise ModelError(f"about={about!r} is not known.", hint="population or table")


def _rule(
    spread: Floats, within: Floats, copies: int, *, about: About, resampled: tuple[int, int] | None = None
) -> tuple[Floats, Floats]:
    """T and degrees of freedom, from B and U."""
    between = (1.0 + 1.0 / copies) * spread
    if resampled is None:
        variance = between + (within if about == "population" else 0.0)
    else:
        m, n = resampled
        variance = np.maximum(spread - within, 0.0) + spread / copies + (within * m / n if about == "population" else 0.0)
    part = np.divide(variance, between, out=np.full(np.shape(between), np.inf), where=between > 0.0)
    return np.asarray(variance), np.maximum((copies - 1) * part**2, 1.0)


def _half_width(variances: Floats, freedom: Floats, level: float) -> Floats:
    """Of t intervals; normal ones where the degrees of freedom are infinite."""
    from scipy import stats

    if not 0.0 < level < 1.0:
        raise ModelError("the level of an interval must be between 0 and 1.", hint="For example level=0.95")
    return np.asarray(stats.t.ppf(0.5 + level / 2, freedom) * np.sqrt(variances))
