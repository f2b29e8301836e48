"""Distances between two samples on the line, exact from distinct values and weights, and summaries of one.

F and G are the distribution functions of the two samples, n the number of records of the first. Sums are NumPy's own, not the
linear algebra library's, whose last digits depend on its threads.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.reports.comparison.samples import Sample, grouped

MOST_PAIRED = 1500
"""Up to this many distinct values the distance of smoothed densities is a sum over pairs, beyond it over a fine lattice."""

LATTICE_POINTS = 32
"""Lattice points in one bandwidth."""

FARTHEST = 12.0
"""Bandwidths beyond which two Gaussian kernels do not overlap in double precision."""


def _difference(a: Sample, b: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All values in order, and F - G from each one on; the sums are of whole counts, so only the last step rounds."""
    values = np.concatenate([a.values, b.values])
    order = np.argsort(values, kind="stable")  # merges the two runs in linear time
    of_a, of_b = np.zeros(len(order), a.weights.dtype), np.zeros(len(order), b.weights.dtype)
    of_a[: len(a.values)], of_b[len(a.values) :] = a.weights, b.weights
    return values[order], np.cumsum(of_a[order]) / a.total - np.cumsum(of_b[order]) / b.total


def wasserstein(a: Sample, b: Sample) -> float:
    """W1, the integral of |F - G|: how far mass must travel on average to turn one sample into the other.

    >>> wasserstein(Sample.from_records([0, 0, 1, 1]), Sample.from_records([0, 3]))
    1.0
    """
    values, difference = _difference(a, b)
    return float(np.sum(np.abs(difference[:-1]) * np.diff(values)))


def kolmogorov(a: Sample, b: Sample) -> float:
    """The largest |F - G| (Kolmogorov-Smirnov, or max-ECDF, distance)."""
    values, difference = _difference(a, b)
    last = np.append(values[1:] != values[:-1], True)  # between two equal values F - G is not yet complete
    return float(np.abs(difference[last]).max())


def total_variation(a: Sample, b: Sample, *, edges: Any = None) -> float:
    """Half of the summed differences of probabilities: of values, or of bins [edge, next edge), the last one closed.

    Everything below the first edge is one more bin, and so is everything above the last.
    """
    values = np.concatenate([a.values, b.values])
    signed = np.concatenate([a.weights / a.total, -b.weights / b.total])
    if edges is None:
        bins = np.unique(values, return_inverse=True)[1]
    else:
        inner = np.array(edges, np.float64)
        if len(inner) < 2 or not (np.diff(inner) > 0).all():
            raise ModelError("bins need at least two edges in increasing order.")
        inner[-1] = np.nextafter(inner[-1], np.inf)
        bins = np.searchsorted(inner, values, side="right")
    return 0.5 * float(np.abs(grouped(bins, signed)).sum())


def mean(sample: Sample) -> float:
    """Mean."""
    return float(np.sum(sample.weights * sample.values) / sample.total)


def standard_deviation(sample: Sample) -> float:
    """Standard deviation of the distribution (divisor n)."""
    return math.sqrt(float(np.sum(sample.weights * (sample.values - mean(sample)) ** 2) / sample.total))


def quantiles(sample: Sample, *, probabilities: Any) -> NDArray[np.float64]:
    """For each probability p the smallest value x with F(x) >= p."""
    wanted = np.asarray(probabilities, np.float64)
    if not ((wanted >= 0.0) & (wanted <= 1.0)).all():
        raise ModelError("probabilities of quantiles must lie in [0, 1].")
    reached = np.cumsum(sample.weights)
    mass = wanted * sample.total * (1.0 - 1e-14)  # 0.7 x 10 must not land above 7
    return sample.values[np.minimum(np.searchsorted(reached, mass, side="left"), len(reached) - 1)]


def bandwidth(sample: Sample, *, least: float = 0.0) -> float:
    """Silverman's rule, 0.9 min(sd, interquartile range / 1.34) n^(-1/5), but at least `least`.

    The sd alone counts where the quartiles coincide. A grid's step is a sensible `least`: below it a density shows the grid.
    """
    low, high = quantiles(sample, probabilities=[0.25, 0.75])
    scales = [each for each in (standard_deviation(sample), float(high - low) / 1.34) if each > 0.0]
    rule = 0.9 * min(scales) * float(sample.total) ** -0.2 if scales else 0.0
    if max(rule, least) <= 0.0:
        raise ModelError("all records have the same value: no bandwidth follows from them.", hint="Give one, bandwidth=...")
    return max(rule, least)


def density_distance(a: Sample, b: Sample, *, bandwidth: float) -> float:
    """L2 distance of two Gaussian kernel densities of the same bandwidth h: the root of the integral of (f - g)^2.

    With p - q the differences of probabilities it is the root of the sum over pairs of values of (p - q)_i (p - q)_j
    N(x_i - x_j; 0, 2 h^2), taken as it stands up to 1,500 distinct values. Beyond, values are first split linearly between
    the two nearest points of a lattice of spacing h/32, which changes the result by about a part in a thousand at most.
    """
    if not bandwidth > 0.0:
        raise ModelError("a bandwidth must be positive.")
    values, place = np.unique(np.concatenate([a.values, b.values]), return_inverse=True)
    signed = grouped(place, np.concatenate([a.weights / a.total, -b.weights / b.total]))
    at = values / bandwidth
    square = _over_pairs(at, signed) if len(at) <= MOST_PAIRED else _over_lattice(at, signed)
    return math.sqrt(max(square, 0.0) / (2.0 * math.sqrt(math.pi) * bandwidth))


def _over_pairs(at: NDArray[np.float64], signed: NDArray[np.float64]) -> float:
    kernel = np.subtract.outer(at, at)
    np.exp(-0.25 * kernel * kernel, out=kernel)
    kernel *= signed
    return float(np.sum(signed * kernel.sum(axis=1)))


def _over_lattice(at: NDArray[np.float64], signed: NDArray[np.float64]) -> float:
    from scipy.fft import irfft, next_fast_len, rfft

    # Wide gaps are closed to where kernels no longer meet: the lattice then grows with the values, not with their range.
    at = np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(at), FARTHEST))]) * LATTICE_POINTS
    below = np.floor(at).astype(np.int64)
    share = at - below
    masses = grouped(below, signed * (1.0 - share), size=int(below[-1]) + 2)
    masses += grouped(below + 1, signed * share)
    reach = int(FARTHEST * LATTICE_POINTS)
    kernel = np.exp(-0.25 * (np.arange(-reach, reach + 1) / LATTICE_POINTS) ** 2)
    size = next_fast_len(len(masses) + len(kernel) - 1, real=True)
    smooth = irfft(rfft(masses, size) * rfft(kernel, size), size)[reach : reach + len(masses)]
    return float(np.sum(masses * smooth))


def density(sample: Sample, *, at: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    """Gaussian kernel density at the given points."""
    if not bandwidth > 0.0:
        raise ModelError("a bandwidth must be positive.")
    out = np.empty(len(at))
    block = max(1, 2_000_000 // len(sample.values))
    for start in range(0, len(at), block):
        apart = np.subtract.outer(at[start : start + block], sample.values) / bandwidth
        out[start : start + block] = np.exp(-0.5 * apart * apart) @ sample.weights
    return out / (float(sample.total) * bandwidth * math.sqrt(2.0 * math.pi))
