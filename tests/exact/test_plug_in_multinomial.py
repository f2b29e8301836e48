"""The plug-in multinomial's true cost against enumeration over every pair of neighbours and every output."""

import math
from itertools import product

import pytest
from papers.plug_in_multinomial import plug_in_multinomial_delta, plug_in_multinomial_epsilon
from urn_laws import neighbours

from privurn.errors import ModelError


def sequence_probability(drawn, counts, alpha):
    total = sum(counts) + alpha * len(counts)
    return math.prod((counts[cell] + alpha) / total for cell in drawn)


def enumerated_epsilon(n, cells, records, epsilon):
    alpha = records / math.expm1(epsilon)
    return max(
        math.log(sequence_probability(drawn, x, alpha) / sequence_probability(drawn, y, alpha))
        for x, y in neighbours(cells, n)
        for drawn in product(range(cells), repeat=records)
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("records", [1, 2, 3, 4])
def test_the_true_epsilon_is_the_enumerated_one_whatever_n_is(epsilon, cells, records):
    for n in (1, 2, 4):
        exact = enumerated_epsilon(n, cells, records, epsilon)
        assert plug_in_multinomial_epsilon(n, records=records, epsilon=epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("records", [1, 2, 4])
def test_the_true_delta_is_the_enumerated_one(records):
    for n, at in product((1, 3, 5), (0.0, 0.5, 1.0)):
        alpha = records / math.expm1(1.0)
        exact = max(
            math.fsum(
                max(0.0, sequence_probability(drawn, x, alpha) - math.exp(at) * sequence_probability(drawn, y, alpha))
                for drawn in product(range(2), repeat=records)
            )
            for x, y in neighbours(2, n)
        )
        got = plug_in_multinomial_delta(n, records=records, nominal=1.0, epsilon=at)
        assert got == pytest.approx(exact, rel=1e-10, abs=1e-15)


def test_one_record_is_drawn_right_and_more_never_are():
    assert plug_in_multinomial_epsilon(5, records=1, epsilon=1.0) == pytest.approx(1.0, rel=1e-14)
    true = [plug_in_multinomial_epsilon(5, records=k, epsilon=1.0) for k in (1, 2, 5, 100, 10**6)]
    assert true == sorted(true)
    assert true[-1] == pytest.approx(math.expm1(1.0), rel=1e-5)  # the limit: e^epsilon - 1


def test_the_published_figures():
    assert plug_in_multinomial_epsilon(2, records=2, epsilon=1.0) == pytest.approx(1.2402, abs=5e-5)
    assert plug_in_multinomial_epsilon(100, records=100, epsilon=1.0) >= 1.70
    assert plug_in_multinomial_epsilon(100, records=100, epsilon=2.0) >= 6.19
    assert plug_in_multinomial_delta(100, records=100, nominal=1.0, epsilon=1.0) < 1e-20


def test_nonsense_is_refused():
    with pytest.raises(ModelError):
        plug_in_multinomial_epsilon(0, records=2, epsilon=1.0)
