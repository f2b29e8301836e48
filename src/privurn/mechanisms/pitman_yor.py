"""The urn on an open domain: Pitman-Yor, and the Dirichlet process as its case of discount 0.

The next record copies an old value with mass (count - discount) or opens a new one with mass (strength + discount x number
of values). Sampling is exact: integers only, for any rational discount in [0, 1) and strength > -discount.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, ModelError
from privurn.exact_numbers import Number, exact
from privurn.mechanisms.alternatives import WEAK_DELTA, delta_for, in_words, meets, number
from privurn.mechanisms.base_measures import FRESH, FiniteBase, FreshContent, FreshLabels, base_from_parameters
from privurn.mechanisms.integer_urn import guided, integer_type
from privurn.mechanisms.likelihood import Numbers, OpenUrnTerm, UrnTerm, whole_counts
from privurn.mechanisms.long_integer_urn import draw_tables
from privurn.mechanisms.many_draws import many_draws
from privurn.mechanisms.mechanism import Drawn, ErrorSources, Mechanism
from privurn.mechanisms.published import Content
from privurn.mechanisms.recipe import MOST_RECORDS as MOST_RELEASED
from privurn.mechanisms.recipe import Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import effective_sample_size
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.lone_labels import MOST_LABELS, lone_label_attack
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.calibration import largest_records
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.urn import DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import PrivacyProfile

MOST_RECORDS = 10**6
"""With a discount the profile takes time in proportion to the records: some minutes for this many."""

NEAREST = Fraction(1, 1000)
"""Masses 1 - discount and strength + discount are differences: closer to 0 their rounding would be felt."""


@dataclass(frozen=True, kw_only=True)
class PitmanYor(Mechanism):
    """`records` records from the urn of `n` records.

    `old_values_only` publishes only draws that copy a value of the data (algorithm 3): the number published is then random,
    about records (n - discount k)/(strength + n). For any two neighbours its output is a function of the full output, so
    the same profile holds.
    """

    n: int
    records: int
    strength: Fraction
    discount: Fraction = Fraction(0)
    base: FreshLabels | FiniteBase = FRESH
    old_values_only: bool = False

    ways: ClassVar[Mapping[str, Mapping[str, Any]]] = {"dirichlet-process": {}, "pitman-yor": {"discount": Fraction(1, 2)}}

    def __post_init__(self) -> None:
        if not (isinstance(self.strength, Fraction) and isinstance(self.discount, Fraction)):
            raise ModelError("strength and discount must be rationals.", hint="For example Fraction(1, 2)")
        if not 0 <= self.discount < 1:
            raise ModelError("discount must lie in [0, 1).", hint="discount=0 is the Dirichlet process")
        if not self.strength > -self.discount:
            raise ModelError("strength must be larger than -discount.", hint="For example strength=1")
        if min(1 - self.discount, self.strength + self.discount) < NEAREST and self.discount > 0:
            raise ModelError(
                f"1 - discount and strength + discount must be at least {float(NEAREST):g} to be accounted for.",
                hint="For example discount=0.5, strength=1",
            )
        if self.records < 1:
            raise ModelError("the number of released records must be at least 1.")
        if self.discount > 0 and self.records > MOST_RECORDS:
            raise ModelError(
                f"with a discount at most {MOST_RECORDS:,} records can be accounted for.",
                hint="Ask for fewer records, or for discount=0",
            )

    @property
    def cells(self) -> int | None:  # type: ignore[override]
        """Those of a finite base."""
        return self.base.cells if isinstance(self.base, FiniteBase) else None

    @property
    def name(self) -> str:
        """dirichlet-process where the discount is 0, else pitman-yor."""
        return "dirichlet-process" if self.discount == 0 else "pitman-yor"

    @property
    def profile(self) -> PrivacyProfile:
        """Exact for fresh labels, an upper bound for a base with atoms."""
        if self.discount == 0:
            return DirichletProcessProfile(n=self.n, records=self.records, strength=float(self.strength))
        return PitmanYorProfile(n=self.n, records=self.records, strength=float(self.strength), discount=float(self.discount))

    @property
    def rows(self) -> int | None:
        """One for each record; random where only old values are published."""
        return None if self.old_values_only else self.records

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact draws. Old tables keep their cell; new ones get a draw from the base, or a number past the last cell."""
        self.check(counts)
        tables, n_new = self.tables(counts, entropy=entropy)
        k = len(counts.counts)
        if self.old_values_only:
            tables = tables[tables < k]
        entropy.shuffle(tables)
        if isinstance(self.base, FreshLabels):
            return Drawn(_relabelled(tables, k), first_new=k)
        cells = np.concatenate([counts.values.astype(np.int64), self.base.sample(n_new, entropy=entropy)])
        return Drawn(cells[tables])

    def tables(self, counts: CountTable, *, entropy: Entropy) -> tuple[NDArray[np.int64], int]:
        """Tables in order of drawing: 0..k-1 are the confidential values, k and above are new. Also how many are new."""
        from privurn._kernels.urns.urn import update_tables

        (p, q, r), ends = self.slots(), np.cumsum(counts.counts)
        if self.long(counts.n):
            return draw_tables(p, q, r, ends, records=self.records, entropy=entropy)
        out = np.empty(self.records, np.int64)
        opened = np.empty(self.records, np.bool_)
        draws = entropy.below_ramp(p + q * counts.n, step=q, size=self.records)
        n_new = update_tables(draws, p, q, r, *guided(ends), out, opened)
        return out, int(n_new)

    def slots(self) -> tuple[int, int, int]:
        """(p, q, r) with strength = p/q and discount = r/q."""
        q = lcm(self.strength.denominator, self.discount.denominator)
        return int(self.strength * q), q, int(self.discount * q)

    def long(self, n: int) -> bool:
        """Whether the slots of n records need more than 63 bits before the last draw is made."""
        p, q, _ = self.slots()
        return integer_type(max(p, 0) + q * (n + self.records)) is object

    def simulate(self, counts: CountTable, /, *, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Floating-point twin for simulation, never for a release: counts of old values and of new ones, O(k + new)."""
        from privurn._kernels.urns.urn import update_new_tables

        theta, sigma, k = float(self.strength), float(self.discount), len(counts.counts)
        new_mass = theta + k * sigma
        n_new_records = rng.binomial(self.records, rng.beta(new_mass, counts.n - k * sigma))
        old = rng.multinomial(self.records - n_new_records, rng.dirichlet(counts.counts - sigma))
        out = np.empty(n_new_records, np.int64)
        n_tables = update_new_tables(rng.random(n_new_records), new_mass, sigma, out, np.empty(n_new_records, np.bool_))
        return old, np.bincount(out, minlength=n_tables)

    def simulated_weights(self, counts: CountTable, *, rng: np.random.Generator, law: Any = None) -> NDArray[np.int64]:
        """Old values keep their cell, each new one gets a cell from the base."""
        if not isinstance(self.base, FiniteBase):
            raise ModelError("the urn's base does not belong to a public domain.")
        old, new = self.simulate(counts, rng=rng)
        out = np.zeros(self.base.cells, np.int64)
        out[counts.values] = old
        if not self.old_values_only:
            weights = None if self.base.weights is None else np.array(self.base.weights) / sum(self.base.weights)
            np.add.at(out, rng.choice(self.base.cells, len(new), p=weights), new)
        return out

    def likelihood(self, published: Numbers) -> UrnTerm | OpenUrnTerm:
        """Open labels have the urn's own prior; on a public domain it is an urn of cells, where the discount is 0."""
        base, given = self.base, published.values
        all_of_them = None if self.old_values_only else self.records
        if isinstance(base, FiniteBase):
            if self.discount > 0:
                raise self.without_likelihood("its base has atoms, and with a discount it is then no posterior-predictive law")
            weights = np.ones(base.cells) if base.weights is None else np.array(base.weights, np.float64)
            alpha = np.zeros(base.cells) if self.old_values_only else float(self.strength) * weights / weights.sum()
            return UrnTerm(alpha=alpha, released=whole_counts(given, cells=base.cells, records=all_of_them)[None, :])
        if self.old_values_only and self.discount > 0:
            raise self.without_likelihood(
                "only old values are published, whose number depends on all distinct values of the data if there is a discount"
            )
        released = whole_counts(given, cells=len(published.labels), records=all_of_them)
        if released.sum() > self.records:
            raise ModelError(f"more records are given than the {self.records:,} that the mechanism draws.")
        return OpenUrnTerm(
            n=self.n,
            released=released,
            strength=float(self.strength),
            discount=float(self.discount),
            of_data=~np.array([base.is_fresh(each) for each in published.labels], np.bool_),
            all_published=not self.old_values_only,
        )

    @property
    def in_words(self) -> str:
        """For readers of a report."""
        grows = " that grows with the number of distinct values" if self.discount else ""
        return f"an urn of the confidential records in which new values appear at a public rate{grows}"

    @property
    def error_sources(self) -> ErrorSources:
        """The base, and the floor of the profile."""
        most = "1 record" if self.records == 1 else f"{self.records:,} records"
        return ErrorSources(
            shrinkage="shrinkage: new values come from the flat base",
            size="the floor: it may copy a record that nobody shares, and a chance of at most delta for that allows no more "
            f"than {most}",
        )

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """A finite base is on a public domain, fresh labels are open."""
        if isinstance(self.base, FiniteBase):
            return super().fits(domain)
        return domain.keys() == {"kind", "column"} and domain["kind"] == "open-labels" and self.base == FreshLabels()

    def content(self, domain: Mapping[str, Any]) -> Content:
        """Cells, or labels."""
        if isinstance(self.base, FiniteBase):
            return super().content(domain)
        return FreshContent(self.base.prefix, none=self.old_values_only)

    def sample(self, data: CountTable, /, *, size: int, entropy: Entropy) -> Any:
        """In one compiled loop where labels are open and all published, unless a subclass draws in its own way."""
        from privurn._kernels.urns.releases import update_table_releases

        plain = type(self).draw is PitmanYor.draw and isinstance(self.base, FreshLabels) and not self.old_values_only
        if not plain:
            return super().sample(data, size=size, entropy=entropy)
        self.check(data)
        if self.long(data.n):
            return np.stack([each.looked_at(data) for each in self.draw_many(data, size=size, entropy=entropy)])
        p, q, r = self.slots()
        fixed = (p + q * data.n, p, q, r, *guided(np.cumsum(data.counts)))
        tables = many_draws(
            lambda words, out: int(update_table_releases(words, *fixed, out)), records=self.records, size=size, entropy=entropy
        )
        labels = np.concatenate([data.values.astype(np.int64), -1 - np.arange(self.records)])
        return np.asarray(labels[tables])

    def support_attacks(self, claim: Claim, *, entropy: Entropy) -> list[SupportAttack]:
        """How many of n lone labels are copied."""
        if isinstance(self.base, FiniteBase) or self.n > MOST_LABELS:
            return []

        def copied(table: CountTable) -> float:
            released = np.asarray(self.sample(table, size=1, entropy=entropy)[0])
            return len(np.unique(released[released >= 0])) / self.n

        event = "a label held by one record is released"
        return [lone_label_attack(copied, event=event, claims=(claim,), labels=self.n)]

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return super().from_parameters({**data, "base": base_from_parameters(data["base"])})


def _relabelled(tables: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """New tables renumbered by first appearance after the shuffle, so that a label says nothing about the draw order."""
    new = tables >= k
    _, first, inverse = np.unique(tables[new], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out = tables.copy()
    out[new] = k + rank[inverse]
    return out


@dataclass(frozen=True, kw_only=True, repr=False)
class OpenUrn(Recipe):
    """The Dirichlet-process urn, on open labels or on a public domain. Left out: the most records that the guarantee allows."""

    alias: ClassVar[str] = "dirichlet-process"
    needs_domain: ClassVar[bool] = False

    strength: Number = option("Strength of the urn, 1 where left out.", default=1)
    old_values_only: bool = option("Publish only copies of old values; their number is random.", default=False)
    base_weights: Sequence[int] | None = None
    """Public whole weights of the cells that new values are drawn from."""

    @property
    def exact_discount(self) -> Fraction:
        """That of a Dirichlet process."""
        return Fraction(0)

    def calibrate(self, public: Public) -> PitmanYor:
        """The urn as it is given, with the most records that the guarantee allows, at least one."""
        weights = None if self.base_weights is None else tuple(whole_weight(each) for each in self.base_weights)
        urn = PitmanYor(
            n=public.known_n,
            records=self.records or 1,
            strength=exact(self.strength, name="strength"),
            discount=self.exact_discount,
            base=FreshLabels() if public.cells is None else FiniteBase(cells=public.cells, weights=weights),
            old_values_only=self.old_values_only,
        )
        return urn if self.records is not None else replace(urn, records=max(1, self._most(urn, public)))

    def _most(self, urn: PitmanYor, public: Public) -> int:
        single = public.guarantee.per_record()
        return int(min(largest_records(urn.profile, epsilon=single.epsilon, delta=single.delta), MOST_RELEASED))

    def planned(self, public: Public) -> Iterator[Option]:
        """The most records that the guarantee allows."""
        single, n = public.guarantee.per_record(), public.known_n
        urn = replace(self, records=1).calibrate(public)
        most, strength = largest_records(urn.profile, epsilon=single.epsilon, delta=single.delta), float(urn.strength)
        shape = f"strength {strength:g}" + (f", discount {float(urn.discount):g}" if urn.discount else "")
        if most == 0:
            remark = f"{shape}; delta is below what one record costs"
            yield Option(mechanism=self.alias, records=0, remark=remark)
            return
        worth = effective_sample_size(n=n, prior_total=max(strength, 0.0), records=float(most))
        yield Option(
            mechanism=self.alias,
            records=most,
            prior_weight=strength / (strength + n),
            effective_sample_size=worth,
            made=replace(urn, records=int(min(most, MOST_RELEASED))),
            remark=f"{shape}; the most records",
        )

    def too_costly(self, mechanism: Mechanism) -> str:
        """What an open urn always risks."""
        return (
            f"for {in_words(mechanism.records)} the {self.alias} urn needs a larger delta: with that probability it copies a "
            "record that nobody shares."
        )

    def nearby(self, mechanism: PitmanYor, public: Public) -> Iterator[Alternative]:
        """Fewer records, or a single one at a larger delta."""
        if most := self._most(mechanism, public):
            fewer = replace(self, records=most)
            yield Alternative(words=f"at most {in_words(most)} at the same guarantee", changes={"mechanism": fewer})
        one = replace(mechanism, records=1)
        if mechanism.records > 1 and (delta := delta_for(one.profile, public.guarantee)) is not None:
            changes = {"mechanism": replace(self, records=1), "delta": delta}
            yield Alternative(words="one single record at a larger delta", changes=changes, weak=delta > WEAK_DELTA)

    @classmethod
    def offers(cls, public: Public, asked: Recipe) -> Iterator[Alternative]:
        """One record, in place of what needs a public domain."""
        if public.cells is not None or public.n is None:
            return
        strength = exact(asked.strength, name="strength") if isinstance(asked, OpenUrn) else Fraction(1)
        own = cls._example(strength=number(max(strength, Fraction(1))))
        profile = own.calibrate(public).profile
        delta = None if meets(profile, public.guarantee) else delta_for(profile, public.guarantee)
        changes = {"mechanism": own, **({} if delta is None else {"delta": delta})}
        yield Alternative(words=f"a record of the {cls.alias} urn", changes=changes)

    @classmethod
    def _example(cls, *, strength: Number) -> "OpenUrn":
        return cls(records=1, strength=strength)


@dataclass(frozen=True, kw_only=True, repr=False)
class PitmanYorUrn(OpenUrn):
    """The Pitman-Yor urn: the larger its discount, the more new values."""

    alias: ClassVar[str] = "pitman-yor"

    discount: Number = option("Discount of the urn, in (0, 1); it needs one.", default=MISSING)

    @property
    def exact_discount(self) -> Fraction:
        """As it is given."""
        found = exact(self.discount, name="discount")
        if found == 0:
            raise ModelError("a Pitman-Yor urn needs a discount in (0, 1).", hint="For example discount=0.5")
        return found

    @classmethod
    def _example(cls, *, strength: Number) -> "PitmanYorUrn":
        return cls(records=1, strength=strength, discount=0.5)


def whole_weight(weight: Any) -> int:
    """A weight of a base measure as it was given, if it is whole."""
    if int(weight) != weight:
        raise ModelError("base weights must be whole numbers.", hint="For example base_weights=[1, 2, 1]")
    return int(weight)
