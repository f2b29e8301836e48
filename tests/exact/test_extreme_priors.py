"""Urns whose priors are tiny, huge or both: claims against enumeration in fractions, and the limit against 60 digits.

Where a prior is far from the counts a difference of two floats loses all of its digits, so each law is tried at priors from
1e-12 to 1e15 and at the epsilons where its attacker changes her mind.
"""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np
import pytest

from privurn.errors import ModelError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.divergences import delta_unlimited


def compositions(total, cells):
    for bars in combinations_with_replacement(range(cells), total):
        yield tuple(bars.count(i) for i in range(cells))


def rising(x, k):
    return math.prod((x + i for i in range(k)), start=Fraction(1))


def law(masses, m):
    """Probability of each table of m draws."""
    outcomes = list(compositions(m, len(masses)))
    ways = [math.factorial(m) // math.prod(map(math.factorial, each)) for each in outcomes]
    total = rising(sum(masses), m)
    return [
        w * math.prod((rising(a, k) for a, k in zip(masses, o, strict=True)), start=Fraction(1)) / total
        for w, o in zip(ways, outcomes, strict=True)
    ]


def ratio_above(epsilon):
    """A fraction a hair above e^epsilon, so that what is enumerated with it is no more than the truth."""
    with mpmath.workdps(60):
        sign, mantissa, exponent, _ = (mpmath.exp(mpmath.mpf(epsilon)) * (1 + mpmath.mpf(10) ** -50))._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** exponent * (-1 if sign else 1)


def pairs(alphas, *, n, add_remove):
    for table in compositions(n, len(alphas)):
        x = [a + c for a, c in zip(alphas, table, strict=True)]
        for i, j in product(range(len(alphas)), repeat=2):
            if add_remove and i == j:
                yield x, [*x[:i], x[i] + 1, *x[i + 1 :]]
            elif not add_remove and i != j and table[i] > 0:
                y = list(x)
                y[i], y[j] = y[i] - 1, y[j] + 1
                yield x, y


def truth(alphas, *, n, m, epsilon, add_remove):
    E = ratio_above(epsilon)
    return max(
        max(sum(max(Fraction(0), p - E * q) for p, q in zip(*laws, strict=True)) for laws in ((one, other), (other, one)))
        for x, y in pairs(alphas, n=n, add_remove=add_remove)
        for one, other in [(law(x, m), law(y, m))]
    )


TINY_TO_HUGE = [Fraction(10) ** k for k in (-12, -9, -6, -4, -1, 2, 5, 7, 10, 15)]
MIXED = [(Fraction(1, 10**12), Fraction(10**5)), (Fraction(10**10), Fraction(1, 10**7)), (Fraction(10**10), Fraction(2))]


def epsilons(alphas, m):
    """Small ones, large ones, and those on either side of every ratio 1 + j/alpha."""
    turns = [math.log1p(j / float(a)) for a in {*alphas} for j in range(1, m + 1)]
    return {1e-20, 1e-9, 0.1, 1.48, 5.0, *(t * s for t in turns for s in (0.5, 1 - 1e-6, 1 - 1e-12) if t * s < 600.0)}


@pytest.mark.parametrize("alphas", [*((a,) * 3 for a in TINY_TO_HUGE), *((a,) * 2 for a in TINY_TO_HUGE), *MIXED], ids=str)
@pytest.mark.parametrize("add_remove", [False, True])
def test_claims_are_never_below_the_truth(alphas, add_remove):
    n, m = 2, 2
    mechanism = DirichletMultinomial(n=None if add_remove else n, cells=len(alphas), alpha=alphas, records=m)
    for epsilon in epsilons(alphas, m):
        claimed = mechanism.profile.delta(epsilon)
        exact = max(
            truth(alphas, n=size, m=m, epsilon=epsilon, add_remove=add_remove) for size in ((0, 1, 2) if add_remove else (n,))
        )
        assert Fraction(claimed) >= exact, (float(exact), claimed, epsilon)
        if not add_remove and exact > 1e-290:  # add-remove claims hold for every number of records
            assert Fraction(claimed) <= exact * (1 + Fraction(1, 1000)), (float(exact), claimed, epsilon)


def test_one_lone_value_in_a_large_table_of_two_cells():
    """The chance that the lone value is copied: m/(n + m) and a hair."""
    n, m = 200_000, 50_000
    for alphas in (Fraction(1, 10**12), (Fraction(1, 10**12), Fraction(10**5))):
        profile = DirichletMultinomial(n=n, cells=2, alpha=alphas, records=m).profile
        total = n if isinstance(alphas, Fraction) else n + 10**5
        assert profile.delta(1.0) >= m / (total + m) * (1 - 1e-9)
        values = [profile.delta(epsilon) for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0)]
        assert values == sorted(values, reverse=True)


def exact_limit(a, b, epsilon):
    """Ibar_q(a+1, b) - E Ibar_q(a, b+1) with as many digits as it takes."""
    with mpmath.workdps(60):
        a, b, E = mpmath.mpf(a), mpmath.mpf(b), mpmath.exp(mpmath.mpf(epsilon))
        q = E * a / (b + E * a)

        def upper(first, second):
            if q * (first + second) < first:  # one minus the small lower part
                return 1 - mpmath.betainc(first, second, 0, q, regularized=True)
            return mpmath.betainc(second, first, 0, 1 - q, regularized=True)

        return upper(a + 1, b) - E * upper(a, b + 1)


CASES = [(20.0, 1e12, 1.0), (24.0, 1e10, 1.0), (24.0, 9e15, 1.0), (1e-7, 1e10, 1.48), (1e-12, 2e5, 1.0), (3.0, 3.0, 0.7)]


@pytest.mark.parametrize(("a", "b", "epsilon"), CASES)
def test_the_limit_of_unlimited_records(a, b, epsilon):
    truth = exact_limit(a, b, epsilon)
    claimed = delta_unlimited(a, b, epsilon)
    assert truth <= claimed
    assert claimed <= truth * (1 + mpmath.mpf("1e-8")) + mpmath.mpf("2e-300")


def test_the_limit_at_random_masses():
    rng = np.random.default_rng(7)
    for _ in range(60):
        a, b = 10.0 ** rng.uniform(-12, 1.5), 10.0 ** rng.uniform(-12, 13)
        epsilon = rng.choice([1e-3, 0.1, 1.0, 3.0, 10.0])
        assert exact_limit(a, b, epsilon) <= delta_unlimited(a, b, epsilon), (a, b, epsilon)


def test_urns_too_near_the_end_of_their_range_are_refused():
    for strength, discount in ((1, Fraction(9999, 10000)), (Fraction(-4999, 10000), Fraction(1, 2))):
        with pytest.raises(ModelError, match=r"at least 0\.001"):
            PitmanYor(n=2, records=1, strength=Fraction(strength), discount=discount)
    PitmanYor(n=2, records=1, strength=Fraction(1), discount=Fraction(999, 1000))
