"""Records drawn from noisy counts that are cut off at zero: what they say of each cell by itself, and of sums over cells.

m records are drawn, of cell j with probability w_j/T: w_j = max(C_j + noise_j, 0), T = sum w. Since T^-m is proportional to
the integral of e^(-rate T) rate^(m - 1) over all rates > 0, the numbers r_j of records are independent Poisson ones given a
rate, with means rate w_j, the rate's prior being flat in its logarithm: exactly, so that m/rate stands for T.

Noise that is cut off adds records to empty cells and none to full ones, so that a sum of r_j/rate is not one of C_j. `number`
takes off what the many cells with few records tell of that: r/rate - sum_i a_i rho_i^r has the mean C, very nearly, whatever C
is. Of Laplace noise it takes about one scale off every cell without records. So sums of numbers are about sums of counts,
however these are spread. That of all cells' is about n at the right rate, and by how many deviations it is off at another says
how likely that is: few records leave T unsure, and its law far from normal.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.additive_noise import NoiseKind, log_mass

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

TAIL = 30.0
"""Noise of less than e^-30 of its largest probability does not happen."""

PARTS = 8.0
"""Steps of sums over noise, in each of its scales, at least: a power of two, or the noise's own lattice."""

FAR, POINTS = 6.0, 48
"""Counts that numbers are made right for: this many scales of the noise, and so many of them; and fewer, up to those that have
so many records."""

STRICT = 10.0
"""What the square of an error in the mean counts, over a variance: intervals know of the latter alone."""

WITHIN, STRIDE = 16.0, 0.25
"""T is looked for up to so many times n and all noise, and so many times below n; in such steps of its logarithm."""

LIKELY = (-1.463, -0.599, 0.0, 0.599, 1.463)
"""Middles of five equal parts of a normal law, as far apart as have its variance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClippedRecords:
    """The law of a cell's records given its count: Poisson with mean rate max(count + noise, 0).

    `scale` of the noise in its lattice's steps, of which `steps` make 1; n is the sum of all cells' counts.
    """

    noise: NoiseKind
    scale: float
    steps: int
    cells: int
    n: int
    rate: float

    @classmethod
    def of(cls, released: Whole, *, noise: NoiseKind, scale: float, steps: int, n: int) -> "tuple[ClippedRecords, ...]":
        """Laws at equally likely rates, the most likely in the middle; none where no T agrees with the records.

        The numbers of all cells sum to n, up to a normal error: the rate is where they are off by a normal law's deviations.
        """
        from scipy.optimize import brentq

        records, cells = float(released.sum()), len(released)
        if records == 0.0:
            return ()
        values, times = np.unique(released, return_counts=True)
        first = cls(noise=noise, scale=scale, steps=steps, cells=cells, n=n, rate=1.0)

        def at(log_total: float) -> "ClippedRecords":
            return replace(first, rate=records * math.exp(-log_total))

        def off(log_total: float) -> float:
            return at(log_total)._off(values, times)

        low = high = math.log(n + cells * first.spread)  # from above: numbers mean nothing where T is far too small
        while off(high) <= LIKELY[-1] and high < math.log(WITHIN * (n + cells * first.spread)):
            high += STRIDE
        while off(low) >= LIKELY[0] and low > math.log(n / WITHIN):
            low -= STRIDE
        if not off(low) < LIKELY[0] < LIKELY[-1] < off(high):
            return ()
        return tuple(at(brentq(lambda log_total, z=z: off(log_total) - z, low, high, xtol=1e-6)) for z in LIKELY)

    @property
    def spread(self) -> float:
        """Scale of the noise, in records."""
        return self.scale / self.steps

    def number(self, released: Whole) -> Floats:
        """What is about a cell's count on average, of cells with so many records."""
        taken = np.power(self._base[None, :], released[:, None].astype(np.float64)) @ self._fit[0]
        return np.asarray(released / self.rate - taken)

    def variance(self, counts: Floats) -> Floats:
        """Of numbers, given the counts; that of 0 for what is below."""
        grid, variances = self._grid, self._fit[1]
        return np.asarray(np.interp(counts, grid, variances) + np.maximum(counts - grid[-1], 0.0) / self.rate)

    def logs(self, released: Whole, counts: Floats, nodes: Whole) -> Floats:
        """Log likelihood of counts, those of a cell being equally far apart and next to each other; `nodes` says whose."""
        from privurn._kernels.trees.clipped import update_logs

        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        gaps = np.diff(counts)[np.diff(nodes) == 0]
        step = self._step(float(gaps[0]) if len(gaps) else 1.0)
        masses, out = self._masses(step), np.empty(len(counts))
        every = round(float(gaps[0]) / step) if len(gaps) else 1
        update_logs(out, np.append(starts, len(counts)), counts[starts], every, step, released, self.rate, masses)
        return out

    def _step(self, most: float) -> float:
        """Of noise: a power of two, small beside its scale, no more than `most` and no less than its lattice's."""
        wanted = 2.0 ** math.floor(math.log2(self.spread / PARTS)) if self.spread > 0.0 else 0.0
        return min(max(wanted, 1.0 / self.steps), most)

    def _masses(self, step: float) -> Floats:
        """Probabilities of multiples of a step, from the least that happens to the largest."""
        reach = TAIL if self.noise == "laplace" else math.sqrt(2.0 * TAIL)
        far = math.ceil(reach * self.spread / step)
        places = np.arange(-far, far + 1, dtype=np.float64) * (step * self.steps)
        found = np.exp(log_mass(places, noise=self.noise, scale=self.scale))
        return np.asarray(found / found.sum())

    @cached_property
    def _grid(self) -> Floats:
        """Counts that numbers are made right for, from 0 on."""
        step, near = self._step(math.inf), max(FAR * self.spread, 3.0)
        far = np.geomspace(near, max(near, FAR / self.rate), POINTS // 4)
        return np.unique(np.rint(np.append(np.linspace(0.0, near, POINTS), far) / step)) * step

    @cached_property
    def _base(self) -> Floats:
        """The rho_i: from 0, which is for cells without records, to where rho^r falls as slowly as noise does."""
        slowest = max(1.0 / (2.0 * max(self.rate * self.spread, 1.0)), 1e-3)
        return np.append(1.0 - 0.5 ** np.arange(0.0, -math.log2(slowest) + 0.5), -0.5)

    @cached_property
    def _fit(self) -> tuple[Floats, Floats, Floats]:
        """The a_i, and over the grid the variances of numbers and what their means are off by.

        Least squares of the error of a sum over as many cells as may hold so much, half of the weight or more on empty ones,
        as n says. Means of powers of Poisson numbers are known: E rho^r = e^(-(1 - rho) mean).
        """
        step, rho = self._step(math.inf), self._base
        masses = self._masses(step)
        far = len(masses) // 2
        means = self.rate * np.maximum(self._grid[:, None] + np.arange(-far, far + 1) * step, 0.0)
        off = means / self.rate - self._grid[:, None]
        powers = np.stack([np.exp(-(1.0 - each) * means) for each in rho])
        taken = powers @ masses
        pairs = np.stack([[np.exp(-(1.0 - one * other) * means) @ masses for other in rho] for one in rho])
        cross = (powers * (off + (rho[:, None, None] - 1.0) * means / self.rate)) @ masses
        empty = max(0.5, 1.0 - self.n / self.cells)
        weights = np.full(len(self._grid), (1.0 - empty) / (len(self._grid) - 1))
        weights[0] = empty
        bias, strict = off @ masses, STRICT * self.n / np.maximum(self._grid, self.n / self.cells) * weights
        left = (taken * strict) @ taken.T + pairs @ weights
        a = np.linalg.lstsq(left, (taken * strict) @ bias + cross @ weights, rcond=1e-12)[0]
        error = bias - a @ taken
        square = (off**2 + means / self.rate**2) @ masses - 2.0 * a @ cross + np.einsum("i,j,ijc->c", a, a, pairs)
        return a, square - error**2, error

    def _off(self, values: Whole, times: Whole) -> float:
        """The sum of all cells' numbers less n, in its deviations; counts that sum to n, for these, are about the numbers."""
        numbers = self.number(values)
        counts = np.maximum(numbers, 0.0)
        counts *= self.n / max(float(counts @ times), 1e-300)
        error = float(np.interp(counts, self._grid, self._fit[2]) @ times)
        return float(numbers @ times - self.n) / math.sqrt(float(self.variance(counts) @ times) + error**2)
