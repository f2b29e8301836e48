"""Composition of profiles for a plan that is fixed before anything is released.

Each profile is the divergence of a dominating pair, and the product of dominating pairs dominates the joint release (Zhu,
Dong, Wang 2022); losses add, and dp-accounting convolves their lattice laws (loss_law).

Valid when the list of profiles does not depend on what is released: mechanisms may look at earlier outputs, their parameters
may not. Where later parameters do depend on earlier outputs, tight composition is no filter; the ledger then enforces basic or
zCDP composition.

Fourier transforms leave errors of either sign (dp-accounting 0.6.0 by itself gives 9.0e-14 for 1000 Gaussian releases of scale
30 at epsilon = 8 and step 3e-4, where the truth is 1.03e-13). Their bound is added to delta, and near it a Chernoff bound,
which needs no transform, takes over. Enumeration: tests/exact/test_composition.py.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError, PrivacyError
from privurn.privacy.conversions import RenyiProfile, ZeroConcentratedProfile, renyi_sum
from privurn.privacy.laws.loss_law import NEGLIGIBLE_TAIL, POINTS, LossLaw, largest_loss, loss_law, privacy_loss_distribution
from privurn.privacy.laws.noise import SMALLEST_DELTA, mirrored, zcdp_bound
from privurn.privacy.profile import ROUND_UP, Guarantee, Neighbouring, PrivacyProfile, sum_up

__all__ = ["ComposedProfile", "basic_composition", "compose", "privacy_loss_distribution"]

FOURIER_ERROR = 8.0 * 2.0**-53
"""A transform of length N errs by at most this times log2 N times its input, in Euclidean norm (Higham 2002, theorem 24.2)."""

NEARLY_ALL = 1e-12
"""With less than this probability of a loss on the lattice nothing is convolved: delta is 1."""


@dataclass(frozen=True, kw_only=True)
class ComposedProfile(PrivacyProfile):
    """profiles[i] released counts[i] times each, jointly: an upper bound of the profile of the joint release.

    With f_i the probability of a loss beyond the lattice and L the sum of the others,
    delta(epsilon) = 1 - prod (1 - f_i)^counts[i] E[min(1, e^(epsilon - L))], and 0 only from the sum of the pure epsilons on.
    A profile alone, once, is returned as it is. Proof: docs/proofs/composition.md.
    """

    profiles: tuple[PrivacyProfile, ...]
    counts: tuple[int, ...]
    neighbouring: Neighbouring = "replace-one"
    points: int = POINTS

    @property
    def pure_epsilon(self) -> float:
        """Sum of the parts', rounded up."""
        return sum_up(tuple((p.pure_epsilon, k) for p, k in zip(self.profiles, self.counts, strict=True)))

    @property
    def zcdp(self) -> float:
        """Sum of the parts' rho."""
        return math.fsum(k * zcdp_bound(p) for p, k in zip(self.profiles, self.counts, strict=True)) * ROUND_UP

    @property
    def _single(self) -> PrivacyProfile | None:
        return self.profiles[0] if self.counts == (1,) else None

    @cached_property
    def laws(self) -> tuple[LossLaw, ...]:
        """Lattice laws on one lattice, whose step is the counts' quadratic mean of the parts' own."""
        total = sum(self.counts)
        tail = NEGLIGIBLE_TAIL / total
        own = [largest_loss(profile, tail=tail) / self.points for profile in self.profiles]
        square = math.fsum(k * step * step for k, step in zip(self.counts, own, strict=True)) / total
        interval = max(own) if len(own) == 1 else math.sqrt(square)
        return tuple(loss_law(p, interval=interval or 1.0, points=self.points, tail=tail) for p in self.profiles)

    @property
    def floor(self) -> float:
        """Probability that some part's loss is infinite, or beyond the lattice; 0 where all parts are pure."""
        if self._single is not None:
            return self._single.floor
        return 0.0 if math.isfinite(self.pure_epsilon) else self._beyond

    @cached_property
    def _beyond(self) -> float:
        """Probability that some part's loss is infinite or was cut off: 1 - prod (1 - f_i)^counts[i]."""
        if any(law.infinity > 1.0 - NEARLY_ALL for law in self.laws):
            return 1.0
        log_finite = math.fsum(k * math.log1p(-law.infinity) for law, k in zip(self.laws, self.counts, strict=True))
        return min(1.0, -math.expm1(log_finite) * (1.0 + 4.0 * 2.0**-52))

    @cached_property
    def _finite(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64], int]]:
        """Losses, log probabilities given that the loss is finite, and counts, of the parts that have losses but 0."""
        finite = []
        for law, count in zip(self.laws, self.counts, strict=True):
            kept = law.probabilities > 0.0
            if law.steps.size > 1:
                logs = np.log(law.probabilities[kept]) - math.log1p(-law.infinity)
                losses: NDArray[np.float64] = law.interval * law.steps[kept].astype(np.float64)
                finite.append((losses, logs, count))
        return finite

    @cached_property
    def _convolved(self) -> tuple[Any, float]:
        """dp-accounting's law of the sum of the finite losses, and what its transforms may have taken from a divergence."""
        from dp_accounting.pld import pld_pmf

        joint, norms, size = None, 0.0, 1
        for law, count in zip(self.laws, self.counts, strict=True):
            if law.steps.size == 1:  # the loss is 0 or infinite
                continue
            given_finite = law.probabilities / (1.0 - law.infinity)
            masses = dict(zip(law.steps.tolist(), given_finite.tolist(), strict=True))
            part = pld_pmf.create_pmf(masses, law.interval, 0.0, True).self_compose(count)
            joint = part if joint is None else pld_pmf.compose_pmfs(joint, part, 1e-15)
            norms += (count + 4) * float(np.linalg.norm(given_finite))
            size = max(size, joint.size, part.size, int(law.steps[-1] - law.steps[0]) + 1)
        if not isinstance(joint, pld_pmf.DensePLDPmf):
            return joint, 0.0  # sums of products, no transform
        return joint, FOURIER_ERROR * math.log2(4.0 * size) * math.sqrt(2.0 * size) * norms

    def _chernoff(self, epsilon: float) -> float:
        """Least over t > 0 of E[e^(t L)] e^(-t epsilon) t^t / (1 + t)^(1 + t): a bound from moments alone."""

        def log_bound(log_t: float) -> float:
            t = math.exp(log_t)
            total = -t * epsilon + t * log_t - (1.0 + t) * math.log1p(t)
            for losses, logs, count in self._finite:
                exponents = logs + t * losses
                top = float(exponents.max())
                total += count * (top + math.log(float(np.exp(exponents - top).sum())))
            return total

        low, high = -7.0, 9.0
        for _ in range(40):
            first, second = low + (high - low) * 0.382, low + (high - low) * 0.618
            low, high = (low, second) if log_bound(first) < log_bound(second) else (first, high)
        return math.exp(min(0.0, log_bound(0.5 * (low + high)) + 1e-9))

    def delta(self, epsilon: float) -> float:
        """Upper bound of the joint delta: tight to the lattice's rounding."""
        if epsilon < 0.0:
            return mirrored(self.delta(-epsilon), epsilon=-epsilon)
        if self._single is not None:
            return self._single.delta(epsilon)
        if epsilon >= self.pure_epsilon:
            return 0.0
        if self._beyond == 1.0:
            return 1.0
        joint, error = self._convolved
        finite = 0.0
        if joint is not None:
            finite = float(joint.get_delta_for_epsilon(epsilon)) + error
            if finite < 1e3 * error:
                finite = min(finite, self._chernoff(epsilon))
        total = (self._beyond + (1.0 - self._beyond) * max(0.0, finite)) * ROUND_UP
        return min(1.0, max(SMALLEST_DELTA, total))


def compose(
    profiles: Iterable[PrivacyProfile], *, counts: Sequence[int] | None = None, points: int = POINTS
) -> ComposedProfile:
    """Joint profile of a plan fixed beforehand: each profile released `counts` times (once each by default).

    Parts that are compositions themselves are taken apart; equal parts are counted together; zCDP and Renyi parameters are
    added first. Raises PrivacyError when the neighbouring relations differ.

    >>> from privurn.privacy.laws.urn import DirichletProcessProfile
    >>> urn = DirichletProcessProfile(n=1000, records=10, strength=1)
    >>> round(compose([urn], counts=[3]).delta(1.0), 9), round(1 - (1 - urn.delta(1.0)) ** 3, 9)
    (0.029409852, 0.029409852)
    """
    listed = list(profiles)
    times = [1] * len(listed) if counts is None else [int(k) for k in counts]
    if not listed or len(times) != len(listed) or min(times) < 1:
        raise ModelError(
            "compose needs at least one profile and a positive count for each.", hint="compose([p, q], counts=[10, 1])"
        )
    relations = {profile.neighbouring for profile in listed}
    if len(relations) > 1:
        raise PrivacyError(
            "Profiles under different neighbouring relations cannot be composed.",
            hint="Account for all of them under replace-one, or all under add-remove",
        )
    grouped: dict[PrivacyProfile, int] = {}
    rho = 0.0
    renyi: list[tuple[RenyiProfile, int]] = []
    pending = list(zip(listed, times, strict=True))
    while pending:
        profile, count = pending.pop(0)
        if isinstance(profile, ComposedProfile):
            pending[:0] = [(part, k * count) for part, k in zip(profile.profiles, profile.counts, strict=True)]
        elif isinstance(profile, ZeroConcentratedProfile):
            rho += count * profile.rho
        elif isinstance(profile, RenyiProfile):
            renyi.append((profile, count))
        else:
            grouped[profile] = grouped.get(profile, 0) + count
    relation = relations.pop()
    if rho > 0.0:
        grouped[ZeroConcentratedProfile(rho=rho, neighbouring=relation)] = 1
    if renyi:
        grouped[renyi_sum([each for each, _ in renyi], counts=[k for _, k in renyi])] = 1
    return ComposedProfile(profiles=tuple(grouped), counts=tuple(grouped.values()), neighbouring=relation, points=points)


def basic_composition(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sum of the epsilons and of the deltas: holds whatever the later parameters depend on, as long as the sums are kept.

    >>> basic_composition([Guarantee(epsilon=0.5, delta=1e-6), Guarantee(epsilon=0.25, delta=0.0)]).delta
    1e-06
    """
    listed = list(guarantees)
    if not listed:
        raise ModelError("basic_composition needs at least one guarantee.")
    if len({(each.neighbouring, each.contributions) for each in listed}) > 1:
        raise PrivacyError("Guarantees under different neighbouring relations or contributions cannot be added.")

    def total(values: list[float]) -> float:
        exact = math.fsum(values)
        return exact if len(values) == 1 or exact == max(values) else math.nextafter(exact, math.inf)

    return Guarantee(
        epsilon=total([each.epsilon for each in listed]),
        delta=total([each.delta for each in listed]),
        neighbouring=listed[0].neighbouring,
        contributions=listed[0].contributions,
    )
