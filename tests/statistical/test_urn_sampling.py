"""The samplers at sizes that cannot be enumerated: fixed bins, exact quantiles, wrong twins that must fail."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import betabinom, chi2

from privurn.counts import CountTable
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.entropy import SeededEntropy, SystemEntropy

FALSE_ALARM = 1e-6
RUNS = 4000
COUNTS = CountTable(np.array([1, 4, 7]), np.array([12, 1, 7]))


def rejected(samples, law, edges) -> bool:
    """Chi-square test of samples against a discrete law on fixed bins."""
    expected = np.diff(np.concatenate([[0.0], law.cdf(np.array(edges)), [1.0]])) * len(samples)
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(edges) + 1)
    return bool(((observed - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, len(edges)))


def copies(mechanism, cell, entropy):
    return np.array([(mechanism.draw(COUNTS, entropy=entropy).cells == cell).sum() for _ in range(RUNS)])


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(11)], ids=["system", "seeded"])
def test_released_copies_of_a_cell_are_beta_binomial(entropy):
    urn = DirichletMultinomial(n=20, cells=9, alpha=Fraction(3, 2), records=40)
    law = betabinom(40, 12 + 1.5, 20 + 13.5 - 13.5)
    assert not rejected(copies(urn, 1, entropy), law, [10, 13, 16, 19, 22]), f"fails with probability {FALSE_ALARM} when right"
    twin = DirichletMultinomial(n=20, cells=9, alpha=Fraction(3, 4), records=40)  # alpha too small by half
    assert rejected(copies(twin, 1, entropy), law, [10, 13, 16, 19, 22])


def test_simulation_twin_of_the_public_domain_urn():
    rng = np.random.default_rng(5)
    urn = DirichletMultinomial(n=20, cells=9, alpha=Fraction(3, 2), records=40)
    law = betabinom(40, 13.5, 20.0)
    samples = np.array([urn.simulate(COUNTS, rng=rng)[1] for _ in range(RUNS)])
    assert samples.max() <= 40
    assert not rejected(samples, law, [10, 13, 16, 19, 22])


def new_records(mechanism, rng_or_entropy):
    k = len(COUNTS.counts)
    if isinstance(rng_or_entropy, np.random.Generator):
        return np.array([mechanism.simulate(COUNTS, rng=rng_or_entropy)[1].sum() for _ in range(RUNS)])
    return np.array([(mechanism.draw(COUNTS, entropy=rng_or_entropy).cells >= k).sum() for _ in range(RUNS)])


@pytest.mark.parametrize("source", [SystemEntropy(), np.random.default_rng(9)], ids=["exact", "simulation twin"])
def test_new_records_of_the_open_urn_are_beta_binomial(source):
    urn = PitmanYor(n=20, records=30, strength=Fraction(2), discount=Fraction(1, 2))
    law = betabinom(30, 2 + 3 * 0.5, 20 - 3 * 0.5)
    assert not rejected(new_records(urn, source), law, [1, 3, 5, 7, 9])
    twin = PitmanYor(n=20, records=30, strength=Fraction(2), discount=Fraction(0))
    assert rejected(new_records(twin, source), law, [1, 3, 5, 7, 9])


def test_distinct_new_values_agree_between_the_exact_urn_and_its_twin():
    urn = PitmanYor(n=20, records=60, strength=Fraction(3), discount=Fraction(3, 5))
    entropy, rng = SeededEntropy(3), np.random.default_rng(4)
    exact = np.array([urn.draw(COUNTS, entropy=entropy).cells.max() - 2 for _ in range(RUNS)])
    twin = np.array([len(urn.simulate(COUNTS, rng=rng)[1]) for _ in range(RUNS)])
    top = 14
    table = np.array([np.bincount(np.clip(each, 2, top) - 2, minlength=top - 1) for each in (exact, twin)], float)
    expected = table.sum(axis=0) / 2
    statistic = ((table - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(FALSE_ALARM, top - 2)
    shifted = np.array([table[0], np.roll(table[1], 1)])
    expected = shifted.sum(axis=0) / 2
    assert ((shifted - expected) ** 2 / expected).sum() > chi2.isf(FALSE_ALARM, top - 2)


def test_order_carries_no_information():
    """The position of the first copy of a cell is uniform given how many there are."""
    urn = DirichletMultinomial(n=20, cells=9, alpha=Fraction(3, 2), records=6)
    entropy = SeededEntropy(8)
    first, last = 0, 0
    for _ in range(6 * RUNS):
        cells = urn.draw(COUNTS, entropy=entropy).cells
        if (cells == 1).sum() == 1:
            position = int(np.argmax(cells == 1))
            first += position == 0
            last += position == 5
    assert abs(first - last) < 5 * np.sqrt(first + last)


def test_base_weights_choose_new_values():
    urn = PitmanYor(
        n=20,
        records=50,
        strength=Fraction(10**6),
        discount=Fraction(0),
        base=FiniteBase(cells=9, weights=(0, 0, 3, 0, 0, 1, 0, 0, 0)),
    )
    cells = np.concatenate([urn.draw(COUNTS, entropy=SeededEntropy(i)).cells for i in range(200)])
    new = cells[np.isin(cells, [2, 5])]
    assert len(new) > 9900
    assert abs((new == 2).mean() - 0.75) < 0.03
