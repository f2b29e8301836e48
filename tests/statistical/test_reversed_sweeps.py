"""Sweeps that run backwards are the time reversal of the samplers' sweeps: pi_i P_ij = pi_j P*_ji by enumeration of states.

Two records, two known components, two values. Neal 5, its global version and Neal 8 draw nothing but uniforms here, so both
matrices come from the very code that is compiled (tests/exact/mixture_states.py), and agree to rounding. The slice sampler's
measure is drawn from its law given the clusters in both directions; what follows given the measure is enumerated in the
same way, and whole sweeps are compared by their pairs of states (chi-square, alpha 1e-6).
"""

import json
import math
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from reversed_sweeps import backwards, given_measure
from scipy import stats

from privurn.inference import mixtures as mix
from privurn.mechanisms.local import NoisyStatisticChannel
from privurn.mechanisms.local.statistics import HistogramStatistic

sys.path.append(str(Path(__file__).parents[1] / "exact"))  # behind this folder: both have files of the same name

from mixture_states import Branching, in_plain_python, log_urn, partitions

N = 2
BASE = np.array([0.3, 0.7])
F = np.array([[0.8, 0.2], [0.35, 0.65]])
Q = np.array([[0.6, 0.3, 0.1], [0.15, 0.25, 0.6]])
Z, COUNTS, SCALE = (0, 2), (1, -1), 1.3
MIXINGS = {
    "process": ("DirichletProcess", {"strength": 0.8}),
    "discount": ("PitmanYorProcess", {"discount": 0.3, "strength": 0.3}),
    "finite": ("FiniteDirichlet", {"components": 3, "strength": 1.2}),
}
KEEP = (np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty((0, 1)), np.empty((0, N), np.int64))
KEEP = (*KEEP, np.empty((0, N, 1), np.int64), np.empty(0), np.empty(0), np.empty((0, 3)))
HEAVY, CUTS, PLACES = np.array([0.5, 0.3, 0.1]), np.array([0.2, 0.05]), (0, 1, 0)
"""A measure with three atoms and two slices: the first record can be at two of the atoms, the second at all."""


def sampler_of(make, kind, **given):
    """A sampler at the releases above."""
    kernel, mixing = mix.ComponentsKernel(base=BASE, f=F), getattr(mix, kind[0])(**kind[1])
    if make in (mix.GlobalNeal5, mix.GlobalSlice):
        statistic = HistogramStatistic(bounds=(-0.5, 1.5), bins=2)
        channel = NoisyStatisticChannel(statistic=statistic, n=N, noise="laplace", scale=SCALE)
        model = mix.GlobalMixtureModel(channel=channel, kernel=kernel, mixing=mixing)
        return make(model=model, released=COUNTS, **given)
    model = mix.MixtureModel(channel=mix.TableChannel(probabilities=Q), kernel=kernel, mixing=mixing)
    return make(model=model, released=np.array(Z), **given)


def likelihood(sampler, y):
    """Of the values of all records, up to a factor; the mean over the values of a record where it has several."""
    if isinstance(sampler.model, mix.GlobalMixtureModel):
        return math.exp(-sum(abs(w - y.count(v)) for v, w in enumerate(COUNTS)) / SCALE)
    m = sampler.auxiliary
    return math.prod(np.mean([Q[v, z] for v in y[i * m : i * m + m]]) for i, z in enumerate(Z))


def posterior(sampler, kind):
    """States (clusters, atoms, values) and their probabilities."""
    m, weights = sampler.auxiliary, {}
    for c in partitions(N):
        for atoms in product(range(2), repeat=max(c) + 1):
            for y in product(range(2), repeat=N * m):
                prior = math.exp(log_urn(c, kind)) * math.prod(BASE[a] for a in atoms)
                fit = math.prod(F[atoms[c[j // m]], v] for j, v in enumerate(y))
                weights[c, atoms, y] = prior * fit * likelihood(sampler, y)
    return list(weights), np.array(list(weights.values())) / sum(weights.values())


def posterior_given_measure(sampler):
    """States (clusters, values) and their probabilities given the measure and the slices above."""
    weights = {}
    for c in product(range(3), repeat=N):
        if all(HEAVY[h] > cut for h, cut in zip(c, CUTS, strict=True)):
            for y in product(range(2), repeat=N):
                weights[c, y] = math.prod(F[PLACES[h], v] for h, v in zip(c, y, strict=True)) * likelihood(sampler, y)
    return list(weights), np.array(list(weights.values())) / sum(weights.values())


def sweep(sampler, state, rng, *, back):
    """The state after one sweep."""
    c, atoms, y = state
    arrays = {
        "allocations": np.array(c),
        "latent": np.array(y)[:, None],
        "atoms": np.array(atoms, float)[:, None],
        "strength": np.array([sampler.model.mixing.first_strength]),
        "tuning": np.zeros(2),
    }
    if back:
        backwards(sampler, arrays, rng)
    else:
        arrays["atoms"] = sampler.draw(arrays, rng, sweeps=1, thin=1, warming=False, keep=KEEP)
    c, y = arrays["allocations"], arrays["latent"][:, 0]
    return tuple(c.tolist()), tuple(arrays["atoms"][:, 0].astype(int).tolist()), tuple(y.tolist())


def records(sampler, state, rng, *, back):
    """The state after clusters and values have moved, given the measure."""
    c, y = np.array(state[0]), np.array(state[1])[:, None]
    atoms = np.array(PLACES, float)[:, None]
    given_measure(sampler, sampler.observed.z, c, y, HEAVY, atoms, CUTS, rng, back=back)
    return tuple(c.tolist()), tuple(y[:, 0].tolist())


def errors(move, sampler, states, pi):
    """Largest entries of pi_i P_ij - pi_j P*_ji and of pi_i P_ij - pi_j P_ji."""
    index, rng, flows = {state: i for i, state in enumerate(states)}, Branching(), []
    for back in (False, True):
        flow = np.zeros((len(states), len(states)))
        for i, state in enumerate(states):
            for result, probability in rng.paths(lambda state=state, back=back: move(sampler, state, rng, back=back)):
                flow[i, index[result]] += pi[i] * probability
        flows.append(flow)
    forth, back = flows
    assert abs(forth.sum() - 1.0) < 1e-12
    return float(np.abs(forth - back.T).max()), float(np.abs(forth - forth.T).max())


def matrices():
    """Errors of whole sweeps, and of sweeps given the measure."""
    found = {}
    whole = [(mix.Neal5, name, {}) for name in MIXINGS]
    whole += [(mix.GlobalNeal5, "process", {}), (mix.Neal8, "discount", {"auxiliary_atoms": 1})]
    for make, name, given in whole:
        sampler = sampler_of(make, MIXINGS[name], **given)
        found[f"{sampler.name}, {name}"] = errors(sweep, sampler, *posterior(sampler, MIXINGS[name]))
    for make, given in ((mix.SliceSampler, {}), (mix.SliceSampler, {"marginal": True}), (mix.GlobalSlice, {})):
        sampler = sampler_of(make, MIXINGS["process"], **given)
        found[f"{sampler.name}, {given}"] = errors(records, sampler, *posterior_given_measure(sampler))
    return found


def pairs_p_value(make, *, size, back, seed=71, **given):
    """p value of pairs (state, next) against pairs (next, state) of sweeps that should run backwards."""
    kind, rng = MIXINGS["process"], np.random.default_rng(seed)
    sampler = sampler_of(make, kind, **given)
    states, pi = posterior(sampler, kind)
    index, counts = {state: i for i, state in enumerate(states)}, np.zeros((2, len(states), len(states)))
    for direction in (0, 1):
        for i in rng.choice(len(pi), size=size, p=pi):
            j = index[sweep(sampler, states[i], rng, back=direction and back)]
            counts[direction][(i, j) if direction == 0 else (j, i)] += 1
    table = counts.reshape(2, -1)
    common = table.sum(axis=0) >= 10
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


@pytest.mark.long
def test_backwards_is_the_time_reversal_exactly():
    found = in_plain_python(__file__, "matrices")
    assert len(found) == 8
    for name, (error, forwards_only) in found.items():
        assert error < 1e-12, f"{name}: flows differ by {error:.1e}"
        if "marginal" not in name:  # independent exact draws are reversible as they are
            assert forwards_only > 1e-3, f"{name}: the sweep is its own reversal, so that nothing is tested"


@pytest.mark.long
@pytest.mark.parametrize("name", ["slice", "marginal-slice", "global-slice"])
def test_pairs_of_states_of_slices_are_reversed(name):
    right, wrong = in_plain_python(__file__, name)
    assert right > 1e-6, f"p = {right:.1e}: rejects right sweeps with probability 1e-6"
    assert wrong < 1e-6, "too few pairs to tell a sweep from its reversal"


def main(task):
    if task == "matrices":
        return matrices()
    make = mix.GlobalSlice if task == "global-slice" else mix.SliceSampler
    given = {"marginal": True} if task == "marginal-slice" else {}
    return [pairs_p_value(make, size=20_000, back=back, **given) for back in (True, False)]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
