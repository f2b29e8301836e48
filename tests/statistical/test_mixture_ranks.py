"""Exact rank tests (Gandy and Scott 2020) and joint tests of every combination of channel, kernel, mixing and sampler.

A state from the prior and releases from it are put at a random place of a path of LENGTH states: sweeps of the sampler lead
to the later ones, sweeps of its time reversal (reversed_sweeps.py) to the earlier ones. Whatever the mixing, the rank of
the true state among all of them is uniform, for any figure, ties broken at random. The last states of the paths also have
the law of the prior (Geweke 2004). False-alarm rate 1e-5 for each combination, and every sampler has a twin that is caught.

A combination takes ten seconds and more to compile, and a second to run without numba's compiler, where the same source gives
the same chain bit by bit: but for Neal 5 and slices, each compiled once, tests ask processes without it (`main`).
"""

import json
import sys
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from reversed_sweeps import backwards, forwards, is_global
from sampler_checks import random_rank, rank_p_value, same_law_p_value, sequential
from test_mixture_laws import CHANNELS, KERNELS, MIXINGS, NARROW, N, keep_nothing, prior_state, prior_value, released

from privurn._kernels.mixtures import beta_pairs, gaussian_pairs, neal5  # noqa: F401 (pairs are registered)
from privurn._kernels.mixtures.global_channels import total_of
from privurn._kernels.mixtures.kernels import log_kernel
from privurn.inference import mixtures as mix
from privurn.inference.mixtures.samplers import parts
from privurn.mechanisms.local import (
    GaussianChannel,
    LaplaceChannel,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.statistics import HistogramStatistic, MarginalsStatistic, MomentsStatistic

sys.path.append(str(Path(__file__).parents[1] / "exact"))  # behind this folder: both have files of the same name

from mixture_states import in_plain_python

LENGTH, FEW, MANY = 6, 200, 400
BOUNDS, UNIT = (-3.0, 4.0), (0.0, 1.0)
COMPONENTS = mix.ComponentsKernel(base=np.array([0.3, 0.7]), f=np.array([[0.7, 0.2, 0.1], [0.25, 0.3, 0.45]]))
BETA, GAUSS = mix.BetaKernel(), CHANNELS["gaussian"]
ANY = {"neal5": mix.Neal5, "slice": mix.SliceSampler}
MARGINAL = ANY | {"marginal-slice": partial(mix.SliceSampler, marginal=True), "neal8": mix.Neal8}
CONJUGATE = {"neal2": mix.Neal2, "neal3": mix.Neal3, "split-merge": partial(mix.Neal3, split_merge=2, scans=2)}
GLOBAL = {"global-neal5": mix.GlobalNeal5, "global-slice": mix.GlobalSlice}
SEVERAL = {"neal5-three-values": partial(mix.Neal5, values=3)}
HISTOGRAM, MOMENTS = partial(HistogramStatistic, bins=6), partial(MomentsStatistic, degree=2)


def local(channel, kernel, makers, **given):
    return partial(mix.MixtureModel, channel=channel, kernel=kernel, **given), makers


def noisy(statistic, noise, kernel):
    delta = {"laplace": 0.0, "gaussian": 1e-3}[noise]
    channel = NoisyStatisticChannel.calibrate(statistic=statistic, n=N, noise=noise, epsilon=4, delta=delta)
    return partial(mix.GlobalMixtureModel, channel=channel, kernel=kernel), GLOBAL


TOTAL = "gaussian x total gaussian"
PAIRS = {
    "laplace x gaussian": local(CHANNELS["laplace"], NARROW, MARGINAL | SEVERAL),
    "gaussian x gaussian": local(GAUSS, NARROW, MARGINAL),
    "laplace x gaussian, not clamped": local(CHANNELS["laplace"], NARROW, MARGINAL, clamped=False),
    "gaussian x gaussian, not clamped": local(GAUSS, NARROW, MARGINAL, clamped=False),
    TOTAL: local(
        GAUSS,
        mix.TotalGaussianKernel(noise=GAUSS.scale, mean=0.5, precision=0.5, shape=4.0, scale=9.0),
        MARGINAL | CONJUGATE,
        clamped=False,
    ),
    "discrete laplace x gaussian": local(CHANNELS["discrete-laplace"], NARROW, ANY),
    "discrete gaussian x gaussian": local(CHANNELS["discrete-gaussian"], NARROW, ANY),
    "wavelet x gaussian": local(CHANNELS["wavelet"], NARROW, ANY),
    "laplace x beta": local(LaplaceChannel.calibrate(bounds=UNIT, epsilon=6), BETA, MARGINAL),
    "gaussian x beta": local(GaussianChannel(bounds=UNIT, scale=0.2), BETA, MARGINAL),
    "discrete laplace x beta": local(CHANNELS["discrete-laplace"], BETA, ANY),
    "discrete gaussian x beta": local(CHANNELS["discrete-gaussian"], BETA, ANY),
    "wavelet x beta": local(CHANNELS["wavelet"], BETA, ANY),
    "response x categorical": local(CHANNELS["response"], KERNELS["categorical"], MARGINAL | SEVERAL),
    "discrete laplace x categorical": local((CHANNELS["discrete-laplace"],) * 2, KERNELS["categorical"], MARGINAL),
    "discrete gaussian x categorical": local((CHANNELS["discrete-gaussian"],) * 2, KERNELS["categorical"], MARGINAL),
    "response x components": local((RandomisedResponseChannel.calibrate(categories=3, epsilon=2),), COMPONENTS, MARGINAL),
}
PAIRS |= {
    f"{noise} {what} x {kernel}": noisy(statistic(bounds=bounds), noise, law)
    for noise in ("laplace", "gaussian")
    for what, statistic in (("moments", MOMENTS), ("counts", HISTOGRAM))
    for kernel, law, bounds in (("gaussian", NARROW, BOUNDS), ("beta", BETA, UNIT), ("components", COMPONENTS, (-0.5, 2.5)))
}
PAIRS |= {
    f"{noise} marginals x categorical": noisy(
        MarginalsStatistic(sizes=(3, 2), marginals=((0, 1), (1,))), noise, KERNELS["categorical"]
    )
    for noise in ("laplace", "gaussian")
}
PAIRS |= {
    f"smoothed histogram x {kernel}": (
        partial(
            mix.GlobalMixtureModel,
            channel=SmoothedHistogramChannel.calibrate(bounds=bounds, bins=6, n=N, draws=12, epsilon=12),
            kernel=law,
        ),
        GLOBAL,
    )
    for kernel, law, bounds in (("gaussian", NARROW, BOUNDS), ("beta", BETA, UNIT), ("components", COMPONENTS, (-0.5, 2.5)))
}


def joint_draw(model, make, rng):
    """A state from the prior, and a sampler at releases from it."""
    state = prior_state(model, rng)
    everywhere = isinstance(model, mix.GlobalMixtureModel)
    z = model.channel.simulate(state["latent"], rng=rng) if everywhere else released(model, state["latent"], rng)
    sampler = make(model=model, released=z)
    more = range(sampler.auxiliary - 1)
    if more:  # the others from the kernel, at places behind the first: figures below do not look at the place
        rows = zip(state["latent"], state["allocations"], strict=True)
        atoms, kernel = state["atoms"], model.kernel
        state["latent"] = np.array([each for y, h in rows for each in (y, *(prior_value(kernel, atoms[h], rng) for _ in more))])
    return state, sampler


def figures(sampler, state):
    """Numbers of all parts of a state: clusters, values, atoms, what the channel says, and the strength."""
    c, y, atoms, s, _ = parts(state)
    channel, kernel, _ = sampler.records
    z, m = sampler.observed.z, sampler.auxiliary
    first = (y if y.ndim == 1 else y[:, 0]).reshape(-1, m).mean(axis=1)
    fit = sum(log_kernel(kernel, y[j], atoms, c[j // m]) for j in range(len(y)))
    if is_global(sampler):
        total = total_of(channel[0], y, len(z))
        seen, fit_of_channel = z[0] * total[0], -np.sum(np.abs(z - total))
    else:
        seen = np.mean(first * (z if z.ndim == 1 else z[:, 0]))
        fit_of_channel = sum(neal5.log_mean_density(channel, z[i], y, i * m, m) for i in range(len(c)))
    found = [len(atoms), first.mean(), seen, atoms[c[0], 0], atoms[c[-1], -1], np.mean(c == c[0]), fit, fit_of_channel]
    return [float(each) for each in (*found, s[0])]


def moved(sampler, state, rng, keep):
    state["atoms"] = sampler.draw(state, rng, sweeps=1, thin=1, warming=False, keep=keep)


def kept_values(sampler):
    """Nothing is kept, but that Neal 2 and 3 draw values for nothing else."""
    keep = keep_nothing(sampler.model)
    if sampler.name in ("neal2", "neal3"):
        keep = (*keep[:5], np.empty((1, N)), *keep[6:])
    return keep


def path(model, make, rng):
    """Figures of LENGTH states in a row, and the place of the one from the prior."""
    state, sampler = joint_draw(model, make, rng)
    keep, place = kept_values(sampler), int(rng.integers(LENGTH))
    found = np.empty((LENGTH, len(figures(sampler, state))))
    found[place] = figures(sampler, state)
    for step, sweep in ((1, partial(moved, keep=keep)), (-1, backwards)):
        moving = {name: each.copy() for name, each in state.items()}
        for t in range(place + step, LENGTH if step == 1 else -1, step):
            sweep(sampler, moving, rng)
            found[t] = figures(sampler, moving)
    return found, place


def p_values_of(model, make, *, seed, kinds=("ranks", "joint")):
    """p values for `size` paths: of the ranks, and of their last states against as many states from the prior."""
    rng = np.random.default_rng(seed)

    def p_values(size):
        ranks, last = [], []
        for _ in range(size):
            found, place = path(model, make, rng)
            others = np.delete(found, place, axis=0)
            ranks.append([random_rank(*each, rng) for each in zip(found[place], others.T, strict=True)])
            last.append(found[-1])
        p = [rank_p_value(each, n_ranks=LENGTH) for each in np.array(ranks).T] if "ranks" in kinds else []
        if "joint" in kinds:
            first = [figures(sampler, state) for state, sampler in (joint_draw(model, make, rng) for _ in range(size))]
            p += [same_law_p_value(*each) for each in zip(np.array(first).T, np.array(last).T, strict=True)]
        return p

    return p_values


def passes(pair, mixing, name, *, size, **given):
    model, makers = PAIRS[pair]
    return sequential(p_values_of(model(mixing=MIXINGS[mixing]), makers[name], seed=61, **given), size=size)


def same_bits(pair, mixing, name):
    """Whether the steps, in the order of a sweep, are what the sampler does: some sweeps of both from one seed."""
    model, makers = PAIRS[pair]
    state, sampler = joint_draw(model(mixing=MIXINGS[mixing]), makers[name], np.random.default_rng(62))
    both = []
    for sweep in (partial(moved, keep=kept_values(sampler)), forwards):
        rng, moving = np.random.default_rng(63), {key: each.copy() for key, each in state.items()}
        for _ in range(5):
            sweep(sampler, moving, rng)
        both.append((moving, rng.random()))
    (one, after), (other, also_after) = both
    return after == also_after and all(np.array_equal(one[key], other[key]) for key in one)


def failures(pair, mixings, names, *, size):
    """Combinations of a pair whose ranks or joint law are wrong, or whose steps are not those of the sampler."""
    return [
        f"{pair} x {mixing} x {name}"
        for mixing, name in product(mixings, names)
        if not (same_bits(pair, mixing, name) and passes(pair, mixing, name, size=size))
    ]


SUM = "update_total(total, statistic, y[i], trial[0])"
RATIO = "log_ratio(statistic, noise, w, total, y[i], trial[0])"
TWINS = {  # file, line, what is wrong in its place; where it is tried
    "a ratio upside down": (
        ("neal5", "math.exp(min(estimate - level[i], 0.0))", "math.exp(min(level[i] - estimate, 0.0))"),
        ("laplace x gaussian", "neal5"),
    ),
    "no jacobian": (
        ("beta", "kernel.shape * (math.log(a) + math.log(b))", "(kernel.shape - 1.0) * (math.log(a) + math.log(b))"),
        ("laplace x beta", "neal5"),
    ),
    "too few sticks": (("slices", "while rest > lowest:", "while used < k + 1:"), ("laplace x gaussian", "slice")),
    "releases not looked at": (
        ("slices", "return log_marginal(", "return 0.0 * log_marginal("),
        ("laplace x gaussian", "marginal-slice"),
    ),
    "a share of one for each new atom": (
        ("neal8", "new_weight(mixing, s, others) / m", "new_weight(mixing, s, others)"),
        ("laplace x gaussian", "neal8"),
    ),
    "no evidence": (("neal2", "+ log_evidence(channel, kernel, alone_seen, 0)", ""), (TOTAL, "neal2")),
    "evidence of members not divided by": (("neal3", " - evidence[h]", ""), (TOTAL, "neal3")),
    "a proposal's probability forgotten": (("split_merge", "whole, 0) - log_q", "whole, 0)"), (TOTAL, "split-merge")),
    "a sum not updated": (("global_neal5", SUM, "total[0] += 0"), ("laplace moments x gaussian", "global-neal5")),
    "a ratio for all records upside down": (
        ("global_slices", RATIO, f"-{RATIO}"),
        ("laplace moments x gaussian", "global-slice"),
    ),
}


def plant(name, old, new):
    """Run a module's source with one line in place of another: a wrong one, or itself to have the right module back."""
    modules = {each: import_module(f"privurn._kernels.mixtures.{each}") for each in (name, "neal3")}
    right, source = dict(vars(modules[name])), Path(modules[name].__file__).read_text()
    assert source.count(old) == 1, "the line to be made wrong is not there any more"
    exec(compile(source.replace(old, new), "wrong", "exec"), vars(modules[name]))
    for key, value in list(vars(modules["neal3"]).items()):  # it has taken split_or_merge by name
        if right.get(key) is value:
            setattr(modules["neal3"], key, vars(modules[name])[key])


FAST = dict.fromkeys(MARGINAL, "laplace x gaussian") | dict.fromkeys(CONJUGATE, TOTAL)
FAST |= dict.fromkeys(GLOBAL, "laplace moments x gaussian")


@pytest.mark.parametrize("name", ["neal5", pytest.param("slice", marks=pytest.mark.long)])
def test_ranks_of_compiled_chains_are_uniform(name):
    assert same_bits("laplace x gaussian", "process", name)
    assert passes("laplace x gaussian", "process", name, size=1000)


@pytest.mark.long
def test_ranks_are_uniform_for_every_sampler():
    assert in_plain_python(__file__, "samplers") == []


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS)
def test_ranks_are_uniform_in_every_combination(pair):
    """With all four mixings and all samplers that take the pair."""
    assert in_plain_python(__file__, pair) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ranks", "joint"])
def test_planted_errors_are_found_out(kind):
    assert in_plain_python(__file__, kind) == dict.fromkeys(TWINS, False)


def main(task):
    """What a process without numba's compiler is asked for: samplers or a pair to check, or twins by one kind of test."""
    if task == "samplers":
        return [each for name, pair in FAST.items() for each in failures(pair, ["process"], [name], size=FEW)]
    if task in PAIRS:
        return failures(task, MIXINGS, PAIRS[task][1], size=MANY)
    found = {}
    for twin, ((file, old, new), (pair, name)) in TWINS.items():
        plant(file, old, new)
        found[twin] = passes(pair, "process", name, size=MANY, kinds=(task,))
        plant(file, old, old)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
