"""Functionals: how they are written, and their values on fixed distributions against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import DomainError, FormatError, ModelError, PrivurnError
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import linear_weights, reduce

GRID = JointDomain({"pay": Grid(0, 10, "0.5", nulls="cell", outside="other")})
PEOPLE = JointDomain({"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m"], outside="null")})


def values_of(asked, domain, shares, **options):
    return reduce(parse_functionals(asked), domain=domain, **options).evaluate(np.asarray(shares, float))


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=23, max_size=23).filter(lambda counts: sum(counts[:21]) > 0))
def test_against_numpy_on_a_grid(counts):
    """21 grid points, then "other" and null: numbers describe numbers, P describes all records."""
    records = np.repeat(np.arange(21) * 0.5, counts[:21])
    everyone = sum(counts)
    found = values_of(
        ["mean", "variance", "sd", "q0.3", "median", "cdf(4)", "P(x>4)", "P(2<=pay<5)", "P(x=3)", "P(x!=3)", "P(x=missing)"],
        GRID,
        counts,
    )
    assert found["mean"] == pytest.approx(records.mean(), abs=1e-12)
    assert found["variance"] == pytest.approx(records.var(), abs=1e-12)
    assert found["sd"] == pytest.approx(records.std(), abs=1e-9)
    assert found["q0.3"] == np.sort(records)[max(0, int(np.ceil(0.3 * len(records) - 1e-9)) - 1)]
    assert found["median"] == np.quantile(records, 0.5, method="inverted_cdf")
    assert found["cdf(4)"] == pytest.approx(np.mean(records <= 4))
    assert found["P(x>4)"] == pytest.approx(np.sum(records > 4) / everyone)
    assert found["P(2<=pay<5)"] == pytest.approx(np.sum((records >= 2) & (records < 5)) / everyone)
    assert found["P(x=3)"] == pytest.approx(np.sum(records == 3) / everyone)
    assert found["P(x!=3)"] == pytest.approx(1 - np.sum(records == 3) / everyone)
    assert found["P(x=missing)"] == pytest.approx(counts[22] / everyone)


def test_bins_are_spread_evenly():
    """Against each bin cut into a thousand points: what is left is the points' own width."""
    shares = np.arange(1.0, 10.0)
    asked = ["mean(age)", "sd(age)", "q0.4(age)", "cdf(age, 30)", "P(20<age<30)", "P(age>30 and sex=m)", "P(sex=missing)"]
    found = values_of(asked, PEOPLE, shares)
    edges = np.array([0, 18, 65, 120.0])
    fine = np.concatenate([a + (np.arange(1000) + 0.5) / 1000 * (b - a) for a, b in pairwise(edges)])
    by_age = np.repeat(shares.reshape(3, 3, order="F").sum(axis=1) / 1000, 1000)
    men = np.repeat(shares.reshape(3, 3, order="F")[:, 1] / 1000, 1000)
    by_age, men = by_age / shares.sum(), men / shares.sum()
    mean = by_age @ fine
    assert found["mean(age)"] == pytest.approx(mean)
    assert found["sd(age)"] == pytest.approx(np.sqrt(by_age @ (fine - mean) ** 2), rel=1e-5)
    assert found["q0.4(age)"] == pytest.approx(fine[np.searchsorted(np.cumsum(by_age), 0.4)], abs=0.06)
    assert found["cdf(age, 30)"] == pytest.approx(by_age[fine <= 30].sum(), abs=1e-3)
    assert found["P(20<age<30)"] == pytest.approx(by_age[(fine > 20) & (fine < 30)].sum(), abs=1e-3)
    assert found["P(age>30 and sex=m)"] == pytest.approx(men[fine > 30].sum(), abs=1e-3)
    assert found["P(sex=missing)"] == pytest.approx(shares[6:].sum() / shares.sum())


def test_bins_at_their_midpoints():
    shares = np.arange(1.0, 10.0)
    found = values_of(["variance(age)", "P(age>30)", "q0.5(age)"], PEOPLE, shares, within="midpoint")
    middle, weights = np.array([9, 41.5, 92.5]), shares.reshape(3, 3, order="F").sum(axis=1) / shares.sum()
    assert found["variance(age)"] == pytest.approx(weights @ middle**2 - (weights @ middle) ** 2)
    assert found["P(age>30)"] == pytest.approx(weights[1:].sum())
    assert found["q0.5(age)"] == 41.5


def test_functions_of_the_user():
    shares = np.arange(23.0)
    records = {"square": lambda pay: pay**2, "big": lambda pay: pay > 4}
    found = values_of(records, GRID, shares)
    numbers = np.arange(21) * 0.5
    assert found["square"] == pytest.approx(shares[:21] @ numbers**2 / shares[:21].sum())  # NaN leaves cells out
    assert found["big"] == pytest.approx(shares[:21] @ (numbers > 4) / shares.sum())
    both = values_of({"old men": lambda c: (c["age"] > 60) * (c["sex"] == "m")}, PEOPLE, np.ones(9))
    assert both["old men"] == pytest.approx(1 / 9)
    with pytest.raises(ModelError, match="one number for each"):
        values_of({"short": lambda pay: pay[:2]}, GRID, shares)
    with pytest.raises(ModelError, match="finite"):
        values_of({"infinite": lambda pay: 1 / pay**0 * np.inf}, GRID, shares)


@pytest.mark.parametrize(
    "answer", ["text", np.full(23, "3"), [[1], [1, 2]], np.array(["a"] * 23, object), np.ones(23, complex)]
)
def test_a_function_must_return_numbers(answer):
    with pytest.raises(ModelError, match="'odd' must return numbers"):
        values_of({"odd": lambda pay: answer}, GRID, np.arange(23.0))


@pytest.mark.parametrize("asked", [3, None, [3], {"three": 3}, 2.5])
def test_what_is_no_functional(asked):
    with pytest.raises(FormatError, match="is no functional") as caught:
        parse_functionals(asked)
    assert "P(x>0.75)" in caught.value.hint


def test_nothing_to_speak_about():
    only_missing = np.append(np.zeros(22), 5.0)
    found = values_of(["mean", "q0.5", "cdf(3)", "P(x>3)"], GRID, only_missing)
    assert np.isnan([found["mean"], found["q0.5"], found["cdf(3)"]]).all()
    assert found["P(x>3)"] == 0.0


def test_large_numbers_keep_their_variance():
    domain = JointDomain({"x": Grid(10**9, 10**9 + 2, 1)})
    assert values_of(["variance"], domain, [1, 2, 1])["variance"] == 0.5


def test_only_what_is_asked_for_is_told_apart():
    wide = JointDomain({"x": Grid(0, 1, "0.001"), "y": Categories(list("abcdef"), outside="other")})
    assert reduce(parse_functionals(["P(x>0.5)", "cdf(x, 0.2)"]), domain=wide).n_groups == 3
    assert reduce(parse_functionals(["mean(x)"]), domain=wide).n_groups == 1001
    assert reduce(parse_functionals(["P(y=a)", "P(x>0.5)"]), domain=wide).n_groups == 4


def test_which_are_linear():
    kinds = {
        name: linear_weights(parse_functionals(name)[0], domain=GRID) for name in ("mean", "sd", "q0.5", "cdf(1)", "P(x>1)")
    }
    assert {name for name, weights in kinds.items() if weights is not None} == {"mean", "cdf(1)", "P(x>1)"}


@pytest.mark.parametrize(
    "text",
    [
        *("meen", "", "q", "q0", "q1", "q1.5", "qx", "mean()", "P()", "P(x)", "P(x>)", "P(>3)", "P(x>a)", "P(x=3", "cdf()"),
        *("cdf(a)", "P(1<x>2)", "P(1<x<2<3)", "P(,x>1)", "P(x>1,)", "P(x>nan)", "P('a'b'>3)"),
    ],
)
def test_what_does_not_parse(text):
    with pytest.raises(PrivurnError) as caught:
        reduce(parse_functionals([text]), domain=GRID)
    assert isinstance(caught.value, FormatError)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mean", FormatError),  # of which column?
        ("mean(sex)", FormatError),
        ("P(sex>1)", FormatError),
        ("P(height>3)", FormatError),
        ("P(sex=x)", DomainError),
        ("P(age=3)", DomainError),
        ("discovery", FormatError),
    ],
)
def test_what_the_domain_does_not_have(text, kind):
    with pytest.raises(kind) as caught:
        reduce(parse_functionals([text]), domain=PEOPLE)
    assert caught.value.hint


def test_asked_for_nothing_or_twice():
    with pytest.raises(FormatError, match="no functional"):
        parse_functionals([])
    with pytest.raises(FormatError, match="twice"):
        parse_functionals(["mean", "mean"])
    with pytest.raises(FormatError, match="int is no functional"):
        parse_functionals([3])
    with pytest.raises(FormatError, match="within"):
        reduce(parse_functionals("mean(age)"), domain=PEOPLE, within="edges")


def test_names_with_strange_characters():
    domain = JointDomain({"a b": Grid(0, 2, 1), "kind": Categories(["x, y", "p and q", "z>1"], outside="other")})
    shares = np.arange(12.0)
    found = values_of(["mean(a b)", "P(kind='x, y')", 'P(kind="p and q", a b>0)', "P(kind='z>1')"], domain, shares)
    assert found["P(kind='x, y')"] == pytest.approx(3 / 66)
    assert found['P(kind="p and q", a b>0)'] == pytest.approx(9 / 66)
    assert found["P(kind='z>1')"] == pytest.approx(21 / 66)
