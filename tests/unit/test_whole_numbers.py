"""Whole numbers on grids and bins are put into their cells without floats, and so exactly, however long they are."""

from fractions import Fraction

import pyarrow as pa
import pytest

from privurn.domain import Bins, Grid, JointDomain
from privurn.tables import count_cells, open_table
from privurn.tables.special_cells import SpecialCells

ENDS = (-(2**63), 2**63 - 1, 0, None)
DOMAINS = [
    Grid(-7, 20, 1),
    Grid(-7, 20, 3),
    Grid(5, 105, 10),
    Grid(-(2**60), 2**60, 2**55),
    Grid(0, 10, "0.5"),
    Bins([-3.5, 0, 2, 7.25]),
    Bins([0, 9]),
    Bins([-(2**61), 2**53, 2**61]),
    Bins([-(2.0**80), 5, 2.0**80]),
]


def edges(domain):
    """Where cells begin; the end of the last one, and whether it belongs to it."""
    if isinstance(domain, Bins):
        return [Fraction(each) for each in domain.edges], True
    return [domain.bounds[0] + domain.spacing * (i - Fraction(1, 2)) for i in range(domain.n_values + 1)], False


def cell(domain, value):
    """By the definition."""
    begins, closed = edges(domain)
    if value is None:
        return domain.null_cell
    if value < begins[0] or value > begins[-1] or (value == begins[-1] and not closed):
        return domain.other_cell
    return min(sum(value >= each for each in begins) - 1, domain.n_values - 1)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_cells_are_those_of_exact_arithmetic(domain):
    domain = type(domain)(**{**vars(domain), "outside": "other", "nulls": "cell"})
    near = {int(each) + off for each in edges(domain)[0] for off in (-1, 0, 1)}
    values = [*(each for each in sorted(near) if abs(each) < 2**63), *ENDS] * 2
    with open_table(pa.table({"x": pa.array(values, pa.int64())})) as source:
        found = count_cells(source, JointDomain({"x": domain}))
    expected = [cell(domain, value) for value in values]
    assert dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == {i: expected.count(i) for i in expected}


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()], ids=str)
def test_short_whole_numbers_do_not_overflow(kind):
    limits = [0, 2 ** (kind.bit_width - 1) - 1] if str(kind).startswith("int") else [0, 2**kind.bit_width - 1]
    domain, values = Grid(-(2**40), 2**40, 2**37), [*limits, *limits, limits[1] // 2, None]
    domain = Grid(domain.low, domain.high, domain.step, nulls="cell")
    special = SpecialCells({"x": domain})
    with open_table(pa.table({"x": pa.array(values, kind)})) as source:
        found = count_cells(source, JointDomain({"x": domain}), special=special)
    expected = [cell(domain, value) for value in values]
    assert dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == {i: expected.count(i) for i in expected}
    assert special.found["x", "null"] == 1
