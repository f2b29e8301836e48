"""Whole tables through the public call at its defaults, against what the method claims to be, written out with dense matrices.

Tables of 2 x 2 and 2 x 2 x 2 cells. Estimates may differ from the reference (table_references.py) by a thousandth of their
deviation, and deviations by as much of themselves: the package's optimiser works in single precision.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, logit
from table_references import Belief, Table, best_shares

import privurn
from privurn.inference.tables import answers, assisted, discrepancy, features, posterior
from privurn.inference.tables.fit import FitSettings
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.table_measurements import MeasuredTable

CLOSE = 1e-3
COLUMNS = {"a": privurn.Categories(["u", "v"]), "b": privurn.Grid(0, 1, 1), "c": privurn.Categories(["p", "q"])}
SCALES = {1: 20.0, 2: 9.0, 3: 7.0}
COUNTS = {
    "two": {(0,): [112, 97], (1,): [90, 118], (0, 1): [70, 38, 21, 79]},
    "three": {
        (0,): [134, 143],
        (1,): [129, 178],
        (2,): [130, 169],
        (0, 1): [76, 58, 53, 116],
        (0, 2): [74, 74, 39, 118],
        (1, 2): [85, 39, 37, 113],
        (0, 1, 2): [60, 22, 25, 54, 13, 35, 35, 84],
    },
}
SIZES = {"two": 200, "three": 300}
ROWS = [(columns, size) for columns in COUNTS for size in ("public", "secret")]


def noise_variance(scale):
    """Of discrete Gaussian noise."""
    j = np.arange(-400.0, 401.0)
    weights = np.exp(-0.5 * (j / scale) ** 2)
    return float(weights @ j**2 / weights.sum())


def measured(columns, size):
    """What was published, for the public call."""
    counts = COUNTS[columns]
    names = "ab" if columns == "two" else "abc"
    mechanism = NoisyMarginals(
        n=SIZES[columns] if size == "public" else None,
        sizes=(2,) * len(names),
        sets=tuple(counts),
        scales=tuple(SCALES[len(each)] for each in counts),
        noise="discrete-gaussian",
    )
    domain = privurn.TableDomain({name: COLUMNS[name] for name in names})
    return MeasuredTable(mechanism, np.concatenate([np.array(y, np.float64) for y in counts.values()]), domain)


@cache
def known(columns, size):
    """The same for the reference."""
    width = 2 if columns == "two" else 3
    shaped = {each: np.array(y, np.float64).reshape((2,) * len(each)) for each, y in COUNTS[columns].items()}
    variances = {each: noise_variance(SCALES[len(each)]) for each in shaped}
    return Table((2,) * width, shaped, variances, SIZES[columns] if size == "public" else None)


def assert_figure(found, estimate, variance):
    deviation = np.sqrt(variance)
    assert abs(found.estimate - estimate) < CLOSE * deviation, (found, estimate, deviation)
    assert abs(found.deviation / deviation - 1.0) < CLOSE, (found, estimate, deviation)


A, B, ALL = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4)
ONE = np.array([0.0, 1.0])
MIDDLE = 0.5
"""Numbers of a mean are taken about the middle of the column, and the middle is added."""
ASKED = {
    "P(a=u)": ((0,), 1.0 - ONE, np.ones(2)),
    "P(a=v)": ((0,), ONE, np.ones(2)),
    "mean(b)": ((1,), ONE - MIDDLE, np.ones(2)),
    "P(a=v, b=1)": ((0, 1), A * B, ALL),
    "mean(b | a=v)": ((0, 1), A * B, A),
    "P(b=1 | a=v) - P(b=1 | a=u)": ((0, 1), [A * B, (1.0 - A) * B], [A, 1.0 - A]),
}
USUAL = ("P(a=u)", "P(a=v)", "mean(b)")
"""What is told where nothing is asked."""


def worked_out(table, name):
    """Estimate, variance about the table, and that of sampling."""
    places, above, below = ASKED[name]
    estimate, of_table, sampling = Belief(table, places).difference(above, below)
    return estimate + MIDDLE * (name == "mean(b)"), of_table, sampling


@pytest.mark.parametrize("of", ["population", "sample"])
@pytest.mark.parametrize(("columns", "size"), ROWS)
def test_figures(columns, size, of):
    found = privurn.infer(measured(columns, size), ask=list(ASKED), of=of)
    for each in found.figures:
        estimate, of_table, sampling = worked_out(known(columns, size), each.name)
        assert_figure(each, estimate, of_table + sampling * (of == "population"))


@pytest.mark.parametrize("size", ["public", "secret"])
def test_what_is_told_where_nothing_is_asked(size):
    found = privurn.infer(measured("two", size))
    assert found.names == USUAL
    for row, name in zip(found.summary(), USUAL, strict=True):
        estimate, of_table, sampling = worked_out(known("two", size), name)
        reach = 1.959964 * np.sqrt(of_table + sampling)
        assert [row.lower, row.upper] == pytest.approx([estimate - reach, estimate + reach], abs=2 * CLOSE * reach)


@pytest.mark.parametrize("size", ["public", "secret"])
def test_unbiased_figures_are_inverse_variance_means_of_the_counts(size):
    table = known("three", size)
    for each in privurn.infer(measured("three", size), ask=[*USUAL, "P(a=v, b=1)"]).figures:
        places, above, _ = ASKED[each.name]
        shares = best_shares(table, places)
        whole = 1.0 if size == "public" else shares.sum()  # of a secret n the noisy total is what is divided by
        assert each.direct == pytest.approx(shares @ above / whole + MIDDLE * (each.name == "mean(b)"), abs=1e-12)


# ---- regressions -----------------------------------------------------------------------------------------------------------

FAMILIES = {
    "linear": (privurn.LinearRegression, lambda line: line, lambda mean: mean),
    "logistic": (privurn.LogisticRegression, expit, logit),
    "poisson": (privurn.PoissonRegression, np.exp, np.log),
}
"""The public model, the mean given the line, and its inverse."""


def saturated(link):
    """Intercept and slope of b on a: the link of the mean of b at each a."""

    def of(cells):
        low, high = (link(cells[2 * a + 1] / (cells[2 * a] + cells[2 * a + 1])) for a in (0, 1))
        return np.array([low, high - low])

    return of


def solved(mean):
    """Coefficients of b on a and c: the root of the weighted equation."""
    a, b, c = np.indices((2, 2, 2)).reshape(3, -1)
    design = np.array([np.ones(8), a, c])

    def of(cells):
        def equation(beta):
            return design @ (cells * (b - mean(beta @ design)))

        found = optimize.root(equation, np.array([-0.5, 0.1, 0.1]), tol=1e-13)
        assert np.abs(found.fun).max() < 1e-11
        return found.x

    return of


def regression(columns, family):
    """The public model, and its coefficients as a function of the joint cells' shares."""
    model, mean, link = FAMILIES[family]
    return (model("b ~ a"), saturated(link)) if columns == "two" else (model("b ~ a + c"), solved(mean))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("columns", "size"), ROWS)
def test_regressions(columns, size, family):
    table = known(columns, size)
    model, coefficients = regression(columns, family)
    estimate, of_table, sampling = Belief(table, tuple(range(len(table.sizes))), pairs="open").figures(coefficients)
    for of, variance in (("sample", of_table), ("population", of_table + sampling)):
        found = privurn.infer(measured(columns, size), model, of=of).figures
        for each, own, spread in zip(found, estimate, np.diag(variance), strict=True):
            assert_figure(each, own, spread)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", ["public", "secret"])
def test_a_regression_of_two_columns_is_nearly_that_of_generalised_least_squares(size, family):
    """The model's own pairs count for next to nothing: the cells that fit the noisy marginals best, and sum to one."""
    model, coefficients = regression("two", family)
    estimate, of_table, _ = Belief(known("two", size), (0, 1), pairs="free").figures(coefficients)
    for each, own, variance in zip(
        privurn.infer(measured("two", size), model, of="sample").figures, estimate, np.diag(of_table), strict=True
    ):
        assert abs(each.estimate - own) < 0.1 * np.sqrt(variance)
        assert 0.95 < each.deviation / np.sqrt(variance) < 1.0  # what is left of the model's word


def test_the_distance_of_the_model_is_learnt_and_bounded():
    """Of two columns it is assumed; of three the reference finds a number between the bounds."""
    assert privurn.infer(measured("two", "public")).size == 100.0
    found = privurn.infer(measured("three", "public"), ask="P(a=v, b=1)").size
    assert 3.0 < found < 90.0
    assert found == pytest.approx(known("three", "public").trust, rel=0.01)


def test_an_unbounded_distance_is_seen(monkeypatch):
    monkeypatch.setattr(discrepancy, "MOST", 1e9)
    with pytest.raises(AssertionError):
        test_the_distance_of_the_model_is_learnt_and_bounded()


def test_the_most_probable_mixture():
    for row in ROWS:
        law = known(*row).law
        for seed in (0, 1):
            fitted = privurn.infer(measured(*row), run=privurn.Run(seed=seed)).fit.mixture.marginal(range(law.ndim))
            assert np.abs(fitted - law).max() < 2e-4
        pair = law if law.ndim == 2 else law.sum(axis=2)
        assert np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).max() > 0.01  # independent columns would be seen


# ---- faults that are planted -----------------------------------------------------------------------------------------------


def half_the_noise(patch):
    right = NoisyMarginals.deviations.fget
    patch.setattr(NoisyMarginals, "deviations", property(lambda self: right(self) * 0.5**0.5))


def twice_the_noise(patch):
    right = NoisyMarginals.deviations.fget
    patch.setattr(NoisyMarginals, "deviations", property(lambda self: right(self) * 2.0**0.5))


def pairs_counted_twice(patch):
    def wrong(table, used, right=features._shared):
        return {each: (y, v / (2.0 if len(each) == 2 else 1.0)) for each, (y, v) in right(table, used).items()}

    patch.setattr(features, "_shared", wrong)


def no_sampling(patch):
    right = answers.assisted_estimate

    def wrong(*given, **options):
        found = right(*given, **options)
        return assisted.AssistedEstimate(found.estimate, found.table_covariance, found.table_covariance, found.unexplained)

    patch.setattr(answers, "assisted_estimate", wrong)


def no_noise_in_the_model(patch):
    patch.setattr(answers, "model_noise", lambda *given, claimed: np.zeros((len(claimed), len(claimed))))


def a_secret_n_taken_for_public(patch):
    right = features.Features.of.__func__

    def wrong(cls, *given):
        found = right(cls, *given)
        object.__setattr__(found, "size_deviation", 0.0)
        return found

    patch.setattr(features.Features, "of", classmethod(wrong))


def the_model_taken_for_the_data(patch):
    patch.setattr(answers, "assisted_weights", lambda features, trust: features.probabilities)


def an_assumed_trust(patch):
    right = answers.learn_discrepancy
    patch.setattr(answers, "learn_discrepancy", lambda *given: replace(right(*given), triples=1))


def pairs_taken_from_the_model(patch):
    patch.setattr(features.Features, "pair_trust", np.inf)


def columns_held_down(patch):
    right = posterior.fit_pairs
    patch.setattr(posterior, "fit_pairs", lambda table, **given: right(table, **given | {"settings": FitSettings(spread=0.5)}))


FAULTS = {
    half_the_noise: (test_figures, test_regressions),
    twice_the_noise: (test_figures, test_regressions),
    pairs_counted_twice: (test_figures, test_regressions),
    no_sampling: (test_figures, test_regressions),
    no_noise_in_the_model: (test_figures,),
    a_secret_n_taken_for_public: (test_figures, test_regressions),
    the_model_taken_for_the_data: (test_figures, test_regressions),
    an_assumed_trust: (test_figures,),
    pairs_taken_from_the_model: (test_regressions,),
    columns_held_down: (test_figures,),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__.replace("_", " "))
def test_planted_faults_are_seen(fault, monkeypatch):
    fault(monkeypatch)
    for check in FAULTS[fault]:
        with pytest.raises(AssertionError) as raised:
            check("two", "secret", "population" if check is test_figures else "logistic")
        assert raised.traceback[-1].name == "assert_figure"
