"""Draws of urn posteriors: laws that enumeration gives, and calibration over prior -> data -> release -> posterior.

Each test has a twin with a planted bug that must be caught. False-alarm rates: ALPHA of `sampler_checks` for ranks, RARE here.
"""

from collections import Counter, defaultdict
from fractions import Fraction
from math import lgamma

import numpy as np
import pytest
from papers.urn_moments import MeasureMoments
from sampler_checks import random_rank, rank_p_value, sequential
from scipy import stats

from privurn.counts import CountTable
from privurn.inference.counts.composition import composition
from privurn.inference.counts.urn_measures import MeasurePosterior, measure_posterior, positive_counts
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.entropy import SeededEntropy

F = Fraction
RARE = 1e-6
DRAWS = 19


def agrees(observed, probabilities):
    """Chi-square of counted outcomes against their law; rare outcomes together."""
    n = sum(observed.values())
    keys = list(probabilities)
    expected = n * np.array([probabilities[key] for key in keys])
    seen = np.array([observed.get(key, 0) for key in keys])
    if seen.sum() != n:
        return False  # an outcome of probability 0
    common = expected >= 8
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 0
    return stats.chisquare(seen[keep], expected[keep] * (n / expected[keep].sum())).pvalue > RARE


def positive_law(n, shapes, other):
    """Dirichlet-multinomial weights with positive counts of two labels."""
    law = {}
    for first in range(1, n):
        for second in range(1, n - first + 1):
            counts = (first, second, n - first - second)
            law[counts[:2]] = np.exp(
                sum(lgamma(c + a) - lgamma(c + 1.0) for c, a in zip(counts, (*shapes, other), strict=True))
            )
    total = sum(law.values())
    return {key: value / total for key, value in law.items()}


@pytest.mark.parametrize(
    ("n", "shapes", "other"),
    [(6, (0.5, 2.5), 1.0), (12, (0.5, 0.5), 3.0), (4, (8.0, 40.0), 0.3), (150, (60.0, 0.5), 0.2), (40, (1.0, 0.1), 0.1)],
)
def test_positive_counts_have_their_law(n, shapes, other):
    """The rejection sampler: inversion and gamma-Poisson draws, every kind of closing count. Other laws are caught."""
    rng = np.random.default_rng(1)
    counts, others = positive_counts(20_000, n=n, shapes=np.array(shapes), other_shape=other, rng=rng)
    assert (counts.sum(axis=1) + others == n).all()
    law = positive_law(n, shapes, other)
    assert agrees(Counter(map(tuple, counts.tolist())), law)
    wrong = rng.multinomial(n, rng.dirichlet([*shapes, other], size=20_000))
    assert not agrees(Counter(map(tuple, wrong[:, :2].tolist())), law)
    moved = positive_law(n, (2.0 * shapes[0], shapes[1]), other)
    assert not agrees(Counter(map(tuple, counts.tolist())), moved)


def test_positive_counts_where_nothing_is_random():
    rng = np.random.default_rng(2)
    counts, others = positive_counts(3, n=2, shapes=np.array([0.5, 4.0]), other_shape=1.0, rng=rng)
    assert counts.tolist() == [[1, 1]] * 3
    assert others.tolist() == [0, 0, 0]
    counts, others = positive_counts(2, n=5, shapes=np.empty(0), other_shape=1.0, rng=rng)
    assert counts.shape == (2, 0)
    assert others.tolist() == [5, 5]


# What further records would show: enumerated with n = 2, Z = (a, a, b), two further records


def further_laws(strength, discount, *, about):
    """Laws of (distinct values not released among two further records) and P(both are one such value)."""
    released = {"a": 2, "b": 1}
    law, same, total = defaultdict(float), 0.0, 0.0

    def next_values(counts, start):
        size = strength + sum(counts.values())
        new = f"{start}{len(counts)}"
        return [(v, (c - discount) / size) for v, c in counts.items()] + [(new, (strength + discount * len(counts)) / size)]

    for first, p in next_values(released, "x"):
        seen = Counter(released) + Counter([first])
        for second, q in next_values(seen, "x"):
            x = Counter([first, second])
            start = Counter(released) + x if about == "urn" else x
            for third, r in next_values(start, "y"):
                for fourth, s in next_values(start + Counter([third]), "y"):
                    weight = p * q * r * s
                    new = {v for v in (third, fourth) if v not in released}
                    law[len(new)] += weight
                    same += weight * (third == fourth and third not in released)
                    total += weight
    assert total == pytest.approx(1.0, abs=1e-12)
    return dict(law), same


@pytest.mark.parametrize(("strength", "discount"), [(1.5, 0.0), (1.0, 0.5), (-0.2, 0.6)])
@pytest.mark.parametrize("about", ["population", "urn"])
def test_distinct_values_of_a_further_sample(strength, discount, about):
    """Counts and pairs elsewhere against enumeration; the other question's law is caught."""
    rng = np.random.default_rng(3)
    found = MeasurePosterior(labels=("a", "b"), counts=np.array([2, 1]), n=2, strength=strength, discount=discount)
    draws = found.draw(60_000, rng=rng, about=about)
    observed = Counter(draws.distinct_elsewhere(2, rng=rng).tolist())
    law, same = further_laws(strength, discount, about=about)
    assert agrees(observed, law)
    other, _ = further_laws(strength, discount, about="urn" if about == "population" else "population")
    assert not agrees(observed, other)

    few = found.draw(20_000, rng=rng, about=about)
    atoms, left = few.atoms_elsewhere(60, rng=rng)
    assert atoms.sum(axis=1) + left == pytest.approx(few.elsewhere, abs=1e-12)
    pairs = (atoms**2).sum(axis=1)
    lowest, highest = pairs.mean(), (pairs + left**2).mean()  # what is left over may be one atom, or dust
    error = 5.0 * pairs.std() / np.sqrt(len(pairs))
    assert lowest - error <= same <= highest + error


# Calibration. (p, x) from the prior by its urn: x first, then p given x, so that nothing is truncated.


def restaurant(n, strength, discount, rng):
    """Counts of a Pitman-Yor sample: copy an earlier record, or open a value with what it gives up for having opened one."""
    tables, opened = [], []
    for i, u in enumerate(rng.random(n).tolist()):
        v = u * (strength + i) - strength
        ball = min(i - 1, int(v)) if i and v >= 0.0 else -1
        opened.append(ball < 0 or (opened[ball] and v - ball < discount))
        tables.append(sum(opened) - 1 if opened[-1] else tables[ball])
    return np.bincount(tables)


def open_ranks(size, *, strength, discount, n, records, flags, old_only=False, bug=None, seed=4):
    """Ranks of: probability of the commonest released label, of the rarest, and the discovery probability."""
    rng = np.random.default_rng([seed, size])
    entropy = SeededEntropy(int(rng.integers(2**62)))
    urn = PitmanYor(n=n, records=records, strength=strength, discount=discount, old_values_only=old_only)
    theta, sigma = float(strength), float(discount)
    ranks = []
    while len(ranks) < size:
        x = restaurant(n, theta, sigma, rng)
        truth = rng.dirichlet([*(x - sigma), theta + len(x) * sigma])
        cells, counts = np.unique(urn.draw(CountTable(np.arange(len(x)), x), entropy=entropy).cells, return_counts=True)
        if not len(cells):
            continue  # nothing was published, nothing to judge
        order = rng.permutation(len(cells))  # numbers of cells tell in which order x showed them: not public
        order = order[np.argsort(counts[order], kind="stable")]
        judged = np.flatnonzero(cells[order] < len(x)) if flags else np.arange(len(cells))  # flags are public then
        if not len(judged):
            continue
        rarest, commonest = judged[0], judged[-1]
        cells, counts = cells[order], counts[order]
        shown = cells < len(x)
        true_weights = np.where(shown, truth[np.minimum(cells, len(x) - 1)], 0.0)
        found = measure_posterior(urn, labels=cells.tolist(), counts=counts, of_data=shown if flags else None)
        if bug == "discount":
            found = _changed(found, discount=0.0)
        elif bug == "n + m":
            found = _changed(found, n=n + records)
        draws = found.draw(DRAWS, rng=rng, about="urn" if bug == "urn" else "population")
        if bug == "flags ignored":
            draws = _changed(found, of_data=None).draw(DRAWS, rng=rng)
        ranks.append(
            [
                random_rank(true_weights[commonest], draws.weights[:, commonest], rng),
                random_rank(true_weights[rarest], draws.weights[:, rarest], rng),
                random_rank(1.0 - true_weights.sum(), draws.elsewhere, rng),
            ]
        )
    return [rank_p_value(column, n_ranks=DRAWS + 1) for column in np.array(ranks).T]


def _changed(found, **changes):
    from dataclasses import replace

    return replace(found, **changes)


SETTINGS = [
    {"strength": F(3), "discount": F(0), "n": 25, "records": 20, "flags": False},
    {"strength": F(3), "discount": F(0), "n": 25, "records": 20, "flags": True},
    {"strength": F(1), "discount": F(1, 2), "n": 25, "records": 20, "flags": False},
    {"strength": F(1), "discount": F(1, 2), "n": 25, "records": 20, "flags": True},
    {"strength": F(3), "discount": F(0), "n": 25, "records": 20, "flags": False, "old_only": True},
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_open_releases_are_calibrated(setting):
    assert sequential(lambda size: open_ranks(size, **setting), size=2_000)


@pytest.mark.parametrize(
    ("setting", "bug"),
    [(0, "urn"), (2, "urn"), (2, "discount"), (3, "discount"), (0, "n + m"), (1, "flags ignored")],
)
def test_planted_bugs_are_caught(setting, bug):
    """ "urn" is the posterior in print, taken for the population's: at m near n it is far too narrow."""
    assert not sequential(lambda size: open_ranks(size, bug=bug, **SETTINGS[setting]), size=2_000)


def finite_ranks(size, *, bug=None):
    """Public domain: ranks of one cell, of a mean and of one count."""
    rng = np.random.default_rng([5, size])
    alpha = np.array([0.5, 2.0, 1.0, 3.0])
    urn = DirichletMultinomial(n=30, cells=4, alpha=tuple(map(F, alpha.tolist())), records=25)
    values = np.array([0.0, 1.0, 2.0, 5.0])
    ranks = np.empty((size, 3), np.int64)
    for i in range(size):
        p = rng.dirichlet(alpha)
        c = rng.multinomial(30, p)
        found = composition(urn, counts=urn.simulate(CountTable.from_cells(np.arange(4), c), rng=rng))
        counts = rng.multinomial(30, rng.dirichlet(found.urn, size=DRAWS))
        shapes = np.broadcast_to(found.urn, (DRAWS, 4)) if bug == "urn" else found.prior + counts
        gammas = rng.standard_gamma(shapes)
        drawn = gammas / gammas.sum(axis=1, keepdims=True)
        if bug == "released for data":
            counts = rng.multinomial(30, np.broadcast_to(found.released / 25, (DRAWS, 4)))
        ranks[i] = (
            random_rank(p[3], drawn[:, 3], rng),
            random_rank(p @ values, drawn @ values, rng),
            random_rank(c[1], counts[:, 1], rng),
        )
    return [rank_p_value(column, n_ranks=DRAWS + 1) for column in ranks.T]


def test_public_domain_releases_are_calibrated():
    assert sequential(lambda size: finite_ranks(size), size=2_000)


@pytest.mark.parametrize("bug", ["urn", "released for data"])
def test_planted_bugs_on_a_public_domain_are_caught(bug):
    assert not sequential(lambda size: finite_ranks(size, bug=bug), size=2_000)


def test_closed_moments_are_those_of_the_draws():
    """Both packages of formulas on a release of ordinary size; five standard errors, one-sided 3e-7 each."""
    rng = np.random.default_rng(6)
    found = MeasurePosterior(labels=tuple("abcd"), counts=np.array([40, 7, 2, 1]), n=500, strength=2.0, discount=0.3)
    moments = MeasureMoments(found)
    for about in ("population", "sample", "urn"):
        draws = found.draw(40_000, rng=rng, about=about)
        error = 5.0 * np.sqrt(moments.variance(about=about) / 40_000)
        assert (np.abs(draws.weights.mean(axis=0) - moments.mean(about=about)) <= error).all()
        assert abs(draws.elsewhere.mean() - moments.discovery_probability(about=about)) <= 5.0 * draws.elsewhere.std() / 200.0
        squares = (draws.weights - moments.mean(about=about)) ** 2
        assert (np.abs(squares.mean(axis=0) - moments.variance(about=about)) <= 5.0 * squares.std(axis=0) / 200.0).all()
