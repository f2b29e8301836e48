"""Random integers are exact and honest about where they come from."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from privurn.errors import ModelError
from privurn.privacy.entropy import SeededEntropy, SystemEntropy

FALSE_ALARM = 1e-9
"""The operating system's words cannot be seeded."""


def chi_square_fails(counts, expected):
    statistic = ((counts - expected) ** 2 / expected).sum()
    return statistic > chi2.isf(FALSE_ALARM, len(counts) - 1)


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
def test_integers_are_uniform(entropy):
    draws = entropy.integers(7, size=700_000)
    counts = np.bincount(draws, minlength=7)
    assert not chi_square_fails(counts, 100_000.0), f"fails with probability {FALSE_ALARM} when uniform"


def test_the_uniformity_test_sees_a_biased_twin():
    words = SeededEntropy(1).words(70_000) % 16  # folding 16 values onto 7 favours the low ones
    assert chi_square_fails(np.bincount(words % 7, minlength=7), 10_000.0)


def test_ramps_have_their_own_bounds():
    draws = SystemEntropy().below_ramp(1, step=1, size=2000)
    assert (draws >= 0).all()
    assert (draws <= np.arange(2000)).all()
    wide = SystemEntropy().below_ramp(2**62 + 1, step=0, size=8000)  # nearly half of the words are redrawn
    assert (wide < 2**62 + 1).all()
    assert abs((wide < 2**61).mean() - 0.5) < 0.06  # ten deviations


def test_bounds_of_any_size():
    bound = 10**40
    draws = [SystemEntropy().below(bound) for _ in range(3000)]
    assert all(0 <= draw < bound for draw in draws)
    assert binom.ppf(FALSE_ALARM, 3000, 0.5) <= sum(draw < bound // 2 for draw in draws) <= binom.isf(FALSE_ALARM, 3000, 0.5)


@pytest.mark.parametrize(
    "draw",
    [
        lambda e: e.below(0),
        lambda e: e.below_ramp(0, step=1, size=3),
        lambda e: e.below_ramp(2**62, step=2**62, size=3),
    ],
)
def test_impossible_draws(draw):
    with pytest.raises(ModelError):
        draw(SystemEntropy())


def test_the_twins_are_different_types():
    assert SystemEntropy.private
    assert not SeededEntropy.private
    assert not isinstance(SeededEntropy(0), SystemEntropy)
    assert not isinstance(SystemEntropy(), SeededEntropy)
