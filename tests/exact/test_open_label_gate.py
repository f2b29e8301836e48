"""Labels that nobody listed, through the public call at its defaults, against enumeration of the urn that made them.

Three records x, then four released ones: a twice and b once, which are values of x, and one label that the urn made up. All
ways in which x shares values are listed with the urn's probabilities; given x a share is a Beta variable.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from mixture_states import partitions
from scipy import stats
from test_inference_gate import assert_agreement

import privurn
from privurn import Run
from privurn.inference.counts.released import Observed
from privurn.mechanisms.pitman_yor import PitmanYor

N = 3
URNS = {"dirichlet-process": (Fraction(3, 2), Fraction(0)), "pitman-yor": (Fraction(1), Fraction(1, 2))}
POINTS = (0.1, 0.3, 0.5, 0.7)


def sequence_weight(sizes, seen, strength, discount):
    """Of further draws: each a place of `sizes`, or the next one where it is new."""
    sizes, weight = list(sizes), 1.0
    for place in seen:
        total = strength + sum(sizes)
        if place == len(sizes):
            weight *= (strength + discount * len(sizes)) / total
            sizes.append(1)
        else:
            weight *= (sizes[place] - discount) / total
            sizes[place] += 1
    return weight


def listed(strength, discount):
    """Weight, and the numbers of a and b in x, of all that x may be."""
    for x in partitions(N):
        sizes = np.bincount(x)
        for a, b in permutations(range(len(sizes)), 2):
            released = sequence_weight(sizes, (a, a, b, len(sizes)), strength, discount)
            yield sequence_weight((), x, strength, discount) * released, sizes[a], sizes[b]


def law(of, strength, discount):
    """Probabilities that a share is at most each point; `of` the numbers of a and b, their records and distinct values."""
    found, total = np.zeros(len(POINTS)), 0.0
    for weight, a, b in listed(strength, discount):
        records, values = of(a, b)
        first = records - values * discount
        found += weight * stats.beta.cdf(POINTS, first, strength + N - first)
        total += weight
    return found / total


@pytest.mark.parametrize("name", URNS)
def test_shares_of_open_labels_and_of_what_was_not_released(name):
    strength, discount = URNS[name]
    urn = PitmanYor(n=N, records=4, strength=strength, discount=discount)
    labels = ("a", "b", "new_1")
    observed = Observed(mechanism=urn, domain=None, counts=np.array([2, 1, 1]), labels=labels, column="x")
    found = privurn.infer(observed, ask=["P(x=a)", "P(x=b)", "discovery"], run=Run(seed=1)).draws
    given = float(strength), float(discount)
    assert_agreement(found["P(x=a)"], POINTS, law(lambda a, b: (a, 1), *given))
    assert_agreement(found["P(x=b)"], POINTS, law(lambda a, b: (b, 1), *given))
    assert_agreement(1.0 - found["discovery"], POINTS, law(lambda a, b: (a + b, 2), *given))
    with pytest.raises(AssertionError):  # a fifth of a record more
        assert_agreement(found["P(x=a)"], POINTS, law(lambda a, b: (a + 0.2, 1), *given))
