"""Whole numbers below a bound: every one for as many of the numbers that they are made of."""

import numpy as np
import pytest

from privurn._kernels.whole_numbers import whole_below


class Scripted:
    """A generator whose next numbers of 62 bits are given, in halves."""

    def __init__(self, *numbers):
        self.halves = [half / 2.0**31 for number in numbers for half in divmod(number, 2**31)]

    def random(self):
        return self.halves.pop(0)


@pytest.mark.parametrize("bound", [2**23, 2**23 + 1, 10**9 + 7, 2**61 - 1, 2**61])
def test_large_bounds_are_exact(bound):
    """Numbers below the last multiple of the bound, from both ends, are taken as they are, and those beyond drawn again."""
    beyond = 2**62 - 2**62 % bound
    for number in (0, 1, bound - 1, bound, bound + 5, beyond - 1):
        assert whole_below.py_func(bound, Scripted(number)) == number % bound
    if beyond < 2**62:
        for number in (beyond, 2**62 - 1):
            rng = Scripted(number, 12)
            assert whole_below.py_func(bound, rng) == 12
            assert rng.halves == []


def test_compiled_code_draws_the_same():
    for bound in (1, 10, 2**23 - 1, 2**23, 3 * 2**59):
        one, other = np.random.default_rng(1), np.random.default_rng(1)
        found = [whole_below(bound, one) for _ in range(50)]
        assert found == [whole_below.py_func(bound, other) for _ in range(50)]
        assert 0 <= min(found) <= max(found) < bound
