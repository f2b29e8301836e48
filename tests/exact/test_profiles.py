"""The global profiles against exhaustive enumeration in rational arithmetic: equal to 1e-12, never below the truth."""

import math
from fractions import Fraction
from functools import cache

import pytest
from urn_laws import dirichlet_multinomial_law, hockey_stick, neighbours, pitman_yor_law

from privurn.privacy.laws.divergences import delta_unlimited, old_old
from privurn.privacy.laws.urn import (
    UNLIMITED,
    DirichletMultinomialProfile,
    DirichletProcessProfile,
    PitmanYorProfile,
)

F = Fraction
RATIOS = [F(3, 4), F(1), F(11, 10), F(3, 2), F(3), F(8)]


def check_claim(claimed: float, exact: Fraction) -> None:
    assert Fraction(claimed) >= exact, "the profile claims less than the enumerated divergence"
    assert claimed - float(exact) <= 1e-12


@cache
def dm_law(counts, alphas, m):
    return dirichlet_multinomial_law(counts, alphas=alphas, m=m)


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
@pytest.mark.parametrize("alpha", [F(1, 3), F(1), F(5, 2)])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_dirichlet_multinomial_profile_is_the_enumerated_supremum(cells, alpha, m):
    for n in range(1, 7 if cells < 4 else 5):
        for ratio in RATIOS:
            exact = max(
                (
                    hockey_stick(dm_law(x, (alpha,) * cells, m), dm_law(y, (alpha,) * cells, m), ratio)
                    for x, y in neighbours(cells, n)
                ),
                default=max(F(0), 1 - ratio),
            )
            profile = DirichletMultinomialProfile(n=n, cells=cells, alpha=math.nextafter(float(alpha), 0), records=m)
            check_claim(profile.delta(math.log(ratio)), exact)


@pytest.mark.parametrize("alphas", [(F(1, 2), F(2)), (F(1, 3), F(1, 2), F(2)), (F(3), F(1), F(1))])
def test_profile_with_a_public_prior_uses_the_two_smallest_alphas(alphas):
    for n in range(1, 4):
        for ratio in RATIOS:
            pairs = neighbours(len(alphas), n)
            exact = max(hockey_stick(dm_law(x, alphas, 2), dm_law(y, alphas, 2), ratio) for x, y in pairs)
            first, second = sorted(map(float, alphas))[:2]
            profile = DirichletMultinomialProfile(
                n=n, cells=len(alphas), alpha=first, second_alpha=second, prior_total=float(sum(alphas)), records=2
            )
            check_claim(profile.delta(math.log(ratio)), exact)


@cache
def py_law(counts, strength, discount, m):
    return pitman_yor_law(dict(enumerate(counts)), strength=strength, discount=discount, m=m)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("discount", "strength"),
    [
        (F(0), F(1)),
        (F(0), F(1, 4)),
        (F(1, 5), F(1)),
        (F(1, 2), F(1)),
        (F(1, 2), F(-1, 4)),
        (F(4, 5), F(3)),
        (F(4, 5), F(-3, 5)),
    ],
)
def test_open_domain_profile_is_the_enumerated_supremum(discount, strength, m):
    for n in range(1, 7):
        if discount == 0:
            profile = DirichletProcessProfile(n=n, records=m, strength=float(strength))
        else:
            profile = PitmanYorProfile(n=n, records=m, strength=float(strength), discount=float(discount))
        for ratio in RATIOS[1:]:
            pairs = list(neighbours(3, n))
            exact = max(
                hockey_stick(py_law(x, strength, discount, m), py_law(y, strength, discount, m), ratio) for x, y in pairs
            )
            check_claim(profile.delta(math.log(ratio)), exact)


def old_values_law(counts, strength, discount, m):
    """Algorithm 3: new values are dropped, so the published sequence is shorter."""
    out = {}
    for drawn, probability in py_law(counts, strength, discount, m).items():
        kept = tuple(value for value in drawn if not isinstance(value, tuple))
        out[kept] = out.get(kept, 0) + probability
    return out


@pytest.mark.parametrize(("discount", "strength"), [(F(0), F(1)), (F(1, 2), F(1)), (F(4, 5), F(-3, 5))])
def test_publishing_old_values_only_keeps_the_profile_and_its_floor(discount, strength):
    for n in (2, 3, 4):
        for ratio in RATIOS[1:]:
            exact = max(
                hockey_stick(old_values_law(x, strength, discount, 3), old_values_law(y, strength, discount, 3), ratio)
                for x, y in neighbours(3, n)
            )
            if discount == 0:
                profile = DirichletProcessProfile(n=n, records=3, strength=float(strength))
                check_claim(profile.delta(math.log(ratio)), exact)  # two-sided, it is no cheaper than the full urn
            else:
                profile = PitmanYorProfile(n=n, records=3, strength=float(strength), discount=float(discount))
                assert profile.delta(math.log(ratio)) >= exact
            assert exact >= profile.floor * (1 - 1e-9)


def test_an_atomic_base_only_hides_more():
    """New tables mapped to a public set: a function of the non-atomic output, so the profile is an upper bound."""
    atoms = (0, 1)

    def mapped(counts):
        out = {}
        for drawn, probability in py_law(counts, F(1), F(1, 2), 2).items():
            laws = [((), probability)]
            tables: dict = {}
            for value in drawn:
                if isinstance(value, tuple) and value not in tables:
                    laws = [({**dict(t), value: atom}, p / 2) for t, p in laws for atom in atoms]
                    tables[value] = True
            for table, p in laws:
                key = tuple(dict(table)[v] if isinstance(v, tuple) else v for v in drawn)
                out[key] = out.get(key, 0) + p
        return out

    profile = PitmanYorProfile(n=3, records=2, strength=1.0, discount=0.5)
    for ratio in RATIOS[1:]:
        worst = max(hockey_stick(mapped(x), mapped(y), ratio) for x, y in neighbours(3, 3))
        assert worst <= profile.delta(math.log(ratio))


def test_unlimited_records_are_the_limit_of_many():
    for a, b, epsilon in [(2.0, 2.0, 0.5), (1.5, 4.0, 1.0), (20.0, 20.0, 0.3)]:
        values = [old_old(a, b, 10.0, m, epsilon) for m in (10, 100, 1000, 10**4, 10**5)]
        limit = delta_unlimited(a, b, epsilon)
        assert values == sorted(values)
        assert values[-1] <= limit
        assert limit - values[-1] < 2e-3 * limit
    assert DirichletMultinomialProfile(n=5, cells=3, alpha=2.0, records=UNLIMITED).delta(0.5) == pytest.approx(
        delta_unlimited(2.0, 2.0, 0.5), rel=1e-11
    )


def test_pure_epsilon_is_where_delta_becomes_zero():
    profile = DirichletMultinomialProfile(n=10, cells=4, alpha=3.0, records=6)
    assert profile.delta(profile.pure_epsilon) == 0.0
    assert profile.delta(profile.pure_epsilon - 1e-6) > 0.0
    assert profile.epsilon(0.0) == pytest.approx(math.log(3.0))
