"""Posterior predictive checks: what a check says, whatever was released."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FALSE_ALARM = 0.01
"""Of a check whose posterior is right: how often it fails, about."""

DRAWS = 1_000


@dataclass(frozen=True, eq=False)
class Distance:
    """Of one part, for each draw from the posterior: how far the published numbers lie from it, and those made anew."""

    part: str
    published: NDArray[np.float64]
    anew: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """Mean distances, and how often those made anew lie as far away, or as near: a two-sided p-value."""

    part: str
    published: float
    anew: float
    p_value: float


@dataclass(frozen=True)
class PredictiveCheck:
    """What was found of each part. It has `passed` unless a part has a p-value below 0.01 over the number of parts."""

    parts: tuple[CheckedPart, ...]

    @property
    def failed(self) -> tuple[CheckedPart, ...]:
        """Parts that the posterior does not explain."""
        return tuple(each for each in self.parts if each.p_value < FALSE_ALARM / len(self.parts))

    @property
    def passed(self) -> bool:
        """Whether there is no such part."""
        return not self.failed

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"passed": self.passed, "parts": [asdict(each) for each in self.parts]}

    def __str__(self) -> str:
        told = ", ".join(f"{each.part} p = {each.p_value:.3f}" for each in self.parts)
        if self.passed:
            return f"Predictive check passed: the published numbers are such as this posterior would publish ({told})."
        names = ", ".join(f"{each.part} ({each.published:.3g}; made anew {each.anew:.3g})" for each in self.failed)
        return (
            f"Predictive check FAILED: what was published of {names} lies elsewhere than this posterior would publish it "
            f"({told}). The mechanism, its scale or the prior is not as stated: do not trust these figures."
        )


def compared(distances: Sequence[Distance]) -> PredictiveCheck:
    """All distances of a part together."""
    found = []
    for part in dict.fromkeys(each.part for each in distances):
        published = np.concatenate([each.published for each in distances if each.part == part])
        anew = np.concatenate([each.anew for each in distances if each.part == part])
        further = float(np.mean(anew > published) + 0.5 * np.mean(anew == published))
        p_value = max(2.0 * min(further, 1.0 - further), 1.0 / (len(anew) + 1.0))
        found.append(
            CheckedPart(part=part, published=float(published.mean()), anew=float(anew.mean()), p_value=min(p_value, 1.0))
        )
    return PredictiveCheck(tuple(found))
