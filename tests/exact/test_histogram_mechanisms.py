"""Histogram releases: the law of each mechanism on tiny tables, and its divergences against the profile."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from urn_laws import count_vectors, dirichlet_multinomial_law

from privurn.counts import CountTable
from privurn.errors import CalibrationError, CertificateError, ModelError
from privurn.mechanisms import perturbed_histogram
from privurn.mechanisms.histogram_sampling import sample_cells
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram, calibrate_perturbed_histogram, lattice_noise
from privurn.mechanisms.posterior_sample import PosteriorSample, calibrate_posterior_sample
from privurn.mechanisms.registry import rebuild
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram, calibrate_smoothed_histogram
from privurn.privacy import additive_noise
from privurn.privacy.additive_noise import measurement
from privurn.privacy.composition import compose
from privurn.privacy.entropy import Entropy
from privurn.privacy.histogram_calibration import (
    largest_smoothed_records,
    smallest_alpha_for_draws,
    smallest_scale,
    smallest_weight,
    weight_up,
)
from privurn.privacy.laws import noisy_counts as noisy_counts_accounting
from privurn.privacy.laws.noise import DiscreteGaussianProfile, DiscreteLaplaceProfile, LaplaceProfile
from privurn.privacy.laws.noisy_counts import NoisyCountsProfile
from privurn.privacy.laws.posterior_sample import LimitProfile
from privurn.privacy.profile import Guarantee

F = Fraction
NOISES = ("laplace", "discrete-laplace", "discrete-gaussian")


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


class EnumeratedEntropy(Entropy):
    """Takes every path through the random integers that a sampler asks for; each path has an exact probability."""

    private = False
    description = "enumerated"

    def __init__(self):
        self.path, self.bounds, self.at = [], [], 0

    def words(self, size):
        raise AssertionError("whole words are not enumerated")

    def below_ramp(self, first, *, step, size):
        return np.array([self._next(first + step * i) for i in range(size)], np.int64)

    def _next(self, bound):
        if self.at == len(self.path):
            self.path.append(0)
            self.bounds.append(bound)
        self.at += 1
        return self.path[self.at - 1]

    def law(self, sample):
        """{outcome: probability} of sample(self), by running it on every path."""
        found = defaultdict(Fraction)
        while True:
            self.at = 0
            outcome = sample(self)
            found[outcome] += Fraction(1, math.prod(self.bounds))
            while self.path and self.path[-1] == self.bounds[-1] - 1:
                self.path.pop()
                self.bounds.pop()
            if not self.path:
                return dict(found)
            self.path[-1] += 1


def table_of(counts):
    return CountTable.from_cells(np.arange(len(counts)), np.array(counts))


def neighbours(n, cells):
    """Ordered pairs of tables that differ in one replaced record."""
    for counts in count_vectors(n, cells):
        for left, right in itertools.permutations(range(cells), 2):
            if counts[left]:
                other = list(counts)
                other[left] -= 1
                other[right] += 1
                yield tuple(counts), tuple(other)


def hockey_stick(first, second, epsilon):
    ratio = mpmath.exp(mpf(epsilon))
    return sum(max(mpf(0), mpf(1) * first.get(o, 0) - ratio * second.get(o, 0)) for o in set(first) | set(second))


def assert_tight(profile, epsilon, truth, *, close=5e-12):
    """Never below the truth, and above it by a rounding error only."""
    value = mpf(profile.delta(epsilon))
    assert value >= truth * (1 - mpf("1e-14")) - mpf("1e-40")
    assert value <= truth * (1 + mpf(close)) + mpf("2e-300")


def noise_law(noise, scale, *, reach, steps=1):
    """Law of the noise in lattice steps, cut off at +-reach."""
    if noise == "discrete-gaussian":
        weights = {k: mpmath.exp(-(mpf(k) ** 2) / (2 * mpf(scale) ** 2)) for k in range(-reach, reach + 1)}
        total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpf(scale) ** 2)))
        return {k: w / total for k, w in weights.items()}
    r = mpmath.exp(-1 / (mpf(scale) * steps))
    return {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-reach, reach + 1)}


def two_coordinates(law, move):
    """Laws of two noisy counts before and after one falls and the other rises by `move`, on a common box."""
    before = {(i, j): p * q for i, p in law.items() for j, q in law.items()}
    after = {(i - move, j + move): p for (i, j), p in before.items()}
    return before, after


EPSILONS = (-1.0, 0.0, 1e-6, 0.1, 0.4, 0.9, 1.7)


# ---- noisy counts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "steps"), [(0.4, 1), (1.0, 1), (2.5, 1), (0.5, 3), (0.6, 4)])
def test_geometric_noise_in_two_coordinates(scale, steps, monkeypatch):
    """Against the sum over all pairs of noisy counts; "laplace" on a lattice coarse enough to be enumerated."""
    monkeypatch.setattr(noisy_counts_accounting, "STEPS", {"laplace": steps})
    profile = NoisyCountsProfile(cells=4, noise="laplace", scale=scale)
    law = noise_law("laplace", scale, steps=steps, reach=math.ceil(24 * scale * steps) + 2 * steps)
    before, after = two_coordinates(law, steps)
    tail = 8 * mpmath.exp(-24)  # what the box leaves out
    assert profile.tight
    for epsilon in EPSILONS:
        truth = hockey_stick(before, {o: after[o] for o in before if o in after}, epsilon)
        if epsilon >= profile.pure_epsilon:
            assert profile.delta(epsilon) == 0.0
            assert truth < tail
        else:
            assert abs(profile.delta(epsilon) - truth) <= tail
            losses = exact_losses(law_of_one_loss(scale, steps))
            assert_tight(profile, epsilon, divergence_of(losses, epsilon))


def law_of_one_loss(scale, steps):
    """{j: probability}: the loss of one coordinate is (steps - 2 j)/t; summed over the noise, tails in closed form."""
    r = mpmath.exp(-1 / (mpf(scale) * steps))
    law = {j: (1 - r) / (1 + r) * r**j for j in range(1, steps)}
    law[0] = 1 / (1 + r)
    law[steps] = r**steps / (1 + r)
    return {mpf(steps - 2 * j) / (mpf(scale) * steps): p for j, p in law.items()}


def exact_losses(one):
    both = defaultdict(lambda: mpf(0))
    for x, p in one.items():
        for y, q in one.items():
            both[x + y] += p * q
    return both


def divergence_of(losses, epsilon):
    return sum(p * max(mpf(0), 1 - mpmath.exp(mpf(epsilon) - x)) for x, p in losses.items())


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_the_fine_lattice_is_near_the_continuous_law(scale):
    """1024 steps: against the convolution of the one-coordinate law, and close to composed continuous Laplace noise."""
    steps, rate = 1024, 1.0 / (scale * 1024)
    r = math.exp(-rate)
    one = (1 - r) / (1 + r) * np.exp(-rate * np.arange(steps + 1))
    one[0], one[steps] = 1 / (1 + r), math.exp(-rate * steps) / (1 + r)
    both = np.convolve(one, one)
    losses = 2.0 * rate * (steps - np.arange(both.size))
    profile = NoisyCountsProfile(cells=2, noise="laplace", scale=scale)
    continuous = compose([LaplaceProfile(scale=scale)], counts=[2])
    assert profile.pure_epsilon == pytest.approx(2.0 / scale)
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        epsilon = share * profile.pure_epsilon
        truth = float(both @ np.maximum(0.0, -np.expm1(epsilon - losses)))
        assert truth * (1 - 1e-11) <= profile.delta(epsilon) <= truth * (1 + 1e-10)
        assert profile.delta(epsilon) == pytest.approx(continuous.delta(epsilon), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.5, 2.9, 3.1])
def test_gaussian_noise_in_two_coordinates(scale):
    profile = NoisyCountsProfile(cells=4, noise="discrete-gaussian", scale=scale)
    law = noise_law("discrete-gaussian", scale, reach=math.ceil(15.5 * scale) + 1)
    both = defaultdict(lambda: mpf(0))  # outcomes with the same k_1 + k_2 have the same loss
    for i, p in law.items():
        for j, q in law.items():
            both[(mpf(1) + i + j) / mpf(scale) ** 2] += p * q
    assert profile.tight
    for epsilon in (0.0, 1e-4, 0.3, 1.0, 2.5, 6.0):
        truth = divergence_of(both, epsilon)
        assert_tight(profile, epsilon, truth)
        assert_tight(profile, -epsilon, 1 - mpmath.exp(-mpf(epsilon)) * (1 - truth))
    before, after = two_coordinates(noise_law("discrete-gaussian", scale, reach=math.ceil(7 * scale) + 1), 1)
    common = {o: after[o] for o in before if o in after}
    assert abs(profile.delta(0.5) - hockey_stick(before, common, 0.5)) < 1e-8


def test_gaussian_noise_of_a_large_scale(monkeypatch):
    exact = NoisyCountsProfile(cells=9, noise="discrete-gaussian", scale=80.0)
    values = {epsilon: exact.delta(epsilon) for epsilon in (0.0, 0.004, 0.02, 0.08)}
    for epsilon, value in values.items():  # the two sums agree, so it is one integer moved by two
        assert value == pytest.approx(
            DiscreteGaussianProfile(scale=80.0 * math.sqrt(2), sensitivity=2).delta(epsilon), rel=1e-9
        )
    monkeypatch.setattr(noisy_counts_accounting, "LARGEST_EXACT_SCALE", 10.0)
    monkeypatch.setattr("privurn.privacy.laws.noise.LARGEST_EXACT_SCALE", 10.0)
    assert not exact.tight
    for epsilon, value in values.items():
        assert value <= exact.delta(epsilon) <= 1.05 * value


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize(("n", "cells"), [(1, 2), (2, 2), (1, 3), (2, 3)])
def test_published_counts_of_all_small_tables(noise, n, cells):
    """Every pair of neighbours, the whole vector of counts: all attain the profile."""
    scale, reach = 0.45, 11
    profile = PerturbedHistogram(n=n, cells=cells, records=cells, noise=noise, scale=scale, publish="counts").profile
    one = np.array([float(p) for p in noise_law(noise, scale, reach=reach).values()])

    def law(counts):
        factors = []
        for count in counts:
            axis = np.zeros(2 * reach + 1 + n)
            axis[count : count + 2 * reach + 1] = one
            factors.append(axis)
        joint = factors[0]
        for factor in factors[1:]:
            joint = np.multiply.outer(joint, factor)
        return joint

    pairs = list(neighbours(n, cells))
    assert pairs
    for epsilon in (0.0, 0.7, 2.0):
        for first, second in pairs:
            truth = float(np.maximum(0.0, law(first) - math.exp(epsilon) * law(second)).sum())
            assert truth == pytest.approx(profile.delta(epsilon), rel=1e-9)


def test_a_record_added_or_removed_moves_one_count():
    for noise, single in (
        ("discrete-laplace", DiscreteLaplaceProfile(scale=1.3)),
        ("laplace", DiscreteLaplaceProfile(scale=1.3 * 1024, sensitivity=1024)),
        ("discrete-gaussian", DiscreteGaussianProfile(scale=1.3)),
    ):
        profile = PerturbedHistogram(n=None, cells=1, records=5, noise=noise, scale=1.3).profile
        assert profile.neighbouring == "add-remove"
        for epsilon in (-0.5, 0.0, 0.3, 0.7):
            assert profile.delta(epsilon) == single.delta(epsilon)
        assert profile.pure_epsilon == single.pure_epsilon


def test_one_cell_tells_nothing_when_n_is_public():
    profile = NoisyCountsProfile(cells=1, noise="discrete-gaussian", scale=0.01)
    assert profile.delta(0.0) == 0.0
    assert profile.pure_epsilon == 0.0
    assert profile.delta(-1.0) == pytest.approx(1 - math.exp(-1))
    assert smallest_scale(cells=1, noise="laplace", epsilon=1) == 0.0


@pytest.mark.parametrize("noise", NOISES)
def test_one_coordinate_is_not_enough(noise):
    """The planted mistake: the one-count profile is well below what two counts leak."""
    wrong = NoisyCountsProfile(cells=2, noise=noise, scale=1.0, neighbouring="add-remove")
    right = NoisyCountsProfile(cells=2, noise=noise, scale=1.0)
    assert right.delta(0.8) > 1.4 * wrong.delta(0.8)
    assert right.zcdp == pytest.approx(2 * wrong.zcdp)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian"])
def test_zcdp_of_two_coordinates(noise):
    scale = 1.2
    one = noise_law(noise, scale, reach=60)
    rho = mpf(NoisyCountsProfile(cells=2, noise=noise, scale=scale).zcdp)
    for order in (mpf("1.01"), mpf(2), mpf(9)):
        moved = {k: one.get(k - 1) for k in one}
        total = sum(p**order * moved[k] ** (1 - order) for k, p in one.items() if moved[k])
        assert 2 * mpmath.log(total) / (order - 1) <= order * rho * (1 + mpf("1e-12"))


def test_opendp_says_the_same_of_its_noise():
    """OpenDP's own privacy maps at the distances of one replaced record."""
    for noise, distance in (("discrete-laplace", 2), ("laplace", 2048)):
        for scale in (0.7, 2.0, 31.25):
            stated = measurement(*lattice_noise(noise, scale)).map(distance)
            assert stated == pytest.approx(NoisyCountsProfile(cells=2, noise=noise, scale=scale).pure_epsilon, rel=1e-12)
    stated = measurement(*lattice_noise("discrete-gaussian", 3.0)).map(math.sqrt(2))
    assert stated == pytest.approx(NoisyCountsProfile(cells=2, noise="discrete-gaussian", scale=3.0).zcdp, rel=1e-9)


# ---- what follows the noise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [F(0), F(1, 3), F(1)])
@pytest.mark.parametrize("weights", [(2, 0, 1), (0, 0, 0), (0, 4, 0)])
def test_sampling_has_exactly_its_law(weights, smoothing):
    total = sum(weights)
    shares = [F(w, total) if total else F(1, 3) for w in weights]
    expected = [(1 - smoothing) * share + smoothing / 3 for share in shares]
    for size in (1, 2):

        def sample(entropy, size=size):
            drawn = sample_cells(
                np.array(weights), values=np.arange(3), cells=3, smoothing=smoothing, size=size, entropy=entropy
            )
            return tuple(drawn.tolist())

        law = EnumeratedEntropy().law(sample)
        for outcome in itertools.product(range(3), repeat=size):
            assert law.get(outcome, 0) == math.prod(expected[cell] for cell in outcome)


def test_a_total_too_long_for_the_integers_is_shortened():
    weights = np.array([2**61, 2**62, 2**61, 3], np.int64)
    drawn = sample_cells(weights, values=np.arange(4), cells=4, smoothing=F(0), size=2000, entropy=perturbed_entropy())
    assert np.bincount(drawn, minlength=4)[[0, 1, 2]] == pytest.approx([500, 1000, 500], abs=150)
    assert not (drawn == 3).any()


def perturbed_entropy():
    from privurn.privacy.entropy import SeededEntropy

    return SeededEntropy(4)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize(("n", "cells", "records", "smoothing"), [(2, 2, 2, 0.0), (2, 2, 3, 0.25), (2, 3, 2, 0.0)])
def test_released_records_stay_below_the_profile(noise, n, cells, records, smoothing):
    """Law of the records: over all noisy counts in a box, clipped, normalised, smoothed, sampled."""
    scale, reach = 0.5, 9
    profile = PerturbedHistogram(n=n, cells=cells, records=records, noise=noise, scale=scale).profile
    one = {k: float(p) for k, p in noise_law(noise, scale, reach=reach).items()}
    outcomes = list(itertools.product(range(cells), repeat=records))

    def law(counts):
        out = np.zeros(len(outcomes))
        for added in itertools.product(one, repeat=cells):
            clipped = np.maximum(0, np.array(counts) + added)
            shares = clipped / clipped.sum() if clipped.any() else np.full(cells, 1 / cells)
            shares = (1 - smoothing) * shares + smoothing / cells
            weight = math.prod(one[k] for k in added)
            out += weight * np.array([math.prod(shares[list(outcome)]) for outcome in outcomes])
        return out

    laws = {counts: law(counts) for counts in {each for pair in neighbours(n, cells) for each in pair}}
    assert all(abs(each.sum() - 1) < 1e-6 for each in laws.values())
    for epsilon in (0.0, 0.5, 1.5):
        largest = max(float(np.maximum(0.0, laws[a] - math.exp(epsilon) * laws[b]).sum()) for a, b in neighbours(n, cells))
        assert 0.0 <= largest <= profile.delta(epsilon)
        if epsilon == 0.0:
            assert largest > 0.3 * profile.delta(epsilon)  # something of the table is left to see


def test_draw_publishes_what_opendp_returned(monkeypatch):
    for noise, steps in (("discrete-laplace", 1), ("discrete-gaussian", 1), ("laplace", 1024)):
        added = np.array([3, -7, 0, 40])
        monkeypatch.setattr(
            additive_noise, "measurement", lambda *_, added=added: lambda exact: (np.array(exact) + added).tolist()
        )
        counts = table_of((5, 2, 0, 1))
        table = PerturbedHistogram(n=8, cells=4, records=4, noise=noise, scale=1.0, publish="counts")
        drawn = table.draw(counts, entropy=EnumeratedEntropy())
        assert drawn.cells.tolist() == [0, 1, 2, 3]
        assert drawn.columns()["count"].tolist() == (np.array([5, 2, 0, 1]) + added / steps).tolist()
        one = PerturbedHistogram(n=8, cells=4, records=1, noise=noise, scale=1.0)
        law = EnumeratedEntropy().law(lambda entropy, one=one, counts=counts: int(one.draw(counts, entropy=entropy).cells[0]))
        kept = [max(0, int(each)) for each in np.array([5, 2, 0, 1]) * steps + added]
        assert law == {cell: F(weight, sum(kept)) for cell, weight in enumerate(kept) if weight}


# ---- smoothed histogram ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "cells"), [(2, 2), (2, 3)])
@pytest.mark.parametrize("weight", [F(1, 4), F(3, 5)])
def test_smoothed_draws_have_the_profile(n, cells, weight):
    """The sampler itself, on every path of its integers; the largest divergence over all neighbours is the profile."""
    records = 2
    laws = {}
    for counts in count_vectors(n, cells):
        mechanism = SmoothedHistogram(n=n, cells=cells, records=records, weight=weight)

        def sample(entropy, mechanism=mechanism, counts=counts):
            return tuple(mechanism.draw(table_of(counts), entropy=entropy).cells.tolist())

        laws[tuple(counts)] = EnumeratedEntropy().law(sample)
        for outcome in itertools.product(range(cells), repeat=records):
            q = [(1 - weight) * F(int(counts[cell]), n) + weight / cells for cell in outcome]
            assert laws[tuple(counts)][outcome] == math.prod(q)
    for epsilon in (0.0, 0.3, 1.0):
        largest = max(hockey_stick(laws[a], laws[b], epsilon) for a, b in neighbours(n, cells))
        assert mechanism.profile.delta(epsilon) == pytest.approx(float(largest), rel=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(2, 5000),
    cells=st.integers(3, 300),
    records=st.integers(1, 5000),
    epsilon=st.floats(0.01, 6.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-4]),
)
@example(n=2, cells=2, records=100, epsilon=1.0, delta=1e-9)  # two cells have a solver of their own
@example(n=2, cells=2, records=1, epsilon=1.0, delta=1e-4)
@example(n=150, cells=2, records=60, epsilon=0.5, delta=1e-4)
@example(n=900, cells=2, records=40, epsilon=2.0, delta=0.0)
@example(n=900, cells=2, records=40, epsilon=0.3, delta=1e-9)
def test_smoothing_is_calibrated_to_the_private_side(n, cells, records, epsilon, delta):
    weight = smallest_weight(n=n, bins=cells, records=records, epsilon=epsilon, delta=delta)
    made = SmoothedHistogram(n=n, cells=cells, records=records, weight=weight_up(weight))
    assert made.profile.delta(epsilon) <= delta
    assert made.weight < weight * 1.0002
    less = weight * (1 - 1e-4) if weight < 0.5 else weight - 1e-4 * (1 - weight)
    if weight < 1 - 1e-9:
        leaky = SmoothedHistogram(n=n, cells=cells, records=records, weight=F(less))
        assert leaky.profile.delta(epsilon) > delta
    if 0.0 < weight < 1.0:
        most = largest_smoothed_records(n=n, bins=cells, weight=float(made.weight), epsilon=epsilon, delta=delta)
        assert most >= records


# ---- posterior samples -----------------------------------------------------------------------------------------------


def frequencies(law, cells):
    out = defaultdict(Fraction)
    for outcome, probability in law.items():
        out[tuple(outcome.count(cell) for cell in range(cells))] += probability
    return dict(out)


def test_posterior_sample_has_the_urns_profile():
    n, cells, alpha, m = 2, 3, F(3, 2), 2
    mechanism = PosteriorSample(n=n, cells=cells, alpha=alpha, records=m)
    laws = {
        tuple(counts): frequencies(dirichlet_multinomial_law(counts, alphas=(alpha,) * cells, m=m), cells)
        for counts in count_vectors(n, cells)
    }
    for epsilon in (0.0, 0.2, 0.6):
        largest = max(hockey_stick(laws[a], laws[b], epsilon) for a, b in neighbours(n, cells))
        assert mechanism.profile.delta(epsilon) == pytest.approx(float(largest), rel=1e-10)


def test_posterior_sample_draws_from_the_urn():
    n, cells, alpha, m = 2, 2, F(1), 2
    mechanism = PosteriorSample(n=n, cells=cells, alpha=alpha, records=m)

    def sample(entropy):
        drawn = mechanism.draw(table_of((2, 0)), entropy=entropy)
        return tuple(round(p * m) for p in drawn.weights)

    expected = frequencies(dirichlet_multinomial_law((2, 0), alphas=(alpha,) * cells, m=m), cells)
    assert EnumeratedEntropy().law(sample) == expected


def test_several_posterior_samples_are_composed():
    n, cells, alpha, m = 2, 3, F(2), 2
    mechanism = PosteriorSample(n=n, cells=cells, alpha=alpha, records=m, draws=2)
    laws = {
        tuple(counts): frequencies(dirichlet_multinomial_law(counts, alphas=(alpha,) * cells, m=m), cells)
        for counts in count_vectors(n, cells)
    }
    twice = {counts: {(a, b): p * q for a, p in law.items() for b, q in law.items()} for counts, law in laws.items()}
    for epsilon in (0.0, 0.2, 0.6, 1.1):
        largest = float(max(hockey_stick(twice[a], twice[b], epsilon) for a, b in neighbours(n, cells)))
        assert largest <= mechanism.profile.delta(epsilon) <= 1.02 * largest + 1e-9
        assert mechanism.profile.delta(epsilon) > PosteriorSample(n=n, cells=cells, alpha=alpha, records=m).profile.delta(
            epsilon
        )


def test_the_limit_is_an_upper_bound():
    short = PosteriorSample(n=40, cells=5, alpha=F(9), records=3999, draws=2)
    long = PosteriorSample(n=40, cells=5, alpha=F(9), records=4001, draws=2)
    assert not isinstance(short.profile.profiles[0], LimitProfile)
    assert isinstance(long.profile.profiles[0], LimitProfile)
    for epsilon in (0.0, 0.5, 1.5):
        exact = compose([long.urn.profile], counts=[2]).delta(epsilon)
        assert exact <= long.profile.delta(epsilon) <= 1.2 * exact
    assert long.profile.pure_epsilon == compose([long.urn.profile], counts=[2]).pure_epsilon


@pytest.mark.parametrize("n", [300, None])
def test_prior_for_several_draws_is_calibrated_to_the_private_side(n):
    arguments = {"n": n, "cells": 7, "records": 2000, "draws": 3, "epsilon": 1.0}
    alpha = smallest_alpha_for_draws(**arguments, delta=1e-5)
    for factor, private in ((1.0, True), (1.0 - 1e-4, False)):
        mechanism = PosteriorSample(n=n, cells=7, alpha=F(alpha * factor), records=2000, draws=3)
        assert (mechanism.profile.delta(1.0) <= 1e-5) is private
    pure = PosteriorSample(n=n, cells=7, alpha=F(smallest_alpha_for_draws(**arguments)), records=2000, draws=3)
    assert pure.profile.pure_epsilon <= 1.0
    assert pure.profile.delta(1.0) == 0.0


# ---- calibration and parameters --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    noise=st.sampled_from(NOISES),
    epsilon=st.floats(0.02, 8.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-6, 1e-2]),
    neighbouring=st.sampled_from(["replace-one", "add-remove"]),
)
def test_noise_is_calibrated_to_the_private_side(noise, epsilon, delta, neighbouring):
    arguments = {"cells": 5, "noise": noise, "neighbouring": neighbouring}
    if noise == "discrete-gaussian" and delta == 0.0:
        with pytest.raises(CalibrationError) as caught:
            smallest_scale(epsilon=epsilon, delta=delta, **arguments)
        assert len(caught.value.alternatives) == 3
        return
    scale = smallest_scale(epsilon=epsilon, delta=delta, **arguments)
    assert NoisyCountsProfile(scale=scale, **arguments).delta(epsilon) <= delta
    assert NoisyCountsProfile(scale=scale * (1 - 1e-6), **arguments).delta(epsilon) > delta
    if noise != "discrete-gaussian":
        assert NoisyCountsProfile(scale=scale * 1.1, **arguments).delta(epsilon) <= delta
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring)
    made = calibrate_perturbed_histogram(n=50, cells=5, guarantee=guarantee, noise=noise, records=10)
    assert made.profile.delta(epsilon) <= delta
    assert scale <= made.scale <= scale * (1 + 1e-5)


def test_more_gaussian_noise_is_not_always_more_private(monkeypatch):
    """Between lattice points delta rises and falls with the scale, so a scale is never rounded up unchecked."""
    epsilon = 6.3125
    truth = {}
    for scale in (0.7443354975578571, 0.8187690473136429):
        law = noise_law("discrete-gaussian", scale, reach=14)
        losses = {(mpf(1) + 2 * k) / (2 * mpf(scale) ** 2): p for k, p in law.items()}
        truth[scale] = divergence_of(losses, epsilon)
        profile = NoisyCountsProfile(cells=5, noise="discrete-gaussian", scale=scale, neighbouring="add-remove")
        assert_tight(profile, epsilon, truth[scale])
    less, more = sorted(truth)
    assert truth[more] > 1.05 * truth[less]
    monkeypatch.setattr(perturbed_histogram, "round_up_to_rational", lambda *_, **__: F(more))
    guarantee = Guarantee(epsilon=epsilon, delta=1e-6, neighbouring="add-remove")
    made = calibrate_perturbed_histogram(n=9, cells=5, guarantee=guarantee, noise="discrete-gaussian", publish="counts")
    assert made.scale == pytest.approx(less)
    assert made.profile.delta(epsilon) <= 1e-6


def test_parameters_come_back():
    guarantee = Guarantee(epsilon=1.0, delta=1e-6)
    secret = Guarantee(epsilon=1.0, delta=1e-6, neighbouring="add-remove")
    made = [
        *(
            calibrate_perturbed_histogram(n=90, cells=4, guarantee=g, noise=noise, publish=publish, records=9)
            for g in (guarantee, secret)
            for noise in NOISES
            for publish in ("records", "counts")
        ),
        calibrate_perturbed_histogram(n=90, cells=4, guarantee=guarantee, smoothing=F(1, 7)),
        calibrate_smoothed_histogram(n=90, cells=4, guarantee=guarantee),
        calibrate_posterior_sample(n=90, cells=4, guarantee=guarantee, draws=2),
        calibrate_posterior_sample(n=None, cells=4, guarantee=secret),
    ]
    for mechanism in made:
        assert rebuild(mechanism.name, mechanism.parameters()) == mechanism
    other_lattice = {**made[0].parameters(), "steps": 7}
    with pytest.raises(CertificateError):
        rebuild("perturbed-histogram", other_lattice)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (PerturbedHistogram, {"scale": 0.0}),
        (PerturbedHistogram, {"scale": math.inf}),
        (PerturbedHistogram, {"noise": "cauchy"}),
        (PerturbedHistogram, {"publish": "means"}),
        (PerturbedHistogram, {"publish": "counts", "records": 3}),
        (PerturbedHistogram, {"smoothing": F(3, 2)}),
        (PerturbedHistogram, {"cells": 0}),
        (PerturbedHistogram, {"cells": 10**7}),
        (PerturbedHistogram, {"records": 0}),
        (PerturbedHistogram, {"n": 0}),
        (SmoothedHistogram, {"weight": F(0)}),
        (SmoothedHistogram, {"weight": 0.5}),
        (PosteriorSample, {"draws": 0}),
        (PosteriorSample, {"alpha": F(0)}),
    ],
)
def test_impossible_parameters(kind, changes):
    rest = {
        PerturbedHistogram: {"noise": "laplace", "scale": 1.0},
        SmoothedHistogram: {"weight": F(1, 2)},
        PosteriorSample: {"alpha": F(1)},
    }[kind]
    with pytest.raises(ModelError):
        kind(**{"n": 10, "cells": 4, "records": 5, **rest, **changes})
    assert kind(**{"n": 10, "cells": 4, "records": 5, **rest})


def test_the_mechanism_wants_the_planned_number_of_records():
    with pytest.raises(ModelError, match="another number"):
        PerturbedHistogram(n=9, cells=2, records=1, noise="laplace", scale=1.0).draw(
            table_of((4, 4)), entropy=EnumeratedEntropy()
        )
