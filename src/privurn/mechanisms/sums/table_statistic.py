"""Noisy contingency tables: the counts of all cells of a public domain."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from privurn.domain import Bins, Categories, ColumnDomain, Dates, Grid, JointDomain, label_text
from privurn.errors import DomainError, ModelError
from privurn.exact_numbers import decimal_text
from privurn.mechanisms.likelihood import Kind, NoisyCountsTerm, NoisySizeTerm, Numbers
from privurn.mechanisms.sums.calibrating import FINE_STEP, Budget, on_the_private_side, with_least_noise, with_noise
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.statistic import MOST_ENTRIES, StatisticMechanism
from privurn.privacy.calibration import round_up_to_rational
from privurn.privacy.histogram_calibration import smallest_scale
from privurn.privacy.laws.noisy_counts import Noise, NoisyCountsProfile
from privurn.privacy.profile import GroupProfile, PrivacyProfile
from privurn.tables import Source, count_cells


@dataclass(frozen=True, kw_only=True, eq=False)
class TableStatistic(StatisticMechanism):
    """Counts of the cells of a public `domain`, each with noise; the first column's values vary fastest.

    A record added or removed moves one count by 1; a record replaced moves two. Without a noisy n the profile is the exact one
    of noisy counts (privacy.laws.noisy_counts), for several records to a person by group privacy where the noise is
    Laplace: what `PerturbedHistogram` has for the same noise. Otherwise it is that of the class.
    """

    domain: JointDomain
    model: ClassVar[str] = "table"
    usual_noise: ClassVar[str] = "discrete-laplace"
    reads_text: ClassVar[bool] = True
    inferred_from: ClassVar[Kind] = "counts"

    def __post_init__(self) -> None:
        if not isinstance(self.domain, JointDomain):
            raise DomainError(
                "a table needs a domain for each of its columns.", hint="For example domain={'sex': Categories(['f', 'm'])}"
            )
        if self.domain.spread:
            raise DomainError("only records in bins can be spread out.", hint="Leave within='uniform' out")
        if not 2 <= self.domain.size <= MOST_ENTRIES:
            raise DomainError(f"a table has 2 to {MOST_ENTRIES:,} cells.", hint="Use fewer or more values")
        if self.noise.step not in (1.0, FINE_STEP) or (self.noise.kind == "gaussian" and self.noise.step != 1.0):
            raise ModelError("the noise must be on whole numbers, or Laplace on multiples of 1/1024.")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the domain."""
        return tuple(self.domain.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each column, "other" and nulls included."""
        return tuple(column.size for column in self.domain.columns.values())

    @property
    def names(self) -> tuple[str, ...]:
        """column=value, ... of each cell."""
        labels = [""]
        for name, column in self.domain.columns.items():
            own = [f"{name}={label}" for label in column_labels(column)]
            labels = [f"{first}, {second}" if first else second for second in own for first in labels]
        return tuple(labels)

    @property
    def n_entries(self) -> int:
        """Cells."""
        return self.domain.size

    @property
    def counted(self) -> JointDomain:
        """All of it."""
        return self.domain

    def likelihood(self, published: Numbers) -> NoisyCountsTerm:
        """The noise of each count is independent, and that of n where it is published with noise."""
        law, noisy, size = self.size_noise, published.noisy_n, None
        if law is not None and noisy is not None:
            size = NoisySizeTerm(gaussian=law.kind == "gaussian", scale=law.scale, noisy=noisy)
        cells = self.n_entries
        return NoisyCountsTerm.of(published.values, noise=self.noise_name, scale=self.noise.scale, cells=cells, size=size)

    @property
    def l1_units(self) -> int:
        """One count or two."""
        return (1 if self.neighbouring == "add-remove" else 2) * round(1.0 / self.noise.step)

    @property
    def l2_squared_units(self) -> int:
        """One count or two."""
        return (1 if self.neighbouring == "add-remove" else 2) * round(1.0 / self.noise.step) ** 2

    @property
    def noise_name(self) -> Noise:
        """What noisy counts call this noise."""
        if self.noise.kind == "gaussian":
            return "discrete-gaussian"
        return "laplace" if self.noise.step == FINE_STEP else "discrete-laplace"

    @property
    def profile(self) -> PrivacyProfile:
        """See the class."""
        if self.size_noise is not None or (self.contributions > 1 and self.noise.kind == "gaussian"):
            return super().profile
        return (
            self.counts_profile
            if self.contributions == 1
            else GroupProfile(single=self.counts_profile, contributions=self.contributions)
        )

    @property
    def counts_profile(self) -> NoisyCountsProfile:
        """That of the counts alone, for one record."""
        return NoisyCountsProfile(
            cells=self.domain.size, noise=self.noise_name, scale=self.noise.scale, neighbouring=self.neighbouring
        )

    @property
    def rho(self) -> float:
        """Of the whole release."""
        return self.counts_profile.zcdp * self.contributions**2 if self.size_noise is None else super().rho

    def column_ends(self) -> dict[str, tuple[Any, Any]]:
        """The ends of each column's domain."""
        from privurn.privacy.audit.raw_records import column_ends

        return {name: column_ends(each) for name, each in self.domain.columns.items()}

    def hostile_records(self, plain: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """In one column after the other."""
        from privurn.privacy.audit.raw_records import hostile_values

        for column, each in self.domain.columns.items():
            yield from ((f"{name} in {column!r}", plain | {column: value}) for name, value in hostile_values(each).items())

    def sum_units(self, source: Source) -> tuple[list[int], int]:
        """Counted in DuckDB, one number for each cell that occurs."""
        counts = count_cells(source, self.domain, secret_size=self.neighbouring == "add-remove")
        per_record = round(1.0 / self.noise.step)
        return [int(each) * per_record for each in counts.dense(self.domain.size)], counts.n

    @classmethod
    def calibrated(cls, *, domain: JointDomain | Mapping[str, ColumnDomain], budget: Budget) -> "TableStatistic":
        """The mechanism with the least noise for the budget.

        >>> cells = {"smoker": Categories(["yes", "no"]), "ill": Categories(["yes", "no"])}
        >>> budget = Budget(epsilon=0.5, noise="discrete-laplace", neighbouring="add-remove")
        >>> TableStatistic.calibrated(domain=cells, budget=budget).noise.scale
        2.0
        """
        joint = domain if isinstance(domain, JointDomain) else JointDomain(domain)
        make = with_noise(cls, budget, domain=joint)
        step = FINE_STEP if budget.noise == "laplace" else 1.0
        made = with_least_noise(make, budget=budget, step=step)
        if not budget.gaussian or not isinstance(made.profile, NoisyCountsProfile):
            return made
        promise = budget.guarantee
        scale = smallest_scale(
            cells=joint.size,
            noise="discrete-gaussian",
            epsilon=promise.epsilon,
            delta=promise.delta,
            neighbouring=budget.neighbouring,
        )
        rounded = make(NoiseLaw(kind="gaussian", scale=float(round_up_to_rational(scale, digits=7)), step=step), None)
        if rounded.profile.delta(promise.epsilon) <= promise.delta:  # more Gaussian noise need not be more private
            return rounded
        return on_the_private_side(make(NoiseLaw(kind="gaussian", scale=scale, step=step), None), make=make, budget=budget)


def column_labels(domain: ColumnDomain) -> list[str]:
    """What each cell of a column is called."""
    if isinstance(domain, Categories):
        labels = [label_text(value) for value in domain.values]
    elif isinstance(domain, Dates):
        labels = [domain.label(cell) for cell in range(domain.n_values)]
    elif isinstance(domain, Grid):
        labels = [decimal_text(domain.bounds[0] + i * domain.spacing) for i in range(domain.n_values)]
    elif isinstance(domain, Bins):
        edges = [decimal_text(Fraction(edge)) for edge in domain.edges]
        labels = [f"{low}..{high}" for low, high in pairwise(edges)]
    else:
        raise DomainError("a column's domain must be a grid, bins, dates or categories.")
    if domain.other_cell is not None:
        labels.append("other")
    if domain.null_cell is not None:
        labels.append("null")
    return labels
