"""The papers' recipe as a twin of the exact figures: simulate releases, look at the likelihood ratios, count.

It agrees with `privurn.privacy.instance.cost` within its standard errors, and shows what the recipe cannot see: a probability
far below 1 over the number of simulations, and everything that only a neighbour's releases show. Simulations use an
ordinary seeded generator and are never releases.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.confidential import Confidential
from privurn.privacy.instance.multiplicities import Counts, Multiplicities
from privurn.privacy.laws.urn import check_counts
from privurn.privacy.profile import check_epsilon

Vector = NDArray[np.float64]
FRESH = -1
"""Stands for a value that the table does not contain."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Estimate(Confidential):
    """Mean of simulated values in [0, 1] and its standard error; a mean of 0 says no more than "below about 3/simulations"."""

    value: float
    standard_error: float
    simulations: int


@dataclass(frozen=True, kw_only=True, repr=False)
class MonteCarloReport(Confidential):
    """Estimated twins of the InstanceReport fields of the same names; confidential.

    Each is the largest of the estimates over the neighbours looked at, with that one's standard error (the largest of
    several noisy estimates leans upwards by about one of them). The thesis's figures are None where its conditions fail.
    """

    epsilon: float
    delta: Estimate
    delta_forward: Estimate
    delta_forward_tight: Estimate
    thesis_theorem: Estimate | None = None
    thesis_proposition: Estimate | None = None


def _estimate(values: Vector) -> Estimate:
    size = values.size
    return Estimate(
        value=float(values.mean()), standard_error=float(values.std() / math.sqrt(max(1, size - 1))), simulations=size
    )


def _largest(estimates: list[Estimate]) -> Estimate:
    return max(estimates, key=lambda each: each.value)


@dataclass(frozen=True, kw_only=True)
class _Urn:
    """Non-atomic base when alpha is None, else a public domain of `cells` cells of which the table lists the occupied ones."""

    records: int
    strength: float = 0.0
    discount: float = 0.0
    alpha: float | None = None
    cells: int = 0

    def simulate(
        self, rng: np.random.Generator, counts: NDArray[np.int64], watched: list[int], simulations: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """Copies of the watched values, number of new values, extremes: one row a release."""
        from papers.replicates import update_cell_replicates, update_replicates

        where = np.asarray(watched, np.int64)
        copies = np.zeros((simulations, where.size), np.int64)
        new = np.zeros(simulations, np.int64)
        extremes = np.zeros((simulations, 4))
        if self.alpha is None:
            update_replicates(rng, counts, self.strength, self.discount, self.records, where, copies, new, extremes)
        else:
            update_cell_replicates(rng, counts, self.cells, self.alpha, self.records, where, copies)
        return copies, new, extremes

    def mass(self, count: int) -> float:
        """Mass of a value that occurs so often among the common records."""
        return count - self.discount if self.alpha is None else count + self.alpha

    def ratio(self, counts: tuple[int, int], copies: tuple[Vector, Vector], new: Vector, distinct: int) -> Vector:
        """q_x/q_y at releases of x, where y has one l less and one t more; infinite where y cannot make the release.

        `counts` are those of (l, t) in x, t = 0 for a fresh value, and `distinct` the number of values of x.
        """
        common = distinct - (counts[0] == 1)
        if self.alpha is None:
            fresh = 1.0 + new * self.discount / (self.strength + common * self.discount) if common else np.ones_like(new)
        else:
            fresh = np.ones_like(new)
        if counts[0] >= 2 or self.alpha is not None:
            own = 1.0 + copies[0] / self.mass(counts[0] - 1)
        else:
            own = np.where(copies[0] > 0, math.inf, fresh)
        other = 1.0 + copies[1] / self.mass(counts[1]) if counts[1] >= 1 or self.alpha is not None else fresh
        return own / other


def _neighbour(urn: _Urn, counts: NDArray[np.int64], first: int, second: int) -> tuple[NDArray[np.int64], int, int]:
    """Counts with one `first` less and one `second` more (FRESH: a value of its own), and where both are now.

    A value that disappears is FRESH from then on; a public domain keeps its empty cells.
    """
    other = np.append(counts, 0) if second == FRESH else counts.copy()
    second = other.size - 1 if second == FRESH else second
    other[first] -= 1
    other[second] += 1
    if other[first] == 0 and urn.alpha is None:
        return np.delete(other, first), FRESH, second - (second > first)
    return other, first, second


def monte_carlo_instance(
    counts: Counts,
    *,
    epsilon: float,
    records: int,
    strength: float,
    discount: float = 0.0,
    simulations: int = 10_000,
    seed: int,
    multiplicities: int = 5,
) -> MonteCarloReport:
    """Estimate the instance-level figures of the Pitman-Yor urn after x by simulation.

    Looks at the neighbours made from the `multiplicities` smallest multiplicities (two values of each); the thesis's
    conditions look at every value. The papers simulate from x only; the two-sided figure also simulates from neighbours.
    """
    if not (0.0 <= discount < 1.0 and strength > -discount):
        raise ModelError("discount must lie in [0, 1) and strength above -discount.")
    urn = _Urn(records=int(records), strength=float(strength), discount=float(discount))
    return _report(urn, Multiplicities.of(counts), epsilon, simulations, seed, multiplicities)


def monte_carlo_public_domain(
    counts: Counts,
    *,
    cells: int,
    epsilon: float,
    records: int,
    alpha: float,
    simulations: int = 10_000,
    seed: int,
    multiplicities: int = 5,
) -> MonteCarloReport:
    """The same for the Dirichlet-multinomial urn on a public domain."""
    if not alpha > 0.0:
        raise ModelError("alpha must be positive.")
    urn = _Urn(records=int(records), alpha=float(alpha), cells=int(cells))
    return _report(urn, Multiplicities.of(counts, cells=cells), epsilon, simulations, seed, multiplicities)


def _report(
    urn: _Urn, table: Multiplicities, epsilon: float, simulations: int, seed: int, multiplicities: int
) -> MonteCarloReport:
    check_counts(n=table.n, records=urn.records)
    E = math.exp(check_epsilon(epsilon))
    if simulations < 2:
        raise ModelError("simulations must be at least 2.", hint="For example simulations=10000")
    rng = np.random.default_rng(seed)
    counts = table.expand()  # ascending
    if urn.alpha is not None:
        counts = counts[::-1].copy()  # occupied cells first
    order = np.argsort(counts, kind="stable")
    chosen: list[int] = []
    for size in table.sizes[:multiplicities]:
        chosen += [int(i) for i in order[np.searchsorted(counts[order], size) :][: min(2, int((counts == size).sum()))]]
    copies, new, extremes = urn.simulate(rng, counts, chosen, simulations)
    sharp, forward, backward = [], [], []
    extra = [] if urn.alpha is not None else [FRESH]
    for i, first in enumerate(chosen):
        if counts[first] == 0:
            continue
        for second in [each for each in chosen if each != first] + extra:
            own = copies[:, i].astype(float)
            other = np.zeros(simulations) if second == FRESH else copies[:, chosen.index(second)].astype(float)
            pair = (int(counts[first]), 0 if second == FRESH else int(counts[second]))
            ratio = urn.ratio(pair, (own, other), new.astype(float), counts.size)
            sharp.append(_estimate((ratio > E).astype(float)))
            forward.append(_estimate(np.maximum(0.0, 1.0 - E / ratio)))
    occupied = [i for i in chosen if counts[i] >= 1][:3]
    for first in occupied:  # releases of a few neighbours, where l has become t; x is what their t -> l leads back to
        for second in [each for each in chosen if each != first][:2] + extra:
            other_counts, there, here = _neighbour(urn, counts, first, second)
            watched = [here] if there == FRESH else [here, there]
            seen, fresh_values, _ = urn.simulate(rng, other_counts, watched, simulations)
            other = np.zeros(simulations) if there == FRESH else seen[:, 1].astype(float)
            pair = (int(other_counts[here]), 0 if there == FRESH else int(other_counts[there]))
            ratio = urn.ratio(pair, (seen[:, 0].astype(float), other), fresh_values.astype(float), other_counts.size)
            backward.append(_estimate(np.maximum(0.0, 1.0 - E / ratio)))
    theorem = proposition = None
    if urn.alpha is None and not table.has(1):
        theorem, proposition = _thesis(urn, counts.size, new, extremes, E)
    zero = _estimate(np.zeros(simulations))
    return MonteCarloReport(
        epsilon=float(epsilon),
        delta=_largest([*forward, *backward, zero]),
        delta_forward=_largest([*sharp, zero]),
        delta_forward_tight=_largest([*forward, zero]),
        thesis_theorem=theorem,
        thesis_proposition=proposition,
    )


def _thesis(urn: _Urn, distinct: int, new: NDArray[np.int64], extremes: Vector, E: float) -> tuple[Estimate, Estimate]:
    """Theorem 4.1 (uniform base measure) and proposition 4.2 at each release."""
    low, high, least, most = extremes.T
    new_mass = urn.strength + distinct * urn.discount
    some = new > 0
    outside = high > E
    bad = outside | (1.0 + new * urn.discount / new_mass > E * low)
    bad |= some & (least - urn.discount < new_mass * high / E)
    bad |= some & (most - urn.discount > new_mass * E * low)
    return _estimate(bad.astype(float)), _estimate(outside.astype(float))


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityRatios:
    """Thesis algorithm 2: log q(z | x) - log q(z | y) for simulated x, releases z of x and neighbours y, base density 1.

    Arrays of shape (data sets, releases, neighbours). `kind` says what replaced the last record: 0 another value of x, 1 a
    value of z, 2 a fresh value. `singular` marks releases that one of the two urns cannot make at all: the ratio of
    densities shown there, as the thesis computes it, hides that the ratio of probabilities is 0 or infinite.
    The data are simulated, so nothing here is confidential.
    """

    log_ratio: Vector
    kind: NDArray[np.int8]
    singular: NDArray[np.bool_]

    @property
    def log_inverse(self) -> Vector:
        """The other direction, y against x."""
        return -self.log_ratio

    def share_above(self, epsilon: float) -> tuple[float, float]:
        """Share of the ratios, and of their inverses, above e^epsilon; singular ones count in both."""
        above = (self.log_ratio > epsilon) | self.singular
        below = (self.log_ratio < -epsilon) | self.singular
        return float(above.mean()), float(below.mean())


def density_ratios(
    *,
    n: int,
    records: int,
    strength: float,
    discount: float = 0.0,
    datasets: int = 100,
    releases: int = 100,
    neighbours: int = 100,
    seed: int,
) -> DensityRatios:
    """Explore density ratios as the thesis's algorithm 2 does: x from the prior, z from x, y by replacing the last record.

    >>> ratios = density_ratios(n=50, records=20, strength=2.0, datasets=3, releases=4, neighbours=5, seed=1)
    >>> ratios.log_ratio.shape
    (3, 4, 5)
    """
    from papers.replicates import update_density_ratios

    check_counts(n=n, records=records)
    if n < 2:
        raise ModelError("n must be at least 2: the neighbours share all records but one.")
    if not (0.0 <= discount < 1.0 and strength > -discount):
        raise ModelError("discount must lie in [0, 1) and strength above -discount.")
    rng = np.random.default_rng(seed)
    shape = (datasets, releases, neighbours)
    log_ratio, kind, singular = np.zeros(shape), np.zeros(shape, np.int8), np.zeros(shape, np.bool_)
    for i in range(datasets):
        update_density_ratios(rng, int(n), int(records), float(strength), float(discount), log_ratio[i], kind[i], singular[i])
    return DensityRatios(log_ratio=log_ratio, kind=kind, singular=singular)
