"""A sampler that is wrong on purpose, because real packages ship it: the plug-in multinomial, and what it truly costs.

Releasing k records with alpha = k/(e^epsilon - 1) prior records in each cell is epsilon-DP when the records come from the
Dirichlet-multinomial urn, which puts every drawn record back twice. Drawing them independently with the probabilities
(count + alpha)/(n + cells alpha) looks the same on average and is not private: the cell of a lone record, now with
probability proportional to 1 + alpha in place of alpha, may be drawn k times over, each time by the same odds, so the
likelihood ratio is (1 + 1/alpha)^k. The urn's is 1 + k/alpha = e^epsilon.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.profile import check_epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class PlugInMultinomial:
    """WRONG ON PURPOSE: claims `epsilon` and spends `plug_in_multinomial_epsilon`. For audits and teaching only."""

    records: int
    epsilon: float
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)

    def __call__(self, counts: NDArray[np.int64], /, *, size: int) -> NDArray[np.int64]:
        """`size` releases, each the number of records in every cell: a sampler for `privacy.audit.audit`."""
        masses = np.asarray(counts) + _alpha(self.records, self.epsilon)
        return self.rng.multinomial(self.records, masses / masses.sum(), size=size)


def plug_in_multinomial_epsilon(n: int, *, records: int, epsilon: float) -> float:
    """The true epsilon (delta = 0) of the plug-in multinomial that claims `epsilon`, for two cells or more.

    Neighbours x = c + {l}, y = c + {t} have the same total mass, so an output with S_l and S_t records in the two cells has
    likelihood ratio (1 + 1/(c_l + alpha))^S_l (1 + 1/(c_t + alpha))^-S_t: largest at c_l = 0, S_l = records, S_t = 0. Every
    n >= 1 has such neighbours, so n does not matter.

    >>> round(plug_in_multinomial_epsilon(2, records=2, epsilon=1), 2)
    1.24
    >>> plug_in_multinomial_epsilon(100, records=100, epsilon=1) >= 1.70
    True
    >>> plug_in_multinomial_epsilon(100, records=100, epsilon=2) >= 6.19
    True
    """
    _check(n, records)
    return records * math.log1p(1.0 / _alpha(records, epsilon))


def plug_in_multinomial_delta(n: int, *, records: int, nominal: float, epsilon: float) -> float:
    """What the sampler that claims `nominal` needs as delta at `epsilon`, in two cells: the largest over all neighbours.

    The likelihood ratio grows with S_l, so each divergence is one binomial tail. It says why sampling cannot see the leak:

    >>> plug_in_multinomial_delta(100, records=100, nominal=1, epsilon=1) < 1e-20
    True
    """
    from scipy.stats import binom

    _check(n, records)
    alpha = _alpha(records, nominal)
    released = np.arange(records + 1)
    worst = 0.0
    for common in range(n):  # records of the common part in the cell that the record leaves
        total = n + 2.0 * alpha
        first = binom.pmf(released, records, (common + 1.0 + alpha) / total)
        second = binom.pmf(released, records, (common + alpha) / total)
        worst = max(worst, math.fsum(np.maximum(0.0, first - math.exp(epsilon) * second)))
    return worst


def _alpha(records: int, epsilon: float) -> float:
    return records / math.expm1(check_epsilon(epsilon))


def _check(n: int, records: int) -> None:
    if n < 1 or records < 1:
        raise ModelError("n and records must be positive whole numbers.")
