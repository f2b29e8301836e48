"""The paper's instance-level figure delta#, exactly: probabilities that one release is far likelier under x than under y.

All of them look in one direction only (releases of x, never of its neighbours) and bound a probability where the tight
divergence would do; `privurn.privacy.instance.cost` has the figures to rely on. These stand in the package because
`account instance` states the papers' delta# beside the tight one (`InstanceReport.delta_forward`).
Where the papers' corollary 2 falls short: docs/proofs/corollary-2-gap.md. Enumeration: tests/exact/test_instance.py.
"""

import math

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.instance.multiplicities import Multiplicities, threshold
from privurn.privacy.laws.divergences import SMALLEST, UNLIMITED, Unlimited, chain_steps, rounded_up
from privurn.privacy.profile import ROUND_UP

Vector = NDArray[np.float64]


def _first_excess(mass: float, E: float) -> float:
    """Smallest s with 1 + s/mass > E."""
    return math.floor(mass * (E - 1.0)) + 1.0


def theorem_1(table: Multiplicities, *, epsilon: float, records: int, strength: float, discount: float, floor: float) -> float:
    """delta# of theorem 1: the largest Q_x(ratio > e^epsilon) over all neighbours; `floor` is phi.

    At discount 0 it is corollary 1, the largest P(S_i > (e^epsilon - 1)(n_i - 1)) (at least one copy for a value that
    occurs once). Every event about l is contained in S_l > (e^epsilon - 1) mass, which orders and prunes the pairs.
    """
    from privurn._kernels.accounting.beta_binomial import tail_weights
    from privurn._kernels.accounting.exceedance import both_old_exceedance
    from privurn._kernels.accounting.new_values import new_to_old_sums, old_to_new_sums

    E, m, sigma = threshold(epsilon), float(records), discount
    total = strength + (table.n - 1.0)
    best = floor if table.has(1) else 0.0
    if sigma > 0.0 and table.has(1) and table.distinct > 1:  # a singleton becomes an old value
        new_mass = strength + (table.distinct - 1) * sigma
        new = _NewValues(new_mass, new_mass + sigma, total + sigma, sigma, records, E)
        bounds = [(new.exceeds(size - sigma, total + sigma), size) for size in table.partners(1)]
        for bound, size in sorted(bounds, reverse=True):
            if floor + (1.0 - floor) * bound <= best * ROUND_UP:
                break
            extra, _ = new_to_old_sums(m, size - sigma, new_mass, total, sigma, E)
            best = max(best, floor + (1.0 - floor) * extra)

    candidates = []
    for size in table.sizes:
        mass = size - 1.0 - sigma
        if size >= 2 and _first_excess(mass, E) <= m:
            start, weights = tail_weights(m, mass + 1.0, total - mass, _first_excess(mass, E))
            candidates.append((max(float(weights.sum()), SMALLEST), size, float(start), weights))
    candidates.sort(key=lambda each: -each[0])
    if sigma == 0.0:  # the new-value event is S_l > (E - 1) mass itself
        return max([best, *(rounded_up(each[0], steps=4.0 * each[3].size) for each in candidates)])
    steps = 4.0 * max((each[3].size for each in candidates), default=0)
    for bound, size, start, weights in candidates:
        if bound <= best * ROUND_UP:
            break
        mass = size - 1.0 - sigma
        for other in table.partners(size):
            rest = total - mass - (other - sigma)
            best = max(best, both_old_exceedance(start, weights, m, mass, other - sigma, rest, E), SMALLEST)
    if not candidates or candidates[0][0] <= best * ROUND_UP:
        return rounded_up(best, steps=steps)
    new_mass = strength + table.distinct * sigma
    new = _NewValues(new_mass, new_mass, total + 1.0, sigma, records, E)
    bounds = [(new.exceeded(size - 1.0 - sigma, start, weights), i) for i, (_, size, start, weights) in enumerate(candidates)]
    for bound, i in sorted(bounds, reverse=True):
        if bound <= best * ROUND_UP:
            break
        _, size, start, weights = candidates[i]
        best = max(best, old_to_new_sums(start, weights, m, size - 1.0 - sigma, new_mass, total, sigma, E)[0])
    return rounded_up(best, steps=steps + chain_steps(records, new_mass / total))


class _NewValues:
    """Bounds on events about W = K discount/new_mass and one old count that need no joint law: split at K <= k, any k."""

    def __init__(self, new_mass: float, nu: float, tau: float, sigma: float, records: int, E: float) -> None:
        from privurn._kernels.accounting.discovery import distinct_law

        lo, hi, law = distinct_law(nu, tau, sigma, records, 0)
        self.new = 1.0 + np.arange(lo, hi + 2) * (sigma / new_mass)  # 1 + W, one state further than the law
        self.at_most = np.concatenate([np.cumsum(law[lo : hi + 1]), [1.0]])
        self.above = np.concatenate([np.cumsum(law[lo : hi + 1][::-1])[::-1], [0.0]])  # P(K >= k)
        self.records = records
        self.E = E

    def exceeded(self, mass: float, start: float, weights: Vector) -> float:
        """At least P(1 + S/mass > E (1 + W)), given the law of S: P(K <= k) + P(1 + S/mass > E (1 + W_(k+1)))."""
        tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0)  # P(S >= start + i)
        first = np.floor(mass * (self.E * self.new - 1.0)) + 1.0 - start
        beyond = tails[np.clip(first, 0, weights.size).astype(np.int64)]
        return float(np.min(np.append(beyond[0], self.at_most[:-1] + beyond[1:])))

    def exceeds(self, mass: float, total: float) -> float:
        """At least P(1 + W > E (1 + S/mass)), S ~ BB(m, mass, total - mass): P(K > k) + P(1 + S/mass < (1 + W_k)/E)."""
        from privurn._kernels.accounting.beta_binomial import beta_binomial_window

        start, weights = beta_binomial_window(self.records, mass, total - mass)
        up_to = np.concatenate([[0.0], np.cumsum(weights)])  # P(S < start + i)
        count = np.ceil(mass * (self.new[:-1] / self.E - 1.0)) - start
        small = up_to[np.clip(count, 0, weights.size).astype(np.int64)]
        return float(np.min(self.above[1:] + small)) + 1e-40


def theorem_1_public_domain(table: Multiplicities, *, epsilon: float, records: int | Unlimited, alpha: float) -> float:
    """Theorem 1 read on a public domain, empty cells included: the largest P_x(1 + S_l/a > e^epsilon (1 + S_t/b))."""
    from scipy.special import betaincc

    from privurn._kernels.accounting.beta_binomial import tail_weights
    from privurn._kernels.accounting.exceedance import both_old_exceedance

    E = threshold(epsilon)
    total = alpha * table.distinct + (table.n - 1.0)
    best = 0.0
    if records == UNLIMITED:  # the share of l among l and t is beta(a + 1, b)
        for size in table.sizes:
            for other in table.partners(size) if size >= 1 else []:
                a, b = alpha + size - 1.0, alpha + other
                best = max(best, float(betaincc(a + 1.0, b, E * a / (b + E * a))))
        return rounded_up(best, steps=100.0)
    m = float(records)
    candidates = []
    for size in table.sizes:
        mass = alpha + size - 1.0
        if size >= 1 and table.partners(size) and _first_excess(mass, E) <= m:
            start, weights = tail_weights(m, mass + 1.0, total - mass, _first_excess(mass, E))
            candidates.append((max(float(weights.sum()), SMALLEST), size, float(start), weights))
    candidates.sort(key=lambda each: -each[0])
    for bound, size, start, weights in candidates:
        if bound <= best * ROUND_UP:
            break
        for other in table.partners(size):
            others = table.n - size - other  # whole numbers: exactly 0 when there are two cells only
            rest = (table.distinct - 2) * alpha + others
            best = max(best, both_old_exceedance(start, weights, m, alpha + size - 1.0, alpha + other, rest, E), SMALLEST)
    return rounded_up(best, steps=4.0 * max((each[3].size for each in candidates), default=0))
