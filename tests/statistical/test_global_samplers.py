"""Samplers of mixtures from one output for all records: the joint law, the prior from mere noise, and agreement.

The kinds of test are those of test_mixture_laws.py, whose prior draws are used here: states and an output from the joint law,
some sweeps at that output, and the same law again (Geweke 2004; false-alarm rate 1e-5 each). Tests with the components kernel
and noisy counts share compiled code; other combinations, each compiled for itself, are in the long suite but for one.
"""

import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sampler_checks import same_law_p_value, sequential
from scipy import stats
from test_mixture_laws import KERNELS, MIXINGS, N, keep_nothing, prior_state

from privurn.inference import mixtures as mix
from privurn.inference.mixtures.global_samplers import GlobalMixtureModel, GlobalNeal5, GlobalSlice, fit_global_mixture
from privurn.inference.run import Run, Schedule, run_chains
from privurn.mechanisms.local import NoisyStatisticChannel, SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic, MarginalsStatistic, MomentsStatistic

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

BOUNDS = (-3.0, 4.0)
TABLES = MarginalsStatistic(sizes=(3, 2), marginals=((0, 1), (1,)))
CHANNELS = {
    "moments": NoisyStatisticChannel.calibrate(statistic=MomentsStatistic(bounds=BOUNDS), n=N, noise="laplace", epsilon=4),
    "gaussian-moments": NoisyStatisticChannel(
        statistic=MomentsStatistic(bounds=BOUNDS, degree=3), n=N, noise="gaussian", scale=0.5
    ),
    "counts": NoisyStatisticChannel(statistic=HistogramStatistic(bounds=BOUNDS, bins=6), n=N, noise="gaussian", scale=0.8),
    "smoothed": SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=6, n=N, draws=12, epsilon=12),
    "marginals": NoisyStatisticChannel.calibrate(statistic=TABLES, n=N, noise="laplace", epsilon=4),
}


def statistics_of(state, model, output):
    """Numbers that depend on all parts of the state and on the output."""
    channel, y, atoms, c = model.channel, state["latent"], state["atoms"], state["allocations"]
    total, w = channel.total(y), np.asarray(channel.summary(output), float)
    first = y.astype(float) if y.ndim == 1 else y[:, 0].astype(float)
    return [
        len(atoms),
        first.mean(),
        first[-1],
        float(np.sum(np.abs(w - total))),
        float(w[0] * total[0]),
        atoms[c[0], 0],
        atoms[c[-1], 1],
        float(np.mean(c == c[0])),
        state["strength"][0],
    ]


def joint_p_values(make, model, *, sweeps, seed):
    """p values of `size` draws from the joint law against as many that have gone through some sweeps."""
    rng = np.random.default_rng(seed)
    keep = keep_nothing(model)

    def one(moved):
        state = prior_state(model, rng)
        output = model.channel.simulate(state["latent"], rng=rng)
        if moved:
            sampler = make(model=model, released=output)
            state["atoms"] = sampler.draw(state, rng, sweeps=sweeps, thin=1, warming=False, keep=keep)
        return statistics_of(state, model, output)

    def p_values(size):
        fresh, moved = (np.array([one(flag) for _ in range(size)]) for flag in (False, True))
        return [same_law_p_value(a, b) for a, b in zip(fresh.T, moved.T, strict=True)]

    return p_values


LONG = [
    (channel, kernel, mixing, make)
    for channel, kernel, mixing in (
        ("moments", "gaussian", "gamma"),
        ("gaussian-moments", "gaussian", "process"),
        ("counts", "gaussian", "discount"),
        ("smoothed", "beta", "process"),
        ("smoothed", "beta", "finite"),
        ("marginals", "categorical", "process"),
    )
    for make in (GlobalNeal5, GlobalSlice)
]


@pytest.mark.parametrize(
    ("channel", "kernel", "mixing", "make"),
    [("moments", "gaussian", "process", GlobalNeal5), *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)],
)
def test_sweeps_keep_the_joint_law(channel, kernel, mixing, make):
    model = GlobalMixtureModel(channel=CHANNELS[channel], kernel=KERNELS[kernel], mixing=MIXINGS[mixing])
    assert sequential(joint_p_values(make, model, sweeps=4, seed=21), size=1000)


@pytest.mark.long
def test_a_sum_that_is_not_updated_is_found_out():
    from privurn._kernels.mixtures import global_neal5 as right

    source, line = Path(right.__file__).read_text(), "update_total(total, statistic, y[i], trial[0])"
    assert source.count(line) == 1, "the line to be made wrong is not there any more"
    wrong = {"__name__": "wrong"}
    exec(compile(source.replace(line, "total[0] += 0"), "wrong", "exec"), wrong)

    class Wrong(GlobalNeal5):
        def draw(self, state, rng, *, sweeps, thin, warming, keep):
            return self._run(wrong["run_global_neal5"], state, sweeps, thin, warming, keep, rng)

    model = GlobalMixtureModel(channel=CHANNELS["moments"], kernel=KERNELS["gaussian"], mixing=MIXINGS["process"])
    assert not sequential(joint_p_values(Wrong, model, sweeps=8, seed=23), size=1000)


COMPONENTS = mix.ComponentsKernel(base=np.array([0.3, 0.7]), f=np.array([[0.7, 0.2, 0.1], [0.25, 0.3, 0.45]]))
EXPECTED = sum(1.0 / (1.0 + i) for i in range(50))
"""Expected number of clusters of 50 records, strength 1: 4.499."""


def counted(n, **given):
    statistic = HistogramStatistic(bounds=(-0.5, 2.5), bins=3)
    return NoisyStatisticChannel.calibrate(statistic=statistic, n=n, noise="laplace", **given)


def chain_means(sampler, functions, *, chains, draws, seed, warm_up=500):
    """Means over independent chains of functions of a run's draws."""
    found = run_chains(sampler, schedule=Schedule(chains=chains, warm_up=warm_up, draws=draws, seed=seed))
    return [each(found) for each in functions]


def clusters(found):
    return found["n_clusters"].mean(axis=1)


def prior_p_values(make, model, output, *, draws):
    """t tests over 40 chains: of the prior's number of clusters, and of the published slice sampler's 3.7."""
    sampler = make(model=model, released=output, keep=mix.Keep(atoms=0))
    means = chain_means(sampler, [clusters], chains=40, draws=draws, seed=31)[0]
    return [float(stats.ttest_1samp(means, number).pvalue) for number in (EXPECTED, 3.7)]


@pytest.mark.long
@pytest.mark.parametrize(("make", "draws"), [(GlobalNeal5, 500), (GlobalSlice, 1500)])
def test_mere_noise_gives_the_prior_back(make, draws):
    channel = counted(50, epsilon=1e-4)
    output = channel.simulate(np.zeros(50), rng=np.random.default_rng(30))
    right, wrong = prior_p_values(make, GlobalMixtureModel(channel=channel, kernel=COMPONENTS), output, draws=draws)
    assert right > 1e-6, f"p = {right:.1e}: rejects a right sampler with probability 1e-6"
    assert wrong < 1e-6, "too few chains to tell"


@pytest.mark.long
@pytest.mark.parametrize(("make", "draws"), [(GlobalNeal5, 500), (GlobalSlice, 3000)])
def test_a_flat_smoothed_histogram_gives_the_prior_back(make, draws):
    channel = SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=8, n=50, draws=10, epsilon=1e-4)
    output = channel.simulate(np.full(50, 0.5), rng=np.random.default_rng(30))
    right, wrong = prior_p_values(make, GlobalMixtureModel(channel=channel, kernel=mix.BetaKernel()), output, draws=draws)
    assert right > 1e-6, f"p = {right:.1e}: rejects a right sampler with probability 1e-6"
    assert wrong < 1e-6, "too few chains to tell"


@pytest.mark.long
def test_both_samplers_agree_on_noisy_counts():
    """Number of clusters and shares of the three codes: Welch's test over 24 chains each, alpha 1e-6 over all of them."""
    model = GlobalMixtureModel(channel=counted(40, epsilon=2), kernel=COMPONENTS)
    functions = [clusters, *(lambda found, v=v: (found["latent"] == v).mean(axis=(1, 2, 3)) for v in range(3))]
    first, second = (
        chain_means(
            make(model=model, released=(30, -2, 14), keep=mix.Keep(atoms=0, latent=True)),
            functions,
            chains=24,
            draws=1000,
            seed=seed,
        )
        for make, seed in ((GlobalNeal5, 33), (GlobalSlice, 34))
    )
    smallest = min(stats.ttest_ind(a, b, equal_var=False).pvalue for a, b in zip(first, second, strict=True))
    assert smallest > 1e-6 / len(functions)


@pytest.mark.long
def test_both_samplers_agree_on_a_smoothed_histogram():
    """Number of clusters and density at three points, Beta kernel."""
    rng = np.random.default_rng(35)
    channel = SmoothedHistogramChannel.calibrate(bounds=(0, 1), bins=8, n=60, draws=30, epsilon=30)
    output = channel.simulate(rng.beta(20, 8, size=60), rng=rng)
    model = GlobalMixtureModel(channel=channel, kernel=mix.BetaKernel())
    keep = mix.Keep(density_grid=(0.2, 0.5, 0.7), atoms=0)
    functions = [clusters, *(lambda found, g=g: found["density"][:, :, g].mean(axis=1) for g in range(3))]
    first, second = (
        chain_means(make(model=model, released=output, keep=keep), functions, chains=24, draws=4000, warm_up=1000, seed=seed)
        for make, seed in ((GlobalNeal5, 36), (GlobalSlice, 37))
    )
    smallest = min(stats.ttest_ind(a, b, equal_var=False).pvalue for a, b in zip(first, second, strict=True))
    assert smallest > 1e-6 / len(functions)


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["neal5", "slice"])
def test_next_to_no_noise_fixes_the_counts(sampler):
    """At epsilon = 10,000 every draw has the released counts, and at smaller epsilon acceptance keeps its bound."""
    model = GlobalMixtureModel(channel=counted(40, epsilon=1e4), kernel=COMPONENTS)
    run = Run(chains=2, warm_up=300, draws=100, thin=1, seed=38)
    given = {"sampler": sampler, "run": run, "keep": mix.Keep(latent=True)}
    found = fit_global_mixture((21, 0, 19), model=model, **given)
    counts = np.stack([(found.draws["latent"] == v).sum(axis=(2, 3)) for v in range(3)], axis=-1)
    assert np.all(counts == (21, 0, 19))
    rates = []
    for epsilon in (0.1, 1.0, 3.0, 1e4):
        model = GlobalMixtureModel(channel=counted(40, epsilon=epsilon), kernel=COMPONENTS)
        accepted = fit_global_mixture((21, 0, 19), model=model, **given).draws.sample_stats["acceptance"]
        assert accepted.min() >= np.exp(-epsilon)
        rates.append(accepted.mean())
    assert all(more > less for more, less in pairwise(rates))


@pytest.mark.long
def test_the_experiment_runs_and_learns_more_from_noisy_counts():
    """Least smoothing by the exact condition, acceptance above its bound, samplers near each other."""
    command = [sys.executable, "-m", "experiments.mixture_global", "--quick", "--json"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout):
        s, bins = row["smoothing"], row["bins"]
        assert bins == 16
        assert 28 * math.log1p((1 - s) * bins / (s * 250)) == pytest.approx(row["epsilon"], rel=1e-3)
        assert min(row["acceptance"]) > max(0.5, row["bound"])
        assert row["between"] < 0.5 * min(row["from_truth"])
        assert row["noisy_counts"] < min(row["from_truth"])
