"""The small parametric models: their densities, priors, grids and bounds, and what a domain must fit."""

import json

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from privurn.domain import Bins, Categories, Grid
from privurn.errors import DomainError, FormatError, ModelError
from privurn.mechanisms.models import Bernoulli, Beta, Normal, Poisson, model_from_json
from privurn.mechanisms.models.model import PRIOR_TOTAL
from privurn.mechanisms.numeric_cells import cell_numbers, cell_weights, check_numeric, inner_edges

MODELS = [
    Beta(points=(7, 5)),
    Bernoulli(points=9),
    Poisson(rate=(0.5, 20.0), points=11),
    Normal(mean=(-2.0, 4.0), deviation=(0.1, 3.0), points=(6, 5)),
]
VALUES = {
    "beta": [0.02, 0.5, 0.97],
    "bernoulli": [0.0, 1.0],
    "poisson": [0.0, 1.0, 7.0, 40.0],
    "normal": [-3.0, 0.0, 2.5],
}


def reference(model, point):
    if model.kind == "beta":
        return scipy.stats.beta(point[0] * point[1], (1 - point[0]) * point[1])
    if model.kind == "normal":
        return scipy.stats.norm(*point)
    return scipy.stats.bernoulli(point[0]) if model.kind == "bernoulli" else scipy.stats.poisson(point[0])


def named(models):
    return pytest.mark.parametrize("model", models, ids=lambda model: model.kind)


@named(MODELS)
def test_log_densities(model):
    values = VALUES[model.kind]
    grid = model.grid()
    found = model.log_density(model.summaries(np.array(values)), model.coefficients(grid))
    assert found.shape == (len(values), model.size)
    for j, point in enumerate(grid):
        law = reference(model, point)
        wanted = law.logpmf(values) if model.kind in ("bernoulli", "poisson") else law.logpdf(values)
        if model.kind == "normal":
            wanted = wanted + np.log(6.0)  # per unit, the range of the mean
        np.testing.assert_allclose(found[:, j], wanted, rtol=1e-10, atol=1e-10)


@named(MODELS)
def test_distribution_functions(model):
    edges = np.array([-0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 6.5])
    for point in model.grid():
        np.testing.assert_allclose(model.cumulative(edges, point), reference(model, point).cdf(edges), rtol=1e-9, atol=1e-12)


@named(MODELS)
def test_grids_lie_strictly_in_the_box_and_priors_are_whole(model):
    for axis, column in zip(model.axes, model.grid().T, strict=True):
        assert axis.low < column.min() <= column.max() < axis.high
    prior = model.prior()
    assert prior.dtype == np.int64
    assert prior.min() >= 1
    assert abs(int(prior.sum()) - PRIOR_TOTAL) <= model.size


def test_the_beta_prior_is_pareto():
    """Mass between two precisions of a Pareto(0.1, 1.5), by its distribution function."""
    model = Beta(points=(4, 2000))
    mass = model.prior().reshape(4, 2000).sum(axis=0) / model.prior().sum()
    precision = model.axes[1].values()
    law = scipy.stats.pareto(1.5, scale=0.1)
    wanted = (law.cdf(1.0) - law.cdf(0.1)) / (law.cdf(100.0) - law.cdf(0.1))
    assert mass[precision < 1.0].sum() == pytest.approx(wanted, abs=1e-3)


@named(MODELS)
def test_plain_data_round_trip(model):
    assert model_from_json(json.loads(json.dumps(model.to_json()))) == model


def test_unknown_models_are_refused():
    for data in ({"kind": "cauchy"}, {"kind": "beta", "shape": 2}, {}):
        with pytest.raises((ModelError, FormatError), match=r"not known|has no entry 'shape'|says no kind"):
            model_from_json(data)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Beta(mean=(-0.1, 0.5)),
        lambda: Beta(mean=(0.5, 0.5)),
        lambda: Beta(precision=(0.0, 5.0)),
        lambda: Beta(margin=0.0),
        lambda: Beta(points=(0, 5)),
        lambda: Beta(points=(5000, 5000)),
        lambda: Bernoulli(probability=(0.5, 1.5)),
        lambda: Poisson(rate=(0.0, 3.0)),
        lambda: Poisson(rate=(1.0, float("inf"))),
        lambda: Poisson(rate=(1.0, 3.0), most=float("nan")),
        lambda: Normal(mean=(0.0, 1.0), deviation=(-1.0, 1.0)),
        lambda: Normal(mean=(0.0, 1.0), deviation=(0.1, 1.0), unit=0.0),
    ],
)
def test_impossible_boxes_are_refused(build):
    with pytest.raises(ModelError):
        build()


@named(MODELS)
@given(value=st.floats(allow_nan=False))
@settings(max_examples=50, deadline=None)
def test_every_number_is_clamped_to_a_finite_contribution(model, value):
    """Nothing raises on content, and no term is infinite before it is clipped."""
    found = model.log_density(model.summaries(np.array([value])), model.coefficients(model.grid()))
    assert np.isfinite(found).all()


def test_units_do_not_matter_to_the_normal_model():
    first = Normal(mean=(0.0, 8.0), deviation=(0.5, 4.0), points=(5, 4))
    second = Normal(mean=(0.0, 8000.0), deviation=(500.0, 4000.0), points=(5, 4))
    values = np.array([1.0, 3.5])
    one = first.log_density(first.summaries(values), first.coefficients(first.grid()))
    two = second.log_density(second.summaries(1000.0 * values), second.coefficients(second.grid()))
    np.testing.assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize(
    ("domain", "model", "words"),
    [
        (Grid(0, 100, 1), Beta(), "beta model holds numbers from 0 to 1"),
        (Grid(-5, 5, 1), Poisson(rate=(0.1, 9.0)), "poisson model holds"),
        (Grid(0, 2, 1), Bernoulli(), "goes beyond"),
        (Grid(0, 1, "0.5"), Bernoulli(), "0 and 1 only"),
        (Grid(0, 1, "0.1", nulls="cell"), Beta(), "no cell for nulls"),
        (Grid(0, 1, "0.1", outside="other"), Beta(), "no cell for nulls"),
        (Categories(["a", "b"], outside="null"), Beta(), "numeric domain"),
        (Grid(0, 1, "0.0000001"), Beta(), "at most"),
    ],
)
def test_domains_that_do_not_fit_are_refused_before_any_data(domain, model, words):
    with pytest.raises(DomainError, match=words):
        check_numeric(domain, model)


@pytest.mark.parametrize("domain", [Grid(0, 1, "0.25"), Bins([0, "0.1", "0.5", 1])])
def test_cells_partition_the_line(domain):
    model, point = Beta(), np.array([0.3, 2.0])
    numbers, edges = cell_numbers(domain, np.arange(domain.size)), inner_edges(domain)
    assert len(edges) == domain.size - 1
    assert (numbers[:-1] < edges).all()
    assert (edges < numbers[1:]).all()
    weights = cell_weights(model, point, edges) / 2.0**50
    law = scipy.stats.beta(0.6, 1.4)
    np.testing.assert_allclose(np.cumsum(weights)[:-1], law.cdf(edges), rtol=1e-9)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
