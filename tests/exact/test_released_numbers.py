"""Numbers as they are declared and as they are published: exact fractions on one side, 64-bit numbers on the other."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privurn.domain import Bins, Grid, JointDomain, domain_from_json
from privurn.errors import DomainError
from privurn.exact_numbers import decimal_text, exact, rational
from privurn.tables import count_cells, decode, open_table
from privurn.tables.cells import cell_values, grid_numbers, released_numbers
from privurn.tables.released import CellReader

decimals = st.builds(
    lambda digits, places: Fraction(digits) * Fraction(10) ** places, st.integers(-(10**30), 10**30), st.integers(-60, 60)
)
steps = st.builds(
    lambda digits, places: Fraction(digits) * Fraction(10) ** places, st.integers(1, 10**6), st.integers(-300, 294)
)
fractions = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))


@st.composite
def grids(draw):
    """Grids anywhere that floats reach, a few of them with fractional steps that are no decimals."""
    step = draw(st.one_of(steps, st.builds(Fraction, st.integers(1, 99), st.integers(1, 99))))
    start = draw(st.one_of(st.integers(-(2**48), 2**48), st.integers(-50, 50), st.sampled_from([0, 2**47])))
    shift = draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1, 3), Fraction(123456789, 10**9)]))
    low = step * (start + shift)
    assume(low == 0 or abs(low) >= Fraction(1, 10**300))
    assume(max(abs(low), step) < 10**299)
    return Grid(low, low + step * draw(st.integers(1, 40)), step)


def exact_points(domain):
    return [domain.bounds[0] + domain.spacing * i for i in range(domain.n_values)]


@settings(max_examples=100)
@given(domain=grids())
def test_grid_points_are_released_as_64_bit_integers_or_as_the_nearest_floats(domain):
    points, numbers = exact_points(domain), released_numbers(domain)
    whole = all(point.denominator == 1 and -(2**63) <= point < 2**63 for point in points)
    assert numbers.dtype == (np.int64 if whole else np.float64)
    assert numbers.tolist() == [int(point) if whole else float(point) for point in points]
    assert cell_values(domain).tolist() == [float(point) for point in points]
    assert len(set(map(float, points))) == len(points)
    own = decode(np.arange(domain.size), JointDomain({"x": domain}))["x"].to_pylist()
    assert own == numbers.tolist()
    assert domain_from_json(domain.to_json()) == domain


@settings(max_examples=25)
@given(domain=grids())
def test_every_grid_point_is_read_into_its_own_cell(domain):
    points = exact_points(domain)
    with open_table(np.array([float(point) for point in points])) as source:
        column = source.the_column(None)
        counts = count_cells(source, JointDomain({column: domain}))
    assert counts.values.tolist() == list(range(len(points)))
    assert counts.counts.tolist() == [1] * len(points)


@settings(max_examples=80)
@given(edges=st.lists(decimals, min_size=2, max_size=6, unique=True).map(sorted))
def test_midpoints_are_released_as_64_bit_integers_or_as_the_nearest_floats(edges):
    try:
        domain = Bins(edges)
    except DomainError:
        assert any(float(a) == float(b) for a, b in pairwise(edges)) or any(
            0 < abs(edge) < Fraction(1, 10**300) for edge in edges
        )
        return
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    whole = all(middle.denominator == 1 and -(2**63) <= middle < 2**63 for middle in middles)
    numbers = released_numbers(domain)
    assert numbers.dtype == (np.int64 if whole else np.float64)
    assert numbers.tolist() == [int(middle) if whole else float(middle) for middle in middles]
    assert domain_from_json(domain.to_json()) == domain


@given(value=st.one_of(decimals, fractions, steps))
def test_numbers_are_written_so_that_they_are_read_again(value):
    assert exact(decimal_text(value), name="x") == value
    assert rational(str(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 4), "0.25"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(7), "7"),
        (Fraction(1, 3), "1/3"),
        (Fraction("0.1234567890123456789012345678901"), "0.1234567890123456789012345678901"),
    ],
    ids=str,
)
def test_decimal_text(value, text):
    assert decimal_text(value) == text


@pytest.mark.parametrize("text", ["9" * 399, f"1/{'9' * 399}", f"1.{'3' * 399}e-300", "1e301", "1e-301", "nan", "1e999999"])
def test_numbers_that_no_float_or_certificate_holds_are_refused(text):
    with pytest.raises(DomainError, match="finite number"):
        exact(text, name="alpha")
    with pytest.raises(ValueError):
        rational(text)


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        ("100000000000.001", "100000000000.501", "0.001"),
        ("33333333333.3333", "3033333333333.3333", "100000000000"),
        ("0.1", "0.9", "0.1"),
    ],
)
def test_what_is_written_is_read_back(low, high, step):
    """Every point of a grid, however many digits it has, by the reader that checks releases."""
    grid = Grid(low, high, step)
    written = released_numbers(grid)
    found = CellReader(grid).cells(pa.array(written))
    assert found.tolist() == list(range(grid.size))
    assert grid_numbers(grid, np.arange(grid.size)[::-1]).tolist() == written.tolist()[::-1]
