"""The urn on an open domain: Pitman-Yor, and the Dirichlet process as its case of discount 0.

The next record copies an old value with mass (count - discount) or opens a new one with mass (strength + discount x number
of values). Sampling is exact: integers only, for any rational discount in [0, 1) and strength > -discount.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.exact_numbers import rational
from privurn.mechanisms.long_slots import draw_tables
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.mechanisms.slots import guided, integer_type
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import PrivacyProfile
from privurn.privacy.urn_accounting import DirichletProcessProfile, PitmanYorProfile

MOST_RECORDS = 10**6
"""With a discount the profile takes time in proportion to the records: some minutes for this many."""

NEAREST = Fraction(1, 1000)
"""Masses 1 - discount and strength + discount are differences: closer to 0 their rounding would be felt."""


@dataclass(frozen=True, kw_only=True)
class FreshLabels:
    """A base measure without atoms: every new value is a label of its own, new_1, new_2, ..."""

    prefix: str = "new_"

    def is_fresh(self, label: object) -> bool:
        """Whether a published label is the urn's own: the prefix and a number."""
        return isinstance(label, str) and label.startswith(self.prefix) and label[len(self.prefix) :].isdecimal()

    def spelled(self, label: object) -> object:
        """How a label of the data is published: as it is, with one more underscore where it could be taken for a fresh one.

        The rule looks at the label alone and never maps two to one, so it changes no guarantee.

        >>> FreshLabels().spelled("new_1"), FreshLabels().spelled("new__1"), FreshLabels().spelled("newer")
        ('new__1', 'new___1', 'newer')
        """
        if isinstance(label, str) and label.startswith(self.prefix):
            rest = label[len(self.prefix) :]
            if rest.lstrip("_").isdecimal():
                return f"{self.prefix}_{rest}"
        return label

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "fresh-labels", "prefix": self.prefix}


@dataclass(frozen=True, kw_only=True)
class FiniteBase:
    """A public discrete base measure on cells 0..cells-1: uniform, or with whole-number weights.

    Atoms make two new tables share a value now and then, which only hides more: the profile of the non-atomic urn
    is an upper bound (post-processing, docs/proofs/global-profiles.md).
    """

    cells: int
    weights: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise ModelError("a base measure needs at least one cell.")
        if self.weights is not None and (len(self.weights) != self.cells or min(self.weights) < 0 or sum(self.weights) < 1):
            raise ModelError("a base measure needs one whole weight, 0 or more, for each cell and at least one positive.")
        if self.weights is not None and integer_type(sum(self.weights)) is object:
            raise ModelError("the weights of a base measure must add up to less than 2^63.", hint="Divide them by a number")

    def sample(self, size: int, *, entropy: Entropy) -> NDArray[np.int64]:
        """Exact independent draws."""
        if self.weights is None:
            return entropy.integers(self.cells, size=size)
        ends = np.cumsum(np.array(self.weights, np.int64))
        return np.searchsorted(ends, entropy.integers(int(ends[-1]), size=size), side="right").astype(np.int64)

    def parameters(self) -> dict[str, Any]:
        """Plain data."""
        weights = "uniform" if self.weights is None else list(self.weights)
        return {"kind": "finite", "cells": self.cells, "weights": weights}


def base_from_parameters(data: dict[str, Any]) -> FreshLabels | FiniteBase:
    """Inverse of `parameters`."""
    if data["kind"] == "fresh-labels":
        return FreshLabels(prefix=str(data["prefix"]))
    weights = None if data["weights"] == "uniform" else tuple(int(each) for each in data["weights"])
    return FiniteBase(cells=int(data["cells"]), weights=weights)


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
    base: FreshLabels | FiniteBase = FreshLabels()
    old_values_only: bool = False

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
        from privurn._kernels.urn import update_tables

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

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Floating-point twin for simulation, never for a release: counts of old values and of new ones, O(k + new)."""
        from privurn._kernels.urn import update_new_tables

        theta, sigma, k = float(self.strength), float(self.discount), len(counts.counts)
        new_mass = theta + k * sigma
        n_new_records = rng.binomial(self.records, rng.beta(new_mass, counts.n - k * sigma))
        old = rng.multinomial(self.records - n_new_records, rng.dirichlet(counts.counts - sigma))
        out = np.empty(n_new_records, np.int64)
        n_tables = update_new_tables(rng.random(n_new_records), new_mass, sigma, out, np.empty(n_new_records, np.bool_))
        return old, np.bincount(out, minlength=n_tables)

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {
            "n": self.n,
            "records": self.records,
            "strength": str(self.strength),
            "discount": str(self.discount),
            "base": self.base.parameters(),
            "old_values_only": self.old_values_only,
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "PitmanYor":
        """Inverse of `parameters`."""
        return cls(
            n=int(data["n"]),
            records=int(data["records"]),
            strength=rational(data["strength"]),
            discount=rational(data["discount"]),
            base=base_from_parameters(data["base"]),
            old_values_only=bool(data["old_values_only"]),
        )


def _relabelled(tables: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """New tables renumbered by first appearance after the shuffle, so that a label says nothing about the draw order."""
    new = tables >= k
    _, first, inverse = np.unique(tables[new], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out = tables.copy()
    out[new] = k + rank[inverse]
    return out
