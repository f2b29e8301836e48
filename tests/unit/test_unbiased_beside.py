"""The estimate without a prior stands beside every posterior figure that has one, whatever was released."""

import numpy as np
import pyarrow as pa
import pytest

import privurn
from privurn.inference.counts.unbiased import Estimates
from privurn.inference.tables.answers import Figures
from privurn.inference.tables.posterior import TablePosterior
from privurn.privacy.entropy import SeededEntropy

GRID = privurn.Grid(0, 100, 2)
ASK = ["mean(x)", "P(x>30)", "cdf(x, 50)", "q0.5(x)"]
KINDS = {
    "urn": (privurn.Urn(), {"delta": 1e-6}),
    "smoothed histogram": (privurn.Smoothed(), {"delta": 1e-6}),
    "noisy counts": (privurn.NoisyCounts(publish="counts"), {}),
    "noisy counts, n secret": (privurn.NoisyCounts(publish="counts"), {"neighbouring": "add-remove"}),
    "noisy tree": (privurn.NoisyTree(), {}),
    "noisy tree, n secret": (privurn.NoisyTree(records=1000), {"neighbouring": "add-remove"}),
}
SECOND = {"noisy tree, two columns": (privurn.NoisyTree(), {})}


def people(n=6_000):
    rng = np.random.default_rng(4)
    return pa.table({"x": np.clip(rng.gamma(4, 8, n), 0, 100), "y": rng.integers(0, 4, n)})


@pytest.mark.parametrize("kind", [*KINDS, *SECOND])
def test_figures_that_are_linear_have_an_unbiased_estimate(kind):
    recipe, more = (KINDS | SECOND)[kind]
    domain = {"x": GRID, "y": privurn.Grid(0, 3, 1)} if kind in SECOND else {"x": GRID}
    made = privurn.release(people(), recipe, domain=domain, epsilon=2, ledger=False, entropy=SeededEntropy(3), **more)
    found = privurn.infer(made, ask=ASK, of="sample", run=privurn.Run(draws=25, seed=1))
    told = found.debiased()
    assert [each.name for each in told] == ASK[:3]
    assert told.left_out == ("q0.5(x)",)
    x = 2 * np.rint(people()["x"].to_numpy() / 2)
    truth = [x.mean(), (x > 30).mean(), (x <= 50).mean()]
    for each, row, true in zip(told, found.summary(), truth, strict=False):
        assert abs(each.value - true) < 5 * each.standard_error
        assert (row.unbiased, row.unbiased_error) == (each.value, each.standard_error)
    assert found.summary()[3].unbiased is None


def test_figures_of_a_whole_table_have_those_that_were_measured():
    nothing = np.zeros((2, 2))
    part = Figures(
        names=("mean(x)", "mean(x | y=1)"),
        estimate=np.array([3.0, 4.0]),
        table_covariance=nothing,
        population_covariance=nothing,
        unexplained=np.zeros(2),
        direct=np.array([3.1, np.nan]),
        direct_table_deviation=np.array([0.2, np.nan]),
        direct_population_deviation=np.array([0.3, np.nan]),
        discrepancy=None,
    )
    found = TablePosterior(table=None, parts=(part,), fit=None)
    told = found.debiased()
    assert isinstance(told, Estimates)
    assert [(each.name, each.value, each.standard_error) for each in told] == [("mean(x)", 3.1, 0.3)]
    assert told.left_out == ("mean(x | y=1)",)
    assert [row.unbiased for row in found.summary()] == [3.1, None]
