"""Sums for logistic regression: sensitivities and output laws of all neighbours, what is released, what is refused."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import optimize

from privurn.certificates.verify import verify
from privurn.errors import DomainError, ModelError
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.logistic_plug_in import plug_in_logistic
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.statistics import release_statistics

RELATIONS = ("add-remove", "replace-one")


def statistic(p, *, resolution, neighbouring, squares="plain", kind="laplace", units=4.0, size=None):
    step = 4.0**-resolution
    return LogisticStatistic(
        neighbouring=neighbouring,
        noise=NoiseLaw(kind=kind, scale=units * step, step=step),
        size_noise=size,
        response="y",
        covariates=tuple(f"x{j}" for j in range(p)),
        lower=(-1.0,) * p,
        upper=(1.0,) * p,
        squares=squares,
        resolution=resolution,
    )


def moves(mechanism):
    """Every change of the sums between neighbours, one order of each pair."""
    p, one = len(mechanism.covariates), 2**mechanism.resolution
    grid = np.arange(-one, one + 1) / one
    each = mechanism.record_units(np.array(list(product(*[grid] * p, (0.0, 1.0)))))
    if mechanism.neighbouring == "add-remove":
        return each
    return (each[:, None, :] - each[None, :, :]).reshape(-1, each.shape[1])


@pytest.mark.parametrize("squares", ["plain", "complement"])
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(("p", "resolution"), [(1, 5), (2, 3), (3, 1)])
def test_sums_move_no_more_than_stated(p, resolution, neighbouring, squares):
    mechanism = statistic(p, resolution=resolution, neighbouring=neighbouring, squares=squares)
    found = moves(mechanism)
    l1, l2 = int(np.abs(found).sum(axis=1).max()), int((found**2).sum(axis=1).max())
    assert l2 == mechanism.l2_squared_units
    if neighbouring == "add-remove" or p < 3:  # the worst point is on the grid
        assert l1 == mechanism.l1_units
    else:
        assert 0.99 * mechanism.l1_units < l1 <= mechanism.l1_units


def distances(z, w, same):
    """How far two records' vectors are apart: absolute values added, squares added."""
    classes = [a - b for a, b in zip(z, w, strict=True)] if same else [2, *z, *w]
    p = len(z)
    all_of_them = classes + [z[j] * z[k] - w[j] * w[k] for j in range(p) for k in range(j, p)]
    return sum(abs(each) for each in all_of_them), sum(each * each for each in all_of_them)


@pytest.mark.parametrize("p", range(1, 8))
def test_the_worst_replacement_is_the_one_of_the_proof(p):
    """In fractions; and no pair of records that a search finds is further apart."""
    mechanism = statistic(p, resolution=1, neighbouring="replace-one")
    h = p // 2
    s = Fraction(1 + h, p - h + 1)
    assert distances([Fraction(1)] * p, [-s] * (p - h) + [Fraction(1)] * h, same=False)[0] == mechanism.l1
    assert distances([1] * p, [-1] * (p - h) + [1] * h, same=False)[1] * 16 == mechanism.l2_squared_units
    rng = np.random.default_rng(p)
    most = [float(mechanism.l1), mechanism.l2_squared_units / 16]
    for norm, same in product((0, 1), (False, True)):
        for _ in range(5):
            found = optimize.minimize(
                lambda at, norm=norm, same=same: -distances(list(at[:p]), list(at[p:]), same)[norm],
                rng.uniform(-1, 1, 2 * p),
                bounds=[(-1.0, 1.0)] * (2 * p),
            )
            assert -found.fun <= most[norm] * (1 + 1e-12)


def test_constants():
    """Less noise than sums over all records would need: those are 1 + 2 p + p (p + 1)/2 under add-remove."""
    for p in range(1, 8):
        plain = statistic(p, resolution=1, neighbouring="add-remove")
        assert plain.l1 == 1 + Fraction(p * (p + 3), 2) == 1 + 2 * p + Fraction(p * (p + 1), 2) - p
        complement = statistic(p, resolution=1, neighbouring="add-remove", squares="complement").l1
        assert complement == (plain.l1 - p if p > 1 else Fraction(9, 4))
        replaced = statistic(p, resolution=1, neighbouring="replace-one").l1
        assert plain.l1 < replaced < 2 * plain.l1


def loss_law(noise, shift):
    """Law of the privacy loss of one sum that moves by `shift` steps, in units of 1/scale (Laplace) or 1/(2 scale^2)."""
    reach = round(noise.units * (40 if noise.kind == "laplace" else 9))
    x = np.arange(-reach, reach + 1)
    weights = np.exp(noise.log_density(x * noise.step))
    loss = np.abs(x + shift) - np.abs(x) if noise.kind == "laplace" else 2 * x * shift + shift * shift
    found = {}
    for each, weight in zip(loss.tolist(), weights, strict=True):
        found[each] = found.get(each, 0.0) + weight
    return found


def divergence(mechanism, shift, epsilon):
    """Exact hockey-stick divergence between neighbours whose sums differ by `shift` steps."""
    law = {0: 1.0}
    for each in shift:
        if each:
            one = loss_law(mechanism.noise, int(each))
            mixed = {}
            for (a, v), (b, w) in product(law.items(), one.items()):
                mixed[a + b] = mixed.get(a + b, 0.0) + v * w
            law = mixed
    units = mechanism.noise.units
    loss = np.array(list(law)) / (units if mechanism.noise.kind == "laplace" else 2 * units**2)
    return float(np.sum(np.array(list(law.values())) * np.maximum(0.0, 1.0 - np.exp(epsilon - loss))))


@pytest.mark.parametrize("squares", ["plain", "complement"])
@pytest.mark.parametrize("neighbouring", RELATIONS)
def test_output_laws_of_all_neighbours(neighbouring, squares):
    """One covariate on a coarse lattice, four sums: stated and true privacy loss are the same, to the last digit."""
    mechanism = statistic(1, resolution=1, neighbouring=neighbouring, squares=squares, units=9.0)
    shifts = np.unique(np.abs(moves(mechanism)), axis=0)  # the noise is symmetric
    pure = mechanism.profile.pure_epsilon
    found = [divergence(mechanism, shift, 0.99 * pure) for shift in shifts]
    assert max(found) > 1e-9  # a smaller epsilon would be a lie
    for shift in shifts:
        assert divergence(mechanism, shift, pure * (1 + 1e-12)) <= 1e-12


@pytest.mark.parametrize("neighbouring", RELATIONS)
def test_gaussian_noise_keeps_its_profile(neighbouring):
    mechanism = statistic(1, resolution=1, neighbouring=neighbouring, kind="gaussian", units=12.0)
    shifts = np.unique(np.abs(moves(mechanism)), axis=0)
    worst = shifts[np.argmax((shifts**2).sum(axis=1))]
    for epsilon in (0.0, 0.3, 1.0):
        assert divergence(mechanism, worst, epsilon) <= mechanism.profile.delta(epsilon)


@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize("noise", ["laplace", "discrete-gaussian"])
def test_budgets_are_kept_and_used(noise, neighbouring):
    delta = 1e-6 if noise == "discrete-gaussian" else 0.0
    size = 0.1 if neighbouring == "add-remove" else None
    budget = Budget(epsilon=0.3, epsilon_n=size, delta=delta, noise=noise, neighbouring=neighbouring)
    mechanism = LogisticStatistic.calibrated(
        response="y", covariates=["a", "b"], bounds={"a": (0, 9), "b": (1, 2)}, budget=budget
    )
    promise = budget.guarantee
    assert mechanism.profile.delta(promise.epsilon) <= delta
    assert mechanism.profile.epsilon(delta) > 0.9999 * promise.epsilon
    tiny = LogisticStatistic.calibrated(
        response="y", covariates=["a"], bounds=(0, 1), budget=Budget(epsilon=1e-9, neighbouring="add-remove")
    )
    assert tiny.resolution < mechanism.resolution  # noise that 64 bits hold


def test_what_is_released(tmp_path):
    """Sums are those of the model's statistic, odd values are put in their place, and a file says all of it."""
    rng = np.random.default_rng(1)
    budget = Budget(epsilon=1.0, neighbouring="replace-one")
    made = LogisticStatistic.calibrated(
        response="column_2", covariates=["column_0", "column_1"], bounds=(-2, 1), budget=budget, squares="complement"
    )
    records = np.column_stack([rng.normal(size=(50, 2)), rng.random(50) < 0.4])
    records[:3, 0] = -9.0, 9.0, np.inf
    units = made.record_units(records)
    model = LogisticModel.from_statistics(NoisyStatistics(mechanism=made, values=np.zeros(8), n=50))
    np.testing.assert_allclose(units.sum(axis=0) * made.noise.step, model.statistic(records), rtol=0, atol=1e-9)
    assert made.names[:3] == ("column_2", "column_0 if column_2=1", "column_1 if column_2=1")
    assert made.names[4:] == ("column_1 if column_2=0", "column_0*column_0", "column_0*column_1", "column_1*column_1")
    odd = np.array([[np.nan, 0.0, y] for y in (np.nan, -3.0, 0.5, 7.0, np.inf)])
    assert (made.record_units(odd)[:, 0] > 0).tolist() == [False, False, False, True, True]
    assert np.all(made.record_units(odd)[:, 1] == 0)

    out = release_statistics(records[3:], mechanism=made, budget=budget).save(tmp_path / "s")
    assert released_sums(tmp_path / "s").mechanism == released_sums(out).mechanism == made
    assert verify(tmp_path / "s").valid


def test_bad_input():
    budget = Budget(epsilon=1.0, neighbouring="add-remove")
    with pytest.raises(ModelError, match="has covariates"):
        LogisticStatistic.calibrated(response="y", covariates=[], bounds=(0, 1), budget=budget)
    with pytest.raises(DomainError, match="named twice"):
        LogisticStatistic.calibrated(response="y", covariates=["y"], bounds=(0, 1), budget=budget)
    with pytest.raises(DomainError, match="no public bounds for 'b'"):
        LogisticStatistic.calibrated(response="y", covariates=["a", "b"], bounds={"a": (0, 1)}, budget=budget)
    public = Budget(epsilon=1.0, neighbouring="replace-one")
    made = LogisticStatistic.calibrated(response="column_1", covariates=["column_0"], bounds=(0, 1), budget=public)
    with pytest.raises(DomainError, match="fewer records than columns"):
        made.draw(np.zeros((1, 2)), entropy=SeededEntropy(1))
    with pytest.raises(ModelError, match="has covariates"):
        LogisticModel(lower=(), upper=())
    for variance in (0.0, -1.0, np.zeros((2, 2)), np.inf):
        with pytest.raises(ModelError, match="coefficient"):
            LogisticModel(lower=(0.0,), upper=(1.0,), prior=LogisticPrior(coefficient_variance=variance))


def test_plug_in_estimate_of_exact_sums():
    """Where sums have no noise and few values are clamped, it is the truth but for its own deviation."""
    budget = Budget(epsilon=1.0, neighbouring="replace-one")
    made = LogisticStatistic.calibrated(
        response="y", covariates=["a", "b"], bounds=(-10, 14), budget=budget, squares="complement"
    )
    model = LogisticModel(lower=made.lower, upper=made.upper, complement=True)
    truth = model.pack(beta=[0.2, 1.0, -0.5], mu=[1.0, 0.0], Phi=np.eye(2))
    sums = model.statistic(model.simulate(truth, n=200_000, rng=np.random.default_rng(1)))
    found = plug_in_logistic(NoisyStatistics(mechanism=made, values=sums, n=200_000), n=200_000.0)
    deviations = np.sqrt(np.diag(found.covariance))
    assert found.names == ("intercept", "a", "b")
    assert np.all(deviations < 0.01)
    assert np.all(np.abs(found.coefficients - [0.2, 1.0, -0.5]) < 5 * deviations)
    impossible = sums * np.where(np.arange(8) == 7, -1.0, 1.0)
    with pytest.raises(ModelError, match="no table has sums like these"):
        plug_in_logistic(NoisyStatistics(mechanism=made, values=impossible - 200_000, n=200_000), n=200_000.0)
    sums[1:3] += 40_000.0  # y and the covariates cannot go together like that
    sums[3:5] -= 40_000.0
    with pytest.raises(ModelError, match="no coefficients give sums like these"):
        plug_in_logistic(NoisyStatistics(mechanism=made, values=sums, n=200_000), n=200_000.0)
