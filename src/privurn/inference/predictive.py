"""Posterior predictive checks: what a check says, whatever was released."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FALSE_ALARM = 0.01
"""Of a check whose posterior is right: how often it fails, about."""

DRAWS = 1_000

OF_NOISE = 0.2
"""Part by which the size of noise may differ from the stated one: a prior that takes a column for rougher or smoother than it
is reads some noise as records, or some records as noise, and of thousands of cells that shows."""


@dataclass(frozen=True, eq=False)
class Distance:
    """Of one part, for each draw from the posterior: how far the published numbers lie from it, and those made anew.

    A part whose mean distances differ by no more than `allowed`, in parts of those made anew, does not fail.
    """

    part: str
    published: NDArray[np.float64]
    anew: NDArray[np.float64]
    allowed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """Mean distances, and how often those made anew lie as far away, or as near: a two-sided p-value."""

    part: str
    published: float
    anew: float
    p_value: float
    allowed: float = 0.0

    @property
    def far(self) -> bool:
        """Whether the mean distances differ by more than is allowed."""
        return abs(self.published - self.anew) > self.allowed * self.anew


@dataclass(frozen=True)
class PredictiveCheck:
    """What was found of each part.

    It has `passed` unless a part has a p-value below 0.01 over the number of parts, and mean distances that differ by more than
    is allowed.
    """

    parts: tuple[CheckedPart, ...]

    @property
    def failed(self) -> tuple[CheckedPart, ...]:
        """Parts that the posterior does not explain."""
        return tuple(each for each in self.parts if each.far and each.p_value < FALSE_ALARM / len(self.parts))

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
    for part, allowed in {each.part: each.allowed for each in distances}.items():
        published = np.concatenate([each.published for each in distances if each.part == part])
        anew = np.concatenate([each.anew for each in distances if each.part == part])
        further = float(np.mean(anew > published) + 0.5 * np.mean(anew == published))
        p_value = max(2.0 * min(further, 1.0 - further), 1.0 / (len(anew) + 1.0))
        found.append(
            CheckedPart(
                part=part,
                published=float(published.mean()),
                anew=float(anew.mean()),
                p_value=min(p_value, 1.0),
                allowed=allowed,
            )
        )
    return PredictiveCheck(tuple(found))
