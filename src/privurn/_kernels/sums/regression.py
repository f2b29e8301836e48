"""Linear regression with normal covariates: y = (1, x) beta + s e, x = mu + A v, with e and v standard normal.

p         number of covariates; q = p + 1 `columns` of a record (x_1, ..., x_p, y)
theta     beta_0..beta_p, s = tau^-1/2, mu_1..mu_p, then A row by row (lower triangular, A A' = Phi^-1)
centre, scale  middle of each column's bounds, and the reciprocal of half their width
rounder   1.5 * 2^(52 - r): adding and subtracting it rounds to multiples of 2^-r; 0 where nothing is rounded
t         products z_j z_k for 0 <= j <= k <= q without (0, 0), row by row, squares (j = k) less `offset`; z_0 = 1,
          z = columns mapped to [-1, 1], clamped and rounded
m, V, a, b     beta | tau ~ N(m, (tau V)^-1), tau ~ Gamma(a / 2, rate b / 2)
location, S    mu ~ N(location, S^-1)
d, R, K   Phi ~ Wishart(d, R^-1), with R = K K'
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from privurn._kernels.sums.moments import BLOCK, moment, update_lane_sums, update_moments
from privurn._kernels.sums.protocol import provide_from
from privurn._kernels.sums.triangles import update_backward, update_cholesky, update_forward


class Regression(NamedTuple):
    """Bounds and priors."""

    columns: int
    centre: np.ndarray
    scale: np.ndarray
    rounder: float
    offset: float
    m: np.ndarray
    V: np.ndarray
    a: float
    b: float
    location: np.ndarray
    S: np.ndarray
    d: float
    R: np.ndarray
    K: np.ndarray


def update_record(model, theta, rng, row):
    p = model.columns - 1
    start = 2 * p + 2
    y = theta[0]
    for j in range(p):
        row[j] = rng.standard_normal()
    for j in range(p - 1, -1, -1):  # downwards: x_j needs v_0, ..., v_j only
        base = start + j * (j + 1) // 2
        value = theta[p + 2 + j]
        for k in range(j + 1):
            value += theta[base + k] * row[k]
        row[j] = value
        y += theta[1 + j] * value
    row[p] = y + theta[p + 1] * rng.standard_normal()


def update_statistic(model, row, out):
    q = model.columns
    centre, scale, rounder, offset = model.centre, model.scale, model.rounder, model.offset
    for j in range(q):
        z = (row[j] - centre[j]) * scale[j]
        z = -1.0 if z < -1.0 else (1.0 if z > 1.0 else z)
        z = (z + rounder) - rounder
        out[j] = z
        at = q + j
        for k in range(j):  # products with the columns before, in the places of their rows
            out[at] = z * out[k]
            at += q - 1 - k
        out[at] = z * z - offset


def update_total(model, theta, standard, n, out):
    p = model.columns - 1
    q = p + 1
    start = 2 * p + 2
    columns = np.zeros((q, BLOCK))
    raw = np.zeros((q, BLOCK))
    sums = np.zeros((len(out), BLOCK))
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for j in range(p):
            for i in range(size):
                raw[j, i] = theta[p + 2 + j]
            for k in range(j + 1):
                a = theta[start + j * (j + 1) // 2 + k]
                for i in range(size):
                    raw[j, i] += a * standard[first + i, k]
        s = theta[p + 1]
        for i in range(size):
            raw[p, i] = theta[0] + s * standard[first + i, p]
        for j in range(p):
            b = theta[1 + j]
            for i in range(size):
                raw[p, i] += b * raw[j, i]
        for j in range(q):
            centre, scale = model.centre[j], model.scale[j]
            for i in range(size):
                z = min(1.0, max(-1.0, (raw[j, i] - centre) * scale))
                columns[j, i] = (z + model.rounder) - model.rounder
            for i in range(size, BLOCK):
                columns[j, i] = 0.0
        update_moments(columns, q, sums)
    update_lane_sums(sums, out)
    at = q
    for j in range(q):
        out[at] -= n * model.offset
        at += q - j


@register_jitable
def update_summary(model, records, n, out):
    """Number of records, then sums of columns and of their products, without clamping."""
    q = model.columns
    columns = np.zeros((q, BLOCK))
    sums = np.zeros((len(out) - 1, BLOCK))
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for j in range(q):
            for i in range(size):
                columns[j, i] = records[first + i, j]
            for i in range(size, BLOCK):
                columns[j, i] = 0.0
        update_moments(columns, q, sums)
    out[0] = n
    update_lane_sums(sums, out[1:])


def update_parameters(model, theta, records, n, rng):
    p = model.columns - 1
    q = p + 1
    summary = np.zeros(1 + q + q * (q + 1) // 2)
    update_summary(model, records, n, summary)
    # beta and tau: normal and gamma with X'X + V
    precision = np.empty((q, q))
    middle = np.empty(q)
    rate = model.b + moment(summary, q, q, q)
    for j in range(q):
        pull = 0.0
        for k in range(q):
            precision[j, k] = model.V[j, k] + moment(summary, q, j, k)
            pull += model.V[j, k] * model.m[k]
        rate += model.m[j] * pull
        middle[j] = pull + moment(summary, q, j, q)
    update_cholesky(precision, q)
    update_forward(precision, q, middle)
    for j in range(q):
        rate -= middle[j] * middle[j]
    rate = max(rate, model.b * 1e-12)  # rounding only: the exact value is at least b
    tau = rng.standard_gamma(0.5 * (model.a + n)) / (0.5 * rate)
    s = 1.0 / math.sqrt(tau)
    for j in range(q):
        middle[j] += s * rng.standard_normal()
    update_backward(precision, q, middle)
    for j in range(q):
        theta[j] = middle[j]
    theta[q] = s
    if p > 0:
        update_covariates(model, theta, summary, n, rng)


@register_jitable
def update_covariates(model, theta, summary, n, rng):
    """Phi given mu is Wishart (Bartlett's factor), mu given Phi normal."""
    p = model.columns - 1
    q = p + 1
    start = 2 * p + 2
    mu = theta[p + 2 : start]
    scatter = np.empty((p, p))
    for j in range(p):
        for k in range(p):
            scatter[j, k] = (
                model.R[j, k]
                + moment(summary, q, 1 + j, 1 + k)
                - mu[j] * moment(summary, q, 0, 1 + k)
                - mu[k] * moment(summary, q, 0, 1 + j)
                + n * mu[j] * mu[k]
            )
    update_cholesky(scatter, p)
    # Phi = C'^-1 B'B C^-1 with C the factor of the scatter and B lower: A = C B^-1
    bartlett = np.zeros((p, p))
    for j in range(p):
        bartlett[j, j] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (model.d + n - (p - 1 - j))))
        for k in range(j):
            bartlett[j, k] = rng.standard_normal()
    row = np.empty(p)
    for j in range(p):
        for k in range(p):
            row[k] = scatter[j, k] if k <= j else 0.0
        update_backward(bartlett, p, row)  # row of C B^-1: solve B' a = c
        for k in range(j + 1):
            theta[start + j * (j + 1) // 2 + k] = row[k]
    inverse = np.zeros((p, p))  # A^-1, column by column
    for k in range(p):
        for j in range(k, p):
            value = 1.0 if j == k else 0.0
            for i in range(k, j):
                value -= theta[start + j * (j + 1) // 2 + i] * inverse[i, k]
            inverse[j, k] = value / theta[start + j * (j + 1) // 2 + j]
    precision = np.empty((p, p))
    middle = np.zeros(p)
    for j in range(p):
        for k in range(p):
            phi = 0.0
            for i in range(max(j, k), p):
                phi += inverse[i, j] * inverse[i, k]
            precision[j, k] = model.S[j, k] + n * phi
            middle[j] += model.S[j, k] * model.location[k] + phi * moment(summary, q, 0, 1 + k)
    update_cholesky(precision, p)
    update_forward(precision, p, middle)
    for j in range(p):
        middle[j] += rng.standard_normal()
    update_backward(precision, p, middle)
    for j in range(p):
        mu[j] = middle[j]


def update_free(model, theta, free):
    p = model.columns - 1
    start = 2 * p + 2
    for j in range(len(theta)):
        free[j] = theta[j]
    free[p + 1] = math.log(theta[p + 1])
    for j in range(p):
        at = start + j * (j + 1) // 2 + j
        free[at] = math.log(theta[at])


def update_from_free(model, free, theta):
    p = model.columns - 1
    start = 2 * p + 2
    for j in range(len(theta)):
        theta[j] = free[j]
    theta[p + 1] = math.exp(free[p + 1])
    for j in range(p):
        at = start + j * (j + 1) // 2 + j
        theta[at] = math.exp(free[at])


def log_prior(model, theta):
    p = model.columns - 1
    q = p + 1
    start = 2 * p + 2
    log_s = math.log(theta[q])
    tau = 1.0 / (theta[q] * theta[q])
    square = 0.0
    for j in range(q):
        for k in range(q):
            square += (theta[j] - model.m[j]) * model.V[j, k] * (theta[k] - model.m[k])
    # beta | tau, tau, and d tau / d log s = 2 tau
    found = -(q + model.a) * log_s - 0.5 * tau * (square + model.b)
    square = 0.0
    for j in range(p):
        for k in range(p):
            square += (theta[q + 1 + j] - model.location[j]) * model.S[j, k] * (theta[q + 1 + k] - model.location[k])
    column = np.empty(p)
    for k in range(p):  # trace(R Phi) is the squared norm of A^-1 K
        for j in range(p):
            value = model.K[j, k] if j >= k else 0.0
            for i in range(j):
                value -= theta[start + j * (j + 1) // 2 + i] * column[i]
            column[j] = value / theta[start + j * (j + 1) // 2 + j]
            square += column[j] * column[j]
    found -= 0.5 * square
    for j in range(p):
        # |Phi| = prod a_jj^-2; d Phi / d (A A') = |A A'|^-(p + 1); d (A A') / d A = 2^p prod a_jj^(p - j); log a_jj
        power = -(model.d - p - 1.0) - 2.0 * (p + 1.0) + (p - j) + 1.0
        found += power * math.log(theta[start + j * (j + 1) // 2 + j])
    return found


def update_standard(model, theta, row, rng, u):
    p = model.columns - 1
    start = 2 * p + 2
    y = row[p] - theta[0]
    for j in range(p):
        base = start + j * (j + 1) // 2
        value = row[j] - theta[p + 2 + j]
        for k in range(j):
            value -= theta[base + k] * u[k]
        u[j] = value / theta[base + j]
        y -= theta[1 + j] * row[j]
    u[p] = y / theta[p + 1]


def update_restored(model, theta, u, row):
    p = model.columns - 1
    start = 2 * p + 2
    y = theta[0]
    for j in range(p):
        base = start + j * (j + 1) // 2
        value = theta[p + 2 + j]
        for k in range(j + 1):
            value += theta[base + k] * u[k]
        row[j] = value
        y += theta[1 + j] * value
    row[p] = y + theta[p + 1] * u[p]


def log_ancillary(model, theta, standard, n):
    return 0.0


def update_maximum(model, summary, theta):
    p = model.columns - 1
    q = p + 1
    n = summary[0]
    gram = np.empty((q, q))
    middle = np.empty(q)
    for j in range(q):
        for k in range(q):
            gram[j, k] = moment(summary, q, j, k)
        middle[j] = moment(summary, q, j, q)
    if not update_cholesky(gram, q):
        return  # fewer records than columns: stay
    update_forward(gram, q, middle)
    rest = moment(summary, q, q, q)
    for j in range(q):
        rest -= middle[j] * middle[j]
    update_backward(gram, q, middle)
    scatter = np.empty((max(p, 1), max(p, 1)))
    for j in range(p):
        for k in range(p):
            scatter[j, k] = moment(summary, q, 1 + j, 1 + k) / n - summary[1 + j] * summary[1 + k] / (n * n)
    if not (rest > 0.0 and update_cholesky(scatter, p)):
        return
    for j in range(q):
        theta[j] = middle[j]
    theta[q] = math.sqrt(rest / n)
    for j in range(p):
        theta[q + 1 + j] = summary[1 + j] / n
        for k in range(j + 1):
            theta[2 * p + 2 + j * (j + 1) // 2 + k] = scatter[j, k]


provide_from(Regression, globals())
