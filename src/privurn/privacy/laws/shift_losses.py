"""Privacy losses of integers that are moved by whole numbers under discrete noise, and of several of them together.

An integer moved by D under discrete noise has its losses on a lattice, and so has a sum of such losses of one scale; losses of
different scales are added term by term. Every probability is positive and every sum has positive terms only. What rounding
could take away is given back by margins, and what is cut off counts as an infinite loss. Where there would be too many terms,
a loss l is split between the ends of a lattice interval such that the means of 1 and of e^-l stay: (1 - e^(x - l))_+ is convex
in e^-l, so no divergence falls. Proof: docs/proofs/noisy-trees.md; enumeration: tests/exact/test_noisy_tree.py.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.additive_noise import NoiseKind
from privurn.privacy.laws.noise import LEAST_SCALE

MOST_TERMS = 2**17
"""Losses that are added term by term, and points of a law that would have more."""

SPLIT_POINTS = 2**14
"""Lattice points of a sum of laws that has too many terms."""

POISSON_FROM = 3.0
"""From this scale on a sum of m discrete Gaussians is one of scale sqrt(m) times theirs, up to a factor of 1 + 1e-37 m."""

LARGEST_EXACT_DEVIATION = 5_000.0
"""Above this, runs of whole numbers are taken together, each at its largest loss."""

REACH = 38.0
"""Standard deviations beyond which Gaussian noise is cut off: a mass of 1e-314."""

CUT = 1e-300
"""More than what is cut off or lost below the floats, for each integer."""

LOSS_ROUNDING = 2.0**-50
"""More than the rounding of a loss, as a share of it."""

TERM_ROUNDING = 2.0**-50
"""More than what one step of a sum of products loses, as a share of the sum."""

Moved = tuple[float, int, int]
"""Scale, shift, and how many integers of this scale are moved by this shift."""


@dataclass(frozen=True, eq=False)
class Losses:
    """A finite loss takes the ascending `values` with the `probabilities`; it is infinite with probability `beyond`.

    A positive `step` says that the values are `step` apart. `exact` says that nothing was rounded but the last digits.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    step: float
    beyond: float = 0.0
    exact: bool = True

    @cached_property
    def _tails(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each place j of a lattice law the sums over i >= j of p_i (1 - e^(l_j - l_i)) and of p_i e^(l_j - l_i)."""
        from scipy.linalg.blas import dtbsv  # scipy.signal has the same recurrence, and takes a second to import

        band = np.ones((2, self.probabilities.size), order="F")
        band[1] = -math.exp(-self.step)
        discounted = dtbsv(1, band, self.probabilities[::-1], lower=1, diag=1)[::-1]
        risen = -math.expm1(-self.step) * np.cumsum(discounted[:0:-1])[::-1]
        rounding = 1.0 + TERM_ROUNDING * (self.values.size + 8)
        return np.concatenate([risen, [0.0, 0.0]]) * rounding, np.append(discounted, 0.0) * rounding

    def excess(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """E (1 - e^(x - L))_+ of a lattice law for every x."""
        place = np.searchsorted(self.values, x, side="right")
        gap = np.append(self.values, np.inf)[place] - x
        risen, discounted = self._tails
        found: NDArray[np.float64] = risen[place] - discounted[place] * np.expm1(-gap) + self.beyond
        return found

    def on_lattice(self, step: float) -> "Losses":
        """A law on the multiples of `step` whose divergences are nowhere smaller: see the module."""
        below = np.floor(self.values / step)
        rest = np.clip(self.values - below * step, 0.0, step)
        up = self.probabilities * (np.expm1(-rest) / math.expm1(-step))
        down = self.probabilities * np.exp(-rest) * (np.expm1(rest - step) / math.expm1(-step))
        place = (below - below[0]).astype(np.int64)
        masses = np.bincount(place, weights=down, minlength=place[-1] + 2) + np.bincount(place + 1, weights=up)
        rounding = 1.0 + TERM_ROUNDING * (self.values.size + 8)
        values = (below[0] + np.arange(masses.size)) * step
        return Losses(values, np.asarray(masses * rounding, np.float64), step, self.beyond, exact=False)

    def thinned(self) -> "Losses":
        """The law itself, or one with few enough points."""
        few = self.values.size <= MOST_TERMS
        return self if few else self.on_lattice(float(self.values[-1] - self.values[0]) / (MOST_TERMS - 2))


NOTHING = Losses(np.zeros(1), np.ones(1), 1.0)


def together(first: Losses, second: Losses) -> Losses:
    """The law of the sum of two independent losses, on a common lattice where there would be too many terms.

    `step` is 0 where the sums lie on no lattice.
    """
    beyond, exact = first.beyond + second.beyond, first.exact and second.exact
    if first.values.size * second.values.size <= MOST_TERMS:
        values = np.add.outer(first.values, second.values).ravel()
        order = np.argsort(values, kind="stable")
        masses = np.multiply.outer(first.probabilities, second.probabilities).ravel()
        return Losses(values[order], masses[order], 0.0, beyond, exact)
    step = float(np.ptp(first.values) + np.ptp(second.values)) / SPLIT_POINTS
    return lattice_sum(first.on_lattice(step), second.on_lattice(step))


def lattice_sum(first: Losses, second: Losses) -> Losses:
    """The law of the sum of two independent losses on the multiples of the same step."""
    terms = min(first.values.size, second.values.size)
    masses = np.convolve(first.probabilities, second.probabilities) * (1.0 + TERM_ROUNDING * (terms + 8))
    start = np.rint(first.values[0] / first.step) + np.rint(second.values[0] / first.step)
    values = (start + np.arange(masses.size)) * first.step
    return Losses(values, masses, first.step, first.beyond + second.beyond, first.exact and second.exact)


def laplace_losses(scale: float, shift: int, times: int) -> Losses:
    """Of `times` integers moved by `shift`, noise P(k) proportional to e^(-|k|/scale).

    The loss of one is (D - 2j)/scale: with r = e^(-1/scale), P(j = 0) = 1/(1 + r), P(j = D) = r^D/(1 + r), and
    (1 - r)/(1 + r) r^j between.
    """
    rate = 1.0 / scale
    j = np.arange(shift, -1, -1, dtype=np.float64)
    masses = math.tanh(0.5 * rate) * np.exp(-rate * j)
    masses[[0, -1]] = np.exp(-rate * j[[0, -1]]) / (1.0 + math.exp(-rate))
    masses *= 1.0 + LOSS_ROUNDING * (4.0 + rate * j)
    one = Losses((shift - 2.0 * j) / scale, masses, 2.0 / scale, CUT)
    if times * shift < SPLIT_POINTS:
        total = reduce(np.convolve, [masses] * times) * (1.0 + TERM_ROUNDING * times * (shift + 8))
        values = np.asarray((2.0 * np.arange(total.size) - times * shift) / scale, np.float64)
        return Losses(values, total, 2.0 / scale, times * CUT)
    fewer = one.on_lattice(times * float(np.ptp(one.values)) / SPLIT_POINTS)
    return reduce(lattice_sum, [fewer] * times)


def gaussian_losses(scale: float, shift: int, times: int) -> Losses:
    """Of `times` integers moved by `shift`, noise P(k) proportional to e^(-k^2/(2 scale^2)).

    With Y the sum of the noises the loss is D (m D + 2 Y)/(2 scale^2), D = `shift`, m = `times`.
    """
    deviation = math.sqrt(times) * scale
    if scale < POISSON_FROM:
        reach = math.ceil(REACH * scale) + 2
        k = np.arange(-reach, reach + 1, dtype=np.float64)
        one = np.exp(-0.5 * (k / scale) ** 2) * (1.0 + LOSS_ROUNDING * (k / scale) ** 2)
        masses = reduce(np.convolve, [one / one.sum()] * times) * (1.0 + TERM_ROUNDING * times * k.size)
        noise, width = np.arange(masses.size) - float(times * reach), 1.0
    elif deviation <= LARGEST_EXACT_DEVIATION:
        noise, width = np.arange(-math.ceil(REACH * deviation), math.ceil(REACH * deviation) + 1, dtype=np.float64), 1.0
        squares = (noise / deviation) ** 2
        masses = np.exp(-0.5 * squares) * (1.0 + LOSS_ROUNDING * (4.0 + squares)) / (deviation * math.sqrt(2.0 * math.pi))
    else:
        noise, width, masses = _runs(deviation)
    step = shift / (scale * scale)
    values = 0.5 * step * (times * shift + 2.0 * noise)
    return Losses(values, masses, step * width, times * CUT, exact=width == 1.0)


def _runs(deviation: float) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Largest numbers, length and masses of runs of whole numbers under a discrete Gaussian of a large deviation s.

    e^(-y^2/(2 s^2)) is at most e^(1/(8 s^2)) times its mean between y - 1/2 and y + 1/2, so a run has at most that many times
    the mass of a normal law between its ends and a half beyond.
    """
    from scipy.special import ndtr

    width = float(math.ceil(2.0 * REACH * deviation / MOST_TERMS))
    count = math.ceil(REACH * deviation / width)
    last = width * np.arange(-count, count + 1, dtype=np.float64)
    low, high = (last - width + 0.5) / deviation, (last + 0.5) / deviation
    right = low > 0.0
    masses = np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return last, width, masses * (math.exp(0.125 / deviation**2) * (1.0 + 1e-10)) + 1e-320


@lru_cache(maxsize=16)
def composed(noise: NoiseKind, moved: tuple[Moved, ...]) -> tuple[Losses, Losses]:
    """Two independent laws whose sum is the loss of all these integers together; the first is on a lattice."""
    make = laplace_losses if noise == "laplace" else gaussian_losses
    laws = sorted((make(*each).thinned() for each in moved), key=lambda law: law.values.size)
    if not laws:
        return NOTHING, NOTHING
    return laws[-1], reduce(together, laws[:-1], NOTHING)


def largest_loss(moved: Iterable[Moved]) -> float:
    """Size of the largest loss near the centre of the laws, infinite where it leaves the floats."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(sum(np.float64(times) * shift * shift / np.square(np.float64(scale)) for scale, shift, times in moved))


def divergence(noise: NoiseKind, moved: tuple[Moved, ...], epsilon: float) -> float:
    """E (1 - e^(epsilon - L))_+ for epsilon >= 0, L the loss of all these integers together; never below the truth."""
    if min(scale for scale, _, _ in moved) < LEAST_SCALE or largest_loss(moved) > 1e200:
        return 1.0
    inner, outer = composed(noise, moved)
    x = epsilon - outer.values
    x -= LOSS_ROUNDING * (epsilon + np.abs(outer.values))
    rounding = 1.0 + TERM_ROUNDING * (outer.values.size + 8)
    return float(outer.probabilities @ inner.excess(x)) * rounding + outer.beyond


def is_exact(noise: NoiseKind, moved: tuple[Moved, ...]) -> bool:
    """Whether `divergence` is the truth up to last digits."""
    return all(law.exact for law in composed(noise, moved))
