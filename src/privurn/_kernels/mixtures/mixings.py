"""Laws of the random mixing measure: records, and the three numbers that any sampler needs of them.

Given how n records are shared among k clusters of sizes n_1, ..., n_k, the next one

    joins cluster h    with probability proportional to  n_h + offset,
    opens a new one    with probability proportional to  new_weight(k),

and the measure itself is  sum_h w_h delta(theta_h) + r P',  (w, r) ~ Dirichlet(n_1 + offset, ..., n_k + offset, new_weight(k)),
where P' is broken into sticks: `stick(k, piece)` is the share that piece 1, 2, ... takes of what is left (Pitman 1996).

symbol  meaning
s       strength (it may change from sweep to sweep, so it is no field of the record)
d       discount
K, a    number of components of a finite mixture, s / K
"""

import math
from typing import NamedTuple

from privurn._kernels.dispatch import generic, implement


@generic(on=1, often=True)
def offset(mixing, s):
    """What is added to a cluster's size."""


@generic(on=1, often=True)
def new_weight(mixing, s, k):
    """Weight of a new cluster beside k clusters."""


@generic(on=1)
def stick(mixing, s, k, piece, rng):
    """Share of the rest that its next piece takes, 1, 2, ...; 1 says that it is the last."""


@generic(on=1, default=True)
def new_strength(mixing, s, k, n, rng):
    """Strength drawn anew given k clusters of n records; the same where it is fixed."""
    return s


class DirichletProcess(NamedTuple):
    """Dirichlet process; the strength is fixed where shape is 0, and else has prior Gamma(shape, rate)."""

    shape: float
    rate: float


@implement(offset, DirichletProcess)
def _(mixing, s):
    return 0.0


@implement(new_weight, DirichletProcess)
def _(mixing, s, k):
    return s


@implement(stick, DirichletProcess)
def _(mixing, s, k, piece, rng):
    return -math.expm1(-rng.standard_exponential() / s)


@implement(new_strength, DirichletProcess)
def _(mixing, s, k, n, rng):
    """Escobar and West (1995): a Beta(s + 1, n) auxiliary x, then a mixture of two gamma laws."""
    if mixing.shape == 0.0:
        return s
    x = rng.standard_gamma(s + 1.0)
    log_x = math.log(x / (x + rng.standard_gamma(float(n))))
    rate = mixing.rate - log_x
    odds = (mixing.shape + k - 1.0) / (n * rate)
    shape = mixing.shape + k
    if rng.random() * (1.0 + odds) >= odds:
        shape -= 1.0
    return max(rng.standard_gamma(shape) / rate, 1e-300)


class PitmanYorProcess(NamedTuple):
    """Pitman-Yor process with a discount between 0 and 1 and a fixed strength."""

    discount: float


@implement(offset, PitmanYorProcess)
def _(mixing, s):
    return -mixing.discount


@implement(new_weight, PitmanYorProcess)
def _(mixing, s, k):
    return s + mixing.discount * k


@implement(stick, PitmanYorProcess)
def _(mixing, s, k, piece, rng):
    x = rng.standard_gamma(1.0 - mixing.discount)
    return x / (x + rng.standard_gamma(s + mixing.discount * (k + piece)))


class FiniteDirichlet(NamedTuple):
    """K components with weights Dirichlet(s / K, ..., s / K)."""

    components: int


@implement(offset, FiniteDirichlet)
def _(mixing, s):
    return s / mixing.components


@implement(new_weight, FiniteDirichlet)
def _(mixing, s, k):
    return s * (mixing.components - k) / mixing.components


@implement(stick, FiniteDirichlet)
def _(mixing, s, k, piece, rng):
    left = mixing.components - k - piece
    if left <= 0:
        return 1.0
    a = s / mixing.components
    x = rng.standard_gamma(a)
    total = x + rng.standard_gamma(a * left)
    return x / total if total > 0.0 else 1.0 / (left + 1.0)
