"""States of finite mixtures and chains on them: what the exact tests of samplers share.

A state is (clusters, atoms, latent values) as tuples. Code that draws nothing but uniforms is enumerated: run without numba on
uniforms that branch wherever the code compares them, it gives the transition matrix of the very code that is compiled.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats

if os.environ.get("NUMBA_DISABLE_JIT") == "1":  # a process of `in_plain_python`
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from filthy_memory import filthy_empty

    np.empty = filthy_empty


def partitions(n):
    """All clusterings of n records, labels by first appearance."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*c, h) for c in found for h in range(max(c) + 2)]
    return found


def log_urn(c, kind):
    """Log probability of a clustering, record after record (independently of the package)."""
    name, given = kind
    total, sizes = 0.0, []
    for i, h in enumerate(c):
        k, s = len(sizes), given["strength"]
        if name == "FiniteDirichlet":
            a = s / given["components"]
            weights = [size + a for size in sizes] + [a * (given["components"] - k)]
        else:
            d = given.get("discount", 0.0)
            weights = [size - d for size in sizes] + [s + d * k]
        if weights[h] <= 0.0:
            return -math.inf
        total += math.log(weights[h] / (i + s))
        if h == k:
            sizes.append(0)
        sizes[h] += 1
    return total


class Branching:
    """Uniform variables that take every way which the code could go, one after the other, with its probability."""

    def __init__(self):
        self.ways = []

    def paths(self, run):
        """Probability and result of every way."""
        self.ways = []
        while True:
            self.at, self.probability = 0, 1.0
            yield run(), self.probability
            while self.ways and self.ways[-1][0] == self.ways[-1][1] - 1:
                self.ways.pop()
            if not self.ways:
                return
            self.ways[-1][0] += 1

    def random(self):
        return Uniform(self)

    def take(self, shares):
        if self.at == len(self.ways):
            self.ways.append([0, len(shares)])
        way = self.ways[self.at][0]
        self.at += 1
        self.probability *= shares[way]
        return way


class Uniform:
    """shift + slope U, where U is uniform on an interval that comparisons make smaller."""

    def __init__(self, rng, shift=0.0, slope=1.0, inside=None):
        self.rng, self.shift, self.slope = rng, shift, slope
        self.inside = [0.0, 1.0] if inside is None else inside

    def __mul__(self, factor):
        return Uniform(self.rng, self.shift * factor, self.slope * factor, self.inside)

    def __add__(self, number):
        return Uniform(self.rng, self.shift + number, self.slope, self.inside)

    def __truediv__(self, number):
        return self * (1.0 / number)

    def __sub__(self, number):
        return self + (-number)

    def __lt__(self, number):
        cut = (number - self.shift) / self.slope
        low, high = self.inside
        if cut <= low or cut >= high:
            return bool(cut >= high)
        way = self.rng.take([(cut - low) / (high - low), (high - cut) / (high - low)])
        self.inside[way ^ 1] = cut
        return way == 0

    def __ge__(self, number):
        return not self < number

    def __int__(self):
        k = 0
        while not self < k + 1:
            k += 1
        return k


def transition_error(sweep, states, pi):
    """Largest entry of pi P - pi, P the law of sweep(state, rng); the number of states, and of ways through the code."""
    index, rng = {state: i for i, state in enumerate(states)}, Branching()
    after, paths = np.zeros(len(states)), 0
    for i, state in enumerate(states):
        row = 0.0
        for result, probability in rng.paths(lambda state=state: sweep(state, rng)):
            after[index[result]] += pi[i] * probability
            row += probability
            paths += 1
        assert abs(row - 1.0) < 1e-12
    return float(np.abs(after - pi).max()), len(states), paths


def states_after(sampler, states, chosen, rng, *, sweeps):
    """States of chains that start at the chosen ones."""
    index = {state: i for i, state in enumerate(states)}
    n, empty = sampler.observed.n, np.empty(0)
    keep = (np.empty(0, np.int64), empty, empty, np.empty((0, 1)))
    keep = (*keep, np.empty((0, n), np.int64), np.empty((0, n, 1), np.int64), empty, empty, np.empty((0, 3)))
    found = np.empty(len(chosen), int)
    for t, i in enumerate(chosen):
        c, atoms, y = states[i]
        state = {
            "allocations": np.array(c),
            "latent": np.array(y)[:, None],
            "atoms": np.array(atoms, float)[:, None],
            "strength": np.array([sampler.model.mixing.first_strength]),
            "tuning": np.zeros(2),
        }
        rows = sampler.sweep(state, rng, sweeps=sweeps, thin=1, warming=False, keep=keep)
        key = (
            tuple(state["allocations"].tolist()),
            tuple(rows[:, 0].astype(int).tolist()),
            tuple(state["latent"][:, 0].tolist()),
        )
        found[t] = index[key]
    return found


def p_value(found, pi):
    """Chi-square of counts against exact probabilities, rare states together."""
    counts, expected = np.bincount(found, minlength=len(pi)), len(found) * pi
    common = expected >= 10.0
    observed = np.append(counts[common], counts[~common].sum())
    return float(stats.chisquare(observed, np.append(expected[common], expected[~common].sum())).pvalue)


def digests(draws):
    """Everything that a run gave, each array as its hash."""
    arrays = {**draws.variables, **draws.sample_stats}
    return {name: hashlib.sha256(values.tobytes()).hexdigest() for name, values in arrays.items()}


def in_plain_python(file, task):
    """Run a task of a test file in a process without numba's compiler."""
    return in_a_process(file, task, NUMBA_DISABLE_JIT="1")


def in_a_process(file, task, **environment):
    """Run a task of a test file in a process of its own."""
    done = subprocess.run(
        [sys.executable, file, task],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
