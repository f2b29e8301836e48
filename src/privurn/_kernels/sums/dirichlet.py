"""Compositions x ~ Dirichlet(alpha), kept as logarithms so that tiny parts are not lost.

theta     alpha_1, ..., alpha_d, each Gamma(shape, rate)
t         max(log x_j, floor), floor = log of the public lower bound, rounded (see `regression`)
standard  z_1..z_d, e_1..e_d: x_j is proportional to g_j = G_j exp(-e_j / alpha_j), e_j exponential, G_j ~ Gamma(alpha_j + 1),
          and G_j = c (1 + h z_j)^3 with c = alpha_j + 2/3, h = (9 c)^-1/2 (Marsaglia and Tsang): z_j is nearly normal whatever
          alpha is. Nearly is not exactly: `log_ancillary` is what is left, so that the move is exact.
Given x, sum of the g_j is Gamma(sum alpha), and given g_j, G_j - g_j is a standard exponential.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.arrays import update_filled
from privurn._kernels.sums.balance import update_balanced  # noqa: F401  attached below, with the functions here
from privurn._kernels.sums.protocol import provide_from


class Dirichlet(NamedTuple):
    """Prior and public bound."""

    columns: int
    floor: float
    rounder: float
    shape: float
    rate: float


@register_jitable
def _update_normalised(row, d):
    largest = row[0]
    for j in range(1, d):
        largest = max(largest, row[j])
    total = 0.0
    for j in range(d):
        total += math.exp(row[j] - largest)
    shift = largest + math.log(total)
    for j in range(d):
        row[j] -= shift


def update_record(model, theta, rng, row):
    d = model.columns
    for j in range(d):
        row[j] = math.log(rng.standard_gamma(theta[j] + 1.0)) - rng.standard_exponential() / theta[j]
    _update_normalised(row, d)


@register_jitable
def update_statistic(model, row, out):
    for j in range(model.columns):
        out[j] = (max(row[j], model.floor) + model.rounder) - model.rounder


@register_jitable
def update_summary(model, records, n, out):
    """Number of records, then the sums of the logarithms."""
    update_filled(out, 0.0)
    out[0] = n
    for i in range(n):
        for j in range(model.columns):
            out[1 + j] += records[i, j]


@register_jitable
def _level(model, theta, summary, j, whole):
    """What of the log posterior of log alpha depends on alpha_j; `whole` is the sum of all."""
    alpha = theta[j]
    found = summary[0] * (math.lgamma(whole) - math.lgamma(alpha)) + alpha * summary[1 + j]
    return found + model.shape * math.log(alpha) - model.rate * alpha


@register_jitable
def _sliced(model, theta, summary, j, width, rng):
    """New log alpha_j by a slice (Neal 2003): stepping out, then shrinking."""
    rest = 0.0
    for k in range(model.columns):
        if k != j:
            rest += theta[k]
    now = math.log(theta[j])
    height = _level(model, theta, summary, j, rest + theta[j]) - rng.standard_exponential()
    lower = now - width * rng.random()
    upper = lower + width
    for end in range(2):
        while True:
            at = lower if end == 0 else upper
            theta[j] = math.exp(at)
            if not (-600.0 < at < 600.0) or _level(model, theta, summary, j, rest + theta[j]) <= height:
                break
            if end == 0:
                lower -= width
            else:
                upper += width
    while True:
        at = lower + (upper - lower) * rng.random()
        theta[j] = math.exp(at)
        if -600.0 < at < 600.0 and _level(model, theta, summary, j, rest + theta[j]) > height:
            return
        if at < now:
            lower = at
        else:
            upper = at


def update_parameters(model, theta, records, n, rng):
    summary = np.empty(1 + model.columns)
    update_summary(model, records, n, summary)
    width = 3.0 / math.sqrt(1.0 + n)
    for _ in range(3):
        for j in range(model.columns):
            _sliced(model, theta, summary, j, width, rng)


def update_free(model, theta, free):
    for j in range(model.columns):
        free[j] = math.log(theta[j])


def update_from_free(model, free, theta):
    for j in range(model.columns):
        theta[j] = math.exp(max(-600.0, min(free[j], 600.0)))


def log_prior(model, theta):
    found = 0.0
    for j in range(model.columns):
        found += model.shape * math.log(theta[j]) - model.rate * theta[j]
    return found


def update_standard(model, theta, row, rng, u):
    d = model.columns
    whole = 0.0
    for j in range(d):
        whole += theta[j]
    shift = math.log(rng.standard_gamma(whole + 1.0)) - rng.standard_exponential() / whole
    for j in range(d):
        log_g = row[j] + shift
        big = math.exp(log_g) + rng.standard_exponential()
        c = theta[j] + 2.0 / 3.0
        u[j] = ((big / c) ** (1.0 / 3.0) - 1.0) * math.sqrt(9.0 * c)
        u[d + j] = theta[j] * (math.log(big) - log_g)


@register_jitable
def update_restored(model, theta, u, row):
    d = model.columns
    for j in range(d):
        c = theta[j] + 2.0 / 3.0
        root = 1.0 + u[j] / math.sqrt(9.0 * c)
        # out of reach for this alpha: the density of u is zero, so `log_ancillary` refuses and the value does not matter
        row[j] = math.log(c) + 3.0 * math.log(root) - u[d + j] / theta[j] if root > 0.0 else -1e300
    _update_normalised(row, d)


def update_total(model, theta, standard, n, out):
    d = model.columns
    row, one = np.empty(d), np.empty(d)
    update_filled(out, 0.0)
    for i in range(n):
        update_restored(model, theta, standard[i], row)
        update_statistic(model, row, one)
        for j in range(d):
            out[j] += one[j]


def update_linearised(model, theta, standard, n, out, slopes):
    """Per log alpha_j, log g_j moves by alpha_j (1/c - 3/2c (1 - 1/root) + e_j / alpha_j^2), log x_k by [j = k] - x_j of it."""
    d = model.columns
    bound = math.exp(model.floor)
    weight, speed, product = np.empty(d), np.empty(d), np.ones(d)
    update_filled(out, 0.0)
    for j in range(len(slopes)):
        update_filled(slopes[j], 0.0)
    for i in range(n):
        total = 0.0
        for j in range(d):
            c = theta[j] + 2.0 / 3.0
            root = 1.0 + standard[i, j] / math.sqrt(9.0 * c)
            if not root > 0.0:
                update_filled(out, math.nan)
                return
            e = standard[i, d + j] / theta[j]
            weight[j] = c * root * root * root * math.exp(-e)
            speed[j] = theta[j] / c * (1.5 / root - 0.5) + e
            total += weight[j]
        for j in range(d):
            weight[j] /= total
        for j in range(d):
            if weight[j] <= bound:
                out[j] += model.floor
                continue
            product[j] *= weight[j]
            if product[j] < 1e-100:  # logarithms are dear: one for many records
                out[j] += math.log(product[j])
                product[j] = 1.0
            slopes[j, j] += speed[j]
            for k in range(d):
                slopes[j, k] -= speed[k] * weight[k]
    for j in range(d):
        out[j] += math.log(product[j])


def log_ancillary(model, theta, standard, n):
    d = model.columns
    found = 0.0
    for j in range(d):
        c = theta[j] + 2.0 / 3.0
        h = 1.0 / math.sqrt(9.0 * c)
        logs, cubes = 0.0, 0.0
        for i in range(n):
            root = 1.0 + h * standard[i, j]
            if not root > 0.0:
                return -math.inf
            logs += math.log(root)
            cubes += root * root * root
        # density of Gamma(alpha + 1) at G = c root^3, times d G / d z = 3 c h root^2
        found += (3.0 * theta[j] + 2.0) * logs - c * cubes
        found += n * ((theta[j] + 1.0) * math.log(c) + math.log(h) - math.lgamma(theta[j] + 1.0))
    return found


@register_jitable
def _digamma(x):
    found = 0.0
    while x < 8.0:
        found -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    return found + math.log(x) - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y / 240.0)))


@register_jitable
def _trigamma(x):
    found = 0.0
    while x < 8.0:
        found += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return found + 1.0 / x + 0.5 * y + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0)))


def update_maximum(model, summary, theta):
    """One Newton step on log alpha, its matrix made diagonal plus rank one; halved until the likelihood does not fall."""
    d = model.columns
    whole = 0.0
    for j in range(d):
        whole += theta[j]
    n = summary[0]
    slope, curve, step = np.empty(d), np.empty(d), np.empty(d)
    top, bottom = 0.0, -1.0 / _trigamma(whole)
    before = n * math.lgamma(whole)
    for j in range(d):
        slope[j] = _digamma(whole) - _digamma(theta[j]) + summary[1 + j] / n
        curve[j] = _trigamma(theta[j])
        top += slope[j] / curve[j]
        bottom += 1.0 / curve[j]
        before += theta[j] * summary[1 + j] - n * math.lgamma(theta[j])
    for j in range(d):
        step[j] = (slope[j] - top / bottom) / curve[j]
    size = 1.0
    for _ in range(40):
        after, total = 0.0, 0.0
        fine = True
        for j in range(d):
            value = theta[j] + size * step[j]
            fine = fine and value > 0.1 * theta[j]
            if fine:
                total += value
                after += value * summary[1 + j] - n * math.lgamma(value)
        if fine and after + n * math.lgamma(total) >= before - 1e-9 * abs(before):
            for j in range(d):
                theta[j] += size * step[j]
            return
        size *= 0.5


provide_from(Dirichlet, globals())
