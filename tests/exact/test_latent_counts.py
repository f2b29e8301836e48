"""The count engine on tiny tables: its conditional laws against brute force, its moves as exact transition matrices."""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest
from latent_count_laws import Enumerated, joint_log
from scipy import stats

from privurn._kernels.counts import integer_slice
from privurn._kernels.counts.count_lines import Growth, NoisyCell, Transfer, line_log
from privurn._kernels.counts.count_moves import update_resized
from privurn._kernels.counts.discrete_laws import GAUSSIAN, GEOMETRIC, log_rising, noise_draw, poisson_log
from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.size import SizePrior
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, UrnTerm

ALPHA = 1e-6
FLAT3, UNEVEN3 = np.ones(3), np.array([0.4, 1.0, 2.5])


def whole(*values):
    return np.array(values, np.int64)


def urn(*rows, alpha):
    return UrnTerm(alpha=np.array(alpha, np.float64), released=whole(*rows))


def seen(noise, scale, *values):
    return NoisyCountsTerm(noise=noise, scale=scale, noisy=whole(*values))


def hidden(noise, scale, *values, smoothing=0.0):
    return NoisyRecordsTerm(noise=noise, scale=scale, smoothing=smoothing, released=whole(*values))


def model(*terms, n, prior=UNEVEN3, upper=5, window=8, **prior_of_n):
    size_prior = SizePrior(upper=upper, **prior_of_n)
    return LatentCounts(cells=len(prior), n=n, prior=prior, terms=terms, size_prior=size_prior, window=window)


URN = urn((2, 0, 5), alpha=(1.5, 0.5, 2.0))
CASES = {
    "urn": model(URN, n=4),
    "urn, slice": model(URN, n=4, window=0),
    "urn without prior": model(urn((2, 0, 5), alpha=(0, 0, 0)), n=4),
    "posterior samples": model(urn((5, 1, 4), (3, 3, 4), alpha=(1, 1, 1)), n=4),
    "mixture": model(MixtureTerm(weight=0.3, released=whole(1, 0, 4)), n=4),
    "mixture, slice": model(MixtureTerm(weight=0.3, released=whole(1, 0, 4)), n=4, window=0),
    "seen laplace": model(seen("laplace", 1.2, -700, 1900, 2800), n=4),
    "seen discrete laplace": model(seen("discrete-laplace", 0.8, -1, 2, 4), n=4),
    "seen discrete gaussian, slice": model(seen("discrete-gaussian", 0.8, -1, 2, 4), n=4, window=0),
    "hidden discrete laplace": model(hidden("discrete-laplace", 0.7, 1, 0, 3), n=4),
    "hidden discrete laplace, slice": model(hidden("discrete-laplace", 0.7, 1, 0, 3), n=4, window=0),
    "hidden discrete gaussian": model(hidden("discrete-gaussian", 1.3, 2, 1, 1), n=3),
    "hidden laplace": model(hidden("laplace", 0.01, 2, 1), n=2, prior=np.array([0.5, 2.0])),
    "hidden smoothed": model(hidden("discrete-laplace", 0.7, 1, 0, 3, smoothing=0.3), n=4),
    "hidden, much noise": model(hidden("discrete-laplace", 1.5, 2, 2), n=1, prior=np.ones(2)),
    "secret urn": model(URN, n=None),
    "secret urn, slice": model(URN, n=None, window=0),
    "secret seen": model(seen("discrete-laplace", 0.8, 0, 2, 1), n=None),
    "secret hidden": model(hidden("discrete-laplace", 0.7, 1, 0, 3), n=None, upper=3),
    "secret hidden smoothed": model(hidden("discrete-gaussian", 0.7, 1, 2, smoothing=0.4), n=None, prior=np.array([0.5, 2.0])),
    "secret seen, slice": model(seen("discrete-laplace", 1.7, 2, -1, 3), n=None, window=0),
    "secret seen, gaussian": model(seen("discrete-gaussian", 1.7, 2, -1), n=None, prior=np.array([0.5, 1.0])),
    "secret seen, fine noise": model(seen("laplace", 1.7, 2048, -1024, 3100), n=None, prior=FLAT3),
    "poisson n": model(seen("discrete-laplace", 1.7, 2, -1), n=None, prior=np.ones(2), kind="poisson", mean=2.2, lower=1),
    "bounds of n": model(
        seen("discrete-laplace", 1.7, 2, -1, 3), n=None, prior=np.array([0.3, 0.3, 0.4]), lower=2, upper=4, window=0
    ),
    "poisson n of records": model(hidden("discrete-laplace", 0.7, 1, 0, 3), n=None, upper=3, kind="poisson", mean=1.5, lower=1),
    "urn and seen": model(URN, seen("discrete-gaussian", 1.5, 2, 0, 3), n=4),
    "urn, mixture and hidden": model(
        URN, MixtureTerm(weight=0.5, released=whole(0, 2, 1)), hidden("discrete-laplace", 0.7, 2, 1, 1), n=4
    ),
    "secret urn, seen and hidden": model(
        urn((1, 2), alpha=(1, 3)),
        seen("discrete-laplace", 2.0, 1, 0),
        hidden("discrete-laplace", 1.0, 1, 2),
        n=None,
        prior=np.array([0.5, 2.0]),
    ),
}


@cache
def enumerated(name):
    return Enumerated(CASES[name])


def arrays(case, state):
    """What the kernels take: public arrays, then the state and its sums."""
    none = np.zeros((0, case.cells), np.int64)
    noisy, kept = state.get("noisy", none), state.get("kept", none)
    sums = np.stack([np.maximum(noisy, 0).sum(axis=1), kept.sum(axis=1)], axis=1)
    public = case.model
    return public.prior, public.settings, public.factors, public.hidden, state["counts"], noisy, kept, sums


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 3.7, 9.99, 10.0, 123.4, 1e7, 3e10])
@pytest.mark.parametrize("s", [-0.0009, 0.5, 1.0, 2.0, 117.0, 1e6])
def test_rising_factorials(x, s):
    with mpmath.workdps(60):
        exact = float(mpmath.loggamma(mpmath.mpf(x) + mpmath.mpf(s)) - mpmath.loggamma(mpmath.mpf(x)))
    assert log_rising(x, s) == pytest.approx(exact, rel=1e-13, abs=2e-13)


@pytest.mark.parametrize("mean", [0.3, 12.0, 1e6, 1e12])
@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 10**6, 10**6 + 2000, 10**12 - 10**6])
def test_poisson_probabilities(n, mean):
    with mpmath.workdps(60):
        exact = float(n * mpmath.log(mpmath.mpf(mean)) - mpmath.mpf(mean) - mpmath.loggamma(n + 1))
    assert poisson_log(float(n), mean) == pytest.approx(exact, rel=1e-12, abs=1e-9)


def line_states(case, line, state, points):
    """Joint log densities of the states along a line, by brute force."""
    none = [()] * 0
    noisy0, kept = state.get("noisy", none), state.get("kept", none)
    steps = [1024 if term.noise == "laplace" else 1 for term in case.terms if isinstance(term, NoisyRecordsTerm)]
    found = []
    for x in points:
        counts, noisy = state["counts"].copy(), [row.copy() for row in noisy0]
        if isinstance(line, NoisyCell):
            noisy[line.h][line.i] = x
        else:
            before = counts.copy()
            counts[line.i] = x
            if isinstance(line, Transfer):
                counts[line.j] = line.total - x
            if line.carried:
                noisy = [row + step * (counts - before) for row, step in zip(noisy, steps, strict=True)]
        found.append(joint_log(case, counts.tolist(), [row.tolist() for row in noisy], [row.tolist() for row in kept]))
    return np.array(found)


def lines(case, state):
    """All lines through a state, each with its points."""
    counts, carried = state["counts"], (True, False) if "noisy" in state else (True,)
    for i, j, carry in itertools.product(range(case.cells), range(case.cells), carried):
        total = int(counts[i] + counts[j])
        if i != j:
            yield Transfer(i, j, total, carry), range(total + 1)
        elif case.n is None:
            others = int(counts.sum() - counts[i])
            yield (
                Growth(i, others, carry, float(case.prior.sum())),
                range(max(0, case.size_prior.lower - others), case.size_prior.upper - others + 1),
            )
    for h, i in itertools.product(range(len(state.get("noisy", ()))), range(case.cells)):
        yield NoisyCell(h, i), range(-4, 8)


@pytest.mark.parametrize("name", CASES)
def test_densities_along_lines_are_those_of_the_joint_law(name):
    case = CASES[name]
    states, _ = enumerated(name).states(6, np.random.default_rng(1))
    for state in states:
        for line, points in lines(case, state):
            expected = line_states(case, line, state, points)
            got = np.array([line_log(line, x, *arrays(case, state)) for x in points])
            finite = np.isfinite(expected)
            assert np.array_equal(finite, np.isfinite(got))
            assert np.ptp(got[finite] - expected[finite]) < 1e-10


def stepped_out(inside, x, left, width, backwards, forwards):
    """Interval that stepping out reaches; `inside` says which points are in the slice."""
    right = left + width
    while backwards > 0 and inside(left):
        left, backwards = left - width, backwards - 1
    while forwards > 0 and inside(right):
        right, forwards = right + width, forwards - 1
    return left, right - 1


def shrunk(inside, x, left, right):
    """Law of the point at which shrinking ends."""
    law = {}
    size = right - left + 1
    for y in range(left, right + 1):
        ends = {y: 1.0} if inside(y) else shrunk(inside, x, y + 1, right) if y < x else shrunk(inside, x, left, y - 1)
        for z, p in ends.items():
            law[z] = law.get(z, 0.0) + p / size
    return law


def slice_matrix(weights, width, most_steps):
    """Transition matrix of slice sampling on 0..len-1: levels, places of the first block and divisions of the limit summed."""
    last = len(weights) - 1
    levels = np.concatenate([[0.0], np.unique(weights[weights > 0])])
    matrix = np.zeros((last + 1, last + 1))
    for low, high in itertools.pairwise(levels):
        slice_ = weights >= high

        def inside(y, slice_=slice_):
            return 0 <= y <= last and bool(slice_[y])

        for x in np.flatnonzero(slice_):
            for offset, backwards in itertools.product(range(width), range(most_steps)):
                left, right = stepped_out(inside, x, x - offset, width, backwards, most_steps - 1 - backwards)
                chance = (high - low) / weights[x] / (width * most_steps)
                for y, p in shrunk(inside, x, max(left, 0), min(right, last)).items():
                    matrix[x, y] += chance * p
    return matrix


RUGGED = np.array([3.0, 1.0, 0.5, 2.0, 0.0, 4.0, 1.0])


@pytest.mark.parametrize("width", [1, 2, 3, 9])
@pytest.mark.parametrize("most_steps", [1, 2, 64])
def test_slice_sampling_keeps_a_rugged_law(width, most_steps):
    law = RUGGED / RUGGED.sum()
    matrix = slice_matrix(RUGGED, width, most_steps)
    rows = matrix[RUGGED > 0].sum(axis=1)
    assert rows == pytest.approx(np.ones(len(rows)), abs=1e-12)
    flow = law[:, None] * matrix
    assert flow == pytest.approx(flow.T, abs=1e-12)  # reversible


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_compiled_slice_has_this_transition_matrix(width):
    case = model(hidden("discrete-laplace", 0.9, 3, 1), n=6, prior=np.array([0.3, 0.2]))
    state = {"counts": whole(2, 4), "noisy": whole((1, 3)), "kept": whole((3, 1))}
    line, rest = Transfer(0, 1, 6, False), arrays(case, state)
    logs = np.array([line_log(line, x, *rest) for x in range(7)])
    matrix = slice_matrix(np.exp(logs - logs.max()), width, integer_slice.MOST_STEPS)
    narrower = slice_matrix(np.exp(1.3 * (logs - logs.max())), width, integer_slice.MOST_STEPS)
    rng, caught = np.random.default_rng(width), 0
    for x in range(7):
        ends = [integer_slice.slice_point(line, x, 0, 6, width, rng, *rest) for _ in range(4_000)]
        found = np.bincount(ends, minlength=7)
        assert goodness(found, matrix[x]) > ALPHA
        caught += goodness(found, narrower[x]) < ALPHA
    assert caught > 0


def goodness(counts, law):
    """Chi-square test with rare outcomes together."""
    expected = counts.sum() * np.asarray(law)
    if counts[expected == 0].sum() > 0:
        return 0.0
    common = expected >= 10
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    return 1.0 if len(wanted) < 2 else float(stats.chisquare(observed, wanted).pvalue)


def sweeps_p_value(case, exact, *, size, sweeps=3, seed=1, prior=None):
    """Independent exact draws of the posterior, a few sweeps each: the counts must have the posterior's law again."""
    rng = np.random.default_rng(seed)
    states, _ = exact.states(size, rng)
    for state in states:
        case.sweep(state, rng, times=sweeps, warming=False, prior=prior)
    places = {table: i for i, table in enumerate(exact.counts)}
    found = np.bincount([places[tuple(state["counts"].tolist())] for state in states], minlength=len(places))
    return goodness(found, exact.probabilities)


@pytest.mark.parametrize("name", CASES)
def test_sweeps_keep_the_enumerated_posterior(name):
    assert sweeps_p_value(CASES[name], enumerated(name), size=4_000) > ALPHA


TWINS = {
    "urn": model(urn((2, 0, 5), alpha=(3.0, 0.5, 1.0)), n=4),
    "posterior samples": model(urn((5, 1, 4), alpha=(1, 1, 1)), n=4),
    "mixture, slice": model(MixtureTerm(weight=0.5, released=whole(1, 0, 4)), n=4, window=0),
    "seen laplace": model(seen("laplace", 1.7, -700, 1900, 2800), n=4),
    "seen discrete laplace": model(seen("discrete-gaussian", 0.8, -1, 2, 4), n=4),
    "hidden discrete laplace": model(hidden("discrete-laplace", 1.1, 1, 0, 3), n=4),
    "hidden laplace": model(hidden("laplace", 0.01, 2, 1), n=2, prior=np.array([5.0, 1.0])),
    "hidden smoothed": model(hidden("discrete-laplace", 0.7, 1, 0, 3, smoothing=0.6), n=4),
    "secret urn": model(urn((2, 0, 5), alpha=(1.5, 1.5, 2.0)), n=None),
    "secret seen": model(seen("discrete-laplace", 0.8, 0, 2, 1), n=None, prior=FLAT3),
    "secret hidden": model(hidden("discrete-laplace", 0.7, 1, 0, 3), n=None, prior=FLAT3, upper=3),
    "urn, mixture and hidden": model(URN, hidden("discrete-laplace", 0.7, 2, 1, 1), n=4),
    "secret seen, gaussian": model(seen("discrete-laplace", 1.7, 2, -1), n=None, prior=np.array([0.5, 1.0])),
    "poisson n": model(seen("discrete-laplace", 1.7, 2, -1), n=None, prior=np.ones(2), lower=1),
}


@pytest.mark.parametrize("name", TWINS)
def test_sweeps_of_a_slightly_wrong_model_are_caught(name):
    assert sweeps_p_value(TWINS[name], enumerated(name), size=4_000, sweeps=8) < ALPHA


@pytest.mark.parametrize("name", ["secret urn", "secret seen", "secret hidden"])
def test_a_prior_that_stands_in_for_the_engines_own_is_used_throughout(name):
    """Sweeps with another prior keep the posterior under that prior, what depends on n alone included."""
    case, other = CASES[name], np.array([2.0, 3.0, 4.0])
    exact = Enumerated(LatentCounts(cells=3, n=None, prior=other, terms=case.terms, size_prior=case.size_prior))
    assert sweeps_p_value(case, exact, size=4_000, sweeps=8, prior=other) > ALPHA
    assert sweeps_p_value(case, exact, size=4_000, sweeps=8) < ALPHA


def tampered(name, **changes):
    """The right model with wrong numbers handed to the kernels: each array as a function makes it."""
    case = CASES[name]
    wrong = LatentCounts(cells=case.cells, n=case.n, prior=case.prior, terms=case.terms, size_prior=case.size_prior, window=0)
    changed = {field: change(getattr(case.model, field).copy()) for field, change in changes.items()}
    wrong.__dict__["model"] = case.model._replace(**changed)
    return wrong


def without_the_size(settings):
    """Urns that forget what of their law depends on n."""
    settings[:, 2] = 0.0
    return settings


def twice_as_far(hidden):
    """Noisy counts that move twice as far as the counts they are carried by."""
    hidden[:, 2] *= 2.0
    return hidden


def test_moves_that_forget_what_depends_on_n_are_caught():
    wrong = tampered("secret urn", settings=without_the_size)
    assert sweeps_p_value(wrong, enumerated("secret urn"), size=4_000, sweeps=8) < ALPHA


def test_moves_that_carry_noisy_counts_too_far_are_caught():
    wrong = tampered("hidden discrete laplace", hidden=twice_as_far)
    assert sweeps_p_value(wrong, enumerated("hidden discrete laplace"), size=4_000, sweeps=8) < ALPHA


def log_down(c, fewer, r):
    return stats.binom.logpmf(fewer, c, r)


def log_up(c, more, r, gamma):
    return stats.nbinom.logpmf(more - c, gamma + c, r)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 4.5])
@pytest.mark.parametrize("r", [0.05, 0.5, 0.98])
def test_growing_and_shrinking_undo_each_other(gamma, r):
    def weight(c):
        return math.lgamma(gamma + c) - math.lgamma(c + 1)

    for c, more in itertools.combinations_with_replacement(range(9), 2):
        there = weight(c) + log_up(c, more, r, gamma)
        back = weight(more) + log_down(more, c, r) + gamma * math.log(r)
        assert there == pytest.approx(back, abs=1e-10)


@pytest.mark.parametrize("growing", [True, False])
def test_resized_counts_have_these_laws(growing):
    rng, r, prior, c = np.random.default_rng(4), 0.6, np.array([0.7]), whole(5)
    got = np.empty(1, np.int64)
    found = []
    for _ in range(20_000):
        update_resized(got, c, prior, 10**6, math.log(r), growing, rng)
        found.append(int(got[0]))
    counts = np.bincount(found, minlength=60)
    points = np.arange(len(counts))
    law = np.exp(log_up(5, points, r, 0.7) if growing else log_down(5, points, r))
    assert goodness(counts, law) > ALPHA
    wrong = np.exp(log_up(5, points, r, 1.3) if growing else log_down(5, points, r + 0.03))
    assert goodness(counts, wrong) < ALPHA


@pytest.mark.parametrize(("kind", "scale"), [(GEOMETRIC, 0.4), (GEOMETRIC, 3.0), (GAUSSIAN, 0.4), (GAUSSIAN, 2.5)])
def test_noise_draws(kind, scale):
    rng = np.random.default_rng(5)
    found = np.bincount([int(noise_draw(kind, scale, rng)) + 200 for _ in range(20_000)], minlength=401)
    z = np.arange(-200, 201)

    def law(scale):
        weights = np.exp(-0.5 * (z / scale) ** 2) if kind == GAUSSIAN else np.exp(-np.abs(z) / scale)
        return weights / weights.sum()

    assert goodness(found, law(scale)) > ALPHA
    assert goodness(found, law(1.1 * scale)) < ALPHA
