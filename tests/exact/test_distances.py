"""Distances from counts equal their definitions: by enumeration on small samples, by SciPy on larger ones."""

from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment
from scipy.stats import gaussian_kde, ks_2samp, norm, wasserstein_distance

from privurn.counts import CountTable
from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import DomainError, ModelError
from privurn.reports.comparison import distances, joint
from privurn.reports.comparison.samples import Sample, cell_values
from privurn.tables import decode

RECORDS = st.lists(st.integers(-5, 5), min_size=1, max_size=8)
REALS = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40)


def sample(records):
    return Sample.from_records(records)


def share(records, event):
    return Fraction(sum(event(each) for each in records), len(records))


@given(RECORDS, RECORDS)
@settings(max_examples=200, deadline=None)
def test_w1_is_the_cheapest_transport(x, y):
    # every record split into as many equal parts as the other side has records: then the best plan is an assignment
    left, right = np.repeat(x, len(y)), np.repeat(y, len(x))
    cost = np.abs(np.subtract.outer(left, right))
    cheapest = Fraction(int(cost[linear_sum_assignment(cost)].sum()), len(left))
    assert distances.wasserstein(sample(x), sample(y)) == pytest.approx(float(cheapest), abs=1e-12)


@given(RECORDS, RECORDS)
@settings(max_examples=200, deadline=None)
def test_ks_is_the_largest_difference_at_any_threshold(x, y):
    largest = max(abs(share(x, lambda v, t=t: v <= t) - share(y, lambda v, t=t: v <= t)) for t in range(-6, 7))
    assert distances.kolmogorov(sample(x), sample(y)) == pytest.approx(float(largest), abs=1e-12)
    assert distances.kolmogorov(sample(x), sample(x)) == 0.0  # ties must not be counted half


@given(RECORDS, RECORDS)
@settings(max_examples=60, deadline=None)
def test_total_variation_is_the_largest_difference_of_any_event(x, y):
    support = sorted({*x, *y})[:8]
    x, y = [v for v in x if v in support] or support[:1], [v for v in y if v in support] or support[:1]
    events = chain.from_iterable(combinations(support, size) for size in range(len(support) + 1))
    largest = max(abs(share(x, event.__contains__) - share(y, event.__contains__)) for event in map(set, events))
    assert distances.total_variation(sample(x), sample(y)) == pytest.approx(float(largest), abs=1e-12)


def test_bins_of_total_variation_are_half_open_and_catch_what_is_outside():
    a, b = sample([0, 1, 2, 3]), sample([1, 1, 3, 9])
    # bins [0, 2), [2, 3], outside: (2, 2, 0) against (2, 1, 1) quarters
    assert distances.total_variation(a, b, edges=[0, 2, 3]) == pytest.approx(0.25)
    assert distances.total_variation(sample([-1]), sample([9]), edges=[0, 2, 3]) == 1.0
    assert distances.total_variation(sample([3]), sample([9]), edges=[0, 2, 3]) == 1.0  # the last edge is inside
    for edges in ([0], [0, 0], [1, 0]):
        with pytest.raises(ModelError):
            distances.total_variation(a, b, edges=edges)


@given(REALS, REALS)
@settings(max_examples=200, deadline=None)
def test_reals_agree_with_scipy(x, y):
    scale = max(1.0, *map(abs, x), *map(abs, y))
    assert distances.wasserstein(sample(x), sample(y)) == pytest.approx(wasserstein_distance(x, y), rel=1e-9, abs=1e-12 * scale)


@given(REALS, REALS, REALS)
@settings(max_examples=100, deadline=None)
def test_w1_is_a_distance(x, y, z):
    a, b, c = map(sample, (x, y, z))
    slack = 1e-9 * max(1.0, *map(abs, x), *map(abs, y), *map(abs, z))
    assert distances.wasserstein(a, a) == 0.0
    assert distances.wasserstein(a, b) == pytest.approx(distances.wasserstein(b, a), abs=slack)
    assert distances.wasserstein(a, c) <= distances.wasserstein(a, b) + distances.wasserstein(b, c) + slack
    assert abs(distances.mean(a) - distances.mean(b)) <= distances.wasserstein(a, b) + slack


def test_many_rows_agree_with_scipy_and_cost_their_distinct_values():
    rng = np.random.default_rng(3)
    rows, released = np.round(rng.gamma(3.0, 900.0, 300_000)), np.round(rng.gamma(3.0, 905.0, 20_000))
    counted = sample(rows)
    assert len(counted.values) < 20_000
    assert counted.total == 300_000
    expected = wasserstein_distance(rows, released)
    assert abs(distances.wasserstein(counted, sample(released)) - expected) <= 1e-9 * expected
    peer = ks_2samp(rows, released, method="asymp").statistic
    assert distances.kolmogorov(counted, sample(released)) == pytest.approx(peer, abs=1e-12)


@given(RECORDS, st.fractions(0, 1))
@settings(max_examples=200, deadline=None)
def test_quantiles_are_the_smallest_value_that_reaches(x, p):
    wanted = min(value for value in x if share(x, lambda v, value=value: v <= value) >= p)
    if Fraction(float(p)) == p or share(x, lambda v: v <= wanted) > p:  # a rounded p may lie beyond an exact step
        assert distances.quantiles(sample(x), probabilities=[float(p)]) == [wanted]


def test_quantiles_and_moments_agree_with_numpy():
    x = np.random.default_rng(4).integers(0, 30, 1000).astype(float)
    probabilities = np.linspace(0, 1, 129)  # exact in binary, so that no side rounds
    found = distances.quantiles(sample(x), probabilities=probabilities)
    assert np.array_equal(found, np.quantile(x, probabilities, method="inverted_cdf"))
    assert distances.mean(sample(x)) == pytest.approx(x.mean(), rel=1e-13)
    assert distances.standard_deviation(sample(x)) == pytest.approx(x.std(), rel=1e-13)
    with pytest.raises(ModelError):
        distances.quantiles(sample(x), probabilities=[1.1])


def test_the_density_distance_is_the_integral():
    x, y, width = [0, 0, 1, 4], [1, 2, 2.5], 0.7

    def gap(t):
        return (norm.pdf((t - np.array(x)) / width).mean() - norm.pdf((t - np.array(y)) / width).mean()) / width

    integral = quad(lambda t: gap(t) ** 2, -8, 12, epsabs=1e-14, limit=200)[0]
    found = distances.density_distance(sample(x), sample(y), bandwidth=width)
    assert found == pytest.approx(np.sqrt(integral), rel=1e-9)
    assert distances.density_distance(sample(x), sample(x), bandwidth=width) == 0.0


@pytest.mark.parametrize("width", [1e-4, 0.02, 0.5, 3.0])
def test_the_lattice_gives_what_the_pairs_give(width, monkeypatch):
    rng = np.random.default_rng(5)
    a, b = sample(np.append(rng.normal(0, 1, 400), 1e7)), sample(rng.normal(0.1, 1.1, 300))  # one value far away
    exact = distances.density_distance(a, b, bandwidth=width)
    monkeypatch.setattr(distances, "MOST_PAIRED", 0)
    assert distances.density_distance(a, b, bandwidth=width) == pytest.approx(exact, rel=1e-3)
    monkeypatch.setattr(distances, "LATTICE_POINTS", 2)  # a coarse lattice is not good enough: the test can fail
    assert distances.density_distance(a, b, bandwidth=width) != pytest.approx(exact, rel=1e-3)


def test_densities_and_their_bandwidth():
    x = np.random.default_rng(6).normal(10, 2, 500)
    width = distances.bandwidth(sample(x))
    quartiles = np.quantile(x, [0.25, 0.75], method="inverted_cdf")
    assert width == pytest.approx(0.9 * min(x.std(), (quartiles[1] - quartiles[0]) / 1.34) * 500**-0.2, rel=1e-12)
    at = np.linspace(0, 20, 50)
    peer = gaussian_kde(x, bw_method=width / x.std(ddof=1))
    assert distances.density(sample(x), at=at, bandwidth=width) == pytest.approx(peer(at), rel=1e-9)
    mostly_one = sample([0.0] * 90 + [1.0] * 10)  # the quartiles coincide
    assert distances.bandwidth(mostly_one) == pytest.approx(0.9 * 0.3 * 100**-0.2)
    assert distances.bandwidth(sample([3.0]), least=0.5) == 0.5
    with pytest.raises(ModelError):
        distances.bandwidth(sample([3.0]))
    with pytest.raises(ModelError):
        distances.density(sample(x), at=at, bandwidth=0.0)
    with pytest.raises(ModelError):
        distances.density_distance(sample(x), sample(x), bandwidth=0.0)


def test_a_sample_is_checked_and_silent():
    assert repr(sample([12345.0])) == "Sample(confidential)"
    for values, weights in (
        ([], []),
        ([1.0, 1.0], [1, 1]),
        ([2.0, 1.0], [1, 1]),
        ([1.0], [0]),
        ([np.nan], [1]),
        ([1.0], [1, 2]),
    ):
        with pytest.raises(DomainError):
            Sample(np.array(values), np.array(weights))


DOMAINS = [
    Grid(0, 10, 2),
    Grid("-0.3", "0.5", "0.1", outside="other"),
    Grid(5, 7, 1, outside="null"),
    Bins([0, 1, 5, 20], nulls="cell"),
    Bins(["0.1", "0.25", "3"], outside="other", nulls="cell"),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.describe())
def test_cells_stand_for_what_a_release_writes(domain):
    cells = np.arange(domain.size)
    written = decode(cells, JointDomain({"x": domain}))["x"].to_pylist()
    expected = [np.nan if value is None else value for value in written]
    assert np.array_equal(cell_values(domain), np.array(expected, float), equal_nan=True)
    kept = Sample.from_weights(cell_values(domain), cells + 1)
    assert kept.total == sum(cell + 1 for cell in range(domain.n_values))
    assert np.array_equal(kept.values, cell_values(domain)[: domain.n_values])


def test_categories_are_no_numbers():
    with pytest.raises(DomainError):
        cell_values(Categories(["a", "b"], outside="other"))


# -- several columns

JOINT = JointDomain(
    {"age": Grid(0, 4, 1, outside="null"), "sex": Categories(["f", "m"], outside="other"), "pay": Bins([0, 10, 30, 60])}
)
CELLS = st.lists(st.integers(0, JOINT.size - 1), min_size=1, max_size=30)


def table(cells):
    return CountTable.from_cells(*np.unique(np.array(cells, np.int64), return_counts=True))


def digits(cells):
    """Cells of the three columns (sizes 6, 3, 3), by hand."""
    return [(cell % 6, cell // 6 % 3, cell // 18) for cell in cells]


@given(CELLS, CELLS)
@settings(max_examples=60, deadline=None)
def test_pairs_of_columns(x, y):
    found = joint.pairwise_total_variation(table(x), table(y), domain=JOINT)
    names = list(JOINT.columns)
    assert set(found) == set(combinations(names, 2))
    for (first, second), value in found.items():
        i, j = names.index(first), names.index(second)
        keys = [(row[i], row[j]) for row in digits(x)], [(row[i], row[j]) for row in digits(y)]
        everything = set(keys[0]) | set(keys[1])
        exact = sum(abs(share(keys[0], lambda v, k=k: v == k) - share(keys[1], lambda v, k=k: v == k)) for k in everything) / 2
        assert value == pytest.approx(float(exact), abs=1e-12)
    for position, name in enumerate(names):
        own = joint.marginal(table(x), domain=JOINT, column=name)
        expected = np.bincount([row[position] for row in digits(x)], minlength=JOINT.columns[name].size)
        assert np.array_equal(own.dense(JOINT.columns[name].size), expected)


@given(st.lists(st.integers(0, JOINT.size - 1), min_size=5, max_size=60))
@settings(max_examples=60, deadline=None)
@example([26, 32, 32, 32, 32, 38])  # a constant whose mean does not cancel exactly
def test_correlations_of_numbers(x):
    found = joint.correlations(table(x), domain=JOINT)
    assert list(found) == [("age", "pay")]
    rows = [(age, [5.0, 20.0, 45.0][pay]) for age, _, pay in digits(x) if age < 5]  # 5 is the null cell
    ages, pays = (np.array(column, float) for column in zip(*rows, strict=True)) if rows else (np.zeros(1), np.zeros(1))
    if len(set(ages)) == 1 or len(set(pays)) == 1:
        assert np.isnan(found["age", "pay"])
    else:
        assert found["age", "pay"] == pytest.approx(np.corrcoef(ages, pays)[0, 1], abs=1e-9)


def points(cells):
    """Coordinates by hand: age, age null, f, m, sex other, pay."""
    root = np.sqrt(0.5)
    out = []
    for age, sex, pay in digits(cells):
        spot = [0.5 if age == 5 else age / 4, root * (age == 5), 0.0, 0.0, 0.0, [5, 20, 45][pay] / 60]
        spot[2 + sex] = root
        out.append(spot)
    return np.array(out)


@given(CELLS, CELLS)
@settings(max_examples=30, deadline=None)
def test_sliced_w1_is_the_mean_over_the_seeded_directions(x, y):
    rng, total = np.random.default_rng(9), 0.0
    for _ in range(7):
        direction = rng.standard_normal(6)
        direction /= np.linalg.norm(direction)
        total += wasserstein_distance(points(x) @ direction, points(y) @ direction)
    found = joint.sliced_wasserstein(table(x), table(y), domain=JOINT, projections=7, seed=9)
    assert found == pytest.approx(total / 7, abs=1e-12)
    assert joint.sliced_wasserstein(table(x), table(x), domain=JOINT) == pytest.approx(0.0, abs=1e-15)


def test_in_one_dimension_slicing_changes_nothing():
    domain = JointDomain({"x": Grid(0, 50, 10)})
    for x, y in product(([0, 1, 5], [2, 2]), ([3], [0, 5])):
        scaled = distances.wasserstein(sample([10 * v for v in x]), sample([10 * v for v in y])) / 50
        assert joint.sliced_wasserstein(table(x), table(y), domain=domain) == pytest.approx(scaled, abs=1e-12)
    with pytest.raises(ModelError):
        joint.sliced_wasserstein(table([0]), table([1]), domain=domain, projections=0)
    with pytest.raises(DomainError):
        joint.sliced_wasserstein(table([0]), table([]), domain=domain)
