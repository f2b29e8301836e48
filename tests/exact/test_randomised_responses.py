"""Several columns by randomised response: the joint law on every integer, its divergences, and what is claimed of them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privurn.domain import Categories, JointDomain
from privurn.errors import ModelError
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponsesChannel
from privurn.privacy.composition import compose
from privurn.tables import decode

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0)
SMALL = [
    ((2, Fraction(3)), (3, Fraction(5, 2))),
    ((3, Fraction(2)), (2, Fraction(2))),
    ((2, Fraction(9, 8)), (2, Fraction(4)), (3, Fraction(4))),
]


def made(parts):
    return RandomisedResponsesChannel(responses=tuple(RandomisedResponseChannel(categories=k, odds=w) for k, w in parts))


class EveryTuple:
    """All tuples of integers that the columns can draw, once each; `together` hands every column the same ones (a bug)."""

    def __init__(self, bounds, *, together=False):
        grids = np.meshgrid(*(np.arange(bound) for bound in bounds), indexing="ij")
        self.columns = [grid.ravel() for grid in grids]
        self.together, self.asked = together, 0

    def integers(self, bound, size):
        drawn = self.columns[0] % bound if self.together else self.columns[self.asked]
        self.asked += 1
        assert size == drawn.size
        assert drawn.max() < bound
        return drawn


def law(channel, code, *, together=False):
    bounds = [each.odds.numerator + (each.categories - 1) * each.odds.denominator for each in channel.responses]
    whole = math.prod(bounds)
    drawn = channel.privatise(np.full(whole, code), entropy=EveryTuple(bounds, together=together))
    return [Fraction(int(count), whole) for count in np.bincount(drawn, minlength=channel.categories)]


def hockey_stick(p, q, epsilon):
    return float(sum(max(0.0, float(a) - math.exp(epsilon) * float(b)) for a, b in zip(p, q, strict=True)))


@pytest.mark.parametrize("parts", SMALL, ids=str)
def test_the_joint_law_is_the_product_and_has_the_stated_profile(parts):
    channel = made(parts)
    laws = [law(channel, code) for code in range(channel.categories)]
    for code, probabilities in enumerate(laws):
        for other, found in enumerate(probabilities):
            rows = zip(channel.rows(code).tolist(), channel.rows(other).tolist(), channel.responses, strict=True)
            wanted = math.prod((each.odds if a == b else 1) / (each.odds + each.categories - 1) for a, b, each in rows)
            assert found == wanted
        densities = np.exp(channel.log_density(np.arange(channel.categories), code))
        np.testing.assert_allclose(densities, [float(p) for p in probabilities], rtol=1e-12)
    total = math.prod(each.odds for each in channel.responses)
    assert max(p / q for first, second in itertools.permutations(laws, 2) for p, q in zip(first, second, strict=True)) == total
    assert math.log(total) <= channel.profile.pure_epsilon <= math.log(total) * (1 + 1e-14)
    for epsilon in EPSILONS:
        worst = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(laws, 2))
        assert channel.profile.delta(epsilon) == pytest.approx(worst, rel=1e-10, abs=1e-15)
        assert channel.profile.delta(epsilon) >= worst - 1e-15
    orders = (1.5, 2.0, 8.0)  # zCDP: Renyi divergence of order a at most a rho
    for order, (p, q) in itertools.product(orders, itertools.permutations(laws, 2)):
        moment = math.fsum(float(a) ** order * float(b) ** (1 - order) for a, b in zip(p, q, strict=True))
        assert math.log(moment) / (order - 1) <= order * channel.rho * (1 + 1e-12)


def test_columns_that_share_their_randomness_would_be_seen():
    """Two columns drawn from one integer: the law is no product, and ratios leave the stated guarantee."""
    channel = made(((2, Fraction(3)), (2, Fraction(3))))
    shared = [law(channel, code, together=True) for code in range(4)]
    assert shared[0] != law(channel, 0)
    assert hockey_stick(shared[0], shared[1], 3.0) > channel.profile.delta(3.0)


@pytest.mark.parametrize("columns", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 30.0, 600.0])
def test_epsilon_is_split_equally_and_never_exceeded(columns, epsilon):
    channel = RandomisedResponsesChannel.calibrate(categories=(2, 5, 3, 2, 2, 4, 9)[:columns], epsilon=epsilon)
    assert len({each.odds for each in channel.responses}) == 1
    assert channel.profile.pure_epsilon <= epsilon
    assert channel.profile.pure_epsilon >= min(epsilon, 40.0) * (1 - 1e-5)


def test_the_exact_profile_is_below_the_general_composition_and_close_to_it():
    channel = RandomisedResponsesChannel.calibrate(categories=(2, 5, 3), epsilon=3.0)
    general = compose([each.profile for each in channel.responses])
    for epsilon in EPSILONS[:-1]:
        assert channel.profile.delta(epsilon) <= general.delta(epsilon) * (1 + 1e-9)
        assert channel.profile.delta(epsilon) == pytest.approx(general.delta(epsilon), rel=1e-2)
    assert channel.rho <= general.zcdp * (1 + 1e-12)


def test_joint_codes_are_those_of_a_joint_domain():
    channel = made(((3, Fraction(2)), (2, Fraction(2))))
    domain = JointDomain({"a": Categories(["x", "y"], outside="other"), "b": Categories(["u"], outside="other")})
    table = decode(np.arange(6), domain)
    names = [["x", "y", "other"], ["u", "other"]]
    rows = channel.rows(np.arange(6))
    assert [[names[j][code] for j, code in enumerate(row)] for row in rows] == [
        list(pair) for pair in zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)
    ]
    assert channel.joint(rows).tolist() == list(range(6))
    assert channel.rows([-3, math.nan, 99]).tolist() == [[0, 0], [0, 0], [2, 1]]
    assert np.isneginf(channel.log_density([-1, 6, 0.5], 1)).all()


def test_refusals_and_plain_data():
    channel = made(((3, Fraction(2)), (2, Fraction(7, 2))))
    assert RandomisedResponsesChannel.from_parameters(channel.parameters()) == channel
    one = RandomisedResponseChannel(categories=2, odds=Fraction(2))
    with pytest.raises(ModelError, match="several"):
        RandomisedResponsesChannel(responses=(one,))
    with pytest.raises(ModelError, match="too many joint"):
        RandomisedResponsesChannel(responses=(one,) * 54)
    different = tuple(RandomisedResponseChannel(categories=2, odds=Fraction(2 + i)) for i in range(14))
    with pytest.raises(ModelError, match="equally"):
        _ = RandomisedResponsesChannel(responses=different).profile
