"""The worth of the flat prior: its density given counts against fractions of gamma functions, its draws against quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from privurn._kernels.counts.concentrations import log_shared_prior, new_total

COUNTS = np.array([7, 0, 2, 0, 1])
ALPHA = 1e-6


def density(log_total, counts):
    """Dirichlet-multinomial probability of the counts, up to the multinomial coefficient."""
    total, k = np.exp(log_total), len(counts)
    a = total / k
    return np.exp(gammaln(total) - gammaln(total + counts.sum()) + np.sum(gammaln(a + counts) - gammaln(a)))


def test_log_density():
    for total in (1.0, 2.2, 5.0):
        assert log_shared_prior(COUNTS, total) == pytest.approx(np.log(density(np.log(total), COUNTS)), abs=1e-12)


@pytest.mark.parametrize("counts", [COUNTS, np.array([40, 0, 0, 0, 0]), np.array([9, 8, 8, 7, 8])], ids=["some", "one", "even"])
def test_draws_have_their_law(counts):
    rng, total, found = np.random.default_rng(3), 1.5, []
    for _ in range(4000):
        for _ in range(6):
            total = new_total(counts, total, rng)
        found.append(np.log(total))
    whole = integrate.quad(density, 0.0, np.log(5), args=(counts,))[0]
    grid = np.linspace(0.0, np.log(5), 400)
    pieces = np.array([integrate.quad(density, 0.0, x, args=(counts,))[0] / whole for x in grid])
    assert stats.kstest(found, lambda x: np.interp(x, grid, pieces)).pvalue > ALPHA
    other = np.array([8, 8, 8, 8, 8]) if counts[1] == 0 else np.array([40, 0, 0, 0, 0])  # a twin: other counts, another law
    spoilt = np.array([integrate.quad(density, 0.0, x, args=(other,))[0] for x in grid])
    assert stats.kstest(found, lambda x: np.interp(x, grid, spoilt / spoilt[-1])).pvalue < ALPHA


def test_one_cell_has_one_record():
    assert new_total(np.array([5]), 1.0, np.random.default_rng(0)) == 1.0
