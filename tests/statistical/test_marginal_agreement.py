"""Samplers behind the channel through `fit_mixture`: they agree with each other, recover the prior, and can be continued."""

from dataclasses import replace

import numpy as np
import pytest

from privurn.errors import ModelError
from privurn.inference import mixtures as mix
from privurn.inference.draws import effective_draws
from privurn.inference.run import Run
from privurn.mechanisms.local import GaussianChannel, LaplaceChannel

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

CHANNEL = GaussianChannel.from_rho(bounds=(-10.0, 10.0), rho=8.0)
MODEL = mix.MixtureModel(
    channel=CHANNEL, kernel=mix.TotalGaussianKernel(noise=CHANNEL.scale, shape=3.0, scale=3.0 + 20.0), clamped=False
)
RNG = np.random.default_rng(4)
RELEASED = CHANNEL.simulate(np.concatenate([RNG.normal(-4, 1, 20), RNG.normal(4, 1, 20)]), rng=RNG)
GRID = np.array([-6.0, -4.0, 0.0, 4.0])
OPTIONS = {"neal2": {}, "neal3": {}, "split-merge": {"split_merge": 2}, "neal8": {}, "neal5": {}}
DEVIATIONS = 5.5
"""Differences beyond this many standard errors have a probability below 4e-8; there are 20 of them."""


def fitted(name, **how):
    run = Run(chains=2, warm_up=500, draws=1500, thin=2, seed=3)
    sampler = "neal3" if name == "split-merge" else name
    return mix.fit_mixture(RELEASED, model=MODEL, sampler=sampler, run=run, **OPTIONS[name], **how)


@pytest.fixture(scope="module")
def fits():
    return {name: fitted(name) for name in OPTIONS}


def numbers(found):
    """(name, draws as chains) of what is compared."""
    densities = found.densities(GRID).reshape(2, -1, len(GRID))
    return {"clusters": found.n_clusters.astype(float)} | {f"f({x:g})": densities[..., g] for g, x in enumerate(GRID)}


def gap(first, second):
    """Difference of means in its standard errors."""
    errors = [values.var() / effective_draws(values) for values in (first, second)]
    return abs(first.mean() - second.mean()) / np.sqrt(sum(errors))


@pytest.mark.long
def test_all_samplers_agree(fits):
    reference = numbers(fits["neal3"])
    for name, found in fits.items():
        for what, values in numbers(found).items():
            assert gap(values, reference[what]) < DEVIATIONS, f"{name}: {what}"


@pytest.mark.long
def test_another_base_measure_is_told_apart(fits):
    other = mix.MixtureModel(channel=CHANNEL, kernel=mix.TotalGaussianKernel(noise=CHANNEL.scale, precision=1.0), clamped=False)
    run = Run(chains=2, warm_up=500, draws=1500, thin=2, seed=3)
    wrong = numbers(mix.fit_mixture(RELEASED, model=other, sampler="neal3", run=run))
    reference = numbers(fits["neal3"])
    assert max(gap(wrong[what], reference[what]) for what in reference) > DEVIATIONS


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["neal2", "neal3"])
def test_clusters_that_tell_nothing_have_their_prior(sampler):
    """All atoms alike: the number of clusters of 50 records at strength 1 has mean sum 1/(1 + i) = 4.499."""
    alike = mix.TotalGaussianKernel(noise=CHANNEL.scale, precision=1e10, shape=1e8, scale=1e8 * 4.0 * CHANNEL.scale**2)
    model = mix.MixtureModel(channel=CHANNEL, kernel=alike, clamped=False)
    run = Run(chains=2, warm_up=100, draws=4000, thin=1, seed=5)
    found = mix.fit_mixture(np.resize(RELEASED, 50), model=model, sampler=sampler, run=run).n_clusters.astype(float)
    exact = sum(1.0 / (1.0 + i) for i in range(50))
    error = np.sqrt(found.var() / effective_draws(found))
    assert abs(found.mean() - exact) < DEVIATIONS * error
    assert abs(found.mean() - 3.7) > DEVIATIONS * error


@pytest.mark.parametrize("name", ["neal2", "split-merge", "neal8"])
def test_runs_go_on_bit_by_bit(name, tmp_path):
    sampler = "neal3" if name == "split-merge" else name
    options = {"model": MODEL, "sampler": sampler, **OPTIONS[name]}
    run = Run(seed=9, chains=1, warm_up=7, thin=1)
    keep = mix.Keep(allocations=True, latent=True)
    whole = mix.fit_mixture(RELEASED, keep=keep, run=replace(run, draws=30), **options)
    file = tmp_path / "run.ckpt"
    mix.fit_mixture(RELEASED, keep=keep, run=replace(run, draws=11, checkpoint=file), **options)
    resumed = mix.fit_mixture(RELEASED, keep=keep, run=replace(run, draws=30, checkpoint=file), **options)
    for each in whole.draws.variables:
        assert np.array_equal(whole.draws[each], resumed.draws[each]), each


def test_what_is_not_conjugate_is_refused():
    laplace = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=10)
    for channel, noise, clamped in ((CHANNEL, CHANNEL.scale, True), (CHANNEL, 2 * CHANNEL.scale, False), (laplace, 1.0, False)):
        with pytest.raises(ModelError, match="not clamped"):
            mix.MixtureModel(channel=channel, kernel=mix.TotalGaussianKernel(noise=noise), clamped=clamped)
    for channel, kernel, clamped in ((laplace, mix.GaussianKernel(), True), (CHANNEL, mix.GaussianKernel(), False)):
        model = mix.MixtureModel(channel=channel, kernel=kernel, clamped=clamped)
        with pytest.raises(ModelError, match="conjugate"):
            mix.fit_mixture(RELEASED, model=model, sampler="neal3")
    beta = mix.MixtureModel(channel=LaplaceChannel.calibrate(bounds=(0, 1), epsilon=100), kernel=mix.BetaKernel())
    with pytest.raises(ModelError, match="closed form"):
        mix.fit_mixture(np.full(5, 0.5), model=beta, sampler="neal8")
    with pytest.raises(ModelError, match="positive"):
        mix.TotalGaussianKernel(noise=0.0)
