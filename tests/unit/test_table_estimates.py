"""Estimates from noisy marginals: linear algebra against plain matrices, direct figures, regressions, questions, refusals."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.domain import Bins, Categories, Grid, TableDomain
from privurn.errors import FormatError, ModelError, SamplingError
from privurn.inference.tables import features as features_module
from privurn.inference.tables.answers import Ratios, regress
from privurn.inference.tables.asked import questions
from privurn.inference.tables.assisted import TOLERANCE, Means, assisted_estimate, assisted_weights, solve_weighted
from privurn.inference.tables.direct import Term, best_marginal, direct_sums
from privurn.inference.tables.discrepancy import MOST, learn_discrepancy
from privurn.inference.tables.features import Features, Trust
from privurn.inference.tables.fit import FitSettings, fit_mixture
from privurn.inference.tables.formula import LinearRegression, LogisticRegression, PoissonRegression, regression_from_text
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.model_noise import by_pairs
from privurn.inference.tables.posterior import table_posterior
from privurn.inference.tables.regression import GeneralisedLinear
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import every_set
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.tables.cells import cell_values

DOMAIN = TableDomain(
    {
        "age": Bins([0, 20, 40, 60, 80, 100]),
        "sex": Categories(["f", "m"], outside="other"),
        "years": Grid(0, 5, 1),
        "income": Categories(["low", "high"], outside="other"),
        "visits": Grid(0, 3, 1),
    }
)
SIZES = DOMAIN.sizes
PAIRS = FitSettings(classes=20, pair_steps=150, triple_steps=0)


def people(n, seed):
    """A table with an interaction that pairs do not tell: the effect of age on income differs by sex."""
    rng = np.random.default_rng(seed)
    age, sex = rng.choice(5, n, p=[0.15, 0.3, 0.3, 0.2, 0.05]), rng.integers(0, 2, n)
    years = np.clip(rng.binomial(5, 0.3 + 0.08 * age), 0, 5)
    predictor = -1.2 + 0.5 * (age - 2) * (2.0 * sex - 1.0) + 0.4 * (years - 2) + 0.6 * sex
    income = (rng.random(n) < 1 / (1 + np.exp(-predictor))).astype(int)
    visits = np.minimum(rng.poisson(np.exp(-0.5 + 0.3 * income)), 3)
    return np.array([age, sex, years, income, visits], np.uint16)


def mechanism(n, scale=8.0, order=3, secret=False):
    sets = every_set(SIZES, order=order)
    return NoisyMarginals(
        n=None if secret else n, sizes=SIZES, sets=sets, scales=(scale,) * len(sets), noise="discrete-gaussian"
    )


def measured(codes, *, seed, **options):
    made = mechanism(codes.shape[1], **options)
    counts = count_marginals([codes], made.layout)
    return MeasuredTable(made, made.simulate(counts, rng=np.random.default_rng(seed)).astype(float), DOMAIN)


def figures_of(table, **options):
    return table_posterior(table, settings=PAIRS, **options)


@cache
def example(order=3, secret=False):
    table = measured(people(4_000, 1), seed=2, order=order, secret=secret)
    return table, fit_mixture(table, settings=PAIRS).mixture


# ---- features against plain matrices -----------------------------------------------------------------------------------


def dense(features):
    rows = []
    for each in features.sets:
        shape = [features.sizes[i] for i in each]
        index = np.ravel_multi_index(tuple(features.cells[i] for i in each), shape)
        rows.append(np.eye(int(np.prod(shape)))[:, index])
    return np.concatenate(rows)


def doubt(features, trust):
    """The covariance of how far the table's joint cells may be from the model's, written down."""
    m = features.probabilities
    found = (np.diag(m) - np.outer(m, m)) / trust.size
    for i, k in combinations(range(len(features.places)), 2):
        held = np.ravel_multi_index((features.cells[i], features.cells[k]), (features.sizes[i], features.sizes[k]))
        law = np.bincount(held, m)
        same = np.equal.outer(held, held)
        found += (np.outer(m, m) * same / law[held] - np.outer(m, m)) / trust.pairs
    return found


@pytest.mark.parametrize("trust", [Trust(50.0), Trust(50.0, 4.0)])
@pytest.mark.parametrize("places", [(0, 1, 2, 3), (1, 3), (2,)])
def test_features_are_those_of_written_down_matrices(places, trust):
    table, mixture = example()
    features = Features.of(table, mixture, places)
    plain, m, rng = dense(features), features.probabilities, np.random.default_rng(3)
    functions = rng.standard_normal((3, len(m)))
    coefficients = rng.standard_normal((2, len(plain)))
    assert features.means == pytest.approx(plain @ m)
    assert features.sums(functions) == pytest.approx(functions @ plain.T)
    assert features.combined(coefficients) == pytest.approx(coefficients @ plain)
    D = doubt(features, trust)
    c = functions @ D @ plain.T
    assert features.discrepancies(functions, trust) == pytest.approx(c)
    assert m * features.spread(functions, trust) == pytest.approx(functions @ D)
    K = plain @ D @ plain.T + np.diag(features.variances)
    wanted = np.linalg.solve(K, c.T).T
    off = features.solve(c, trust, tolerance=TOLERANCE) - wanted
    assert (np.diag(off @ K @ off.T) < 1e-6 * np.diag(wanted @ K @ wanted.T)).all()  # what it adds to an estimate's variance


def test_a_set_counts_for_the_columns_that_it_shares_with_the_analysis():
    """Noise on different features stays independent, and every measurement is used once."""
    table, mixture = example()
    features = Features.of(table, mixture, (1, 3))
    own = {
        places: [each for each in table.layout.sets if tuple(j for j in each if j in (1, 3)) == places]
        for places in [(1,), (3,), (1, 3)]
    }
    for s, places in enumerate([(1,), (3,), (1, 3)]):
        assert features.sets[s] == tuple((1, 3).index(j) for j in places)
        precision = sum(
            1.0 / (table.deviations[each] ** 2 * np.prod([SIZES[j] for j in each if j not in places])) for each in own[places]
        )
        start = [0, SIZES[1], SIZES[1] + SIZES[3]][s]
        assert features.variances[start] == pytest.approx(1.0 / precision / table.n**2)


@pytest.mark.parametrize("trust", [Trust(80.0), Trust(80.0, 3.0)])
@pytest.mark.parametrize("secret", [False, True])
def test_weights_solve_the_same_equation_as_the_corrected_mean(trust, secret):
    """E_m psi + g^T (y/N - m_F), with g from plain matrices; an N that is estimated is part of the error."""
    table, mixture = example(secret=secret)
    features = Features.of(table, mixture, (0, 1, 3))
    plain, m = dense(features), features.probabilities
    psi = np.array([features.cells[0] * (features.cells[2] == 1), features.cells[1] == 0], float)
    D = doubt(features, trust)
    g = np.linalg.solve(plain @ D @ plain.T + np.diag(features.variances), plain @ D @ psi.T)
    wanted = psi @ m + g.T @ (features.measured - plain @ m)
    weights = assisted_weights(features, trust)
    assert weights.sum() == pytest.approx(1.0)
    assert psi @ weights == pytest.approx(wanted, rel=2e-4)
    found = assisted_estimate(features, Means(psi), weights, trust, n=table.n)
    left = psi - g.T @ plain
    size = (table.estimated_n[1] / table.n) * (g.T @ plain @ m)
    assert (np.abs(size).min() > 0.0) == secret
    table_covariance = g.T @ (features.variances[:, None] * g) + left @ D @ left.T + np.outer(size, size)
    assert np.abs(found.table_covariance - table_covariance).max() < 1e-3 * table_covariance.max()
    whole = psi - (psi @ m)[:, None]
    assert found.population_covariance - found.table_covariance == pytest.approx((whole * m) @ whole.T / table.n, rel=1e-6)


def test_what_does_not_solve_the_equations_is_not_used(monkeypatch):
    """They are written down after all where they are few, and refused where they are not."""
    table, mixture = example()
    features, trust = Features.of(table, mixture, (0, 1, 3)), Trust(80.0, 3.0)
    wanted = assisted_weights(features, trust)
    monkeypatch.setattr(Features, "_descended", lambda self, right, *given, **options: 0.9 * right)
    assert assisted_weights(features, trust) == pytest.approx(wanted, rel=1e-4, abs=1e-9)
    monkeypatch.setattr(features_module, "MOST_WRITTEN_DOWN", features.means.size - 1)
    with pytest.raises(SamplingError, match="cannot be solved"):
        assisted_weights(features, trust)


# ---- straight from the counts -------------------------------------------------------------------------------------------


def test_direct_figures_are_unbiased_with_the_variance_that_is_claimed():
    codes = people(2_000, 4)
    made = mechanism(2_000)
    counts = count_marginals([codes], made.layout)
    f = np.arange(5.0)[:, None] * np.array([0.0, 1.0, 0.0])[None, :]
    truth = float((codes[0] * (codes[3] == 1)).sum()) / 2_000
    second = np.array([0.0, 1.0, 0.0])
    z = []
    for seed in range(400):
        table = MeasuredTable(made, made.simulate(counts, rng=np.random.default_rng(seed)).astype(float), DOMAIN)
        found = direct_sums(table, [Term((0, 3), f[None]), Term((1,), second[None])])
        z.append((found.estimate[0] - truth - (codes[1] == 1).mean()) / np.sqrt(found.covariance[0, 0]))
    z = np.array(z)
    assert abs(z.mean()) < 6.5 / 400**0.5
    assert 0.6 < z.var() < 1.5  # chi-squared with 400 degrees of freedom: P < 1e-9
    y, deviation = best_marginal(table, (0, 3))
    assert y.shape == (5, 3)
    assert deviation < 8.0  # triples add to what the pair says
    assert best_marginal(measured(codes, seed=1, order=1), (0, 3)) is None


# ---- regressions ----------------------------------------------------------------------------------------------------------


def codes_equation(family, codes):
    """The regression on the records themselves."""
    middle = np.array([10.0, 30.0, 50.0, 70.0, 90.0])[codes[0]]
    design = np.array([np.ones(codes.shape[1]), middle, codes[1] == 1, codes[2]], float)
    response = codes[3] == 1 if family == "logistic" else codes[4]
    return GeneralisedLinear(family, design, response.astype(float), np.ones(codes.shape[1]))


MODELS = {
    "logistic": LogisticRegression("income ~ age + sex + years"),
    "linear": LinearRegression("visits ~ age + sex + years"),
    "poisson": PoissonRegression("visits ~ age + sex + years"),
}


@pytest.mark.parametrize("family", MODELS)
def test_with_next_to_no_noise_a_regression_is_that_of_the_records(family):
    codes = people(3_000, 5)
    table = measured(codes, seed=6, scale=0.3)
    found = figures_of(table, model=MODELS[family], of="sample")
    equation = codes_equation(family, codes)
    truth = solve_weighted(np.full(3_000, 1 / 3_000), equation, start=equation.start)
    figures = {each.name: each for each in found.figures}
    assert list(figures) == ["intercept", "age", "sex=m", "years"]  # there is nobody in sex=other
    for each, wanted in zip(figures.values(), truth, strict=True):
        assert abs(each.estimate - wanted) < max(5.0 * each.deviation, 1e-3)
        if family == "linear":
            assert abs(each.direct - wanted) < 5.0 * each.direct_deviation


@pytest.mark.parametrize("family", MODELS)
def test_a_regression_goes_by_the_measured_pairs_and_not_by_the_model_s(family):
    """A model fitted to noisy pairs follows their noise, and is shrunk; columns taken for independent are an extreme of that.

    Counts without noise of 20,000 records, said to have some: what is off is what was taken from the model.
    """
    rng = np.random.default_rng(7)
    x, n = rng.binomial(11, 0.4, 20_000), 20_000
    y = rng.binomial(11, 0.1 + 0.06 * x) if family != "logistic" else rng.binomial(1, 1 / (1 + np.exp(2.0 - 0.5 * x)))
    domain = TableDomain({"x": Grid(0, 11, 1), "y": Grid(0, 11 if family != "logistic" else 1, 1)})
    codes, sets = np.array([x, y], np.uint16), every_set(domain.sizes, order=2)
    made = NoisyMarginals(n=n, sizes=domain.sizes, sets=sets, scales=(100.0,) * 3, noise="discrete-gaussian")
    table = MeasuredTable(made, count_marginals([codes], made.layout).counts.astype(float), domain)
    shares = [np.bincount(column, minlength=size) + 1.0 for column, size in zip(codes, domain.sizes, strict=True)]
    independent = MixtureOfProducts(domain.sizes, np.ones(1), np.concatenate([each / each.sum() for each in shares])[None, :])
    equation = GeneralisedLinear(family, np.array([np.ones(n), x], float), y.astype(float), np.ones(n))
    truth = solve_weighted(np.full(n, 1 / n), equation, start=equation.start)
    found = regress(table, independent, regression_from_text(f"{family}: y ~ x").variables(domain))
    assert np.abs((found.estimate - truth) / np.sqrt(np.diag(found.table_covariance))).max() < 0.5


def z_scores(*, runs, naive=False, spoil=lambda features: features, sampling=True):
    """Of the logistic regression's coefficients in resampled tables; the population is a very large table."""
    equation = codes_equation("logistic", people(400_000, 99))
    truth = solve_weighted(np.full(400_000, 1 / 400_000), equation, start=equation.start)
    variables = LogisticRegression("income ~ age + sex=m + years").variables(DOMAIN)
    found = []
    for run in range(runs):
        table = measured(people(4_000, 1_000 + run), seed=run, scale=25.0)
        mixture = fit_mixture(table, seed=run, settings=PAIRS).mixture
        features = spoil(Features.of(table, mixture, variables.places))
        design = np.array([variables.at(each, features.cells) for each in variables.effects])
        response = variables.at(variables.response, features.cells)
        present = ~(np.isnan(response) | np.isnan(design).any(axis=0))
        own = GeneralisedLinear("logistic", np.where(present, design, 0), np.where(present, response, 0), present * 1.0)
        size = learn_discrepancy(table, mixture, variables.places).size
        trust = Trust(1e9) if naive else Trust(size, features.pair_trust)
        weights = features.probabilities if naive else assisted_weights(features, trust)
        made = assisted_estimate(features, own, weights, trust, n=table.n)
        covariance = made.population_covariance if sampling else made.table_covariance * 0.0 + 1e-12
        found.append((made.estimate - truth) / np.sqrt(np.diag(covariance)))
    return np.array(found)


@pytest.mark.long
def test_intervals_cover_and_taking_the_model_for_the_data_does_not():
    """Sums of squared z scores, with one sided chi-squared bounds; the naive regression misses what pairs do not tell."""
    valid, naive = z_scores(runs=40), z_scores(runs=40, naive=True)
    assert (np.abs(valid) < 1.96).mean() > 0.9
    assert (valid**2).mean() < 1.7
    assert (np.abs(naive) < 1.96).mean(axis=0).min() < 0.5


SMALL = TableDomain({"a": Grid(0, 3, 1), "b": Categories(["x", "y"]), "c": Categories(["p", "q", "r"])})
LAWS = ([0.1, 0.2, 0.3, 0.4], [0.6, 0.4], [0.1, 0.3, 0.6])
TRUTHS = {"mean(a)": 2.0, "P(b=x)": 0.6, "P(c=p)": 0.1, "P(b=x, c=p)": 0.06, "mean(a | b=x)": 2.0, "P(a=3, b=x, c=r)": 0.144}


@pytest.mark.parametrize("scale", [100.0, 300.0])
def test_intervals_cover_where_the_noise_hides_what_the_model_is_fitted_to(scale):
    """Of 500 records. A model that follows the noise is sure of itself: its own variance would cover half of the time."""
    sets = every_set(SMALL.sizes, order=3)
    made = NoisyMarginals(n=500, sizes=SMALL.sizes, sets=sets, scales=(scale,) * len(sets), noise="discrete-gaussian")
    quick, inside = FitSettings(classes=10, pair_steps=60, triple_steps=0), []
    for run in range(8):
        rng = np.random.default_rng([3, run])
        codes = np.array([rng.choice(len(law), 500, p=law) for law in LAWS], np.uint16)
        counts = made.simulate(count_marginals([codes], made.layout), rng=rng).astype(float)
        found = table_posterior(MeasuredTable(made, counts, SMALL), ask=list(TRUTHS), settings=quick)
        inside.append([each.lower <= TRUTHS[each.name] <= each.upper for each in found.summary()])
    assert np.mean(inside) > 0.85


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_condition_that_no_noisy_count_fulfils_has_no_direct_figure():
    sets = every_set(SMALL.sizes, order=2)
    made = NoisyMarginals(n=500, sizes=SMALL.sizes, sets=sets, scales=(9.0,) * len(sets), noise="discrete-gaussian")
    quick = FitSettings(classes=2, pair_steps=5, triple_steps=0)
    found = table_posterior(MeasuredTable(made, np.zeros(made.rows), SMALL), ask="mean(a | b=x)", settings=quick)
    assert found.figures[0].direct is None


def test_a_figure_that_no_record_is_about_is_named_and_left_out_where_it_was_not_asked_for():
    """All records missing, and noise that makes less than nothing of the others; what else was asked has an answer."""
    domain = TableDomain({"a": Grid(0, 2, 1, nulls="cell"), "b": Categories(["x", "y"])})
    sets = every_set(domain.sizes, order=2)
    made = NoisyMarginals(n=90, sizes=domain.sizes, sets=sets, scales=(3.0,) * len(sets), noise="discrete-gaussian")
    codes = np.array([[3] * 90, [0, 1] * 45], np.uint16)
    counts = count_marginals([codes], made.layout).counts - np.array([9, 9, 9, 0, 0, 0, *[9] * 6, 0, 0])
    quick = FitSettings(classes=2, pair_steps=5, triple_steps=0)
    with pytest.raises(ModelError, match=r"no record is one that 'mean\(a\)' is about") as refused:
        table_posterior(MeasuredTable(made, counts.astype(float), domain), ask=["P(b=x)", "mean(a)"], settings=quick)
    assert refused.value.hint
    usual = table_posterior(MeasuredTable(made, counts.astype(float), domain), settings=quick)
    assert usual.names == ("P(b=x)", "P(b=y)")
    assert any(each.startswith("'mean(a)' is left out") for each in usual.problems())
    alone = replace(made, sizes=(4,), sets=((0,),), scales=(3.0,))
    nothing = MeasuredTable(alone, counts[:4] - np.array([30.0, 30.0, 30.0, 0.0]), TableDomain({"a": domain.columns["a"]}))
    with pytest.raises(ModelError, match="no record is one that"):
        table_posterior(nothing, settings=quick)


def test_a_function_of_pairs_is_taken_apart_into_pairs():
    """All of it but a constant; an interaction of three columns that are independent leaves nothing."""
    rng = np.random.default_rng(4)
    shares = [rng.dirichlet(np.ones(k)) for k in (2, 3, 4)]
    mixture = MixtureOfProducts((2, 3, 4), np.ones(1), np.concatenate(shares)[None, :])
    function = rng.normal(size=(2, 3, 1)) + rng.normal(size=(1, 3, 4)) + rng.normal(size=(2, 1, 4))
    parts = dict(by_pairs(function, (0, 1, 2), mixture))
    whole = parts[0, 1][:, :, None] + parts[1, 2][None, :, :] + parts[0, 2][:, None, :]
    assert np.ptp(function - whole) < 1e-12
    interaction = np.einsum("i,j,k->ijk", *(np.eye(len(share))[0] - share[0] for share in shares))
    assert all(np.ptp(part) < 1e-12 for _, part in by_pairs(interaction, (0, 1, 2), mixture))


def test_planted_errors_are_caught():
    """Noise without N squared would drown the counts; without the sampling term intervals are far too short."""
    drowned = z_scores(runs=2, spoil=lambda each: replace(each, variances=each.variances * 4_000.0**2))
    valid = z_scores(runs=2)
    assert np.abs(drowned - valid).max() > 0.5
    short = z_scores(runs=2, sampling=False)
    assert (short**2).mean() > 100.0


@pytest.mark.parametrize("scale", [8.0, 25.0])
def test_twice_as_many_classes_change_nothing_that_is_reported(scale):
    """Their number is a truncation: figures and intervals move by less than a twentieth of their deviations."""
    table = measured(people(4_000, 1), seed=2, scale=scale)
    asked = ["mean(age)", "mean(years | sex=m)", "P(income=high | sex=m) - P(income=high | sex=f)", "table(sex, income)"]
    few, many = (
        [
            each
            for given in ({"ask": asked}, {"model": MODELS["logistic"]}, {"model": MODELS["linear"]})
            for each in table_posterior(table, settings=FitSettings(classes=classes), of="sample", **given).figures
        ]
        for classes in (FitSettings().classes_for(table), 2 * FitSettings().classes_for(table))
    )
    for one, other in zip(few, many, strict=True):
        assert abs(one.estimate - other.estimate) < 0.05 * one.deviation, one.name
        assert other.deviation == pytest.approx(one.deviation, rel=0.01), one.name


def test_the_discrepancy_is_learnt_from_triples_and_never_trusted_beyond_its_bound():
    table, mixture = example()
    learnt = learn_discrepancy(table, mixture, (0, 1, 3))
    assert 2.0 <= learnt.size <= MOST
    assert learnt.triples == 4
    assumed = learn_discrepancy(*example(order=2), (0, 1, 3))
    assert (assumed.size, assumed.triples) == (MOST, 0)
    independent = np.array([np.random.default_rng(j).integers(0, size - 1, 4_000) for j, size in enumerate(SIZES)], np.uint16)
    own = measured(independent, seed=3)
    parity = independent.copy()
    parity[3] = (parity[0] + parity[1]) % 2  # pairs say nothing of it
    told = measured(parity, seed=3)
    assert learn_discrepancy(own, fit_mixture(own, settings=PAIRS).mixture, (0, 1, 3)).most_likely > 200.0
    assert learn_discrepancy(told, fit_mixture(told, settings=PAIRS).mixture, (0, 1, 3)).most_likely < 50.0


def test_weights_run_any_estimator():
    table, _ = example()
    found = figures_of(table, model=MODELS["logistic"])
    given = found.weights()
    assert set(given) == {"age", "sex", "years", "income", "weight"}
    ones = np.ones(len(given["weight"]))
    design = np.array([ones, given["age"], given["sex"] == "m", given["years"]], float)
    own = GeneralisedLinear("logistic", design, (given["income"] == "high").astype(float), ones)
    again = solve_weighted(given["weight"], own, start=own.start)
    assert again == pytest.approx([each.estimate for each in found.figures], abs=1e-6)
    with pytest.raises(ModelError, match="regression"):
        figures_of(table, ask="mean(age)").weights()


# ---- questions ---------------------------------------------------------------------------------------------------------------


def test_questions_are_answered_near_the_truth():
    codes = people(20_000, 7)
    table = measured(codes, seed=8)
    asked = {
        "mean(age)": np.array([10, 30, 50, 70, 90])[codes[0]].mean(),
        "P(sex=f)": (codes[1] == 0).mean(),
        "P(sex=f, income=high)": ((codes[1] == 0) & (codes[3] == 1)).mean(),
        "mean(years | sex=m)": codes[2][codes[1] == 1].mean(),
        "P(income=high | sex=m) - P(income=high | sex=f)": (codes[3][codes[1] == 1] == 1).mean()
        - (codes[3][codes[1] == 0] == 1).mean(),
        "cdf(years, 2)": (codes[2] <= 2).mean(),
    }
    found = figures_of(table, ask=list(asked), of="sample")
    assert set(found.names) == set(asked)
    for each in found.figures:
        assert abs(each.estimate - asked[each.name]) < 6.5 * each.deviation
        assert abs(each.direct - asked[each.name]) < 6.5 * each.direct_deviation
        assert each.unexplained == 0.0
    wider = figures_of(table, ask=list(asked))
    assert all(a.deviation > b.deviation for a, b in zip(wider.figures, found.figures, strict=True))
    narrow, wide = (found.summary(level=level)[0] for level in (0.5, 0.99))
    assert wide.lower < narrow.lower < narrow.mean < narrow.upper < wide.upper
    assert found.draws["mean(age)"].std() == pytest.approx(found.figures[0].deviation, rel=0.1)


def test_a_cross_tabulation_has_every_cell_and_defaults_every_column():
    table, _ = example()
    found = figures_of(table, ask="table(sex, income)")
    assert len(found.names) == 9
    assert sum(each.estimate for each in found.figures) == pytest.approx(1.0, abs=0.1)
    names = [each.name for each in questions(None, DOMAIN)]
    assert names == ["mean(age)", "P(sex=f)", "P(sex=m)", "mean(years)", "P(income=low)", "P(income=high)", "mean(visits)"]


def test_a_ratio_is_its_own_equation():
    own = Ratios(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]]))
    assert solve_weighted(np.array([0.5, 0.5]), own, start=own.start) == pytest.approx([1.5])


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ("variance(age)", FormatError, "cannot be asked"),
        ("mean(town)", FormatError, "no column 'town'"),
        ("mean(sex)", FormatError, "categories"),
        ("table(age, town)", FormatError, "'town'"),
        ("P(age>1, sex=f, years=1, income=low)", FormatError, "4 columns"),
        (["mean(age)", "mean(age)"], FormatError, "once"),
        ("mean(age) - mean(age) - mean(age)", FormatError, "difference or a ratio of two"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_in_words(asked, error, words):
    with pytest.raises(error, match=words):
        figures_of(example()[0], ask=asked)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LogisticRegression("income"), "response, ~ and terms"),
        (LogisticRegression("income ~ age + "), "empty term"),
        (LogisticRegression("income ~ town"), "no column 'town'"),
        (LogisticRegression("income ~ age + age"), "twice"),
        (LogisticRegression("income ~ income"), "as well"),
        (LogisticRegression("visits ~ age"), "two values"),
        (LinearRegression("sex ~ age"), "no column of numbers"),
        (LinearRegression("visits ~ sex=x"), "no value 'x'"),
        (LinearRegression("visits ~ age:age"), "different columns"),
        (LinearRegression("visits ~ age * age"), "different columns"),
        (LinearRegression("visits ~ age * "), "empty term"),
        (LinearRegression("visits ~ sex=a=b"), "more than one equals sign"),
        (LogisticRegression("income ~ age ~ sex"), "response, ~ and terms"),
        (LinearRegression("visits ~ sex=f + sex=m"), "told apart"),
    ],
)
def test_regressions_that_make_no_sense_are_refused_in_words(model, words):
    with pytest.raises((FormatError, ModelError), match=words):
        figures_of(example()[0], model=model)


QUOTED = TableDomain(
    {"y": Grid(0, 3, 1), "a+b": Grid(0, 4, 1), "c:d": Categories(["p", "q=r", "s"]), "e": Categories(["f", "g"])}
)


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("y ~ 'a+b' * e", ["a+b", "e=g", "a+b:e=g"]),
        ("y ~ e + 'a+b'*e", ["e=g", "a+b", "a+b:e=g"]),
        ("y ~ 'c:d':e", ["c:d=q=r:e=g", "c:d=s:e=g"]),
        ("""y ~ "c:d"='q=r'""", ["c:d=q=r"]),
        (
            "y ~ 'a+b'*'c:d'*e",
            [
                *("a+b", "c:d=q=r", "c:d=s", "e=g", "a+b:c:d=q=r", "a+b:c:d=s", "a+b:e=g", "c:d=q=r:e=g", "c:d=s:e=g"),
                *("a+b:c:d=q=r:e=g", "a+b:c:d=s:e=g"),
            ],
        ),
    ],
)
def test_formulas_cross_columns_and_quote_names(formula, names):
    """Each effect is the product of the numbers or indicators of its columns, at every joint cell."""
    variables = LinearRegression(formula).variables(QUOTED)
    assert list(variables.names) == ["intercept", *names]
    numbers = {"a+b": np.arange(5.0), "c:d=q=r": np.eye(3)[1], "c:d=s": np.eye(3)[2], "e=g": np.array([0.0, 1.0])}
    column = {"a+b": 1, "c:d=q=r": 2, "c:d=s": 2, "e=g": 3}
    cells = np.indices([QUOTED.sizes[j] for j in variables.places]).reshape(len(variables.places), -1)
    for effect in variables.effects[1:]:
        parts = [name for name in numbers if name in effect.name]
        expected = np.prod([numbers[name][cells[variables.places.index(column[name])]] for name in parts], axis=0)
        np.testing.assert_array_equal(variables.at(effect, cells), expected)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_with_next_to_no_noise_an_interaction_is_that_of_the_records(family):
    """The effect of age on income differs by sex, and triples of columns tell."""
    codes = people(3_000, 5)
    response, of = ("visits", 4) if family == "linear" else ("income", 3)
    model = {"linear": LinearRegression, "logistic": LogisticRegression}[family](f"{response} ~ age*sex")
    found = {each.name: each for each in figures_of(measured(codes, seed=6, scale=0.3), model=model, of="sample").figures}
    age, sex = cell_values(DOMAIN.columns["age"])[codes[0]], codes[1].astype(float)
    design = np.stack([np.ones(3_000), age, sex, age * sex], axis=1)
    names = ["intercept", "age", f"sex={DOMAIN.columns['sex'].values[1]}", f"age:sex={DOMAIN.columns['sex'].values[1]}"]
    assert list(found) == names
    truth = np.zeros(4)
    for _ in range(30):  # Newton's steps; the first is all that least squares needs
        mean = design @ truth if family == "linear" else 1.0 / (1.0 + np.exp(-design @ truth))
        slope = np.ones(3_000) if family == "linear" else mean * (1.0 - mean)
        truth = truth + np.linalg.solve(design.T @ (slope[:, None] * design), design.T @ (codes[of] - mean))
    for name, value in zip(names, truth, strict=True):
        assert abs(found[name].estimate - value) < max(3.0 * found[name].deviation, 0.02 * abs(value)), name


def constants(counts, scale=5.0):
    """A table whose columns hold so many records in each cell, independently, with a public size and no noise in fact."""
    domain = TableDomain({"y": Grid(0, 2, 1), "x": Grid(0, 2, 1), "z": Grid(0, 2, 1, nulls="cell"), "one": Bins([0, 1])})
    laws, sets = [np.array(each) / 900.0 for each in counts], every_set(domain.sizes, order=2)
    made = NoisyMarginals(n=900, sizes=domain.sizes, sets=sets, scales=(scale,) * len(sets), noise="discrete-gaussian")
    joint = [900.0 * (laws[each[0]] if len(each) == 1 else np.outer(laws[each[0]], laws[each[1]])) for each in sets]
    return MeasuredTable(made, np.concatenate([each.ravel() for each in joint]).round(), domain)


def test_terms_that_do_not_vary_have_no_coefficient_and_a_response_that_does_not_is_refused():
    """A constant column, one that is always missing, one of a single cell, and a value that all records have."""
    even, same = [300, 300, 300], [0, 900, 0]
    found = figures_of(constants([even, same, [0, 0, 0, 900]]), model=LinearRegression("y ~ x + z + one"))
    assert found.names == ("intercept",)
    assert [each.split()[0] for each in found.problems() if "varies too little" in each] == ["'x'", "'z'", "'one'"]
    told = figures_of(constants([even, even, [300, 300, 300, 0]]), model=LinearRegression("y ~ x + z"))
    assert told.names == ("intercept", "x", "z")
    assert abs(told.figures[1].estimate) < 1e-3
    with pytest.raises(ModelError, match="'y' varies too little"):
        figures_of(constants([same, even, [300, 300, 300, 0]]), model=LinearRegression("y ~ x"))
    with pytest.raises(ModelError, match="told from noise") as refused:
        figures_of(constants([even, even, [300, 300, 300, 0]], scale=2_000.0), model=LinearRegression("y ~ x"))
    assert "tells little" in refused.value.hint


def test_an_analysis_of_more_columns_than_were_measured_together_is_refused():
    """Products of three columns, of which only single ones were measured."""
    table = measured(people(4_000, 1), seed=2, order=1)
    with pytest.raises(ModelError, match="cannot support"):
        figures_of(table, model=LinearRegression("visits ~ age:years + age + years"))


def test_a_regression_without_triples_says_that_its_trust_was_assumed():
    found = figures_of(example(order=2)[0], model=LogisticRegression("income ~ age"))
    assert any("assumed" in each for each in found.problems())
    with pytest.raises(ModelError, match="coefficients"):
        figures_of(example()[0], model=MODELS["linear"], ask="mean(age)")


def test_regressions_are_read_from_text():
    assert isinstance(regression_from_text("poisson: visits ~ age"), PoissonRegression)
    with pytest.raises(FormatError, match="not understood"):
        regression_from_text("probit: a ~ b")


def test_next_to_no_noise_ends_in_figures():
    """Cells of a set sum to one, so that without noise their covariance has no inverse."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.choice(["a", "b", "c"], 300) for name in "xyz"})
    domain = {name: privurn.Categories(["a", "b", "c"]) for name in "xyz"}
    out = privurn.release(frame, privurn.Marginals(), domain=domain, epsilon=600, delta=1e-6)
    [share] = privurn.infer(out, ask=["P(x=a)"], of="sample").figures
    assert share.estimate == pytest.approx((frame["x"] == "a").mean(), abs=1e-6)
