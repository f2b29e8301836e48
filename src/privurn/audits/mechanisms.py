"""Audit what can make a release: on its neighbours, on raw records where its domain is known, on lone labels."""

from typing import Any

from privurn.audits.target import Target, at_zero, seeded
from privurn.domain import JointDomain
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.audit.attack import RAISED, Progress, Sampler
from privurn.privacy.audit.findings import AuditResult, Claim
from privurn.privacy.audit.raw_records import Reader
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import Guarantee


def audit_mechanism(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    samples: int = 100_000,
    failure_probability: float = 1e-3,
    contributions: int = 1,
    domain: JointDomain | None = None,
    read: Reader | None = None,
    seed: int | None = None,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Try to refute that `mechanism` is (epsilon, delta)-DP.

    Left out, epsilon is what its profile claims at delta, and what the profile claims at epsilon 0 is attacked too. With a
    `domain` raw records are attacked as well, through `read`; left out, as a release reads them.

    >>> from fractions import Fraction
    >>> from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
    >>> urn = DirichletMultinomial(n=4, cells=2, alpha=Fraction(1), records=1)
    >>> audit_mechanism(urn, epsilon=0.3, samples=20_000, seed=1).convicted  # its epsilon is log 2 = 0.69
    True
    >>> audit_mechanism(urn, epsilon=0.7, samples=20_000, seed=1).convicted
    False
    """
    unit = _unit(contributions, delta)
    own = mechanism.unit_profile(unit).epsilon(delta) if epsilon is None else epsilon
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
    profile: bool = True,
    domain: JointDomain | None = None,
    read: Reader | None = None,
    seed: int | None = None,
) -> Target:
    """What to draw and on which neighbours; `profile`: whether the whole profile is claimed."""
    entropy = seeded(seed)
    return Target(
        mechanism_sampler(mechanism, entropy=entropy),
        mechanism.neighbours(contributions=contributions, domain=domain, read=read),
        claim,
        more_claims=at_zero(mechanism.unit_profile(_unit(contributions))) if profile else (),
        support=mechanism.support_attacks(claim, entropy=entropy) if claim.finite is not None else (),
        seconds=mechanism.seconds(contributions=contributions),
    )


def mechanism_sampler(mechanism: Mechanism, *, entropy: Entropy) -> Sampler:
    """Many independent releases of a mechanism.

    Data that could not be read, or that the mechanism fails on, give the name of the exception: an output like any other.
    """

    def sample(data: Any, /, *, size: int) -> Any:
        if isinstance(data, str):
            return [data] * size
        try:
            return mechanism.sample(data, size=size, entropy=entropy)
        except Exception as error:
            return [f"{RAISED} {type(error).__name__}"] * size

    return sample


def _unit(contributions: int, delta: float = 0.0) -> Guarantee:
    """Whose records are protected together; the epsilon is not looked at."""
    return Guarantee(epsilon=1.0, delta=delta, contributions=contributions)
