"""What a release costs for the data at hand: tight in both directions, and the papers' one-sided figure beside it.

x is the confidential table and y runs over its neighbours (one record replaced; n is public). The tight two-sided delta is
the largest of D(Q_x || Q_y) and D(Q_y || Q_x), D the tight divergence at epsilon (docs/proofs/tight-divergence.md). D falls
in the mass of either value and in the number of values, so only the smallest multiplicities matter and the cost does not
grow with n. Everything here depends on x and is confidential: it never enters a public certificate, and a parameter
chosen by looking at it voids the guarantee. Why one direction is not enough: docs/proofs/one-sidedness.md. Enumeration:
tests/exact/test_instance.py.
"""

import math
from dataclasses import dataclass

from privurn.errors import ModelError
from privurn.privacy.confidential import Confidential, ConfidentialNumber
from privurn.privacy.instance import papers
from privurn.privacy.instance.multiplicities import Counts, Multiplicities
from privurn.privacy.laws.divergences import (
    UNLIMITED,
    Unlimited,
    check_counts,
    fresh_is_released,
    new_to_old,
    old_old,
    old_to_new,
)
from privurn.privacy.profile import LARGEST_EPSILON, check_delta, check_epsilon, smallest_admissible


@dataclass(frozen=True, kw_only=True, repr=False)
class InstanceReport(Confidential):
    """Instance-level figures of one table at one epsilon; confidential.

    delta                the tight two-sided value: Q_x(B) <= e^epsilon Q_y(B) + delta and the same with x and y exchanged,
                         for every neighbour y and event B. The one to quote.
    delta_forward        the PY paper's delta# (theorem 1): largest probability, under x, of a release more than e^epsilon
                         times likelier under x than under some y. One direction, and a probability rather than a divergence.
    delta_forward_tight  the tight value of that one direction, never above delta_forward nor above delta.
    floor                chance that a record nobody else shares is released: delta never falls below it. 0 on a public domain.
    """

    epsilon: float
    delta: float
    delta_forward: float
    delta_forward_tight: float
    floor: float


def instance_delta(counts: Counts, *, epsilon: float, records: int, strength: float, discount: float = 0.0) -> InstanceReport:
    """Instance-level figures of m = `records` records from the Pitman-Yor urn (discount 0: Dirichlet process) after x.

    `counts` holds how often each distinct value occurs (an array, or anything with `.counts`); the base measure has no
    atoms.

    >>> report = instance_delta([40, 25, 30], epsilon=1.0, records=10, strength=1.0)
    >>> report
    InstanceReport(confidential)
    >>> round(report.delta, 6), report.delta_forward < 1e-7
    (0.095238, True)
    """
    epsilon = check_epsilon(epsilon)
    urn = _PitmanYor(Multiplicities.of(counts), records=records, strength=strength, discount=discount)
    forward, delta = urn.divergences(epsilon)
    sharp = papers.theorem_1(
        urn.table, epsilon=epsilon, records=urn.records, strength=urn.strength, discount=urn.discount, floor=urn.floor
    )
    return InstanceReport(
        epsilon=epsilon, delta=delta, delta_forward=max(sharp, forward), delta_forward_tight=forward, floor=urn.floor
    )


def instance_epsilon(
    counts: Counts, *, delta: float, records: int, strength: float, discount: float = 0.0
) -> ConfidentialNumber:
    """Smallest epsilon whose two-sided instance-level delta is at most this one; infinite below the floor."""
    urn = _PitmanYor(Multiplicities.of(counts), records=records, strength=strength, discount=discount)
    value = math.inf
    if check_delta(delta) >= urn.floor:
        value = smallest_admissible(lambda epsilon: urn.divergences(epsilon)[1], delta, start=1.0, limit=LARGEST_EPSILON)
    return ConfidentialNumber(value=value, meaning="instance-level epsilon, two-sided")


def instance_delta_public_domain(
    counts: Counts, *, cells: int, epsilon: float, records: int | Unlimited, alpha: float
) -> InstanceReport:
    """Instance-level figures of the Dirichlet-multinomial urn on a public domain of `cells` cells, `alpha` in each.

    Cells that `counts` does not list are empty, and count as neighbours' values all the same.

    >>> report = instance_delta_public_domain([40, 25, 30], cells=4, epsilon=1.0, records=10, alpha=2.0)
    >>> report.delta_forward_tight < 1e-9 < report.delta
    True
    """
    epsilon = check_epsilon(epsilon)
    urn = _PublicDomain(counts, cells=cells, records=records, alpha=alpha)
    forward, delta = urn.divergences(epsilon)
    sharp = papers.theorem_1_public_domain(urn.table, epsilon=epsilon, records=urn.records, alpha=urn.alpha)
    return InstanceReport(
        epsilon=epsilon, delta=delta, delta_forward=max(sharp, forward), delta_forward_tight=forward, floor=0.0
    )


def instance_epsilon_public_domain(
    counts: Counts, *, cells: int, delta: float, records: int | Unlimited, alpha: float
) -> ConfidentialNumber:
    """Smallest epsilon whose two-sided instance-level delta is at most this one.

    At delta = 0 it solves m <= (e^epsilon - 1) min{ alpha + n_l - 1 over the cells with n_l >= 1, alpha if some cell is
    empty }. The one-sided condition on alpha + n_l alone, sometimes quoted, is off by one record.

    >>> round(float(instance_epsilon_public_domain([40, 25, 30], cells=3, delta=0.0, records=10, alpha=2.0)), 4)
    0.3254
    """
    urn = _PublicDomain(counts, cells=cells, records=records, alpha=alpha)
    value = urn.pure_epsilon
    if check_delta(delta) > 0.0:
        limit = min(value, LARGEST_EPSILON)
        value = smallest_admissible(lambda epsilon: urn.divergences(epsilon)[1], delta, start=1.0, limit=limit)
    return ConfidentialNumber(value=value, meaning="instance-level epsilon, two-sided")


class _PitmanYor:
    """The urn of a table under a non-atomic base measure."""

    def __init__(self, table: Multiplicities, *, records: int, strength: float, discount: float) -> None:
        check_counts(n=table.n, records=records)
        if not 0.0 <= discount < 1.0:
            raise ModelError("discount must lie in [0, 1).", hint="discount=0 is the Dirichlet process")
        if not (strength > -discount and math.isfinite(strength)):
            raise ModelError("strength must be finite and larger than -discount.", hint="For example strength=1, discount=0.5")
        self.table = table
        self.records = int(records)
        self.strength = float(strength)
        self.discount = float(discount)
        self.total = self.strength + (table.n - 1.0)
        self.floor = fresh_is_released(self.total, discount=self.discount, records=self.records)

    def divergences(self, epsilon: float) -> tuple[float, float]:
        """Tight (forward, two-sided) at epsilon >= 0."""
        table, sigma, total = self.table, self.discount, self.total
        smallest = table.smallest(2)
        if sigma == 0.0:  # the new value is the worst replacement, and phi bounds everything both ways
            forward = self.floor if smallest is None or table.has(1) else self._old_to_new(smallest - 1.0, 0, epsilon, 0.0)
            return min(forward, self.floor), self.floor
        forward = self.floor if table.has(1) else 0.0
        backward = self.floor
        for first, second in table.smallest_pairs(2):
            a, b = first - 1.0 - sigma, second - sigma
            forward = max(forward, old_old(a, b, total - a - b, self.records, epsilon))
            backward = max(backward, old_old(b, a, total - a - b, self.records, epsilon))
        if table.has(1) and table.distinct > 1:  # a singleton becomes an old value
            mass, values = table.partners(1)[0] - sigma, table.distinct - 1
            forward = max(forward, self._new_to_old(mass, values, epsilon))
            backward = max(backward, self._old_to_new(mass, values, epsilon, max(forward, backward)))
        if smallest is not None:  # an old value becomes a new one
            mass, values = smallest - 1.0 - sigma, table.distinct
            forward = max(forward, self._old_to_new(mass, values, epsilon, forward))
            if not (table.has(1) and table.distinct > 1 and table.partners(1)[0] < smallest):
                backward = max(backward, self._new_to_old(mass, values, epsilon))  # else the singleton's D_no is no smaller
        return forward, max(forward, backward)

    def _old_to_new(self, mass: float, values: int, epsilon: float, best: float) -> float:
        """D_on, where it may be more than `best`."""
        new_mass = self.strength + values * self.discount
        return old_to_new(
            mass, new_mass, self.total, discount=self.discount, records=self.records, epsilon=epsilon, at_least=best
        )

    def _new_to_old(self, mass: float, values: int, epsilon: float) -> float:
        """D_no."""
        new_mass = self.strength + values * self.discount
        return new_to_old(
            mass, new_mass, self.total, discount=self.discount, records=self.records, epsilon=epsilon, floor=self.floor
        )


class _PublicDomain:
    """The urn of a table on a public domain."""

    def __init__(self, counts: Counts, *, cells: int, records: int | Unlimited, alpha: float) -> None:
        if cells < 1:
            raise ModelError("a public domain needs at least one cell.")
        if not (alpha > 0.0 and math.isfinite(alpha)):
            raise ModelError("alpha must be positive and finite.", hint="Prior records in each cell, for example alpha=20")
        self.table = Multiplicities.of(counts, cells=cells)
        check_counts(n=self.table.n, records=records)
        self.records: int | Unlimited = UNLIMITED if records == UNLIMITED else int(records)
        self.alpha = float(alpha)

    @property
    def pure_epsilon(self) -> float:
        """log(1 + m / smallest mass), 0 for a single cell."""
        if self.table.distinct == 1:
            return 0.0
        if self.records == UNLIMITED:
            return math.inf
        occupied = self.table.smallest(1)
        assert occupied is not None
        mass = min(self.alpha + occupied - 1.0, self.alpha if self.table.has(0) else math.inf)
        return math.nextafter(math.log1p(self.records / mass), math.inf)

    def divergences(self, epsilon: float) -> tuple[float, float]:
        """Tight (forward, two-sided) at epsilon >= 0."""
        forward = backward = 0.0
        for first, second in self.table.smallest_pairs(1):
            a, b = self.alpha + first - 1.0, self.alpha + second
            rest = (self.table.distinct - 2) * self.alpha + (self.table.n - first - second)
            forward = max(forward, old_old(a, b, rest, self.records, epsilon))
            backward = max(backward, old_old(b, a, rest, self.records, epsilon))
        return forward, max(forward, backward)
