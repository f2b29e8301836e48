"""Gaussian kernel behind noise on clamped values: exact draws of the latent value, and its marginal law.

symbol  meaning
m, s    mean and deviation of the kernel
b       scale of Laplace noise;   t = s^2 / b
c       deviation of Gaussian noise
L, U    bounds; z is moved into them for Laplace noise, which changes q(z | .) by a factor only
"""

import math

from privurn._kernels.dispatch import implement, inner
from privurn._kernels.mixtures.channels import Gaussian, Laplace, clamp
from privurn._kernels.mixtures.gaussian import GaussianKernel
from privurn._kernels.mixtures.latent import log_marginal, update_latent, update_marginals
from privurn._kernels.mixtures.normal import log_interval, log_phi, log_sum, phi, quick_phi, truncated_normal


@inner
def normal_laplace(z, m, s, b, rng):
    """Draw from the density proportional to N(y; m, s^2) exp(-|z - y| / b): exact, a few tries whatever the numbers.

    By symmetry m <= z. Left of z the target is N(m + t, s^2); to the right it has an extra factor exp(-2 (y - z) / b). That
    law is the envelope unless its mean is far beyond z; there the target's mode is z and two exponentials are.
    """
    side = 1.0 if z >= m else -1.0
    d = abs(z - m)
    over = (s * s / b - d) / s  # deviations by which the tilted mean lies beyond z
    if over < 0.6:  # acceptance at least Phi(-0.6) = 0.27
        while True:
            x = over * s + s * rng.standard_normal()  # beyond z by x
            if x <= 0.0 or rng.random() < math.exp(-2.0 * x / b):
                return z + side * x
    far, near = 1.0 / b + d / (s * s), over / s  # rates beyond z and towards m
    while True:  # acceptance at least 0.47: the smaller rate is at least 0.6 / s
        x = rng.standard_exponential()
        x = x / far if rng.random() * (far + near) < near else -x / near
        if rng.random() < math.exp(-0.5 * (x / s) * (x / s)):
            return z + side * x


@inner
def laplace_pieces(z, m, s, b, lower, upper):
    """Log masses of N(y; m, s^2) exp(-|z - clamp(y)| / b) on y < L, L < y < z, z < y < U, U < y, for z within the bounds."""
    t = s / b
    below = log_phi((lower - m) / s) - (z - lower) / b
    above = log_phi((m - upper) / s) - (upper - z) / b
    left = log_interval((lower - m) / s - t, (z - m) / s - t) + 0.5 * t * t - (z - m) / b
    right = log_interval((z - m) / s + t, (upper - m) / s + t) + 0.5 * t * t + (z - m) / b
    return below, left, right, above


@inner
def clamped_normal_laplace(z, m, s, b, lower, upper, rng):
    """Draw from the density proportional to N(y; m, s^2) exp(-|z - clamp(y)| / b), z within the bounds."""
    # Mass outside the bounds is at most `outside`; the whole is at least exp(-E|z - y| / b) by Jensen's inequality.
    p, q = max((m - lower) / s, 0.0), max((upper - m) / s, 0.0)
    whole = -math.sqrt((z - m) * (z - m) + s * s) / b
    outside = 0.0
    if lower > -math.inf:
        outside += math.exp(min(-0.5 * p * p - (z - lower) / b - whole, 0.0))
    if upper < math.inf:
        outside += math.exp(min(-0.5 * q * q - (upper - z) / b - whole, 0.0))
    u = rng.random()
    inside = outside < 0.25 and u >= outside
    if not inside:
        below, left, right, above = laplace_pieces(z, m, s, b, lower, upper)
        top = max(below, above, left, right)
        e_below, e_above = math.exp(below - top), math.exp(above - top)
        e_left, e_right = math.exp(left - top), math.exp(right - top)
        u *= e_below + e_above + e_left + e_right
        if u < e_below:
            return m + s * truncated_normal(-math.inf, (lower - m) / s, rng)
        u -= e_below
        if u < e_above:
            return m + s * truncated_normal((upper - m) / s, math.inf, rng)
        u -= e_above
        if outside >= 0.25:
            t = s / b
            if u < e_left:
                y = m + s * (t + truncated_normal((lower - m) / s - t, (z - m) / s - t, rng))
            else:
                y = m + s * (truncated_normal((z - m) / s + t, (upper - m) / s + t, rng) - t)
            return clamp(y, lower, upper)
    while True:  # the law without clamping, given that it falls inside: at least three tries in four do
        y = normal_laplace(z, m, s, b, rng)
        if lower <= y <= upper:
            return y


@implement(update_latent, Laplace, GaussianKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    m, s = atoms[h, 0], atoms[h, 1]
    seen = clamp(z, channel.lower, channel.upper)
    y[i] = clamped_normal_laplace(seen, m, s, channel.scale, channel.lower, channel.upper, rng)
    return 1.0


@implement(log_marginal, Laplace, GaussianKernel)
def _(channel, kernel, z, atoms, h):
    m, s, b = atoms[h, 0], atoms[h, 1], channel.scale
    if channel.lower == -math.inf and channel.upper == math.inf:
        x, t = (z - m) / s, s / b
        return 0.5 * t * t + log_sum(log_phi(x - t) - t * x, log_phi(-x - t) + t * x)
    seen = clamp(z, channel.lower, channel.upper)
    below, left, right, above = laplace_pieces(seen, m, s, b, channel.lower, channel.upper)
    return log_sum(log_sum(below, left), log_sum(right, above))


@implement(update_marginals, Laplace, GaussianKernel)
def _(channel, kernel, z, atoms, h, masses, row):
    """The pieces without logarithms: e^(..) Phi(..) of each, what depends on the atom alone worked out once.

    No piece is larger than 1 and their sum is at least e^(-(U - L) / b), so nothing is lost by rounding; where a factor could
    overflow, logarithms are taken after all. What lies on the other side of z than most of the atom is below e^(-x^2 / 2), and
    left out where that is less than 1e-12 of the sum.
    """
    m, s, b, lower, upper = atoms[h, 0], atoms[h, 1], channel.scale, channel.lower, channel.upper
    t = s / b
    low, high = (lower - m) / s, (upper - m) / s
    whole = math.exp(0.5 * min(t * t, 400.0))
    from_below = phi(low) * math.exp(min((lower - m) / b, 300.0)) - whole * phi(low - t)
    from_above = phi(-high) * math.exp(min((m - upper) / b, 300.0)) - whole * phi(-high - t)
    far = 9.0 if upper - lower < 13.0 * b else 40.0
    for i in range(z.shape[0]):
        d = clamp(z[i], lower, upper) - m
        if t > 20.0 or not abs(d) < 300.0 * b:
            masses[row, i] = math.exp(log_marginal(channel, kernel, z[i], atoms, h))
        else:
            x, e = d / s, math.exp(d / b)
            left, right = from_below, from_above
            if x > -far:
                left += whole * quick_phi(x - t)
            if x < far:
                right += whole * quick_phi(-x - t)
            masses[row, i] = left / e + right * e


@inner
def gaussian_pieces(z, m, s, c, lower, upper):
    """Log masses of N(y; m, s^2) exp(-(z - clamp(y))^2 / (2 c^2)) on y < L, L < y < U, U < y; then mean, deviation between."""
    v = s * s + c * c
    mean, deviation = m + s * s * (z - m) / v, s * c / math.sqrt(v)
    below = log_phi((lower - m) / s)
    if lower > -math.inf:
        below -= 0.5 * ((z - lower) / c) ** 2
    above = log_phi((m - upper) / s)
    if upper < math.inf:
        above -= 0.5 * ((z - upper) / c) ** 2
    between = log_interval((lower - mean) / deviation, (upper - mean) / deviation)
    between += math.log(c) - 0.5 * math.log(v) - 0.5 * (z - m) * (z - m) / v
    return below, between, above, mean, deviation


@implement(update_latent, Gaussian, GaussianKernel)
def _(channel, kernel, z, y, i, atoms, h, rng):
    m, s, c = atoms[h, 0], atoms[h, 1], channel.deviation
    lower, upper = channel.lower, channel.upper
    if lower == -math.inf and upper == math.inf:
        v = s * s + c * c
        y[i] = m + s * s * (z - m) / v + s * c / math.sqrt(v) * rng.standard_normal()
        return 1.0
    below, between, above, mean, deviation = gaussian_pieces(z, m, s, c, lower, upper)
    top = max(between, below, above)
    e_below, e_above = math.exp(below - top), math.exp(above - top)
    u = rng.random() * (e_below + e_above + math.exp(between - top))
    if u < e_below:
        y[i] = m + s * truncated_normal(-math.inf, (lower - m) / s, rng)
    elif u < e_below + e_above:
        y[i] = m + s * truncated_normal((upper - m) / s, math.inf, rng)
    else:
        x = truncated_normal((lower - mean) / deviation, (upper - mean) / deviation, rng)
        y[i] = clamp(mean + deviation * x, lower, upper)
    return 1.0


@implement(log_marginal, Gaussian, GaussianKernel)
def _(channel, kernel, z, atoms, h):
    m, s, c = atoms[h, 0], atoms[h, 1], channel.deviation
    if channel.lower == -math.inf and channel.upper == math.inf:
        v = s * s + c * c
        return -0.5 * math.log(v) - 0.5 * (z - m) * (z - m) / v
    below, between, above, _, _ = gaussian_pieces(z, m, s, c, channel.lower, channel.upper)
    return log_sum(between, log_sum(below, above))


@implement(update_marginals, Gaussian, GaussianKernel)
def _(channel, kernel, z, atoms, h, masses, row):
    """The pieces without logarithms, what depends on the atom alone worked out once."""
    m, s, c, lower, upper = atoms[h, 0], atoms[h, 1], channel.deviation, channel.lower, channel.upper
    v = s * s + c * c
    share, deviation = s * s / v, s * c / math.sqrt(v)
    root = (1.0 if lower == -math.inf and upper == math.inf else c) / math.sqrt(v)  # a factor, as in log_marginal
    below, above = phi((lower - m) / s), phi((m - upper) / s)
    for i in range(z.shape[0]):
        d = z[i] - m
        low, high = (lower - m - share * d) / deviation, (upper - m - share * d) / deviation
        between = quick_phi(-low) - quick_phi(-high) if low > 0.0 else quick_phi(high) - quick_phi(low)
        total = root * math.exp(-0.5 * d * d / v) * between
        if below > 0.0:
            total += below * math.exp(-0.5 * ((z[i] - lower) / c) ** 2)
        if above > 0.0:
            total += above * math.exp(-0.5 * ((z[i] - upper) / c) ** 2)
        masses[row, i] = total
