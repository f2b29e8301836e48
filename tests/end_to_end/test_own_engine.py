"""The engine of docs/how-to/add-an-engine.md counts what DuckDB counts, and refuses the same."""

import re
import sys
import traceback
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import privurn
from hostile_table import DOMAINS, REFUSED, TABLE, by_query, cells, hostile, untyped
from privurn.domain import Categories, Grid, TableDomain
from privurn.errors import FormatError
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-an-engine.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The page's file, and a database with the hostile table."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "warehouse.py").write_text(SKELETON)
    table = hostile()
    with duckdb.connect(folder / "visits.duckdb") as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
        connection.execute("CREATE VIEW broken AS SELECT CAST(label AS INTEGER) AS label FROM visits")
    sys.path.insert(0, str(folder))
    try:
        from warehouse import Warehouse

        yield lambda name: Warehouse(str(folder / "visits.duckdb"), name), untyped(table)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("warehouse", None)


@pytest.mark.parametrize("domain", DOMAINS, ids=["text and numbers", "whole numbers and times", "dates", "dates as text"])
def test_it_counts_the_hostile_table_as_duckdb_does(own, domain):
    there, here = own
    expected = cells(here, domain)
    assert len(expected[0]) > 15
    assert cells(there("visits"), domain) == expected


def test_it_counts_marginals_in_one_query(own):
    there, here = own
    assert by_query(there("visits"), TableDomain(TABLE)) == by_query(here, TableDomain(TABLE))


@pytest.mark.parametrize("why", REFUSED)
def test_it_refuses_the_same(own, why):
    there, here = own
    assert cells(there("visits"), REFUSED[why]) == cells(here, REFUSED[why])


def test_its_complaints_quote_no_record(own):
    there, _ = own
    with pytest.raises(FormatError) as refused:
        privurn.release(there("broken"), domain={"label": Grid(0, 9, 1)}, epsilon=1)
    assert "north" not in "".join(traceback.format_exception(refused.value))


def test_it_goes_through_every_call(own):
    there, here = own
    domain = {"yes": Categories([True, False], nulls="cell"), "label": Categories(["north"], outside="other", nulls="cell")}
    asked = {"domain": domain, "epsilon": 1, "delta": 1e-6}
    made = [
        privurn.release(each, privurn.Urn(records=9), **asked, entropy=SeededEntropy(1)) for each in (there("visits"), here)
    ]
    assert isinstance(made[0].data, pa.Table)
    assert made[0].data.to_pylist() == made[1].table.to_pylist()
    one = {"yes": domain["yes"]}
    privatised = [
        privurn.privatise(each, domain=one, epsilon=1, entropy=SeededEntropy(1)).table for each in (there("visits"), here)
    ]
    assert privatised[0].to_pylist() == privatised[1].to_pylist()
    assert np.size(privatised[0]["yes"]) == len(here)
