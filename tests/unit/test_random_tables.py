"""Over random count tables and parameters: draws stay in the domain, the worst case covers every table, certificates check."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.certificates.verify import check_certificate
from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.instance.cost import instance_delta, instance_delta_public_domain
from privurn.privacy.laws.urn import DirichletMultinomialProfile, PitmanYorProfile

CELLS = 12
tables = st.dictionaries(st.integers(0, CELLS - 1), st.integers(1, 40), min_size=1, max_size=CELLS).map(
    lambda held: CountTable.from_cells(np.array(sorted(held)), np.array([held[cell] for cell in sorted(held)]))
)
fractions = st.builds(Fraction, st.integers(1, 60), st.integers(1, 12))
epsilons = st.floats(0.05, 3.0)


@settings(deadline=None, max_examples=100)
@given(counts=tables, alpha=fractions, m=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_public_domain_draws(counts, alpha, m, seed):
    urn = DirichletMultinomial(n=counts.n, cells=CELLS, alpha=alpha, records=m)
    cells = urn.draw(counts, entropy=SeededEntropy(seed)).cells
    assert len(cells) == m
    assert cells.min() >= 0
    assert cells.max() < CELLS
    assert rebuild(urn.name, urn.parameters()) == urn
    assert urn.simulate(counts, rng=np.random.default_rng(seed)).sum() == m


@settings(deadline=None, max_examples=100)
@given(
    counts=tables,
    discount=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(7, 10)]),
    strength=fractions,
    m=st.integers(1, 60),
    seed=st.integers(0, 10**6),
    finite=st.booleans(),
)
def test_open_domain_draws(counts, discount, strength, m, seed, finite):
    base = {"base": FiniteBase(cells=CELLS)} if finite else {}
    urn = PitmanYor(n=counts.n, strength=strength, discount=discount, records=m, **base)
    drawn = urn.draw(counts, entropy=SeededEntropy(seed))
    assert len(drawn.cells) == m
    assert rebuild(urn.name, urn.parameters()) == urn
    if finite:
        assert drawn.cells.max() < CELLS
    else:
        new = np.unique(drawn.cells[drawn.cells >= len(counts.counts)])
        assert new.tolist() == list(range(len(counts.counts), len(counts.counts) + len(new)))
    old, fresh = urn.simulate(counts, rng=np.random.default_rng(seed))
    assert old.sum() + fresh.sum() == m


@settings(deadline=None, max_examples=60)
@given(counts=tables, alpha=st.floats(0.2, 30.0), m=st.integers(1, 80), epsilon=epsilons)
def test_the_worst_case_covers_every_table(counts, alpha, m, epsilon):
    globally = DirichletMultinomialProfile(n=counts.n, cells=CELLS, alpha=alpha, records=m).delta(epsilon)
    here = instance_delta_public_domain(counts, cells=CELLS, alpha=alpha, records=m, epsilon=epsilon).delta
    assert here <= globally * (1 + 1e-9)
    if counts.n >= 3:
        open_domain = PitmanYorProfile(n=counts.n, records=m, strength=1.0, discount=0.4).delta(epsilon)
        there = instance_delta(counts, records=m, strength=1.0, discount=0.4, epsilon=epsilon).delta
        assert there <= open_domain * (1 + 1e-9)


@settings(deadline=None, max_examples=25)
@given(counts=tables, epsilon=epsilons, log_delta=st.floats(-9, -2), k=st.integers(1, 3))
def test_certificates_of_random_releases_check(counts, epsilon, log_delta, k):
    if counts.n < 2:
        return
    rows = np.repeat(counts.values, counts.counts)
    domain = JointDomain({"value": Grid(0, CELLS - 1, 1)})
    out = privurn.release(rows, domain=domain, epsilon=epsilon, delta=10**log_delta, contributions=k)
    again = Certificate.from_json(out.certificate.to_json())
    assert again.data == out.certificate.data
    assert check_certificate(again) == []
    assert again["achieved"]["delta"] <= 10**log_delta
    assert again["achieved"]["epsilon"] <= epsilon


def test_a_mechanism_refuses_another_number_of_records():
    counts = CountTable(np.array([0]), np.array([5]))
    with pytest.raises(privurn.errors.ModelError, match="another number"):
        DirichletMultinomial(n=4, cells=2, alpha=Fraction(1), records=1).draw(counts, entropy=SeededEntropy(0))
