"""Unknown labels: first pay for the names that may be published, then run the urn on them plus "other".

A label's name is itself confidential. The count of every label that occurs gets discrete Laplace noise, and those whose noisy
counts reach a threshold are named; a label held by one person alone is, with a small probability that delta pays for.
Replacing a record moves two counts by one each: distances (l0, l1, linf) = (2, 2, 1). What that costs, and how noise and
threshold are found, is in privacy/label_discovery_accounting.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, CalibrationError, ModelError, Placeholder
from privurn.exact_numbers import Number, exact, float_up
from privurn.mechanisms.alternatives import WEAK_DELTA
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.mechanisms.recipe import EXAMPLE_DELTA, Public, Recipe, option
from privurn.mechanisms.urn_plan import explain, plan_records
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
                Alternative(words="a positive delta", changes={"delta": EXAMPLE_DELTA}),
                Alternative(
                    words="a smaller one, at which a label needs a few more records to be named", changes={"delta": 1e-9}
                ),
                Alternative(
                    words="a public list of the labels, which needs no delta",
                    changes={"domain": Placeholder("Categories([...])")},
                ),
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


@dataclass(frozen=True, kw_only=True, repr=False)
class Discover(Recipe):
    """Name the labels that enough records share, then the Dirichlet-multinomial urn on them and "other"."""

    alias: ClassVar[str] = "label-discovery"
    needs_domain: ClassVar[bool] = False

    share: Number = option(
        "Part of the budget that naming open labels spends, half where left out.", default=0.5, flag="discovery-share"
    )

    def check(self) -> None:
        """A share that leaves something to both steps."""
        super().check()
        if not 0 < exact(self.share, name="share") < 1:
            raise ModelError(
                "the share must lie strictly between 0 and 1.", hint="share=0.5 gives both steps half of the budget"
            )

    def split(self, whole: Guarantee) -> tuple[LabelDiscovery, Guarantee]:
        """The first step for its share of the budget, and what is left for the urn."""
        share, k = float(exact(self.share, name="share")), whole.contributions
        discovery = calibrate_discovery(epsilon=whole.epsilon * share, delta=whole.delta * share, contributions=k)
        spent = discovery.guarantee(k)
        left = [-float_up(Fraction(a) - Fraction(b)) for a, b in ((spent.epsilon, whole.epsilon), (spent.delta, whole.delta))]
        return discovery, Guarantee(epsilon=left[0], delta=left[1], contributions=k).per_record()

    def then(self, discovery: LabelDiscovery, rest: Guarantee, *, n: int, labels: int) -> tuple[DiscoveredUrn, tuple[str, ...]]:
        """Both steps, once the number of named labels is known, and remarks on the second."""
        plan = plan_records(n=n, cells=labels + 1, guarantee=rest, records=self.records)
        urn = DirichletMultinomial(n=n, cells=labels + 1, alpha=plan.alpha, records=int(plan.records))
        made = DiscoveredUrn(n=n, records=urn.records, discovery=discovery, urn=urn, urn_guarantee=rest)
        return made, explain(plan, guarantee=rest)

    def calibrate(self, public: Public) -> DiscoveredUrn:
        """Not before the labels are named: see `split` and `then`."""
        if public.cells is not None:
            raise ModelError("label discovery is for labels that nobody listed.", alternatives=())
        raise ModelError("the urn after label discovery is calibrated once the labels are named.")

    @classmethod
    def offers(cls, public: Public, asked: Recipe) -> Iterator[Alternative]:
        """Itself in place of what needs a public domain, and with fewer labels called other."""
        if public.cells is not None or public.n is None:
            return
        own, delta = cls(records=asked.records if asked.publishes_records else None), public.guarantee.delta
        words = "labels named by noisy counts, the rare ones as other"
        yield Alternative(words=words, changes={"mechanism": own, **({} if delta > 0.0 else {"delta": EXAMPLE_DELTA})})
        larger = float(f"{max(1e-5, 10.0 * delta):.1g}")
        if larger <= WEAK_DELTA:
            words = "labels named by noisy counts, fewer of them as other"
            yield Alternative(words=words, changes={"mechanism": own, "delta": larger})
