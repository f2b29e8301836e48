"""The urn on a public domain: every cell starts with alpha prior records, every drawn record is put back twice.

It is the posterior-predictive law of a Dirichlet-multinomial model. Sampling is exact: integers only, of whatever length the
rational alpha needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import Alternative, ModelError
from privurn.exact_numbers import Number, exact, rational
from privurn.mechanisms.alternatives import in_words, rounded_up
from privurn.mechanisms.integer_urn import Slots, guided, integer_type
from privurn.mechanisms.likelihood import Numbers, UrnTerm, whole_counts
from privurn.mechanisms.long_integer_urn import draw_cells
from privurn.mechanisms.many_draws import many_draws
from privurn.mechanisms.mechanism import PER_RECORD, Drawn, ErrorSources, Mechanism
from privurn.mechanisms.recipe import Option, Public, Recipe, option
from privurn.mechanisms.urn_plan import UrnPlan, effective_sample_size, explain, plan_default, plan_records, plan_urn
from privurn.privacy.calibration import largest_records, round_up_to_rational, smallest_alpha
from privurn.privacy.entropy import Entropy
from privurn.privacy.laws.add_remove import (
    AddRemoveDirichletMultinomialProfile,
    largest_records_add_remove,
    smallest_alpha_add_remove,
)
from privurn.privacy.laws.urn import UNLIMITED, DirichletMultinomialProfile

SMALLEST_ALPHA, LARGEST_ALPHA = Fraction(1, 10**12), Fraction(10**15)
"""Far beyond any use on either side; within them the profiles are sums of ordinary floats."""
ENDLESS = 10**12
"""Records that stand for no end of them where a release is simulated."""
LONGEST_DENOMINATOR = 4096
"""Bits of the alphas' common denominator. Fractions of unlike denominators, one for each cell, could have one without end."""


@dataclass(frozen=True, kw_only=True)
class DirichletMultinomial(Mechanism):
    """`records` records from the urn of `n` records over `cells` cells with `alpha` prior records in each.

    `alpha` is one rational for all cells or one for each cell (a public discrete prior). n = None keeps the number of
    confidential records secret: neighbours then differ by one added or removed record instead of a replaced one.
    """

    n: int | None
    cells: int
    alpha: Fraction | tuple[Fraction, ...]
    records: int

    coarser: ClassVar[bool] = True
    in_words: ClassVar[str] = (
        "an urn that starts with prior records in every cell of the public domain, holds the confidential records as well, "
        "and is drawn from with reinforcement"
    )
    name: ClassVar[str] = "dirichlet-multinomial"

    def __post_init__(self) -> None:
        alphas = (self.alpha,) if isinstance(self.alpha, Fraction) else self.alpha
        if not all(isinstance(each, Fraction) and each > 0 for each in alphas):
            raise ModelError("alpha must be a positive rational.", hint="For example Fraction(37, 2), or alpha=18.5")
        if not all(SMALLEST_ALPHA <= each <= LARGEST_ALPHA for each in alphas):
            raise ModelError(f"alpha must lie between {float(SMALLEST_ALPHA):g} and {float(LARGEST_ALPHA):g}.")
        if isinstance(self.alpha, tuple) and len(self.alpha) != self.cells:
            raise ModelError("a prior for each cell needs as many alphas as there are cells.")
        if self.records < 1:
            raise ModelError("the number of released records must be at least 1.")
        if self.denominator.bit_length() > LONGEST_DENOMINATOR:
            raise ModelError(
                f"the alphas have no common denominator of at most {LONGEST_DENOMINATOR:,} bits.",
                hint="Write them as decimals, or as fractions of one denominator",
            )

    @property
    def profile(self) -> DirichletMultinomialProfile | AddRemoveDirichletMultinomialProfile:
        """Exact global profile."""
        if self.n is None:
            alpha = self.alpha if isinstance(self.alpha, Fraction) else min(self.alpha)
            return AddRemoveDirichletMultinomialProfile(
                cells=self.cells, alpha=below(alpha), records=self.records, prior_total=below(self.prior_total)
            )
        if isinstance(self.alpha, Fraction):
            return DirichletMultinomialProfile(n=self.n, cells=self.cells, alpha=below(self.alpha), records=self.records)
        smallest = sorted(self.alpha)[:2]
        return DirichletMultinomialProfile(
            n=self.n,
            cells=self.cells,
            alpha=below(smallest[0]),
            second_alpha=below(smallest[-1]),
            prior_total=below(sum(self.alpha, Fraction(0))),
            records=self.records,
        )

    @property
    def prior_total(self) -> Fraction:
        """Prior records in all cells together."""
        return self.alpha * self.cells if isinstance(self.alpha, Fraction) else sum(self.alpha, Fraction(0))

    @property
    def denominator(self) -> int:
        """Least common denominator of the alphas: the slots of one record."""
        if isinstance(self.alpha, Fraction):
            return self.alpha.denominator
        common = 1
        for each in {each.denominator for each in self.alpha}:
            common = lcm(common, each)
            if common.bit_length() > LONGEST_DENOMINATOR:  # refused by its caller, and could take forever
                break
        return common

    @property
    def prior_weight(self) -> float:
        """Share of the prior in the released distribution: how far it is shrunk towards the prior."""
        return float(self.prior_total / (self.prior_total + self._public_n))

    @property
    def effective_sample_size(self) -> float:
        """Records of a plain random sample that would tell as much after debiasing: (n/A)^2 m (A+1)/(A+m), A = n + prior."""
        return effective_sample_size(n=self._public_n, prior_total=float(self.prior_total), records=self.records)

    @property
    def _public_n(self) -> int:
        if self.n is None:
            raise ModelError("this needs the number of confidential records, which is secret here.")
        return self.n

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.records

    def draw(self, counts: CountTable, *, entropy: Entropy) -> Drawn:
        """Exact draws: slot integers from `entropy`, cells from the urn kernel, then a uniform shuffle."""
        self.check(counts)
        out = self._unshuffled(counts, entropy=entropy)
        entropy.shuffle(out)
        return Drawn(out)

    @property
    def draws_blocks(self) -> bool:
        """Unless a subclass draws in its own way."""
        return type(self).draw is DirichletMultinomial.draw

    def draw_blocks(self, counts: CountTable, *, size: int, entropy: Entropy) -> Iterator[CountTable]:
        """The same draws, of which only counts are kept: memory is that of the cells and of a block.

        Before each block the urn holds the confidential records and all those that were drawn: it is an urn like any.
        """
        self.check(counts)
        for first in range(0, self.records, size):
            urn = replace(self, records=min(size, self.records - first))
            block = CountTable.of(urn._unshuffled(counts, entropy=entropy))
            yield block
            counts = counts.plus(block)

    def _unshuffled(self, counts: CountTable, *, entropy: Entropy) -> NDArray[np.int64]:
        """Cells in order of drawing."""
        from privurn._kernels.urns.urn import update_cells

        slots = self.slots(counts)
        if slots.long:
            out = draw_cells(slots, records=self.records, entropy=entropy)
        else:
            out = np.empty(self.records, np.int64)
            draws = entropy.below_ramp(slots.total, step=slots.per_ball, size=self.records)
            update_cells(draws, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells, out)
        return out

    def slots(self, counts: CountTable) -> Slots:
        """The urn in whole slots, exactly: q for each record, q alpha for each cell's prior."""
        q = self.denominator
        kind = integer_type(int(self.prior_total * q) + q * (counts.n + self.records))
        if isinstance(self.alpha, Fraction):
            cell = self.alpha.numerator
            held, cells = (counts.counts, counts.values) if counts.n else (np.zeros(1, np.int64), np.zeros(1, np.int64))
            return Slots(q, cell * self.cells, cell, np.cumsum(held.astype(kind) * q), cells.astype(np.int64))
        masses = np.array([each.numerator * (q // each.denominator) for each in self.alpha], kind)
        return Slots(q, 0, 1, np.cumsum(masses + counts.dense(self.cells).astype(kind) * q), np.arange(self.cells))

    def simulate(self, counts: CountTable, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Floating-point twin for simulation, never for a release: how often each cell is drawn, O(cells)."""
        prior = float(self.alpha) if isinstance(self.alpha, Fraction) else np.array([float(each) for each in self.alpha])
        return rng.multinomial(self.records, rng.dirichlet(counts.dense(self.cells) + prior))

    def likelihood(self, published: Numbers) -> UrnTerm:
        """The counts are those of the urn, whose own prior has a closed form."""
        each = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,) * self.cells
        released = whole_counts(published.values, cells=self.cells, records=self.records)
        return UrnTerm(alpha=np.array([float(alpha) for alpha in each]), released=released[None, :])

    @property
    def error_sources(self) -> ErrorSources:
        """The prior, and the urn."""
        prior = f"the {'flat ' if isinstance(self.alpha, Fraction) else ''}prior over {self.cells:,} cells"
        if self.n is None:
            weight = f"counts as {float(self.prior_total):,.4g} records beside the confidential ones"
        else:
            weight = f"weighs {self.prior_weight:.1%} of what is released"
        return ErrorSources(shrinkage=f"shrinkage: {prior} {weight}", noise="the randomness of the urn itself")

    @property
    def least_protected(self) -> tuple[int, int] | None:
        """The two cells with the least prior mass."""
        if isinstance(self.alpha, Fraction) or len(self.alpha) < 2:
            return None
        left, right = sorted(range(len(self.alpha)), key=self.alpha.__getitem__)[:2]
        return left, right

    def sample(self, data: CountTable, /, *, size: int, entropy: Entropy) -> Any:
        """All of them in one compiled loop, unless a subclass draws in its own way."""
        from privurn._kernels.urns.releases import update_cell_releases

        if type(self).draw is not DirichletMultinomial.draw:
            return super().sample(data, size=size, entropy=entropy)
        self.check(data)
        slots = self.slots(data)
        if slots.long:
            return np.stack([each.cells for each in self.draw_many(data, size=size, entropy=entropy)])
        fixed = (slots.total, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells)
        return many_draws(
            lambda words, out: int(update_cell_releases(words, *fixed, out)), records=self.records, size=size, entropy=entropy
        )

    def seconds(self, *, contributions: int) -> float:
        """Of the compiled loop."""
        return PER_RECORD * self.records

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        alpha = str(self.alpha) if isinstance(self.alpha, Fraction) else [str(each) for each in self.alpha]
        return {"n": self.n, "cells": self.cells, "alpha": alpha, "records": self.records}

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> "DirichletMultinomial":
        """Inverse of `parameters`."""
        alpha = data["alpha"]
        if isinstance(alpha, list) and len(alpha) != int(data["cells"]):  # before a long list is read
            raise ModelError("a prior for each cell needs as many alphas as there are cells.")
        read = tuple(rational(each) for each in alpha) if isinstance(alpha, list) else rational(alpha)
        n = None if data["n"] is None else int(data["n"])
        return cls(n=n, cells=int(data["cells"]), alpha=read, records=int(data["records"]))


def below(value: Fraction) -> float:
    """Largest float at most `value`: less prior is never more private, so the profile errs on the safe side."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else float(np.nextafter(nearest, 0.0))


def exact_alpha(alpha: Any) -> Fraction | tuple[Fraction, ...] | None:
    """One alpha, or one for each cell, as exact fractions."""
    if alpha is None:
        return None
    if isinstance(alpha, (int, float, str, Fraction)):
        return exact(alpha, name="alpha")
    if isinstance(alpha, Sequence):
        return tuple(exact(each, name="alpha") for each in alpha)
    raise ModelError("alpha must be a number, or a sequence with one number for each cell.")


@dataclass(frozen=True, kw_only=True, repr=False)
class Urn(Recipe):
    """The Dirichlet-multinomial urn on a public domain. Left out: the smallest private prior, the default number of records."""

    alias: ClassVar[str] = "dirichlet-multinomial"
    offered: ClassVar[str | None] = "the Dirichlet-multinomial urn at the same guarantee"
    keeps_n_secret: ClassVar[bool] = True

    alpha: Number | Sequence[Number] | None = option("Prior records in each cell. Default: the smallest that is private.")

    def calibrate(self, public: Public) -> DirichletMultinomial:
        """The smallest prior, unless one is given; as many records as planning chooses, unless their number is given."""
        n, cells, alpha = public.n, public.known_cells, exact_alpha(self.alpha)
        if n is not None and alpha is None:
            plan = plan_records(n=n, cells=cells, guarantee=public.guarantee, records=self.records)
            return DirichletMultinomial(n=n, cells=cells, alpha=plan.alpha, records=int(plan.records))
        records = public.known_n if self.records is None else self.records
        if alpha is None:
            single = public.guarantee.per_record()
            least = smallest_alpha_add_remove(cells=cells, records=records, epsilon=single.epsilon, delta=single.delta)
            alpha = round_up_to_rational(least)
        return DirichletMultinomial(n=n, cells=cells, alpha=alpha, records=records)

    def planned(self, public: Public) -> Iterator[Option]:
        """The number of records asked for, or else the default one and as many as there are; and no end of them."""
        n, guarantee = public.about_n, public.guarantee
        sizes: dict[str, Any] = {"n": n, "cells": public.known_cells, "guarantee": guarantee}
        plans: dict[str, tuple[UrnPlan, Urn | None]] = {}
        if self.records is not None:
            plans["as many records as asked for"] = plan_urn(**sizes, records=self.records), self
        else:
            default = plan_default(**sizes)
            words = "n records" if default.records == n else "what makes most of the data"
            plans[f"{words}, its default"] = default, self
            if default.records != n:
                plans["n records"] = plan_urn(**sizes, records=n), replace(self, records=n)
        if guarantee.delta > 0.0:
            plans["unlimited: the cell probabilities"] = plan_urn(**sizes, records=UNLIMITED), None
        for remark, (plan, asked) in plans.items():
            yield Option(
                mechanism=self.alias,
                records=plan.records,
                alpha=float(plan.alpha),
                prior_weight=plan.prior_weight,
                effective_sample_size=plan.effective_sample_size if plan.records in (n, UNLIMITED) else None,
                remark=remark,
                made=DirichletMultinomial(
                    n=public.n,
                    cells=plan.cells,
                    alpha=plan.alpha,
                    records=ENDLESS if plan.records == UNLIMITED else int(plan.records),
                ),
                asked=asked,
            )

    def too_costly(self, mechanism: Mechanism) -> str:
        """A given prior that is too small."""
        return f"{in_words(mechanism.records)} with this alpha would cost more than the guarantee."

    def nearby(self, mechanism: DirichletMultinomial, public: Public) -> Iterator[Alternative]:
        """Fewer records with this prior, or a larger prior for as many."""
        single, profile, cells = public.guarantee.per_record(), mechanism.profile, mechanism.cells
        pair = {"epsilon": single.epsilon, "delta": single.delta}
        if isinstance(profile, AddRemoveDirichletMultinomialProfile):
            least = smallest_alpha_add_remove(cells=cells, records=mechanism.records, **pair)
            most = largest_records_add_remove(cells=cells, alpha=profile.alpha, prior_total=profile.prior_total, **pair)
        else:
            least = smallest_alpha(n=public.known_n, cells=cells, records=mechanism.records, **pair)
            most = largest_records(profile, **pair)
        if isinstance(most, int) and most > 0:
            fewer = replace(self, records=most)
            yield Alternative(words=f"at most {in_words(most)} with this alpha", changes={"mechanism": fewer})
        words = f"a prior of at least {rounded_up(least):g} in every cell for {in_words(mechanism.records)}"
        yield Alternative(words=words, changes={"mechanism": replace(self, alpha=rounded_up(least))})

    def remarks(self, mechanism: DirichletMultinomial, public: Public) -> tuple[str, ...]:
        """What the prior that was chosen costs."""
        if self.alpha is not None or mechanism.n is None or not isinstance(mechanism.alpha, Fraction):
            return ()
        plan = UrnPlan(n=mechanism.n, cells=mechanism.cells, records=mechanism.records, alpha=mechanism.alpha)
        return explain(plan, guarantee=public.guarantee)
