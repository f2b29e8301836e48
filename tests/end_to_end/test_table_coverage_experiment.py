"""Coverage of whole tables: what it counts, and that it goes on from what was kept."""

import numpy as np
import pytest
from benchmarks.table_data import CodedTable
from experiments import table_coverage
from experiments.table_coverage import Coverage, plain, verdict
from experiments.unknown_n_runs import run

from privurn.inference.tables.formula import LinearRegression, LogisticRegression

NAMES = ("age", "sex", "pay")


@pytest.fixture
def small(monkeypatch):
    """Pay rises with age, more for one sex."""
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 4, 3_000), rng.integers(0, 2, 3_000)
    codes = np.array([age, sex, rng.binomial(3, 0.2 + 0.1 * age + 0.2 * sex)], np.uint16)
    table = CodedTable(NAMES, (4, 2, 4), codes, (None, ("f", "m"), None))
    monkeypatch.setattr(table_coverage, "read", lambda name, path: table)
    monkeypatch.setattr(table_coverage, "REGRESSIONS", {"adult": ("linear: pay ~ age + sex",)})
    return table


def test_regression_on_records_is_the_usual_one(small):
    age, sex, pay = small.codes.astype(float)
    found = plain(LinearRegression("pay ~ age + sex"), small, small.codes)
    design = np.column_stack([np.ones_like(age), age, sex])
    wanted = np.linalg.lstsq(design, pay)[0]
    assert [each for each, _ in found.values()] == pytest.approx(wanted)
    bread = np.linalg.inv(design.T @ design)
    meat = (design * ((pay - design @ wanted) ** 2)[:, None]).T @ design
    assert [each for _, each in found.values()] == pytest.approx(np.sqrt(np.diag(bread @ meat @ bread)))
    assert list(plain(LogisticRegression("sex ~ age"), small, small.codes)) == ["intercept", "age"]


def test_a_resample_is_counted_and_kept(small, tmp_path, monkeypatch):
    job = Coverage(seed=1, paths={"adult": ""}, synthetic=1, kept=str(tmp_path / "kept.jsonl"))
    tasks = [("adult", 4.0, 0)]
    first = run(job, tasks, processes=1, progress=lambda *_: None)
    found = first["adult", 4.0, 0]
    assert sum(asked for asked, _ in found["cells"].values()) == 4 * 2 + 2 * 4
    assert all(0 <= held <= asked for asked, held in found["cells"].values())
    assert found["cells"]["above 100"][1] >= 12  # of 16; all but one or two are expected
    assert [name.rpartition(": ")[2] for name in found["coefficients"]] == ["intercept", "age", "sex=m"]
    assert all(row[2] > 0 for row in found["coefficients"].values())
    monkeypatch.setattr(table_coverage, "mechanism", None)  # is not needed again
    assert run(job, tasks, processes=1, progress=lambda *_: None) == first


@pytest.fixture
def owners(monkeypatch):
    """Pay rises with age and sex, owning with pay alone."""
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 6, 3_000), rng.integers(0, 2, 3_000)
    pay = rng.binomial(5, 0.15 + 0.08 * age + 0.2 * sex)
    owner = rng.binomial(1, 1.0 / (1.0 + np.exp(2.0 - 0.5 * pay)))
    labels = (None, ("f", "m"), None, ("no", "yes"))
    table = CodedTable(("age", "sex", "pay", "owner"), (6, 2, 6, 2), np.array([age, sex, pay, owner], np.uint16), labels)
    monkeypatch.setattr(table_coverage, "read", lambda name, path: table)
    monkeypatch.setattr(table_coverage, "REGRESSIONS", {"adult": ("linear: pay ~ age + sex", "logistic: owner ~ pay + age")})


def held(resamples, epsilon):
    """Shares of resamples in which intervals held, a row for each coefficient: ours, and those on synthetic records."""
    job = Coverage(seed=1, paths={"adult": ""}, synthetic=resamples)
    found = [job.run(("adult", epsilon, number))["coefficients"] for number in range(resamples)]
    return np.mean([[row[:2] for row in each.values()] for each in found], axis=0)


def test_regressions_cover_and_the_same_on_synthetic_records_do_not(owners):
    ours, naive = held(4, 1.0).T
    assert ours.mean() >= 21 / 24
    assert naive.mean() <= 8 / 24


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_every_coefficient_covers_and_not_all_on_synthetic_records_do(owners, epsilon):
    ours, naive = held(60, epsilon).T
    assert all(verdict(each, 60, (0.91, 0.99)) == "holds" for each in ours)
    assert 0.92 < ours.mean() <= 0.99
    assert any(verdict(each, 60, (0.91, 0.99)) == "FAILS" for each in naive)


@pytest.mark.parametrize(
    ("held", "trials", "says"),
    [(0.95, 200, "holds"), (0.9, 200, "holds"), (0.8, 200, "FAILS"), (1.0, 200, "holds"), (1.0, 600, "FAILS")],
)
def test_a_band_fails_where_a_binomial_test_rejects_it(held, trials, says):
    assert verdict(held, trials, (0.93, 0.98)) == says
