"""Moments and laws of urn releases under the mechanism's own prior, in closed form: what independent draws are compared with.

docs/proofs/posteriors.md has the proofs, tests/exact/test_urn_measures.py enumerates them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from privurn.errors import ModelError
from privurn.inference.counts.composition import Composition
from privurn.inference.counts.measure_draws import About
from privurn.inference.counts.urn_measures import MeasurePosterior
from privurn.mechanisms.urn_plan import effective_sample_size

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CompositionMoments:
    """Of a public domain: C and p given the released counts S.

    >>> found = CompositionMoments(Composition(n=1, prior=np.ones(2), released=np.array([1, 0])))
    >>> found.counts_mean, found.population_mean  # Dirichlet(prior + S) would say 2/3
    (array([0.66666667, 0.33333333]), array([0.55555556, 0.44444444]))
    """

    found: Composition

    @property
    def counts_mean(self) -> Floats:
        """E[C | S] = n (alpha + S)/(A + m), A the prior's total."""
        return self.found.n * self.found.urn / float(self.found.urn.sum())

    @property
    def counts_variance(self) -> Floats:
        """Var[C | S], cell by cell."""
        n, total = self.found.n, float(self.found.urn.sum())
        share = self.found.urn / total
        return n * share * (1.0 - share) * (total + n) / (total + 1.0)

    @property
    def population_mean(self) -> Floats:
        """E[p | S] = (alpha + E[C | S])/(A + n)."""
        return (self.found.prior + self.counts_mean) / float(self.found.prior.sum() + self.found.n)

    @property
    def population_variance(self) -> Floats:
        """Var[p | S]: that of Dirichlet(alpha + C), averaged over C, plus that of its mean."""
        total = float(self.found.prior.sum() + self.found.n)
        mean, spread = self.population_mean, self.counts_variance / total**2
        return (mean * (1.0 - mean) - spread) / (total + 1.0) + spread

    def count_law(self, cell: int) -> Floats:
        """P(C_cell = 0), ..., P(C_cell = n) given S: beta-binomial."""
        n, mine = self.found.n, float(self.found.urn[cell])
        rest = float(self.found.urn.sum()) - mine
        k = np.arange(n + 1.0)
        if mine == 0.0 or rest == 0.0:
            return np.asarray(k == (0 if mine == 0.0 else n), np.float64)
        ways = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        return np.asarray(np.exp(ways + betaln(k + mine, n - k + rest) - betaln(mine, rest)))

    def linear(self, values: ArrayLike) -> tuple[float, float]:
        """Posterior mean and standard deviation of sum_i values_i p_i.

        >>> found = Composition(n=100, prior=np.ones(3), released=np.array([5, 10, 5]))
        >>> CompositionMoments(found).linear([1.0, 1.0, 1.0])
        (1.0, 0.0)
        """
        f, n = np.asarray(values, np.float64), self.found.n
        total, urn = float(self.found.prior.sum() + n), float(self.found.urn.sum())
        share, mean = self.found.urn / urn, self.population_mean
        centred = f - float(f @ mean)
        of_counts = float(centred**2 @ share - (centred @ share) ** 2) * n * (urn + n) / (urn + 1.0) / total**2
        variance = (float(centred**2 @ mean) - of_counts) / (total + 1.0) + of_counts
        return float(f @ mean), float(np.sqrt(max(0.0, variance)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Debiased:
    """Unbiased estimates of the cells' shares, without any prior.

    `estimate` = (A S/m - alpha)/n, A = n + the prior's total: unbiased for C/n given the data and for p; it may be negative.
    `sample_error` is its standard error about C/n, `population_error` about p; both come from unbiased variance estimates,
    and are NaN where one record was released. `effective_sample_size` = (n/A)^2 m (A + 1)/(A + m): records of a plain sample
    that would tell as much about C/n.
    """

    estimate: Floats
    sample_error: Floats
    population_error: Floats
    effective_sample_size: float


def debiased(found: Composition) -> Debiased:
    """Debiased shares of a release.

    >>> found = debiased(Composition(n=1000, prior=np.full(2, 50.0), released=np.array([850, 250])))
    >>> found.estimate, round(found.effective_sample_size)
    (array([0.8, 0.2]), 455)
    """
    n, m = found.n, float(found.released.sum())
    total = n + float(found.prior.sum())
    share = found.released / m
    estimate = (total * share - found.prior) / n
    if m < 2.0:
        about_sample = np.full(len(share), np.nan)
    else:  # E[share (1 - share) | C] = q (1 - q) A (m - 1)/(m (A + 1)), q the urn's mean
        about_sample = (total / n) ** 2 * share * (1.0 - share) * (total + m) / (total * (m - 1.0))
    about_population = np.full(len(share), np.nan)
    if n > 1:  # solves V = V_sample + (estimate (1 - estimate) + V)/n, whose bracket is unbiased for p (1 - p)
        sampling = np.maximum(0.0, estimate * (1.0 - estimate)) / n
        about_population = (about_sample + sampling) * n / (n - 1.0)
    return Debiased(
        estimate=estimate,
        sample_error=np.sqrt(about_sample),
        population_error=np.sqrt(about_population),
        effective_sample_size=effective_sample_size(n=n, prior_total=float(found.prior.sum()), records=m),
    )


@dataclass(frozen=True)
class MeasureMoments:
    """Of an open domain where nothing shows which labels the data hold: probabilities of the released labels.

    >>> urn = MeasurePosterior(labels=("a", "b"), counts=np.array([3, 1]), n=100, strength=1.0, discount=0.0)
    >>> MeasureMoments(urn).mean(about="urn"), MeasureMoments(urn).discovery_probability(about="urn")
    (array([0.6, 0.2]), 0.19999999999999996)
    """

    found: MeasurePosterior

    def __post_init__(self) -> None:
        if self.found.of_data is not None:
            raise ModelError("there is no closed form where it is known which labels are of the data.")

    @property
    def total(self) -> float:
        """The strength plus the number of released records."""
        return float(self.found.strength + self.found.counts.sum())

    def mean(self, *, about: About = "population") -> Floats:
        """Posterior means of the labels' probabilities."""
        share = self.found.shapes / self.total
        if about != "population":
            return share
        held = 1.0 - self.absent_probability
        return np.asarray((self.found.n * share - self.found.discount * held) / (self.found.strength + self.found.n))

    def variance(self, *, about: About = "population") -> Floats:
        """Posterior variances of the labels' probabilities."""
        n, discount = self.found.n, self.found.discount
        share = self.found.shapes / self.total
        spread = share * (1.0 - share)
        if about == "urn":
            return spread / (self.total + 1.0)
        of_counts = n * spread * (self.total + n) / (self.total + 1.0)
        if about == "sample":
            return of_counts / n**2
        held, mean, size = 1.0 - self.absent_probability, self.mean(), self.found.strength + n
        square = of_counts + (n * share) ** 2
        second = square + (1.0 - 2.0 * discount) * n * share - discount * (1.0 - discount) * held
        return np.asarray(second / (size * (size + 1.0)) - mean**2)

    @property
    def absent_probability(self) -> Floats:
        """P(C_j = 0 | Z), the chance that the urn made the label up."""
        rest = self.total - self.found.shapes
        return np.asarray(np.exp(betaln(self.found.shapes, rest + self.found.n) - betaln(self.found.shapes, rest)))

    def discovery_probability(self, *, about: About = "population") -> float:
        """Posterior mean of the probability that the next record is a value that was not released."""
        return float(1.0 - self.mean(about=about).sum())

    def unseen_probability(self, *, about: Literal["population", "urn"] = "population") -> float:
        """Posterior probability that the next record is a value that neither the data nor the release hold.

        In the urn (the record after x and Z): (strength + discount k)/(strength + n + m) times the ratio of rising factorials
        (strength + m + discount)_n/(strength + m)_n. In the population the released values that x does not hold are no help.
        """
        n, discount = self.found.n, self.found.discount
        ratio = gammaln([self.total + discount + n, self.total, self.total + discount, self.total + n])
        expected = self.found.elsewhere_shape * float(np.exp(ratio[0] + ratio[1] - ratio[2] - ratio[3]))
        if about == "urn":
            return expected / (self.total + n)
        made_up = float(self.absent_probability.sum()) if discount > 0.0 else 0.0
        return (expected - discount * made_up) / (self.found.strength + n)
