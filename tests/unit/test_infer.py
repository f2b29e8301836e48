"""One door to every posterior: what was published decides the engine, and all results answer the same questions."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

import privurn
from privurn.errors import FormatError, ModelError
from privurn.inference.counts.asked import functionals_of
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.released import Observed
from privurn.inference.draws import Draws
from privurn.inference.infer import FITTING
from privurn.inference.sums import BernoulliStatistic, Budget, NoisyStatistics
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")

GRID = privurn.JointDomain({"x": privurn.Grid(0, 2, 1)})
COUNTS = Observed(
    mechanism=DirichletMultinomial(n=50, cells=3, alpha=Fraction(1, 2), records=60), domain=GRID, counts=np.array([30, 20, 10])
)
SUMS = NoisyStatistics(
    mechanism=BernoulliStatistic.calibrated(
        column="y", budget=Budget(epsilon=2, epsilon_n=1, noise="discrete-laplace", neighbouring="add-remove")
    ),
    values=np.array([12.0]),
    noisy_n=30.0,
)
QUICK = privurn.Run(draws=30, warm_up=20, chains=2, thin=1, seed=1)


@pytest.fixture(scope="module")
def local():
    return privurn.privatise(np.linspace(1, 9, 25), domain=privurn.Bounds(0, 10), epsilon=8, entropy=SeededEntropy(1))


@pytest.fixture(scope="module")
def towns():
    labels = np.array(["u", "v"])[np.random.default_rng(1).integers(0, 2, 60)]
    return privurn.privatise(
        labels, domain=privurn.Categories(["u", "v"], outside="other"), epsilon=3, entropy=SeededEntropy(1)
    )


@pytest.mark.parametrize("kind", ["counts", "mixture", "sums"])
def test_every_posterior_answers_the_same_questions(kind, local, tmp_path):
    found = privurn.infer({"counts": COUNTS, "mixture": local, "sums": SUMS}[kind], run=QUICK, level=0.9)
    assert isinstance(found, privurn.Posterior)
    assert (found.draws.n_chains, found.draws.n_draws) == (2, 30)
    assert found.draws.attributes["length"] == "given"
    assert {row.level for row in found.summary()} == {0.9}
    assert {row.level for row in found.summary(level=0.5)} == {0.5}
    assert found.mixed == (not found.problems())
    assert found.problems()  # thirty draws
    assert found.undefined == {}
    assert found.save(tmp_path / "draws.nc").stat().st_size > 1000
    assert set(found.to_datatree()["posterior"].data_vars) >= {row.name.partition("[")[0] for row in found.summary()}
    assert found.plot(kind="traces").axes
    assert type(found).__name__ in repr(found)


def test_what_is_asked_of_a_mixture_is_in_the_words_of_counts(local, towns):
    asked = ["mean", "sd", "q0.5", "cdf(5)", "P(x>5)", "P(2<x<=8)"]
    found = privurn.infer(local, ask=asked, run=QUICK)
    assert found.names == tuple(asked)
    drawn = found.draws
    assert np.allclose(drawn["cdf(5)"] + drawn["P(x>5)"], 1.0)
    usual = privurn.infer(local, run=QUICK).draws
    assert np.allclose(drawn["mean"], usual["mean"])
    assert np.allclose(drawn["q0.5"], usual["q0.5"], atol=0.05)
    shares = privurn.infer(towns, ask=["P(x=u)", "P(x=other)"], run=QUICK).draws
    usual = privurn.infer(towns, run=QUICK).draws["share"]
    assert np.allclose(shares["P(x=u)"], usual[..., 0])
    assert np.allclose(shares["P(x=other)"], usual[..., 2])
    with pytest.raises(FormatError, match="no column"):
        privurn.infer(towns, ask="P(street=u)", run=QUICK)


def test_only_what_is_asked_of_sums_is_shown_and_judged():
    found = privurn.infer(SUMS, ask="n", run=QUICK)
    assert [row.name for row in found.summary()] == ["n"]
    assert all(problem.startswith("n ") for problem in found.problems())
    assert "probability" in found.draws
    with pytest.raises(ModelError, match="no draws of 'rate'"):
        privurn.infer(SUMS, ask=["rate"], run=QUICK)


@pytest.mark.parametrize(
    ("releases", "model", "options", "message"),
    [
        (COUNTS, privurn.Mixture(), {}, "is no model of counts of cells"),
        (COUNTS, privurn.SumModel(), {}, "is no model of counts of cells"),
        (SUMS, privurn.CountModel(), {}, "is no model of noisy sums"),
        (SUMS, privurn.Mixture(), {}, "is no model of noisy sums"),
        (SUMS, None, {"of": "sample"}, "only counts of cells"),
        (SUMS, privurn.RegressionPrior(), {}, "pair of numbers of its law, Beta"),
        ([SUMS, SUMS], None, {}, "one release at a time"),
        ([COUNTS, SUMS], None, {}, "noisy sums are analysed one release at a time"),
        (COUNTS, privurn.CountModel(size=privurn.SizePrior()), {}, "is public: it has no prior"),
        (COUNTS, None, {"run": 500}, "said by a Run"),
        (COUNTS, None, {"level": 2.0}, "between 0 and 1"),
        (COUNTS, None, {"ask": "log_odds_ratio"}, "two columns with two values each"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_does_not_go_together_is_said_in_a_sentence(releases, model, options, message):
    with pytest.raises((ModelError, FormatError), match=message):
        privurn.infer(releases, model, **options)


def test_records_are_no_counts(local):
    with pytest.raises(ModelError, match="is no model of privatised records"):
        privurn.infer(local, privurn.CountModel())
    with pytest.raises(FormatError, match="no release was given"):
        privurn.infer([])


def test_the_door_is_narrow():
    assert len(inspect.signature(privurn.infer).parameters) <= 10
    for model in (privurn.CountModel, privurn.SumModel, privurn.Mixture, privurn.Run, privurn.SizePrior):
        assert len(inspect.signature(model).parameters) <= 10


def test_numbers_of_a_run_are_checked():
    for wrong in ({"chains": 0}, {"draws": 2.5}, {"warm_up": -1}, {"thin": 0}, {"threads": 0}, {"longest": 0}, {"progress": 1}):
        with pytest.raises(ModelError):
            privurn.Run(**wrong)


def noisy_counts(cells):
    return PerturbedHistogram(n=None, cells=cells, records=cells, noise="discrete-laplace", scale=1.0, publish="counts")


def test_all_cells_of_a_table_can_be_asked_for():
    domain = privurn.JointDomain(
        {
            "age": privurn.Bins([0, 18, "65.5"], outside="clamp"),
            "x": privurn.Grid(0, "0.2", "0.1", nulls="cell"),
            "a, b": privurn.Categories(["u", 'v"w'], outside="other"),
        }
    )
    mechanism = noisy_counts(domain.size)
    values = np.arange(domain.size, dtype=float)
    observed = Observed(mechanism=mechanism, domain=domain, counts=values)
    cells = functionals_of(observed, "cells")
    assert len(cells) == domain.size
    assert cells[0].name == 'P(0<=age<18, x=0, "a, b"=u)'
    found = reduce(cells, domain=domain).evaluate(values)
    assert list(found.values()) == pytest.approx(values / values.sum())
    large = privurn.JointDomain({"x": privurn.Grid(0, 20_000, 1)})
    with pytest.raises(FormatError, match="at most 10,000 cells"):
        functionals_of(Observed(mechanism=mechanism, domain=large, counts=np.zeros(large.size)), "cells")


def test_odds_ratio_of_the_four_proper_cells():
    domain = privurn.JointDomain(
        {"a": privurn.Categories(["u", "v"], outside="other"), "b": privurn.Categories([0, 1], outside="null")}
    )
    mechanism = noisy_counts(domain.size)
    observed = Observed(mechanism=mechanism, domain=domain, counts=np.zeros(domain.size))
    p = np.arange(1.0, domain.size + 1.0)  # the first column's values vary fastest
    expected = p[0] * p[4] / (p[1] * p[3])
    asked = functionals_of(observed, None)
    assert [each.name for each in asked] == ["P(a=u)", "P(a=v)", "P(b=0)", "P(b=1)", "log_odds_ratio"]
    found = reduce(asked, domain=domain).evaluate(p)
    assert math.isclose(found["log_odds_ratio"], math.log(expected), rel_tol=1e-14)
    empty = np.where(np.arange(domain.size) == 1, 0.0, p)
    assert math.isnan(reduce(asked, domain=domain).evaluate(empty)["log_odds_ratio"])


@pytest.mark.parametrize("kind", ["counts", "numbers", "categories", "sums"])
def test_every_posterior_makes_records(kind, local, towns):
    found = privurn.infer({"counts": COUNTS, "numbers": local, "categories": towns, "sums": SUMS}[kind], run=QUICK)
    made = found.synthetic(records=40, seed=3)
    assert made.num_rows == 40
    assert made.equals(found.synthetic(records=40, seed=3))
    values = {"counts": {0, 1, 2}, "categories": {"u", "v", "other"}, "sums": {0, 1}}
    assert set(made.columns[0].to_pylist()) <= values.get(kind, set(made.columns[0].to_pylist()))
    size = round(float(np.mean(found.draws["n"]))) if kind == "sums" else {"counts": 50, "numbers": 25, "categories": 60}[kind]
    assert found.synthetic(seed=3).num_rows == size
    copies = found.synthetic(copies=3, seed=3)
    assert copies.column_names == ["copy", *made.column_names]
    assert set(copies["copy"].to_pylist()) == {1, 2, 3}
    assert copies.num_rows == 3 * size or kind == "sums"  # whose n has a posterior
    with pytest.raises(ModelError, match="copies have as many records as the confidential table"):
        found.synthetic(records=40, copies=2)
    with pytest.raises(ModelError, match="record"):
        found.synthetic(records=0)


def test_records_of_one_copy_follow_the_predictive_law_and_each_copy_one_draw():
    found = privurn.infer(SUMS, run=QUICK)
    drawn = found.draws.flat("probability")
    ones = np.mean(found.synthetic(records=40_000, seed=1)["y"].to_numpy())
    assert abs(ones - drawn.mean()) < 7.0 * 0.5 / math.sqrt(40_000)  # by chance with probability below 1e-11
    copies = found.synthetic(copies=2, seed=1)
    sizes = np.bincount(copies["copy"].to_numpy())[1:]
    assert sizes.tolist() == [int(found.draws.flat("n")[at]) for at in (0, -1)]


def test_categories_have_a_picture_of_their_own(towns, local):
    assert privurn.infer(towns, run=QUICK).plot().axes
    assert privurn.infer(local, run=QUICK).plot(kind="intervals").axes


def test_models_that_are_offered_are_public():
    assert {kinds[0].__name__ for kinds in FITTING.values()} <= set(privurn.__all__)


def test_records_from_the_posterior_of_counts():
    table = privurn.infer(COUNTS, run=QUICK).synthetic(seed=2)
    values = table.column("x").to_numpy()
    assert len(values) == 50
    assert set(values) <= {0, 1, 2}


def test_undefined_draws_are_left_out_and_counted():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [2.0, 4.0, np.nan]])
    draws = Draws(variables={"a": values, "b": np.ones((3, 3))}, markov=True)
    assert draws.undefined == {"a": 5}
    assert draws.summary(["a"])[0].mean == pytest.approx((1.0 + 3.0 + 2.0 + 4.0) / 4.0)
    pair = Draws(
        variables={"p": np.stack([values, np.ones((3, 3))], axis=-1)}, markov=True, dims={"p": ("k",)}, coords={"k": ["s", "t"]}
    )
    assert pair.undefined == {"p[s]": 5}
    assert pair.only(["p[t]"]).names == ("p[t]",)
