"""One component of a split's prior on a lattice of counts.

Counts are i h, j h and (i + j) h with one spacing h for both children. Wide laws have product form, A(i) B(j)/N(i + j), which
makes sums over splits convolutions; narrow ones are bands around the mean, listed sum by sum.

symbol  meaning
a, r    concentration (inf: exactly r), and the base measure's share of the left child
h       spacing of the lattice, a power of two
form    BETA: beta-binomial of i + j lattice steps; EXACT: binomial; BAND: the law of mean r (i + j) with the right variance
tilt    a factor e^(-tilt i) that A, B and N share; it cancels, and keeps the numbers small
"""

import math
from typing import NamedTuple

from privurn._kernels._compile import compiled

BETA, EXACT, BAND = 0, 1, 2

NARROWEST = 0.25
"""Variance, in squared steps, of the narrowest law on a lattice whose mean is right wherever it lies between two points."""

WIDER = 1.5
"""A beta-binomial of lattice steps is wider than a binomial of them by at least this factor; narrower laws are bands."""

REACH = 4.5
"""Standard deviations to the ends of a band."""

LISTED = 32
"""Bands with fewer points are normalised by their sum, longer ones by the integral, which is the same up to 1e-5."""


class Component(NamedTuple):
    """A component at a split: its form, concentration on the lattice, r, the tilt; concentration a and spacing h of a band."""

    form: int
    size: float
    r: float
    tilt: float
    a: float
    h: float


@compiled
def relative_variance(a, count):
    """Variance of the left child's share over r (1 - r): (a + c)/(c (a + 1))."""
    return 1.0 / count if a == math.inf else (a + count) / (count * (a + 1.0))


@compiled
def component_at(a, r, h, upper, middle):
    """The component at a split whose total is hardly above `upper`; `middle` of the sums' lattice, in steps.

    With h = 1 the law is exact. Else it has the same variance, at the upper total.
    """
    if h == 1:
        if a == math.inf:
            return Component(EXACT, 0.0, r, -math.log(middle + 1.0), a, 1.0)
        return Component(BETA, a, r, math.log((middle + a) / (middle + 1.0)), a, 1.0)
    steps = max(upper / h, 2.0)
    spread = relative_variance(a, steps * h)
    if spread * steps > WIDER:
        size = steps * (1.0 - spread) / (spread * steps - 1.0)
        return Component(BETA, size, r, math.log((middle + size) / (middle + 1.0)), a, float(h))
    return Component(BAND, 0.0, r, 0.0, a, float(h))


@compiled
def side_log(i, component, left):
    """Tilted logarithm of A (left) or B at step i."""
    r = component.r if left else 1.0 - component.r
    if component.form == EXACT:
        return i * (math.log(r) - component.tilt) - math.lgamma(i + 1.0)
    alpha = component.size * r
    return math.lgamma(i + alpha) - math.lgamma(alpha) - math.lgamma(i + 1.0) - component.tilt * i


@compiled
def side_mode(component, left):
    """Where A or B is largest, as a broken number of steps; 0 where it is not single-peaked and changes little."""
    r = component.r if left else 1.0 - component.r
    if component.form == EXACT:
        return r * math.exp(-component.tilt)
    alpha, more = component.size * r, math.expm1(component.tilt)
    return (alpha - 1.0) / more - 1.0 if alpha > 1.0 and more > 0.0 else 0.0


@compiled
def update_side(out, lo, component, left):
    """A (left) or B at the steps lo, lo + 1, ..., over its value at the mode or near it, whose logarithm is returned."""
    size = out.shape[0]
    top = min(max(int(side_mode(component, left)) - lo, 0), size - 1)
    scale = math.exp(-component.tilt)
    r = component.r if left else 1.0 - component.r
    slope, alpha = (scale, component.size * r * scale) if component.form == BETA else (0.0, r * scale)
    out[top] = 1.0
    for x in range(top + 1, size):
        i = lo + x - 1
        out[x] = out[x - 1] * ((i * slope + alpha) / (i + 1.0))
    for x in range(top - 1, -1, -1):
        i = lo + x
        out[x] = out[x + 1] * ((i + 1.0) / (i * slope + alpha))
    return side_log(lo + top, component, left)


@compiled
def update_inverse_whole(out, lo, component):
    """1/N at the sums lo, lo + 1, ..., over its value in the middle, the logarithm of whose inverse is returned."""
    size = out.shape[0]
    middle = size // 2
    at = lo + middle
    scale = math.exp(component.tilt)
    slope, alpha = (1.0, component.size) if component.form == BETA else (0.0, 1.0)
    out[middle] = 1.0
    for x in range(middle + 1, size):
        i = lo + x - 1
        out[x] = out[x - 1] * ((i + 1.0) * scale / (i * slope + alpha))
    for x in range(middle - 1, -1, -1):
        i = lo + x
        out[x] = out[x + 1] * ((i * slope + alpha) / ((i + 1.0) * scale))
    reference = -component.tilt * at - math.lgamma(at + 1.0)
    return reference + math.lgamma(at + alpha) - math.lgamma(alpha) if component.form == BETA else reference


@compiled
def update_band(law, total, begin, end, component):
    """The law of the left child's steps given their sum, a Gaussian on the lattice, at begin, ..., end - 1.

    Returns the part of that range in which it is not negligible; `law` holds it from its first point on.
    """
    if total == 0:
        law[0] = 1.0
        return max(begin, 0), min(end, 1)
    r = component.r
    variance = max(total * total * r * (1.0 - r) * relative_variance(component.a, total * component.h), NARROWEST)
    reach = REACH * math.sqrt(variance)
    first, last = math.ceil(r * total - reach), math.floor(r * total + reach)
    change = math.exp(-1.0 / variance)
    whole = math.sqrt(2.0 * math.pi * variance)
    if first < 0 or last > total or last - first < LISTED:
        first, last = max(first, 0), min(last, total)
        away = r * total - first
        value, ratio = math.exp(-0.5 * away * away / variance), math.exp((away - 0.5) / variance)
        whole = 0.0
        for _ in range(first, last + 1):
            whole += value
            value *= ratio
            ratio *= change
    begin, end = max(begin, first), min(end, last + 1)
    away = r * total - begin
    value, ratio = math.exp(-0.5 * away * away / variance) / whole, math.exp((away - 0.5) / variance)
    for x in range(end - begin):
        law[x] = value
        value *= ratio
        ratio *= change
    return begin, end
