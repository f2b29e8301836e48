"""The chains' moves keep the posterior, exactly: every path of the shipped source is walked on models small enough for that.

`Paths` stands for a random generator: where the source compares a uniform number or takes the whole part of a multiple, it
takes each branch in turn and multiplies its probability. The kernels' source runs in the interpreter here; that compiled code
does the same is checked in tests/unit/test_noisy_models.py and by the last test below, which runs the compiled chain.
"""

import inspect
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from privurn._kernels.sums import chain, dirichlet, noise, sweeps
from privurn._kernels.sums.protocol import FUNCTIONS, log_exchanged, log_noise, provided
from privurn.inference.size import SizePrior
from privurn.inference.sums.latent_chain import LatentChain
from privurn.inference.sums.mean_models import BernoulliModel
from privurn.inference.sums.model import PlainNoise, PythonModel, provide_plain
from privurn.inference.sums.observed import Observed

TOLERANCE = 1e-12
ALPHA = 1e-6
LEVELS = (0.2, 0.7)
WEIGHTS = (0.4, 0.6)


class Coin:
    """A uniform number of which only comparisons are seen: an interval, cut by each of them."""

    def __init__(self, paths):
        self.paths, self.low, self.high = paths, 0.0, 1.0

    def __lt__(self, level):
        share = (min(max(float(level), self.low), self.high) - self.low) / (self.high - self.low)
        if share in (0.0, 1.0):
            return share == 1.0
        below = self.paths.choose((share, 1.0 - share)) == 0
        self.low, self.high = (self.low, level) if below else (level, self.high)
        return below

    def __rmul__(self, parts):
        return Part(self.paths, parts)


class Part:
    """A multiple of a uniform number of which only the whole part is seen."""

    def __init__(self, paths, parts):
        self.paths, self.parts = paths, parts

    def __int__(self):
        return self.paths.choose((1.0 / self.parts,) * self.parts) if self.parts > 1 else 0


class Paths:
    def __init__(self):
        self.plan, self.at, self.weight = [], 0, 1.0

    def choose(self, weights):
        if self.at == len(self.plan):
            self.plan.append([0, len(weights)])
        taken = self.plan[self.at][0]
        self.at += 1
        self.weight *= weights[taken]
        return taken

    def random(self):
        return Coin(self)

    def all(self, walk):
        """Every outcome of walk(self) with its probability."""
        while True:
            self.at, self.weight = 0, 1.0
            outcome = walk(self)
            yield outcome, self.weight
            while self.plan and self.plan[-1][0] + 1 == self.plan[-1][1]:
                self.plan.pop()
            if not self.plan:
                return
            self.plan[-1][0] += 1


class TwoLevels(PythonModel):
    """Zeros and ones whose probability is one of two numbers."""

    n_parameters = n_entries = 1

    def start(self, rng):
        return np.array([LEVELS[0]])

    def draw_parameters(self, records, *, parameters, rng):
        ones = records.sum()
        weights = [w * p**ones * (1 - p) ** (len(records) - ones) for w, p in zip(WEIGHTS, LEVELS, strict=True)]
        return np.array([LEVELS[0] if rng.random() < weights[0] / sum(weights) else LEVELS[1]])

    def draw_record(self, parameters, *, rng):
        return np.array([1.0 if rng.random() < parameters[0] else 0.0])

    def statistic(self, record):
        return record.copy()


def observed(**size):
    size = size or {"noisy_n": 2.3, "noisy_n_scale": 0.9}
    return Observed(
        values=np.array([1.4]), scales=np.array([0.7]), size_prior=SizePrior(lower=1, upper=size.pop("most", 4)), **size
    )


def states(most):
    return [(p, x) for p in LEVELS for n in range(1, most + 1) for x in itertools.product((0.0, 1.0), repeat=n)]


def posterior(seen, most):
    model, size = TwoLevels(), seen.size_record()
    found = []
    for p, x in states(most):
        prior = WEIGHTS[LEVELS.index(p)] * math.prod(p if each else 1 - p for each in x)
        level = model.log_density(seen, np.array([sum(x)])) + noise.log_size(size, len(x))
        found.append(prior * math.exp(level))
    return np.array(found) / sum(found)


def transitions(move, most):
    """Matrix of a move(p, records, n, total, rng) -> (p, records, n)."""
    place = {state: i for i, state in enumerate(states(most))}
    matrix = np.zeros((len(place), len(place)))
    for (p, x), i in place.items():

        def walk(rng, p=p, x=x):
            records = np.zeros((8, 1))
            records[: len(x), 0] = x
            q, after, n = move(p, records, len(x), np.array([sum(x)]), rng)
            return float(q), tuple(float(each) for each in after[:n, 0])

        for outcome, weight in Paths().all(walk):
            matrix[i, place[outcome]] += weight
    assert np.allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=TOLERANCE)
    return matrix


def changed(function, old, new):
    """The function's source with one thing wrong in it."""
    source = inspect.getsource(function)
    assert source.count(old) == 1
    namespace = dict(vars(inspect.getmodule(function)))
    exec(source.replace(old, new).replace("@register_jitable", ""), namespace)
    return namespace[function.__name__]


def jump(seen, *, block, function=sweeps.jumped):
    provide_plain()
    model = TwoLevels()

    def move(p, records, n, total, rng):
        after, m = function(
            model.record, PlainNoise(model, seen), seen.size_record(), np.array([p]), records, n, total, block, rng
        )
        return p, after, m

    return move


def error(matrix, law):
    return float(np.abs(law @ matrix - law).max())


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize(
    "size",
    [
        {"noisy_n": 2.3, "noisy_n_scale": 0.9},
        {"noisy_n": -1.0, "noisy_n_scale": 2.0, "noisy_n_kind": "gaussian"},
        {},
    ],
)
def test_jumps_keep_the_posterior(block, size):
    seen = (
        observed(**size)
        if size
        else Observed(
            values=np.array([1.4]), scales=np.array([0.7]), size_prior=SizePrior(kind="poisson", mean=2.5, lower=1, upper=4)
        )
    )
    law, matrix = posterior(seen, 4), transitions(jump(seen, block=block), 4)
    assert error(matrix, law) < TOLERANCE
    flow = law[:, None] * matrix
    assert np.allclose(flow, flow.T, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("log_ratio += math.log(0.5)", "pass"),
        ("log_ratio += math.log(2.0)", "pass"),
        ("log_ratio = log_size(size, other) - log_size(size, n)", "log_ratio = 0.0 if 1 <= other <= size.upper else -math.inf"),
        ("sign = 1.0 if up else -1.0", "sign = 1.0"),
    ],
)
def test_wrong_jumps_are_seen(old, new):
    seen = observed(noisy_n=0.5, noisy_n_scale=0.9)  # towards n = 1: there both directions' own probabilities count
    assert error(transitions(jump(seen, block=1, function=changed(sweeps.jumped, old, new)), 4), posterior(seen, 4)) > 1e-4


def jumps(seen, *, function):
    """All jumps of a sweep after warming, the largest adapted to 3 records: more than a small n would pay for."""
    provide_plain()
    model, tuning = TwoLevels(), chain.Tuning(2, 0, True, 0, 1)

    def move(p, records, n, total, rng):
        head = (model.record, PlainNoise(model, seen), seen.size_record(), np.array([p]))
        after, m, _ = function(*head, records, n, total, tuning, np.array([0.0, 9.0, math.log(3.2)]), False, rng)
        return p, after, m

    return move


def test_jumps_of_an_adapted_size_keep_the_posterior():
    seen = observed(noisy_n=2.3, noisy_n_scale=0.9)
    law = posterior(seen, 4)
    assert error(transitions(jumps(seen, function=chain.update_jumps), 4), law) < TOLERANCE
    follows = changed(chain.update_jumps, "else int(math.exp(numbers[2]))", "else min(int(math.exp(numbers[2])), n)")
    assert error(transitions(jumps(seen, function=follows), 4), law) > 1e-4


def test_a_pass_over_the_records_keeps_the_posterior():
    seen = observed(noisy_n=2.0, noisy_n_scale=1.0, most=3)
    model = TwoLevels()
    provide_plain()

    def move(p, records, n, total, rng, function=sweeps.update_records):
        function(model.record, PlainNoise(model, seen), np.array([p]), records, n, total, rng)
        return p, records, n

    law = posterior(seen, 3)
    assert error(transitions(move, 3), law) < TOLERANCE

    wrong = changed(sweeps.update_records, "(noise, total, old, new, candidate)", "(noise, total, 0.0 * old, new, candidate)")
    assert error(transitions(lambda *a: move(*a, function=wrong), 3), law) > 1e-4


def test_whole_sweeps_keep_the_posterior():
    seen = observed(noisy_n=2.0, noisy_n_scale=1.0, most=2)
    model = TwoLevels()
    provide_plain()
    source = getattr(chain.update_centred_chain, "py_func", chain.update_centred_chain)
    tuning = chain.Tuning(1, 0, True, 1, 1)

    def move(p, records, n, total, rng):
        theta, count, numbers = np.array([p]), np.array([n]), np.zeros(3)
        none = np.empty((0, 1)), np.empty(0, np.int64), np.empty((0, 3))
        head = (model.record, PlainNoise(model, seen), seen.size_record(), tuning)
        after = source(*head, theta, records, count, numbers, rng, 1, 1, False, *none)
        return theta[0], after, count[0]

    law = posterior(seen, 2)
    matrix = transitions(move, 2)
    assert error(matrix, law) < TOLERANCE
    assert np.all(np.linalg.matrix_power(matrix, 8) > 0.0)  # every state is reached: the posterior is the only such law


def proportions(seen, most):
    """Exact posterior of (n, number of ones) under a uniform prior of the probability."""
    size, record = seen.size_record(), seen.noise_record()
    cells = [(n, k) for n in range(1, most + 1) for k in range(n + 1)]
    logs = [noise.log_size(size, n) - math.log(n + 1) + log_noise(record, np.array([float(k)])) for n, k in cells]
    weights = np.exp(np.array(logs) - max(logs))
    return cells, weights / weights.sum()


def chi_square(seen, *, seen_by_chain, moves, replicates=4000, most=4):
    """p value of (n, ones) after a few compiled sweeps from an exact draw, against the exact posterior of `seen`."""
    rng = np.random.default_rng(5)
    cells, law = proportions(seen, most)
    sampler = LatentChain(model=BernoulliModel(), observed=seen_by_chain, moves=moves)
    counts = np.zeros(len(cells))
    for at in rng.choice(len(cells), size=replicates, p=law):
        n, ones = cells[at]
        state = sampler.start(rng)
        state["records"] = np.zeros((8, 1))
        state["records"][:ones] = 1.0
        state["count"][:] = n
        state["theta"][:] = rng.beta(1 + ones, 1 + n - ones)
        state["factor"] = np.array([[1.5, 0.0], [0.2, 0.7]])
        state["numbers"][2] = 1.0
        sampler.advance(state, rng, sweeps=3, thin=1, warming=False)
        m = int(state["count"][0])
        counts[cells.index((m, int(state["records"][:m].sum())))] += 1
    return float(stats.chisquare(counts, law * replicates).pvalue)


@pytest.mark.parametrize("moves", ["centred", "interwoven"])
def test_compiled_chain_against_the_exact_posterior(moves):
    seen = observed()
    assert chi_square(seen, seen_by_chain=seen, moves=moves) > ALPHA
    wrong = Observed(
        values=seen.values, scales=2.0 * seen.scales, noisy_n=2.3, noisy_n_scale=0.9, size_prior=SizePrior(lower=1, upper=4)
    )
    assert chi_square(seen, seen_by_chain=wrong, moves=moves) < ALPHA


@pytest.mark.parametrize("kind", [noise.LAPLACE, noise.GAUSSIAN])
def test_one_loop_over_the_entries_gives_what_two_give(kind):
    total, old, new = np.random.default_rng(1).normal(size=(3, 5))
    record, candidate = noise.Noise(np.arange(5.0), np.linspace(0.5, 2.0, 5), kind), np.empty(5)
    assert log_exchanged(record, total, old, new, candidate) == log_noise(record, total + (new - old))
    assert np.array_equal(candidate, total + (new - old))
    laws = {noise.LAPLACE: stats.laplace, noise.GAUSSIAN: stats.norm}
    law = laws[kind](record.values, 1.0 / record.rates)
    change = np.sum(law.logpdf(candidate) - law.logpdf(total))
    assert log_noise(record, candidate) - log_noise(record, total) == pytest.approx(change, rel=1e-12)


def test_every_function_of_the_protocol_has_a_model():
    assert "update_balanced" in provided(dirichlet.Dirichlet)  # modules attach their models where they are imported
    assert all(each.table for each in FUNCTIONS.values())
