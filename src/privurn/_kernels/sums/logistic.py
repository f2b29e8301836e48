"""Logistic regression with normal covariates: y = 1 where e < (1, x) beta and 0 elsewhere, x = mu + A v.

e, v      standard logistic and standard normal: what is left of a record where the parameters are taken out
p         number of covariates; p + 1 `columns` of a record (x_1, ..., x_p, y)
theta     beta_0..beta_p, mu_1..mu_p, then A row by row (lower triangular, A A' = Phi^-1): that of `regression` without s
wide      the same with s = 1 put in, for what is shared with `regression`: at s = 1 its beta is N(m, V^-1)
t         w = 2 y - 1; z_j where y = 1; z_j where y = 0; z_j z_k for j <= k, row by row, squares less `offset`
Other symbols as in `regression`; a and b are not used.
"""

import math

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.sums import regression
from privurn._kernels.sums.moments import BLOCK, moment, update_lane_sums, update_moments
from privurn._kernels.sums.noise import accepted
from privurn._kernels.sums.protocol import provide
from privurn._kernels.sums.triangles import update_backward, update_cholesky, update_forward

_linear_prior = register_jitable(regression.log_prior)
update_covariates = regression.update_covariates
_update_summary = regression.update_summary

MOST_FACTORS = 500
"""Numbers from 1 to 2 that are multiplied before a logarithm is taken: 2^500 is still a float."""


class Logistic(regression.Regression):
    """Bounds and priors, laid out as for linear regression."""


@register_jitable
def _update_wide(p, theta, wide):
    for j in range(p + 1):
        wide[j] = theta[j]
    wide[p + 1] = 1.0
    for j in range(p + 1, len(theta)):
        wide[j + 1] = theta[j]


@register_jitable
def _update_line(model, theta, u, row):
    """Covariates from standard normals, which may be in the same place; returns (1, x) beta."""
    p = model.columns - 1
    start = 2 * p + 1
    line = theta[0]
    for j in range(p - 1, -1, -1):  # downwards: x_j needs v_0, ..., v_j only
        base = start + j * (j + 1) // 2
        value = theta[p + 1 + j]
        for k in range(j + 1):
            value += theta[base + k] * u[k]
        row[j] = value
        line += theta[1 + j] * value
    return line


@register_jitable
def _below(line):
    """Probability that a standard logistic number is below `line`."""
    tail = math.exp(-abs(line))
    return (1.0 if line > 0.0 else tail) / (1.0 + tail)


def update_record(model, theta, rng, row):
    p = model.columns - 1
    for j in range(p):
        row[j] = rng.standard_normal()
    line = _update_line(model, theta, row, row)
    row[p] = 1.0 if rng.random() < _below(line) else 0.0


def update_statistic(model, row, out):
    p = model.columns - 1
    one = row[p] == 1.0
    out[0] = 1.0 if one else -1.0
    z = out[1 + p :]  # the sums where y = 0; rearranged below
    for j in range(p):
        value = (row[j] - model.centre[j]) * model.scale[j]
        value = -1.0 if value < -1.0 else (1.0 if value > 1.0 else value)
        z[j] = (value + model.rounder) - model.rounder
    at = p
    for j in range(p):
        for k in range(j, p):
            z[at] = z[j] * z[k] - (model.offset if j == k else 0.0)
            at += 1
    for j in range(p):
        out[1 + j] = z[j] if one else 0.0
        z[j] = 0.0 if one else z[j]


def update_total(model, theta, standard, n, out):
    p = model.columns - 1
    q = p + 1
    start = 2 * p + 1
    columns = np.zeros((q, BLOCK))
    raw, line = np.zeros(BLOCK), np.zeros(BLOCK)
    sums = np.zeros((q + q * (q + 1) // 2, BLOCK))
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for i in range(size):
            line[i] = theta[0]
        for j in range(p - 1, -1, -1):  # the order of `_update_line`, so that rounding is the same
            for i in range(size):
                raw[i] = theta[p + 1 + j]
            for k in range(j + 1):
                a = theta[start + j * (j + 1) // 2 + k]
                for i in range(size):
                    raw[i] += a * standard[first + i, k]
            b, centre, scale = theta[1 + j], model.centre[j], model.scale[j]
            for i in range(size):
                line[i] += b * raw[i]
                z = min(1.0, max(-1.0, (raw[i] - centre) * scale))
                columns[j, i] = (z + model.rounder) - model.rounder
            for i in range(size, BLOCK):
                columns[j, i] = 0.0
        for i in range(size):
            columns[p, i] = 1.0 if standard[first + i, p] < line[i] else 0.0
        for i in range(size, BLOCK):
            columns[p, i] = 0.0
        update_moments(columns, q, sums)
    summary = np.zeros(1 + len(sums))
    summary[0] = n
    update_lane_sums(sums, summary[1:])
    out[0] = 2.0 * summary[1 + p] - n
    at = 1 + 2 * p
    for j in range(p):
        out[1 + j] = moment(summary, q, 1 + j, 1 + p)
        out[1 + p + j] = summary[1 + j] - out[1 + j]
        for k in range(j, p):
            out[at] = moment(summary, q, 1 + j, 1 + k) - (n * model.offset if j == k else 0.0)
            at += 1


@register_jitable
def _slope(model, beta, records, n, slope, curve):
    """Log density of beta given the records, up to a constant, with its gradient and minus its matrix of second derivatives."""
    q = model.columns
    found = 0.0
    for j in range(q):
        slope[j] = 0.0
        for k in range(q):
            pull = model.V[j, k] * (beta[k] - model.m[k])
            slope[j] -= pull
            found -= 0.5 * (beta[j] - model.m[j]) * pull
            curve[j, k] = model.V[j, k]
    product = 1.0
    for i in range(n):
        line = beta[0]
        for j in range(1, q):
            line += beta[j] * records[i, j - 1]
        tail = math.exp(-abs(line))
        share = 1.0 / (1.0 + tail)
        product *= 1.0 + tail
        if i % MOST_FACTORS == 0:
            found -= math.log(product)
            product = 1.0
        y = records[i, q - 1]
        if (line > 0.0) != (y == 1.0):
            found -= abs(line)
        rest = y - (share if line > 0.0 else tail * share)
        weight = tail * share * share
        slope[0] += rest
        curve[0, 0] += weight
        for j in range(1, q):
            x = records[i, j - 1]
            slope[j] += rest * x
            curve[j, 0] += weight * x
            for k in range(1, j + 1):
                curve[j, k] += weight * x * records[i, k - 1]
    return found - math.log(product)


@register_jitable
def _log_proposal(curve, q, at, middle):
    """Log density, up to a constant, of the normal law with this middle and precision (given as its factor)."""
    found = 0.0
    for j in range(q):
        value = 0.0
        for k in range(j, q):
            value += curve[k, j] * (at[k] - middle[k])
        found += math.log(curve[j, j]) - 0.5 * value * value
    return found


@register_jitable
def _update_newton(curve, q, slope, beta, middle):
    """Where one Newton step from beta leads; the matrix becomes its factor. False where it has none."""
    if not update_cholesky(curve, q):
        return False
    for j in range(q):
        middle[j] = slope[j]
    update_forward(curve, q, middle)
    update_backward(curve, q, middle)
    for j in range(q):
        middle[j] += beta[j]
    return True


@register_jitable
def update_coefficients(model, theta, records, n, rng):
    """A Metropolis-Hastings step whose proposal is normal around one Newton step (Gamerman 1997); whether it was accepted.

    The proposal depends on where it starts, so the way back is weighed with the Newton step from where it ends: two passes
    over the records, and almost always accepted where there are many.
    """
    q = model.columns
    slope, middle, back = np.empty(q), np.empty(q), np.empty(q)
    curve, other_curve = np.empty((q, q)), np.empty((q, q))
    beta, other = theta[:q].copy(), np.empty(q)
    level = _slope(model, beta, records, n, slope, curve)
    if not _update_newton(curve, q, slope, beta, middle):
        return False
    for j in range(q):
        other[j] = rng.standard_normal()
    update_backward(curve, q, other)
    for j in range(q):
        other[j] += middle[j]
    proposed = _slope(model, other, records, n, slope, other_curve)
    if not _update_newton(other_curve, q, slope, other, back):
        return False
    log_ratio = proposed - level + _log_proposal(other_curve, q, beta, back) - _log_proposal(curve, q, other, middle)
    if not accepted(rng, log_ratio):
        return False
    for j in range(q):
        theta[j] = other[j]
    return True


def update_parameters(model, theta, records, n, rng):
    p = model.columns - 1
    q = p + 1
    update_coefficients(model, theta, records, n, rng)
    summary = np.zeros(1 + q + q * (q + 1) // 2)
    _update_summary(model, records, n, summary)
    wide = np.empty(len(theta) + 1)
    _update_wide(p, theta, wide)
    update_covariates(model, wide, summary, n, rng)
    for j in range(q, len(theta)):
        theta[j] = wide[j + 1]


def update_free(model, theta, free):
    p = model.columns - 1
    for j in range(len(theta)):
        free[j] = theta[j]
    for j in range(p):
        at = 2 * p + 1 + j * (j + 1) // 2 + j
        free[at] = math.log(theta[at])


def update_from_free(model, free, theta):
    p = model.columns - 1
    for j in range(len(theta)):
        theta[j] = free[j]
    for j in range(p):
        at = 2 * p + 1 + j * (j + 1) // 2 + j
        theta[at] = math.exp(free[at])


def log_prior(model, theta):
    wide = np.empty(len(theta) + 1)
    _update_wide(model.columns - 1, theta, wide)
    return _linear_prior(model, wide)


@register_jitable
def _above(line, r):
    """A standard logistic number above `line`, where r is uniform on (0, 1]: precise in both tails."""
    rest = math.log1p(math.exp(-abs(line))) + max(line, 0.0)  # minus the log probability of what is above
    inner = (1.0 - r) + r * _below(line)
    return max(line, math.log(inner) - math.log(r) + rest) if inner > 0.0 else line


def update_standard(model, theta, row, rng, u):
    p = model.columns - 1
    start = 2 * p + 1
    line = theta[0]
    for j in range(p):
        base = start + j * (j + 1) // 2
        value = row[j] - theta[p + 1 + j]
        for k in range(j):
            value -= theta[base + k] * u[k]
        u[j] = value / theta[base + j]
        line += theta[1 + j] * row[j]
    r = 1.0 - rng.random()
    u[p] = -_above(-line, r) if row[p] == 1.0 else _above(line, r)


def update_restored(model, theta, u, row):
    p = model.columns - 1
    line = _update_line(model, theta, u, row)
    row[p] = 1.0 if u[p] < line else 0.0


def log_ancillary(model, theta, standard, n):
    return 0.0


provide(
    Logistic,
    update_record=update_record,
    update_statistic=update_statistic,
    update_parameters=update_parameters,
    update_free=update_free,
    update_from_free=update_from_free,
    log_prior=log_prior,
    update_standard=update_standard,
    update_restored=update_restored,
    update_total=update_total,
    log_ancillary=log_ancillary,
)
