"""What is audited, whatever it came from: how to draw, on which neighbours, and what is claimed."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from privurn.privacy.audit.attack import SMALLEST_AUDIT, Pair, Progress, Sampler, audit
from privurn.privacy.audit.findings import AuditResult, Claim
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.entropy import Entropy, SeededEntropy
from privurn.privacy.profile import PrivacyProfile

SECONDS = 30.0
"""About how long an audit may draw where nobody says how many samples."""
MOST_SAMPLES = 50_000


@dataclass(frozen=True)
class Target:
    """A sampler, its neighbours and claims."""

    sampler: Sampler
    pairs: Sequence[Pair]
    claim: Claim
    more_claims: Sequence[Claim] = ()
    support: Sequence[SupportAttack] = ()
    seconds: float = 1e-6
    """About what an output costs."""

    def default_samples(self) -> int:
        """As many outputs on each data set as can be drawn in good time; the audit says what that could have seen."""
        each = int(SECONDS / (2 * len(self.pairs) * self.seconds))
        return min(MOST_SAMPLES, max(SMALLEST_AUDIT, each))

    def audit(self, *, samples: int | None, failure_probability: float, progress: Progress) -> AuditResult:
        """Attack it."""
        return audit(
            self.sampler,
            pairs=self.pairs,
            epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            claims=self.more_claims,
            support=self.support,
            samples=self.default_samples() if samples is None else samples,
            failure_probability=failure_probability,
            progress=progress,
        )


def at_zero(profile: PrivacyProfile) -> list[Claim]:
    """What a profile claims at epsilon 0, how well neighbours can be told apart: noise that is too small shows there first."""
    delta = profile.delta(0.0)
    return [Claim(0.0, delta, "the whole release, at epsilon 0")] if delta < 1.0 else []


def seeded(seed: int | None) -> Entropy:
    """Randomness of an audit; OpenDP's noise does not follow it."""
    return SeededEntropy(secrets.randbits(128) if seed is None else seed)
