"""What follows from a mixture's posterior, on draws that are made by hand; and reading what was privatised."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import privurn
from privurn.errors import CertificateError, DomainError, FormatError, ModelError, NoRelease
from privurn.inference import mixtures as mix
from privurn.inference.draws import Draws
from privurn.inference.mixtures import results
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel
from privurn.inference.mixtures.reading import default_model, read_privatised
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel
from privurn.mechanisms.local import (
    DiscreteLaplaceChannel,
    GaussianChannel,
    HaarWaveletChannel,
    LaplaceChannel,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.statistics import HistogramStatistic

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

ALPHA = 1e-6
SIGMAS = 6.0
"""Beyond so many standard errors a mean lies with probability 2e-9."""

LAPLACE = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=5)
GAUSSIAN = mix.MixtureModel(channel=LAPLACE, kernel=mix.GaussianKernel())


def made(weights, atoms, *, model=GAUSSIAN, chains=1, **more):
    """A posterior from given measures: weights (draws, atoms), atoms (draws, atoms, parameter)."""
    weights, atoms = np.asarray(weights, float), np.asarray(atoms, float)
    draws = len(weights) // chains
    variables = {
        "n_clusters": np.full((chains, draws), weights.shape[1]),
        "strength": np.ones((chains, draws)),
        "weights": weights.reshape(chains, draws, -1),
        "atoms": atoms.reshape(chains, draws, *atoms.shape[1:]),
        **{name: np.asarray(each).reshape(chains, draws, -1) for name, each in more.items()},
    }
    return mix.MixturePosterior(model=model, draws=Draws(variables=variables, markov=True))


TWO = made([[0.3, 0.7], [0.3, 0.7]], [[[-4.0, 0.5], [3.0, 1.0]]] * 2)


def test_what_nobody_waits_for_is_named_where_it_has_not_mixed():
    rng = np.random.default_rng(3)
    atoms = np.stack([rng.normal(size=(2000, 1)), np.ones((2000, 1))], axis=-1)
    found = made(np.ones((2000, 1)), atoms, chains=4)
    stuck = {**found.draws.variables, "n_clusters": np.repeat(np.arange(4), 500).reshape(4, 500)}
    figures = found.population()
    stuck |= {name: figures[name] for name in figures.names if name != "n_clusters"}
    posterior = mix.MixturePosterior(model=GAUSSIAN, draws=Draws(variables=stuck, markov=True))
    assert posterior.mixing_problems() == ()  # mean and median have
    assert posterior.unmixed_besides() == ("n_clusters",)


def test_a_density_that_differs_by_chain_is_named_though_mean_and_median_agree():
    """Two chains with one wide cluster, two with a pair of narrow ones about the same middle."""
    rng = np.random.default_rng(4)
    middles = 0.3 * rng.normal(size=2000)
    apart, wide = np.repeat([0.0, 0.0, 3.0, 3.0], 500), np.repeat([3.2, 3.2, 1.0, 1.0], 500)
    atoms = np.stack([[np.stack([middles + side * apart, wide], axis=-1)] for side in (-1.0, 1.0)], axis=2)[0]
    found = results.with_population(made(np.full((2000, 2), 0.5), atoms, chains=4))
    assert found.mixing_problems() == ()
    assert "density" in found.unmixed_besides()
    same = results.with_population(made(np.full((2000, 2), 0.5), rng.permutation(atoms), chains=4))
    assert same.unmixed_besides() == ()


def cdf(x, weights=(0.3, 0.7)):
    return weights[0] * stats.norm.cdf(x, -4.0, 0.5) + weights[1] * stats.norm.cdf(x, 3.0, 1.0)


def test_population_figures_are_those_of_the_drawn_density():
    found = results.population(TWO)
    cell = 20.0 / results.POINTS
    mean = 0.3 * -4.0 + 0.7 * 3.0
    second = 0.3 * (16 + 0.25) + 0.7 * (9 + 1)
    assert found["mean"] == pytest.approx(mean, abs=1e-9)  # the midpoint rule is nearly exact for smooth densities
    assert found["deviation"] == pytest.approx(math.sqrt(second - mean**2), abs=1e-9)
    for level in results.LEVELS:
        place = float(found[f"q{level:g}"][0, 0])
        assert cdf(place - cell) <= level <= cdf(place + cell)
    assert "strength" not in found
    random = replace(GAUSSIAN, mixing=mix.DirichletProcess(strength=mix.GammaPrior()))
    assert "strength" in results.population(replace(TWO, model=random))
    with pytest.raises(ModelError, match="levels between 0 and 1"):
        results.population(TWO, levels=[1.0])


def test_a_draw_beyond_the_bounds_does_not_break_the_figures():
    found = results.population(made([[1.0]], [[[500.0, 0.1]]]))
    assert all(np.isfinite(found[name]).all() for name in found.variables)


def test_predictions_follow_the_posterior_mean_density():
    y = results.predict(TWO, 4000, seed=1)
    assert stats.kstest(y, cdf).pvalue > ALPHA
    assert stats.kstest(y, lambda x: cdf(x, (0.5, 0.5))).pvalue < ALPHA  # the test can fail
    assert np.array_equal(y, results.predict(TWO, 4000, seed=1))


def test_one_draw_or_all_of_them():
    apart = made([[1.0], [1.0]], [[[-8.0, 0.1]], [[8.0, 0.1]]])
    signs = [np.sign(results.predict(apart, 40, one_draw=one, seed=2)) for one in (True, False)]
    assert [len(np.unique(each)) for each in signs] == [1, 2]


def test_predictions_are_treated_as_the_channel_treats_data():
    wide = made([[1.0]], [[[0.0, 50.0]]])
    assert np.abs(results.predict(wide, 300, seed=3)).max() == 10.0
    assert np.abs(results.predict(wide, 300, seed=3, clamped=False)).max() > 10.0
    whole = DiscreteLaplaceChannel.calibrate(bounds=(-10, 10), epsilon=1)
    y = results.predict(made([[1.0]], [[[0.0, 3.0]]], model=replace(GAUSSIAN, channel=whole)), 50, seed=4)
    assert y.dtype == np.int64
    for n in (0, -1, 1.5, True):
        with pytest.raises(ModelError, match="at least 1"):
            results.predict(TWO, n)


def student(grid, kernel):
    """Marginal law of a value under the normal inverse-gamma base."""
    scale = math.sqrt(kernel.scale * (1.0 + 1.0 / kernel.precision) / kernel.shape)
    return stats.t(2.0 * kernel.shape, kernel.mean, scale).pdf(grid)


def test_prior_density_is_the_closed_form():
    grid, size = np.linspace(-8, 8, 9), 20_000
    found = results.prior_density(GAUSSIAN, grid, atoms=size)
    atoms = results.base_atoms(GAUSSIAN.kernel, size)
    terms = stats.norm.pdf(grid, atoms[:, :1], atoms[:, 1:])
    error = terms.std(axis=0) / math.sqrt(size)
    assert np.all(np.abs(found - student(grid, GAUSSIAN.kernel)) < SIGMAS * error)
    wrong = student(grid, replace(GAUSSIAN.kernel, precision=0.2))
    assert np.any(np.abs(found - wrong) > SIGMAS * error)


@pytest.mark.parametrize(
    ("mixing", "squares"),
    [
        (mix.DirichletProcess(strength=2.0), 1.0 / 3.0),
        (mix.DirichletProcess(strength=500.0), 1.0 / 501.0),
        (mix.PitmanYorProcess(discount=0.7, strength=1.0), 0.3 / 2.0),
        (mix.PitmanYorProcess(discount=0.25, strength=1.0), 0.75 / 2.0),
        (mix.PitmanYorProcess(discount=0.25, strength=-0.1), 0.75 / 0.9),
        (mix.FiniteDirichlet(components=4, strength=2.0), 1.5 / 3.0),
    ],
    ids=["Dirichlet process", "many atoms", "slow sticks", "Pitman-Yor", "Pitman-Yor of negative strength", "finite"],
)
def test_prior_measures_have_the_right_ties(mixing, squares):
    """Two records share an atom with probability E[sum of squared weights], known for each law."""
    weights, atoms = results.prior_measures(replace(GAUSSIAN, mixing=mixing), draws=2000, seed=5)
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert atoms.shape[:2] == weights.shape
    found = (weights**2).sum(axis=1)
    assert abs(found.mean() - squares) < SIGMAS * found.std() / math.sqrt(2000)


def test_a_posterior_that_is_the_prior_is_called_uninformative():
    same = results.informativeness(made(*results.prior_measures(GAUSSIAN, draws=600, seed=11)))
    assert not same.informative
    assert same.spread == pytest.approx(1.0, abs=0.1)
    sure = results.informativeness(made([[0.5, 0.5]] * 20, [[[-6.0, 0.3], [6.0, 0.3]]] * 20))
    assert sure.informative
    assert sure.distance > 0.5


def test_few_draws_of_the_prior_are_not_taken_for_news():
    """Six draws: by chance alone their mean is a distance from the prior's that is not small in every other case."""
    far = taken = 0
    for seed in range(40):
        found = results.informativeness(made(*results.prior_measures(GAUSSIAN, draws=6, seed=100 + seed), chains=2))
        beyond = found.distance >= results.SMALL_DISTANCE or found.spread <= results.LARGE_SPREAD
        far += beyond
        taken += found.informative
    assert far > 10, "errors must matter here"
    assert taken <= 5, "two standard errors from eight stretches leave about one in 25"


def test_few_draws_far_from_the_prior_are():
    rng = np.random.default_rng(12)
    for _ in range(30):
        weights = rng.dirichlet([20.0, 20.0], size=16)
        atoms = np.stack([rng.normal([-6.0, 6.0], 0.3, size=(16, 2)), np.exp(rng.normal(-0.5, 0.2, size=(16, 2)))], axis=2)
        found = results.informativeness(made(weights, atoms, chains=2))
        assert found.informative


def test_one_draw_tells_nothing():
    found = results.informativeness(made([[1.0]], [[[6.0, 0.3]]]))
    assert not found.informative


def test_arguments_of_results_are_checked():
    for grid in (3.0, "abc", [1.0], [0.0, math.inf]):
        with pytest.raises(ModelError, match="grid"):
            results.informativeness(TWO, grid=grid)
    for levels in (3, "0.5", [1.5], ["a"]):
        with pytest.raises(ModelError, match="level"):
            results.population(TWO, levels=levels)
    for n in (2.5, "3", 0, True):
        with pytest.raises(ModelError, match="n must be a whole number"):
            results.predict(TWO, n)
    with pytest.raises(ModelError, match="level of a band"):
        TWO.density([0.0, 1.0], level="wide")


def test_agreeing_draws_are_informative_though_the_prior_mean_was_right():
    atoms = results.base_atoms(GAUSSIAN.kernel, 3000, seed=6)
    found = results.informativeness(made([np.full(3000, 1 / 3000)] * 3, [atoms] * 3))
    assert found.distance < results.SMALL_DISTANCE
    assert found.informative


def test_categories_have_shares():
    kernel = mix.CategoricalKernel(categories=(2, 3))
    channel = tuple(RandomisedResponseChannel.calibrate(categories=k, epsilon=1) for k in (2, 3))
    model = mix.MixtureModel(channel=channel, kernel=kernel)
    first, second = [0.25, 0.75, 0.5, 0.25, 0.25], [1.0, 0.0, 0.0, 0.5, 0.5]
    found = made([[0.5, 0.5]] * 2, [[first, second]] * 2, model=model)
    joint = results.joint_shares(kernel, *results._measures(found))[0].reshape(2, 3)
    expected = 0.5 * np.outer(first[:2], first[2:]) + 0.5 * np.outer(second[:2], second[2:])
    assert np.allclose(joint, expected)
    shares = results.population(found)
    assert shares.summary(["share"])[2].name == "share[1:0]"
    assert np.allclose(shares["share"][0, 0], [*expected.sum(axis=1), *expected.sum(axis=0)])
    y = results.predict(found, 4000, seed=7)
    counts = np.bincount(y[:, 0] * 3 + y[:, 1], minlength=6).astype(float)
    seen = expected.ravel() > 0
    assert counts[~seen].sum() == 0
    assert stats.chisquare(counts[seen], 4000 * expected.ravel()[seen]).pvalue > ALPHA
    with pytest.raises(ModelError, match="one label for each"):
        results.population(found, labels=["a"])
    with pytest.raises(ModelError, match="no bounds"):
        results.default_grid(found)


def test_clusters_and_pictures():
    labels = [[0, 0, 1, 1, 1], [0, 0, 1, 1, 2]] * 4
    found = made([[0.3, 0.7]] * 8, [[[-4.0, 0.5], [3.0, 1.0]]] * 8, chains=2, allocations=labels)
    assert results.co_clustering(found, rows=[0, 2, 4]).probabilities[1].tolist() == [0.0, 1.0, 0.5]
    assert results.point_clustering(found, loss="binder").labels[:4].tolist() == [0, 0, 1, 1]
    for kind in ("density", "clusters", "together", "traces"):
        assert results.plot(found, kind=kind).axes
    with pytest.raises(ModelError, match="not known"):
        results.plot(found, kind="pie")
    for call in (results.co_clustering, results.point_clustering):
        with pytest.raises(ModelError, match="were not kept"):
            call(TWO)
    histogram = NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(bounds=(0, 8), bins=4), n=5, noise="laplace", epsilon=1
    )
    with pytest.raises(ModelError, match="who is with whom"):
        results.co_clustering(replace(found, model=default_model(histogram)))
    bare = mix.MixturePosterior(model=GAUSSIAN, draws=Draws(variables={"n_clusters": np.ones((1, 4))}, markov=True))
    with pytest.raises(ModelError, match="atoms were not kept"):
        results.predict(bare, 3)


@pytest.mark.parametrize("released", [[3.0], [1e7], [0.0] * 6, [-1e6, 1e6]], ids=["one", "far", "equal", "apart"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e4])
def test_extreme_budgets_and_tiny_data_give_finite_figures(epsilon, released):
    channel = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=epsilon)
    model = default_model(channel)
    found = mix.fit_mixture(
        released, model=model, sampler="neal5", run=privurn.Run(chains=2, warm_up=10, draws=20, seed=1, thin=1)
    )
    figures = results.population(found)
    assert all(np.isfinite(figures[name]).all() for name in figures.variables)
    assert np.isfinite(results.predict(found, 20, seed=1)).all()
    learned = results.informativeness(found)
    assert 0.0 <= learned.distance <= 1.0
    assert learned.spread >= 0.0


def test_the_base_measure_follows_the_bounds_alone():
    for lower, upper in ((0.0, 40.0), (-1e-3, 1e-3), (1e6, 3e6)):
        kernel = default_model(LaplaceChannel.calibrate(bounds=(lower, upper), epsilon=1)).kernel
        assert kernel.mean == pytest.approx((lower + upper) / 2)
        assert kernel.scale == pytest.approx(3.0 * ((upper - lower) / 20.0) ** 2)
    assert default_model(LAPLACE).kernel == mix.GaussianKernel()  # the mixture paper's, on the paper's bounds


def test_models_for_every_channel():
    unit = LaplaceChannel.calibrate(bounds=(0, 1), epsilon=1)
    assert isinstance(default_model(unit, kernel="beta").kernel, mix.BetaKernel)
    response = RandomisedResponseChannel.calibrate(categories=4, epsilon=1)
    assert default_model(response).kernel == mix.CategoricalKernel(categories=(4,))
    whole = DiscreteLaplaceChannel.calibrate(bounds=(0, 5), epsilon=1)
    assert default_model(whole, kernel="categorical").kernel == mix.CategoricalKernel(categories=(6,))
    gaussian = GaussianChannel.calibrate(bounds=(-10, 10), epsilon=1, delta=1e-6)
    total = default_model(gaussian, kernel="total-gaussian")
    assert isinstance(total.kernel, TotalGaussianKernel)
    assert not total.clamped
    assert not default_model(LAPLACE, clamped=False).clamped
    wavelet = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=10)
    assert default_model(wavelet).kernel.mean == 0.5
    histogram = NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(bounds=(0, 8), bins=4), n=10, noise="laplace", epsilon=1
    )
    assert isinstance(default_model(histogram), GlobalMixtureModel)
    assert default_model(histogram).kernel.mean == 4.0


@pytest.mark.parametrize(
    ("channel", "options", "words"),
    [
        (LAPLACE, {"kernel": "beta"}, "between 0 and 1"),
        (LAPLACE, {"kernel": "categorical"}, "whole numbers"),
        (LAPLACE, {"kernel": "total-gaussian"}, "for the Gaussian channel"),
        (LAPLACE, {"kernel": "cauchy"}, "not known"),
        (RandomisedResponseChannel.calibrate(categories=2, epsilon=1), {"kernel": "gaussian"}, "releases categories"),
        (HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=10), {"clamped": False}, "without clamping"),
    ],
)
def test_impossible_models_are_refused(channel, options, words):
    with pytest.raises(ModelError, match=words):
        default_model(channel, **options)


HEIGHTS = np.random.default_rng(1).normal(170, 10, size=40)


@pytest.mark.parametrize(
    "options",
    [
        {"channel": privurn.Laplace(), "domain": privurn.Bounds(120, 220), "epsilon": 2},
        {"channel": privurn.Gaussian(), "domain": privurn.Bounds(120, 220), "epsilon": 2, "delta": 1e-6},
        {"channel": privurn.HaarWavelet(levels=2), "domain": privurn.Bounds(120, 220), "epsilon": 9},
        {"channel": privurn.DiscreteLaplace(), "domain": privurn.Bounds(120, 220), "epsilon": 2},
    ],
    ids=lambda options: options["channel"].alias,
)
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_folder_is_read_as_it_was_released(tmp_path, options, file_format):
    out = privurn.privatise(HEIGHTS, **options)
    out.save(tmp_path / "noisy", file_format=file_format)
    data = tmp_path / "noisy" / f"data.{file_format}"
    for source in (out, tmp_path / "noisy", str(tmp_path / "noisy"), data, tmp_path / "noisy" / "certificate.json"):
        found = read_privatised(source)
        expected = np.stack([column.to_numpy() for column in out.table.columns], axis=-1)
        assert np.array_equal(found.released.reshape(40, -1), expected)
        assert found.n == 40
        assert found.private
        assert found.channel.name == options["channel"].alias
        assert default_model(found.channel).observe(found.released).n == 40


def test_categories_are_read_with_their_labels(tmp_path):
    towns = np.array(["north", "south", "elsewhere"] * 10)
    out = privurn.privatise(
        towns,
        privurn.RandomisedResponse(),
        domain=privurn.Categories(["north", "south"], outside="other"),
        epsilon=30,
        order="kept",
    )
    found = read_privatised(out.save(tmp_path / "noisy"))
    assert found.labels == ("north", "south", "other")
    assert found.released.tolist() == [0, 1, 2] * 10  # at epsilon = 30 a code changes with probability 2e-13
    assert read_privatised(tmp_path / "noisy").released.tolist() == found.released.tolist()


def test_one_output_for_all_records_is_read_too(tmp_path):
    bins = privurn.Bins(np.linspace(120, 220, 11).tolist(), outside="clamp")
    counts = privurn.release(HEIGHTS, privurn.NoisyCounts(publish="counts"), domain=bins, epsilon=2)
    found = read_privatised(counts)
    assert isinstance(found.channel, NoisyStatisticChannel)
    assert (found.n, found.released.shape) == (40, (10,))
    draws = privurn.release(HEIGHTS, privurn.Smoothed(records=12), domain=bins, epsilon=2)
    draws.save(tmp_path / "draws")
    found = read_privatised(tmp_path / "draws")
    assert isinstance(found.channel, SmoothedHistogramChannel)
    assert (found.n, found.released.shape) == (40, (12,))
    assert 0 <= found.released.min() <= found.released.max() < 10
    assert default_model(found.channel).observe(found.released).n == 40


def test_what_does_not_verify_is_not_read(tmp_path):
    out = privurn.privatise(HEIGHTS, domain=privurn.Bounds(120, 220), epsilon=2).save(tmp_path / "noisy")
    data = tmp_path / "noisy" / "data.csv"
    original = data.read_text()
    data.write_text(original.replace("1", "2", 1))
    with pytest.raises(CertificateError, match="does not verify"):
        read_privatised(tmp_path / "noisy")
    data.write_text(original)
    (tmp_path / "noisy" / "other.csv").write_text(original)
    with pytest.raises(CertificateError, match="another file"):
        read_privatised(tmp_path / "noisy" / "other.csv")
    (tmp_path / "alone.csv").write_text(original)
    with pytest.raises(CertificateError, match="no certificate beside"):
        read_privatised(tmp_path / "alone.csv")
    with pytest.raises(NoRelease, match="there is no"):
        read_privatised(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="is no release"):
        read_privatised(HEIGHTS)
    broken = replace(out, table=pa.table({out.table.column_names[0]: [math.nan] * 40}))
    with pytest.raises(FormatError, match="no finite number"):
        read_privatised(broken)
    urn = privurn.release(HEIGHTS, privurn.Urn(), domain=privurn.Grid(120, 220, 10), epsilon=1, delta=1e-6)
    with pytest.raises(ModelError, match="a mixture is no model of counts of cells by dirichlet-multinomial"):
        read_privatised(urn)


@pytest.mark.parametrize("released", [[math.nan], [math.inf, 0.0], [], [[1.0, 2.0]], ["a"]])
def test_released_values_must_be_numbers(released):
    with pytest.raises(DomainError):
        default_model(LAPLACE).observe(released)


def test_wavelet_rows_must_be_whole():
    wavelet = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=10)
    with pytest.raises(DomainError, match="releases 7 numbers"):
        default_model(wavelet).observe(np.zeros((3, 6)))


def test_values_outside_the_bounds_are_clamped_before_the_wavelet():
    wavelet = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=50)
    assert np.array_equal(wavelet.lattice([-3.0, 7.0, math.nan]), wavelet.lattice([0.0, 1.0, 0.0]))


def test_values_alone_have_a_posterior_of_the_population_alone():
    with pytest.raises(ModelError, match="anything but the population"):
        privurn.infer(np.array([0.2, 0.7]), GAUSSIAN, of="sample")
