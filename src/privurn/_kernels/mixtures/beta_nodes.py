"""A Beta law as masses at nodes, whatever its parameters, for Gaussian noise behind it: Gauss-Legendre on panels.

In x = logit y the law has the density  y^a (1 - y)^b / B(a, b),  whose logarithm is concave, so that where it has fallen far
below its peak is found from outside by Newton's method without ever stepping too far. Between, x = pi sinh t: tails that fall
like e^(a x), however slowly, have a width of about 1 there. Noise and law are both narrowest, in t, towards t = 0: panels are
laid from there outwards, each as long as its inner end allows.

By concavity a panel's ends bound its mass, so that only panels that may matter at some z are ever filled with nodes: for narrow
noise a few of all. The error is below 1e-10 of the integral (tests/exact/test_beta_pairs.py); masses are positive.
"""

import math
from typing import NamedTuple

import numpy as np

from privurn._kernels.dispatch import inner

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(16)

FALL = 36.0
"""Log density below that of the peak beyond which nothing counts, but for what the noise itself may vary by."""

MOST_CHANGE = 700.0
"""The noise need not count for more: sums would be no floats."""

FAR = 6.0
"""Deviations beyond the bounds up to where z is looked for: there noise falls like an exponential law towards the bound."""

LONGEST, WIDTHS = 1.6, 6.0
"""Of a panel: its length in t, and how many deviations of noise and law together it spans."""

NEWTON = 12
"""Steps; the interval is too wide after fewer, never too narrow."""

MIDDLE, HALF, LOW, HIGH, LOG_MASS, FILLED = range(6)
"""Of a panel: its middle and half its length in t, its ends in y, a bound on its log mass, and whether its nodes are known."""


class Law(NamedTuple):
    """A row of `panels` for each panel, and of `nodes` (values y) and `masses` where it is filled, for Beta(a, b)."""

    panels: np.ndarray
    nodes: np.ndarray
    masses: np.ndarray
    a: float
    b: float
    log_ab: float


@inner
def log_sides(x):
    """Log y and log(1 - y) where x = logit y."""
    rest = math.log1p(math.exp(-abs(x)))
    return min(x, 0.0) - rest, min(-x, 0.0) - rest


@inner
def log_law(x, a, b):
    """Log density of x, but for log B(a, b)."""
    below, above = log_sides(x)
    return a * below + b * above


@inner
def left_end(a, b, fall):
    """The x below the peak from which on, down, the log density is less than its peak's by `fall` and more."""
    peak = log_law(math.log(a / b), a, b)
    x = (peak - fall) / a  # the log density is below a x
    for _ in range(NEWTON):
        below, above = log_sides(x)
        gap = peak - fall - a * below - b * above
        if not gap > 1e-3 * fall:
            break
        x += gap / (a * math.exp(above) - b * math.exp(below))
    return x


@inner
def panel_length(t, a, b, width):
    """How long a panel may be whose inner end is t."""
    below, above = log_sides(math.pi * math.sinh(t))
    slope = math.exp(below + above)  # of y by x
    rate = math.pi * math.cosh(t) * math.sqrt((a + b + FAR / width) * slope + (slope / width) ** 2)
    return WIDTHS / max(rate, WIDTHS / LONGEST)


@inner
def update_panels(panels, first, last, a, b, log_ab, width):
    """Lay panels between first and last from t = 0 outwards, as far as there are rows; returns how many it takes."""
    start, peak, used = min(max(0.0, first), last), math.log(a / b), 0
    for side in (-1.0, 1.0):
        t, end = start, (last if side > 0.0 else first)
        while side * (end - t) > 0.0:
            after = t + side * min(panel_length(t, a, b, width), side * (end - t))
            if used < panels.shape[0]:
                low, high = math.pi * math.sinh(min(t, after)), math.pi * math.sinh(max(t, after))
                highest = log_law(min(max(peak, low), high), a, b)
                panels[used, MIDDLE], panels[used, HALF] = 0.5 * (t + after), 0.5 * abs(after - t)
                panels[used, LOW], panels[used, HIGH] = math.exp(log_sides(low)[0]), math.exp(log_sides(high)[0])
                panels[used, LOG_MASS], panels[used, FILLED] = highest - log_ab + math.log(high - low), 0.0
            used += 1
            t = after
    return used


@inner
def beta_law(a, b, log_ab, low, high, width):
    """Empty panels for noise of the deviation `width` on values within [low, high]; none where the law is all outside."""
    fall = FALL + min(0.5 / (width * width) + FAR / width, MOST_CHANGE)
    first, last = math.asinh(left_end(a, b, fall) / math.pi), -math.asinh(left_end(b, a, fall) / math.pi)
    if low > 0.0:
        first = max(first, math.asinh(math.log(low / (1.0 - low)) / math.pi))
    if high < 1.0:
        last = min(last, math.asinh(math.log(high / (1.0 - high)) / math.pi))
    size = update_panels(np.empty((0, 6)), first, last, a, b, log_ab, width) if first < last else 0
    panels = np.empty((size, 6))
    if size > 0:
        update_panels(panels, first, last, a, b, log_ab, width)
    return Law(panels, np.empty((size, POINTS.shape[0])), np.empty((size, POINTS.shape[0])), a, b, log_ab)


@inner
def fill(law, p):
    """Nodes of panel p and their masses, where it has none yet."""
    panel = law.panels[p]
    if panel[FILLED] == 0.0:
        for j in range(POINTS.shape[0]):
            t = panel[MIDDLE] + panel[HALF] * POINTS[j]
            below, above = log_sides(math.pi * math.sinh(t))
            law.nodes[p, j] = math.exp(below)
            slope = math.pi * math.cosh(t) * math.exp(law.a * below + law.b * above - law.log_ab)
            law.masses[p, j] = panel[HALF] * WEIGHTS[j] * slope
        panel[FILLED] = 1.0
