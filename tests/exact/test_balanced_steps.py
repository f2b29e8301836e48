"""A balanced step of n is accepted with the probability that its densities and the volume of its map ask for.

Everything is computed again: densities by SciPy, the parameters that keep the sum by SciPy's solver, and the volume of the map
from (n + u, free coordinates) to itself by differences. Twins with one thing wrong differ from it.
"""

import inspect
import math

import numpy as np
import pytest
from scipy import optimize, stats

from privurn._kernels.sums import balance
from privurn._kernels.sums.chain import Tuning
from privurn.inference.size import SizePrior
from privurn.inference.sums.dirichlet_model import DirichletModel
from privurn.inference.sums.observed import Observed

FLOOR = 1e-4
MODEL = DirichletModel(parts=("a", "b", "c"), floor=FLOOR, shape=3.0, rate=0.5, resolution=24)
SPREAD = 0.4


class Recorder:
    """A generator that remembers what decides a step: the length's uniform, the normal, and where in [n, n + 1) it starts."""

    def __init__(self, seed):
        self.rng, self.uniforms, self.normals = np.random.default_rng(seed), [], []

    def random(self):
        self.uniforms.append(self.rng.random())
        return self.uniforms[-1]

    def standard_normal(self):
        self.normals.append(self.rng.standard_normal())
        return self.normals[-1]

    def __getattr__(self, name):
        return getattr(self.rng, name)


def log_records(theta, standard):
    """Logarithms of shares from standardised records: gamma variables of shape theta + 1, made smaller by exponentials."""
    c = theta + 2 / 3
    logs = np.log(c * (1 + standard[:, :3] / np.sqrt(9 * c)) ** 3) - standard[:, 3:] / theta
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def sums(free, standard):
    return np.maximum(log_records(np.exp(free), standard), math.log(FLOOR)).sum(axis=0)


def log_density(free, standard, n, observed):
    """Log of prior(free) q(all standardised records) times the densities of what was released."""
    theta = np.exp(free)
    c = theta + 2 / 3
    roots = 1 + standard[:, :3] / np.sqrt(9 * c)
    found = stats.gamma.logpdf(theta, 3.0, scale=2.0).sum() + free.sum()
    found += (stats.gamma.logpdf(c * roots**3, theta + 1) + np.log(np.sqrt(c) * roots**2)).sum()
    found += stats.laplace.logpdf(observed.values, sums(free, standard[:n]), observed.scales).sum()
    return found + stats.laplace.logpdf(observed.noisy_n, n, observed.noisy_n_scale)


def steps(function, seeds):
    """What each step that comes to a decision compares its uniform with, and what it should."""
    for seed in seeds:
        rng = Recorder(seed)
        n = int(rng.rng.integers(20, 60))
        theta = MODEL.start(rng.rng)
        records = MODEL.simulate(theta, n=n, rng=rng.rng)
        total = MODEL.statistic(records)
        observed = Observed(
            values=total + 5.0 * rng.rng.laplace(size=3),
            scales=np.full(3, 5.0),
            noisy_n=n + 20.0 * rng.rng.laplace(),
            noisy_n_scale=20.0,
            size_prior=SizePrior(lower=1, upper=10_000),
        )
        ratios, weighed = [], []
        names = function.__globals__
        names["accepted"] = lambda rng, log_ratio, ratios=ratios: bool(ratios.append(log_ratio))
        names["log_ancillary"] = lambda model, theta, standard, n, w=weighed: (
            w.append(standard.copy()) or balance.log_ancillary(model, theta, standard, n)
        )
        head = (MODEL.record, observed.noise_record(), observed.size_record())
        function(*head, theta, records, n, total, SPREAD, Tuning(0, 0, True, 1, MODEL.standard_width, 1), rng)
        if not ratios:
            continue
        shift = 2.4 * SPREAD * math.exp(-balance.SCALES * rng.uniforms[0]) * rng.normals[0]
        start = n + rng.uniforms[1]
        other = math.floor(start * math.exp(shift))
        standard = weighed[0][: max(n, other)]

        def mapped(point, shift=shift, standard=standard):
            """(n + u, free) to where the step leads."""
            before, after = math.floor(point[0]), math.floor(point[0] * math.exp(shift))
            wanted = sums(point[1:], standard[:before])
            solved = optimize.root(lambda f: sums(f, standard[:after]) - wanted, point[1:], tol=1e-13)
            return np.append(point[0] * math.exp(shift), solved.x)

        point = np.append(start, np.log(theta))
        nudge = np.array([1e-7, 1e-5, 1e-5, 1e-5])
        slopes = [(mapped(point + h) - mapped(point - h)) / (2 * h.sum()) for h in np.diag(nudge)]
        volume = np.linalg.slogdet(slopes)[1]
        new = mapped(point)
        target = log_density(new[1:], standard, other, observed) - log_density(point[1:], standard, n, observed)
        yield ratios[0], target + volume


def source(old="", new=""):
    text = inspect.getsource(balance.update_balanced).replace("@register_jitable", "")
    assert not old or text.count(old) == 1
    namespace = dict(vars(balance))
    exec(text.replace(old, new) if old else text, namespace)
    return namespace["update_balanced"]


def test_acceptance():
    found, expected = np.transpose(list(steps(source(), range(200))))
    assert len(found) > 20
    np.testing.assert_allclose(found, expected, atol=2e-4)  # differences, and 24 bits of rounding in the sums


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- log_size(size, n) + shift", "- log_size(size, n)"),
        (" + level - new_level", ""),
        ("most = max(n, other)", "most = min(n, other)"),
        ("prior - log_prior(model, theta)", "0.0"),
    ],
    ids=["step of n", "volume", "records", "prior"],
)
def test_what_is_wrong_differs(old, new):
    found, expected = np.transpose(list(steps(source(old, new), range(200))))
    assert np.mean(np.abs(found - expected) > 2e-3) > 0.4
