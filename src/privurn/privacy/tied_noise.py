"""Laplace noise that is tied: the noises of some counts sum to that of a count above them, as the counts themselves do.

A group is a count with noise of scale a (or one that is known) and k counts of parts of it with noise of scale b. Independent,
their noises x and y_1, .., y_k would have P proportional to e^(-|x|/a - |y_1|/b - .. - |y_k|/b); tied, they have the same on
those that sum up, x = y_1 + .. + y_k, and nothing elsewhere. So the likelihood of the counts is that of independent noise and
pure epsilon too, while numbers that contradict each other, which tell less, do not occur. Proof: docs/proofs/noisy-trees.md.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.privacy.additive_noise import noisy_integers, simulated_noise

Whole = NDArray[np.int64]

LARGEST_SCALE, MOST_PARTS, MOST_APART = 2.0**34, 4096, 1000.0
"""Sums of more noise, or of larger scales, could leave 64-bit integers; moments know scales that are not too far apart."""

LARGEST = 2**50
"""Noise beyond that, e^-65536 or less of all, ends in an error: for all data alike, so that it tells nothing of them."""

LEAST = 1e-24
"""Of a variance: quadratures leave errors of about that where there is next to no noise."""

NODES = 2000
"""Of the midpoint rule for moments, whose integrands are rational in a cosine and periodic: errors fall geometrically."""


def tied_noise(
    sizes: Whole, *, above: float | None, below: float, rng: np.random.Generator | None = None
) -> tuple[Whole, Whole]:
    """Noise of each group's count (scale `above`; None: it is known) and of its `sizes` parts (scale `below`), in their order.

    Rejection: all but one of a group, the loudest, are drawn independently, by OpenDP. That one is what they leave, d, and the
    group is kept with probability e^(-|d|/scale), the law of d without its constant. With `rng`: simulated noise, never for a
    release.
    """
    check_tied(sizes, above=above, below=below)
    sums = above is not None and above > below  # the loudest is the count itself
    ends = np.cumsum(sizes)
    last = ends - 1
    parents, parts = np.zeros(len(sizes), np.int64), np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
    left = np.arange(len(sizes))
    while len(left):
        count = sizes[left]
        first = np.cumsum(count) - count
        drawn = _laplace(int(count.sum()), below, rng)  # one more a group than is needed, where the last part is what is left
        whole = np.zeros(len(left), np.int64) if above is None or sums else _laplace(len(left), above, rng)
        if sums:
            whole = rest = np.add.reduceat(drawn, first)
        else:
            drawn[first + count - 1] = 0
            rest = whole - np.add.reduceat(drawn, first)
            drawn[first + count - 1] = rest
        kept = _geometric(len(left), above if sums and above is not None else below, rng) >= np.abs(rest)
        parents[left[kept]] = whole[kept]
        places = np.repeat(last[left[kept]] + 1 - count[kept], count[kept]) + _within(count[kept])
        parts[places] = drawn[np.repeat(kept, count)]
        left = left[~kept]
    return parents, parts


def check_tied(sizes: Whole, *, above: float | None, below: float) -> None:
    """Refuse what could leave the integers, or has moments that are not worked out."""
    if sizes.max(initial=0) > MOST_PARTS or max(above or 0.0, below) > LARGEST_SCALE:
        raise ModelError(f"noise is tied in groups of at most {MOST_PARTS:,} counts, of scales up to {LARGEST_SCALE:.0f}.")
    if above is not None and not 1.0 / MOST_APART <= above / below <= MOST_APART:
        raise ModelError(f"scales of tied noise differ by a factor of at most {MOST_APART:,.0f}.")


def _within(count: Whole) -> Whole:
    """0, .., count - 1 of each."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)


def _laplace(size: int, scale: float, rng: np.random.Generator | None) -> Whole:
    """P(k) proportional to e^(-|k|/scale)."""
    if rng is not None:
        return simulated_noise((size,), noise="laplace", scale=scale, rng=rng)
    drawn = noisy_integers(np.zeros(size, np.int64), noise="laplace", scale=scale)
    if size and max(int(drawn.max()), -int(drawn.min())) > LARGEST:
        raise ModelError("the noise is too large for integers.", hint="Use a larger epsilon")
    return drawn


def _geometric(size: int, scale: float, rng: np.random.Generator | None) -> Whole:
    """P(k) proportional to e^(-k/scale), k = 0, 1, ..: Laplace noise, drawn again while it is negative."""
    drawn = _laplace(size, scale, rng)
    while (negative := np.flatnonzero(drawn < 0)).size:
        drawn[negative] = _laplace(len(negative), scale, rng)
    return drawn


def kept_share(k: float, *, above: float | None, below: float) -> float:
    """About how many of the drawn groups of k parts are kept."""
    loudest = below if above is None else max(above, below)
    variance = 2.0 * (k - 1.0) * below**2 if above is None else 2.0 * (k * below**2 + above**2 - loudest**2)
    return min(1.0, 2.0 * loudest / math.sqrt(2.0 * math.pi * variance)) if variance > 0.0 else 1.0


class TiedVariances(NamedTuple):
    """Variances of independent noise on a count and on its k parts whose least-squares estimates err as tied noise does.

    Of that noise, given that it sums up, the covariances are those of tied noise: 1/(variance of the count's tied noise) =
    1/above + 1/(k below). `above` is infinite where tied noise says less of the sum than so noisy parts do, and 0 where the
    count is known.
    """

    above: float
    below: float


@lru_cache(maxsize=4096)
def tied_variances(k: float, *, above: float | None, below: float) -> TiedVariances:
    """The same as `tied_noise` draws, k >= 1 of them (a mean number need not be whole).

    With f the characteristic function of Laplace noise, the variance of the count is that of its own noise under the weight
    that the parts' sum has there: minus the integral of f_a'' f_b^k over that of f_a f_b^k; and so for a part.

    >>> [round(each, 3) for each in tied_variances(16.0, above=6.0, below=6.0)]
    [65.819, 65.819]
    """
    density, own, part = _integrals(k, above, below)
    whole, each = max(own / density, LEAST), max(part / density, LEAST)
    if k <= 1.0:
        return TiedVariances(2.0 * whole, 2.0 * whole) if above is not None else TiedVariances(0.0, 0.0)
    if above is None:
        return TiedVariances(0.0, each * k / (k - 1.0))
    spread = max(each - whole / k**2, LEAST) * k / (k - 1.0)  # of parts about their mean
    precision = 1.0 / whole - 1.0 / (k * spread)
    return TiedVariances(1.0 / precision if precision > 0.0 else math.inf, spread)


def _integrals(k: float, above: float | None, below: float) -> tuple[float, float, float]:
    """Of f_a f_b^k, of -f_a'' f_b^k and of -f_a f_b'' f_b^(k - 1), over angles from 0 to pi; f_a = 1 and f_a'' = 0 if known.

    f(t) = 1/(1 + s sin^2(t/2)) with s = 1/sinh^2(1/(2 scale)). With tan(t/2) = tan(u)/sqrt(s) a large s does no harm. A common
    factor is left out.
    """
    u = (np.arange(NODES) + 0.5) * (0.5 * math.pi / NODES)

    def factor(scale: float) -> float:
        return 1.0 / math.sinh(0.5 / scale) ** 2 if scale > 1e-2 else 0.0

    s = max(math.sqrt(factor(below) * factor(below if above is None else above)), 1.0)  # between the widths of both
    tangent = np.tan(u) / math.sqrt(s)
    angle, change = 2.0 * np.arctan(tangent), 2.0 * (1.0 + np.tan(u) ** 2) / (math.sqrt(s) * (1.0 + tangent**2))

    def law(scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rate = factor(scale)
        inverse = 1.0 + rate * np.sin(0.5 * angle) ** 2
        first, second = 0.5 * rate * np.sin(angle), 0.5 * rate * np.cos(angle)
        return 1.0 / inverse, second / inverse**2 - 2.0 * first**2 / inverse**3

    one, bent = law(below)
    own, own_bent = (np.ones_like(one), np.zeros_like(one)) if above is None else law(above)
    rest = change * one ** (k - 1.0)
    return float(own @ (rest * one)), float(own_bent @ (rest * one)), float(own @ (bent * rest))
