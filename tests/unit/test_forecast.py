"""What a plan says of the errors to expect: right under the prior that it states, from public quantities alone."""

import json
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import privurn
from privurn.cell_tree import CellTree
from privurn.cli.main import app
from privurn.counts import CountTable
from privurn.domain import Categories, Grid, JointDomain
from privurn.inference.trees.gaussian import gaussian_fit
from privurn.inference.trees.splits import CONCENTRATIONS, Splits
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.forecast import Expected, OrderedCells, expected_errors, unordered_tables
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.noisy_tree_recipe import NoisyTree, coarse, trimmed
from privurn.mechanisms.perturbed_histogram import NoisyCounts
from privurn.mechanisms.recipe import Option, Public
from privurn.mechanisms.registry import rebuild
from privurn.privacy.profile import Guarantee
from privurn.releases.forecast import MOST_TREE_CELLS, polya_shares
from privurn.releases.plan import IN_PARTS, options
from privurn.releases.synthetic import simulated_records
from privurn.simulated.incomes import incomes

PAIR, PURE = Guarantee(epsilon=1.0, delta=1e-6), Guarantee(epsilon=1.0, delta=0.0)
WITHIN = 0.25
"""How far a forecast may be from other simulations under the same prior."""


def grid(cells: int) -> JointDomain:
    return JointDomain({"x": Grid(0, cells - 1, 1)})


def planned(n: int, cells: int, guarantee: Guarantee, *, ordered: bool = True) -> list[Option]:
    return options(n=n, cells=cells, guarantee=guarantee, domain=grid(cells) if ordered else None)


def forecast_of(found: list[Option], mechanism: str) -> Expected:
    [first, *_] = [each.expected for each in found if each.mechanism == mechanism]
    assert first is not None
    return first


# ---- the figures ----------------------------------------------------------------------------------------------------


def test_errors_are_those_of_a_worked_example():
    """Half of the records of a row of three cells move up by one: W1 is a quarter of the range, and the mean is off by it."""
    order = OrderedCells((3,), (0,))
    found = expected_errors(lambda *_: np.array([1, 3, 0]), [np.array([3, 1, 0])], order=order)
    assert found.wasserstein == pytest.approx(0.25)
    assert found.mean_error == pytest.approx(0.25 / 0.125)  # a mean of 1/4 of a step is 1/8 of the range
    assert found.total_variation is None
    assert found.share_error is None  # no range holds about 1%
    found = expected_errors(lambda *_: np.array([1, 3, 0]), [np.array([3, 1, 0])])
    assert (found.total_variation, found.wasserstein, found.mean_error) == (0.5, None, None)


def test_a_share_of_one_per_cent_is_off_by_what_its_range_gains():
    truth = np.full(100, 10)
    found = expected_errors(lambda *_: np.where(np.arange(100) % 2, 30, 10), [truth])
    assert found.share_error == pytest.approx(0.5)  # every cell has 1%, and is told to have 0.5% or 1.5%


def test_two_columns_are_judged_by_their_margins_and_special_cells_are_left_out():
    order = OrderedCells((2, 3), (1, 0))  # the first column runs fastest, with a cell for null
    counts = np.array([[4, 0, 9], [0, 0, 9], [0, 0, 9]]).ravel()
    moved = np.array([[0, 0, 1], [0, 0, 1], [0, 4, 1]]).ravel()
    [first, second] = order.margins(counts.astype(float))
    assert (first.tolist(), second.tolist()) == ([1.0, 0.0], [1.0, 0.0, 0.0])
    found = expected_errors(lambda *_: moved, [counts], order=order)
    assert found.wasserstein == pytest.approx(1.0)
    assert order.placed(np.arange(6)).tolist() == [0, 1, 0, 2, 3, 0, 4, 5, 0]


def test_shares_of_the_tree_have_the_prior_law():
    """Of two cells: mean 1/2, and the mean of r(1 - r)/(a + 1) over the concentrations, by their weights, as their variance."""
    splits, rng = Splits(CellTree((2,))), np.random.default_rng(3)
    drawn = np.array([polya_shares(splits, rng=rng)[0] for _ in range(4000)])
    variance = np.average([0.25 / (a + 1.0) for a in CONCENTRATIONS], weights=splits.hyper[0])
    assert abs(drawn.mean() - 0.5) < 5.0 * np.sqrt(variance / len(drawn))
    assert drawn.var() == pytest.approx(variance, rel=0.1)


# ---- every row of a plan --------------------------------------------------------------------------------------------


def test_every_row_that_can_be_simulated_has_its_errors_and_the_default_has_the_least():
    found = planned(2000, 101, PAIR)
    rows = [each for each in found if each.expected is not None]
    assert {"noisy-tree", "dirichlet-multinomial", "perturbed-histogram", "smoothed-histogram", "posterior-sample"} == {
        each.mechanism for each in rows
    }
    for each in rows:
        expected = each.expected
        assert expected is not None
        assert expected.total_variation is None
        assert all(
            value is not None and value > 0.0 for value in (expected.wasserstein, expected.mean_error, expected.share_error)
        )
    assert found[0].mechanism == "noisy-tree"
    assert found[0].expected == min(rows, key=lambda each: each.expected.distance).expected
    assert found == planned(2000, 101, PAIR)  # the same whenever it is asked for


@pytest.mark.parametrize(
    ("n", "cells", "guarantee", "least"),
    [
        (10_000, 100, PAIR, "perturbed-histogram"),
        (1000, 1000, Guarantee(epsilon=0.1, delta=1e-6), "dirichlet-multinomial"),
        (1000, 100, PURE, "perturbed-histogram"),
        (1000, 100, Guarantee(epsilon=0.1, delta=1e-6), "smoothed-histogram"),
    ],
)
def test_of_cells_in_no_order_the_default_is_the_least_of_its_candidates(n, cells, guarantee, least):
    found = planned(n, cells, guarantee, ordered=False)
    assert found[0].mechanism == least
    candidates = [each.expected for each in found if each.mechanism in ("dirichlet-multinomial", "smoothed-histogram")]
    candidates.append(forecast_of(found, "perturbed-histogram"))
    assert all(each is not None and each.wasserstein is None for each in candidates)
    data = np.arange(n) % cells
    out = privurn.release(
        data.astype(str),
        domain=Categories([str(i) for i in range(cells)]),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
    )
    assert out.certificate["mechanism"]["name"] == least
    assert len(out.data) == found[0].records


def test_a_domain_that_is_too_fine_is_forecast_on_a_coarser_one():
    assert coarse((4095,), 4096) == (4095,)
    assert coarse((10_001,), 4096) == (4096,)
    assert coarse((500, 40), 4096) == (128, 32)
    assert all(np.prod(coarse(shape, MOST_TREE_CELLS)) == MOST_TREE_CELLS for shape in ((10**6,), (3000, 3000), (2, 10**5)))


@pytest.mark.parametrize(("noise", "sizes"), [("discrete-laplace", (9.0, 9.0, 9.0)), ("discrete-gaussian", (3.0, 4.0, 5.0))])
def test_a_coarser_tree_tells_as_much_of_wide_ranges(noise, sizes):
    """The deviation of the least-squares estimate of every range of the coarser tree is what it is in the finer one."""
    made = PerturbedTree(n=10_000, shape=(4096,), depths=(4, 8, 12), scales=sizes, noise=noise)
    less = trimmed(made, 128)
    assert (less.shape, less.depths, less.scales[0]) == ((128,), (4, 7), sizes[0])
    fits = []
    for each in (made, less):
        seen = each.measurements(each.simulate(CountTable(np.array([0]), np.array([10_000])), rng=np.random.default_rng(1)))
        fits.append(gaussian_fit(seen, Splits(CellTree(each.shape))))
    for depth in (2, 4, 6, 7):
        assert np.sqrt(fits[1][depth].variance) == pytest.approx(np.sqrt(fits[0][depth].variance), rel=2e-3)
    assert trimmed(made, 4096) == made


@pytest.mark.parametrize("guarantee", [PAIR, Guarantee(epsilon=1.0, delta=1e-6, neighbouring="add-remove")])
def test_more_records_than_one_computer_holds_are_planned_for_where_a_cluster_writes_them(guarantee):
    size = {"records" if guarantee.neighbouring == "add-remove" else "n": 1_000_000_000}
    first, *others = options(**size, cells=9, guarantee=guarantee, domain=grid(9))
    assert first.mechanism == "noisy-tree"
    assert first.remark.startswith("the default: ")
    for each in (first, next(each for each in others if each.mechanism == "dirichlet-multinomial")):
        assert each.remark.endswith(IN_PARTS)
        assert each.expected is not None
        assert each.records == 1_000_000_000
    for each in others:
        if each.mechanism == "perturbed-histogram":
            assert (each.records, each.asked) == (0, None)
            assert each.remark.startswith("cannot be had: at most 200,000,000 records")


def test_the_command_shows_them_and_a_dash_where_there_are_none():
    words = ["plan", "--n", "500", "--grid", "0:30:1", "--epsilon", "1", "--delta", "1e-6"]
    shown = CliRunner().invoke(app, [*words, "--json"])
    found = json.loads(shown.stdout)["options"]
    assert set(found[0]["expected"]) == {"wasserstein", "total_variation", "mean_error", "share_error"}
    assert [each["expected"] for each in found if each["mechanism"] == "exponential"] == [None]
    assert all(each["expected"] or "no errors: " in each["remark"] or not each["records"] for each in found)
    assert "made" not in found[0]
    table = CliRunner().invoke(app, words, env={"COLUMNS": "200"}).stdout
    assert all(word in table for word in ("W1", "mean", "1% share", "Expected errors", "%"))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_without_a_delta_the_records_are_at_most_half_as_far_again(epsilon):
    """The demo's column: what two releases by default measure, with noise that is seeded, twelve times each."""
    data, order = incomes().astype(float), OrderedCells((201,), (0,))
    counts = np.bincount(np.clip(np.rint(data / 1000.0), 0, 200).astype(np.int64), minlength=201)
    found = []
    for delta in (0.0, 1e-6):
        out = privurn.release(data, domain=Grid(0, 200_000, 1000), epsilon=epsilon, delta=delta)
        stated = out.certificate["mechanism"]
        made = rebuild(stated["name"], stated["parameters"])
        again = simulated(lambda table, rng, made=made: simulated_records(made, table, rng=rng), [counts] * 12, order)
        found.append(again.wasserstein)
    assert found[0] <= 1.5 * found[1]


# ---- right under the prior ------------------------------------------------------------------------------------------


def simulated(release: Callable, tables: list[np.ndarray], order: OrderedCells | None) -> Expected:
    return expected_errors(release, tables, order=order)


def off(found: Expected, other: Expected) -> list[float]:
    """Relative distances of all figures."""
    pairs = [(getattr(found, name), getattr(other, name)) for name in vars(found)]
    return [abs(a / b - 1.0) for a, b in pairs if a is not None]


def prior_tables(*, n: int, cells: int, runs: int) -> list[np.ndarray]:
    """Of other seeds than the forecast's."""
    rng, splits = np.random.default_rng([99, n, cells]), Splits(CellTree((cells,)))
    return [rng.multinomial(n, polya_shares(splits, rng=rng)) for _ in range(runs)]


@pytest.mark.parametrize(("n", "cells", "epsilon"), [(500, 33, 0.3), pytest.param(2000, 64, 1.0, marks=pytest.mark.long)])
def test_forecasts_of_ordered_cells_hold_in_other_runs(n, cells, epsilon):
    guarantee, order = Guarantee(epsilon=epsilon, delta=0.0), OrderedCells((cells,), (0,))
    found, tables = planned(n, cells, guarantee), prior_tables(n=n, cells=cells, runs=100)
    public = Public(n=n, cells=cells, guarantee=guarantee, domain=grid(cells))
    tree, flat = NoisyTree().calibrate(public), NoisyCounts().calibrate(public)
    again = simulated(lambda counts, rng: simulated_records(tree, counts, rng=rng), tables, order)
    assert max(off(forecast_of(found, "noisy-tree"), again)) < WITHIN
    again = simulated(lambda counts, rng: flat.simulated_weights(counts, rng=rng), tables, order)
    assert max(off(forecast_of(found, "perturbed-histogram"), again)) < WITHIN


def test_forecasts_of_cells_in_no_order_hold_in_other_runs():
    n, cells = 5000, 60
    found = planned(n, cells, PAIR, ordered=False)
    rng = np.random.default_rng(7)
    tables = []
    for a in CONCENTRATIONS * 12:
        shares = rng.dirichlet(np.full(cells, max(a, 0.1))) if np.isfinite(a) else np.full(cells, 1 / cells)
        if a < 0.1:  # the small ones by breaking a stick: as many zeros as there shall be
            sticks = rng.beta(a, a * np.arange(cells - 1, 0, -1))
            shares = np.append(sticks, 1.0) * np.append(1.0, np.cumprod(1.0 - sticks))
        tables.append(rng.multinomial(n, shares / shares.sum()))
    public = Public(n=n, cells=cells, guarantee=PAIR)
    for recipe in (NoisyCounts(), privurn.Urn()):
        made = recipe.calibrate(public)
        again = simulated(lambda counts, rng, made=made: made.simulated_weights(counts, rng=rng), tables, None)
        assert max(off(forecast_of(found, recipe.alias), again)) < WITHIN


def test_a_wrong_prior_would_be_noticed():
    """With the shares of the even concentrations alone the total variation is another."""
    n, cells = 5000, 60
    even = [each for i, each in enumerate(unordered_tables(n=n, cells=cells)) if i % len(CONCENTRATIONS) > 6]
    made = DirichletMultinomial(n=n, cells=cells, alpha=Fraction(30), records=n)
    release = lambda counts, rng: made.simulated_weights(counts, rng=rng)  # noqa: E731
    right, wrong = (simulated(release, tables, None) for tables in (unordered_tables(n=n, cells=cells), even))
    assert max(off(wrong, right)) > WITHIN


@pytest.mark.long
@pytest.mark.parametrize(("n", "cells", "epsilon", "delta"), [(2000, 32, 1.0, 0.0), (400, 32, 0.5, 1e-6)])
def test_forecasts_hold_for_real_releases(n, cells, epsilon, delta):
    """The noise of a release cannot be seeded: 400 of them, with tables that are, put the mean within 3% or so."""
    order, released = OrderedCells((cells,), (0,)), []
    tables = prior_tables(n=n, cells=cells, runs=400)
    for counts in tables:
        data = np.repeat(np.arange(cells), counts)
        out = privurn.release(data, domain=Grid(0, cells - 1, 1), epsilon=epsilon, delta=delta)
        released.append(np.bincount(np.asarray(out.data, np.int64), minlength=cells))
    rest = iter(released)
    again = expected_errors(lambda *_: next(rest), tables, order=order)
    found = forecast_of(planned(n, cells, Guarantee(epsilon=epsilon, delta=delta)), "noisy-tree")
    assert off(found, again)[0] < WITHIN


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "cells", "epsilon", "runs"), [(10_000, 8192, 1.0, 60), (10_000, 4096, 1.0, 250), (1000, 2500, 0.1, 150)]
)
def test_a_forecast_of_many_cells_holds_in_other_runs(n, cells, epsilon, runs):
    """Though it is made with fewer cells. The mean of so many tables is itself known within 6 to 12% or so."""
    guarantee, order = Guarantee(epsilon=epsilon, delta=0.0), OrderedCells((cells,), (0,))
    found = forecast_of(planned(n, cells, guarantee), "noisy-tree")
    made = NoisyTree().calibrate(Public(n=n, cells=cells, guarantee=guarantee, domain=grid(cells)))
    tables = prior_tables(n=n, cells=cells, runs=runs)
    again = simulated(lambda counts, rng: simulated_records(made, counts, rng=rng), tables, order)
    assert max(off(found, again)) < WITHIN
