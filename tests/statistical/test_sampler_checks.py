"""The checks of samplers pass a right sampler and catch a wrong one: conjugate normal, known in closed form."""

import numpy as np
import pytest
from sampler_checks import random_rank, rank_p_value, same_law_p_value, sequential


def calibration(rng, *, scale):
    """theta ~ N(0, 1), y | theta ~ N(theta, 1): the posterior is N(y/2, 1/2); `scale` spoils its deviation."""

    def p_values(size):
        theta = rng.normal(size=size)
        data = theta + rng.normal(size=size)
        draws = 0.5 * data[:, None] + scale * np.sqrt(0.5) * rng.normal(size=(size, 19))
        return rank_p_value([random_rank(t, d, rng) for t, d in zip(theta, draws, strict=True)], n_ranks=20)

    return p_values


def joint(rng, *, scale):
    def p_values(size):
        before, after = rng.normal(size=size), rng.normal(size=size)
        data = after + rng.normal(size=size)
        moved = 0.5 * data + scale * np.sqrt(0.5) * rng.normal(size=size)
        return [same_law_p_value(before, moved), same_law_p_value(before**2, moved**2)]

    return p_values


@pytest.mark.parametrize("test", [calibration, joint])
def test_right_passes_and_wrong_is_caught(test):
    assert sequential(test(np.random.default_rng(1), scale=1.0), size=2000)
    assert not sequential(test(np.random.default_rng(2), scale=1.3), size=2000)


def test_few_distinct_values_are_compared_by_counts():
    rng = np.random.default_rng(3)
    assert same_law_p_value(rng.poisson(2, 5000), rng.poisson(2, 5000)) > 1e-6
    assert same_law_p_value(rng.poisson(2, 5000), rng.poisson(2.3, 5000)) < 1e-6
    assert same_law_p_value(np.ones(5), np.ones(9)) == 1.0
