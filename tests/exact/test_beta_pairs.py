"""Beta kernels behind noise: the density of released values is an integral, and latent values have their exact law.

The integral is compared with adaptive quadrature that shares no substitution with it and with 30 digits, for parameters from
1e-3 to 1e4. Draws are compared with their distribution function, by all ways of drawing them (a right program fails with a
probability of 1e-9 or less; the seed is fixed).
"""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from privurn._kernels.mixtures import beta_latent, beta_nodes, beta_pairs, noise_series  # noqa: F401 (pairs are registered)
from privurn._kernels.mixtures.beta import BetaKernel, log_beta
from privurn._kernels.mixtures.channels import Gaussian, Laplace, log_density
from privurn._kernels.mixtures.incomplete_beta import beta_below
from privurn._kernels.mixtures.latent import log_marginal, update_latent, update_marginals
from privurn.errors import ModelError
from privurn.inference import mixtures as mix
from privurn.mechanisms.local import LaplaceChannel

ALPHA = 1e-9
KERNEL = BetaKernel(2.0, 2.0)
SHAPES = ((2.2, 2.2), (0.7, 1.3), (0.05, 0.02), (0.01, 4.0), (9.0, 0.3), (40.0, 1.0), (300.0, 200.0), (1e4, 1e4), (1e4, 0.3))
MAKERS = {"laplace": Laplace, "gaussian": Gaussian}
BOUNDS = {"unit": (0.0, 1.0), "none": (-math.inf, math.inf), "inside": (0.2, 0.9)}

pytestmark = pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")


def atoms_of(a, b):
    return np.array([[a, b, log_beta(a, b)]])


def nearest(record, z):
    """z moved into the bounds and the unit interval."""
    return min(max(z, record.lower, 0.0), record.upper, 1.0)


def integral(record, z, a, b):
    """Integral of q(z | y) / q(z | nearest y) against the law, by pieces; for p < 3 in y^p near each end."""
    top, total, normal = log_density(record, z, nearest(record, z)), 0.0, log_beta(a, b)
    mean, spread = a / (a + b), math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    marks = [record.lower, record.upper, z, *(mean + k * spread for k in (-30, -12, -6, -3, -1, 0, 1, 3, 6, 12, 30))]
    marks += [z + k * record[0] for k in (-8, -3, -1, 1, 3, 8)]
    for (p, q), turned in (((a, b), False), ((b, a), True)):

        def rest(v, q=q, turned=turned):
            y = 1.0 - v if turned else v
            return log_density(record, z, y) - top + (q - 1.0) * math.log1p(-v) - normal

        def powers(u, p=p, rest=rest):
            return math.exp(rest(u ** (1.0 / p))) / p

        def plain(v, p=p, rest=rest):
            return math.exp(rest(v) + (p - 1.0) * math.log(v)) if v > 0.0 else 0.0

        ends = sorted({0.0, 0.5} | {v for v in ((1.0 - m if turned else m) for m in marks) if 0.0 < v < 0.5})
        for low, high in pairwise(ends):
            given, ends_of_piece = (powers, (low**p, high**p)) if p < 3.0 else (plain, (low, high))
            total += integrate.quad(given, *ends_of_piece, epsabs=0.0, epsrel=1e-12, limit=200)[0]
    return total


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("channel", MAKERS)
def test_densities_of_released_values_are_integrals(channel, bounds):
    for scale in (0.02, 0.1, 0.5, 3.0):
        record = MAKERS[channel](scale, *BOUNDS[bounds])
        z = np.array([-4.0 * scale, 0.0, 1e-3, 0.2, 0.5, 0.77, 1.0, 1.0 + 4.0 * scale])
        found = np.empty((1, len(z)))
        for shapes in SHAPES:
            update_marginals(record, KERNEL, z, atoms_of(*shapes), 0, found, 0)
            right = np.array([integral(record, each, *shapes) for each in z])
            seen = right > 1e-150
            assert found[0, seen] == pytest.approx(right[seen], rel=3e-10)
            alone = math.exp(log_marginal(record, KERNEL, z[3], atoms_of(*shapes), 0))
            assert alone == pytest.approx(found[0, 3], rel=3e-10)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("scale", [0.02, 0.1, 1.0])
def test_values_side_by_side_have_the_densities_that_they_have_alone(scale, bounds):
    """A series takes many z at once; one z alone is summed over its nodes."""
    record = Gaussian(scale, *BOUNDS[bounds])
    z = np.concatenate([place + scale * np.linspace(-1.0, 1.0, 6) for place in (-2.0 * scale, 0.03, 0.5, 1.0 + scale)])
    z = np.append(z, [0.4, 0.9, 0.4 + 0.1 * scale])  # not in order
    found = np.empty((1, len(z)))
    for shapes in SHAPES:
        update_marginals(record, KERNEL, z, atoms_of(*shapes), 0, found, 0)
        alone = np.exp([log_marginal(record, KERNEL, each, atoms_of(*shapes), 0) for each in z])
        seen = alone > 1e-150
        assert found[0, seen] == pytest.approx(alone[seen], rel=2e-10)


def test_few_nodes_are_asked_for_behind_narrow_noise():
    law = beta_nodes.beta_law(0.7, 1.3, log_beta(0.7, 1.3), 0.0, 1.0, 0.02)
    masses = np.empty(1)
    noise_series.update_behind_noise(law, np.array([0.5]), 0.0, 1.0, 0.02, masses)
    assert masses[0] > 0.0
    assert law.panels[:, beta_nodes.FILLED].sum() * law.nodes.shape[1] <= 80  # 3,300 of evenly laid panels


@pytest.mark.parametrize("shapes", [(0.7, 1.3), (1e-3, 3.0), (5.0, 1e-3), (30.0, 12.0)])
def test_laplace_densities_have_thirteen_digits(shapes):
    a, b = shapes
    for scale, z in ((0.5, 1e-12), (0.1, 0.3), (0.03, 0.999), (0.1, 1.0)):
        with mpmath.workdps(30):
            sides = ((mpmath.mpf(z), a, b), (1 - mpmath.mpf(z), b, a))
            right = mpmath.fsum(
                mpmath.exp(-x / scale) * (x / scale) ** k / mpmath.factorial(k) / x**k * mpmath.betainc(p + k, q, 0, x)
                for x, p, q in sides
                if x > 0
                for k in range(int(40 + 4.0 / scale))
            ) / mpmath.beta(a, b)
        found = log_marginal(Laplace(scale, 0.0, 1.0), KERNEL, z, atoms_of(a, b), 0)
        assert found == pytest.approx(float(mpmath.log(right)), abs=1e-12)


def test_incomplete_beta_functions():
    for a, b in (*SHAPES, (1e-20, 1.0), (30.0, 1e4)):
        for x in (1e-200, 1e-9, 0.1, 0.5, 0.6, 0.97):
            right = stats.beta(a, b).cdf(x)
            if right > 1e-250:
                assert beta_below(x, a, b, log_beta(a, b)) == pytest.approx(right, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("way", ["tries", "steps", "cells"])
@pytest.mark.parametrize("channel", MAKERS)
def test_latent_values_have_their_exact_law(channel, way, monkeypatch):
    if way != "tries":
        monkeypatch.setattr(beta_latent, "TRIES", 0)
    if way == "cells":
        monkeypatch.setattr(beta_latent, "value_in_steps", lambda *given: False)
    rng, size = np.random.default_rng(21), 150 if way == "cells" else 1000
    for z, shapes, bounds in ((0.7, (2.2, 1.4), (0.0, 1.0)), (1.2, (0.3, 0.5), (0.0, 1.0)), (-0.1, (5.0, 0.8), (0.2, 0.9))):
        record, atoms, y = MAKERS[channel](0.15, *bounds), atoms_of(*shapes), np.empty(1)
        law = grid_law(record, z, *shapes)
        drawn = []
        for _ in range(size):
            update_latent(record, KERNEL, z, y, 0, atoms, 0, rng)
            drawn.append(y[0])
        assert stats.kstest(drawn, law).pvalue > ALPHA
        assert (
            way == "cells" or stats.kstest(drawn, stats.beta(*shapes).cdf).pvalue < ALPHA
        )  # as if the channel had said nothing


@pytest.mark.parametrize("channel", MAKERS)
def test_latent_values_behind_narrow_noise_have_their_exact_law(channel):
    """Around z where the kernel is smooth and the noise has nothing beyond, and next to the end of the interval."""
    rng, y, scale = np.random.default_rng(23), np.empty(1), 1e-6
    noise = stats.laplace if channel == "laplace" else stats.norm
    for z, shapes in ((0.3, (2.2, 1.4)), (0.3, (0.3, 0.5)), (0.0, (1.0, 3.0))):
        record, atoms, drawn = MAKERS[channel](scale, 0.0, 1.0), atoms_of(*shapes), []
        for _ in range(400):
            update_latent(record, KERNEL, z, y, 0, atoms, 0, rng)
            drawn.append((y[0] - z) / scale)
        law = noise.cdf if z > 0.0 else lambda x: 2.0 * noise.cdf(x) - 1.0
        assert stats.kstest(drawn, law).pvalue > ALPHA


def grid_law(record, z, a, b):
    """Distribution function of y given z and its atom, cumulated between quantiles of the atom."""
    levels = np.linspace(0.0, 1.0, 20_001)
    middle = stats.beta(a, b).ppf(0.5 * (levels[1:] + levels[:-1]))
    heights = np.exp([log_density(record, z, each) for each in middle])
    below = np.concatenate([[0.0], np.cumsum(heights)]) / heights.sum()
    return lambda y: np.interp(stats.beta(a, b).cdf(y), levels, below)


def test_values_where_the_kernel_hardly_puts_any_are_drawn():
    y, rng = np.empty(1), np.random.default_rng(22)
    record, atoms = Laplace(0.01, 0.0, 1.0), atoms_of(3e3, 3e3)
    drawn = []
    for _ in range(40):
        update_latent(record, KERNEL, 0.05, y, 0, atoms, 0, rng)
        drawn.append(y[0])
    mode = 0.5 - 100.0 / (8.0 * 2999.0)  # where 2999 (1 / y - 1 / (1 - y)) = 1 / scale; the deviation is 0.0065
    assert np.mean(drawn) == pytest.approx(mode, abs=0.007)
    assert np.ptp(drawn) < 0.06


def test_noise_that_hides_nothing_is_left_to_the_sampler():
    def sampler(scale):
        model = mix.MixtureModel(channel=LaplaceChannel(bounds=(0, 1), scale=scale), kernel=mix.BetaKernel())
        return mix.Neal5(model=model, released=np.array([0.2, 0.7]))

    assert sampler(0.02).has_marginal()
    assert not sampler(0.01).has_marginal()
    with pytest.raises(ModelError, match="closed form"):
        type(sampler(0.01))(model=sampler(0.01).model, released=np.array([0.2, 0.7]), regroup=10)
