"""The compiled loop draws what it says: laws of functionals of Dirichlet distributions, known in closed form.

Each check fails a right kernel with probability at most ALPHA; `test_a_planted_bug_is_caught` shows that a wrong one does fail.
"""

import numpy as np
import pytest
from papers.urn_moments import CompositionMoments
from scipy import stats

from privurn._kernels.counts.functionals import update_composed, update_dirichlet
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.composition import Composition
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce

ALPHA = 1e-6
DRAWS = 40_000
DOMAIN = JointDomain({"x": Grid(0, 1, "0.25")})
VALUES = np.array([0, 0.25, 0.5, 0.75, 1.0])
SHAPES = np.array([0.3, 4.0, 1.0, 11.5, 2.2])
ASKED = ["mean", "variance", "q0.5", "cdf(0.3)", "P(x>0.75)"]
PLAN = reduce(parse_functionals(ASKED), domain=DOMAIN)


def drawn(shapes, seed=1, plan=PLAN, draws=DRAWS):
    out = np.empty((draws, len(plan.names)))
    update_dirichlet(out, np.random.default_rng(seed), plan.grouped(shapes), plan.plan)
    return dict(zip(plan.names, out.T, strict=True))


def z_p_value(values, expected):
    error = values.std(ddof=1) / np.sqrt(len(values))
    return 2.0 * stats.norm.sf(abs(values.mean() - expected) / error)


def p_values(found, shapes):
    """Of the exact moments of the mean and the variance, and the exact laws of a share and of the median."""
    total = shapes.sum()
    share = shapes / total
    mean = share @ VALUES
    spread = share @ VALUES**2 - mean**2
    below = np.cumsum(shapes)
    median = [
        stats.binomtest(int(np.sum(found["q0.5"] <= value)), DRAWS, stats.beta.sf(0.5, b, total - b)).pvalue
        for value, b in zip(VALUES[:-1], below[:-1], strict=True)
    ]
    return np.array(
        [
            z_p_value(found["mean"], mean),
            z_p_value((found["mean"] - mean) ** 2, spread / (total + 1.0)),
            z_p_value(found["variance"], spread * total / (total + 1.0)),
            stats.kstest(found["cdf(0.3)"], stats.beta(below[1], total - below[1]).cdf).pvalue,
            stats.kstest(found["P(x>0.75)"], stats.beta(shapes[4], total - shapes[4]).cdf).pvalue,
            *median,
        ]
    )


def test_functionals_of_a_dirichlet_distribution():
    found = p_values(drawn(SHAPES), SHAPES)
    assert found.min() > ALPHA / len(found), f"p values {found} at a false-alarm rate of {ALPHA}"


def test_a_planted_bug_is_caught():
    wrong = SHAPES + np.array([0.0, 0.25, 0.0, 0.0, 0.0])
    found = p_values(drawn(wrong), SHAPES)
    assert found.min() < ALPHA / len(found)


def test_grouped_cells_have_the_same_law():
    """Two shares alone need three groups of the five cells."""
    plan = reduce(parse_functionals(["cdf(0.3)", "P(x>0.75)"]), domain=DOMAIN)
    assert plan.n_groups == 3
    few, all_cells = drawn(SHAPES, seed=3, plan=plan), drawn(SHAPES, seed=4)
    for name in plan.names:
        assert stats.ks_2samp(few[name], all_cells[name]).pvalue > ALPHA


def test_tiny_shapes_put_all_mass_in_one_cell():
    """Gamma variables of these shapes are mostly too small for a float; the law is then a cell drawn by its shape."""
    shapes = np.array([1e-4, 3e-4, 0.0, 2e-4, 0.0])
    found = drawn(shapes, seed=5)["mean"]
    assert np.isfinite(found).all()
    share = np.mean(np.isclose(found[:, None], VALUES), axis=0)
    assert share.sum() > 0.99  # the chance of two cells with mass worth mentioning is of the order of the shapes
    counts = np.round(share[[0, 1, 3]] * DRAWS)
    expected = np.array([1, 3, 2]) / 6 * counts.sum()
    assert stats.chisquare(counts, expected).pvalue > ALPHA


def composed_p_values(found, population, sample):
    moments = CompositionMoments(found)
    mean, deviation = moments.linear(VALUES)
    counts = np.round(sample["P(x=0.25)"] * found.n).astype(int)
    law = moments.count_law(1)
    seen = np.bincount(counts, minlength=found.n + 1)
    common = law * DRAWS >= 5
    groups = np.append(seen[common], seen[~common].sum()), np.append(law[common], law[~common].sum()) * DRAWS
    return np.array(
        [
            z_p_value(population["mean"], mean),
            z_p_value((population["mean"] - mean) ** 2, deviation**2),
            stats.chisquare(groups[0][groups[1] > 0], groups[1][groups[1] > 0]).pvalue,
        ]
    )


@pytest.mark.parametrize("bug", [False, True])
def test_population_and_sample_under_the_mechanisms_prior(bug):
    found = Composition(n=12, prior=np.array([0.5, 2.0, 1.0, 1.0, 3.0]), released=np.array([1, 6, 0, 2, 1]))
    plan = reduce(parse_functionals(["mean", "P(x=0.25)"]), domain=DOMAIN)
    population, sample = np.empty((DRAWS, 2)), np.empty((DRAWS, 2))
    prior = found.prior + (0.3 if bug else 0.0)
    update_composed(
        population, sample, np.random.default_rng(8), plan.grouped(found.urn), plan.grouped(prior), found.n, plan.plan
    )
    named = [dict(zip(plan.names, rows.T, strict=True)) for rows in (population, sample)]
    p_value = composed_p_values(found, *named)
    assert (p_value.min() < ALPHA / 3) == bug, f"p values {p_value} at a false-alarm rate of {ALPHA}"
