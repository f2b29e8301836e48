"""Results beside each other: what taking sums for exact would say, and what a bootstrap would."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.draws import Summary
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.sums.statistic import NoisyStatistics


def plug_in(statistics: Any, *, level: float = 0.95) -> tuple[Summary, ...]:
    """What taking noisy sums for exact would say, under the names of the posterior's variables. It ignores noise: not valid."""
    statistics = released_sums(statistics)
    n = float(statistics.n) if statistics.n is not None else statistics.noisy_n
    if n is None:
        raise ModelError("plug-in estimates need a number of records, and none was published.", hint="Ask for a posterior")
    name = statistics.nearest(PLUG_IN) if statistics.mechanism.records_model() is None else None
    if name is None:
        raise ModelError(f"the model {statistics.model} has no plug-in estimate.", hint="Ask for a posterior")
    if n < 2.0 and name != "regression":
        raise ModelError("there is no plug-in estimate: the noisy number of records is below 2.", hint="Ask for a posterior")
    return (*PLUG_IN[name](statistics, n, level), _point("n", n, level))


def _regression(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    from privurn.inference.sums.comparators import plug_in_regression

    found = plug_in_regression(statistics)
    rows = zip(found.names, found.coefficients, np.sqrt(np.diag(found.covariance)), strict=True)
    tau = 1.0 / found.residual_variance if found.residual_variance > 0.0 else math.inf
    return [*(_normal(f"beta[{name}]", value, deviation, level) for name, value, deviation in rows), _point("tau", tau, level)]


def _logistic(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    from privurn.inference.sums.logistic_plug_in import plug_in_logistic

    found = plug_in_logistic(statistics, n=n)
    rows = zip(found.names, found.coefficients, found.deviations, strict=True)
    return [_normal(f"beta[{name}]", value, deviation, level) for name, value, deviation in rows]


def _dirichlet(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    alpha, deviations = dirichlet_maximum(statistics.values / n, n=n)
    rows = zip(statistics.mechanism.columns, alpha, deviations, strict=True)
    return [_normal(f"alpha[{part}]", value, deviation, level) for part, value, deviation in rows]


def _normal_mean(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    mechanism: Any = statistics.mechanism
    half, centre = ((mechanism.upper[0] + sign * mechanism.lower[0]) / 2.0 for sign in (-1.0, 1.0))
    mean, square = (statistics.values + n * mechanism.offsets) / n
    variance = max(square - mean**2, 0.0) * half**2
    tau = 1.0 / variance if variance > 0.0 else math.inf
    return [_normal("mean", centre + half * mean, math.sqrt(variance / n), level), _point("tau", tau, level)]


def _rate(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    mean = float(statistics.values[0]) / n
    return [_normal("rate", mean, math.sqrt(max(mean, 0.0) / n), level)]


def _probability(statistics: NoisyStatistics, n: float, level: float) -> list[Summary]:
    mean = float(statistics.values[0]) / n
    return [_normal("probability", mean, math.sqrt(max(mean * (1.0 - mean), 0.0) / n), level)]


PLUG_IN: Mapping[str, Callable[[NoisyStatistics, float, float], list[Summary]]] = {
    "regression": _regression,
    "normal": _normal_mean,
    "logistic": _logistic,
    "dirichlet": _dirichlet,
    "bernoulli": _probability,
    "poisson": _rate,
}
"""By the model of the statistic; what derives from one of these has its estimate."""


def dirichlet_maximum(mean_logs: NDArray[np.float64], *, n: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alpha of highest likelihood where mean log shares are these, and deviations by Fisher information for n records.

    >>> from scipy.special import digamma
    >>> alpha, _ = dirichlet_maximum(digamma([2.0, 3.0]) - digamma(5.0), n=100)
    >>> [round(float(each), 6) for each in alpha]
    [2.0, 3.0]
    """
    from scipy.special import digamma, polygamma

    if not np.logaddexp.reduce(mean_logs) < 0.0:  # geometric means of shares add up to less than 1
        raise ModelError("there is no plug-in estimate: no composition has mean logarithms like these.")
    logs = np.zeros(len(mean_logs))
    for _ in range(200):  # Newton in log alpha, shortened: the likelihood is concave in alpha
        alpha = np.exp(logs)
        gradient = digamma(alpha.sum()) - digamma(alpha) + mean_logs
        inverse = 1.0 / polygamma(1, alpha)
        total = polygamma(1, alpha.sum())
        shared = total * (inverse @ gradient) / (1.0 - total * inverse.sum())
        step = inverse * (gradient + shared) / alpha
        logs += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-12:
            break
    alpha = np.exp(logs)
    information = np.diag(polygamma(1, alpha)) - polygamma(1, alpha.sum())
    return alpha, np.sqrt(np.diag(np.linalg.inv(information)) / n)


def bootstrap(statistics: NoisyStatistics, *, replicates: int, seed: int | None, level: float = 0.95) -> tuple[Summary, ...]:
    """The parametric bootstrap's coefficients; only for a regression."""
    from privurn.inference.sums.comparators import bootstrap_regression

    found = bootstrap_regression(statistics, replicates=replicates, seed=seed)
    deviations, ends = np.sqrt(found.variance), found.interval(level=level)
    rows = zip(found.estimate.names, found.estimate.coefficients, deviations, ends, strict=True)
    return tuple(_row(f"beta[{name}]", value, deviation, low, high, level) for name, value, deviation, (low, high) in rows)


def _normal(name: str, value: float, deviation: float, level: float) -> Summary:
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + level / 2.0)) * deviation
    return _row(name, value, deviation, value - reach, value + reach, level)


def _point(name: str, value: float, level: float) -> Summary:
    return _row(name, value, 0.0, value, value, level)


def _row(name: str, value: float, deviation: float, low: float, high: float, level: float) -> Summary:
    return Summary(name=name, mean=float(value), deviation=float(deviation), lower=float(low), upper=float(high), level=level)
