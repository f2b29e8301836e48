"""Audit a release mechanism: on counts, on raw records where its domain is known, and on lone labels where it is open."""

from privurn.audits.drawing import mechanism_sampler
from privurn.audits.lone_labels import lone_label_attacks
from privurn.audits.raw_records import Reader, raw_pairs, read_counts
from privurn.audits.target import Target, at_zero, seeded
from privurn.domain import JointDomain
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import FiniteBase, PitmanYor
from privurn.privacy.audit.attack import Pair, Progress
from privurn.privacy.audit.findings import AuditResult, Claim
from privurn.privacy.audit.neighbours import neighbouring_tables
from privurn.privacy.profile import Guarantee

SECRET_SIZE = 10
"""Records in the made-up tables where the number is secret: small tables tell most."""
MOST_DISCOVERED = 64
"""Labels in a table for label discovery, each a call of OpenDP's sampler; tables of lone labels have an attack of their own."""
PER_RECORD, PER_NOISE, PER_CALL = 2e-7, 2e-5, 1e-4
"""Seconds for a released record and what is looked at of it, for a number with OpenDP's noise, for a call in Python."""


def audit_mechanism(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    samples: int = 100_000,
    failure_probability: float = 1e-3,
    contributions: int = 1,
    domain: JointDomain | None = None,
    read: Reader = read_counts,
    seed: int | None = None,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Try to refute that `mechanism` is (epsilon, delta)-DP.

    Left out, epsilon is what its profile claims at delta, and what the profile claims at epsilon 0 is attacked too. With a
    `domain` raw records are attacked as well, through `read`.

    >>> from fractions import Fraction
    >>> urn = DirichletMultinomial(n=4, cells=2, alpha=Fraction(1), records=1)
    >>> audit_mechanism(urn, epsilon=0.3, samples=20_000, seed=1).convicted  # its epsilon is log 2 = 0.69
    True
    >>> audit_mechanism(urn, epsilon=0.7, samples=20_000, seed=1).convicted
    False
    """
    unit = Guarantee(epsilon=1.0, delta=delta, contributions=contributions)  # its epsilon is not looked at
    own = mechanism.profile.group(unit.contributions).epsilon(delta) if epsilon is None else epsilon
    target = mechanism_target(
        mechanism,
        Claim(own, delta),
        contributions=contributions,
        profile=epsilon is None,
        domain=domain,
        read=read,
        seed=seed,
    )
    return target.audit(samples=samples, failure_probability=failure_probability, progress=progress)


def mechanism_target(
    mechanism: Mechanism,
    claim: Claim,
    *,
    contributions: int,
    profile: bool,
    domain: JointDomain | None = None,
    read: Reader = read_counts,
    seed: int | None = None,
) -> Target:
    """What to draw and on which neighbours; `profile`: whether the whole profile is claimed."""
    neighbouring, n = mechanism.profile.neighbouring, SECRET_SIZE if mechanism.n is None else mechanism.n
    cells, differing = _public_cells(mechanism)
    found = neighbouring_tables(n=n, cells=cells, neighbouring=neighbouring, contributions=contributions, differing=differing)
    if isinstance(mechanism, DiscoveredUrn):
        found = [each for each in found if len(each.common) <= MOST_DISCOVERED]
    pairs = [Pair(each.name, each.first_counts(), each.second_counts(), (each.left, each.right)) for each in found]
    if domain is not None:
        pairs += raw_pairs(domain, n=n, moved=contributions, add_remove=neighbouring == "add-remove", read=read)
    entropy = seeded(seed)
    whole = mechanism.profile.group(contributions)
    return Target(
        mechanism_sampler(mechanism, entropy=entropy),
        pairs,
        claim,
        more_claims=at_zero(whole) if profile else (),
        support=lone_label_attacks(mechanism, claim, entropy=entropy) if claim.finite is not None else (),
        seconds=_seconds(mechanism),
    )


def _seconds(mechanism: Mechanism) -> float:
    """About what a release costs: an exact decimal weight of a cell takes some hundred times longer than a record of an urn."""
    drawn = PER_RECORD * mechanism.records
    if isinstance(mechanism, ExponentialHistogram):
        return max(drawn, drawn * mechanism.cells / 4)
    if isinstance(mechanism, PerturbedHistogram):
        return drawn + PER_CALL + PER_NOISE * mechanism.cells
    if isinstance(mechanism, DiscoveredUrn):
        return drawn + 5 * PER_CALL + PER_NOISE * 3
    return drawn if type(mechanism) is DirichletMultinomial else drawn + PER_CALL


def _public_cells(mechanism: Mechanism) -> tuple[int | None, tuple[int, int] | None]:
    """Size of the public domain (None: open) and the two cells with the least prior mass."""
    if isinstance(mechanism, DirichletMultinomial) and isinstance(mechanism.alpha, tuple):
        alphas = mechanism.alpha
        left, right = sorted(range(len(alphas)), key=lambda cell: alphas[cell])[:2] if len(alphas) > 1 else (0, 0)
        return mechanism.cells, (left, right)
    if isinstance(mechanism, PitmanYor):
        return (mechanism.base.cells if isinstance(mechanism.base, FiniteBase) else None), None
    if isinstance(mechanism, DiscoveredUrn):  # its cells are the labels that were named
        return None, None
    cells = getattr(mechanism, "cells", None)
    return (int(cells) if cells is not None else None), None
