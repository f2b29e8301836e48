"""Unknown labels: first pay for the names that may be published, then run the urn on them plus "other".

A label's name is itself confidential. OpenDP adds discrete Laplace noise to the count of every label that occurs and
keeps those above a threshold; a label held by one person alone survives with probability at most delta. Replacing a
record moves two counts by one each: distances (l0, l1, linf) = (2, 2, 1), handed to OpenDP's own privacy map.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import CalibrationError, ModelError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import Guarantee, PointProfile

REPLACED = (2, 2, 1)
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class LabelDiscovery:
    """Noise scale and threshold of the first step; (epsilon, delta) come from OpenDP's privacy map."""

    scale: float
    threshold: int

    def guarantee(self) -> Guarantee:
        """What OpenDP's map says for one replaced record."""
        epsilon, delta = _measurement(self.scale, self.threshold).map(REPLACED)
        return Guarantee(epsilon=float(epsilon), delta=float(delta))

    def discover(self, counts: CountTable) -> NDArray[np.bool_]:
        """Which labels of the table may be named. The noise is OpenDP's, whose generator the operating system seeds."""
        numbered = dict(enumerate(counts.counts.tolist()))
        kept = np.zeros(len(counts.counts), np.bool_)
        kept[list(_measurement(self.scale, self.threshold)(numbered))] = True
        return kept

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        return {"scale": self.scale, "threshold": self.threshold, "distances": list(REPLACED)}


@lru_cache(maxsize=8)
def _measurement(scale: float, threshold: int) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    return (counts, dp.l01inf_distance(dp.absolute_distance(T="i64"))) >> dp.m.then_laplace_threshold(
        scale=scale, threshold=threshold
    )


def calibrate_discovery(*, epsilon: float, delta: float) -> LabelDiscovery:
    """Least noise and lowest threshold that OpenDP's map accepts for (epsilon, delta)."""
    if delta == 0.0:
        raise CalibrationError(
            "open labels cannot be released with delta = 0: naming a rare label always has some chance.",
            alternatives=(
                "a positive delta: --delta 1e-6",
                "a smaller one, at which a label needs a few more records to be named: --delta 1e-9",
                "a public list of the labels, which needs no delta: --categories LIST (leave --open-labels out)",
            ),
        )
    scale = 2.0 / epsilon

    def accepts(threshold: int) -> bool:
        got_epsilon, got_delta = _measurement.__wrapped__(scale, threshold).map(REPLACED)
        return bool(got_epsilon <= epsilon and got_delta <= delta)

    high = 2
    while not accepts(high):
        high *= 2
        if high > 2**40:  # epsilon itself rounded up past the target: a hair more noise
            scale, high = scale * (1.0 + 1e-12), 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accepts(middle) else (middle, high)
    return LabelDiscovery(scale=scale, threshold=high)


@dataclass(frozen=True, kw_only=True)
class DiscoveredUrn(Mechanism):
    """Label discovery, then the Dirichlet-multinomial urn on the kept labels and "other".

    The urn's alpha is chosen after the labels are known, for a guarantee fixed beforehand, so the two steps compose
    adaptively: epsilons and deltas add. Nothing tighter is claimed.
    """

    n: int
    records: int
    discovery: LabelDiscovery
    urn: DirichletMultinomial
    urn_guarantee: Guarantee

    adds_noise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (self.urn.n, self.urn.records) != (self.n, self.records):
            raise ModelError("the urn and the release differ in their numbers of records.")

    @property
    def name(self) -> str:
        """label-discovery."""
        return "label-discovery"

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Labels that were named, and "other"."""
        return self.urn.cells

    @property
    def profile(self) -> PointProfile:
        """Sum of the two steps."""
        first, second = self.discovery.guarantee(), self.urn_guarantee
        if self.urn.profile.delta(second.epsilon) > second.delta:
            raise CalibrationError("the urn does not meet its part of the guarantee.")
        return PointProfile(epsilon0=first.epsilon + second.epsilon, delta0=first.delta + second.delta)

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Second step: `counts` are those of the kept labels (0, 1, ...) and "other"."""
        return self.urn.draw(counts, entropy=entropy)

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        share = {"epsilon": self.urn_guarantee.epsilon, "delta": self.urn_guarantee.delta}
        return {
            "n": self.n,
            "records": self.records,
            "discovery": self.discovery.parameters(),
            "urn": self.urn.parameters(),
            "urn_guarantee": share,
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "DiscoveredUrn":
        """Inverse of `parameters`."""
        share = data["urn_guarantee"]
        if data["discovery"]["distances"] != list(REPLACED):
            raise ModelError("label discovery is accounted for one replaced record.")
        return cls(
            n=int(data["n"]),
            records=int(data["records"]),
            discovery=LabelDiscovery(scale=float(data["discovery"]["scale"]), threshold=int(data["discovery"]["threshold"])),
            urn=DirichletMultinomial.from_parameters(data["urn"]),
            urn_guarantee=Guarantee(epsilon=float(share["epsilon"]), delta=float(share["delta"])),
        )


def kept_counts(counts: CountTable, kept: NDArray[np.bool_]) -> tuple[list[str | None], CountTable]:
    """Kept labels in canonical order, and the counts of them and of everything else."""
    labels = [None if label is None else str(label) for label in counts.values[kept]]
    dense = np.append(counts.counts[kept], counts.counts[~kept].sum())
    return labels, CountTable.from_cells(np.arange(len(dense)), dense)
