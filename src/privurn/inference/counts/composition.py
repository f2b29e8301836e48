"""Dirichlet-multinomial releases under the mechanism's own prior: what the sample holds, and what the population holds.

Three levels, each a step further from the released counts S (docs/proofs/posteriors.md):

    S  <-  C  <-  p        p ~ Dirichlet(alpha), C ~ Multinomial(n, p), S the urn's m draws given C

`C | S` is Dirichlet-multinomial(n; alpha + S) exactly, and `p | S` mixes Dirichlet(alpha + C) over it: independent draws, no
Markov chain. Dirichlet(alpha + S) is the law of the urn's own limit, not of p; it is narrower, and right for p only as n -> oo.

Alpha is set by privacy, not by belief.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.mechanisms.likelihood import Likelihood, Numbers, UrnTerm
from privurn.mechanisms.mechanism import Mechanism

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Composition:
    """p ~ Dirichlet(prior), C ~ Multinomial(n, p), S = `released` the counts of an urn that started with prior + C.

    >>> Composition(n=1, prior=np.ones(2), released=np.array([1, 0])).urn
    array([2., 1.])
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
