"""Bernoulli and Poisson records, one number each.

Bernoulli   theta = (p,), p ~ Beta(a, b); t(x) = x; standardised: u uniform, x = [u < p]
Poisson     theta = (rate,), rate ~ Gamma(a, rate b); t(x) = min(x, upper); standardised: u uniform, x = quantile of u
"""

import math
from typing import NamedTuple

from numba.extending import register_jitable

from privurn._kernels.sums.protocol import provide

LARGEST_RATE = 500.0
"""Quantiles are summed from zero; above this rate the first term would underflow and the move is not offered."""


class Bernoulli(NamedTuple):
    """Prior of the probability."""

    columns: int
    a: float
    b: float


class Poisson(NamedTuple):
    """Prior of the rate, and the public bound."""

    columns: int
    a: float
    b: float
    upper: float


@register_jitable
def _sum(records, n):
    total = 0.0
    for i in range(n):
        total += records[i, 0]
    return total


def bernoulli_record(model, theta, rng, row):
    row[0] = 1.0 if rng.random() < theta[0] else 0.0


def bernoulli_statistic(model, row, out):
    out[0] = row[0]


def bernoulli_parameters(model, theta, records, n, rng):
    ones = _sum(records, n)
    first = rng.standard_gamma(model.a + ones)
    second = rng.standard_gamma(model.b + n - ones)
    theta[0] = min(max(first / (first + second), 1e-300), 1.0 - 1e-16)


def bernoulli_free(model, theta, free):
    free[0] = math.log(theta[0]) - math.log1p(-theta[0])


def bernoulli_from_free(model, free, theta):
    theta[0] = 1.0 / (1.0 + math.exp(-free[0])) if free[0] > -700.0 else 0.0


def bernoulli_log_prior(model, theta):
    if not 0.0 < theta[0] < 1.0:
        return -math.inf
    return model.a * math.log(theta[0]) + model.b * math.log1p(-theta[0])


def bernoulli_standard(model, theta, row, rng, u):
    u[0] = theta[0] * rng.random() if row[0] == 1.0 else theta[0] + (1.0 - theta[0]) * rng.random()


def bernoulli_restored(model, theta, u, row):
    row[0] = 1.0 if u[0] < theta[0] else 0.0


def bernoulli_total(model, theta, standard, n, out):
    total = 0.0
    for i in range(n):
        total += 1.0 if standard[i, 0] < theta[0] else 0.0
    out[0] = total


def exactly_ancillary(model, theta, standard, n):
    return 0.0


def summary(model, records, n, out):
    out[0] = n
    out[1] = _sum(records, n)


def bernoulli_maximum(model, summary, theta):
    theta[0] = min(max(summary[1] / summary[0], 1e-12), 1.0 - 1e-12)


def poisson_record(model, theta, rng, row):
    row[0] = float(rng.poisson(theta[0]))


def poisson_statistic(model, row, out):
    out[0] = min(row[0], model.upper)


def poisson_parameters(model, theta, records, n, rng):
    theta[0] = max(rng.standard_gamma(model.a + _sum(records, n)) / (model.b + n), 1e-300)


def poisson_free(model, theta, free):
    free[0] = math.log(theta[0])


def poisson_from_free(model, free, theta):
    theta[0] = math.exp(min(free[0], 700.0))


def poisson_log_prior(model, theta):
    if not 0.0 < theta[0] < LARGEST_RATE:
        return -math.inf
    return model.a * math.log(theta[0]) - model.b * theta[0]


def poisson_standard(model, theta, row, rng, u):
    weight = math.exp(-theta[0])
    below = 0.0
    k = 0
    while k < row[0]:
        below += weight
        k += 1
        weight *= theta[0] / k
    u[0] = below + rng.random() * weight


@register_jitable
def _quantile(rate, u):
    weight = math.exp(-rate)
    below = weight
    k = 0
    while below <= u and weight > 0.0:
        k += 1
        weight *= rate / k
        below += weight
    return float(k)


def poisson_restored(model, theta, u, row):
    row[0] = _quantile(theta[0], u[0])


def poisson_total(model, theta, standard, n, out):
    total = 0.0
    for i in range(n):
        total += min(_quantile(theta[0], standard[i, 0]), model.upper)
    out[0] = total


def poisson_maximum(model, summary, theta):
    theta[0] = max(summary[1] / summary[0], 1e-12)


provide(
    Bernoulli,
    update_record=bernoulli_record,
    update_statistic=bernoulli_statistic,
    update_parameters=bernoulli_parameters,
    update_free=bernoulli_free,
    update_from_free=bernoulli_from_free,
    log_prior=bernoulli_log_prior,
    update_standard=bernoulli_standard,
    update_restored=bernoulli_restored,
    update_total=bernoulli_total,
    log_ancillary=exactly_ancillary,
    update_summary=summary,
    update_maximum=bernoulli_maximum,
)
provide(
    Poisson,
    update_record=poisson_record,
    update_statistic=poisson_statistic,
    update_parameters=poisson_parameters,
    update_free=poisson_free,
    update_from_free=poisson_from_free,
    log_prior=poisson_log_prior,
    update_standard=poisson_standard,
    update_restored=poisson_restored,
    update_total=poisson_total,
    log_ancillary=exactly_ancillary,
    update_summary=summary,
    update_maximum=poisson_maximum,
)
