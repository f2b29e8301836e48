"""Parts of mixtures: exact latent values, densities, records of one's own, bad input, runs that go on where they stopped."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy import integrate, stats

from privurn._kernels import dispatch
from privurn._kernels.dispatch import implement
from privurn._kernels.mixtures import channels as records
from privurn._kernels.mixtures import kernels
from privurn._kernels.mixtures.channels import log_density
from privurn._kernels.mixtures.gaussian import GaussianKernel
from privurn._kernels.mixtures.gaussian_pairs import clamped_normal_laplace
from privurn._kernels.mixtures.latent import log_marginal, update_latent
from privurn._kernels.mixtures.neal5 import log_mean_density, run_neal5
from privurn._kernels.mixtures.normal import log_interval, log_phi, truncated_normal
from privurn.errors import DomainError, FormatError, ModelError
from privurn.inference import mixtures as mix
from privurn.inference import run as running
from privurn.inference.draws import Draws, NotMixed
from privurn.inference.infer import infer
from privurn.inference.run import Run, Schedule, run_chains
from privurn.mechanisms.local import HaarWaveletChannel, LaplaceChannel, NoisyStatisticChannel, RandomisedResponseChannel
from privurn.mechanisms.local.statistics import HistogramStatistic

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

ALPHA = 1e-6
KERNEL = GaussianKernel(0.0, 0.1, 3.0, 3.0)
LAPLACE = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=10)
MODEL = mix.MixtureModel(channel=LAPLACE, kernel=mix.GaussianKernel())
RELEASED = LAPLACE.simulate(np.random.default_rng(1).normal(0, 3, size=30), rng=np.random.default_rng(2))


@numba.njit
def latent_values(channel, z, m, s, size, rng):
    y, atoms = np.zeros(size), np.array([[m, s, 0.0]])
    for i in range(size):
        update_latent(channel, KERNEL, z, y, i, atoms, 0, rng)
    return y


@numba.njit
def marginal(channel, z, m, s):
    return log_marginal(channel, KERNEL, z, np.array([[m, s, 0.0]]), 0)


INF = math.inf
NOISE = [(records.Laplace, scale) for scale in (0.2, 1.0, 9.0)] + [(records.Gaussian, scale) for scale in (0.5, 4.0)]
PLACES = [(0.0, 0.0, 1.0), (3.0, -1.0, 0.7), (-8.0, 1.0, 2.5), (1.9, 2.2, 0.3)]


def cut_points(channel, z, m, s):
    """Where the density may bend, and the far ends."""
    return sorted({m - 12 * s - 12, m + 12 * s + 12, *(x for x in (z, m, channel.lower, channel.upper) if math.isfinite(x))})


def mass(channel, z, m, s, high):
    """Integral of q(z | y) N(y; m, s^2) below `high`, piece by piece."""
    ends = [x for x in cut_points(channel, z, m, s) if x < high] + [high]

    def f(y):
        return math.exp(log_density(channel, z, y)) * stats.norm.pdf(y, m, s)

    return sum(integrate.quad(f, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("bounds", [(-INF, INF), (-2.0, 3.0)])
@pytest.mark.parametrize(("make", "scale"), NOISE)
def test_marginal_density_is_the_integral(make, scale, bounds):
    channel = make(scale, *bounds)
    for z, m, s in PLACES:  # up to a term in z alone, so against another atom at the same z
        reference = marginal(channel, z, 0.0, 1.0) - math.log(mass(channel, z, 0.0, 1.0, 24.0))
        assert marginal(channel, z, m, s) == pytest.approx(
            math.log(mass(channel, z, m, s, m + 12 * s + 12)) + reference, abs=1e-7
        )


@pytest.mark.parametrize("bounds", [(-INF, INF), (-2.0, 3.0)])
@pytest.mark.parametrize(("make", "scale"), NOISE)
def test_latent_values_have_their_exact_law(make, scale, bounds):
    """Chi-square over eight cells between quantiles of the prior; alpha 1e-6 over all places. A wrong scale is found out."""
    channel, rng = make(scale, *bounds), np.random.default_rng(3)
    found = []
    for z, m, s in PLACES:
        y = latent_values(channel, z, m, s, 4000, rng)
        ends = [*np.quantile(y[:2000], np.arange(1, 8) / 8), m + 12 * s + 12]

        def p_value(law, y=y, ends=ends, z=z, m=m, s=s):
            total = np.array([mass(law, z, m, s, end) for end in ends])
            expected = 2000 * np.diff(total / total[-1], prepend=0.0)
            return stats.chisquare(np.bincount(np.searchsorted(ends[:-1], y[2000:]), minlength=8), expected).pvalue

        found.append(p_value(channel))
        if (z, m, s) == PLACES[0]:
            wrong = p_value(channel._replace(**{channel._fields[0]: 0.25 * scale}))
    assert min(found) > ALPHA / len(PLACES)
    assert wrong < ALPHA


def test_normal_parts():
    for x in (-40.0, -31.0, -29.9, -5.0, 0.0, 4.0):
        assert log_phi(x) == pytest.approx(stats.norm.logcdf(x), rel=1e-12)
    for a, b in ((-1.0, 2.0), (3.0, 5.0), (-8.0, -7.5), (30.0, 31.0), (2.0, INF), (-INF, -9.0), (0.5, 0.5 + 1e-9)):
        low, high = (a, b) if a < 0 else (-b, -a)
        log_high, log_low = stats.norm.logcdf([high, low])
        exact = log_high + math.log(-math.expm1(log_low - log_high))
        assert log_interval(a, b) == pytest.approx(exact, rel=1e-6 if b - a < 1e-6 else 1e-11)
    rng = np.random.default_rng(4)
    for a, b in ((-1.0, 2.0), (0.5, 0.9), (3.0, 9.0), (-INF, -4.0), (-0.3, 0.2), (6.0, INF)):
        x = np.array([truncated_normal(a, b, rng) for _ in range(400)])
        assert stats.kstest(x, stats.truncnorm(a, b).cdf).pvalue > ALPHA


@pytest.mark.parametrize("epsilon", [1e-4, 1e4])
@pytest.mark.parametrize("place", [(0.0, 0.0, 1.0), (500.0, -40.0, 1e-3), (-9.9, 9.9, 300.0), (10.0, 10.0, 1e-8)])
def test_extreme_budgets_are_stable(epsilon, place):
    z, m, s = place
    for bounds in ((-INF, INF), (-10.0, 10.0)):
        channel = records.Laplace(20.0 / epsilon, *bounds)
        assert np.isfinite(latent_values(channel, z, m, s, 200, np.random.default_rng(5))).all()
        assert math.isfinite(marginal(channel, z, m, s))
    assert math.isfinite(clamped_normal_laplace(10.0, -1e3, 1.0, 20.0 / epsilon, -10.0, 10.0, np.random.default_rng(6)))


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 30.0])
def test_no_acceptance_rate_is_below_exp_minus_epsilon(epsilon):
    """Over random releases and values, far outside the bounds too: one value, and means over three."""
    rng = np.random.default_rng(7)
    wavelet = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=3, epsilon=epsilon)
    response = RandomisedResponseChannel.calibrate(categories=4, epsilon=epsilon)
    codes = np.arange(4)
    table = records.Table(response.log_density(codes[None, :], codes[:, None])[None])
    for _ in range(200):
        values = rng.normal(0, 30, size=(2, 3))
        cases = [
            (records.Laplace(20.0 / epsilon, -10.0, 10.0), rng.normal(0, 50), values),
            (records.RoundedLaplace(20.0 / epsilon, -10.0, 10.0), float(rng.integers(-50, 50)), values),
            (
                records.Wavelet(wavelet.scale, wavelet.amplitudes, 0.0, 1.0),
                rng.laplace(scale=wavelet.scale, size=15),
                rng.random((2, 3)),
            ),
            (table, rng.integers(0, 4, size=1), rng.integers(0, 4, size=(2, 3, 1))),
        ]
        for channel, z, (new, old) in cases:
            assert log_density(channel, z, new[0]) - log_density(channel, z, old[0]) >= -epsilon * (1 + 1e-12)
            mean_new, mean_old = (log_mean_density.py_func(channel, z, each, 0, 3) for each in (new, old))
            assert mean_new - mean_old >= -epsilon * (1 + 1e-12)


def test_channel_records_are_the_channels():
    """Differences of log densities over y, which is all that records promise."""
    rng = np.random.default_rng(8)
    wavelet = HaarWaveletChannel.calibrate(bounds=(-1, 3), levels=4, epsilon=5)
    y = np.concatenate([rng.uniform(-2, 4, size=50), [-1.0, 3.0, 1.0]])
    z = wavelet.simulate(y[:1], rng=rng)[0]
    record = mix.MixtureModel(channel=wavelet, kernel=mix.GaussianKernel()).observe(z[None]).channel
    ours = np.array([log_density(record, z, each) for each in y])
    theirs = np.array([wavelet.log_density(z, each) for each in y]).ravel()
    assert np.allclose(ours - ours[0], theirs - theirs[0], atol=1e-9)


def test_an_interrupted_run_goes_on_bit_by_bit(tmp_path, monkeypatch):
    sampler = mix.SliceSampler(model=MODEL, released=RELEASED, keep=mix.Keep(allocations=True, latent=True))
    schedule = Schedule(chains=2, warm_up=40, draws=60, thin=2, seed=4)
    whole = run_chains(sampler, schedule=schedule)

    def stop(done, total, figures):
        if done >= 90:
            raise KeyboardInterrupt

    file = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        run_chains(sampler, schedule=schedule, checkpoint=file, progress=stop)
    monkeypatch.setattr(running, "PIECES", 7)
    rest = run_chains(sampler, schedule=schedule, checkpoint=file)
    for name, values in whole.variables.items():
        assert np.array_equal(values, rest[name]), name
    other = mix.SliceSampler(model=MODEL, released=RELEASED + 1.0, keep=sampler.keep)
    with pytest.raises(FormatError, match="another run"):
        run_chains(other, schedule=schedule, checkpoint=file)


def test_fit_gives_a_density_with_bands():
    grid = np.linspace(-25, 25, 401)
    found = mix.fit_mixture(RELEASED, model=MODEL, sampler="slice", run=Run(chains=2, warm_up=100, draws=100, seed=5, thin=1))
    estimate = found.density(grid, level=0.9)
    assert np.sum(estimate.mean) * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-3)
    assert np.all(estimate.lower <= estimate.upper)
    assert np.all((estimate.lower >= 0.0) & (estimate.mean >= 0.0))
    assert found.n_clusters.shape == (2, 100)
    weights = found.draws["weights"]
    assert np.allclose(weights.sum(axis=-1), 1.0)
    assert np.all(weights >= 0.0)
    kept = mix.fit_mixture(
        RELEASED,
        model=MODEL,
        sampler="slice",
        keep=mix.Keep(density_grid=tuple(grid)),
        run=Run(chains=2, warm_up=100, draws=100, seed=5, thin=1),
    )
    assert np.array_equal(kept.densities(grid), found.densities(grid))
    assert kept.draws.attributes["chosen_because"] == "it was asked for"


class Cauchy(NamedTuple):
    """A user's channel: z = y + Cauchy noise."""

    scale: float


@implement(log_density, Cauchy)
def _(channel, z, y):
    return -math.log1p(((z - y) / channel.scale) ** 2)


class Exponential(NamedTuple):
    """A user's kernel: y exponential with a rate ~ Gamma(shape, 1)."""

    shape: float


@implement(kernels.update_from_base, Exponential)
def _(kernel, atoms, h, rng):
    atoms[h, 0] = rng.standard_gamma(kernel.shape)


@implement(kernels.update_value, Exponential)
def _(kernel, y, i, atoms, h, rng):
    y[i] = rng.standard_exponential() / atoms[h, 0]


@implement(kernels.log_kernel, Exponential)
def _(kernel, y, atoms, h):
    return math.log(atoms[h, 0]) - atoms[h, 0] * y if y > 0.0 else -math.inf


@implement(kernels.update_statistics, Exponential)
def _(kernel, statistics, h, y):
    statistics[h, 0] += 1.0
    statistics[h, 1] += y


@implement(kernels.update_atom, Exponential)
def _(kernel, atoms, h, statistics, step, rng):
    atoms[h, 0] = rng.standard_gamma(kernel.shape + statistics[h, 0]) / (1.0 + statistics[h, 1])
    return 1.0


@pytest.mark.long
def test_a_channel_and_a_kernel_of_ones_own():
    """With one component the posterior of the rate is Gamma(shape + n, 1 + sum y), as noise of scale 0.001 hides nothing."""
    rng = np.random.default_rng(9)
    y = rng.exponential(0.5, size=40) + 0.01
    z = y + 1e-3 * rng.standard_cauchy(40)
    channel = mix.OwnChannel(record=Cauchy(1e-3), start=tuple(z))
    kernel = mix.OwnKernel(make=lambda: Exponential(2.0), parameters=("rate",), statistics=2, low=0.0)
    model = mix.MixtureModel(channel=channel, kernel=kernel, mixing=mix.FiniteDirichlet(components=1))
    found = mix.fit_mixture(z, model=model, sampler="neal5", run=Run(chains=1, warm_up=100, draws=2000, seed=6, thin=1))
    rates = found.draws["atoms"][0, :, 0, 0]
    law = stats.gamma(42, scale=1.0 / (1.0 + y.sum()))
    assert abs(rates.mean() - law.mean()) < 0.1 * law.mean()
    assert 0.7 < rates.std() / law.std() < 1.4
    assert dispatch.entry(run_neal5, Cauchy(1.0)) is not run_neal5, "a user's record must not be cached on disk"
    assert dispatch.entry(run_neal5, records.Laplace(1.0, 0.0, 1.0)) is run_neal5


class Unanswered(NamedTuple):
    """A record for which nothing is implemented."""

    scale: float


def test_a_record_without_an_implementation_is_named():
    words = r"log_density has no implementation for Unanswered.*@implement\(log_density, Unanswered\): docs/design-mixtures"
    with pytest.raises(TypeError, match=words):
        log_density(Unanswered(1.0), 0.0, 0.0)
    with pytest.raises(TypeError, match=words):  # compiled
        numba.njit(lambda record: log_density(record, 0.0, 0.0))(Unanswered(1.0))
    with pytest.raises(TypeError, match="log_marginal has no implementation for Laplace, Unanswered"):
        log_marginal(records.Laplace(1.0, 0.0, 1.0), Unanswered(1.0), 0.0, np.zeros((1, 1)), 0)
    channel = mix.OwnChannel(record=Unanswered(1.0), start=tuple(RELEASED))
    with pytest.raises(TypeError, match=words):
        mix.fit_mixture(RELEASED, model=mix.MixtureModel(channel=channel, kernel=mix.GaussianKernel()), run=Run(chains=1))


GLOBAL = mix.GlobalMixtureModel(
    channel=NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(bounds=(0, 1), bins=2), n=10, noise="laplace", epsilon=1
    ),
    kernel=mix.BetaKernel(),
)

BAD = [
    (lambda: MODEL.observe([1.0, math.nan]), DomainError, "finite"),
    (lambda: MODEL.observe([]), DomainError, "at least one"),
    (lambda: MODEL.observe([[1.0], [2.0]]), DomainError, "one number"),
    (lambda: MODEL.observe(["a"]), DomainError, "numbers"),
    (lambda: mix.GaussianKernel(scale=0.0), ModelError, "positive"),
    (lambda: mix.DirichletProcess(strength=-1.0), ModelError, "strength"),
    (lambda: mix.PitmanYorProcess(discount=1.0), ModelError, "discount"),
    (lambda: mix.FiniteDirichlet(components=0), ModelError, "components"),
    (lambda: mix.MixtureModel(channel=LAPLACE, kernel=mix.CategoricalKernel(categories=(3,))), ModelError, "categories"),
    (lambda: mix.Keep(atoms=-1), ModelError, "atoms"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, sampler="gibbs"), ModelError, "not known"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, sampler="neal5", speed=2), ModelError, "no such option"),
    (lambda: mix.Neal5(model=MODEL, released=RELEASED, values=0), ModelError, "values must be a whole number, at least 1"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, sampler="neal5", values=None), ModelError, "values must be a whole"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, sampler="neal8", auxiliary_atoms=2.5), ModelError, "auxiliary_atoms"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, sampler=["slice"]), ModelError, "not known"),
    (lambda: mix.fit_mixture(RELEASED, model=3), ModelError, "needs a model"),
    (lambda: mix.fit_mixture(RELEASED, model=GLOBAL), ModelError, "fit_global_mixture"),
    (lambda: mix.fit_global_mixture([1, 2], model=MODEL), ModelError, "GlobalMixtureModel"),
    (
        lambda: mix.fit_global_mixture([1, 2], model=GLOBAL, run=Run(draws=2.5)),
        ModelError,
        "draws must be a whole number",
    ),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, run=Run(draws=2.5)), ModelError, "draws must be a whole number"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, run=Run(chains="4")), ModelError, "chains must be a whole number"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, run=Run(threads=-1)), ModelError, "threads must be a whole number"),
    (lambda: infer(RELEASED, MODEL, run=3), ModelError, "said by a Run"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, run=Run(progress=3)), ModelError, "progress"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, run=Run(checkpoint=3)), FormatError, "name of a file"),
    (lambda: mix.fit_mixture(RELEASED, model=MODEL, keep=3), ModelError, "Keep"),
    (lambda: mix.Keep(atoms=2.5), ModelError, "atoms must be a whole number"),
    (lambda: mix.Keep(atoms=20_000), ModelError, "at most 10,000"),
    (lambda: mix.Keep(density_grid=3), ModelError, "list of finite numbers"),
    (lambda: mix.Keep(density_grid=("a",)), ModelError, "list of finite numbers"),
    (lambda: mix.MixtureModel(channel="laplace", kernel=mix.GaussianKernel()), ModelError, "local channel"),
]


@pytest.mark.parametrize(("make", "error", "words"), BAD)
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("z", [[3.0], [2.0] * 25, [1e9, -1e9]])
def test_few_or_equal_or_far_records(z):
    found = mix.fit_mixture(z, model=MODEL, sampler="slice", run=Run(chains=1, warm_up=50, draws=50, seed=7, thin=1))
    assert np.isfinite(found.draws["atoms"]).all()
    assert found.n_clusters.min() >= 1


def test_a_heavy_discount_is_refused_by_slices_in_words():
    model = mix.MixtureModel(channel=LAPLACE, kernel=mix.GaussianKernel(), mixing=mix.PitmanYorProcess(discount=0.5))
    with pytest.raises(ModelError, match="too many atoms"):
        mix.SliceSampler(model=model, released=RELEASED)


def test_auto_says_what_it_took_and_why():
    few, much = LAPLACE, LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=50)
    for channel, name in ((few, "neal5"), (much, "slice")):
        model = mix.MixtureModel(channel=channel, kernel=mix.GaussianKernel())
        found = mix.fit_mixture(RELEASED, model=model, run=Run(chains=1, warm_up=10, draws=10, seed=9, thin=1))
        assert found.draws.attributes["sampler"] == name
        assert found.draws.attributes["chosen_because"] != "it was asked for"


@pytest.mark.long
@pytest.mark.filterwarnings("error::privurn.inference.draws.NotMixed")
def test_chains_that_have_not_mixed_in_mean_and_median_are_warned_of():
    given, run = {"model": MODEL, "sampler": "neal5"}, Run(chains=2, seed=5)
    with pytest.warns(NotMixed, match=r"NOT mixed after 20 draws each: mean\[within bounds\] has not mixed"):
        short = mix.fit_mixture(RELEASED, run=replace(run, warm_up=20, draws=20, thin=1), **given)
    assert any("q0.5[within bounds]" in each for each in short.problems())
    long = mix.fit_mixture(RELEASED, run=replace(run, warm_up=500, draws=1000), **given)  # nothing to warn of
    assert long.problems() == ()
    with pytest.warns(NotMixed, match="n_clusters has not mixed"):
        mix.fit_mixture(RELEASED, keep=mix.Keep(atoms=0), run=replace(run, warm_up=20, draws=20, thin=1), **given)
    output = GLOBAL.channel.simulate(np.linspace(0.1, 0.9, 10), rng=np.random.default_rng(1))
    with pytest.warns(NotMixed, match=r"mean\[within bounds\]"):
        mix.fit_global_mixture(output, model=GLOBAL, run=Run(chains=2, warm_up=5, draws=5, seed=1, thin=1))


def test_figures_of_the_population_are_among_the_draws(tmp_path):
    import xarray

    found = mix.fit_mixture(RELEASED, model=MODEL, sampler="neal5", run=Run(chains=2, warm_up=20, draws=20, seed=5, thin=1))
    assert {"mean", "deviation", "q0.05", "q0.25", "q0.5", "q0.75", "q0.95"} <= set(found.draws.variables)
    with xarray.open_datatree(found.draws.save(tmp_path / "draws.nc"), engine="h5netcdf") as tree:
        stored = tree["posterior"].dataset.load()
    figures = found.population(levels=[0.5])
    alone = mix.MixturePosterior(  # computed anew, from what the file holds of the measures
        model=MODEL,
        draws=Draws(variables={name: stored[name].to_numpy() for name in ("n_clusters", "weights", "atoms")}, markov=True),
    ).population(levels=[0.5])
    for name in ("mean", "deviation", "q0.5"):
        assert np.array_equal(stored[name].to_numpy(), figures[name])
        assert np.array_equal(stored[name].to_numpy(), alone[name])
    assert [each.name for each in figures.summary(["mean"])] == ["mean[within bounds]"]
    assert stored.attrs["mass_not_kept"] == found.draws.sample_stats["mass_not_kept"].max()
