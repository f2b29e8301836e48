"""Noisy statistics: sensitivities by brute force over all records, and output laws of all neighbours by enumeration."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from privurn.mechanisms.perturbed_histogram import calibrate_perturbed_histogram
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.privacy.profile import Guarantee

RELATIONS = ("add-remove", "replace-one")


def regression(d, *, resolution, neighbouring, squares="plain", kind="laplace", units=4.0, size=None, contributions=1):
    step = 4.0**-resolution
    return RegressionStatistic(
        neighbouring=neighbouring,
        noise=NoiseLaw(kind=kind, scale=units * step, step=step),
        size_noise=size,
        response="y",
        covariates=tuple(f"x{j}" for j in range(d - 1)),
        lower=(-1.0,) * d,
        upper=(1.0,) * d,
        squares=squares,
        resolution=resolution,
        contributions=contributions,
    )


def vectors(mechanism):
    """Every vector that a record can become."""
    d, one = len(mechanism.columns), 2**mechanism.resolution
    grid = np.arange(-one, one + 1) / one
    return mechanism.record_units(np.array(list(product(grid, repeat=d))))


def moves(mechanism):
    """Every change of the sums between neighbours, one order of each pair."""
    each = vectors(mechanism)
    if mechanism.neighbouring == "add-remove":
        return each
    return (each[:, None, :] - each[None, :, :]).reshape(-1, each.shape[1])


@pytest.mark.parametrize("squares", ["plain", "complement"])
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(("d", "resolution"), [(1, 5), (2, 3), (3, 2)])
def test_moments_move_no_more_than_stated(d, resolution, neighbouring, squares):
    mechanism = regression(d, resolution=resolution, neighbouring=neighbouring, squares=squares)
    found = moves(mechanism)
    l1, l2 = int(np.abs(found).sum(axis=1).max()), int((found**2).sum(axis=1).max())
    assert l2 == mechanism.l2_squared_units
    if neighbouring == "add-remove" or d != 2:  # the worst point, -1/(d + 1), is on the grid
        assert l1 == mechanism.l1_units
    else:
        assert 0.99 * mechanism.l1_units < l1 <= mechanism.l1_units


@pytest.mark.parametrize("d", [2, 4, 6])
def test_the_worst_replacement_is_the_one_of_the_proof(d):
    """z = (1, ..., 1) against z' = -1/(d + 1) (1, ..., 1), in fractions; and random pairs stay below."""

    def distance(z, w):
        pairs = [(j, k) for j in range(d) for k in range(j, d)]
        return sum(abs(a - b) for a, b in zip(z, w, strict=True)) + sum(abs(z[j] * z[k] - w[j] * w[k]) for j, k in pairs)

    stated = regression(d, resolution=1, neighbouring="replace-one").l1
    assert distance([Fraction(1)] * d, [Fraction(-1, d + 1)] * d) == stated
    rng = np.random.default_rng(d)
    for _ in range(2000):
        z, w = (np.clip(rng.normal(0, 1.5, d), -1, 1) for _ in range(2))
        assert distance(list(z), list(w)) <= float(stated) + 1e-12


def test_the_constant_of_the_unknown_n_paper():
    for p in range(1, 8):
        mechanism = regression(p + 1, resolution=1, neighbouring="add-remove")
        assert mechanism.l1 == Fraction(p * p, 2) + Fraction(5 * p, 2) + 2
        assert regression(p + 1, resolution=1, neighbouring="add-remove", squares="complement").l1 == mechanism.l1 - (p + 1)


@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(("parts", "floor"), [(2, 0.3), (2, 0.5), (3, 0.01), (3, 0.2), (4, 0.05)])
def test_logarithms_move_no_more_than_stated(parts, floor, neighbouring):
    step = 2.0**-24
    mechanism = DirichletStatistic(
        neighbouring=neighbouring,
        noise=NoiseLaw(kind="laplace", scale=1.0, step=step),
        parts=tuple("abcd"[:parts]),
        floor=floor,
    )
    grid = np.array([0.0, floor / 2, floor, 2 * floor, 0.3, 1 - (parts - 1) * floor, 1.0, np.nan, -1.0, np.inf])
    grid = grid if parts < 4 else grid[[0, 2, 4, 6, 8]]
    worst = np.full((parts, parts), floor)
    np.fill_diagonal(worst, 1 - (parts - 1) * floor)
    records = np.vstack([np.array(list(product(grid, repeat=parts))), worst])
    each = mechanism.record_units(records)
    assert each.max() <= 0
    if neighbouring == "add-remove":
        sizes = np.abs(each).sum(axis=1)
        assert mechanism.l1_units - 2 * parts <= sizes.max() <= mechanism.l1_units  # attained but for rounding
        assert (each**2).sum(axis=1).max() <= mechanism.l2_squared_units
    else:
        distinct = np.unique(each, axis=0)
        found = np.abs(distinct[:, None] - distinct[None])
        assert found.sum(axis=2).max() <= mechanism.l1_units
        assert (found.astype(object) ** 2).sum(axis=2).max() <= mechanism.l2_squared_units


def test_logarithms_are_right():
    mechanism = DirichletStatistic.calibrated(
        parts=("a", "b", "c"), floor=0.001, budget=Budget(epsilon=1, neighbouring="add-remove")
    )
    worst = [0.001, 0.001, 0.998]  # the record that moves the sums most: the cap on a record's sum must leave it alone
    records = np.array([[0.2, 0.3, 0.5], [2.0, 3.0, 5.0], [0.0, 0.0, 7.0], [np.nan, -2.0, 0.0], worst])
    expected = np.log(np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.001, 0.001, 1.0], [1 / 3] * 3, worst]))
    assert np.allclose(mechanism.record_units(records) * mechanism.noise.step, expected, rtol=0, atol=mechanism.noise.step)


def hockey_stick(first, second, epsilon):
    return np.maximum(first - np.exp(epsilon) * second, 0.0).sum()


def law(noise, shift, reach):
    """Law of noise moved by `shift` lattice steps, on -reach..reach."""
    points = (np.arange(-reach, reach + 1) - shift) * noise.step
    return np.exp(noise.log_density(points))


def joint_law(mechanism, shift, *, records, reach):
    """Law of all that is published, the sums having moved by `shift` steps and n by `records`."""
    found = np.ones(1)
    for each in shift:
        found = np.multiply.outer(found, law(mechanism.noise, int(each), reach)).ravel()
    if mechanism.size_noise is not None:
        steps = round(records / mechanism.size_noise.step)
        found = np.multiply.outer(found, law(mechanism.size_noise, steps, 24)).ravel()
    return found


SIZE = NoiseLaw(kind="laplace", scale=0.8, step=1.0)
GAUSSIAN_SIZE = NoiseLaw(kind="gaussian", scale=1.5, step=1.0)


def divergences(mechanism, shifts, epsilons, *, reach):
    """Largest divergence over all neighbours and both orders, at each epsilon."""
    records = 0 if mechanism.neighbouring == "replace-one" else 1
    at_rest = joint_law(mechanism, np.zeros(shifts.shape[1]), records=0, reach=reach)
    assert at_rest.sum() > 1 - 1e-9
    most = np.zeros(len(epsilons))
    for shift in np.unique(shifts, axis=0):
        moved = joint_law(mechanism, shift, records=records, reach=reach)
        for i, epsilon in enumerate(epsilons):
            both = max(hockey_stick(moved, at_rest, epsilon), hockey_stick(at_rest, moved, epsilon))
            most[i] = max(most[i], both)
    return most


@pytest.mark.parametrize(
    ("neighbouring", "squares", "kind", "size"),
    [
        ("add-remove", "plain", "laplace", None),
        ("add-remove", "plain", "laplace", SIZE),
        ("add-remove", "complement", "laplace", SIZE),
        ("replace-one", "plain", "laplace", None),
        ("add-remove", "plain", "gaussian", None),
        ("add-remove", "complement", "gaussian", GAUSSIAN_SIZE),
        ("replace-one", "plain", "gaussian", None),
    ],
)
def test_output_laws_of_all_neighbours(neighbouring, squares, kind, size):
    """One column (a normal mean), a coarse lattice: two sums and n."""
    units = 4.0 if kind == "laplace" else 8.0
    mechanism = regression(1, resolution=1, neighbouring=neighbouring, squares=squares, kind=kind, units=units, size=size)
    epsilons = np.array([0.0, 0.3, 0.7, 1.0, 1.5, 2.0])
    found = divergences(mechanism, moves(mechanism), epsilons, reach=95 if kind == "laplace" else 70)
    stated = np.array([mechanism.profile.delta(epsilon) for epsilon in epsilons])
    assert np.all(found <= stated + 1e-9)
    if kind == "laplace":
        pure = mechanism.profile.pure_epsilon
        shifts = moves(mechanism)
        below, above = divergences(mechanism, shifts, np.array([0.99 * pure, pure * (1 + 1e-9)]), reach=95)
        assert below > 1e-9  # a smaller epsilon would be a lie
        assert above <= 1e-12


def test_noise_for_add_remove_is_too_small_for_replace_one():
    """The mistake that mixes up the relations: the constant of one in the place of the other is found out."""
    right = regression(1, resolution=1, neighbouring="replace-one", units=5.0)
    claimed = regression(1, resolution=1, neighbouring="add-remove", units=5.0).profile.pure_epsilon
    assert claimed < right.profile.pure_epsilon
    assert divergences(right, moves(right), np.array([claimed]), reach=130)[0] > 1e-6
    own = regression(1, resolution=1, neighbouring="add-remove", units=5.0)
    assert (
        divergences(own, moves(right), np.array([2 * claimed]), reach=130)[0] <= 1e-12
    )  # epsilon one way is 2 epsilon the other


def table(guarantee, noise):
    """Noisy counts of two cells, and their noise as `divergences` wants it."""
    n = None if guarantee.neighbouring == "add-remove" else 5
    made = calibrate_perturbed_histogram(n=n, cells=2, guarantee=guarantee, noise=noise, publish="counts")
    law = NoiseLaw(kind=noise.removeprefix("discrete-"), scale=made.scale)
    return made, SimpleNamespace(neighbouring=guarantee.neighbouring, noise=law, size_noise=None)


def test_tables_of_all_neighbours():
    for neighbouring, (noise, delta) in product(RELATIONS, (("discrete-laplace", 0.0), ("discrete-gaussian", 0.01))):
        mechanism, law = table(Guarantee(epsilon=1.0, delta=delta, neighbouring=neighbouring), noise)
        shifts = np.eye(2, dtype=int) if neighbouring == "add-remove" else np.array([[1, -1], [-1, 1]])
        epsilons = np.array([0.0, 0.5, 1.0])
        found = divergences(law, shifts, epsilons, reach=80)
        stated = [mechanism.profile.delta(epsilon) for epsilon in epsilons]
        assert np.allclose(found, stated, rtol=0, atol=1e-9)  # this profile is exact
        assert stated[-1] <= delta


@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize("records", [1, 2])
def test_tables_of_people_with_several_records(neighbouring, records):
    guarantee = Guarantee(epsilon=1.0, delta=0.0, contributions=records, neighbouring=neighbouring)
    mechanism, law = table(guarantee, "discrete-laplace")
    shift = np.array([[records, 0]] if neighbouring == "add-remove" else [[records, -records]])
    below, above = divergences(law, shift, np.array([0.99, 1.0]), reach=140)
    assert below > 1e-6
    assert above <= 1e-12
    assert mechanism.unit_profile(guarantee).delta(1.0) == 0.0
    assert mechanism.unit_profile(guarantee).delta(0.999) > 0.0


@pytest.mark.parametrize("upper", [1, 3])
@pytest.mark.parametrize("neighbouring", RELATIONS)
def test_sums_of_counts(neighbouring, upper):
    kind = BernoulliStatistic if upper == 1 else PoissonStatistic
    budget = Budget(epsilon=0.8, neighbouring=neighbouring, noise="discrete-laplace")
    mechanism = kind.calibrated(column="v", upper=upper, budget=budget)
    each = mechanism.record_units(np.array([[-np.inf], [-1.0], [0.4], [0.6], [2.0], [7.0], [np.inf], [np.nan]]))
    assert set(each.ravel()) == {0, *([1] if upper == 1 else [1, 2, 3])}
    shifts = each if neighbouring == "add-remove" else (each[:, None] - each[None]).reshape(-1, 1)
    most = divergences(mechanism, shifts, np.array([0.79, 0.8]), reach=200)
    assert most[0] > 1e-6
    assert most[1] <= 1e-12


@pytest.mark.parametrize("law_", [NoiseLaw(kind="laplace", scale=0.7), NoiseLaw(kind="laplace", scale=3.0, step=0.25), SIZE])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_is_a_law(law_, kind):
    noise = replace(law_, kind=kind)
    points = np.arange(-4000, 4001) * noise.step
    masses = np.exp(noise.log_density(points))
    assert abs(masses.sum() - 1) < 1e-12
    deviation = np.sqrt((masses * points**2).sum())
    assert deviation <= noise.deviation * (1 + 1e-9)
    if kind == "laplace" or noise.units >= 2:
        assert abs(deviation / noise.deviation - 1) < 1e-6


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("noise", ["laplace", "discrete-gaussian"])
@pytest.mark.parametrize("epsilon_n", [None, 0.1, 0.7])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.3])
def test_budgets_are_kept_and_used(epsilon, epsilon_n, noise, contributions):
    delta = 1e-6 if noise == "discrete-gaussian" else 0.0
    spent = {"delta": delta, "noise": noise, "contributions": contributions, "neighbouring": "add-remove"}
    budget = Budget(epsilon=epsilon + (epsilon_n or 0.0), epsilon_n=epsilon_n, **spent)
    mechanism = NormalStatistic.calibrated(response="y", bounds=(0, 9), budget=budget)
    promise = budget.guarantee
    assert mechanism.profile.delta(promise.epsilon) <= delta
    assert mechanism.profile.epsilon(delta) > 0.9999 * promise.epsilon
    if noise == "laplace" and epsilon_n is not None:  # each part has its own
        assert mechanism.size_noise.scale >= contributions / epsilon_n * (1 - 1e-12)
        assert mechanism.noise.scale >= contributions * 2 / epsilon * (1 - 1e-12)
