"""Dirichlet-multinomial releases under the mechanism's own prior: what the sample holds, and what the population holds.

Three levels, each a step further from the released counts S (docs/proofs/posteriors.md):

    S  <-  C  <-  p        p ~ Dirichlet(alpha), C ~ Multinomial(n, p), S the urn's m draws given C

`C | S` is Dirichlet-multinomial(n; alpha + S) exactly, and `p | S` mixes Dirichlet(alpha + C) over it: independent draws, no
Markov chain. Dirichlet(alpha + S) is the law of the urn's own limit, not of p; it is narrower, and right for p only as n -> oo.

Alpha is set by privacy, not by belief. Debiased estimates need no prior at all.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.mechanisms.likelihood import Likelihood, Numbers, UrnTerm
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.urn_plan import effective_sample_size

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Composition:
    """p ~ Dirichlet(prior), C ~ Multinomial(n, p), S = `released` the counts of an urn that started with prior + C.

    >>> found = Composition(n=1, prior=np.ones(2), released=np.array([1, 0]))
    >>> found.counts_mean, found.population_mean  # Dirichlet(prior + S) would say 2/3
    (array([0.66666667, 0.33333333]), array([0.55555556, 0.44444444]))
    """

    n: int
    prior: Floats
    released: Whole

    def __post_init__(self) -> None:
        if self.n < 1 or self.prior.ndim != 1 or self.prior.shape != self.released.shape:
            raise ModelError("a composition needs n >= 1 and, for each cell, one prior and one released count.")
        if not np.all(np.isfinite(self.prior)) or self.prior.min(initial=np.inf) < 0.0 or self.released.min(initial=0) < 0:
            raise ModelError("priors and released counts must not be negative.")
        if not np.all(self.prior[self.released > 0] > 0.0):
            raise ModelError(
                "a value was released that has probability 0 under the mechanism's own prior.",
                hint="Use your own prior instead of the mechanism's",
            )

    @property
    def urn(self) -> Floats:
        """The urn's limit is Dirichlet(alpha + S) given S."""
        return self.prior + self.released

    @property
    def counts_mean(self) -> Floats:
        """E[C | S] = n (alpha + S)/(A + m), A the prior's total."""
        return self.n * self.urn / float(self.urn.sum())

    @property
    def counts_variance(self) -> Floats:
        """Var[C | S], cell by cell."""
        total = float(self.urn.sum())
        share = self.urn / total
        return self.n * share * (1.0 - share) * (total + self.n) / (total + 1.0)

    @property
    def population_mean(self) -> Floats:
        """E[p | S] = (alpha + E[C | S])/(A + n)."""
        return (self.prior + self.counts_mean) / float(self.prior.sum() + self.n)

    @property
    def population_variance(self) -> Floats:
        """Var[p | S]: that of Dirichlet(alpha + C), averaged over C, plus that of its mean."""
        total = float(self.prior.sum() + self.n)
        mean, spread = self.population_mean, self.counts_variance / total**2
        return (mean * (1.0 - mean) - spread) / (total + 1.0) + spread

    def count_law(self, cell: int) -> Floats:
        """P(C_cell = 0), ..., P(C_cell = n) given S: beta-binomial."""
        from scipy.special import betaln, gammaln

        mine = float(self.urn[cell])
        rest = float(self.urn.sum()) - mine
        k = np.arange(self.n + 1.0)
        if mine == 0.0 or rest == 0.0:
            return np.asarray(k == (0 if mine == 0.0 else self.n), np.float64)
        ways = gammaln(self.n + 1.0) - gammaln(k + 1.0) - gammaln(self.n - k + 1.0)
        return np.asarray(np.exp(ways + betaln(k + mine, self.n - k + rest) - betaln(mine, rest)))

    def linear(self, values: ArrayLike) -> tuple[float, float]:
        """Posterior mean and standard deviation of sum_i values_i p_i, in closed form.

        >>> found = Composition(n=100, prior=np.ones(3), released=np.array([5, 10, 5]))
        >>> found.linear([1.0, 1.0, 1.0])
        (1.0, 0.0)
        """
        f = np.asarray(values, np.float64)
        if f.shape != self.prior.shape:
            raise ModelError("a linear functional needs one value for each cell.")
        total, urn = float(self.prior.sum() + self.n), float(self.urn.sum())
        share, mean = self.urn / urn, self.population_mean
        centred = f - float(f @ mean)
        of_counts = float(centred**2 @ share - (centred @ share) ** 2) * self.n * (urn + self.n) / (urn + 1.0) / total**2
        variance = (float(centred**2 @ mean) - of_counts) / (total + 1.0) + of_counts
        return float(f @ mean), float(np.sqrt(max(0.0, variance)))

    def draw_counts(self, n_draws: int, *, rng: np.random.Generator) -> Whole:
        """Independent draws of C given S, (n_draws, cells)."""
        return np.asarray(rng.multinomial(self.n, _dirichlet(np.broadcast_to(self.urn, (n_draws, len(self.urn))), rng)))

    def draw_population(self, n_draws: int, *, rng: np.random.Generator) -> Floats:
        """Independent draws of p given S, (n_draws, cells)."""
        return _dirichlet(self.prior + self.draw_counts(n_draws, rng=rng), rng)

    def draw_urn(self, n_draws: int, *, rng: np.random.Generator) -> Floats:
        """Independent draws of the urn's limit given S: Dirichlet(alpha + S)."""
        return _dirichlet(np.broadcast_to(self.urn, (n_draws, len(self.urn))), rng)


def _dirichlet(shapes: Floats, rng: np.random.Generator) -> Floats:
    gammas = rng.standard_gamma(shapes)  # 0 where the shape is 0; some shape is above 1, so the total is positive
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def composition(mechanism: Mechanism, *, counts: ArrayLike) -> Composition:
    """What a release says under the mechanism's own prior, where that is an urn on finitely many cells and n is public.

    `counts`: released records in each cell; for a posterior sample its probabilities.
    """
    return closed_form(mechanism.likelihood(Numbers(np.asarray(counts))), n=mechanism.n)


def closed_form(term: Likelihood, *, n: int | None) -> Composition:
    """The same from the likelihood of the counts."""
    if not isinstance(term, UrnTerm) or not np.any(term.alpha > 0.0):
        raise ModelError(
            "what was released is not an urn on a finite domain whose every record is published.",
            hint="Use the posterior with latent counts",
        )
    if n is None:
        raise ModelError(
            "the number of confidential records is secret, and this closed form needs it.",
            hint="Use the posterior with latent counts, which has a prior on that number too",
        )
    if len(term.released) > 1:
        raise ModelError(
            "several posterior samples of the same data have no closed form together.",
            hint="Use the posterior with latent counts",
        )
    return Composition(n=n, prior=term.alpha, released=term.released[0])


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


def debiased(mechanism: Mechanism, *, counts: ArrayLike) -> Debiased:
    """Debiased shares of a Dirichlet-multinomial release with a public n. Parameters as for `composition`.

    >>> from fractions import Fraction
    >>> from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
    >>> urn = DirichletMultinomial(n=1000, cells=2, alpha=Fraction(50), records=1100)
    >>> found = debiased(urn, counts=[850, 250])
    >>> found.estimate, round(found.effective_sample_size)
    (array([0.8, 0.2]), 455)
    """
    found = composition(mechanism, counts=counts)
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
