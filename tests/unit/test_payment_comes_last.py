"""Numbers of any length through the public call: drawn and certified, or refused with the ledger untouched."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.certificates.verify import check_certificate
from privurn.counts import CountTable
from privurn.errors import DomainError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger

DIGITS = "1.23456789012345678901234567891"
SHARE = "0.12345678901234567890123456789123456789"
RECORDS = np.repeat(np.arange(10.0), 30)
UNLIKE = [Fraction(10**100, 10**101 + 2 * i + 1) for i in range(20)]
DEAR = {"epsilon": 20.0, "delta": 1e-3}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", epsilon=500, delta=0.95)


def released(ledger, data=RECORDS, **options):
    """The release, or None where it was refused; paid for exactly if it was made."""
    before = len(ledger.entries())
    try:
        out = privurn.release(data, **{"domain": privurn.Grid(0, 9, 1), "ledger": ledger, **DEAR, **options})
    except PrivurnError:
        assert len(ledger.entries()) == before
        return None
    assert len(ledger.entries()) == before + 1
    assert check_certificate(out.certificate) == []
    return out


@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "mechanism",
    [
        privurn.Urn(alpha=DIGITS, records=50),
        privurn.Urn(alpha=[DIGITS] * 9 + ["7.5"], records=50),
        privurn.Urn(alpha=Fraction(10**30 + 1, 10**30 - 1), records=50),
        privurn.NoisyCounts(smoothing=SHARE, records=50),
    ],
    ids=["alpha", "alphas", "fraction", "smoothing"],
)
def test_long_numbers_are_drawn_exactly_under_either_relation(ledger, neighbouring, mechanism):
    if neighbouring == "add-remove":
        ledger = Ledger.create(ledger.path.with_name("other.db"), epsilon=500, delta=0.95, neighbouring=neighbouring)
    assert len(released(ledger, neighbouring=neighbouring, mechanism=mechanism).data) == 50


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": privurn.Smoothed(smoothing=SHARE, records=50)},
        {"mechanism": privurn.OpenUrn(strength=DIGITS, records=50), "delta": 0.9},
        {"mechanism": privurn.PitmanYorUrn(strength=DIGITS, discount=SHARE, records=2), "delta": 0.9},
        {"mechanism": privurn.OpenUrn(strength="1e300", records=50), "domain": privurn.OpenLabels()},
    ],
    ids=["smoothing", "strength", "discount", "enormous"],
)
def test_long_numbers_of_the_other_mechanisms_are_drawn_exactly(ledger, options):
    assert released(ledger, **options) is not None


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": privurn.Urn(alpha="1e300", records=50)},
        {"mechanism": privurn.Urn(alpha="1e-300", records=50)},
        {"mechanism": privurn.Urn(alpha=Fraction(10**350), records=50)},
        {"mechanism": privurn.Urn(alpha=UNLIKE, records=50), "domain": privurn.Grid(0, 19, 1)},
        {"mechanism": privurn.OpenUrn(base_weights=[2**62] * 10, records=50), "delta": 0.9},
        {"mechanism": privurn.Smoothed(smoothing=Fraction(1, 10**400), records=50)},
    ],
    ids=["large", "small", "endless", "unlike", "weights", "weight"],
)
def test_what_does_not_fit_is_refused_before_payment(ledger, options):
    assert released(ledger, **options) is None


@settings(max_examples=12)
@given(
    digits=st.integers(1, 10**30 - 1),
    places=st.integers(22, 40),
    neighbouring=st.sampled_from(["replace-one", "add-remove"]),
    urn=st.booleans(),
)
def test_any_thirty_digits_are_released_or_refused_before_payment(tmp_path_factory, digits, places, neighbouring, urn):
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    ledger = Ledger.create(path, epsilon=500, delta=0.95, neighbouring=neighbouring)
    number = Fraction(digits, 10**places)
    asked = privurn.Urn(alpha=number, records=50) if urn else privurn.NoisyCounts(smoothing=number, records=50)
    made = released(ledger, neighbouring=neighbouring, mechanism=asked)
    assert len(ledger.entries()) == (made is not None)


def test_a_solved_alpha_of_fifteen_digits_releases_the_histogram_it_stands_for(ledger):
    """92,233 zeros among a million: 64-bit slots of 1/1e14 would give nearly all zeros, or none with one zero fewer."""
    data = np.concatenate([np.zeros(92_233), 1.0 + np.arange(10**6 - 92_233) % 99])
    wanted = {
        "domain": privurn.Grid(0, 99, 1),
        "epsilon": 1.0,
        "delta": 1e-6,
        "mechanism": privurn.Urn(records=10_000, alpha="1.24636052993387"),
    }
    zeros = int((released(ledger, data, **wanted).data == 0).sum())
    assert 700 < zeros < 1150, "922 expected, standard deviation 29: one false alarm in 1e12"


@pytest.mark.parametrize("zeros", [92_233, 92_232])
def test_neighbours_of_a_long_alpha_keep_their_shares(zeros):
    """The slots themselves, one zero more or less: the share of cell 0 moves by a millionth."""
    dense = np.full(100, 9_169)
    dense[0], dense[1] = zeros, 10**6 - zeros - 98 * 9_169
    urn = DirichletMultinomial(n=10**6, cells=100, alpha=Fraction("1.24636052993387"), records=10_000)
    cells = urn.draw(CountTable.from_cells(np.arange(100), dense), entropy=SeededEntropy(2)).cells
    assert 800 < (cells == 0).sum() < 1050


# Grids


@pytest.mark.parametrize(
    ("grid", "kind"),
    [
        ((0, "1e20", "1e19"), "float64"),
        ((0, "1e19", "1e18"), "float64"),
        (("-9e18", "9e18", "1e18"), "int64"),
        ((0, "9e300", "1e299"), "float64"),
        ((0, "1e-20", "1e-21"), "float64"),
        ((0, 1, "1/3"), "float64"),
        (("-9223372036854775808", "0", "4611686018427387904"), "int64"),
    ],
    ids=str,
)
def test_enormous_and_tiny_grids_publish_the_right_numbers(ledger, grid, kind):
    domain = privurn.Grid(*grid)
    low, step = domain.bounds[0], domain.spacing
    points = [low + step * i for i in range(domain.size)]
    data = np.repeat([float(point) for point in points], 40)
    out = released(ledger, data, domain=domain, mechanism=privurn.Urn(records=50)).data
    assert out.dtype == kind
    allowed = {int(point) if kind == "int64" else float(point) for point in points}
    assert set(out.tolist()) <= allowed
    assert len(set(out.tolist())) > 1


@pytest.mark.parametrize("grid", [("1e17", "100000000000000100", 1), ("1e300", "1.000000000000000001e300", "1e282")], ids=str)
def test_grids_finer_than_the_numbers_they_are_read_as_are_refused_when_declared(grid):
    with pytest.raises(DomainError, match="too close together"):
        privurn.Grid(*grid)


@pytest.mark.parametrize("edges", [(0, "2e19"), (0, "3.8e19"), (0, 1, "1e19"), ("-1e300", "0", "1e300")], ids=str)
def test_midpoints_of_enormous_bins_are_the_right_numbers(ledger, edges):
    domain = privurn.Bins(edges)
    exact = [Fraction(edge) for edge in domain.edges]
    middles = [(a + b) / 2 for a, b in pairwise(exact)]
    data = np.repeat([float(middle) for middle in middles], 100)
    assert set(released(ledger, data, domain=domain, mechanism=privurn.Urn(alpha=5, records=50)).data.tolist()) <= {
        float(middle) for middle in middles
    }


def test_bins_that_floats_cannot_tell_apart_are_refused_when_declared():
    with pytest.raises(DomainError, match="too close together"):
        privurn.Bins([1, "1.00000000000000000000001", 2])
