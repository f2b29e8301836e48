"""Posterior predictive checks: they pass where a release was made as it says, and fail where it was not."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import privurn
from privurn.errors import ModelError
from privurn.inference import mixtures as mix
from privurn.inference.posterior import Posterior
from privurn.inference.predictive import Distance, compared
from privurn.inference.published import published
from privurn.inference.sums import predictive as sums_predictive
from privurn.inference.sums.fit import fit
from privurn.inference.sums.mean_models import BernoulliModel
from privurn.inference.sums.observed import Observed as SumsObserved
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior
from privurn.mechanisms.local import LaplaceChannel, NoisyStatisticChannel, SmoothedHistogramChannel
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.statistics import HistogramStatistic
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::privurn.errors.InferenceWarning")

GRID = privurn.Grid(0, 150, 2)
RUN = privurn.Run(draws=50, seed=1)


def made(recipe, *, epsilon, **more):
    pay = np.random.default_rng(5).lognormal(3.5, 0.5, 4_000)
    return privurn.release(pay, recipe, domain=GRID, epsilon=epsilon, ledger=False, entropy=SeededEntropy(2), **more)


def noisy(epsilon):
    return made(privurn.NoisyCounts(publish="counts"), epsilon=epsilon)


def observed(release):
    return published(release, mixture=False).numbers


def check(release, *, draws=400):
    return privurn.infer(release, ask="mean", run=RUN).predictive_check(draws=draws)


def test_noisy_counts_that_were_made_as_stated_pass():
    found = check(noisy(1))
    assert found.passed
    assert [each.part for each in found.parts] == ["cells", "sum of the cells"]
    assert str(found).startswith("Predictive check passed")


@pytest.mark.parametrize(("true", "stated"), [(0.2, 1.0), (1.0, 0.1)], ids=["more noise than stated", "less"])
def test_noisy_counts_whose_scale_is_not_as_stated_fail(true, stated):
    """Planted: the certificate of another epsilon beside the numbers."""
    planted = replace(observed(noisy(true)), mechanism=observed(noisy(stated)).mechanism)
    found = check(planted)
    assert [each.part for each in found.failed][:1] == ["cells"]
    assert str(found).startswith("Predictive check FAILED")
    part = found.parts[0]
    assert (part.published > part.anew) == (true < stated)


def test_noisy_trees_pass_as_stated_and_fail_with_another_scale():
    right = observed(made(None, epsilon=1, delta=1e-6))
    assert check(right).passed
    measured = right.measured
    planted = replace(measured, noise=tuple((kind, scale / 5) for kind, scale in measured.noise))
    found = check(replace(right, measured=planted))
    assert len(found.parts) == len(measured.depths)
    assert not found.passed


@pytest.mark.parametrize("epsilon", [0.5, 8])
@pytest.mark.parametrize("shape", ["uniform", "lognormal", "two values"])
def test_default_releases_of_thousands_of_cells_pass(shape, epsilon):
    """However far the column is from what the prior expects; noise of another size is still found out where it shows."""
    rng = np.random.default_rng(5)
    values = {
        "uniform": rng.integers(0, 4_096, 50_000),
        "lognormal": np.clip(rng.lognormal(6.5, 0.5, 50_000).astype(int), 0, 4_095),
        "two values": rng.choice([0, 1_000], 50_000),
    }[shape]
    right = observed(privurn.release(values, domain=privurn.Grid(0, 4_095, 1), epsilon=epsilon, ledger=False))
    assert check(right).passed
    # the counts of evenly spread cells differ by more than noise at epsilon 8: they may be as large a noise as is stated
    for factor in (0.5, 2.0) if (shape, epsilon) != ("uniform", 8) else ():
        noise = tuple((kind, factor * scale) for kind, scale in right.measured.noise)
        assert not check(replace(right, measured=replace(right.measured, noise=noise))).passed, factor


def test_noise_that_sums_up_is_made_anew_like_that():
    values = np.random.default_rng(5).integers(0, 4_096, 50_000)
    measured = observed(privurn.release(values, domain=privurn.Grid(0, 4_095, 1), epsilon=1, ledger=False)).measured
    tree, (top, middle, leaves) = measured.tree, measured.noise_anew(3, rng=np.random.default_rng(1))
    assert measured.tied == (4, 12)
    assert not top.sum(axis=0).any()
    assert np.array_equal(np.add.reduceat(leaves, np.searchsorted(tree.starts[12], tree.starts[8])), middle)
    free = replace(measured, tied=()).noise_anew(3, rng=np.random.default_rng(1))
    assert 0.85 < np.abs(leaves).mean() / np.abs(free[2]).mean() < 0.95


def test_of_noise_a_small_difference_is_the_priors():
    far, near = np.full(1000, 1.3), np.full(1000, 1.15)
    for given, passed in ((far, False), (near, True)):
        anew = np.random.default_rng(1).normal(1.0, 0.01, 1000)
        assert compared([Distance("cells", given, anew, 0.2)]).passed == passed
        assert not compared([Distance("records", given, anew)]).passed


def test_records_of_an_urn_pass_as_stated_and_fail_if_they_had_been_less_random():
    right = observed(made(privurn.Urn(), epsilon=4, delta=1e-6))
    assert check(right).passed
    even = np.full(len(right.counts), right.counts.sum() // len(right.counts))
    even[: right.counts.sum() - even.sum()] += 1
    found = check(replace(right, counts=even), draws=4_000)  # p is 0.002, which 400 draws may take for 0.01
    assert not found.passed  # nobody draws as many of each


def test_p_values_count_how_often_what_is_made_anew_lies_further_away():
    anew = np.arange(1.0, 1001.0)
    [part] = compared([Distance("cells", np.full(1000, 990.5), anew)]).parts
    assert part.p_value == pytest.approx(2 * 0.01)
    assert compared([Distance("cells", np.full(1000, 5000.0), anew)]).parts[0].p_value == 1 / 1001
    assert not compared([Distance("cells", np.full(1000, 0.5), anew)]).passed


def test_the_command_says_it_in_one_line_and_to_machines(tmp_path):
    from privurn.cli.main import app

    noisy(1).save(tmp_path / "out")
    typed = ["infer", str(tmp_path / "out"), "--ask", "mean", "--draws", "50", "--seed", "1", "--check"]
    assert "Predictive check passed" in CliRunner().invoke(app, typed).output
    told = json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout)
    assert told["check"]["passed"]


def normal(*values, scale):
    """The posterior of a normal mean from sums of 100 records and of their squares, a part of the usual run."""
    prior = RegressionPrior.from_bounds((-1.0,), (1.0,))
    model = RegressionModel(lower=(-1.0,), upper=(1.0,), prior=prior, name="normal")
    seen = SumsObserved(values=np.array(values), scales=np.full(2, scale), n=100)
    return fit(model, observed=seen, run=privurn.Run(chains=2, warm_up=300, draws=300, seed=1))


def test_sums_pass_as_stated_and_fail_where_no_records_have_them():
    [part] = normal(12.4, 6.0, scale=2.25).predictive_check(draws=300).parts
    assert (part.part, part.p_value > 0.1) == ("sums", True)
    # a hundred numbers with the sum 50 have squares that add up to 25 or more; with little noise nobody publishes 1
    assert not normal(50.0, 1.0, scale=0.5).predictive_check(draws=300).passed
    assert normal(50.0, 1.0, scale=20.0).predictive_check(draws=300).passed


def test_many_records_are_not_simulated_one_by_one(monkeypatch):
    """The Gaussian limit of the sums gives about the same distances as the records."""
    found = normal(12.4, 6.0, scale=2.25)
    one_by_one = found.predictive_check(draws=300).parts[0]
    monkeypatch.setattr(sums_predictive, "LIMIT", 1)
    monkeypatch.setattr(RegressionModel, "simulate", None)
    limit = found.predictive_check(draws=300).parts[0]
    assert limit.anew == pytest.approx(one_by_one.anew, rel=0.1)
    assert limit.published == pytest.approx(one_by_one.published, rel=0.1)


@pytest.mark.usefixtures("interpreted")
def test_a_noisy_number_of_records_is_a_part_of_its_own():
    seen = SumsObserved(values=np.array([5.0]), scales=np.ones(1), noisy_n=12.0, noisy_n_scale=2.0)
    found = fit(BernoulliModel(), observed=seen, run=privurn.Run(chains=2, warm_up=50, draws=100, seed=1))
    assert {each.part: each.p_value > 0.1 for each in found.predictive_check(draws=100).parts} == {
        "sums": True,
        "noisy n": True,
    }


SHORT = privurn.Run(chains=2, warm_up=30, draws=40, seed=1)


def test_privatised_records_pass_as_stated_and_fail_if_the_noise_was_not_there():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(200) < 0.6, rng.normal(-4.0, 1.0, 200), rng.normal(3.0, 1.0, 200))
    channel = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=4)
    model = mix.MixtureModel(channel=channel, kernel=mix.GaussianKernel())
    checks = [
        mix.fit_mixture(each, model=model, run=SHORT).predictive_check(draws=200)
        for each in (channel.simulate(values, rng=rng), values)
    ]
    assert [each.passed for each in checks] == [True, False]
    assert [part.part for part in checks[0].parts] == ["records"]


@pytest.mark.usefixtures("interpreted")
def test_categories_of_several_columns_and_one_output_for_all_records_are_checked():
    rng, short = np.random.default_rng(2), privurn.Run(chains=2, warm_up=2, draws=4, seed=1)
    towns = RandomisedResponseChannel(categories=3, odds=Fraction(9))
    codes = rng.integers(0, 3, size=(40, 2))
    model = mix.MixtureModel(channel=(towns, towns), kernel=mix.CategoricalKernel(categories=(3, 3)))
    found = mix.fit_mixture(towns.simulate(codes, rng=rng), model=model, run=short)
    assert [each.part for each in found.predictive_check(draws=8).parts] == ["records"]
    counts = NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(bounds=(0, 1), bins=4), n=40, noise="laplace", epsilon=4
    )
    bins = SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=4, n=40, draws=30, epsilon=9)
    for channel in (counts, bins):
        whole = mix.GlobalMixtureModel(channel=channel, kernel=mix.GaussianKernel())
        found = mix.fit_global_mixture(channel.simulate(rng.random(40), rng=rng), model=whole, run=short)
        assert [each.part for each in found.predictive_check(draws=8).parts] == ["the one output"]
    shuffled = replace(found, released=rng.permutation(found.released))
    assert shuffled.predictive_check(draws=8) == found.predictive_check(draws=8)  # the order of draws says nothing
    with pytest.raises(ModelError, match="nothing to check"):
        replace(found, released=None).predictive_check()


def test_what_has_no_check_says_so():
    with pytest.raises(ModelError, match="predictive check"):
        Posterior.predictive_check(None)
