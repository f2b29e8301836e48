"""Estimates without a prior: unbiased by enumeration, best by linear algebra, and their stated variances unbiased as well."""

from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy.special import gammaln
from urn_laws import count_vectors

import privurn
from privurn.cell_tree import CellTree
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.released import Observed
from privurn.inference.counts.unbiased import unbiased_estimates
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, UrnTerm
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.tree_measurements import TreeMeasurements, noise_variance

COUNTS = np.array([4, 0, 2])
WEIGHTS = np.array([[1.0, 0.0, 0.0], [2.0, -1.0, 0.5], [1.0, 1.0, 1.0]])
EXACT = WEIGHTS @ COUNTS


def check(pairs):
    """(probability, estimate) over everything that can be released: means are exact, and so is the mean stated variance."""
    weights = np.array([p for p, _ in pairs])
    values, variances = (np.array([found[i] for _, found in pairs]) for i in (0, 1))
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert weights @ values == pytest.approx(EXACT, abs=1e-9)
    spread = weights @ (values - EXACT) ** 2
    assert weights @ variances == pytest.approx(spread, abs=1e-8)


def test_an_urn_by_enumeration():
    alpha, m, n = np.array([0.5, 1.5, 1.0]), 3, 6
    urn = alpha + COUNTS

    def law(s):
        ways = gammaln(m + 1) - gammaln(np.array(s) + 1).sum()
        rise = (gammaln(urn + s) - gammaln(urn)).sum() - gammaln(urn.sum() + m) + gammaln(urn.sum())
        return float(np.exp(ways + rise))

    found = []
    for s in count_vectors(m, 3):
        term = UrnTerm(alpha=alpha, released=np.array([s], np.int64))
        found.append((law(s), term.unbiased_sums(WEIGHTS, n=n)))
    check(found)
    pairs = [  # two runs of the urn, averaged
        (law(s) * law(t), UrnTerm(alpha=alpha, released=np.array([s, t], np.int64)).unbiased_sums(WEIGHTS, n=n))
        for s, t in product(count_vectors(m, 3), repeat=2)
    ]
    check(pairs)


def test_records_of_a_smoothed_histogram_by_enumeration():
    m, weight = 4, Fraction(1, 4)
    law = 0.75 * COUNTS / 6 + 0.25 / 3
    found = []
    for s in count_vectors(m, 3):
        p = factorial(m) / np.prod([factorial(k) for k in s]) * np.prod(law ** np.array(s))
        found.append((float(p), MixtureTerm(weight=weight, released=np.array(s, np.int64)).unbiased_sums(WEIGHTS, n=6)))
    check(found)


@pytest.mark.parametrize("n", [6, None])
def test_noisy_counts_against_their_covariance(n):
    """Linear in the noise: the estimate moves by a known vector, whose length is the stated variance."""
    term = lambda noisy: NoisyCountsTerm(noise="discrete-gaussian", scale=4.0, noisy=np.asarray(noisy, np.int64))  # noqa: E731
    value, variance = term(COUNTS).unbiased_sums(WEIGHTS, n=n)
    assert value == pytest.approx(EXACT)
    moves = np.array([term(COUNTS + np.eye(3, dtype=np.int64)[i]).unbiased_sums(WEIGHTS, n=n)[0] - value for i in range(3)])
    assert variance == pytest.approx(16.0 * (moves**2).sum(axis=0))
    assert variance[2] == pytest.approx(0.0 if n else 48.0)


@pytest.mark.parametrize("total", [60, None])
@pytest.mark.parametrize("special", [0, 2])
@pytest.mark.parametrize("shape", [(5,), (3, 3)])
def test_a_tree_against_generalised_least_squares(total, special, shape):
    rng, tree = np.random.default_rng(1), CellTree(shape)
    depths, scales = (1, tree.depth), (3.0, 2.0)
    k = tree.cells
    noisy = tuple(rng.integers(-3, 20, tree.nodes(depth)) for depth in depths)
    beside = tuple(int(each) for each in rng.integers(0, 9, special))
    seen = TreeMeasurements(
        tree,
        depths,
        noisy,
        tuple(("laplace", scale) for scale in scales),
        total=total,
        special=beside,
        special_noise=("laplace", 2.5) if special else None,
    )
    weights = rng.normal(size=(3, k + special))
    rows, seen_values, variances = [], [], []
    for depth, values, scale in zip(depths, noisy, scales, strict=True):
        for u in range(tree.nodes(depth)):
            rows.append([float(tree.sums(np.eye(k, dtype=np.int64)[i], depth)[u]) for i in range(k)] + [0.0] * special)
            seen_values.append(values[u])
            variances.append(noise_variance(("laplace", scale)))
    for j in range(special):
        rows.append([0.0] * k + [float(i == j) for i in range(special)])
        seen_values.append(beside[j])
        variances.append(noise_variance(("laplace", 2.5)))
    if total is not None:
        rows.append([1.0] * (k + special))
        seen_values.append(total)
        variances.append(1e-6)  # known, but for rounding
    design, precision = np.array(rows), np.diag(1.0 / np.array(variances))
    covariance = np.linalg.inv(design.T @ precision @ design)
    best = covariance @ design.T @ precision @ np.array(seen_values)
    value, variance = seen.unbiased_sums(weights, n=total)
    assert value == pytest.approx(weights @ best, abs=1e-3)
    assert variance == pytest.approx(np.einsum("fi,ij,fj->f", weights, covariance, weights), abs=1e-3)


def test_below_the_deepest_measured_depth_nothing_is_estimated():
    tree = CellTree((4,))
    seen = TreeMeasurements(tree, (1,), (np.array([5, 3]),), (("laplace", 1.0),), total=8)
    value, _ = seen.unbiased_sums(np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]), n=8)
    assert value[0] == pytest.approx(5.0)
    assert np.isnan(value[1])


def test_records_drawn_from_noisy_counts_have_none():
    term = NoisyRecordsTerm(noise="discrete-laplace", scale=1.0, smoothing=0.0, released=np.array([1, 2, 0]))
    assert term.unbiased_sums(WEIGHTS, n=6) is None
    assert UrnTerm(alpha=np.ones(3), released=np.array([[1, 2, 0]])).unbiased_sums(WEIGHTS, n=None) is None


def test_a_mean_among_missing_values_is_a_ratio_and_several_releases_count_by_their_precision():
    domain = privurn.JointDomain({"x": privurn.Grid(0, 2, 1, nulls="cell")})
    asked = parse_functionals(["mean", "P(x=missing)", "q0.5"])

    def seen(counts, scale):
        mechanism = PerturbedHistogram(n=1000, cells=4, records=4, noise="discrete-gaussian", scale=scale, publish="counts")
        return Observed(mechanism=mechanism, domain=domain, counts=np.array(counts))

    one, two = seen([400, 300, 200, 100], 2.0), seen([410, 290, 200, 100], 4.0)
    how = {"domain": domain, "within": "uniform", "population": False}
    found = unbiased_estimates([one], asked, **how)
    assert found.left_out == ("q0.5",)
    assert found[0].value == pytest.approx(700 / 900)
    residual = np.array([0, 1, 2, 0]) - found[0].value * np.array([1, 1, 1, 0])
    assert found[0].standard_error == pytest.approx(2.0 * np.sqrt(((residual - residual.mean()) ** 2).sum()) / 900)
    other = unbiased_estimates([two], asked, **how)[0]
    both = unbiased_estimates([one, two], asked, **how)[0]
    assert both.value == pytest.approx(0.8 * found[0].value + 0.2 * other.value, abs=1e-4)
    assert both.standard_error < found[0].standard_error
    wider = unbiased_estimates([one], asked, **(how | {"population": True}))[1]
    assert wider.standard_error**2 == pytest.approx((found[1].standard_error ** 2 + 0.1 * 0.9 / 1000) * 1000 / 999, rel=1e-3)
