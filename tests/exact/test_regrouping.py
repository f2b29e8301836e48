"""Moves that sum clusters and values out keep the posterior, and the densities they are made of are integrals.

Finite kernel and channel: chains that start at the enumerated posterior must still have it after moves of this kind alone
(chi-square), though their steps take all released values for the same. Pairs of Gaussian atoms: the step that keeps mean and
variance must keep the law of two atoms from the base measure and of their share, which is known; so must the steps of one and
two Beta atoms. Without data, weights given the clusters of an urn, in size-biased order, have the prior's law, and steps must
keep it. Gaussian and Beta kernels behind noise: the law of prior, releases and moves together (Geweke 2004). A right program
fails each with probability ALPHA or less, and each has twins that carry an error and are rejected. All but the joint law runs
as plain Python, where the same source gives the same chain bit by bit. Cells are replaced by nodes that have their moments.
That records of S keep their clusters, a Gibbs draw left out, is a wrong move that none of these finds.
"""

import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import test_mixture_samplers as enumerated
from mixture_states import in_a_process, in_plain_python, p_value, states_after
from scipy import integrate, stats

ALPHA = 1e-6
MIXINGS = enumerated.MIXINGS | {"several": ("DirichletProcess", {"strength": 3.0})}
TWINS = {  # file, line, what is wrong in its place; the check that finds it
    "no Jacobian of a pair": ("gaussian", "return new, -0.5 * math.log(new * rest / (p * q))", "return new, 0.0", "pairs"),
    "cells are taken for the values": ("regroup", "math.exp(min(right - change, 0.0))", "1.0", "states"),
    "the number of atoms looks at the clusters": (
        "regroup",
        "largest = MOST_ATOMS * math.sqrt(min(max(s, 1.0), MOST_STRENGTH))",
        "largest = 1.0 if k > 2 else 30.0",
        "states",
    ),
    "no law of the order": ("regroup", "for t in range(first, last):", "for t in range(0):", "prior"),
    "fresh atoms are too heavy": ("regroup", "rng.standard_gamma(1.0 + shift)", "rng.standard_gamma(2.0)", "prior"),
    "a Jacobian of moments upside down": (
        "beta",
        "(1.0 - mean) * s) - math.log(",
        "(1.0 - mean) * s) + math.log(",
        "beta pairs",
    ),
    "a share drawn anew as if evenly": ("beta", " + (far - abs(math.log(p / q))) / FAR", "", "beta pairs"),
    "values above are not summed out": ("beta_pairs", "room[0, p] + room[1, p]", "room[0, p]", "beta joint"),
    "values are of old clusters": (
        "regroup",
        "update_values(channel, kernel, z, c, y, m, everything, inside, rng)",
        "0",
        "joint",
    ),
}


TWIN = "no law of the order"


def only_moves(**given):
    """A sampler without sweeps of its own."""
    from privurn.inference.mixtures import Neal5

    class Only(Neal5):
        def draw(self, state, rng, *, sweeps, thin, warming, keep):
            return state["atoms"]

    return Only(**given)


def p_of_states(name="several", *, n=4, starts=4000):
    """All released values are in one cell, so that only the last decision of a move knows them apart."""
    from privurn._kernels.mixtures import regroup

    regroup.MOST_ATOMS = 5  # records beyond are met often, and plain Python has less to do
    enumerated.F, enumerated.Q = np.array([[0.97, 0.03], [0.1, 0.9]]), np.array([[0.9, 0.07, 0.03], [0.04, 0.11, 0.85]])
    rng, kind = np.random.default_rng(11), MIXINGS[name]
    states, pi = enumerated.posterior(n, 1, kind)
    sampler = only_moves(model=enumerated.toy(kind), released=np.array(enumerated.Z[:n]), regroup=2)
    points, at, *_ = sampler._cells
    object.__setattr__(sampler, "_cells", (points, at, points[1:2], np.zeros(n, np.int64), np.ones((1, 1))))
    found = states_after(sampler, states, rng.choice(len(pi), size=starts, p=pi), rng, sweeps=2)
    of = {key: t for t, key in enumerate(dict.fromkeys((c, atoms, y[0]) for c, atoms, y in states))}
    groups = np.array([of[c, atoms, y[0]] for c, atoms, y in states])  # fewer, so that all of them are seen often
    return p_value(groups[found], np.bincount(groups, weights=pi))


def p_of_pairs(*, size=5000, steps=30, shapes=(0.6, 0.5)):
    """Least p value of share, means and deviations after some steps, against the laws they were drawn from."""
    from privurn._kernels.mixtures.gaussian import GaussianKernel, log_pair_step, update_from_base

    kernel, rng = GaussianKernel(0.5, 0.5, 4.0, 3.0), np.random.default_rng(12)
    found = np.empty((size, 5))
    for t in range(size):
        atoms, share = np.empty((2, 3)), rng.beta(*shapes)
        for step in range(steps):
            if step % 6 == 0:  # atoms are independent of the share
                update_from_base(kernel, atoms, 0, rng)
                update_from_base(kernel, atoms, 1, rng)
            trial = atoms.copy()
            new, ratio = log_pair_step(kernel, trial, 0, 1, share, math.exp(rng.normal()), rng)
            if ratio > -math.inf:
                ratio += shapes[0] * math.log(new / share) + shapes[1] * math.log((1.0 - new) / (1.0 - share))
            if rng.random() < math.exp(min(ratio, 0.0)):
                share, atoms = new, trial
        found[t] = share, *atoms[0, :2], *atoms[1, :2]
    variance = stats.invgamma(kernel.shape, scale=kernel.scale)
    mean = stats.t(2.0 * kernel.shape, kernel.mean, math.sqrt(kernel.scale / (kernel.shape * kernel.precision)))
    laws = stats.beta(*shapes).cdf, mean.cdf, lambda s: variance.cdf(s**2), mean.cdf, lambda s: variance.cdf(s**2)
    return len(laws) * min(stats.kstest(values, law).pvalue for values, law in zip(found.T, laws, strict=True))


def p_of_beta_pairs(*, size=6000, steps=30, shapes=(0.6, 0.5)):
    """The same of Beta atoms, whose parameters are gamma; some steps are of one atom."""
    from privurn._kernels.mixtures.beta import BetaKernel, log_pair_step, log_step, update_from_base

    kernel, rng = BetaKernel(2.0, 1.5), np.random.default_rng(16)
    found = np.empty((size, 5))
    for t in range(size):
        atoms, share = np.empty((2, 3)), rng.beta(*shapes)
        for h in range(2):
            update_from_base(kernel, atoms, h, rng)
        for step in range(steps):
            trial, new, far = atoms.copy(), share, math.exp(rng.normal())
            if step % 10 == 0:
                ratio = log_step(kernel, trial, step % 20 // 10, far, rng)
            else:
                new, ratio = log_pair_step(kernel, trial, 0, 1, share, far, rng)
                if ratio > -math.inf:
                    ratio += shapes[0] * math.log(new / share) + shapes[1] * math.log((1.0 - new) / (1.0 - share))
            if rng.random() < math.exp(min(ratio, 0.0)):
                share, atoms = new, trial
        found[t] = share, *atoms[0, :2], *atoms[1, :2]
    law = stats.gamma(kernel.shape, scale=1.0 / kernel.rate).cdf
    laws = stats.beta(*shapes).cdf, law, law, law, law
    return len(laws) * min(stats.kstest(values, each).pvalue for values, each in zip(found.T, laws, strict=True))


def p_of_prior(mixings=((3.0, 0.0), (1.0, -0.4), (2.0, 0.5)), *, size=1500, steps=12, n=5, places=3):
    """Least p value of weights and atoms after steps without data, against the prior's laws; strengths and offsets of mixings.

    Clusters come from the urn, so that the weights given them, in size-biased order, have the prior's law before the steps too.
    """
    from privurn._kernels.mixtures import gaussian_pairs  # noqa: F401 (it registers its pairs)
    from privurn._kernels.mixtures.channels import Laplace
    from privurn._kernels.mixtures.gaussian import GaussianKernel
    from privurn._kernels.mixtures.kernels import update_from_base
    from privurn._kernels.mixtures.regroup import moved, update_first

    kernel, rng, none = GaussianKernel(0.5, 0.5, 4.0, 3.0), np.random.default_rng(12), np.empty(0)
    variance = stats.invgamma(kernel.shape, scale=kernel.scale)
    mean = stats.t(2.0 * kernel.shape, kernel.mean, math.sqrt(kernel.scale / (kernel.shape * kernel.precision)))
    p_values = []
    for s, shift in mixings:
        found = np.empty((size, 3 * places))
        for t in range(size):
            sizes = [1]
            for _ in range(n - 1):
                urn = np.array([each + shift for each in sizes] + [max(s - shift * len(sizes), 0.0)])
                h = int(rng.choice(len(urn), p=urn / urn.sum()))
                sizes[h:] = [sizes[h] + 1, *sizes[h + 1 :]] if h < len(sizes) else [1]
            shares, rests, rows = np.empty(places), np.empty(places), np.empty((places + 2, 3))
            members, labels = np.empty(places, np.int64), np.empty(len(sizes), np.int64)
            assert update_first(np.array(sizes), s, shift, shares, rests, members, labels, rng) == places
            for j in range(places):
                update_from_base(kernel, rows, j, rng)
            masses = np.empty((places + 2, 0))
            for _ in range(steps):
                given = (none, rows, shares, rests, masses, none, none, places, shift, n, 1.0)
                assert moved(Laplace(1.0, -1.0, 1.0), kernel, *given, rng) == 0.0
            after = shares / (shares[::-1].cumsum()[::-1] + rests[-1])
            assert rests == pytest.approx(1.0 - shares.cumsum(), abs=1e-9)
            found[t] = *after, *rows[:places, 0], *rows[:places, 1]
        laws = [stats.beta(1.0 + shift, s - shift * (j + 1)).cdf for j in range(places)]
        laws += [mean.cdf] * places + [lambda each: variance.cdf(each**2)] * places
        p_values += [stats.kstest(values, law).pvalue for values, law in zip(found.T, laws, strict=True)]
    return len(p_values) * min(p_values)


def moments_of(atoms):
    """Means and deviations of Beta atoms."""
    a, b = atoms[:, 0], atoms[:, 1]
    return a / (a + b), np.sqrt(a * b / (1.0 + a + b)) / (a + b)


def unit_channels():
    """For values between 0 and 1."""
    from privurn.mechanisms.local import GaussianChannel, LaplaceChannel

    laplace, gaussian = LaplaceChannel.calibrate(bounds=(0, 1), epsilon=6), GaussianChannel(bounds=(0, 1), scale=0.2)
    return {"laplace": laplace, "gaussian": gaussian}


def p_of_joint_law(channel="laplace", *, kernel="gaussian", size=12_000, cells=2):
    """Least p value of figures of states after three moves at their own releases, against the prior's; in wide cells."""
    sys.path.append(str(Path(__file__).parents[1] / "statistical"))
    from test_mixture_laws import CHANNELS, KERNELS, MIXINGS, N, keep_nothing, prior_state, released, statistics_of

    from privurn.inference import mixtures as mix
    from privurn.inference.mixtures import samplers

    samplers.CELLS = cells, cells
    local = unit_channels()[channel] if kernel == "beta" else CHANNELS[channel]
    model = mix.MixtureModel(channel=local, kernel=KERNELS[kernel], mixing=MIXINGS["discount"])
    rng = np.random.default_rng(13)
    figures = {False: [], True: []}
    for _ in range(size):
        for moved, into in figures.items():
            state = prior_state(model, rng)
            z = released(model, state["latent"], rng)
            if moved:
                sampler = only_moves(model=model, released=z, regroup=20)
                state["atoms"] = sampler.sweep(state, rng, sweeps=3, thin=1, warming=False, keep=keep_nothing(model))
            atoms, c = state["atoms"], state["allocations"]
            centre, deviation = moments_of(atoms) if kernel == "beta" else (atoms[:, 0], atoms[:, 1])
            spread, sizes = np.log(deviation), np.bincount(c)
            apart = ((np.ravel(state["latent"]) - centre[c]) / deviation[c]) ** 2
            figures_of_clusters = sizes.max(), (sizes**2).sum(), apart.mean(), apart.max()
            into.append([*statistics_of(state, z, 1), *figures_of_clusters, spread.min(), spread.max(), np.ptp(centre)])
    assert N == 8
    both = zip(np.array(figures[False]).T, np.array(figures[True]).T, strict=True)
    p_values = [
        each for a, b in both if np.ptp(a) > 0.0 for each in (stats.ks_2samp(a, b).pvalue, stats.ttest_ind(a, b).pvalue)
    ]
    return len(p_values) * min(p_values)


CHECKS = {
    "states": p_of_states,
    "pairs": p_of_pairs,
    "beta pairs": p_of_beta_pairs,
    "prior": p_of_prior,
    "joint": p_of_joint_law,
    "beta joint": partial(p_of_joint_law, kernel="beta"),
}


def plant(file, old, new):
    """Run a module's source with another line in place of one, in the module that everybody has."""
    from importlib import import_module

    from privurn._kernels.mixtures import beta_pairs, gaussian_pairs, regroup  # noqa: F401 (names are taken from them)

    module = import_module(f"privurn._kernels.mixtures.{file}")
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1, "the line to be made wrong is not there any more"
    if file == "gaussian":  # its record's type must stay the same
        before = module.GaussianKernel
        exec(compile(source.replace(old, new), "wrong", "exec"), vars(module))
        module.log_pair_step.table[before,] = module.log_pair_step.table[module.GaussianKernel,]
    else:
        exec(compile(source.replace(old, new), "wrong", "exec"), vars(module))
    if file == "beta_pairs":  # the moves that were compiled before are not taken
        exec(compile(Path(regroup.__file__).read_text(), "right", "exec"), vars(regroup))


@pytest.mark.parametrize("channel", ["laplace", "gaussian"])
def test_marginal_densities_are_integrals(channel):
    from privurn._kernels.mixtures import gaussian_pairs  # noqa: F401 (it registers its pairs)
    from privurn._kernels.mixtures.channels import Gaussian, Laplace, log_density
    from privurn._kernels.mixtures.gaussian import GaussianKernel
    from privurn._kernels.mixtures.latent import log_marginal, update_marginals

    make, kernel = {"laplace": Laplace, "gaussian": Gaussian}[channel], GaussianKernel(0.0, 0.1, 3.0, 3.0)
    z = np.array([-9.0, -0.3, 1.0, 7.9, 15.0])
    for scale, atom in ((2.0, (0.4, 1.1)), (10.0, (-14.0, 0.7)), (0.4, (9.5, 5.0)), (0.1, (30.0, 3.0))):
        record, atoms, found = make(scale, -10.0, 10.0), np.array([[*atom, 0.0]]), np.empty((1, len(z)))
        update_marginals.table[make, GaussianKernel](record, kernel, z, atoms, 0, found, 0)
        logs = [log_marginal.table[make, GaussianKernel](record, kernel, each, atoms, 0) for each in z]
        seen = np.array(logs) > -600.0  # what is no float any more is 0
        assert np.log(found[0, seen]) == pytest.approx(np.array(logs)[seen], abs=1e-11)
        if scale >= 1.0:  # wide enough for plain quadrature
            law, marks = stats.norm(*atom), [-10.0, *np.clip(z, -10.0, 10.0), 10.0, atom[0]]
            for i, each in enumerate(z):
                value = integrate.quad(
                    lambda y, seen=each, law=law, record=record: math.exp(log_density(record, seen, y)) * law.pdf(y),
                    *(atom[0] - 12.0 * atom[1], atom[0] + 12.0 * atom[1]),
                    points=[mark for mark in marks if abs(mark - atom[0]) < 12.0 * atom[1]],
                    limit=200,
                )[0]
                base = math.log(value) - (0.0 if channel == "gaussian" else abs(each - np.clip(each, -10, 10)) / -scale)
                assert math.log(found[0, i]) == pytest.approx(base, abs=1e-8)


def test_moves_keep_the_posterior():
    found = in_plain_python(__file__, "right")
    assert min(found.values()) > ALPHA, found


def test_two_nodes_have_the_first_three_moments_of_their_cell():
    from privurn.inference import mixtures as mix
    from privurn.inference.mixtures.samplers import cells_of
    from privurn.mechanisms.local import LaplaceChannel

    released = np.random.default_rng(15).laplace(0.0, 4.0, size=3000)
    model = mix.MixtureModel(channel=LaplaceChannel(bounds=(-6, 6), scale=2.0), kernel=mix.GaussianKernel())
    points, at, nodes, cells, portions = cells_of(model.observe(released))
    clamped = np.clip(released, -6.0, 6.0)
    assert np.array_equal(points[at], clamped)
    assert len(nodes) == portions.size <= 50  # a step costs so many terms
    pairs = nodes.reshape(portions.shape)
    for power in range(4):
        found = (portions * pairs**power).sum(axis=1)
        assert found == pytest.approx(np.bincount(cells, weights=clamped**power) / np.bincount(cells), rel=1e-9, abs=1e-9)
    ends = [(cells == cells[clamped == end][0]).sum() for end in (-6.0, 6.0)]
    assert ends == [(clamped == -6.0).sum(), (clamped == 6.0).sum()]  # nothing else lies there


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kernel", ["gaussian", "beta", pytest.param("beta behind Gaussian noise", marks=pytest.mark.long)])
def test_kernels_on_numbers_are_regrouped_unless_asked_otherwise(kernel, monkeypatch):
    from privurn import Run
    from privurn.errors import ModelError
    from privurn.inference import mixtures as mix
    from privurn.mechanisms.local import LaplaceChannel

    channel, law = LaplaceChannel(bounds=(-6, 6), scale=2.0), mix.GaussianKernel()
    if kernel != "gaussian":
        channel, law = unit_channels()["laplace" if kernel == "beta" else "gaussian"], mix.BetaKernel()
    model = mix.MixtureModel(channel=channel, kernel=law)
    monkeypatch.setattr("privurn.inference.mixtures.posterior.REGROUP", 1)
    given = {"model": model, "run": Run(chains=1, warm_up=1, draws=3, thin=1, seed=1, threads=1)}
    released, keep = np.array([-4.0, -3.0, 2.5, 4.0, 9.0]), mix.Keep(allocations=True)
    integrals = kernel == "beta behind Gaussian noise"  # few records are swept without such moves there
    usual = mix.fit_mixture(released, keep=keep, moves="regrouped" if integrals else "auto", **given).draws
    assert usual.attributes["moves"] == "regrouped"
    assert usual["weights"].sum(axis=-1) == pytest.approx(1.0)
    assert np.array_equal(usual["allocations"].max(axis=-1) + 1, usual["n_clusters"])
    assert mix.fit_mixture(released, moves="plain", **given).draws.attributes["moves"] == "plain"
    with pytest.raises(ModelError, match="not known"):
        mix.fit_mixture(released, moves="wild", **given)


@pytest.mark.parametrize("n", [2, 500, 5000])
def test_moves_that_cost_integrals_are_made_where_they_are_worth_it(n):
    from privurn.inference import mixtures as mix
    from privurn.inference.mixtures.posterior import choose_sampler, with_moves
    from privurn.mechanisms.local import GaussianChannel, LaplaceChannel

    def regrouped(channel):
        model, z = mix.MixtureModel(channel=channel, kernel=mix.BetaKernel()), np.linspace(-4.0, 5.0, n) * channel.scale
        return with_moves(choose_sampler(model, z, keep=mix.Keep())[0], "auto").regroup > 0

    assert regrouped(LaplaceChannel(bounds=(0, 1), scale=0.3))
    assert regrouped(GaussianChannel(bounds=(0, 1), scale=0.3)) == (n == 5000)


@pytest.mark.long
@pytest.mark.parametrize("task", ["more", "joint laws"])
def test_moves_keep_the_posterior_of_every_mixing_and_channel(task):
    found = in_plain_python(__file__, task) if task == "more" else in_a_process(__file__, task)
    assert min(found.values()) > ALPHA, found


@pytest.mark.parametrize("twin", [TWIN, *(pytest.param(each, marks=pytest.mark.long) for each in TWINS if each != TWIN)])
def test_wrong_moves_are_found_out(twin):
    found = in_a_process(__file__, twin) if "joint" in TWINS[twin][-1] else in_plain_python(__file__, twin)
    assert found["p"] < ALPHA


def main(task):
    if task == "right":
        return {name: float(CHECKS[name]()) for name in ("states", "pairs", "beta pairs", "prior")}
    if task == "more":
        return {name: p_of_states(name, starts=20_000) for name in MIXINGS}
    if task == "joint laws":
        found = {f"{name}, {cells}": p_of_joint_law(name, cells=cells) for name in ("laplace", "gaussian") for cells in (2, 64)}
        sizes = {"laplace": 12_000, "gaussian": 3000}  # nodes take longer than series
        return found | {f"{name}, beta": p_of_joint_law(name, kernel="beta", size=size) for name, size in sizes.items()}
    file, old, new, check = TWINS[task]
    plant(file, old, new)
    return {"p": float(CHECKS[check]())}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
