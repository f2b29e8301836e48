"""Sums by an engine's own SQL are those of every record's vector, to the last unit."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hostile_table import hostile, untyped
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
from privurn.tables import numeric, open_table
from privurn.tables.dialects import DuckDB
from statistics_in_sql import PURE, REFUSED_SUMS, STATISTICS, sums


@dataclass(frozen=True)
class BySql:
    """A table whose engine adds up by itself, here DuckDB in its own words."""

    table: Any

    @contextmanager
    def open_source(self):
        with open_table(self.table) as source:
            yield replace(source, dialect=DuckDB())


@pytest.mark.parametrize("name", STATISTICS)
def test_sums_by_sql_are_those_of_the_records(name):
    table = untyped(hostile())
    expected = sums(table, STATISTICS[name])
    assert expected[1] == len(table)
    assert len(set(expected[0])) > 1 or len(expected[0]) == 1
    assert sums(BySql(table), STATISTICS[name]) == expected


@pytest.mark.parametrize("why", REFUSED_SUMS)
def test_sums_by_sql_are_refused_alike(why):
    table = untyped(hostile())
    expected = sums(table, REFUSED_SUMS[why])
    assert isinstance(expected[0], type)
    assert sums(BySql(table), REFUSED_SUMS[why]) == expected


def test_sums_that_leave_64_bits_are_exact():
    table = pa.table({"x": np.full(100_000, 5.0), "y": np.full(100_000, -5.0)})
    most = RegressionStatistic.calibrated(response="x", covariates=["y"], bounds=(-5, 5), budget=PURE)
    expected = sums(table, most)
    assert max(expected[0]) == 100_000 * 4**most.resolution
    assert sums(BySql(table), most) == expected
    assert sums(BySql(table.slice(0, 0)), replace(most, neighbouring="add-remove")) == ([0] * most.n_entries, 0)


def test_many_sums_are_asked_for_in_several_queries(monkeypatch):
    monkeypatch.setattr(numeric, "AT_ONCE", 4)
    assert len(STATISTICS["a regression"].names) % 4 != 0
    table = untyped(hostile())
    assert sums(BySql(table), STATISTICS["a regression"]) == sums(table, STATISTICS["a regression"])


def test_random_numbers_are_rounded_alike():
    rng = np.random.default_rng(1)
    halves = (np.arange(-2_000, 2_000) + 0.5) / 2.0**20  # between two steps of the lattice
    table = pa.table({"x": np.concatenate([halves, rng.normal(size=4_000), rng.normal(size=4_000) * 1e-5])})
    for low, high in ((-1.0, 1.0), (-0.1, 0.7), (0.1, 1e5)):
        made = RegressionStatistic.calibrated(response="x", bounds=(low, high), budget=PURE)
        assert sums(BySql(table), made) == sums(table, made)


def test_logarithms_are_left_to_one_program():
    """Engines may round them differently in the last digit."""
    made = DirichletStatistic.calibrated(parts=["number", "text"], floor=0.01, budget=Budget(epsilon=1), missing="unreadable")
    assert made.in_sql(DuckDB()) is None
    table = untyped(hostile())
    assert sums(BySql(table), made) == sums(table, made)
