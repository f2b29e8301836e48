"""Unknown labels: first pay for the names that may be published, then run the urn on them plus "other".

A label's name is itself confidential. The count of every label that occurs gets discrete Laplace noise, and those whose noisy
counts reach a threshold are named; a label held by one person alone is, with a small probability that delta pays for.
Replacing a record moves two counts by one each: distances (l0, l1, linf) = (2, 2, 1). What that costs, and how noise and
threshold are found, is in privacy/laws/label_discovery.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, CalibrationError, ModelError, Placeholder, PrivurnError
from privurn.exact_numbers import Number, exact, float_up
from privurn.mechanisms.alternatives import WEAK_DELTA
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import Numbers, UrnTerm
from privurn.mechanisms.mechanism import PER_CALL, PER_NOISE, PER_RECORD, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.published import Content
from privurn.mechanisms.recipe import EXAMPLE_DELTA, Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import explain, plan_records
from privurn.privacy.additive_noise import check_scale, noisy_integers
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.lone_labels import lone_label_attack
from privurn.privacy.audit.neighbours import NeighbouringTables, neighbouring_tables
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.calibration import round_up_to_rational, smallest_alpha
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.label_discovery import DiscoveredUrnProfile, LabelDiscoveryProfile, least_discovery
from privurn.privacy.profile import Guarantee
from privurn.tables.column_names import unused
from privurn.tables.released import stray_labels

REPLACED = (2, 2, 1)
OTHER = "other"
MOST_DISCOVERED = 64
"""Labels in a table of an audit, each a call of OpenDP's sampler; tables of lone labels have an attack of their own."""
NAMED = 2**40
"""Added to a kept label's number, so that "the label was named" differs from "the label was drawn"."""


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


class NamedContent(Content):
    """Labels that were named, and the one that stands for all others."""

    wrong = "holds labels that were not named"

    def __init__(self, domain: Mapping[str, Any]) -> None:
        self.allowed = [*domain["labels"], domain["other"]]

    def holds(self, batch: Any) -> bool:
        """No other label."""
        return not stray_labels(batch.column(0), self.allowed)


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
    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # comparisons are on a public domain
    in_words: ClassVar[str] = (
        "noisy counts that decide which labels may be named, then an urn on those labels and \u201cother\u201d"
    )
    name: ClassVar[str] = "label-discovery"

    def __post_init__(self) -> None:
        if (self.urn.n, self.urn.records) != (self.n, self.records):
            raise ModelError("the urn and the release differ in their numbers of records.")

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

    def likelihood(self, published: Numbers) -> UrnTerm:
        """The urn's, as if the labels that were named had been listed beforehand: what naming them tells is not used."""
        return self.urn.likelihood(published)

    @property
    def error_sources(self) -> ErrorSources:
        """Those of the urn, and the labels that were not named."""
        own = self.urn.error_sources
        return replace(own, shrinkage=f"{own.shrinkage}; labels that few records share are not named, and are other")

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """Open labels, those that were named each once."""
        labels = domain.get("labels")
        if domain["kind"] != "open-labels" or labels is None or len(set(labels)) < len(labels):
            return False
        return domain.get("other") == unused(OTHER, labels) and self.cells == len(labels) + 1

    def content(self, domain: Mapping[str, Any]) -> Content:
        """The labels that were named."""
        return NamedContent(domain)

    def neighbouring_tables(self, *, contributions: int) -> list[NeighbouringTables]:
        """Of labels that nobody listed; the cells are those that were named."""
        found = neighbouring_tables(n=self.n, cells=None, contributions=contributions)
        return [each for each in found if len(each.common) <= MOST_DISCOVERED]

    def sample(self, data: CountTable, /, *, size: int, entropy: Entropy) -> Any:
        """Both steps: the labels that were named, and the records. The noise is OpenDP's own."""
        urn = lru_cache(self._urn_for)

        def released() -> Any:
            kept = self.discovery.discover(data)
            labels, table = kept_counts(data, kept)
            try:
                cells = urn(len(labels)).draw(table, entropy=entropy).cells
            except PrivurnError as error:  # a refusal is an output
                return f"refused: {type(error).__name__}"
            names = np.append(data.values[kept].astype(np.int64), -1)
            return np.concatenate([names[cells], NAMED + names[:-1]])

        return [released() for _ in range(size)]

    def _urn_for(self, labels: int) -> DirichletMultinomial:
        """The second step as it is planned for so many labels that were kept."""
        single = self.urn_guarantee.per_record()
        alpha = smallest_alpha(n=self.n, cells=labels + 1, records=self.records, epsilon=single.epsilon, delta=single.delta)
        return DirichletMultinomial(n=self.n, cells=labels + 1, alpha=round_up_to_rational(alpha), records=self.records)

    def support_attacks(self, claim: Claim, *, entropy: Entropy) -> list[SupportAttack]:
        """Label discovery does not depend on the number of records: the table may be as large as is useful."""
        step = self.discovery.guarantee()
        claims = (claim, Claim(step.epsilon, step.delta, "label discovery"))
        return [discovery_attack(self.discovery, claims)]

    def seconds(self, *, contributions: int) -> float:
        """Of both steps."""
        return PER_RECORD * self.records + 5 * PER_CALL + PER_NOISE * 3

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


def discovery_attack(discovery: LabelDiscovery, claims: tuple[Claim, ...]) -> SupportAttack:
    """How many of many lone labels are named."""
    event = "a label held by one record is named"
    return lone_label_attack(lambda table: float(np.mean(discovery.discover(table))), event=event, claims=claims)


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
    discovers: ClassVar[bool] = True

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

    def planned(self, public: Public) -> Iterator[Option]:
        """Of labels that nobody listed; how many are named is not known before."""
        if public.cells is not None:
            return
        try:
            threshold = self.split(public.guarantee)[0].threshold
            remark = f"labels need about {threshold:,} records to be named; half of the budget each"
        except CalibrationError:
            remark = f"needs a {'positive delta' if public.guarantee.delta == 0.0 else 'larger epsilon'}"
        yield Option(mechanism=self.alias, records=public.known_n, remark=remark)

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
