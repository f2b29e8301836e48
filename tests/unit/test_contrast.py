"""Two releases beside each other, and one under several priors: in Python and on the command line."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import privurn
from privurn.cli.main import app
from privurn.errors import ModelError
from privurn.inference.contrast import contrast, other_priors, sensitivity
from privurn.inference.counts.released import Observed
from privurn.inference.draws import Draws
from privurn.inference.published import published
from privurn.inference.sums import BernoulliStatistic, Budget, NoisyStatistics, NormalStatistic, PoissonStatistic
from privurn.inference.sums.fit import SumPosterior
from privurn.inference.sums.observed import Observed as SumsObserved
from privurn.inference.tables.answers import Figures
from privurn.inference.tables.posterior import TablePosterior
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram

GRID = privurn.Grid(0, 40, 1)
QUICK = privurn.Run(draws=250, seed=1)


def seen(centre, seed):
    shares = np.exp(-0.5 * ((np.arange(41) - centre) / 4) ** 2)
    counts = np.random.default_rng(seed).multinomial(4000, shares / shares.sum())
    mechanism = PerturbedHistogram(n=4000, cells=41, records=41, noise="discrete-laplace", scale=2.0, publish="counts")
    noisy = counts + np.rint(np.random.default_rng(seed + 1).laplace(scale=2.0, size=41))
    return Observed(mechanism=mechanism, domain=privurn.JointDomain({"x": GRID}), counts=noisy)


def test_differences_and_ratios_have_the_spread_of_both():
    one, two = (privurn.infer(seen(centre, seed), ask=["mean", "q0.9"], run=QUICK) for centre, seed in ((22, 1), (20, 5)))
    found = {each.name: each for each in contrast(one, two, level=0.9)}
    assert list(found) == ["mean, difference", "mean, ratio", "q0.9, difference", "q0.9, ratio"]
    apart, ratio = found["mean, difference"], found["mean, ratio"]
    first, second = one.summary()[0], two.summary()[0]
    assert apart.lower < 2.0 < apart.upper
    assert apart.mean == pytest.approx(first.mean - second.mean)
    assert apart.deviation == pytest.approx(np.hypot(first.deviation, second.deviation), rel=0.1)
    assert ratio.lower < 1.1 < ratio.upper
    assert apart.unbiased == pytest.approx(first.unbiased - second.unbiased)
    assert apart.unbiased_error == pytest.approx(np.hypot(first.unbiased_error, second.unbiased_error))
    assert ratio.unbiased is None


def test_what_has_no_contrast():
    one = privurn.infer(seen(22, 1), ask="mean", run=QUICK)
    zero = privurn.infer(seen(20, 1), ask={"signed": lambda x: x - 20}, run=QUICK)
    assert [each.name for each in contrast(zero, zero)] == ["signed, difference"]  # of either sign
    with pytest.raises(ModelError, match="no figure in common"):
        contrast(one, zero)


def whole_table(estimate):
    part = Figures(
        names=("mean(x)", "mean(x | y=1)"),
        estimate=estimate,
        table_covariance=np.eye(2) * 0.04,
        population_covariance=np.eye(2) * 0.09,
        unexplained=np.zeros(2),
        direct=np.array([estimate[0], np.nan]),
        direct_table_deviation=np.array([0.2, np.nan]),
        direct_population_deviation=np.array([0.3, np.nan]),
        discrepancy=SimpleNamespace(size=100.0, triples=1),
    )
    return TablePosterior(table=SimpleNamespace(n=50), parts=(part,), fit=SimpleNamespace(misfit=0.0))


def test_figures_of_whole_tables_have_a_contrast():
    found = {each.name: each for each in contrast(whole_table(np.array([9.0, 5.0])), whole_table(np.array([7.0, 4.0])))}
    assert list(found) == [f"{name}, {what}" for name in ("mean(x)", "mean(x | y=1)") for what in ("difference", "ratio")]
    apart = found["mean(x), difference"]
    assert apart.mean == pytest.approx(2.0, abs=0.05)
    assert apart.deviation == pytest.approx(0.3 * np.sqrt(2.0), rel=0.1)
    assert (apart.unbiased, apart.unbiased_error) == (2.0, pytest.approx(0.3 * np.sqrt(2.0)))
    assert found["mean(x | y=1), difference"].unbiased is None


def test_parameters_of_noisy_sums_have_a_contrast():
    def fitted(centre):
        drawn = np.random.default_rng(1).normal([centre, 3.0], 0.1, size=(4, 500, 2))
        names = {"dims": {"beta": ("term",)}, "coords": {"term": ["intercept", "age"]}}
        draws = Draws(variables={"beta": drawn, "n": np.full((4, 500), 9)}, markov=True, **names)
        public = SumsObserved(values=np.array([1.0]), scales=np.array([1.0]), n=9)
        return SumPosterior(model=None, observed=public, draws=draws)

    found = {each.name: each for each in contrast(fitted(7.0), fitted(5.0))}
    assert list(found)[:3] == ["beta[intercept], difference", "beta[intercept], ratio", "beta[age], difference"]
    assert found["beta[intercept], difference"].mean == pytest.approx(2.0, abs=0.02)
    assert found["beta[age], ratio"].mean == pytest.approx(1.0, abs=0.02)


def test_priors_that_an_analyst_might_have_had():
    release = published(seen(22, 1))
    assert list(other_priors(release, None)) == ["flat", "half a record in each cell", "one record in each cell"]
    model = privurn.CountModel(within="midpoint")
    assert all(each.within == "midpoint" for each in other_priors(release, model).values())
    replace_one = Budget(epsilon=1, neighbouring="replace-one", noise="discrete-laplace")
    ones = NoisyStatistics(mechanism=BernoulliStatistic.calibrated(column="y", budget=replace_one), values=np.array([4.0]), n=9)
    assert [each.prior for each in other_priors(published(ones), None).values()] == [(0.1, 0.1), (10.0, 10.0)]
    rate = PoissonStatistic.calibrated(column="y", upper=4, budget=replace_one)
    counts = published(NoisyStatistics(mechanism=rate, values=np.array([4.0]), n=9))
    assert [each.prior for each in other_priors(counts, (2.0, 1.0)).values()] == [(0.2, 0.1), (20.0, 10.0)]
    normal = NormalStatistic.calibrated(response="y", bounds=(-1, 1), budget=Budget(epsilon=5, neighbouring="replace-one"))
    values = np.array([0.8, 0.9]) - 4 * normal.offsets
    weaker, stronger = other_priors(published(NoisyStatistics(mechanism=normal, values=values, n=4)), None).values()
    assert np.all(stronger.prior.coefficient_precision == 100.0 * weaker.prior.coefficient_precision)


def test_a_sensitivity_holds_every_prior():
    """Of few cells, so that all of it is one engine; the stronger the prior, the nearer to the middle of the grid."""
    mechanism = PerturbedHistogram(n=60, cells=11, records=11, noise="discrete-laplace", scale=2.0, publish="counts")
    noisy = np.array([30, 20, 8, 2, 0, 1, -1, 0, 2, -2, 0])
    observed = Observed(mechanism=mechanism, domain=privurn.JointDomain({"x": privurn.Grid(0, 10, 1)}), counts=noisy)
    found = sensitivity(observed, ask="mean", run=privurn.Run(draws=400, seed=1))
    means = {words: each.summary()[0].mean for words, each in found.items()}
    assert next(iter(means)) == "as asked"
    assert means["as asked"] == means["flat"]  # which is the default of few cells
    assert means["flat"] < means["half a record in each cell"] < means["one record in each cell"] < 5.0


def test_the_command_warns_of_the_other_release_and_of_other_priors(tmp_path):
    """The first is clean; of the other little is known, and chains under other priors are too short."""
    values = np.random.default_rng(3).normal(20, 4, size=3000).clip(0, 40)
    counts = privurn.NoisyCounts(publish="counts")
    few = privurn.Bins([0, 10, 20, 30, 40])
    privurn.release(values, counts, domain=few, epsilon=2, ledger=False).save(tmp_path / "many")
    privurn.release(values[:40], counts, domain=few, epsilon=0.02, ledger=False).save(tmp_path / "few")
    words = ["infer", str(tmp_path / "many"), "-a", "mean", "--seed", "1"]
    told = CliRunner().invoke(app, [*words, "--against", str(tmp_path / "few")])
    assert "warning: the other release: the release tells little" in told.stderr
    assert "warning: the release" not in told.stderr
    spoken = CliRunner().invoke(app, [*words, "--against", str(tmp_path / "few"), "--json"])
    assert json.loads(spoken.stdout)["warnings_beside"][0].startswith("the other release: the release tells little")
    short = CliRunner().invoke(app, [*words, "--sensitivity", "--draws", "5", "--warm-up", "0"])
    assert "WARNING: the chains have NOT mixed after 5 draws each" in short.stderr
    assert "WARNING: prior one record in each cell: the chains have NOT mixed" in short.stderr


def test_the_command_shows_both(tmp_path):
    values = np.random.default_rng(3).normal(20, 4, size=(2, 3000)).clip(0, 40)
    for name, each in zip(("men", "women"), values, strict=True):
        privurn.release(each, domain=GRID, epsilon=1).save(tmp_path / name)
    words = ["infer", str(tmp_path / "women"), "-a", "mean", "--against", str(tmp_path / "men"), "--sensitivity", "--seed", "1"]
    told = CliRunner().invoke(app, [*words, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert [each["name"] for each in found["against"]] == ["mean, difference", "mean, ratio"]
    assert list(found["sensitivity"]) == ["as asked", "base uniform", "base falling", "base rising"]
    assert found["sensitivity"]["as asked"][0]["mean"] == found["variables"][0]["mean"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert "The first release against the other" in shown.stdout
    assert "Under other priors" in shown.stdout
