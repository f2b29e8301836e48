"""Samplers of mixtures from one output for all records keep the posterior, by enumeration of all states.

Kernel and statistic are finite here: two known components, three values, at most three records. The posterior of (clusters,
atoms, values) is written out below, independently of the code. Neal 5 draws nothing but uniforms in this case, so its
transition matrix is enumerated from the very code that is compiled (see mixture_states.py): pi P = pi to rounding. The
slice sampler also draws gamma variables: chains that start at the posterior must still have it after some sweeps.
"""

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from mixture_states import digests, in_plain_python, log_urn, p_value, partitions, states_after, transition_error

from privurn._kernels.dispatch import implement
from privurn._kernels.mixtures.global_channels import amount, log_change, position, width
from privurn.errors import DomainError, ModelError
from privurn.inference import mixtures as mix
from privurn.inference.mixtures.global_samplers import (
    GlobalMixtureModel,
    GlobalNeal5,
    GlobalSlice,
    OwnGlobalChannel,
    fit_global_mixture,
)
from privurn.inference.sampler import Run, concatenated
from privurn.mechanisms.local import LaplaceChannel, NoisyStatisticChannel, SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic, MarginalsStatistic, MomentsStatistic

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

ALPHA = 1e-6
BASE = np.array([0.3, 0.7])
F = np.array([[0.7, 0.2, 0.1], [0.25, 0.3, 0.45]])
COUNTS = (1, -1, 1)
"""Released noisy counts of three values; drawn numbers of bins are [0, 0, 2, 2, 2].

Two of them lie within the possible counts: elsewhere Laplace noise gives ratios that do not depend on the sum."""

MIXINGS = {
    "process": ("DirichletProcess", {"strength": 0.8}),
    "discount": ("PitmanYorProcess", {"discount": 0.2, "strength": 0.3}),
    "finite": ("FiniteDirichlet", {"components": 3, "strength": 1.2}),
}
CODES = HistogramStatistic(bounds=(-0.5, 2.5), bins=3)


class Sum(NamedTuple):
    """A user's statistic: the sum of the codes."""

    on: int = 1


class Cauchy(NamedTuple):
    """A user's noise."""

    scale: float


implement(width, Sum)(lambda statistic: 1)
implement(position, Sum)(lambda statistic, y, e: 0)
implement(amount, Sum)(lambda statistic, y, e: y[0])


@implement(log_change, Cauchy)
def _(noise, w, before, after):
    return math.log1p(((w - before) / noise.scale) ** 2) - math.log1p(((w - after) / noise.scale) ** 2)


def toy(kind, n, noise="laplace"):
    """Model and output: three codes counted, with noise or by draws."""
    if noise == "own":
        channel = OwnGlobalChannel(statistic_record=Sum(), noise_record=Cauchy(0.7), start=((0,),) * n)
        kernel = mix.ComponentsKernel(base=BASE, f=F)
        return GlobalMixtureModel(channel=channel, kernel=kernel, mixing=getattr(mix, kind[0])(**kind[1])), [2.5]
    if noise == "smoothed":
        channel = SmoothedHistogramChannel(bounds=(-0.5, 2.5), bins=3, n=n, draws=5, weight=Fraction(1, 5))
    else:
        channel = NoisyStatisticChannel(statistic=CODES, n=n, noise=noise, scale=1.3)
    kernel = mix.ComponentsKernel(base=BASE, f=F)
    model = GlobalMixtureModel(channel=channel, kernel=kernel, mixing=getattr(mix, kind[0])(**kind[1]))
    return model, [0, 0, 2, 2, 2] if noise == "smoothed" else COUNTS


def likelihood(y, noise):
    """Probability of the output given all values, up to a factor."""
    found = 1.0
    if noise == "own":
        return 1.0 / (1.0 + ((2.5 - sum(y)) / 0.7) ** 2)
    for v in range(3):
        count = sum(each == v for each in y)
        if noise == "smoothed":
            found *= (0.8 * count / len(y) + 0.2 / 3) ** (0, 0, 2, 2, 2).count(v)
        elif noise == "laplace":
            found *= math.exp(-abs(COUNTS[v] - count) / 1.3)
        else:
            found *= math.exp(-0.5 * ((COUNTS[v] - count) / 1.3) ** 2)
    return found


def posterior(n, kind, noise="laplace"):
    """States (clusters, atoms, values) and their probabilities: urn x base x kernel x channel."""
    states, weights = [], []
    for c in partitions(n):
        for atoms in product(range(2), repeat=max(c) + 1):
            for y in product(range(3), repeat=n):
                prior = math.exp(log_urn(c, kind)) * math.prod(BASE[a] for a in atoms)
                weight = prior * math.prod(F[atoms[h], v] for h, v in zip(c, y, strict=True)) * likelihood(y, noise)
                if weight > 0.0:
                    states.append((c, atoms, y))
                    weights.append(weight)
    weights = np.array(weights)
    return states, weights / weights.sum()


def matrix_error(n, kind, *, noise="laplace", first=0, atoms_too=True, values="drawn"):
    """Largest entry of pi P - pi, P the law of one pass of Neal 5 from record `first` on (and of the atoms' update).

    Records move with values that are drawn for their new clusters, or with those that they have.
    """
    from privurn._kernels.mixtures.clusters import update_atoms, update_labels
    from privurn._kernels.mixtures.global_channels import total_of
    from privurn._kernels.mixtures.global_neal5 import update_clusters, update_clusters_given_values
    from privurn._kernels.mixtures.neal5 import enlarged, enlarged_counts

    model, output = toy(kind, n, noise)
    seen, kernel, mixing = model.observe(output), model.kernel.record(), model.mixing.record()
    states, pi = posterior(n, kind, noise)

    def sweep(state, rng):
        c, y = np.array(state[0]), np.array(state[2])[:, None]
        atoms = np.array(state[1], float)[:, None]
        k = len(atoms)
        where, room = np.array([first, k, k, 0]), k + n + 1
        atoms, sizes = enlarged(atoms, room), enlarged_counts(np.bincount(c), room)
        total, free = total_of(seen.channel[0], y, len(seen.z)), np.zeros(room, int)
        strength = model.mixing.first_strength
        if values == "drawn":
            update_clusters(*seen.channel, kernel, mixing, strength, seen.z, c, y, total, atoms, sizes, free, where, rng)
        else:
            update_clusters_given_values(kernel, mixing, strength, c, y, atoms, sizes, free, where, rng)
        atoms, sizes = update_labels(c, atoms, where[2])
        if atoms_too:
            update_atoms(kernel, atoms, c, y, 1, F.shape[1], np.zeros(2), False, rng)
        return tuple(c.tolist()), tuple(atoms[:, 0].astype(int).tolist()), tuple(y[:, 0].tolist())

    return transition_error(sweep, states, pi)


def chains():
    """Digests of everything that a few sweeps of both samplers give."""
    from privurn.inference.run import Schedule, run_chains

    model, _ = toy(MIXINGS["process"], 6)
    keep = mix.Keep(latent=True, allocations=True)
    found = {}
    for make in (GlobalNeal5, GlobalSlice):
        draws = run_chains(
            make(model=model, released=(1, 5, -2), keep=keep), schedule=Schedule(chains=1, warm_up=20, draws=30, thin=2, seed=3)
        )
        found[make.name] = digests(draws)
    return found


def test_one_sweep_of_neal5_keeps_the_posterior_exactly():
    for name, (error, n_states, n_paths) in in_plain_python(__file__, "matrices").items():
        assert n_states >= 50, name
        assert n_paths > 1000, name
        assert error < 1e-12, f"{name}: pi P differs from pi by {error:.1e}"


def test_wrong_moves_of_neal5_do_not():
    """Ratios upside down; a sum that is not updated when a record was replaced."""
    for name, error in in_plain_python(__file__, "wrong").items():
        assert error > 1e-3, name


def test_compiled_and_plain_chains_are_the_same_bit_by_bit():
    assert in_plain_python(__file__, "chains") == chains()


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("process", "laplace"),
        *(pytest.param(name, "laplace", marks=pytest.mark.long) for name in ("discount", "finite")),
        *(pytest.param("process", noise, marks=pytest.mark.long) for noise in ("gaussian", "smoothed", "own")),
    ],
)
def test_sweeps_of_the_slice_sampler_keep_the_posterior(name, noise):
    rng = np.random.default_rng(11)
    states, pi = posterior(3, MIXINGS[name], noise)
    model, output = toy(MIXINGS[name], 3, noise)
    found = states_after(
        GlobalSlice(model=model, released=output), states, rng.choice(len(pi), size=30_000, p=pi), rng, sweeps=3
    )
    p = p_value(found, pi)
    assert p > ALPHA, f"p = {p:.1e}: rejects a right sampler with probability {ALPHA}"


UPDATE = "update_total(total, statistic, y[i], trial[0])"
RATIO = "log_ratio(statistic, noise, w, total, y[i], trial[0])"


@pytest.mark.parametrize(
    "old_new", [(UPDATE, "total[0] += 0"), pytest.param((RATIO, f"-{RATIO}"), marks=pytest.mark.long)], ids=["sum", "ratio"]
)
def test_wrong_slice_samplers_are_found_out(old_new):
    from privurn._kernels.mixtures import global_slices as right

    source = Path(right.__file__).read_text()
    assert source.count(old_new[0]) == 1
    wrong = {"__name__": "wrong"}
    exec(compile(source.replace(*old_new), "wrong", "exec"), wrong)

    class Wrong(GlobalSlice):
        def draw(self, state, rng, *, sweeps, thin, warming, keep):
            return self._run(wrong["run_global_slices"], state, sweeps, thin, warming, keep, rng)

    rng = np.random.default_rng(12)
    states, pi = posterior(3, MIXINGS["process"])
    model, output = toy(MIXINGS["process"], 3)
    found = states_after(Wrong(model=model, released=output), states, rng.choice(len(pi), size=30_000, p=pi), rng, sweeps=3)
    assert p_value(found, pi) < ALPHA


TABLES = MarginalsStatistic(sizes=(3, 2, 4), marginals=((0,), (2, 0), (1,)))
NUMBERS = {"bounds": (-1.0, 3.0)}
CHANNELS = {
    "laplace counts": NoisyStatisticChannel.calibrate(
        statistic=HistogramStatistic(**NUMBERS, bins=7), n=12, noise="laplace", epsilon=1.5
    ),
    "gaussian counts": NoisyStatisticChannel(
        statistic=HistogramStatistic(**NUMBERS, bins=7), n=12, noise="gaussian", scale=0.9
    ),
    "laplace moments": NoisyStatisticChannel.calibrate(statistic=MomentsStatistic(**NUMBERS), n=12, noise="laplace", epsilon=3),
    "gaussian moments": NoisyStatisticChannel(
        statistic=MomentsStatistic(**NUMBERS, degree=3), n=12, noise="gaussian", scale=0.4
    ),
    "smoothed histogram": SmoothedHistogramChannel.calibrate(**NUMBERS, bins=5, n=12, draws=9, epsilon=4),
    "laplace marginals": NoisyStatisticChannel.calibrate(statistic=TABLES, n=12, noise="laplace", epsilon=2),
    "codes, moments": NoisyStatisticChannel.calibrate(
        statistic=MomentsStatistic(bounds=(0, 4)), n=12, noise="laplace", epsilon=2
    ),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_ratios_are_the_channels_and_none_is_below_the_guarantee(name):
    """Random records, outputs and replacements: the compiled ratio, the channel's own, and exp(-epsilon)."""
    from privurn._kernels.mixtures.global_channels import log_ratio, total_of, update_total

    channel, rng = CHANNELS[name], np.random.default_rng(5)
    if name == "laplace marginals":
        kernel = mix.CategoricalKernel(categories=TABLES.sizes)
    else:
        kernel = mix.CategoricalKernel(categories=(5,)) if name.startswith("codes") else mix.GaussianKernel()

    def records(size):
        if kernel.categorical:
            return np.stack([rng.integers(k, size=size) for k in kernel.categories], axis=1)
        return rng.normal(1.0, 2.0, size=size)  # many outside the bounds

    smallest = 0.0
    for _ in range(100):
        data = records(12)
        plain = data[:, 0] if name.startswith("codes") else data
        output = channel.simulate(records(12)[:, 0] if name.startswith("codes") else records(12), rng=rng)
        seen = GlobalMixtureModel(channel=channel, kernel=kernel).observe(output)
        statistic, noise = seen.channel
        total = total_of.py_func(statistic, data, len(seen.z))
        assert total.tolist() == channel.total(plain).tolist()
        summary = channel.summary(output)
        for new in records(10):
            ratio = log_ratio.py_func(statistic, noise, seen.z, total, data[0], new)
            old_new = (plain[0], new[0] if name.startswith("codes") else new)
            assert ratio == pytest.approx(channel.log_ratio(summary, total, old=old_new[0], new=old_new[1]), abs=1e-9)
            smallest = min(smallest, ratio)
            update_total.py_func(total, statistic, data[0], new)
            data[0] = new
            plain = data[:, 0] if name.startswith("codes") else data
            assert total.tolist() == channel.total(plain).tolist()
    epsilon = channel.profile.pure_epsilon
    assert smallest >= -epsilon * (1.0 + 1e-12)
    assert smallest < -0.2, "no replacement mattered"
    assert smallest < -0.5 * epsilon or math.isinf(epsilon) or "counts" not in name, "the bound was not approached"


@pytest.mark.parametrize("make", [GlobalNeal5, GlobalSlice])
def test_a_run_may_be_cut_anywhere(make):
    model, _ = toy(MIXINGS["process"], 6)
    sampler = make(model=model, released=(1, 5, -2), keep=mix.Keep(latent=True, allocations=True))

    def run(*pieces):
        rng = np.random.default_rng(8)
        state, found = sampler.start(rng), []
        for sweeps in pieces:
            found.append(sampler.advance(state, rng, sweeps=sweeps, thin=1, warming=False)[0])
        return {name: concatenated([each[name] for each in found]) for name in found[0]}

    whole, cut = run(12), run(5, 1, 6)
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)
    assert sampler.fingerprint() != make(model=model, released=(1, 5, -1)).fingerprint()


@pytest.mark.usefixtures("interpreted")
def test_killed_runs_continue(tmp_path):
    model, _ = toy(MIXINGS["process"], 6)
    given, run = {"model": model, "sampler": "slice"}, Run(draws=40, warm_up=20, thin=1, chains=2, seed=4)
    file = tmp_path / "chains.npz"

    def interrupt(done, total, figures):
        if done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_global_mixture((1, 5, -2), run=replace(run, checkpoint=file, progress=interrupt), **given)
    assert file.exists()
    continued = fit_global_mixture((1, 5, -2), run=replace(run, checkpoint=file), **given)
    whole = fit_global_mixture((1, 5, -2), run=run, **given)
    assert np.array_equal(continued.draws["weights"], whole.draws["weights"])


def test_what_does_not_fit_is_refused():
    counts = CHANNELS["laplace counts"]
    with pytest.raises(ModelError, match="smoothed histogram or a noisy statistic"):
        GlobalMixtureModel(channel=LaplaceChannel.calibrate(bounds=(0, 1), epsilon=1), kernel=mix.GaussianKernel())
    with pytest.raises(ModelError, match="kernel and a mixing"):
        GlobalMixtureModel(channel=counts, kernel="gaussian")
    with pytest.raises(ModelError, match="kernel is for numbers"):
        GlobalMixtureModel(channel=CHANNELS["laplace marginals"], kernel=mix.GaussianKernel())
    with pytest.raises(ModelError, match="other categories"):
        GlobalMixtureModel(channel=CHANNELS["laplace marginals"], kernel=mix.CategoricalKernel(categories=(3, 2, 2)))
    with pytest.raises(ModelError, match="need noisy marginals"):
        GlobalMixtureModel(channel=counts, kernel=mix.CategoricalKernel(categories=(3, 2)))
    own = OwnGlobalChannel(statistic_record=Sum(), noise_record=Cauchy(1.0), start=((0,), (1,)))
    with pytest.raises(ModelError, match="to start from"):
        fit_global_mixture([1], model=GlobalMixtureModel(channel=own, kernel=mix.GaussianKernel()))
    with pytest.raises(ModelError, match="each coordinate"):
        fit_global_mixture([], model=GlobalMixtureModel(channel=own, kernel=mix.CategoricalKernel(categories=(2,))))
    model = GlobalMixtureModel(channel=counts, kernel=mix.GaussianKernel())
    assert model.n == 12
    with pytest.raises(ModelError, match="one number for each coordinate"):
        fit_global_mixture([1, 2], model=model)
    with pytest.raises(DomainError, match="finite"):
        fit_global_mixture([np.nan] * 7, model=model)
    with pytest.raises(DomainError, match="numbers"):
        fit_global_mixture(["a"] * 7, model=model)
    with pytest.raises(ModelError, match="not known"):
        fit_global_mixture([1] * 7, model=model, sampler="neal2")


def main(task):
    if task == "chains":
        return chains()
    if task == "matrices":
        process = MIXINGS["process"]
        found = {noise: matrix_error(2, process, noise=noise, atoms_too=False) for noise in ("gaussian", "smoothed", "own")}
        found["with atoms"] = matrix_error(2, process)
        found["with their values"] = matrix_error(2, process, values="kept")
        for name in ("discount", "finite"):
            last = {"first": 2, "atoms_too": False}
            found[f"the last of three records, {name}"] = matrix_error(3, MIXINGS[name], **last)
            found[f"the last of three with its value, {name}"] = matrix_error(3, MIXINGS[name], **last, values="kept")
        return found
    from privurn._kernels.mixtures import global_neal5

    right, update = global_neal5.log_ratio, global_neal5.update_total
    global_neal5.log_ratio = lambda *given: -right(*given)
    found = {"upside down": matrix_error(2, MIXINGS["process"], atoms_too=False)[0]}
    global_neal5.log_ratio = right
    global_neal5.update_total = lambda *given: None
    found["not updated"] = matrix_error(2, MIXINGS["process"], atoms_too=False)[0]
    global_neal5.update_total = update
    density = global_neal5.log_kernel
    global_neal5.log_kernel = lambda *given: -density(*given)
    found["upside down given values"] = matrix_error(2, MIXINGS["process"], atoms_too=False, values="kept")[0]
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
