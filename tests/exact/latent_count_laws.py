"""Posteriors of tiny tables of latent counts by brute force: every count, every latent noisy count, no shared code."""

from math import comb, lgamma, log

import numpy as np

from privurn.mechanisms.likelihood import MixtureTerm, NoisyRecordsTerm, UrnTerm

STEPS = {"laplace": 1024, "discrete-laplace": 1, "discrete-gaussian": 1}


def log_or_minus_infinity(x):
    return log(x) if x > 0 else -np.inf


def log_gamma_ratio(x, s):
    """log Gamma(x + s)/Gamma(x) with 1/Gamma(0) = 0 and Gamma(0)/Gamma(0) = 1."""
    if s == 0:
        return 0.0
    return -np.inf if x == 0 else lgamma(x + s) - lgamma(x)


def noise_log(noise, scale, z):
    steps = STEPS[noise]
    return -0.5 * (z / scale) ** 2 if noise == "discrete-gaussian" else -abs(z) / (scale * steps)


def prior_log(counts, gamma):
    """Dirichlet-multinomial probability of the counts given their sum."""
    n, total = sum(counts), sum(gamma)
    value = lgamma(n + 1) + lgamma(total) - lgamma(total + n)
    return value + sum(lgamma(g + c) - lgamma(g) - lgamma(c + 1) for g, c in zip(gamma, counts, strict=True))


def term_log(term, counts):
    """Likelihood of a release without latent numbers, given all counts."""
    n, k = sum(counts), len(counts)
    if isinstance(term, UrnTerm):
        value = 0.0
        for row in term.released:
            value += sum(log_gamma_ratio(a + c, s) for a, c, s in zip(term.alpha, counts, row, strict=True))
            value -= log_gamma_ratio(sum(term.alpha) + n, sum(row))
        return value
    if isinstance(term, MixtureTerm):
        w = term.weight
        shares = [(1 - w) * c / n + w / k for c in counts]
        return sum(s * log(q) for s, q in zip(term.released, shares, strict=True) if s > 0)
    steps = STEPS[term.noise]
    return sum(noise_log(term.noise, term.scale, d - steps * c) for d, c in zip(term.noisy, counts, strict=True))


def records_log(term, noisy):
    """Likelihood of records given the noisy counts they were drawn from."""
    k, total = len(noisy), sum(max(d, 0) for d in noisy)
    value = 0.0
    for d, s in zip(noisy, term.released, strict=True):
        share = max(d, 0) / total if total > 0 else 1 / k
        value += s * log_or_minus_infinity((1 - term.smoothing) * share + term.smoothing / k) if s > 0 else 0.0
    return value


def kept_log(term, noisy, kept):
    """Joint law of the records and of which of them were drawn from the noisy counts."""
    k, total = len(noisy), sum(max(d, 0) for d in noisy)
    value = 0.0
    for d, s, b in zip(noisy, term.released, kept, strict=True):
        share = max(d, 0) / total if total > 0 else 1 / k
        value += log(comb(s, b))
        value += b * log_or_minus_infinity((1 - term.smoothing) * share) if b > 0 else 0.0
        value += (s - b) * log_or_minus_infinity(term.smoothing / k) if s > b else 0.0
    return value


def size_log(model, n):
    """Log prior of a secret n, up to a constant; minus infinity beyond its bounds."""
    if model.n is not None:
        return 0.0
    prior = model.size_prior
    if not prior.lower <= n <= prior.upper:
        return -np.inf
    return 0.0 if prior.mean is None else n * log(prior.mean) - lgamma(n + 1)


def joint_log(model, counts, noisy=(), kept=()):
    """Log of prior times likelihood at one state, latent numbers and all."""
    value = prior_log(counts, model.prior) + size_log(model, sum(counts))
    hidden = [term for term in model.terms if isinstance(term, NoisyRecordsTerm)]
    for term in model.terms:
        if not isinstance(term, NoisyRecordsTerm):
            value += term_log(term, counts)
    for term, d, b in zip(hidden, noisy, kept, strict=True):
        value += kept_log(term, d, b)
        value += sum(noise_log(term.noise, term.scale, x - STEPS[term.noise] * c) for x, c in zip(d, counts, strict=True))
    return value


def tables(cells, n):
    """All counts with sum n."""
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in tables(cells - 1, n - first):
            yield (first, *rest)


class Enumerated:
    """The posterior of a model with at most one release whose noisy counts are latent, all states listed."""

    def __init__(self, model, reach=30.0):
        sizes = [model.n] if model.n is not None else range(model.size_prior.lower, model.size_prior.upper + 1)
        self.model = model
        self.counts = [table for n in sizes for table in tables(model.cells, n)]
        hidden = [term for term in model.terms if isinstance(term, NoisyRecordsTerm)]
        self.hidden = hidden[0] if hidden else None
        visible = [term for term in model.terms if not isinstance(term, NoisyRecordsTerm)]
        logs = [
            prior_log(c, model.prior) + size_log(model, sum(c)) + sum(term_log(term, c) for term in visible)
            for c in self.counts
        ]
        self.weights = np.exp(np.array(logs) - max(logs))
        if self.hidden is not None:
            self._enumerate_noisy(reach)
            self.weights = self.weights * np.array([joint.sum() for joint in self.joint])
        self.probabilities = self.weights / self.weights.sum()

    def _enumerate_noisy(self, reach):
        """For each table the weights of all noisy counts on a grid that leaves out less than e^-reach of the noise."""
        term, steps = self.hidden, STEPS[self.hidden.noise]
        wide = reach if term.noise != "discrete-gaussian" else np.sqrt(2 * reach)
        far = int(np.ceil(wide * term.scale * steps)) + 1
        largest = max(max(table) for table in self.counts)
        self.axis = np.arange(-far, steps * largest + far + 1)
        grids = np.meshgrid(*[self.axis] * self.model.cells, indexing="ij", sparse=True)
        clipped = [np.maximum(g, 0) for g in grids]
        total = sum(clipped)
        likelihood = np.ones(np.broadcast_shapes(*[g.shape for g in grids]))
        with np.errstate(invalid="ignore", divide="ignore"):
            for part, s in zip(clipped, term.released, strict=True):
                share = np.where(total > 0, part / total, 1 / self.model.cells)
                likelihood = likelihood * ((1 - term.smoothing) * share + term.smoothing / self.model.cells) ** int(s)
        rows = {
            c: np.exp([noise_log(term.noise, term.scale, float(d - steps * c)) for d in self.axis]) for c in range(largest + 1)
        }
        self.joint = []
        for table in self.counts:
            joint = likelihood
            for i, c in enumerate(table):
                joint = joint * rows[c].reshape([-1 if a == i else 1 for a in range(self.model.cells)])
            self.joint.append(joint)

    def states(self, size, rng):
        """Independent exact draws of the whole state, as the sampler keeps it; and the index of the counts of each."""
        chosen = rng.choice(len(self.counts), size=size, p=self.probabilities)
        made = [{"counts": np.array(self.counts[i], np.int64)} for i in chosen]
        if self.hidden is None:
            return made, chosen
        term, cells = self.hidden, self.model.cells
        for i in np.unique(chosen):
            flat = self.joint[i].ravel()
            ends = np.cumsum(flat)
            where = np.flatnonzero(chosen == i)
            points = np.searchsorted(ends, rng.random(len(where)) * ends[-1], side="right")
            places = np.stack(np.unravel_index(np.minimum(points, len(flat) - 1), self.joint[i].shape), axis=1)
            for at, noisy in zip(where, self.axis[places], strict=True):
                positive = np.maximum(noisy, 0)
                share = positive / positive.sum() if positive.any() else np.full(cells, 1 / cells)
                from_noisy = (1 - term.smoothing) * share
                with np.errstate(invalid="ignore"):
                    odds = np.where(term.released > 0, from_noisy / (from_noisy + term.smoothing / cells), 0.0)
                kept = rng.binomial(term.released, odds)
                made[at] |= {"noisy": noisy[None, :].astype(np.int64), "kept": kept[None, :].astype(np.int64)}
        return made, chosen
