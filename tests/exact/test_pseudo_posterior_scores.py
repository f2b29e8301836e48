"""Scores of the pseudo-posterior in whole numbers: exact for any number of records, and no NaN on any way to them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.counts import CountTable
from privurn.domain import Grid
from privurn.errors import ModelError, PrivurnError
from privurn.mechanisms.grid_choice import PointChoice
from privurn.mechanisms.models import Bernoulli, Beta, Normal, Poisson, model_from_json
from privurn.mechanisms.numeric_cells import cell_weights
from privurn.mechanisms.pseudo_posterior import STEPS, PseudoPosterior, censored_terms
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger

NARROW = {"kind": "normal", "mean": [0, 100], "deviation": [1.0e-300, 100]}
NOT_FINITE = [
    NARROW,
    {"kind": "bernoulli", "probability": [1 - 2**-52, 1]},
    {"kind": "beta", "precision": [1e300, 1e308]},
    {"kind": "beta", "precision": [1e-320, 1]},
    {"kind": "beta", "margin": 1e-320},
    {"kind": "poisson", "rate": [1e-320, 1]},
    {"kind": "poisson", "rate": [1, 2], "most": 1e308},
    {"kind": "normal", "mean": [0, 100], "deviation": [1, 2], "unit": 1e-300},
    {"kind": "normal", "mean": [0, 1], "deviation": [0.1, 1], "reach": 1e200},
    {"kind": "normal", "mean": [5, 5.000000000000001], "deviation": [0.1, 1]},
]


def table(dense):
    return CountTable.from_cells(np.arange(len(dense)), np.array(dense, np.int64))


@pytest.mark.parametrize("fields", NOT_FINITE, ids=str)
def test_models_without_a_finite_density_on_their_grid_are_refused_when_declared(fields):
    with pytest.raises(ModelError, match=r"finite number|different numbers"):
        model_from_json(fields)


def test_neighbours_cannot_be_told_apart_by_scores_that_are_no_numbers(tmp_path):
    """50 x 10, 50 x 90 and one more record: a model as narrow as this is refused before anything is paid, for both tables."""
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=10, delta=0.1)
    for last in (20.0, 10.0):
        data = np.array([10.0] * 50 + [90.0] * 50 + [last])
        with pytest.raises(PrivurnError):
            privurn.release(
                data, privurn.Pseudo(model=model_from_json(NARROW)), domain=Grid(0, 100, 1), epsilon=1, ledger=ledger
            )
    assert ledger.entries() == []


def test_a_term_is_a_whole_number_within_the_threshold_whatever_floats_make_of_it():
    terms = np.array([[np.nan, np.inf, -np.inf, 0.25, 1e300], [-1e300, 0.0, np.nan, -0.75, 3e-320]])
    got = censored_terms(terms.copy(), np.array([float(STEPS), 4.0]))
    assert got.tolist() == [[-STEPS, STEPS, -STEPS, STEPS // 4, STEPS], [-STEPS, 0, -STEPS, -3, 0]]


positive = st.builds(lambda low, ratio: [low, low * ratio], st.floats(1e-320, 1e300), st.floats(1.001, 1e9))
models = st.one_of(
    positive.map(lambda bounds: {"kind": "normal", "mean": [0, 3], "deviation": bounds}),
    positive.map(lambda bounds: {"kind": "poisson", "rate": bounds}),
    positive.map(lambda bounds: {"kind": "beta", "precision": bounds}),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda bounds: {"kind": "bernoulli", "probability": bounds}),
)


@settings(max_examples=60)
@given(fields=models, threshold=st.floats(1e-300, 1e300), dense=st.lists(st.integers(0, 2**60), min_size=4, max_size=4))
def test_scores_are_the_exact_twin_s_sums_or_the_model_is_refused(fields, threshold, dense):
    """Counts up to 2^60 and bounds from 1e-320 to 1e300: n times the terms of single records, in Python integers."""
    points = [3, 2] if fields["kind"] in ("normal", "beta") else 3
    domain = {"normal": Grid(0, 3, 1), "poisson": Grid(0, 3, 1), "beta": Grid(0, 1, "1/3"), "bernoulli": Grid(0, 1, 1)}
    try:
        model = model_from_json({**fields, "points": points})
        made = PseudoPosterior(n=None, domain=domain[model.kind], model=model, threshold=threshold, records=1)
    except PrivurnError:
        return
    held = dense[: made.cells]
    with np.errstate(invalid="raise", divide="raise"):
        own = [made.scores(table(np.eye(made.cells, dtype=int)[cell])).tolist() for cell in range(made.cells)]
        got = made.scores(table(held)).tolist()
    assert all(abs(term) <= STEPS for row in own for term in row)
    assert got == [sum(n * term for n, term in zip(held, column, strict=True)) for column in zip(*own, strict=True)]


@pytest.mark.parametrize("size", [2**31, 2**41, 2**42, 2**62])
def test_gaps_between_the_largest_scores_do_not_wrap(size):
    """Two candidates that a record tells apart as well as possible: the gap is twice 2^20 steps a record."""
    model = Beta(points=(2, 1), precision=(20.0, 40.0))
    made = PseudoPosterior(n=size, domain=Grid(0, 1, "0.25"), model=model, threshold=1e-3, records=1)
    scores = made.scores(table([0, size, 0, 0, 0])).tolist()
    assert scores == [STEPS * size, -STEPS * size]
    choice = PointChoice(model.prior(), made.scores(table([0, size, 0, 0, 0])), unit=Fraction(1, 10**9))
    assert choice._gaps.tolist() == [0, 2 * STEPS * size]
    assert made.choice(table([0, size, 0, 0, 0])).draw(1, entropy=SeededEntropy(1)).tolist() == [0]


def test_probabilities_that_are_no_numbers_become_whole_weights():
    class Broken(Bernoulli):
        def cumulative(self, edges, parameters):
            return np.array([np.nan, 0.5, 0.25, 2.0])

    weights = cell_weights(Broken(), np.array([0.5]), np.zeros(4))
    assert weights.tolist() == [0, 0, 0, 2**50, 0]


def test_a_reference_weighs_records_by_the_model_s_own_density():
    """D(x) is the largest |log f(x | theta)| over the reference's parameters, in the model's unit and about its middle."""
    model = Normal(mean=(0.0, 100.0), deviation=(1.0, 50.0), points=(3, 2))
    reference = Normal(mean=(40.0, 60.0), deviation=(5.0, 20.0), points=(2, 2))
    made = PseudoPosterior(n=None, domain=Grid(0, 100, 10), model=model, threshold=0.5, records=1, reference=reference)
    values = np.array([0.0, 50.0, 90.0])
    grid = reference.grid()
    z = (values[:, None] - grid[:, 0]) / grid[:, 1]
    logs = -0.5 * z * z - np.log(grid[:, 1] / model.scale) - 0.5 * np.log(2 * np.pi)
    wanted = np.minimum(1.0, 0.5 / np.abs(logs).max(axis=1))
    assert made.weights(model.summaries(values)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    "model", [Beta(), Bernoulli(), Poisson(rate=(1e-300, 1.0)), Normal(mean=(-1e9, 1e9), deviation=(1e-6, 1e9))], ids=str
)
def test_wide_but_finite_models_are_kept(model):
    assert (np.diff(model.axes[-1].values()) > 0).all()
