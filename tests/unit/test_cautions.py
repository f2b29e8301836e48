"""What must be known before a posterior is used: said by every inference, in Python and on standard error, in one voice."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import privurn
from privurn.cli.main import app
from privurn.errors import InferenceWarning, MuchClamped, NotMixed, PriorDecides, TellsLittle
from privurn.inference import cautions, mixtures
from privurn.inference.counts.released import Observed
from privurn.inference.draws import Draws, Summary
from privurn.inference.mixtures.cell_masses import mass_beyond
from privurn.inference.sums import BernoulliStatistic, Budget, NoisyStatistics, PoissonStatistic
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.local import GaussianChannel
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram

GRID = privurn.JointDomain({"pay": privurn.Grid(0, 200, 1)})
QUICK = privurn.Run(draws=250, seed=1)


def row(name="mean", *, mean=5.0, deviation=1.0, half=2.0, **beside):
    plain = dict.fromkeys(("effective_draws", "tail_effective_draws", "mean_effective_draws"), 4000.0)
    given = {"lower": mean - half, "upper": mean + half, "level": 0.95, "r_hat": None, "standard_error": 0.0}
    return Summary(name=name, mean=mean, deviation=deviation, **plain, **given, **beside)


def test_a_release_tells_little_where_the_interval_is_more_than_half_the_priors():
    prior = {"mean": np.linspace(0.0, 10.0, 2001)}  # an interval of 9.5
    assert cautions.tells_little([row(half=2.37)], prior) == ()
    [told] = cautions.tells_little([row(half=2.38)], prior)
    assert isinstance(told, TellsLittle)
    assert "mean (50% of the prior's)" in str(told)
    assert cautions.tells_little([row(mean=40.0, half=9.0)], prior) == ()  # the prior was wrong: that is news
    assert cautions.tells_little([row("other", half=9.0)], prior) == ()


def test_the_prior_decides_where_the_unbiased_estimate_is_far_by_its_own_error():
    near = row(unbiased=6.6, unbiased_error=1.0)
    assert cautions.prior_decides([near, row()]) == ()
    [told] = cautions.prior_decides([row(unbiased=9.0, unbiased_error=1.0)])
    assert isinstance(told, PriorDecides)
    assert "mean (5; without a prior 9 +- 1)" in str(told)
    many = [row(f"P(x={i})", unbiased=7.2, unbiased_error=1.0) for i in range(100)]
    assert cautions.prior_decides(many) == ()  # of a hundred, one is further away
    assert cautions.prior_decides([row(deviation=0.1, unbiased=8.0, unbiased_error=1.0)]) == ()  # the error is all its own


def test_false_alarms_of_laplace_noise_are_as_rare_as_stated():
    """The prior is right: counts that are 0, and are known to be."""
    rng, told = np.random.default_rng(1), 0
    for _ in range(2000):
        noise = rng.laplace(scale=np.sqrt(0.5), size=20)
        rows = [row(f"P(x={i})", mean=0.0, deviation=0.0, unbiased=each, unbiased_error=1.0) for i, each in enumerate(noise)]
        told += bool(cautions.prior_decides(rows))
    assert 4 <= told <= 40  # 20 expected


def test_a_share_at_the_bounds_is_told_from_five_in_a_hundred_on():
    assert cautions.much_clamped({"pay": 0.05}) == ()
    [told] = cautions.much_clamped({"'pay' at its upper bound": 0.2})
    assert "20% of 'pay' at its upper bound" in str(told)


def counted(counts, *, scale, n):
    mechanism = PerturbedHistogram(n=n, cells=201, records=201, noise="discrete-laplace", scale=scale, publish="counts")
    noise = np.rint(np.random.default_rng(5).laplace(scale=scale, size=201))
    return Observed(mechanism=mechanism, domain=GRID, counts=np.asarray(counts) + noise)


@pytest.fixture(scope="module")
def humps():
    """20,000 records, most of them around 40."""
    shares = np.exp(-0.5 * ((np.arange(201) - 40) / 10) ** 2)
    return np.random.default_rng(2).multinomial(20_000, shares / shares.sum())


def said(call, *given, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(*given, **options)
    assert all(each.filename == __file__ for each in told)  # the line that asked
    assert all(issubclass(each.category, InferenceWarning) for each in told)
    return [each.category for each in told]


def test_a_good_release_is_not_warned_about_and_others_are(humps):
    good = counted(humps, scale=2.0, n=20_000)
    assert said(privurn.infer, good, run=QUICK) == []
    little = counted(np.random.default_rng(2).multinomial(500, humps / 20_000), scale=40.0, n=500)
    assert said(privurn.infer, little, run=QUICK) == [TellsLittle]
    clamped = humps.copy()
    clamped[200] += 3000
    assert said(privurn.infer, counted(clamped, scale=2.0, n=23_000), run=QUICK) == [MuchClamped]
    # the urn's own prior, fifty records in each cell: the mean is pulled away from the estimate without it
    urn = DirichletMultinomial(n=20_000, cells=201, alpha=Fraction(50), records=5000)
    drawn = np.random.default_rng(4).multinomial(5000, (humps + 50) / 30_050)
    own = privurn.CountModel(prior="mechanism")
    assert PriorDecides in said(privurn.infer, Observed(mechanism=urn, domain=GRID, counts=drawn), own, ask="mean", run=QUICK)


def test_further_questions_are_warned_about_too(humps):
    little = counted(np.random.default_rng(2).multinomial(500, humps / 20_000), scale=40.0, n=500)
    with pytest.warns(TellsLittle):
        found = privurn.infer(little, ask="mean", run=QUICK)
    assert said(found.ask, "q0.5") == [TellsLittle]
    assert said(getattr, found, "sample") == [TellsLittle]
    assert [type(each) for each in found.cautions()] == [TellsLittle]


def test_the_command_says_the_same_words(tmp_path, humps):
    values = np.repeat(np.arange(201), np.random.default_rng(3).multinomial(500, humps / 20_000))
    made = privurn.release(values, privurn.NoisyCounts(publish="counts"), domain=GRID.columns["pay"], epsilon=0.05)
    made.save(tmp_path / "out")
    done = CliRunner().invoke(app, ["infer", str(tmp_path / "out"), "--seed", "5", "--json"])
    assert done.exit_code == 0, done.output
    with pytest.warns(TellsLittle):
        own = privurn.infer(tmp_path / "out", run=privurn.Run(seed=5)).cautions()
    assert json.loads(done.stdout)["warnings"] == [str(each) for each in own]
    assert all(f"warning: {each}" in done.stderr for each in own)
    shown = CliRunner().invoke(app, ["infer", str(tmp_path / "out"), "--seed", "5", "--ask", "mean"], env={"COLUMNS": "200"})
    assert "unbiased (+- its error)" in shown.stdout


@pytest.mark.usefixtures("interpreted")
def test_noisy_sums_are_warned_about_in_the_same_way():
    how = privurn.Run(draws=40, warm_up=20, chains=2, seed=1)
    budget = Budget(epsilon=0.02, neighbouring="replace-one", noise="discrete-laplace")
    ones = NoisyStatistics(mechanism=BernoulliStatistic.calibrated(column="y", budget=budget), values=np.array([12.0]), n=20)
    assert TellsLittle in said(privurn.infer, ones, run=how)
    rate = PoissonStatistic.calibrated(column="y", upper=4, budget=Budget(epsilon=20, neighbouring="replace-one"))
    assert MuchClamped in said(privurn.infer, NoisyStatistics(mechanism=rate, values=np.array([72.0]), n=20), run=how)


SHORT = privurn.Run(draws=30, warm_up=30, chains=2, thin=1, seed=1, threads=1)


def mixture(values, *, kernel, bounds=(0.0, 1.0), scale=0.1, run=SHORT, **how):
    """Of records behind Gaussian noise."""
    channel = GaussianChannel(bounds=bounds, scale=scale)
    released = channel.simulate(np.clip(values, *bounds), rng=np.random.default_rng(6))
    return mixtures.fit_mixture(released, model=mixtures.MixtureModel(channel=channel, kernel=kernel), run=run, **how)


@pytest.mark.usefixtures("interpreted")
def test_nothing_was_clamped_where_the_kernel_lies_within_the_bounds():
    ends = np.random.default_rng(7).beta(0.1, 0.1, size=20)
    beta, wide = mixtures.BetaKernel(), mixtures.GaussianKernel(mean=0.5, scale=0.1)
    assert MuchClamped not in said(mixture, ends, kernel=beta, moves="plain")
    assert MuchClamped in said(mixture, ends, kernel=beta, bounds=(0.3, 0.7), scale=0.05, moves="plain")
    assert MuchClamped in said(mixture, 6.0 * ends - 2.5, kernel=wide, moves="plain")


def test_mass_beyond_the_bounds_is_that_of_the_law():
    spike = np.array([[[0.5011, 1e-5]]])  # between two points of any grid
    one, kernel = np.ones((1, 1)), mixtures.GaussianKernel()
    assert mass_beyond(kernel, one, spike, (0.0, 1.0)) == pytest.approx(0.0, abs=1e-12)
    assert mass_beyond(kernel, one, np.array([[[1.0, 0.1]]]), (0.0, 1.0)) == pytest.approx(0.5)
    pole = np.array([[[0.01, 1.0]]])
    assert mass_beyond(mixtures.BetaKernel(), one, pole, (0.0, 1.0)) == 0.0
    assert mass_beyond(mixtures.BetaKernel(), one, pole, (0.0, 0.5)) == pytest.approx(1.0 - 0.5**0.01)


@pytest.mark.usefixtures("interpreted")
def test_chains_whose_records_cannot_move_say_so():
    values = np.random.default_rng(8).beta(3.0, 5.0, size=20)
    with pytest.warns(NotMixed, match="records are stuck: on average one moved 0.0 times"):
        mixture(values, kernel=mixtures.BetaKernel(), scale=1e-6, sampler="neal5")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        free = mixture(values, kernel=mixtures.BetaKernel(), scale=1e-6, keep=mixtures.Keep(latent=True))
    assert not any("stuck" in str(each.message) for each in told)
    assert free.draws.attributes["sampler"] == "slice"
    latent = free.draws.flat("latent")
    assert np.abs(latent - values).max() < 2e-5
    assert np.all(latent.std(axis=0) > 2e-7)


def test_chains_that_have_not_mixed_are_named():
    values = np.cumsum(np.random.default_rng(1).normal(size=(2, 100)), axis=1)
    problems = Draws(variables={"x": values}, markov=True).problems()
    [told] = cautions.not_mixed(problems, draws=100)
    assert isinstance(told, NotMixed)
    assert "NOT mixed after 100 draws each" in str(told)
    assert cautions.not_mixed((), draws=100) == ()
