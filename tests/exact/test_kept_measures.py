"""Kept mixing measures have the law of the measure given the clusters, also where it has hundreds of atoms.

For a Dirichlet process of strength s with base H, given clusters of n_h records at atoms theta_h, the mass of a set A is

    P(A) ~ Beta(s H(A) + sum of n_h in A, s H(not A) + sum of n_h not in A)

whatever the allocation: a law to test every draw against. Functionals have Var P(f) = Var_H'(f) / (s + n + 1), where H' is
(s H + sum_h n_h delta(theta_h)) / (s + n). Twins lump all but the heaviest 31 atoms into one of them, and must be rejected.
"""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from privurn._kernels.mixtures import measures, mixings
from privurn._kernels.mixtures.gaussian import GaussianKernel
from privurn.inference import mixtures as mix
from privurn.inference.draws import NotMixed
from privurn.inference.mixtures.prior import base_atoms
from privurn.inference.run import Run, concatenated
from privurn.mechanisms.local import LaplaceChannel

ALPHA = 1e-9
SIGMAS = 6.0
"""Beyond so many standard errors a mean lies with probability 2e-9."""

KERNEL = GaussianKernel(0.0, 0.1, 3.0, 3.0)
MEANS = stats.t(6, 0.0, math.sqrt(3.0 / 3.0 / 0.1))
"""Law of an atom's mean under the base measure."""

SIZES = np.array([40, 25, 25, *[10] * 8, *[3] * 20, *[1] * 70])
"""Of 300 records, for a process of strength 50."""


def drawn(mixing, s, sizes, *, draws, bound=0.0, places=4096, seed=1):
    """Measures given clusters whose means lie alternately below and above 0.

    Masses of atoms whose mean is above the bound, what update_measure returns, and the clusters' means.
    """
    atoms, rng = np.zeros((len(sizes), 3)), np.random.default_rng(seed)
    atoms[:, 0] = np.where(np.arange(len(sizes)) % 2, 3.0, -3.0)
    found, cut = [], np.empty((draws, 3))
    for part in np.array_split(cut, draws // 500):
        weights, parameters = np.zeros((len(part), places)), np.zeros((len(part), places, 2))
        measures.update_measures(KERNEL, mixing, np.full(len(part), s), atoms, sizes, weights, parameters, part, rng)
        assert np.allclose(weights.sum(axis=1), 1.0)
        found.append((weights * (parameters[..., 0] > bound)).sum(axis=1))
    return np.concatenate(found), cut, atoms[:, 0]


@pytest.mark.parametrize("bound", [0.0, 8.0], ids=["half", "beyond all clusters"])
def test_masses_under_a_dirichlet_process_are_beta(bound):
    mixing, s = mixings.DirichletProcess(0.0, 0.0), 50.0
    found, cut, at = drawn(mixing, s, SIZES, draws=3000, bound=bound)
    assert cut[:, 1].max() <= measures.REST
    assert cut[:, 2].max() == 0.0
    inside, above = SIZES[at > bound].sum(), MEANS.sf(bound)
    law = stats.beta(s * above + inside, s * (1.0 - above) + SIZES.sum() - inside)
    assert stats.kstest(found, law.cdf).pvalue > ALPHA
    twin, _, _ = drawn(mixing, s, SIZES, draws=3000, bound=bound, places=32)
    assert stats.kstest(twin, law.cdf).pvalue < ALPHA


MIXINGS = {
    "Dirichlet process": (mixings.DirichletProcess(0.0, 0.0), 50.0, 0.0, lambda k: 50.0),
    "Pitman-Yor": (mixings.PitmanYorProcess(0.25), 1.0, -0.25, lambda k: 1.0 + 0.25 * k),
    "slow sticks": (mixings.PitmanYorProcess(0.8), 1.0, -0.8, lambda k: 1.0 + 0.8 * k),
    "finite": (mixings.FiniteDirichlet(2000), 600.0, 0.3, lambda k: 0.3 * (2000 - k)),
}


@pytest.mark.parametrize("name", MIXINGS)
@pytest.mark.parametrize("places", [4096, 500], ids=["all sticks", "few sticks"])
def test_means_and_variances_are_exact_wherever_the_sticks_end(name, places):
    """Two draws from the rest are the same atom with probability t; half of the base measure lies above 0."""
    mixing, s, offset, fresh = MIXINGS[name]
    sizes = np.array([30, 20, 10, 5, 5, 2, 2, 1, 1, 1, 1, 1, 1])
    k, new = len(sizes), fresh(len(sizes))
    found, cut, clusters = drawn(mixing, s, sizes, draws=5_000, places=places)
    assert cut[:, 2].max() == 0.0
    t = (1.0 + offset) / (1.0 + offset + fresh(k + 1))
    shares = np.array([*(sizes + offset), new])
    values, total = np.array([*(clusters > 0.0), 0.5]), shares.sum()
    mean = shares @ values / total
    variance = (shares @ (values - mean) ** 2 + 0.25 * t * new * (new + 1.0)) / (total * (total + 1.0))
    assert abs(found.mean() - mean) < SIGMAS * math.sqrt(variance / len(found))
    twin, _, _ = drawn(mixing, s, sizes, draws=40_000, places=k + 1)  # all of the rest on one atom
    for masses, right in ((found, True), (twin, False)):
        squares = (masses - mean) ** 2
        assert (abs(squares.mean() - variance) < SIGMAS * squares.std() / math.sqrt(len(squares))) == right


def test_weights_of_the_rest_have_the_sum_and_the_squares_that_are_asked_for():
    for probability in (1.0, 0.7, 0.5, 1.0 / 3.0, 0.3, 0.011, 1.0 / 51.0):
        size = measures.least_atoms(probability)
        assert size - 1.0 < 1.0 / probability <= size + 1e-9
        weights = np.full(size + 2, np.nan)
        measures.update_tied(weights, 1, size, 0.2, probability)
        rest = weights[1:-1]
        assert rest.min() >= 0.0
        assert rest.sum() == pytest.approx(0.2, rel=1e-12)
        assert (rest**2).sum() == pytest.approx(0.04 * probability, rel=1e-9)


def test_too_few_places_keep_the_mean_and_say_what_was_lumped():
    for places in (20, 150):  # fewer than the 101 clusters, and too few for the rest
        found, cut, at = drawn(mixings.DirichletProcess(0.0, 0.0), 80.0, SIZES, draws=4000, places=places)
        assert np.all(cut[:, 0] == places)
        assert np.all(cut[:, 2] > 0.01)
        mean = (40.0 + SIZES[at > 0.0].sum()) / 380.0
        assert abs(found.mean() - mean) < SIGMAS * found.std() / math.sqrt(len(found))


BOUNDS = (0.0, 100.0)
CHANNEL = LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=20)
KERNEL_100 = mix.GaussianKernel(mean=50.0, precision=0.1, shape=3.0, scale=75.0)
WIDE = mix.MixtureModel(channel=CHANNEL, kernel=KERNEL_100, mixing=mix.DirichletProcess(strength=50.0))
RNG = np.random.default_rng(7)
RELEASED = CHANNEL.simulate(np.clip(RNG.normal(50.0, 12.0, size=300), *BOUNDS), rng=RNG)


def kept(run):
    """By the public call, with the sampler's own sweeps alone (what is kept does not ask for moves), and who was where."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)
        return mix.fit_mixture(RELEASED, model=WIDE, moves="plain", keep=mix.Keep(allocations=True), run=run)


@pytest.fixture(scope="module")
def fitted():
    return kept(Run(chains=2, warm_up=50, draws=400, thin=2, seed=3))


def lumped(weights, means, rng, *, places=32):
    """The twin: the heaviest, and all else on one atom, drawn in proportion."""
    found = np.zeros((len(weights), places)), np.zeros((len(weights), places))
    for t, (heavy, at) in enumerate(zip(weights, means, strict=True)):
        order = np.argsort(-heavy)
        first, rest = order[: places - 1], order[places - 1 :]
        chosen = rng.choice(rest, p=heavy[rest] / heavy[rest].sum())
        found[0][t], found[1][t] = [*heavy[first], heavy[rest].sum()], at[[*first, chosen]]
    return found


def sizes_and_atoms(found, t):
    """Clusters of draw t: they come first among its atoms."""
    sizes = np.bincount(found.draws.flat("allocations")[t])
    return sizes, found.draws.flat("atoms")[t][: len(sizes)]


def probabilities(found, weights, means):
    """Of mass above 50 given the clusters of each draw: uniform and independent under the exact law, mixed or not."""
    values = []
    for t, mass in enumerate((weights * (means > 50.0)).sum(axis=1)):
        sizes, atoms = sizes_and_atoms(found, t)
        inside = sizes[atoms[:, 0] > 50.0].sum()
        values.append(stats.beta(25.0 + inside, 25.0 + 300 - inside).cdf(mass))
    return values


def test_fitted_measures_of_large_strength_have_their_law(fitted):
    weights, means = fitted.draws.flat("weights"), fitted.draws.flat("atoms")[..., 0]
    assert stats.kstest(probabilities(fitted, weights, means), "uniform").pvalue > ALPHA
    twin = lumped(weights, means, np.random.default_rng(4))
    assert stats.kstest(probabilities(fitted, *twin), "uniform").pvalue < ALPHA


def test_fitted_densities_vary_as_they_should(fitted):
    """Deviations of the density at three points from its mean given the clusters, in units of their closed form."""
    points = np.array([20.0, 50.0, 80.0])
    base = base_atoms(KERNEL_100, 200_000, seed=5)
    law = stats.norm.pdf(points, base[:, :1], base[:, 1:])
    first, second = law.mean(axis=0), (law**2).mean(axis=0)
    squares = []
    for t, density in enumerate(fitted.densities(points)):
        sizes, atoms = sizes_and_atoms(fitted, t)
        own = stats.norm.pdf(points, atoms[:, :1], atoms[:, 1:])
        mean = (50.0 * first + sizes @ own) / 350.0
        variance = (50.0 * second + sizes @ own**2) / 350.0 - mean**2
        squares.append((density - mean) ** 2 / (variance / 351.0))
    squares = np.array(squares)
    assert np.all(np.abs(squares.mean(axis=0) - 1.0) < SIGMAS * squares.std(axis=0) / math.sqrt(len(squares)))


def test_what_was_cut_is_said():
    found = kept(Run(chains=2, warm_up=5, draws=20, thin=1, seed=3))
    cut = found.draws.sample_stats["mass_not_kept"]
    assert cut.shape == (2, 20)
    assert 0.0 < cut.max() <= measures.REST
    assert found.draws.attributes["mass_not_kept"] == cut.max()
    assert not found.cut_problems()


@pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")
def test_too_small_a_limit_is_warned_of():
    run = Run(chains=1, warm_up=5, draws=5, thin=1, seed=3)
    with pytest.warns(UserWarning, match="too few atoms were kept"):
        found = mix.fit_mixture(RELEASED, model=WIDE, keep=mix.Keep(atoms=32), run=run)
    assert found.draws["weights"].shape[-1] == 32
    assert found.draws.attributes["mass_not_kept"] > 0.01


def test_measures_do_not_depend_on_the_size_of_the_buffer(monkeypatch):
    from privurn.inference.mixtures import samplers

    sampler = mix.Neal5(model=WIDE, released=RELEASED, keep=mix.Keep(density_grid=(40.0, 60.0)))
    found = []
    for buffer in (2**22, 1, 3 * 4096 * 7):
        monkeypatch.setattr(samplers, "BUFFER", buffer)
        rng = np.random.default_rng(6)
        variables, diagnostics = sampler.advance(sampler.start(rng), rng, sweeps=20, thin=2, warming=False)
        found.append({**variables, **diagnostics})
    for other in found[1:]:
        assert found[0].keys() == other.keys()
        for name, values in found[0].items():
            assert np.array_equal(values, other[name]), name


def test_longer_draws_are_joined_to_shorter_ones():
    joined = concatenated([np.ones((2, 1, 2)), np.full((1, 3, 2), 2.0)])
    assert joined[..., 0].tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 2.0, 2.0]]
    assert concatenated([np.arange(2), np.arange(3)]).tolist() == [0, 1, 0, 1, 2]
