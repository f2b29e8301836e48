"""Samplers of mixtures keep the posterior, by enumeration of all states.

Kernel and channel are finite here: two known components, two or three values. The state of a chain is then one of a few
hundred (clusters, atoms, latent values), and its posterior is a product that is written out below, independently of the code.

Private Neal 5 draws nothing but uniforms in this case. Run without numba on uniforms that branch wherever the code compares
them, one sweep gives the transition matrix of the very code that is compiled, and pi P = pi to rounding. The slice sampler
also draws gamma variables: chains that start at the posterior must still have it after some sweeps (chi-square, alpha 1e-6).
"""

import json
import math
import sys
from itertools import product

import numpy as np
import pytest
from mixture_states import digests, in_plain_python, log_urn, p_value, partitions, states_after, transition_error

BASE = np.array([0.3, 0.7])
F = np.array([[0.8, 0.2], [0.35, 0.65]])
Q = np.array([[0.6, 0.3, 0.1], [0.15, 0.25, 0.6]])
Z = (0, 2, 1, 2)
ALPHA = 1e-6
MIXINGS = {
    "process": ("DirichletProcess", {"strength": 0.8}),
    "discount": ("PitmanYorProcess", {"discount": 0.3, "strength": 0.3}),
}
MIXINGS["finite"] = ("FiniteDirichlet", {"components": 3, "strength": 1.2})


def posterior(n, m, kind):
    """States (clusters, atoms, latent values) and their probabilities: urn x base x kernel x mean of the channel."""
    states, weights = [], []
    for c in partitions(n):
        for atoms in product(range(len(BASE)), repeat=max(c) + 1):
            for y in product(range(F.shape[1]), repeat=n * m):
                weight = math.exp(log_urn(c, kind)) * math.prod(BASE[a] for a in atoms)
                for i in range(n):
                    own = y[i * m : i * m + m]
                    weight *= math.prod(F[atoms[c[i]], v] for v in own) * np.mean([Q[v, Z[i]] for v in own])
                if weight > 0.0:
                    states.append((c, atoms, y))
                    weights.append(weight)
    weights = np.array(weights)
    return states, weights / weights.sum()


def neal5_matrix_error(n, m, kind, *, first=0, atoms_too=True):
    """Largest entry of pi P - pi, P the law of one pass from record `first` on (and of the atoms' update)."""
    from privurn._kernels.mixtures.categorical import ComponentsKernel
    from privurn._kernels.mixtures.channels import Table
    from privurn._kernels.mixtures.clusters import update_atoms, update_labels
    from privurn._kernels.mixtures.neal5 import enlarged, enlarged_counts, log_mean_density, update_clusters
    from privurn.inference import mixtures

    channel, kernel = Table(np.log(Q)[None]), ComponentsKernel(BASE, np.log(F))
    mixing = getattr(mixtures, kind[0])(**kind[1])
    record, strength = mixing.record(), mixing.first_strength
    z = np.array(Z[:n])[:, None]
    states, pi = posterior(n, m, kind)

    def sweep(state, rng):
        c, y = np.array(state[0]), np.array(state[2])[:, None]
        atoms = np.array(state[1], float)[:, None]
        k = len(atoms)
        level = np.array([log_mean_density(channel, z[i], y, i * m, m) for i in range(n)])
        where, room = np.array([first, k, k, 0]), k + n + 1
        atoms, sizes = enlarged(atoms, room), enlarged_counts(np.bincount(c), room)
        free, trial = np.zeros(room, int), np.zeros_like(y[:m])
        update_clusters(channel, kernel, record, strength, z, c, y, trial, level, atoms, sizes, free, where, rng)
        atoms, sizes = update_labels(c, atoms, where[2])
        if atoms_too:
            update_atoms(kernel, atoms, c, y, m, F.shape[1], np.zeros(2), False, rng)
        return tuple(c.tolist()), tuple(atoms[:, 0].astype(int).tolist()), tuple(y[:, 0].tolist())

    return transition_error(sweep, states, pi)


def chains_of_the_package(names):
    """A few sweeps of several chains: digests of everything they give."""
    from privurn.inference import mixtures as mix
    from privurn.inference.run import Schedule, run_chains
    from privurn.mechanisms.local import HaarWaveletChannel, LaplaceChannel

    rng = np.random.default_rng(5)
    y = rng.normal([-4.0, 4.0], 1.0, size=(6, 2)).ravel()
    laplace = LaplaceChannel.calibrate(bounds=(-6, 6), epsilon=6)
    wavelet = HaarWaveletChannel.calibrate(bounds=(0, 1), levels=2, epsilon=20)
    z, waves = laplace.simulate(y, rng=rng), wavelet.simulate(rng.beta(3, 9, size=8), rng=rng)
    strength = mix.DirichletProcess(strength=mix.GammaPrior())
    gaussian = mix.MixtureModel(channel=laplace, kernel=mix.GaussianKernel(), mixing=strength)
    beta = mix.MixtureModel(channel=wavelet, kernel=mix.BetaKernel())
    keep = mix.Keep(latent=True, allocations=True)
    samplers = {
        "neal5": mix.Neal5(model=gaussian, released=z, values=2, keep=keep),
        "slice": mix.SliceSampler(model=gaussian, released=z, keep=keep),
        "beta": mix.Neal5(model=beta, released=waves, keep=keep),
    }
    found = {}
    for name in names:
        draws = run_chains(samplers[name], schedule=Schedule(chains=1, warm_up=20, draws=30, thin=2, seed=3))
        found[name] = digests(draws)
    return found


def test_one_sweep_of_neal5_keeps_the_posterior_exactly():
    for name, (error, n_states, n_paths) in in_plain_python(__file__, "matrices").items():
        assert n_states >= 20, name
        assert n_paths > 100, name
        assert error < 1e-12, f"{name}: pi P differs from pi by {error:.1e}"


def test_an_upside_down_ratio_does_not():
    """The acceptance ratio as the paper's text prints it."""
    assert in_plain_python(__file__, "upside-down")["error"] > 1e-3


@pytest.mark.parametrize("names", ["neal5,slice", pytest.param("beta", marks=pytest.mark.long)])
def test_compiled_and_plain_chains_are_the_same_bit_by_bit(names):
    assert in_plain_python(__file__, names) == chains_of_the_package(names.split(","))


def toy(kind):
    from privurn.inference import mixtures as mix

    mixing = getattr(mix, kind[0])(**kind[1])
    kernel = mix.ComponentsKernel(base=BASE, f=F)
    return mix.MixtureModel(channel=mix.TableChannel(probabilities=Q), kernel=kernel, mixing=mixing)


SAMPLERS = [("process", {}), pytest.param("process", {"marginal": True}, marks=pytest.mark.long)]
SAMPLERS += [
    pytest.param(name, given, marks=pytest.mark.long) for name in ("discount", "finite") for given in ({}, {"marginal": True})
]


@pytest.mark.parametrize(("name", "options"), SAMPLERS)
def test_sweeps_of_the_slice_sampler_keep_the_posterior(name, options):
    from privurn.inference.mixtures import SliceSampler

    n, rng = 3, np.random.default_rng(11)
    states, pi = posterior(n, 1, MIXINGS[name])
    sampler = SliceSampler(model=toy(MIXINGS[name]), released=np.array(Z[:n]), **options)
    found = states_after(sampler, states, rng.choice(len(pi), size=20_000, p=pi), rng, sweeps=3)
    p = p_value(found, pi)
    assert p > ALPHA, f"p = {p:.1e}: rejects a right sampler with probability {ALPHA}"


@pytest.mark.parametrize(
    "old_new",
    [
        ("while rest > lowest:", "while used < k + 1:"),
        pytest.param(("slices[i] = rng.random() *", "slices[i] = 0.5 *"), marks=pytest.mark.long),
    ],
)
def test_wrong_slices_are_found_out(old_new):
    """No atoms beyond the first stick, whatever the slices; slices that are not uniform."""
    from pathlib import Path

    from privurn._kernels.mixtures import slices as right
    from privurn.inference.mixtures import SliceSampler

    source = Path(right.__file__).read_text()
    assert source.count(old_new[0]) == 1
    wrong = {"__name__": "wrong"}
    exec(compile(source.replace(*old_new), "wrong", "exec"), wrong)

    class Wrong(SliceSampler):
        def draw(self, state, rng, *, sweeps, thin, warming, keep):
            parts = [state[name] for name in ("allocations", "latent", "atoms", "strength", "tuning")]
            c, y, atoms, strength, tuning = parts
            given = (self.model.kernel.n_statistics, sweeps, thin, warming, keep, rng)
            return wrong["run_slices"](
                wrong["GivenLatent"](), *self.records, self.observed.z, c, y, atoms, strength, tuning, *given
            )

    n, rng = 3, np.random.default_rng(12)
    states, pi = posterior(n, 1, MIXINGS["process"])
    sampler = Wrong(model=toy(MIXINGS["process"]), released=np.array(Z[:n]))
    found = states_after(sampler, states, rng.choice(len(pi), size=20_000, p=pi), rng, sweeps=3)
    assert p_value(found, pi) < ALPHA


def main(task):
    if task == "matrices":
        found = {f"two records, {name}": neal5_matrix_error(2, 1, kind) for name, kind in MIXINGS.items()}
        found["two values each"] = neal5_matrix_error(2, 2, MIXINGS["process"], atoms_too=False)
        for name, kind in MIXINGS.items():
            found[f"the last of three records, {name}"] = neal5_matrix_error(3, 1, kind, first=2)
        found["the last of four records"] = neal5_matrix_error(4, 1, MIXINGS["discount"], first=3, atoms_too=False)
        return found
    if task != "upside-down":
        return chains_of_the_package(task.split(","))
    from privurn._kernels.mixtures import neal5

    right = neal5.log_mean_density
    neal5.log_mean_density = lambda *given: -right(*given)
    return {"error": neal5_matrix_error(2, 1, MIXINGS["process"])[0]}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
