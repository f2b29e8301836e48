"""The density of released values near a point where it is known: its Taylor series, for Beta kernels behind Laplace noise.

With f the Beta density and below and above as in tilted_beta.py,  below' = f - rate below  and  above' = rate above - f,  and
f itself solves  y (1 - y) f' = (a - 1 - (a + b - 2) y) f:  coefficients about any point x follow one from another. `reach` is
so short that those of f, times its powers, are below u_j,

    (j + 1) u_(j+1) = (1/4 + j / 20) u_j + (1/10 + j / 400) u_(j-1),      u_0 = f(x),

and those of the two integrals fall likewise: ORDER terms leave out less than 1e-13 of the sum.
"""

import math

from privurn._kernels.dispatch import inner

ORDER = 18

NEAREST = 1e-12
"""Points nearer to the ends of the unit interval have no series: coefficients would be no floats."""


@inner
def reach(x, a, b, rate):
    """How far the series about x may be used."""
    end = 0.05 * min(x, 1.0 - x)
    within = x * (1.0 - x)
    if within < NEAREST:
        return 0.0
    slope, bend = abs(a - 1.0 - (a + b - 2.0) * x), abs(a + b - 2.0)
    if end * slope > 0.25 * within:  # slopes of log f that are steep
        end = 0.25 * within / slope
    if end * end * bend > 0.1 * within:
        end = math.sqrt(0.1 * within / bend)
    return min(end, 0.25 / rate)


@inner
def update_series(terms, x, edge, below, above, a, b, rate):
    """Fill terms with the coefficients of below + above about x; `edge` is y^a (1 - y)^b / B(a, b) there."""
    within, bend = max(x * (1.0 - x), NEAREST), a + b - 2.0
    slope, turn = a - 1.0 - bend * x, 1.0 - 2.0 * x
    density, before = edge / within, 0.0
    terms[0] = below + above
    for j in range(terms.shape[0] - 1):
        below, above = (density - rate * below) / (j + 1.0), (rate * above - density) / (j + 1.0)
        terms[j + 1] = below + above
        after = ((slope - turn * j) * density + (j - 1.0 - bend) * before) / (within * (j + 1.0))
        density, before = after, density


@inner
def series_at(terms, step):
    """Its value at x + step."""
    total = 0.0
    for j in range(terms.shape[0] - 1, -1, -1):
        total = terms[j] + step * total
    return total
