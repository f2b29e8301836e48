"""Posteriors of tiny cases by enumeration, quadrature or weighted draws from the prior; no code is shared with the package.

Each function returns the probabilities that named numbers are at most given points: posteriors with tails too heavy for a mean
have those too. Weighted draws come with their standard errors; the other references have none.
"""

import math

import numpy as np
from latent_count_laws import tables
from scipy import stats
from scipy.special import expit, gammaln

WORTHS = 16
"""Points of a Gauss-Legendre rule for the worth of a flat prior, whose logarithm is uniform."""


class CountPosterior:
    """Weights of (counts, prior records in each cell) given the likelihood of each table; n flat on `sizes`.

    Where `each` is None the prior's worth is learnt: from one record in all to one in each cell, its logarithm uniform.
    """

    def __init__(self, level, *, cells, sizes, each=None):
        self.counts = np.array([counts for n in sizes for counts in tables(cells, n)])
        nodes, weights = np.polynomial.legendre.leggauss(WORTHS)
        worths = np.exp(np.log(cells) * (nodes + 1.0) / 2.0) if each is None else np.array([each * cells])
        self.prior, total = worths / cells, worths
        n = self.counts.sum(axis=1)[:, None]
        logs = gammaln(n + 1.0) + gammaln(total) - gammaln(total + n) + np.array([level(c) for c in self.counts])[:, None]
        cell = self.counts[:, None, :]
        a = self.prior[None, :, None]
        logs = logs + (gammaln(a + cell) - gammaln(a) - gammaln(cell + 1.0)).sum(axis=2)
        self.weights = np.exp(logs - logs.max()) * (weights if each is None else 1.0)
        self.weights /= self.weights.sum()

    def share_cdf(self, *, cell, at):
        """P(share of a cell <= at): given counts and prior that share is a Beta variable."""
        own = self.counts[:, [cell]]
        first = own + self.prior
        second = self.counts.sum(axis=1)[:, None] - own + (self.counts.shape[1] - 1) * self.prior
        return [float((self.weights * stats.beta.cdf(x, first, second)).sum()) for x in at]

    def size_cdf(self, *, at):
        """P(n <= at)."""
        n = self.counts.sum(axis=1)
        return [float(self.weights[n <= x].sum()) for x in at]

    @property
    def mean_size(self):
        return float(self.weights.sum(axis=1) @ self.counts.sum(axis=1))


class HiddenNoise:
    """Log likelihood of records drawn from noisy counts that were not published: the sum over all that have any weight."""

    def __init__(self, term, *, largest, reach=14):
        self.scale, cells = term.scale, len(term.released)
        self.axis = np.arange(-reach, largest + reach + 1)
        grids = np.meshgrid(*[np.maximum(self.axis, 0)] * cells, indexing="ij", sparse=True)
        total = sum(grids)
        self.records = np.ones(np.broadcast_shapes(*[g.shape for g in grids]))
        for part, s in zip(grids, term.released, strict=True):
            share = np.where(total > 0, part / np.maximum(total, 1), 1.0 / cells)
            self.records = self.records * ((1.0 - term.smoothing) * share + term.smoothing / cells) ** int(s)

    def __call__(self, counts):
        found = self.records
        for c in counts:  # the first axis that is left belongs to the next cell
            found = np.tensordot(np.exp(-np.abs(self.axis - c) / self.scale), found, axes=(0, 0))
        return math.log(found)


def size_weights(seen, *, most):
    """n = 1, ..., most and the weight of each: flat prior times Laplace noise of the published number, or the public one."""
    if seen["n"] is not None:
        return np.array([seen["n"]]), np.ones(1)
    sizes = np.arange(1, most + 1)
    return sizes, np.exp(-np.abs(sizes - seen["noisy_n"]) / seen["size_scale"])


def proportion(seen, *, at, most=150):
    """A Bernoulli sum with a Beta(1, 1) prior: all (n, number of ones)."""
    sizes, levels = size_weights(seen, most=most)
    pairs = [(n, k, level) for n, level in zip(sizes, levels, strict=True) for k in range(n + 1)]
    n, k = np.array([each[0] for each in pairs]), np.array([each[1] for each in pairs])
    weights = np.array([each[2] for each in pairs]) / (n + 1.0) * np.exp(-np.abs(seen["values"][0] - k) / seen["scale"])
    weights /= weights.sum()
    chance = [float(weights @ stats.beta.cdf(x, 1.0 + k, 1.0 + n - k)) for x in at["probability"]]
    return {"probability": chance, "n": [float(weights[n <= x].sum()) for x in at["n"]]}


def rate(seen, *, upper, at, most=24):
    """A sum of Poisson counts clamped at `upper`, Gamma(1, 0.1) prior: the sum's law by convolution, the rate on a grid."""
    grid = np.linspace(0.0, 60.0, 3001)[1:]
    one = np.column_stack([stats.poisson.pmf(k, grid) for k in range(upper)] + [stats.poisson.sf(upper - 1, grid)])
    sizes, levels = size_weights(seen, most=most)
    law, joint = np.ones((len(grid), 1)), []
    for n in range(1, int(sizes.max()) + 1):
        law = np.sum(
            [np.pad(one[:, [k]] * law, ((0, 0), (k, upper - k))) for k in range(upper + 1)], axis=0
        )  # law of the sum of n counts
        if n in sizes:
            fit = law @ np.exp(-np.abs(seen["values"][0] - np.arange(law.shape[1])) / seen["scale"])
            joint.append(levels[list(sizes).index(n)] * fit * np.exp(-0.1 * grid))
    joint = np.array(joint)
    joint /= joint.sum()
    return {
        "rate": [float(joint[:, grid <= x].sum()) for x in at["rate"]],
        "n": [float(joint[sizes <= x].sum()) for x in at["n"]],
    }


class Weighted:
    """Draws from the prior weighted by the density of what was released: independent, so their errors are known."""

    def __init__(self, logs, numbers):
        weights = np.exp(logs - logs.max())
        self.weights, self.numbers = weights / weights.sum(), numbers

    def cdf(self, at):
        """Probabilities, and their standard errors."""
        found, errors = {}, {}
        for name, points in at.items():
            below = self.numbers[name][:, None] <= np.asarray(points)
            found[name] = self.weights @ below
            errors[name] = np.sqrt((self.weights**2) @ (below - found[name]) ** 2)
        return found, errors


def laplace_log(values, sums, scale):
    return -np.abs(np.asarray(values) - sums).sum(axis=1) / scale


def drawn_sizes(seen, size, rng, *, most):
    sizes, levels = size_weights(seen, most=most)
    return rng.choice(sizes, size=size, p=levels / levels.sum())


def masked(n, most):
    return np.arange(most)[None, :] < n[:, None]


def line(seen, *, offset, size, rng, most):
    """Normal regression on columns whose bounds are -1 and 1 under the prior that follows them; one covariate or none."""
    covariates = 0 if len(seen["values"]) == 2 else 1
    n = drawn_sizes(seen, size, rng, most=most)
    tau = rng.gamma(0.5, 1.0 / 0.0125, size)
    beta = rng.normal(size=(size, covariates + 1)) * (10.0 / np.sqrt(tau))[:, None]
    columns, numbers = [], {"tau": tau, "n": n}
    y = beta[:, [0]] + rng.normal(size=(size, most)) / np.sqrt(tau)[:, None]
    if covariates:
        mu, phi = rng.normal(size=size), 20.0 * rng.chisquare(1.0, size)
        x = mu[:, None] + rng.normal(size=(size, most)) / np.sqrt(phi)[:, None]
        y = y + beta[:, [1]] * x
        columns.append(x)
        numbers |= {"mu": mu, "slope": beta[:, 1]}
    numbers["intercept"] = beta[:, 0]
    used = masked(n, most)
    z = [np.where(used, np.clip(column, -1.0, 1.0), 0.0) for column in (*columns, y)]
    sums = []
    for j, first in enumerate([used.astype(float), *z]):
        for k, second in enumerate([used.astype(float), *z]):
            if k > 0 and j <= k:
                sums.append((first * second).sum(axis=1) - (offset * n if j == k else 0.0))
    return Weighted(laplace_log(seen["values"], np.column_stack(sums), seen["scale"]), numbers)


def odds(seen, *, offset, size, rng, most):
    """Logistic regression on one covariate with bounds -1 and 1, prior following them."""
    n = drawn_sizes(seen, size, rng, most=most)
    beta, mu, phi = 5.0 * rng.normal(size=(size, 2)), rng.normal(size=size), 20.0 * rng.chisquare(1.0, size)
    x = mu[:, None] + rng.normal(size=(size, most)) / np.sqrt(phi)[:, None]
    y = rng.random((size, most)) < expit(beta[:, [0]] + beta[:, [1]] * x)
    used = masked(n, most)
    z = np.where(used, np.clip(x, -1.0, 1.0), 0.0)
    sums = np.column_stack(
        [
            np.where(used, 2.0 * y - 1.0, 0.0).sum(axis=1),
            (y * z).sum(axis=1),
            (~y * z).sum(axis=1),
            (z * z).sum(axis=1) - offset * n,
        ]
    )
    numbers = {"intercept": beta[:, 0], "slope": beta[:, 1], "mu": mu, "n": n}
    return Weighted(laplace_log(seen["values"], sums, seen["scale"]), numbers)


def parts(seen, *, floor, size, rng, most):
    """Compositions of two parts, each alpha Gamma(1, 0.1)."""
    n = drawn_sizes(seen, size, rng, most=most)
    alpha = rng.gamma(1.0, 10.0, (size, 2))
    # logarithms of gamma variables, as small as small alphas make them
    logs = np.log(rng.standard_gamma(alpha[:, None, :] + 1.0, (size, most, 2)))
    logs += np.log(rng.random((size, most, 2))) / alpha[:, None, :]
    logs -= np.logaddexp(logs[..., 0], logs[..., 1])[..., None]
    sums = np.where(masked(n, most)[..., None], np.maximum(logs, math.log(floor)), 0.0).sum(axis=1)
    numbers = {"first": alpha[:, 0], "second": alpha[:, 1], "n": n}
    return Weighted(laplace_log(seen["values"], sums, seen["scale"]), numbers)
