"""How many new values are still to come: laws, expectations and discovery probabilities of the Pitman-Yor urn.

K_n is the number of distinct values among n records, K_m^(n) that of new values among m further (released) ones. Laws come
from the chain that adds one record at a time, two positive terms a step; never from the alternating sum, which has lost
nine digits at m = 30. Enumeration: tests/exact/test_discovery.py.

Functions of public numbers (n, m, the parameters, the release itself) give public figures. A figure that is given the
confidential K_n is as confidential as K_n. Estimates of the parameters are confidential by type.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.confidential import Confidential
from privurn.privacy.instance.multiplicities import Counts, Multiplicities

VANISHING = 1e-14
"""A discount below this changes no digit of an expectation, and dividing by it would lose them all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountLaw:
    """Law of a whole number: P(start + i) = probabilities[i]; what lies outside has less than 1e-35 in all."""

    start: int
    probabilities: NDArray[np.float64]

    def probability(self, count: int) -> float:
        """P(this count)."""
        i = count - self.start
        return float(self.probabilities[i]) if 0 <= i < self.probabilities.size else 0.0

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts that `probabilities` belong to."""
        return self.start + np.arange(self.probabilities.size, dtype=np.int64)

    @property
    def mean(self) -> float:
        """Expected count."""
        return float((self.counts * self.probabilities).sum())

    @property
    def standard_deviation(self) -> float:
        """Square root of the variance."""
        return math.sqrt(float(((self.counts - self.mean) ** 2 * self.probabilities).sum()))

    def quantile(self, level: float) -> int:
        """Smallest count whose cumulative probability reaches `level`."""
        i = int(np.searchsorted(np.cumsum(self.probabilities), level * float(self.probabilities.sum())))
        return self.start + min(i, self.probabilities.size - 1)


def _check(*, n: int, strength: float, discount: float, records: int = 0, distinct: int = 1) -> None:
    if not (0.0 <= discount < 1.0 and strength > -discount and math.isfinite(strength)):
        raise ModelError(
            "discount must lie in [0, 1) and strength above -discount.", hint="For example strength=1, discount=0.5"
        )
    if n < 1 or records < 0:
        raise ModelError("n must be at least 1, and the number of further records at least 0.", hint="For example n=1000")
    if not 1 <= distinct <= n:
        raise ModelError("the number of distinct values must lie between 1 and the number of records.")


def distinct_values_law(n: int, *, strength: float, discount: float = 0.0) -> CountLaw:
    """Law of K_n, the number of distinct values among n records.

    >>> law = distinct_values_law(3, strength=1.0)
    >>> [round(law.probability(k), 4) for k in (1, 2, 3)]
    [0.3333, 0.5, 0.1667]
    """
    _check(n=n, strength=strength, discount=discount)
    rest = new_values_law(n - 1, n=1, distinct=1, strength=strength, discount=discount)
    return CountLaw(start=rest.start + 1, probabilities=rest.probabilities)


def new_values_law(records: int, *, n: int, distinct: int, strength: float, discount: float = 0.0) -> CountLaw:
    """P(K_m^(n) = k | K_n = distinct) for m = `records`.

    >>> law = new_values_law(2, n=3, distinct=2, strength=1.0, discount=0.5)
    >>> [round(law.probability(k), 4) for k in (0, 1, 2)]
    [0.3, 0.45, 0.25]
    """
    from privurn._kernels.accounting.discovery import distinct_law

    _check(n=n, strength=strength, discount=discount, records=records, distinct=distinct)
    lo, hi, law = distinct_law(strength + distinct * discount, strength + n, discount, int(records), 0)
    return CountLaw(start=int(lo), probabilities=law[lo : hi + 1].copy())


def expected_new_values(records: int, *, n: int, distinct: int, strength: float, discount: float = 0.0) -> float:
    """E[K_m^(n) | K_n = distinct] = (theta + j sigma)((theta+n+sigma)_m / (theta+n)_m - 1)/sigma.

    >>> round(expected_new_values(2, n=3, distinct=2, strength=1.0, discount=0.5), 4)
    0.95
    """
    from scipy.special import digamma

    from papers.new_values import log_rising_ratio

    _check(n=n, strength=strength, discount=discount, records=records, distinct=distinct)
    x = strength + n
    if discount > VANISHING:
        growth = math.expm1(log_rising_ratio(x, discount, float(records))) / discount
    elif records <= 10**6:
        growth = float((1.0 / (x + np.arange(records))).sum())
    else:
        growth = float(digamma(x + records) - digamma(x))
    return (strength + distinct * discount) * growth


def discovery_probability(*, n: int, distinct: int, strength: float, discount: float = 0.0) -> float:
    """Chance that record n + 1 is a new value, given `distinct` values among n records: (theta + sigma j)/(theta + n).

    After a release, n and `distinct` count confidential and released records together.

    >>> discovery_probability(n=9, distinct=4, strength=1.0, discount=0.5)
    0.3
    """
    _check(n=n, strength=strength, discount=discount, distinct=distinct)
    return (strength + discount * distinct) / (strength + n)


def discovery_from_release(released_distinct: int, *, n: int, records: int, strength: float, discount: float = 0.0) -> float:
    """Chance that record n + m + 1 is a new value, given only the release: `released_distinct` values in m = `records`.

    (theta + sigma k_Z)/(theta + n + m) * (theta + m + sigma)_n / (theta + m)_n. Confidential and released records are
    exchangeable, so the n confidential ones may be taken to come after the release. Public: it uses nothing else.

    >>> round(discovery_from_release(4, n=100, records=9, strength=1.0, discount=0.5), 4)
    0.0915
    """
    from papers.new_values import log_rising_ratio

    _check(n=records, strength=strength, discount=discount, distinct=released_distinct, records=n)
    growth = math.exp(log_rising_ratio(strength + records, discount, float(n)))
    return (strength + discount * released_distinct) / (strength + n + records) * growth


def discovery_given_new_values(new_distinct: int, *, n: int, records: int, strength: float, discount: float = 0.0) -> float:
    """The thesis's estimate: chance that record n + m + 1 is new given K_m^(n) = `new_distinct`, K_n averaged out.

    (theta + sigma (k + E[K_n | K_m^(n) = k]))/(theta + n + m). Which released values are new cannot be seen from the
    release alone, so this is for the custodian; everybody else has `discovery_from_release`.
    """
    from papers.new_values import log_posterior_of_old, log_rising_ratio

    _check(n=n, strength=strength, discount=discount, records=records)
    if not 0 <= new_distinct <= records:
        raise ModelError("the number of new values must lie between 0 and the number of released records.")
    scale = strength + n + records
    if discount == 0.0:
        return strength / scale
    prior = distinct_values_law(n, strength=strength, discount=discount)
    growth = math.expm1(log_rising_ratio(strength + n, discount, float(records)))
    typical = new_distinct / growth - strength / discount if growth > 0.0 else prior.mean  # E[K_m | K_n = typical] = k
    typical = min(max(typical, 1.0), float(n))
    last = prior.start + prior.probabilities.size - 1
    logs = log_posterior_of_old(
        n, int(records), int(new_distinct), prior.start, last, strength, discount, strength + typical * discount
    )
    with np.errstate(divide="ignore"):
        logs = logs + np.log(prior.probabilities)
    weights = np.exp(logs - logs.max())
    mean = float((prior.counts * weights).sum() / weights.sum())
    return (strength + discount * (new_distinct + mean)) / scale


LEAST, MOST, LARGEST_DISCOUNT = 1e-9, 1e12, 0.999


@dataclass(frozen=True, kw_only=True, repr=False)
class HyperparameterEstimate(Confidential):
    """Empirical Bayes: the parameters that make the table likeliest. Confidential.

    Using them for the release spends the guarantee: they are a function of the data that nobody paid for. `at_boundary`
    says that the likelihood has no maximum inside (all records equal, or all different, or discount at an end).
    """

    strength: float
    discount: float
    log_likelihood: float
    at_boundary: bool


def empirical_bayes(counts: Counts, *, discount: float | None = 0.0) -> HyperparameterEstimate:
    """Strength (and, with `discount=None`, discount) that maximise the likelihood of the table's partition.

    prod_{i=1}^{k-1} (theta + i sigma) / (theta + 1)_{n-1} * prod_i (1 - sigma)_{n_i - 1}; at discount 0 this is
    theta^(k-1) / (theta + 1)_{n-1} up to a factor, with the rising factorial.

    >>> round(empirical_bayes([10, 5, 3, 1, 1]).strength, 3)
    1.805
    """
    from scipy.optimize import minimize_scalar

    table = Multiplicities.of(counts)
    if discount is not None:
        _check(n=1, strength=1.0, discount=discount)
        return _best_strength(table, float(discount), free_discount=False)
    grid = np.concatenate([[0.0], np.linspace(0.02, LARGEST_DISCOUNT, 30)])
    heights = [_best_strength(table, float(each), free_discount=True).log_likelihood for each in grid]
    top = int(np.argmax(heights))
    bounds = (float(grid[max(0, top - 1)]), float(grid[min(grid.size - 1, top + 1)]))
    found = minimize_scalar(
        lambda sigma: -_best_strength(table, float(sigma), free_discount=True).log_likelihood,
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-9},
    )
    best = _best_strength(table, float(found.x), free_discount=True)
    edge = _best_strength(table, float(grid[top]), free_discount=True)
    return best if best.log_likelihood > edge.log_likelihood else edge


def _best_strength(table: Multiplicities, sigma: float, *, free_discount: bool) -> HyperparameterEstimate:
    """Root of the score in log(theta + sigma): the score changes sign once."""
    from scipy.optimize import brentq
    from scipy.special import digamma, gammaln

    n, k = table.n, table.distinct
    steps = sigma * np.arange(1, k)
    sizes, repeats = np.asarray(table.sizes, float), np.asarray(table.repeats, float)

    def score(position: float) -> float:
        theta = math.exp(position) - sigma
        return float((1.0 / (theta + steps)).sum() - (digamma(theta + n) - digamma(theta + 1.0)))

    low, high = math.log(LEAST), math.log(MOST)
    if k == 1 or score(low) <= 0.0:
        position = low
    elif k == n or score(high) >= 0.0:
        position = high
    else:
        position = float(brentq(score, low, high, xtol=1e-13, rtol=1e-14))
    theta = math.exp(position) - sigma
    value = float(np.log(theta + steps).sum() - (gammaln(theta + n) - gammaln(theta + 1.0)))
    value += float((repeats * (gammaln(sizes - sigma) - gammaln(1.0 - sigma))).sum())
    edge = free_discount and not 0.0 < sigma < LARGEST_DISCOUNT
    return HyperparameterEstimate(
        strength=theta, discount=sigma, log_likelihood=value, at_boundary=position in {low, high} or edge
    )
