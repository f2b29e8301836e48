"""What inference from noisy marginals claims to find, worked out with dense matrices on tables of a few cells.

Nothing is shared with the package. The mixture of products is the most probable one by another optimiser in double precision;
what is believed of the joint cells is Gaussian and solved in its information form; derivatives are differences of figures that
are worked out again.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from scipy import linalg, optimize

MOST, DROP = 100.0, 1.35
"""The largest n0 that is used, and how far the log likelihood falls from its maximum to the n0 that is taken."""

TAU, FLOOR = 1.5, 3e-4
STARTS = 2


@dataclass(frozen=True)
class Table:
    """Noisy counts by set of columns, the variance of each, and n where it is public."""

    sizes: tuple[int, ...]
    counts: dict[tuple[int, ...], np.ndarray]
    variances: dict[tuple[int, ...], float]
    public: int | None

    @cached_property
    def size(self):
        """n and its variance: sums of all marginals, each with the weight of its precision."""
        if self.public is not None:
            return float(self.public), 0.0
        precision = {each: 1.0 / (y.size * self.variances[each]) for each, y in self.counts.items()}
        total = sum(precision.values())
        return sum(p * self.counts[each].sum() for each, p in precision.items()) / total, 1.0 / total

    def about(self, places):
        """For every marginal that shares a column with `places`: the columns shared, noisy shares and their variance."""
        for each, y in self.counts.items():
            shared = tuple(j for j in each if j in places)
            if shared:
                others = tuple(i for i, j in enumerate(each) if j not in places)
                summed = np.prod([self.sizes[each[i]] for i in others])
                yield shared, y.sum(axis=others) / self.size[0], summed * self.variances[each] / self.size[0] ** 2

    @cached_property
    def law(self):
        """Of the joint cells: the most probable mixture of products given single columns and pairs."""
        return most_probable(self)

    def marginal(self, places):
        return self.law.sum(axis=tuple(j for j in range(len(self.sizes)) if j not in places))

    @cached_property
    def trust(self):
        """n0: from the triple given its pairs, where one was measured."""
        n = self.size[0]
        return min(MOST, n, *([learnt(self)] if len(self.sizes) == 3 else []))


def shares_of_columns(table):
    """Noisy shares of each column alone from the marginal with the least noise on them, floored."""
    found = []
    for j in range(len(table.sizes)):
        each = min((s for s in table.counts if j in s), key=lambda s: table.variances[s] * table.counts[s].size)
        shares = table.counts[each].sum(axis=tuple(i for i, place in enumerate(each) if place != j)) / table.size[0]
        shares = np.maximum(shares, FLOOR)
        found.append(np.log(shares / shares.sum()))
    return found


def most_probable(table):
    """Weights softmax(eta), probabilities softmax(log b + tau xi) column by column, eta and xi standard normal."""
    n, base = table.size[0], shares_of_columns(table)
    pairs = [np.sqrt(table.variances[each]) for each in table.counts if len(each) == 2]
    classes = round(min(100.0, max(25.0, n / np.median(pairs) / 1.5)))
    ends = np.cumsum([0, *table.sizes])
    letters = "xyz"[: len(base)]

    def parts(values):
        eta, xi = values[:classes], values[classes:].reshape(classes, -1)
        weights = np.exp(eta - eta.max())
        columns = [np.exp(log + TAU * xi[:, a:b]) for log, a, b in zip(base, ends[:-1], ends[1:], strict=True)]
        return weights / weights.sum(), [each / each.sum(axis=1, keepdims=True) for each in columns]

    def joint(weights, columns):
        return np.einsum("k," + ",".join("k" + each for each in letters) + "->" + letters, weights, *columns)

    def misfit(values):
        weights, columns = parts(values)
        law = joint(weights, columns)
        found, pull = 0.5 * values @ values, np.zeros(law.shape)
        for each, y in table.counts.items():
            if len(each) < 3:
                others = tuple(j for j in range(len(base)) if j not in each)
                off = law.sum(axis=others) - y / n
                precision = n**2 / max(1.0, table.variances[each])
                found += 0.5 * precision * (off**2).sum()
                pull += np.expand_dims(precision * off, others)
        slope = values.copy()
        named = ["k" + each for each in letters]
        of_weights = np.einsum(f"{letters},{','.join(named)}->k", pull, *columns)
        slope[:classes] += weights * (of_weights - weights @ of_weights)
        of_xi = slope[classes:].reshape(classes, -1)
        for j, own in enumerate(columns):
            rest = [columns[i] for i in range(len(base)) if i != j]
            names = ",".join(["k", letters, *(named[i] for i in range(len(base)) if i != j)])
            by = np.einsum(f"{names}->{named[j]}", weights, pull, *rest)
            of_xi[:, ends[j] : ends[j + 1]] += TAU * own * (by - (own * by).sum(axis=1, keepdims=True))
        return found, slope

    rng = np.random.default_rng(8)
    starts = [0.3 * rng.standard_normal(classes * (1 + ends[-1])) for _ in range(STARTS)]
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-13, "gtol": 1e-7}
    found = [optimize.minimize(misfit, x, jac=True, method="L-BFGS-B", options=options) for x in starts]
    return joint(*parts(min(found, key=lambda each: each.fun).x))


def indicators(sizes, places):
    """A row for each cell of some columns, a column for each joint cell."""
    cells = list(product(*map(range, sizes)))
    rows = product(*(range(sizes[j]) for j in places))
    return np.array([[float(all(cell[j] == v for j, v in zip(places, row, strict=True))) for cell in cells] for row in rows])


def covariance(law):
    """Of the joint cells of one record."""
    return np.diag(law) - np.outer(law, law)


def learnt(table):
    """n0 below the most likely one, where the triple is still a quarter as likely given its pairs."""
    n, sizes, law = table.size[0], table.sizes, table.law.ravel()
    sets = [*combinations(range(3), 2), (0, 1, 2)]
    x = np.concatenate([indicators(sizes, each) for each in sets])
    off = np.concatenate([table.counts[each].ravel() / n for each in sets]) - x @ law
    noise = np.concatenate([np.full(table.counts[each].size, table.variances[each] / n**2) for each in sets])
    pairs = sum(table.counts[each].size for each in sets[:3])
    one = x @ covariance(law) @ x.T

    def log_normal(size, count):
        both = (one / size + np.diag(noise))[:count, :count]
        return -0.5 * (np.linalg.slogdet(both)[1] + off[:count] @ np.linalg.solve(both, off[:count]))

    def level(log_size):
        size = np.exp(log_size)
        return log_normal(size, len(off)) - log_normal(size, pairs)

    grid = np.linspace(np.log(2.0), np.log(max(4.0, n)), 400)
    curve = np.array([level(each) for each in grid])
    top = int(curve.argmax())
    if curve[: top + 1].min() > curve[top] - DROP:
        return 2.0
    below = max(i for i in range(top) if curve[i] <= curve[top] - DROP)
    return float(np.exp(optimize.brentq(lambda each: level(each) - curve[top] + DROP, grid[below], grid[below + 1])))


class Belief:
    """Shares of the joint cells of `places`: Gaussian, around the mixture's law, given all marginals that share a column.

    The law's distance is that of `trust` records. Where `pairs` are open as well, random functions of every two columns are
    added, as of a thirtieth of what the noisy pairs are worth, and three records at most; `free`: as good as nothing. Left out,
    they are open where no triple tells how far the law is off; of one column alone the law then is worth three records.
    """

    def __init__(self, table, places, *, pairs=None):
        if pairs is None:
            pairs = len(table.sizes) == 2
        sizes = tuple(table.sizes[j] for j in places)
        self.table, self.places = table, places
        self.n, size_variance = table.size
        self.law = table.marginal(places).ravel()
        own = covariance(self.law)
        prior = own / (3.0 if pairs and len(sizes) == 1 else table.trust)
        for pair in combinations(range(len(sizes)), 2) if pairs else ():
            x = indicators(sizes, pair)
            worth = 1.0 / (len(x) * best_variance(table, tuple(places[i] for i in pair)))
            open_by = 1e6 if pairs == "free" else 1.0 / min(3.0, worth / 30.0)
            shared = x.T @ np.diag(1.0 / (x @ self.law)) @ x
            prior = prior + open_by * np.outer(self.law, self.law) * (shared - 1.0)
        basis = linalg.null_space(np.ones((1, len(self.law))))
        information, pull = np.linalg.inv(basis.T @ prior @ basis), 0.0
        by_size = 0.0
        for shared, y, variance in table.about(places):
            x = indicators(sizes, [places.index(j) for j in shared])
            information = information + (x @ basis).T @ (x @ basis) / variance
            pull = pull + (x @ basis).T @ (y.ravel() - x @ self.law) / variance
            by_size = by_size + (x @ basis).T @ (x @ self.law) / variance
        self.cells = self.law + basis @ np.linalg.solve(information, pull)
        moved = basis @ np.linalg.solve(information, by_size) * np.sqrt(size_variance) / self.n
        self.covariance = basis @ np.linalg.inv(information) @ basis.T + np.outer(moved, moved)

    def figures(self, of):
        """Functions of the cells, and what their covariance is of the table and by sampling the table."""
        step = 1e-5 * np.eye(len(self.cells))
        slopes = np.array([(of(self.cells + each) - of(self.cells - each)) / 2e-5 for each in step]).T
        sampling = slopes @ covariance(self.law) @ slopes.T / self.n
        return of(self.cells), slopes @ self.covariance @ slopes.T, sampling

    def difference(self, above, below):
        """Sums of `above` over sums of `below`, the second ratio off the first: estimate, variances of table and sampling.

        The noise that is in the mixture itself, S (1 - A/S)^2 where A is claimed and S is the noise, is in the first variance.
        """
        above, below = np.atleast_2d(above), np.atleast_2d(below)
        ratios, claimed, sampling = self.figures(lambda cells: (above @ cells) / (below @ cells))
        whole = (below == 1.0).all(axis=1, keepdims=True) & (self.table.public is not None)
        influence = np.where(whole, above, (above - ratios[:, None] * below) / (below @ self.law)[:, None])
        noise = best_variance(self.table, self.places) * influence @ influence.T
        share = np.maximum(0.0, 1.0 - np.diag(claimed) / np.diag(noise))
        sign = np.array([1.0, -1.0])[: len(ratios)]
        of_table = claimed + share[:, None] * noise * share
        return float(sign @ ratios), float(sign @ of_table @ sign), float(sign @ sampling @ sign)


def best_variance(table, places):
    """Of an inverse-variance mean of the noisy shares of some columns."""
    return 1.0 / sum(1.0 / variance for shared, _, variance in table.about(places) if shared == tuple(places))


def best_shares(table, places):
    """That mean: shares straight from the noisy counts."""
    mean = sum(y / variance for shared, y, variance in table.about(places) if shared == tuple(places))
    return (mean * best_variance(table, places)).ravel()
