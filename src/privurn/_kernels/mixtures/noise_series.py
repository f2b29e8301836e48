"""Gaussian noise against a law that is known at nodes: at one z, and at many nearby by one Taylor series.

With c the deviation of the noise, v = (y - y0) / c  and  z = z0 + s c,

    e^(-(z - y)^2 / (2 c^2))  =  e^(-(z0 - y)^2 / (2 c^2))  e^(-s^2 / 2 + s (y0 - z0) / c)  e^(s v),

so that the sum over nodes is a power series in s, whose coefficients are moments of v / k! at z0. About their own mean y0 they
fall quickly where the values that z0 leaves possible lie within some deviations of each other; where they do not, the first
coefficient that is left out says how far the series may be used.
"""

import math

import numpy as np

from privurn._kernels.dispatch import inner
from privurn._kernels.mixtures.beta_nodes import HIGH, LOG_MASS, LOW, POINTS, fill
from privurn._kernels.mixtures.beta_series import series_at
from privurn._kernels.mixtures.channels import clamp

ORDER = 26
"""Coefficients: an even number, so that the first that is left out is a mean of what cannot be negative."""

ERROR = 1e-14
"""The first term that is left out is at most so much of the sum."""

REACH = 1.0
"""Deviations of the noise up to where a series may be used."""

FEWEST = 4
"""Values of z from which on a series costs less."""

LOST = 30.0
"""Panels with less than e^-LOST of the fullest one are left out."""

SMALLEST = 1e-280
"""Sums below have no series: it would lose digits."""


@inner
def update_nearby(law, z, half, nearest, reach, room):
    """Nodes, and masses times e^(half (nearest - (z - y)^2)), of panels that count within `reach` deviations of z.

    They fill the first places of rows 0 and 1 of `room`, row 2 is for bounds. Returns how many there are, and their sum.
    """
    panels, best = law.panels, 0
    for p in range(panels.shape[0]):
        apart = max(panels[p, LOW] - z, z - panels[p, HIGH], 0.0)
        room[2, p] = panels[p, LOG_MASS] + half * (nearest - apart * apart)
        if room[2, p] > room[2, best]:
            best = p
    used, total, least, tilt = 0, 0.0, -math.inf, reach * math.sqrt(2.0 * half)
    for each in range(-1, panels.shape[0]):  # the fullest first
        p = best if each < 0 else each
        if each >= 0:
            away = max(panels[p, HIGH] - panels[best, LOW], panels[best, HIGH] - panels[p, LOW])
            if p == best or room[2, p] + tilt * away < least:
                continue
        fill(law, p)
        for j in range(POINTS.shape[0]):
            apart = z - law.nodes[p, j]
            room[0, used], room[1, used] = law.nodes[p, j], law.masses[p, j] * math.exp(half * (nearest - apart * apart))
            total += room[1, used]
            used += 1
        if each < 0:
            least = math.log(total) - LOST if total > 0.0 else -math.inf
    return used, total


@inner
def update_moments(terms, used, total, width, room):
    """Fill terms with the coefficients about the mean of the nodes; returns the mean, and how far the series may be used."""
    mean, rest = 0.0, 0.0
    for p in range(used):
        mean += room[0, p] * room[1, p]
    mean /= total
    for k in range(ORDER):
        terms[k] = 0.0
    for p in range(used):
        v, term = (room[0, p] - mean) / width, room[1, p]
        for k in range(ORDER):
            terms[k] += term
            term *= v / (k + 1.0)
        rest += term
    return mean, (REACH if rest <= ERROR * total else REACH * (ERROR * total / rest) ** (1.0 / ORDER))


@inner
def update_behind_noise(law, z, low, high, width, masses):
    """Fill masses with the integral of e^(((z - nearest)^2 - (z - y)^2) / (2 width^2)) at each z, `nearest` within the bounds.

    z need not be in order, but costs least where it is.
    """
    half, size = 0.5 / (width * width), law.panels.shape[0]
    room, terms = np.empty((3, max(size, 1) * POINTS.shape[0])), np.empty(ORDER)
    at = 0
    while at < z.shape[0]:
        first, last, end = z[at], z[at], at + 1
        while end < z.shape[0] and max(last, z[end]) - min(first, z[end]) <= 2.0 * REACH * width:
            first, last, end = min(first, z[end]), max(last, z[end]), end + 1
        middle, mean, reach, total = 0.5 * (first + last), 0.0, -1.0, 0.0
        nearest = (middle - clamp(middle, low, high)) ** 2
        if size > 0 and end - at >= FEWEST:
            used, total = update_nearby(law, middle, half, nearest, REACH, room)
            if total > SMALLEST:
                mean, reach = update_moments(terms, used, total, width, room)
        for i in range(at, end):
            s, own = (z[i] - middle) / width, (z[i] - clamp(z[i], low, high)) ** 2
            if abs(s) <= reach:
                masses[i] = math.exp(half * (own - nearest) - 0.5 * s * s + s * (mean - middle) / width) * series_at(terms, s)
            else:
                masses[i] = update_nearby(law, z[i], half, own, 0.0, room)[1] if size > 0 else 0.0
        at = end
