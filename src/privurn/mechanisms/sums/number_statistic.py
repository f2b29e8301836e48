"""Sums of what a rule makes of each record by itself, whose columns are read as numbers."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.tables import Source
from privurn.tables.dialects import DUCKDB, Dialect
from privurn.tables.numeric import Missing, numeric_batches, summed

AT_ONCE = 2**13
"""Records added up in 64 bits: their entries are 2^48 steps each at most."""


@dataclass(frozen=True, kw_only=True)
class NumberStatistic(StatisticMechanism):
    """Sums of what `record_units` makes of each record, whose columns are read as numbers."""

    missing: Missing = "error"
    record_a_column: ClassVar[bool] = False
    """Whether there must be as many records as columns, where n is public anyway."""

    @abstractmethod
    def record_units(self, records: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each record's vector in lattice steps: whole numbers, by a rule that looks at one record."""

    def in_sql(self, dialect: Dialect) -> tuple[list[str], list[str]] | None:
        """The same rule for an engine: whole numbers from x0, x1, ..., and entries from these, called z0, z1, ... (`summed`).

        None where engines could round differently.
        """
        return None

    def sum_units(self, source: Source) -> tuple[list[int], int]:
        """Added exactly: by an engine that has the records elsewhere, else by batches, without holding more than one."""
        rule = None if source.dialect is DUCKDB else self.in_sql(source.dialect)
        totals, n = self._by_batches(source) if rule is None else summed(source, self.columns, *rule, missing=self.missing)
        if self.record_a_column and self.neighbouring == "replace-one" and n < len(self.columns):
            raise DomainError(
                f"there are fewer records than columns of the model ({len(self.columns)}).", hint="Use fewer covariates"
            )
        return totals, n

    def _by_batches(self, source: Source) -> tuple[list[int], int]:
        totals, n = [0] * self.n_entries, 0
        for batch in numeric_batches(source, self.columns, missing=self.missing):
            n += len(batch)
            for start in range(0, len(batch), AT_ONCE):
                units = self.record_units(batch[start : start + AT_ONCE])
                totals = [total + int(more) for total, more in zip(totals, units.sum(axis=0), strict=True)]
        return totals, n
