"""Unknown labels: first pay for the names that may be published, then run the urn on them plus "other".

A label's name is itself confidential. The count of every label that occurs gets discrete Laplace noise, and those whose noisy
counts reach a threshold are named; a label held by one person alone is, with a small probability that delta pays for.
Replacing a record moves two counts by one each: distances (l0, l1, linf) = (2, 2, 1). What that costs, and how noise and
threshold are found, is in privacy/label_discovery_accounting.py.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import CalibrationError, ModelError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.privacy.additive_noise import check_scale, noisy_integers
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.label_discovery import DiscoveredUrnProfile, LabelDiscoveryProfile, least_discovery
from privurn.privacy.profile import Guarantee

REPLACED = (2, 2, 1)
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class LabelDiscovery:
    """Noise scale and threshold of the first step."""

    scale: float
    threshold: int

    def __post_init__(self) -> None:
        check_scale(self.scale)
        _ = self.profile

    @property
    def profile(self) -> LabelDiscoveryProfile:
        """What naming labels costs when one record is replaced."""
        return LabelDiscoveryProfile(scale=self.scale, threshold=self.threshold)

    def guarantee(self, contributions: int = 1) -> Guarantee:
        """The smallest epsilon and delta for so many records of one person."""
        return self.profile.guarantee(contributions)

    def discover(self, counts: CountTable) -> NDArray[np.bool_]:
        """Which labels of the table may be named. The noise is OpenDP's, whose generator the operating system seeds."""
        return noisy_integers(counts.counts, noise="laplace", scale=self.scale) >= self.threshold

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        return {"scale": self.scale, "threshold": self.threshold, "distances": list(REPLACED)}


def calibrate_discovery(*, epsilon: float, delta: float, contributions: int = 1) -> LabelDiscovery:
    """Least noise and lowest threshold for (epsilon, delta) and that many records of one person."""
    if delta == 0.0:
        raise CalibrationError(
            "open labels cannot be released with delta = 0: naming a rare label always has some chance.",
            alternatives=(
                "a positive delta: --delta 1e-6",
                "a smaller one, at which a label needs a few more records to be named: --delta 1e-9",
                "a public list of the labels, which needs no delta: --categories LIST (leave --open-labels out)",
            ),
        )
    found = least_discovery(epsilon=epsilon, delta=delta, contributions=contributions)
    return LabelDiscovery(scale=found.scale, threshold=found.threshold)


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
    def profile(self) -> DiscoveredUrnProfile:
        """Sum of the two steps."""
        if self.urn.profile.delta(self.urn_guarantee.epsilon) > self.urn_guarantee.delta:
            raise CalibrationError("the urn does not meet its part of the guarantee.")
        return DiscoveredUrnProfile(discovery=self.discovery.profile, urn=self.urn_guarantee)

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
