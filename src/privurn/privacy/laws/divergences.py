"""Tight divergences between two urns that differ in one record: the building blocks of global and instance-level profiles.

D_oo, D_on, D_no and phi of docs/proofs/tight-divergence.md, each rounded up by a margin that covers its rounding.
Enumeration: tests/exact/test_profiles.py and test_instance.py; 50 digits: tests/exact/test_precision.py.
"""

import math
from functools import cache
from typing import Any, Literal

import numpy as np

from privurn.errors import ModelError
from privurn.privacy.profile import LARGEST_EPSILON, ROUND_UP

Unlimited = Literal["unlimited"]
UNLIMITED: Unlimited = "unlimited"

MOST_CONFIDENTIAL = 10**13
"""More people than there are; beyond it sums of masses lose digits."""

LARGEST_ALPHA = 1e100
"""Products of larger priors leave the floats."""

SMALLEST = 1e-300
"""Stands for a positive divergence too small for a float: an exact zero is only claimed where it is one."""

DROPPED = 1e-36
"""More than all the probability that the law of the new values leaves out (1e-45 a state)."""

UNLIMITED_ROUNDING = 1e-13
"""Relative error allowed for each of the two terms of the limit (tests/exact/test_precision.py)."""

FAR_APART = 2.0
"""From this epsilon on the limit is computed in two ways."""

EXPONENT_ROUNDING = 2.0**-50
"""Relative margin for each unit of a logarithm that is computed and then exponentiated."""

STEP_ROUNDING = 1e-15
"""Rounding of one lattice step: a handful of products, each off by at most 1.2e-16."""

LARGEST_RANGE = 2e7
"""Above this many steps the finite-m divergence is replaced by its limit for m -> infinity, which is never smaller."""


def check_counts(*, n: int, records: int | Unlimited) -> None:
    """N confidential records, `records` released ones."""
    if n < 1:
        raise ModelError("n must be a positive whole number.", hint="The number of confidential records, for example n=10000")
    if n > MOST_CONFIDENTIAL:
        raise ModelError(f"n must be at most {MOST_CONFIDENTIAL:.0e}.", hint="The number of confidential records")
    if records != UNLIMITED and int(records) < 1:
        raise ModelError("the number of released records must be at least 1.", hint="For example records=1000")


def check_public_domain(*, cells: int, alpha: float) -> None:
    """At least one cell, and a prior in each."""
    if cells < 1:
        raise ModelError("a public domain needs at least one cell.")
    if not 0.0 < alpha <= LARGEST_ALPHA:
        raise ModelError(
            f"alpha must be positive and at most {LARGEST_ALPHA:g}.", hint="Prior records in each cell, for example alpha=20"
        )


def public_domain_pure_epsilon(*, cells: int, alpha: float, records: int | Unlimited) -> float:
    """log(1 + m/alpha), rounded up: the largest likelihood ratio, whichever the neighbours. 0 with one cell."""
    if cells == 1:
        return 0.0
    return math.inf if records == UNLIMITED else math.log1p(records / alpha) * (1.0 + 2.0**-50)


def delta_unlimited(a: float, b: float, epsilon: float) -> float:
    """Limit of D_oo(a, b) as the number of released records grows: posterior sampling of two cell probabilities.

    With q = E a/(b + E a) and Ibar the upper regularised incomplete beta function it is Ibar_q(a+1, b) - E Ibar_q(a, b+1).
    Both shifts are taken out of the functions, which leaves t (1/a + E/b) - (E - 1) Ibar_q(a, b), t = q^a (1-q)^b / B(a, b);
    for large E that cancels more than the plain difference, whose terms differ by a factor of 1 + 1/b. Proof:
    docs/proofs/unlimited-records.md.
    """
    epsilon = min(epsilon, LARGEST_EPSILON)
    ratio, gain = math.exp(epsilon), math.expm1(epsilon)
    spread = b + ratio * a
    # t by its deviance, so that nothing of the size of lnGamma(a + b) cancels
    down = math.log1p(a * gain / (a + b)) if epsilon > -1.0 else math.log(spread / (a + b))
    up = math.log1p(b * gain / spread) if epsilon > -1.0 else epsilon - down
    log_t = a * up - b * down
    log_t += _stirling(a + b) - _stirling(a) - _stirling(b)
    t = math.exp(log_t) * math.sqrt(a * b / (2.0 * math.pi * (a + b)))
    above, below = ratio * (a / spread), b / spread  # q and 1 - q; either may be tiny
    margin = UNLIMITED_ROUNDING + EXPONENT_ROUNDING * (a * abs(up) + b * abs(down))
    # q is known to its last bit, which moves Ibar_q by as much times t
    moved = EXPONENT_ROUNDING * t * abs(gain)
    value = _difference_up(t * (1.0 / a + ratio / b), gain * _upper_beta(a, b, above, below), margin=margin) + moved
    if epsilon > FAR_APART:
        first, second = _upper_beta(a + 1.0, b, above, below), ratio * _upper_beta(a, b + 1.0, above, below)
        moved = 2.0 * EXPONENT_ROUNDING * t * (a + b) * (ratio / b if above < below else 1.0 / a)
        value = min(value, _difference_up(first, second, margin=margin) + moved)
    return min(1.0, max(SMALLEST, value))


def _upper_beta(a: float, b: float, q: float, rest: float) -> float:
    """Ibar_q(a, b) by the smaller of q and 1 - q = `rest`: of a number near 1 the distance to 1 is lost."""
    lower, upper = _beta_functions()
    return float(upper(a, b, q) if q < rest else lower(b, a, rest))


@cache
def _beta_functions() -> tuple[Any, Any]:
    """Imported once: asking a package for its names at every point takes as long as the functions."""
    from scipy.special import betainc, betaincc

    return betainc, betaincc


def _difference_up(first: float, second: float, *, margin: float) -> float:
    """First - second, raised by this share of both."""
    return first - second + margin * (first + abs(second))


def _stirling(x: float) -> float:
    """lnGamma(x) less its leading Stirling terms."""
    if x < 16.0:
        return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi))
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


def _range(records: int, a: float, b: float, rest: float) -> float:
    """About how many lattice points D_oo visits: twenty standard deviations of N, and of X given a typical N."""

    def spread(m: float, first: float, second: float) -> float:
        total = first + second
        return math.sqrt(m * (first / total) * (second / total) * (total + m) / (total + 1.0))

    typical = records * (a + b + 1.0) / (a + b + rest + 1.0)
    return 20.0 * (spread(records, a + b + 1.0, max(0.0, rest)) + spread(typical, a, b))


def old_old(a: float, b: float, rest: float, records: int | Unlimited, epsilon: float) -> float:
    """D_oo(a, b) in an urn with `rest` mass elsewhere, rounded up."""
    if records == UNLIMITED:
        return delta_unlimited(a, b, epsilon)
    steps = _range(records, a, b, rest)
    if steps > LARGEST_RANGE:
        return delta_unlimited(a, b, epsilon)
    value = float(_divergence()(float(a), float(b), max(0.0, float(rest)), float(records), float(epsilon)))
    unit = max(0.0, min(records, a * math.expm1(epsilon))) * math.log1p(b / a)  # log of what the tail is counted in
    return rounded_up(value, steps=steps + unit)


@cache
def _divergence() -> Any:
    """The compiled sum, imported once."""
    from privurn._kernels.accounting.old_values import old_old_divergence

    return old_old_divergence


def rounded_up(value: float, *, steps: float = 0.0) -> float:
    """Raise by more than the rounding of so many steps of a recursion with positive terms."""
    return min(1.0, value * (ROUND_UP + STEP_ROUNDING * steps))


def chain_steps(records: int, share: float) -> float:
    """About how many steps the law of the new values takes when they have this share of the urn."""
    return min(records, 2.0 * share * records + 1000.0)


def fresh_is_released(total: float, *, discount: float, records: int) -> float:
    """phi: the chance that a value nobody else shares is among the released records; `total` is T = theta + n - 1."""
    from privurn._kernels.accounting.new_values import release_probability

    return rounded_up(float(release_probability(total, discount, float(records))))


def old_to_new(
    mass: float, new_mass: float, total: float, *, discount: float, records: int, epsilon: float, at_least: float = 0.0
) -> float:
    """D_on: one more copy of an old value of this mass against one fresh value; a bound where that is no more than `at_least`.

    At discount 0 it is E_x[(1 - E/(1 + S/mass))_+], S ~ beta-binomial(m, mass + 1, T - mass), and never more than that.
    """
    from privurn._kernels.accounting.beta_binomial import tail_weights
    from privurn._kernels.accounting.new_values import old_to_new_sums

    E, m = math.exp(epsilon), float(records)
    if mass * math.expm1(epsilon) >= m:
        return 0.0
    start, weights = tail_weights(m, mass + 1.0, total - mass, float(math.floor(mass * math.expm1(epsilon))))
    old = 1.0 + (start + np.arange(weights.size)) / mass
    bound = max(float((weights * np.maximum(0.0, old - E) / old).sum()), SMALLEST)
    bound = rounded_up(bound, steps=4.0 * weights.size)
    if discount == 0.0 or bound <= at_least:
        return bound
    _, value = old_to_new_sums(float(start), weights, m, mass, new_mass, total, discount, E)
    steps = 4.0 * weights.size + chain_steps(records, new_mass / total)
    return min(bound, rounded_up(float(value) + bound * DROPPED, steps=steps))


def new_to_old(
    mass: float, new_mass: float, total: float, *, discount: float, records: int, epsilon: float, floor: float
) -> float:
    """D_no: one fresh value against one more copy of an old value; `floor` is phi."""
    from privurn._kernels.accounting.new_values import new_to_old_sums

    if records * discount <= new_mass * math.expm1(epsilon):  # 1 + W never exceeds E
        return floor
    _, value = new_to_old_sums(float(records), mass, new_mass, total, discount, math.exp(epsilon))
    steps = chain_steps(records, new_mass / total)
    return min(1.0, floor + rounded_up(float(value) * (1.0 - floor) + DROPPED, steps=steps))
