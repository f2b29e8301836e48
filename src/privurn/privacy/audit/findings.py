"""What an audit says: claims, findings against them, and all of it together."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from privurn.privacy.audit.power import Power

Direction = Literal["first over second", "second over first"]


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta)-DP of something; epsilon None or infinite cannot be refuted."""

    epsilon: float | None
    delta: float = 0.0
    of: str = "the whole release"

    @property
    def finite(self) -> float | None:
        """Epsilon where it can be refuted."""
        return None if self.epsilon is None or math.isinf(self.epsilon) else self.epsilon

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"of": self.of, "epsilon": self.finite, "delta": self.delta}


@dataclass(frozen=True)
class Finding:
    """One event in one direction: how often it happened on each side, and what that proves."""

    pair: str
    direction: Direction
    event: str
    claim: Claim
    hits: tuple[int, int]
    trials: int
    evidence: float
    """Log of the wealth of a bet against the claim; below 0 the bet was losing."""
    convicted: bool
    """Whether the wealth refutes the claim."""
    epsilon_lower: float
    """The mechanism's epsilon at the claim's delta is at least this."""
    delta_lower: float | None
    """Its delta at the claim's epsilon is at least this; None without a claim."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        bounded = self.epsilon_lower if math.isfinite(self.epsilon_lower) else None
        evidence = self.evidence if math.isfinite(self.evidence) else None
        changed = {"claim": self.claim.to_json(), "hits": list(self.hits), "epsilon_lower": bounded, "evidence": evidence}
        return {**asdict(self), **changed}


@dataclass(frozen=True)
class AuditResult:
    """All findings. They hold together with probability at least 1 - failure_probability."""

    findings: tuple[Finding, ...]
    epsilon: float | None
    """The main claim; None or infinite cannot be refuted."""
    delta: float
    samples: int
    failure_probability: float
    pairs: tuple[str, ...] = ()
    """Neighbouring data sets on which events were looked for."""
    power: tuple[Power, ...] = ()
    """Which leaks could have been seen."""

    @property
    def main(self) -> Sequence[Finding]:
        """Findings about the main claim: bounds for other claims are bounds of something else."""
        return [
            finding for finding in self.findings if (finding.claim.epsilon, finding.claim.delta) == (self.epsilon, self.delta)
        ]

    @property
    def strongest(self) -> Finding:
        """A finding that convicts, or else the one about the main claim with the largest epsilon."""
        convicting = [finding for finding in self.findings if finding.convicted]
        return max(
            convicting or self.main,
            key=lambda finding: (finding in self.main, finding.epsilon_lower, finding.delta_lower or 0.0),
        )

    @property
    def epsilon_lower(self) -> float:
        """The mechanism's epsilon at `delta` is at least this."""
        return max(finding.epsilon_lower for finding in self.main)

    @property
    def delta_lower(self) -> float | None:
        """The mechanism's delta at the claimed epsilon is at least this."""
        found = [finding.delta_lower for finding in self.main if finding.delta_lower is not None]
        return max(found) if found else None

    @property
    def convicted(self) -> bool:
        """Whether a claim is refuted."""
        return any(finding.convicted for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        lower = self.epsilon_lower
        return {
            "convicted": self.convicted,
            "epsilon_lower": lower if math.isfinite(lower) else None,
            "delta_lower": self.delta_lower,
            "epsilon": Claim(self.epsilon, self.delta).finite,
            "delta": self.delta,
            "failure_probability": self.failure_probability,
            "samples": self.samples,
            "pairs": list(self.pairs),
            "could_have_seen": [each.to_json() for each in self.power],
            "findings": [finding.to_json() for finding in self.findings],
        }
