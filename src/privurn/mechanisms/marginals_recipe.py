"""Which marginals are asked for, and the least noise for the guarantee."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from privurn.domain import TableDomain
from privurn.errors import DomainError, FormatError, ModelError, PrivurnError
from privurn.mechanisms.marginal_counts import LARGEST_SET, Columns, MarginalLayout
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import (
    MOST_COPIES,
    check_sizes,
    check_workload,
    every_set,
    fine_column,
    fine_values,
    precisions,
    ranged_sizes,
)
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.recipe import Option, Public, Recipe, check_copies, option
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise
from privurn.privacy.noisy_tree_calibration import smallest_tree_scales
from privurn.privacy.profile import Guarantee

FEW_MARGINALS = 20
"""Up to so many, Laplace noise may have the smaller deviation where delta is positive, and is tried."""

WORKLOAD = "For example workload='age*sex,age*sex*income'"
WEIGHTS = "For example workload='age*sex=2'"


def calibrate_marginals(
    *,
    n: int | None,
    sizes: Sequence[int],
    guarantee: Guarantee,
    sets: Sequence[Columns] | None = None,
    order: int | None = None,
    weights: Mapping[Columns, float] | None = None,
    noise: TreeNoise | None = None,
    fine: Mapping[int, int] | None = None,
) -> NoisyMarginals:
    """The least noise for the guarantee on the marginals of up to `order` columns, or of `sets`; n is ignored where secret.

    `fine`: which columns are counted with others by ranges, and alone by a tree, with the number of their values in order.

    `noise`: Laplace where delta = 0, and then marginals of up to two columns unless more are asked for; else Gaussian, but for
    few marginals the one with the smaller deviation.

    >>> guarantee = Guarantee(epsilon=1.0, delta=0.0)
    >>> calibrate_marginals(n=100, sizes=(2, 2), guarantee=guarantee, sets=[(0, 1)]).scales
    (2.0,)
    """
    secret = guarantee.neighbouring == "add-remove"
    first: TreeNoise = noise or ("discrete-laplace" if guarantee.delta == 0.0 else "discrete-gaussian")
    values = fine or {}
    ranged = ranged_sizes(sizes, values)
    chosen = tuple(sets) if sets is not None else every_set(ranged, order=order or (2 if first == "discrete-laplace" else 3))
    if not chosen:
        raise ModelError("no column has two cells or more: there is nothing to measure.", hint="Use a finer domain")
    kinds: list[TreeNoise] = [first]
    if noise is None and first != "discrete-laplace" and len(chosen) <= FEW_MARGINALS:
        kinds.append("discrete-laplace")
    made = []
    for kind in kinds:
        columns = tuple(fine_column(j, values=k, special=sizes[j] - k, noise=kind) for j, k in values.items())
        layout = MarginalLayout(ranged, chosen, columns)
        alone = {len(ranged) + i: (column.place,) for i, (column, _) in enumerate(layout.levels)}
        given: dict[Columns, float] = dict(weights or {})
        given |= {(j,): given.get(place, 1.0) for j, place in alone.items()}
        relative = precisions(layout.every_size, layout.every_set, noise=kind, weights=given, fine={*values, *alone})
        scales, _ = smallest_tree_scales(noise=kind, precisions=relative, guarantee=guarantee)
        made.append(NoisyMarginals(n=None if secret else n, sizes=ranged, sets=chosen, scales=scales, noise=kind, fine=columns))
    return min(made, key=lambda each: float(each.deviations[: len(chosen)] @ each.layout.cells[: len(chosen)]))


@dataclass(frozen=True, kw_only=True, repr=False)
class Marginals(Recipe):
    """Whole tables: noisy counts by all sets of one, two and three columns, and a synthetic table fitted to them.

    `records` is the number of rows of the synthetic table: left out, as many as confidential ones (an estimate where their
    number is secret). One table is for use at face value; several `copies` are approximate draws of the confidential table,
    whose spread tells how far off a share or a mean may be (`privurn.combine`).
    """

    alias: ClassVar[str] = "noisy-marginals"
    keeps_n_secret: ClassVar[bool] = True
    whole_tables: ClassVar[bool] = True
    publishes_records: ClassVar[bool] = False

    order: int | None = option("Most columns of a marginal, 1 to 3; left out 3, or 2 where delta is 0.")
    workload: Any = option(
        "Columns that are counted together, as age*sex,age*sex*income=2 (=2: twice the share); left out: all up to the order."
    )
    noise: TreeNoise | None = option("discrete-gaussian or discrete-laplace; left out, the one that suits delta.")
    copies: int = option("Synthetic tables drawn from the posterior; 1 (default): the most probable one.", default=1)

    def check(self) -> None:
        """Words and numbers that are known."""
        super().check()
        if self.noise is not None and self.noise not in KINDS:
            raise FormatError(f"the noise {self.noise!r} is not known.", hint=", ".join(KINDS))
        if self.order is not None and (type(self.order) is not int or not 1 <= self.order <= LARGEST_SET):
            raise ModelError("marginals have one, two or three columns.", hint="order=3")
        check_copies(self.copies, self.records, most=MOST_COPIES)
        if self.order is not None and self.workload is not None:
            raise ModelError("the order and the workload both say what is measured.", hint="Leave the order out")

    def makes_parts(self, mechanism: Mechanism, public: Public) -> bool:
        """Not where how many records each range of a fine column has is not known before some are drawn again."""
        layout: MarginalLayout = mechanism.layout  # type: ignore[attr-defined]  # the only kind that this recipe makes
        return not (public.table is not None and public.table.zero_cells and layout.fine)

    def calibrate(self, public: Public) -> NoisyMarginals:
        """The least noise."""
        domain = public.table
        if domain is None:
            raise ModelError("marginals are of a table with its columns side by side.")
        check_sizes(domain)
        sets, weights = (None, None) if self.workload is None else self._workload(domain)
        check_workload(domain, sets or ())
        return calibrate_marginals(
            n=public.n,
            sizes=domain.sizes,
            guarantee=public.guarantee,
            sets=sets,
            order=self.order,
            weights=weights,
            noise=self.noise,
            fine=fine_values(domain),
        )

    def planned(self, public: Public) -> Iterator[Option]:
        """With what noise alone does to a pair of columns."""
        try:
            made = self.calibrate(public)
        except PrivurnError:
            return
        error = float(np.mean(list(made.expected_errors(public.about_n).values())))
        words = f"{made.in_words}; noise alone puts a marginal of two columns {error:.2g} off in total variation"
        yield Option(mechanism=self.alias, records=self.records or public.about_n, remark=words)

    def _workload(self, domain: TableDomain) -> tuple[tuple[Columns, ...], dict[Columns, float]]:
        """All single columns and the sets asked for, in order, with their weights."""
        given = dict(self._asked())
        names = list(domain.names)
        weights: dict[Columns, float] = {}
        for asked, weight in given.items():
            missing = [name for name in asked if name not in names]
            if missing:
                raise DomainError(f"the workload names {missing[0]!r}, which the domain does not have.", hint=WORKLOAD)
            if len(set(asked)) != len(asked) or not 1 <= len(asked) <= LARGEST_SET:
                raise ModelError("a marginal of the workload has one, two or three different columns.", hint=WORKLOAD)
            if not isinstance(weight, Real) or not 0.0 < weight < inf:
                raise ModelError("weights of a workload must be positive numbers.", hint=WEIGHTS)
            places = tuple(sorted(j for j in map(names.index, asked) if domain.sizes[j] > 1))
            if places:
                weights[places] = float(weight)
        sets = dict.fromkeys([*every_set(domain.sizes, order=1), *weights])
        return tuple(sorted(sets, key=lambda each: (len(each), each))), weights

    def _asked(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Sets of names and their weights, from a mapping, a list or text."""
        given = self.workload
        if isinstance(given, str):
            given = dict(_typed_set(part) for part in given.split(","))
        if not isinstance(given, Iterable):
            raise FormatError("a workload is a list of sets of columns.", hint=WORKLOAD)
        items = given.items() if isinstance(given, Mapping) else ((each, 1.0) for each in given)
        for each, weight in items:
            if not isinstance(each, Iterable):
                raise FormatError(f"the workload holds {each!r}, which is no set of columns.", hint=WORKLOAD)
            yield ((each,) if isinstance(each, str) else tuple(str(name).strip() for name in each)), weight

    def remarks(self, mechanism: NoisyMarginals, public: Public) -> tuple[str, ...]:
        """Where the noise drowns the data; a secret number of records is only known from the measurements."""
        return () if public.n is None else mechanism.drowned(public.n)


def _typed_set(text: str) -> tuple[tuple[str, ...], float]:
    """Columns joined by *, and a weight behind = where one is given."""
    columns, equals, weight = text.strip().rpartition("=")
    if not equals:
        return tuple(text.strip().split("*")), 1.0
    try:
        return tuple(columns.split("*")), float(weight)
    except ValueError:
        raise FormatError(f"the weight {weight!r} of the workload is not a number.", hint=WEIGHTS) from None
