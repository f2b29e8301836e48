"""Samplers of mixtures keep the joint law of confidential values and releases, and recover the prior from mere noise.

Joint test (Geweke 2004): clusters, atoms, latent values and releases from the prior; some sweeps at those releases; what comes
out has the prior's law again. It holds exactly, whatever the mixing of a chain, and needs no enumeration, so it is applied
to continuous kernels. `sequential` (Gandy and Scott) gives each a false-alarm rate of 1e-5. Every kind has a planted-bug twin.
"""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sampler_checks import same_law_p_value, sequential
from scipy import stats

from privurn.inference import mixtures as mix
from privurn.inference.run import Schedule, run_chains
from privurn.mechanisms.local import (
    DiscreteGaussianChannel,
    DiscreteLaplaceChannel,
    GaussianChannel,
    HaarWaveletChannel,
    LaplaceChannel,
    RandomisedResponseChannel,
)

N = 8
BOUNDS = (-3.0, 4.0)

NARROW = mix.GaussianKernel(mean=0.5, precision=0.5, shape=4.0, scale=3.0)
CHANNELS = {
    "laplace": LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=6),
    "gaussian": GaussianChannel(bounds=BOUNDS, scale=1.2),
    "wavelet": HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=12),
    "response": (
        RandomisedResponseChannel.calibrate(categories=3, epsilon=2),
        RandomisedResponseChannel.calibrate(categories=2, epsilon=1),
    ),
    "discrete-laplace": DiscreteLaplaceChannel.calibrate(bounds=(-3, 4), epsilon=6),
    "discrete-gaussian": DiscreteGaussianChannel(bounds=(-3, 4), scale=1.5),
}
KERNELS = {
    "gaussian": NARROW,
    "beta": mix.BetaKernel(),
    "categorical": mix.CategoricalKernel(categories=(3, 2), concentration=0.7),
}
MIXINGS = {
    "process": mix.DirichletProcess(strength=1.5),
    "gamma": mix.DirichletProcess(strength=mix.GammaPrior(shape=3.0, rate=2.0)),
    "discount": mix.PitmanYorProcess(discount=0.3, strength=0.5),
    "finite": mix.FiniteDirichlet(components=4, strength=2.0),
}


def prior_atom(kernel, rng):
    """One draw of the base measure, with the derived numbers, by NumPy and independently of the compiled code."""
    if isinstance(kernel, mix.GaussianKernel):
        deviation = math.sqrt(kernel.scale / rng.gamma(kernel.shape))
        mean = kernel.mean + deviation / math.sqrt(kernel.precision) * rng.normal()
        return [mean, deviation, math.log(deviation) + 0.5 * math.log(2 * math.pi)]
    if isinstance(kernel, mix.TotalGaussianKernel):
        total = 0.0
        while total < kernel.noise**2:
            total = kernel.scale / rng.gamma(kernel.shape)
        deviation = math.sqrt(total - kernel.noise**2)
        mean = kernel.mean + math.sqrt(total / kernel.precision) * rng.normal()
        return [mean, deviation, math.log(deviation) + 0.5 * math.log(2 * math.pi)]
    if isinstance(kernel, mix.ComponentsKernel):
        return [float(rng.choice(len(kernel.base), p=kernel.base))]
    if isinstance(kernel, mix.BetaKernel):
        a, b = rng.gamma(kernel.shape, size=2) / kernel.rate
        return [a, b, math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)]
    law = np.concatenate([rng.dirichlet(np.full(k, kernel.concentration)) for k in kernel.categories])
    return [*law, *np.log(np.maximum(law, 1e-300))]


def prior_value(kernel, atom, rng):
    if isinstance(kernel, (mix.GaussianKernel, mix.TotalGaussianKernel)):
        return rng.normal(atom[0], atom[1])
    if isinstance(kernel, mix.ComponentsKernel):
        return [int(rng.choice(kernel.f.shape[1], p=kernel.f[int(atom[0])]))]
    if isinstance(kernel, mix.BetaKernel):
        return float(np.clip(rng.beta(atom[0], atom[1]), 1e-300, 1 - 2.0**-53))
    ends = np.cumsum([0, *kernel.categories])
    laws = [np.array(atom[a:b]) for a, b in pairwise(ends)]
    return [int(rng.choice(len(law), p=law / law.sum())) for law in laws]


def prior_state(model, rng):
    """Clusters, strength, atoms and latent values of N records from the prior."""
    mixing = model.mixing
    strength, discount, extra, most = getattr(mixing, "strength", 1.0), getattr(mixing, "discount", 0.0), 0.0, math.inf
    if isinstance(strength, mix.GammaPrior):
        strength = rng.gamma(strength.shape) / strength.rate
    if isinstance(mixing, mix.FiniteDirichlet):
        most = mixing.components
        extra = strength / most
    labels, sizes = [], []
    for _ in range(N):
        fresh = extra * (most - len(sizes)) if extra else strength + discount * len(sizes)
        weights = np.array([*(size + extra - discount for size in sizes), fresh])
        labels.append(int(rng.choice(len(weights), p=weights / weights.sum())))
        if labels[-1] == len(sizes):
            sizes.append(0)
        sizes[labels[-1]] += 1
    atoms = [prior_atom(model.kernel, rng) for _ in sizes]
    values = np.array([prior_value(model.kernel, atoms[h], rng) for h in labels])
    return {
        "allocations": np.array(labels),
        "latent": values,
        "atoms": np.array(atoms),
        "strength": np.array([float(strength)]),
        "tuning": np.array([-0.5, 0.0]),
    }


def released(model, values, rng):
    """What the channel makes of values; numbers for Laplace and Gaussian noise without the lattice's rounding."""
    channel = model.channel
    if isinstance(channel, tuple):
        return np.stack([each.simulate(values[:, j], rng=rng) for j, each in enumerate(channel)], axis=1)
    bounds = channel.bounds if model.clamped else (-math.inf, math.inf)
    if isinstance(channel, LaplaceChannel):
        return np.clip(values, *bounds) + rng.laplace(scale=channel.scale, size=N)
    if isinstance(channel, GaussianChannel):
        return np.clip(values, *bounds) + rng.normal(scale=channel.scale, size=N)
    return channel.simulate(values, rng=rng)


def statistics_of(state, z, m):
    """Numbers that depend on all parts of the state and on the releases."""
    y = state["latent"][::m].astype(float)
    y, seen = (y, z) if y.ndim == 1 else (y[:, 0], z[:, 0])
    seen = seen if seen.ndim == 1 else seen[:, 0]
    atoms, c = state["atoms"], state["allocations"]
    return [
        len(atoms),
        y.mean(),
        (y * seen).mean(),
        atoms[c[0], 0],
        atoms[c[-1], 1],
        float(np.mean(c == c[0])),
        state["strength"][0],
    ]


def keep_nothing(model):
    kernel, empty = model.kernel, np.empty(0)
    latent = np.empty((0, N, kernel.columns()), np.int64) if kernel.categorical else np.empty((0, N))
    measures = empty, np.empty((0, len(kernel.parameter_names)))
    return (np.empty(0, np.int64), empty, *measures, np.empty((0, N), np.int64), latent, empty, empty, np.empty((0, 3)))


def joint_p_values(make, model, *, sweeps, seed):
    """p values of `size` prior states against as many that have gone through some sweeps."""
    rng = np.random.default_rng(seed)
    keep = keep_nothing(model)

    def one(moved):
        state = prior_state(model, rng)
        z = released(model, state["latent"], rng)
        sampler = make(model=model, released=z)
        m = sampler.auxiliary
        if m > 1:  # the others from the kernel: the pseudo-marginal law given that the first is the one that was seen
            others = [[prior_value(model.kernel, state["atoms"][h], rng) for _ in range(m - 1)] for h in state["allocations"]]
            state["latent"] = np.array([[y, *rest] for y, rest in zip(state["latent"], others, strict=True)]).ravel()
        if moved:
            state["atoms"] = sampler.draw(state, rng, sweeps=sweeps, thin=1, warming=False, keep=keep)
        if m > 1:  # all of them are alike, so that only functions of all can be compared
            state["latent"] = np.repeat(state["latent"].reshape(N, m).mean(axis=1), m)
        return statistics_of(state, z, m)

    def p_values(size):
        fresh, moved = (np.array([one(flag) for _ in range(size)]) for flag in (False, True))
        return [same_law_p_value(a, b) for a, b in zip(fresh.T, moved.T, strict=True)]

    return p_values


def marginal_slices(**given):
    return mix.SliceSampler(**given, marginal=True)


def neal5_with_three_values(**given):
    return mix.Neal5(**given, values=3)


FAST = [
    ("laplace", "gaussian", "process", mix.Neal5),
    ("laplace", "gaussian", "process", mix.SliceSampler),
]
LONG = [
    (channel, kernel, mixing, sampler)
    for channel, kernel in (
        ("laplace", "gaussian"),
        ("gaussian", "gaussian"),
        ("discrete-laplace", "gaussian"),
        ("discrete-gaussian", "gaussian"),
        ("wavelet", "beta"),
        ("response", "categorical"),
    )
    for mixing in MIXINGS
    for sampler in (mix.Neal5, mix.SliceSampler)
    if (channel, kernel, mixing, sampler) not in FAST
]
LONG += [
    (channel, kernel, "process", marginal_slices)
    for channel, kernel in (("laplace", "gaussian"), ("gaussian", "gaussian"), ("response", "categorical"))
]
LONG += [("laplace", "gaussian", "process", neal5_with_three_values)]


@pytest.mark.parametrize(
    ("channel", "kernel", "mixing", "make"), [*FAST, *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)]
)
def test_sweeps_keep_the_joint_law(channel, kernel, mixing, make):
    model = mix.MixtureModel(channel=CHANNELS[channel], kernel=KERNELS[kernel], mixing=MIXINGS[mixing])
    assert sequential(joint_p_values(make, model, sweeps=4, seed=21), size=1000)


@pytest.mark.long
@pytest.mark.parametrize("channel", ["laplace", "gaussian"])
@pytest.mark.parametrize("make", [mix.Neal5, mix.SliceSampler, marginal_slices])
def test_sweeps_keep_the_joint_law_without_clamping(channel, make):
    model = mix.MixtureModel(channel=CHANNELS[channel], kernel=NARROW, clamped=False)
    assert sequential(joint_p_values(make, model, sweeps=4, seed=22), size=1000)


def planted(module, old, new):
    """The namespace of a module's source with one line made wrong."""
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1, "the line to be made wrong is not there any more"
    wrong = {"__name__": "wrong"}
    exec(compile(source.replace(old, new), "wrong", "exec"), wrong)
    return wrong


@pytest.mark.long
def test_an_upside_down_ratio_is_found_out():
    from privurn._kernels.mixtures import neal5

    wrong = planted(neal5, "math.exp(min(estimate - level[i], 0.0))", "math.exp(min(level[i] - estimate, 0.0))")["run_neal5"]

    class Wrong(mix.Neal5):
        def draw(self, state, rng, *, sweeps, thin, warming, keep):
            c, y, atoms, strength, tuning = (state[name] for name in ("allocations", "latent", "atoms", "strength", "tuning"))
            given = (self.model.kernel.n_statistics, sweeps, thin, warming, keep, rng)
            return wrong(*self.records, self.observed.z, c, y, 1, atoms, strength, tuning, *given)

    model = mix.MixtureModel(channel=CHANNELS["laplace"], kernel=NARROW)
    assert not sequential(joint_p_values(Wrong, model, sweeps=4, seed=23), size=500)


@pytest.mark.long
def test_a_missing_jacobian_is_found_out():
    from privurn._kernels.mixtures import beta

    old = "kernel.shape * (math.log(a) + math.log(b))"
    wrong = planted(beta, old, old.replace("kernel.shape", "(kernel.shape - 1.0)"))["BetaKernel"]

    class Wrong(mix.BetaKernel):
        def record(self):
            return wrong(self.shape, self.rate)

    model = mix.MixtureModel(channel=CHANNELS["wavelet"], kernel=Wrong())
    assert not sequential(joint_p_values(mix.Neal5, model, sweeps=4, seed=24), size=500)


def chain_means(sampler, values, *, chains, draws, warm_up=500, seed):
    """Means over independent chains of functions of a run's draws."""
    found = run_chains(
        sampler, schedule=Schedule(chains=chains, warm_up=warm_up, draws=draws, seed=seed), coords=sampler.coords()
    )
    return [each(found) for each in values]


def clusters(found):
    return found["n_clusters"].mean(axis=1)


EXPECTED = sum(1.0 / (1.0 + i) for i in range(50))
"""Expected number of clusters of 50 records, strength 1: 4.499."""

PRIOR = mix.MixtureModel(channel=LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=1e-4), kernel=mix.GaussianKernel())


def recovers_the_prior(sampler, *, draws):
    means = chain_means(sampler, [clusters], chains=40, draws=draws, seed=31)[0]
    return stats.ttest_1samp(means, EXPECTED).pvalue, means


@pytest.mark.long
@pytest.mark.parametrize(("make", "draws"), [(mix.Neal5, 500), (mix.SliceSampler, 2000)])
def test_mere_noise_gives_the_prior_back(make, draws):
    """The channel says nothing at epsilon = 1e-4. t test over 40 chains, alpha 1e-6."""
    z = np.random.default_rng(30).laplace(scale=PRIOR.channel.scale, size=50)
    p, means = recovers_the_prior(make(model=PRIOR, released=z, keep=mix.Keep(atoms=0)), draws=draws)
    assert p > 1e-6, f"{means.mean():.3f} clusters, not {EXPECTED:.3f}"
    assert stats.ttest_1samp(means, 3.7).pvalue < 1e-6, "too few chains to tell 4.5 from 3.7, a published sampler's answer"


@pytest.mark.long
def test_samplers_agree_on_the_same_data():
    """Number of clusters and the density at five points: Welch's test over 24 chains each, alpha 1e-6 over all of them."""
    rng = np.random.default_rng(32)
    channel = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=10)
    z = channel.simulate(rng.choice([-5.0, 0.0, 5.0], size=60) + rng.normal(size=60), rng=rng)
    model = mix.MixtureModel(channel=channel, kernel=mix.GaussianKernel())
    keep = mix.Keep(density_grid=(-5.0, -2.5, 0.0, 2.5, 5.0), atoms=0)
    functions = [clusters, *(lambda found, g=g: found["density"][:, :, g].mean(axis=1) for g in range(5))]
    first = chain_means(mix.Neal5(model=model, released=z, keep=keep), functions, chains=24, draws=2000, seed=33)
    second = chain_means(mix.SliceSampler(model=model, released=z, keep=keep), functions, chains=24, draws=2000, seed=34)
    smallest = min(stats.ttest_ind(a, b, equal_var=False).pvalue for a, b in zip(first, second, strict=True))
    assert smallest > 1e-6 / len(functions)


def test_more_budget_comes_closer_to_the_confidential_data():
    """Posterior mean density against that from values without noise: nearer at epsilon 200 than at 2 (Hellinger)."""
    rng = np.random.default_rng(35)
    y = rng.choice([-5.0, 5.0], size=100) + rng.normal(size=100)
    grid = tuple(np.linspace(-12.0, 12.0, 60))
    means = []
    for epsilon in (2.0, 200.0, 10_000.0):
        channel = LaplaceChannel.calibrate(bounds=(-10, 10), epsilon=epsilon)
        model = mix.MixtureModel(channel=channel, kernel=mix.GaussianKernel())
        sampler = mix.SliceSampler(
            model=model, released=channel.simulate(y, rng=rng), keep=mix.Keep(atoms=0, density_grid=grid)
        )
        found = run_chains(sampler, schedule=Schedule(chains=2, warm_up=500, draws=500, seed=36))
        means.append(found["density"].mean(axis=(0, 1)))
    distances = [1.0 - np.sum(np.sqrt(each * means[-1])) * (grid[1] - grid[0]) for each in means[:2]]
    assert distances[1] < 0.2 * distances[0]
