"""The mixture of products behind noisy marginals: gradient, recovery of a known mixture, systematic records, seeds."""

from dataclasses import replace

import numpy as np
import pytest

from privurn.domain import Grid, TableDomain
from privurn.errors import ModelError
from privurn.inference.tables import fit as fit_module
from privurn.inference.tables.fit import AT_FACE_VALUE, FitSettings, Spread, draw_mixture, fit_mixture
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.objective import Objective
from privurn.inference.tables.sampling import synthetic_cells, systematic_counts
from privurn.mechanisms.marginal_counts import count_marginals
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import every_set
from privurn.mechanisms.marginals_recipe import calibrate_marginals
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.privacy.profile import Guarantee

SIZES = (3, 4, 2, 5)
FAST = FitSettings(classes=12, pair_steps=200, triple_steps=100)


def made_mixture(sizes=SIZES, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.concatenate([rng.dirichlet(np.full(size, 0.6), classes) for size in sizes], axis=1)
    return MixtureOfProducts(sizes, rng.dirichlet(np.full(classes, 3.0)), cells)


def records(mixture, n, seed=1):
    """Independent records, a row for each column."""
    rng = np.random.default_rng(seed)
    k = rng.choice(len(mixture.weights), n, p=mixture.weights)
    found = np.empty((len(mixture.sizes), n), np.uint16)
    for j in range(len(mixture.sizes)):
        ends = np.cumsum(mixture.column(j), axis=1)
        found[j] = np.minimum((rng.random(n)[:, None] > ends[k]).sum(axis=1), mixture.sizes[j] - 1)
    return found


def measured(codes, sizes=SIZES, *, scale=5.0, order=3, secret=False, seed=2):
    sets = every_set(sizes, order=order)
    n = codes.shape[1]
    made = NoisyMarginals(
        n=None if secret else n, sizes=sizes, sets=sets, scales=(scale,) * len(sets), noise="discrete-gaussian"
    )
    counts = count_marginals([codes], made.layout)
    return MeasuredTable(made, made.simulate(counts, rng=np.random.default_rng(seed)).astype(float))


@pytest.mark.parametrize("order", [2, 3])
def test_the_gradient_is_that_of_finite_differences(order):
    """With cells of three columns that are empty, two of them in the same cell of a column."""
    columns = {f"c{j}": Grid(0, size - 1, 1) for j, size in enumerate(SIZES)}
    empty = [{"c0": 0, "c1": 1, "c2": 1}, {"c0": 0, "c1": 2, "c3": 4}, {"c1": 3, "c2": 0}]
    table = replace(measured(records(made_mixture(), 400), order=order), domain=TableDomain(columns, empty))
    double = Objective.of(table)
    assert double.empty.T.tolist() == [[0, 4, 8], [0, 5, 13]]
    double = replace(
        double,
        **{name: getattr(double, name).astype(float) for name in ("one", "one_precision", "two", "two_precision")},
        triples=tuple(replace(each, shares=each.shares * 1.0, precision=each.precision * 1.0) for each in double.triples),
    )
    start = made_mixture(classes=4, seed=5)
    weights, cells, rng = start.weights.copy(), start.cells.copy(), np.random.default_rng(6)
    _, by_weights, by_cells = double.value(weights, cells, triples=True)
    for _ in range(6):
        dw, dc = rng.standard_normal(weights.shape), rng.standard_normal(cells.shape)
        h = 1e-4
        up, down = (double.value(weights + s * h * dw, cells + s * h * dc, triples=True)[0] for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(float(by_weights @ dw + (by_cells * dc).sum()), rel=2e-5)


def test_threads_change_nothing(monkeypatch):
    table, found = measured(records(made_mixture(), 400)), []
    monkeypatch.setattr(fit_module, "WORTH_THREADS", 0)
    for cores in (1, 3):
        monkeypatch.setattr(fit_module, "usable_cores", lambda cores=cores: cores)
        found.append(fit_mixture(table, seed=1, settings=FitSettings(classes=5, pair_steps=5, triple_steps=20)))
    assert np.array_equal(found[0].mixture.cells, found[1].mixture.cells)
    assert np.array_equal(found[0].mixture.weights, found[1].mixture.weights)


@pytest.mark.parametrize(("scale", "spread"), [(1.0, 2.5), (50.0, 2.0), (5000.0, 1.25)])
def test_a_table_at_face_value_is_held_less_where_there_is_less_noise(scale, spread):
    """A tenth of the root of N over the noise of a pair, within bounds; a fit takes it where the rule is stated."""
    table, rule = measured(records(made_mixture(), 20_000), scale=scale), Spread(factor=0.1, within=(1.25, 2.5))
    assert rule.of(table) == pytest.approx(spread, rel=1e-3)
    quick = FitSettings(classes=4, pair_steps=10, triple_steps=0)
    by_noise, stated = (fit_mixture(table, settings=replace(quick, spread=each)).mixture for each in (rule, rule.of(table)))
    assert np.array_equal(by_noise.cells, stated.cells)


def test_the_objective_is_half_the_squared_residuals():
    table = measured(records(made_mixture(), 400))
    mixture = made_mixture(classes=4, seed=5)
    found = Objective.of(table).value(mixture.weights.astype(np.float32), mixture.cells.astype(np.float32), triples=True)[0]
    wanted = sum(
        0.5 * (((y - table.n * mixture.marginal(places)) / table.deviations[places]) ** 2).sum()
        for places, y in table.marginals.items()
    )
    assert found == pytest.approx(wanted, rel=1e-4)


def distance(mixture, truth):
    sets = [each for each in every_set(truth.sizes, order=3) if len(each) > 1]
    return np.mean([0.5 * np.abs(mixture.marginal(each) - truth.marginal(each)).sum() for each in sets])


def test_several_searches_are_averaged_and_lie_nearer():
    """Marginals of the mean are means of marginals; the default table at face value is one."""
    truth = made_mixture(classes=6, seed=4)
    table = measured(records(truth, 3_000), scale=30.0)
    one = replace(FAST, triple_steps=40)
    seen = []
    found = fit_mixture(
        table, seed=3, settings=replace(one, searches=3), progress=lambda done, total, misfit: seen.append((done, total))
    )
    assert seen == [(step, 720) for step in range(1, 721)]
    assert len(found.mixture.weights) == 36
    assert found.mixture.weights.sum() == pytest.approx(1.0, abs=1e-6)
    thirds = [
        MixtureOfProducts(SIZES, 3.0 * found.mixture.weights[k : k + 12], found.mixture.cells[k : k + 12]) for k in (0, 12, 24)
    ]
    assert np.array_equal(thirds[0].cells, fit_mixture(table, seed=3, settings=one).mixture.cells)
    for places in ((0, 1), (0, 2, 3)):
        assert found.mixture.marginal(places) == pytest.approx(
            np.mean([each.marginal(places) for each in thirds], axis=0), abs=1e-9
        )
    assert distance(found.mixture, truth) < np.mean([distance(each, truth) for each in thirds])
    assert AT_FACE_VALUE.searches > 1


def test_a_known_mixture_is_recovered_as_the_noise_goes_to_zero():
    truth = made_mixture()
    codes = records(truth, 200_000)
    slow = FitSettings(classes=20)
    errors = [distance(fit_mixture(measured(codes, scale=s), settings=slow).mixture, truth) for s in (20_000.0, 2_000.0, 10.0)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_the_misfit_is_one_where_the_noise_explains_it_and_progress_tells():
    seen = []
    table = measured(records(made_mixture(), 2_000), scale=30.0)
    found = fit_mixture(table, settings=FAST, progress=lambda done, total, misfit: seen.append((done, total, misfit)))
    assert 0.7 < found.misfit < 1.2
    assert seen[-1][0] == seen[-1][1] == len(seen) == 300
    assert seen[0][2] > seen[-1][2]


def test_more_classes_than_needed_change_nothing_much():
    truth = made_mixture()
    table = measured(records(truth, 20_000), scale=30.0)
    few = fit_mixture(table, settings=replace(FAST, classes=30)).mixture
    many = fit_mixture(table, settings=replace(FAST, classes=60)).mixture
    assert distance(few, many) < 0.5 * max(distance(few, truth), distance(many, truth)) + 0.004


def test_an_association_that_was_plainly_measured_is_kept_where_records_are_few():
    """A hundred classes, each of which pays for its distance from independence, give it up."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 4, 1_000)
    codes = np.array([age, rng.integers(0, 2, 1_000), (age == 3) & (rng.random(1_000) < 0.7), rng.integers(0, 3, 1_000)])
    table = measured(codes.astype(np.uint16), (4, 2, 2, 3), scale=15.0, order=2)
    assert AT_FACE_VALUE.classes_for(table) == FitSettings().classes_for(table) == 44
    assert FitSettings().classes_for(measured(codes.astype(np.uint16), (4, 2, 2, 3), scale=0.5, order=2)) == 100

    def kept(settings):
        """Share of what was measured beyond independence."""
        mixture, measured_share = fit_mixture(table, settings=settings).mixture, table.marginals[0, 2][3, 1] / 1_000
        apart = table.marginals[0,][3] * table.marginals[2,][1] / 1_000**2
        return (mixture.marginal((0, 2))[3, 1] - apart) / (measured_share - apart)

    assert kept(AT_FACE_VALUE) > 0.5
    assert kept(replace(AT_FACE_VALUE, classes=100, spread=1.0)) < 0.1


def test_a_seed_gives_the_same_mixture_and_another_one_another():
    table = measured(records(made_mixture(), 2_000))
    first, again, other = (fit_mixture(table, settings=FAST, seed=seed).mixture for seed in (3, 3, 4))
    assert np.array_equal(first.cells, again.cells)
    assert not np.array_equal(first.cells, other.cells)


def test_draws_scatter_about_the_fit_by_about_the_noise():
    """Of a share that was measured alone, whose posterior is nearly the noise's law."""
    codes = records(made_mixture(), 20_000)
    made = NoisyMarginals(n=20_000, sizes=SIZES, sets=((0,),), scales=(100.0,), noise="discrete-gaussian")
    counts = count_marginals([codes], made.layout)
    table = MeasuredTable(made, made.simulate(counts, rng=np.random.default_rng(3)).astype(float))
    drawn = np.array([draw_mixture(table, seed=s, settings=FAST).mixture.marginal((0,)) for s in range(20)]) * 20_000
    assert np.all(np.abs(drawn.mean(axis=0) - counts.counts) < 5 * 100.0)
    assert 50.0 < drawn.std(axis=0).max() < 200.0


# ---- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [5.0, 7.4])
def test_systematic_counts_are_within_one_and_right_on_average(total):
    rng = np.random.default_rng(0)
    expected = rng.dirichlet(np.ones(7)) * total
    drawn = np.array([systematic_counts(expected, rng=rng) for _ in range(4_000)])
    assert np.abs(drawn - expected).max() < 1.0
    assert set(drawn.sum(axis=1)) <= {int(np.floor(total)), int(np.ceil(total))}
    assert np.abs(drawn.mean(axis=0) - expected).max() < 0.5 * 6.5 / 4_000**0.5  # each is one of two whole numbers: P < 1e-9


class Ends:
    """Random numbers at the ends of their range, in place of such as come once in many years."""

    def __init__(self, uniform):
        self.uniform = uniform

    def permutation(self, size):
        return np.arange(size)

    def random(self, size=None):
        return self.uniform if size is None else np.full(size, self.uniform)


@pytest.mark.parametrize("total", [48, 10**7, 2 * 10**12])
@pytest.mark.parametrize("uniform", [0.0, 0.9999, 1.0 - 2.0**-53])
def test_rounding_makes_no_record(total, uniform):
    """A sum of 10^12 and a number next to 1 was rounded up to one record more."""
    shares = np.random.default_rng(0).dirichlet(np.ones(300))
    assert systematic_counts(shares * total, rng=Ends(uniform)).sum() == total


def test_records_have_columns_within_one_of_expectation_class_by_class():
    mixture = made_mixture(classes=1)
    cells = synthetic_cells(mixture, 101, seed=1)
    for j, size in enumerate(SIZES):
        assert np.abs(np.bincount(cells[j], minlength=size) - 101 * mixture.column(j)[0]).max() < 1.0


def test_systematic_records_are_nearer_to_the_mixture_than_independent_ones():
    mixture = made_mixture()
    layout = measured(records(mixture, 10), order=2).layout
    expected = np.concatenate([1_000 * mixture.marginal(each).ravel() for each in layout.sets])
    errors = np.zeros(2)
    for seed in range(10):
        for i, codes in enumerate((synthetic_cells(mixture, 1_000, seed=seed), records(mixture, 1_000, seed))):
            errors[i] += ((count_marginals([codes.astype(np.uint16)], layout).counts - expected) ** 2).sum()
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("count", [1, 2, 17])
def test_any_number_of_records_is_made(count):
    cells = synthetic_cells(made_mixture(), count, seed=0)
    assert cells.shape == (4, count)
    assert all(row.min() >= 0 and row.max() < size for row, size in zip(cells, SIZES, strict=True))


def test_no_records_and_no_classes_are_refused():
    with pytest.raises(ModelError, match="at least one record"):
        synthetic_cells(made_mixture(), 0, seed=0)
    with pytest.raises(ModelError, match="positive"):
        FitSettings(classes=0)


def test_the_number_of_records_is_public_or_estimated_from_all_sums():
    codes = records(made_mixture(), 5_000)
    assert measured(codes).estimated_n == (5_000.0, 0.0)
    n, deviation = measured(codes, secret=True).estimated_n
    assert abs(n - 5_000) < 6.5 * deviation
    assert deviation < 5.0 * 2**0.5  # less than from the smallest single marginal alone


def test_a_layout_of_few_triples_is_fitted_too():
    codes = records(made_mixture(), 3_000)
    guarantee = Guarantee(epsilon=2.0, delta=1e-6)
    sets = ((0,), (1,), (2,), (3,), (0, 1), (0, 1, 3), (0, 1, 2), (1, 2, 3))
    made = calibrate_marginals(n=3_000, sizes=SIZES, guarantee=guarantee, sets=sets)
    table = MeasuredTable(made, count_marginals([codes], made.layout).counts.astype(float))
    assert fit_mixture(table, settings=FAST).misfit < 1.0
